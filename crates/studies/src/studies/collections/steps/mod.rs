//! Replicated collections: sets of pages that are copied together (Cho, Shivakumar and
//! Garcia-Molina 2000).
//!
//! A *trivial cluster* is a set of pages that are replicas of each other. Two of them are merged if
//! enough of their pages link to each other; the components of merged ones are *similar clusters*.
//! Each is a set of collections: sets of pages, with one page of every trivial cluster at most,
//! which links hold together. The *principal* collection of a similar cluster is the one that
//! stays: see `growth`.
//!
//! ```text
//! clustered    the pages of the week, and their trivial clusters
//! links        links between trivial clusters that can be merged; links of pages from other hosts
//! statistics   how many pages of one trivial cluster link to how many of another: merged clusters
//! members      similar clusters, and (`growth`) their collections; `hosts` says which of these stays
//! prefixes     what part of the pages below each directory are copies
//! avoid        prefixes that a crawler need not fetch
//! savings      what a crawl would have been without them
//! ```
//!
//! In reading order: `stage` (the parameters), `condition` (when clusters are merged), then the
//! steps as above; `directories`, `named` and `page_texts` serve the last three.
//!
//! Nothing depends on the number of workers: links are taken in the order of the ids of their
//! pages.
//!
//! Memory: 20 bytes for every known URL of a worker's shards, 4 for the links from other hosts and
//! 8 for its similar cluster; 72 bytes for each page of a collection. Records in flight go to disk
//! beyond `memory`. Known limit: all pages and links of one similar cluster are put together in the
//! memory of one worker, and so are the links of one pair of trivial clusters, and what is known of
//! one directory; edges between merged clusters and pure directories are in memory, too.

mod avoid;
mod clustered;
mod condition;
mod directories;
mod growth;
mod hosts;
mod links;
mod members;
mod named;
mod page_texts;
mod prefixes;
mod savings;
mod stage;
mod statistics;

pub use self::avoid::{AvoidPrefix, avoid_list, collection_prefix};
pub use self::clustered::{ClusteredPages, TrivialClusters, clustered_pages};
pub use self::condition::MergeCondition;
pub use self::directories::{Directory, directories, directory_hash, directory_texts};
pub use self::growth::{GrowingPage, Grown, GrownCollection, grow};
pub use self::hosts::FirstSeen;
pub use self::links::{ClusterLink, CollectionLinksFound, collection_links};
pub use self::members::{CollectionMembers, CollectionPage, members};
pub use self::page_texts::{PageText, PageTexts};
pub use self::prefixes::{Prefixes, PureDirectory, prefixes};
pub use self::savings::{Judgement, Savings, judge};
pub use self::stage::CollectionStage;
pub use self::statistics::{MergedClusters, MergedLink, merged_clusters};
