//! Where the bytes stand that mean something in markup: one bit a byte, 64 bytes a word.
//!
//! Made once a page, so that the scanner finds each next place by a shift and a count of zeros. A search a place
//! (`memchr`) costs more than what it skips: the corpus has a tag every 32 bytes.
//!
//! Of the six bytes no two end in the same four bits. So a byte is marked if a table of 16, looked up by those, gives
//! the byte itself: one shuffle and one comparison a vector and bitmap, on any processor.

/// What ends text: a tag or a reference.
const TEXT_ENDS: [u8; 2] = *b"<&";
/// What the scanner must look at inside a tag: its end, where values begin, and what values are in.
const TAG_MARKS: [u8; 4] = *b">=\"'";

/// Bitmaps over a page: bit `i % 64` of word `i / 64` tells of byte `i`. Meant to be reused from page to page.
#[derive(Clone, Debug, Default)]
pub struct Marks {
    /// Bytes of the page.
    length: usize,
    /// Where `<` and `&` are. Words are little-endian, and only as many as the page needs and one are of this page.
    text_ends: Vec<u64>,
    /// Where `>`, `=`, `"` and `'` are, likewise.
    tag_marks: Vec<u64>,
}

impl Marks {
    /// Empties them for the next page.
    pub fn clear(&mut self) {
        self.length = 0;
    }

    /// Position of the first `<` or `&` from `from` on, which is in the page or at its end. The length of the page if
    /// there is none.
    #[inline]
    pub fn text_end(&self, from: usize) -> usize {
        self.next(&self.text_ends, from)
    }

    /// Position of the first `>`, `=`, `"` or `'` from `from` on, likewise.
    #[inline]
    pub fn tag_mark(&self, from: usize) -> usize {
        self.next(&self.tag_marks, from)
    }

    #[inline]
    fn next(&self, words: &[u64], from: usize) -> usize {
        // A word that begins at the byte of `from` has 57 bits or more of what is wanted. Whole words would end within
        // many a tag, and no processor foresees which.
        let window = bytemuck::cast_slice::<u64, u8>(words)[from / 8..].first_chunk();
        let window = u64::from_le_bytes(*window.expect("a word follows the page's")) >> (from % 8);
        if window != 0 { from + window.trailing_zeros() as usize } else { self.next_far(words, from) }
    }

    fn next_far(&self, words: &[u64], from: usize) -> usize {
        let first = from / 64 + 1; // of it the window has seen a part, which is zero
        let words = &words[first.min(self.length.div_ceil(64))..self.length.div_ceil(64)];
        match words.iter().position(|&word| word != 0) {
            Some(n) => (first + n) * 64 + u64::from_le(words[n]).trailing_zeros() as usize,
            None => self.length,
        }
    }

    /// Makes room for the words of a page of `length` bytes; gives `text_ends` and `tag_marks`, to be filled.
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

    /// Fills the words of a page, given what makes those of one block. The last block is filled up with zeros.
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

/// The marks of a page, plainly.
pub(super) fn scalar(page: &[u8], marks: &mut Marks) {
    marks.fill(page, |block| {
        let of = |wanted: &[u8]| {
            block.iter().enumerate().fold(0, |word, (i, byte)| word | u64::from(wanted.contains(byte)) << i)
        };
        (of(&TEXT_ENDS), of(&TAG_MARKS))
    });
}

/// The table that gives each of `wanted` at its last four bits, and elsewhere a byte that does not belong there.
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
    use super::{Marks, TAG_MARKS, TEXT_ENDS, table};
    use std::arch::x86_64::*;

    /// The marks of a page, by AVX2.
    #[target_feature(enable = "avx2")]
    pub(in super::super) fn avx2(page: &[u8], marks: &mut Marks) {
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
    pub(in super::super) fn avx512(page: &[u8], marks: &mut Marks) {
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
    use super::{Marks, TAG_MARKS, TEXT_ENDS, table};
    use std::arch::aarch64::*;

    /// The marks of a page, by NEON, which every processor of 64-bit ARM has.
    pub(in super::super) fn neon(page: &[u8], marks: &mut Marks) {
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
                    // Sums of eight neighbours, each with a bit of its own, are the bytes of the word.
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

    type Level = (&'static str, fn(&[u8], &mut Marks));

    fn levels() -> Vec<Level> {
        #[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), expect(unused_mut))]
        let mut levels: Vec<Level> = vec![("scalar", scalar)];
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
            let mut marks = Marks::default();
            level(&[b'<'; 300], &mut marks); // what is left of another page must not be seen
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
