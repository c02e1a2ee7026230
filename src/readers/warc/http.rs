//! An HTTP response, as crawlers store it, to the page it holds.
//!
//! The status line is needed, its reason is not. Of a repeated field the first one counts. The body is the rest of the block:
//! HTTP's own Content-Length is wrong too often to be asked. Bytes with the signature of an image, an archive or the like are
//! no page whatever their label says; bytes without a label are a page if they begin as HTML does.

use crate::config::Reading;
use crate::readers::item::{Body, Skip};
use crate::readers::sniff;

/// The page that a response or a resource holds.
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
    /// Whether the body was cut at the limit, or ended early.
    pub cut: bool,
}

/// Why there is no page.
#[derive(Debug, PartialEq)]
pub enum NoPage {
    /// It is not wanted.
    Skip(Skip),
    /// The status is another than 200.
    Status(u16),
    /// It is broken: a short stable phrase.
    Broken(&'static str),
}

/// Reads an HTTP response. `cut` says that the block is known to be incomplete.
///
/// # Errors
/// When it holds no page.
pub fn response(block: &[u8], cut: bool, reading: &Reading) -> Result<HttpContent, NoPage> {
    let head_end = super::header::end_of_head(block).unwrap_or(block.len());
    let (head, body) = block.split_at(head_end);
    let (line, fields) = super::header::split(head);
    let status = status(line)?;
    if status != 200 {
        return Err(NoPage::Status(status));
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
        wanted(media_type, reading)?;
    }

    let limit = reading.page_limit();
    let chunked = transfer.is_some_and(|value| value.to_ascii_lowercase().ends_with(b"chunked"));
    // The stored body may be longer than a page may: it is cut after decoding.
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

/// Makes the page of a body that is as the server meant it.
///
/// # Errors
/// When it holds no page.
pub fn content(
    status: u16,
    media_type: String,
    charset: Option<String>,
    mut bytes: Vec<u8>,
    cut: bool,
    reading: &Reading,
) -> Result<HttpContent, NoPage> {
    wanted(&media_type, reading)?;
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

fn wanted(media_type: &str, reading: &Reading) -> Result<(), NoPage> {
    match reading.media_types.iter().any(|allowed| allowed.eq_ignore_ascii_case(media_type)) {
        true => Ok(()),
        false => Err(NoPage::Skip(Skip::MediaType)),
    }
}

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
    use crate::config::Bytes;

    fn read(block: &str) -> Result<HttpContent, NoPage> {
        response(block.as_bytes(), false, &Reading::default())
    }

    #[test]
    fn a_bare_status_and_a_head_of_any_shape_will_do() {
        for block in
            ["HTTP/1.1 200\r\ncontent-TYPE:text/html\r\n\r\n<p>", "HTTP/2 200 OK\nContent-Type: text/html\n\n<p>"]
        {
            assert_eq!(read(block).unwrap().body, Body::Html(b"<p>".to_vec()));
        }
        let headless = read("HTTP/1.1 200 OK\r\nContent-Type: text/html").unwrap();
        assert_eq!(headless.body, Body::Html(Vec::new()));
    }

    #[test]
    fn what_is_no_page_says_why() {
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
