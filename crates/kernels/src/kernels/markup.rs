//! Bitmaps of the markup characters of a page: one bit for each byte, 64 bytes to a word.
//!
//! They are computed once per page. Then the scanner finds the next character by a shift and a
//! count of zeros. A search for each (`memchr`) costs more than it saves: the corpus has a tag
//! every 32 bytes.
//!
//! No two of the six characters have the same low four bits. So a byte is one of them if a table of
//! 16 bytes, looked up with its low four bits, has the byte itself: one shuffle and one comparison
//! per vector and bitmap, on any processor.

/// The characters that end text: the start of a tag and of a reference.
const TEXT_ENDS: [u8; 2] = *b"<&";
/// The characters that the scanner reads inside a tag: its end, the start of a value, and quotes.
const TAG_MARKS: [u8; 4] = *b">=\"'";

/// Bitmaps of a page: bit `i % 64` of word `i / 64` is for byte `i`. Reuse them from page to page.
///
/// ```
/// use nigh_kernels::kernels::{MarkupBitmaps, chosen};
/// let mut marks = MarkupBitmaps::default();
/// chosen()?.marks(b"text <a href=x>", &mut marks);
/// assert_eq!((marks.text_end(0), marks.tag_mark(6), marks.text_end(6)), (5, 12, 15));
/// # anyhow::Ok(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct MarkupBitmaps {
    /// The length of the page in bytes.
    length: usize,
    /// The positions of `<` and `&`. Words are little-endian. Only the words of the page and one
    /// more, zero, are valid; later ones are left from other pages.
    text_ends: Vec<u64>,
    /// The positions of `>`, `=`, `"` and `'`, likewise.
    tag_marks: Vec<u64>,
}

impl MarkupBitmaps {
    /// Clears the bitmaps for the next page.
    pub fn clear(&mut self) {
        self.length = 0;
    }

    /// The position of the first `<` or `&` at or after `from`, which is in the page or at its end.
    /// The length of the page if there is none.
    #[inline]
    pub fn text_end(&self, from: usize) -> usize {
        self.next(&self.text_ends, from)
    }

    /// The position of the first `>`, `=`, `"` or `'` at or after `from`, likewise.
    #[inline]
    pub fn tag_mark(&self, from: usize) -> usize {
        self.next(&self.tag_marks, from)
    }

    /// The position of the first set bit at or after `from`.
    #[inline]
    fn next(&self, words: &[u64], from: usize) -> usize {
        // 64 bits from the byte that holds bit `from`: at least 57 of them are at or after it.
        // Aligned words would often end within a tag, which is a branch that no processor predicts.
        let window = bytemuck::cast_slice::<u64, u8>(words)[from / 8..].first_chunk();
        let window = u64::from_le_bytes(*window.expect("a word follows the page's")) >> (from % 8);
        if window != 0 { from + window.trailing_zeros() as usize } else { self.next_far(words, from) }
    }

    /// As `next`, if the first window is zero.
    fn next_far(&self, words: &[u64], from: usize) -> usize {
        let first = from / 64 + 1; // the window covered all of the word before, and a part of this one, which is zero
        let words = &words[first.min(self.length.div_ceil(64))..self.length.div_ceil(64)];
        match words.iter().position(|&word| word != 0) {
            Some(n) => (first + n) * 64 + u64::from_le(words[n]).trailing_zeros() as usize,
            None => self.length,
        }
    }

    /// Makes room for the words of a page of `length` bytes; returns `text_ends` and `tag_marks` to
    /// be filled.
    fn words(&mut self, length: usize) -> (&mut [u64], &mut [u64]) {
        let count = length.div_ceil(64);
        self.length = length;
        for words in [&mut self.text_ends, &mut self.tag_marks] {
            if words.len() <= count {
                words.resize(count + 1, 0);
            }
            words[count] = 0;
        }
        (&mut self.text_ends[..count], &mut self.tag_marks[..count])
    }

