//! An approximate set of 64-bit words: a Bloom filter with one hash function. It has false
//! positives and no false negatives.

use super::polynomials::gf2::LANES;

/// An approximate set of words, one bit at the *place* (hash) of each.
///
/// Words come in rows of some width. The salt of a word's position in its row is added (exclusive
/// or) before it is hashed, so that a word is found in the position where it was put, and hardly in
/// another. Words that were not put in may be found: with `n` words in `b` bits about `n / b` of
/// them.
pub struct BitSet {
    /// The bits; the number of words is a power of two.
    pub(super) bits: Vec<u64>,
    /// The shift from the product of a word and [`FACTOR`] to its place in `bits`.
    pub(super) shift: u32,
    /// The salts of the positions of a row, repeated cyclically to a whole number of vectors.
    pub(super) salts: Vec<[u64; LANES]>,
}

impl BitSet {
    /// Makes the set with these bits, of words in rows with these salts: one salt for each
    /// position.
    ///
    /// # Panics
    /// If the number of words of `bits` is not a power of two, or if there is no salt.
    pub fn new(bits: Vec<u64>, salts: &[u64]) -> BitSet {
        assert!(!salts.is_empty(), "a row has at least one word, hence at least one salt");
        let eight = |first: usize| std::array::from_fn(|lane| salts[(LANES * first + lane) % salts.len()]);
        BitSet { shift: shift(bits.len()), salts: (0..salts.len()).map(eight).collect(), bits }
    }

    /// Adds a salted word.
    pub fn put(&mut self, salted: u64) {
        let place = place(salted, self.shift);
        self.bits[place as usize / 64] |= 1 << (place % 64);
    }

    /// Whether the set may contain a salted word. Always true for a word that was added.
    ///
    /// ```
    /// use nigh_kernels::{kernels::BitSet, records::mix};
    /// let mut set = BitSet::new(vec![0; 1024], &[0]);
    /// (0..1000).for_each(|word| set.put(mix(word)));
    /// assert!((0..1000).all(|word| set.has(mix(word))));
    /// // 1000 of 65,536 bits are set: about 1.5% of other words look like members.
    /// assert!((1000..11_000).filter(|word| set.has(mix(*word))).count() < 300);
    /// ```
    #[inline]
    pub fn has(&self, salted: u64) -> bool {
        let place = place(salted, self.shift);
        self.bits[place as usize / 64] >> (place % 64) & 1 == 1
    }
}

/// The shift of products for places in a set of `words` words.
///
/// # Panics
/// If `words` is not a power of two.
pub fn shift(words: usize) -> u32 {
    assert!(words.is_power_of_two(), "{words} words are not a power of two");
    58 - words.trailing_zeros()
}

/// The place of a word: the high bits of its product with a fixed odd factor (the golden ratio),
/// which depend on all bits of the word.
#[inline]
pub fn place(word: u64, shift: u32) -> u64 {
    word.wrapping_mul(FACTOR) >> shift
}

/// An odd factor without a pattern in its bits: the golden ratio.
pub(super) const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;
