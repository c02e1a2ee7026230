//! Studies: jobs that read committed weeks of a store, and write tables about them into one folder, which they replace as a whole.

use anyhow::{Context as _, Result};
use nigh_exchange::Context;

use super::collections::collections;
use super::evolution::evolution;
use super::mirrors::mirrors;
use super::mirrors_by_url::mirrors_by_url;
use super::overlap::overlap;
use super::paragraphs::paragraphs;
use super::plan::StudyPlan;
use super::samplers::samplers;
use crate::config::Study;
use crate::state::replace;
use crate::summary::StudySummary;
use crate::watch::Stage;

/// Runs a study on one worker. Every worker of every process calls it with the same plan, after [`Results::begin`](crate::state::Results::begin). Worker 0 commits the
/// tables and returns the summary; the others return `None`.
///
/// # Errors
/// If a file cannot be read or written, or a worker failed. The tables of the run before stay as they are.
pub fn study(cx: &mut Context, plan: &StudyPlan) -> Result<Option<StudySummary>> {
    cx.enter(Stage::Weeks);
    let summary = match &plan.study {
        Study::Evolution(_) => evolution(cx, plan)?.map(StudySummary::Evolution),
        Study::Mirrors(job) => mirrors(cx, plan, job)?.map(StudySummary::Mirrors),
        Study::Overlap(job) => overlap(cx, plan, job)?.map(StudySummary::Overlap),
        Study::MirrorsByUrl(job) => mirrors_by_url(cx, plan, job)?.map(StudySummary::MirrorsByUrl),
        Study::Paragraphs(job) => paragraphs(cx, plan, job)?.map(StudySummary::Paragraphs),
        Study::Samplers(job) => samplers(cx, plan, job)?.map(StudySummary::Samplers),
        Study::Collections(job) => collections(cx, plan, job)?.map(StudySummary::Collections),
    };
    // All workers have written their tables.
    cx.barrier()?;
    let Some(summary) = summary else { return Ok(None) };
    let results = plan.results();
    let job = toml::to_string(&plan.study).context("cannot write the job as TOML")?;
    replace(&results.file("job.toml"), job.as_bytes())?;
    let text = serde_json::to_vec_pretty(&summary).context("a summary is plain data")?;
    replace(&results.file("summary.json"), &text)?;
    results.commit()?;
    Ok(Some(summary))
}
