//! Candidates: pre-images whose image may be the smallest by its leading byte, evaluated for eight
//! functions at a time.

use std::arch::x86_64::*;
use std::hint::select_unpredictable;

use super::leading::BLOCKS;
use super::vectors::{all, image, images, load, store};
use crate::kernels::Functions;
use crate::kernels::polynomials::gf2::LANES;

/// Eight functions, one in each lane, with the smallest image of each so far and its pre-image.
pub(super) struct EightFunctions {
    pub(super) p: __m512i,
    pub(super) mu: __m512i,
    pub(super) image: __m512i,
    pub(super) preimage: __m512i,
}

impl EightFunctions {
    /// The functions of a group, without pre-images.
    #[inline]
    #[target_feature(enable = "avx512cd,avx512dq,avx512vl,vpclmulqdq,bmi1,bmi2,lzcnt")]
    pub(super) fn new(functions: &Functions, group: usize) -> EightFunctions {
        let of_group = |constants: &[u64]| load(&constants.as_chunks::<LANES>().0[group]);
        EightFunctions {
            p: of_group(&functions.p),
            mu: of_group(&functions.mu),
            image: all(u64::MAX),
            preimage: all(0),
        }
    }

    /// The functions of a group, with their minima so far.
    #[inline]
    #[target_feature(enable = "avx512cd,avx512dq,avx512vl,vpclmulqdq,bmi1,bmi2,lzcnt")]
    pub(super) fn resume(functions: &Functions, group: usize, minima: &[u64; LANES]) -> EightFunctions {
        let eight = EightFunctions::new(functions, group);
        let preimage = load(minima);
        EightFunctions { image: images(preimage, eight.p, eight.mu), preimage, ..eight }
    }

    /// Compares one pre-image for each of `lanes` with the best so far. Takes it if its image is
    /// smaller or equal: equal images are equal pre-images, and the first image may be all ones,
    /// like the initial one.
    #[inline]
    #[target_feature(enable = "avx512cd,avx512dq,avx512vl,vpclmulqdq,bmi1,bmi2,lzcnt")]
    pub(super) fn offer(&mut self, offered: __m512i, lanes: __mmask8) {
        let image = images(offered, self.p, self.mu);
        let better = _mm512_mask_cmple_epu64_mask(lanes, image, self.image);
        self.image = _mm512_mask_mov_epi64(self.image, better, image);
        self.preimage = _mm512_mask_mov_epi64(self.preimage, better, offered);
    }

    /// Evaluates for each function one candidate of every two blocks, and removes it from the
    /// candidates. Bit `s` of `candidates[block][i]` is pre-image `s` of the block, for function
    /// `i` of the group. Returns which candidates remain, about one in six: bit `i` of byte `block`
    /// is set if `candidates[block][i]` is not zero.
    #[inline]
    #[target_feature(enable = "avx512cd,avx512dq,avx512vl,vpclmulqdq,bmi1,bmi2,lzcnt")]
    pub(super) fn evaluate_pairs(
        &mut self,
        preimages: &[u64],
        candidates: &mut [[u64; LANES]],
        lanes: __mmask8,
        tail: u64,
    ) -> u64 {
        let mut nonempty = 0;
        let mut put = |to: &mut [u64; LANES], block: usize, remaining: __m512i| {
            store(to, remaining);
            nonempty |= u64::from(_mm512_test_epi64_mask(remaining, remaining)) << (LANES * block);
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
            // For each function the candidates of the first block, or of the second if it has none
            // in the first.
            let offered = _mm512_mask_mov_epi64(in_second, is_first, in_first);
            let from = _mm512_mask_mov_epi64(all(start + 64), is_first, all(start));
            let chosen = FirstCandidates::of(offered);
            self.gather(preimages, from, &chosen);
            put(first, block, _mm512_maskz_mov_epi64(is_first, chosen.others));
            put(second, block + 1, _mm512_mask_mov_epi64(chosen.others, is_first, in_second));
        }
        if let [last] = single {
            let chosen = FirstCandidates::of(_mm512_maskz_and_epi64(lanes, load(last), all(tail)));
            self.gather(preimages, all(64 * (blocks as u64 - 1)), &chosen);
            put(last, blocks - 1, chosen.others);
        }
        nonempty
    }

