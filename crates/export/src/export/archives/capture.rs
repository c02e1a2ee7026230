//! The captures of an archive, as an index has them: a line of CDXJ for each response, resource and
//! revisit.
//!
//! ```text
//! org,example)/page 20240101000000 {"url":"http://example.org/page","mime":"text/html",...}
//! ```

use std::borrow::Cow;

use anyhow::Result;
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_128;

use super::surt::surt;
use crate::config::Reading;
use crate::export::revisits::{ArcLine, base32, http_head, readdressed_id};
use crate::readers::{CountedIn, Dialect, Format, Input, Reader, StoredRecord, open, split_head};
use crate::structures::Sortable;

/// A capture.
pub(super) struct IndexedCapture {
    pub(super) url: String,
    /// 14 digits.
    pub(super) timestamp: String,
    pub(super) is_revisit: bool,
    pub(super) mime: Option<String>,
    status: Option<String>,
    digest: Option<String>,
    length: Option<String>,
    offset: Option<String>,
    /// WARC-Record-ID, as written.
    id: Option<String>,
    /// The id that it has where it is written as that of another document.
    readdressed_id: String,
    /// The hashes of its record and of its block.
    record: u128,
    block: u128,
}

/// A line of an index.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct IndexLine(pub(super) String);

impl Sortable for IndexLine {
    type Key = String;

    fn key(&self) -> String {
        self.0.clone()
    }

    fn weight(&self) -> usize {
        size_of::<IndexLine>() + self.0.len()
    }
}

/// The fields of a line, in the order that indexers write.
#[derive(Serialize)]
struct CdxjFields<'a> {
    url: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    mime: &'a Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: &'a Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: &'a Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    length: &'a Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: &'a Option<String>,
    filename: &'a str,
}

impl IndexedCapture {
    /// The line of an index; `file` is the name of the archive there.
    pub(super) fn line(&self, file: &str) -> Result<IndexLine> {
        let IndexedCapture { url, timestamp, mime, status, digest, length, offset, .. } = self;
        let fields = CdxjFields { url, mime, status, digest, length, offset, filename: file };
        Ok(IndexLine(format!("{} {timestamp} {}", surt(url), serde_json::to_string(&fields)?)))
    }

    /// Whether a record that was written is this one, or this one as WARC.
    pub(super) fn is_written_as(&self, written: &IndexedCapture, format: Format) -> bool {
        let is_same =
            self.record == written.record || format.dialect() == Some(Dialect::Arc) && self.block == written.block;
        is_same && self.is_of_same_download(written) && self.is_revisit == written.is_revisit
    }

    /// Whether a record that was written is the revisit that replaced this one.
    pub(super) fn is_replaced_by(&self, written: &IndexedCapture) -> bool {
        written.is_revisit && !self.is_revisit && self.is_of_same_download(written)
    }

    /// Whether a record that was written is this one, as that of a document of another URL.
    pub(super) fn is_readdressed_as(&self, written: &IndexedCapture, format: Format) -> bool {
        match format.dialect() {
            Some(Dialect::Arc) => self.block == written.block && self.url != written.url && !written.is_revisit,
            _ => written.id.as_ref() == Some(&self.readdressed_id),
        }
    }

    fn is_of_same_download(&self, other: &IndexedCapture) -> bool {
        (&self.url, &self.timestamp) == (&other.url, &other.timestamp)
    }

