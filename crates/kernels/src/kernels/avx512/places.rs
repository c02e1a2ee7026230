//! Lookups in the bit set, eight words at a time.

use std::arch::x86_64::*;

use super::vectors::{all, load};
use crate::kernels::places::{BitSet, FACTOR};
use crate::kernels::scalar;

/// The number of words whose bits fill one output word.
const WORDS: usize = 64;

/// Eight products, shifted, are eight places. For each place it gathers 32 bits of the set and
/// tests one of them.
#[target_feature(enable = "avx512f,avx512dq,avx512vl")]
pub(super) fn held(set: &BitSet, words: &[u64], out: &mut Vec<u64>) {
    let (whole, rest) = words.as_chunks::<WORDS>();
    let shift = _mm_cvtsi32_si128(set.shift.cast_signed());
    let mut salts = set.salts.iter().cycle();
    for words in whole {
        let mut bits = 0;
        for (eight, (words, salt)) in words.as_chunks::<8>().0.iter().zip(&mut salts).enumerate() {
            let salted = _mm512_xor_si512(load(words), load(salt));
            let places = _mm512_srl_epi64(_mm512_mullo_epi64(salted, all(FACTOR)), shift);
            let halves = _mm512_srli_epi64::<5>(places);
            // SAFETY: places are below the number of bits, since `BitSet::new` computed `shift`
            // from it. So the indices of half words are within `bits`.
            let halves = unsafe { _mm512_i64gather_epi32::<4>(halves, set.bits.as_ptr().cast()) };
            let bit = _mm256_and_si256(_mm512_cvtepi64_epi32(places), _mm256_set1_epi32(31));
            let members = _mm256_test_epi32_mask(halves, _mm256_sllv_epi32(_mm256_set1_epi32(1), bit));
            bits |= u64::from(members) << (8 * eight);
        }
        out.push(bits);
    }
    scalar::held_from(set, words.len() - rest.len(), rest, out);
}
