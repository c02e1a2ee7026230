//! What the sketches of pages have in common.

use serde::Serialize;

use crate::features::equal_features;
use crate::records::{DocId, FeatureBits};

/// What two sketches have in common.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SketchComparison {
    /// Supershingles that agree.
    pub agreements: usize,
    /// Equal features.
    pub features: usize,
    /// The share of equal features: the estimated similarity.
    pub similarity: f64,
}

/// The sketches of some documents.
pub(super) struct Sketches {
    /// The documents; they ascend.
    pub(super) docs: Vec<DocId>,
    /// Those of a document after those of the one before.
    pub(super) supershingles: Vec<u64>,
    /// As those.
    pub(super) features: Vec<FeatureBits>,
}

/// The supershingles and the features of one document.
pub(super) type SketchOf<'a> = (&'a [u64], &'a [FeatureBits]);

impl Sketches {
    /// The sketch of the document at a place.
    pub(super) fn of(&self, place: usize) -> SketchOf<'_> {
        let [width, count] = [self.supershingles.len(), self.features.len()].map(|all| all / self.docs.len());
        (&self.supershingles[place * width..][..width], &self.features[place * count..][..count])
    }

    /// What the documents at two places have in common.
    pub(super) fn compare(&self, a: usize, b: usize) -> SketchComparison {
        compare_sketches(self.of(a), self.of(b))
    }
}

/// What two sketches of one method have in common.
pub(super) fn compare_sketches(a: SketchOf<'_>, b: SketchOf<'_>) -> SketchComparison {
    let agreements = a.0.iter().zip(b.0).filter(|(a, b)| a == b).count();
    let features = equal_features(a.1, b.1);
    SketchComparison { agreements, features, similarity: features as f64 / a.1.len().max(1) as f64 }
}
