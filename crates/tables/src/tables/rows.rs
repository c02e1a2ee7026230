//! The columns of every table, defined once.
//!
//! A table is a row type ([`Row`](super::Row)). The first paragraphs of the documentation of rows
//! and fields are the descriptions of tables and columns: they are written into every file and into
//! docs/tables.md (`describe`). Rows of large tables borrow what they are made of.
//!
//! A `doc` is a [`DocId`] as a signed 64-bit number. A URL keeps its id from week to week, so `doc`
//! joins all tables of a week with each other and with those of other weeks. A *level* is one of
//! the three relations of [`Level`](crate::records::Level), by name: `similar` (very similar),
//! `identical` (virtually identical) or `exact` (exact copies).

use std::sync::Arc;

use anyhow::Result;
use arrow_array::{Date32Array, RecordBatch};
use nigh_derive::Table;

use super::values::{ColumnBuilder, UtcMicros, Value, ValueType};
use crate::records::{DocId, FeatureBits, Week, fold};

/// One row for each page of a week, in the order of `doc`.
#[derive(Clone, Debug, Table)]
#[table(name = "documents")]
pub struct DocumentRow<'a> {
    /// Document id.
    ///
    /// It joins all tables with a column `doc`.
    #[column(sorted, ascending)]
    pub doc: i64,
    /// The id that the input gives it; null if the job names no column for ids.
    #[column(searched, unique, unordered)]
    pub id: Option<&'a str>,
    /// Canonical URL: after the WHATWG URL standard, without fragment, user and password; null for
    /// a row without one.
    #[column(searched, unique, unordered)]
    pub url: Option<&'a str>,
    /// The URL as it was written; null if that is the canonical one.
    #[column(unique, unordered)]
    pub given_url: Option<&'a str>,
    /// Its host in lower case, with the port if that is not the default.
    #[column(searched, unordered)]
    pub host: Option<&'a str>,
    /// The registered domain of the host.
    #[column(unordered)]
    pub domain: Option<&'a str>,
    /// Address of the machine that answered; null if the crawl does not have it.
    pub ip: Option<&'a str>,
    /// Fetch time, in microseconds UTC; null if the crawl does not have it.
    pub fetched: Option<UtcMicros>,
    /// HTTP status; null for formats without one.
    pub status: Option<i32>,
    /// Without parameters; null for formats without one.
    ///
    /// The media type: `text/html`.
    pub media_type: Option<&'a str>,
    /// Bytes of the body as read.
    pub bytes: i64,
    /// XXH3-128 of these bytes, 16 bytes, big-endian.
    ///
    /// Equal for exact copies.
    #[column(searched, unique, random, unordered)]
    pub checksum: [u8; 16],
    /// Words of its text.
    ///
    /// A page without words has no row in `features`.
    pub words: i64,
    /// Empty if it has none.
    ///
    /// The title of the page.
    #[column(unordered)]
    pub title: &'a str,
    /// The input file, as it was named.
    pub file: &'a str,
    /// Where in the file; by format, see docs/tables.md.
    ///
    /// See [`Page::offset`](crate::readers::Page::offset).
    #[column(unique)]
    pub offset: i64,
    /// The week whose crawl has the page: an earlier one, of a page that stays though it was not
    /// crawled.
    pub crawled: Week,
    /// The week under which `features`, `links` and `chunks` have its rows: an earlier one only of
    /// a page that stays.
    pub stored: Week,
    /// The charset label of the answer, lower case.
    pub charset: Option<&'a str>,
    /// WARC-Payload-Digest as written: joins a CDX index.
    #[column(unordered)]
    pub digest: Option<&'a str>,
    /// WARC-Record-ID.
    ///
    /// Without angle brackets.
    #[column(unordered)]
    pub record_id: Option<&'a str>,
    /// The bytes that the WARC record takes in `file` from `offset` on: a range request gets it;
    /// none if other records share its member.
    pub length: Option<i64>,
    /// The canonical URL of that record, if it is not that of the document, which a revisit says is
    /// the same page.
    #[column(unordered)]
    pub record_url: Option<&'a str>,
}

