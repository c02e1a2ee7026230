//! Character references: `&eacute;`, `&#233;` and `&#xE9;` to `é`, as html5 resolves them (section
//! 13.2.5.72).
//!
//! The names are the 2231 of the standard; 106 old ones need no `;` and are then matched by the
//! longest prefix (`&notit` is `¬it`). A reference is resolved once: its characters are text, not
//! markup.

use entities::ENTITIES;
use memchr::memchr;
use std::sync::LazyLock;

/// The context of a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReferenceIn {
    /// In text.
    Text,
    /// In the value of an attribute. Here an old name without `;` is not a reference if `=` or an
    /// alphanumeric follows: `?a=1&copy=2` and `?a=1&copying` are left as they are.
    Attribute,
}

/// Resolves the reference at the start of `source`, which begins with `&`: appends its characters
/// to `out` and returns its length in bytes. If there is no reference, appends nothing and returns
/// 0.
///
/// ```
/// # use nigh_text::text::html::references::{ReferenceIn, append};
/// let mut text = Vec::new();
/// assert_eq!(append(b"&eacute;t&eacute;", ReferenceIn::Text, &mut text), 8);
/// assert_eq!(append(b"&unknown;", ReferenceIn::Text, &mut text), 0);
/// assert_eq!(text, "é".as_bytes());
/// ```
pub fn append(source: &[u8], place: ReferenceIn, out: &mut Vec<u8>) -> usize {
    match source.get(1) {
        Some(b'#') => numeric(source, out),
        Some(byte) if byte.is_ascii_alphanumeric() => named(source, place, out),
        _ => 0,
    }
}

/// Appends `source` to `out` with all its references resolved.
///
/// ```
/// # use nigh_text::text::html::references::{ReferenceIn, append_all};
/// let mut href = Vec::new();
/// append_all(b"search?q=1&amp;copy=2&copy=3", ReferenceIn::Attribute, &mut href);
/// assert_eq!(href, b"search?q=1&copy=2&copy=3");
/// ```
pub fn append_all(source: &[u8], place: ReferenceIn, out: &mut Vec<u8>) {
    let mut rest = source;
    while let Some(n) = memchr(b'&', rest) {
        out.extend_from_slice(&rest[..n]);
        rest = &rest[n..];
        let mut length = append(rest, place, out);
        if length == 0 {
            out.push(b'&');
            length = 1;
        }
        rest = &rest[length..];
    }
    out.extend_from_slice(rest);
}

/// Resolves a reference by number, as [`append`] does.
fn numeric(bytes: &[u8], out: &mut Vec<u8>) -> usize {
    let (radix, start) = match bytes.get(2) {
        Some(b'x' | b'X') => (16, 3),
        _ => (10, 2),
    };
    let mut end = start;
    let mut code: u32 = 0;
    while let Some(digit) = bytes.get(end).and_then(|&b| char::from(b).to_digit(radix)) {
        code = code.saturating_mul(radix).saturating_add(digit);
        end += 1;
    }
    if end == start {
        return 0;
    }
    out.extend_from_slice(character(code).encode_utf8(&mut [0; 4]).as_bytes());
    end + usize::from(bytes.get(end) == Some(&b';'))
}

/// The character of a number. Pages wrote windows-1252 bytes as numbers, so 0x80..=0x9F are read as
/// that charset; zero, surrogates and numbers beyond Unicode are U+FFFD.
fn character(code: u32) -> char {
    match u8::try_from(code) {
        Ok(0) => char::REPLACEMENT_CHARACTER,
        Ok(byte @ 0x80..=0x9F) => {
            // The standard's table of 27 numbers is that charset; the five bytes that the charset
            // leaves undefined stay the control characters of their numbers.
            let byte = [byte];
            let (decoded, _) = encoding_rs::WINDOWS_1252.decode_without_bom_handling(&byte);
            decoded.chars().next().unwrap_or(char::REPLACEMENT_CHARACTER)
        }
        _ => char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER),
    }
}

/// The length of `CounterClockwiseContourIntegral`.
const LONGEST_NAME: usize = 31;
/// The length of `Aacute`, the longest of the names that need no `;`.
const LONGEST_OLD_NAME: usize = 6;
/// The length of `lt`.
const SHORTEST_NAME: usize = 2;

