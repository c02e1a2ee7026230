//! An input: a file or object to read, and its format.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// One file or object to read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Input {
    /// Path or URL, as it is named in tables and messages.
    pub name: String,
    /// Size as stored.
    pub bytes: u64,
    /// What it holds.
    pub format: Format,
    /// Where it is.
    pub place: Location,
    /// The URL of the page that an HTML file is.
    pub page_url: Option<String>,
}

/// What a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// WARC records, WET included.
    Warc,
    /// A JSON object a line.
    Jsonl,
    /// Parquet rows.
    Parquet,
    /// One page.
    Html,
    /// A failed download a line.
    Failed,
}

/// Where an input is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Location {
    /// A local file.
    File(PathBuf),
    /// An object of a store.
    Object {
        /// URL of the store: scheme, bucket or host.
        store: String,
        /// Path of the object in it.
        key: String,
    },
}
