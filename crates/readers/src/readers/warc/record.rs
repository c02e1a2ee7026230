//! Parses the head of a WARC record. Its fields are claims: `framing` checks the length.

use crate::readers::item::{ArchiveEntry, RecordNames};

/// The type of a record (`WARC-Type`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RecordType {
    /// An HTTP response.
    Response,
    /// A page without an HTTP head.
    Resource,
    /// A page in another form: the text of WET files.
    Conversion,
    /// A page that is what another one was.
    Revisit,
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
    /// WARC-Target-URI without angle brackets; `None` if missing or empty.
    pub url: Option<String>,
    /// WARC-Date as written.
    pub date: Option<String>,
    /// WARC-IP-Address as written.
    pub ip: Option<String>,
    /// WARC-Record-ID without angle brackets, WARC-Payload-Digest as written, and the length that `framing` finds.
    pub entry: ArchiveEntry,
    /// WARC-Refers-To-Target-URI without angle brackets.
    pub of_url: Option<String>,
    /// WARC-Refers-To-Date as written.
    pub of_date: Option<String>,
    /// Content-Type of the block.
    pub content_type: Vec<u8>,
    /// Whether the block is incomplete: marked WARC-Truncated, or longer than the cap.
    pub cut: bool,
    /// Content-Length in bytes; `None` if missing.
    pub length: Option<u64>,
}

/// Parses the head of the record at `offset`.
///
/// # Errors
/// The URL, if there is one, and the reason of a reject: if the version is unknown, the type is missing, or the length is not a number
/// below 2^60. A missing length is not an error here.
pub fn parse(head: &[u8], offset: u64) -> Result<RecordHead, (Option<String>, &'static str)> {
    let (version, fields) = super::header::split(head);
    let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
    let mut record = RecordHead {
        offset,
        kind: RecordType::Other,
        url: None,
        date: None,
        ip: None,
        entry: ArchiveEntry::default(),
        of_url: None,
        of_date: None,
        content_type: Vec::new(),
        cut: false,
        length: None,
    };
    let mut kind = None;
    let mut length = None;
    for (name, value) in fields {
        match name.len() {
            9 if name.eq_ignore_ascii_case(b"warc-type") => kind = Some(value.to_ascii_lowercase()),
            9 if name.eq_ignore_ascii_case(b"warc-date") => record.date = Some(text(&value)),
            12 if name.eq_ignore_ascii_case(b"content-type") => record.content_type = value.into_owned(),
            14 if name.eq_ignore_ascii_case(b"content-length") => length = Some(text(&value)),
            14 if name.eq_ignore_ascii_case(b"warc-truncated") => record.cut = true,
            15 if name.eq_ignore_ascii_case(b"warc-target-uri") => {
                record.url = name_of(&value);
            }
            14 if name.eq_ignore_ascii_case(b"warc-record-id") => record.entry.id = name_of(&value),
            19 if name.eq_ignore_ascii_case(b"warc-payload-digest") => record.entry.digest = name_of(&value),
            19 if name.eq_ignore_ascii_case(b"warc-refers-to-date") => record.of_date = Some(text(&value)),
            25 if name.eq_ignore_ascii_case(b"warc-refers-to-target-uri") => record.of_url = name_of(&value),
            15 if name.eq_ignore_ascii_case(b"warc-ip-address") => record.ip = Some(text(&value)),
            _ => {}
        }
    }
    if !version.starts_with(b"WARC/1.") && !version.starts_with(b"WARC/0.1") {
        return Err((record.url, "warc: unknown version"));
    }
    record.kind = match kind.as_deref() {
        Some(b"response") => RecordType::Response,
        Some(b"resource") => RecordType::Resource,
        Some(b"conversion") => RecordType::Conversion,
        Some(b"revisit") => RecordType::Revisit,
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
    for (name, value) in super::header::split(head).1 {
        match name.to_ascii_lowercase().as_slice() {
            b"warc-type" => names.kind = String::from_utf8_lossy(&value).to_ascii_lowercase(),
            b"warc-record-id" => names.id = name_of(&value),
            b"warc-target-uri" => names.url = name_of(&value),
            b"warc-concurrent-to" | b"warc-refers-to" => names.named.extend(name_of(&value)),
            _ => {}
        }
    }
    names
}

/// A value without angle brackets, if it is not empty.
fn name_of(value: &[u8]) -> Option<String> {
    let name = value.strip_prefix(b"<").and_then(|name| name.strip_suffix(b">")).unwrap_or(value);
    Some(String::from_utf8_lossy(name.trim_ascii()).into_owned()).filter(|name| !name.is_empty())
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
    fn invalid_lengths_are_errors_with_the_url() {
        for length in ["-5", "", "7 bytes", "99999999999999999999999", "2000000000000000000"] {
            let head = format!("WARC/1.1\nWARC-Type: response\nWARC-Target-URI: u\nContent-Length: {length}\n\n");
            let (url, reason) = parse(head.as_bytes(), 0).unwrap_err();
            assert_eq!((url.as_deref(), reason), (Some("u"), "warc: Content-Length is no length"), "{length}");
        }
    }
}
