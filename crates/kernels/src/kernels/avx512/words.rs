//! Words: 64 bytes become 64 bits, alphanumeric or not. A word starts or ends where the bits
//! change.
//!
//! Characters of two bytes are looked up 64 at a time, in tables that fit in registers; so are
//! characters of three bytes if the 64 characters with the same first two bytes are all
//! alphanumeric or all not. Characters of mixed rows (punctuation among kana, say) and characters
//! of four bytes are looked up one by one.

use std::arch::x86_64::*;

use super::vectors::{all_bytes, load_bytes, load_first_bytes, store_positions};
use crate::kernels::narrow::READ_AHEAD;
use crate::kernels::words::alphabet::{ALPHABET, Alphabet};

/// The numbers from 0 to 63.
const ASCENDING: [u8; 64] = {
    let mut numbers = [0; 64];
    let mut i = 0;
    while i < 64 {
        numbers[i] = i as u8;
        i += 1;
    }
    numbers
};

/// Byte `i` has bit `i % 8`.
pub(super) const BITS: [u8; 64] = {
    let mut bits = [0; 64];
    let mut i = 0;
    while i < 64 {
        bits[i] = 1 << (i % 8);
        i += 1;
    }
    bits
};

/// 1 for ASCII letters and digits.
const LETTERS: [[u8; 64]; 2] = {
    let mut letters = [[0; 64]; 2];
    let mut i = 0;
    while i < 128 {
        letters[i / 64][i % 64] = (i as u8).is_ascii_alphanumeric() as u8;
        i += 1;
    }
    letters
};

/// The bounds of words: see [`Kernels::words`](crate::kernels::Kernels::words).
#[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512vl,bmi1,bmi2,lzcnt,popcnt")]
pub(super) fn words(text: &[u8], bounds: &mut Vec<u32>) {
    let mut scan = WordScan::new(text, bounds);
    let mut at = 0;
    while let Some(block) = text[at..].first_chunk() {
        scan.block(load_bytes(block), at);
        at += 64;
    }
    // The rest, padded with NULs, which also end the last word.
    scan.block(load_first_bytes(&text[at..]), at);
}

/// A pass over a text.
pub(super) struct WordScan<'a> {
    alphabet: &'a Alphabet,
    text: &'a [u8],
    bounds: &'a mut Vec<u32>,
    /// 1 if the last byte of the previous block was part of a word.
    inside: u64,
    /// The bytes of this block that belong to an alphanumeric character begun in the previous
    /// block, as bits.
    begun: u64,
}

impl<'a> WordScan<'a> {
    pub(super) fn new(text: &'a [u8], bounds: &'a mut Vec<u32>) -> WordScan<'a> {
        WordScan { alphabet: &ALPHABET, text, bounds, inside: 0, begun: 0 }
    }

    /// Adds the bounds in the block at `at`. Returns which bytes are part of words, as bits; and
    /// the same, one byte later.
    #[inline]
    #[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512vl,bmi1,bmi2,lzcnt,popcnt")]
    pub(super) fn block(&mut self, bytes: __m512i, at: usize) -> [u64; 2] {
        let letters = _mm512_permutex2var_epi8(load_bytes(&LETTERS[0]), bytes, load_bytes(&LETTERS[1]));
        let beyond = _mm512_movepi8_mask(bytes);
        let mut word = _mm512_test_epi8_mask(letters, letters) & !beyond;
        if beyond != 0 {
            word |= self.beyond_ascii(bytes, at);
        }
        let later = word << 1 | self.inside;
        let changes = word ^ later;
        self.inside = word >> 63;
        let positions = _mm512_maskz_compress_epi8(changes, load_bytes(&ASCENDING));
        let base = _mm512_set1_epi32((at as u32).cast_signed());
        let count = changes.count_ones() as usize;
        let before = self.bounds.len();
        self.bounds.reserve(64);
        let mut push = |positions: __m128i| {
            let mut sixteen = [0; 16];
            store_positions(&mut sixteen, _mm512_add_epi32(_mm512_cvtepu8_epi32(positions), base));
            self.bounds.extend_from_slice(&sixteen);
        };
        push(_mm512_castsi512_si128(positions));
        if count > 16 {
            push(_mm512_extracti32x4_epi32::<1>(positions));
            if count > 32 {
                push(_mm512_extracti32x4_epi32::<2>(positions));
                push(_mm512_extracti32x4_epi32::<3>(positions));
            }
        }
        self.bounds.truncate(before + count);
        [word, later]
    }

    /// The bytes of alphanumeric characters beyond ASCII, as bits.
    #[inline]
    #[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512vl,bmi1,bmi2,lzcnt,popcnt")]
    fn beyond_ascii(&mut self, bytes: __m512i, at: usize) -> u64 {
        let mut padded = [0; READ_AHEAD];
        let block = match self.text[at..].first_chunk() {
            Some(block) => block,
            None => {
                padded[..self.text.len() - at].copy_from_slice(&self.text[at..]);
                &padded
            }
        };
        let next = load_bytes(block[1..].first_chunk().expect("three bytes more than a block"));
        let after = load_bytes(block[2..].first_chunk().expect("three bytes more than a block"));
        let continues = |bytes: __m512i| _mm512_cmplt_epi8_mask(bytes, _mm512_set1_epi8(-64));
        let within =
            |from: u8, count: u8| _mm512_cmplt_epu8_mask(_mm512_sub_epi8(bytes, all_bytes(from)), all_bytes(count));
        let two = within(0xC2, 0x1E) & continues(next);
        let three = within(0xE0, 0x10) & continues(next) & continues(after);
        // The characters that are looked up one by one.
        let mut single = within(0xF0, 0x10);
        // The index of a byte of a table: five bits of the leading byte and three of the next;
        // three more bits of that are the bit in the byte.
        let index = _mm512_ternarylogic_epi64::<0xCA>(
            all_bytes(0xF8),
            _mm512_slli_epi16::<3>(bytes),
            _mm512_srli_epi16::<3>(next),
        );
        let bit = _mm512_permutexvar_epi8(next, load_bytes(&BITS));
        let row = |table: &[u8; 128]| {
            let (halves, _) = table.as_chunks::<64>();
            _mm512_permutex2var_epi8(load_bytes(&halves[0]), index, load_bytes(&halves[1]))
        };
        let mut leads_two = 0;
        if two != 0 {
            let (halves, _) = self.alphabet.two.as_chunks::<128>();
            let rows = _mm512_mask_blend_epi8(_mm512_movepi8_mask(index), row(&halves[0]), row(&halves[1]));
            leads_two = two & _mm512_test_epi8_mask(rows, bit);
        }
        let (mut leads_three, mut leads_four) = (0, 0);
        if three != 0 {
            leads_three = three & _mm512_test_epi8_mask(row(&self.alphabet.all), bit);
            single |= three & _mm512_test_epi8_mask(row(&self.alphabet.any), bit) & !leads_three;
        }
        while single != 0 {
            let lead = single.trailing_zeros() as usize;
            match self.alphabet.leads(*block[lead..].first_chunk().expect("three bytes more than a block")) {
                3 => leads_three |= 1 << lead,
                4 => leads_four |= 1 << lead,
                _ => {}
            }
            single &= single - 1;
        }
        let (leads, longer) = (leads_two | leads_three | leads_four, leads_three | leads_four);
        let members = leads | leads << 1 | longer << 2 | leads_four << 3 | self.begun;
        self.begun = leads >> 63 | longer >> 62 | leads_four >> 61;
        members
    }
}
