//! The columns of the tables of the collections job: pages that are copied together (Cho, Shivakumar and Garcia-Molina 2000).
//!
//! They lie in `collections/TABLE` of the store. A collection and a similar cluster are named by their smallest pages or roots, so
//! `cluster` and `collection` join these tables with each other, and `doc` those of the job's week.

use crate::records::Week;
use crate::tables::columns::{
    Column, Table, booleans, dates, doubles, longs, maybe_doubles, nullable, required, texts,
};

/// `clusters`: similar clusters, each a set of collections.
#[derive(Clone, Debug, PartialEq)]
pub struct CollectionClusterRow {
    /// The smallest root of its trivial clusters.
    pub cluster: i64,
    /// Trivial clusters.
    pub size: i64,
    /// The most pages of one of them.
    pub cardinality: i64,
    /// All pages.
    pub pages: i64,
    /// Collections, whole or not.
    pub collections: i64,
    /// Whether the size is below `least-size`.
    pub noise: bool,
    /// The title of the entry page of the principal collection.
    pub title: String,
    /// Its URL.
    pub url: String,
}

impl Table for CollectionClusterRow {
    const NAME: &'static str = "clusters";
    const DESCRIPTION: &'static str = "Similar clusters: sets of trivial clusters whose pages link to each other in the same way. A trivial cluster is a set of pages that are replicas of each other.";

    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![
            required(
                "cluster",
                "its name: the smallest root of its trivial clusters",
                longs(rows.iter().map(|r| r.cluster)),
            ),
            required("size", "trivial clusters: the pages of a whole collection", longs(rows.iter().map(|r| r.size))),
            required(
                "cardinality",
                "the most pages of one trivial cluster: the number of collections, if all are whole",
                longs(rows.iter().map(|r| r.cardinality)),
            ),
            required("pages", "pages of all its collections", longs(rows.iter().map(|r| r.pages))),
            required("collections", "its collections, whole or not", longs(rows.iter().map(|r| r.collections))),
            required("noise", "whether size is below `least-size` of the job", booleans(rows.iter().map(|r| r.noise))),
            required(
                "title",
                "title of the page of the principal collection that other hosts link to most",
                texts(rows.iter().map(|r| r.title.as_str())),
            ),
            required("url", "URL of that page", texts(rows.iter().map(|r| r.url.as_str()))),
        ]
    }
}

/// `collections`: sets of pages that were copied together.
#[derive(Clone, Debug, PartialEq)]
pub struct CollectionRow {
    /// The similar cluster.
    pub cluster: i64,
    /// The smallest page.
    pub collection: i64,
    /// The host of that page.
    pub host: String,
    /// The directory that all pages are below; empty if there is none.
    pub prefix: String,
    /// The number of pages.
    pub pages: i64,
    /// Links from other hosts.
    pub in_links: i64,
    /// Whether it is the principal collection of the similar cluster.
    pub principal: bool,
}

impl Table for CollectionRow {
    const NAME: &'static str = "collections";
    const DESCRIPTION: &'static str = "Collections: pages that links hold together, at most one of each trivial cluster of a similar cluster. A page that no link joins with others is one alone.";
    const ASCENDING: &'static [&'static str] = &["collection"];

    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![
            required("cluster", "the similar cluster; joins `clusters`", longs(rows.iter().map(|r| r.cluster))),
            required("collection", "its name: its smallest doc", longs(rows.iter().map(|r| r.collection))),
            required("host", "the host of that page", texts(rows.iter().map(|r| r.host.as_str()))),
            required(
                "prefix",
                "the longest directory that all of its pages are below; empty if there is none",
                texts(rows.iter().map(|r| r.prefix.as_str())),
            ),
            required("pages", "its pages", longs(rows.iter().map(|r| r.pages))),
            required(
                "in_links",
                "links from pages of other hosts to its pages",
                longs(rows.iter().map(|r| r.in_links)),
            ),
            required(
                "principal",
                "whether it is the principal one of its cluster: with most in_links, of those at least half as large as the largest",
                booleans(rows.iter().map(|r| r.principal)),
            ),
        ]
    }
}

/// `pages`: the pages of collections.
#[derive(Clone, Debug, PartialEq)]
pub struct CollectionPageRow {
    /// The page.
    pub doc: i64,
    /// The similar cluster.
    pub cluster: i64,
    /// The collection.
    pub collection: i64,
    /// The root of the page's trivial cluster.
    pub root: i64,
}

