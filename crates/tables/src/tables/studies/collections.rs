//! The columns of the tables of the collections job: pages that are copied together (Cho,
//! Shivakumar and Garcia-Molina 2000).
//!
//! They lie in `collections/TABLE` of the store. A collection and a similar cluster are named by
//! their smallest pages or roots, so `cluster` and `collection` join these tables with each other,
//! and `doc` those of the job's week.

use nigh_derive::Table;
use serde::{Deserialize, Serialize};

use crate::records::Week;
use crate::tables::store_table::{ResultTables, StoreTable};

/// The tables, in the order of their names.
pub(super) const TABLES: ResultTables = ResultTables {
    folder: "collections",
    name_pages: true,
    read_chunks: false,
    tables: &[
        StoreTable::of::<AvoidRow>(),
        StoreTable::of::<CollectionClusterRow>(),
        StoreTable::of::<CollectionRow>(),
        StoreTable::of::<JudgedRow>(),
        StoreTable::of::<CollectionPageRow>(),
        StoreTable::of::<CollectionReplicaRow>(),
        StoreTable::of::<CollectionSavingRow>(),
        StoreTable::of::<CollectionSizeRow>(),
    ],
};

/// Similar clusters: sets of trivial clusters whose pages link to each other in the same way. A
/// trivial cluster is a set of pages that are replicas of each other.
#[derive(Clone, Debug, PartialEq, Table)]
#[table(name = "clusters")]
pub struct CollectionClusterRow {
    /// Its name: the smallest root of its trivial clusters.
    pub cluster: i64,
    /// Trivial clusters: the pages of a whole collection.
    pub size: i64,
    /// The most pages of one trivial cluster: the number of collections, if all are whole.
    pub cardinality: i64,
    /// Pages of all its collections.
    pub pages: i64,
    /// Its collections, whole or not.
    pub collections: i64,
    /// Whether size is below `least-size` of the job.
    pub noise: bool,
    /// Title of the page of the principal collection that other hosts link to most.
    pub title: String,
    /// URL of that page.
    pub url: String,
}

/// Collections: pages that links hold together, at most one of each trivial cluster of a similar
/// cluster. A page that no link joins with others is one alone.
#[derive(Clone, Debug, PartialEq, Table)]
#[table(name = "collections")]
pub struct CollectionRow {
    /// The similar cluster; joins `clusters`.
    pub cluster: i64,
    /// Its name: its smallest doc.
    #[column(ascending)]
    pub collection: i64,
    /// The host of that page.
    pub host: String,
    /// The longest directory that all of its pages are below; empty if there is none.
    pub prefix: String,
    /// Its pages.
    pub pages: i64,
    /// Links from pages of other hosts to its pages.
    pub in_links: i64,
    /// Whether it is the principal one of its cluster, the one that stays: docs/collections.md says
    /// how it is chosen.
    pub principal: bool,
}

/// The pages of collections, in the order of `doc`. Pages with one root are replicas of each other.
#[derive(Clone, Debug, PartialEq, Table)]
#[table(name = "pages")]
pub struct CollectionPageRow {
    /// Document id.
    #[column(sorted, ascending)]
    pub doc: i64,
    /// The similar cluster; joins `clusters`.
    pub cluster: i64,
    /// The collection; joins `collections`.
    pub collection: i64,
    /// The smallest doc of the page's trivial cluster.
    pub root: i64,
}

/// How many pages have how many replicas (Fig. 11 of the study).
#[derive(Clone, Debug, PartialEq, Table)]
#[table(name = "replicas")]
pub struct CollectionReplicaRow {
    /// The number of other pages of its trivial cluster.
    pub similar: &'static str,
    /// Pages with so many.
    pub documents: i64,
    /// Documents over all pages of the week.
    pub share: Option<f64>,
}

/// How many similar clusters have which cardinality and size (Fig. 12 of the study).
#[derive(Clone, Debug, PartialEq, Table)]
#[table(name = "sizes")]
pub struct CollectionSizeRow {
    /// As in `clusters`.
    pub cardinality: i64,
    /// As in `clusters`.
    pub size: i64,
    /// Similar clusters of these.
    pub clusters: i64,
}

/// Prefixes of URLs below which nearly all crawled pages are copies, in the order of prefixes: a
/// crawler need not fetch them. `nigh show --avoid` prints them.
#[derive(Clone, Debug, PartialEq, Table)]
#[table(name = "avoid")]
pub struct AvoidRow {
    /// A URL up to a slash.
    pub prefix: String,
    /// Its host.
    pub host: String,
    /// The prefix of the principal collection of which most of them are copies.
    pub principal_url: String,
    /// Crawled pages below the prefix.
    pub pages: i64,
    /// Those of collections of `least-size` pages or more that are not principal, and of which the
    /// principal one has a replica.
    pub copies: i64,
    /// Bytes of the crawled pages: what is saved.
    pub bytes: i64,
    /// URLs below the prefix that links of the week name, of which no week has a page, and that do
    /// not redirect to one: whether they are copies is not known.
    pub named: i64,
    /// The week whose run listed it first.
    pub since: Week,
    /// The week of pages, copies, bytes and named: the last one that found the prefix by itself.
    pub week: Week,
}

/// The avoid list of the run before, judged by this week: each prefix, and whether it stays.
#[derive(Clone, Debug, PartialEq, Table)]
#[table(name = "judged")]
pub struct JudgedRow {
    /// As in `avoid`.
    pub prefix: String,
    /// As in `avoid`.
    pub host: String,
    /// As in `avoid`.
    pub principal_url: String,
    /// The row that the run before had for it.
    #[columns(
        former_pages = "pages, in the list before",
        former_copies = "copies, in the list before",
        former_bytes = "bytes, in the list before",
        former_named = "named, in the list before"
    )]
    pub former: [i64; 4],
    /// As in `avoid`.
    pub since: Week,
    /// The week of these, in the list before.
    pub week: Week,
    /// This week's pages below the prefix.
    pub pages: i64,
    /// Those that the crawl would lose: all pages of their clusters are below prefixes of the list.
    pub lost: i64,
    /// This week's pages below principal_url.
    pub principal_pages: i64,
    /// `kept`, `not crawled` (no pages) and `not judged` stay; `losing`, `too wide` and
    /// `principal gone` come off the list.
    pub verdict: &'static str,
}

/// What the crawls of this and other weeks would have been without the pages of an avoid list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Table)]
#[table(name = "savings")]
pub struct CollectionSavingRow {
    /// The week of the list.
    pub listed: Week,
    /// The week of the crawl.
    pub week: Week,
    /// Prefixes of the list.
    pub prefixes: u64,
    /// Pages of the crawl.
    pub pages: u64,
    /// Pages below the prefixes.
    pub skipped: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Share of pages with replicas, of all pages.
    pub similar_before: f64,
    /// Share of pages with replicas, of those that are left.
    pub similar_after: f64,
    /// Pages, without one of each cluster.
    pub duplicates_before: u64,
    /// The same of those that are left.
    pub duplicates_after: u64,
    /// Skipped pages that the crawl would lose: no page of their cluster is left.
    pub lost: u64,
}
