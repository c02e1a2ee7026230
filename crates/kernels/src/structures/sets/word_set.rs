//! A set of 64-bit words that is filled and asked many times: a hash table that is reused.

/// A set of words, which are hashes already.
///
/// ```
/// use nigh_kernels::structures::WordSet;
///
/// let mut set = WordSet::default();
/// assert!(set.insert(7) && !set.insert(7) && set.insert(0));
/// assert_eq!(set.count_in(&[0, 1, 7, 8], 2), Some(2));
/// assert_eq!(set.count_in(&[0, 1, 7, 8], 3), None, "at most 2 of 4 are in it");
/// set.reset(1000);
/// assert_eq!(set.count_in(&[0, 7], 0), Some(0));
/// ```
#[derive(Debug, Default)]
pub struct WordSet {
    /// A power of two of slots, at least twice as many as words; 0 for none.
    slots: Vec<u64>,
    /// 64 less the number of bits of a slot's number.
    shift: u32,
    words: usize,
    /// Whether 0 is in the set, which no slot can say.
    has_zero: bool,
}

/// Words that are looked up between two checks of whether enough of them can be in the set.
const AT_ONCE: usize = 64;

impl WordSet {
    /// Removes all words, and makes room for so many.
    pub fn reset(&mut self, words: usize) {
        let slots = (2 * words.max(8)).next_power_of_two();
        self.slots.clear();
        self.slots.resize(slots, 0);
        self.shift = 64 - slots.trailing_zeros();
        (self.words, self.has_zero) = (0, false);
    }

    /// Adds a word; returns whether it is new.
    #[inline]
    pub fn insert(&mut self, word: u64) -> bool {
        if word == 0 {
            return !std::mem::replace(&mut self.has_zero, true);
        }
        if 2 * self.words >= self.slots.len() {
            self.grow();
        }
        let mut at = self.first_slot(word);
        loop {
            match self.slots[at] {
                0 => break,
                other if other == word => return false,
                _ => at = (at + 1) & (self.slots.len() - 1),
            }
        }
        self.slots[at] = word;
        self.words += 1;
        true
    }

    #[cold]
    fn grow(&mut self) {
        let (old, has_zero) = (std::mem::take(&mut self.slots), self.has_zero);
        self.reset(old.len().max(8));
        self.has_zero = has_zero;
        for word in old.into_iter().filter(|word| *word != 0) {
            self.insert(word);
        }
    }

    #[inline]
    fn first_slot(&self, word: u64) -> usize {
        (word.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> self.shift) as usize
    }

    /// Whether a word is in the set.
    #[inline]
    fn has(&self, word: u64) -> bool {
        if word == 0 {
            return self.has_zero;
        }
        let mut at = self.first_slot(word);
        loop {
            match self.slots[at] {
                0 => return false,
                other if other == word => return true,
                _ => at = (at + 1) & (self.slots.len() - 1),
            }
        }
    }

    /// How many of the words, which are distinct, are in the set; `None` if these are fewer than
    /// `least`, which is noticed early.
    pub fn count_in(&self, words: &[u64], least: usize) -> Option<usize> {
        if self.slots.is_empty() {
            return (least == 0).then_some(0);
        }
        let (mut count, mut left) = (0, words.len());
        for some in words.chunks(AT_ONCE) {
            count += some.iter().filter(|word| self.has(**word)).count();
            left -= some.len();
            if count + left < least {
                return None;
            }
        }
        Some(count)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::records::mix;

    #[test]
    fn a_set_has_the_words_that_were_added() {
        let mut set = WordSet::default();
        for round in 0..40 {
            set.reset(round as usize % 5);
            // Some words differ in their low bits only, some in their high bits only.
            let word = |n: u64| [mix(n), n % 50, (n % 50) << 58][(n % 3) as usize];
            let all: Vec<u64> = (0..round * 20).map(|n| word(n + round)).collect();
            let mut twin = BTreeSet::new();
            for word in &all {
                assert_eq!(set.insert(*word), twin.insert(*word));
            }
            let asked: BTreeSet<u64> = (0..500).map(word).collect();
            let asked: Vec<u64> = asked.into_iter().collect();
            let wanted = asked.iter().filter(|word| twin.contains(word)).count();
            assert_eq!(set.count_in(&asked, 0), Some(wanted));
            assert_eq!(set.count_in(&asked, wanted), Some(wanted));
            assert_eq!(set.count_in(&asked, wanted + 1), None);
        }
    }
}
