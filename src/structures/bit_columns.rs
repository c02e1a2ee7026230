//! What is known of own vectors: a few bits for each.

use std::ops::Range;

use crate::kernels::memory::advise_huge_pages;

/// Of every own vector, which of its supershingles are shared with another representative, and whether it is a duplicate.
///
/// Column by column, a bit for each vector: owners hear of vectors in nearly any order, of one column at a time (and of
/// duplicates), and its bits, 19 MB for 150 million vectors, are an eighth of what a byte for each vector would be.
#[derive(Clone, Default)]
pub struct BitColumns {
    /// For each supershingle, and at last for duplicates: bits of 64 vectors each.
    columns: Vec<Vec<u64>>,
    vectors: usize,
}

impl BitColumns {
    /// No mark, of so many vectors of `width` supershingles each.
    pub fn new(vectors: usize, width: usize) -> BitColumns {
        let column = |_| {
            let mut words = vec![0; vectors.div_ceil(64)];
            advise_huge_pages(&mut words);
            words
        };
        BitColumns { columns: (0..=width).map(column).collect(), vectors }
    }

    /// How many vectors.
    pub(crate) fn len(&self) -> usize {
        self.vectors
    }

    /// The columns of supershingles, and that of duplicates.
    fn parts(&self) -> (&[Vec<u64>], &[u64]) {
        self.columns.split_last().map_or((&[], &[]), |(duplicates, shared)| (shared, duplicates))
    }

    /// Marks a supershingle of some vectors as shared.
    pub fn share(&mut self, column: usize, vectors: impl Iterator<Item = u32>) {
        let words = &mut self.columns[column];
        vectors.for_each(|vector| words[vector as usize / 64] |= 1 << (vector % 64));
    }

    /// Marks some vectors as duplicates.
    pub fn set_duplicates(&mut self, vectors: impl Iterator<Item = u32>) {
        self.share(self.columns.len() - 1, vectors);
    }

    /// Whether vectors are duplicates: words with the bits of 64 vectors each.
    pub fn duplicate_bits(&self) -> &[u64] {
        self.parts().1
    }

    /// The duplicates, ascending.
    pub fn duplicates(&self) -> Vec<u32> {
        let bits = self.duplicate_bits();
        let mut duplicates = Vec::with_capacity(bits.iter().map(|word| word.count_ones() as usize).sum());
        advise_huge_pages(duplicates.spare_capacity_mut());
        for_each(0..self.vectors, |word| bits[word], |vector| duplicates.push(vector as u32));
        duplicates
    }

    /// Calls `each`, in ascending order, with those of some vectors that are no duplicates and have at least `least` shared
    /// supershingles.
    pub fn representatives(&self, vectors: Range<usize>, least: usize, each: impl FnMut(usize)) {
        for_each(vectors, self.wanted(least), each);
    }

    /// How many vectors are no duplicates and have at least `least` shared supershingles.
    pub fn count(&self, least: usize) -> usize {
        let mut count = 0;
        for_each_word(0..self.vectors, self.wanted(least), |_, bits| count += bits.count_ones() as usize);
        count
    }

    /// Which vectors are no duplicates and have at least `least` shared supershingles, by words of 64.
    fn wanted(&self, least: usize) -> impl FnMut(usize) -> u64 {
        let (shared, duplicates) = self.parts();
        // For each number of shared supershingles up to `least`: which of 64 vectors have as many.
        let mut enough = vec![!0; least + 1];
        move |word: usize| {
            enough[1..].fill(0);
            for column in shared {
                for number in (1..=least).rev() {
                    enough[number] |= enough[number - 1] & column[word];
                }
            }
            enough[least] & !duplicates[word]
        }
    }

    /// Which supershingles of a vector are shared, a bit for each.
    #[inline]
    pub fn shared(&self, vector: usize) -> u64 {
        let bit = |column: &Vec<u64>| column[vector / 64] >> (vector % 64) & 1;
        (0..).zip(self.parts().0).fold(0, |mask, (at, column)| mask | bit(column) << at)
    }
}

/// Calls `each` with those of some vectors that have a bit, given words with the bits of 64 vectors each.
#[inline]
fn for_each(vectors: Range<usize>, word: impl FnMut(usize) -> u64, mut each: impl FnMut(usize)) {
    for_each_word(vectors, word, |first, mut bits| {
        while bits != 0 {
            each(first + bits.trailing_zeros() as usize);
            bits &= bits - 1;
        }
    });
}

/// Calls `each` with the bits of 64 vectors at a time, and the first of these; bits of others than `vectors` are none.
#[inline]
fn for_each_word(vectors: Range<usize>, mut word: impl FnMut(usize) -> u64, mut each: impl FnMut(usize, u64)) {
    for at in vectors.start / 64..vectors.end.div_ceil(64) {
        let first = at * 64;
        let (skipped, end) = (vectors.start.saturating_sub(first), (vectors.end - first).min(64));
        each(first, word(at) & !0 << skipped & !0 >> (64 - end));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::mix;

    #[test]
    fn marks_of_every_width_stay_apart() {
        const VECTORS: usize = 200;
        for width in [1, 2, 6, 7, 8, 9, 15, 16, 63, 64] {
            let mut marks = BitColumns::new(VECTORS, width);
            let shared = |vector: usize| mix((vector + 1000 * width) as u64) >> (64 - width);
            let is_duplicate = |vector: usize| mix(vector as u64) & 3 == 0;
            for column in 0..width {
                marks.share(column, (0..VECTORS as u32).filter(|vector| shared(*vector as usize) >> column & 1 == 1));
            }
            marks.set_duplicates((0..VECTORS as u32).filter(|vector| is_duplicate(*vector as usize)));
            assert_eq!(marks.len(), VECTORS);
            assert!((0..VECTORS).all(|vector| marks.shared(vector) == shared(vector)), "{width} wide");
            let duplicates = marks.duplicates().into_iter().map(|vector| vector as usize);
            assert!((0..VECTORS).filter(|vector| is_duplicate(*vector)).eq(duplicates), "{width} wide");
            for vectors in [0..VECTORS, 3..40, 9..9, 64..64, 60..70, 64..128, 100..VECTORS] {
                for least in 0..5 {
                    let mut found = Vec::new();
                    marks.representatives(vectors.clone(), least, |vector| found.push(vector));
                    let is_wanted = |vector| shared(vector).count_ones() as usize >= least && !is_duplicate(vector);
                    assert_eq!(marks.count(least), (0..VECTORS).filter(|vector| is_wanted(*vector)).count());
                    let wanted = vectors.clone().filter(|vector| is_wanted(*vector));
                    assert!(wanted.eq(found), "{width} wide, at least {least} of {vectors:?}");
                }
            }
        }
    }
}
