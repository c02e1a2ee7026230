//! Postings of supershingles: who shares some with documents that changed, without a pass over all vectors; and what a
//! week adds to them.
//!
//! ```text
//! asked     supershingles of changes, to the owners of their partitions, where they are looked up in every run
//! holders   documents, to their owners: those that hold enough of what was asked for
//! added     supershingles that documents that changed did not hold before: a run, merged with small ones before it
//! ```
//!
//! Postings are those of last week's vectors, and of any that documents had since the first run. So of documents that did
//! not change none is missed; who is found may not hold what it is found for any more, and is told by its vector.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use anyhow::{Result, ensure};
use timely::dataflow::operators::Probe;
use timely::dataflow::operators::probe::Handle;
use timely::worker::Worker;

use super::changes::Changes;
use crate::operators::exchange::{
    Block, Dealer, KeyRanges, Partition, RangeDealer, SpillBuffer, all_gather, all_to_all, blocks, each_partition,
    ranges, run_to_end,
};
use crate::operators::scan::VectorFiles;
use crate::records::DocId;
use crate::state::{Coding, PostingFile, PostingRuns, write_postings};
use crate::structures::Ownership;
use crate::watch::Watch;

/// The postings of last week's vectors, as one worker has them.
pub struct PostingIndex {
    runs: PostingRuns,
    /// Those of own partitions, by partition: all runs of it, oldest first.
    files: BTreeMap<u64, Vec<Option<PostingFile>>>,
}

/// Where a run of postings is written.
#[derive(Clone, Debug)]
pub struct NextRun {
    /// Its folder while it is made.
    pub made: PathBuf,
    /// The name of its folder among the runs.
    pub name: String,
}

impl PostingIndex {
    /// Opens postings that lie in `folder`; `None`, at all workers, where one of them sees none or others, or a file that
    /// is not as it is listed.
    ///
    /// # Errors
    /// Where a worker of this process failed.
    pub fn open(
        worker: &mut Worker,
        folder: &Path,
        runs: Option<PostingRuns>,
        watch: &Watch,
    ) -> Result<Option<PostingIndex>> {
        let listed = runs.as_ref().map(PostingRuns::digest);
        let own = |runs: PostingRuns| -> Result<PostingIndex> {
            let own = (worker.index()..runs.coding.partitions()).step_by(worker.peers());
            let files = own.map(|partition| Ok((partition as u64, runs.files(folder, partition)?)));
            Ok(PostingIndex { files: files.collect::<Result<_>>()?, runs })
        };
        let index = runs.and_then(|runs| own(runs).ok());
        let seen = all_gather(worker, vec![(index.is_some(), listed)], watch)?;
        let whole = seen.iter().all(|(is_open, listed)| *is_open && *listed == seen[0].1);
        Ok(index.filter(|_| whole))
    }

    /// Own documents that hold at least so many of the supershingles whose hashes are asked for at all workers, or held
    /// them once; ascending.
    ///
    /// # Errors
    /// Names the file that cannot be read, or is damaged.
    pub fn holding(
        &self,
        worker: &mut Worker,
        asked: impl Iterator<Item = u64>,
        least: usize,
        owned: &Ownership,
        watch: &Arc<Watch>,
    ) -> Result<Vec<DocId>> {
        let (coding, peers) = (self.runs.coding, worker.peers());
        let mut dealer = Dealer::new(worker.index(), coding.partitions(), watch);
        asked.for_each(|hash| dealer.deal(coding.partition(hash), coding.first(hash)));
        let asked = by_partition(all_to_all(worker, dealer, watch)?);
        let mut holders: Dealer<DocId> = Dealer::new(worker.index(), peers, watch);
        let mut unknown = None;
        for (partition, mut firsts) in asked {
            firsts.sort_unstable();
            firsts.dedup();
            for file in self.files.get(&partition).into_iter().flatten().flatten() {
                file.of(coding, &firsts, |posting| {
                    let doc = coding.doc(posting);
                    match owned.knows(doc) {
                        true => holders.deal(doc.owner(peers) as u64, doc),
                        false => unknown = Some(doc),
                    }
                })?;
            }
        }
        ensure!(unknown.is_none(), "the postings hold a document that its shard has not: remove the store's _postings");
        let mut docs = blocks(all_to_all(worker, holders, watch)?);
        docs.sort_unstable();
        let holding = docs.chunk_by(|a, b| a == b).filter(|postings| postings.len() >= least);
        Ok(holding.map(|postings| postings[0]).collect())
    }

