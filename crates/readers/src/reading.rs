//! How pages are read: the `[cluster.read]` table.

use serde::{Deserialize, Serialize};

use crate::units::Bytes;

/// The `[cluster.read]` or `[weekly.read]` table: how pages are read.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Reading {
    /// The largest body of a page; a larger one is cut there, and counted. Default: 16 MiB; at most
    /// 1 GiB.
    #[serde(deserialize_with = "page_bytes")]
    pub max_page_bytes: Bytes,
    /// Media types that are pages; records with others are passed over, and counted. Default: HTML
    /// and XHTML.
    pub media_types: Vec<String>,
    /// A prefix for relative paths in listings, and for the paths of files in HTML folders.
    /// Default: none.
    pub base_url: Option<String>,
    /// Whether the lines of a listing may name files that do not lie below `base-url`. Default:
    /// false.
    pub listing_anywhere: bool,
    /// How many links of a page are kept, in order of appearance. Default: 10,000.
    pub max_links: usize,
    /// What becomes of two records with one URL or id. Default: the first is the document, if
    /// records of one id have the same text.
    pub same_id: SameId,
    /// The columns of JSONL and Parquet input files.
    pub columns: Columns,
    /// The most bytes that a page of a column of Parquet may become when it is decoded, and a
    /// quarter of those of a batch of Arrow: more is an error. Not a field of a job: see
    /// [`Reading::within`].
    #[serde(skip, default = "max_decoded_bytes")]
    pub max_decoded_bytes: u64,
}

/// What becomes of two records with one URL or id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SameId {
    /// The first one is the document; the others are counted. Of one URL they may differ, as of a
    /// page that was fetched twice; of one id another text is an error, for ids that begin again in
    /// each file would lose texts.
    #[default]
    Equal,
    /// The first one is the document; the others are counted.
    First,
    /// The first one is the document; the others are bad records.
    Reject,
    /// Each is a document of its own.
    Row,
}

/// The largest `max-page-bytes`: positions in a text have 32 bits, and decoding can triple the size
/// of a body.
const MAX_PAGE_BYTES: Bytes = Bytes(1 << 30);

fn page_bytes<'de, D: serde::Deserializer<'de>>(value: D) -> Result<Bytes, D::Error> {
    let bytes = Bytes::deserialize(value)?;
    if bytes > MAX_PAGE_BYTES {
        let text = format!("max-page-bytes = {bytes}: allowed is at most {MAX_PAGE_BYTES}");
        return Err(serde::de::Error::custom(text));
    }
    Ok(bytes)
}

impl Default for Reading {
    fn default() -> Reading {
        Reading {
            max_page_bytes: Bytes(16 << 20),
            media_types: vec!["text/html".into(), "application/xhtml+xml".into()],
            base_url: None,
            listing_anywhere: false,
            max_links: 10_000,
            same_id: SameId::Equal,
            columns: Columns::default(),
            max_decoded_bytes: max_decoded_bytes(),
        }
    }
}

/// What is decoded at once, if nothing bounds the memory: 1 GiB.
fn max_decoded_bytes() -> u64 {
    1 << 30
}

impl Columns {
    /// The column of the URLs, if the files have it.
    pub fn url(&self) -> &str {
        self.url.as_deref().unwrap_or("url")
    }
}

impl Reading {
    /// The same, for a reader that may take `memory` bytes: what a file claims to become is
    /// believed up to a quarter of it. The writers' usual size is a few MiB, so up to 64 MiB are
    /// always believed.
    #[must_use]
    pub fn within(mut self, memory: u64) -> Reading {
        self.max_decoded_bytes = (memory / 4).clamp(64 << 20, max_decoded_bytes());
        self
    }

    /// `max-page-bytes` as a length in memory.
    pub fn page_limit(&self) -> usize {
        usize::try_from(self.max_page_bytes.0).unwrap_or(usize::MAX)
    }
}

/// The `[cluster.read.columns]` table: the columns of JSONL and Parquet rows, one row for each
/// page.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Columns {
    /// The id of the document: text or integers. Default: none; a document is the page of a URL, or
    /// a row if the files have no URLs.
    pub id: Option<String>,
    /// The URL of the page. Default: `url`, if the files have it.
    pub url: Option<String>,
    /// The text of the page, without markup. Default: `text`.
    pub text: Option<String>,
    /// The HTML of the page; used instead of `text` if both are named. Default: none.
    pub html: Option<String>,
    /// The IP address of the page's server. Default: none.
    pub ip: Option<String>,
    /// When the page was fetched, as RFC 3339. Default: none.
    pub date: Option<String>,
    /// Columns whose values are kept in the table `values`, for choosing the documents that stay;
    /// those that `canonical` names are kept without this. Default: none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
}

impl Default for Columns {
    fn default() -> Columns {
        Columns { id: None, url: None, text: Some("text".into()), html: None, ip: None, date: None, values: Vec::new() }
    }
}
