//! `nigh run` as one of the tasks that a scheduler starts: task 0 supervises the run, the others
//! serve it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use anyhow::{Result, bail};

use crate::cli::args::RunArgs;
use crate::cli::errors::WrongUse;
use crate::cli::session::signals::HAS_STOP_HANDLER;
use crate::config::{Bytes, Config, Tasks};
use crate::launch::{EventSink, Pool, SchedulerTask, TaskNotice, serve_task};
use crate::log::Log;

/// What a task has to do.
pub(crate) enum TaskRole {
    /// Run the job with this pool.
    Supervisor(Pool),
    /// Nothing more: it served the run, which ended with this exit code.
    Served(u8),
}

/// Finds out which task this is. Task 0 gets the pool of all tasks; another task serves the run
/// until it ends.
///
/// # Errors
/// If `--processes` is given, the scheduler's variables are missing or wrong, or the tasks do not
/// find each other.
pub(crate) fn task_role(table: &Tasks, config: &mut Config, args: &RunArgs, log: &Log) -> Result<TaskRole> {
    if args.processes.is_some() {
        bail!(WrongUse("--processes is for this machine only: the scheduler decides how many tasks there are".into()));
    }
    let task = SchedulerTask::find(table, |name| std::env::var(name).ok()).map_err(WrongUse::from_error)?;
    let notice = TaskNotice::default();
    exit_on_signals(log, task.me, &notice);
    let events: EventSink = {
        let log = log.clone();
        Arc::new(move |event| log.event(event))
    };
    if task.me == 0 {
        // By default, what the scheduler assigned: the CPUs of a task, and the memory of each of
        // its machines.
        config.assigned_cores = Some(task.cpus.unwrap_or_else(|| config.workers(1)));
        config.memory = Some(config.memory.unwrap_or(Bytes(config.memory() * task.machines as u64)));
        return Ok(TaskRole::Supervisor(Pool::of_tasks(&task, table, config, &events)?));
    }
    log.set_process(task.me);
    serve_task(&task, table, config, &notice, &events).map(TaskRole::Served)
}

/// Ends this task on SIGINT or SIGTERM, until the run has its own handler, which reports more. The
/// processes of the task end with it, and the other tasks notice. It is needed because the first
/// process of a container ignores signals without a handler.
///
/// A task that serves the run ends later on SIGTERM: when its process has ended, after the wave
/// that is read. A second signal ends it at once.
fn exit_on_signals(log: &Log, task: usize, notice: &TaskNotice) {
    let signals = signal_hook::iterator::Signals::new([signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM]);
    // Without a handler the signal ends the task all the same, but without a message.
    let Ok(mut signals) = signals else { return };
    let (log, notice) = (log.clone(), notice.clone());
    std::thread::spawn(move || {
        for signal in signals.forever().filter(|_| !HAS_STOP_HANDLER.load(Ordering::Acquire)) {
            if signal == signal_hook::consts::SIGTERM && notice.leave((128 + signal) as u8) {
                log.notice(&format!("task {task} was told to end, and ends after the wave that is read"));
                continue;
            }
            log.stopped(&format!("task {task} is stopped"));
            std::process::exit(128 + signal);
        }
    });
}
