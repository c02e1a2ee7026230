//! What a job says unlike the one before: of a week that is there, and of the batch before.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};

use crate::config::{Absent, Canonical, Cluster};
use crate::log::Log;
use crate::plan::{Plan, job_of_week};
use crate::state::{CommittedWeek, Store};

/// What the user is told if pages stay, and the canonical ones of all batches are chosen in another
/// way than they were.
pub(super) fn other_choice(store: &Store, plan: &Plan) -> Result<Option<String>> {
    let Some(before) = plan.earlier.last().filter(|_| plan.absent == Absent::Keep) else { return Ok(None) };
    let was = job_of_week(store, before)?.canonical;
    // Copies within the batches before are not looked at again if those within this one stay.
    let of_batch = Canonical { only_older: was.only_older.or(Some(plan.week)), ..was.clone() };
    let is_same = plan.canonical == was || plan.canonical == of_batch;
    Ok((!is_same).then(|| {
        format!(
            "week {} chose the canonical document of a cluster by {was}, and this run chooses those of all batches by {}: set \
             `canonical` in the job, if that is not meant",
            before.week, plan.canonical
        )
    }))
}

/// Fields of a job that say when a run ends, and in how many steps: not what its tables have.
const OF_THE_RUN: [&str; 5] = ["allow-empty", "max-reject-share", "max-unknown-share", "mode", "wave-bytes"];

/// Fields of a job, with values.
pub(super) type JobFields = Vec<(String, String)>;

/// The fields of the plan's job that are others than those of the committed week: those that its
/// tables depend on, and those of the run.
pub(super) fn changed_fields(store: &Store, committed: &CommittedWeek, plan: &Plan) -> Result<(JobFields, JobFields)> {
    let before = job_of_week(store, committed)?;
    let now = Cluster::of_text(&plan.job).context("the job of the plan cannot be read again")?;
    Ok(before.fields_unlike(&now).into_iter().partition(|(name, _)| !OF_THE_RUN.contains(&name.as_str())))
}

/// The fields as a message has them.
pub(super) fn listed(fields: &JobFields) -> String {
    fields.iter().map(|(name, value)| format!("{name} = {value}")).collect::<Vec<_>>().join(", ")
}

/// Checks that a committed week was made by the job of the plan.
///
/// # Errors
/// If a field that decides what the tables have has another value now; the message names it.
pub(super) fn check_job(store: &Store, plan: &Plan, root: &Path, log: &Log) -> Result<()> {
    let (of_tables, of_run) = changed_fields(store, &store.committed(plan.week)?, plan)?;
    ensure!(
        of_tables.is_empty(),
        "week {} is in {} already, from the same input, but by another job. The job has now {}: --replace computes the week again",
        plan.week,
        root.display(),
        listed(&of_tables)
    );
    if !of_run.is_empty() {
        log.notice(&format!("the week is not made again for {}, which its tables do not depend on", listed(&of_run)));
    }
    Ok(())
}
