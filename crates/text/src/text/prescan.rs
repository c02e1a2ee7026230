//! The charset that a page declares, read from its first bytes before they are decoded: html5's
//! prescan (section 13.2.3.2), for `<meta charset>`, `<meta http-equiv=content-type content>` and
//! the XML declaration.

use super::html::attributes::{Attributes, ends_name, is_blank};
use super::html::sections;
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};
use memchr::{memchr, memmem};

/// The number of bytes that the prescan reads. The standard says 1024, but of the 2213 pages of the
/// corpus' week 1 that name a charset 18 do so between 1024 and 2048.
const WINDOW: usize = 2048;

/// Returns the charset that the markup at the start of `body` declares, if it declares a known one.
pub(super) fn prescan(body: &[u8]) -> Option<&'static Encoding> {
    let head = &body[..body.len().min(WINDOW)];
    if head.starts_with(b"<\0?\0x\0") {
        return Some(UTF_16LE);
    }
    if head.starts_with(b"\0<\0?\0x") {
        return Some(UTF_16BE);
    }
    meta(head).or_else(|| xml_declaration(head))
}

/// The charset of the first `<meta>` that declares a known one.
fn meta(head: &[u8]) -> Option<&'static Encoding> {
    let mut at = 0;
    loop {
        at += memchr(b'<', &head[at..])?;
        let rest = &head[at + 1..];
        at = match rest {
            [b'!', b'-', b'-', ..] => sections::comment_end(head, at + 4),
            [b'a'..=b'z' | b'A'..=b'Z', ..] | [b'/', b'a'..=b'z' | b'A'..=b'Z', ..] => {
                let name = at + 1 + usize::from(rest[0] == b'/');
                let name_end = name + head[name..].iter().position(|&b| ends_name(b))?;
                let end = Attributes::new(head, name_end).end()?.position;
                if head[at + 1..name_end].eq_ignore_ascii_case(b"meta")
                    && let Some(encoding) = declared(Attributes::new(head, name_end))
                {
                    return Some(encoding);
                }
                end
            }
            [b'!' | b'/' | b'?', ..] => sections::bogus_comment_end(head, at + 2),
            _ => at + 1,
        };
    }
}

/// The charset that one `<meta>` declares. Of several attributes of one name the first counts.
/// `charset` counts before `content`, which counts only with `http-equiv=content-type`.
fn declared(attributes: Attributes) -> Option<&'static Encoding> {
    let (mut charset, mut content, mut http_equiv) = (None, None, None);
    for (name, value) in attributes {
        let attribute = match name.to_ascii_lowercase().as_slice() {
            b"charset" => &mut charset,
            b"content" => &mut content,
            b"http-equiv" => &mut http_equiv,
            _ => continue,
        };
        attribute.get_or_insert(value);
    }
    let is_content_type = http_equiv.is_some_and(|value| value.eq_ignore_ascii_case(b"content-type"));
    let label = charset.or_else(|| content.filter(|_| is_content_type).and_then(label_in))?;
    encoding_of(label)
}

/// The label in `text/html; charset=label`.
fn label_in(content: &[u8]) -> Option<&[u8]> {
    const CHARSET: &[u8] = b"charset";
    let mut rest = content;
    loop {
        let charset = rest.windows(CHARSET.len()).position(|window| window.eq_ignore_ascii_case(CHARSET))?;
        rest = rest[charset + CHARSET.len()..].trim_ascii_start();
        let Some(label) = rest.strip_prefix(b"=") else {
            continue;
        };
        return match label.trim_ascii_start() {
            [quote @ (b'"' | b'\''), quoted @ ..] => memchr(*quote, quoted).map(|n| &quoted[..n]),
            bare => bare.split(|&b| is_blank(b) || b == b';').next(),
        };
    }
}

