//! `nigh run` as one of the tasks that a scheduler starts: task 0 supervises the run, the others serve it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use anyhow::{Result, bail};

use super::args::RunArgs;
use super::errors::WrongUse;
use super::signals::HAS_STOP_HANDLER;
use crate::config::{Bytes, Config, Tasks};
use crate::launch::{EventSink, Pool, SchedulerTask, serve_task};
use crate::log::Log;

/// What a task has to do.
pub(crate) enum TaskRole {
    /// Run the job with this pool.
    Supervisor(Pool),
    /// Nothing more: it served the run, which ended with this exit code.
    Served(u8),
}

/// Finds out which task this is. Task 0 gets the pool of all tasks; another task serves the run until it ends.
///
/// # Errors
/// If `--processes` is given, the scheduler's variables are missing or wrong, or the tasks do not find each other.
pub(crate) fn task_role(table: &Tasks, config: &mut Config, args: &RunArgs, log: &Log) -> Result<TaskRole> {
    if args.processes.is_some() {
        bail!(WrongUse("--processes is for this machine only: the scheduler decides how many tasks there are".into()));
    }
    let task = SchedulerTask::find(table, |name| std::env::var(name).ok()).map_err(WrongUse::from_error)?;
    exit_on_signals(log, task.me);
    let events: EventSink = {
        let log = log.clone();
        Arc::new(move |event| log.event(event))
    };
    if task.me == 0 {
        // By default, what the scheduler assigned: the CPUs of a task, and the memory of each of its machines.
        config.assigned_cores = Some(task.cpus.unwrap_or_else(|| config.workers(1)));
        config.memory = Some(config.memory.unwrap_or(Bytes(config.memory() * task.machines as u64)));
        return Ok(TaskRole::Supervisor(Pool::of_tasks(&task, table, config, &events)?));
    }
    log.set_process(task.me);
    serve_task(&task, table, config, &events).map(TaskRole::Served)
}

/// Ends this task on SIGINT or SIGTERM, until the run has its own handler, which reports more. The processes of the task end with
/// it, and the other tasks notice. It is needed because the first process of a container ignores signals without a handler.
fn exit_on_signals(log: &Log, task: usize) {
    let signals = signal_hook::iterator::Signals::new([signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM]);
    // Without a handler the signal ends the task all the same, but without a message.
    let Ok(mut signals) = signals else { return };
    let log = log.clone();
    std::thread::spawn(move || {
        if let Some(signal) = signals.forever().find(|_| !HAS_STOP_HANDLER.load(Ordering::Acquire)) {
            log.stopped(&format!("task {task} is stopped"));
            std::process::exit(128 + signal);
        }
    });
}
