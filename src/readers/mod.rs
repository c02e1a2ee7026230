//! Reads crawls: WARC, WET, JSONL and Parquet files, folders of HTML and side files of failed downloads, from disks and
//! object stores.
//!
//! [`list`] finds the inputs, [`open`] reads one as a sequence of [`Item`]s. Crawls are dirty: whatever is wrong with a page or
//! a file's bytes is an [`Item::Reject`] with its place, and reading goes on; only a failing disk or network is an error.
//! Memory stays bounded whatever a file holds: no length that a file claims is believed.
//!
//! In reading order: `inputs` finds files, `objects` and `cloud` those in object stores; `stored`, `members`, `record` and
//! `records` take a WARC file apart, `header`, `http`, `encodings` and `sniff` its responses, `warc` makes the pages; `jsonl`,
//! `parquet` and `html` are the other formats of pages, `rows` what the first two of them share; `failed` is what
//! could not be downloaded; `lines` are those of text files.

#[cfg(feature = "cloud")]
mod cloud;
mod encodings;
mod failed;
mod header;
mod html;
mod http;
mod inputs;
mod jsonl;
mod lines;
mod members;
mod objects;
mod parquet;
mod record;
mod records;
mod rows;
mod sniff;
mod stored;
mod warc;

#[cfg(test)]
mod dirty;

use std::borrow::Cow;
use std::fs::File;
use std::io::Read;
use std::net::IpAddr;
use std::path::PathBuf;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

pub use self::inputs::list;
use crate::config::Reading;

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
    pub place: Place,
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
pub enum Place {
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

/// Opens one input.
///
/// # Errors
/// When it cannot be opened; for Parquet also when it is damaged as a whole or lacks a column of the job.
pub fn open(input: &Input, reading: &Reading) -> anyhow::Result<Box<dyn Reader>> {
    let Input { name, bytes, format, place, page_url } = input;
    let first = || cannot("read", name);
    Ok(match format {
        Format::Warc => {
            let source = source(name, *bytes, place)?;
            Box::new(warc::WarcReader::new(source, *bytes, name, reading).with_context(first)?)
        }
        Format::Jsonl => {
            Box::new(jsonl::JsonlReader::new(source(name, *bytes, place)?, name, reading).with_context(first)?)
        }
        Format::Parquet => {
            let file = match place {
                Place::File(path) => File::open(path).with_context(|| cannot("open", name))?,
                Place::Object { .. } => fetched(source(name, *bytes, place)?).with_context(first)?,
            };
            parquet::open(file, name, reading)?
        }
        Format::Failed => Box::new(failed::FailedReader::new(source(name, *bytes, place)?, name).with_context(first)?),
        Format::Html => {
            let url = page_url.as_deref().with_context(|| format!("the HTML file {name} has no URL"))?;
            Box::new(html::HtmlReader::new(source(name, *bytes, place)?, name, url, reading.page_limit()))
        }
    })
}

/// Opens one input and reads its first bytes, to find out before a run what would fail in it.
///
/// # Errors
/// When it cannot be read, or is a local Parquet file without a column of the job; the message names it.
pub fn check(input: &Input, reading: &Reading) -> anyhow::Result<()> {
    if let (Format::Parquet, Place::File(_)) = (input.format, &input.place) {
        return open(input, reading).map(drop);
    }
    let mut first = [0; 4];
    let mut source = source(&input.name, input.bytes.min(first.len() as u64), &input.place)?;
    let mut got = 0;
    while got < first.len() {
        match source.read(&mut first[got..]).with_context(|| cannot("read", &input.name))? {
            0 => break,
            more => got += more,
        }
    }
    Ok(())
}

/// Opens the stored bytes of an input, of which the first `bytes` are wanted.
fn source(name: &str, bytes: u64, place: &Place) -> anyhow::Result<Box<dyn Read + Send>> {
    match place {
        Place::File(path) => Ok(Box::new(File::open(path).with_context(|| cannot("open", name))?)),
        Place::Object { store, key } => objects::open(name, store, key, bytes),
    }
}

/// Fetches a source to a temporary file without a name, for formats that are not read in order.
fn fetched(mut source: Box<dyn Read + Send>) -> std::io::Result<File> {
    use std::io::{Seek as _, SeekFrom};
    use std::sync::atomic::{AtomicU64, Ordering};

    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("nigh-{}-{number}.parquet", std::process::id()));
    let mut file = File::options().read(true).write(true).create_new(true).open(&path)?;
    // The space is free again when the file is closed, however the program ends.
    std::fs::remove_file(&path)?;
    std::io::copy(&mut source, &mut file)?;
    file.seek(SeekFrom::Start(0))?;
    Ok(file)
}

/// Says what failed and what to do about it, before the system's own words.
fn cannot(verb: &str, name: &str) -> String {
    format!("cannot {verb} {name} (check that it is there and readable for this user)")
}

/// Reads a date and time in UTC or with an offset to microseconds since 1970.
fn microseconds(date: &str) -> Option<i64> {
    date.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_microsecond)
}

/// Reads UTF-8, bad bytes as U+FFFD.
fn utf8(bytes: &[u8]) -> Cow<'_, str> {
    // Nearly all is UTF-8, and to see that takes a fifth of what the search for bad bytes does.
    std::str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

/// Cuts a text to a limit of bytes, at the end of a character; the flag says whether there was more.
fn cut(text: Cow<'_, str>, limit: usize) -> (String, bool) {
    let (length, keeps) = (text.len(), text.floor_char_boundary(limit));
    let text = match text {
        Cow::Borrowed(text) => text[..keeps].to_owned(),
        Cow::Owned(mut text) => {
            text.truncate(keeps);
            text
        }
    };
    (text, length > limit)
}