impl DocumentRow<'_> {
    /// The same rows, of pages whose rows of `features`, `links` and `chunks` are stored in this
    /// week.
    ///
    /// # Errors
    /// If the batch has not the columns of the table.
    pub fn stored_in(batch: &RecordBatch, week: Week) -> Result<RecordBatch> {
        let mut columns = batch.columns().to_vec();
        columns[batch.schema().index_of("stored")?] = Arc::new(Date32Array::from_value(week.days(), batch.num_rows()));
        Ok(RecordBatch::try_new(batch.schema(), columns)?)
    }
}

/// One row for each page with words, in the order of `doc` (Fetterly 2004, section 2).
///
/// All columns are plain ([`PlainColumn`](super::PlainColumn)): later weeks read single values of
/// them straight from the file. Nor do most have statistics: the Parquet crate cuts those of long
/// values to 64 bytes, and pyarrow aborts on cut ones of fixed size. The rows of a file have the
/// widths of the first; without rows they are those of the study, and so of the default method
/// ([`Writer::like`](super::Writer::like)).
#[derive(Clone, Debug, Table)]
#[table(name = "features")]
pub struct FeatureRow<'a> {
    /// Document id.
    #[column(sorted, unique, random)]
    pub doc: i64,
    /// A hash of the supershingles: virtually identical pages have the same; others differ except
    /// once in 2^64.
    #[column(unique, random, unordered)]
    pub vector: i64,
    /// Numbers of eight bytes, little-endian: six of them by default.
    #[column(unique, random, unordered, width = 6 * 8)]
    pub supershingles: &'a [u8],
    /// The low two bytes of each feature, little-endian: 84 of them by default.
    #[column(unique, random, unordered, width = 84 * size_of::<FeatureBits>() as i32)]
    pub features: &'a [u8],
}

impl<'a> FeatureRow<'a> {
    /// The row of a page with these supershingles, from which its vector is made.
    pub fn new(doc: i64, supershingles: &'a [u8], features: &'a [u8]) -> FeatureRow<'a> {
        let (words, _) = supershingles.as_chunks::<8>();
        let vector = fold(&words.iter().map(|word| u64::from_le_bytes(*word)).collect::<Vec<_>>()) as i64;
        FeatureRow { doc, vector, supershingles, features }
    }
}

/// One row for each page with words, in the order of `doc`: what studies of overlapping pages need.
/// No row if the job says `chunks = false`.
///
/// The definitions of lines, sentences and paragraphs are in
/// [`features`](nigh_text::features::PageChunks).
#[derive(Clone, Debug, Table)]
#[table(name = "chunks")]
pub struct ChunkRow<'a> {
    /// Document id.
    #[column(sorted, ascending)]
    pub doc: i64,
    /// XXH3-128 of the words with one blank between them, 16 bytes, big-endian.
    ///
    /// Equal for pages with the same text.
    #[column(unique, random, unordered)]
    pub text: [u8; 16],
    /// Characters of the text; a run of white space counts as one.
    pub characters: i64,
    /// A hash of each line, in order: four bytes each, little-endian.
    #[column(unique, random, unordered)]
    pub lines: &'a [u8],
    /// A hash of each three sentences, in order: eight bytes each, little-endian.
    #[column(unique, random, unordered)]
    pub paragraphs: &'a [u8],
}

