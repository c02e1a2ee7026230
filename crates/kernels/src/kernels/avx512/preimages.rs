//! Pre-images of shingles: words are fingerprinted eight at a time and joined in GF(2).
//!
//! With `W_k` the fingerprint of word `k`, `l_k` its length with the NUL that joins it, and
//! `T(l) = t^(8l)`, a shingle is `W_k T(l_1 + ..) + ... + W_(k+4)`. For five words,
//!
//! ```text
//! Q_k = W_k T(l_(k+1)) + W_(k+1)                                                 two words
//! x_k = Q_k T(l_(k+2) + l_(k+3) + l_(k+4)) + Q_(k+2) T(l_(k+4)) + W_(k+4)        five words
//! ```
//!
//! with one reduction for each line; other widths are joined word by word. No step waits for the
//! previous shingle, as a rolling fingerprint would. The powers `T` of small lengths are looked up
//! in registers (2.7 ns per word, against 3.5 with gathers), others are gathered. Shingles with
//! words so long that the table ends are joined one at a time.

use std::arch::x86_64::*;

use super::vectors::{all, image, images, load, load_word, multiply, product, store};
use crate::kernels::ShingleConstants;
use crate::kernels::polynomials::gf2::{MAX_WIDTH, POWERS};

/// Pre-images: see [`Kernels::preimages`](crate::kernels::Kernels::preimages).
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vpclmulqdq,bmi1,bmi2,lzcnt")]
pub(super) fn preimages(shingles: &ShingleConstants, text: &[u8], bounds: &[u32], preimages: &mut Vec<u64>) {
    let (words, _) = bounds.as_chunks::<2>();
    // Clearing the arrays of a chunk costs as much as twenty words, so short texts have short
    // arrays.
    match (words.len(), shingles.width) {
        (..=64, ..=8) => in_chunks::<64, { 64 + 8 + 8 }>(shingles, text, words, preimages),
        (_, ..=8) => in_chunks::<512, { 512 + 8 + 8 }>(shingles, text, words, preimages),
        _ => in_chunks::<512, { 512 + MAX_WIDTH + 8 }>(shingles, text, words, preimages),
    }
}

/// Computes the pre-images in chunks of at most `MOST` words. `ROOM` is the length of the arrays:
/// for the words of a chunk, the words after it that its last shingle reaches, and the rest of a
/// vector.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vpclmulqdq,bmi1,bmi2,lzcnt")]
fn in_chunks<const MOST: usize, const ROOM: usize>(
    shingles: &ShingleConstants,
    text: &[u8],
    words: &[[u32; 2]],
    preimages: &mut Vec<u64>,
) {
    let mut chunk = WordChunk::<ROOM> { shingles, fingerprints: [0; ROOM], lengths: [1; ROOM], long: false };
    for first in (0..words.len()).step_by(MOST) {
        let count = MOST.min(words.len() - first);
        let reach = count + shingles.width - 1;
        let mut ahead = &words[first..words.len().min(first + reach)];
        let mut filled = 0;
        chunk.long = false;
        loop {
            chunk.fingerprint(text, ahead, filled);
            filled += ahead.len();
            // The text wraps around.
            if first == 0 {
                for at in filled..reach {
                    chunk.fingerprints[at] = chunk.fingerprints[at - filled];
                    chunk.lengths[at] = chunk.lengths[at - filled];
                }
                break;
            }
            if filled == reach {
                break;
            }
            ahead = &words[..words.len().min(reach - filled)];
        }
        let before = preimages.len();
        let groups = count.div_ceil(8);
        if shingles.width == 5 {
            // The pairs of words need room for two words more; the shingles overwrite them.
            preimages.resize(before + 8 * groups + 8, 0);
            chunk.join_five(&mut preimages[before..], groups);
        } else {
            preimages.resize(before + 8 * groups, 0);
            chunk.join(preimages[before..].as_chunks_mut().0);
        }
        preimages.truncate(before + count);
        if chunk.long {
            chunk.join_long(&mut preimages[before..]);
        }
    }
}

