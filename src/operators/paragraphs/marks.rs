//! Marks of pages: some bits for each page, as many as are needed.

/// The marks of the own pages of a worker, by their numbers: 1, 2, 4, 8, 16 or 32 bits for each.
#[derive(Clone, Debug)]
pub(super) struct Marks {
    /// The bits of a page are 1 << `shift`.
    shift: u32,
    words: Vec<u64>,
}

impl Marks {
    /// No marks: `bits` for each of `pages`, at most 32.
    pub fn new(pages: usize, bits: usize) -> Marks {
        let shift = bits.max(1).next_power_of_two().ilog2();
        Marks { shift, words: vec![0; (pages << shift).div_ceil(64)] }
    }

    /// The bits of each page.
    pub fn bits(&self) -> usize {
        1 << self.shift
    }

    /// The word of a page, and where in it the bits of the page begin.
    #[inline]
    fn place(&self, page: usize) -> (usize, u32) {
        let bit = page << self.shift;
        (bit / 64, (bit % 64) as u32)
    }

    /// The bits of a page.
    #[inline]
    pub fn of(&self, page: usize) -> u32 {
        let (word, from) = self.place(page);
        (self.words[word] >> from) as u32 & (u32::MAX >> (32 - (1 << self.shift)))
    }

    /// Sets some bits of a page, and returns those that it did not have.
    #[inline]
    pub fn add(&mut self, page: usize, bits: u32) -> u32 {
        let new = bits & !self.of(page);
        let (word, from) = self.place(page);
        self.words[word] |= u64::from(new) << from;
        new
    }

    /// Returns the bits of a page, and clears them.
    #[inline]
    pub fn take(&mut self, page: usize) -> u32 {
        let bits = self.of(page);
        let (word, from) = self.place(page);
        self.words[word] &= !(u64::from(bits) << from);
        bits
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::mix;

    #[test]
    fn marks_are_those_of_a_vector() {
        for bits in [1, 2, 3, 8, 20, 32] {
            let (pages, mask) = (100, u32::MAX >> (32 - bits as u32));
            let (mut marks, mut twin) = (Marks::new(pages, bits), vec![0u32; pages]);
            for step in 0..3000u64 {
                let (page, add) = (mix(step) as usize % pages, mix(!step) as u32 & mix(step ^ 7) as u32 & mask);
                if step % 11 == 0 {
                    assert_eq!(marks.take(page), std::mem::take(&mut twin[page]));
                } else {
                    assert_eq!(marks.add(page, add), add & !twin[page]);
                    twin[page] |= add;
                }
            }
            assert!((0..pages).all(|page| marks.of(page) == twin[page]), "{bits} bits");
        }
    }
}
