//! An input: a file or object to read, with its format and its location.

use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::reading::Reading;

/// One file or object to read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Input {
    /// Path or URL, as tables and messages show it.
    pub name: String,
    /// Size in bytes, as stored.
    pub bytes: u64,
    /// The format, from the ending of the name or from the first bytes.
    pub format: Format,
    /// The local path, or the object in its store.
    pub place: Location,
    /// The URL of the page, for a file of HTML, or of text if there is a `base-url`; `None` for
    /// every other format.
    pub page_url: Option<String>,
    /// What changes with the content: `modified TIME` of a local file, `etag TAG` or
    /// `modified TIME` of an object, `content DIGEST` of a pipe. Empty if it is unknown.
    pub stamp: String,
    /// How its records are read, if not as all others: as the job of an earlier batch said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reading: Option<Box<Reading>>,
}

impl Input {
    /// An input of this name of which nothing is known or read: it is not there.
    pub fn absent(name: &str) -> Input {
        Input {
            name: name.to_owned(),
            bytes: 0,
            format: Format::Failed,
            place: Location::File(PathBuf::from(name)),
            page_url: None,
            stamp: String::new(),
            reading: None,
        }
    }

    /// How its records are read where all others are read as `given` says: see
    /// [`Reading::of_pages`].
    pub fn reading<'a>(&self, given: &'a Reading) -> Cow<'a, Reading> {
        match &self.reading {
            None => Cow::Borrowed(given),
            Some(own) => Cow::Owned(own.of_pages(given)),
        }
    }
}

/// The format of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// WARC records, WET included.
    Warc,
    /// ARC records.
    Arc,
    /// A zip file with WARC files: one that cannot be read. Of one that can, each WARC file is an
    /// input.
    Wacz,
    /// One JSON object in each line.
    Jsonl,
    /// Parquet rows.
    Parquet,
    /// Arrow record batches: a stream or a file.
    Arrow,
    /// Records with commas between fields.
    Csv,
    /// Records with tabs between fields.
    Tsv,
    /// One page of HTML.
    Html,
    /// One page of text.
    Text,
    /// One failed download in each line, tab-separated.
    Failed,
}

/// The name of the format, as it begins the reasons of rejects.
impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.reader().name())
    }
}

/// The location of an input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Location {
    /// A local file.
    File(PathBuf),
    /// An entry of a local zip file.
    Entry {
        /// The zip file.
        archive: PathBuf,
        /// The offset of the entry's bytes in it.
        start: u64,
        /// The size of the entry in the zip file.
        packed: u64,
        /// The size of its content.
        unpacked: u64,
        /// The CRC-32 of its content.
        checksum: u32,
        /// How it is packed.
        packing: Packing,
    },
    /// An object of a store or a file of a web server.
    Object {
        /// URL of the store: scheme, and bucket or host.
        store: String,
        /// Path of the object in the store.
        key: String,
    },
}

/// How an entry of a zip file is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Packing {
    /// As it is.
    Stored,
    /// By deflate.
    Deflated,
    /// In another way, or encrypted: it cannot be read.
    Unknown,
}

/// Returns the message of a failed operation, with what to check; the system's own message follows
/// it.
pub(crate) fn cannot(verb: &str, name: &str) -> String {
    format!("cannot {verb} {name} (check that it exists and that this user may read it)")
}
