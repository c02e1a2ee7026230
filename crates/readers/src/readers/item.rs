//! What a reader returns: pages, failed downloads, skipped records and rejects.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

/// The next thing that a reader found in its input.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// A page.
    Page(Page),
    /// A download that returned no page.
    Failed(Failure),
    /// A download whose page is what another one was.
    Revisit(Box<Revisit>),
    /// An intact record that is not wanted.
    Skip(Skipped),
    /// Damaged or malformed data.
    Reject(Reject),
}

impl Item {
    /// The place in the input, as in [`Page::offset`].
    pub fn offset(&self) -> u64 {
        match self {
            Item::Page(page) => page.offset,
            Item::Failed(failure) => failure.offset,
            Item::Revisit(revisit) => revisit.offset,
            Item::Skip(skipped) => skipped.offset,
            Item::Reject(reject) => reject.offset,
        }
    }

    /// Moves the place in the input by `by`.
    pub fn shift(&mut self, by: u64) {
        let offset = match self {
            Item::Page(page) => &mut page.offset,
            Item::Failed(failure) => &mut failure.offset,
            Item::Revisit(revisit) => &mut revisit.offset,
            Item::Skip(skipped) => &mut skipped.offset,
            Item::Reject(reject) => &mut reject.offset,
        };
        *offset += by;
    }
}

/// A page: one response with status 200, or one row.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// The id, if the job names a column for it.
    pub id: Option<String>,
    /// The URL as written in the input, not made canonical; none in a row without one.
    pub url: Option<String>,
    /// The address of the server.
    pub ip: Option<IpAddr>,
    /// The time of the fetch: microseconds since 1970, UTC.
    pub fetched: Option<i64>,
    /// Whether the input has a time of the fetch that cannot be read.
    pub date_unread: bool,
    /// HTTP status, where the format has one.
    pub status: Option<u16>,
    /// Media type, lower case, without parameters, where the format has one.
    pub media_type: Option<String>,
    /// Charset label of the Content-Type header, lower case; `utf-8` for HTML from a string column.
    pub charset: Option<String>,
    /// The content.
    pub body: Body,
    /// What an index of an archive has of its record.
    pub entry: ArchiveEntry,
    /// The place in the input.
    ///
    /// WARC: the stored offset of the gzip member or zstd frame in which the record begins, as in
    /// a CDX index, and the number of records before it in that member. In a plain file, the
    /// offset of the record. In a file that is one member, or begins with a large one of several
    /// records: of all records after the first the offset in the uncompressed stream. JSONL and
    /// failed downloads: the offset of the line in the uncompressed stream. Parquet: the number of
    /// the row, from 0. HTML: 0.
    pub offset: u64,
    /// Whether the body is incomplete: longer than `max-page-bytes`, marked WARC-Truncated, ended
    /// inside a chunk, or without some segments of its record.
    pub cut: bool,
    /// False if the request of the page is known, and is not GET but POST, say: another page of its
    /// URL counts before it.
    pub is_of_get: bool,
    /// The values of the columns whose values are kept, in the order of
    /// [`Columns::values`](crate::reading::Columns::values), as [texts](super::ColumnValue); of a
    /// row. Other pages have none.
    pub values: Vec<Option<String>>,
}

/// What an index of an archive has of a record (CDXJ), besides its place and its URL; where the
/// format has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArchiveEntry {
    /// WARC-Record-ID, without angle brackets.
    pub id: Option<String>,
    /// WARC-Payload-Digest as written: the name of an algorithm, a colon, and the digest.
    pub digest: Option<String>,
    /// The bytes of the file that the record takes from its place on, with the line ends after it.
    /// `None` if its member has other records.
    pub length: Option<u64>,
}

