//! A run of any study.

use anyhow::{Context as _, Result};
use nigh_exchange::Context;
use serde::{Deserialize, Serialize};

use super::any_study::{AnyStudy, StudySummary};
use super::plan::StudyPlan;
use crate::state::replace;
use crate::watch::Stage;

/// What every process of a run gets.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StudyTask {
    /// The study: the job, with all flags applied.
    pub study: AnyStudy,
    /// The plan.
    pub plan: StudyPlan,
}

/// Runs a study on one worker. Every worker of every process calls it with the same task, after
/// [`Results::begin`](crate::state::Results::begin). Worker 0 commits the tables and returns the
/// summary; the others return `None`.
///
/// # Errors
/// If a file cannot be read or written, or a worker failed. The tables of the run before stay as
/// they are.
pub fn run(cx: &mut Context, task: &StudyTask) -> Result<Option<StudySummary>> {
    cx.enter(Stage::Weeks);
    let summary = task.study.run(cx, &task.plan)?;
    cx.enter(Stage::Packing);
    // All workers have written their tables.
    let files = task.plan.pack(cx)?;
    let Some(summary) = summary else { return Ok(None) };
    let results = task.plan.results();
    if !files.is_empty() {
        results.write_list(&files)?;
    }
    replace(&results.file("job.toml"), task.study.job_text()?.as_bytes())?;
    let text = serde_json::to_vec_pretty(&summary).context("a summary is plain data")?;
    replace(&results.file("summary.json"), &text)?;
    results.commit()?;
    Ok(Some(summary))
}