impl Table for CollectionPageRow {
    const NAME: &'static str = "pages";
    const DESCRIPTION: &'static str =
        "The pages of collections, in the order of `doc`. Pages with one root are replicas of each other.";
    const SORTED_BY: Option<&'static str> = Some("doc");
    const ASCENDING: &'static [&'static str] = &["doc"];

    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![
            required("doc", "document id", longs(rows.iter().map(|r| r.doc))),
            required("cluster", "the similar cluster; joins `clusters`", longs(rows.iter().map(|r| r.cluster))),
            required("collection", "the collection; joins `collections`", longs(rows.iter().map(|r| r.collection))),
            required("root", "the smallest doc of the page's trivial cluster", longs(rows.iter().map(|r| r.root))),
        ]
    }
}

/// `replicas`: how many pages have how many similar pages (Fig. 11).
#[derive(Clone, Debug, PartialEq)]
pub struct CollectionReplicaRow {
    /// A range of the number of pages similar to a page.
    pub similar: &'static str,
    /// The pages with so many.
    pub documents: i64,
    /// Over all pages.
    pub share: Option<f64>,
}

impl Table for CollectionReplicaRow {
    const NAME: &'static str = "replicas";
    const DESCRIPTION: &'static str = "How many pages have how many replicas (Fig. 11 of the study).";

    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![
            required(
                "similar",
                "the number of other pages of its trivial cluster",
                texts(rows.iter().map(|r| r.similar)),
            ),
            required("documents", "pages with so many", longs(rows.iter().map(|r| r.documents))),
            nullable("share", "documents over all pages of the week", maybe_doubles(rows.iter().map(|r| r.share))),
        ]
    }
}

/// `sizes`: how many similar clusters have which cardinality and size (Fig. 12).
#[derive(Clone, Debug, PartialEq)]
pub struct CollectionSizeRow {
    /// As in `clusters`.
    pub cardinality: i64,
    /// As in `clusters`.
    pub size: i64,
    /// The number of similar clusters.
    pub clusters: i64,
}

impl Table for CollectionSizeRow {
    const NAME: &'static str = "sizes";
    const DESCRIPTION: &'static str =
        "How many similar clusters have which cardinality and size (Fig. 12 of the study).";

    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![
            required("cardinality", "as in `clusters`", longs(rows.iter().map(|r| r.cardinality))),
            required("size", "as in `clusters`", longs(rows.iter().map(|r| r.size))),
            required("clusters", "similar clusters of these", longs(rows.iter().map(|r| r.clusters))),
        ]
    }
}

/// `avoid`: prefixes of URLs that a crawler need not fetch.
#[derive(Clone, Debug, PartialEq)]
pub struct AvoidRow {
    /// The prefix.
    pub prefix: String,
    /// Its host.
    pub host: String,
    /// The prefix of the principal copy.
    pub principal_url: String,
    /// Crawled pages below it.
    pub pages: i64,
    /// Those that are copies.
    pub copies: i64,
    /// The bytes of the crawled pages.
    pub bytes: i64,
    /// The week whose run listed it first.
    pub since: Week,
    /// The week of which the numbers are.
    pub week: Week,
}

impl Table for AvoidRow {
    const NAME: &'static str = "avoid";
    const DESCRIPTION: &'static str = "Prefixes of URLs below which nearly all crawled pages are copies, in the order of prefixes: a crawler need not fetch them. `nigh show --avoid` prints them.";

    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![
            required("prefix", "a URL up to a slash", texts(rows.iter().map(|r| r.prefix.as_str()))),
            required("host", "its host", texts(rows.iter().map(|r| r.host.as_str()))),
            required(
                "principal_url",
                "the prefix of the principal collection of which most of them are copies",
                texts(rows.iter().map(|r| r.principal_url.as_str())),
            ),
            required("pages", "crawled pages below the prefix", longs(rows.iter().map(|r| r.pages))),
            required(
                "copies",
                "those of collections of `least-size` pages or more that are not principal, and of which the principal one has a replica",
                longs(rows.iter().map(|r| r.copies)),
            ),
            required("bytes", "bytes of the crawled pages: what is saved", longs(rows.iter().map(|r| r.bytes))),
            required("since", "the week whose run listed it first", dates(rows.iter().map(|r| r.since))),
            required(
                "week",
                "the week of pages, copies and bytes: the last one that found the prefix by itself",
                dates(rows.iter().map(|r| r.week)),
            ),
        ]
    }
}

