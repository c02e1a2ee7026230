//! The columns of every table, defined once.
//!
//! A table is a row type. Its [`Table::columns`] turns rows into arrow columns, and the Parquet schema follows from these. The
//! descriptions of tables and columns are written into every file and into docs/tables.md (`describe`).
//!
//! A `doc` is a [`DocId`] as a signed 64-bit number. A URL keeps its id from week to week, so `doc` joins all tables of a week
//! with each other and with those of other weeks. A *level* is one of the three relations of [`Level`](crate::records::Level),
//! by name: `similar` (very similar), `identical` (virtually identical) or `exact` (exact copies).

use std::sync::Arc;

use anyhow::Result;
use arrow_array::{Date32Array, Float32Array, RecordBatch, TimestampMicrosecondArray};

use super::columns::{
    Column, Table, binaries, booleans, bytes, dates, doubles, ints, longs, maybe_doubles, maybe_ints, maybe_longs,
    maybe_texts, nullable, required, texts,
};
use crate::records::{DocId, FeatureBits, Week, fold};

/// `documents`: one row for every page of a week, by `doc`.
#[derive(Clone, Debug)]
pub struct DocumentRow {
    /// The page's id; joins all tables with a column `doc`.
    pub doc: i64,
    /// The user's id; null if the job names no column for it.
    pub id: Option<String>,
    /// The canonical URL; null in a row without one.
    pub url: Option<String>,
    /// The URL as written; null if that is the canonical one.
    pub given_url: Option<String>,
    /// The URL's host in lower case, with the port if it is not the default one.
    pub host: Option<String>,
    /// The host's registered domain.
    pub domain: Option<String>,
    /// The IP address of the machine that sent the page; null if the crawl does not have it.
    pub ip: Option<String>,
    /// When the page was fetched: a timestamp in UTC, in microseconds; null if the crawl does not have it.
    pub fetched: Option<i64>,
    /// The HTTP status of the response; null for rows and HTML files.
    pub status: Option<i32>,
    /// The media type, without parameters: `text/html`; null for rows.
    pub media_type: Option<String>,
    /// Size of the body, markup included, in bytes as read.
    pub bytes: i64,
    /// XXH3-128 of these bytes, big-endian: 16 bytes. Equal for exact copies.
    pub checksum: [u8; 16],
    /// Number of words of the text. A page without words has no row in `features`.
    pub words: i64,
    /// The title; empty if the page has none.
    pub title: String,
    /// The input file that holds the page, by name.
    pub file: String,
    /// Where the page begins in that file, in bytes: see [`Page::offset`](crate::readers::Page::offset).
    pub offset: i64,
    /// The week whose crawl has the page: an earlier one, of a page that stays though it was not crawled.
    pub crawled: Week,
    /// The week under which `links` and `chunks` have the rows of the page: this one, or an earlier one, of a page that stays.
    pub stored: Week,
    /// Charset label of the answer, lower case.
    pub charset: Option<String>,
    /// WARC-Payload-Digest, as written.
    pub digest: Option<String>,
    /// WARC-Record-ID, without angle brackets.
    pub record_id: Option<String>,
    /// The bytes that the WARC record takes in the file from `offset` on.
    pub length: Option<i64>,
    /// The canonical URL of that record, if it is not the one of the document: a revisit names it.
    pub record_url: Option<String>,
}

impl DocumentRow {
    /// The same rows, of pages whose rows of `links` and `chunks` are stored in this week.
    ///
    /// # Errors
    /// If the batch has not the columns of the table.
    pub fn stored_in(batch: &RecordBatch, week: Week) -> Result<RecordBatch> {
        let mut columns = batch.columns().to_vec();
        columns[batch.schema().index_of("stored")?] = Arc::new(Date32Array::from_value(week.days(), batch.num_rows()));
        Ok(RecordBatch::try_new(batch.schema(), columns)?)
    }
}