    /// The capture that a record is; `None` if it is none. `offset` is where it begins, if it can
    /// be read from there on.
    fn of(record: &StoredRecord<'_>, format: Format, offset: Option<u64>) -> Option<IndexedCapture> {
        let http = http_head(record.block);
        let (mut url, mut date, mut kind) = (String::new(), String::new(), String::new());
        let (mut digest, mut label, mut id) = (None, None, None);
        if format.dialect() == Some(Dialect::Arc) {
            let line = ArcLine::parse(record.head).filter(|line| !line.url.starts_with("filedesc:"))?;
            (url, date, label) = (line.url, line.date.unwrap_or_default(), line.media_type);
            kind = if http.is_empty() { "resource" } else { "response" }.to_owned();
        } else {
            for (name, value) in split_head(record.head).1 {
                match name.to_ascii_lowercase().as_slice() {
                    b"warc-type" => kind = text(&value).to_ascii_lowercase(),
                    b"warc-record-id" => id = Some(text(&value)),
                    b"warc-date" => date = text(&value),
                    b"warc-target-uri" => url = url_of(&value),
                    b"warc-payload-digest" => digest = Some(text(&value)),
                    b"content-type" => label = Some(text(&value)),
                    _ => {}
                }
            }
        }
        let is_capture = matches!(kind.as_str(), "response" | "resource" | "revisit") && !url.is_empty();
        let (line, fields) = split_head(http);
        let mut of_http = None;
        for (name, value) in fields {
            if name.eq_ignore_ascii_case(b"content-type") {
                of_http.get_or_insert_with(|| text(&value));
            }
        }
        let is_revisit = kind == "revisit";
        let mime = match kind.as_str() {
            "revisit" => Some("warc/revisit".to_owned()),
            "response" => of_http,
            _ => label,
        };
        let mime = mime.and_then(|mime| mime.split([';', ',', ' ', '\t']).next().map(str::to_owned));
        let status = text(line).split_ascii_whitespace().nth(1).map(str::to_owned);
        // As indexers compute it, over all that follows the HTTP head.
        let computed = || format!("sha1:{}", base32(digest_of(&record.block[http.len()..]).as_ref()));
        let digest = digest.or_else(|| (record.is_whole && !is_revisit).then(computed));
        is_capture.then(|| IndexedCapture {
            url,
            timestamp: timestamp(&date),
            is_revisit,
            mime: mime.filter(|mime| !mime.is_empty()),
            status,
            digest,
            length: record.length.filter(|_| offset.is_some()).map(|length| length.to_string()),
            offset: offset.map(|offset| offset.to_string()),
            id,
            readdressed_id: readdressed_id(record.head),
            record: xxh3_128(record.head) ^ xxh3_128(record.block).rotate_left(1),
            block: xxh3_128(record.block),
        })
    }
}

/// The captures of an archive, in the order of the file.
pub(super) struct Captures {
    reader: Box<dyn Reader>,
    format: Format,
}

impl Captures {
    /// Opens an archive.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(super) fn open(input: &Input, reading: &Reading) -> Result<Captures> {
        let mut reader = open(input, reading)?;
        reader.without_waiting();
        reader.without_joining();
        Ok(Captures { reader, format: input.format })
    }

    /// The next one.
    ///
    /// # Errors
    /// If the archive cannot be read.
    pub(super) fn record(&mut self) -> Result<Option<IndexedCapture>> {
        while let Some(item) = self.reader.next()? {
            let offset = (self.reader.counted_in() == CountedIn::Stored).then(|| item.offset());
            let record = self.reader.stored_record();
            if let Some(capture) = record.and_then(|record| IndexedCapture::of(&record, self.format, offset)) {
                return Ok(Some(capture));
            }
        }
        Ok(None)
    }
}

