//! One process of several: it receives its work as JSON on stdin, and returns a summary.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result};
use timely::worker::Worker;

use super::errors::{exit_code, passes};
use crate::jobs;
use crate::jobs::EvolutionPlan;
use crate::launch::{EXIT_PANIC, Outcome, Peers, exit_on_panic, run_workers, serve};
use crate::operators::InProcess;
use crate::plan::Plan;
use crate::summary::{EvolutionSummary, Summary};
use crate::watch::Watch;

pub(crate) fn cluster(plan: Plan, peers: Peers, watch: &Arc<Watch>) -> Result<Option<Summary>> {
    let (workers, plan, watched) = (plan.workers, Arc::new(plan), watch.clone());
    let shared = Arc::<InProcess>::default();
    let work = move |worker: &mut Worker| jobs::cluster::cluster(worker, &plan, &shared, &watched);
    let summaries = run_workers(workers, peers, watch, work)?;
    Ok(summaries.into_iter().flatten().next())
}

/// What one process of several is started for.
#[derive(serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ProcessWork {
    /// A run.
    Run(Box<Plan>),
    /// The run of an evolution job.
    Evolution(Box<EvolutionPlan>),
    /// A benchmark.
    Bench(crate::bench::BenchTask),
}

impl ProcessWork {
    /// As the process is told it.
    pub(crate) fn told(&self) -> Result<String> {
        serde_json::to_string(self).context("a plan is plain data")
    }
}

/// A summary as one line of JSON.
pub(crate) fn told(summary: &impl serde::Serialize) -> Result<String> {
    serde_json::to_string(summary).context("a summary is plain data")
}

/// One process of several.
pub(crate) fn worker() -> Result<ExitCode> {
    exit_on_panic(EXIT_PANIC);
    let failed = |error: &anyhow::Error| Outcome::Failed {
        message: format!("{error:#}"),
        code: exit_code(error),
        passes: passes(error),
    };
    let work = |plan: &str, peers: Peers, watch: Arc<Watch>| {
        let run = || -> Result<Option<String>> {
            match serde_json::from_str(plan).context("the supervisor speaks another version")? {
                ProcessWork::Run(plan) => cluster(*plan, peers, &watch)?.as_ref().map(told).transpose(),
                ProcessWork::Evolution(plan) => evolution(*plan, peers, &watch)?.as_ref().map(told).transpose(),
                ProcessWork::Bench(task) => crate::bench::serve_task(&task, peers, &watch),
            }
        };
        run().map_or_else(|error| failed(&error), Outcome::Done)
    };
    Ok(ExitCode::from(serve(work, failed)?))
}

/// The job in this process, alone or one of several.
pub(crate) fn evolution(plan: EvolutionPlan, peers: Peers, watch: &Arc<Watch>) -> Result<Option<EvolutionSummary>> {
    let (workers, watched) = (plan.workers, watch.clone());
    let work = move |worker: &mut Worker| jobs::evolution::evolution(worker, &plan, &watched);
    Ok(run_workers(workers, peers, watch, work)?.into_iter().flatten().next())
}