impl Table for DocumentRow {
    const NAME: &'static str = "documents";
    const DESCRIPTION: &'static str = "One row for each page of a week, in the order of `doc`.";
    const SORTED_BY: Option<&'static str> = Some("doc");
    const SEARCHED: &'static [&'static str] = &["id", "url", "host", "checksum"];
    const UNIQUE: &'static [&'static str] = &["id", "url", "given_url", "checksum", "offset"];
    const ASCENDING: &'static [&'static str] = &["doc"];
    const RANDOM: &'static [&'static str] = &["checksum"];

    fn columns(rows: &[Self]) -> Vec<Column> {
        let fetched = TimestampMicrosecondArray::from_iter(rows.iter().map(|r| r.fetched)).with_timezone("UTC");
        vec![
            required("doc", "document id", longs(rows.iter().map(|r| r.doc))),
            nullable(
                "id",
                "the id that the input gives it; null if the job names no column for ids",
                maybe_texts(rows.iter().map(|r| r.id.as_deref())),
            ),
            nullable(
                "url",
                "canonical URL: after the WHATWG URL standard, without fragment, user and password; null for a row without one",
                maybe_texts(rows.iter().map(|r| r.url.as_deref())),
            ),
            nullable(
                "given_url",
                "the URL as it was written; null if that is the canonical one",
                maybe_texts(rows.iter().map(|r| r.given_url.as_deref())),
            ),
            nullable(
                "host",
                "its host in lower case, with the port if that is not the default",
                maybe_texts(rows.iter().map(|r| r.host.as_deref())),
            ),
            nullable(
                "domain",
                "the registered domain of the host",
                maybe_texts(rows.iter().map(|r| r.domain.as_deref())),
            ),
            nullable(
                "ip",
                "address of the machine that answered; null if the crawl does not have it",
                maybe_texts(rows.iter().map(|r| r.ip.as_deref())),
            ),
            nullable(
                "fetched",
                "fetch time, in microseconds UTC; null if the crawl does not have it",
                Arc::new(fetched),
            ),
            nullable("status", "HTTP status; null for formats without one", maybe_ints(rows.iter().map(|r| r.status))),
            nullable(
                "media_type",
                "without parameters; null for formats without one",
                maybe_texts(rows.iter().map(|r| r.media_type.as_deref())),
            ),
            required("bytes", "bytes of the body as read", longs(rows.iter().map(|r| r.bytes))),
            required(
                "checksum",
                "XXH3-128 of these bytes, 16 bytes, big-endian",
                bytes(16, rows.iter().map(|r| &r.checksum[..])),
            ),
            required("words", "words of its text", longs(rows.iter().map(|r| r.words))),
            required("title", "empty if it has none", texts(rows.iter().map(|r| r.title.as_str()))),
            required("file", "the input file, as it was named", texts(rows.iter().map(|r| r.file.as_str()))),
            required(
                "offset",
                "where in the file; by format, see docs/tables.md",
                longs(rows.iter().map(|r| r.offset)),
            ),
            required(
                "crawled",
                "the week whose crawl has the page: an earlier one, of a page that stays though it was not crawled",
                dates(rows.iter().map(|r| r.crawled)),
            ),
            required(
                "stored",
                "the week under which `links` and `chunks` have its rows: an earlier one only of a page that stays",
                dates(rows.iter().map(|r| r.stored)),
            ),
            nullable(
                "charset",
                "the charset label of the answer, lower case",
                maybe_texts(rows.iter().map(|r| r.charset.as_deref())),
            ),
            nullable(
                "digest",
                "WARC-Payload-Digest as written: joins a CDX index",
                maybe_texts(rows.iter().map(|r| r.digest.as_deref())),
            ),
            nullable("record_id", "WARC-Record-ID", maybe_texts(rows.iter().map(|r| r.record_id.as_deref()))),
            nullable(
                "length",
                "the bytes that the WARC record takes in `file` from `offset` on: a range request gets it; none if other records share its member",
                maybe_longs(rows.iter().map(|r| r.length)),
            ),
            nullable(
                "record_url",
                "the canonical URL of that record, if it is not that of the document, which a revisit says is the same page",
                maybe_texts(rows.iter().map(|r| r.record_url.as_deref())),
            ),
        ]
    }
}

/// `features`: one row for every page with words, by `doc` (Fetterly 2004, section 2). A fourth column, `vector`, is a signed
/// 64-bit hash of the supershingles: equal for virtually identical pages.
#[derive(Clone, Debug)]
pub struct FeatureRow {
    /// The page's id; joins `documents.doc`.
    pub doc: i64,
    /// The supershingles, 8 bytes each, little-endian: 48 bytes for the study's 6.
    pub supershingles: Vec<u8>,
    /// The low 2 bytes of each feature, little-endian: 168 bytes for the study's 84.
    pub features: Vec<u8>,
}

impl FeatureRow {
    /// A hash of the supershingles. Virtually identical pages have the same hash; other pages differ, except for one pair in
    /// 2^64.
    fn vector_hash(&self) -> i64 {
        let (words, _) = self.supershingles.as_chunks::<8>();
        fold(&words.iter().map(|word| u64::from_le_bytes(*word)).collect::<Vec<_>>()) as i64
    }
}

impl Table for FeatureRow {
    const NAME: &'static str = "features";
    const DESCRIPTION: &'static str =
        "One row for each page with words, in the order of `doc` (Fetterly 2004, section 2).";
    const SORTED_BY: Option<&'static str> = Some("doc");
    // All columns are plain (`plain.rs`): later weeks read single values of them straight from the file.
    const UNIQUE: &'static [&'static str] = &["doc", "vector", "supershingles", "features"];
    const RANDOM: &'static [&'static str] = &["doc", "vector", "supershingles", "features"];
    // Besides, the Parquet crate cuts the statistics of long values to 64 bytes, and pyarrow aborts on cut ones of fixed size.
    const UNORDERED: &'static [&'static str] = &["vector", "supershingles", "features"];

    fn columns(rows: &[Self]) -> Vec<Column> {
        // All rows have the widths of the first. A file without rows has those of the study, and so of the default method; for
        // another method `Writer::like` gives them.
        let width = |of: fn(&Self) -> usize, study: usize| rows.first().map_or(study, of);
        vec![
            required("doc", "document id", longs(rows.iter().map(|r| r.doc))),
            required(
                "vector",
                "a hash of the supershingles: virtually identical pages have the same; others differ except once in 2^64",
                longs(rows.iter().map(|r| r.vector_hash())),
            ),
            required(
                "supershingles",
                "numbers of eight bytes, little-endian: six of them by default",
                bytes(width(|r| r.supershingles.len(), 6 * 8), rows.iter().map(|r| &r.supershingles[..])),
            ),
            required(
                "features",
                "the low two bytes of each feature, little-endian: 84 of them by default",
                bytes(width(|r| r.features.len(), 84 * size_of::<FeatureBits>()), rows.iter().map(|r| &r.features[..])),
            ),
        ]
    }
}

