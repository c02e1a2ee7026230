//! Delta: updates last week's clusters to this week's from the documents that changed.
//!
//! It is worth it below about 2.5% of changed documents; above, full clustering is faster. `cost`
//! predicts which.
//!
//! In reading order: `cost` (full or delta), `update` (the whole of a delta, from top to bottom),
//! `step` (its input, and one slice of rows), `sharing` (the unchanged documents that share keys
//! with changed ones), `splits` (whether clusters that lose documents split, and into what),
//! `relabel` (new roots, by differential dataflow).

mod cost;
mod relabel;
mod sharing;
mod splits;
mod step;
mod update;

pub use self::cost::{ModeChoice, choose};
pub use self::relabel::labels_of_edges;
pub use self::relabel::{EdgeDifference, incremental_labels};
pub use self::sharing::{ChangedKeys, NextRun, PostingIndex, VectorChanges, changes, post_all};
pub use self::splits::{RemainingHolder, RemainingMembers, is_certified, split_components};
pub use self::step::Delta;
pub use self::update::{DeltaStats, delta};
