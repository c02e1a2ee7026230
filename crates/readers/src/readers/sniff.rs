//! The kind of content that bytes plainly are, whatever their label says: HTML, text, or a binary
//! format with a signature.

/// A body that begins with one of these tags is HTML (WHATWG, *MIME Sniffing*, section 7.1).
const TAGS: [&[u8]; 18] = [
    b"<!doctype html",
    b"<html",
    b"<head",
    b"<script",
    b"<iframe",
    b"<h1",
    b"<div",
    b"<font",
    b"<table",
    b"<a",
    b"<style",
    b"<title",
    b"<b",
    b"<body",
    b"<br",
    b"<p",
    b"<meta",
    b"<link",
];

/// Signatures of binary formats.
const BINARY: [&[u8]; 21] = [
    b"\x89PNG\r\n\x1a\n",
    b"GIF87a",
    b"GIF89a",
    b"\xff\xd8\xff",
    b"\x1f\x8b\x08",
    b"%PDF-",
    b"PK\x03\x04",
    b"\x28\xb5\x2f\xfd",
    b"7z\xbc\xaf\x27\x1c",
    b"Rar!\x1a\x07",
    b"\x7fELF",
    b"BZh91AY",
    b"wOFF",
    b"wOF2",
    b"OggS\0",
    b"ID3\x03",
    b"ID3\x04",
    b"\xfd7zXZ\0",
    b"SQLite format 3\0",
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
    b"\0\0\x01\0",
];

/// The first bytes of a git-lfs pointer.
const LFS_POINTER: &[u8] = b"version https://git-lfs.github.com/spec/";

/// What a file plainly is instead of an input, and what to do about it, by its first decoded bytes;
/// `None` if it may be an input.
pub fn no_input(first: &[u8]) -> Option<&'static str> {
    if first.starts_with(LFS_POINTER) {
        Some("is a git-lfs pointer, not the file itself: `git lfs pull` fetches the file")
    } else {
        None
    }
}

/// What to do about a file of lines that begins with the mark of UTF-16; `None` if it does not.
pub fn no_lines(first: &[u8]) -> Option<&'static str> {
    let is_wide = first.starts_with(b"\xff\xfe") || first.starts_with(b"\xfe\xff");
    is_wide.then_some("is UTF-16, and lines are read as UTF-8: `iconv -f UTF-16 -t UTF-8` writes them again")
}

/// Whether at most 1 % of the first 1,024 bytes are control characters: then they are text in some
/// charset, not compressed bytes.
pub fn has_few_controls(bytes: &[u8]) -> bool {
    let start = &bytes[..bytes.len().min(1024)];
    let controls = start.iter().filter(|byte| **byte < 0x20 && !matches!(byte, b'\t' | b'\n' | b'\r' | 0x0c)).count();
    controls * 100 <= start.len()
}

/// Whether a media type, without parameters, says nothing of the bytes, so that they decide: there
/// is none, it is not one, or it means any (WHATWG, *MIME Sniffing*, section 7, step 1; what a type
/// is, section 4.4).
pub fn is_unknown(media_type: &str) -> bool {
    let is_token = |part: &str| {
        let is_sign = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        !part.is_empty() && part.bytes().all(is_sign)
    };
    match media_type.split_once('/') {
        Some((kind, subtype)) if is_token(kind) && is_token(subtype) => {
            matches!(media_type, "unknown/unknown" | "application/unknown" | "*/*")
        }
        _ => true,
    }
}

/// Whether the bytes begin like HTML, after white space and a byte order mark.
pub fn is_html(bytes: &[u8]) -> bool {
    let mut start = [0; 512];
    let mut length = 0;
    let wide = bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff");
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let bytes = if wide { &bytes[2..] } else { bytes };
    let begin = bytes.iter().position(|byte| !byte.is_ascii_whitespace() && *byte != 0).unwrap_or(bytes.len());
    for &byte in &bytes[begin..] {
        if length == start.len() {
            break;
        }
        if !(wide && byte == 0) {
            start[length] = byte.to_ascii_lowercase();
            length += 1;
        }
    }
    let start = &start[..length];
    if start.starts_with(b"<!--") || start.starts_with(b"<?xml") && memchr::memmem::find(start, b"<html").is_some() {
        return true;
    }
    TAGS.iter().any(|tag| {
        start.starts_with(tag) && matches!(start.get(tag.len()), Some(b' ' | b'>' | b'\t' | b'\n' | b'\r' | b'/'))
    })
}

/// Whether the bytes begin with the signature of an image, an archive, a font or another binary
/// format.
pub fn is_binary(bytes: &[u8]) -> bool {
    BINARY.iter().any(|signature| bytes.starts_with(signature))
        || bytes.starts_with(b"RIFF") && matches!(bytes.get(8..12), Some(b"WEBP" | b"AVI " | b"WAVE"))
        || bytes.get(4..8) == Some(b"ftyp")
}

/// Whether the bytes plainly are text: HTML, or UTF-8 with at most 2 % of control characters in the
/// first 4,096 bytes.
///
/// The test is for bodies that claim to be encoded. Compressed bytes pass it by chance only, and
/// the chance falls with their length. Text in other charsets fails it, unless it begins like HTML.
pub fn is_text(bytes: &[u8]) -> bool {
    if is_binary(bytes) {
        return false;
    }
    if is_html(bytes) {
        return true;
    }
    let start = &bytes[..bytes.len().min(4096)];
    let controls = start.iter().filter(|&&byte| byte < 0x20 && !byte.is_ascii_whitespace() && byte != 0x1b).count();
    let valid = match std::str::from_utf8(start) {
        Ok(_) => true,
        // The cut at 4,096 bytes may be inside a character.
        Err(error) => error.error_len().is_none() && start.len() < bytes.len(),
    };
    valid && controls * 50 <= start.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn html_is_recognised_by_its_first_bytes() {
        for html in [
            "<!DOCTYPE html><p>",
            " \n<HTML>",
            "\u{feff}<head >",
            "<!-- x",
            "<?xml version='1.0'?><!DOCTYPE html><html>",
            "<p>",
        ] {
            assert!(is_html(html.as_bytes()), "{html}");
        }
        assert!(is_html(b"\xff\xfe<\0h\0t\0m\0l\0>\0"));
        for other in ["", "hello", "<rss><channel>", "{}", "<pre>x", "<?xml version='1.0'?><rss>"] {
            assert!(!is_html(other.as_bytes()), "{other}");
        }
    }

    #[test]
    fn compressed_bytes_are_not_text() {
        assert!(!is_text(b"\x1f\x8b\x08\0\0\0\0\0\0\x03"));
        assert!(!is_text(b"\x0b\x02\x80\x03"));
        assert!(is_text("한국어 문서".as_bytes()));
        assert!(is_text(b"plain words"));
        assert!(is_binary(b"%PDF-1.4\n"));
    }
}
