//! The level of aarch64 processors with NEON and carry-less products: [`narrow`] with vectors of 16
//! bytes.

use std::arch::aarch64::*;

use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use super::narrow::{self, Narrow};
use super::words::{joined, spaceless};
use super::{FeatureRuns, Functions, JoinedWords, Kernels, ShingleConstants, markup, scalar};

/// The table of the level; [`available`](super::available) lists it only if [`detected`] returns
/// true.
pub(super) static KERNELS: Kernels = Kernels {
    name: "pmull",
    put_blanks: spaceless::by_runs,
    words,
    join,
    preimages,
    minima,
    supershingles,
    marks: markup::neon,
    held: scalar::held,
    hash_64: xxh3_64,
    hash_128: xxh3_128,
};

/// Whether this machine has all instructions of the level.
pub(super) fn detected() -> bool {
    // The compiler's feature `aes` covers the instructions of AES and those of carry-less products.
    std::arch::is_aarch64_feature_detected!("neon")
        && std::arch::is_aarch64_feature_detected!("aes")
        && std::arch::is_aarch64_feature_detected!("pmull")
}

/// A value is the proof that this machine has the instructions: only [`Pmull::new`] makes one.
#[derive(Clone, Copy)]
struct Pmull(());

impl Pmull {
    #[target_feature(enable = "neon,aes")]
    #[inline]
    fn new() -> Pmull {
        Pmull(())
    }
}

fn words(text: &[u8], bounds: &mut Vec<u32>) {
    #[target_feature(enable = "neon,aes")]
    fn compiled(text: &[u8], bounds: &mut Vec<u32>) {
        narrow::words(Pmull::new(), text, bounds);
    }
    // SAFETY: `available` returns the table only if `detected` returns true.
    unsafe { compiled(text, bounds) }
}

fn join(text: &[u8], line_end: u8, bounds: &mut Vec<u32>, joined: &mut JoinedWords) {
    words(text, bounds);
    joined::by_words(text, bounds, line_end, joined);
}

fn preimages(shingles: &ShingleConstants, text: &[u8], bounds: &[u32], preimages: &mut Vec<u64>) {
    #[target_feature(enable = "neon,aes")]
    fn compiled(shingles: &ShingleConstants, text: &[u8], bounds: &[u32], preimages: &mut Vec<u64>) {
        narrow::preimages(Pmull::new(), shingles, text, bounds, preimages);
    }
    // SAFETY: `available` returns the table only if `detected` returns true.
    unsafe { compiled(shingles, text, bounds, preimages) }
}

fn minima(functions: &Functions, preimages: &[u64], minima: &mut [u64]) {
    #[target_feature(enable = "neon,aes")]
    fn compiled(functions: &Functions, preimages: &[u64], minima: &mut [u64]) {
        narrow::minima(Pmull::new(), functions, preimages, minima);
    }
    // SAFETY: `available` returns the table only if `detected` returns true.
    unsafe { compiled(functions, preimages, minima) }
}

fn supershingles(runs: &FeatureRuns, features: &[u64], supershingles: &mut Vec<u64>) {
    #[target_feature(enable = "neon,aes")]
    fn compiled(runs: &FeatureRuns, features: &[u64], supershingles: &mut Vec<u64>) {
        narrow::supershingles(Pmull::new(), runs, features, supershingles);
    }
    // SAFETY: `available` returns the table only if `detected` returns true.
    unsafe { compiled(runs, features, supershingles) }
}

/// The bit of each byte in the mask of its eight bytes.
const WEIGHTS: [u8; 16] = [1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128];

/// Applies one instruction to the four vectors of each block.
macro_rules! each {
    ($of:ident, $($block:ident),+) => {
        // SAFETY: expanded only in methods whose `self` is the proof of the instructions.
        unsafe { [$of($($block[0]),+), $of($($block[1]),+), $of($($block[2]),+), $of($($block[3]),+)] }
    };
}

/// Applies one pair of zip instructions to the four vectors of two blocks, as vectors of larger
/// units.
macro_rules! zip {
    ($low:ident, $high:ident, $into:ident, $back:ident, $a:ident, $b:ident) => {
        // SAFETY: expanded only in methods whose `self` is the proof of the instructions.
        unsafe {
            let low = |i: usize| $back($low($into($a[i]), $into($b[i])));
            let high = |i: usize| $back($high($into($a[i]), $into($b[i])));
            [[low(0), low(1), low(2), low(3)], [high(0), high(1), high(2), high(3)]]
        }
    };
}

impl Narrow for Pmull {
    type Block = [uint8x16_t; 4];
    type Pair = uint64x2_t;

    #[inline(always)]
    fn block(self, bytes: &[u8; 64]) -> Self::Block {
        // SAFETY: `self` is the proof of the instructions; the loads are of the 64 bytes.
        unsafe {
            let at = bytes.as_ptr();
            [vld1q_u8(at), vld1q_u8(at.add(16)), vld1q_u8(at.add(32)), vld1q_u8(at.add(48))]
        }
    }

    #[inline(always)]
    fn lanes(self, lane: &[u8; 16]) -> Self::Block {
        // SAFETY: `self` is the proof of the instructions; the load is of the 16 bytes.
        unsafe { [vld1q_u8(lane.as_ptr()); 4] }
    }