/// One row for each capture of a URL after the first of the week, by file and record: those of WARC
/// and ARC, to which a revisit can refer.
///
/// What `documents`, `features`, `chunks` and `links` would have of it, in one row: a revisit of a
/// later week may make it a page.
#[derive(Clone, Debug, Table)]
#[table(name = "captures")]
pub struct CaptureRow<'a> {
    /// Document id of its URL.
    pub doc: i64,
    /// Canonical URL.
    #[column(unique)]
    pub url: &'a str,
    /// Fetch time, in microseconds UTC; null if the crawl does not have it.
    pub fetched: Option<UtcMicros>,
    /// WARC-Payload-Digest as written.
    pub digest: Option<&'a str>,
    /// WARC-Record-ID.
    pub record_id: Option<&'a str>,
    /// The input file, as in `documents`.
    pub file: &'a str,
    /// Where in the file, as in `documents`.
    #[column(unique)]
    pub offset: i64,
    /// The bytes that the WARC record takes there, as in `documents`.
    pub length: Option<i64>,
    /// HTTP status.
    pub status: Option<i32>,
    /// Without parameters.
    ///
    /// The media type.
    pub media_type: Option<&'a str>,
    /// The charset label of the answer, lower case.
    pub charset: Option<&'a str>,
    /// Bytes of the body as read.
    pub bytes: i64,
    /// XXH3-128 of these bytes, as in `documents`.
    #[column(unique, random, unordered)]
    pub checksum: [u8; 16],
    /// Words of its text.
    pub words: i64,
    /// The title of the page; empty if it has none.
    pub title: &'a str,
    /// Whether its bytes are known to be those of the page of the week: then the columns that
    /// follow are null.
    pub same: bool,
    /// As in `features`; null if it has no words.
    #[column(unique, random, unordered)]
    pub supershingles: Option<&'a [u8]>,
    /// As in `features`; null if it has no words.
    #[column(unique, random, unordered)]
    pub features: Option<&'a [u8]>,
    /// As in `chunks`; null if it has no words, or the job says `chunks = false`.
    #[column(unique, random, unordered)]
    pub text: Option<[u8; 16]>,
    /// As in `chunks`, and so are the next two.
    pub characters: Option<i64>,
    /// A hash of each line.
    #[column(unique, random, unordered)]
    pub lines: Option<&'a [u8]>,
    /// A hash of each three sentences.
    #[column(unique, random, unordered)]
    pub paragraphs: Option<&'a [u8]>,
    /// The canonical URLs that it links to, one in each line.
    #[column(unique)]
    pub links: Option<&'a str>,
}

/// One row for each page and column whose values are kept, in the order of `doc` and `column`; none
/// where the input has no value. The table is there if the job names such columns: those of
/// `canonical`, and of `values` in `[cluster.read.columns]`.
#[derive(Clone, Debug, Table)]
#[table(name = "values")]
pub struct ValueRow<'a> {
    /// Document id.
    #[column(sorted)]
    pub doc: i64,
    /// The name of the column, as the job has it.
    pub column: &'a str,
    /// The value: a number as JSON writes it, a time as ISO 8601, `true`, `false`, or text, of
    /// which the first 120 bytes are kept.
    pub value: &'a str,
}

/// One row for each URL (or id, or row, where documents are known by these) first seen in the week,
/// in the order of `doc`.
///
/// The order of the hashes is that of `doc`.
#[derive(Clone, Debug, Table)]
#[table(name = "urls")]
pub struct UrlRow<'a> {
    /// The document id that it keeps.
    ///
    /// No later week changes it.
    #[column(sorted, ascending)]
    pub doc: i64,
    /// XXH3-128 of the URL or id, or of file and offset; 16 bytes, big-endian.
    #[column(unique, random)]
    pub hash: [u8; 16],
    /// Canonical URL; null if documents are not known by it.
    #[column(searched, unique)]
    pub url: Option<&'a str>,
    /// The user's id; null if documents are not known by it.
    #[column(searched, unique)]
    pub id: Option<&'a str>,
}

/// Links as read from pages; an unfinished week only.
///
/// Their targets are not looked up yet.
#[derive(Clone, Debug, Table)]
#[table(name = "found-links", scratch)]
pub struct FoundLinkRow<'a> {
    /// The page that links.
    #[column(ascending)]
    pub doc: i64,
    /// The canonical URL it links to.
    #[column(unique)]
    pub target_url: &'a str,
}

