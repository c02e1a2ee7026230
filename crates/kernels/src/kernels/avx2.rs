//! The level of x86-64 processors with AVX2 and carry-less products: [`narrow`] with vectors of 32
//! bytes.

use std::arch::x86_64::*;

use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use super::narrow::{self, Narrow};
use super::words::{joined, spaceless};
use super::{FeatureRuns, Functions, JoinedWords, Kernels, MarkupBitmaps, ShingleConstants, markup, scalar};

/// The table of the level; [`available`](super::available) lists it only if [`detected`] returns
/// true.
pub(super) static KERNELS: Kernels = Kernels {
    name: "avx2",
    put_blanks: spaceless::by_runs,
    words,
    join,
    preimages,
    minima,
    supershingles,
    marks,
    held: scalar::held,
    hash_64: xxh3_64,
    hash_128: xxh3_128,
};

/// Whether this machine has all instructions of the level.
pub(super) fn detected() -> bool {
    is_x86_feature_detected!("pclmulqdq")
        && is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("sse4.1")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("lzcnt")
        && is_x86_feature_detected!("popcnt")
}

/// A value is the proof that this machine has the instructions: only [`Avx2::new`] makes one.
#[derive(Clone, Copy)]
struct Avx2(());

impl Avx2 {
    #[target_feature(enable = "pclmulqdq,avx2,sse4.1,bmi1,bmi2,lzcnt,popcnt")]
    #[inline]
    fn new() -> Avx2 {
        Avx2(())
    }
}

fn words(text: &[u8], bounds: &mut Vec<u32>) {
    #[target_feature(enable = "pclmulqdq,avx2,sse4.1,bmi1,bmi2,lzcnt,popcnt")]
    fn compiled(text: &[u8], bounds: &mut Vec<u32>) {
        narrow::words(Avx2::new(), text, bounds);
    }
    // SAFETY: `available` returns the table only if `detected` returns true.
    unsafe { compiled(text, bounds) }
}

fn join(text: &[u8], line_end: u8, bounds: &mut Vec<u32>, joined: &mut JoinedWords) {
    words(text, bounds);
    joined::by_words(text, bounds, line_end, joined);
}

fn preimages(shingles: &ShingleConstants, text: &[u8], bounds: &[u32], preimages: &mut Vec<u64>) {
    #[target_feature(enable = "pclmulqdq,avx2,sse4.1,bmi1,bmi2,lzcnt,popcnt")]
    fn compiled(shingles: &ShingleConstants, text: &[u8], bounds: &[u32], preimages: &mut Vec<u64>) {
        narrow::preimages(Avx2::new(), shingles, text, bounds, preimages);
    }
    // SAFETY: `available` returns the table only if `detected` returns true.
    unsafe { compiled(shingles, text, bounds, preimages) }
}

fn marks(page: &[u8], marks: &mut MarkupBitmaps) {
    // SAFETY: `available` returns the table only if `detected` returns true.
    unsafe { markup::avx2(page, marks) }
}

fn minima(functions: &Functions, preimages: &[u64], minima: &mut [u64]) {
    #[target_feature(enable = "pclmulqdq,avx2,sse4.1,bmi1,bmi2,lzcnt,popcnt")]
    fn compiled(functions: &Functions, preimages: &[u64], minima: &mut [u64]) {
        narrow::minima(Avx2::new(), functions, preimages, minima);
    }
    // SAFETY: `available` returns the table only if `detected` returns true.
    unsafe { compiled(functions, preimages, minima) }
}

fn supershingles(runs: &FeatureRuns, features: &[u64], supershingles: &mut Vec<u64>) {
    #[target_feature(enable = "pclmulqdq,avx2,sse4.1,bmi1,bmi2,lzcnt,popcnt")]
    fn compiled(runs: &FeatureRuns, features: &[u64], supershingles: &mut Vec<u64>) {
        narrow::supershingles(Avx2::new(), runs, features, supershingles);
    }
    // SAFETY: `available` returns the table only if `detected` returns true.
    unsafe { compiled(runs, features, supershingles) }
}

impl Narrow for Avx2 {
    type Block = [__m256i; 2];
    type Pair = __m128i;

    #[inline(always)]
    fn block(self, bytes: &[u8; 64]) -> Self::Block {
        let at: *const __m256i = bytes.as_ptr().cast();
        // SAFETY: `self` is the proof of the instructions; both unaligned loads are of the 64
        // bytes.
        unsafe { [_mm256_loadu_si256(at), _mm256_loadu_si256(at.add(1))] }
    }

    #[inline(always)]
    fn lanes(self, lane: &[u8; 16]) -> Self::Block {
        // SAFETY: `self` is the proof of the instructions; the unaligned load is of the 16 bytes.
        unsafe { [_mm256_broadcastsi128_si256(_mm_loadu_si128(lane.as_ptr().cast())); 2] }
    }

    #[inline(always)]
    fn splat(self, byte: u8) -> Self::Block {
        // SAFETY: `self` is the proof of the instructions.
        unsafe { [_mm256_set1_epi8(byte as i8); 2] }
    }

    #[inline(always)]
    fn or(self, a: Self::Block, b: Self::Block) -> Self::Block {
        // SAFETY: `self` is the proof of the instructions.
        unsafe { [_mm256_or_si256(a[0], b[0]), _mm256_or_si256(a[1], b[1])] }
    }

    #[inline(always)]
    fn xor(self, a: Self::Block, b: Self::Block) -> Self::Block {
        // SAFETY: `self` is the proof of the instructions.
        unsafe { [_mm256_xor_si256(a[0], b[0]), _mm256_xor_si256(a[1], b[1])] }
    }