fn digest_of(bytes: &[u8]) -> ring::digest::Digest {
    digest(&SHA1_FOR_LEGACY_USE_ONLY, bytes)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A URL without angle brackets. What is not UTF-8 in it becomes percent-encoded.
fn url_of(value: &[u8]) -> String {
    let value = value.strip_prefix(b"<").and_then(|value| value.strip_suffix(b">")).unwrap_or(value).trim_ascii();
    let encoded = |byte: &u8| if byte.is_ascii() { char::from(*byte).to_string() } else { format!("%{byte:02X}") };
    match std::str::from_utf8(value) {
        Ok(url) => url.to_owned(),
        Err(_) => value.iter().map(encoded).collect(),
    }
}

/// The digits of a date of WARC or ARC, up to the second; what it does not say is the first month,
/// day and hour.
fn timestamp(date: &str) -> String {
    let digits: Cow<'_, str> = date.chars().filter(char::is_ascii_digit).take(14).collect();
    let rest = "00000101000000".get(digits.len()..).unwrap_or_default();
    format!("{digits}{rest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(head: &str, block: &str) -> Option<String> {
        let head = format!(
            "WARC/1.1\r\nWARC-Date: 2024-02-03T04:05:06.789Z\r\nWARC-Target-URI: <http://www.a.example/x?b&a>\r\n{head}\r\n"
        );
        let record = StoredRecord { head: head.as_bytes(), block: block.as_bytes(), is_whole: true, length: Some(90) };
        Some(IndexedCapture::of(&record, Format::Warc, Some(7))?.line("f.warc").unwrap().0)
    }

    #[test]
    fn captures_have_the_lines_of_an_index() {
        let page = "HTTP/1.1 200 OK\r\ncontent-type: text/html; charset=utf-8\r\n\r\nabc";
        assert_eq!(
            line("WARC-Type: response\r\n", page).as_deref(),
            Some(
                "example,a)/x?a&b 20240203040506 {\"url\":\"http://www.a.example/x?b&a\",\"mime\":\"text/html\",\"status\":\"200\",\"digest\":\
                 \"sha1:VGMT4NSHA2AWVOR6EVYXQUGCNSONBWE5\",\"length\":\"90\",\"offset\":\"7\",\"filename\":\"f.warc\"}"
            )
        );
        let revisit = line("WARC-Type: revisit\r\nWARC-Payload-Digest: sha1:X\r\n", "HTTP/1.1 404 X\r\n\r\n").unwrap();
        assert!(revisit.contains("\"mime\":\"warc/revisit\",\"status\":\"404\",\"digest\":\"sha1:X\""), "{revisit}");
        let resource = line("WARC-Type: resource\r\nContent-Type: text/css\r\n", "p {}").unwrap();
        assert!(resource.contains("\"mime\":\"text/css\",\"digest\""), "{resource}");
        assert_eq!(line("WARC-Type: request\r\n", "GET / HTTP/1.1\r\n\r\n"), None);
    }

    #[test]
    fn no_capture_behind_a_first_segment_is_left_out() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let record = |n: usize, segment: &str| {
            format!(
                "WARC/1.1\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:x:{n}>\r\nWARC-Date: 2024-02-03T04:05:06Z\r\nWARC-Target-URI: \
                 http://a.example/{n}\r\n{segment}Content-Length: 22\r\n\r\nHTTP/1.1 200 OK\r\n\r\nabc\r\n\r\n"
            )
        };
        // The other segments are in another file.
        let records = [record(0, ""), record(1, "WARC-Segment-Number: 1\r\n"), record(2, ""), record(3, "")];
        std::fs::write(file.path(), records.concat()).unwrap();
        let input = Input {
            name: "f.warc".to_owned(),
            bytes: records.concat().len() as u64,
            format: Format::Warc,
            place: crate::readers::Location::File(file.path().to_owned()),
            page_url: None,
            stamp: String::new(),
            reading: None,
        };
        let mut captures = Captures::open(&input, &Reading::default()).unwrap();
        let captures = std::iter::from_fn(|| captures.record().unwrap());
        let found: Vec<_> = captures.map(|capture| (capture.url, capture.offset.unwrap())).collect();
        let expected = (0..4).map(|n| (format!("http://a.example/{n}"), records[..n].concat().len().to_string()));
        assert_eq!(found, expected.collect::<Vec<_>>());
    }

    #[test]
    fn dates_become_14_digits_and_urls_text() {
        assert_eq!(timestamp("2024-01-02T03:04:05.6Z"), "20240102030405");
        assert_eq!([timestamp("2024"), timestamp("2024-05")], ["20240101000000", "20240501000000"]);
        assert_eq!(url_of(b"<http://a.example/caf\xe9>"), "http://a.example/caf%E9");
        assert_eq!(url_of("http://a.example/café".as_bytes()), "http://a.example/café");
    }
}
