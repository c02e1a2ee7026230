//! Turns the records of WARC, WET and ARC files into items: pages, failed downloads, skips and
//! rejects.

use std::io;
use std::io::Read;

use anyhow::Context as _;

use super::decoded::Dialect;
use super::framing::{FramedRecord, Records};
use super::held::{Held, HeldContent, ItemNotes, Segments, set_method};
use super::http::{HttpContent, NoPage};
use super::methods::{Methods, RequestMethod, Ties};
use super::no_page::{without_page, without_url};
use super::record::{RecordHead, RecordType};
use super::revisit;
use crate::readers::fields;
use crate::readers::fields::Date;
use crate::readers::item::{
    Body, CountedIn, Item, Page, Reader, RecordNames, Reject, Skip, Skipped, StoredRecord, Unread,
};
use crate::readers::streams::{MemberPacking, Members, Stored};
use crate::reading::Reading;

/// Bytes that the HTTP head may take besides the body.
const HEAD: u64 = 1 << 20;

/// Reads the pages of one WARC or ARC file, plain or compressed.
pub struct WarcReader {
    dialect: Dialect,
    records: Records,
    reading: Reading,
    name: String,
    methods: Methods,
    held: Held,
    /// Whether pages wait for their requests.
    waits: bool,
    /// Whether records are joined from their segments.
    joins: bool,
    /// What is said of the item that was returned last, if it was held back.
    said: Option<ItemNotes>,
    /// Of the last record, if it is intact: the length of its block, and the bytes that it takes in
    /// the file.
    lengths: Option<(Option<u64>, Option<u64>)>,
}

impl WarcReader {
    /// Makes the reader of `source`, which has `size` stored bytes and is named `name` in errors.
    ///
    /// # Errors
    /// If the first bytes cannot be read.
    pub fn new(
        source: Box<dyn Read + Send>,
        dialect: Dialect,
        size: u64,
        name: &str,
        reading: &Reading,
    ) -> io::Result<Self> {
        let members = Members::new(Stored::new(source), dialect.acceptable())?;
        Ok(WarcReader::of(members, dialect, size, name, reading, false))
    }

    /// The reader of a file that is packed in this way, from a member on that is not its first, or
    /// from a record on if it is plain: `source` has the `size` bytes from there on.
    ///
    /// # Errors
    /// If there is no memory for a decoder.
    pub fn from_member(
        source: Box<dyn Read + Send>,
        packing: &MemberPacking,
        dialect: Dialect,
        size: u64,
        name: &str,
        reading: &Reading,
    ) -> io::Result<Self> {
        let members = Members::from_member(Stored::new(source), packing, dialect.acceptable())?;
        Ok(WarcReader::of(members, dialect, size, name, reading, true))
    }

    /// Says that the source begins inside its file, at a member that is not its first.
    pub fn begins_inside(&mut self) {
        self.records.begins_inside();
    }

    fn of(members: Members, dialect: Dialect, size: u64, name: &str, reading: &Reading, is_part: bool) -> Self {
        let records = Records::new(members, dialect, size, reading.page_limit() as u64 + HEAD, is_part);
        WarcReader {
            dialect,
            records,
            reading: reading.clone(),
            name: name.to_owned(),
            methods: Methods::default(),
            held: Held::default(),
            waits: true,
            joins: true,
            said: None,
            lengths: None,
        }
    }

    /// Names the format of the file in the reason of a reject.
    fn named(&self, mut reject: Reject) -> Reject {
        if self.dialect == Dialect::Arc
            && let Some(reason) = reject.reason.strip_prefix("warc: ")
        {
            reject.reason = format!("arc: {}", reason.replace("Content-Length", "length"));
        }
        reject
    }

    /// Takes the record that was framed last, and what it says of those before it.
    fn take(&mut self, mut record: RecordHead) -> HeldContent {
        let block = self.records.block();
        let mut method = Some(RequestMethod::Get);
        let ties = Ties::of(&record);
        match record.kind {
            RecordType::Request => {
                let method = RequestMethod::of(block);
                let is_named = self.held.asked(method, |response| response.name(&ties));
                if let Some(before) = self.methods.request(record.offset, ties, method, is_named) {
                    self.held.asked(method, |response| *response == before);
                }
            }
            RecordType::Continuation => self.held.continued(&record, block),
            RecordType::Response | RecordType::Revisit if self.dialect == Dialect::Warc => {
                method = self.methods.response(record.offset, &ties);
            }
            _ => {}
        }
        if let Some(segment) = record.segment.take_if(|_| record.kind != RecordType::Continuation) {
            let cap = self.reading.page_limit() + HEAD as usize;
            let is_first = segment.number == 1 && record.entry.id.is_some() && block.len() < cap;
            if self.joins && is_first && has_page_url(&record) {
                return HeldContent::Segments(Box::new(Segments::new(record, method, block, cap)));
            }
            record.cut = true;
        }
        let mut item = self.item(record, block);
        match method {
            Some(method) => set_method(&mut item, method),
            None if self.waits && matches!(item, Item::Page(_)) => return HeldContent::Item(item, Some(ties)),
            None => {}
        }
        HeldContent::Item(item, None)
    }

    /// The item of what is held back no longer.
    fn released(&self, content: HeldContent) -> Item {
        match content {
            HeldContent::Item(item, _) => item,
            HeldContent::Segments(segments) => {
                let method = segments.method.unwrap_or(RequestMethod::Get);
                let (record, block) = segments.joined();
                let mut item = self.item(record, &block);
                set_method(&mut item, method);
                item
            }
        }
    }

