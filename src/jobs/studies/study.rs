//! Studies: jobs that read committed weeks of a store, and write tables about them into one folder, which they replace as a whole.

use std::sync::Arc;

use anyhow::{Context, Result};
use timely::worker::Worker;

use super::collections::collections;
use super::evolution::evolution;
use super::mirrors::mirrors;
use super::mirrors_by_url::mirrors_by_url;
use super::overlap::overlap;
use super::paragraphs::paragraphs;
use super::plan::StudyPlan;
use super::samplers::samplers;
use crate::config::Study;
use crate::operators::InProcess;
use crate::operators::exchange::barrier;
use crate::state::replace;
use crate::summary::StudySummary;
use crate::watch::{Stage, Watch};

/// Runs a study on one worker. Every worker of every process calls it with the same plan, after [`Results::begin`](crate::state::Results::begin). Worker 0 commits the
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
        Study::MirrorsByUrl(job) => mirrors_by_url(worker, plan, job, watch)?.map(StudySummary::MirrorsByUrl),
        Study::Paragraphs(job) => paragraphs(worker, plan, job, in_process, watch)?.map(StudySummary::Paragraphs),
        Study::Samplers(job) => samplers(worker, plan, job, watch)?.map(StudySummary::Samplers),
        Study::Collections(job) => collections(worker, plan, job, in_process, watch)?.map(StudySummary::Collections),
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
