//! A file or object that was found, before its format is known.

use std::fs::Metadata;
use std::path::{Path, PathBuf};

use crate::readers::input::{Input, Location};

/// The endings of compressed files.
pub const COMPRESSED: [&str; 4] = [".gz", ".zst", ".bz2", ".xz"];

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
    /// What changes with its content, as in [`Input::stamp`].
    pub stamp: String,
}

impl FoundInput {
    /// A regular file that the user named, with the path by which every process opens it.
    pub fn file(name: String, path: PathBuf, metadata: &Metadata) -> FoundInput {
        let relative =
            Path::new(&name).file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let (bytes, place, stamp) = (metadata.len(), Location::File(path), modified(metadata));
        FoundInput { name, bytes, place, relative, by: FoundBy::Name, stamp }
    }
}

/// How the stamp of a local file begins.
const MODIFIED: &str = "modified ";

/// The stamp of a local file: the time of its last change, to the nanosecond; empty if the system
/// has none.
pub fn modified(metadata: &Metadata) -> String {
    let time = metadata.modified().ok().and_then(|time| jiff::Timestamp::try_from(time).ok());
    time.map_or_else(String::new, |time| format!("{MODIFIED}{time}"))
}

impl Input {
    /// Whether it is a local file that now has another size or time of change, or is gone.
    pub fn has_changed(&self) -> bool {
        let (Location::File(path), true) = (&self.place, self.stamp.starts_with(MODIFIED)) else { return false };
        !path.metadata().is_ok_and(|now| now.len() == self.bytes && modified(&now) == self.stamp)
    }
}

/// What the user named. A named file is always an input; files found in folders or by globs need a
/// known ending.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FoundBy {
    /// The file or object itself.
    Name,
    /// A glob that it matches, and that names the ending of the file: `*.csv`.
    Ending,
    /// Another glob that it matches.
    Glob,
    /// A folder or prefix that it lies below.
    Folder,
}