    /// Makes the item of a record with its block.
    fn item(&self, record: RecordHead, block: &[u8]) -> Item {
        if matches!(record.kind, RecordType::Other | RecordType::Request | RecordType::Continuation) {
            return Item::Skip(Skipped { offset: record.offset, why: Skip::RecordType });
        }
        if record.url.as_deref().is_some_and(has_other_scheme) {
            return Item::Skip(Skipped { offset: record.offset, why: Skip::Scheme });
        }
        if record.kind == RecordType::Revisit {
            return match revisit::answer(&record, block, &self.reading) {
                Ok(answer) => revisit::item(record, answer),
                Err(why) => without_page(record, why),
            };
        }
        let content = match content(&record, block, self.dialect, &self.reading) {
            // The server says that the page is what it was.
            Err(NoPage::Status(304)) => return revisit::item(record, revisit::NOT_MODIFIED),
            Err(why) => return without_page(record, why),
            Ok(content) => content,
        };
        let Some(url) = record.url else {
            return without_url(record.offset);
        };
        let date = record.date.map_or(Date::None, |date| fields::warc_date(&date));
        Item::Page(Page {
            id: None,
            url: Some(url),
            ip: record.ip.and_then(|ip| fields::address(&ip)),
            fetched: date.microseconds(),
            date_unread: date == Date::Unreadable,
            status: Some(content.status),
            media_type: Some(content.media_type),
            charset: content.charset,
            body: content.body,
            entry: record.entry,
            offset: record.offset,
            cut: content.cut,
            is_of_get: true,
            values: Vec::new(),
        })
    }
}

impl Reader for WarcReader {
    fn next(&mut self) -> anyhow::Result<Option<Item>> {
        loop {
            if let Some(content) = self.held.pop(false, &mut self.said) {
                return Ok(Some(self.released(content)));
            }
            let frame = self.records.advance().with_context(|| format!("cannot read {}", self.name))?;
            self.lengths = match &frame {
                Some(FramedRecord::Record(record)) => Some((record.length, record.entry.length)),
                _ => None,
            };
            let content = match frame {
                Some(FramedRecord::Record(record)) => self.take(record),
                Some(FramedRecord::Reject(reject)) => HeldContent::Item(Item::Reject(self.named(reject)), None),
                None => {
                    let Some(content) = self.held.pop(true, &mut self.said) else {
                        self.said = None;
                        return Ok(None);
                    };
                    return Ok(Some(self.released(content)));
                }
            };
            match content {
                HeldContent::Item(item, None) if self.held.is_empty() => {
                    if let Some(said) = self.said.take() {
                        self.held.recycle(said);
                    }
                    return Ok(Some(item));
                }
                content => {
                    let (counted_in, unread) = (self.records.counted_in(), self.records.unread());
                    self.held.push(content, counted_in, unread, self.records.head_bytes());
                }
            }
        }
    }

    fn position(&self) -> u64 {
        self.records.position()
    }

    fn unread(&self) -> Unread {
        self.said.as_ref().map_or_else(|| self.records.unread(), |said| said.unread)
    }

    fn counted_in(&self) -> CountedIn {
        let held = self.said.as_ref().and_then(|said| said.counted_in);
        held.unwrap_or_else(|| self.records.counted_in())
    }

    fn record_names(&self) -> Option<RecordNames> {
        let head = self.said.as_ref().map_or_else(|| self.records.head_bytes(), |said| &said.head);
        (self.dialect == Dialect::Warc).then(|| super::record::names(head))
    }

    fn without_waiting(&mut self) {
        self.waits = false;
    }

    fn without_joining(&mut self) {
        self.joins = false;
    }

    fn stored_record(&self) -> Option<StoredRecord<'_>> {
        // Of an item that was held back, the block is gone.
        let (block_length, length) = self.lengths.filter(|_| self.said.is_none())?;
        let (head, block) = (self.records.head_bytes(), self.records.block());
        Some(StoredRecord { head, block, is_whole: block_length == Some(block.len() as u64), length })
    }
}

/// Whether a record can be a page by its type and its URL.
fn has_page_url(record: &RecordHead) -> bool {
    matches!(record.kind, RecordType::Response | RecordType::Resource | RecordType::Conversion)
        && record.url.as_deref().is_some_and(|url| !has_other_scheme(url))
}

/// Whether a URL has another scheme than http and https. A host with a port (`a.example:80/`) is
/// not one.
fn has_other_scheme(url: &str) -> bool {
    let Some((scheme, rest)) = url.split_once(':') else { return false };
    let is_sign =
        |byte: u8| byte.is_ascii_alphanumeric() || b"+-".contains(&byte) || byte == b'.' && rest.starts_with("//");
    let is_scheme = scheme.len() > 1 && scheme.as_bytes()[0].is_ascii_alphabetic() && scheme.bytes().all(is_sign);
    let port = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let is_port = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    let is_web = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
    is_scheme && !is_web && !is_port
}

/// Reads the content of a record's block by the type of the record.
fn content(record: &RecordHead, block: &[u8], dialect: Dialect, reading: &Reading) -> Result<HttpContent, NoPage> {
    let (label, charset) = super::header::content_type(&record.content_type);
    match record.kind {
        RecordType::Conversion if label == "text/plain" => {
            let (text, longer) = fields::cut(fields::utf8(block), reading.page_limit());
            let cut = record.cut || longer;
            Ok(HttpContent { status: 200, media_type: label, charset: None, body: Body::Text(text), cut })
        }
        RecordType::Conversion => Err(NoPage::Skip(Skip::MediaType)),
        // Some writers label the record with the type of the page.
        RecordType::Response
            if matches!(label.as_str(), "" | "application/http" | "message/http")
                || super::http::begins_response(block)
                || dialect == Dialect::Arc && super::http::begins_http(block) =>
        {
            super::http::response(block, record.cut, reading)
        }
        _ => super::http::content(200, label, charset, block.to_vec(), record.cut, reading),
    }
}