/// `chunks`: one row for every page with words, by `doc`, if the week keeps them (`[cluster.keep]`). The definitions of lines, sentences and paragraphs are
/// in [`features`](crate::features::PageChunks).
#[derive(Clone, Debug)]
pub struct ChunkRow {
    /// The page's id; joins `documents.doc`.
    pub doc: i64,
    /// XXH3-128 of the words with one blank between them, big-endian: 16 bytes. Equal for pages with the same text.
    pub text: [u8; 16],
    /// Number of characters of the text, white space folded.
    pub characters: i64,
    /// The low 4 bytes of the XXH3-64 of each line, little-endian, in order.
    pub lines: Vec<u8>,
    /// A hash of 8 bytes of each paragraph, little-endian, in order.
    pub paragraphs: Vec<u8>,
}

impl Table for ChunkRow {
    const NAME: &'static str = "chunks";
    const DESCRIPTION: &'static str = "One row for each page with words, in the order of `doc`: what studies of overlapping pages need. No row if the job says `chunks = false`.";
    const SORTED_BY: Option<&'static str> = Some("doc");
    const UNIQUE: &'static [&'static str] = &["text", "lines", "paragraphs"];
    const ASCENDING: &'static [&'static str] = &["doc"];
    const RANDOM: &'static [&'static str] = &["text", "lines", "paragraphs"];
    const UNORDERED: &'static [&'static str] = &["text", "lines", "paragraphs"];

    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![
            required("doc", "document id", longs(rows.iter().map(|r| r.doc))),
            required(
                "text",
                "XXH3-128 of the words with one blank between them, 16 bytes, big-endian",
                bytes(16, rows.iter().map(|r| &r.text[..])),
            ),
            required(
                "characters",
                "characters of the text; a run of white space counts as one",
                longs(rows.iter().map(|r| r.characters)),
            ),
            required(
                "lines",
                "a hash of each line, in order: four bytes each, little-endian",
                binaries(rows.iter().map(|r| &r.lines[..])),
            ),
            required(
                "paragraphs",
                "a hash of each three sentences, in order: eight bytes each, little-endian",
                binaries(rows.iter().map(|r| &r.paragraphs[..])),
            ),
        ]
    }
}

/// `urls`: one row for every URL, or id, or row first seen in a week: for every new document. The order of the hashes is that of `doc`.
#[derive(Clone, Debug)]
pub struct UrlRow {
    /// The document, which no later week changes.
    pub doc: i64,
    /// The hash of its key, big-endian: 16 bytes.
    pub hash: [u8; 16],
    /// The canonical URL, if documents are known by it.
    pub url: Option<String>,
    /// The id, if documents are known by it.
    pub id: Option<String>,
}

impl Table for UrlRow {
    const NAME: &'static str = "urls";
    const DESCRIPTION: &'static str = "One row for each URL (or id, or row, where documents are known by these) first seen in the week, in the order of `doc`.";
    const SORTED_BY: Option<&'static str> = Some("doc");
    const SEARCHED: &'static [&'static str] = &["url", "id"];
    const UNIQUE: &'static [&'static str] = &["hash", "url", "id"];
    const ASCENDING: &'static [&'static str] = &["doc"];
    const RANDOM: &'static [&'static str] = &["hash"];

    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![
            required("doc", "the document id that it keeps", longs(rows.iter().map(|r| r.doc))),
            required(
                "hash",
                "XXH3-128 of the URL or id, or of file and offset; 16 bytes, big-endian",
                bytes(16, rows.iter().map(|r| &r.hash[..])),
            ),
            nullable(
                "url",
                "canonical URL; null if documents are not known by it",
                maybe_texts(rows.iter().map(|r| r.url.as_deref())),
            ),
            nullable(
                "id",
                "the user's id; null if documents are not known by it",
                maybe_texts(rows.iter().map(|r| r.id.as_deref())),
            ),
        ]
    }
}

/// `found-links`: out-links as read from pages, before their targets are looked up. A finished week does not have this table.
#[derive(Clone, Debug)]
pub struct FoundLinkRow {
    /// The id of the page that has the link.
    pub doc: i64,
    /// The canonical URL of the link's target.
    pub target_url: String,
}

impl Table for FoundLinkRow {
    const NAME: &'static str = "found-links";
    const DESCRIPTION: &'static str = "Links as read from pages; an unfinished week only.";
    const UNIQUE: &'static [&'static str] = &["target_url"];
    const ASCENDING: &'static [&'static str] = &["doc"];
    const IS_SCRATCH: bool = true;

    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![
            required("doc", "the page that links", longs(rows.iter().map(|r| r.doc))),
            required("target_url", "the canonical URL it links to", texts(rows.iter().map(|r| r.target_url.as_str()))),
        ]
    }
}

/// `links`: one row for every pair of a page and a target of its out-links.
#[derive(Clone, Debug)]
pub struct LinkRow {
    /// The id of the page that has the link; joins `documents.doc`.
    pub doc: i64,
    /// The canonical URL of the link's target.
    pub target_url: String,
    /// The target's id; null if neither this week nor an earlier one has the URL. Joins `documents.doc`.
    pub target_doc: Option<i64>,
}

impl Table for LinkRow {
    const NAME: &'static str = "links";
    const DESCRIPTION: &'static str = "One row for each link of a page to another URL, in the order of `doc`.";
    const SORTED_BY: Option<&'static str> = Some("doc");

    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![
            required("doc", "the page that links", longs(rows.iter().map(|r| r.doc))),
            required(
                "target_url",
                "the canonical URL it links to, once a page",
                texts(rows.iter().map(|r| r.target_url.as_str())),
            ),
            nullable(
                "target_doc",
                "its document id; null if neither this week nor an earlier one has the URL",
                maybe_longs(rows.iter().map(|r| r.target_doc)),
            ),
        ]
    }
}

