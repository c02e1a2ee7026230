//! From supershingles to clusters (Fetterly 2004, section 2).
//!
//! In reading order: `stage` (parameters, memory and statistics), `clusters` (the whole stage),
//! `collapse` (identical vectors become one node), `prune` (drops vectors that cannot agree with
//! another one), `survivors` (the vectors that remain), `pairs` (shared megashingles become edges),
//! `exact_copies` (equal bodies among documents with identical vectors).
//!
//! The *vector* of a document is here the list of its supershingles, six by default. Every vector
//! has a *number* among those of all workers ([`Numbering`](crate::structures::Numbering)), and an *own
//! number* among those of the worker that owns it.

mod clusters;
mod collapse;
mod exact_copies;
mod pairs;
mod prune;
mod stage;
mod survivors;

pub use self::clusters::{OwnClusters, clusters};
pub use self::exact_copies::{exact_copies, wordless_copies};
pub use self::stage::{ClusterStats, Clustering};
