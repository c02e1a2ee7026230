//! A set of words, as a bit at the place of each: which of many words may be in it.

use super::gf2::LANES;

/// A set of words in rows of some width, each put in with the salt of its position: it is held there, and hardly in
/// another position. Words that were not put in may seem to be held.
pub struct Places {
    /// A power of two of words.
    pub(super) bits: Vec<u64>,
    /// How far the product of a word is shifted, so that a place within `bits` is left.
    pub(super) shift: u32,
    /// The salts of the positions of a row, in turns: eight after eight, until they begin anew.
    pub(super) salts: Vec<[u64; LANES]>,
}

impl Places {
    /// The set with these bits, of words in rows with these salts.
    ///
    /// # Panics
    /// Where the bits are no power of two of words, or there is no salt.
    pub fn new(bits: Vec<u64>, salts: &[u64]) -> Places {
        assert!(!salts.is_empty(), "a row has a word at least");
        let eight = |first: usize| std::array::from_fn(|lane| salts[(LANES * first + lane) % salts.len()]);
        Places { shift: shift(bits.len()), salts: (0..salts.len()).map(eight).collect(), bits }
    }

    /// Puts a salted word in.
    pub fn put(&mut self, salted: u64) {
        let place = place(salted, self.shift);
        self.bits[place as usize / 64] |= 1 << (place % 64);
    }

    /// Whether a salted word may be held.
    #[inline]
    pub fn has(&self, salted: u64) -> bool {
        let place = place(salted, self.shift);
        self.bits[place as usize / 64] >> (place % 64) & 1 == 1
    }
}

/// How far products are shifted for places in so many words.
///
/// # Panics
/// Where these are no power of two.
pub fn shift(words: usize) -> u32 {
    assert!(words.is_power_of_two(), "{words} words are no power of two");
    58 - words.trailing_zeros()
}

/// The place of a word: the high bits of a product, to which all bits of the word come.
#[inline]
pub fn place(word: u64, shift: u32) -> u64 {
    word.wrapping_mul(FACTOR) >> shift
}

/// Odd, and without a pattern: the golden ratio.
pub(super) const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;