/// `failures`: URLs of earlier weeks whose download failed, one file for each wave. A finished week does not have this table.
#[derive(Clone, Debug)]
pub struct FailureRow {
    /// The URL's id.
    pub doc: i64,
    /// Why the download failed.
    pub reason: String,
}

impl Table for FailureRow {
    const NAME: &'static str = "failures";
    const DESCRIPTION: &'static str = "URLs of earlier weeks whose download failed; an unfinished week only.";
    const ASCENDING: &'static [&'static str] = &["doc"];
    const IS_SCRATCH: bool = true;

    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![
            required("doc", "document id", longs(rows.iter().map(|r| r.doc))),
            required("reason", "why the download failed", texts(rows.iter().map(|r| r.reason.as_str()))),
        ]
    }
}

/// `revisits`: downloads of known pages, one file for each wave. A finished week does not have this table.
#[derive(Clone, Debug)]
pub struct RevisitRow {
    /// The id of the URL, if an earlier week has it.
    pub doc: Option<i64>,
    /// The hash of the URL.
    pub hash: [u8; 16],
    /// The hash of the URL of the page that it is.
    pub target: [u8; 16],
    /// When that was fetched, in microseconds since 1970.
    pub date: Option<i64>,
    /// Its payload digest.
    pub digest: Option<String>,
    /// The canonical URL of the download.
    pub url: String,
    /// The URL as written, if that is not the canonical one.
    pub given_url: Option<String>,
    /// The address of the server.
    pub ip: Option<String>,
    /// When it was fetched, in microseconds since 1970.
    pub fetched: Option<i64>,
}

impl Table for RevisitRow {
    const NAME: &'static str = "revisits";
    const DESCRIPTION: &'static str = "Downloads of pages that are known; an unfinished week only.";
    const IS_SCRATCH: bool = true;

    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![
            nullable("doc", "the id of the URL, if an earlier week has it", maybe_longs(rows.iter().map(|r| r.doc))),
            required("hash", "the hash of the URL", bytes(16, rows.iter().map(|r| r.hash.as_slice()))),
            required(
                "target",
                "the hash of the URL of the page that it is",
                bytes(16, rows.iter().map(|r| r.target.as_slice())),
            ),
            nullable("date", "when that was fetched, in microseconds", maybe_longs(rows.iter().map(|r| r.date))),
            nullable("digest", "its payload digest", maybe_texts(rows.iter().map(|r| r.digest.as_deref()))),
            required("url", "the canonical URL of the download", texts(rows.iter().map(|r| r.url.as_str()))),
            nullable("given_url", "the URL as written", maybe_texts(rows.iter().map(|r| r.given_url.as_deref()))),
            nullable("ip", "the address of the server", maybe_texts(rows.iter().map(|r| r.ip.as_deref()))),
            nullable("fetched", "when it was fetched, in microseconds", maybe_longs(rows.iter().map(|r| r.fetched))),
        ]
    }
}

/// `missing`: one row for every URL of an earlier week that has no page in this week (Fetterly 2004, section 3).
#[derive(Clone, Debug)]
pub struct MissingRow {
    /// The URL's id; joins the tables of the earlier weeks.
    pub doc: i64,
    /// The canonical URL, if documents are known by it.
    pub url: Option<String>,
    /// The id, if documents are known by it.
    pub id: Option<String>,
    /// Why: `status 404`, for instance, or the reason given in a side file of failed downloads; `not seen` if the crawl has no
    /// record of the URL.
    pub reason: String,
}

impl Table for MissingRow {
    const NAME: &'static str = "missing";
    const DESCRIPTION: &'static str =
        "One row for each URL of an earlier week that has no page in this one (Fetterly 2004, section 3).";
    const SORTED_BY: Option<&'static str> = Some("doc");
    const SEARCHED: &'static [&'static str] = &["url", "id"];
    const UNIQUE: &'static [&'static str] = &["url", "id"];
    const ASCENDING: &'static [&'static str] = &["doc"];

    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![
            required("doc", "document id", longs(rows.iter().map(|r| r.doc))),
            nullable("url", "canonical URL, as in `urls`", maybe_texts(rows.iter().map(|r| r.url.as_deref()))),
            nullable("id", "the user's id, as in `urls`", maybe_texts(rows.iter().map(|r| r.id.as_deref()))),
            required(
                "reason",
                "`status 404` and the like, the reason of a side file of failed downloads, or `not seen`",
                texts(rows.iter().map(|r| r.reason.as_str())),
            ),
        ]
    }
}

/// `failed-urls`: failed downloads of a wave, at the URL's shard, in the order of URL hashes. A finished week does not have this table.
#[derive(Clone, Debug)]
pub struct FailedUrlRow {
    /// XXH3-128 of the canonical URL, big-endian: 16 bytes.
    pub hash: [u8; 16],
    /// The URL's host; as `documents.host`.
    pub host: String,
    /// Why the download failed.
    pub reason: String,
    /// The canonical URL, if the answer was a redirect.
    pub url: Option<String>,
    /// The canonical URL of its target.
    pub target_url: Option<String>,
    /// The HTTP status of the redirect, or 0.
    pub status: i32,
}

