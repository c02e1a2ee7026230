//! Every table's columns, once.
//!
//! A table is a row type whose [`Table::columns`] turns rows into arrow columns; the schema follows
//! from it. Ids are [`DocId`]s as signed 64-bit numbers.

use std::sync::Arc;

use arrow_array::builder::{FixedSizeBinaryBuilder, StringBuilder};
use arrow_array::{
    ArrayRef, BooleanArray, Float32Array, Float64Array, Int32Array, Int64Array, TimestampMicrosecondArray,
};

use crate::records::{DocId, fold};

/// One column of some rows.
pub struct Column {
    /// Its name in the schema.
    pub name: &'static str,
    /// Its values, one a row.
    pub values: ArrayRef,
    /// Whether the schema admits nulls.
    pub nullable: bool,
}

impl Column {
    /// A column of signed numbers.
    pub fn longs(name: &'static str, values: impl Iterator<Item = i64>) -> Column {
        required(name, longs(values))
    }

    /// A column of bytes, `width` a row.
    pub fn bytes<'a>(name: &'static str, width: usize, values: impl Iterator<Item = &'a [u8]>) -> Column {
        required(name, bytes(width, values))
    }
}

/// A row type that is a table of a store.
pub trait Table: Sized {
    /// The folder of the table.
    const NAME: &'static str;
    /// Columns of nearly unique values: a dictionary would only cost there.
    const UNIQUE: &'static [&'static str] = &[];
    /// Columns of numbers that mostly ascend with the rows: their differences are kept.
    const ASCENDING: &'static [&'static str] = &[];
    /// Columns that hold hashes: compression would only cost there.
    const RANDOM: &'static [&'static str] = &[];
    /// Columns that nobody searches by order: their least and greatest values are not kept.
    const UNORDERED: &'static [&'static str] = &[];

    /// The columns of some rows; of no rows, the schema.
    fn columns(rows: &[Self]) -> Vec<Column>;
}

pub(super) fn required(name: &'static str, values: ArrayRef) -> Column {
    Column { name, values, nullable: false }
}

pub(super) fn nullable(name: &'static str, values: ArrayRef) -> Column {
    Column { name, values, nullable: true }
}

pub(super) fn longs(values: impl Iterator<Item = i64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(values))
}

fn maybe_longs(values: impl Iterator<Item = Option<i64>>) -> ArrayRef {
    Arc::new(Int64Array::from_iter(values))
}

pub(super) fn ints(values: impl Iterator<Item = i32>) -> ArrayRef {
    Arc::new(Int32Array::from_iter_values(values))
}

pub(super) fn texts<'a>(values: impl Iterator<Item = &'a str>) -> ArrayRef {
    let mut builder = StringBuilder::new();
    values.for_each(|value| builder.append_value(value));
    Arc::new(builder.finish())
}

fn maybe_texts<'a>(values: impl Iterator<Item = Option<&'a str>>) -> ArrayRef {
    let mut builder = StringBuilder::new();
    values.for_each(|value| builder.append_option(value));
    Arc::new(builder.finish())
}

fn bytes<'a>(width: usize, values: impl Iterator<Item = &'a [u8]>) -> ArrayRef {
    let mut builder = FixedSizeBinaryBuilder::new(width as i32);
    values.for_each(|value| builder.append_value(value).expect("every row of a table has the width of the first"));
    Arc::new(builder.finish())
}

/// `documents`: every page of a week.
#[derive(Clone, Debug)]
pub struct DocumentRow {
    /// Its id.
    pub doc: i64,
    /// Its canonical URL.
    pub url: String,
    /// The URL's host, with the port where it is not the default.
    pub host: String,
    /// The host's registered domain.
    pub domain: String,
    /// The machine that answered.
    pub ip: Option<String>,
    /// When, in microseconds UTC.
    pub fetched: Option<i64>,
    /// HTTP status.
    pub status: i32,
    /// Media type, without parameters.
    pub media_type: String,
    /// Bytes of the body as read.
    pub bytes: i64,
    /// XXH3-128 of these bytes, big-endian.
    pub checksum: [u8; 16],
    /// Words of its text.
    pub words: i64,
    /// Its title; empty where it has none.
    pub title: String,
    /// The input that held it.
    pub file: String,
    /// Where there: see `readers`.
    pub offset: i64,
}

