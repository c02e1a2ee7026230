//! Minima: for each function, the pre-image whose image is smallest.
//!
//! Multiplication by a constant is linear over bits, so the leading byte of 64 images is a sum of eight bit matrices
//! times eight byte planes (`gf2p8affineqb`), the planes shared by all functions. The smallest image has the smallest
//! leading byte; only the pre-images that have it (a few of 512) are evaluated exactly, eight functions a step.
//!
//! Floor: 8 matrix products a function and 64 pre-images, one a cycle: 10.5 cycles a pre-image for 84 functions.

use std::arch::x86_64::*;
use std::hint::select_unpredictable;
use std::mem::MaybeUninit;

use super::super::Functions;
use super::super::gf2::LANES;
use super::vectors::{all, all_bytes, image, images, load, load_bytes, store};

/// Pre-images of a chunk: its planes and leading bytes stay in the first-level cache.
const CHUNK: usize = 512;
/// Blocks of 64 in a chunk.
const BLOCKS: usize = CHUNK / 64;
/// Groups of functions whose candidates are found before any is evaluated: the steps of one evaluation wait for each
/// other, but not for those of another group; and masks that are written by eight bytes must reach the cache before they
/// can be read by 64.
const BATCH: usize = 16;
/// As many pre-images as this are evaluated one by one; more are cheaper by leading bytes.
const FEW: usize = 12;

/// Writes the minima of whole groups of functions; those of functions that only fill up the last group mean nothing.
#[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512dq,avx512vl,avx512cd,gfni,vpclmulqdq,bmi1,bmi2,lzcnt,popcnt")]
pub(super) fn minima(functions: &Functions, preimages: &[u64], minima: &mut [u64]) {
    let (minima, _) = minima.as_chunks_mut::<LANES>();
    if preimages.len() <= FEW {
        each(functions, preimages, minima);
    } else if preimages.len() <= 64 {
        block(functions, preimages, minima);
    } else {
        let mut chunks = preimages.chunks(CHUNK);
        if let Some(first) = chunks.next() {
            chunk::<true>(functions, first, minima);
        }
        for later in chunks {
            chunk::<false>(functions, later, minima);
        }
    }
}

/// Eight functions and the best pre-images so far.
struct Eight {
    p: __m512i,
    mu: __m512i,
    image: __m512i,
    preimage: __m512i,
}

impl Eight {
    /// The functions of a group, with nothing found.
    #[inline]
    #[target_feature(
        enable = "avx512vbmi,avx512vbmi2,avx512dq,avx512vl,avx512cd,gfni,vpclmulqdq,bmi1,bmi2,lzcnt,popcnt"
    )]
    fn new(functions: &Functions, group: usize) -> Eight {
        let of = |constants: &[u64]| load(&constants.as_chunks::<LANES>().0[group]);
        Eight { p: of(&functions.p), mu: of(&functions.mu), image: all(u64::MAX), preimage: all(0) }
    }

    /// The functions of a group, with what was found before.
    #[inline]
    #[target_feature(
        enable = "avx512vbmi,avx512vbmi2,avx512dq,avx512vl,avx512cd,gfni,vpclmulqdq,bmi1,bmi2,lzcnt,popcnt"
    )]
    fn resume(functions: &Functions, group: usize, found: &[u64; LANES]) -> Eight {
        let eight = Eight::new(functions, group);
        let preimage = load(found);
        Eight { image: images(preimage, eight.p, eight.mu), preimage, ..eight }
    }

    /// Takes the lanes whose images are as small as the best or smaller: equal images are equal pre-images, and the
    /// first may have an image of all ones.
    #[inline]
    #[target_feature(
        enable = "avx512vbmi,avx512vbmi2,avx512dq,avx512vl,avx512cd,gfni,vpclmulqdq,bmi1,bmi2,lzcnt,popcnt"
    )]
    fn offer(&mut self, offered: __m512i, lanes: __mmask8) {
        let image = images(offered, self.p, self.mu);
        let better = _mm512_mask_cmple_epu64_mask(lanes, image, self.image);
        self.image = _mm512_mask_mov_epi64(self.image, better, image);
        self.preimage = _mm512_mask_mov_epi64(self.preimage, better, offered);
    }
}

