//! What is known of own vectors: a few bits for each.

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

    /// Whether a vector is no duplicate, and at least so many of its supershingles are shared. Neither decides
    /// a branch.
    #[inline]
    pub fn is_representative(&self, vector: usize, least: u32) -> bool {
        !self.is_duplicate(vector) & (least == 0 || self.shared(vector).count_ones() >= least)
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
                for least in 0..4 {
                    let wanted = !is_duplicate(vector) && shared(vector).count_ones() >= least;
                    assert_eq!(marks.is_representative(vector, least), wanted, "{width} wide");
                }
            }
        }
    }
}
