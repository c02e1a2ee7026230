//! Supershingles: the fingerprint of a run of features, as one polynomial with 64 coefficients for
//! each feature.

use std::arch::x86_64::*;

use super::vectors::{image, load, load_first};
use crate::kernels::FeatureRuns;
use crate::kernels::polynomials::gf2::LANES;

/// Computes `v_0 t^(64 (n-1)) + ... + v_(n-1)` modulo P for each run: sums the unreduced products
/// of features and weights, and reduces the sum once.
#[target_feature(enable = "avx512f,vpclmulqdq")]
pub(super) fn supershingles(runs: &FeatureRuns, features: &[u64], supershingles: &mut Vec<u64>) {
    let (p, mu) = (runs.polynomial.p, runs.polynomial.mu);
    for run in features.chunks_exact(runs.length) {
        let mut sum = _mm512_setzero_si512();
        for (features, weights) in run.chunks(LANES).zip(runs.weights.as_chunks().0) {
            let features = load_first(features);
            let weights = load(weights);
            let even = _mm512_clmulepi64_epi128::<0x00>(features, weights);
            let odd = _mm512_clmulepi64_epi128::<0x11>(features, weights);
            sum = _mm512_ternarylogic_epi64::<0x96>(sum, even, odd);
        }
        let half = _mm256_xor_si256(_mm512_castsi512_si256(sum), _mm512_extracti64x4_epi64::<1>(sum));
        let whole = _mm_xor_si128(_mm256_castsi256_si128(half), _mm256_extracti128_si256::<1>(half));
        let high = _mm_cvtsi128_si64(_mm_unpackhi_epi64(whole, whole)).cast_unsigned();
        supershingles.push(image(high, p, mu) ^ _mm_cvtsi128_si64(whole).cast_unsigned());
    }
}
