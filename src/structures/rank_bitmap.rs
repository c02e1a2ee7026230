//! Where numbers stand in an ascending list of some of them.

use crate::kernels::memory::{advise_huge_pages, preload};

/// Ranks of some numbers in their ascending list, found in one step: a bit for each number, and the count before each
/// word.
pub struct RankBitmap {
    words: Vec<(u64, u32)>,
}

impl RankBitmap {
    /// The ranks of `some` of so many numbers.
    pub fn new(numbers: usize, some: impl Iterator<Item = u32>) -> RankBitmap {
        let mut words = vec![(0u64, 0); numbers.div_ceil(64)];
        advise_huge_pages(&mut words);
        some.for_each(|number| words[number as usize / 64].0 |= 1 << (number % 64));
        RankBitmap { words }.counted()
    }

    /// The ranks of the numbers that have a bit, given words with the bits of 64 numbers each.
    pub fn of_bits(bits: &[u64]) -> RankBitmap {
        let mut words = Vec::with_capacity(bits.len());
        advise_huge_pages(words.spare_capacity_mut());
        words.extend(bits.iter().map(|word| (*word, 0)));
        RankBitmap { words }.counted()
    }

    fn counted(mut self) -> RankBitmap {
        let mut before = 0;
        for (word, count) in &mut self.words {
            *count = before;
            before += word.count_ones();
        }
        self
    }

    /// How many numbers are in the list.
    pub(crate) fn len(&self) -> usize {
        self.words.last().map_or(0, |(word, before)| *before as usize + word.count_ones() as usize)
    }

    /// Whether a number is in the list, and how many before it are.
    #[inline]
    pub fn get(&self, number: usize) -> (bool, usize) {
        let (word, before) = self.words[number / 64];
        let bit = 1 << (number % 64);
        (word & bit != 0, before as usize + (word & (bit - 1)).count_ones() as usize)
    }

    /// As [`RankBitmap::get`], for some numbers, whose words are fetched from memory side by side.
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
            let some: Vec<u32> = (step as u32 / 2..500).step_by(step).collect();
            let ranks = RankBitmap::new(500, some.iter().copied());
            let mut bits = [0; 500usize.div_ceil(64)];
            some.iter().for_each(|number| bits[*number as usize / 64] |= 1 << (number % 64));
            let of_bits = RankBitmap::of_bits(&bits);
            assert_eq!((ranks.len(), of_bits.len()), (some.len(), some.len()));
            assert!((0..500).all(|number| of_bits.get(number) == ranks.get(number)), "every {step}");
            let mut all = vec![(false, 0); 500];
            ranks.get_all(0..500, &mut all);
            for (number, of_all) in all.into_iter().enumerate() {
                let before = some.partition_point(|other| (*other as usize) < number);
                assert_eq!(ranks.get(number), (some.contains(&(number as u32)), before), "{number}, every {step}");
                assert_eq!(ranks.get(number), of_all);
            }
        }
    }
}
