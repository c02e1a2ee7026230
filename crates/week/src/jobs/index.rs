//! Makes the inverted index of the last week of a store, if a run has made none: with it
//! `nigh find` and the next week look up supershingles instead of scanning all of them.

use anyhow::Result;
use nigh_exchange::Context;

use crate::operators::delta::{NextRun, post_all};
use crate::operators::scan::VectorFiles;
use crate::state::{CommittedWeek, Earlier, PostingRuns, Segment, Store, run_folder};
use crate::structures::Ownership;
use crate::tables::{FeatureRow, Table as _};
use crate::watch::Stage;

/// What is made, and how.
#[derive(Clone, Debug)]
pub struct IndexPlan {
    /// The store, which the caller has locked.
    pub store: Store,
    /// Its last week.
    pub week: CommittedWeek,
    /// All weeks: they have the URLs of its documents.
    pub weeks: Earlier,
    /// Bytes that each worker may take for postings in flight.
    pub memory: u64,
}

/// Writes the postings of the week, on every worker. Returns their list; `Store::keep_postings`
/// makes them those of the store.
///
/// # Errors
/// If a table cannot be read, or the postings cannot be written.
pub fn index(cx: &mut Context, plan: &IndexPlan) -> Result<PostingRuns> {
    let IndexPlan { store, week, weeks, memory } = plan;
    cx.enter(Stage::Postings);
    let whole = store.whole(week)?;
    let rows = weeks.urls(whole.method.shards);
    let owned = Ownership::new(cx.index(), cx.peers(), &rows);
    let tables = whole.tables(store.root());
    let of_segment = |segment: &Segment| tables.of_segment(FeatureRow::NAME, segment);
    let files = VectorFiles::of_week(&whole.journal, &owned, whole.method.supershingles, of_segment)?;
    let unfinished = store.unfinished(week.week);
    let next = NextRun { made: unfinished.postings(), name: run_folder(week.week, &whole.journal.key.hash) };
    post_all(cx, &files, &rows, &next, *memory, &unfinished.spill())
}
