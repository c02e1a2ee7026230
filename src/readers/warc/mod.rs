//! Reads WARC and WET files.
//!
//! In reading order: `pages` (records to pages), `framing` (where records begin and end, after damage too), `record` (the
//! fields of a record), `header` (header lines), `http` (the HTTP response in a record), `encodings` (its content and
//! transfer encodings).

mod encodings;
mod framing;
mod header;
mod http;
mod pages;
mod record;

pub use self::pages::WarcReader;
