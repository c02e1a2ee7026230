//! What is known of own vectors: a few bits for each.

use std::ops::Range;

use crate::kernels::memory::huge;

/// Of every own vector, which of its supershingles are shared with another representative, and whether it is a duplicate.
#[derive(Default)]
pub struct Marks {
    bytes: Vec<u8>,
    /// Bytes of a vector.
    size: usize,
    /// Supershingles of a vector: the bit behind theirs tells a duplicate.
    width: usize,
}

impl Marks {
    /// No mark, of so many vectors of `width` supershingles each.
    pub fn new(vectors: usize, width: usize) -> Marks {
        let size = (width + 1).div_ceil(8);
        let mut bytes = vec![0; vectors * size];
        huge(&mut bytes);
        Marks { bytes, size, width }
    }

    /// How many vectors.
    pub fn len(&self) -> usize {
        self.bytes.len() / self.size.max(1)
    }

    /// Marks a supershingle of a vector as shared.
    #[inline]
    pub fn share(&mut self, vector: usize, column: usize) {
        self.set(vector, column);
    }

    /// Marks a vector as a duplicate.
    #[inline]
    pub fn set_duplicate(&mut self, vector: usize) {
        self.set(vector, self.width);
    }

    #[inline]
    fn set(&mut self, vector: usize, bit: usize) {
        self.bytes[vector * self.size + bit / 8] |= 1 << (bit % 8);
    }

    /// Whether a vector is a duplicate.
    #[inline]
    pub fn is_duplicate(&self, vector: usize) -> bool {
        self.bytes[vector * self.size + self.width / 8] >> (self.width % 8) & 1 == 1
    }

    /// Finds which of some vectors are no duplicates and have at least `least` shared supershingles. They are counted from
    /// the first of `vectors`, and take the place of what `found` held.
    pub fn representatives(&self, vectors: Range<usize>, least: usize, found: &mut Vec<u32>) {
        match least {
            0 => self.select(vectors, found, |_, is_duplicate| !is_duplicate),
            1 => self.select(vectors, found, |shared, is_duplicate| !is_duplicate & (shared != 0)),
            _ => self.select(vectors, found, |shared, is_duplicate| {
                // All but one of so many are taken away: fewer steps than to count them.
                !is_duplicate & ((1..least).fold(shared, |left, _| left & left.wrapping_sub(1)) != 0)
            }),
        }
    }

    /// As [`Marks::representatives`], which of some vectors are duplicates.
    pub fn duplicates(&self, vectors: Range<usize>, found: &mut Vec<u32>) {
        self.select(vectors, found, |_, is_duplicate| is_duplicate);
    }

    /// Finds vectors that are wanted by their shared supershingles and whether they are duplicates, which decides no
    /// branch.
    fn select(&self, vectors: Range<usize>, found: &mut Vec<u32>, wanted: impl Fn(u64, bool) -> bool) {
        found.resize(vectors.len(), 0);
        let mut count = 0;
        let mut note = |at, wanted| {
            found[count] = at;
            count += usize::from(wanted);
        };
        if self.size == 1 {
            let duplicate = 1 << self.width;
            for (at, byte) in (0..).zip(&self.bytes[vectors]) {
                note(at, wanted((byte & (duplicate - 1)).into(), byte & duplicate != 0));
            }
        } else {
            for (at, vector) in (0..).zip(vectors) {
                note(at, wanted(self.shared(vector), self.is_duplicate(vector)));
            }
        }
        found.truncate(count);
    }

    /// Which supershingles of a vector are shared, a bit for each.
    #[inline]
    pub fn shared(&self, vector: usize) -> u64 {
        let bytes = &self.bytes[vector * self.size..][..self.size];
        let bits = bytes.iter().rev().fold(0u128, |bits, byte| bits << 8 | u128::from(*byte));
        (bits & ((1 << self.width) - 1)) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::mix;

    #[test]
    fn marks_of_every_width_stay_apart() {
        for width in [1, 2, 6, 7, 8, 9, 15, 16, 63, 64] {
            let mut marks = Marks::new(50, width);
            let shared = |vector: usize| mix((vector + 100 * width) as u64) >> (64 - width);
            let is_duplicate = |vector: usize| mix(vector as u64) & 3 == 0;
            for vector in 0..50 {
                (0..width).filter(|bit| shared(vector) >> bit & 1 == 1).for_each(|bit| marks.share(vector, bit));
                if is_duplicate(vector) {
                    marks.set_duplicate(vector);
                }
            }
            assert_eq!(marks.len(), 50);
            for vector in 0..50 {
                assert_eq!(marks.shared(vector), shared(vector), "{width} wide");
                assert_eq!(marks.is_duplicate(vector), is_duplicate(vector), "{width} wide");
            }
            let mut found = vec![7; 3];
            for vectors in [0..50, 3..40, 9..9] {
                let check = |found: &[u32], wanted: &dyn Fn(usize) -> bool| {
                    let all = (0..).zip(vectors.clone()).filter(|(_, vector)| wanted(*vector));
                    assert!(all.map(|(at, _)| at).eq(found.iter().copied()), "{width} wide");
                };
                for least in 0..5 {
                    marks.representatives(vectors.clone(), least, &mut found);
                    check(&found, &|vector| !is_duplicate(vector) && shared(vector).count_ones() as usize >= least);
                }
                marks.duplicates(vectors.clone(), &mut found);
                check(&found, &is_duplicate);
            }
        }
    }
}
