//! The former run of the job that a run for a later week follows, instead of comparing all pages of
//! its week.

use anyhow::{Result, bail};
use nigh_exchange::Context;

use super::steps::{CentresOfWeek, Copies, FormerCounts, TextChanges, copies, text_changes, texts};
use super::{Overlap, OverlapMethod, Unit};
use crate::config::{Chunking, Mode};
use crate::records::{DocId, Week};
use crate::state::Store;
use crate::structures::Ownership;
use crate::studies::{CommittedTables, StudyPlan};
use crate::watch::Stage;

/// A former run is followed up to this share of new and gone texts, of all texts of the week. It
/// was faster even at 0.6 (SPEED.md, section 6).
const MOST_CHANGED: f64 = 0.5;

/// A former run that this one follows.
pub(super) struct FollowedRun {
    pub run: CommittedTables<Overlap>,
    pub changes: TextChanges,
}

/// The committed run that a run of `job` can follow: its week, and the number of its commit.
///
/// # Errors
/// If the job says `mode = "delta"`, and there is none: says why. Or if the store cannot be read.
pub fn former_overlap(store: &Store, job: &Overlap) -> Result<Option<(Week, u64)>> {
    let found = if job.mode == Mode::Full { Err("the job says so".into()) } else { find(store, job)? };
    match found {
        Ok(former) => Ok(Some(former)),
        Err(why) if job.mode == Mode::Delta => bail!("mode = \"delta\", and no former run can be followed: {why}"),
        Err(_) => Ok(None),
    }
}

/// The former run, or why there is none to follow.
fn find(store: &Store, job: &Overlap) -> Result<Result<(Week, u64), String>> {
    if job.unit == Unit::Host {
        return Ok(Err("only pages are followed, and `unit` is \"host\"".into()));
    }
    if job.method != OverlapMethod::Prefix {
        return Ok(Err("`method` is not \"prefix\"".into()));
    }
    let Some(committed) = CommittedTables::<Overlap>::find(store)? else {
        return Ok(Err(format!("{} has no tables of this job", store.root().display())));
    };
    let summary = &committed.summary;
    if !committed.job()?.is_some_and(|former| former.finds_as(job)) {
        return Ok(Err("the job of the run before differs from this one".into()));
    }
    let weeks = store.manifest()?.map(|manifest| manifest.weeks).unwrap_or_default();
    let then = weeks.iter().position(|week| week.week == summary.last && week.commit == summary.week_commit);
    let now = match job.week {
        None => weeks.len().checked_sub(1),
        Some(named) => weeks.iter().position(|week| week.week == named),
    };
    match (then, now) {
        (None, _) => Ok(Err(format!("week {} was made again or removed since", summary.last))),
        (Some(then), Some(now)) if then >= now => Ok(Err(format!("the run before was for week {}", summary.last))),
        _ => Ok(Ok((summary.last, committed.results.commit_number()))),
    }
}

impl FollowedRun {
    /// Reads the former run of the plan, and what changed since; `None` if the plan has none, or so
    /// much changed that a whole run is faster.
    pub(super) fn read(
        cx: &mut Context,
        plan: &StudyPlan,
        mode: Mode,
        owned: &Ownership,
        (texts_now, copies_now): (&[(u128, DocId)], &Copies),
    ) -> Result<Option<FollowedRun>> {
        let Some(commit) = plan.former else { return Ok(None) };
        cx.enter(Stage::Weeks);
        let store = Store::at(&plan.history.store);
        let run = CommittedTables::numbered(&store, commit)?;
        let texts_then = texts(&plan.history, 0, owned)?;
        let copies_then = copies(cx, owned, texts_then.clone())?;
        let then = CentresOfWeek { texts: &texts_then, copies: &copies_then };
        let now = CentresOfWeek { texts: texts_now, copies: copies_now };
        let changes = text_changes(cx, owned, &then, &now)?;
        let is_followed = mode == Mode::Delta || changes.share() <= MOST_CHANGED;
        Ok(is_followed.then_some(FollowedRun { run, changes }))
    }

    /// What the former run says of a chunking.
    pub(super) fn counts(&self, chunking: Chunking, least: u32) -> Option<FormerCounts> {
        let of = self.run.summary.chunkings.iter().find(|of| of.chunking == chunking && of.threshold == least)?;
        Some(FormerCounts { chunking, least, pairs: of.pairs, families: [of.families, of.family_pairs] })
    }
}
