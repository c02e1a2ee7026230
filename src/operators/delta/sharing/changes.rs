//! What changed from one week's vectors to the next: their hashes are in the order of documents, and are read side by
//! side; the vectors of those that differ are then read where they lie.

use std::cmp::Ordering;

use anyhow::Result;

use crate::operators::scan::{ChunkScan, VectorChunk, VectorFiles, VectorRow};
use crate::records::DocId;

/// A document whose vectors differ: where they lie, of the earlier week and of the later one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The document.
    pub doc: DocId,
    /// Its vector of the earlier week.
    pub old: Option<VectorRow>,
    /// Its vector of the later one.
    pub new: Option<VectorRow>,
}

/// Documents whose vectors differ, ascending.
#[derive(Debug, Default)]
pub struct Changes {
    /// The documents.
    pub docs: Vec<DocId>,
    /// Which weeks have a vector of each.
    has: Vec<Has>,
    /// The vectors of the earlier week, and of the later one, one after the other; zeros where there is none.
    old: Vec<u64>,
    new: Vec<u64>,
    width: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Has {
    Old,
    New,
    Both,
}

impl Changes {
    /// How many documents.
    pub(crate) fn len(&self) -> usize {
        self.docs.len()
    }

    /// The vector that a document had.
    pub fn before(&self, at: usize) -> Option<&[u64]> {
        (self.has[at] != Has::New).then(|| &self.old[at * self.width..][..self.width])
    }

    /// The vector that a document has now.
    pub fn after(&self, at: usize) -> Option<&[u64]> {
        (self.has[at] != Has::Old).then(|| &self.new[at * self.width..][..self.width])
    }
}

/// Finds the changes of documents that are wanted.
///
/// # Errors
/// Names the file that cannot be read.
pub fn changes(before: &VectorFiles, after: &VectorFiles, wanted: impl Fn(DocId) -> bool) -> Result<Changes> {
    let differences = differences(before, after, wanted)?;
    let width = after.width;
    let read = |files: &VectorFiles, place: fn(&Difference) -> Option<VectorRow>| -> Result<Vec<u64>> {
        let places: Vec<VectorRow> = differences.iter().filter_map(place).collect();
        let found = files.vectors(&places)?;
        if places.len() == differences.len() {
            return Ok(found);
        }
        let (mut all, mut found) = (vec![0; differences.len() * width], found.chunks_exact(width));
        let has = all.chunks_exact_mut(width).zip(&differences).filter(|(_, difference)| place(difference).is_some());
        has.zip(found.by_ref()).for_each(|((to, _), vector)| to.copy_from_slice(vector));
        Ok(all)
    };
    let has = |difference: &Difference| match (difference.old, difference.new) {
        (Some(_), Some(_)) => Has::Both,
        (Some(_), None) => Has::Old,
        _ => Has::New,
    };
    Ok(Changes {
        docs: differences.iter().map(|difference| difference.doc).collect(),
        has: differences.iter().map(has).collect(),
        old: read(before, |difference| difference.old)?,
        new: read(after, |difference| difference.new)?,
        width,
    })
}

/// Finds which of the wanted documents have other vectors, ascending in the order of shards and documents. Vectors with
/// the same hash are the same (but for one pair in 2^64).
///
/// # Errors
/// Names the file that cannot be read.
pub fn differences(
    before: &VectorFiles,
    after: &VectorFiles,
    wanted: impl Fn(DocId) -> bool,
) -> Result<Vec<Difference>> {
    let mut differences = Vec::new();
    let (mut old, mut new) = (Side::open(before)?, Side::open(after)?);
    let mut note = |doc, old, new| {
        if wanted(doc) {
            differences.push(Difference { doc, old, new });
        }
    };
    loop {
        let (first, second) = (old.doc(), new.doc());
        let order = match (first, second) {
            (None, None) => return Ok(differences),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(first), Some(second)) => first.cmp(&second),
        };
        match (order, &old.chunk, &new.chunk) {
            // As many documents as both pieces hold.
            (Ordering::Equal, Some(a), Some(b)) => {
                let (docs, others) = (&a.docs()[old.at..], &b.docs()[new.at..]);
                let (a_hashes, b_hashes) = (a.words(), b.words());
                let (a_hashes, b_hashes) = (&a_hashes[old.at..], &b_hashes[new.at..]);
                let mut same = 0;
                while same < docs.len().min(others.len()) && docs[same] == others[same] {
                    if a_hashes[same] != b_hashes[same] {
                        note(docs[same], Some(a.place(old.at + same)), Some(b.place(new.at + same)));
                    }
                    same += 1;
                }
                old.pass(same)?;
                new.pass(same)?;
            }
            (Ordering::Less, Some(a), _) => {
                note(a.docs()[old.at], Some(a.place(old.at)), None);
                old.pass(1)?;
            }
            (_, _, Some(b)) => {
                note(b.docs()[new.at], None, Some(b.place(new.at)));
                new.pass(1)?;
            }
            _ => return Ok(differences),
        }
    }
}

/// One week's hashes, as they are read.
struct Side {
    chunks: ChunkScan,
    chunk: Option<VectorChunk>,
    at: usize,
}

impl Side {
    fn open(files: &VectorFiles) -> Result<Side> {
        let mut chunks = files.hashes().chunks_with_docs();
        Ok(Side { chunk: chunks.next()?, chunks, at: 0 })
    }

    fn doc(&self) -> Option<DocId> {
        self.chunk.as_ref().map(|chunk| chunk.docs()[self.at])
    }

    fn pass(&mut self, rows: usize) -> Result<()> {
        self.at += rows;
        if self.chunk.as_ref().is_some_and(|chunk| self.at == chunk.rows()) {
            (self.chunk, self.at) = (self.chunks.next()?, 0);
        }
        Ok(())
    }
}
