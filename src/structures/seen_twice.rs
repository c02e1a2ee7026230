//! Which values occur more than once, nearly exactly, in a small table.
//!
//! Two bits a slot, *seen* and *seen again*, side by side so that a value costs one access. Two values may share
//! a slot: a value that occurs once is then taken for one that occurs twice, never the other way round.

/// Slots for each expected value, in the mean of tables, whose sizes are powers of two: one in 21 to 43 values that occur
/// once is taken for another.
const SLOTS_PER_VALUE: usize = 32;
/// The smallest and the largest table, in words of 32 slots: 32 bytes, and 4 MiB.
const WORDS: (usize, usize) = (4, 1 << 19);

/// The table.
pub struct Counters {
    words: Vec<u64>,
    shift: u32,
}

impl Default for Counters {
    fn default() -> Counters {
        let mut counters = Counters { words: Vec::new(), shift: 0 };
        counters.clear(0);
        counters
    }
}

impl Counters {
    /// Empties the table, for about so many values.
    pub fn clear(&mut self, values: usize) {
        // The nearest power of two, not the next: tables of 2 MiB instead of 1 cost the collapse a tenth more, or a quarter.
        let wanted = values * SLOTS_PER_VALUE / 32;
        let above = wanted.next_power_of_two();
        let words = if wanted < above - above / 4 { above / 2 } else { above }.clamp(WORDS.0, WORDS.1);
        self.words.clear();
        self.words.resize(words, 0);
        self.shift = 32 - (words * 32).trailing_zeros();
    }

    /// Counts a value by its hash, of which the high bits are used.
    #[inline]
    pub fn add(&mut self, hash: u32) {
        let slot = hash >> self.shift;
        let word = &mut self.words[(slot >> 5) as usize];
        let seen = 1 << ((slot & 31) * 2);
        *word |= (*word & seen) << 1 | seen;
    }

    /// Whether a value was counted at least twice.
    #[inline]
    pub fn again(&self, hash: u32) -> bool {
        let slot = hash >> self.shift;
        self.words[(slot >> 5) as usize] >> ((slot & 31) * 2 + 1) & 1 == 1
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_occurs_twice_is_never_missed(values in prop::collection::vec(0u32..50, 0..100), expected in 0usize..200) {
            let hash = |value: u32| value.wrapping_mul(0x9E37_79B9);
            let mut counters = Counters::default();
            counters.add(7);
            counters.clear(expected);
            let mut counts = BTreeMap::new();
            for value in &values {
                counters.add(hash(*value));
                *counts.entry(*value).or_insert(0) += 1;
            }
            for (value, count) in counts {
                prop_assert!(count < 2 || counters.again(hash(value)));
            }
        }
    }

    #[test]
    fn few_values_are_mistaken() {
        let mut counters = Counters::default();
        let hash = |value: u32| crate::records::mix(u64::from(value)) as u32;
        counters.clear(1 << 16);
        (0..1 << 16).for_each(|value| counters.add(hash(value)));
        let mistaken = (0..1 << 16).filter(|value| counters.again(hash(*value))).count();
        assert!((1000..3000).contains(&mistaken), "{mistaken} of 65536, about one in 32 expected");
    }

    #[test]
    fn no_table_is_much_larger_or_smaller_than_is_asked_for() {
        let mut counters = Counters::default();
        for values in (WORDS.0..WORDS.1).step_by(997) {
            counters.clear(values);
            let slots = 32 * counters.words.len() / values;
            assert!((21..=43).contains(&slots), "{slots} slots for each of {values} values");
        }
        counters.clear(100 * WORDS.1);
        assert_eq!(counters.words.len(), WORDS.1);
    }
}
