//! One step of a delta: the parameters, and the slice of the keys that the step handles.

use std::cmp::Ordering;
use std::sync::Arc;

use anyhow::Result;

use crate::features::VectorKeys;
use crate::operators::delta::sharing::{ChangedKeys, Changes, NextRun, PostingIndex};
use crate::operators::delta::splits::RemainingMembers;
use crate::operators::exchange::Shared;
use crate::operators::scan::VectorFiles;
use crate::records::DocId;
use crate::structures::{Ownership, UnionFind};
use crate::watch::Watch;

/// What the step works on, as one worker sees it.
pub struct Delta<'a> {
    /// Last week's own vectors.
    pub before: &'a VectorFiles,
    /// This week's own vectors.
    pub after: &'a VectorFiles,
    /// The documents of both weeks.
    pub owned: &'a Ownership,
    /// How documents meet.
    pub keys: &'a VectorKeys,
    /// Supershingles in which documents of a cluster agree.
    pub agreements: usize,
    /// Slices in which the change is taken.
    pub slices: u64,
    /// Postings of last week's vectors, where there are any; none where the change is taken in several slices.
    pub index: Option<&'a PostingIndex>,
    /// Where what this week adds to them is written, if it is.
    pub next_run: Option<&'a NextRun>,
    /// Worker threads of each process.
    pub threads: usize,
    /// What the workers of this process share.
    pub filter: &'a Shared<ChangedKeys>,
    /// As `filter`.
    pub forest: &'a Shared<UnionFind>,
    /// Counters, and failures.
    pub watch: &'a Arc<Watch>,
}

/// A part of the rows of every shard.
#[derive(Clone, Copy)]
pub(crate) struct Slice<'a> {
    pub(crate) at: u64,
    pub(crate) of: u64,
    pub(crate) owned: &'a Ownership,
}

impl Slice<'_> {
    /// Whether a document is in an earlier slice, in this one, or in a later one.
    pub(crate) fn of(&self, doc: DocId) -> Ordering {
        if self.of == 1 {
            return Ordering::Equal;
        }
        let slice = u128::from(doc.row()) * u128::from(self.of) / u128::from(self.owned.rows(doc.shard()).max(1));
        (slice as u64).cmp(&self.at)
    }
}

/// One slice of the change.
pub(crate) struct SliceStep<'a> {
    pub(crate) stage: &'a Delta<'a>,
    pub(crate) slice: Slice<'a>,
    pub(crate) changes: Changes,
}

impl SliceStep<'_> {
    /// Some own documents that did not change in this step, ascending, with the vectors that they have then.
    pub(crate) fn staying(&self, docs: &[DocId]) -> Result<RemainingMembers> {
        let (stage, slice) = (self.stage, self.slice);
        let (now, later): (Vec<DocId>, Vec<DocId>) = docs.iter().partition(|doc| slice.of(**doc).is_le());
        let find = |files: &VectorFiles, docs: &[DocId]| -> Result<RemainingMembers> {
            let (docs, words) = files.find(docs)?;
            Ok(RemainingMembers { docs, words })
        };
        Ok(RemainingMembers::merged([find(stage.after, &now)?, find(stage.before, &later)?], stage.after.width))
    }
}
