//! The records of ARC files, the format of the Internet Archive before WARC (Burner and Kahle, *Arc File Format*, 1996).
//!
//! A record is one line, then as many bytes as the line says, then a line end:
//!
//! ```text
//! http://a.example/ 192.0.2.1 20070301000102 text/html 5310                                   version 1
//! http://a.example/ 192.0.2.1 20070301000102 text/html 200 - - 77 crawl.arc.gz 5310           version 2
//! ```
//!
//! The bytes are an HTTP response. The first record of a file, `filedesc://...`, says the version; it is not needed, because the address
//! and the 14 digits after it are found in either. A record of another scheme (`dns:`) is not a page.

use std::net::IpAddr;

use super::record::{RecordHead, RecordType};
use crate::readers::item::ArchiveEntry;

/// The bytes that [`begins`] looks at.
pub const OPENING: usize = 12;

/// Whether bytes can be the beginning of a record: a scheme and a colon.
pub fn begins(bytes: &[u8]) -> bool {
    let scheme = bytes.iter().take(OPENING).take_while(|byte| byte.is_ascii_alphanumeric()).count();
    scheme >= 3 && bytes[0].is_ascii_alphabetic() && bytes.get(scheme) == Some(&b':')
}

/// Parses the line of the record at `offset`.
///
/// # Errors
/// The URL, if there is one, and the reason of a reject: if the line has no address followed by a date, or does not end in a length
/// below 2^60.
pub fn parse(line: &[u8], offset: u64) -> Result<RecordHead, (Option<String>, &'static str)> {
    let line = String::from_utf8_lossy(line.trim_ascii());
    let fields: Vec<&str> = line.split(' ').collect();
    // Some URLs have blanks.
    let is_date = |field: &str| field.len() == 14 && field.bytes().all(|byte| byte.is_ascii_digit());
    let address = (1..fields.len().saturating_sub(2))
        .find(|&place| fields[place].parse::<IpAddr>().is_ok() && is_date(fields[place + 1]));
    let Some(address) = address else {
        return Err((None, "warc: no record line where a record should begin"));
    };
    let url = fields[..address].join(" ");
    let length = match fields[fields.len() - 1].parse::<u64>() {
        Ok(length) if length < 1 << 60 => length,
        _ => return Err((Some(url), "warc: Content-Length is no length")),
    };
    let is_page = ["http://", "https://"]
        .iter()
        .any(|scheme| url.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme)));
    Ok(RecordHead {
        offset,
        kind: if is_page { RecordType::Response } else { RecordType::Other },
        url: Some(url),
        date: Some(fields[address + 1].to_owned()),
        // Crawlers write 0.0.0.0 for an address that they do not know.
        ip: Some(fields[address].to_owned()).filter(|ip| ip != "0.0.0.0"),
        entry: ArchiveEntry::default(),
        of_url: None,
        of_date: None,
        content_type: Vec::new(),
        cut: false,
        length: Some(length),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_both_versions_are_parsed() {
        for line in [
            "http://a.example/x y 192.0.2.1 20070301000102 text/html 5310\n",
            "http://a.example/x y 192.0.2.1 20070301000102 text/html 200 - - 77 crawl.arc.gz 5310\r\n",
            "http://a.example/x y 192.0.2.1 20070301000102 text/html; charset=utf-8 5310\n",
        ] {
            assert!(begins(line.as_bytes()));
            let head = parse(line.as_bytes(), 7).unwrap();
            assert_eq!((head.kind, head.offset, head.length), (RecordType::Response, 7, Some(5310)));
            assert_eq!(head.url.as_deref(), Some("http://a.example/x y"));
            assert_eq!((head.ip.as_deref(), head.date.as_deref()), (Some("192.0.2.1"), Some("20070301000102")));
        }
        let first = parse(b"filedesc://crawl.arc.gz 0.0.0.0 20070301000102 text/plain 76", 0).unwrap();
        assert_eq!((first.kind, first.ip), (RecordType::Other, None));
        for line in [
            "http://a.example/ text/html 5310",
            "",
            "http://a 192.0.2.1 2007 text/html 5",
            "http://a 192.0.2.1 20070301000102",
        ] {
            assert!(parse(line.as_bytes(), 0).is_err(), "{line}");
        }
        let (url, _) = parse(b"http://a/ 192.0.2.1 20070301000102 text/html -5", 0).unwrap_err();
        assert_eq!(url.as_deref(), Some("http://a/"));
        assert!(!begins(b"<html>") && !begins(b"") && !begins(b"12:"));
    }
}