impl Table for FailedUrlRow {
    const NAME: &'static str = "failed-urls";
    const DESCRIPTION: &'static str = "Failed downloads of a wave; an unfinished week only.";
    const UNIQUE: &'static [&'static str] = &["hash", "url"];
    const RANDOM: &'static [&'static str] = &["hash"];
    const IS_SCRATCH: bool = true;

    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![
            required("hash", "XXH3-128 of the URL, 16 bytes, big-endian", bytes(16, rows.iter().map(|r| &r.hash[..]))),
            required("host", "its host", texts(rows.iter().map(|r| r.host.as_str()))),
            required("reason", "why the download failed", texts(rows.iter().map(|r| r.reason.as_str()))),
            nullable("url", "canonical URL of a redirect", maybe_texts(rows.iter().map(|r| r.url.as_deref()))),
            nullable("target_url", "its target", maybe_texts(rows.iter().map(|r| r.target_url.as_deref()))),
            required("status", "its status, or 0", ints(rows.iter().map(|r| r.status))),
        ]
    }
}

/// `redirects`: one row for every URL that answered with a redirect, in each shard in the order of URL hashes.
#[derive(Clone, Debug)]
pub struct RedirectRow {
    /// The canonical URL.
    pub url: String,
    /// The canonical URL that it redirects to.
    pub target_url: String,
    /// The HTTP status: 301, 302, 307 or 308.
    pub status: i32,
}

impl Table for RedirectRow {
    const NAME: &'static str = "redirects";
    const DESCRIPTION: &'static str = "One row for each URL that answered 301, 302, 307 or 308 and named a web address: its first such answer, in the order of the hashes of URLs.";
    const SEARCHED: &'static [&'static str] = &["url"];
    const UNIQUE: &'static [&'static str] = &["url"];

    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![
            required("url", "canonical URL", texts(rows.iter().map(|r| r.url.as_str()))),
            required(
                "target_url",
                "the canonical URL that it redirects to",
                texts(rows.iter().map(|r| r.target_url.as_str())),
            ),
            required("status", "HTTP status", ints(rows.iter().map(|r| r.status))),
        ]
    }
}

/// `host-failures`: one row for every host and reason of failed downloads, of URLs that no week has a page of, too.
#[derive(Clone, Debug)]
pub struct HostFailureRow {
    /// The host; as `documents.host`.
    pub host: String,
    /// Why: `status 404`, for instance, or the reason given in a side file of failed downloads.
    pub reason: String,
    /// Number of the host's URLs without a page this week whose first failed download has this reason.
    pub urls: i64,
}

impl Table for HostFailureRow {
    const NAME: &'static str = "host-failures";
    const DESCRIPTION: &'static str = "One row for each host and reason of failed downloads of this week, in the order of a hash of the host. URLs that no week has a page of count, too.";

    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![
            required(
                "host",
                "host in lower case, with the port if that is not the default",
                texts(rows.iter().map(|r| r.host.as_str())),
            ),
            required(
                "reason",
                "`status 404` and the like, or the reason of a side file of failed downloads",
                texts(rows.iter().map(|r| r.reason.as_str())),
            ),
            required(
                "urls",
                "URLs without a page this week whose first failed download has this reason",
                longs(rows.iter().map(|r| r.urls)),
            ),
        ]
    }
}

/// `deleted`: URLs that a run is deleting from a store. The table is removed when the deletion is done.
#[derive(Clone, Debug)]
pub struct DeletedRow {
    /// The URL's id.
    pub doc: i64,
}

impl Table for DeletedRow {
    const NAME: &'static str = "deleted";
    const DESCRIPTION: &'static str = "URLs that a run is deleting; an unfinished deletion only.";
    const SORTED_BY: Option<&'static str> = Some("doc");
    const ASCENDING: &'static [&'static str] = &["doc"];

    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![required("doc", "document id", longs(rows.iter().map(|r| r.doc)))]
    }
}

/// `rejects`: one row for every bad record of the input.
#[derive(Clone, Debug)]
pub struct RejectRow {
    /// The input file that holds the record, by name; as `documents.file`.
    pub file: String,
    /// Where the record begins in that file, in bytes; as `documents.offset`.
    pub offset: i64,
    /// The record's URL; null if it could not be read.
    pub url: Option<String>,
    /// What is wrong with the record.
    pub reason: String,
}

impl RejectRow {
    /// The name of the file of a wave; waves count from 0.
    ///
    /// ```
    /// assert_eq!(nigh::tables::RejectRow::file(12), "all-wave00012.parquet");
    /// ```
    pub fn file(wave: usize) -> String {
        format!("all-wave{wave:05}.parquet")
    }
}

impl Table for RejectRow {
    const NAME: &'static str = "rejects";
    const DESCRIPTION: &'static str = "One row for each bad record of the input.";

    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![
            required("file", "the input file, as in `documents`", texts(rows.iter().map(|r| r.file.as_str()))),
            required("offset", "where in it, as in `documents`", longs(rows.iter().map(|r| r.offset))),
            nullable(
                "url",
                "its URL; null if that could not be read",
                maybe_texts(rows.iter().map(|r| r.url.as_deref())),
            ),
            required("reason", "what is wrong: a short stable phrase", texts(rows.iter().map(|r| r.reason.as_str()))),
        ]
    }
}

/// `clusters`: the cluster map: one row for every page of a week, by `doc` (Fetterly 2004, section 2).
#[derive(Clone, Debug)]
pub struct ClusterRow {
    /// The user's id; as `documents.id`.
    pub id: Option<String>,
    /// The page's canonical URL; as `documents.url`.
    pub url: Option<String>,
    /// The URL's host; as `documents.host`.
    pub host: Option<String>,
    /// The page's id; joins `documents.doc`, `features.doc` and `evidence.doc`.
    pub doc: i64,
    /// The page's cluster at each level: its root (the smallest `doc` of the cluster) and its number of pages. These are the
    /// columns `similar_root` and `similar_size`, `identical_root` and `identical_size`, `exact_root` and `exact_size`. Pages
    /// of one cluster have the same root; a page without duplicates is the root of a cluster of size 1.
    pub levels: [(i64, i64); 3],
    /// The cluster id, stable from week to week, of a cluster of at least two very similar pages; null for other pages. Joins
    /// `cluster_id` of other weeks and of `changes`; it is not a `doc`.
    pub cluster_id: Option<i64>,
    /// Whether the page stays if duplicates are removed: the one of its cluster of very similar pages that the job's `canonical` chooses. To
    /// deduplicate the week, keep the rows where this is true.
    pub canonical: bool,
}

