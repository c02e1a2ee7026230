//! Grouping by key, in cache: never by sorting.
//!
//! A partition's records are few enough that its table stays near the core; partitions are grouped
//! one after the other. What is found does not depend on the order of the records.

/// The groups of one partition; its tables are reused from partition to partition.
#[derive(Default)]
pub struct Grouper {
    /// Open addressing: the number of a group plus one, or 0.
    slots: Vec<u32>,
    shift: u32,
    groups: Vec<Group>,
    /// The group of each record.
    of: Vec<u32>,
}

/// The records of one key: four words of 32 bits, so that more of them stay near the core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    key: u64,
    /// Its smallest node.
    pub smallest: u32,
    /// The smallest but one; `NONE` where there is one alone.
    second: u32,
}

/// No node: numbers of nodes are smaller.
const NONE: u32 = u32::MAX;

impl Grouper {
    /// Begins anew, for at most so many records.
    pub fn clear(&mut self, records: usize) {
        let capacity = (records * 2).next_power_of_two().max(16);
        self.shift = 64 - capacity.trailing_zeros();
        self.slots.clear();
        self.slots.resize(capacity, 0);
        self.groups.clear();
        self.of.clear();
    }

    /// Adds a record: a node under a key, which is a hash.
    #[inline]
    pub fn add(&mut self, key: u64, node: u32) {
        let mut slot = (key >> self.shift) as usize;
        let mask = self.slots.len() - 1;
        let group = loop {
            match self.slots[slot] {
                0 => {
                    self.groups.push(Group { key, smallest: node, second: NONE });
                    self.slots[slot] = self.groups.len() as u32;
                    break self.groups.len() as u32 - 1;
                }
                taken => {
                    let group = &mut self.groups[taken as usize - 1];
                    if group.key == key {
                        group.add(node);
                        break taken - 1;
                    }
                    slot = (slot + 1) & mask;
                }
            }
        };
        self.of.push(group);
    }

    /// The group of the record that was added as number `record`, counted from 0.
    #[inline]
    pub fn group(&self, record: usize) -> Group {
        self.groups[self.of[record] as usize]
    }
}

impl Group {
    /// The smallest node but one, if there are two.
    #[inline]
    pub fn second(&self) -> Option<u32> {
        (self.second != NONE).then_some(self.second)
    }

    #[inline]
    fn add(&mut self, node: u32) {
        if node < self.smallest {
            self.second = self.smallest;
            self.smallest = node;
        } else if node > self.smallest {
            self.second = self.second.min(node);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::mix;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

    proptest! {
        #[test]
        fn groups_are_those_of_a_map(records in prop::collection::vec((0u64..20, 0u32..50), 0..200)) {
            let mut map: BTreeMap<u64, BTreeSet<u32>> = BTreeMap::new();
            records.iter().for_each(|(key, node)| { map.entry(*key).or_default().insert(*node); });
            let mut grouper = Grouper::default();
            for _ in 0..2 {
                grouper.clear(records.len());
                records.iter().for_each(|(key, node)| grouper.add(mix(*key), *node));
                for (at, (key, _)) in records.iter().enumerate() {
                    let mut nodes = map[key].iter().copied();
                    prop_assert_eq!(Some(grouper.group(at).smallest), nodes.next());
                    prop_assert_eq!(grouper.group(at).second(), nodes.next());
                }
            }
        }
    }
}
