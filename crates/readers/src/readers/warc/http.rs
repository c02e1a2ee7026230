//! Turns an HTTP response, as crawlers store it, into the content of a page.
//!
//! The status line is required, its reason phrase is not. Of a repeated field the first counts, but
//! encodings are a list in one field or in several. The body is the rest of the block: HTTP's own
//! Content-Length is wrong too often to be used. Heads of answers before the one that counts are
//! passed over: interim ones (RFC 9110, 15.2), and that of a proxy to CONNECT. Bytes with the
//! signature of an image, an archive or another binary format are not a page, whatever their label
//! says. Bytes without a label, or with one that is none, are a page if they begin like HTML
//! (WHATWG, *MIME Sniffing*, section 7).

use std::borrow::Cow;

use crate::readers::fields;
use crate::readers::item::{Body, RedirectAnswer, Skip};
use crate::readers::sniff;
use crate::reading::Reading;

/// The content of a response or a resource that is a page.
#[derive(Debug, PartialEq)]
pub struct HttpContent {
    /// HTTP status.
    pub status: u16,
    /// Media type, lower case, without parameters.
    pub media_type: String,
    /// Charset label of the Content-Type field.
    pub charset: Option<String>,
    /// The decoded body.
    pub body: Body,
    /// Whether the body was cut at the limit, or its end is missing.
    pub cut: bool,
}

/// Why a record is not a page.
#[derive(Debug, PartialEq)]
pub enum NoPage {
    /// It is intact but not wanted.
    Skip(Skip),
    /// Its status is not 200.
    Status(u16),
    /// Its status says that the page is elsewhere.
    Redirect(RedirectAnswer),
    /// It is malformed, with the reason of a reject.
    Broken(&'static str),
}

/// Reads an HTTP response. `cut` means that the block is known to be incomplete.
///
/// # Errors
/// If the response is not a page.
pub fn response(block: &[u8], cut: bool, reading: &Reading) -> Result<HttpContent, NoPage> {
    let (head, body) = last_head(block);
    let (line, fields) = super::header::split(head);
    let status = status(line)?;
    if status != 200 {
        return Err(without_page(status, fields));
    }
    let (mut label, mut transfer, mut encoding, mut options) = (None, None, None, None);
    for (name, value) in fields {
        match name.len() {
            12 if name.eq_ignore_ascii_case(b"content-type") => _ = label.get_or_insert(value),
            16 if name.eq_ignore_ascii_case(b"content-encoding") => list(&mut encoding, value),
            17 if name.eq_ignore_ascii_case(b"transfer-encoding") => list(&mut transfer, value),
            22 if name.eq_ignore_ascii_case(b"x-content-type-options") => _ = options.get_or_insert(value),
            _ => {}
        }
    }
    let (media_type, charset) = label.map_or((String::new(), None), |value| super::header::content_type(&value));
    let is_sniffed = sniff::is_unknown(&media_type);
    if !is_sniffed {
        check_media_type(&media_type, reading)?;
    } else if options.is_some_and(|value| is_nosniff(&value)) {
        return Err(NoPage::Skip(Skip::MediaType));
    }

    let limit = reading.page_limit();
    let mut encodings = encoding.as_deref().map_or(Cow::Borrowed(""), String::from_utf8_lossy);
    let is_chunked = match transfer {
        None => false,
        Some(value) if value.eq_ignore_ascii_case(b"chunked") => true,
        Some(value) => {
            // Those of the transfer come after those of the content. Crawlers undo them and leave
            // the field.
            let is_packing = |name: &String| matches!(name.as_str(), "gzip" | "x-gzip" | "deflate");
            names(&value).filter(is_packing).for_each(|name| encodings.to_mut().extend([",", &name]));
            names(&value).any(|name| name == "chunked")
        }
    };
    // The stored body may be longer than the limit of a page: it is cut after decoding.
    let dechunked = if is_chunked { super::encodings::dechunk(body, body.len()) } else { None };
    let (body, cut) = match dechunked {
        Some(decoded) => (decoded.bytes, cut || decoded.cut),
        None => (body.to_vec(), cut),
    };
    let (bytes, cut) = if encodings.is_empty() {
        (body, cut)
    } else {
        let decoded = super::encodings::decode(body, &encodings, limit, cut).map_err(NoPage::Broken)?;
        (decoded.bytes, decoded.cut)
    };
    content(status, media_type, charset, bytes, cut, reading)
}

/// What an answer with another status than 200 is: a redirect, if its fields say where to.
pub(super) fn without_page(status: u16, mut fields: super::header::HeaderFields<'_>) -> NoPage {
    let is_redirect = matches!(status, 301 | 302 | 307 | 308);
    let location = fields.find(|(name, _)| is_redirect && name.eq_ignore_ascii_case(b"location"));
    location.map_or(NoPage::Status(status), |(_, location)| {
        let location = fields::url(&location).into_owned();
        NoPage::Redirect(RedirectAnswer { status, location })
    })
}

/// Splits a response into the head of the answer that counts, and its body.
pub(super) fn last_head(block: &[u8]) -> (&[u8], &[u8]) {
    let mut rest = block;
    loop {
        let (head, body) = rest.split_at(super::header::end_of_head(rest).unwrap_or(rest.len()));
        let start = body.iter().position(|byte| !matches!(byte, b'\r' | b'\n')).unwrap_or(body.len());
        if !begins_response(&body[start..]) || !is_passed_over(head) {
            return (head, body);
        }
        rest = &body[start..];
    }
}

/// Whether a head, which another one follows, is an interim one, or that of a proxy that has made a
/// connection.
fn is_passed_over(head: &[u8]) -> bool {
    let (line, mut fields) = super::header::split(head);
    match status(line) {
        // After 101 follows another protocol.
        Ok(status) if status != 101 && (100..200).contains(&status) => true,
        Ok(200) => {
            let is_established = line.to_ascii_lowercase().ends_with(b" established");
            is_established || !fields.any(|(name, _)| name.eq_ignore_ascii_case(b"content-type"))
        }
        _ => false,
    }
}

/// Whether bytes begin with a status line.
pub fn begins_response(bytes: &[u8]) -> bool {
    let line = bytes[..bytes.len().min(1024)].split(|byte| *byte == b'\n').next().unwrap_or_default();
    status(line).is_ok() && line.get(5).is_some_and(u8::is_ascii_digit)
}

/// Whether bytes begin with the name of the protocol.
pub(super) fn begins_http(bytes: &[u8]) -> bool {
    bytes.get(..5).is_some_and(|start| start.eq_ignore_ascii_case(b"HTTP/"))
}

/// Adds a value to the list of a field that can be repeated.
fn list<'a>(slot: &mut Option<Cow<'a, [u8]>>, value: Cow<'a, [u8]>) {
    match slot {
        None => *slot = Some(value),
        Some(list) => {
            list.to_mut().push(b',');
            list.to_mut().extend_from_slice(&value);
        }
    }
}