/// A download whose page is what another one was: a revisit record (WARC 1.1, 6.7), or an answer
/// 304.
#[derive(Clone, Debug, PartialEq)]
pub struct Revisit {
    /// The URL as written in the input, not made canonical.
    pub url: String,
    /// The address of the server.
    pub ip: Option<IpAddr>,
    /// The time of the fetch: microseconds since 1970, UTC.
    pub fetched: Option<i64>,
    /// In which way the page is the same.
    pub profile: Profile,
    /// The record id of the other download (WARC-Refers-To), without angle brackets; `None` if the
    /// record does not say it.
    pub of_id: Option<String>,
    /// The URL of the other download (WARC-Refers-To-Target-URI), as written.
    pub of_url: Option<String>,
    /// The time of the other download (WARC-Refers-To-Date).
    pub of_date: Option<i64>,
    /// WARC-Payload-Digest, as written.
    pub digest: Option<String>,
    /// The media type that the stored HTTP head of the download has, lower case, without
    /// parameters.
    pub media_type: Option<String>,
    /// The place in the input, as in [`Page::offset`].
    pub offset: u64,
}

/// In which way the page of a revisit is that of another download (`WARC-Profile`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// `identical-payload-digest`: the crawler has received the page, and its digest is that of the
    /// other one.
    IdenticalPayload,
    /// `server-not-modified`, or an answer 304: the server said that the page has not changed. The
    /// digest is that of what it sent: of nothing, usually.
    NotModified,
    /// Another profile, or none.
    #[default]
    Other,
}

/// The content of a page.
///
/// ```
/// use nigh_readers::readers::Body;
/// assert_eq!(Body::Text("Füße".to_owned()).bytes(), 6);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// HTML or XHTML in its own charset.
    Html(Vec<u8>),
    /// Bytes of another allowed media type, in their own charset.
    Plain(Vec<u8>),
    /// Text whose markup was removed before it came here (WET files, text columns).
    Text(String),
}

impl Body {
    /// Returns the length in bytes.
    pub fn bytes(&self) -> u64 {
        self.as_bytes().len() as u64
    }

    /// Returns the bytes, as read.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Body::Html(bytes) | Body::Plain(bytes) => bytes,
            Body::Text(text) => text.as_bytes(),
        }
    }
}

/// An intact record that is not a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// The place in the input, as in [`Page::offset`].
    pub offset: u64,
    /// Why it is not a page.
    pub why: Skip,
}

/// Why an intact record is not a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Skip {
    /// A WARC record of another type: warcinfo, request, metadata and so on.
    RecordType,
    /// A media type that is not among the allowed ones, by its label or by the first bytes of the
    /// body.
    MediaType,
    /// A record of an archive whose URL has another scheme than http and https: `dns:`, `urn:`,
    /// `ftp:`.
    Scheme,
    /// An answer to HEAD, which has no content.
    Head,
}

/// A failed download: a response with another status than 200, or a line of a side file.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// The URL as written in the input, not made canonical.
    pub url: String,
    /// The reason, a short phrase: `status 404`, or the words of the side file.
    pub reason: String,
    /// The place in the input, as in [`Page::offset`].
    pub offset: u64,
    /// Where the answer redirects, if it does.
    pub redirect: Option<RedirectAnswer>,
}

/// An answer with the status 301, 302, 307 or 308, and with a field `Location`.
#[derive(Clone, Debug, PartialEq)]
pub struct RedirectAnswer {
    /// The HTTP status.
    pub status: u16,
    /// The target as written in the answer, often relative to the URL.
    pub location: String,
}

/// Damaged or malformed data: a row of the table `rejects`.
#[derive(Clone, Debug, PartialEq)]
pub struct Reject {
    /// The place in the input, as in [`Page::offset`].
    pub offset: u64,
    /// The URL of the record, if it could be read.
    pub url: Option<String>,
    /// What is wrong: a short stable phrase, such as `gzip: damaged member`.
    pub reason: String,
}

/// The bytes of an input, as stored, that its reader could not read.
///
/// Of a damaged member of a compressed file these are the bytes from its beginning to the next good
/// member; of a large one, of which records were read, those from the damage on. Of a member that
/// the end of the file cuts, they are all of its bytes, also those that gave pages: nothing tells
/// how many are missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unread {
    /// The number of bytes.
    pub bytes: u64,
    /// Whether the file ends inside a member or a record.
    pub ends_early: bool,
}

/// What the place of an item is counted in ([`Page::offset`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountedIn {
    /// Stored bytes: the item begins there, and with it a member of a compressed file.
    Stored,
    /// Bytes of the uncompressed stream, or rows.
    Decoded,
    /// Stored bytes: where a member begins, in which other items are before this one, and the
    /// number of these.
    Shared,
}

