//! Text of others in a page of HTML.

use std::borrow::Cow;

use crate::markup::{Html, escaped};
use crate::text::printable;

/// Characters of a title or a URL that are shown, at most.
const SHOWN: usize = 200;
/// Characters of a line of a report that are shown, at most.
const LINE: usize = 1000;
/// The length of a URL that becomes a link, at most, in bytes of HTML.
const LINKED: usize = 500;

/// A title or a URL, without its middle if it is long.
pub(super) fn short(text: &str) -> Cow<'_, str> {
    without_middle(text, SHOWN)
}

/// A line of a report, without its middle if it is long.
pub(super) fn line(text: &str) -> Cow<'_, str> {
    without_middle(text, LINE)
}

/// A text of at most `most` characters, whatever their widths.
pub(crate) fn without_middle(text: &str, most: usize) -> Cow<'_, str> {
    if text.char_indices().nth(most).is_none() {
        return Cow::Borrowed(text);
    }
    let head = text.char_indices().nth(most / 2).map_or(text.len(), |(at, _)| at);
    let tail = text.char_indices().rev().nth(most / 2 - 2).map_or(0, |(at, _)| at);
    Cow::Owned(format!("{}…{}", &text[..head], &text[tail..]))
}

/// Whether a name is the URL of a web page as it is, and not the place of a row in a file.
pub(crate) fn is_web_address(name: &str) -> bool {
    let is_url = ["http://", "https://"].iter().any(|scheme| name.starts_with(scheme));
    is_url && !name.contains(|c: char| c.is_whitespace() || c == '\\') && printable(name) == name
}

/// How a page is known: a link, if that is the URL of a web page.
pub(super) fn name(name: &str) -> Html {
    let mut html = Html::default();
    let is_link = name.len() <= LINKED && is_web_address(name) && escaped(name).len() <= LINKED;
    if is_link {
        html.own("<a href=\"").text(name).own("\" rel=\"noopener noreferrer nofollow\">").text(short(name)).own("</a>");
    } else {
        html.text(short(name));
    }
    html
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
        let shown = without_middle(&marks, SHOWN);
        assert_eq!(shown.chars().count(), SHOWN);
        assert!(shown.starts_with("a\u{301}") && shown.ends_with("\u{301}b") && shown.contains('…'));
    }

    #[test]
    fn only_web_pages_are_links() {
        let name = |text: &str| name(text).into_text();
        assert_eq!(name("javascript:alert(1)"), "javascript:alert(1)");
        assert_eq!(name("http:x"), "http:x");
        let quotes = format!("http://one.example/{}", "\"".repeat(100));
        for text in ["http://one.example/ at 12", "http://one.example\\.evil.example/", "http://a/\u{202e}", &quotes] {
            assert!(!name(text).contains("href"), "{text}");
        }
        let long = format!("http://one.example/{}", "a".repeat(LINKED));
        assert!(!name(&long).contains("href"));
        let marked = "http://one.example/\"onclick=\"alert(1)";
        let expected = "http://one.example/&quot;onclick=&quot;alert(1)";
        assert!(name(marked).starts_with(&format!("<a href=\"{expected}\" rel")), "{}", name(marked));
    }
}
