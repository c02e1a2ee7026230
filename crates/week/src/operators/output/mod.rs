//! The output: sizes, ids and evidence of the clusters, for the tables.
//!
//! In reading order:
//!
//! - `cluster_sizes`: the number of documents of each cluster;
//! - `overlaps`: the number of documents that two clusters of two weeks share;
//! - `cluster_ids`: ids that stay the same from week to week, and what became of last week's
//!   clusters;
//! - `canonical`: the documents that stay if duplicates are removed;
//! - `evidence`: what a document and a neighbour in its cluster share;
//! - `largest`: the largest clusters of each level;
//! - `links`: the documents that out-links point to.
//!
//! The rows of most tables are written in `jobs`, from what these steps return; `links` writes its
//! own.

mod canonical;
mod cluster_ids;
mod cluster_sizes;
mod evidence;
mod largest;
mod links;
mod overlaps;

pub use self::canonical::{CanonicalStage, InputNumbers, canonical};
pub use self::cluster_ids::{ClusterIds, IdSource, cluster_ids};
pub use self::cluster_sizes::{ClusterSizes, LevelClusters, cluster_sizes};
pub use self::evidence::{Agreement, evidence};
pub use self::largest::largest;
pub use self::links::links;
pub use self::overlaps::{ClusterOverlap, overlaps};