/// The names in the list of a field, lower case and without quotes.
fn names(value: &[u8]) -> impl Iterator<Item = String> {
    value
        .split(|byte| *byte == b',')
        .map(|name| String::from_utf8_lossy(name).trim().trim_matches('"').to_ascii_lowercase())
}

/// Whether the field X-Content-Type-Options forbids to look at the bytes (WHATWG, *Fetch*,
/// "determine nosniff").
fn is_nosniff(value: &[u8]) -> bool {
    names(value).next().is_some_and(|first| first == "nosniff")
}

/// Makes the content of a page from a decoded body, with the type that its label says, or that it
/// begins like if there is none.
///
/// # Errors
/// If the media type is not wanted, or the body is binary.
pub fn content(
    status: u16,
    media_type: String,
    charset: Option<String>,
    mut bytes: Vec<u8>,
    cut: bool,
    reading: &Reading,
) -> Result<HttpContent, NoPage> {
    let media_type = match sniff::is_unknown(&media_type) {
        false => media_type,
        true if sniff::is_html(&bytes) => "text/html".to_owned(),
        true => return Err(NoPage::Skip(Skip::MediaType)),
    };
    check_media_type(&media_type, reading)?;
    if sniff::is_binary(&bytes) {
        return Err(NoPage::Skip(Skip::MediaType));
    }
    let cut = cut || bytes.len() > reading.page_limit();
    bytes.truncate(reading.page_limit());
    let body = match media_type.as_str() {
        "text/html" | "application/xhtml+xml" => Body::Html(bytes),
        _ => Body::Plain(bytes),
    };
    Ok(HttpContent { status, media_type, charset, body, cut })
}

/// Checks that the job reads pages of this media type.
pub(super) fn check_media_type(media_type: &str, reading: &Reading) -> Result<(), NoPage> {
    let is_allowed = reading.media_types.iter().any(|allowed| allowed.eq_ignore_ascii_case(media_type));
    if is_allowed { Ok(()) } else { Err(NoPage::Skip(Skip::MediaType)) }
}

