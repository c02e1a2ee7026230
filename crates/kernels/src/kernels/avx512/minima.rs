//! Minima: for each function, the pre-image whose image is smallest.
//!
//! The smallest image has the smallest leading byte. `leading` computes the leading bytes of all
//! images; only the pre-images with the smallest one (a few of 512) are `candidates`, whose images
//! are computed in full. Without vectors:
//!
//! ```text
//! for each chunk of 512 pre-images, for each function f:
//!     for each x in the chunk: leading[x] = sum over j of matrix[f][j] * byte j of x     the leading byte of f(x)
//!     threshold = min(leading) in the first chunk, else the leading byte of f(best[f])
//!     for each x in the chunk with leading[x] <= threshold:
//!         if f(x) <= f(best[f]): best[f] = x
//! ```
//!
//! Limitation: a text that repeats a few shingles has candidates everywhere, and takes as long as
//! by the definition.
//!
//! Lower bound: 8 matrix products for each function and 64 pre-images, one per cycle: 10.5 cycles
//! per pre-image for 84 functions.

use std::arch::x86_64::*;
use std::mem::MaybeUninit;

use super::candidates::{EightFunctions, FirstCandidates, PreimageBlock, RemainingCandidates};
use super::leading::{BLOCKS, LEADING, Planes, SMALLEST, leading_bytes, product, smallest_of_eight, transposed};
use super::vectors::{all, all_bytes, images, load, store};
use crate::kernels::Functions;
use crate::kernels::polynomials::gf2::LANES;

/// The number of pre-images in a chunk.
const CHUNK: usize = 64 * BLOCKS;
/// The number of groups of functions whose candidates are found before any is evaluated. The steps
/// of one evaluation depend on each other, but not on those of another group; and masks that are
/// written 8 bytes at a time must reach the cache before they can be read 64 bytes at a time.
const BATCH: usize = 16;
/// Up to this many pre-images are evaluated one by one; more are cheaper by leading bytes.
const FEW: usize = 12;

/// Writes the minima of whole groups of functions; those of the padding in the last group are
/// undefined.
#[target_feature(enable = "avx512vbmi,avx512dq,avx512vl,avx512cd,gfni,vpclmulqdq,bmi1,bmi2,lzcnt")]
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

/// Evaluates every pre-image under every function.
#[target_feature(enable = "avx512vbmi,avx512dq,avx512vl,avx512cd,gfni,vpclmulqdq,bmi1,bmi2,lzcnt")]
fn each(functions: &Functions, preimages: &[u64], minima: &mut [[u64; LANES]]) {
    for (group, minima) in minima.iter_mut().enumerate() {
        let mut eight = EightFunctions::new(functions, group);
        for x in preimages {
            eight.offer(all(*x), 0xFF);
        }
        store(minima, eight.preimage);
    }
}

/// Computes the minima of at most 64 pre-images.
#[target_feature(enable = "avx512vbmi,avx512dq,avx512vl,avx512cd,gfni,vpclmulqdq,bmi1,bmi2,lzcnt")]
fn block(functions: &Functions, preimages: &[u64], minima: &mut [[u64; LANES]]) {
    // Padded with copies of the first: they cannot lower the minimum, and `tail` excludes them from
    // the candidates.
    let mut padded = [preimages[0]; 64];
    padded[..preimages.len()].copy_from_slice(preimages);
    let (planes, values) = (transposed(&padded), PreimageBlock::new(&padded));
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
                // SAFETY: the loop above wrote the leading bytes of as many groups as there are
                // minima.
                candidates[i] = _mm512_cmple_epu8_mask(unsafe { leading[i].assume_init() }, threshold);
            }
        }
        for (i, (minima, candidates)) in minima.iter_mut().zip(&candidates).enumerate() {
            let group = batch * BATCH + i;
            let mut eight = EightFunctions::new(functions, group);
            let candidates = _mm512_maskz_and_epi64(functions.lanes(group), load(candidates), all(tail));
            // Each function has at least one candidate.
            let first = FirstCandidates::of(candidates);
            eight.preimage = values.at(first.place);
            eight.image = images(eight.preimage, eight.p, eight.mu);
            // One in five functions has a second candidate, hence nearly every group has one; a
            // third is rare.
            let mut next = FirstCandidates::of(first.others);
            loop {
                eight.offer(values.at(next.place), next.lanes);
                next = FirstCandidates::of(next.others);
                if next.lanes == 0 {
                    break;
                }
            }
            store(minima, eight.preimage);
        }
    }
}

/// Lowers the minima by one chunk of pre-images. With `FIRST`, `minima` holds nothing yet.
#[inline]
#[target_feature(enable = "avx512vbmi,avx512dq,avx512vl,avx512cd,gfni,vpclmulqdq,bmi1,bmi2,lzcnt")]
fn chunk<const FIRST: bool>(functions: &Functions, preimages: &[u64], minima: &mut [[u64; LANES]]) {
    let blocks = preimages.len().div_ceil(64);
    // Uninitialized, and written before they are read, block by block: clearing them would cost as
    // much as fifty pre-images.
    let mut planes = [const { MaybeUninit::<Planes>::uninit() }; BLOCKS];
    let (whole, rest) = preimages.as_chunks::<64>();
    for (block, planes) in whole.iter().zip(&mut planes) {
        planes.write(transposed(block));
    }
    if !rest.is_empty() {
        // Padded with copies of one: they cannot lower the minimum, and `tail` excludes them from
        // the candidates.
        let mut padded = [rest[0]; 64];
        padded[..rest.len()].copy_from_slice(rest);
        planes[whole.len()].write(transposed(&padded));
    }
    // SAFETY: `blocks` planes were written: one for each whole block, and one for the rest.
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
            // The same call twice: for a whole group the compiler knows the count.
            let smallest = match real {
                LANES => leading_bytes(planes, &matrices[group], &mut leading),
                _ => leading_bytes(planes, &matrices[group][..real], &mut leading),
            };
            let (thresholds, order) = if FIRST {
                (smallest_of_eight(&smallest), &SMALLEST)
            } else {
                (EightFunctions::resume(functions, group, minima).image, &LEADING)
            };
            let masks = candidates.write([[0; LANES]; BLOCKS]);
            for i in 0..real {
                let threshold = _mm512_permutexvar_epi8(all_bytes(order[i]), thresholds);
                for (masks, leading) in masks.iter_mut().zip(&leading[..blocks]) {
                    // SAFETY: `leading_bytes` wrote the leading bytes of every block and matrix.
                    masks[i] = _mm512_cmple_epu8_mask(unsafe { leading[i].assume_init() }, threshold);
                }
            }
        }
        let mut remaining = [RemainingCandidates { images: [0; LANES], nonempty: 0 }; BATCH];
        for (i, minima) in minima.iter_mut().enumerate() {
            let group = start + i;
            let mut eight = if FIRST {
                EightFunctions::new(functions, group)
            } else {
                EightFunctions::resume(functions, group, minima)
            };
            // SAFETY: the loop above wrote the candidates of as many groups as there are minima.
            let candidates = &mut unsafe { candidates[i].assume_init_mut() }[..blocks];
            remaining[i].nonempty = eight.evaluate_pairs(preimages, candidates, functions.lanes(group), tail);
            store(&mut remaining[i].images, eight.image);
            store(minima, eight.preimage);
        }
        for (i, minima) in minima.iter_mut().enumerate() {
            // SAFETY: as above.
            let candidates = unsafe { candidates[i].assume_init_mut() };
            remaining[i].evaluate(functions, start + i, preimages, candidates, minima);
        }
    }
}