/// The label in `<?xml version="1.0" encoding="label"?>` at the start of the body.
fn xml_declaration(head: &[u8]) -> Option<&'static Encoding> {
    let declaration = head.strip_prefix(b"<?xml")?;
    let declaration = &declaration[..memchr(b'>', declaration)?];
    let after = memmem::find(declaration, b"encoding")? + b"encoding".len();
    let value = declaration[after..].trim_ascii_start().strip_prefix(b"=")?;
    let (&quote, quoted) = value.trim_ascii_start().split_first()?;
    if !matches!(quote, b'"' | b'\'') {
        return None;
    }
    encoding_of(&quoted[..memchr(quote, quoted)?])
}

/// The charset of a label. The label itself was read as ASCII, so a label of UTF-16 must be wrong:
/// it means UTF-8.
fn encoding_of(label: &[u8]) -> Option<&'static Encoding> {
    match Encoding::for_label_no_replacement(label)? {
        encoding if encoding == UTF_16LE || encoding == UTF_16BE => Some(UTF_8),
        encoding if encoding.name() == "x-user-defined" => Some(WINDOWS_1252),
        encoding => Some(encoding),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(html: &str) -> Option<&'static str> {
        prescan(html.as_bytes()).map(Encoding::name)
    }

    #[test]
    fn a_meta_declares_a_charset_in_either_form() {
        assert_eq!(name("<html><meta charset=koi8-r>"), Some("KOI8-R"));
        assert_eq!(name("<META\nCharset = ' EUC-JP '/>"), Some("EUC-JP"));
        let http_equiv = "<meta http-equiv=Content-Type content='text/html; charset=big5; x'>";
        assert_eq!(name(http_equiv), Some("Big5"));
        assert_eq!(name("<meta content='charset = \"big5\"' http-equiv=content-type>"), Some("Big5"));
    }

    #[test]
    fn content_without_http_equiv_declares_nothing() {
        assert_eq!(name("<meta name=description content='charset=big5'>"), None);
        assert_eq!(name("<meta http-equiv=content-type content='charset is charset=\"big5'>"), None);
    }

    #[test]
    fn markup_other_than_a_meta_declares_nothing() {
        for html in [
            "<!-- <meta charset=big5> -->",
            "<!-- <meta charset=big5>",
            "<p title='<meta charset=big5>'>",
            "<metal charset=big5>",
            "</meta charset=big5>",
            "<?x <meta charset=big5",
            "<meta charset=big5",
            "charset=big5",
        ] {
            assert_eq!(name(html), None, "{html}");
        }
    }

    #[test]
    fn an_unknown_label_is_ignored() {
        assert_eq!(name("<meta charset=utf-7><meta charset=unknown><meta charset=gbk>"), Some("GBK"));
    }

    #[test]
    fn labels_that_cannot_be_true_are_read_as_the_standard_says() {
        assert_eq!(name("<meta charset=utf-16le>"), Some("UTF-8"));
        assert_eq!(name("<meta charset=x-user-defined>"), Some("windows-1252"));
        assert_eq!(name("<meta charset=iso-8859-1>"), Some("windows-1252"));
    }

    #[test]
    fn an_xml_declaration_counts_after_a_meta() {
        let xml = "<?xml version='1.0' encoding = \"euc-kr\"?><html>";
        assert_eq!(name(xml), Some("EUC-KR"));
        assert_eq!(name(&format!("{xml}<meta charset=utf-8>")), Some("UTF-8"));
        assert_eq!(name(&format!(" {xml}")), None);
        assert_eq!(prescan(b"<\0?\0x\0m\0l\0"), Some(UTF_16LE));
        assert_eq!(prescan(b"\0<\0?\0x\0m\0l"), Some(UTF_16BE));
    }

    #[test]
    fn only_the_first_2048_bytes_are_read() {
        let late = |blanks: usize| format!("{}<meta charset=big5>", " ".repeat(blanks));
        assert_eq!(name(&late(2000)), Some("Big5"));
        assert_eq!(name(&late(2048)), None);
        assert_eq!(name(&late(2040)), None);
    }
}
