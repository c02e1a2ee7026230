//! `nigh worker`: one process of several. It receives its work as JSON on stdin, and returns a
//! summary as JSON.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result};

use crate::cli::errors::{exit_code, is_transient};
use crate::cli::print::json_text;
use crate::jobs;
use crate::launch::{EXIT_PANIC, GenerationWork, Outcome, Peers, exit_on_panic, run_workers, serve};
use crate::plan::Plan;
use crate::state::WeekJournal;
use crate::studies::{self, StudySummary, StudyTask};
use crate::summary::Summary;
use crate::watch::Watch;

/// The work that one process of several is started for.
#[derive(serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ProcessWork {
    /// Making a week.
    Run(Box<Plan>),
    /// A study.
    Study(Box<StudyTask>),
    /// A benchmark.
    #[cfg(feature = "bench")]
    Bench(nigh_bench::BenchTask),
}

impl ProcessWork {
    /// The work as its process reads it from stdin.
    pub(crate) fn json_text(&self) -> Result<String> {
        json_text(self)
    }

    /// The work of a generation, of any number of processes. What it leaves to each, and each one's
    /// memory, stay the same.
    ///
    /// # Errors
    /// If the journal of the week cannot be read.
    pub(crate) fn of_generation(self) -> Result<GenerationWork> {
        let committed = match &self {
            ProcessWork::Run(plan) => {
                let journal = WeekJournal::read(&plan.open_store().unfinished(plan.week).journal())?;
                journal.map_or(0, |journal| journal.waves as u64)
            }
            _ => 0,
        };
        Ok(GenerationWork::new(committed, move |processes| match &self {
            ProcessWork::Run(plan) => ProcessWork::Run(Box::new(Plan { processes, ..Plan::clone(plan) })).json_text(),
            ProcessWork::Study(task) => {
                let mut task = task.clone();
                task.plan.processes = processes;
                ProcessWork::Study(task).json_text()
            }
            #[cfg(feature = "bench")]
            ProcessWork::Bench(_) => self.json_text(),
        }))
    }
}

/// Runs this process of several: reads its work, joins the other processes, and returns the summary
/// to the supervisor.
pub(crate) fn worker() -> Result<ExitCode> {
    exit_on_panic(EXIT_PANIC);
    let failed = |error: &anyhow::Error| Outcome::Failed {
        message: format!("{error:#}"),
        code: exit_code(error),
        passes: is_transient(error),
    };
    let work = |plan: &str, peers: Peers, watch: Arc<Watch>| {
        let run = || -> Result<Option<String>> {
            match serde_json::from_str(plan).context("the supervisor is another version of nigh")? {
                ProcessWork::Run(plan) => cluster(*plan, peers, &watch)?.as_ref().map(json_text).transpose(),
                ProcessWork::Study(task) => study(*task, peers, &watch)?.as_ref().map(json_text).transpose(),
                #[cfg(feature = "bench")]
                ProcessWork::Bench(task) => crate::bench::serve_task(task, peers, &watch),
            }
        };
        match run() {
            Ok(_) if watch.has_ended_early() => Outcome::AtBorder,
            Ok(summary) => Outcome::Done(summary),
            Err(error) => failed(&error),
        }
    };
    Ok(ExitCode::from(serve(work, failed)?))
}

/// Makes a week with the workers of this process, alone or as one of several. Returns the summary
/// in the process that has worker 0.
pub(crate) fn cluster(plan: Plan, peers: Peers, watch: &Arc<Watch>) -> Result<Option<Summary>> {
    let (workers, plan) = (plan.workers, Arc::new(plan));
    let summaries = run_workers(workers, peers, watch, move |cx| jobs::cluster::cluster(cx, &plan))?;
    Ok(summaries.into_iter().flatten().next())
}

/// Runs a study with the workers of this process, alone or as one of several. Returns the summary
/// as [`cluster`] does.
pub(crate) fn study(task: StudyTask, peers: Peers, watch: &Arc<Watch>) -> Result<Option<StudySummary>> {
    let summaries = run_workers(task.plan.workers, peers, watch, move |cx| studies::run(cx, &task))?;
    Ok(summaries.into_iter().flatten().next())
}
