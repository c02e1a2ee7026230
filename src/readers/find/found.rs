//! A file or object that was found, before its format is known.

use crate::readers::input::Location;

/// A file or object that may become an input.
pub struct FoundInput {
    /// Its path or URL.
    pub name: String,
    /// Its size in bytes, as stored.
    pub bytes: u64,
    /// Its local path, or the object in its store.
    pub place: Location,
    /// Its path below the folder, glob or prefix that the user named.
    pub relative: String,
    /// What the user named.
    pub by: FoundBy,
}

/// What the user named. A named file is always an input; files found in folders or by globs need a known ending.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FoundBy {
    /// The file or object itself.
    Name,
    /// A glob that it matches.
    Glob,
    /// A folder or prefix that it lies below.
    Folder,
}
