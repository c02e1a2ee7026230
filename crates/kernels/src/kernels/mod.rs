//! SIMD kernels: the inner loops, implemented once for each kind of processor, with bit-identical
//! results.
//!
//! [`Kernels`] is a table of functions: one for each stage from text to supershingles, one for the
//! marks of a page, one for the joined words of a text, one for lookups in a bit set, and two for
//! hashes of bytes. There is one table for each *level* of instructions. [`chosen`] returns the
//! fastest level of this machine, or the one that `NIGH_KERNELS` names. `scalar` is the definition,
//! short and plain; every other level returns the same bits, faster.
//!
//! This folder holds the only `unsafe` code of the crate: calls of functions compiled for
//! instructions that not every machine has, loads, stores and gathers of vectors, memory that is
//! written before it is read, calls of libdeflate (`inflate`), advice to the system about memory
//! (`memory`), and rows that are moved as bytes (`width`). **Holding a table is the proof that this
//! machine has its instructions**: tables are private, and [`available`] returns only those that
//! were detected.
//!
//! In reading order: `polynomials` (over GF(2), and the constants of kernels), `scalar` (the
//! definition), `words` (which characters make words, and words joined), `avx512`, then `narrow`
//! with its instruction sets `avx2` and `pmull`, `markup`, `places` (the bit set), `hash` (XXH3),
//! `inflate`, `memory`, `width` (sorts); `twin` tests every level against scalar.
//!
//! ```
//! use nigh_kernels::kernels::chosen;
//! let kernels = chosen()?;
//! let mut bounds = Vec::new();
//! kernels.words("Où est-il ?".as_bytes(), &mut bounds);
//! assert_eq!(bounds, [0, 3, 4, 7, 8, 10]); // start and end of each word, in bytes
//! # anyhow::Ok(())
//! ```

#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod hash;
mod inflate;
mod markup;
pub mod memory;
#[cfg(any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little")))]
mod narrow;
pub mod places;
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
mod pmull;
mod polynomials;
mod scalar;
#[cfg(test)]
mod twin;
pub(crate) mod width;
mod words;

use std::sync::OnceLock;

use anyhow::{Result, bail};

pub(crate) use hash::hash_128;
pub use hash::mix;

use self::polynomials::gf2;
use self::words::joined;

pub use self::polynomials::{
    FeatureRuns, Functions, Polynomial, Polynomials, ShingleConstants, irreducible, multiply, polynomials, primitive,
    product, reduce,
};
pub use self::words::{JoinedWords, character, is_spaceless};
pub use inflate::{Inflated, Inflater};
pub use markup::MarkupBitmaps;
pub use places::BitSet;

/// The environment variable that names a level.
const VARIABLE: &str = "NIGH_KERNELS";
/// The maximum length of a text, in bytes: positions are 32-bit numbers.
pub const TEXT_BYTES: usize = u32::MAX as usize - 1024;

/// The inner loops of one level. Every method overwrites its output vector.
pub struct Kernels {
    /// The name of the level, as in `NIGH_KERNELS`.
    name: &'static str,
    put_blanks: fn(&[u8], &mut Vec<u8>) -> u64,
    words: fn(&[u8], &mut Vec<u32>),
    join: fn(&[u8], u8, &mut Vec<u32>, &mut JoinedWords),
    preimages: fn(&ShingleConstants, &[u8], &[u32], &mut Vec<u64>),
    minima: fn(&Functions, &[u64], &mut [u64]),
    supershingles: fn(&FeatureRuns, &[u64], &mut Vec<u64>),
    marks: fn(&[u8], &mut MarkupBitmaps),
    held: fn(&BitSet, &[u64], &mut Vec<u64>),
    /// Of more than 240 bytes: see [`Kernels::hash_64`].
    hash_64: fn(&[u8]) -> u64,
    hash_128: fn(&[u8]) -> u128,
}

impl Kernels {
    /// The name of the level, as in `NIGH_KERNELS`.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Puts a blank on both sides of each character of a script without blanks (see
    /// [`is_spaceless`]), where there is no white space: between two bytes above the blank. Returns
    /// the number of blanks. If there are none, the contents of `spaced` mean nothing.
    ///
    /// ```
    /// use nigh_kernels::kernels::chosen;
    /// let mut spaced = Vec::new();
    /// assert_eq!(chosen()?.put_blanks("東京 is big".as_bytes(), &mut spaced), 1);
    /// assert_eq!(spaced, "東 京 is big".as_bytes());
    /// # anyhow::Ok(())
    /// ```
    pub fn put_blanks(&self, text: &[u8], spaced: &mut Vec<u8>) -> u64 {
        (self.put_blanks)(text, spaced)
    }

    /// Writes the start and the end of each word of a text, as positions in bytes, in order.
    ///
    /// A word is a maximal run of alphanumeric characters (as `nigh_text::text::words`). Bytes that
    /// are not UTF-8 are not part of a word.
    ///
    /// # Panics
    /// If the text is longer than [`TEXT_BYTES`].
    pub fn words(&self, text: &[u8], bounds: &mut Vec<u32>) {
        assert!(text.len() <= TEXT_BYTES, "the text has {} bytes, more than {TEXT_BYTES}", text.len());
        bounds.clear();
        (self.words)(text, bounds);
    }

    /// As [`words`](Kernels::words), and joins the words by blanks, and finds those that follow a
    /// line end or a period, and the number of characters. `line_end` is a byte of ASCII that is
    /// not part of words.
    ///
    /// # Panics
    /// If the text is longer than [`TEXT_BYTES`].
    pub fn join(&self, text: &[u8], line_end: u8, bounds: &mut Vec<u32>, joined: &mut JoinedWords) {
        assert!(text.len() <= TEXT_BYTES, "the text has {} bytes, more than {TEXT_BYTES}", text.len());
        bounds.clear();
        (self.join)(text, line_end, bounds, joined);
    }