    #[inline(always)]
    fn splat(self, byte: u8) -> Self::Block {
        // SAFETY: `self` is the proof of the instructions.
        unsafe { [vdupq_n_u8(byte); 4] }
    }

    #[inline(always)]
    fn or(self, a: Self::Block, b: Self::Block) -> Self::Block {
        each!(vorrq_u8, a, b)
    }

    #[inline(always)]
    fn xor(self, a: Self::Block, b: Self::Block) -> Self::Block {
        each!(veorq_u8, a, b)
    }

    #[inline(always)]
    fn subtract(self, a: Self::Block, b: Self::Block) -> Self::Block {
        each!(vsubq_u8, a, b)
    }

    #[inline(always)]
    fn smaller(self, a: Self::Block, b: Self::Block) -> Self::Block {
        each!(vminq_u8, a, b)
    }

    #[inline(always)]
    fn at_most(self, a: Self::Block, b: Self::Block) -> Self::Block {
        each!(vcleq_u8, a, b)
    }

    #[inline(always)]
    fn bits(self, a: Self::Block) -> u64 {
        let weights = self.lanes(&WEIGHTS);
        let [a, b, c, d] = each!(vandq_u8, a, weights);
        // SAFETY: `self` is the proof of the instructions.
        unsafe {
            // Three sums of neighbours combine eight bytes into one.
            let four = vpaddq_u8(vpaddq_u8(a, b), vpaddq_u8(c, d));
            vgetq_lane_u64::<0>(vreinterpretq_u64_u8(vpaddq_u8(four, four)))
        }
    }

    #[inline(always)]
    fn smallest(self, a: Self::Block) -> u8 {
        // SAFETY: `self` is the proof of the instructions.
        unsafe { vminvq_u8(vminq_u8(vminq_u8(a[0], a[1]), vminq_u8(a[2], a[3]))) }
    }

    #[inline(always)]
    fn nibbles(self, a: Self::Block) -> [Self::Block; 2] {
        let fifteen = self.splat(15);
        let high = {
            let shift = vshrq_n_u8::<4>;
            each!(shift, a)
        };
        [each!(vandq_u8, a, fifteen), high]
    }

    #[inline(always)]
    fn lookup(self, table: Self::Block, indices: Self::Block) -> Self::Block {
        each!(vqtbl1q_u8, table, indices)
    }

    #[inline(always)]
    fn zip_2(self, a: Self::Block, b: Self::Block) -> [Self::Block; 2] {
        zip!(vzip1q_u16, vzip2q_u16, vreinterpretq_u16_u8, vreinterpretq_u8_u16, a, b)
    }

    #[inline(always)]
    fn zip_4(self, a: Self::Block, b: Self::Block) -> [Self::Block; 2] {
        zip!(vzip1q_u32, vzip2q_u32, vreinterpretq_u32_u8, vreinterpretq_u8_u32, a, b)
    }

    #[inline(always)]
    fn zip_8(self, a: Self::Block, b: Self::Block) -> [Self::Block; 2] {
        zip!(vzip1q_u64, vzip2q_u64, vreinterpretq_u64_u8, vreinterpretq_u8_u64, a, b)
    }

    #[inline(always)]
    fn number(self, x: u64) -> Self::Pair {
        // SAFETY: `self` is the proof of the instructions.
        unsafe { vdupq_n_u64(x) }
    }

    #[inline(always)]
    fn lookup_lane(self, table: &[u8; 16], indices: &[u8; 16]) -> Self::Pair {
        // SAFETY: `self` is the proof of the instructions; both loads are of the 16 bytes.
        unsafe { vreinterpretq_u64_u8(vqtbl1q_u8(vld1q_u8(table.as_ptr()), vld1q_u8(indices.as_ptr()))) }
    }

    #[inline(always)]
    fn low(self, a: Self::Pair) -> u64 {
        // SAFETY: `self` is the proof of the instructions.
        unsafe { vgetq_lane_u64::<0>(a) }
    }

    #[inline(always)]
    fn add(self, a: Self::Pair, b: Self::Pair) -> Self::Pair {
        // SAFETY: `self` is the proof of the instructions.
        unsafe { veorq_u64(a, b) }
    }

    #[inline(always)]
    fn multiply_low(self, a: Self::Pair, b: Self::Pair) -> Self::Pair {
        // SAFETY: `self` is the proof of the instructions.
        unsafe { multiply_low(a, b) }
    }

    #[inline(always)]
    fn multiply_high(self, a: Self::Pair, b: Self::Pair) -> Self::Pair {
        // SAFETY: `self` is the proof of the instructions.
        unsafe { multiply_high(a, b) }
    }
}

// These two are separate functions because not every aarch64 processor has their instructions.

#[target_feature(enable = "neon,aes")]
#[inline]
fn multiply_low(a: uint64x2_t, b: uint64x2_t) -> uint64x2_t {
    vreinterpretq_u64_p128(vmull_p64(vgetq_lane_u64::<0>(a), vgetq_lane_u64::<0>(b)))
}

#[target_feature(enable = "neon,aes")]
#[inline]
fn multiply_high(a: uint64x2_t, b: uint64x2_t) -> uint64x2_t {
    vreinterpretq_u64_p128(vmull_high_p64(vreinterpretq_p64_u64(a), vreinterpretq_p64_u64(b)))
}
