//! Text that nigh did not write, made safe for a terminal: characters that act instead of being
//! seen become visible.
//!
//! A page's title, a reason of a failed download, a file name or the message of a peer can contain
//! characters that move the cursor, clear the screen, set the title of the window, or change the
//! order in which a line is read. Tables and JSON keep such text as it is; what goes to a terminal
//! passes through here.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Whether a character acts instead of being seen: control characters (C0, DEL, C1), separators of
/// lines and paragraphs, marks that change the direction of text, and formatting characters without
/// a width.
///
/// The two joiners (U+200C and U+200D) are not among them: words of some scripts, and emoji, need
/// them.
fn is_active(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Writes each active character as `\u{1b}`, with its number in base 16. The result is one line.
///
/// ```
/// use nigh_text::text::printable;
///
/// assert_eq!(printable("\x1b[2J\u{202e}gpj.exe"), r"\u{1b}[2J\u{202e}gpj.exe");
/// assert_eq!(printable("plain – text"), "plain – text");
/// ```
pub fn printable(text: &str) -> Cow<'_, str> {
    escaped(text, is_active, |c, out| {
        let _ = write!(out, "{}", c.escape_unicode());
    })
}

/// As [`printable`], for a text of several lines: ends of lines and tabs stay.
///
/// ```
/// assert_eq!(nigh_text::text::printable_lines("one\r\n\ttwo\n"), "one\\u{d}\n\ttwo\n");
/// ```
pub fn printable_lines(text: &str) -> Cow<'_, str> {
    let is_escaped = |c| is_active(c) && !matches!(c, '\n' | '\t');
    escaped(text, is_escaped, |c, out| {
        let _ = write!(out, "{}", c.escape_unicode());
    })
}

/// Writes each active character of a JSON text as JSON does, `\u202e`. The text means the same to a
/// program.
///
/// ```
/// let json = serde_json::to_string("\x1b\u{202e}\u{e0041}").unwrap();
/// let shown = nigh_text::text::printable_json(&json);
/// assert_eq!(shown, r#""\u001b\u202e\udb40\udc41""#);
/// assert_eq!(serde_json::from_str::<String>(&shown).unwrap(), "\x1b\u{202e}\u{e0041}");
/// ```
pub fn printable_json(json: &str) -> Cow<'_, str> {
    // Outside of its texts JSON has no active characters, except ends of lines, if it is written
    // for people.
    let is_escaped = |c| is_active(c) && !matches!(c, '\n' | '\r' | '\t');
    escaped(json, is_escaped, |c, out| {
        for unit in c.encode_utf16(&mut [0; 2]) {
            let _ = write!(out, "\\u{unit:04x}");
        }
    })
}

fn escaped(text: &str, is_escaped: impl Fn(char) -> bool, escape: impl Fn(char, &mut String)) -> Cow<'_, str> {
    if !text.contains(&is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_escaped(c) { escape(c, &mut out) } else { out.push(c) }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_act_become_visible() {
        let marks = ["\0", "\x07", "\x1b", "\r", "\n", "\x7f", "\u{85}", "\u{9b}", "\u{61c}", "\u{200e}", "\u{200f}"];
        let orders = ["\u{2028}", "\u{2029}", "\u{202a}", "\u{202e}", "\u{2066}", "\u{2069}", "\u{feff}", "\u{e0001}"];
        for active in marks.iter().chain(&orders) {
            let text = format!("a{active}b");
            let shown = printable(&text);
            assert!(shown.starts_with(r"a\u{") && shown.ends_with("}b"), "{shown}");
            assert_eq!(printable(&shown), shown, "what is shown is shown as it is");
        }
    }

    #[test]
    fn text_of_any_script_stays() {
        for text in ["naïve “quotes”", "日本語", "می\u{200c}خواهم", "👩\u{200d}🚀", "שלום", "a\u{301}"]
        {
            assert!(matches!(printable(text), Cow::Borrowed(shown) if shown == text), "{text}");
        }
    }
}