/// Consecutive words, and the words after them that the last shingle reaches.
struct WordChunk<'a, const ROOM: usize> {
    shingles: &'a ShingleConstants,
    /// The fingerprint of each word alone.
    fingerprints: [u64; ROOM],
    /// The length of each word in bytes, with the NUL that joins it to the previous one.
    lengths: [u64; ROOM],
    /// Whether a word is so long that the table of powers may end.
    long: bool,
}

impl<const ROOM: usize> WordChunk<'_, ROOM> {
    /// Fills in fingerprints and lengths of these words, from index `at` on.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vpclmulqdq,bmi1,bmi2,lzcnt")]
    fn fingerprint(&mut self, text: &[u8], words: &[[u32; 2]], at: usize) {
        let polynomial = &self.shingles.polynomial;
        let (p, mu) = (all(polynomial.p), all(polynomial.mu));
        let (sixty_four, most) = (all(64), all(128));
        // The start of the text with zeros before it, for words that end within its first 16 bytes.
        let mut head = [0; 32];
        match text.first_chunk::<16>() {
            Some(first) => head[16..].copy_from_slice(first),
            None => head[16..16 + text.len()].copy_from_slice(text),
        }
        let reversed = _mm512_broadcast_i32x4(_mm_set_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
        let too_long = all((POWERS / (self.shingles.width - 1).max(1)) as u64);
        for from in (0..words.len()).step_by(8) {
            // If fewer than eight words remain, computes the last eight.
            let from = from.min(words.len().saturating_sub(8));
            let mut few = [[0; 2]; 8];
            let group: &[[u32; 2]; 8] = match words[from..].first_chunk() {
                Some(group) => group,
                None => {
                    few[..words.len()].copy_from_slice(words);
                    &few
                }
            };
            // SAFETY: the 64 bytes are those of `group`. As numbers of 64 bits, the start of a word
            // is the low half and its end the high half.
            let spans = unsafe { _mm512_loadu_si512(group.as_ptr().cast()) };
            let ends = _mm512_srli_epi64::<32>(spans);
            let lengths = _mm512_sub_epi64(ends, _mm512_and_si512(spans, all(0xFFFF_FFFF)));
            let bits = _mm512_slli_epi64::<3>(lengths);
            // The sixteen bytes that end where a word ends, of words 0, 2, 4, 6 and of words 1, 3,
            // 5, 7.
            let near_start = _mm512_cmplt_epu64_mask(ends, all(16));
            let beyond = _mm512_cmpgt_epu64_mask(ends, all(text.len() as u64));
            let (even, odd) = if near_start | beyond == 0 {
                // SAFETY: by the line above, each end is at least 16 and at most the length of the
                // text.
                let tail =
                    |word: usize| unsafe { _mm_loadu_si128(text.as_ptr().add(group[word][1] as usize - 16).cast()) };
                (four(tail(0), tail(2), tail(4), tail(6)), four(tail(1), tail(3), tail(5), tail(7)))
            } else {
                let tail = |word: usize| {
                    let end = group[word][1] as usize;
                    let tail = text[..end].last_chunk();
                    load_word(tail.unwrap_or_else(|| head[end..].first_chunk().expect("an end before byte 16")))
                };
                (four(tail(0), tail(2), tail(4), tail(6)), four(tail(1), tail(3), tail(5), tail(7)))
            };
            let (even, odd) = (_mm512_shuffle_epi8(even, reversed), _mm512_shuffle_epi8(odd, reversed));
            let ones = all(u64::MAX);
            // Clears the bytes before the word; a shift by 64 or more leaves no bits.
            let low = _mm512_and_si512(
                _mm512_unpacklo_epi64(even, odd),
                _mm512_srlv_epi64(ones, _mm512_sub_epi64(sixty_four, _mm512_min_epu64(bits, sixty_four))),
            );
            let high = _mm512_and_si512(
                _mm512_unpackhi_epi64(even, odd),
                _mm512_srlv_epi64(
                    ones,
                    _mm512_sub_epi64(most, _mm512_min_epu64(_mm512_max_epu64(bits, sixty_four), most)),
                ),
            );
            let fingerprints = _mm512_xor_si512(images(high, p, mu), low);
            let to = at + from;
            store(self.fingerprints[to..].first_chunk_mut().expect("room for whole groups"), fingerprints);
            let joined = _mm512_add_epi64(lengths, all(1));
            store(self.lengths[to..].first_chunk_mut().expect("room for whole groups"), joined);
            let mut long = _mm512_cmpgt_epu64_mask(lengths, all(16));
            if long != 0 {
                self.long |= _mm512_cmpge_epu64_mask(joined, too_long) != 0;
            }
            while long != 0 {
                let word = long.trailing_zeros() as usize;
                let [start, end] = group[word];
                self.fingerprints[to + word] = self.long_word(&text[start as usize..end as usize]);
                long &= long - 1;
            }
        }
    }

    /// The fingerprint of a word of any length.
    #[target_feature(enable = "avx512f,pclmulqdq")]
    fn long_word(&self, word: &[u8]) -> u64 {
        let polynomial = &self.shingles.polynomial;
        let (head, rest) = word.split_at(word.len() % 8);
        let first = head.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
        let (eights, _) = rest.as_chunks::<8>();
        eights.iter().fold(first, |sum, eight| image(sum, polynomial.p, polynomial.mu) ^ u64::from_be_bytes(*eight))
    }

    /// The fingerprints of eight words, from index `at` on.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn fingerprints_at(&self, at: usize) -> __m512i {
        load(self.fingerprints[at..].first_chunk().expect("room beyond the last word"))
    }

    /// The lengths of eight words, from index `at` on.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn lengths_at(&self, at: usize) -> __m512i {
        load(self.lengths[at..].first_chunk().expect("room beyond the last word"))
    }

    /// Joins five words to each shingle. The result is right if the lengths of three words are
    /// together within the table.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vpclmulqdq,bmi1,bmi2,lzcnt")]
    fn join_five(&self, preimages: &mut [u64], groups: usize) {
        let (p, mu) = (all(self.shingles.polynomial.p), all(self.shingles.polynomial.mu));
        let powers = Powers::new(&self.shingles.powers);
        for k in (0..8 * groups + 2).step_by(8) {
            let (high, low) = multiply(self.fingerprints_at(k), powers.of_short(self.lengths_at(k + 1)));
            let pair = _mm512_ternarylogic_epi64::<0x96>(images(high, p, mu), low, self.fingerprints_at(k + 1));
            store(preimages[k..].first_chunk_mut().expect("room for one group more"), pair);
        }
        for k in (0..8 * groups).step_by(8) {
            let last = self.lengths_at(k + 4);
            let three = _mm512_add_epi64(_mm512_add_epi64(self.lengths_at(k + 2), self.lengths_at(k + 3)), last);
            let pair = |k: usize| load(preimages[k..].first_chunk().expect("room for one group more"));
            let (high, low) = multiply(pair(k), powers.of(three));
            let (high_next, low_next) = multiply(pair(k + 2), powers.of_short(last));
            let low = _mm512_ternarylogic_epi64::<0x96>(low, low_next, self.fingerprints_at(k + 4));
            let joined = _mm512_xor_si512(images(_mm512_xor_si512(high, high_next), p, mu), low);
            store(preimages[k..].first_chunk_mut().expect("room for one group more"), joined);
        }
    }

    /// Joins any number of words to each shingle. The result is right if every length is within the
    /// table.
    #[inline]
    #[target_feature(enable = "avx512bw,avx512dq,avx512vl,vpclmulqdq,bmi1,bmi2,lzcnt")]
    fn join(&self, preimages: &mut [[u64; 8]]) {
        let (p, mu) = (all(self.shingles.polynomial.p), all(self.shingles.polynomial.mu));
        let powers = Powers::new(&self.shingles.powers);
        for (i, preimages) in preimages.iter_mut().enumerate() {
            let mut joined = self.fingerprints_at(8 * i);
            for next in 8 * i + 1..8 * i + self.shingles.width {
                let (high, low) = multiply(joined, powers.of_short(self.lengths_at(next)));
                let low = _mm512_xor_si512(low, self.fingerprints_at(next));
                joined = _mm512_xor_si512(images(high, p, mu), low);
            }
            store(preimages, joined);
        }
    }

    /// Computes again the shingles with a word so long that the table may end.
    #[cold]
    #[target_feature(enable = "avx512f,pclmulqdq")]
    fn join_long(&self, preimages: &mut [u64]) {
        let (p, mu) = (self.shingles.polynomial.p, self.shingles.polynomial.mu);
        let width = self.shingles.width;
        let long = |length: &u64| *length as usize >= POWERS / (width - 1);
        let shift = |length: u64| {
            let powers = &self.shingles.powers;
            let (mut power, mut base) =
                (powers[length as usize % POWERS], product(powers[POWERS - 1], powers[1], p, mu));
            let mut times = length as usize / POWERS;
            while times > 0 {
                if times & 1 == 1 {
                    power = product(power, base, p, mu);
                }
                base = product(base, base, p, mu);
                times >>= 1;
            }
            power
        };
        let reach = preimages.len() + width - 1;
        let shifts: Vec<u64> = self.lengths[..reach].iter().map(|length| shift(*length)).collect();
        for (k, preimage) in preimages.iter_mut().enumerate() {
            if self.lengths[k + 1..k + width].iter().any(long) {
                *preimage = (k + 1..k + width).fold(self.fingerprints[k], |joined, next| {
                    product(joined, shifts[next], p, mu) ^ self.fingerprints[next]
                });
            }
        }
    }
}

