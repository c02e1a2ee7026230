//! The input of a delta, and one step of it: the changed documents of one slice of rows.

use std::cmp::Ordering;

use anyhow::Result;

use crate::features::VectorKeys;
use crate::operators::delta::sharing::{NextRun, PostingIndex, VectorChanges};
use crate::operators::delta::splits::RemainingMembers;
use crate::operators::scan::VectorFiles;
use crate::records::DocId;
use crate::structures::Ownership;

/// The input of a delta, as one worker sees it.
pub struct Delta<'a> {
    /// Last week's own vectors.
    pub before: &'a VectorFiles,
    /// This week's own vectors.
    pub after: &'a VectorFiles,
    /// The documents of both weeks.
    pub owned: &'a Ownership,
    /// The keys of a vector.
    pub keys: &'a VectorKeys,
    /// Supershingles in which two documents of a cluster agree, at least.
    pub agreements: usize,
    /// Slices of rows into which the change is cut, so that each fits in memory; 1 or more.
    pub slices: u64,
    /// The postings of last week's vectors, if there are any; `None` if there are several slices.
    pub index: Option<&'a PostingIndex>,
    /// Where the postings that this week adds are written; `None` if they are not.
    pub next_run: Option<&'a NextRun>,
    /// Worker threads of each process.
    pub threads: usize,
}

/// A slice of the rows of every shard: the one with number `index` of `count`.
#[derive(Clone, Copy)]
pub(crate) struct RowSlice<'a> {
    pub(crate) index: u64,
    pub(crate) count: u64,
    pub(crate) owned: &'a Ownership,
}

impl RowSlice<'_> {
    /// Whether a document is in an earlier slice (`Less`), in this one, or in a later one
    /// (`Greater`).
    pub(crate) fn order(&self, doc: DocId) -> Ordering {
        if self.count == 1 {
            return Ordering::Equal;
        }
        let slice = u128::from(doc.row()) * u128::from(self.count) / u128::from(self.owned.rows(doc.shard()).max(1));
        (slice as u64).cmp(&self.index)
    }
}

/// One step of a delta. Before it, documents of this slice and of later ones have last week's
/// vectors; after it, documents of this slice and of earlier ones have this week's.
pub(crate) struct SliceStep<'a> {
    pub(crate) delta: &'a Delta<'a>,
    pub(crate) slice: RowSlice<'a>,
    /// The changed documents of the slice.
    pub(crate) changes: VectorChanges,
}

impl SliceStep<'_> {
    /// Reads the vectors that some own unchanged documents, which ascend, have in this step.
    /// Documents without a vector are left out.
    pub(crate) fn unchanged_vectors(&self, docs: &[DocId]) -> Result<RemainingMembers> {
        let (of_this_week, of_last_week): (Vec<DocId>, Vec<DocId>) =
            docs.iter().partition(|doc| self.slice.order(**doc).is_le());
        let find = |files: &VectorFiles, docs: &[DocId]| -> Result<RemainingMembers> {
            let (docs, words) = files.find(docs)?;
            Ok(RemainingMembers { docs, words })
        };
        let (before, after) = (self.delta.before, self.delta.after);
        Ok(RemainingMembers::merged([find(after, &of_this_week)?, find(before, &of_last_week)?], after.width))
    }
}
