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

impl Refusal {
    /// The request is malformed.
    pub fn bad(text: impl Into<String>) -> Refusal {
        Refusal { status: 400, text: text.into() }
    }

    /// There is nothing of this name.
    pub fn missing(text: impl Into<String>) -> Refusal {
        Refusal { status: 404, text: text.into() }
    }

    /// The request contradicts an earlier one.
    pub fn conflict(text: impl Into<String>) -> Refusal {
        Refusal { status: 409, text: text.into() }
    }

    /// The request exceeds a limit.
    pub fn too_large(text: impl Into<String>) -> Refusal {
        Refusal { status: 413, text: text.into() }
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
