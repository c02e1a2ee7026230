//! Parses the head of a WARC record. Its fields are claims: `framing` checks the length.

use xxhash_rust::xxh3::xxh3_64;

use crate::readers::fields;
use crate::readers::item::{ArchiveEntry, RecordNames};

/// The type of a record (`WARC-Type`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RecordType {
    /// An HTTP request.
    Request,
    /// An HTTP response.
    Response,
    /// A page without an HTTP head.
    Resource,
    /// A page in another form: the text of WET files.
    Conversion,
    /// A page that is what another one was.
    Revisit,
    /// A later segment of a record.
    Continuation,
    /// Every other type.
    Other,
}

/// The head of a record. Its block is [`super::framing::Records::block`].
#[derive(Debug)]
pub struct RecordHead {
    /// The place in the input, as in [`Page::offset`](crate::readers::item::Page::offset).
    pub offset: u64,
    /// Its type, from WARC-Type.
    pub kind: RecordType,
    /// WARC-Target-URI without angle brackets, its bytes that are not UTF-8 as `%XX`; `None` if
    /// missing or empty.
    pub url: Option<String>,
    /// WARC-Date as written.
    pub date: Option<String>,
    /// WARC-IP-Address as written.
    pub ip: Option<String>,
    /// WARC-Record-ID without angle brackets, WARC-Payload-Digest as written, and the length that
    /// `framing` finds.
    pub entry: ArchiveEntry,
    /// What it says of a record that it refers to, if it does.
    pub refers: Option<Box<RefersTo>>,
    /// The hashes of the ids in the first fields WARC-Concurrent-To; 0 if there are fewer.
    pub concurrent_to: [u64; CONCURRENT],
    /// What the record says of its segments (WARC 1.1, section 8); `None` if it is whole.
    pub segment: Option<Box<RecordSegment>>,
    /// Content-Type of the block.
    pub content_type: Vec<u8>,
    /// Whether the block is incomplete: marked WARC-Truncated, or longer than the cap.
    pub cut: bool,
    /// Content-Length in bytes; `None` if missing.
    pub length: Option<u64>,
}

/// The number of ids of WARC-Concurrent-To that are looked at.
pub const CONCURRENT: usize = 4;

/// A part of a record that was cut in several.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordSegment {
    /// WARC-Segment-Number, from 1; 0 if it cannot be read.
    pub number: u64,
    /// WARC-Segment-Origin-ID without angle brackets: the id of the first segment, which a later
    /// one names.
    pub origin: Option<String>,
    /// WARC-Segment-Total-Length: the length of all blocks, which the last one names.
    pub total: Option<u64>,
}

/// What a record says of another one that it refers to.
#[derive(Debug, Default)]
pub struct RefersTo {
    /// WARC-Profile as written.
    pub profile: Option<String>,
    /// WARC-Refers-To without angle brackets.
    pub id: Option<String>,
    /// WARC-Refers-To-Target-URI without angle brackets.
    pub url: Option<String>,
    /// WARC-Refers-To-Date as written.
    pub date: Option<String>,
}

impl RecordHead {
    /// The head of a record of which nothing is known yet.
    pub fn at(offset: u64) -> RecordHead {
        RecordHead {
            offset,
            kind: RecordType::Other,
            url: None,
            date: None,
            ip: None,
            entry: ArchiveEntry::default(),
            refers: None,
            concurrent_to: [0; CONCURRENT],
            segment: None,
            content_type: Vec::new(),
            cut: false,
            length: None,
        }
    }

    fn refers_to(&mut self) -> &mut RefersTo {
        self.refers.get_or_insert_default()
    }

    fn segment(&mut self) -> &mut RecordSegment {
        self.segment.get_or_insert_default()
    }
}

/// The hash of a record's id; 0 stands for none.
pub fn hash(id: &str) -> u64 {
    xxh3_64(id.as_bytes()).max(1)
}

/// The first bytes of every WARC record.
pub const VERSION: &[u8] = b"WARC/";

/// Whether a line, with or without its end, is a version that is read: 1.0, 1.1 and others that
/// begin with 1, and the drafts 0.1 to 0.19.
pub fn is_version(line: &[u8]) -> bool {
    let Some(number) = line.strip_prefix(VERSION) else { return false };
    let number = number.trim_ascii_end();
    let Some(minor) = number.strip_prefix(b"1.").or_else(|| number.strip_prefix(b"0.1")) else { return false };
    minor.len() <= 3 && minor.iter().all(u8::is_ascii_digit) && number.len() > 2
}

