//! Values that occur at least twice, nearly exactly, in a small table of counters that saturate at
//! two.
//!
//! A slot has two adjacent bits, *seen* and *seen again*, so that a value costs one memory access.
//! Morally it does this:
//!
//! ```text
//! add(hash):    counts[slot(hash)] += 1
//! again(hash):  counts[slot(hash)] >= 2
//! ```
//!
//! Two values may share a slot. A value that occurs once may then pass for one that occurs twice,
//! never the other way round.

/// Slots for each expected value, on average: sizes of tables are powers of two. One in 21 to 43
/// values that occur once passes for a value that occurs twice.
const SLOTS_PER_VALUE: usize = 32;
/// The smallest table, in words of 32 slots: 32 bytes.
const LEAST_WORDS: usize = 4;
/// The largest table, in words of 32 slots: 4 MiB.
const MOST_WORDS: usize = 1 << 19;

/// A table of two-bit counters.
///
/// ```
/// use nigh_kernels::{records::mix, structures::Counters};
///
/// let mut counters = Counters::default();
/// counters.clear(3);
/// let hash = |value| (mix(value) >> 32) as u32;
/// for value in [7, 8, 7] {
///     counters.add(hash(value));
/// }
/// assert!(counters.again(hash(7)));
/// ```
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
    /// Empties the table, and sizes it for about `values` values.
    pub fn clear(&mut self, values: usize) {
        // The nearest power of two, not the next one: with tables of 2 MiB instead of 1, the
        // collapse took a tenth to a quarter longer.
        let wanted = values * SLOTS_PER_VALUE / 32;
        let above = wanted.next_power_of_two();
        let words = if wanted < above - above / 4 { above / 2 } else { above }.clamp(LEAST_WORDS, MOST_WORDS);
        self.resize(words);
    }

    /// Empties the table, and gives it 2^`bits` slots: at least 2^7, at most 2^24.
    pub fn clear_to(&mut self, bits: u32) {
        self.resize((1usize << bits.min(31)).div_ceil(32).clamp(LEAST_WORDS, MOST_WORDS));
    }

    /// Empties the table, and gives it so many words, a power of two.
    fn resize(&mut self, words: usize) {
        self.words.clear();
        self.words.resize(words, 0);
        self.shift = 32 - (words * 32).trailing_zeros();
    }

    /// Counts a value by its hash; only the high bits are used.
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
        fn a_value_that_occurs_twice_is_never_missed(values in prop::collection::vec(0u32..50, 0..100), expected in 0usize..200) {
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
    fn few_values_that_occur_once_pass() {
        let mut counters = Counters::default();
        let hash = |value: u32| crate::records::mix(u64::from(value)) as u32;
        counters.clear(1 << 16);
        (0..1 << 16).for_each(|value| counters.add(hash(value)));
        let mistaken = (0..1 << 16).filter(|value| counters.again(hash(*value))).count();
        assert!((1000..3000).contains(&mistaken), "{mistaken} of 65536, about one in 32 expected");
    }

    #[test]
    fn every_table_is_near_the_size_it_was_cleared_for() {
        let mut counters = Counters::default();
        for values in (LEAST_WORDS..MOST_WORDS).step_by(997) {
            counters.clear(values);
            let slots = 32 * counters.words.len() / values;
            assert!((21..=43).contains(&slots), "{slots} slots for each of {values} values");
        }
        counters.clear(100 * MOST_WORDS);
        assert_eq!(counters.words.len(), MOST_WORDS);
    }
}
