//! A rank bitmap: a set of numbers that returns the rank of a number in constant time.
//!
//! The rank of a number is how many smaller numbers are in the set: its position in the ascending
//! list of them. A word has the bits of 64 numbers, beside the count of all bits before it; a
//! lookup costs one memory access.

use crate::kernels::memory::{advise_huge_pages, preload};

/// A subset of the numbers `0..n`, with ranks: 16 bytes for each 64 numbers.
///
/// ```
/// use nigh_kernels::structures::RankBitmap;
///
/// let ranks = RankBitmap::new(100, [2, 70].into_iter());
/// assert_eq!(ranks.get(70), (true, 1)); // in the set, after one other
/// assert_eq!(ranks.get(71), (false, 2));
/// ```
pub struct RankBitmap {
    /// The bits of 64 numbers, and how many bits are set before them.
    words: Vec<(u64, u32)>,
}

impl RankBitmap {
    /// The set of `members` among the numbers `0..numbers`.
    pub fn new(numbers: usize, members: impl Iterator<Item = u32>) -> RankBitmap {
        let mut words = vec![(0u64, 0); numbers.div_ceil(64)];
        advise_huge_pages(&mut words);
        members.for_each(|number| words[number as usize / 64].0 |= 1 << (number % 64));
        RankBitmap { words }.counted()
    }

    /// The set of the numbers whose bits are set; each word has the bits of 64 numbers.
    pub fn of_bits(bits: &[u64]) -> RankBitmap {
        let mut words = Vec::with_capacity(bits.len());
        advise_huge_pages(words.spare_capacity_mut());
        words.extend(bits.iter().map(|word| (*word, 0)));
        RankBitmap { words }.counted()
    }

    /// Counts the bits before each word.
    fn counted(mut self) -> RankBitmap {
        let mut before = 0;
        for (word, count) in &mut self.words {
            *count = before;
            before += word.count_ones();
        }
        self
    }

    /// How many numbers are in the set.
    pub fn count(&self) -> usize {
        self.words.last().map_or(0, |(word, before)| *before as usize + word.count_ones() as usize)
    }

    /// Whether a number is in the set, and how many smaller numbers are.
    #[inline]
    pub fn get(&self, number: usize) -> (bool, usize) {
        let (word, before) = self.words[number / 64];
        let bit = 1 << (number % 64);
        (word & bit != 0, before as usize + (word & (bit - 1)).count_ones() as usize)
    }

    /// Does [`RankBitmap::get`] for several numbers; their words are loaded from memory in
    /// parallel.
    #[inline]
    pub fn get_all(&self, numbers: impl Iterator<Item = usize> + Clone, ranks: &mut [(bool, usize)]) {
        preload(numbers.clone().map(|number| self.words[number / 64].0));
        ranks.iter_mut().zip(numbers).for_each(|(rank, number)| *rank = self.get(number));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_those_of_the_list() {
        for step in [1, 3, 64, 65, 1000] {
            let members: Vec<u32> = (step as u32 / 2..500).step_by(step).collect();
            let ranks = RankBitmap::new(500, members.iter().copied());
            let mut bits = [0; 500usize.div_ceil(64)];
            members.iter().for_each(|number| bits[*number as usize / 64] |= 1 << (number % 64));
            let of_bits = RankBitmap::of_bits(&bits);
            assert_eq!((ranks.count(), of_bits.count()), (members.len(), members.len()));
            assert!((0..500).all(|number| of_bits.get(number) == ranks.get(number)), "every {step}");
            let mut all = vec![(false, 0); 500];
            ranks.get_all(0..500, &mut all);
            for (number, of_all) in all.into_iter().enumerate() {
                let before = members.partition_point(|other| (*other as usize) < number);
                assert_eq!(ranks.get(number), (members.contains(&(number as u32)), before), "{number}, every {step}");
                assert_eq!(ranks.get(number), of_all);
            }
        }
    }
}