/// Parses the head of the record at `offset`. Of a repeated field the first counts.
///
/// # Errors
/// The URL, if there is one, and the reason of a reject: if the version is unknown, the type is
/// missing, or the length is not a number below 2^60. A missing length is not an error here.
pub fn parse(head: &[u8], offset: u64) -> Result<RecordHead, (Option<String>, &'static str)> {
    let (version, fields) = super::header::split(head);
    let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
    let mut record = RecordHead::at(offset);
    let mut kind = None;
    let mut length = None;
    for (name, value) in fields {
        let is = |field: &[u8]| name.eq_ignore_ascii_case(field);
        match name.len() {
            9 if is(b"warc-type") => first(&mut kind, || Some(value.to_ascii_lowercase())),
            9 if is(b"warc-date") => first(&mut record.date, || Some(text(&value))),
            12 if is(b"warc-profile") => first(&mut record.refers_to().profile, || name_of(&value)),
            12 if is(b"content-type") && record.content_type.is_empty() => record.content_type = value.into_owned(),
            14 if is(b"content-length") => first(&mut length, || Some(text(&value))),
            14 if is(b"warc-truncated") => record.cut = true,
            14 if is(b"warc-refers-to") => first(&mut record.refers_to().id, || name_of(&value)),
            15 if is(b"warc-target-uri") => first(&mut record.url, || name_of(&value)),
            14 if is(b"warc-record-id") => first(&mut record.entry.id, || name_of(&value)),
            18 if is(b"warc-concurrent-to") => {
                if let (Some(free), Some(id)) = (record.concurrent_to.iter_mut().find(|id| **id == 0), id_of(&value)) {
                    *free = id;
                }
            }
            19 if is(b"warc-payload-digest") => first(&mut record.entry.digest, || name_of(&value)),
            19 if is(b"warc-refers-to-date") => first(&mut record.refers_to().date, || Some(text(&value))),
            19 if is(b"warc-segment-number") => {
                let segment = record.segment();
                if segment.number == 0 {
                    segment.number = number_of(&value).unwrap_or(0);
                }
            }
            22 if is(b"warc-segment-origin-id") => first(&mut record.segment().origin, || name_of(&value)),
            25 if is(b"warc-segment-total-length") => first(&mut record.segment().total, || number_of(&value)),
            25 if is(b"warc-refers-to-target-uri") => first(&mut record.refers_to().url, || name_of(&value)),
            15 if is(b"warc-ip-address") => first(&mut record.ip, || Some(text(&value))),
            _ => {}
        }
    }
    if !is_version(version) {
        return Err((record.url, "warc: unknown version"));
    }
    record.kind = match kind.as_deref() {
        Some(b"request") => RecordType::Request,
        Some(b"response") => RecordType::Response,
        Some(b"resource") => RecordType::Resource,
        Some(b"conversion") => RecordType::Conversion,
        Some(b"revisit") => RecordType::Revisit,
        Some(b"continuation") => RecordType::Continuation,
        Some(_) => RecordType::Other,
        None => return Err((record.url, "warc: no WARC-Type")),
    };
    if let Some(length) = length {
        match length.parse::<u64>() {
            Ok(length) if length < 1 << 60 => record.length = Some(length),
            _ => return Err((record.url, "warc: Content-Length is no length")),
        }
    }
    Ok(record)
}

/// What a head says of its record and of others.
pub fn names(head: &[u8]) -> RecordNames {
    let mut names = RecordNames::default();
    let mut kind = None;
    for (name, value) in super::header::split(head).1 {
        match name.to_ascii_lowercase().as_slice() {
            b"warc-type" => first(&mut kind, || Some(String::from_utf8_lossy(&value).to_ascii_lowercase())),
            b"warc-record-id" => first(&mut names.id, || name_of(&value)),
            b"warc-target-uri" => first(&mut names.url, || name_of(&value)),
            b"warc-concurrent-to" | b"warc-refers-to" | b"warc-segment-origin-id" => {
                names.named.extend(name_of(&value));
            }
            _ => {}
        }
    }
    names.kind = kind.unwrap_or_default();
    names
}

/// Keeps the value of a field, unless an earlier one of this name has one.
fn first<T>(slot: &mut Option<T>, value: impl FnOnce() -> Option<T>) {
    if slot.is_none() {
        *slot = value();
    }
}

/// A value without angle brackets.
fn bare(value: &[u8]) -> &[u8] {
    value.strip_prefix(b"<").and_then(|name| name.strip_suffix(b">")).unwrap_or(value).trim_ascii()
}

/// A value without angle brackets, if it is not empty.
fn name_of(value: &[u8]) -> Option<String> {
    Some(fields::url(bare(value)).into_owned()).filter(|name| !name.is_empty())
}