impl Table for DocumentRow {
    const NAME: &'static str = "documents";
    const UNIQUE: &'static [&'static str] = &["url", "checksum", "offset"];
    const ASCENDING: &'static [&'static str] = &["doc"];
    const RANDOM: &'static [&'static str] = &["checksum"];

    fn columns(rows: &[Self]) -> Vec<Column> {
        let fetched = TimestampMicrosecondArray::from_iter(rows.iter().map(|r| r.fetched)).with_timezone("UTC");
        vec![
            required("doc", longs(rows.iter().map(|r| r.doc))),
            required("url", texts(rows.iter().map(|r| r.url.as_str()))),
            required("host", texts(rows.iter().map(|r| r.host.as_str()))),
            required("domain", texts(rows.iter().map(|r| r.domain.as_str()))),
            nullable("ip", maybe_texts(rows.iter().map(|r| r.ip.as_deref()))),
            nullable("fetched", Arc::new(fetched)),
            required("status", ints(rows.iter().map(|r| r.status))),
            required("media_type", texts(rows.iter().map(|r| r.media_type.as_str()))),
            required("bytes", longs(rows.iter().map(|r| r.bytes))),
            required("checksum", bytes(16, rows.iter().map(|r| &r.checksum[..]))),
            required("words", longs(rows.iter().map(|r| r.words))),
            required("title", texts(rows.iter().map(|r| r.title.as_str()))),
            required("file", texts(rows.iter().map(|r| r.file.as_str()))),
            required("offset", longs(rows.iter().map(|r| r.offset))),
        ]
    }
}

/// `features`: every page with words.
#[derive(Clone, Debug)]
pub struct FeatureRow {
    /// Its id.
    pub doc: i64,
    /// Its supershingles, eight bytes each, little-endian.
    pub supershingles: Vec<u8>,
    /// The low four bytes of each feature, little-endian.
    pub features: Vec<u8>,
}

impl FeatureRow {
    /// A hash of the supershingles: virtually identical pages have the same, others do not (but for one pair in 2^64).
    fn vector_hash(&self) -> i64 {
        let (words, _) = self.supershingles.as_chunks::<8>();
        fold(&words.iter().map(|word| u64::from_le_bytes(*word)).collect::<Vec<_>>()) as i64
    }
}

impl Table for FeatureRow {
    const NAME: &'static str = "features";
    // All plain: later weeks look up single values where they lie.
    const UNIQUE: &'static [&'static str] = &["doc", "vector", "supershingles", "features"];
    const RANDOM: &'static [&'static str] = &["doc", "vector", "supershingles", "features"];

    fn columns(rows: &[Self]) -> Vec<Column> {
        let width = |of: fn(&Self) -> usize| rows.first().map_or(0, of);
        vec![
            required("doc", longs(rows.iter().map(|r| r.doc))),
            required("vector", longs(rows.iter().map(|r| r.vector_hash()))),
            required(
                "supershingles",
                bytes(width(|r| r.supershingles.len()), rows.iter().map(|r| &r.supershingles[..])),
            ),
            required("features", bytes(width(|r| r.features.len()), rows.iter().map(|r| &r.features[..]))),
        ]
    }
}

/// `urls`: URLs first seen in a week, in the order of their hashes, which is the order of their ids.
#[derive(Clone, Debug)]
pub struct UrlRow {
    /// The id that the URL keeps for ever.
    pub doc: i64,
    /// The 128-bit hash of the URL, big-endian.
    pub hash: [u8; 16],
    /// The canonical URL.
    pub url: String,
}

impl Table for UrlRow {
    const NAME: &'static str = "urls";
    const UNIQUE: &'static [&'static str] = &["hash", "url"];
    const ASCENDING: &'static [&'static str] = &["doc"];
    const RANDOM: &'static [&'static str] = &["hash"];

    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![
            required("doc", longs(rows.iter().map(|r| r.doc))),
            required("hash", bytes(16, rows.iter().map(|r| &r.hash[..]))),
            required("url", texts(rows.iter().map(|r| r.url.as_str()))),
        ]
    }
}

