//! Reads files of Arrow record batches (Arrow Columnar Format, *Serialization and Interprocess
//! Communication*): streams, and files, which are streams between a signature and a table of
//! contents. Hugging Face `datasets` and Feather (version 2) write them.
//!
//! ```text
//! schema: with it a stream begins, and its columns are found by their names
//! batch:  only the columns that the job names are decoded, each row is a page
//! ```
//!
//! Lengths are claims: a head is believed up to a limit, a body is read as it comes, and a
//! compressed buffer must not claim more than a batch may have. The decoder of `arrow-ipc` checks
//! offsets. Texts are decoded as bytes, as they are stored, so that one that is not UTF-8 concerns
//! its row only. A damaged batch is a reject, and its bytes count as unread; the next one is read,
//! but not with a damaged dictionary.
//!
//! A stream on standard input must have its end marker: without it, nothing tells a stream that is
//! complete from one whose writer was killed. So it is an error, not a reject. Files and objects
//! need no marker.
//!
//! Memory: one batch, and the dictionaries.
//!
//! In reading order: `reader` (rows to pages), `messages` (the bytes of a file, cut into messages),
//! `contents` (the table of contents of a file), `stream` (a schema, its dictionaries, and batches
//! decoded by them), `schema` (the columns of the job in a schema), `column` (the values of a
//! column).

mod column;
mod contents;
mod messages;
mod reader;
mod schema;
mod stream;
#[cfg(test)]
mod tests;

pub use self::contents::{FIRST, SIGNATURE, lacks_schema, ordered_arrow};
pub use self::messages::begins;
pub use self::reader::ArrowReader;
