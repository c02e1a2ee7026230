//! The records of ARC files, the format of the Internet Archive before WARC (Burner and Kahle, *Arc
//! File Format*, 1996).
//!
//! A record is one line, then as many bytes as the line says, then a line end:
//!
//! ```text
//! http://a.example/ 192.0.2.1 20070301000102 text/html 5310                                   version 1
//! http://a.example/ 192.0.2.1 20070301000102 text/html 200 - - 77 crawl.arc.gz 5310           version 2
//! ```
//!
//! The bytes are an HTTP response, or without a head what the media type says: servers of HTTP/0.9
//! and of other protocols send none. The first record of a file, `filedesc://...`, says the
//! version; it is not needed, because the length is the last field of either, and the address and
//! the date after it are found by what they are. Old files have dates of other lengths than 14
//! digits, a number or a dash for an address, and both in another order: [`parse`] takes a line
//! where a record must begin if one of them is known, or if it has as many fields as a version has.
//! Where it searches after damage, [`is_record_line`] asks for both.

use std::net::IpAddr;

use super::record::{RecordHead, RecordType};
use crate::readers::fields;

/// The bytes that [`begins`] looks at.
pub const OPENING: usize = 12;

/// The number of fields in a line of version 1, and of version 2.
const FIELDS: [usize; 2] = [5, 10];

/// The beginnings of media types.
const MEDIA: [&[u8]; 5] = [b"text/", b"image/", b"application/", b"audio/", b"video/"];

/// Whether bytes can be the beginning of a record: a scheme and a colon.
pub fn begins(bytes: &[u8]) -> bool {
    let scheme = bytes.iter().take(OPENING).take_while(|byte| byte.is_ascii_alphanumeric()).count();
    scheme >= 3 && bytes[0].is_ascii_alphabetic() && bytes.get(scheme) == Some(&b':')
}

/// Whether a line plainly is that of a record: it has an address followed by a date, and ends in a
/// length.
pub fn is_record_line(line: &[u8]) -> bool {
    let fields: Vec<&[u8]> = line.trim_ascii().split(|byte| *byte == b' ').collect();
    let has_pair = places_of_pair(&fields, is_digits).is_some();
    begins(line) && has_pair && length_of(fields[fields.len() - 1]).is_some()
}

/// Parses the line of the record at `offset`.
///
/// # Errors
/// The URL, if there is one, and the reason of a reject: if the line has no address and no date
/// where a record has them, or does not end in a length below 2^60.
pub fn parse(line: &[u8], offset: u64) -> Result<RecordHead, (Option<String>, &'static str)> {
    let fields: Vec<&[u8]> = line.trim_ascii().split(|byte| *byte == b' ').collect();
    let Some(FieldPlaces { url_end, address, date }) = places(&fields) else {
        return Err((None, "warc: no record line where a record should begin"));
    };
    let url = fields::url(&fields[..url_end].join(&b' ')).into_owned();
    let Some(length) = length_of(fields[fields.len() - 1]) else {
        return Err((Some(url), "warc: Content-Length is no length"));
    };
    let is_description = url.get(..9).is_some_and(|start| start.eq_ignore_ascii_case("filedesc:"));
    let text = |place: usize| String::from_utf8_lossy(fields[place]).into_owned();
    Ok(RecordHead {
        kind: if is_description { RecordType::Other } else { RecordType::Response },
        url: Some(url),
        date: date
            .filter(|date| fields[*date] != b"-")
            .map(|date| fourteen(fields[date]).unwrap_or_else(|| text(date))),
        // Crawlers write 0.0.0.0 for an address that they do not know.
        ip: address.map(text).filter(|ip| ip != "0.0.0.0"),
        content_type: date.map_or_else(Vec::new, |date| media_type(&fields, date + 1)),
        length: Some(length),
        ..RecordHead::at(offset)
    })
}

