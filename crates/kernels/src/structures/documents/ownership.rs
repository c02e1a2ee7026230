//! Ownership: which worker owns which document.
//!
//! A document belongs to a shard, and shard `s` to worker `s % workers`. A worker numbers its
//! documents from 0, shard by shard.

use std::ops::Range;
use std::path::Path;

use anyhow::{Result, ensure};

use crate::records::DocId;

/// The documents that a worker owns: all rows of its shards, numbered from 0.
///
/// ```
/// use nigh_kernels::records::DocId;
/// use nigh_kernels::structures::Ownership;
///
/// // Three shards of 10, 20 and 30 documents; worker 0 of 2 owns shards 0 and 2.
/// let owned = Ownership::new(0, 2, &[10, 20, 30]);
/// assert_eq!(owned.len(), 40);
/// assert_eq!(owned.index(DocId::new(2, 5)), 15);
/// assert_eq!(owned.owner(DocId::new(1, 0)), 1);
/// ```
#[derive(Clone, Debug)]
pub struct Ownership {
    worker: usize,
    peers: usize,
    shards: Vec<OwnedShard>,
    len: usize,
}

/// A shard of any worker.
#[derive(Clone, Copy, Debug)]
struct OwnedShard {
    /// The worker that owns it: a lookup is faster than a division by the number of workers.
    owner: u32,
    /// The number of its first document, at its owner.
    start: usize,
    rows: u64,
}

impl Ownership {
    /// The documents that `worker` owns, of `peers` workers; `rows` are the rows of every shard.
    pub fn new(worker: usize, peers: usize, rows: &[u64]) -> Ownership {
        let mut lengths = vec![0; peers];
        let shards = rows.iter().enumerate().map(|(shard, rows)| {
            let owner = shard % peers;
            let start = lengths[owner];
            lengths[owner] += *rows as usize;
            OwnedShard { owner: owner as u32, start, rows: *rows }
        });
        let shards = shards.collect();
        Ownership { worker, peers, shards, len: lengths[worker] }
    }

    /// The index of this worker.
    pub fn worker(&self) -> usize {
        self.worker
    }

    /// The shards of this worker, ascending.
    pub fn shards(&self) -> impl Iterator<Item = u32> + Clone + use<> {
        (self.worker as u32..self.shards.len() as u32).step_by(self.peers)
    }

    /// The rows of a shard of any worker.
    pub fn rows(&self, shard: u32) -> u64 {
        self.shards[shard as usize].rows
    }

    /// The numbers of a shard's documents, at the owner of the shard.
    pub fn of_shard(&self, shard: u32) -> Range<usize> {
        let OwnedShard { start, rows, .. } = self.shards[shard as usize];
        start..start + rows as usize
    }

    /// The number of documents that this worker owns.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether this worker owns no documents.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The worker that owns a document.
    #[inline]
    pub fn owner(&self, doc: DocId) -> usize {
        self.shards[doc.shard() as usize].owner as usize
    }

    /// Whether this worker owns a document.
    #[inline]
    pub fn has(&self, doc: DocId) -> bool {
        self.owner(doc) == self.worker
    }

    /// The number of a document, at its owner.
    #[inline]
    pub fn index(&self, doc: DocId) -> usize {
        self.shards[doc.shard() as usize].start + doc.row() as usize
    }

    /// Whether any worker has the document: its shard exists and has that row.
    #[inline]
    pub fn knows(&self, doc: DocId) -> bool {
        self.shards.get(doc.shard() as usize).is_some_and(|shard| doc.row() < shard.rows)
    }

    /// Checks a document that was read from the file at `path` of a shard.
    ///
    /// # Errors
    /// If the document does not belong to that shard: names the document and the file.
    pub fn check(&self, doc: DocId, shard: u32, path: &Path) -> Result<()> {
        ensure!(
            doc.shard() == shard && self.knows(doc),
            "{} holds the document {doc}, which does not belong to its shard",
            path.display()
        );
        Ok(())
    }

    /// The documents of this worker, in the order of their numbers.
    pub fn docs(&self) -> impl Iterator<Item = DocId> + Clone {
        self.shards().flat_map(|shard| (0..self.rows(shard)).map(move |row| DocId::new(shard, row)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::DocId;

    #[test]
    fn every_document_has_one_owner_and_one_number() {
        let rows = [3, 0, 5, 1, 2, 0, 0, 4];
        for peers in [1, 2, 3, 4, 11] {
            let mut all = Vec::new();
            for worker in 0..peers {
                let owned = Ownership::new(worker, peers, &rows);
                let docs: Vec<DocId> = owned.docs().collect();
                assert_eq!(docs.len(), owned.len());
                for (number, doc) in docs.iter().enumerate() {
                    assert!(owned.has(*doc));
                    assert_eq!(owned.index(*doc), number);
                    assert_eq!(owned.of_shard(doc.shard()).nth(doc.row() as usize), Some(number));
                }
                let of_any =
                    rows.iter().zip(0..).flat_map(|(rows, shard)| (0..*rows).map(move |row| DocId::new(shard, row)));
                for doc in of_any {
                    assert_eq!((owned.owner(doc), owned.has(doc)), (doc.owner(peers), docs.contains(&doc)));
                }
                all.extend(docs);
            }
            all.sort_unstable();
            all.dedup();
            assert_eq!(all.len(), 15);
        }
    }
}
