//! Candidates: pre-images whose leading byte may be that of the smallest image, evaluated eight functions a step.

use std::arch::x86_64::*;
use std::hint::select_unpredictable;

use super::super::Functions;
use super::super::gf2::LANES;
use super::leading::BLOCKS;
use super::vectors::{all, image, images, load, store};

/// Eight functions and the best pre-images so far.
pub(super) struct Eight {
    pub(super) p: __m512i,
    pub(super) mu: __m512i,
    pub(super) image: __m512i,
    pub(super) preimage: __m512i,
}

impl Eight {
    /// The functions of a group, with nothing found.
    #[inline]
    #[target_feature(enable = "avx512cd,avx512dq,avx512vl,vpclmulqdq,bmi1,bmi2,lzcnt")]
    pub(super) fn new(functions: &Functions, group: usize) -> Eight {
        let of = |constants: &[u64]| load(&constants.as_chunks::<LANES>().0[group]);
        Eight { p: of(&functions.p), mu: of(&functions.mu), image: all(u64::MAX), preimage: all(0) }
    }

    /// The functions of a group, with what was found before.
    #[inline]
    #[target_feature(enable = "avx512cd,avx512dq,avx512vl,vpclmulqdq,bmi1,bmi2,lzcnt")]
    pub(super) fn resume(functions: &Functions, group: usize, found: &[u64; LANES]) -> Eight {
        let eight = Eight::new(functions, group);
        let preimage = load(found);
        Eight { image: images(preimage, eight.p, eight.mu), preimage, ..eight }
    }

    /// Takes the lanes whose images are as small as the best or smaller: equal images are equal pre-images, and the
    /// first may have an image of all ones.
    #[inline]
    #[target_feature(enable = "avx512cd,avx512dq,avx512vl,vpclmulqdq,bmi1,bmi2,lzcnt")]
    pub(super) fn offer(&mut self, offered: __m512i, lanes: __mmask8) {
        let image = images(offered, self.p, self.mu);
        let better = _mm512_mask_cmple_epu64_mask(lanes, image, self.image);
        self.image = _mm512_mask_mov_epi64(self.image, better, image);
        self.preimage = _mm512_mask_mov_epi64(self.preimage, better, offered);
    }

    /// Evaluates for each function one candidate of every two blocks: bit `s` of `candidates[block][i]` is pre-image `s`
    /// of the block, for function `i` of the group. Takes it off the candidates and tells which are left, about one in
    /// six: bit `i` of byte `block`.
    #[inline]
    #[target_feature(enable = "avx512cd,avx512dq,avx512vl,vpclmulqdq,bmi1,bmi2,lzcnt")]
    pub(super) fn evaluate_pairs(
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
    #[target_feature(enable = "avx512cd,avx512dq,avx512vl,vpclmulqdq,bmi1,bmi2,lzcnt")]
    fn gather(&mut self, preimages: &[u64], from: __m512i, chosen: &First) {
        let places = _mm512_add_epi64(from, chosen.place);
        // SAFETY: a candidate is a pre-image: those past the end were cleared. Lanes without one load nothing.
        let offered = unsafe {
            _mm512_mask_i64gather_epi64::<8>(_mm512_setzero_si512(), chosen.some, places, preimages.as_ptr().cast())
        };
        self.offer(offered, chosen.some);
    }
}

/// The first candidate of each lane: bit `s` of a lane is the lane's candidate `s`.
pub(super) struct First {
    /// Lanes that have one.
    pub(super) some: __mmask8,
    /// Its number.
    pub(super) place: __m512i,
    /// The other candidates.
    pub(super) others: __m512i,
}

impl First {
    #[inline]
    #[target_feature(enable = "avx512cd,avx512dq,avx512vl,vpclmulqdq,bmi1,bmi2,lzcnt")]
    pub(super) fn of(candidates: __m512i) -> First {
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
pub(super) struct Block {
    vectors: [__m512i; 8],
}

impl Block {
    #[inline]
    #[target_feature(enable = "avx512cd,avx512dq,avx512vl,vpclmulqdq,bmi1,bmi2,lzcnt")]
    pub(super) fn new(preimages: &[u64; 64]) -> Block {
        let mut vectors = [_mm512_setzero_si512(); 8];
        for (vector, eight) in vectors.iter_mut().zip(preimages.as_chunks().0) {
            *vector = load(eight);
        }
        Block { vectors }
    }

    /// The pre-images with these numbers.
    #[inline]
    #[target_feature(enable = "avx512cd,avx512dq,avx512vl,vpclmulqdq,bmi1,bmi2,lzcnt")]
    pub(super) fn at(&self, places: __m512i) -> __m512i {
        let [a, b, c, d, e, f, g, h] = self.vectors;
        let sixteen = |low, high| _mm512_permutex2var_epi64(low, places, high);
        let upper = _mm512_test_epi64_mask(places, all(16));
        let low = _mm512_mask_mov_epi64(sixteen(a, b), upper, sixteen(c, d));
        let high = _mm512_mask_mov_epi64(sixteen(e, f), upper, sixteen(g, h));
        _mm512_mask_mov_epi64(low, _mm512_test_epi64_mask(places, all(32)), high)
    }
}

/// What is left of the candidates of a group.
#[derive(Clone, Copy)]
pub(super) struct Left {
    /// The images of the best so far.
    pub(super) images: [u64; LANES],
    /// Which candidates are left, as `evaluate_pairs` tells it.
    pub(super) some: u64,
}

impl Left {
    /// Evaluates them one by one.
    #[inline]
    #[target_feature(enable = "avx512cd,avx512dq,avx512vl,vpclmulqdq,bmi1,bmi2,lzcnt")]
    pub(super) fn evaluate(
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
