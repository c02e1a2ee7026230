//! What changed from one week's vectors to the next.
//!
//! The hashes of both weeks' vectors are in the order of documents: a merge-join reads them side by
//! side, 8 bytes for each document and week. Only the vectors that differ are then read, at their
//! rows.

use std::cmp::Ordering;

use anyhow::Result;

use crate::operators::scan::{ChunkScan, VectorChunk, VectorFiles, VectorRow};
use crate::records::DocId;

/// A document whose vectors differ, and the rows of its vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VectorDifference {
    /// The document.
    pub doc: DocId,
    /// The row of its vector in the earlier week.
    pub old: Option<VectorRow>,
    /// The row of its vector in the later week.
    pub new: Option<VectorRow>,
}

/// The documents whose vectors differ, ascending, with both vectors of each.
#[derive(Debug, Default)]
pub struct VectorChanges {
    /// The documents.
    pub docs: Vec<DocId>,
    /// The weeks in which each has a vector.
    presence: Vec<VectorPresence>,
    /// The vectors of the earlier week, concatenated; zeros if there is none.
    old: Vec<u64>,
    /// The same of the later week.
    new: Vec<u64>,
    width: usize,
}

/// The weeks in which a document has a vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum VectorPresence {
    Before,
    After,
    Both,
}

impl VectorChanges {
    /// How many documents.
    pub(crate) fn len(&self) -> usize {
        self.docs.len()
    }

    /// The vector that the document at this index had in the earlier week.
    pub fn before(&self, index: usize) -> Option<&[u64]> {
        (self.presence[index] != VectorPresence::After).then(|| &self.old[index * self.width..][..self.width])
    }

    /// The vector that the document at this index has in the later week.
    pub fn after(&self, index: usize) -> Option<&[u64]> {
        (self.presence[index] != VectorPresence::Before).then(|| &self.new[index * self.width..][..self.width])
    }
}

/// Reads the changes of the documents that are wanted.
///
/// # Errors
/// Names the file that cannot be read.
pub fn changes(before: &VectorFiles, after: &VectorFiles, wanted: impl Fn(DocId) -> bool) -> Result<VectorChanges> {
    let differences = differences(before, after, wanted)?;
    let width = after.width;
    let read = |files: &VectorFiles, row: fn(&VectorDifference) -> Option<VectorRow>| -> Result<Vec<u64>> {
        let rows: Vec<VectorRow> = differences.iter().filter_map(row).collect();
        let vectors = files.vectors(&rows)?;
        if rows.len() == differences.len() {
            return Ok(vectors);
        }
        // Zeros for the documents without a vector.
        let mut spread = vec![0; differences.len() * width];
        let present =
            spread.chunks_exact_mut(width).zip(&differences).filter(|(_, difference)| row(difference).is_some());
        present.zip(vectors.chunks_exact(width)).for_each(|((to, _), vector)| to.copy_from_slice(vector));
        Ok(spread)
    };
    let presence = |difference: &VectorDifference| match (difference.old, difference.new) {
        (Some(_), Some(_)) => VectorPresence::Both,
        (Some(_), None) => VectorPresence::Before,
        _ => VectorPresence::After,
    };
    Ok(VectorChanges {
        docs: differences.iter().map(|difference| difference.doc).collect(),
        presence: differences.iter().map(presence).collect(),
        old: read(before, |difference| difference.old)?,
        new: read(after, |difference| difference.new)?,
        width,
    })
}

/// Finds the wanted documents whose vectors differ, in the order of shards and documents. Vectors
/// with equal hashes are taken for equal, which is wrong for one pair in 2^64.
///
/// # Errors
/// Names the file that cannot be read.
pub fn differences(
    before: &VectorFiles,
    after: &VectorFiles,
    wanted: impl Fn(DocId) -> bool,
) -> Result<Vec<VectorDifference>> {
    let mut differences = Vec::new();
    let (mut old, mut new) = (HashCursor::open(before)?, HashCursor::open(after)?);
    let mut add = |doc, old, new| {
        if wanted(doc) {
            differences.push(VectorDifference { doc, old, new });
        }
    };
    loop {
        let order = match (old.doc(), new.doc()) {
            (None, None) => return Ok(differences),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(old), Some(new)) => old.cmp(&new),
        };
        match (order, &old.chunk, &new.chunk) {
            // The documents in a row that both chunks have.
            (Ordering::Equal, Some(a), Some(b)) => {
                let (a_docs, b_docs) = (&a.docs()[old.at..], &b.docs()[new.at..]);
                let (a_hashes, b_hashes) = (a.words(), b.words());
                let (a_hashes, b_hashes) = (&a_hashes[old.at..], &b_hashes[new.at..]);
                let mut rows = 0;
                while rows < a_docs.len().min(b_docs.len()) && a_docs[rows] == b_docs[rows] {
                    if a_hashes[rows] != b_hashes[rows] {
                        add(a_docs[rows], Some(a.place(old.at + rows)), Some(b.place(new.at + rows)));
                    }
                    rows += 1;
                }
                old.pass(rows)?;
                new.pass(rows)?;
            }
            (Ordering::Less, Some(a), _) => {
                add(a.docs()[old.at], Some(a.place(old.at)), None);
                old.pass(1)?;
            }
            (_, _, Some(b)) => {
                add(b.docs()[new.at], None, Some(b.place(new.at)));
                new.pass(1)?;
            }
            _ => return Ok(differences),
        }
    }
}

/// A position in one week's hashes of vectors.
struct HashCursor {
    chunks: ChunkScan,
    /// The current chunk; `None` at the end.
    chunk: Option<VectorChunk>,
    /// The next row of the chunk.
    at: usize,
}

impl HashCursor {
    fn open(files: &VectorFiles) -> Result<HashCursor> {
        let mut chunks = files.hashes().chunks_with_docs();
        Ok(HashCursor { chunk: chunks.next_chunk()?, chunks, at: 0 })
    }

    fn doc(&self) -> Option<DocId> {
        self.chunk.as_ref().map(|chunk| chunk.docs()[self.at])
    }

    fn pass(&mut self, rows: usize) -> Result<()> {
        self.at += rows;
        if self.chunk.as_ref().is_some_and(|chunk| self.at == chunk.rows()) {
            (self.chunk, self.at) = (self.chunks.next_chunk()?, 0);
        }
        Ok(())
    }
}
