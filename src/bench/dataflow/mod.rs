//! Benchmarks of dataflows, in one process or several: those of the steps of a week are here, those
//! of studies in the folders of the studies.
//!
//! In reading order: `setup` (what `clusters`, `weeks` and `verify` share), `clusters`,
//! `components`, `weeks`, `exchange`, `verify`.

mod clusters;
mod components;
mod exchange;
mod setup;
mod verify;
mod weeks;

use std::sync::Arc;

use anyhow::{Context, Result};
use clap::{ArgMatches, Command, FromArgMatches, Subcommand};
use nigh_bench::{AnyBench, BenchOutcome, BenchTask};

use crate::launch::Peers;
use crate::studies::AnyStudy;
use crate::watch::Watch;

/// All benchmarks of dataflows.
fn all() -> impl Iterator<Item = AnyBench> {
    let of_studies = AnyStudy::all().into_iter().filter_map(|study| study.bench());
    let of_weeks = [clusters::BENCH, components::BENCH, weeks::BENCH, exchange::BENCH];
    of_weeks.into_iter().chain(of_studies).chain([verify::BENCH])
}

/// The benchmark with this name.
fn named(name: &str) -> Option<AnyBench> {
    all().find(|bench| bench.name() == name)
}

/// Runs one process of a benchmark. The process of worker 0 returns the figures of all processes as
/// JSON, the others `None`.
///
/// # Errors
/// If the benchmark fails.
pub fn serve_task(task: BenchTask, peers: Peers, watch: &Arc<Watch>) -> Result<Option<String>> {
    let bench = named(&task.bench)
        .with_context(|| format!("no benchmark {}: the supervisor is another version of nigh", task.bench))?;
    bench.serve(task, peers, watch)
}

/// A benchmark of a dataflow with the arguments of its command line: the subcommands of
/// `nigh bench` that [`all`] lists.
pub(crate) struct DataflowBench {
    bench: AnyBench,
    arguments: ArgMatches,
}

impl DataflowBench {
    /// Runs it. `as_text` formats a task as a new process of this program reads it.
    ///
    /// # Errors
    /// If the benchmark fails in any process.
    pub(crate) fn run(&self, as_text: fn(BenchTask) -> Result<String>) -> Result<BenchOutcome> {
        self.bench.run(&self.arguments, &as_text)
    }
}

impl FromArgMatches for DataflowBench {
    fn from_arg_matches(matches: &ArgMatches) -> Result<DataflowBench, clap::Error> {
        let given = matches.subcommand().and_then(|(name, arguments)| Some((named(name)?, arguments.clone())));
        let (bench, arguments) = given.ok_or_else(|| clap::Error::new(clap::error::ErrorKind::InvalidSubcommand))?;
        Ok(DataflowBench { bench, arguments })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = DataflowBench::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Subcommand for DataflowBench {
    fn augment_subcommands(command: Command) -> Command {
        command.subcommands(all().map(|bench| bench.command()))
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        DataflowBench::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        named(name).is_some()
    }
}