/// The media type in a line, of which version 1 can have several words, from a field on; empty if
/// that is none.
fn media_type(fields: &[&[u8]], from: usize) -> Vec<u8> {
    let end = if fields.len() == FIELDS[1] { from + 1 } else { fields.len() - 1 };
    let words = fields.get(from..end).unwrap_or_default();
    let is_type = words.first().is_some_and(|first| first.contains(&b'/'));
    if is_type { words.join(&b' ') } else { Vec::new() }
}

/// Where the fields of a line are.
struct FieldPlaces {
    /// The first field after the URL.
    url_end: usize,
    /// That of an address.
    address: Option<usize>,
    /// That of a date, or of what is in its place.
    date: Option<usize>,
}

/// Finds the fields of a line. Some URLs have blanks, and so have media types.
fn places(fields: &[&[u8]]) -> Option<FieldPlaces> {
    let pair = places_of_pair(fields, |date| date.len() == 14 && is_digits(date));
    if let Some(address) = pair.or_else(|| places_of_pair(fields, |date| fourteen(date).is_some())) {
        // A media type before them is in another order, and not a part of the URL.
        let is_type = |field: &[u8]| MEDIA.iter().any(|media| field.starts_with(media));
        let url_end = if address == 2 && fields.len() == FIELDS[0] && is_type(fields[1]) { 1 } else { address };
        return Some(FieldPlaces { url_end, address: Some(address), date: Some(address + 1) });
    }
    let is_standard = FIELDS.contains(&fields.len());
    let before_length = 1..fields.len().saturating_sub(1);
    let address = before_length.clone().find(|&place| is_address(fields[place]));
    let date = before_length.clone().find(|&place| is_date(fields[place]));
    let url_end = match (address, date) {
        (_, Some(_)) | (Some(_), _) if is_standard => 1,
        // In the other order.
        (Some(address), Some(date)) => address.min(date),
        // The field before the date is what there is instead of an address.
        (None, Some(date)) if date > 1 => date - 1,
        (None, None) if is_standard && fields[1..3] == [b"-", b"-"] => {
            return Some(FieldPlaces { url_end: 1, address: None, date: Some(2) });
        }
        _ => return None,
    };
    let date = date.or_else(|| address.map(|address| address + 1).filter(|date| before_length.contains(date)));
    Some(FieldPlaces { url_end, address, date })
}

/// The first place of an address that a date follows, with at least a length behind.
fn places_of_pair(fields: &[&[u8]], is_date: impl Fn(&[u8]) -> bool) -> Option<usize> {
    (1..fields.len().saturating_sub(2)).find(|&place| is_address(fields[place]) && is_date(fields[place + 1]))
}

fn is_address(field: &[u8]) -> bool {
    std::str::from_utf8(field).is_ok_and(|field| field.parse::<IpAddr>().is_ok())
}

/// Whether a field is 8 to 18 digits.
fn is_digits(field: &[u8]) -> bool {
    (8..=18).contains(&field.len()) && field.iter().all(u8::is_ascii_digit)
}

/// Whether a field is a date, wherever it is: digits that begin with a year.
fn is_date(field: &[u8]) -> bool {
    is_digits(field) && (field.starts_with(b"19") || field.starts_with(b"20"))
}

/// The 14 digits of a date that has at least 8: cut, or with zeros for the parts of the time that
/// it has not.
fn fourteen(field: &[u8]) -> Option<String> {
    let digits = field.iter().take_while(|byte| byte.is_ascii_digit()).count().min(14);
    if digits < 8 {
        return None;
    }
    let mut date = String::from_utf8_lossy(&field[..digits]).into_owned();
    date.extend(std::iter::repeat_n('0', 14 - digits));
    Some(date)
}

