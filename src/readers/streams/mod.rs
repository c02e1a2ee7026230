//! Plain and compressed files as streams of bytes and lines.
//!
//! In reading order: `stored` (the bytes as stored, with a window to go back in), `members` (gzip members, zstd frames, streams of
//! bzip2 and xz, decoded, with their offsets), `lines` (lines of text).

mod lines;
mod members;
mod stored;

pub use self::lines::{LineStep, Lines};
pub use self::members::{MemberStep, Members};
pub use self::stored::Stored;
