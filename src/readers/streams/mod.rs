//! Plain and compressed files as streams of bytes and lines.
//!
//! In reading order: `stored` (the bytes as stored, with a window to go back in), `members` (gzip members, zstd frames, streams of
//! bzip2 and xz, decoded, with their offsets), `lines` (lines of text), `starts` (where a member begins inside a file).

mod lines;
mod members;
mod starts;
mod stored;

pub use self::lines::{LineStep, Lines};
pub use self::members::{GZIP, MemberStep, Members, is_compressed};
pub use self::starts::member_start;
pub use self::stored::Stored;
