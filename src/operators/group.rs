//! Grouping by key, in cache: never by sorting.
//!
//! A partition's records are few enough that its table stays near the core; partitions are grouped
//! one after the other. What is found does not depend on the order of the records.

use crate::records::{DocId, Key};

/// The groups of one partition; its tables are reused from partition to partition.
#[derive(Default)]
pub struct Grouper {
    /// Open addressing: the number of a group plus one, or 0.
    slots: Vec<u32>,
    groups: Vec<Group>,
    /// The group of each record.
    of: Vec<u32>,
}

/// The records of one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    key: Key,
    /// Its smallest document.
    pub smallest: DocId,
    /// The smallest but one, if there are two.
    pub second: Option<DocId>,
}

impl Grouper {
    /// Groups documents by key; [`Grouper::group`] then tells each record's group.
    pub fn fill(&mut self, records: impl ExactSizeIterator<Item = (Key, DocId)>) {
        let capacity = (records.len() * 2).next_power_of_two().max(16);
        let shift = 64 - capacity.trailing_zeros();
        self.slots.clear();
        self.slots.resize(capacity, 0);
        self.groups.clear();
        self.of.clear();
        for (key, doc) in records {
            let mut slot = (key.table_bits() >> shift) as usize;
            let group = loop {
                match self.slots[slot] {
                    0 => {
                        self.groups.push(Group { key, smallest: doc, second: None });
                        self.slots[slot] = self.groups.len() as u32;
                        break self.groups.len() - 1;
                    }
                    taken if self.groups[taken as usize - 1].key == key => break taken as usize - 1,
                    _ => slot = (slot + 1) & (capacity - 1),
                }
            };
            self.groups[group].add(doc);
            self.of.push(group as u32);
        }
    }

    /// The group of the record at a position.
    pub fn group(&self, record: usize) -> Group {
        self.groups[self.of[record] as usize]
    }

    /// All groups of at least two documents.
    pub fn shared(&self) -> impl Iterator<Item = (DocId, DocId)> {
        self.groups.iter().filter_map(|group| Some((group.smallest, group.second?)))
    }
}

impl Group {
    fn add(&mut self, doc: DocId) {
        if doc < self.smallest {
            self.second = Some(self.smallest);
            self.smallest = doc;
        } else if doc > self.smallest && self.second.is_none_or(|second| doc < second) {
            self.second = Some(doc);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

    proptest! {
        #[test]
        fn groups_are_those_of_a_map(records in prop::collection::vec((0u64..20, 0u64..50), 0..200)) {
            let records: Vec<(Key, DocId)> =
                records.into_iter().map(|(key, row)| (Key::of(0, &[key]), DocId::new(0, row))).collect();
            let mut map: BTreeMap<Key, BTreeSet<DocId>> = BTreeMap::new();
            records.iter().for_each(|(key, doc)| { map.entry(*key).or_default().insert(*doc); });
            let mut grouper = Grouper::default();
            grouper.fill(records.iter().copied());
            for (at, (key, _)) in records.iter().enumerate() {
                let mut docs = map[key].iter().copied();
                prop_assert_eq!(Some(grouper.group(at).smallest), docs.next());
                prop_assert_eq!(grouper.group(at).second, docs.next());
            }
            let shared = map.values().filter(|docs| docs.len() > 1).count();
            prop_assert_eq!(grouper.shared().count(), shared);
        }
    }
}
