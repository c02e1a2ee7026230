//! Marks: the elements of one set in a small hash table, against which many other sets are read.
//!
//! Two sets in one order can be merged, but the processor cannot predict the branch of a step. A
//! look at a table that is mostly empty has a branch that nearly always goes the same way: an
//! element is in its slot, or the slot is empty. The candidates of one set follow each other, so a
//! set is marked once for all of them.
//!
//! All of `nigh bench mirrors`, where comparing is more than half of the work, takes 2.5 CPU s with
//! this table and 3.0 with a merge. A merge without branches, by sums of the results of
//! comparisons, took 5.7 where the other one took 4.2.

use bytemuck::{Pod, Zeroable};

use crate::operators::set_join::merged_elements::MergedElement;

/// Elements that are read between two looks at what is left.
const AT_ONCE: usize = 16;
/// Slots for each element, at least. With 4 the looks at a second slot took as long as all others:
/// 4.9 CPU s where 16 take 2.5.
const SLOTS: usize = 16;

/// An element in the table; in an empty slot `sets` is 0.
#[derive(Clone, Copy, Default, Pod, Zeroable)]
#[repr(C)]
struct Slot {
    id: u64,
    sets: u32,
    weight: u32,
}

/// The elements of a set, by their ids.
#[derive(Default)]
pub(in crate::operators::set_join) struct MarkedElements {
    slots: Vec<Slot>,
    /// The number of slots in use, a power of two, less one.
    mask: usize,
}

impl MarkedElements {
    /// Marks the elements of a set, and forgets those of another.
    pub fn mark(&mut self, elements: &[MergedElement]) {
        let slots = (SLOTS * elements.len()).next_power_of_two();
        if self.slots.len() < slots {
            self.slots.resize(slots, Slot::default());
        }
        // A large set before this one left a longer table: only its beginning is used, so that a
        // small set is marked, and looked up, in few cache lines.
        self.mask = slots - 1;
        self.slots[..slots].fill(Slot::default());
        for element in elements {
            // An id is a sum of hashes: its low bits are as good as any.
            let mut at = element.id as usize & self.mask;
            while self.slots[at].sets > 0 {
                at = (at + 1) & self.mask;
            }
            self.slots[at] = Slot { id: element.id, sets: element.sets, weight: element.weight };
        }
    }

    /// What a set of this weight shares with the marked one: what that weighs in the set and in the
    /// marked one. `None` if one of the two is less than `least`.
    pub fn shared(&self, elements: &[MergedElement], weight: u64, least: u64) -> Option<[u64; 2]> {
        let (mut shared, mut rest) = ([0, 0], weight);
        for some in elements.chunks(AT_ONCE) {
            // Too little even if all elements that follow are shared.
            if shared[0] + rest < least {
                return None;
            }
            for element in some {
                let found = self.weight(element.id);
                // Without a branch: all bits, or none.
                shared[0] += u64::from(element.weight) & u64::from(found > 0).wrapping_neg();
                shared[1] += u64::from(found);
                rest -= u64::from(element.weight);
            }
        }
        (shared[0].min(shared[1]) >= least).then_some(shared)
    }

    /// The weight of an element in the marked set; 0 if that set lacks it.
    #[inline]
    fn weight(&self, id: u64) -> u32 {
        let (slots, mask) = (&self.slots[..=self.mask], self.mask);
        let mut at = id as usize & mask;
        let mut slot = slots[at];
        // One branch for both, which can be predicted: that on one of them alone could not.
        while (slot.id != id) & (slot.sets > 0) {
            at = (at + 1) & mask;
            slot = slots[at];
        }
        // An empty slot weighs nothing.
        slot.weight
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::{MarkedElements, MergedElement};

    /// Sets whose ids are close to each other, so that many fall on one slot.
    fn sets() -> impl Strategy<Value = Vec<BTreeMap<u64, u32>>> {
        prop::collection::vec(prop::collection::btree_map((0..40u64).prop_map(|id| id << 5), 1..9u32, 0..30), 1..5)
    }

    fn elements(set: &BTreeMap<u64, u32>) -> Vec<MergedElement> {
        set.iter().map(|(id, weight)| MergedElement { sets: 2, weight: *weight, id: *id }).collect()
    }

    proptest! {
        #[test]
        fn what_is_shared_with_a_marked_set_is_that_of_two_maps(all in sets(), least in 0..60u64) {
            let mut marks = MarkedElements::default();
            for a in &all {
                marks.mark(&elements(a));
                for b in &all {
                    let both: Vec<[u64; 2]> = b
                        .iter()
                        .filter_map(|(id, weight)| a.get(id).map(|of_a| [u64::from(*weight), u64::from(*of_a)]))
                        .collect();
                    let shared = [0, 1].map(|side| both.iter().map(|weights| weights[side]).sum::<u64>());
                    let expected = (shared[0].min(shared[1]) >= least).then_some(shared);
                    let weight = b.values().map(|weight| u64::from(*weight)).sum();
                    prop_assert_eq!(marks.shared(&elements(b), weight, least), expected);
                }
            }
        }
    }
}
