//! Hash grouping: the records of one partition grouped by key, in a hash table instead of by
//! sorting.
//!
//! Partitions are grouped one after the other; each has so few records that its table stays in
//! cache. The groups do not depend on the order of the records. Morally it does this:
//!
//! ```text
//! nodes_of = map from key to set of nodes
//! for (key, node) in records
//!     nodes_of[key].insert(node)
//! for nodes in nodes_of.values(), if several records have the key
//!     emit the star: min(nodes), and the other nodes
//! ```
//!
//! The tuned form has no set for a key. The records of a group are a linked list through one
//! vector, from the last to the first, and the group has the smallest node.

use crate::kernels::memory::{SIDE_BY_SIDE, preload};

/// The groups of one partition; the memory is reused from partition to partition.
///
/// Keys must be hashes: the high bits of a key are its place in the table.
///
/// ```
/// use nigh_kernels::{records::mix, structures::Grouper};
///
/// let mut grouper = Grouper::default();
/// grouper.clear(4);
/// // Nodes 9, 2 and 5 have key `a`; node 7 is alone with key `b`.
/// let (a, b) = (mix(1), mix(2));
/// grouper.add_all([(a, 9), (b, 7), (a, 2), (a, 5)].into_iter());
/// let stars: Vec<(u32, Vec<u32>)> = grouper.stars().map(|(centre, others)| (centre, others.collect())).collect();
/// assert_eq!(stars, [(2, vec![5, 9])]);
/// ```
#[derive(Default)]
pub struct Grouper {
    /// The hash table, with open addressing and linear probing: the number of a group plus one, or
    /// 0 for an empty slot.
    slots: Vec<u32>,
    shift: u32,
    groups: Vec<KeyGroup>,
    /// The node of each record, and the number of the record before it in its group ([`NONE`] for
    /// the first).
    records: Vec<(u32, u32)>,
}

/// The records of one key: 16 bytes, so that more groups stay in cache.
#[derive(Clone, Copy)]
struct KeyGroup {
    key: u64,
    /// The smallest node of its records.
    smallest: u32,
    /// The number of its last record; with the bit [`ALONE`] if it has no other.
    last: u32,
}

/// The highest bit: a partition has fewer than 2^31 records.
const ALONE: u32 = 1 << 31;
/// The number of no record.
const NONE: u32 = u32::MAX;

impl Grouper {
    /// Removes all records; makes room for at most `records` new ones.
    pub fn clear(&mut self, records: usize) {
        let capacity = (records * 2).next_power_of_two().max(16);
        self.shift = 64 - capacity.trailing_zeros();
        self.slots.clear();
        self.slots.resize(capacity, 0);
        self.groups.clear();
        self.records.clear();
    }

    /// Adds records: pairs of a key, which is a hash, and a node.
    pub fn add_all(&mut self, mut records: impl Iterator<Item = (u64, u32)>) {
        let mut batch = [(0, 0); SIDE_BY_SIDE];
        loop {
            let count = batch.iter_mut().zip(&mut records).map(|(place, record)| *place = record).count();
            if count == 0 {
                return;
            }
            self.preload_groups(&batch[..count]);
            batch[..count].iter().for_each(|(key, node)| self.add(*key, *node));
        }
    }

    /// The slot where the search for a key begins.
    #[inline]
    fn slot(&self, key: u64) -> usize {
        (key >> self.shift) as usize
    }

    /// Loads the groups of a batch of records into the cache: the branches of [`Grouper::add`] are
    /// unpredictable, and then do not stall on a cache miss. An empty slot loads the first group,
    /// so that this function has no branch.
    fn preload_groups(&self, batch: &[(u64, u32)]) {
        if !self.groups.is_empty() {
            let last = |key| self.groups[(self.slots[self.slot(key)] as usize).saturating_sub(1)].last;
            preload(batch.iter().map(|(key, _)| last(*key).into()));
        }
    }

    /// Adds a record to the group of its key, or begins one.
    #[inline]
    fn add(&mut self, key: u64, node: u32) {
        let mut slot = self.slot(key);
        let mask = self.slots.len() - 1;
        let record = self.records.len() as u32;
        let previous = loop {
            match self.slots[slot] {
                0 => {
                    self.groups.push(KeyGroup { key, smallest: node, last: record | ALONE });
                    self.slots[slot] = self.groups.len() as u32;
                    break NONE;
                }
                number => {
                    let group = &mut self.groups[number as usize - 1];
                    if group.key == key {
                        group.smallest = group.smallest.min(node);
                        break std::mem::replace(&mut group.last, record) & !ALONE;
                    }
                    slot = (slot + 1) & mask;
                }
            }
        };
        self.records.push((node, previous));
    }

    /// The groups of several records as stars: the smallest node is the centre, with the other
    /// nodes of the group. A node that was added twice is returned twice, except the centre.
    pub fn stars(&self) -> impl Iterator<Item = (u32, impl Iterator<Item = u32>)> {
        self.groups.iter().filter(|group| group.last & ALONE == 0).map(|group| {
            let centre = group.smallest;
            (centre, self.nodes(group.last).filter(move |node| *node != centre))
        })
    }

    /// The nodes of a record and of the records before it in its group.
    fn nodes(&self, mut record: u32) -> impl Iterator<Item = u32> {
        std::iter::from_fn(move || {
            let (node, previous) = self.records.get(record as usize)?;
            record = *previous;
            Some(*node)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::records::mix;

    proptest! {
        #[test]
        fn groups_are_those_of_a_map(records in prop::collection::vec((0u64..20, 0u32..50), 0..200)) {
            let mut map: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
            records.iter().for_each(|(key, node)| { map.entry(*key).or_default().push(*node); });
            let mut grouper = Grouper::default();
            for _ in 0..2 {
                grouper.clear(records.len());
                grouper.add_all(records.iter().map(|(key, node)| (mix(*key), *node)));
                let mut found: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
                for (centre, others) in grouper.stars() {
                    found.entry(centre).or_default().extend(others);
                }
                let mut wanted: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
                for nodes in map.values().filter(|nodes| nodes.len() > 1) {
                    let centre = *nodes.iter().min().unwrap();
                    wanted.entry(centre).or_default().extend(nodes.iter().filter(|node| **node != centre));
                }
                found.values_mut().chain(wanted.values_mut()).for_each(|nodes| nodes.sort_unstable());
                prop_assert_eq!(found, wanted);
            }
        }
    }
}
