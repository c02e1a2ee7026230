//! Compressed files as streams of bytes.
//!
//! In reading order: `stored` (the stored bytes, read ahead), `members` (gzip members and zstd frames, with their offsets),
//! `lines` (lines of text).

mod lines;
mod members;
mod stored;

pub use self::lines::{LineStep, Lines};
pub use self::members::{MemberStep, Members};
pub use self::stored::Stored;