/// The first candidate of each lane: bit `s` of a lane is the lane's candidate `s`.
struct First {
    /// Lanes that have one.
    some: __mmask8,
    /// Its number.
    place: __m512i,
    /// The other candidates.
    others: __m512i,
}

impl First {
    #[inline]
    #[target_feature(
        enable = "avx512vbmi,avx512vbmi2,avx512dq,avx512vl,avx512cd,gfni,vpclmulqdq,bmi1,bmi2,lzcnt,popcnt"
    )]
    fn of(candidates: __m512i) -> First {
        let others = _mm512_and_si512(candidates, _mm512_sub_epi64(candidates, all(1)));
        let first = _mm512_andnot_si512(others, candidates);
        First {
            some: _mm512_test_epi64_mask(candidates, candidates),
            place: _mm512_sub_epi64(all(63), _mm512_lzcnt_epi64(first)),
            others,
        }
    }
}

/// 64 pre-images, looked up in registers: half of a gather's time.
struct Block {
    vectors: [__m512i; 8],
}

impl Block {
    #[inline]
    #[target_feature(
        enable = "avx512vbmi,avx512vbmi2,avx512dq,avx512vl,avx512cd,gfni,vpclmulqdq,bmi1,bmi2,lzcnt,popcnt"
    )]
    fn new(preimages: &[u64; 64]) -> Block {
        let mut vectors = [_mm512_setzero_si512(); 8];
        for (vector, eight) in vectors.iter_mut().zip(preimages.as_chunks().0) {
            *vector = load(eight);
        }
        Block { vectors }
    }

    /// The pre-images with these numbers.
    #[inline]
    #[target_feature(
        enable = "avx512vbmi,avx512vbmi2,avx512dq,avx512vl,avx512cd,gfni,vpclmulqdq,bmi1,bmi2,lzcnt,popcnt"
    )]
    fn at(&self, places: __m512i) -> __m512i {
        let [a, b, c, d, e, f, g, h] = self.vectors;
        let sixteen = |low, high| _mm512_permutex2var_epi64(low, places, high);
        let upper = _mm512_test_epi64_mask(places, all(16));
        let low = _mm512_mask_mov_epi64(sixteen(a, b), upper, sixteen(c, d));
        let high = _mm512_mask_mov_epi64(sixteen(e, f), upper, sixteen(g, h));
        _mm512_mask_mov_epi64(low, _mm512_test_epi64_mask(places, all(32)), high)
    }
}

/// Evaluates every pre-image under every function.
#[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512dq,avx512vl,avx512cd,gfni,vpclmulqdq,bmi1,bmi2,lzcnt,popcnt")]
fn each(functions: &Functions, preimages: &[u64], minima: &mut [[u64; LANES]]) {
    for (group, minima) in minima.iter_mut().enumerate() {
        let mut eight = Eight::new(functions, group);
        for x in preimages {
            eight.offer(all(*x), 0xFF);
        }
        store(minima, eight.preimage);
    }
}

/// The planes of a block: byte `s` of plane `j` is byte `j` of pre-image `s`.
type Planes = [__m512i; 8];