/// Parses the status code of a status line.
pub(super) fn status(line: &[u8]) -> Result<u16, NoPage> {
    if !begins_http(line) {
        return Err(NoPage::Broken("http: no status line"));
    }
    let code = line.split(|byte| byte.is_ascii_whitespace()).filter(|word| !word.is_empty()).nth(1);
    let code = code.and_then(|code| std::str::from_utf8(code).ok()).filter(|code| code.len() == 3);
    code.and_then(|code| code.parse().ok()).ok_or(NoPage::Broken("http: no status code"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Bytes;

    fn read(block: &str) -> Result<HttpContent, NoPage> {
        response(block.as_bytes(), false, &Reading::default())
    }

    #[test]
    fn a_status_without_reason_and_an_odd_head_are_accepted() {
        for block in
            ["HTTP/1.1 200\r\ncontent-TYPE:text/html\r\n\r\n<p>", "HTTP/2 200 OK\nContent-Type: text/html\n\n<p>"]
        {
            assert_eq!(read(block).unwrap().body, Body::Html(b"<p>".to_vec()));
        }
        let headless = read("HTTP/1.1 200 OK\r\nContent-Type: text/html").unwrap();
        assert_eq!(headless.body, Body::Html(Vec::new()));
    }

    #[test]
    fn a_response_that_is_not_a_page_says_why() {
        assert_eq!(read("<html>"), Err(NoPage::Broken("http: no status line")));
        assert_eq!(read(""), Err(NoPage::Broken("http: no status line")));
        assert_eq!(read("HTTP/1.1 abc\r\n\r\n"), Err(NoPage::Broken("http: no status code")));
        assert_eq!(read("HTTP/1.1 99999999 X\r\n\r\n"), Err(NoPage::Broken("http: no status code")));
        assert_eq!(read("HTTP/1.1 404 X\r\n\r\n<p>"), Err(NoPage::Status(404)));
        assert_eq!(read("HTTP/1.1 200 OK\r\nContent-Type: image/png\r\n\r\n<p>"), Err(NoPage::Skip(Skip::MediaType)));
        assert_eq!(
            read("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n%PDF-1.4"),
            Err(NoPage::Skip(Skip::MediaType))
        );
        assert_eq!(read("HTTP/1.1 200 OK\r\n\r\nno label"), Err(NoPage::Skip(Skip::MediaType)));
        assert_eq!(read("HTTP/1.1 200 OK\r\n\r\n<html>").unwrap().media_type, "text/html");
    }

    #[test]
    fn heads_before_the_answer_are_passed_over() {
        let page = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>words";
        for before in [
            "HTTP/1.1 100 Continue\r\n\r\n",
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n",
            "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\nContent-Type: text/css\r\n\r\n",
            "HTTP/2 103\n\n",
            "HTTP/1.1 100 Continue\r\n\r\n\r\n",
            "HTTP/1.0 200 Connection established\r\n\r\n",
            "HTTP/1.1 200 Connection Established\r\nProxy-Agent: x\r\nContent-Type: text/plain\r\n\r\n",
            "HTTP/1.1 200 OK\r\nVia: proxy\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n",
        ] {
            let content = read(&format!("{before}{page}")).unwrap_or_else(|why| panic!("{before}: {why:?}"));
            assert_eq!((content.status, content.body), (200, Body::Html(b"<p>words".to_vec())), "{before}");
            assert_eq!(read(&format!("{before}HTTP/1.1 404 No\r\n\r\n<p>")), Err(NoPage::Status(404)), "{before}");
        }
        assert_eq!(read("HTTP/1.1 100 Continue\r\n\r\n"), Err(NoPage::Status(100)));
        assert_eq!(read(&format!("HTTP/1.1 101 Switching\r\n\r\n{page}")), Err(NoPage::Status(101)));
        assert_eq!(read(&format!("HTTP/1.1 404 No\r\n\r\n{page}")), Err(NoPage::Status(404)));
        // A page about HTTP is a page.
        let about = "HTTP/1.1 404 Not Found\r\n\r\n<p>";
        let content = read(&format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n{about}")).unwrap();
        assert_eq!(content.body, Body::Html(about.as_bytes().to_vec()));
    }

    #[test]
    fn labels_that_are_none_leave_it_to_the_first_bytes() {
        let with_type = |label: &str, body: &str| {
            read(&format!("HTTP/1.1 200 OK\r\nContent-Type: {label}\r\n\r\n{body}"))
                .map(|content| (content.media_type, content.charset.unwrap_or_default()))
        };
        let html = |charset: &str| Ok(("text/html".to_owned(), charset.to_owned()));
        for label in ["\"text/html\"", "unknown/unknown", "application/unknown", "*/*", "charset", "html", "text/", ""]
        {
            assert_eq!(with_type(label, "<!DOCTYPE html><p>"), html(""), "{label}");
            for other in ["words", "{\"a\": 1}", "<svg>", "%PDF-1.4"] {
                assert_eq!(with_type(label, other), Err(NoPage::Skip(Skip::MediaType)), "{label} {other}");
            }
        }
        assert_eq!(with_type("charset=utf-8", "\n <html>"), html("utf-8"));
        assert_eq!(with_type("\"text/html; charset=koi8-r\"", "<html>"), html("koi8-r"));
        assert_eq!(with_type("application/json", "<html>"), Err(NoPage::Skip(Skip::MediaType)));
        let nosniff = "HTTP/1.1 200 OK\r\nX-Content-Type-Options: NoSniff\r\n\r\n<html>";
        assert_eq!(read(nosniff), Err(NoPage::Skip(Skip::MediaType)));
        let labelled = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nX-Content-Type-Options: nosniff\r\n\r\n<html>";
        assert!(read(labelled).is_ok());
        let resource = content(200, String::new(), None, b"<html>".to_vec(), false, &Reading::default()).unwrap();
        assert_eq!(resource.media_type, "text/html");
    }

    #[test]
    fn encodings_of_content_and_transfer_are_undone_in_all_layers() {
        use std::io::Write as _;
        let gzip = |bytes: &[u8]| {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        };
        let chunked = |bytes: &[u8]| {
            let size = format!("{:x}\r\n", bytes.len());
            [size.as_bytes(), bytes, b"\r\n0\r\n\r\n"].concat()
        };
        let text = b"<p>words and more words".to_vec();
        let (once, twice) = (gzip(&text), gzip(&gzip(&text)));
        let blank = |bytes: &[u8]| [b"\r\n", bytes].concat();
        for (fields, body) in [
            ("Transfer-Encoding: gzip, chunked\r\n", chunked(&once)),
            ("Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n", chunked(&once)),
            ("Transfer-Encoding: gzip, chunked\r\n", once.clone()),
            ("Transfer-Encoding: gzip, chunked\r\n", chunked(&text)),
            ("Transfer-Encoding: gzip, chunked\r\n", text.clone()),
            ("Content-Encoding: gzip\r\nTransfer-Encoding: gzip, chunked\r\n", chunked(&twice)),
            ("Content-Encoding: gzip\r\nTransfer-Encoding: Chunked\r\n", chunked(&once)),
            ("Content-Encoding: gzip\r\nContent-Encoding: gzip\r\n", twice.clone()),
            ("Content-Encoding: gzip, gzip\r\n", twice.clone()),
            ("Content-Encoding: gzip\r\nContent-Encoding: gzip\r\n", once.clone()),
            ("Content-Encoding: gzip\r\n", blank(&once)),
            ("Content-Encoding: gzip\r\n", blank(&blank(&once))),
            ("Transfer-Encoding: chunked\r\n", blank(&chunked(&text))),
            ("Transfer-Encoding: chunked\r\nContent-Encoding: gzip\r\n", blank(&chunked(&once))),
            ("Transfer-Encoding: chunked\r\nContent-Encoding: gzip\r\n", chunked(&blank(&once))),
        ] {
            let head = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n{fields}\r\n");
            let read = response(&[head.as_bytes(), &body].concat(), false, &Reading::default()).unwrap();
            assert_eq!((read.body, read.cut), (Body::Html(text.clone()), false), "{fields}");
        }
    }

    #[test]
    fn a_redirect_has_the_first_location() {
        let answer = |status: u16, fields: &str| read(&format!("HTTP/1.1 {status} X\r\nServer: x\r\n{fields}\r\n<p>"));
        for status in [301, 302, 307, 308] {
            let location = "../a".to_owned();
            let redirect = Err(NoPage::Redirect(RedirectAnswer { status, location }));
            assert_eq!(answer(status, "location:  ../a \r\nLocation: /b\r\n"), redirect);
        }
        assert_eq!(answer(301, ""), Err(NoPage::Status(301)));
        let latin1 = response(b"HTTP/1.1 301 X\r\nLocation: /caf\xe9\r\n\r\n", false, &Reading::default());
        let redirect = RedirectAnswer { status: 301, location: "/caf%E9".to_owned() };
        assert_eq!(latin1, Err(NoPage::Redirect(redirect)));
        // 303 names an answer to something else, and 304 nothing.
        assert_eq!(
            [303, 304, 404].map(|status| answer(status, "Location: /a\r\n")),
            [303, 304, 404].map(|status| Err(NoPage::Status(status)))
        );
    }

    #[test]
    fn allowed_types_other_than_html_stay_bytes() {
        let reading = Reading { media_types: vec!["Text/Plain".into()], ..Reading::default() };
        let block = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=KOI8-R\r\n\r\n\xd3\xcc";
        let content = response(block, false, &reading).unwrap();
        assert_eq!((content.body, content.charset.as_deref()), (Body::Plain(b"\xd3\xcc".to_vec()), Some("koi8-r")));
    }

    #[test]
    fn long_bodies_are_cut_and_say_so() {
        let reading = Reading { max_page_bytes: Bytes(5), ..Reading::default() };
        let content = response(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>words", false, &reading).unwrap();
        assert_eq!((content.body, content.cut), (Body::Html(b"<p>wo".to_vec()), true));
    }
}
