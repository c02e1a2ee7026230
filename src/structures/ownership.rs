//! Which worker owns which document: documents belong to shards, and shards to workers in turn.

use std::ops::Range;
use std::path::Path;

use anyhow::{Result, ensure};

use crate::records::DocId;

/// The documents that a worker owns, numbered from 0: all rows of every shard whose number is the
/// worker's modulo the number of workers.
#[derive(Clone, Debug)]
pub struct Ownership {
    worker: usize,
    peers: usize,
    shards: Vec<OwnedShard>,
    len: usize,
}

#[derive(Clone, Copy, Debug)]
struct OwnedShard {
    /// Its owner: to look it up takes less time than to divide by the number of workers.
    owner: u32,
    /// Where its rows begin among those of its owner.
    start: usize,
    rows: u64,
}

impl Ownership {
    /// What `worker` of `peers` owns, given the rows of every shard.
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

    /// The own shards.
    pub fn shards(&self) -> impl Iterator<Item = u32> + use<> {
        (self.worker as u32..self.shards.len() as u32).step_by(self.peers)
    }

    /// The rows of a shard, an own one or not.
    pub fn rows(&self, shard: u32) -> u64 {
        self.shards[shard as usize].rows
    }

    /// The numbers of a shard's documents among those of its owner.
    pub fn of_shard(&self, shard: u32) -> Range<usize> {
        let OwnedShard { start, rows, .. } = self.shards[shard as usize];
        start..start + rows as usize
    }

    /// How many documents.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The owner of a document of any worker.
    #[inline]
    pub fn owner(&self, doc: DocId) -> usize {
        self.shards[doc.shard() as usize].owner as usize
    }

    /// Whether a document of any worker is an own one.
    #[inline]
    pub fn has(&self, doc: DocId) -> bool {
        self.owner(doc) == self.worker
    }

    /// The number of a document among those of its owner.
    #[inline]
    pub fn index(&self, doc: DocId) -> usize {
        self.shards[doc.shard() as usize].start + doc.row() as usize
    }

    /// Whether a document is one of all workers' documents.
    #[inline]
    pub fn knows(&self, doc: DocId) -> bool {
        self.shards.get(doc.shard() as usize).is_some_and(|shard| doc.row() < shard.rows)
    }

    /// Refuses a document that is not of the shard whose file it is in.
    ///
    /// # Errors
    /// Names the document and the file at `path`.
    pub fn check(&self, doc: DocId, shard: u32, path: &Path) -> Result<()> {
        ensure!(
            doc.shard() == shard && self.knows(doc),
            "{} holds the document {doc}, which is not of its shard",
            path.display()
        );
        Ok(())
    }

    /// All own documents, in order of their numbers.
    pub fn docs(&self) -> impl Iterator<Item = DocId> {
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