/// Goes over at most 64 pre-images.
#[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512dq,avx512vl,avx512cd,gfni,vpclmulqdq,bmi1,bmi2,lzcnt,popcnt")]
fn block(functions: &Functions, preimages: &[u64], minima: &mut [[u64; LANES]]) {
    // Filled up with the first: a copy is no smaller than it, and no candidate.
    let mut padded = [preimages[0]; 64];
    padded[..preimages.len()].copy_from_slice(preimages);
    let (planes, values) = (transposed(&padded), Block::new(&padded));
    let tail = u64::MAX >> (64 - preimages.len());
    let (matrices, _) = functions.leading.as_chunks::<LANES>();
    for (batch, minima) in minima.chunks_mut(BATCH).enumerate() {
        let matrices = &matrices[batch * BATCH..];
        let mut leading = [[const { MaybeUninit::uninit() }; LANES]; BATCH];
        let mut thresholds = [_mm512_setzero_si512(); BATCH];
        for ((leading, thresholds), matrices) in leading.iter_mut().zip(&mut thresholds).zip(matrices) {
            let mut smallest = [_mm512_setzero_si512(); LANES];
            for i in 0..LANES {
                smallest[i] = product(&planes, &matrices[i]);
                leading[i].write(smallest[i]);
            }
            *thresholds = smallest_of_eight(&smallest);
        }
        let mut candidates = [[0; LANES]; BATCH];
        for ((candidates, thresholds), leading) in candidates[..minima.len()].iter_mut().zip(&thresholds).zip(&leading)
        {
            for i in 0..LANES {
                let threshold = _mm512_permutexvar_epi8(all_bytes(SMALLEST[i]), *thresholds);
                // SAFETY: the loop above wrote those of as many groups as there are minima.
                candidates[i] = _mm512_cmple_epu8_mask(unsafe { leading[i].assume_init() }, threshold);
            }
        }
        for (i, (minima, candidates)) in minima.iter_mut().zip(&candidates).enumerate() {
            let group = batch * BATCH + i;
            let mut eight = Eight::new(functions, group);
            let candidates = _mm512_maskz_and_epi64(functions.lanes(group), load(candidates), all(tail));
            // Each function has one.
            let first = First::of(candidates);
            eight.preimage = values.at(first.place);
            eight.image = images(eight.preimage, eight.p, eight.mu);
            // One of five functions has a second candidate, hence nearly every group; a third is rare.
            let mut next = First::of(first.others);
            loop {
                eight.offer(values.at(next.place), next.some);
                next = First::of(next.others);
                if next.some == 0 {
                    break;
                }
            }
            store(minima, eight.preimage);
        }
    }
}

/// Goes over one chunk of more than 64 pre-images; `FIRST` where `minima` holds nothing yet.
#[inline]
#[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512dq,avx512vl,avx512cd,gfni,vpclmulqdq,bmi1,bmi2,lzcnt,popcnt")]
fn chunk<const FIRST: bool>(functions: &Functions, preimages: &[u64], minima: &mut [[u64; LANES]]) {
    let blocks = preimages.len().div_ceil(64);
    // Written before they are read, block by block; clearing them would cost as much as fifty pre-images do.
    let mut planes = [const { MaybeUninit::<Planes>::uninit() }; BLOCKS];
    let (whole, rest) = preimages.as_chunks::<64>();
    for (block, planes) in whole.iter().zip(&mut planes) {
        planes.write(transposed(block));
    }
    if !rest.is_empty() {
        // Filled up with one of them: a copy is no smaller than it, and no candidate.
        let mut padded = [rest[0]; 64];
        padded[..rest.len()].copy_from_slice(rest);
        planes[whole.len()].write(transposed(&padded));
    }
    // SAFETY: as many were written: one for each whole block, and one for the rest.
    let planes: &[Planes] = unsafe { std::slice::from_raw_parts(planes.as_ptr().cast(), blocks) };
    let tail = u64::MAX >> (64 * blocks - preimages.len());
    let mut leading = [[const { MaybeUninit::uninit() }; LANES]; BLOCKS];
    let mut candidates = [const { MaybeUninit::<[[u64; LANES]; BLOCKS]>::uninit() }; BATCH];
    let (matrices, _) = functions.leading.as_chunks::<LANES>();
    for (batch, minima) in minima.chunks_mut(BATCH).enumerate() {
        let start = batch * BATCH;
        for (i, (minima, candidates)) in minima.iter().zip(&mut candidates).enumerate() {
            let group = start + i;
            let real = LANES - functions.lanes(group).leading_zeros() as usize;
            // The same twice: with the whole group, the compiler knows the count.
            let smallest = match real {
                LANES => leading_bytes(planes, &matrices[group], &mut leading),
                _ => leading_bytes(planes, &matrices[group][..real], &mut leading),
            };
            let (thresholds, order) = match FIRST {
                true => (smallest_of_eight(&smallest), &SMALLEST),
                false => (Eight::resume(functions, group, minima).image, &LEADING),
            };
            let masks = candidates.write([[0; LANES]; BLOCKS]);
            for i in 0..real {
                let threshold = _mm512_permutexvar_epi8(all_bytes(order[i]), thresholds);
                for (masks, leading) in masks.iter_mut().zip(&leading[..blocks]) {
                    // SAFETY: `leading_bytes` wrote those of every block and matrix.
                    masks[i] = _mm512_cmple_epu8_mask(unsafe { leading[i].assume_init() }, threshold);
                }
            }
        }
        let mut left = [Left { images: [0; LANES], some: 0 }; BATCH];
        for (i, minima) in minima.iter_mut().enumerate() {
            let group = start + i;
            let mut eight = match FIRST {
                true => Eight::new(functions, group),
                false => Eight::resume(functions, group, minima),
            };
            // SAFETY: the loop above wrote as many as there are minima.
            let candidates = &mut unsafe { candidates[i].assume_init_mut() }[..blocks];
            left[i].some = eight.evaluate_pairs(preimages, candidates, functions.lanes(group), tail);
            store(&mut left[i].images, eight.image);
            store(minima, eight.preimage);
        }
        for (i, minima) in minima.iter_mut().enumerate() {
            // SAFETY: as above.
            let candidates = unsafe { candidates[i].assume_init_mut() };
            left[i].evaluate(functions, start + i, preimages, candidates, minima);
        }
    }
}

