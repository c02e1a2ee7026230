//! What a reader returns: pages, failed downloads, skipped records and rejects.

use std::net::IpAddr;

/// One step through an input.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// A page.
    Page(Page),
    /// A download that gave no page.
    Failed(Failure),
    /// Something whole that is not wanted.
    Skip(Skip),
    /// Something broken.
    Reject(Reject),
}

/// One answer with status 200, or one row.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// The URL as found, not canonical.
    pub url: String,
    /// The address it came from.
    pub ip: Option<IpAddr>,
    /// When it was fetched: microseconds since 1970, UTC.
    pub fetched: Option<i64>,
    /// HTTP status; 200 where the format has none.
    pub status: u16,
    /// Media type, lower case, without parameters.
    pub media_type: String,
    /// Charset label of the Content-Type header, lower case.
    pub charset: Option<String>,
    /// The content.
    pub body: Body,
    /// Where it is in the input.
    ///
    /// WARC: the stored offset of the gzip member or zstd frame that holds the beginning of the record, as a CDX index has it:
    /// reading from there finds the record. In a plain file the offset of the record. In a file that is one member, for every
    /// record after the first, the offset in the uncompressed stream. JSONL and failed downloads: the offset of the
    /// line in the uncompressed stream. Parquet: the number of the row, from 0. HTML: 0.
    pub offset: u64,
    /// Whether the body is incomplete: longer than `max-page-bytes`, marked WARC-Truncated, or ended inside a chunk.
    pub cut: bool,
}

/// The content of a page.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// HTML or XHTML in its own charset.
    Html(Vec<u8>),
    /// Bytes of another allowed media type, in their own charset.
    Plain(Vec<u8>),
    /// Text that somebody has extracted already.
    Text(String),
}

impl Body {
    /// Its length in bytes.
    pub fn bytes(&self) -> u64 {
        match self {
            Body::Html(bytes) | Body::Plain(bytes) => bytes.len() as u64,
            Body::Text(text) => text.len() as u64,
        }
    }
}

/// Why something whole is not a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Skip {
    /// A WARC record of another type: warcinfo, request, metadata, revisit and so on.
    RecordType,
    /// A media type that is not among the allowed ones, by its label or plainly by its bytes.
    MediaType,
}

/// A download that failed: an answer with another status than 200, or what a side file tells of a URL that gave none.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// The URL as found, not canonical.
    pub url: String,
    /// Why: a short phrase, `status 404` or as the side file says.
    pub reason: String,
    /// Where it is, as in [`Page::offset`].
    pub offset: u64,
}

/// Something broken.
#[derive(Clone, Debug, PartialEq)]
pub struct Reject {
    /// Where it is, as in [`Page::offset`].
    pub offset: u64,
    /// Its URL, if that much could be read.
    pub url: Option<String>,
    /// What is wrong: a short stable phrase, such as `gzip: damaged member`.
    pub reason: String,
}

/// Reads one input from beginning to end.
pub trait Reader: Send {
    /// Gives the next item in file order; none at the end.
    ///
    /// # Errors
    /// Only when reading itself fails: bad data is an [`Item::Reject`].
    fn next(&mut self) -> anyhow::Result<Option<Item>>;

    /// Gives the number of bytes of the input, as stored, taken so far.
    fn position(&self) -> u64;
}
