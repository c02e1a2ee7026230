//! Reads WARC, WET and ARC files.
//!
//! In reading order: `pages` (records to pages), `framing` (where records begin and end, also after
//! damage), `decoded` (the decoded bytes of a file, with the boundaries of its members), `record`
//! (the head of a record), `arc` (that of an ARC record), `header` (header fields), `http` (the
//! HTTP response in a record), `encodings` (its content and transfer encodings), `starts` (where a
//! record begins inside a plain file), `methods` (by which method a response was asked for), `held`
//! (items that wait for later records).

mod arc;
mod decoded;
mod encodings;
mod framing;
mod header;
mod held;
mod http;
mod methods;
mod no_page;
mod pages;
mod record;
mod revisit;
mod starts;
#[cfg(test)]
mod tests;

pub use self::arc::parse as arc_record;
pub use self::decoded::Dialect;
pub use self::encodings::dechunk;
pub use self::framing::Records;
pub use self::header::{end_of_head, split as split_head};
pub use self::held::WITHIN;
pub use self::methods::REACH;
pub use self::pages::WarcReader;
pub use self::starts::record_start;
