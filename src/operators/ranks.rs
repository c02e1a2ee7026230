//! Where numbers stand in an ascending list of some of them.

use crate::kernels::memory::huge;

/// Ranks of some numbers in their ascending list, found in one step: a bit for each number, and the count before each
/// word.
pub struct Ranks {
    words: Vec<(u64, u32)>,
}

impl Ranks {
    /// The ranks of `some` of so many numbers.
    pub fn new(numbers: usize, some: impl Iterator<Item = u32>) -> Ranks {
        let mut words = vec![(0u64, 0); numbers.div_ceil(64)];
        huge(&mut words);
        some.for_each(|number| words[number as usize / 64].0 |= 1 << (number % 64));
        let mut before = 0;
        for (word, count) in &mut words {
            *count = before;
            before += word.count_ones();
        }
        Ranks { words }
    }

    /// Whether a number is in the list, and how many before it are.
    #[inline]
    pub fn get(&self, number: usize) -> (bool, usize) {
        let (word, before) = self.words[number / 64];
        let bit = 1 << (number % 64);
        (word & bit != 0, before as usize + (word & (bit - 1)).count_ones() as usize)
    }

    /// As [`Ranks::get`], for some numbers, whose words are fetched from memory side by side.
    #[inline]
    pub fn get_all(&self, numbers: impl Iterator<Item = usize> + Clone, ranks: &mut [(bool, usize)]) {
        std::hint::black_box(numbers.clone().fold(0, |sum, number| sum ^ self.words[number / 64].0));
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
            let ranks = Ranks::new(500, some.iter().copied());
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
