//! A hash table of numbers, whose keys are what the numbers stand for and are kept elsewhere.
//!
//! Four bytes a slot, at most three of four slots used, linear probing. A number is removed by
//! moving later ones of its run back, so that no marks of removed numbers stay. The caller gives
//! hashes and comparisons.

/// A slot without a number.
const EMPTY: u32 = u32::MAX;

/// A hash table of numbers below `u32::MAX`.
#[derive(Default)]
pub(in crate::live::engine) struct IdTable {
    /// A power of two of them, or none.
    slots: Vec<u32>,
    used: usize,
}

impl IdTable {
    /// The number with this hash that `is_wanted` accepts.
    pub(in crate::live::engine) fn find(&self, hash: u64, is_wanted: impl Fn(u32) -> bool) -> Option<u32> {
        self.place(hash, is_wanted).map(|place| self.slots[place])
    }

    /// Adds a number that is not in the table. `hash_of` is the hash of any number in it.
    pub(in crate::live::engine) fn insert(&mut self, hash: u64, id: u32, hash_of: impl Fn(u32) -> u64) {
        if (self.used + 1) * 4 > self.slots.len() * 3 {
            self.resize((self.slots.len() * 2).max(8), hash_of);
        }
        self.put(hash, id);
        self.used += 1;
    }

    /// Makes room for more numbers. `hash_of` is the hash of any number in the table.
    pub(in crate::live::engine) fn reserve(&mut self, more: usize, hash_of: impl Fn(u32) -> u64) {
        let wanted = ((self.used + more) * 4).div_ceil(3).next_power_of_two();
        if wanted > self.slots.len().max(8) {
            self.resize(wanted, hash_of);
        }
    }

    /// Puts another number with the same hash into the place of one.
    pub(in crate::live::engine) fn replace(&mut self, hash: u64, before: u32, after: u32) {
        let place = self.place(hash, |id| id == before).expect("the number is in the table");
        self.slots[place] = after;
    }

    /// Removes a number that is in the table. `hash_of` is the hash of any number in it.
    pub(in crate::live::engine) fn remove(&mut self, hash: u64, id: u32, hash_of: impl Fn(u32) -> u64) {
        let mut hole = self.place(hash, |other| other == id).expect("the number is in the table");
        let mask = self.slots.len() - 1;
        let mut at = hole;
        loop {
            at = (at + 1) & mask;
            if self.slots[at] == EMPTY {
                break;
            }
            // The number at `at` may move into the hole if its first place is not between the two.
            let first = hash_of(self.slots[at]) as usize & mask;
            if at.wrapping_sub(first) & mask >= at.wrapping_sub(hole) & mask {
                self.slots[hole] = self.slots[at];
                hole = at;
            }
        }
        self.slots[hole] = EMPTY;
        self.used -= 1;
    }

    /// Puts all numbers into a table of this many slots.
    fn resize(&mut self, slots: usize, hash_of: impl Fn(u32) -> u64) {
        let before = std::mem::replace(&mut self.slots, vec![EMPTY; slots]);
        before.into_iter().filter(|id| *id != EMPTY).for_each(|id| self.put(hash_of(id), id));
    }

    fn place(&self, hash: u64, is_wanted: impl Fn(u32) -> bool) -> Option<usize> {
        let mask = self.slots.len().checked_sub(1)?;
        let mut place = hash as usize & mask;
        while self.slots[place] != EMPTY {
            if is_wanted(self.slots[place]) {
                return Some(place);
            }
            place = (place + 1) & mask;
        }
        None
    }

    fn put(&mut self, hash: u64, id: u32) {
        let mask = self.slots.len() - 1;
        let mut place = hash as usize & mask;
        while self.slots[place] != EMPTY {
            place = (place + 1) & mask;
        }
        self.slots[place] = id;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::records::mix;

    #[test]
    fn a_table_has_what_a_set_has() {
        // Few hashes, so that runs are long and pass the end of the slots.
        for hashes in [3, 50, u64::MAX] {
            let hash_of = |id: u32| mix(u64::from(id)) % hashes;
            let (mut table, mut set) = (IdTable::default(), BTreeSet::new());
            for step in 0..4000u64 {
                let id = (mix(step ^ hashes) % 200) as u32;
                if set.insert(id) {
                    table.insert(hash_of(id), id, hash_of);
                } else if step % 3 > 0 {
                    set.remove(&id);
                    table.remove(hash_of(id), id, hash_of);
                }
                let other = (mix(step) % 200) as u32;
                assert_eq!(table.find(hash_of(other), |id| id == other).is_some(), set.contains(&other), "{step}");
            }
        }
    }

    #[test]
    fn a_number_takes_the_place_of_another() {
        let mut table = IdTable::default();
        table.insert(7, 1, |_| 7);
        table.replace(7, 1, 2);
        assert_eq!((table.find(7, |id| id == 1), table.find(7, |id| id == 2)), (None, Some(2)));
    }
}
