//! Studies: jobs that read committed weeks of a store, and write tables about them into one folder, which they replace as a whole.

use std::sync::Arc;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use timely::worker::Worker;

use super::evolution::evolution;
use super::mirrors::mirrors;
use super::overlap::overlap;
use crate::config::Study;
use crate::operators::InProcess;
use crate::operators::exchange::barrier;
use crate::state::{History, Results, Store, replace};
use crate::structures::Ownership;
use crate::summary::StudySummary;
use crate::tables::{Table, Writer};
use crate::watch::{Stage, Watch};

/// The plan of a run, the same in every process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StudyPlan {
    /// The job, with all flags applied.
    pub study: Study,
    /// The weeks to read.
    pub history: History,
    /// The name of the store's folder for unfinished work.
    pub work: String,
    /// The number of the commit that makes the tables.
    pub commit: u64,
    /// The number of processes.
    pub processes: usize,
    /// The number of workers in each process.
    pub workers: usize,
    /// Memory for the buffers of one worker, in bytes.
    pub worker_memory: u64,
}

impl StudyPlan {
    /// The results, while they are made.
    pub fn results(&self) -> Results {
        Results::of(&Store::at(&self.history.store).working_in(&self.work), self.study.folder(), self.commit)
    }

    /// The URLs of the last week that a worker owns.
    pub(crate) fn owned(&self, worker: &Worker) -> Ownership {
        Ownership::new(worker.index(), worker.peers(), &self.history.last().rows)
    }

    /// Writes a table into its file number `part`. Every table has a part 0, even without rows.
    pub(crate) fn write<T: Table>(&self, part: usize, rows: impl IntoIterator<Item = T>) -> Result<()> {
        let mut writer: Writer<T> = Writer::create(&self.results().table(T::NAME, part))?;
        rows.into_iter().try_for_each(|row| writer.push(row))?;
        writer.finish().map(|_| ())
    }
}

/// Runs a study on one worker. Every worker of every process calls it with the same plan, after [`Results::begin`]. Worker 0 commits the
/// tables and returns the summary; the others return `None`.
///
/// # Errors
/// If a file cannot be read or written, or a worker failed. The tables of the run before stay as they are.
pub fn study(
    worker: &mut Worker,
    plan: &StudyPlan,
    in_process: &Arc<InProcess>,
    watch: &Arc<Watch>,
) -> Result<Option<StudySummary>> {
    watch.enter(Stage::Weeks);
    let summary = match &plan.study {
        Study::Evolution(_) => evolution(worker, plan, watch)?.map(StudySummary::Evolution),
        Study::Mirrors(job) => mirrors(worker, plan, job, in_process, watch)?.map(StudySummary::Mirrors),
        Study::Overlap(job) => overlap(worker, plan, job, in_process, watch)?.map(StudySummary::Overlap),
    };
    // All workers have written their tables.
    barrier(worker, watch)?;
    let Some(summary) = summary else { return Ok(None) };
    let results = plan.results();
    let job = toml::to_string(&plan.study).context("cannot write the job as TOML")?;
    replace(&results.file("job.toml"), job.as_bytes())?;
    let text = serde_json::to_vec_pretty(&summary).context("a summary is plain data")?;
    replace(&results.file("summary.json"), &text)?;
    results.commit()?;
    Ok(Some(summary))
}