/// Where `smallest_of_eight` puts the threshold of each of eight functions.
const SMALLEST: [u8; LANES] = [0, 16, 32, 48, 8, 24, 40, 56];
/// Where the leading bytes of eight numbers are.
const LEADING: [u8; LANES] = [7, 15, 23, 31, 39, 47, 55, 63];

/// Writes the leading bytes of all images; gives the smallest of each function, lane by lane.
#[inline]
#[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512dq,avx512vl,avx512cd,gfni,vpclmulqdq,bmi1,bmi2,lzcnt,popcnt")]
fn leading_bytes(
    planes: &[Planes],
    matrices: &[[u64; 8]],
    leading: &mut [[MaybeUninit<__m512i>; LANES]; BLOCKS],
) -> [__m512i; LANES] {
    let mut smallest = [all(u64::MAX); LANES];
    let (pairs, single) = planes.as_chunks::<2>();
    // Two blocks at a time: a matrix is loaded once for both.
    for (pair, [first, second]) in pairs.iter().enumerate() {
        let [to_first, to_second] = &mut leading.as_chunks_mut::<2>().0[pair];
        for (i, matrices) in matrices.iter().enumerate() {
            let (a, b) = (product(first, matrices), product(second, matrices));
            to_first[i].write(a);
            to_second[i].write(b);
            smallest[i] = _mm512_min_epu8(smallest[i], _mm512_min_epu8(a, b));
        }
    }
    if let [last] = single {
        for (i, matrices) in matrices.iter().enumerate() {
            let a = product(last, matrices);
            leading[planes.len() - 1][i].write(a);
            smallest[i] = _mm512_min_epu8(smallest[i], a);
        }
    }
    smallest
}

/// The leading bytes of 64 images: the sum of eight matrices times eight planes.
#[inline]
#[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512dq,avx512vl,avx512cd,gfni,vpclmulqdq,bmi1,bmi2,lzcnt,popcnt")]
fn product(planes: &Planes, matrices: &[u64; 8]) -> __m512i {
    let times = |j: usize| _mm512_gf2p8affine_epi64_epi8::<0>(planes[j], all(matrices[j]));
    let sum = |a, b, c| _mm512_ternarylogic_epi64::<0x96>(a, b, c);
    let (a, b) = (sum(times(0), times(1), times(2)), sum(times(3), times(4), times(5)));
    sum(a, b, _mm512_xor_si512(times(6), times(7)))
}

