//! `nigh run` as one of the tasks that a scheduler started: the first supervises the run, the others serve it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use anyhow::{Result, bail};

use super::args::RunArgs;
use super::errors::WrongUse;
use super::signals::STOPS_IN_ORDER;
use crate::config::{Bytes, Config, Count, Tasks};
use crate::launch::{EventSink, Pool, SchedulerTask, serve_task};
use crate::log::Log;

/// What a task has to do.
pub(crate) enum TaskRole {
    /// The run, with this pool.
    Supervisor(Pool),
    /// Nothing more: the run that it served ended so.
    Over(u8),
}

/// Finds out which task this is; one that is not the first serves the run until that is over.
pub(crate) fn part(table: &Tasks, config: &mut Config, args: &RunArgs, log: &Log) -> Result<TaskRole> {
    if args.processes.is_some() {
        bail!(WrongUse("--processes is for this machine alone: the scheduler says how many tasks there are".into()));
    }
    let task =
        SchedulerTask::find(table, |name| std::env::var(name).ok()).map_err(|error| WrongUse(format!("{error:#}")))?;
    end_on_signals(log, task.me);
    let told = log.clone();
    let voice: EventSink = Arc::new(move |event| told.event(event));
    if task.me == 0 {
        // What the scheduler gives each task, and each of its machines.
        config.workers = Some(config.workers.unwrap_or(Count(task.cpus.unwrap_or_else(|| config.workers(1)))));
        config.memory = Some(config.memory.unwrap_or(Bytes(config.memory() * task.machines as u64)));
        return Ok(TaskRole::Supervisor(Pool::of_tasks(&task, table, config, &voice)?));
    }
    log.set_process(task.me);
    serve_task(&task, table, config, &voice).map(TaskRole::Over)
}

/// Ends this task when a signal asks for it: its process ends with it, and the others hear of it. A supervisor has more
/// to say once the run has begun; without this, the first process of a container would not even be ended before.
fn end_on_signals(log: &Log, task: usize) {
    let signals = signal_hook::iterator::Signals::new([signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM]);
    // Without the handler a signal still ends it, only without a word.
    let Ok(mut signals) = signals else { return };
    let log = log.clone();
    std::thread::spawn(move || {
        if let Some(signal) = signals.forever().find(|_| !STOPS_IN_ORDER.load(Ordering::Acquire)) {
            log.stopped(&format!("task {task} is stopped"));
            std::process::exit(128 + signal);
        }
    });
}
