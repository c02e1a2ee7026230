//! Which threshold, and the least one.

use serde::{Deserialize, Serialize};

/// The least similarity of pairs, in millionths, if the run did not compare texts.
pub(super) const LEAST: u32 = 500_000;

/// Which threshold.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ThresholdRule {
    /// This similarity.
    AtSimilarity(#[serde(with = "crate::export::exact")] f64),
    /// The largest one at which no more records than these stay.
    KeepRows(u64),
}