/// The smallest byte of each of eight vectors, at the places that `SMALLEST` tells.
#[inline]
#[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512dq,avx512vl,avx512cd,gfni,vpclmulqdq,bmi1,bmi2,lzcnt,popcnt")]
fn smallest_of_eight(vectors: &[__m512i; LANES]) -> __m512i {
    let [a, b, c, d, e, f, g, h] = *vectors;
    let halves = |a, b| _mm512_min_epu8(_mm512_shuffle_i64x2::<0x44>(a, b), _mm512_shuffle_i64x2::<0xEE>(a, b));
    let quarters = |a, b| _mm512_min_epu8(_mm512_shuffle_i64x2::<0x88>(a, b), _mm512_shuffle_i64x2::<0xDD>(a, b));
    let (low, high) = (quarters(halves(a, b), halves(c, d)), quarters(halves(e, f), halves(g, h)));
    let eighths = _mm512_min_epu8(_mm512_unpacklo_epi64(low, high), _mm512_unpackhi_epi64(low, high));
    let fours = _mm512_min_epu8(eighths, _mm512_srli_epi64::<32>(eighths));
    let twos = _mm512_min_epu8(fours, _mm512_srli_epi64::<16>(fours));
    _mm512_min_epu8(twos, _mm512_srli_epi64::<8>(twos))
}

impl Eight {
    /// Evaluates for each function one candidate of every two blocks: bit `s` of `candidates[block][i]` is pre-image `s`
    /// of the block, for function `i` of the group. Takes it off the candidates and tells which are left, about one in
    /// six: bit `i` of byte `block`.
    #[inline]
    #[target_feature(
        enable = "avx512vbmi,avx512vbmi2,avx512dq,avx512vl,avx512cd,gfni,vpclmulqdq,bmi1,bmi2,lzcnt,popcnt"
    )]
    fn evaluate_pairs(
        &mut self,
        preimages: &[u64],
        candidates: &mut [[u64; LANES]],
        lanes: __mmask8,
        tail: u64,
    ) -> u64 {
        let mut some = 0;
        let mut put = |to: &mut [u64; LANES], block: usize, left: __m512i| {
            store(to, left);
            some |= u64::from(_mm512_test_epi64_mask(left, left)) << (LANES * block);
        };
        let blocks = candidates.len();
        let (pairs, single) = candidates.as_chunks_mut::<2>();
        for (pair, [first, second]) in pairs.iter_mut().enumerate() {
            let block = 2 * pair;
            let start = 64 * block as u64;
            let tail = if block + 2 == blocks { tail } else { u64::MAX };
            let in_first = _mm512_maskz_mov_epi64(lanes, load(first));
            let in_second = _mm512_maskz_and_epi64(lanes, load(second), all(tail));
            let is_first = _mm512_test_epi64_mask(in_first, in_first);
            let here = _mm512_mask_mov_epi64(in_second, is_first, in_first);
            let from = _mm512_mask_mov_epi64(all(start + 64), is_first, all(start));
            let chosen = First::of(here);
            self.gather(preimages, from, &chosen);
            put(first, block, _mm512_maskz_mov_epi64(is_first, chosen.others));
            put(second, block + 1, _mm512_mask_mov_epi64(chosen.others, is_first, in_second));
        }
        if let [last] = single {
            let here = _mm512_maskz_and_epi64(lanes, load(last), all(tail));
            let chosen = First::of(here);
            self.gather(preimages, all(64 * (blocks as u64 - 1)), &chosen);
            put(last, blocks - 1, chosen.others);
        }
        some
    }

    /// Takes candidates whose numbers count from `from`.
    #[inline]
    #[target_feature(
        enable = "avx512vbmi,avx512vbmi2,avx512dq,avx512vl,avx512cd,gfni,vpclmulqdq,bmi1,bmi2,lzcnt,popcnt"
    )]
    fn gather(&mut self, preimages: &[u64], from: __m512i, chosen: &First) {
        let places = _mm512_add_epi64(from, chosen.place);
        // SAFETY: a candidate is a pre-image: those past the end were cleared. Lanes without one load nothing.
        let offered = unsafe {
            _mm512_mask_i64gather_epi64::<8>(_mm512_setzero_si512(), chosen.some, places, preimages.as_ptr().cast())
        };
        self.offer(offered, chosen.some);
    }
}