/// `found-links`: out-links as pages have them, before their targets are looked up. Not kept with the week.
#[derive(Clone, Debug)]
pub struct FoundLinkRow {
    /// The page that links.
    pub doc: i64,
    /// The canonical URL that it links to.
    pub target_url: String,
}

impl Table for FoundLinkRow {
    const NAME: &'static str = "found-links";

    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![
            required("doc", longs(rows.iter().map(|r| r.doc))),
            required("target_url", texts(rows.iter().map(|r| r.target_url.as_str()))),
        ]
    }
}

/// `links`: out-links of pages, each target once a page.
#[derive(Clone, Debug)]
pub struct LinkRow {
    /// The page that links.
    pub doc: i64,
    /// The canonical URL that it links to.
    pub target_url: String,
    /// The target's id, where this week or an earlier one has the URL.
    pub target_doc: Option<i64>,
}

impl Table for LinkRow {
    const NAME: &'static str = "links";

    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![
            required("doc", longs(rows.iter().map(|r| r.doc))),
            required("target_url", texts(rows.iter().map(|r| r.target_url.as_str()))),
            nullable("target_doc", maybe_longs(rows.iter().map(|r| r.target_doc))),
        ]
    }
}

/// `failures`: URLs of earlier weeks whose download failed in a wave. Not kept with the week.
#[derive(Clone, Debug)]
pub struct FailureRow {
    /// The URL's id.
    pub doc: i64,
    /// Why it failed.
    pub reason: String,
}

impl Table for FailureRow {
    const NAME: &'static str = "failures";
    const ASCENDING: &'static [&'static str] = &["doc"];

    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![
            required("doc", longs(rows.iter().map(|r| r.doc))),
            required("reason", texts(rows.iter().map(|r| r.reason.as_str()))),
        ]
    }
}

/// `missing`: URLs of earlier weeks that could not be downloaded in a week (Fetterly 2004, section 3).
#[derive(Clone, Debug)]
pub struct MissingRow {
    /// The URL's id.
    pub doc: i64,
    /// The canonical URL.
    pub url: String,
    /// Why: `status 404` and the like, as a side file of failed downloads says, or `not seen`.
    pub reason: String,
}

impl Table for MissingRow {
    const NAME: &'static str = "missing";
    const UNIQUE: &'static [&'static str] = &["url"];
    const ASCENDING: &'static [&'static str] = &["doc"];

    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![
            required("doc", longs(rows.iter().map(|r| r.doc))),
            required("url", texts(rows.iter().map(|r| r.url.as_str()))),
            required("reason", texts(rows.iter().map(|r| r.reason.as_str()))),
        ]
    }
}

/// `deleted`: URLs that are being deleted from a store. Not kept once they are.
#[derive(Clone, Debug)]
pub struct DeletedRow {
    /// The URL's id.
    pub doc: i64,
}

impl Table for DeletedRow {
    const NAME: &'static str = "deleted";
    const ASCENDING: &'static [&'static str] = &["doc"];

    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![required("doc", longs(rows.iter().map(|r| r.doc)))]
    }
}

/// `rejects`: bad records.
#[derive(Clone, Debug)]
pub struct RejectRow {
    /// The input that held it.
    pub file: String,
    /// Where there: see `readers`.
    pub offset: i64,
    /// Its URL, where that much could be read.
    pub url: Option<String>,
    /// What is wrong with it.
    pub reason: String,
}

impl RejectRow {
    /// The name of a wave's file.
    pub fn file(wave: usize) -> String {
        format!("all-wave{wave:05}.parquet")
    }
}

impl Table for RejectRow {
    const NAME: &'static str = "rejects";

    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![
            required("file", texts(rows.iter().map(|r| r.file.as_str()))),
            required("offset", longs(rows.iter().map(|r| r.offset))),
            nullable("url", maybe_texts(rows.iter().map(|r| r.url.as_deref()))),
            required("reason", texts(rows.iter().map(|r| r.reason.as_str()))),
        ]
    }
}

