//! Grouping by key, in cache: never by sorting.
//!
//! A partition's records are few enough that its table stays near the core; partitions are grouped
//! one after the other. What is found does not depend on the order of the records.

use crate::kernels::memory::{SIDE_BY_SIDE, preload};

/// The groups of one partition; its tables are reused from partition to partition.
#[derive(Default)]
pub struct Grouper {
    /// Open addressing: the number of a group plus one, or 0.
    slots: Vec<u32>,
    shift: u32,
    groups: Vec<Group>,
    /// Each record's node, and which record of the group came before it.
    records: Vec<(u32, u32)>,
}

/// The records of one key: four words of 32 bits, so that more of them stay near the core.
#[derive(Clone, Copy)]
struct Group {
    key: u64,
    /// Its smallest node.
    smallest: u32,
    /// The record that came last; with the bit `ALONE` where it is the only one.
    last: u32,
}

/// The highest bit: partitions have fewer records.
const ALONE: u32 = 1 << 31;
/// No record.
const NONE: u32 = u32::MAX;

impl Grouper {
    /// Begins anew, for at most so many records.
    pub fn clear(&mut self, records: usize) {
        let capacity = (records * 2).next_power_of_two().max(16);
        self.shift = 64 - capacity.trailing_zeros();
        self.slots.clear();
        self.slots.resize(capacity, 0);
        self.groups.clear();
        self.records.clear();
    }

    /// Adds records: nodes under keys, which are hashes.
    pub fn add_all(&mut self, mut records: impl Iterator<Item = (u64, u32)>) {
        let mut some = [(0, 0); SIDE_BY_SIDE];
        loop {
            let taken = some.iter_mut().zip(&mut records).map(|(place, record)| *place = record).count();
            if taken == 0 {
                return;
            }
            self.fetch(&some[..taken]);
            some[..taken].iter().for_each(|(key, node)| self.add(*key, *node));
        }
    }

    #[inline]
    fn slot(&self, key: u64) -> usize {
        (key >> self.shift) as usize
    }

    /// Looks at the last records of some records' groups: the branches of `add`, which nobody can foretell, then wait for
    /// nothing. An empty slot looks at the first group, so that here nothing branches.
    fn fetch(&self, some: &[(u64, u32)]) {
        if !self.groups.is_empty() {
            let last = |key| self.groups[(self.slots[self.slot(key)] as usize).saturating_sub(1)].last;
            preload(some.iter().map(|(key, _)| last(*key).into()));
        }
    }

    #[inline]
    fn add(&mut self, key: u64, node: u32) {
        let mut slot = self.slot(key);
        let mask = self.slots.len() - 1;
        let record = self.records.len() as u32;
        let before = loop {
            match self.slots[slot] {
                0 => {
                    self.groups.push(Group { key, smallest: node, last: record | ALONE });
                    self.slots[slot] = self.groups.len() as u32;
                    break NONE;
                }
                taken => {
                    let group = &mut self.groups[taken as usize - 1];
                    if group.key == key {
                        group.smallest = group.smallest.min(node);
                        break std::mem::replace(&mut group.last, record) & !ALONE;
                    }
                    slot = (slot + 1) & mask;
                }
            }
        };
        self.records.push((node, before));
    }

    /// The groups of several records, as stars: the smallest node is the middle, and the others are around it.
    pub fn stars(&self) -> impl Iterator<Item = (u32, impl Iterator<Item = u32>)> {
        let several = self.groups.iter().filter(|group| group.last & ALONE == 0);
        several.map(|group| {
            let middle = group.smallest;
            (middle, self.nodes(group.last).filter(move |node| *node != middle))
        })
    }

    /// The nodes of a record and of those of its group that came before it.
    fn nodes(&self, mut record: u32) -> impl Iterator<Item = u32> {
        std::iter::from_fn(move || {
            let (node, before) = self.records.get(record as usize)?;
            record = *before;
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
                for (middle, others) in grouper.stars() {
                    found.entry(middle).or_default().extend(others);
                }
                let mut wanted: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
                for nodes in map.values().filter(|nodes| nodes.len() > 1) {
                    let middle = *nodes.iter().min().unwrap();
                    wanted.entry(middle).or_default().extend(nodes.iter().filter(|node| **node != middle));
                }
                found.values_mut().chain(wanted.values_mut()).for_each(|nodes| nodes.sort_unstable());
                prop_assert_eq!(found, wanted);
            }
        }
    }
}
