//! Maps of the documents that a worker owns to documents, in little memory.
//!
//! Most documents are alone, so most roots are the document itself, and most documents have no
//! cluster id: only the others are stored.

use crate::records::DocId;
use crate::structures::{Ownership, RankBitmap};

/// A document for some of the numbers `0..n`.
///
/// Memory: a quarter of a byte for each number, and 8 bytes for each document.
///
/// ```
/// use nigh_kernels::records::DocId;
/// use nigh_kernels::structures::SparseDocs;
///
/// let docs = SparseDocs::new(100, vec![(7, DocId::new(0, 1)), (90, DocId::new(2, 5))].into_iter());
/// assert_eq!((docs.get(90), docs.get(8)), (Some(DocId::new(2, 5)), None));
/// ```
pub struct SparseDocs {
    has: RankBitmap,
    /// By rank.
    docs: Vec<DocId>,
}

impl SparseDocs {
    /// The documents of some of the numbers below `numbers`, which ascend.
    pub fn new(numbers: usize, docs: impl Iterator<Item = (usize, DocId)> + Clone) -> SparseDocs {
        let has = RankBitmap::new(numbers, docs.clone().map(|(number, _)| number as u32));
        let mut of_numbers = Vec::with_capacity(has.count());
        of_numbers.extend(docs.map(|(_, doc)| doc));
        SparseDocs { has, docs: of_numbers }
    }

    /// The documents of the numbers in a set, by rank.
    ///
    /// # Panics
    /// If there are not as many as numbers.
    pub fn of_set(has: RankBitmap, docs: Vec<DocId>) -> SparseDocs {
        assert_eq!(has.count(), docs.len(), "each number of the set has a document");
        SparseDocs { has, docs }
    }

    /// How many numbers have a document.
    pub fn len(&self) -> usize {
        self.docs.len()
    }

    /// Whether none has one.
    pub fn is_empty(&self) -> bool {
        self.docs.is_empty()
    }

    /// The documents, in the order of their numbers.
    pub fn docs(&self) -> &[DocId] {
        &self.docs
    }

    /// The set of the numbers that have one, with its documents by rank.
    pub fn into_parts(self) -> (RankBitmap, Vec<DocId>) {
        (self.has, self.docs)
    }

    /// The document of a number, if it has one.
    #[inline]
    pub fn get(&self, number: usize) -> Option<DocId> {
        let (has, rank) = self.has.get(number);
        has.then(|| self.docs[rank])
    }
}

/// A document for each own document, mostly itself; [`DocId::NONE`] for those that have none.
///
/// ```
/// use nigh_kernels::records::DocId;
/// use nigh_kernels::structures::{DocMap, Ownership};
///
/// let doc = |row| DocId::new(0, row);
/// let roots = DocMap::new(&Ownership::new(0, 1, &[3]), vec![doc(0), doc(0), DocId::NONE]);
/// assert_eq!([doc(0), doc(1), doc(2)].map(|doc| roots.of(doc)), [doc(0), doc(0), DocId::NONE]);
/// ```
pub struct DocMap {
    owned: Ownership,
    others: SparseDocs,
}

impl DocMap {
    /// The map of own documents to `docs`, which are by number.
    pub fn new(owned: &Ownership, docs: Vec<DocId>) -> DocMap {
        let others = owned.docs().zip(&docs).enumerate().filter(|(_, (own, doc))| own != *doc);
        let others = SparseDocs::new(owned.len(), others.map(|(number, (_, doc))| (number, *doc)));
        DocMap { owned: owned.clone(), others }
    }

    /// The document of an own document.
    #[inline]
    pub fn of(&self, own: DocId) -> DocId {
        self.others.get(self.owned.index(own)).unwrap_or(own)
    }

    /// All own documents, and the document of each.
    pub fn iter(&self) -> impl Iterator<Item = (DocId, DocId)> + Clone {
        let mut others = self.others.docs.iter();
        self.owned.docs().enumerate().map(move |(number, own)| match self.others.has.get(number) {
            (true, _) => (own, *others.next().unwrap_or(&own)),
            (false, _) => (own, own),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::mix;

    #[test]
    fn maps_are_those_of_the_lists() {
        let owned = Ownership::new(1, 2, &[70, 400, 0, 129]);
        for share in [1, 2, 5, 1000] {
            let doc = |own: DocId| match mix(own.to_table() as u64) % share {
                0 => DocId::new(0, mix(own.to_table() as u64) % 70),
                1 => DocId::NONE,
                _ => own,
            };
            let docs: Vec<DocId> = owned.docs().map(doc).collect();
            let expected: Vec<(DocId, DocId)> = owned.docs().zip(docs.iter().copied()).collect();
            let map = DocMap::new(&owned, docs);
            assert_eq!(map.iter().collect::<Vec<_>>(), expected);
            assert!(expected.iter().all(|(own, doc)| map.of(*own) == *doc));
        }
    }
}
