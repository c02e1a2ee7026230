//! Turns an HTTP response, as crawlers store it, into the content of a page.
//!
//! The status line is required, its reason phrase is not. Of a repeated field the first counts. The body is the rest of the block:
//! HTTP's own Content-Length is wrong too often to be used. Bytes with the signature of an image, an archive or another binary format
//! are not a page, whatever their label says. Bytes without a label are a page if they begin like HTML.

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
    let head_end = super::header::end_of_head(block).unwrap_or(block.len());
    let (head, body) = block.split_at(head_end);
    let (line, mut fields) = super::header::split(head);
    let status = status(line)?;
    if status != 200 {
        let is_redirect = matches!(status, 301 | 302 | 307 | 308);
        let location = fields.find(|(name, _)| is_redirect && name.eq_ignore_ascii_case(b"location"));
        return Err(location.map_or(NoPage::Status(status), |(_, location)| {
            let location = String::from_utf8_lossy(&location).into_owned();
            NoPage::Redirect(RedirectAnswer { status, location })
        }));
    }
    let (mut label, mut transfer, mut encoding) = (None, None, None);
    for (name, value) in fields {
        let slot = match name {
            name if name.eq_ignore_ascii_case(b"content-type") => &mut label,
            name if name.eq_ignore_ascii_case(b"transfer-encoding") => &mut transfer,
            name if name.eq_ignore_ascii_case(b"content-encoding") => &mut encoding,
            _ => continue,
        };
        slot.get_or_insert(value);
    }
    let label = label.map(|value| super::header::content_type(&value)).filter(|(media_type, _)| !media_type.is_empty());
    if let Some((media_type, _)) = &label {
        check_media_type(media_type, reading)?;
    }

    let limit = reading.page_limit();
    let chunked = transfer.is_some_and(|value| value.to_ascii_lowercase().ends_with(b"chunked"));
    // The stored body may be longer than the limit of a page: it is cut after decoding.
    let dechunked = if chunked { super::encodings::dechunk(body, body.len()) } else { None };
    let (body, cut) = match dechunked {
        Some(decoded) => (decoded.bytes, cut || decoded.cut),
        None => (body.to_vec(), cut),
    };
    let (bytes, cut) = match encoding {
        Some(encoding) => {
            let names = String::from_utf8_lossy(&encoding);
            let decoded = super::encodings::decode(body, &names, limit, cut).map_err(NoPage::Broken)?;
            (decoded.bytes, decoded.cut)
        }
        None => (body, cut),
    };
    let (media_type, charset) = match label {
        Some(label) => label,
        None if sniff::is_html(&bytes) => ("text/html".to_owned(), None),
        None => return Err(NoPage::Skip(Skip::MediaType)),
    };
    content(status, media_type, charset, bytes, cut, reading)
}

/// Makes the content of a page from a decoded body.
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
fn check_media_type(media_type: &str, reading: &Reading) -> Result<(), NoPage> {
    let is_allowed = reading.media_types.iter().any(|allowed| allowed.eq_ignore_ascii_case(media_type));
    if is_allowed { Ok(()) } else { Err(NoPage::Skip(Skip::MediaType)) }
}

/// Parses the status code of a status line.
fn status(line: &[u8]) -> Result<u16, NoPage> {
    if !line.get(..5).is_some_and(|start| start.eq_ignore_ascii_case(b"HTTP/")) {
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
    fn a_redirect_has_the_first_location() {
        let answer = |status: u16, fields: &str| read(&format!("HTTP/1.1 {status} X\r\nServer: x\r\n{fields}\r\n<p>"));
        for status in [301, 302, 307, 308] {
            let location = "../a".to_owned();
            let redirect = Err(NoPage::Redirect(RedirectAnswer { status, location }));
            assert_eq!(answer(status, "location:  ../a \r\nLocation: /b\r\n"), redirect);
        }
        assert_eq!(answer(301, ""), Err(NoPage::Status(301)));
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
