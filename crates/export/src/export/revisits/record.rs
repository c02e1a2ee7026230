//! A WARC record that says: the same payload as that of another record.

use xxhash_rust::xxh3::Xxh3Default;

use super::arc_line::{ArcLine, is_arc};
use super::original::RevisitedRecord;
use super::payload::http_head;

/// The profile of a revisit record whose payload is the same as the other one's (WARC 1.1, section
/// 6.7.2).
const PROFILE: &str = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest";

/// Fields of the response that a revisit record does not keep, lower case: they describe the block,
/// or get another value.
const NOT_KEPT: [&str; 9] = [
    "warc-type",
    "content-length",
    "warc-block-digest",
    "warc-truncated",
    "warc-segment-number",
    "warc-profile",
    "warc-record-id",
    "warc-payload-digest",
    "warc-refers-to",
];

/// The revisit record for a record with this head, whose block begins with an HTTP head or has
/// none: a new record id, and the date, the URL and the HTTP head of the record. `file` and
/// `offset` are its place. `None` if the head is none.
///
/// The payload digest is that of the other record, as written there: replayers look for it as a
/// text.
pub(in crate::export) fn revisit(
    head: &[u8],
    block: &[u8],
    original: &RevisitedRecord,
    file: &str,
    offset: u64,
) -> Option<Vec<u8>> {
    let http = http_head(block);
    let id = revisit_id(head, file, offset);
    let mut written = Vec::new();
    let mut add = |name: &str, value: &[u8]| {
        written.extend_from_slice(name.as_bytes());
        written.extend_from_slice(value);
        written.extend_from_slice(b"\r\n");
    };
    let start = |add: &mut dyn FnMut(&str, &[u8]), version: &[u8]| {
        add("", version);
        add("WARC-Type: ", b"revisit");
        add("WARC-Profile: ", PROFILE.as_bytes());
        add("WARC-Record-ID: ", id.as_bytes());
    };
    if is_arc(head) {
        let line = ArcLine::parse(head)?;
        start(&mut add, b"WARC/1.0");
        line.date.iter().for_each(|date| add("WARC-Date: ", date.as_bytes()));
        add("WARC-Target-URI: ", line.url.as_bytes());
        line.ip.iter().for_each(|ip| add("WARC-IP-Address: ", ip.as_bytes()));
        add("Content-Type: ", b"application/http; msgtype=response");
    } else {
        let mut lines = head.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
        start(&mut add, lines.next().filter(|version| version.starts_with(b"WARC/"))?);
        let mut is_kept = true;
        for line in lines.take_while(|line| !line.is_empty()) {
            // A line that begins with a blank continues the field before it.
            if !line.starts_with(b" ") && !line.starts_with(b"\t") {
                let name = line.split(|byte| *byte == b':').next().unwrap_or_default().trim_ascii();
                let name = String::from_utf8_lossy(name).to_ascii_lowercase();
                is_kept = !NOT_KEPT.contains(&name.as_str()) && !name.starts_with("warc-refers-to-");
            }
            if is_kept {
                add("", line);
            }
        }
    }
    add("WARC-Payload-Digest: ", original.digest.as_bytes());
    original.id.iter().for_each(|id| add("WARC-Refers-To: ", id));
    add("WARC-Refers-To-Target-URI: ", &original.url);
    original.date.iter().for_each(|date| add("WARC-Refers-To-Date: ", date.as_bytes()));
    add("Content-Length: ", http.len().to_string().as_bytes());
    add("", b"");
    written.extend_from_slice(http);
    written.extend_from_slice(b"\r\n\r\n");
    Some(written)
}

/// The id of the revisit record for a record with this head and place.
pub(in crate::export) fn revisit_id(head: &[u8], file: &str, offset: u64) -> String {
    record_id(&[b"revisit", file.as_bytes(), &offset.to_le_bytes(), head])
}

