//! The documents, by their numbers: what each is known by, what it has, and where it is.
//!
//! A document takes 56 bytes, its name, and 5 to 11 bytes of the table by which it is found. The
//! key of a document is a hash of its name, and is made from that when it is wanted. The names of
//! documents that are gone stay.

use super::id_table::IdTable;
use crate::records::KeyHash;

/// No document, and the node of a document that is at none.
pub(in crate::live::engine) const NONE: u32 = u32::MAX;
/// No number in the tables.
const NO_NUMBER: i64 = i64::MIN;
/// The place of the name of a document that is gone.
const GONE: u64 = u64::MAX;

/// Where the text of a document is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::live) enum TextPlace {
    /// In the journal: its line.
    Journal { at: u64, bytes: u32 },
    /// Where the tables say, if its checksum is this one.
    Tables { doc: i64, checksum: u128 },
}

/// A document.
#[derive(Clone, Copy)]
pub(in crate::live::engine) struct Doc {
    /// The halves of the checksum of its body: with a `u128` a document would have eight bytes
    /// more.
    checksum: [u64; 2],
    name_at: u64,
    number: i64,
    text_at: u64,
    /// None if its text is not in the journal.
    text_bytes: u32,
    name_bytes: u32,
    /// Its node, or [`NONE`].
    pub(in crate::live::engine) node: u32,
    /// Its place among the documents of the node.
    pub(in crate::live::engine) place: u32,
}

impl Doc {
    /// The checksum of its body.
    pub(in crate::live::engine) fn checksum(&self) -> u128 {
        u128::from(self.checksum[0]) << 64 | u128::from(self.checksum[1])
    }

    /// Notes the checksum of its body.
    pub(in crate::live::engine) fn set_checksum(&mut self, checksum: u128) {
        self.checksum = [(checksum >> 64) as u64, checksum as u64];
    }

    /// Its number in the tables, if these have it.
    pub(in crate::live::engine) fn number(&self) -> Option<i64> {
        (self.number != NO_NUMBER).then_some(self.number)
    }

    /// Where its text is.
    pub(in crate::live::engine) fn text(&self) -> Option<TextPlace> {
        match self.text_bytes {
            0 => Some(TextPlace::Tables { doc: self.number()?, checksum: self.checksum() }),
            bytes => Some(TextPlace::Journal { at: self.text_at, bytes }),
        }
    }

    /// Notes where its text is in the journal: of no bytes if it is not there.
    pub(in crate::live::engine) fn set_text(&mut self, at: u64, bytes: u32) {
        (self.text_at, self.text_bytes) = (at, bytes);
    }
}

/// All documents.
#[derive(Default)]
pub(in crate::live::engine) struct DocTable {
    docs: Vec<Doc>,
    names: String,
    /// How many of `docs` are gone. Their numbers are not used again: documents are ordered by
    /// them.
    gone: u64,
    by_key: IdTable,
}

impl DocTable {
    /// How many documents there are.
    pub(in crate::live::engine) fn count(&self) -> u64 {
        self.docs.len() as u64 - self.gone
    }

    /// The numbers of all documents, also of those that are gone.
    pub(in crate::live::engine) fn numbers(&self) -> std::ops::Range<u32> {
        0..self.docs.len() as u32
    }

    /// Makes room for more documents.
    pub(in crate::live::engine) fn reserve(&mut self, documents: usize, bytes_of_names: usize) {
        self.docs.reserve(documents);
        self.names.reserve(bytes_of_names);
        let DocTable { docs, names, by_key, .. } = self;
        by_key.reserve(documents, |doc| hash(key(docs, names, doc)));
    }

    /// A document; `None` if it is gone.
    pub(in crate::live::engine) fn get(&self, doc: u32) -> Option<&Doc> {
        self.docs.get(doc as usize).filter(|doc| doc.name_at != GONE)
    }

    /// A document, for changes; `None` if it is gone.
    pub(in crate::live::engine) fn get_mut(&mut self, doc: u32) -> Option<&mut Doc> {
        self.docs.get_mut(doc as usize).filter(|doc| doc.name_at != GONE)
    }

