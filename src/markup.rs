//! Text of others within markup.

use crate::text::printable;

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