/// One row for each link of a page to another URL, in the order of `doc`.
#[derive(Clone, Debug, Table)]
#[table(name = "links")]
pub struct LinkRow<'a> {
    /// The page that links.
    #[column(sorted)]
    pub doc: i64,
    /// The canonical URL it links to, once a page.
    pub target_url: &'a str,
    /// Its document id; null if neither this week nor an earlier one has the URL.
    pub target_doc: Option<i64>,
}

/// URLs of earlier weeks whose download failed; an unfinished week only.
#[derive(Clone, Debug, Table)]
#[table(name = "failures", scratch)]
pub struct FailureRow {
    /// Document id.
    #[column(ascending)]
    pub doc: i64,
    /// Why the download failed.
    pub reason: String,
}

/// Downloads of pages that are known; an unfinished week only.
#[derive(Clone, Debug, Table)]
#[table(name = "revisits", scratch)]
pub struct RevisitRow {
    /// The id of the URL, if an earlier week has it.
    pub doc: Option<i64>,
    /// The hash of the URL.
    pub hash: [u8; 16],
    /// The hash of the URL of the page that it is; null if that is not looked for by a URL.
    pub target: Option<[u8; 16]>,
    /// The record id of that page.
    pub id: Option<String>,
    /// When that was fetched, in microseconds.
    pub date: Option<i64>,
    /// Its payload digest, if it is looked for by it.
    pub digest: Option<String>,
    /// The canonical URL of the download.
    pub url: String,
    /// The URL as written.
    pub given_url: Option<String>,
    /// The address of the server.
    pub ip: Option<String>,
    /// When it was fetched, in microseconds.
    pub fetched: Option<i64>,
    /// The media type of the answer.
    pub media_type: Option<String>,
    /// The number of the input.
    pub file: i64,
}

/// One row for each URL of an earlier week that has no page in this one (Fetterly 2004, section 3),
/// and for each URL of which the crawl has only revisits of a page that is not known.
#[derive(Clone, Debug, Table)]
#[table(name = "missing")]
pub struct MissingRow {
    /// Document id.
    #[column(sorted, ascending)]
    pub doc: i64,
    /// Canonical URL, as in `urls`.
    #[column(searched, unique)]
    pub url: Option<String>,
    /// The user's id, as in `urls`.
    #[column(searched, unique)]
    pub id: Option<String>,
    /// `status 404` and the like, the reason of a side file of failed downloads, `revisit of a page
    /// that is not known`, or `not seen`.
    ///
    /// `not seen` if the crawl has no record of the URL.
    pub reason: String,
}

/// Failed downloads of a wave; an unfinished week only.
///
/// Each at the URL's shard, in the order of URL hashes.
#[derive(Clone, Debug, Table)]
#[table(name = "failed-urls", scratch)]
pub struct FailedUrlRow {
    /// XXH3-128 of the URL, 16 bytes, big-endian.
    #[column(unique, random)]
    pub hash: [u8; 16],
    /// Its host.
    pub host: String,
    /// Why the download failed.
    pub reason: String,
    /// Canonical URL of a redirect.
    #[column(unique)]
    pub url: Option<String>,
    /// Its target.
    pub target_url: Option<String>,
    /// Its status, or 0.
    ///
    /// That of the redirect.
    pub status: i32,
}

/// One row for each URL that answered 301, 302, 307 or 308 and named a web address: its first such
/// answer, in the order of the hashes of URLs.
#[derive(Clone, Debug, Table)]
#[table(name = "redirects")]
pub struct RedirectRow {
    /// Canonical URL.
    #[column(searched, unique)]
    pub url: String,
    /// The canonical URL that it redirects to.
    pub target_url: String,
    /// HTTP status.
    pub status: i32,
}

/// One row for each host and reason of failed downloads of this week, in the order of a hash of the
/// host. URLs that no week has a page of count, too.
#[derive(Clone, Debug, Table)]
#[table(name = "host-failures")]
pub struct HostFailureRow {
    /// Host in lower case, with the port if that is not the default.
    pub host: String,
    /// `status 404` and the like, or the reason of a side file of failed downloads.
    pub reason: String,
    /// URLs without a page this week whose first failed download has this reason.
    pub urls: i64,
}

