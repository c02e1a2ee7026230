//! Records of ARC files as WARC records: a file with revisits is WARC, which ARC has no records
//! for.
//!
//! An answer becomes a `response`, another record a `resource` of its media type if it has one, and
//! the first one, which describes the file, a `warcinfo`.

use super::arc_line::ArcLine;
use super::digest::base32;
use super::payload::{http_head, sha1};
use super::record::arc_record_id;
use crate::readers::{arc_record, dechunk, split_head};

/// The name of the WARC file that is written for an ARC file.
pub(in crate::export) fn warc_name(name: &str) -> String {
    match name.to_ascii_lowercase().rfind(".arc") {
        Some(at) => format!("{}.warc{}", &name[..at], &name[at + 4..]),
        None => name.to_owned(),
    }
}

/// The WARC record for an ARC record: its line, and its block with the line end after it. `offset`
/// is its place in the file. `None` if the line is none.
pub(in crate::export) fn as_warc(record: &[u8], file: &str, offset: u64) -> Option<Vec<u8>> {
    let line_end = record.iter().position(|byte| *byte == b'\n')? + 1;
    let (line, rest) = record.split_at(line_end);
    let head = arc_record(line, 0).ok()?;
    let ArcLine { url, date, ip, media_type } = ArcLine::parse(line)?;
    let id = arc_record_id(file, offset);
    let file = file.rsplit('/').next().unwrap_or(file);
    let block = rest.get(..usize::try_from(head.length?).ok()?)?;
    let mut fields = vec![("WARC-Record-ID", id)];
    fields.extend(date.map(|date| ("WARC-Date", date)));
    let mut own = Vec::new();
    let (kind, content_type, block) = if url.starts_with("filedesc:") {
        fields.push(("WARC-Filename", warc_name(file)));
        let version = env!("CARGO_PKG_VERSION");
        own.extend_from_slice(format!("software: nigh {version}\r\nformat: WARC File Format 1.0\r\ndescription: made from the ARC file {file}\r\n").as_bytes());
        ("warcinfo", Some("application/warc-fields".to_owned()), own.as_slice())
    } else {
        fields.push(("WARC-Target-URI", url));
        fields.extend(ip.map(|ip| ("WARC-IP-Address", ip)));
        let http = http_head(block);
        let body = &block[http.len()..];
        let is_chunked = |(name, value): (&[u8], std::borrow::Cow<'_, [u8]>)| {
            name.eq_ignore_ascii_case(b"transfer-encoding") && value.to_ascii_lowercase().ends_with(b"chunked")
        };
        if !(split_head(http).1.any(is_chunked) && dechunk(body, body.len()).is_some()) {
            fields.push(("WARC-Payload-Digest", format!("sha1:{}", base32(&sha1(body)))));
        }
        if http.is_empty() {
            // Without a type readers look at the bytes, as they did in the ARC file.
            ("resource", media_type, block)
        } else {
            ("response", Some("application/http; msgtype=response".to_owned()), block)
        }
    };
    fields.extend(content_type.map(|content_type| ("Content-Type", content_type)));
    fields.push(("Content-Length", block.len().to_string()));
    let mut written = format!("WARC/1.0\r\nWARC-Type: {kind}\r\n").into_bytes();
    for (name, value) in fields {
        written.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
    }
    written.extend_from_slice(b"\r\n");
    written.extend_from_slice(block);
    written.extend_from_slice(b"\r\n\r\n");
    Some(written)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_other_records_and_the_first_one_become_records_of_warc() {
        let warc = |line: &str, block: &str| {
            let record = format!("{line} {}\n{block}\n", block.len());
            String::from_utf8(as_warc(record.as_bytes(), "x/old.arc.gz", 7).unwrap()).unwrap()
        };
        let answer = warc("http://a.example/x y 192.0.2.1 20070301000102 text/html", "HTTP/1.0 200 OK\n\nabc");
        let id = arc_record_id("x/old.arc.gz", 7);
        assert_eq!(
            answer,
            format!(
                "WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: {id}\r\nWARC-Date: 2007-03-01T00:01:02Z\r\nWARC-Target-URI: \
                 http://a.example/x y\r\nWARC-IP-Address: 192.0.2.1\r\nWARC-Payload-Digest: sha1:VGMT4NSHA2AWVOR6EVYXQUGCNSONBWE5\r\n\
                 Content-Type: application/http; msgtype=response\r\nContent-Length: 20\r\n\r\nHTTP/1.0 200 OK\n\nabc\r\n\r\n"
            )
        );
        let name = warc("dns:a.example 192.0.2.7 20070301000102 text/dns", "20070301000102\na.example. IN A 192.0.2.1");
        assert!(name.contains("WARC-Type: resource\r\n") && name.contains("Content-Type: text/dns\r\n"), "{name}");
        let first = warc("filedesc://old.arc 0.0.0.0 20070301000102 text/plain", "1 0 X\nURL IP-address\n");
        assert!(
            first.contains("WARC-Type: warcinfo\r\n") && first.contains("WARC-Filename: old.warc.gz\r\n"),
            "{first}"
        );
        assert!(as_warc(b"no line\n", "x", 0).is_none());
        // Fewer bytes than the line says.
        assert!(as_warc(b"http://a.example/ 192.0.2.1 20070301000102 text/html 9\nabc", "x", 0).is_none());
    }

    #[test]
    fn a_line_without_a_date_or_with_another_one_is_a_record_of_its_media_type() {
        for (line, date, media_type) in [
            ("192.0.2.1 - text/html 200 - - 0 a.arc", None, Some("text/html")),
            ("- - text/html", None, Some("text/html")),
            (
                "192.0.2.1 20000823 text/html; charset=utf-8",
                Some("2000-08-23T00:00:00Z"),
                Some("text/html; charset=utf-8"),
            ),
            ("192.0.2.1 3a5b7c9d text/html", None, Some("text/html")),
            ("192.0.2.1 20000823054100123 -", Some("2000-08-23T05:41:00Z"), None),
        ] {
            let record = format!("http://a.example/x {line} 7\n<p>text\n");
            let written = as_warc(record.as_bytes(), "x", 0).map(|record| String::from_utf8(record).unwrap());
            let written = written.unwrap_or_else(|| panic!("{line}"));
            let value = |name: &str| written.lines().find_map(|line| line.strip_prefix(name));
            assert_eq!((value("WARC-Date: "), value("Content-Type: ")), (date, media_type), "{written}");
            assert!(
                written.contains("WARC-Type: resource\r\n") && written.ends_with("\r\n\r\n<p>text\r\n\r\n"),
                "{written}"
            );
        }
    }

    #[test]
    fn a_chunked_answer_gets_no_digest() {
        let block = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
        let record = format!("http://a.example/ 192.0.2.1 20070301000102 text/html {}\n{block}\n", block.len());
        let written = String::from_utf8(as_warc(record.as_bytes(), "x", 0).unwrap()).unwrap();
        assert!(!written.contains("Digest") && written.ends_with("0\r\n\r\n\r\n\r\n"), "{written}");
    }
}
