//! The summary of replicated collections, with the study's published numbers beside it (Cho,
//! Shivakumar and Garcia-Molina 2000).

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{Merge, ReplicaLevel};
use crate::config::Chunking;
use crate::records::Week;
use crate::tables::studies::collections::CollectionSavingRow;

/// The summary of a collections job: kept as `summary.json` beside its tables, printed by `run` and
/// `show`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CollectionsSummary {
    /// The store, as the run named it.
    pub store: PathBuf,
    /// The parameters of the store, on one line.
    pub method: String,
    /// The week.
    pub first: Week,
    /// The week, again: a study has a first and a last one.
    pub last: Week,
    /// The number of the commit that made the week.
    pub week_commit: u64,
    /// For components of overlap: the number of the commit that made these.
    pub overlap_commit: Option<u64>,
    /// Which pages are replicas of each other.
    pub level: ReplicaLevel,
    /// For components of overlap: the chunking.
    pub chunking: Option<Chunking>,
    /// When trivial clusters are merged.
    pub merge: Merge,
    /// For `share`: the share.
    pub share: Option<f64>,
    /// The pages of a collection that is not noise.
    pub least_size: u32,
    /// All pages of the week.
    pub documents: u64,
    /// Pages with replicas.
    pub clustered: u64,
    /// Trivial clusters of several pages.
    pub trivial: u64,
    /// Links between pages that some week has.
    pub links: u64,
    /// Ordered pairs of trivial clusters with links that could merge them.
    pub pairs: u64,
    /// Those that are merged.
    pub merged: u64,
    /// Similar clusters of at least two trivial clusters.
    pub clusters: u64,
    /// Those of fewer trivial clusters than `least_size`.
    pub noise: u64,
    /// Collections, whole or not.
    pub collections: u64,
    /// Their pages.
    pub pages: u64,
    /// Links that could have joined two parts of collections, and did not, since each had a page of
    /// one trivial cluster.
    pub ambiguous: u64,
    /// Pages by their number of replicas (Fig. 11).
    pub replicas: Vec<SimilarCount>,
    /// The similar clusters of most collections (Table 2).
    pub largest: Vec<LargestCollections>,
    /// What the study found of its largest ones: cardinality and size.
    pub published_largest: Vec<(u64, u64)>,
    /// Prefixes of the avoid list.
    pub avoided: u64,
    /// Prefixes that came off it.
    pub dropped: u64,
    /// The week of the list before this one, if there is one.
    pub former: Option<Week>,
    /// What crawls would have been without the pages of an avoid list: the table `savings`.
    pub savings: Vec<CollectionSavingRow>,
    /// What the study found.
    pub published_savings: PublishedSavings,
}

/// The pages with some number of replicas.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SimilarCount {
    /// Pages.
    pub documents: u64,
    /// Over all pages.
    pub share: Option<f64>,
}

/// A large similar cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LargestCollections {
    /// The most pages of a trivial cluster: the number of collections, if they are whole.
    pub cardinality: u64,
    /// Trivial clusters.
    pub size: u64,
    /// All pages.
    pub pages: u64,
    /// The title of the entry page of the principal collection.
    pub title: String,
    /// Its URL.
    pub url: String,
}

/// The study's crawls: without and with its avoid list (section 5.1).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PublishedSavings {
    /// The share of similar pages before.
    pub similar_before: f64,
    /// After.
    pub similar_after: f64,
    /// The share of identical pages after.
    pub identical_after: f64,
}

/// What the study found: a second crawl fell from 48% to 13% of similar pages, 8% of identical
/// ones.
pub const PUBLISHED_SAVINGS: PublishedSavings =
    PublishedSavings { similar_before: 0.48, similar_after: 0.13, identical_after: 0.08 };

/// The study's largest collections, as cardinality and size (Table 2).
pub const PUBLISHED_LARGEST: [(u64, u64); 5] = [(360, 1052), (143, 1359), (125, 115), (59, 552), (49, 498)];