/// URLs that a run is deleting; an unfinished deletion only.
#[derive(Clone, Debug, Table)]
#[table(name = "deleted")]
pub struct DeletedRow {
    /// Document id.
    #[column(sorted, ascending)]
    pub doc: i64,
}

/// One row for each bad record of the input.
#[derive(Clone, Debug, Table)]
#[table(name = "rejects")]
pub struct RejectRow {
    /// The input file, as in `documents`.
    pub file: String,
    /// Where in it, as in `documents`.
    pub offset: i64,
    /// Its URL; null if that could not be read.
    pub url: Option<String>,
    /// What is wrong: a short stable phrase.
    pub reason: String,
}

impl RejectRow {
    /// The name of the file of a wave; waves count from 0.
    ///
    /// ```
    /// assert_eq!(nigh_tables::tables::RejectRow::file(12), "all-wave00012.parquet");
    /// ```
    pub fn file(wave: usize) -> String {
        format!("all-wave{wave:05}.parquet")
    }
}

/// The cluster map: one row for each page, in the order of `doc` (Fetterly 2004, section 2).
#[derive(Clone, Debug, Table)]
#[table(name = "clusters")]
pub struct ClusterRow<'a> {
    /// The user's id, as in `documents`.
    #[column(searched, unique, unordered)]
    pub id: Option<&'a str>,
    /// Canonical URL, as in `documents`.
    #[column(searched, unique, unordered)]
    pub url: Option<&'a str>,
    /// Its host, as in `documents`.
    #[column(searched, unordered)]
    pub host: Option<&'a str>,
    /// Document id.
    #[column(sorted, ascending)]
    pub doc: i64,
    /// Smallest document id of its very similar cluster.
    ///
    /// Pages of one cluster have the same root, at each level; a page without duplicates is the
    /// root of a cluster of size 1.
    #[column(ascending)]
    pub similar_root: i64,
    /// Number of pages of its very similar cluster.
    pub similar_size: i64,
    /// Smallest document id of its cluster of virtually identical pages.
    #[column(ascending)]
    pub identical_root: i64,
    /// Number of pages of its cluster of virtually identical pages.
    pub identical_size: i64,
    /// Smallest document id of its cluster of exact copies.
    #[column(ascending)]
    pub exact_root: i64,
    /// Number of pages of its cluster of exact copies.
    pub exact_size: i64,
    /// The very similar cluster's id through the weeks; null for a page without a near-duplicate.
    ///
    /// It joins `cluster_id` of other weeks and of `changes`; it is not a `doc`.
    pub cluster_id: Option<i64>,
    /// Whether the page stays if duplicates are removed: chosen by the job's `canonical` of its
    /// very similar cluster, or without a near-duplicate.
    ///
    /// To deduplicate the week, keep the rows where this is true.
    pub canonical: bool,
}

/// What a row of `accuracy` is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccuracyKind {
    /// Rows of `evidence` with a similarity in a band.
    Links,
    /// Pairs of pages of one of the largest clusters.
    Clusters,
    /// Pairs of pages with an exact similarity in a band.
    Recall,
}

impl AccuracyKind {
    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            AccuracyKind::Links => "links",
            AccuracyKind::Clusters => "clusters",
            AccuracyKind::Recall => "recall",
        }
    }
}

