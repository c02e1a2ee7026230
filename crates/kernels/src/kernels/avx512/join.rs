//! The words of a text, joined: 64 bytes at a time, without a branch for each word.
//!
//! The bytes of words and the first byte after each word, which becomes a blank, are compressed
//! into the output. A word that follows a line end is found by an addition: a line end added to the
//! ones of its gap carries into the first byte of the next word. The carry out of a block is the
//! carry into the next one.

use std::arch::x86_64::*;

use super::vectors::{all_bytes, load_bytes, load_first_bytes, store_bytes};
use super::words::WordScan;
use crate::kernels::words::joined::{JoinedWords, without_ends};

/// See [`Kernels::join`](crate::kernels::Kernels::join).
#[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512vl,bmi1,bmi2,lzcnt,popcnt")]
pub(super) fn join(text: &[u8], line_end: u8, bounds: &mut Vec<u32>, joined: &mut JoinedWords) {
    // A word has at least one byte, and one after it.
    joined.begin(text.len(), text.len().div_ceil(2));
    let words = WordScan::new(text, bounds);
    let mut scan = JoinScan { words, line_end, blank: 0, line: 0, sentence: 0, joined };
    // One call of `block`, for full blocks and for the rest, so that it is inlined and its state
    // stays in registers.
    for at in (0..=text.len()).step_by(64) {
        let rest = &text[at..];
        let (bytes, present) = match rest.first_chunk() {
            Some(block) => (load_bytes(block), u64::MAX),
            // Padded with NULs, of which the first is the blank after a last word.
            None => (load_first_bytes(rest), !(u64::MAX << rest.len())),
        };
        scan.block(bytes, at, present);
    }
    if let (Some(first), Some(last)) = (text.first(), text.last()) {
        joined.characters = without_ends(joined.characters, *first, *last);
    }
}

/// A pass over a text. The flags are those of the last byte of the previous block, or carries: 0 or
/// 1.
struct JoinScan<'a> {
    words: WordScan<'a>,
    line_end: u8,
    /// Whether the byte was a blank.
    blank: u64,
    /// Whether a line end came in the gap at the end of the previous block.
    line: u64,
    /// Whether a period came there.
    sentence: u64,
    joined: &'a mut JoinedWords,
}

impl JoinScan<'_> {
    /// Adds the words in the block at `at`, of which the bytes `present` are of the text.
    #[inline]
    #[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512vl,bmi1,bmi2,lzcnt,popcnt")]
    fn block(&mut self, bytes: __m512i, at: usize, present: u64) {
        let [word, later] = self.words.block(bytes, at);
        let (starts, ends) = (word & !later, later & !word);

        let blanks = _mm512_cmple_epu8_mask(bytes, all_bytes(b' '));
        let continued = _mm512_cmplt_epi8_mask(bytes, _mm512_set1_epi8(-64));
        let again = blanks & (blanks << 1 | self.blank);
        self.blank = blanks >> 63;

        let line_ends = _mm512_cmpeq_epi8_mask(bytes, all_bytes(self.line_end)) & present;
        let periods = _mm512_cmpeq_epi8_mask(bytes, all_bytes(b'.'));
        let after = |marks: u64, carry: &mut u64| {
            let (sum, over) = (!word).overflowing_add(marks);
            let (sum, over_again) = sum.overflowing_add(*carry);
            *carry = u64::from(over | over_again);
            sum & starts
        };
        let of_lines = after(line_ends, &mut self.line);
        let of_sentences = after(periods, &mut self.sentence);

        let kept = word | ends;
        let compressed = _mm512_maskz_compress_epi8(kept, _mm512_mask_mov_epi8(bytes, ends, all_bytes(b' ')));
        let joined = &mut *self.joined;
        joined.characters += u64::from((present & !continued & !again).count_ones());
        let start = joined.length;
        let room = joined.bytes[start..].first_chunk_mut().expect("there is room for a vector after the words");
        store_bytes(room, compressed);
        joined.length += kept.count_ones() as usize;
        push(_pext_u64(of_lines, kept), start, &mut joined.lines, &mut joined.line_count);
        push(_pext_u64(of_sentences, kept), start, &mut joined.sentences, &mut joined.sentence_count);
    }
}

/// Adds the positions of set bits, counted from `start`. Writes four at once, some of which are
/// overwritten later: a branch for each would often be mispredicted.
#[inline(always)]
fn push(mut bits: u64, start: usize, positions: &mut [u32], count: &mut usize) {
    let mut next = *count;
    *count += bits.count_ones() as usize;
    loop {
        let four = positions[next..].first_chunk_mut::<4>().expect("there is room for four positions more");
        for position in four {
            *position = start as u32 + bits.trailing_zeros();
            bits &= bits.wrapping_sub(1);
        }
        if bits == 0 {
            return;
        }
        next += 4;
    }
}
