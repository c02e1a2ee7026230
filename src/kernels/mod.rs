//! The inner loops, once for each kind of processor, with the same bits from all of them.
//!
//! [`Kernels`] is a table of functions: one for each stage from text to supershingles, one for the marks of a page, and
//! one that looks words up. [`chosen`] takes the fastest that this machine has, or the one that `NIGH_KERNELS` names.
//! `scalar` is the definition, short and plain; each other level gives the same bits, faster. This folder holds the only
//! `unsafe` code of the crate: calls of functions compiled for instructions that not every machine has, loads, stores
//! and gathers of vectors, memory that is written before it is read, libdeflate (`inflate`), and what a machine is told
//! about memory (`memory`). **Holding a table is the proof that this machine has its instructions**: tables are
//! private, and [`available`] gives out only those that were detected.
//!
//! In reading order: `gf2` (polynomials and the constants of kernels), `scalar` (the definition), `alphabet` (which
//! characters make words), `avx512`, then `narrow` with `avx2` and `pmull` at its rim, `markup`, `places`, `inflate`,
//! `memory`; `twin` holds the test that walks every level against scalar.

#![allow(unsafe_code)]

mod alphabet;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod gf2;
mod inflate;
mod markup;
pub mod memory;
#[cfg(any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little")))]
mod narrow;
pub mod places;
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
mod pmull;
mod scalar;
#[cfg(test)]
mod twin;

use std::sync::OnceLock;

use anyhow::{Result, bail};

pub use gf2::{Functions, Polynomial, Runs, Shingles, multiply, product, reduce};
pub use inflate::{Inflated, Inflater};
pub use markup::Marks;
pub use places::Places;

/// The variable that names a level.
const VARIABLE: &str = "NIGH_KERNELS";
/// Texts are at most so long, in bytes: positions are 32-bit numbers.
pub const TEXT_BYTES: usize = u32::MAX as usize - 1024;

/// The inner loops of one level.
pub struct Kernels {
    /// The level's name, as `NIGH_KERNELS` takes it.
    name: &'static str,
    words: fn(&[u8], &mut Vec<u32>),
    preimages: fn(&Shingles, &[u8], &[u32], &mut Vec<u64>),
    minima: fn(&Functions, &[u64], &mut [u64]),
    supershingles: fn(&Runs, &[u64], &mut Vec<u64>),
    marks: fn(&[u8], &mut Marks),
    held: fn(&Places, &[u64], &mut Vec<u64>),
}

impl Kernels {
    /// The level's name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Writes where the words of a text are: start and end of each, in bytes, in order.
    ///
    /// A word is a maximal run of alphanumeric characters (as [`text::words`](crate::text::words())). Bytes that are
    /// no UTF-8 are no part of a word.
    ///
    /// # Panics
    /// If the text is longer than [`TEXT_BYTES`].
    pub fn words(&self, text: &[u8], bounds: &mut Vec<u32>) {
        assert!(text.len() <= TEXT_BYTES, "a text of {} bytes is too long for its positions", text.len());
        bounds.clear();
        (self.words)(text, bounds);
    }

    /// Writes the pre-images of a text's shingles, one for each word: `bounds` as [`words`](Kernels::words) gives them
    /// for `text` (Fetterly 2004, section 2).
    pub fn preimages(&self, shingles: &Shingles, text: &[u8], bounds: &[u32], preimages: &mut Vec<u64>) {
        preimages.clear();
        (self.preimages)(shingles, text, bounds, preimages);
    }

    /// Writes for each function the pre-image whose image is smallest (Fetterly 2004, section 2). Equal images are
    /// equal pre-images, so the result depends on nothing but the set.
    ///
    /// # Panics
    /// If there is no pre-image.
    pub fn minima(&self, functions: &Functions, preimages: &[u64], minima: &mut Vec<u64>) {
        assert!(!preimages.is_empty(), "no pre-image is the smallest of none");
        minima.clear();
        // Some levels write whole groups of functions.
        minima.resize(functions.count().next_multiple_of(gf2::LANES), 0);
        (self.minima)(functions, preimages, minima);
        minima.truncate(functions.count());
    }

    /// Writes the fingerprint of each whole run of features (Fetterly 2004, section 2).
    pub fn supershingles(&self, runs: &Runs, features: &[u64], supershingles: &mut Vec<u64>) {
        supershingles.clear();
        (self.supershingles)(runs, features, supershingles);
    }

    /// Writes where the bytes of a page stand that mean something in markup.
    pub fn marks(&self, page: &[u8], marks: &mut Marks) {
        marks.clear();
        (self.marks)(page, marks);
    }

    /// Writes which words of whole rows may be held by a set: a bit for each, 64 in a word, the first of them lowest.
    pub fn held(&self, set: &Places, words: &[u64], held: &mut Vec<u64>) {
        held.clear();
        (self.held)(set, words, held);
    }
}

/// The levels that this machine has, the fastest first; the last is the definition.
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

/// The level that `NIGH_KERNELS` names, or the fastest that this machine has.
///
/// # Errors
/// Where this machine has no such level.
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
                bail!("{VARIABLE}={name}: this machine has the kernels {}", names.join(", "))
            }
        },
    };
    Ok(CHOSEN.get_or_init(|| kernels))
}
