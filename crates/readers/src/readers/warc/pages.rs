//! Turns the records of WARC, WET and ARC files into items: pages, failed downloads, skips and rejects.

use std::io;
use std::io::Read;
use std::net::IpAddr;

use anyhow::Context as _;

use super::decoded::Dialect;
use super::framing::{FramedRecord, Records};
use super::http::{HttpContent, NoPage};
use super::record::{RecordHead, RecordType};
use crate::readers::fields;
use crate::readers::fields::Date;
use crate::readers::item::{
    Body, CountedIn, Failure, Item, Page, Reader, RecordNames, Reject, Revisit, Skip, Skipped, Unread,
};
use crate::readers::streams::{Members, Packing, Stored};
use crate::reading::Reading;

/// Bytes that the HTTP head may take besides the body.
const HEAD: u64 = 1 << 20;

/// Reads the pages of one WARC or ARC file, plain or compressed.
pub struct WarcReader {
    dialect: Dialect,
    records: Records,
    reading: Reading,
    name: String,
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

    /// The reader of a file from a member on that is not its first, or from a record on if it is plain: `source` has the `size` bytes
    /// from there on.
    ///
    /// # Errors
    /// If there is no memory for a decoder.
    pub fn from_member(
        source: Box<dyn Read + Send>,
        packing: &Packing,
        dialect: Dialect,
        size: u64,
        name: &str,
        reading: &Reading,
    ) -> io::Result<Self> {
        let members = Members::from_member(Stored::new(source), packing, dialect.acceptable())?;
        Ok(WarcReader::of(members, dialect, size, name, reading, true))
    }

    fn of(members: Members, dialect: Dialect, size: u64, name: &str, reading: &Reading, is_part: bool) -> Self {
        let records = Records::new(members, dialect, size, reading.page_limit() as u64 + HEAD, is_part);
        WarcReader { dialect, records, reading: reading.clone(), name: name.to_owned() }
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

    /// Makes the item of the record that was framed last.
    fn item(&self, record: RecordHead) -> Item {
        if record.kind == RecordType::Other {
            return Item::Skip(Skipped { offset: record.offset, why: Skip::RecordType });
        }
        if record.kind == RecordType::Revisit {
            return self.revisit(record);
        }
        let content = match content(&record, self.records.block(), &self.reading) {
            Err(NoPage::Skip(why)) => return Item::Skip(Skipped { offset: record.offset, why }),
            Err(NoPage::Broken(reason)) => {
                return Item::Reject(Reject { offset: record.offset, url: record.url, reason: reason.to_owned() });
            }
            // The server says that the page is what it was.
            Err(NoPage::Status(304)) => return self.revisit(record),
            Err(NoPage::Status(status)) => Err((status, None)),
            Err(NoPage::Redirect(redirect)) => Err((redirect.status, Some(redirect))),
            Ok(content) => Ok(content),
        };
        let Some(url) = record.url else {
            let reason = "warc: no WARC-Target-URI".to_owned();
            return Item::Reject(Reject { offset: record.offset, url: None, reason });
        };
        let content = match content {
            Ok(content) => content,
            Err((status, redirect)) => {
                let reason = format!("status {status}");
                return Item::Failed(Failure { url, reason, offset: record.offset, redirect });
            }
        };
        let date = record.date.map_or(Date::None, |date| fields::date(&date));
        Item::Page(Page {
            id: None,
            url: Some(url),
            ip: record.ip.and_then(|ip| ip.parse::<IpAddr>().ok()),
            fetched: date.microseconds(),
            date_unread: date == Date::Unreadable,
            status: Some(content.status),
            media_type: Some(content.media_type),
            charset: content.charset,
            body: content.body,
            entry: record.entry,
            offset: record.offset,
            cut: content.cut,
        })
    }
}

impl WarcReader {
    /// Makes the item of a record that says that the page is what another one was. An answer 304 names its own URL.
    fn revisit(&self, record: RecordHead) -> Item {
        let Some(url) = record.url else {
            let reason = "warc: no WARC-Target-URI".to_owned();
            return Item::Reject(Reject { offset: record.offset, url: None, reason });
        };
        let time = |date: Option<String>| date.map_or(Date::None, |date| fields::date(&date)).microseconds();
        Item::Revisit(Box::new(Revisit {
            url,
            ip: record.ip.and_then(|ip| ip.parse::<IpAddr>().ok()),
            fetched: time(record.date),
            of_url: record.of_url,
            of_date: time(record.of_date),
            digest: record.entry.digest,
            offset: record.offset,
        }))
    }
}

impl Reader for WarcReader {
    fn next(&mut self) -> anyhow::Result<Option<Item>> {
        let frame = self.records.advance().with_context(|| format!("cannot read {}", self.name))?;
        Ok(frame.map(|frame| match frame {
            FramedRecord::Record(record) => self.item(record),
            FramedRecord::Reject(reject) => Item::Reject(self.named(reject)),
        }))
    }

    fn position(&self) -> u64 {
        self.records.position()
    }

    fn unread(&self) -> Unread {
        self.records.unread()
    }

    fn counted_in(&self) -> CountedIn {
        self.records.counted_in()
    }

    fn record_names(&self) -> Option<RecordNames> {
        (self.dialect == Dialect::Warc).then(|| super::record::names(self.records.head_bytes()))
    }
}

/// Reads the content of a record's block by the type of the record.
fn content(record: &RecordHead, block: &[u8], reading: &Reading) -> Result<HttpContent, NoPage> {
    let (label, charset) = super::header::content_type(&record.content_type);
    match record.kind {
        RecordType::Conversion if label == "text/plain" => {
            let (text, longer) = fields::cut(fields::utf8(block), reading.page_limit());
            let cut = record.cut || longer;
            Ok(HttpContent { status: 200, media_type: label, charset: None, body: Body::Text(text), cut })
        }
        RecordType::Conversion => Err(NoPage::Skip(Skip::MediaType)),
        // Heritrix writes responses of the DNS as records of media type text/dns.
        RecordType::Response if label.is_empty() || label == "application/http" => {
            super::http::response(block, record.cut, reading)
        }
        _ => super::http::content(200, label, charset, block.to_vec(), record.cut, reading),
    }
}