impl Table for ClusterRow {
    const NAME: &'static str = "clusters";
    const DESCRIPTION: &'static str =
        "The cluster map: one row for each page, in the order of `doc` (Fetterly 2004, section 2).";
    const SORTED_BY: Option<&'static str> = Some("doc");
    const SEARCHED: &'static [&'static str] = &["id", "url", "host"];
    const UNIQUE: &'static [&'static str] = &["id", "url"];
    const ASCENDING: &'static [&'static str] = &["doc", "similar_root", "identical_root", "exact_root"];

    fn columns(rows: &[Self]) -> Vec<Column> {
        let root = |level: usize| longs(rows.iter().map(move |r| r.levels[level].0));
        let size = |level: usize| longs(rows.iter().map(move |r| r.levels[level].1));
        vec![
            nullable("id", "the user's id, as in `documents`", maybe_texts(rows.iter().map(|r| r.id.as_deref()))),
            nullable("url", "canonical URL, as in `documents`", maybe_texts(rows.iter().map(|r| r.url.as_deref()))),
            nullable("host", "its host, as in `documents`", maybe_texts(rows.iter().map(|r| r.host.as_deref()))),
            required("doc", "document id", longs(rows.iter().map(|r| r.doc))),
            required("similar_root", "smallest document id of its very similar cluster", root(0)),
            required("similar_size", "number of pages of its very similar cluster", size(0)),
            required("identical_root", "smallest document id of its cluster of virtually identical pages", root(1)),
            required("identical_size", "number of pages of its cluster of virtually identical pages", size(1)),
            required("exact_root", "smallest document id of its cluster of exact copies", root(2)),
            required("exact_size", "number of pages of its cluster of exact copies", size(2)),
            nullable(
                "cluster_id",
                "the very similar cluster's id through the weeks; null for a page without a near-duplicate",
                maybe_longs(rows.iter().map(|r| r.cluster_id)),
            ),
            required(
                "canonical",
                "whether the page stays if duplicates are removed: chosen by the job's `canonical` of its very similar cluster, or without a near-duplicate",
                booleans(rows.iter().map(|r| r.canonical)),
            ),
        ]
    }
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

/// `accuracy`: how right the clusters of a week are, from samples.
#[derive(Clone, Debug)]
pub struct AccuracyRow {
    /// What the row is about.
    pub kind: AccuracyKind,
    /// The lower end of the band of similarity; null for `clusters`.
    pub low: Option<f64>,
    /// Its upper end.
    pub high: Option<f64>,
    /// The root of the cluster; null except for `clusters`.
    pub cluster: Option<i64>,
    /// Links of the band, pages of the cluster, or sampled pages.
    pub population: i64,
    /// Pairs that were compared.
    pub sampled: i64,
    /// Those of them whose similarity is exact; that of the others is an estimate from their features.
    pub exact: i64,
    /// Those of them that are right.
    pub good: i64,
    /// The share of right pairs.
    pub share: f64,
    /// The lower end of its 95% confidence interval.
    pub share_low: f64,
    /// Its upper end.
    pub share_high: f64,
    /// For `recall`: the share that the S-curve predicts to be linked directly, and to pass a check by features.
    pub expected: Option<f64>,
    /// The mean exact similarity of the pairs.
    pub similarity: f64,
}

impl Table for AccuracyRow {
    const NAME: &'static str = "accuracy";
    const DESCRIPTION: &'static str = "How right the clusters are, from samples of pairs of pages that were compared, exactly where their files allow it. A pair is similar enough if its similarity is at least that of the method, or 0.8. No rows if the job says `accuracy = false`.";

    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![
            required(
                "kind",
                "`links`: rows of `evidence`, which are right if they are similar enough; `clusters`: pairs of pages of one of the largest clusters, likewise; `recall`: pairs of pages that are similar enough, which are right if they are in one cluster",
                texts(rows.iter().map(|r| r.kind.name())),
            ),
            nullable(
                "low",
                "lower end of the band of similarity: that of `evidence` for `links`, the exact one for `recall`; null for `clusters`",
                maybe_doubles(rows.iter().map(|r| r.low)),
            ),
            nullable("high", "upper end of the band", maybe_doubles(rows.iter().map(|r| r.high))),
            nullable(
                "cluster",
                "root of the cluster; null except for `clusters`",
                maybe_longs(rows.iter().map(|r| r.cluster)),
            ),
            required(
                "population",
                "links of pages with words in the band; pages of the cluster; or, for `recall`, pages whose similar pages were looked for",
                longs(rows.iter().map(|r| r.population)),
            ),
            required("sampled", "pairs that were compared", longs(rows.iter().map(|r| r.sampled))),
            required(
                "exact",
                "those whose similarity is exact; the others are compared by their features, where pages could not be read again at their places",
                longs(rows.iter().map(|r| r.exact)),
            ),
            required("good", "those that are right", longs(rows.iter().map(|r| r.good))),
            required(
                "share",
                "share of right pairs; for `recall` each pair counts as often as pairs of its page were left out",
                doubles(rows.iter().map(|r| r.share)),
            ),
            required(
                "share_low",
                "lower end of its 95% confidence interval",
                doubles(rows.iter().map(|r| r.share_low)),
            ),
            required(
                "share_high",
                "upper end of its 95% confidence interval",
                doubles(rows.iter().map(|r| r.share_high)),
            ),
            nullable(
                "expected",
                "for `recall`: mean probability that such a pair is linked directly; if estimates verify the clusters, that it also passes the check",
                maybe_doubles(rows.iter().map(|r| r.expected)),
            ),
            required("similarity", "mean exact similarity of the pairs", doubles(rows.iter().map(|r| r.similarity))),
        ]
    }
}