/// `judged`: the avoid list of the run before, judged by this week.
#[derive(Clone, Debug, PartialEq)]
pub struct JudgedRow {
    /// The prefix.
    pub prefix: String,
    /// Its host.
    pub host: String,
    /// The prefix of the principal copy.
    pub principal_url: String,
    /// The row that the run before had for it.
    pub former: [i64; 3],
    /// The week whose run listed it first.
    pub since: Week,
    /// The week of `former`.
    pub week: Week,
    /// This week's pages below it.
    pub pages: i64,
    /// Those of which this week would have no similar page.
    pub lost: i64,
    /// This week's pages below the prefix of the principal copy.
    pub principal_pages: i64,
    /// `kept`, `not crawled`, `not judged`, `losing` or `principal gone`.
    pub verdict: &'static str,
}

impl Table for JudgedRow {
    const NAME: &'static str = "judged";
    const DESCRIPTION: &'static str =
        "The avoid list of the run before, judged by this week: each prefix, and whether it stays.";

    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![
            required("prefix", "as in `avoid`", texts(rows.iter().map(|r| r.prefix.as_str()))),
            required("host", "as in `avoid`", texts(rows.iter().map(|r| r.host.as_str()))),
            required("principal_url", "as in `avoid`", texts(rows.iter().map(|r| r.principal_url.as_str()))),
            required("former_pages", "pages, in the list before", longs(rows.iter().map(|r| r.former[0]))),
            required("former_copies", "copies, in the list before", longs(rows.iter().map(|r| r.former[1]))),
            required("former_bytes", "bytes, in the list before", longs(rows.iter().map(|r| r.former[2]))),
            required("since", "as in `avoid`", dates(rows.iter().map(|r| r.since))),
            required("week", "the week of these, in the list before", dates(rows.iter().map(|r| r.week))),
            required("pages", "this week's pages below the prefix", longs(rows.iter().map(|r| r.pages))),
            required(
                "lost",
                "those that the crawl would lose: all pages of their clusters are below prefixes of the list",
                longs(rows.iter().map(|r| r.lost)),
            ),
            required(
                "principal_pages",
                "this week's pages below principal_url",
                longs(rows.iter().map(|r| r.principal_pages)),
            ),
            required(
                "verdict",
                "`kept`, `not crawled` (no pages) and `not judged` stay; `losing` and `principal gone` come off the list",
                texts(rows.iter().map(|r| r.verdict)),
            ),
        ]
    }
}

/// `savings`: what crawls would have been without the pages of an avoid list.
#[derive(Clone, Debug, PartialEq)]
pub struct CollectionSavingRow {
    /// The week of the list.
    pub listed: Week,
    /// The week of the crawl.
    pub week: Week,
    /// The prefixes of the list.
    pub prefixes: i64,
    /// The pages of the crawl.
    pub pages: i64,
    /// Pages below the prefixes.
    pub skipped: i64,
    /// Their bytes.
    pub bytes: i64,
    /// The share of pages with replicas, of all.
    pub similar_before: f64,
    /// The share of pages with replicas, of those that are left.
    pub similar_after: f64,
    /// Pages, without one of each cluster.
    pub duplicates_before: i64,
    /// The same of those that are left.
    pub duplicates_after: i64,
    /// Skipped pages of which the crawl would have no similar page.
    pub lost: i64,
}

impl Table for CollectionSavingRow {
    const NAME: &'static str = "savings";
    const DESCRIPTION: &'static str =
        "What the crawls of this and other weeks would have been without the pages of an avoid list.";

    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![
            required("listed", "the week of the list", dates(rows.iter().map(|r| r.listed))),
            required("week", "the week of the crawl", dates(rows.iter().map(|r| r.week))),
            required("prefixes", "prefixes of the list", longs(rows.iter().map(|r| r.prefixes))),
            required("pages", "pages of the crawl", longs(rows.iter().map(|r| r.pages))),
            required("skipped", "pages below the prefixes", longs(rows.iter().map(|r| r.skipped))),
            required("bytes", "their bytes", longs(rows.iter().map(|r| r.bytes))),
            required(
                "similar_before",
                "share of pages with replicas, of all pages",
                doubles(rows.iter().map(|r| r.similar_before)),
            ),
            required(
                "similar_after",
                "share of pages with replicas, of those that are left",
                doubles(rows.iter().map(|r| r.similar_after)),
            ),
            required(
                "duplicates_before",
                "pages, without one of each cluster",
                longs(rows.iter().map(|r| r.duplicates_before)),
            ),
            required(
                "duplicates_after",
                "the same of those that are left",
                longs(rows.iter().map(|r| r.duplicates_after)),
            ),
            required(
                "lost",
                "skipped pages that the crawl would lose: no page of their cluster is left",
                longs(rows.iter().map(|r| r.lost)),
            ),
        ]
    }
}
