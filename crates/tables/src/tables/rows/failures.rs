//! The rows of what was not read: downloads that failed, URLs without a page, and bad records.

use nigh_derive::Table;

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
