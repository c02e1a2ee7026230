//! Pages of WARC files, WET files included.

use std::io;
use std::io::Read;
use std::net::IpAddr;

use anyhow::Context as _;

use super::framing::{FramedRecord, Records};
use super::http::{HttpContent, NoPage};
use super::record::{Kind, RecordHead};
use crate::config::Reading;
use crate::readers::item::{Body, Failure, Item, Page, Reader, Reject, Skip};
use crate::readers::streams::{Members, Stored};

/// Room for the HTTP head beside the body.
const HEAD: u64 = 1 << 20;

/// Reads the pages of one WARC file, plain, gzip or zstd.
pub struct WarcReader {
    records: Records,
    reading: Reading,
    name: String,
}

impl WarcReader {
    /// Reads from the beginning of `source`, which holds `size` bytes and is called `name` in errors.
    ///
    /// # Errors
    /// When its first bytes cannot be read.
    pub fn new(source: Box<dyn Read + Send>, size: u64, name: &str, reading: &Reading) -> io::Result<Self> {
        let members = Members::new(Stored::new(source), super::framing::acceptable)?;
        let records = Records::new(members, size, reading.page_limit() as u64 + HEAD);
        Ok(WarcReader { records, reading: reading.clone(), name: name.to_owned() })
    }

    fn item(&self, record: RecordHead) -> Item {
        if record.kind == Kind::Other {
            return Item::Skip(Skip::RecordType);
        }
        let content = match content(&record, self.records.block(), &self.reading) {
            Err(NoPage::Skip(skip)) => return Item::Skip(skip),
            Err(NoPage::Broken(reason)) => {
                return Item::Reject(Reject { offset: record.offset, url: record.url, reason: reason.to_owned() });
            }
            Err(NoPage::Status(status)) => Err(format!("status {status}")),
            Ok(content) => Ok(content),
        };
        let Some(url) = record.url else {
            let reason = "warc: no WARC-Target-URI".to_owned();
            return Item::Reject(Reject { offset: record.offset, url: None, reason });
        };
        let content = match content {
            Ok(content) => content,
            Err(reason) => return Item::Failed(Failure { url, reason, offset: record.offset }),
        };
        Item::Page(Page {
            url,
            ip: record.ip.and_then(|ip| ip.parse::<IpAddr>().ok()),
            fetched: record.date.and_then(|date| crate::readers::fields::microseconds(&date)),
            status: content.status,
            media_type: content.media_type,
            charset: content.charset,
            body: content.body,
            offset: record.offset,
            cut: content.cut,
        })
    }
}

impl Reader for WarcReader {
    fn next(&mut self) -> anyhow::Result<Option<Item>> {
        let frame = self.records.advance().with_context(|| format!("cannot read {}", self.name))?;
        Ok(frame.map(|frame| match frame {
            FramedRecord::Record(record) => self.item(record),
            FramedRecord::Reject(reject) => Item::Reject(reject),
        }))
    }

    fn position(&self) -> u64 {
        self.records.position()
    }
}

fn content(record: &RecordHead, block: &[u8], reading: &Reading) -> Result<HttpContent, NoPage> {
    let (label, charset) = super::header::content_type(&record.content_type);
    match record.kind {
        Kind::Conversion if label == "text/plain" => {
            let (text, longer) = crate::readers::fields::cut(crate::readers::fields::utf8(block), reading.page_limit());
            let cut = record.cut || longer;
            Ok(HttpContent { status: 200, media_type: label, charset: None, body: Body::Text(text), cut })
        }
        Kind::Conversion => Err(NoPage::Skip(Skip::MediaType)),
        // Heritrix writes answers of the DNS as responses of type text/dns.
        Kind::Response if label.is_empty() || label == "application/http" => {
            super::http::response(block, record.cut, reading)
        }
        _ => super::http::content(200, label, charset, block.to_vec(), record.cut, reading),
    }
}