/// `split-off`: pages that verification took out of their clusters of candidates.
#[derive(Clone, Debug)]
pub struct SplitOffRow {
    /// The page's id; joins `clusters.doc`.
    pub doc: i64,
    /// The root of its cluster of candidates.
    pub similar_root: i64,
    /// The root of the candidates with its supershingles.
    pub identical_root: i64,
}

impl Table for SplitOffRow {
    const NAME: &'static str = "split-off";
    const DESCRIPTION: &'static str = "One row for each page that verification took out of its cluster of candidates, in the order of `doc`: the roots before it, where `clusters` has those after it. Empty without `verify`.";
    const SORTED_BY: Option<&'static str> = Some("doc");
    const ASCENDING: &'static [&'static str] = &["doc"];

    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![
            required("doc", "the page", longs(rows.iter().map(|r| r.doc))),
            required(
                "similar_root",
                "smallest document id of its cluster of candidates: pages that share supershingles",
                longs(rows.iter().map(|r| r.similar_root)),
            ),
            required(
                "identical_root",
                "smallest document id of the candidates that share all supershingles",
                longs(rows.iter().map(|r| r.identical_root)),
            ),
        ]
    }
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

/// `evidence`: why a page is in its cluster: one row for every page of a cluster, except the root.
#[derive(Clone, Debug)]
pub struct EvidenceRow {
    /// The page's id; joins `clusters.doc`.
    pub doc: i64,
    /// The id of a page of the same cluster that shares supershingles with this page.
    pub neighbour: i64,
    /// How many supershingles the two pages share.
    pub agreements: i32,
    /// Their similarity, from 0 to 1.
    pub similarity: f32,
    /// How it was found.
    pub found: Found,
}

impl Table for EvidenceRow {
    const NAME: &'static str = "evidence";
    const DESCRIPTION: &'static str =
        "One row for each clustered page except its root, in the order of `doc`: why it is in its cluster.";
    const SORTED_BY: Option<&'static str> = Some("doc");
    const ASCENDING: &'static [&'static str] = &["doc"];

    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![
            required("doc", "the page", longs(rows.iter().map(|r| r.doc))),
            required(
                "neighbour",
                "document id of a page of the same cluster: one with which it shares supershingles, or after verification the most similar one that was found; of pages without words the first with the same bytes",
                longs(rows.iter().map(|r| r.neighbour)),
            ),
            required("agreements", "how many supershingles they share", ints(rows.iter().map(|r| r.agreements))),
            required(
                "similarity",
                "Jaccard similarity of their shingles, as `found` says",
                Arc::new(Float32Array::from_iter_values(rows.iter().map(|r| r.similarity))),
            ),
            required(
                "found",
                "`features`: the share of equal features, an estimate; `shingles`: exact; `bytes`: their bytes are equal",
                texts(rows.iter().map(|r| r.found.name())),
            ),
        ]
    }
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

/// `changes`: how clusters of at least two very similar pages changed since the week before: one row for every event. A
/// store's first week has no such table.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ChangeRow {
    /// The id of last week's cluster; of this week's, in a birth. Joins `clusters.cluster_id` of that week.
    pub cluster_id: i64,
    /// The event: `birth`, `death`, `grow`, `shrink`, `merge` or `split`.
    pub event: Event,
    /// The id of the other cluster of a merge or a split, in the column `other_cluster_id`; null for other events. Joins this
    /// week's `clusters.cluster_id`.
    pub other: Option<i64>,
    /// Pages of the cluster the week before; 0 in a birth.
    pub before: i64,
    /// Pages of the cluster in this week, 0 in a death; pages of the other cluster, in a merge or a split.
    pub after: i64,
    /// Pages of the event: in a birth or a death, the cluster's; in growth or shrinkage, the difference; in a merge or a split,
    /// the pages that are now in the other cluster.
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

impl Table for ChangeRow {
    const NAME: &'static str = "changes";
    const DESCRIPTION: &'static str = "What became of the clusters of the week before: one row for each event.";

    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![
            required(
                "cluster_id",
                "the cluster: of the week before, except for a birth",
                longs(rows.iter().map(|r| r.cluster_id)),
            ),
            required(
                "event",
                "`birth`, `death`, `grow`, `shrink`, `merge` or `split`",
                texts(rows.iter().map(|r| r.event.name())),
            ),
            nullable(
                "other_cluster_id",
                "the other cluster of a merge or split; null for other events",
                maybe_longs(rows.iter().map(|r| r.other)),
            ),
            required("before", "pages of the cluster the week before", longs(rows.iter().map(|r| r.before))),
            required(
                "after",
                "pages now; of the other cluster in a merge or split",
                longs(rows.iter().map(|r| r.after)),
            ),
            required(
                "documents",
                "pages that make the event: born, dead, added or gone, or moved to the other cluster",
                longs(rows.iter().map(|r| r.documents)),
            ),
        ]
    }
}

