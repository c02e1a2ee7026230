//! Plain and compressed files as streams of bytes and lines.
//!
//! In reading order: `stored` (the bytes as stored, with a window to go back in), `decoders` (how
//! each kind of member begins and is decoded), `codec` (the decoder of a file), `members` (gzip
//! members, zstd frames, streams of bzip2 and xz, decoded, with their offsets), `lines` (lines of
//! text), `packing` (how members are packed), `starts` (where a member begins inside a file).

mod codec;
mod decoders;
mod lines;
mod members;
mod packing;
mod starts;
mod stored;
#[cfg(test)]
mod tests;

pub use self::lines::{LineReader, LineStep};
pub use self::members::{MemberStep, Members};
pub(super) use self::members::{SEARCH_AT_LEAST, SEARCH_PER_BYTE};
pub use self::packing::{MemberPacking, read_at};
pub use self::starts::member_start;
pub use self::stored::Stored;