    /// Fills the words of a page; `block` computes those of one block. The last block is padded
    /// with zeros.
    #[inline(always)]
    fn fill(&mut self, page: &[u8], block: impl Fn(&[u8; 64]) -> (u64, u64)) {
        let (text_ends, tag_marks) = self.words(page.len());
        let (blocks, rest) = page.as_chunks::<64>();
        let mut last = [0; 64];
        last[..rest.len()].copy_from_slice(rest);
        let blocks = blocks.iter().chain((!rest.is_empty()).then_some(&last));
        for ((bytes, text_end), tag_mark) in blocks.zip(text_ends).zip(tag_marks) {
            let (ends, marks) = block(bytes);
            (*text_end, *tag_mark) = (ends.to_le(), marks.to_le());
        }
    }
}

/// The marks of a page, byte by byte: the definition.
pub(super) fn scalar(page: &[u8], marks: &mut MarkupBitmaps) {
    marks.fill(page, |block| {
        let of = |wanted: &[u8]| {
            block.iter().enumerate().fold(0, |word, (i, byte)| word | u64::from(wanted.contains(byte)) << i)
        };
        (of(&TEXT_ENDS), of(&TAG_MARKS))
    });
}

/// The table that has each byte of `wanted` at its low four bits, and elsewhere a byte with other
/// low bits.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
const fn table(wanted: &[u8]) -> [u8; 16] {
    let mut table = [0; 16];
    table[0] = 1;
    let mut i = 0;
    while i < wanted.len() {
        let place = (wanted[i] & 15) as usize;
        assert!(place > 0 && table[place] == 0);
        table[place] = wanted[i];
        i += 1;
    }
    table
}

#[cfg(target_arch = "x86_64")]
pub(super) use x86::{avx2, avx512};

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{MarkupBitmaps, TAG_MARKS, TEXT_ENDS, table};
    use std::arch::x86_64::*;

    /// The marks of a page, by AVX2.
    #[target_feature(enable = "avx2")]
    pub(in super::super) fn avx2(page: &[u8], marks: &mut MarkupBitmaps) {
        // SAFETY: an array of 16 bytes is loaded.
        let [ends, tags] = [table(&TEXT_ENDS), table(&TAG_MARKS)]
            .map(|table| _mm256_broadcastsi128_si256(unsafe { _mm_loadu_si128(table.as_ptr().cast()) }));
        marks.fill(page, |block| {
            // SAFETY: a block is 64 bytes, two vectors.
            let [low, high] = [0, 32].map(|at| unsafe { _mm256_loadu_si256(block.as_ptr().add(at).cast()) });
            let half = |table, bytes| {
                let equal = _mm256_cmpeq_epi8(_mm256_shuffle_epi8(table, bytes), bytes);
                u64::from(_mm256_movemask_epi8(equal) as u32)
            };
            let word = |table| half(table, low) | half(table, high) << 32;
            (word(ends), word(tags))
        });
    }

    /// The marks of a page, by AVX-512BW.
    #[target_feature(enable = "avx512f,avx512bw")]
    pub(in super::super) fn avx512(page: &[u8], marks: &mut MarkupBitmaps) {
        // SAFETY: an array of 16 bytes is loaded.
        let [ends, tags] = [table(&TEXT_ENDS), table(&TAG_MARKS)]
            .map(|table| _mm512_broadcast_i32x4(unsafe { _mm_loadu_si128(table.as_ptr().cast()) }));
        marks.fill(page, |block| {
            // SAFETY: a block is 64 bytes, one vector.
            let bytes = unsafe { _mm512_loadu_si512(block.as_ptr().cast()) };
            let word = |table| _mm512_cmpeq_epi8_mask(_mm512_shuffle_epi8(table, bytes), bytes);
            (word(ends), word(tags))
        });
    }
}

#[cfg(target_arch = "aarch64")]
pub(super) use aarch64::neon;