/// What the head of a WARC record says of it, and of the records that it belongs to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordNames {
    /// WARC-Type, lower case.
    pub kind: String,
    /// WARC-Record-ID, without angle brackets.
    pub id: Option<String>,
    /// WARC-Target-URI, without angle brackets.
    pub url: Option<String>,
    /// The ids of other records that it names: WARC-Concurrent-To and WARC-Refers-To, without angle
    /// brackets.
    pub named: Vec<String>,
}

/// A record of an archive as it is stored, decompressed, for what copies or indexes it.
#[derive(Clone, Copy, Debug)]
pub struct StoredRecord<'a> {
    /// The head, with the empty line that ends it; of ARC the line.
    pub head: &'a [u8],
    /// The block, or the beginning of one that is longer than what a reader keeps.
    pub block: &'a [u8],
    /// Whether that is the whole block.
    pub is_whole: bool,
    /// The bytes of the file that the record takes from its place on. `None` if its member has
    /// other records.
    pub length: Option<u64>,
}

/// Reads one input from beginning to end.
pub trait Reader: Send {
    /// Returns the next item in file order, or `None` at the end.
    ///
    /// # Errors
    /// If the disk or the network fails. Bad data is not an error but an [`Item::Reject`].
    fn next(&mut self) -> anyhow::Result<Option<Item>>;

    /// Returns how many bytes of the input, as stored, have been taken so far. Rows of Parquet
    /// files are not read in the order of bytes: there it is the size of the file in proportion to
    /// the rows returned.
    fn position(&self) -> u64;

    /// Returns what could not be read so far.
    fn unread(&self) -> Unread {
        Unread::default()
    }

    /// Returns what the place of the last item is counted in.
    fn counted_in(&self) -> CountedIn {
        CountedIn::Decoded
    }

    /// Passes over the items before a place, if the format can do that without decoding them.
    /// Nothing happens if that place was read.
    ///
    /// # Errors
    /// As [`next`](Reader::next).
    fn skip_to(&mut self, _place: u64) -> anyhow::Result<()> {
        Ok(())
    }

    /// Returns what the head of the last item's record says, if it is a WARC record.
    fn record_names(&self) -> Option<RecordNames> {
        None
    }

    /// Hands on each page as soon as it is read, for those who know already which pages they want:
    /// it does not wait for the request that says whether it is the answer to a GET
    /// ([`Page::is_of_get`]). Only then is its [record](Reader::stored_record) at hand.
    fn without_waiting(&mut self) {}

    /// Reads each segment of a record as a record of its own, for those who want
    /// [records](Reader::stored_record) and no pages: behind a first segment other ones wait for
    /// the rest of it.
    fn without_joining(&mut self) {}

    /// Returns the last item's record, if it is an intact one of an archive; not that of a page
    /// which waited, or was joined from segments.
    fn stored_record(&self) -> Option<StoredRecord<'_>> {
        None
    }
}

/// The reader of a file that cannot be read: the whole file is one reject.
pub(crate) struct RejectedFile {
    reject: Option<Reject>,
    bytes: u64,
}

impl RejectedFile {
    /// Makes the reader of a file of `bytes` bytes, with the reason of the reject.
    pub(crate) fn new(reason: String, bytes: u64) -> Self {
        RejectedFile { reject: Some(Reject { offset: 0, url: None, reason }), bytes }
    }
}

impl Reader for RejectedFile {
    fn next(&mut self) -> anyhow::Result<Option<Item>> {
        Ok(self.reject.take().map(Item::Reject))
    }

    fn position(&self) -> u64 {
        if self.reject.is_none() { self.bytes } else { 0 }
    }

    fn unread(&self) -> Unread {
        Unread { bytes: self.position(), ends_early: false }
    }
}

/// A reader without items.
pub(crate) struct Nothing;

impl Reader for Nothing {
    fn next(&mut self) -> anyhow::Result<Option<Item>> {
        Ok(None)
    }

    fn position(&self) -> u64 {
        0
    }
}