    /// Writes the postings of changed documents that they had not before, as a run; gives all runs with it.
    ///
    /// # Errors
    /// Names the file that cannot be written.
    pub(crate) fn add(
        &self,
        worker: &mut Worker,
        changes: &Changes,
        next: &NextRun,
        watch: &Arc<Watch>,
    ) -> Result<PostingRuns> {
        let coding = self.runs.coding;
        let mut dealer = Dealer::new(worker.index(), coding.partitions(), watch);
        let mut dealt = 0;
        for (at, doc) in changes.docs.iter().enumerate() {
            let (old, new) = (changes.before(at).unwrap_or_default(), changes.after(at).unwrap_or_default());
            for (column, word) in new.iter().enumerate().filter(|(column, word)| old.get(*column) != Some(word)) {
                let hash = Coding::hash(column, *word);
                dealer.deal(coding.partition(hash), coding.posting(hash, *doc));
                dealt += 1;
            }
        }
        let dealt = all_gather(worker, vec![(worker.index(), dealt)], watch)?.iter().map(|(_, dealt)| dealt).sum();
        let merged = self.runs.to_merge(dealt);
        let mut added = by_partition(all_to_all(worker, dealer, watch)?);
        let mut counts = Vec::new();
        for (partition, files) in &self.files {
            let mut postings = added.remove(partition).unwrap_or_default();
            for file in files[files.len() - merged..].iter().flatten() {
                postings.extend(file.all()?);
            }
            counts.push(write(&next.made, *partition, &mut postings)?);
        }
        Ok(self.runs.and(next.name.clone(), of_all(worker, coding, counts, watch)?, merged))
    }

    /// Whether a run may be added to these for the documents of shards with so many rows; otherwise all are made anew.
    pub fn takes_more(&self, rows: &[u64]) -> bool {
        !self.runs.has_grown() && self.runs.coding.fits(rows)
    }
}

/// Writes the postings of all vectors, of which `files` are own ones, in the documents of shards with so many rows: a first
/// run. `memory` is that for the records in flight; what it does not hold goes to `scratch`.
///
/// # Errors
/// Names the file that cannot be read or written.
pub fn post_all(
    worker: &mut Worker,
    files: &VectorFiles,
    rows: &[u64],
    next: &NextRun,
    (memory, scratch): (u64, &Path),
    watch: &Arc<Watch>,
) -> Result<PostingRuns> {
    let (coding, width) = (Coding::new(rows), files.width);
    let own = vec![(worker.index(), files.len() * width as u64)];
    let all = all_gather(worker, own, watch)?.iter().map(|(_, postings)| postings).sum();
    let cut = KeyRanges::into_partitions(coding.partitions() as u64, all, size_of::<u64>(), 1, worker.peers(), memory);
    let (probe, counts) = (Handle::new(), Rc::new(RefCell::new(Vec::new())));
    let (grouped, written, made, files) = (probe.clone(), counts.clone(), next.made.clone(), files.clone());
    let open = move || {
        let mut chunks = files.chunks_with_docs();
        move |deal: &mut RangeDealer<'_, u64>| {
            let Some(chunk) = chunks.next()? else { return Ok(false) };
            for (doc, vector) in chunk.docs().iter().zip(chunk.words().chunks_exact(width)) {
                for (column, word) in vector.iter().enumerate() {
                    let hash = Coding::hash(column, *word);
                    deal.deal(0, hash, coding.posting(hash, *doc));
                }
            }
            Ok(true)
        }
    };
    let mut postings = Vec::new();
    let each = move |partition: &Partition<'_, u64>, _: &mut Dealer<u64>| {
        postings.clear();
        partition.blocks(|block| postings.extend_from_slice(block.records()))?;
        written.borrow_mut().push(write(&made, partition.part, &mut postings)?);
        Ok(())
    };
    let stash = SpillBuffer::new(scratch, memory);
    worker.dataflow::<u64, _, _>(|scope| {
        let dealt = ranges(scope, "Vectors", cut, watch, open, move |range| !grouped.less_than(&(range + 1)));
        each_partition(dealt, "Postings", stash, watch, each).probe_with(&probe);
    });
    run_to_end(worker, &probe, watch)?;
    let counts = counts.take();
    Ok(PostingRuns::first(coding, next.name.clone(), of_all(worker, coding, counts, watch)?))
}

/// Writes the postings of a partition; gives how many they are.
fn write(run: &Path, partition: u64, postings: &mut [u64]) -> Result<(u64, u64)> {
    // Not one of those that are the same: two supershingles of a document may have the same bits.
    postings.sort_unstable();
    write_postings(run, partition as usize, postings)?;
    Ok((partition, postings.len() as u64))
}

/// The postings of each partition, of those that each worker counted.
fn of_all(worker: &mut Worker, coding: Coding, counts: Vec<(u64, u64)>, watch: &Watch) -> Result<Vec<u64>> {
    let mut postings = vec![0; coding.partitions()];
    all_gather(worker, counts, watch)?.into_iter().for_each(|(partition, count)| postings[partition as usize] = count);
    Ok(postings)
}

/// The records of each partition.
fn by_partition(blocks: Vec<Block<u64>>) -> BTreeMap<u64, Vec<u64>> {
    let mut parts: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for block in blocks {
        parts.entry(block.part).or_default().extend_from_slice(block.records());
    }
    parts
}