/// How right the clusters are, from samples of pairs of pages that were compared, exactly where
/// their files allow it. A pair is similar enough if its similarity is at least that of the method,
/// or 0.8. No rows if the job says `accuracy = false`.
#[derive(Clone, Debug, Table)]
#[table(name = "accuracy")]
pub struct AccuracyRow {
    /// `links`: rows of `evidence`, which are right if they are similar enough; `clusters`: pairs
    /// of pages of one of the largest clusters, likewise; `recall`: pairs of pages that are similar
    /// enough, which are right if they are in one cluster.
    pub kind: AccuracyKind,
    /// Lower end of the band of similarity: that of `evidence` for `links`, the exact one for
    /// `recall`; null for `clusters`.
    pub low: Option<f64>,
    /// Upper end of the band.
    pub high: Option<f64>,
    /// Root of the cluster; null except for `clusters`.
    pub cluster: Option<i64>,
    /// Links of pages with words in the band; pages of the cluster; or, for `recall`, pages whose
    /// similar pages were looked for.
    pub population: i64,
    /// Pairs that were compared.
    pub sampled: i64,
    /// Those whose similarity is exact; the others are compared by their features, where pages
    /// could not be read again at their places.
    pub exact: i64,
    /// Those that are right.
    pub good: i64,
    /// Share of right pairs; for `recall` each pair counts as often as pairs of its page were left
    /// out.
    pub share: f64,
    /// Lower end of its 95% confidence interval.
    pub share_low: f64,
    /// Upper end of its 95% confidence interval.
    pub share_high: f64,
    /// For `recall`: mean probability that such a pair is linked directly; if estimates verify the
    /// clusters, that it also passes the check.
    pub expected: Option<f64>,
    /// Mean exact similarity of the pairs.
    pub similarity: f64,
}

/// One row for each page that verification took out of its cluster of candidates, in the order of
/// `doc`: the roots before it, where `clusters` has those after it. Empty without `verify`.
#[derive(Clone, Debug, Table)]
#[table(name = "split-off")]
pub struct SplitOffRow {
    /// The page.
    #[column(sorted, ascending)]
    pub doc: i64,
    /// Smallest document id of its cluster of candidates: pages that share supershingles.
    pub similar_root: i64,
    /// Smallest document id of the candidates that share all supershingles.
    pub identical_root: i64,
}

/// How the similarity of two pages was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Found {
    /// From their features: an estimate.
    #[default]
    Features,
    /// From their shingles, exactly.
    Shingles,
    /// Their bytes are equal.
    Bytes,
}

impl Found {
    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Found::Features => "features",
            Found::Shingles => "shingles",
            Found::Bytes => "bytes",
        }
    }

    /// The value with this name.
    pub fn of_name(name: &str) -> Option<Found> {
        [Found::Features, Found::Shingles, Found::Bytes].into_iter().find(|found| found.name() == name)
    }
}

/// One row for each clustered page except its root, in the order of `doc`: why it is in its
/// cluster.
#[derive(Clone, Debug, Table)]
#[table(name = "evidence")]
pub struct EvidenceRow {
    /// The page.
    #[column(sorted, ascending)]
    pub doc: i64,
    /// Document id of a page of the same cluster: one with which it shares supershingles, or after
    /// verification the most similar one that was found; of pages without words the first with the
    /// same bytes.
    pub neighbour: i64,
    /// How many supershingles they share.
    pub agreements: i32,
    /// Jaccard similarity of their shingles, as `found` says.
    #[column(description = "Jaccard similarity of their shingles, as `found` says")]
    pub similarity: f32,
    /// `features`: the share of equal features, an estimate; `shingles`: exact; `bytes`: their
    /// bytes are equal.
    pub found: Found,
}

/// A change of a cluster from the week before to this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event {
    /// No page of the cluster was in a cluster the week before.
    Birth,
    /// None of the cluster's pages is in a cluster any more.
    Death,
    /// The cluster has more pages.
    Grow,
    /// The cluster has fewer pages.
    Shrink,
    /// Another cluster, which keeps its own id, has most of the cluster's pages.
    Merge,
    /// Some of the cluster's pages are in another cluster, which is not its successor.
    Split,
}

impl Event {
    /// All events, in the order of the type.
    pub const ALL: [Event; 6] = [Event::Birth, Event::Death, Event::Grow, Event::Shrink, Event::Merge, Event::Split];