/// The id of the WARC record for the record of ARC at a place.
pub(in crate::export) fn arc_record_id(file: &str, offset: u64) -> String {
    record_id(&[b"arc", file.as_bytes(), &offset.to_le_bytes()])
}

/// The id of a record that nigh makes: a UUID (RFC 9562, version 8) that depends on these bytes
/// alone, so the same export has the same ids.
pub(in crate::export) fn record_id(source: &[&[u8]]) -> String {
    let mut hash = Xxh3Default::new();
    for part in source {
        hash.update(&(part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    let mut bytes = hash.digest128().to_be_bytes();
    bytes[6] = bytes[6] & 0x0f | 0x80;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let digits = super::digest::hexadecimal(&bytes);
    let [a, b, c, d, e] = [0..8, 8..12, 12..16, 16..20, 20..32].map(|part| &digits[part]);
    format!("<urn:uuid:{a}-{b}-{c}-{d}-{e}>")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn original() -> RevisitedRecord {
        RevisitedRecord {
            url: b"http://a.example/caf\xe9".to_vec(),
            date: Some("2024-01-01T00:00:00.5Z".into()),
            id: Some(b"<urn:x:1>".to_vec()),
            digest: "sha1:AAAA".into(),
            is_outside: false,
        }
    }

    #[test]
    fn a_head_of_any_bytes_and_line_ends_gives_a_revisit() {
        let head = b"WARC/1.0\nwarc-type: response\nWARC-Record-ID: <urn:x:2>\nWARC-Refers-To-Date: no\nWARC-Target-URI: http://a.example/b\n\
            X-Name: caf\xe9,\n folded\nWARC-Payload-Digest: sha1:\n aaaa\nContent-Length: 30\n\n";
        let block = b"http/1.1 200 OK\nX: \xff\n\nbody";
        let written = revisit(head, block, &original(), "f", 7).unwrap();
        let id = record_id(&[b"revisit", b"f", &7_u64.to_le_bytes(), head]);
        let wanted = [
            b"WARC/1.0\r\nWARC-Type: revisit\r\nWARC-Profile: http://netpreserve.org/warc/1.1/revisit/identical-payload-digest\r\nWARC-Record-ID: ",
            id.as_bytes(),
            b"\r\nWARC-Target-URI: http://a.example/b\r\nX-Name: caf\xe9,\r\n folded\r\nWARC-Payload-Digest: sha1:AAAA\r\nWARC-Refers-To: \
            <urn:x:1>\r\nWARC-Refers-To-Target-URI: http://a.example/caf\xe9\r\nWARC-Refers-To-Date: 2024-01-01T00:00:00.5Z\r\nContent-Length: \
            22\r\n\r\nhttp/1.1 200 OK\nX: \xff\n\n\r\n\r\n",
        ]
        .concat();
        assert_eq!(String::from_utf8_lossy(&written), String::from_utf8_lossy(&wanted));
        assert_ne!(revisit(head, block, &original(), "f", 8), Some(written));
    }

    #[test]
    fn a_record_without_an_http_head_gives_an_empty_block() {
        let written = revisit(b"WARC/1.1\r\nWARC-Type: resource\r\n\r\n", b"<p>", &original(), "f", 0).unwrap();
        assert!(written.ends_with(b"Content-Length: 0\r\n\r\n\r\n\r\n"));
        assert!(revisit(b"no head\r\n\r\n", b"", &original(), "f", 0).is_none());
        let of_arc = revisit(
            b"http://b.example/ 192.0.2.1 20070301000102 text/html 5\n",
            b"HTTP/1.0 200 OK\r\n\r\n<p>",
            &original(),
            "f",
            0,
        );
        let text = String::from_utf8_lossy(&of_arc.unwrap()).into_owned();
        assert!(
            text.starts_with("WARC/1.0\r\nWARC-Type: revisit\r\n")
                && text.contains("\r\nWARC-Date: 2007-03-01T00:01:02Z\r\n"),
            "{text}"
        );
    }
}