fn length_of(field: &[u8]) -> Option<u64> {
    std::str::from_utf8(field).ok()?.parse().ok().filter(|length| *length < 1 << 60)
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
        for line in
            ["http://a.example/ text/html 5310", "", "a: b c d 5", "http://a 192.0.2.1 20070301000102", "http://a/ 5"]
        {
            assert!(parse(line.as_bytes(), 0).is_err(), "{line}");
            assert!(!is_record_line(line.as_bytes()), "{line}");
        }
        let (url, _) = parse(b"http://a/ 192.0.2.1 20070301000102 text/html -5", 0).unwrap_err();
        assert_eq!(url.as_deref(), Some("http://a/"));
        assert!(!begins(b"<html>") && !begins(b"") && !begins(b"12:"));
    }

    /// The URL, address and date of a line.
    fn read(line: &[u8]) -> (String, Option<String>, Option<String>) {
        let head = parse(line, 0).unwrap_or_else(|error| panic!("{}: {error:?}", String::from_utf8_lossy(line)));
        assert_eq!(head.length, Some(5310));
        (head.url.unwrap(), head.ip, head.date)
    }

    #[test]
    fn dates_are_padded_or_cut_to_fourteen_digits() {
        for (date, digits) in [
            ("20000823", "20000823000000"),
            ("200008230", "20000823000000"),
            ("2000082305", "20000823050000"),
            ("200008230541", "20000823054100"),
            ("2000082305411", "20000823054110"),
            ("20000823054100", "20000823054100"),
            ("200008230541001", "20000823054100"),
            ("2000082305410012", "20000823054100"),
            ("200008230541001234", "20000823054100"),
            ("20000823054100text", "20000823054100"),
            ("20000823,", "20000823000000"),
        ] {
            for rest in ["text/html 5310", "text/html 200 - - 77 crawl.arc.gz 5310", "text/html; charset=x 5310"] {
                let line = format!("http://a.example/x 192.0.2.1 {date} {rest}");
                let expected = ("http://a.example/x".to_owned(), Some("192.0.2.1".to_owned()), Some(digits.to_owned()));
                assert_eq!(read(line.as_bytes()), expected, "{line}");
                assert_eq!(is_record_line(line.as_bytes()), date.bytes().all(|byte| byte.is_ascii_digit()), "{line}");
            }
        }
    }

    #[test]
    fn lines_without_address_or_date_or_in_another_order_are_records() {
        let (url, ip, date) =
            ("http://a.example/x".to_owned(), Some("192.0.2.1".to_owned()), "20070301000102".to_owned());
        for (line, ip, date) in [
            ("http://a.example/x - 20070301000102 text/html 5310", None, Some(date.clone())),
            ("http://a.example/x 1234567890 20070301000102 text/html 5310", None, Some(date.clone())),
            (
                "http://a.example/x 999.1.1.1 20070301000102 text/html 200 - - 77 crawl.arc.gz 5310",
                None,
                Some(date.clone()),
            ),
            ("http://a.example/x 192.0.2.1 3a5b7c9d text/html 5310", ip.clone(), Some("3a5b7c9d".to_owned())),
            ("http://a.example/x 192.0.2.1 - text/html 200 - - 77 crawl.arc.gz 5310", ip.clone(), None),
            ("http://a.example/x 20070301000102 192.0.2.1 text/html 5310", ip.clone(), Some(date.clone())),
            ("http://a.example/x 192.0.2.1 text/html 20070301000102 5310", ip.clone(), Some(date.clone())),
            ("http://a.example/x text/html 192.0.2.1 20070301000102 5310", ip.clone(), Some(date.clone())),
            ("http://a.example/x - - text/html 5310", None, None),
        ] {
            assert_eq!(read(line.as_bytes()), (url.clone(), ip, date), "{line}");
        }
        let dashed = parse(b"http://a.example/x - - text/html 5310", 0).unwrap();
        assert_eq!(dashed.content_type, b"text/html");
        let dashed = parse(b"filedesc:// - - - 76", 0).unwrap();
        assert_eq!((dashed.kind, dashed.ip, dashed.date), (RecordType::Other, None, None));
        let latin1 = parse(b"http://a.example/caf\xe9 192.0.2.1 20070301000102 text/html 5310", 0).unwrap();
        assert_eq!(latin1.url.as_deref(), Some("http://a.example/caf%E9"));
        let dns = parse(b"dns:a.example 192.0.2.1 20070301000102 text/dns 50", 0).unwrap();
        assert_eq!((dns.kind, dns.url.as_deref()), (RecordType::Response, Some("dns:a.example")));
    }
}
