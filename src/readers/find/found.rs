//! A file or object that a user named, and how.

use crate::readers::input::Location;

/// Something that may become an input.
pub struct FoundInput {
    /// Its path or URL.
    pub name: String,
    /// Its size as stored.
    pub bytes: u64,
    /// Where it is.
    pub place: Location,
    /// Its path below the folder, glob or prefix that was named.
    pub relative: String,
    /// How it was found.
    pub how: How,
}

/// How something was found: this decides what its ending must say.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum How {
    /// By its own name.
    Named,
    /// By a glob.
    Matched,
    /// By walking a folder.
    Walked,
}
