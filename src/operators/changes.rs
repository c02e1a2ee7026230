//! What changed from one week's vectors to the next: both are in the order of documents, and are read side by side.

use std::borrow::Cow;

use anyhow::Result;

use super::chunks::{Chunk, Chunks, VectorFiles};
use crate::records::DocId;

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
    pub fn len(&self) -> usize {
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

    fn push(&mut self, doc: DocId, old: Option<&[u64]>, new: Option<&[u64]>) {
        let (had, has) = (old.is_some(), new.is_some());
        self.docs.push(doc);
        self.has.push(match (had, has) {
            (true, true) => Has::Both,
            (true, false) => Has::Old,
            _ => Has::New,
        });
        for (all, one) in [(&mut self.old, old), (&mut self.new, new)] {
            match one {
                Some(vector) => all.extend_from_slice(vector),
                None => all.resize(all.len() + self.width, 0),
            }
        }
    }
}

/// Finds the changes of documents that are wanted.
///
/// # Errors
/// Names the file that cannot be read.
pub fn changes(before: &VectorFiles, after: &VectorFiles, wanted: impl Fn(DocId) -> bool) -> Result<Changes> {
    let mut changes = Changes { width: after.width, ..Changes::default() };
    let (mut old, mut new) = (Side::open(before)?, Side::open(after)?);
    loop {
        let order = match (old.doc(), new.doc()) {
            (None, None) => return Ok(changes),
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (Some(old), Some(new)) => old.cmp(&new),
        };
        // As many documents as both pieces hold.
        match order {
            std::cmp::Ordering::Equal => {
                let (olds, news) = (old.rest(), new.rest());
                let same = olds.docs.iter().zip(news.docs).take_while(|(a, b)| a == b).count();
                let width = changes.width;
                for at in 0..same {
                    let (a, b) = (&olds.words[at * width..][..width], &news.words[at * width..][..width]);
                    if a != b && wanted(olds.docs[at]) {
                        changes.push(olds.docs[at], Some(a), Some(b));
                    }
                }
                old.pass(same)?;
                new.pass(same)?;
            }
            std::cmp::Ordering::Less => {
                let rest = old.rest();
                if wanted(rest.docs[0]) {
                    changes.push(rest.docs[0], Some(&rest.words[..changes.width]), None);
                }
                old.pass(1)?;
            }
            std::cmp::Ordering::Greater => {
                let rest = new.rest();
                if wanted(rest.docs[0]) {
                    changes.push(rest.docs[0], None, Some(&rest.words[..changes.width]));
                }
                new.pass(1)?;
            }
        }
    }
}

/// One week's vectors, as they are read.
struct Side {
    chunks: Chunks,
    chunk: Option<Chunk>,
    at: usize,
    width: usize,
}

/// What is left of a piece.
struct Rest<'a> {
    docs: &'a [DocId],
    words: Cow<'a, [u64]>,
}

impl Side {
    fn open(files: &VectorFiles) -> Result<Side> {
        let mut chunks = files.chunks_with_docs();
        Ok(Side { chunk: chunks.next()?, chunks, at: 0, width: files.width })
    }

    fn doc(&self) -> Option<DocId> {
        self.chunk.as_ref().map(|chunk| chunk.docs()[self.at])
    }

    fn rest(&self) -> Rest<'_> {
        let Some(chunk) = &self.chunk else { return Rest { docs: &[], words: Cow::Borrowed(&[]) } };
        let words = match chunk.supershingles() {
            Cow::Borrowed(words) => Cow::Borrowed(&words[self.at * self.width..]),
            Cow::Owned(words) => Cow::Owned(words[self.at * self.width..].to_vec()),
        };
        Rest { docs: &chunk.docs()[self.at..], words }
    }

    fn pass(&mut self, rows: usize) -> Result<()> {
        self.at += rows;
        if self.chunk.as_ref().is_some_and(|chunk| self.at == chunk.rows()) {
            (self.chunk, self.at) = (self.chunks.next()?, 0);
        }
        Ok(())
    }
}
