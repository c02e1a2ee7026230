//! Paragraphs of texts. A paragraph is a line of a text, without the white space around it.

use serde::{Deserialize, Serialize};

use super::overlap::OverlapRule;
use crate::readers::Body;

/// Which paragraphs go.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ParagraphRules {
    /// How often a paragraph is there at least, if all but the first go.
    pub least_count: u64,
    /// The characters of a paragraph at least; shorter ones stay.
    pub least_characters: u64,
    /// If given: those go most of whose n-grams stand before, and not those that are equal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlap: Option<OverlapRule>,
}

/// The paragraphs of a text: the numbers of their lines, and the paragraphs, those without a
/// character left out.
pub(super) fn paragraphs(text: &str) -> impl Iterator<Item = (u32, &str)> {
    text.split('\n').zip(0..).map(|(line, number)| (number, line.trim())).filter(|(_, paragraph)| !paragraph.is_empty())
}

/// The text of a document; `None` if it is HTML, or not UTF-8.
pub(in crate::export) fn text_of(body: &Body) -> Option<&str> {
    match body {
        Body::Text(text) => Some(text),
        Body::Plain(bytes) => std::str::from_utf8(bytes).ok(),
        Body::Html(_) => None,
    }
}

/// A text without some of its lines, ascending; `None` if no paragraph is left.
pub(super) fn without(text: &str, lines: &[u32]) -> Option<String> {
    let mut gone = lines.iter().peekable();
    let mut kept = String::with_capacity(text.len());
    for (line, number) in text.split_inclusive('\n').zip(0..) {
        if gone.next_if(|gone| **gone == number).is_none() {
            kept.push_str(line);
        }
    }
    // The last line that is left may have been followed by another one.
    if !text.ends_with('\n') && kept.ends_with('\n') {
        kept.pop();
    }
    (!kept.trim().is_empty()).then_some(kept)
}
