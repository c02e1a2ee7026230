//! Verification: clusters of candidates fall apart where their pages are not similar enough.
//!
//! Agreements of supershingles find candidates (Fetterly 2004, section 2): most of them are
//! similar, and a chain of those that are not joins what does not belong together. Within each
//! cluster of candidates all pairs of at least the wanted similarity are found, as far as the
//! components depend on them; the components are the clusters.
//!
//! ```text
//! nodes            the first of equal pages, in clusters of several such pages
//! candidate_sets   the shingles of each, read again from the crawl files (`read_again`, `files_again`); or its features
//! gather           the sets of a small cluster meet at the owner of its root (`element_sets`: those of large clusters)
//! pairs            pairs of a small cluster, one by one; those of large ones by the set join
//! split            the components are the new clusters; each page has its most similar neighbour of those that were looked at
//! ```
//!
//! `by_features` has the steps of a check by features, from top to bottom; `jobs/verification.rs`
//! those of one by shingles.
//!
//! By shingles the result is exact, up to collisions of 64-bit fingerprints. By features the
//! similarity s of a pair has the standard error sqrt(s (1 - s) / features).
//!
//! Memory: sets wait on disk beyond `memory`; a small cluster is in memory as a whole; for large
//! ones see `set_join`.

mod by_features;
mod candidate_sets;
mod element_sets;
mod files_again;
mod gather;
mod nodes;
mod pairs;
mod read_again;
mod split;

pub use self::by_features::{CheckedFeatures, FeatureCheck, check_by_features};
pub use self::candidate_sets::{CandidateSet, CandidateSource, FeatureSource, SetStep};
pub use self::files_again::{FilesAgain, IfMissing, PagePlace};
pub use self::gather::{Gathered, gather};
pub use self::nodes::nodes;
pub use self::pairs::{large_clusters, similar_pairs};
pub use self::read_again::{ReadAgain, read_again, readers_of};
pub use self::split::{CandidateClusters, SplitClusters, split};
