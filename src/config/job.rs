//! Jobs: what to compute. The outer table of a job file names its kind.

use std::path::PathBuf;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::method::Method;
use super::units::{Bytes, Share};
use crate::records::Week;

/// What to compute: the outer table of a job file names its kind.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(clippy::large_enum_variant, reason = "a run has one job")]
pub enum Job {
    /// Near-duplicate clusters of a store's first week.
    Cluster(Cluster),
    /// Near-duplicate clusters of a later week, from what changed.
    Weekly(Weekly),
    /// How the clusters of a store's weeks evolve.
    Evolution(Evolution),
}

/// The `[cluster]` table: a crawl in, cluster tables out.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Cluster {
    /// The week of the crawl, YYYY-MM-DD.
    pub week: Option<Week>,
    /// The folder of tables that the job makes and later weeks go on from.
    pub store: Option<PathBuf>,
    /// Paths, folders, globs, listings (`*.paths`, `*.paths.gz`) and URLs of crawl files.
    pub input: Vec<String>,
    /// The job fails with exit code 3 when a larger share of the records is bad.
    pub max_reject_share: Share,
    /// Input is taken in waves of about this many bytes (as stored), committed one by one.
    pub wave_bytes: Bytes,
    /// How pages are read.
    pub read: Reading,
    /// What is computed from a page; a store holds one method for ever.
    pub method: Method,
}

impl Default for Cluster {
    fn default() -> Cluster {
        Cluster {
            week: None,
            store: None,
            input: Vec::new(),
            max_reject_share: Share(0.05),
            wave_bytes: Bytes(16 << 30),
            read: Reading::default(),
            method: Method::default(),
        }
    }
}

/// The `[weekly]` table: a later crawl in, the tables of its week out, in the store of the weeks before.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Weekly {
    /// The week of the crawl, YYYY-MM-DD: later than the weeks of the store.
    pub week: Option<Week>,
    /// The folder of tables that holds the weeks before.
    pub store: Option<PathBuf>,
    /// As for `[cluster]`.
    pub input: Vec<String>,
    /// As for `[cluster]`.
    pub max_reject_share: Share,
    /// As for `[cluster]`.
    pub wave_bytes: Bytes,
    /// How clusters are found.
    pub mode: Mode,
    /// How pages are read.
    pub read: Reading,
    /// What is computed from a page: the store's, where it is not given.
    pub method: Option<Method>,
}

impl Default for Weekly {
    fn default() -> Weekly {
        let Cluster { week, store, input, max_reject_share, wave_bytes, read, .. } = Cluster::default();
        Weekly { week, store, input, max_reject_share, wave_bytes, mode: Mode::default(), read, method: None }
    }
}

/// How the clusters of a later week are found. The tables are the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// As is predicted to be quicker.
    #[default]
    Auto,
    /// From the week before, and what changed since.
    Delta,
    /// From all pages.
    Full,
}

/// The `[evolution]` table: a store's weeks in, tables about their clusters out.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Evolution {
    /// The folder of tables that `[cluster]` made, week after week.
    pub store: Option<PathBuf>,
    /// The first week that is looked at; the store's first where it is not given.
    pub first: Option<Week>,
    /// The last week; the store's last where it is not given.
    pub last: Option<Week>,
}

/// The `[cluster.read]` table: how pages are read.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Reading {
    /// Larger bodies are cut there and counted.
    #[serde(deserialize_with = "page_bytes")]
    pub max_page_bytes: Bytes,
    /// Media types that count as pages; others are skipped and counted.
    pub media_types: Vec<String>,
    /// Put before relative paths of listings, and before the paths of HTML folders.
    pub base_url: Option<String>,
    /// Out-links kept of one page, in order of appearance.
    pub max_links: usize,
    /// Columns of JSONL and Parquet inputs.
    pub columns: Columns,
}

/// The largest `max-page-bytes`, 1 GiB: texts are addressed by 32 bits, and a body may triple when it is decoded.
const MAX_PAGE_BYTES: Bytes = Bytes(1 << 30);

fn page_bytes<'de, D: serde::Deserializer<'de>>(value: D) -> Result<Bytes, D::Error> {
    let bytes = Bytes::deserialize(value)?;
    match bytes <= MAX_PAGE_BYTES {
        true => Ok(bytes),
        false => {
            Err(serde::de::Error::custom(format!("max-page-bytes = {bytes}: allowed is at most {MAX_PAGE_BYTES}")))
        }
    }
}

impl Default for Reading {
    fn default() -> Reading {
        Reading {
            max_page_bytes: Bytes(16 << 20),
            media_types: vec!["text/html".into(), "application/xhtml+xml".into()],
            base_url: None,
            max_links: 10_000,
            columns: Columns::default(),
        }
    }
}

impl Reading {
    /// `max-page-bytes`, as a length in memory.
    pub fn page_limit(&self) -> usize {
        usize::try_from(self.max_page_bytes.0).unwrap_or(usize::MAX)
    }
}

/// The `[cluster.read.columns]` table: where JSONL and Parquet rows hold a page.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Columns {
    /// The page's URL.
    pub url: String,
    /// Its text, markup already removed.
    pub text: Option<String>,
    /// Its HTML; taken before `text` where both are named.
    pub html: Option<String>,
    /// The address of its machine.
    pub ip: Option<String>,
    /// When it was fetched, RFC 3339.
    pub date: Option<String>,
}

impl Default for Columns {
    fn default() -> Columns {
        Columns { url: "url".into(), text: Some("text".into()), html: None, ip: None, date: None }
    }
}