/// The hash of a value that is an id, if it is not empty.
fn id_of(value: &[u8]) -> Option<u64> {
    Some(bare(value)).filter(|id| !id.is_empty()).map(|id| hash(&fields::url(id)))
}

fn number_of(value: &[u8]) -> Option<u64> {
    std::str::from_utf8(value).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_compared_without_case_and_brackets_are_removed() {
        let head = b"WARC/1.0\r\nWARC-type: Response\r\nwarc-target-uri: <http://a/>\r\nCONTENT-LENGTH: 7\r\n\r\n";
        let record = parse(head, 5).unwrap();
        assert_eq!((record.kind, record.url.as_deref()), (RecordType::Response, Some("http://a/")));
        assert_eq!((record.length, record.offset, record.cut), (Some(7), 5, false));
    }

    #[test]
    fn of_repeated_fields_the_first_counts() {
        let head = b"WARC/1.0\r\nWARC-Type: response\r\nWARC-Type: request\r\nWARC-Target-URI:\r\nWARC-Target-URI: http://a/\r\n\
            WARC-Target-URI: http://b/\r\nWARC-Date: 2024\r\nWARC-Date: 2025\r\nWARC-Record-ID: <urn:1>\r\nWARC-Record-ID: <urn:2>\r\n\
            Content-Type: text/html\r\nContent-Type: text/plain\r\nContent-Length: 7\r\nContent-Length: 9\r\n\r\n";
        let record = parse(head, 0).unwrap();
        assert_eq!((record.kind, record.url.as_deref()), (RecordType::Response, Some("http://a/")));
        assert_eq!((record.date.as_deref(), record.entry.id.as_deref()), (Some("2024"), Some("urn:1")));
        assert_eq!((&record.content_type[..], record.length), (&b"text/html"[..], Some(7)));
        let names = names(head);
        assert_eq!((names.kind.as_str(), names.id.as_deref()), ("response", Some("urn:1")));
        assert_eq!(names.url.as_deref(), Some("http://a/"));
    }

    #[test]
    fn segments_and_concurrent_records_are_named() {
        let head = b"WARC/1.1\r\nWARC-Type: continuation\r\nWARC-Segment-Number: 2\r\nWARC-Segment-Origin-ID: <urn:1>\r\n\
            WARC-Segment-Total-Length: 1902\r\nWARC-Concurrent-To: <urn:2>\r\nWARC-Concurrent-To: <urn:3>\r\nContent-Length: 1\r\n\r\n";
        let record = parse(head, 0).unwrap();
        let segment = RecordSegment { number: 2, origin: Some("urn:1".into()), total: Some(1902) };
        assert_eq!((record.kind, record.segment.as_deref()), (RecordType::Continuation, Some(&segment)));
        assert_eq!(record.concurrent_to, [hash("urn:2"), hash("urn:3"), 0, 0]);
        assert_eq!(names(head).named, ["urn:1", "urn:2", "urn:3"]);
    }

    #[test]
    fn bytes_of_a_url_stay_what_they_are() {
        let head = b"WARC/1.0\r\nWARC-Type: revisit\r\nWARC-Target-URI: <http://a/caf\xe9>\r\n\
            WARC-Refers-To-Target-URI: http://a/caf\xe8\r\nContent-Length: 0\r\n\r\n";
        let record = parse(head, 0).unwrap();
        assert_eq!(
            (record.url.as_deref(), record.refers.as_ref().and_then(|refers| refers.url.as_deref())),
            (Some("http://a/caf%E9"), Some("http://a/caf%E8"))
        );
        assert_eq!(names(head).url.as_deref(), Some("http://a/caf%E9"));
    }

    #[test]
    fn versions_are_lines_of_their_own() {
        for line in ["WARC/1.0", "WARC/1.1\r", "WARC/1.1 \r\n", "WARC/0.17\n", "WARC/0.18", "WARC/0.1", "WARC/1.12"] {
            assert!(is_version(line.as_bytes()), "{line}");
        }
        for line in
            ["WARC/", "WARC/1", "WARC/1.", "WARC/1.x", "WARC/1.0 is", "WARC/2.0", "WARC/0.9", "WARC/0.", "warc/1.0"]
        {
            assert!(!is_version(line.as_bytes()), "{line}");
        }
    }

    #[test]
    fn invalid_lengths_are_errors_with_the_url() {
        for length in ["-5", "", "7 bytes", "99999999999999999999999", "2000000000000000000"] {
            let head = format!("WARC/1.1\nWARC-Type: response\nWARC-Target-URI: u\nContent-Length: {length}\n\n");
            let (url, reason) = parse(head.as_bytes(), 0).unwrap_err();
            assert_eq!((url.as_deref(), reason), (Some("u"), "warc: Content-Length is no length"), "{length}");
        }
    }
}
