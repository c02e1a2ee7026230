//! The ends of the parts of a page in which no tags are read: comments, raw text, scripts (html5,
//! section 13.2.5).
//!
//! Each function searches the input once from `at` and returns a position; if there is no end, that
//! of the end of the input. The scanner continues from there, so no byte is searched twice and the
//! whole scan is linear.

use super::attributes::ends_name;
use super::foreign;
use memchr::{memchr, memchr_iter, memchr2, memmem};

/// The position after a comment whose `<!--` ends at `at`: after `-->` or `--!>`, or at once for
/// `<!-->` and `<!--->`.
pub(in crate::text) fn comment_end(bytes: &[u8], at: usize) -> usize {
    let rest = &bytes[at..];
    memchr_iter(b'>', rest)
        .find(|&n| {
            let comment = &rest[..n];
            matches!(comment, b"" | b"-") || comment.ends_with(b"--") || comment.ends_with(b"--!")
        })
        .map_or(bytes.len(), |n| at + n + 1)
}

/// The position after the next `>`, the end of doctypes and of everything that html5 calls a bogus
/// comment.
pub(in crate::text) fn bogus_comment_end(bytes: &[u8], at: usize) -> usize {
    memchr(b'>', &bytes[at..]).map_or(bytes.len(), |n| at + n + 1)
}

/// The position of the end tag, in upper or lower case, that closes the raw text (or text without
/// tags) of the element `name`.
pub(in crate::text) fn raw_text_end(bytes: &[u8], at: usize, name: &[u8]) -> usize {
    memchr_iter(b'<', &bytes[at..])
        .map(|n| at + n)
        .find(|&n| is_tag(&bytes[n + 1..], b"/", name))
        .unwrap_or(bytes.len())
}

/// The position of the end tag of a script. Inside `<!--` ... `-->` a `<script>` makes the next
/// `</script>` part of the script (the double-escaped state). Old pages use this: they hide scripts
/// from old browsers in comments, and their scripts write scripts.
pub(in crate::text) fn script_end(bytes: &[u8], mut at: usize) -> usize {
    #[derive(PartialEq)]
    enum State {
        Plain,
        Escaped,
        DoubleEscaped,
    }
    let mut state = State::Plain;
    loop {
        let next = match state {
            State::Plain => memchr(b'<', &bytes[at..]),
            _ => memchr2(b'<', b'-', &bytes[at..]),
        };
        let Some(n) = next else { return bytes.len() };
        at += n;
        let rest = &bytes[at + 1..];
        if bytes[at] == b'-' {
            if rest.starts_with(b"->") {
                state = State::Plain;
            }
        } else if is_tag(rest, b"/", b"script") {
            if state != State::DoubleEscaped {
                return at;
            }
            state = State::Escaped;
        } else if state == State::Escaped && is_tag(rest, b"", b"script") {
            state = State::DoubleEscaped;
        } else if state == State::Plain && rest.starts_with(b"!--") {
            state = State::Escaped;
            at += 1; // the two dashes may already be those of "-->"
        }
        at += 1;
    }
}

/// The position of the tag that ends the element `name`, a `style` or `script` in `svg` or `math`:
/// its end tag, that of the `svg` or `math`, or a tag that ends these. What is in a comment or a
/// CDATA section is not a tag.
pub(in crate::text) fn foreign_end(bytes: &[u8], mut at: usize, name: &[u8]) -> usize {
    while let Some(n) = memchr(b'<', &bytes[at..]) {
        let start = at + n;
        let rest = &bytes[start + 1..];
        at = if rest.starts_with(b"!--") {
            comment_end(bytes, start + 4)
        } else if rest.starts_with(b"![CDATA[") {
            memmem::find(&bytes[start + 9..], b"]]>").map_or(bytes.len(), |n| start + 9 + n + 3)
        } else {
            let (is_end, tag) = rest.strip_prefix(b"/").map_or((false, rest), |tag| (true, tag));
            // Looks no further than the longest name, so that no byte is searched many times.
            let length = tag.iter().take(foreign::LONGEST + 1).position(|&b| ends_name(b)).unwrap_or_default();
            let of_tag = &tag[..length];
            let is_own = || [name, b"svg", b"math"].iter().any(|name| of_tag.eq_ignore_ascii_case(name));
            if foreign::is_html(of_tag) || is_end && is_own() {
                return start;
            }
            start + 1
        };
    }
    bytes.len()
}

/// Whether `rest`, the bytes after a `<`, begins with `slash` (which may be empty), the name in
/// upper or lower case, and a byte that ends a name.
fn is_tag(rest: &[u8], slash: &[u8], name: &[u8]) -> bool {
    rest.strip_prefix(slash)
        .and_then(|rest| rest.split_at_checked(name.len()))
        .is_some_and(|(start, after)| start.eq_ignore_ascii_case(name) && after.first().is_some_and(|&b| ends_name(b)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The input after the section; the input begins inside the section.
    fn after(input: &str, end: impl Fn(&[u8], usize) -> usize) -> &str {
        &input[end(input.as_bytes(), 0)..]
    }

    #[test]
    fn a_comment_ends_as_html5_says() {
        for (input, expected) in [
            (">x", "x"),
            ("->x", "x"),
            ("-->x", "x"),
            ("--->x", "x"),
            ("--!>x", "x"),
            (" a > b -> c --> x", " x"),
            (" a --!> x", " x"),
            (" -- > -!> --x> x", ""),
            ("-!>", ""),
        ] {
            assert_eq!(after(input, comment_end), expected, "{input}");
        }
    }

    #[test]
    fn raw_text_ends_at_its_own_end_tag_in_any_case() {
        let end = |bytes: &[u8], at| raw_text_end(bytes, at, b"style");
        assert_eq!(after("a </b> </styles> </ style> </STYLE >x", end), "</STYLE >x");
        assert_eq!(after("a </style", end), "");
        assert_eq!(after("</style/>", end), "</style/>");
    }

    #[test]
    fn a_script_within_a_comment_within_a_script_has_its_own_end() {
        for (input, expected) in [
            ("a</script>b", "</script>b"),
            ("<!-- a </script> b", "</script> b"),
            ("<!-- <script> a </script> b </script> c", "</script> c"),
            ("<!-- <script> a --> b </script> c", "</script> c"),
            ("<!--> <script> </script> c", "</script> c"),
            ("<!---> <script> </script> c", "</script> c"),
            ("<!-- <scripts> </script> c", "</script> c"),
            ("<!-- <script> </script> <script> </script> c", ""),
            ("<script> </script> c", "</script> c"),
        ] {
            assert_eq!(after(input, script_end), expected, "{input}");
        }
    }
}