    /// The name of a document that is there.
    pub(in crate::live::engine) fn name(&self, doc: u32) -> &str {
        name(&self.docs, &self.names, doc)
    }

    /// The key of a document that is there.
    pub(in crate::live::engine) fn key(&self, doc: u32) -> KeyHash {
        key(&self.docs, &self.names, doc)
    }

    /// The document with this key.
    pub(in crate::live::engine) fn find(&self, key: KeyHash) -> Option<u32> {
        self.by_key.find(hash(key), |doc| self.key(doc) == key)
    }

    /// The document with this number in the tables. The numbers of all documents there ascend.
    pub(in crate::live::engine) fn find_number(&self, number: i64) -> Option<u32> {
        let place = self.docs.partition_point(|doc| doc.number < number);
        self.docs.get(place).filter(|doc| doc.number == number).map(|_| place as u32)
    }

    /// Adds a document, which is at no node.
    pub(in crate::live::engine) fn add(&mut self, name: &str, number: Option<i64>) -> u32 {
        let doc = self.docs.len() as u32;
        self.docs.push(Doc {
            checksum: [0; 2],
            name_at: self.names.len() as u64,
            number: number.unwrap_or(NO_NUMBER),
            text_at: 0,
            text_bytes: 0,
            name_bytes: u32::try_from(name.len()).expect("names are shorter than 4 GiB"),
            node: NONE,
            place: 0,
        });
        self.names.push_str(name);
        let DocTable { docs, names, by_key, .. } = self;
        by_key.insert(hash(KeyHash::of(name)), doc, |doc| hash(key(docs, names, doc)));
        doc
    }

    /// Takes a document away.
    pub(in crate::live::engine) fn remove(&mut self, doc: u32) {
        let DocTable { docs, names, by_key, .. } = self;
        let hash_of = |doc: u32| hash(key(docs, names, doc));
        by_key.remove(hash_of(doc), doc, hash_of);
        self.docs[doc as usize].name_at = GONE;
        self.gone += 1;
    }
}

fn name<'a>(docs: &[Doc], names: &'a str, doc: u32) -> &'a str {
    let Doc { name_at, name_bytes, .. } = docs[doc as usize];
    &names[name_at as usize..][..name_bytes as usize]
}

fn key(docs: &[Doc], names: &str, doc: u32) -> KeyHash {
    KeyHash::of(name(docs, names, doc))
}

/// The hash by which a table finds a key.
fn hash(key: KeyHash) -> u64 {
    key.halves()[1]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::records::mix;

    #[test]
    fn documents_are_found_by_key_and_number_until_they_go() {
        let (mut docs, mut twin) = (DocTable::default(), BTreeMap::new());
        docs.reserve(10, 10);
        for number in 0..400i64 {
            let name = format!("{}é", "n".repeat((number % 5) as usize)) + &number.to_string();
            twin.insert(docs.add(&name, Some(3 * number)), name);
        }
        for step in 0..300 {
            let doc = (mix(step) % 400) as u32;
            if twin.remove(&doc).is_some() {
                docs.remove(doc);
            }
        }
        assert_eq!(docs.count(), twin.len() as u64);
        for doc in docs.numbers() {
            assert_eq!(docs.get(doc).map(|_| docs.name(doc)), twin.get(&doc).map(String::as_str));
            assert_eq!(docs.find_number(3 * i64::from(doc)), Some(doc));
            assert_eq!(docs.find_number(3 * i64::from(doc) + 1), None);
        }
        for (doc, name) in &twin {
            assert_eq!(docs.find(KeyHash::of(name)), Some(*doc), "{name}");
        }
        assert_eq!(docs.find(KeyHash::of("n")), None);
    }

    #[test]
    fn a_document_is_small_and_keeps_what_is_noted() {
        assert_eq!(size_of::<Doc>(), 56);
        let mut docs = DocTable::default();
        let doc = docs.add("a", None);
        let of = docs.get_mut(doc).expect("it was added");
        of.set_checksum(u128::MAX - 5);
        assert_eq!((of.checksum(), of.number(), of.text()), (u128::MAX - 5, None, None));
        of.set_text(7, 9);
        assert_eq!(of.text(), Some(TextPlace::Journal { at: 7, bytes: 9 }));
    }
}