    /// Joins words of another kind than those of [`words`](Kernels::words), as
    /// [`join`](Kernels::join) does those: `bounds` are the start and the end of each, in order.
    /// Words may follow each other without a byte between them, and do not overlap.
    ///
    /// ```
    /// use nigh_kernels::kernels::{JoinedWords, chosen};
    /// let mut joined = JoinedWords::default();
    /// chosen()?.join_given(b"a+b\nc", &[0, 1, 1, 2, 2, 3, 4, 5], b'\n', &mut joined);
    /// assert_eq!((joined.words(), joined.line_starts()), (&b"a + b c"[..], &[6][..]));
    /// # anyhow::Ok(())
    /// ```
    pub fn join_given(&self, text: &[u8], bounds: &[u32], line_end: u8, joined: &mut JoinedWords) {
        joined::of_given_words(text, bounds, line_end, joined);
    }

    /// Writes the pre-images of a text's shingles, one for each word (Fetterly 2004, section 2).
    /// `bounds` are those that [`words`](Kernels::words) writes for `text`, or those of words of
    /// another kind.
    pub fn preimages(&self, shingles: &ShingleConstants, text: &[u8], bounds: &[u32], preimages: &mut Vec<u64>) {
        preimages.clear();
        (self.preimages)(shingles, text, bounds, preimages);
    }

    /// Writes for each function the pre-image whose image is smallest (Fetterly 2004, section 2).
    /// Equal images are equal pre-images, so the result depends on the set of pre-images alone.
    ///
    /// ```
    /// use nigh_kernels::kernels::{Functions, Polynomial, chosen};
    /// let (p, preimages) = (0x1B, [5, 6, 7]);
    /// let mut minima = Vec::new();
    /// chosen()?.minima(&Functions::new(&[p]), &preimages, &mut minima);
    /// let function = Polynomial::new(p);
    /// assert_eq!(minima[0], *preimages.iter().min_by_key(|x| function.image(**x)).unwrap());
    /// # anyhow::Ok(())
    /// ```
    ///
    /// # Panics
    /// If there are no pre-images.
    pub fn minima(&self, functions: &Functions, preimages: &[u64], minima: &mut Vec<u64>) {
        assert!(!preimages.is_empty(), "minima need at least one pre-image");
        minima.clear();
        // Some levels write the minima of whole groups of functions.
        minima.resize(functions.count().next_multiple_of(gf2::LANES), 0);
        (self.minima)(functions, preimages, minima);
        minima.truncate(functions.count());
    }

    /// Writes the fingerprint of each complete run of features (Fetterly 2004, section 2).
    pub fn supershingles(&self, runs: &FeatureRuns, features: &[u64], supershingles: &mut Vec<u64>) {
        supershingles.clear();
        // All of them: a list that grows is allocated twice for a document.
        supershingles.reserve(features.len() / runs.length);
        (self.supershingles)(runs, features, supershingles);
    }

    /// Marks the bytes of a page that may be markup.
    pub fn marks(&self, page: &[u8], marks: &mut MarkupBitmaps) {
        marks.clear();
        (self.marks)(page, marks);
    }

    /// Looks up the words of complete rows in a bit set. Writes one bit for each word, 64 to an
    /// output word, the first as the lowest bit: 1 if the set may contain the word, 0 if it does
    /// not.
    ///
    /// ```
    /// use nigh_kernels::kernels::{BitSet, chosen};
    /// let mut set = BitSet::new(vec![0; 16], &[0]); // 16 * 64 bits, rows of one word, salt 0
    /// set.put(2004);
    /// let mut bits = Vec::new();
    /// chosen()?.held(&set, &[1997, 2004], &mut bits);
    /// assert_eq!(bits, [0b10]);
    /// # anyhow::Ok(())
    /// ```
    pub fn held(&self, set: &BitSet, words: &[u64], bits: &mut Vec<u64>) {
        bits.clear();
        (self.held)(set, words, bits);
    }
}

/// The levels that this machine has, the fastest first. The last one is `scalar`, the definition.
pub fn available() -> Vec<&'static Kernels> {
    let mut levels: Vec<&'static Kernels> = Vec::new();
    #[cfg(target_arch = "x86_64")]
    if avx512::detected() {
        levels.push(&avx512::KERNELS);
    }
    #[cfg(target_arch = "x86_64")]
    if avx2::detected() {
        levels.push(&avx2::KERNELS);
    }
    #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
    if pmull::detected() {
        levels.push(&pmull::KERNELS);
    }
    levels.push(&scalar::KERNELS);
    levels
}

/// The level that `NIGH_KERNELS` names, or the fastest one of this machine. The variable is read
/// once per process.
///
/// # Errors
/// If `NIGH_KERNELS` names a level that this machine does not have.
pub fn chosen() -> Result<&'static Kernels> {
    static CHOSEN: OnceLock<&Kernels> = OnceLock::new();
    if let Some(kernels) = CHOSEN.get() {
        return Ok(kernels);
    }
    let levels = available();
    let kernels = match std::env::var(VARIABLE) {
        Err(_) => levels[0],
        Ok(name) => match levels.iter().find(|level| level.name == name) {
            Some(level) => level,
            None => {
                let names: Vec<&str> = levels.iter().map(|level| level.name).collect();
                bail!("{VARIABLE}={name}: no such kernels on this machine, which has {}", names.join(", "))
            }
        },
    };
    Ok(CHOSEN.get_or_init(|| kernels))
}
