//! Hashes, the same on every machine: XXH3 of bytes (Collet 2019), with the published constants and
//! the seed 0; and one of a word.
//!
//! The crate `xxhash-rust` is the definition of XXH3. It chooses its instructions when it is built:
//! for a program for every x86-64, SSE2. Long inputs are hashed faster with wider vectors: see
//! `avx512/hash.rs`. Short ones are hashed by scalar code in any case.

use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use super::{Kernels, chosen, scalar};

/// The longest input that every level leaves to `xxhash-rust`: XXH3 hashes longer ones by stripes
/// of 64 bytes.
const SHORT: usize = 240;

impl Kernels {
    /// The XXH3-64 of bytes.
    ///
    /// ```
    /// use nigh_kernels::kernels::chosen;
    /// assert_eq!(chosen()?.hash_64(b""), 0x2D06_8005_38D3_94C2);
    /// # anyhow::Ok(())
    /// ```
    #[inline]
    pub fn hash_64(&self, bytes: &[u8]) -> u64 {
        if bytes.len() <= SHORT { xxh3_64(bytes) } else { (self.hash_64)(bytes) }
    }

    /// The XXH3-128 of bytes.
    #[inline]
    pub fn hash_128(&self, bytes: &[u8]) -> u128 {
        if bytes.len() <= SHORT { xxh3_128(bytes) } else { (self.hash_128)(bytes) }
    }
}

/// The XXH3-128 of bytes, for callers that have no kernels at hand.
pub(crate) fn hash_128(bytes: &[u8]) -> u128 {
    // A name of kernels that this machine does not have is an error elsewhere.
    chosen().unwrap_or(&scalar::KERNELS).hash_128(bytes)
}

/// A hash of a word that changes all its bits: the finalizer of SplitMix64. A bijection.
pub fn mix(word: u64) -> u64 {
    let mut z = word.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::super::available;
    use super::*;

    #[test]
    fn every_level_hashes_as_the_definition_at_every_length_and_start() {
        let bytes: Vec<u8> = (0..6000u64).map(|at| mix(at) as u8).collect();
        for kernels in available() {
            for length in (0..=1400).chain([2047, 2048, 2049, 3071, 3072, 3073, 4096, 5119, 5120, 5121, 5900]) {
                for start in [0, 1, 31, 64] {
                    let bytes = &bytes[start..start + length];
                    let hashes = (kernels.hash_64(bytes), kernels.hash_128(bytes));
                    assert_eq!(hashes, (xxh3_64(bytes), xxh3_128(bytes)), "{}: {length} bytes", kernels.name());
                }
            }
        }
    }
}
