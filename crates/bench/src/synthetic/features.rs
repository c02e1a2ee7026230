//! Made-up features that fit made-up vectors: for checks of clusters by features.
//!
//! Where two documents of a cluster agree in a supershingle, they agree in its 14 features;
//! elsewhere in 13 of 14. So two documents of a cluster have at least 78 of 84 equal features, and
//! most of them more. A share of the vectors are unlike: they agree with others only in the
//! features of the supershingles that they share. Documents with the same vector have the same
//! features.

use super::vectors::WIDTH;
use crate::records::{FeatureBits, fold, mix};

/// Features of a document, as in the study.
pub const FEATURES: usize = 84;
/// Features of a supershingle.
const RUN: usize = FEATURES / WIDTH;

/// The features of a document with this vector in this cluster.
pub fn features(cluster: u64, vector: &[u64; WIDTH], unlike: f64) -> [FeatureBits; FEATURES] {
    let whole = fold(vector);
    let is_unlike = (mix(whole) as f64) < unlike * u64::MAX as f64;
    std::array::from_fn(|number| {
        let (supershingle, place) = (vector[number / RUN], number % RUN);
        let random = match place {
            0 => mix(supershingle),
            _ if is_unlike => mix(supershingle.wrapping_add(number as u64)),
            _ => mix(mix(cluster).wrapping_add(number as u64)),
        };
        random as FeatureBits
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features::equal_features;

    #[test]
    fn documents_of_a_cluster_have_most_features_in_common() {
        let base: [u64; WIDTH] = std::array::from_fn(|column| mix(column as u64));
        let mut other = base;
        (other[1], other[4]) = (7, 8);
        let equal = |a: [FeatureBits; FEATURES], b: [FeatureBits; FEATURES]| equal_features(&a, &b);
        assert_eq!(equal(features(3, &base, 0.0), features(3, &other, 0.0)), 82);
        assert_eq!(equal(features(3, &base, 0.0), features(4, &base, 0.0)), 6);
        assert_eq!(equal(features(3, &base, 1.0), features(3, &other, 1.0)), 56);
    }
}
