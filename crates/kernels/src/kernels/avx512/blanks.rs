//! Blanks around the characters of scripts without blanks, 64 bytes at a time.
//!
//! The leading bytes of these characters become bits; a shift gives the bytes after their ends. A
//! blank belongs before each of both, if it and the byte before it are no white space. Then the
//! bytes of half a block are interleaved with blanks, of which only those that belong there are
//! kept by compression.

use std::arch::x86_64::*;

use super::vectors::{all_bytes, load_bytes, load_first_bytes, store_bytes};
use super::words::BITS;
use crate::kernels::narrow::READ_AHEAD;
use crate::kernels::words::spaceless::{CharacterRows, ROWS, spaceless_length};

/// At odd places the numbers of the bytes of half a block.
const INTERLEAVED: [[u8; 64]; 2] = {
    let mut places = [[0; 64]; 2];
    let mut i = 0;
    while i < 32 {
        places[0][2 * i + 1] = i as u8;
        places[1][2 * i + 1] = 32 + i as u8;
        i += 1;
    }
    places
};

/// The places of blanks, and those of bytes, among interleaved bytes.
const EVEN: u64 = u64::MAX / 3;
const ODD: u64 = !EVEN;

/// See [`Kernels::put_blanks`](crate::kernels::Kernels::put_blanks).
#[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512vl,bmi1,bmi2,lzcnt,popcnt")]
pub(super) fn put_blanks(text: &[u8], spaced: &mut Vec<u8>) -> u64 {
    let mut scan = BlankScan { text, rows: &ROWS, after: 0, dark: 0 };
    let (mut blanks, mut length) = (0, 0);
    for at in (0..text.len()).step_by(64) {
        let rest = &text[at..];
        let (bytes, present) = match rest.first_chunk() {
            Some(block) => (load_bytes(block), u64::MAX),
            None => (load_first_bytes(rest), !(u64::MAX << rest.len())),
        };
        let puts = scan.block(bytes, at);
        if blanks == 0 {
            // Nothing is copied before there is a blank.
            if puts == 0 {
                continue;
            }
            // A character has three bytes or more, and at most two blanks; and there is room for
            // whole vectors.
            let room = text.len() + text.len() / 3 * 2 + 128;
            if spaced.len() < room {
                spaced.resize(room, 0);
            }
            spaced[..at].copy_from_slice(&text[..at]);
            length = at;
        }
        let mut append = |vector: __m512i, count: u32| {
            let to = spaced[length..].first_chunk_mut().expect("there is room for a vector more");
            store_bytes(to, vector);
            length += count as usize;
        };
        if puts == 0 {
            append(bytes, present.count_ones());
            continue;
        }
        blanks += u64::from(puts.count_ones());
        for (half, places) in INTERLEAVED.iter().enumerate() {
            let (puts, present) = (puts >> (32 * half) & 0xFFFF_FFFF, present >> (32 * half) & 0xFFFF_FFFF);
            let interleaved = _mm512_mask_permutexvar_epi8(all_bytes(b' '), ODD, load_bytes(places), bytes);
            let kept = _pdep_u64(puts, EVEN) | _pdep_u64(present, ODD);
            append(_mm512_maskz_compress_epi8(kept, interleaved), kept.count_ones());
        }
    }
    spaced.truncate(length);
    blanks
}

/// A pass over a text.
struct BlankScan<'a> {
    text: &'a [u8],
    rows: &'a CharacterRows,
    /// The bytes of this block after which a character ends that began in the previous block, as
    /// bits.
    after: u64,
    /// 1 if the last byte of the previous block was no white space.
    dark: u64,
}

impl BlankScan<'_> {
    /// The bytes of the block at `at` before which a blank belongs, as bits.
    #[inline]
    #[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512vl,bmi1,bmi2,lzcnt,popcnt")]
    fn block(&mut self, bytes: __m512i, at: usize) -> u64 {
        let dark = _mm512_cmpgt_epu8_mask(bytes, all_bytes(b' '));
        let dark_before = dark << 1 | self.dark;
        self.dark = dark >> 63;
        let (three, four) = match _mm512_cmpge_epu8_mask(bytes, all_bytes(0xE0)) {
            0 => (0, 0),
            _ => self.leads(bytes, at),
        };
        let beside = three | four | three << 3 | four << 4 | self.after;
        self.after = three >> 61 | four >> 60;
        beside & dark & dark_before
    }

    /// The leading bytes of characters of three and of four bytes, as bits.
    #[inline]
    #[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512vl,bmi1,bmi2,lzcnt,popcnt")]
    fn leads(&self, bytes: __m512i, at: usize) -> (u64, u64) {
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
        let within = |bytes: __m512i, from: u8, count: u8| {
            _mm512_cmplt_epu8_mask(_mm512_sub_epi8(bytes, all_bytes(from)), all_bytes(count))
        };
        let three = within(bytes, 0xE0, 0x10) & continues(next) & continues(after);
        // The index of a byte of a table, and the bit in it, as in `words`.
        let index = _mm512_ternarylogic_epi64::<0xCA>(
            all_bytes(0xF8),
            _mm512_slli_epi16::<3>(bytes),
            _mm512_srli_epi16::<3>(next),
        );
        let bit = _mm512_permutexvar_epi8(next, load_bytes(&BITS));
        let row = |table: &[u8; 128]| {
            let (halves, _) = table.as_chunks::<64>();
            let row = _mm512_permutex2var_epi8(load_bytes(&halves[0]), index, load_bytes(&halves[1]));
            three & _mm512_test_epi8_mask(row, bit)
        };
        let mut leads_three = row(&self.rows.all);
        let mut leads_four = 0;
        let mut single = row(&self.rows.any) & !leads_three | within(bytes, 0xF0, 0x10);
        if single != 0 {
            // Most of these are punctuation of Chinese and Japanese, in the row of U+3005 to
            // U+3007.
            let punctuation =
                _mm512_cmpeq_epi8_mask(bytes, all_bytes(0xE3)) & _mm512_cmpeq_epi8_mask(next, all_bytes(0x80));
            leads_three |= single & punctuation & within(after, 0x85, 3);
            single &= !punctuation;
        }
        while single != 0 {
            let lead = single.trailing_zeros() as usize;
            match spaceless_length(&block[lead..]) {
                3 => leads_three |= 1 << lead,
                4 => leads_four |= 1 << lead,
                _ => {}
            }
            single &= single - 1;
        }
        (leads_three, leads_four)
    }
}
