//! Header fields of WARC and HTTP.
//!
//! Lines may end in LF alone, a line that begins with a blank continues the line before, and a line
//! without a colon is skipped. Names are returned as written: callers compare them without case.
//! Values are bytes, because crawls have header values in every charset.

use std::borrow::Cow;

use memchr::{memchr, memchr_iter};

/// Returns the index after the empty line that ends a head; `None` if there is no such line.
pub fn end_of_head(bytes: &[u8]) -> Option<usize> {
    let mut line = 0;
    for newline in memchr_iter(b'\n', bytes) {
        if matches!(&bytes[line..newline], b"" | b"\r") {
            return Some(newline + 1);
        }
        line = newline + 1;
    }
    None
}

/// Iterates over the fields of a head, name and value, after its first line.
pub struct HeaderFields<'a> {
    rest: &'a [u8],
}

/// Splits a head into its first line and its fields.
pub fn split(head: &[u8]) -> (&[u8], HeaderFields<'_>) {
    let (first, rest) = cut_line(head);
    (first, HeaderFields { rest })
}

impl<'a> Iterator for HeaderFields<'a> {
    type Item = (&'a [u8], Cow<'a, [u8]>);

    fn next(&mut self) -> Option<Self::Item> {
        while !self.rest.is_empty() {
            let (line, rest) = cut_line(self.rest);
            self.rest = rest;
            if line.is_empty() {
                return None;
            }
            let Some(colon) = memchr(b':', line) else {
                continue;
            };
            let name = line[..colon].trim_ascii();
            let mut value = Cow::Borrowed(line[colon + 1..].trim_ascii());
            while matches!(self.rest.first(), Some(b' ' | b'\t')) {
                let (more, rest) = cut_line(self.rest);
                self.rest = rest;
                let more = more.trim_ascii();
                if !value.is_empty() && !more.is_empty() {
                    value.to_mut().push(b' ');
                }
                value.to_mut().extend_from_slice(more);
            }
            return Some((name, value));
        }
        None
    }
}

/// Splits bytes after the first line; returns that line without its end, and the rest.
fn cut_line(bytes: &[u8]) -> (&[u8], &[u8]) {
    let (line, rest) = match memchr(b'\n', bytes) {
        Some(newline) => (&bytes[..newline], &bytes[newline + 1..]),
        None => (bytes, &bytes[bytes.len()..]),
    };
    (line.strip_suffix(b"\r").unwrap_or(line), rest)
}

/// Returns the media type (lower case, without parameters) and the charset label of a Content-Type
/// value.
pub fn content_type(value: &[u8]) -> (String, Option<String>) {
    let value = String::from_utf8_lossy(value);
    let media = value.split([';', ',', ' ', '\t']).next().unwrap_or_default().trim().to_ascii_lowercase();
    let lower = value.to_ascii_lowercase();
    let charset = lower.match_indices("charset").find_map(|(start, word)| {
        let label = lower[start + word.len()..].trim_start().strip_prefix('=')?;
        // In crawls there are doubled equals signs, and quotes that only open or only close.
        let label = label.trim_start_matches(['=', ' ', '"', '\'']);
        let label = label.split([';', ',', ' ', '"', '\'', '\t']).next().unwrap_or_default();
        (!label.is_empty()).then(|| label.to_owned())
    });
    (media, charset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_may_be_folded_odd_or_without_colon() {
        let head = b"WARC/1.0\r\nwarc-TYPE :response\nno colon here\r\nX: a\r\n  b\r\n\tc\r\n\r\nbody: no";
        let (first, fields) = split(head);
        assert_eq!(first, b"WARC/1.0");
        let fields: Vec<_> = fields.map(|(name, value)| (name.to_vec(), value.into_owned())).collect();
        assert_eq!(fields, [(b"warc-TYPE".to_vec(), b"response".to_vec()), (b"X".to_vec(), b"a b c".to_vec())]);
        assert_eq!(end_of_head(head), Some(head.len() - 8));
        assert_eq!(end_of_head(b"a: b\n\nrest"), Some(6));
        assert_eq!(end_of_head(b"a: b\r\n"), None);
    }

    #[test]
    fn content_types_are_read_as_servers_write_them() {
        let read = |value: &str| content_type(value.as_bytes());
        assert_eq!(read("Text/HTML; charset=UTF-8"), ("text/html".into(), Some("utf-8".into())));
        assert_eq!(read("text/html;;; charset==utf-8\""), ("text/html".into(), Some("utf-8".into())));
        assert_eq!(read("text/html;charset=\"EUC-KR\" ; x=y"), ("text/html".into(), Some("euc-kr".into())));
        assert_eq!(read("text/html, text/html"), ("text/html".into(), None));
        assert_eq!(read(""), (String::new(), None));
    }
}