/// `clusters`: the cluster map, every page of a week.
#[derive(Clone, Debug)]
pub struct ClusterRow {
    /// The page's canonical URL.
    pub url: String,
    /// Its host.
    pub host: String,
    /// Its id.
    pub doc: i64,
    /// Root (smallest id) and pages of its cluster, by level: similar, identical, exact.
    pub levels: [(i64, i64); 3],
    /// The cluster's name through the weeks, for clusters of at least two very similar pages.
    pub cluster_id: Option<i64>,
    /// Whether the page is its cluster's canonical document, its root: keep these and one page of each cluster is left.
    pub canonical: bool,
}

impl Table for ClusterRow {
    const NAME: &'static str = "clusters";
    const UNIQUE: &'static [&'static str] = &["url"];
    const ASCENDING: &'static [&'static str] = &["doc", "similar_root", "identical_root", "exact_root"];

    fn columns(rows: &[Self]) -> Vec<Column> {
        let root = |level: usize| longs(rows.iter().map(move |r| r.levels[level].0));
        let size = |level: usize| longs(rows.iter().map(move |r| r.levels[level].1));
        vec![
            required("url", texts(rows.iter().map(|r| r.url.as_str()))),
            required("host", texts(rows.iter().map(|r| r.host.as_str()))),
            required("doc", longs(rows.iter().map(|r| r.doc))),
            required("similar_root", root(0)),
            required("similar_size", size(0)),
            required("identical_root", root(1)),
            required("identical_size", size(1)),
            required("exact_root", root(2)),
            required("exact_size", size(2)),
            nullable("cluster_id", maybe_longs(rows.iter().map(|r| r.cluster_id))),
            required("canonical", Arc::new(BooleanArray::from_iter(rows.iter().map(|r| Some(r.canonical))))),
        ]
    }
}

/// `evidence`: why a page is in its cluster; every clustered page but its root.
#[derive(Clone, Debug)]
pub struct EvidenceRow {
    /// The page.
    pub doc: i64,
    /// A page of the cluster with which it shares supershingles.
    pub neighbour: i64,
    /// How many supershingles they share.
    pub agreements: i32,
    /// The share of equal features: an estimate of the similarity.
    pub similarity: f32,
}

impl Table for EvidenceRow {
    const NAME: &'static str = "evidence";
    const ASCENDING: &'static [&'static str] = &["doc"];

    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![
            required("doc", longs(rows.iter().map(|r| r.doc))),
            required("neighbour", longs(rows.iter().map(|r| r.neighbour))),
            required("agreements", ints(rows.iter().map(|r| r.agreements))),
            required("similarity", Arc::new(Float32Array::from_iter_values(rows.iter().map(|r| r.similarity)))),
        ]
    }
}

/// What became of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event {
    /// No page of it was in a cluster the week before.
    Birth,
    /// None of its pages is in a cluster any more.
    Death,
    /// It has more pages.
    Grow,
    /// It has fewer pages.
    Shrink,
    /// Another cluster has most of its pages, and keeps its own name.
    Merge,
    /// Some of its pages are in another cluster, which does not succeed it.
    Split,
}

impl Event {
    /// All events.
    pub const ALL: [Event; 6] = [Event::Birth, Event::Death, Event::Grow, Event::Shrink, Event::Merge, Event::Split];

    /// The name that the table holds.
    pub fn name(self) -> &'static str {
        match self {
            Event::Birth => "birth",
            Event::Death => "death",
            Event::Grow => "grow",
            Event::Shrink => "shrink",
            Event::Merge => "merge",
            Event::Split => "split",
        }
    }
}

/// `changes`: what became of clusters of at least two very similar pages since the week before.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ChangeRow {
    /// The cluster: of last week, but for a birth.
    pub cluster_id: i64,
    /// What became of it.
    pub event: Event,
    /// The other cluster, of a merge or a split.
    pub other: Option<i64>,
    /// Pages of the cluster the week before.
    pub before: i64,
    /// Pages now: of the other cluster, in a merge or a split.
    pub after: i64,
    /// Pages that make the event: born, dead, come or gone; or those that went over to the other cluster.
    pub documents: i64,
}

impl ChangeRow {
    /// An event; pages before and after.
    pub fn new(
        event: Event,
        id: DocId,
        other: Option<DocId>,
        (before, after): (u64, u64),
        documents: u64,
    ) -> ChangeRow {
        let (cluster_id, other) = (id.to_table(), other.map(DocId::to_table));
        ChangeRow { cluster_id, event, other, before: before as i64, after: after as i64, documents: documents as i64 }
    }
}