/// What is left of the candidates of a group.
#[derive(Clone, Copy)]
struct Left {
    /// The images of the best so far.
    images: [u64; LANES],
    /// Which candidates are left, as `evaluate_pairs` tells it.
    some: u64,
}

impl Left {
    /// Evaluates them one by one.
    #[inline]
    #[target_feature(
        enable = "avx512vbmi,avx512vbmi2,avx512dq,avx512vl,avx512cd,gfni,vpclmulqdq,bmi1,bmi2,lzcnt,popcnt"
    )]
    fn evaluate(
        &mut self,
        functions: &Functions,
        group: usize,
        preimages: &[u64],
        candidates: &mut [[u64; LANES]; BLOCKS],
        minima: &mut [u64; LANES],
    ) {
        let p = &functions.p.as_chunks::<LANES>().0[group];
        let mu = &functions.mu.as_chunks::<LANES>().0[group];
        while self.some != 0 {
            let at = self.some.trailing_zeros() as usize;
            let (block, i) = (at / LANES, at % LANES);
            let places = &mut candidates[block][i];
            let x = preimages[64 * block + places.trailing_zeros() as usize];
            *places &= *places - 1;
            self.some ^= u64::from(*places == 0) << at;
            let image = image(x, p[i], mu[i]);
            let better = image <= self.images[i];
            self.images[i] = select_unpredictable(better, image, self.images[i]);
            minima[i] = select_unpredictable(better, x, minima[i]);
        }
    }
}

/// The planes of 64 pre-images.
#[inline]
#[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512dq,avx512vl,avx512cd,gfni,vpclmulqdq,bmi1,bmi2,lzcnt,popcnt")]
fn transposed(block: &[u64; 64]) -> Planes {
    let (eights, _) = block.as_chunks::<8>();
    // Byte `s` of word `j` of a vector is byte `j` of pre-image `s` of its eight ...
    let order = load_bytes(&BYTES);
    let of = |i: usize| _mm512_permutexvar_epi8(order, load(&eights[i]));
    // ... and the words are transposed as an 8 by 8 matrix: in pairs, in fours, in eights.
    let rows = |i: usize| {
        let (a, b) = (of(i), of(i + 1));
        (_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b))
    };
    let [(a0, a1), (b0, b1), (c0, c1), (d0, d1)] = [rows(0), rows(2), rows(4), rows(6)];
    let columns = |a, b, c, d| {
        let (low, low_next) = (_mm512_shuffle_i64x2::<0x88>(a, b), _mm512_shuffle_i64x2::<0xDD>(a, b));
        let (high, high_next) = (_mm512_shuffle_i64x2::<0x88>(c, d), _mm512_shuffle_i64x2::<0xDD>(c, d));
        [
            _mm512_shuffle_i64x2::<0x88>(low, high),
            _mm512_shuffle_i64x2::<0x88>(low_next, high_next),
            _mm512_shuffle_i64x2::<0xDD>(low, high),
            _mm512_shuffle_i64x2::<0xDD>(low_next, high_next),
        ]
    };
    let ([p0, p2, p4, p6], [p1, p3, p5, p7]) = (columns(a0, b0, c0, d0), columns(a1, b1, c1, d1));
    [p0, p1, p2, p3, p4, p5, p6, p7]
}

/// `8 * s + j` at `8 * j + s`.
const BYTES: [u8; 64] = {
    let mut order = [0; 64];
    let mut i = 0;
    while i < 64 {
        order[i] = 8 * (i as u8 % 8) + i as u8 / 8;
        i += 1;
    }
    order
};