/// Four vectors in one.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,vpclmulqdq,bmi1,bmi2,lzcnt")]
fn four(a: __m128i, b: __m128i, c: __m128i, d: __m128i) -> __m512i {
    _mm512_inserti64x4::<1>(_mm512_castsi256_si512(_mm256_set_m128i(b, a)), _mm256_set_m128i(d, c))
}

/// The powers `t^(8l)`, the first 64 of them in registers.
struct Powers<'a> {
    first: [__m512i; 8],
    table: &'a [u64; POWERS],
}

impl<'a> Powers<'a> {
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn new(table: &'a [u64; POWERS]) -> Powers<'a> {
        let (vectors, _) = table.as_chunks::<8>();
        let mut first = [_mm512_setzero_si512(); 8];
        for (register, powers) in first.iter_mut().zip(vectors) {
            *register = load(powers);
        }
        Powers { first, table }
    }

    /// The powers of eight lengths of one word each: from registers if all are below 32.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    fn of_short(&self, lengths: __m512i) -> __m512i {
        if _mm512_cmpgt_epu64_mask(lengths, all(31)) == 0 { self.below_32(lengths) } else { self.gathered(lengths) }
    }

    /// The powers of eight lengths of several words each: from registers if all are below 64.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    fn of(&self, lengths: __m512i) -> __m512i {
        if _mm512_cmpgt_epu64_mask(lengths, all(63)) != 0 {
            return self.gathered(lengths);
        }
        let upper = {
            let low = _mm512_permutex2var_epi64(self.first[4], lengths, self.first[5]);
            let high = _mm512_permutex2var_epi64(self.first[6], lengths, self.first[7]);
            _mm512_mask_mov_epi64(low, _mm512_test_epi64_mask(lengths, all(16)), high)
        };
        _mm512_mask_mov_epi64(self.below_32(lengths), _mm512_test_epi64_mask(lengths, all(32)), upper)
    }

    /// The powers of eight lengths modulo 32, from registers.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    fn below_32(&self, lengths: __m512i) -> __m512i {
        let low = _mm512_permutex2var_epi64(self.first[0], lengths, self.first[1]);
        let high = _mm512_permutex2var_epi64(self.first[2], lengths, self.first[3]);
        _mm512_mask_mov_epi64(low, _mm512_test_epi64_mask(lengths, all(16)), high)
    }

    /// The powers of eight lengths from the table; of a length beyond the table, its last power.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn gathered(&self, lengths: __m512i) -> __m512i {
        let within = _mm512_min_epu64(lengths, all(POWERS as u64 - 1));
        // SAFETY: every index is below POWERS, the length of the table, and the scale is that of
        // its numbers.
        unsafe { _mm512_i64gather_epi64::<8>(within, self.table.as_ptr().cast()) }
    }
}
