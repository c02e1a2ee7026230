//! The face of a benchmark of a dataflow, and such a benchmark, whichever it is.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use clap::{ArgMatches, Args, Command};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::harness::{Measure, measure};
use super::outcome::BenchOutcome;
use crate::launch::Peers;
use crate::watch::Watch;

/// A benchmark of a dataflow. The value is its arguments, whose doc comment `nigh bench --help`
/// shows.
pub trait Bench: Args {
    /// The work, as each process receives it.
    type Task: Measure + Serialize + DeserializeOwned;

    /// Runs it and reports. `as_text` formats a task as a new process of this program reads it: see
    /// [`run`](crate::run).
    ///
    /// # Errors
    /// If the arguments contradict each other, or the work fails in any process.
    fn bench(&self, as_text: impl Fn(Self::Task) -> Result<String>) -> Result<BenchOutcome>;
}

/// A benchmark, whichever it is.
#[derive(Clone, Copy, Debug)]
pub struct AnyBench {
    name: &'static str,
    augment: fn(Command) -> Command,
    run: fn(&AnyBench, &ArgMatches, &FormatTask<'_>) -> Result<BenchOutcome>,
    serve: fn(Value, Peers, &Arc<Watch>) -> Result<Option<String>>,
}

/// Formats a task as a new process of this program reads it.
type FormatTask<'a> = dyn Fn(BenchTask) -> Result<String> + 'a;

/// The work of a benchmark, whichever it is, as a new process receives it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BenchTask {
    /// The name of the benchmark.
    pub bench: String,
    /// Its [`Task`](Bench::Task).
    pub task: Value,
}

impl AnyBench {
    /// The benchmark `B`, which `nigh bench` calls `name`.
    pub const fn of<B: Bench>(name: &'static str) -> AnyBench {
        AnyBench { name, augment: B::augment_args, run: run_as::<B>, serve: serve_as::<B::Task> }
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Its command line.
    pub fn command(&self) -> Command {
        (self.augment)(Command::new(self.name))
    }

    /// Runs it with the arguments that its command line had.
    ///
    /// # Errors
    /// As [`Bench::bench`].
    pub fn run(&self, arguments: &ArgMatches, as_text: &FormatTask<'_>) -> Result<BenchOutcome> {
        (self.run)(self, arguments, as_text)
    }

    /// Runs one process of several. The process of worker 0 returns the figures of all processes as
    /// JSON, the others `None`.
    ///
    /// # Errors
    /// If the work fails.
    pub fn serve(&self, task: BenchTask, peers: Peers, watch: &Arc<Watch>) -> Result<Option<String>> {
        (self.serve)(task.task, peers, watch)
    }
}

fn run_as<B: Bench>(bench: &AnyBench, arguments: &ArgMatches, as_text: &FormatTask<'_>) -> Result<BenchOutcome> {
    B::from_arg_matches(arguments)?.bench(|task| {
        let task = serde_json::to_value(task).context("a task is plain data")?;
        as_text(BenchTask { bench: bench.name.to_owned(), task })
    })
}

fn serve_as<T: Measure + DeserializeOwned>(task: Value, peers: Peers, watch: &Arc<Watch>) -> Result<Option<String>> {
    let task: T = serde_json::from_value(task).context("the supervisor is another version of nigh")?;
    let measured = measure(&task, peers, watch)?;
    measured.map(|measured| serde_json::to_string(&measured).context("figures are plain data")).transpose()
}
