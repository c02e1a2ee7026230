//! Frames the records of a WARC file: finds where each begins and ends, also after damage.
//!
//! A record is a head, a block of Content-Length bytes, and two line ends. [`Records`] believes the
//! length only as far as it can be checked:
//!
//! - A record is returned only if the bytes after it are right: a record, the end of the member
//!   with its checksum, or the end of the file.
//! - A block that reaches the end of a member continues in the next member, unless that begins with
//!   `WARC/`: then the length is wrong.
//! - After a bad record the search for the next one starts in the bad record's block, so a wrong
//!   length does not swallow the records behind it. A record can begin with a member that begins
//!   with `WARC/`, or with a line that is a version (`WARC/1.1`).
//!
//! ```text
//! advance:
//!     report a damaged member, skip line ends
//!     head:    from the version line to the empty line; parse it
//!     block:   decode Content-Length bytes; keep at most the cap, skip the rest
//!     trailer: skip line ends; the next record, member or the end of the file must follow
//!     if one of them fails: reject, and search for the next record
//! ```
//!
//! No claimed length allocates memory: bytes are kept as they are decoded, at most the cap for the
//! record's type. Known limitation: a version line inside the block of a *bad* record is taken for
//! a record; one inside a good record is not.
//!
//! In reading order: `records` (the records of a file, and their blocks), `heads` (where a head
//! ends).

mod heads;
mod records;
#[cfg(test)]
mod tests;

pub use self::records::{FramedRecord, Records};
