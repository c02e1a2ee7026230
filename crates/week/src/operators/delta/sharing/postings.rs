//! The inverted index of supershingles: finds the documents that share supershingles with changed
//! ones, without a pass over all vectors; and how a week adds its postings to the index.
//!
//! ```text
//! lookup      hashes of changed supershingles, to the owners of their partitions: found in every run
//! documents   to their owners: those that have enough of these supershingles
//! add         supershingles that changed documents did not have before: a new run, merged with small runs before it
//! ```
//!
//! The index holds the postings of last week's vectors, and of all vectors that documents had since
//! its first run. So no unchanged document is missed. A document found here may no longer have the
//! supershingle; its vector decides.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use anyhow::{Result, bail};
use nigh_exchange::{
    BlockOf, Context, Dealer, KeyRanges, Partition, RangeDealer, SpillBuffer, all_to_all, blocks, by_key,
};

use super::vector_changes::VectorChanges;
use crate::operators::scan::VectorFiles;
use crate::records::DocId;
use crate::state::{Coding, PostingFile, PostingRuns, write_postings};
use crate::structures::Ownership;

/// The postings of last week's vectors, as one worker sees them.
pub struct PostingIndex {
    runs: PostingRuns,
    /// The files of own partitions, by partition: one for each run, oldest first; `None` if the run
    /// has no posting there.
    files: BTreeMap<u64, Vec<Option<PostingFile>>>,
}

/// Where a new run of postings is written.
#[derive(Clone, Debug)]
pub struct NextRun {
    /// Its folder until the week is committed.
    pub made: PathBuf,
    /// The name of its folder among the runs.
    pub name: String,
}

impl PostingIndex {
    /// Opens the postings in `folder`. Returns `None` at all workers if one of them has no list of
    /// runs or another list, or finds a file that is not as listed.
    ///
    /// # Errors
    /// If a worker of this process failed.
    pub fn open(cx: &mut Context, folder: &Path, runs: Option<PostingRuns>) -> Result<Option<PostingIndex>> {
        let digest = runs.as_ref().map(PostingRuns::digest);
        let open = |runs: PostingRuns| -> Result<PostingIndex> {
            let own = (cx.index()..runs.coding.partitions()).step_by(cx.peers());
            let files = own.map(|partition| Ok((partition as u64, runs.files(folder, partition)?)));
            Ok(PostingIndex { files: files.collect::<Result<_>>()?, runs })
        };
        let index = runs.and_then(|runs| open(runs).ok());
        let of_workers = cx.sorted(vec![(index.is_some(), digest)])?;
        let all_agree = of_workers.iter().all(|(is_open, digest)| *is_open && *digest == of_workers[0].1);
        Ok(index.filter(|_| all_agree))
    }

    /// Returns own documents, ascending, that have or once had at least `least` of the
    /// supershingles whose `hashes` all workers look up.
    ///
    /// # Errors
    /// Names the file that cannot be read, or is damaged.
    pub fn docs_with(
        &self,
        cx: &mut Context,
        hashes: impl Iterator<Item = u64>,
        least: usize,
        owned: &Ownership,
    ) -> Result<Vec<DocId>> {
        let watch = cx.watch();
        let (coding, peers) = (self.runs.coding, cx.peers());
        let mut dealer = Dealer::new(cx.index(), coding.partitions(), watch);
        hashes.for_each(|hash| dealer.deal(coding.partition(hash), coding.first(hash)));
        let lookups = by_partition(all_to_all(cx, dealer)?);
        let mut postings: Dealer<DocId> = cx.dealer();
        let mut unknown = None;
        for (partition, mut firsts) in lookups {
            firsts.sort_unstable();
            firsts.dedup();
            for file in self.files.get(&partition).into_iter().flatten().flatten() {
                file.of(coding, &firsts, |posting| {
                    let doc = coding.doc(posting);
                    if owned.knows(doc) {
                        postings.deal(doc.owner(peers) as u64, doc);
                    } else {
                        unknown = Some(doc);
                    }
                })?;
            }
        }
        if let Some(doc) = unknown {
            bail!("the postings have document {doc}, unknown to its shard: remove the store's _nigh/postings");
        }
        let mut docs = blocks(all_to_all(cx, postings)?);
        docs.sort_unstable();
        let frequent = docs.chunk_by(|a, b| a == b).filter(|of_doc| of_doc.len() >= least);
        Ok(frequent.map(|of_doc| of_doc[0]).collect())
    }

