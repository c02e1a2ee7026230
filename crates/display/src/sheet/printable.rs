//! Text that does nothing to a terminal, except that it may have colours.

use crate::text::printable_lines;

/// Text for stdout. What a terminal acts on is escaped in it ([`printable_lines`]): titles and
/// names of other people are printed.
///
/// ```
/// use nigh_display::sheet::Printable;
///
/// assert_eq!(Printable::from("a \u{1b}[2J").as_str(), "a \\u{1b}[2J");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Printable(String);

impl Printable {
    /// Lines in which only colours act on a terminal.
    pub(super) fn of_lines(lines: Vec<String>) -> Printable {
        Printable(lines.into_iter().map(|line| line + "\n").collect())
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Printable {
    fn from(text: &str) -> Printable {
        Printable(printable_lines(text).into_owned())
    }
}

impl From<&String> for Printable {
    fn from(text: &String) -> Printable {
        text.as_str().into()
    }
}