/// `sizes`: the number of clusters of each size, size 1 included: one row for every level and size that occurs.
#[derive(Clone, Debug)]
pub struct SizeRow {
    /// The level: `similar`, `identical` or `exact`.
    pub level: &'static str,
    /// Pages of a cluster.
    pub size: i64,
    /// Clusters with that number of pages.
    pub clusters: i64,
}

impl Table for SizeRow {
    const NAME: &'static str = "sizes";
    const DESCRIPTION: &'static str = "How many clusters there are of each size: one row for each level and size.";

    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![
            required("level", "`similar`, `identical` or `exact`", texts(rows.iter().map(|r| r.level))),
            required("size", "pages of a cluster, from 1", longs(rows.iter().map(|r| r.size))),
            required("clusters", "how many clusters have this size", longs(rows.iter().map(|r| r.clusters))),
        ]
    }
}

/// `largest`: the largest clusters of each level (Fetterly 2004, tables 1 and 2): one row for every cluster listed.
#[derive(Clone, Debug)]
pub struct LargestRow {
    /// The level: `similar`, `identical` or `exact`.
    pub level: &'static str,
    /// The rank within the level, from 1 for the largest.
    pub rank: i32,
    /// Pages of the cluster.
    pub urls: i64,
    /// Distinct hosts of these pages.
    pub hosts: i64,
    /// Distinct IP addresses of these pages.
    pub machines: i64,
    /// Hosts of these pages without a known IP address.
    pub unresolved: i64,
    /// The title of the root.
    pub title: String,
    /// The name of the root: its URL, its id, or its file and place.
    pub name: String,
    /// The document id of the root; joins `documents.doc`, and `clusters.similar_root`,
    /// `identical_root` or `exact_root`, by level.
    pub doc: i64,
    /// The id of a very similar cluster; joins `clusters.cluster_id`.
    pub cluster_id: Option<i64>,
}

impl Table for LargestRow {
    const NAME: &'static str = "largest";
    const DESCRIPTION: &'static str = "The 20 largest clusters of each level (Fetterly 2004, tables 1 and 2).";

    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![
            required("level", "`similar`, `identical` or `exact`", texts(rows.iter().map(|r| r.level))),
            required("rank", "from 1", ints(rows.iter().map(|r| r.rank))),
            required("urls", "pages of the cluster", longs(rows.iter().map(|r| r.urls))),
            required("hosts", "distinct hosts", longs(rows.iter().map(|r| r.hosts))),
            required("machines", "distinct IP addresses", longs(rows.iter().map(|r| r.machines))),
            required(
                "unresolved",
                "hosts without a known address (the summary prints `machines (+unresolved)`)",
                longs(rows.iter().map(|r| r.unresolved)),
            ),
            required("title", "title of the cluster's root", texts(rows.iter().map(|r| r.title.as_str()))),
            required(
                "name",
                "the root: its canonical URL, or where it has none its id, or file and offset",
                texts(rows.iter().map(|r| r.name.as_str())),
            ),
            required(
                "doc",
                "document id of the root: the `similar_root`, `identical_root` or `exact_root` of the cluster's pages, by level",
                longs(rows.iter().map(|r| r.doc)),
            ),
            nullable(
                "cluster_id",
                "the very similar cluster's id through the weeks, as in `clusters`; null at the other levels",
                maybe_longs(rows.iter().map(|r| r.cluster_id)),
            ),
        ]
    }
}

/// `summary`: the totals of a week: one row for each level.
#[derive(Clone, Debug)]
pub struct SummaryRow {
    /// The level: `similar`, `identical` or `exact`.
    pub level: &'static str,
    /// Pages of the week.
    pub documents: i64,
    /// Pages in clusters of at least two pages.
    pub clustered: i64,
    /// Clusters of at least two pages.
    pub clusters: i64,
    /// `clustered` less `clusters`: pages that go if one of each cluster stays.
    pub duplicates: i64,
    /// `duplicates / documents`, from 0 to 1; 0 for a week without pages.
    pub share: f64,
    /// The exponent of the power law of cluster sizes, by maximum likelihood, rounded to three decimals; null if there are too few
    /// clusters.
    pub exponent: Option<f64>,
    /// The smallest cluster size, in pages, that the power law is fitted to; null if there are too few clusters.
    pub x_min: Option<i64>,
}

impl Table for SummaryRow {
    const NAME: &'static str = "summary";
    const DESCRIPTION: &'static str = "The totals of a week: one row for each level.";

    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![
            required("level", "`similar`, `identical` or `exact`", texts(rows.iter().map(|r| r.level))),
            required("documents", "pages of the week", longs(rows.iter().map(|r| r.documents))),
            required("clustered", "pages in clusters of at least two", longs(rows.iter().map(|r| r.clustered))),
            required("clusters", "clusters of at least two pages", longs(rows.iter().map(|r| r.clusters))),
            required(
                "duplicates",
                "clustered pages minus one for each cluster",
                longs(rows.iter().map(|r| r.duplicates)),
            ),
            required("share", "duplicates over documents, from 0 to 1", doubles(rows.iter().map(|r| r.share))),
            nullable(
                "exponent",
                "exponent of the power law of cluster sizes, by maximum likelihood; null if there are too few clusters",
                maybe_doubles(rows.iter().map(|r| r.exponent)),
            ),
            nullable(
                "x_min",
                "the smallest size the power law is fitted to; null if there are too few clusters",
                maybe_longs(rows.iter().map(|r| r.x_min)),
            ),
        ]
    }
}