    /// Writes the postings that changed documents did not have before as a new run, merged with
    /// small runs before it. Returns the list of all runs.
    ///
    /// # Errors
    /// Names the file that cannot be written.
    pub(crate) fn add(&self, cx: &mut Context, changes: &VectorChanges, next: &NextRun) -> Result<PostingRuns> {
        let watch = cx.watch();
        let coding = self.runs.coding;
        let mut dealer = Dealer::new(cx.index(), coding.partitions(), watch);
        let mut dealt = 0;
        for (index, doc) in changes.docs.iter().enumerate() {
            let (old, new) = (changes.before(index).unwrap_or_default(), changes.after(index).unwrap_or_default());
            for (column, word) in new.iter().enumerate().filter(|(column, word)| old.get(*column) != Some(word)) {
                let hash = Coding::hash(column, *word);
                dealer.deal(coding.partition(hash), coding.posting(hash, *doc));
                dealt += 1;
            }
        }
        let all_dealt = cx.sum(dealt)?;
        let merged = self.runs.to_merge(all_dealt);
        let mut added = by_partition(all_to_all(cx, dealer)?);
        let mut counts = Vec::new();
        for (partition, files) in &self.files {
            let mut postings = added.remove(partition).unwrap_or_default();
            for file in files[files.len() - merged..].iter().flatten() {
                postings.extend(file.all()?);
            }
            counts.push(write(&next.made, *partition, &mut postings)?);
        }
        Ok(self.runs.and(next.name.clone(), gather_counts(cx, coding, counts)?, merged))
    }

    /// Whether another run may be added, for shards with these numbers of rows; if not, all
    /// postings must be made again.
    pub fn takes_more(&self, rows: &[u64]) -> bool {
        !self.runs.has_grown() && self.runs.coding.fits(rows)
    }
}

/// Writes the postings of all vectors as a first run.
///
/// `files` are the own vectors, and `rows` the rows of every shard. Records in flight take `memory`
/// bytes; what exceeds them spills to the folder `scratch`.
///
/// # Errors
/// Names the file that cannot be read or written.
pub fn post_all(
    cx: &mut Context,
    files: &VectorFiles,
    rows: &[u64],
    next: &NextRun,
    memory: u64,
    scratch: &Path,
) -> Result<PostingRuns> {
    let (coding, width) = (Coding::new(rows), files.width);

    let all = cx.sum(files.len() * width as u64)?;
    let cut = KeyRanges::into_partitions(coding.partitions() as u64, all, size_of::<u64>(), 1, cx.peers(), memory);
    let deal_chunks = {
        let files = files.clone();
        move || {
            let mut chunks = files.chunks_with_docs();
            move |deal: &mut RangeDealer<'_, u64>| {
                let Some(chunk) = chunks.next_chunk()? else { return Ok(false) };
                for (doc, vector) in chunk.docs().iter().zip(chunk.words().chunks_exact(width)) {
                    for (column, word) in vector.iter().enumerate() {
                        let hash = Coding::hash(column, *word);
                        deal.deal(0, hash, coding.posting(hash, *doc));
                    }
                }
                Ok(true)
            }
        }
    };
    let counts = Rc::new(RefCell::new(Vec::new()));
    let write_partition = {
        let (counts, folder) = (counts.clone(), next.made.clone());
        let mut postings = Vec::new();
        move |partition: &Partition<'_, u64>, _: &mut Dealer<u64>| {
            postings.clear();
            partition.blocks(|block| postings.extend_from_slice(block.records()))?;
            counts.borrow_mut().push(write(&folder, partition.part, &mut postings)?);
            Ok(())
        }
    };
    let spill = SpillBuffer::new(scratch, memory);
    by_key(cx, "Postings", cut, spill, deal_chunks, write_partition, |_| {})?;
    let counts = counts.take();
    Ok(PostingRuns::first(coding, next.name.clone(), gather_counts(cx, coding, counts)?))
}

/// Sorts and writes the postings of a partition. Returns the partition and how many postings it
/// has.
fn write(run: &Path, partition: u64, postings: &mut [u64]) -> Result<(u64, u64)> {
    // Equal postings all stay: two supershingles of a document may have the same bits.
    postings.sort_unstable();
    write_postings(run, partition as usize, postings)?;
    Ok((partition, postings.len() as u64))
}

/// The number of postings of each partition, from the (partition, count) pairs of all workers.
fn gather_counts(cx: &mut Context, coding: Coding, counts: Vec<(u64, u64)>) -> Result<Vec<u64>> {
    let mut postings = vec![0; coding.partitions()];
    cx.sorted(counts)?.into_iter().for_each(|(partition, count)| postings[partition as usize] = count);
    Ok(postings)
}

/// The records of each partition.
fn by_partition(blocks: Vec<BlockOf<u64>>) -> BTreeMap<u64, Vec<u64>> {
    let mut partitions: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for block in blocks {
        partitions.entry(block.part).or_default().extend_from_slice(block.records());
    }
    partitions
}
