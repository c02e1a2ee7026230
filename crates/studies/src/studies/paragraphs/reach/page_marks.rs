//! Marks of pages: some bits for each page, as many as are needed, and as many for marks that wait
//! for something.

/// The marks of the own pages of a worker, by their numbers: 1, 2, 4, 8, 16 or 32 bits for each,
/// and as many for those that are *pending*.
///
/// Both are side by side, so that a page is one place in memory.
#[derive(Clone, Debug)]
pub(super) struct PageMarks {
    /// A page has 1 << `shift` marks.
    shift: u32,
    words: Vec<u64>,
}

impl PageMarks {
    /// No marks: `bits` for each of `pages`, at most 32.
    pub fn new(pages: usize, bits: usize) -> PageMarks {
        let shift = bits.max(1).next_power_of_two().ilog2();
        PageMarks { shift, words: vec![0; (pages << (shift + 1)).div_ceil(64)] }
    }

    /// The place of a page: its word, and where in it its marks begin.
    #[inline]
    fn place(&self, page: usize) -> (usize, u32) {
        let bit = page << (self.shift + 1);
        (bit / 64, (bit % 64) as u32)
    }

    /// As many ones as a page has marks.
    fn ones(&self) -> u64 {
        u64::from(u32::MAX >> (32 - (1 << self.shift)))
    }

    /// The word of a page, to be loaded early.
    #[inline]
    pub fn word(&self, page: usize) -> u64 {
        self.words[self.place(page).0]
    }

    /// The marks of a page.
    #[inline]
    pub fn of(&self, page: usize) -> u32 {
        let (word, from) = self.place(page);
        (self.words[word] >> from & self.ones()) as u32
    }

    /// Adds marks to a page. Those that it did not have are pending, too. Returns whether no others
    /// were pending before.
    #[inline]
    pub fn add(&mut self, page: usize, bits: u32) -> bool {
        let (word, from) = self.place(page);
        let (cell, ones, count) = (self.words[word] >> from, self.ones(), 1 << self.shift);
        let new = u64::from(bits) & !cell & ones;
        self.words[word] |= (new | new << count) << from;
        new > 0 && cell >> count & ones == 0
    }

    /// Gives a page all marks without making them pending: so no mark can be added.
    pub fn fill(&mut self, page: usize) {
        let (word, from) = self.place(page);
        self.words[word] |= self.ones() << from;
    }

    /// The pending marks of a page.
    #[inline]
    pub fn pending(&self, page: usize) -> u32 {
        let (word, from) = self.place(page);
        (self.words[word] >> from >> (1 << self.shift) & self.ones()) as u32
    }

    /// Returns the pending marks of a page: they are not pending any more.
    #[inline]
    pub fn take_pending(&mut self, page: usize) -> u32 {
        let (bits, (word, from)) = (self.pending(page), self.place(page));
        self.words[word] &= !(u64::from(bits) << (1 << self.shift) << from);
        bits
    }

    /// A copy, as the marks are now; then none is pending any more.
    pub fn take_all_pending(&mut self) -> PageMarks {
        let taken = self.clone();
        let width = 2 << self.shift;
        let kept = (0..64).step_by(width).fold(0, |mask, from| mask | self.ones() << from);
        self.words.iter_mut().for_each(|word| *word &= kept);
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::mix;

    #[test]
    fn marks_are_those_of_vectors() {
        for bits in [1, 2, 3, 8, 20, 32] {
            let (pages, mask) = (100, u32::MAX >> (32 - (bits as u32).next_power_of_two()));
            let mut marks = PageMarks::new(pages, bits);
            let (mut twin, mut pending) = (vec![0u32; pages], vec![0u32; pages]);
            for step in 0..5000u64 {
                let (page, add) = (mix(step) as usize % pages, mix(!step) as u32 & mix(step ^ 7) as u32 & mask);
                match step % 20 {
                    0..7 => assert_eq!(marks.take_pending(page), std::mem::take(&mut pending[page])),
                    7 if step % 300 == 7 => {
                        marks.fill(page);
                        twin[page] = mask;
                    }
                    8 if step % 500 == 8 => {
                        let taken = marks.take_all_pending();
                        assert!((0..pages).all(|page| taken.pending(page) == pending[page]));
                        pending.fill(0);
                    }
                    _ => {
                        let new = add & !twin[page];
                        assert_eq!(marks.add(page, add), new > 0 && pending[page] == 0);
                        twin[page] |= new;
                        pending[page] |= new;
                    }
                }
            }
            assert!((0..pages).all(|page| marks.of(page) == twin[page] && marks.pending(page) == pending[page]));
        }
    }
}
