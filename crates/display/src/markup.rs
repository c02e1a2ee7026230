//! Text of others within markup.

use crate::text::printable;

/// A text in which nothing is markup, and no character acts: see [`printable`].
///
/// ```
/// assert_eq!(nigh_display::markup::escaped("<b> & \u{202e}'x'"), "&lt;b&gt; &amp; \\u{202e}&#39;x&#39;");
/// ```
pub fn escaped(text: &str) -> String {
    with_entities(&printable(text))
}

/// A text without characters that are markup.
fn with_entities(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
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

/// HTML that is being written. Markup is text of the program itself, known when it is compiled;
/// everything else is [`escaped`]. So no text of others can become markup.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Html(String);

impl Html {
    /// Adds markup.
    pub fn own(&mut self, markup: &'static str) -> &mut Html {
        self.0.push_str(markup);
        self
    }

    /// Adds a text, within an element or between the quotes of an attribute.
    pub fn text(&mut self, text: impl std::fmt::Display) -> &mut Html {
        self.0.push_str(&escaped(&text.to_string()));
        self
    }

    /// As [`Html::text`], of a text of several lines.
    pub fn lines(&mut self, text: &str) -> &mut Html {
        let lines = text.replace("\r\n", "\n");
        self.0.push_str(&with_entities(&crate::text::printable_lines(&lines)));
        self
    }

    /// As [`Html::text`], of a note: what stands between two backticks is code. A single backtick
    /// is one.
    pub fn note(&mut self, text: impl std::fmt::Display) -> &mut Html {
        let text = text.to_string();
        if !text.matches('`').count().is_multiple_of(2) {
            return self.text(text);
        }
        for (number, part) in text.split('`').enumerate() {
            if number.is_multiple_of(2) {
                self.text(part);
            } else {
                self.own("<code>").text(part).own("</code>");
            }
        }
        self
    }

    /// Adds what was written elsewhere.
    pub fn add(&mut self, other: &Html) -> &mut Html {
        self.0.push_str(&other.0);
        self
    }

    /// A drawing, whose own texts are [`escaped`].
    pub(crate) fn drawing(svg: String) -> Html {
        Html(svg)
    }

    /// Whether nothing was written.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The whole text.
    pub fn into_text(self) -> String {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_markup_of_the_program_is_text() {
        let mut html = Html::default();
        html.own("<p title=\"").text("\"><b>").own("\">").text(12).text(" < \u{202e}").own("</p>");
        let mut whole = Html::default();
        whole.own("<main>").add(&html).lines("<a>\r\n\u{202e}").own("</main>");
        let expected = "<main><p title=\"&quot;&gt;&lt;b&gt;\">12 &lt; \\u{202e}</p>&lt;a&gt;\n\\u{202e}</main>";
        assert_eq!(whole.into_text(), expected);
    }

    #[test]
    fn code_of_notes_stands_between_backticks() {
        let note = |text: &str| {
            let mut html = Html::default();
            html.note(text);
            html.into_text()
        };
        assert_eq!(note("of `a<b` and `c`."), "of <code>a&lt;b</code> and <code>c</code>.");
        assert_eq!(note("`a"), "`a");
        assert_eq!(note("none"), "none");
    }
}
