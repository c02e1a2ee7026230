//! Why a request is not carried out.

use std::fmt;

/// A request that is not carried out: nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The HTTP status.
    pub status: u16,
    /// The place, what was found there, and what to do.
    pub text: String,
}

/// The most characters of a text: what it repeats of a request may be long.
const LONGEST: usize = 1000;

impl Refusal {
    /// What is wrong with a request.
    fn new(status: u16, text: impl Into<String>) -> Refusal {
        let mut text = text.into();
        if let Some((end, _)) = text.char_indices().nth(LONGEST) {
            text.truncate(end);
            text.push('…');
        }
        Refusal { status, text }
    }

    /// The request is malformed.
    pub fn bad(text: impl Into<String>) -> Refusal {
        Refusal::new(400, text)
    }

    /// There is nothing of this name.
    pub fn missing(text: impl Into<String>) -> Refusal {
        Refusal::new(404, text)
    }

    /// The request contradicts an earlier one.
    pub fn conflict(text: impl Into<String>) -> Refusal {
        Refusal::new(409, text)
    }

    /// The request exceeds a limit.
    pub fn too_large(text: impl Into<String>) -> Refusal {
        Refusal::new(413, text)
    }

    /// The server cannot do it now.
    pub fn unable(text: impl Into<String>) -> Refusal {
        Refusal { status: 503, text: text.into() }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Refusal {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut() {
        assert_eq!(Refusal::bad("é".repeat(LONGEST)).text, "é".repeat(LONGEST));
        assert_eq!(Refusal::missing("é".repeat(LONGEST + 1)).text, "é".repeat(LONGEST) + "…");
    }
}