impl Table for ChangeRow {
    const NAME: &'static str = "changes";

    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![
            required("cluster_id", longs(rows.iter().map(|r| r.cluster_id))),
            required("event", texts(rows.iter().map(|r| r.event.name()))),
            nullable("other", maybe_longs(rows.iter().map(|r| r.other))),
            required("before", longs(rows.iter().map(|r| r.before))),
            required("after", longs(rows.iter().map(|r| r.after))),
            required("documents", longs(rows.iter().map(|r| r.documents))),
        ]
    }
}

/// `sizes`: how many clusters there are of each size, size 1 included.
#[derive(Clone, Debug)]
pub struct SizeRow {
    /// `similar`, `identical` or `exact`.
    pub level: &'static str,
    /// Pages of a cluster.
    pub size: i64,
    /// Clusters of that size.
    pub clusters: i64,
}

impl Table for SizeRow {
    const NAME: &'static str = "sizes";

    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![
            required("level", texts(rows.iter().map(|r| r.level))),
            required("size", longs(rows.iter().map(|r| r.size))),
            required("clusters", longs(rows.iter().map(|r| r.clusters))),
        ]
    }
}

/// `largest`: the largest clusters of each level (Fetterly 2004, tables 1 and 2).
#[derive(Clone, Debug)]
pub struct LargestRow {
    /// `similar`, `identical` or `exact`.
    pub level: &'static str,
    /// From 1.
    pub rank: i32,
    /// Pages of the cluster.
    pub urls: i64,
    /// Distinct hosts among them.
    pub hosts: i64,
    /// Distinct addresses among them.
    pub machines: i64,
    /// Hosts without a known address.
    pub unresolved: i64,
    /// The canonical page's title.
    pub title: String,
    /// The canonical page's URL.
    pub url: String,
    /// The cluster's root.
    pub root: i64,
}

impl Table for LargestRow {
    const NAME: &'static str = "largest";

    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![
            required("level", texts(rows.iter().map(|r| r.level))),
            required("rank", ints(rows.iter().map(|r| r.rank))),
            required("urls", longs(rows.iter().map(|r| r.urls))),
            required("hosts", longs(rows.iter().map(|r| r.hosts))),
            required("machines", longs(rows.iter().map(|r| r.machines))),
            required("unresolved", longs(rows.iter().map(|r| r.unresolved))),
            required("title", texts(rows.iter().map(|r| r.title.as_str()))),
            required("url", texts(rows.iter().map(|r| r.url.as_str()))),
            required("root", longs(rows.iter().map(|r| r.root))),
        ]
    }
}

/// `summary`: one row a level.
#[derive(Clone, Debug)]
pub struct SummaryRow {
    /// `similar`, `identical` or `exact`.
    pub level: &'static str,
    /// Pages of the week.
    pub documents: i64,
    /// Pages in clusters of at least two.
    pub clustered: i64,
    /// Clusters of at least two pages.
    pub clusters: i64,
    /// Clustered pages but one a cluster.
    pub duplicates: i64,
    /// Duplicates over documents.
    pub share: f64,
    /// The exponent of the power law of cluster sizes, by maximum likelihood; null where there are too few clusters.
    pub exponent: Option<f64>,
    /// The smallest size that the power law is fitted to.
    pub x_min: Option<i64>,
}

impl Table for SummaryRow {
    const NAME: &'static str = "summary";

    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![
            required("level", texts(rows.iter().map(|r| r.level))),
            required("documents", longs(rows.iter().map(|r| r.documents))),
            required("clustered", longs(rows.iter().map(|r| r.clustered))),
            required("clusters", longs(rows.iter().map(|r| r.clusters))),
            required("duplicates", longs(rows.iter().map(|r| r.duplicates))),
            required("share", Arc::new(Float64Array::from_iter_values(rows.iter().map(|r| r.share)))),
            nullable("exponent", Arc::new(Float64Array::from_iter(rows.iter().map(|r| r.exponent)))),
            nullable("x_min", maybe_longs(rows.iter().map(|r| r.x_min))),
        ]
    }
}
