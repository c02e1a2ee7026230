//! Pieces of an input: parts of a large file that several workers read side by side.
//!
//! ```text
//! JSON Lines, not compressed   the lines that begin in an n-th of the bytes
//! WARC, not compressed         the records from the first that begins in an n-th of the bytes on
//! WARC and ARC in gzip         the members, likewise
//! WARC in zstd                 the frames, likewise
//! Parquet                      an n-th of the row groups
//! everything else              one piece
//! ```
//!
//! How many pieces an input has depends on its format, name and size alone, and the pieces together
//! have the items of the whole, in its order and with its offsets. So which worker reads which
//! piece changes no result.
//!
//! In reading order: `piece` (the pieces of an input, and the reader of one), `cuts` (where pieces
//! begin), `lines` and `members` (what a piece has).

mod cuts;
mod lines;
mod members;
mod piece;
#[cfg(test)]
mod tests;

pub use self::cuts::InputPiece;
pub(super) use self::cuts::cut;
pub use self::piece::{open_piece, pieces};