    /// Evaluates one candidate for each lane; their numbers count from `from`.
    #[inline]
    #[target_feature(enable = "avx512cd,avx512dq,avx512vl,vpclmulqdq,bmi1,bmi2,lzcnt")]
    fn gather(&mut self, preimages: &[u64], from: __m512i, chosen: &FirstCandidates) {
        let indices = _mm512_add_epi64(from, chosen.place);
        // SAFETY: each candidate is the number of a pre-image, since those past the end were
        // cleared. Lanes without a candidate load nothing.
        let offered = unsafe {
            _mm512_mask_i64gather_epi64::<8>(_mm512_setzero_si512(), chosen.lanes, indices, preimages.as_ptr().cast())
        };
        self.offer(offered, chosen.lanes);
    }
}

/// The first candidate of each lane.
pub(super) struct FirstCandidates {
    /// The lanes that have one.
    pub(super) lanes: __mmask8,
    /// Its number, 0 to 63.
    pub(super) place: __m512i,
    /// The other candidates, as bits.
    pub(super) others: __m512i,
}

impl FirstCandidates {
    /// Bit `s` of a lane of `candidates` is candidate `s` of the lane.
    #[inline]
    #[target_feature(enable = "avx512cd,avx512dq,avx512vl,vpclmulqdq,bmi1,bmi2,lzcnt")]
    pub(super) fn of(candidates: __m512i) -> FirstCandidates {
        let others = _mm512_and_si512(candidates, _mm512_sub_epi64(candidates, all(1)));
        let first = _mm512_andnot_si512(others, candidates);
        FirstCandidates {
            lanes: _mm512_test_epi64_mask(candidates, candidates),
            place: _mm512_sub_epi64(all(63), _mm512_lzcnt_epi64(first)),
            others,
        }
    }
}

/// 64 pre-images in registers. A lookup takes half of the time of a gather.
pub(super) struct PreimageBlock {
    vectors: [__m512i; 8],
}

impl PreimageBlock {
    #[inline]
    #[target_feature(enable = "avx512cd,avx512dq,avx512vl,vpclmulqdq,bmi1,bmi2,lzcnt")]
    pub(super) fn new(preimages: &[u64; 64]) -> PreimageBlock {
        let mut vectors = [_mm512_setzero_si512(); 8];
        for (vector, eight) in vectors.iter_mut().zip(preimages.as_chunks().0) {
            *vector = load(eight);
        }
        PreimageBlock { vectors }
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

/// The candidates of a group that remain after [`EightFunctions::evaluate_pairs`].
#[derive(Clone, Copy)]
pub(super) struct RemainingCandidates {
    /// The smallest image of each function so far.
    pub(super) images: [u64; LANES],
    /// The masks of candidates that are not zero, as `evaluate_pairs` returns them.
    pub(super) nonempty: u64,
}

impl RemainingCandidates {
    /// Evaluates the remaining candidates one by one.
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
        while self.nonempty != 0 {
            let lowest = self.nonempty.trailing_zeros() as usize;
            let (block, i) = (lowest / LANES, lowest % LANES);
            let mask = &mut candidates[block][i];
            let x = preimages[64 * block + mask.trailing_zeros() as usize];
            *mask &= *mask - 1;
            self.nonempty ^= u64::from(*mask == 0) << lowest;
            let image = image(x, p[i], mu[i]);
            let better = image <= self.images[i];
            self.images[i] = select_unpredictable(better, image, self.images[i]);
            minima[i] = select_unpredictable(better, x, minima[i]);
        }
    }
}
