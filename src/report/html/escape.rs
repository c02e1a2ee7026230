//! Text of others in a page of HTML.

use std::borrow::Cow;

use crate::text::printable;

/// Characters of a text that are shown, at most: titles and URLs can be long.
const SHOWN: usize = 200;
/// The length of a URL that becomes a link, at most, in bytes.
const LINKED: usize = 2000;

/// A text in which nothing is markup, and no character acts: see [`printable`].
///
/// ```
/// assert_eq!(nigh::report::escaped("<b> & \u{202e}'x'"), "&lt;b&gt; &amp; \\u{202e}&#39;x&#39;");
/// ```
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in printable(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// As [`escaped`], without the middle of a long text.
pub(super) fn short(text: &str) -> String {
    escaped(&without_middle(text))
}

/// A text of at most [`SHOWN`] characters, whatever their widths.
fn without_middle(text: &str) -> Cow<'_, str> {
    if text.char_indices().nth(SHOWN).is_none() {
        return Cow::Borrowed(text);
    }
    let head = text.char_indices().nth(SHOWN / 2).map_or(text.len(), |(at, _)| at);
    let tail = text.char_indices().rev().nth(SHOWN / 2 - 2).map_or(0, |(at, _)| at);
    Cow::Owned(format!("{}…{}", &text[..head], &text[tail..]))
}

/// How a page is known: a link, if that is the URL of a web page.
pub(super) fn name(name: &str) -> String {
    let is_url = ["http://", "https://"].iter().any(|scheme| name.starts_with(scheme));
    if is_url && name.len() <= LINKED {
        format!("<a href=\"{}\" rel=\"noopener noreferrer nofollow\">{}</a>", escaped(name), short(name))
    } else {
        short(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_lose_their_middle() {
        let exact = "é".repeat(SHOWN);
        assert_eq!(short(&exact), exact);
        // Marks have no width of their own.
        let marks = format!("a{}b", "\u{301}".repeat(100_000));
        let shown = without_middle(&marks);
        assert_eq!(shown.chars().count(), SHOWN);
        assert!(shown.starts_with("a\u{301}") && shown.ends_with("\u{301}b") && shown.contains('…'));
    }

    #[test]
    fn only_web_pages_are_links() {
        assert_eq!(name("javascript:alert(1)"), "javascript:alert(1)");
        assert_eq!(name("http:x"), "http:x");
        let long = format!("http://one.example/{}", "a".repeat(LINKED));
        assert!(!name(&long).contains("href"));
        let marked = "http://one.example/\"onclick=\"alert(1)";
        let expected = "http://one.example/&quot;onclick=&quot;alert(1)";
        assert!(name(marked).starts_with(&format!("<a href=\"{expected}\" rel")), "{}", name(marked));
    }
}
