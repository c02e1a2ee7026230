//! Minima: for each function, the pre-image whose image is smallest.
//!
//! The smallest image has the smallest leading byte. `leading` gives the leading bytes of all images at once; only the
//! pre-images that have the smallest (a few of 512) are `candidates`, and evaluated exactly.
//!
//! A text that repeats a few shingles has candidates everywhere, and takes as long as by the definition.
//!
//! Floor: 8 matrix products a function and 64 pre-images, one a cycle: 10.5 cycles a pre-image for 84 functions.

use std::arch::x86_64::*;
use std::mem::MaybeUninit;

use super::super::Functions;
use super::super::gf2::LANES;
use super::candidates::{Block, Eight, First, Left};
use super::leading::{BLOCKS, LEADING, Planes, SMALLEST, leading_bytes, product, smallest_of_eight, transposed};
use super::vectors::{all, all_bytes, images, load, store};

/// Pre-images of a chunk.
const CHUNK: usize = 64 * BLOCKS;
/// Groups of functions whose candidates are found before any is evaluated: the steps of one evaluation wait for each
/// other, but not for those of another group; and masks that are written by eight bytes must reach the cache before they
/// can be read by 64.
const BATCH: usize = 16;
/// As many pre-images as this are evaluated one by one; more are cheaper by leading bytes.
const FEW: usize = 12;

/// Writes the minima of whole groups of functions; those of functions that only fill up the last group mean nothing.
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
        let mut eight = Eight::new(functions, group);
        for x in preimages {
            eight.offer(all(*x), 0xFF);
        }
        store(minima, eight.preimage);
    }
}

/// Goes over at most 64 pre-images.
#[target_feature(enable = "avx512vbmi,avx512dq,avx512vl,avx512cd,gfni,vpclmulqdq,bmi1,bmi2,lzcnt")]
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
#[target_feature(enable = "avx512vbmi,avx512dq,avx512vl,avx512cd,gfni,vpclmulqdq,bmi1,bmi2,lzcnt")]
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