/// Resolves a reference by name, as [`append`] does.
fn named(source: &[u8], place: ReferenceIn, out: &mut Vec<u8>) -> usize {
    // Two in five references of the corpus are this one.
    if source.starts_with(b"&nbsp;") {
        out.extend_from_slice("\u{a0}".as_bytes());
        return 6;
    }
    let bytes = &source[1..];
    let run = bytes.iter().take(LONGEST_NAME + 1).take_while(|b| b.is_ascii_alphanumeric()).count();
    if bytes.get(run) == Some(&b';')
        && let Some(characters) = lookup(&bytes[..=run])
    {
        out.extend_from_slice(characters.as_bytes());
        return run + 2;
    }
    for length in (SHORTEST_NAME..=run.min(LONGEST_OLD_NAME)).rev() {
        if let Some(characters) = lookup(&bytes[..length]) {
            let next = bytes.get(length).copied().unwrap_or(b' ');
            if place == ReferenceIn::Attribute && (next == b'=' || next.is_ascii_alphanumeric()) {
                return 0;
            }
            out.extend_from_slice(characters.as_bytes());
            return length + 1;
        }
    }
    0
}

/// The characters of a name. The name is without `&`, and with its `;` unless it is an old one.
fn lookup(name: &[u8]) -> Option<&'static str> {
    /// The names in byte order, without `&`.
    static NAMES: LazyLock<Vec<(&[u8], &str)>> = LazyLock::new(|| {
        let mut names: Vec<_> =
            ENTITIES.iter().map(|e| (e.entity.trim_start_matches('&').as_bytes(), e.characters)).collect();
        names.sort_unstable();
        names
    });
    // Five names make up nine of ten references on real pages.
    match name {
        b"nbsp;" => return Some("\u{a0}"),
        b"amp;" => return Some("&"),
        b"lt;" => return Some("<"),
        b"gt;" => return Some(">"),
        b"quot;" => return Some("\""),
        _ => {}
    }
    let index = NAMES.binary_search_by_key(&name, |&(known, _)| known).ok()?;
    Some(NAMES[index].1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(source: &str) -> String {
        let mut out = Vec::new();
        append_all(source.as_bytes(), ReferenceIn::Text, &mut out);
        String::from_utf8(out).unwrap()
    }

    fn value(source: &str) -> String {
        let mut out = Vec::new();
        append_all(source.as_bytes(), ReferenceIn::Attribute, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn every_name_of_the_table_is_resolved() {
        for entity in &ENTITIES {
            assert_eq!(text(entity.entity), entity.characters);
            assert!(entity.entity.len() <= 1 + LONGEST_NAME + 1);
            assert!(entity.entity.ends_with(';') || entity.entity.len() <= 1 + LONGEST_OLD_NAME);
        }
    }

    #[test]
    fn a_name_may_stand_for_two_characters_and_case_matters() {
        assert_eq!(text("&acE; &Eacute;&eacute; &AMP; &Amp;"), "∾̳ Éé & &Amp;");
    }

    #[test]
    fn an_old_name_without_semicolon_is_the_longest_prefix() {
        assert_eq!(text("&notit; &notin; &ampamp; &copy2 &eacutes"), "¬it; ∉ &amp; ©2 és");
        assert_eq!(text("&mdash &hellip. &unknown; &a &"), "&mdash &hellip. &unknown; &a &");
    }

    #[test]
    fn in_a_value_an_old_name_must_not_run_on() {
        assert_eq!(value("?a=1&copy=2&lang=en&not1&reg"), "?a=1&copy=2&lang=en&not1®");
        assert_eq!(value("?a&amp;b&amp=c&eacute;d"), "?a&b&amp=céd");
    }

    #[test]
    fn numbers_are_decimal_or_hexadecimal() {
        assert_eq!(text("&#233; &#xE9; &#XE9x &#0233;&#x1F600;"), "é é éx é😀");
        assert_eq!(text("&#; &#x; &#xg &#a; &#-1;"), "&#; &#x; &#xg &#a; &#-1;");
    }

    #[test]
    fn numbers_of_no_character_become_the_replacement_character() {
        for source in ["&#0;", "&#xD800;", "&#xDFFF", "&#x110000;", "&#99999999999999999999;"] {
            assert_eq!(text(source), "\u{fffd}", "{source}");
        }
    }

    #[test]
    fn numbers_from_128_to_159_mean_windows_1252() {
        assert_eq!(text("&#128;&#x92;&#151;&#159;&#129;&#160;"), "€’—Ÿ\u{81}\u{a0}");
    }

    #[test]
    fn the_characters_of_a_reference_are_not_resolved_again() {
        assert_eq!(text("&amp;lt; &#38;amp;"), "&lt; &amp;");
    }
}
