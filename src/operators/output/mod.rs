//! What the tables say of the clusters.
//!
//! In reading order: `cluster_sizes` (members of each cluster), `overlaps` (members that two sets of clusters have in
//! common), `cluster_ids` (ids that stay the same from week to week), `evidence` (why a document is in its cluster),
//! `largest` (the largest clusters of each level), `links` (out-links to documents).

mod cluster_ids;
mod cluster_sizes;
mod evidence;
mod largest;
mod links;
mod overlaps;

pub use self::cluster_ids::{ClusterIds, IdSource, cluster_ids};
pub use self::cluster_sizes::{ClusterSizes, LevelClusters, cluster_sizes};
pub use self::evidence::{Agreement, evidence};
pub use self::largest::largest;
pub use self::links::links;
pub use self::overlaps::{Overlap, overlaps};