    /// The name in the column `changes.event`.
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

/// What became of the clusters of the week before: one row for each event.
///
/// These are clusters of at least two very similar pages. A store's first week has no such table.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Table)]
#[table(name = "changes")]
pub struct ChangeRow {
    /// The cluster: of the week before, except for a birth.
    ///
    /// It joins `clusters.cluster_id` of that week.
    pub cluster_id: i64,
    /// `birth`, `death`, `grow`, `shrink`, `merge` or `split`.
    pub event: Event,
    /// The other cluster of a merge or split; null for other events.
    ///
    /// It joins this week's `clusters.cluster_id`.
    #[column(name = "other_cluster_id")]
    pub other: Option<i64>,
    /// Pages of the cluster the week before.
    ///
    /// 0 in a birth.
    pub before: i64,
    /// Pages now; of the other cluster in a merge or split.
    ///
    /// 0 in a death.
    pub after: i64,
    /// Pages that make the event: born, dead, added or gone, or moved to the other cluster.
    ///
    /// In a birth or a death, the cluster's; in growth or shrinkage, the difference.
    pub documents: i64,
}

impl ChangeRow {
    /// The row of an event; `(before, after)` are numbers of pages.
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

/// How many clusters there are of each size: one row for each level and size.
///
/// Size 1 is included.
#[derive(Clone, Debug, Table)]
#[table(name = "sizes")]
pub struct SizeRow {
    /// `similar`, `identical` or `exact`.
    pub level: &'static str,
    /// Pages of a cluster, from 1.
    pub size: i64,
    /// How many clusters have this size.
    pub clusters: i64,
}

/// The 20 largest clusters of each level (Fetterly 2004, tables 1 and 2).
#[derive(Clone, Debug, Table)]
#[table(name = "largest")]
pub struct LargestRow {
    /// `similar`, `identical` or `exact`.
    pub level: &'static str,
    /// From 1.
    pub rank: i32,
    /// Pages of the cluster.
    pub urls: i64,
    /// Distinct hosts.
    pub hosts: i64,
    /// Machines: hosts with an IP address in common are on one, directly or over other hosts; hosts
    /// without an address are not counted.
    pub machines: i64,
    /// Hosts without a known address (the summary prints `machines (+unresolved)`).
    pub unresolved: i64,
    /// Title of the cluster's root.
    pub title: String,
    /// The root: its canonical URL, or where it has none its id, or file and offset.
    pub name: String,
    /// Document id of the root: the `similar_root`, `identical_root` or `exact_root` of the
    /// cluster's pages, by level.
    pub doc: i64,
    /// The very similar cluster's id through the weeks, as in `clusters`; null at the other levels.
    pub cluster_id: Option<i64>,
}

/// The totals of a week: one row for each level.
#[derive(Clone, Debug, Table)]
#[table(name = "summary")]
pub struct SummaryRow {
    /// `similar`, `identical` or `exact`.
    pub level: &'static str,
    /// Pages of the week.
    pub documents: i64,
    /// Pages in clusters of at least two.
    pub clustered: i64,
    /// Clusters of at least two pages.
    pub clusters: i64,
    /// Clustered pages minus one for each cluster.
    ///
    /// Pages that go if one of each cluster stays.
    pub duplicates: i64,
    /// Duplicates over documents, from 0 to 1.
    ///
    /// 0 for a week without pages.
    pub share: f64,
    /// Exponent of the power law of cluster sizes, by maximum likelihood; null if there are too few
    /// clusters.
    ///
    /// Rounded to three decimals.
    pub exponent: Option<f64>,
    /// The smallest size the power law is fitted to; null if there are too few clusters.
    pub x_min: Option<i64>,
}

/// Values that are in tables by name.
macro_rules! named_values {
    ($($value:ty),*) => {$(
        impl Value for $value {
            const VALUES: ValueType = ValueType::Text;

            fn append(&self, column: &mut ColumnBuilder) {
                self.name().append(column);
            }
        }
    )*};
}

named_values!(AccuracyKind, Found, Event);
