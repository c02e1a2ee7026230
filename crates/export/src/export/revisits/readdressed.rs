//! A record as that of a document of another URL, whose revisit names the record: where the record
//! has no document of its own URL, that one was deleted, or a later capture replaced it.

use super::arc_line::{ArcLine, is_arc};
use super::record::record_id;
use crate::export::near_duplicates::warc_date;
use crate::export::verdicts::RevisitingDocument;
use crate::readers::StoredRecord;

/// Fields of the record that describe what was downloaded, lower case.
const KEPT: [&str; 4] = ["warc-type", "warc-warcinfo-id", "content-type", "warc-identified-payload-type"];

/// Those that hold only if the whole block is written.
const KEPT_OF_WHOLE: [&str; 3] = ["warc-block-digest", "warc-payload-digest", "warc-truncated"];

/// The record with the URL of the document; of WARC also with its date and a new id. `None` if the
/// head is none.
pub(in crate::export) fn readdressed(record: &StoredRecord<'_>, document: &RevisitingDocument) -> Option<Vec<u8>> {
    let StoredRecord { head, block, is_whole, .. } = *record;
    let length = block.len().to_string();
    let mut written = Vec::new();
    if is_arc(head) {
        let line = head.strip_prefix(ArcLine::parse(head)?.url.as_bytes())?.trim_ascii_end();
        let before_length = line.iter().rposition(|byte| *byte == b' ')? + 1;
        for part in [document.url.as_bytes(), &line[..before_length], length.as_bytes(), b"\n", block, b"\n"] {
            written.extend_from_slice(part);
        }
        return Some(written);
    }
    let mut add = |name: &str, value: &[u8]| {
        written.extend_from_slice(name.as_bytes());
        written.extend_from_slice(value);
        written.extend_from_slice(b"\r\n");
    };
    let mut lines = head.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    add("", lines.next().filter(|version| version.starts_with(b"WARC/"))?);
    let mut is_kept = false;
    for line in lines.take_while(|line| !line.is_empty()) {
        // A line that begins with a blank continues the field before it.
        if !line.starts_with(b" ") && !line.starts_with(b"\t") {
            let name = line.split(|byte| *byte == b':').next().unwrap_or_default().trim_ascii();
            let name = String::from_utf8_lossy(name).to_ascii_lowercase();
            is_kept = KEPT.contains(&name.as_str()) || is_whole && KEPT_OF_WHOLE.contains(&name.as_str());
        }
        if is_kept {
            add("", line);
        }
    }
    add("WARC-Record-ID: ", readdressed_id(head).as_bytes());
    add("WARC-Target-URI: ", document.url.as_bytes());
    document.fetched.and_then(warc_date).iter().for_each(|date| add("WARC-Date: ", date.as_bytes()));
    if !is_whole {
        add("WARC-Truncated: ", b"length");
    }
    add("Content-Length: ", length.as_bytes());
    add("", b"");
    written.extend_from_slice(block);
    written.extend_from_slice(b"\r\n\r\n");
    Some(written)
}

/// The id that a record with this head gets as that of another document.
pub(in crate::export) fn readdressed_id(head: &[u8]) -> String {
    record_id(&[b"readdressed", head])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_gets_the_url_and_the_date_of_the_document_and_says_nothing_of_its_own() {
        let document =
            |fetched| RevisitingDocument { url: "http://a.example/longer".into(), fetched, media_type: None };
        let made = |head: &[u8], block: &[u8], is_whole: bool| {
            let record = StoredRecord { head, block, is_whole, length: None };
            readdressed(&record, &document(Some(0))).map(|bytes| String::from_utf8(bytes).unwrap())
        };
        let head =
            b"WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:x:1>\r\nWARC-Target-URI: http://a.example/b\r\n\
            WARC-Date: 2024-01-08T01:02:03Z\r\nWARC-Payload-Digest: sha1:\r\n AAAA\r\nContent-Length: 22\r\n\r\n";
        let id = readdressed_id(head);
        let start = "WARC/1.0\r\nWARC-Type: response\r\n";
        let names = format!(
            "WARC-Record-ID: {id}\r\nWARC-Target-URI: http://a.example/longer\r\nWARC-Date: 1970-01-01T00:00:00Z\r\n"
        );
        let whole =
            format!("{start}WARC-Payload-Digest: sha1:\r\n AAAA\r\n{names}Content-Length: 3\r\n\r\nabc\r\n\r\n");
        assert_eq!(made(head, b"abc", true), Some(whole));
        let cut = format!("{start}{names}WARC-Truncated: length\r\nContent-Length: 2\r\n\r\nab\r\n\r\n");
        assert_eq!(made(head, b"ab", false), Some(cut));
        let arc = b"http://a.example/b 192.0.2.1 20070301000102 text/html 5\n";
        let line = "http://a.example/longer 192.0.2.1 20070301000102 text/html 3\nabc\n";
        assert_eq!(made(arc, b"abc", true).as_deref(), Some(line));
        assert_eq!(made(b"no head\r\n\r\n", b"", true), None);
    }
}