    #[inline(always)]
    fn subtract(self, a: Self::Block, b: Self::Block) -> Self::Block {
        // SAFETY: `self` is the proof of the instructions.
        unsafe { [_mm256_sub_epi8(a[0], b[0]), _mm256_sub_epi8(a[1], b[1])] }
    }

    #[inline(always)]
    fn smaller(self, a: Self::Block, b: Self::Block) -> Self::Block {
        // SAFETY: `self` is the proof of the instructions.
        unsafe { [_mm256_min_epu8(a[0], b[0]), _mm256_min_epu8(a[1], b[1])] }
    }

    #[inline(always)]
    fn at_most(self, a: Self::Block, b: Self::Block) -> Self::Block {
        let smaller = self.smaller(a, b);
        // SAFETY: `self` is the proof of the instructions.
        unsafe { [_mm256_cmpeq_epi8(smaller[0], a[0]), _mm256_cmpeq_epi8(smaller[1], a[1])] }
    }

    #[inline(always)]
    fn bits(self, a: Self::Block) -> u64 {
        // SAFETY: `self` is the proof of the instructions.
        let [low, high] = unsafe { [_mm256_movemask_epi8(a[0]) as u32, _mm256_movemask_epi8(a[1]) as u32] };
        u64::from(high) << 32 | u64::from(low)
    }

    #[inline(always)]
    fn smallest(self, a: Self::Block) -> u8 {
        // SAFETY: `self` is the proof of the instructions.
        unsafe {
            let half = _mm256_min_epu8(a[0], a[1]);
            let lane = _mm_min_epu8(_mm256_castsi256_si128(half), _mm256_extracti128_si256::<1>(half));
            // The smaller of each pair of bytes, as a number of 16 bits.
            let twos = _mm_min_epu8(lane, _mm_srli_epi16::<8>(lane));
            _mm_cvtsi128_si32(_mm_minpos_epu16(twos)) as u8
        }
    }

    #[inline(always)]
    fn nibbles(self, a: Self::Block) -> [Self::Block; 2] {
        // SAFETY: `self` is the proof of the instructions.
        unsafe {
            let low = _mm256_set1_epi8(15);
            [
                [_mm256_and_si256(a[0], low), _mm256_and_si256(a[1], low)],
                [
                    _mm256_and_si256(_mm256_srli_epi16::<4>(a[0]), low),
                    _mm256_and_si256(_mm256_srli_epi16::<4>(a[1]), low),
                ],
            ]
        }
    }

    #[inline(always)]
    fn lookup(self, table: Self::Block, indices: Self::Block) -> Self::Block {
        // SAFETY: `self` is the proof of the instructions.
        unsafe { [_mm256_shuffle_epi8(table[0], indices[0]), _mm256_shuffle_epi8(table[1], indices[1])] }
    }

    #[inline(always)]
    fn zip_2(self, a: Self::Block, b: Self::Block) -> [Self::Block; 2] {
        // SAFETY: `self` is the proof of the instructions.
        unsafe {
            [
                [_mm256_unpacklo_epi16(a[0], b[0]), _mm256_unpacklo_epi16(a[1], b[1])],
                [_mm256_unpackhi_epi16(a[0], b[0]), _mm256_unpackhi_epi16(a[1], b[1])],
            ]
        }
    }

    #[inline(always)]
    fn zip_4(self, a: Self::Block, b: Self::Block) -> [Self::Block; 2] {
        // SAFETY: `self` is the proof of the instructions.
        unsafe {
            [
                [_mm256_unpacklo_epi32(a[0], b[0]), _mm256_unpacklo_epi32(a[1], b[1])],
                [_mm256_unpackhi_epi32(a[0], b[0]), _mm256_unpackhi_epi32(a[1], b[1])],
            ]
        }
    }

    #[inline(always)]
    fn zip_8(self, a: Self::Block, b: Self::Block) -> [Self::Block; 2] {
        // SAFETY: `self` is the proof of the instructions.
        unsafe {
            [
                [_mm256_unpacklo_epi64(a[0], b[0]), _mm256_unpacklo_epi64(a[1], b[1])],
                [_mm256_unpackhi_epi64(a[0], b[0]), _mm256_unpackhi_epi64(a[1], b[1])],
            ]
        }
    }

    #[inline(always)]
    fn number(self, x: u64) -> Self::Pair {
        // SAFETY: `self` is the proof of the instructions.
        unsafe { _mm_set1_epi64x(x as i64) }
    }

    #[inline(always)]
    fn lookup_lane(self, table: &[u8; 16], indices: &[u8; 16]) -> Self::Pair {
        // SAFETY: `self` is the proof of the instructions; both unaligned loads are of the 16
        // bytes.
        unsafe { _mm_shuffle_epi8(_mm_loadu_si128(table.as_ptr().cast()), _mm_loadu_si128(indices.as_ptr().cast())) }
    }

    #[inline(always)]
    fn low(self, a: Self::Pair) -> u64 {
        // SAFETY: `self` is the proof of the instructions.
        unsafe { _mm_cvtsi128_si64(a) as u64 }
    }

    #[inline(always)]
    fn add(self, a: Self::Pair, b: Self::Pair) -> Self::Pair {
        // SAFETY: `self` is the proof of the instructions.
        unsafe { _mm_xor_si128(a, b) }
    }

    #[inline(always)]
    fn multiply_low(self, a: Self::Pair, b: Self::Pair) -> Self::Pair {
        // SAFETY: `self` is the proof of the instructions.
        unsafe { _mm_clmulepi64_si128::<0x00>(a, b) }
    }

    #[inline(always)]
    fn multiply_high(self, a: Self::Pair, b: Self::Pair) -> Self::Pair {
        // SAFETY: `self` is the proof of the instructions.
        unsafe { _mm_clmulepi64_si128::<0x11>(a, b) }
    }
}
