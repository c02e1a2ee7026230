//! The attributes of one tag, by the rules of html5's tokenizer (section 13.2.5).
//!
//! A quote opens a value only where a value begins: directly after `=` and blanks. Elsewhere it is
//! an ordinary byte, so `<p title=a"b>` ends at the first `>`. If the input ends inside a tag, the
//! tag does not exist.

use memchr::memchr;

/// Whether a byte separates names and values inside a tag.
pub(in crate::text) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b'\x0c')
}

/// Whether a byte ends the name of a tag.
pub(in crate::text) fn ends_name(byte: u8) -> bool {
    is_blank(byte) || byte == b'/' || byte == b'>'
}

/// The end of a tag.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::text) struct TagEnd {
    /// The position after its `>`.
    pub(in crate::text) position: usize,
    /// Whether a slash stands right before the `>`, as in `<path/>`.
    pub(in crate::text) self_closing: bool,
}

/// An iterator over the attributes of a tag: name and raw value, references unresolved.
pub(in crate::text) struct Attributes<'a> {
    bytes: &'a [u8],
    at: usize,
    self_closing: bool,
}

impl<'a> Attributes<'a> {
    /// Starts at `at`, the position after the name of the tag.
    pub(in crate::text) fn new(bytes: &'a [u8], at: usize) -> Self {
        Attributes { bytes, at, self_closing: false }
    }

    /// Skips the remaining attributes and returns the end of the tag. `None` if the input ends
    /// before the tag does: then the tag does not exist, nor do the attributes returned before.
    pub(in crate::text) fn end(mut self) -> Option<TagEnd> {
        self.by_ref().for_each(drop);
        (self.at < self.bytes.len()).then_some(TagEnd { position: self.at + 1, self_closing: self.self_closing })
    }

    /// Skips bytes up to the first with this property.
    fn skip_to(&mut self, is_end: impl Fn(u8) -> bool) {
        let rest = &self.bytes[self.at..];
        self.at += rest.iter().position(|&b| is_end(b)).unwrap_or(rest.len());
    }

    /// The value after `=`; `None` if the input ends inside quotes.
    fn value(&mut self) -> Option<&'a [u8]> {
        self.skip_to(|b| !is_blank(b));
        let start = self.at;
        match self.bytes.get(start) {
            Some(&quote @ (b'"' | b'\'')) => {
                let quoted = &self.bytes[start + 1..];
                let length = memchr(quote, quoted);
                self.at = length.map_or(self.bytes.len(), |n| start + 1 + n + 1);
                length.map(|n| &quoted[..n])
            }
            _ => {
                self.skip_to(|b| is_blank(b) || b == b'>');
                Some(&self.bytes[start..self.at])
            }
        }
    }
}

impl<'a> Iterator for Attributes<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match *self.bytes.get(self.at)? {
                b'>' => return None,
                b'/' => self.self_closing = self.bytes.get(self.at + 1) == Some(&b'>'),
                byte if is_blank(byte) => {}
                _ => break,
            }
            self.at += 1;
        }
        let start = self.at;
        self.at += 1; // a first byte '=' belongs to the name
        self.skip_to(|b| ends_name(b) || b == b'=');
        let name = &self.bytes[start..self.at];
        self.skip_to(|b| !is_blank(b));
        if self.bytes.get(self.at) != Some(&b'=') {
            return Some((name, b""));
        }
        self.at += 1;
        Some((name, self.value()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The attributes of a tag, and the position after it.
    fn walked(tag: &str) -> (String, Option<usize>) {
        let list: Vec<String> = Attributes::new(tag.as_bytes(), 0)
            .map(|(name, value)| {
                let [name, value] = [name, value].map(String::from_utf8_lossy);
                format!("{name}={value}")
            })
            .collect();
        let end = Attributes::new(tag.as_bytes(), 0).end();
        (list.join("|"), end.map(|end| end.position))
    }

    #[test]
    fn values_may_be_quoted_bare_or_missing() {
        assert_eq!(walked(" a=\"1 >\" b='\"' c=d/ e f = 3>x"), ("a=1 >|b=\"|c=d/|e=|f=3".into(), Some(28)));
    }

    #[test]
    fn a_quote_opens_a_value_only_where_a_value_begins() {
        assert_eq!(walked(" a=b\"c>\">"), ("a=b\"c".into(), Some(7)));
        assert_eq!(walked(" \"a>\">"), ("\"a=".into(), Some(4)));
        assert_eq!(walked(" =\">\">"), ("=\"=".into(), Some(4)));
        assert_eq!(walked(" a==\">\">"), ("a==\"".into(), Some(6)));
        assert_eq!(walked(" a= >"), ("a=".into(), Some(5)));
    }

    #[test]
    fn a_tag_that_the_input_cuts_short_has_no_end() {
        for tag in ["", " ", " a", " a=", " a=b", " a='>", " /", " a=\"b\" '"] {
            assert_eq!(walked(tag).1, None, "{tag}");
        }
    }

    #[test]
    fn a_tag_closes_itself_by_a_slash_right_before_its_end() {
        for (tag, expected) in [("/>", true), (" a=b />", true), (" / >", false), (" a=b/>", false), (">", false)] {
            let end = Attributes::new(tag.as_bytes(), 0).end();
            assert_eq!(end.map(|end| end.self_closing), Some(expected), "{tag}");
        }
    }
}
