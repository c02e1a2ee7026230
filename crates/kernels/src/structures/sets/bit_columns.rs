//! Bit columns: a few bits for each vector that a worker owns, column by column.
//!
//! Collapse and prune set the bits of one column at a time, for vectors in nearly any order. A
//! column of 150 million vectors takes 19 MB, an eighth of an array with a byte for each vector.

use std::ops::Range;

use crate::kernels::memory::advise_huge_pages;

/// For each vector of a worker: which of its supershingles another representative shares, and
/// whether it is a duplicate.
///
/// A vector is known by its number, from 0. A column has one bit for each vector.
///
/// ```
/// use nigh_kernels::structures::BitColumns;
///
/// let mut marks = BitColumns::new(100, 6);
/// marks.share(0, [3, 70].into_iter());
/// marks.share(5, [3, 71].into_iter());
/// marks.set_duplicates([70].into_iter());
/// assert_eq!(marks.shared(3), 0b100001);
/// assert_eq!((marks.count(1), marks.count(2)), (2, 1));
/// ```
#[derive(Clone, Default)]
pub struct BitColumns {
    /// A column for each supershingle and, last, the column of duplicates; a word has the bits of
    /// 64 vectors.
    columns: Vec<Vec<u64>>,
    vectors: usize,
}

impl BitColumns {
    /// Columns for `vectors` vectors of `width` supershingles each, without a bit set.
    pub fn new(vectors: usize, width: usize) -> BitColumns {
        let column = |_| {
            let mut words = vec![0; vectors.div_ceil(64)];
            advise_huge_pages(&mut words);
            words
        };
        BitColumns { columns: (0..=width).map(column).collect(), vectors }
    }

    /// The number of vectors.
    pub fn vectors(&self) -> usize {
        self.vectors
    }

    /// The columns of supershingles, and the column of duplicates.
    fn shared_and_duplicates(&self) -> (&[Vec<u64>], &[u64]) {
        self.columns.split_last().map_or((&[], &[]), |(duplicates, shared)| (shared, duplicates))
    }

    /// Marks supershingle number `column` of some vectors as shared.
    pub fn share(&mut self, column: usize, vectors: impl Iterator<Item = u32>) {
        let words = &mut self.columns[column];
        vectors.for_each(|vector| words[vector as usize / 64] |= 1 << (vector % 64));
    }

    /// Marks some vectors as duplicates.
    pub fn set_duplicates(&mut self, vectors: impl Iterator<Item = u32>) {
        self.share(self.columns.len() - 1, vectors);
    }

    /// The column of duplicates: each word has the bits of 64 vectors.
    pub fn duplicate_bits(&self) -> &[u64] {
        self.shared_and_duplicates().1
    }

    /// The numbers of the duplicates, ascending.
    pub fn duplicates(&self) -> Vec<u32> {
        let bits = self.duplicate_bits();
        let mut duplicates = Vec::with_capacity(bits.iter().map(|word| word.count_ones() as usize).sum());
        advise_huge_pages(duplicates.spare_capacity_mut());
        for_each(0..self.vectors, |word| bits[word], |vector| duplicates.push(vector as u32));
        duplicates
    }

    /// Calls `each` with every vector of a range that is not a duplicate and has at least `least`
    /// shared supershingles, in ascending order.
    pub fn representatives(&self, vectors: Range<usize>, least: usize, each: impl FnMut(usize)) {
        for_each(vectors, self.representative_bits(least), each);
    }

    /// The number of vectors that are not duplicates and have at least `least` shared
    /// supershingles.
    pub fn count(&self, least: usize) -> usize {
        let mut count = 0;
        for_each_word(0..self.vectors, self.representative_bits(least), |_, bits| count += bits.count_ones() as usize);
        count
    }

    /// Computes the bits of 64 vectors at a time: 1 for each vector that is not a duplicate and has
    /// at least `least` shared supershingles. Morally, for one vector:
    ///
    /// ```text
    /// !duplicate[vector] && columns.filter(|column| column[vector]).count() >= least
    /// ```
    fn representative_bits(&self, least: usize) -> impl FnMut(usize) -> u64 {
        let (shared, duplicates) = self.shared_and_duplicates();
        // Bit v of `at_least[n]`: vector v has at least n shared supershingles among the columns so
        // far.
        let mut at_least = vec![!0; least + 1];
        move |word: usize| {
            at_least[1..].fill(0);
            for column in shared {
                for number in (1..=least).rev() {
                    at_least[number] |= at_least[number - 1] & column[word];
                }
            }
            at_least[least] & !duplicates[word]
        }
    }

    /// Which supershingles of a vector are shared: bit `column` of the result.
    #[inline]
    pub fn shared(&self, vector: usize) -> u64 {
        let bit = |column: &Vec<u64>| column[vector / 64] >> (vector % 64) & 1;
        (0..).zip(self.shared_and_duplicates().0).fold(0, |mask, (number, column)| mask | bit(column) << number)
    }
}

/// Calls `each` with every vector of a range whose bit is set; `word` returns the bits of 64
/// vectors.
#[inline]
fn for_each(vectors: Range<usize>, word: impl FnMut(usize) -> u64, mut each: impl FnMut(usize)) {
    for_each_word(vectors, word, |first, mut bits| {
        while bits != 0 {
            each(first + bits.trailing_zeros() as usize);
            bits &= bits - 1;
        }
    });
}

/// Calls `each` with the number of the first of 64 vectors, and their bits; the bits of vectors
/// outside the range are 0.
#[inline]
fn for_each_word(vectors: Range<usize>, mut word: impl FnMut(usize) -> u64, mut each: impl FnMut(usize, u64)) {
    for number in vectors.start / 64..vectors.end.div_ceil(64) {
        let first = number * 64;
        let (skipped, end) = (vectors.start.saturating_sub(first), (vectors.end - first).min(64));
        each(first, word(number) & !0 << skipped & !0 >> (64 - end));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::mix;

    #[test]
    fn columns_of_every_width_are_independent() {
        const VECTORS: usize = 200;
        for width in [1, 2, 6, 7, 8, 9, 15, 16, 63, 64] {
            let mut marks = BitColumns::new(VECTORS, width);
            let shared = |vector: usize| mix((vector + 1000 * width) as u64) >> (64 - width);
            let is_duplicate = |vector: usize| mix(vector as u64) & 3 == 0;
            for column in 0..width {
                marks.share(column, (0..VECTORS as u32).filter(|vector| shared(*vector as usize) >> column & 1 == 1));
            }
            marks.set_duplicates((0..VECTORS as u32).filter(|vector| is_duplicate(*vector as usize)));
            assert_eq!(marks.vectors(), VECTORS);
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