#[cfg(target_arch = "aarch64")]
mod aarch64 {
    use super::{MarkupBitmaps, TAG_MARKS, TEXT_ENDS, table};
    use std::arch::aarch64::*;

    /// The marks of a page, by NEON, which every 64-bit ARM processor has.
    pub(in super::super) fn neon(page: &[u8], marks: &mut MarkupBitmaps) {
        const BITS: [u8; 16] = [1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128];
        // SAFETY: arrays of 16 bytes are loaded; NEON is part of the target.
        let [ends, tags, bits] =
            [table(&TEXT_ENDS), table(&TAG_MARKS), BITS].map(|table| unsafe { vld1q_u8(table.as_ptr()) });
        marks.fill(page, |block| {
            // SAFETY: a block is 64 bytes, four vectors; NEON is part of the target.
            let quarters = [0, 16, 32, 48].map(|at| unsafe { vld1q_u8(block.as_ptr().add(at)) });
            let word = |table| {
                // SAFETY: NEON is part of the target.
                unsafe {
                    let [a, b, c, d] = quarters.map(|bytes| {
                        let looked_up = vqtbl1q_u8(table, vandq_u8(bytes, vdupq_n_u8(15)));
                        vandq_u8(vceqq_u8(looked_up, bytes), bits)
                    });
                    // The sum of eight neighbours, each with a different bit, is a byte of the
                    // word.
                    let sums = vpaddq_u8(vpaddq_u8(a, b), vpaddq_u8(c, d));
                    vgetq_lane_u64::<0>(vreinterpretq_u64_u8(vpaddq_u8(sums, sums)))
                }
            };
            (word(ends), word(tags))
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type MarksByLevel = (&'static str, fn(&[u8], &mut MarkupBitmaps));

    fn levels() -> Vec<MarksByLevel> {
        #[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), expect(unused_mut))]
        let mut levels: Vec<MarksByLevel> = vec![("scalar", scalar)];
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx2") {
                // SAFETY: it was detected.
                levels.push(("avx2", |page, marks| unsafe { avx2(page, marks) }));
            }
            if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw") {
                // SAFETY: both were detected.
                levels.push(("avx512", |page, marks| unsafe { avx512(page, marks) }));
            }
        }
        #[cfg(target_arch = "aarch64")]
        levels.push(("neon", neon));
        levels
    }

    /// Checks every level against a search byte by byte, from every position.
    fn assert_marks(page: &[u8]) {
        for (name, level) in levels() {
            let mut marks = MarkupBitmaps::default();
            level(&[b'<'; 300], &mut marks); // marks left from another page must not matter
            level(page, &mut marks);
            for from in 0..=page.len() {
                let next = |wanted: &[u8]| {
                    page[from..].iter().position(|byte| wanted.contains(byte)).map_or(page.len(), |n| from + n)
                };
                assert_eq!(marks.text_end(from), next(b"<&"), "{name} from {from} of {page:?}");
                assert_eq!(marks.tag_mark(from), next(b">=\"'"), "{name} from {from} of {page:?}");
            }
        }
    }

    #[test]
    fn every_byte_is_marked_as_it_should_be_wherever_it_stands() {
        let all: Vec<u8> = (0..=255).collect();
        for start in 0..64 {
            assert_marks(&all[start..]);
            assert_marks(&[&vec![0; start][..], &all].concat());
        }
    }

    #[test]
    fn pages_of_all_lengths_have_their_last_marks() {
        for length in 0..200 {
            assert_marks(&vec![b'x'; length]);
            assert_marks(&[&vec![b'x'; length][..], b"<"].concat());
            assert_marks(&[&vec![b'x'; length][..], b"'"].concat());
        }
    }

    proptest! {
        #[test]
        fn every_level_marks_what_scalar_does(
            page in prop::collection::vec(prop::sample::select(&b"<&>=\"'ax \xbc\xe9\0"[..]), 0..300),
        ) {
            assert_marks(&page);
        }
    }
}
