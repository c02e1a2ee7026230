//! The rows of pages: what is known of each, and of the other captures of its URL.

use std::sync::Arc;

use anyhow::Result;
use arrow_array::{Date32Array, RecordBatch};
use nigh_derive::Table;

use crate::records::{FeatureBits, Week, fold};
use crate::tables::columns::values::UtcMicros;

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
/// All columns are plain ([`PlainColumn`](crate::tables::PlainColumn)): later weeks read single
/// values of them straight from the file. Nor do most have statistics: the Parquet crate cuts those
/// of long values to 64 bytes, and pyarrow aborts on cut ones of fixed size. The rows of a file
/// have the widths of the first; without rows they are those of the study, and so of the default
/// method ([`Writer::like`](crate::tables::Writer::like)).
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
