//! The rows of URLs: their ids, the links between them, redirects and revisits, and those that are
//! deleted.

use nigh_derive::Table;

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

/// URLs that a run is deleting; an unfinished deletion only.
#[derive(Clone, Debug, Table)]
#[table(name = "deleted")]
pub struct DeletedRow {
    /// Document id.
    #[column(sorted, ascending)]
    pub doc: i64,
}
