//! Inputs whose records are spans of bytes, which are copied: lines, CSV, WARC, and files that are
//! one document.
//!
//! In reading order: `spans` (the copying), `compressed` (files of the compression that their names
//! say), `json_line` (lines with another text), `attached` (requests and metadata of pages).

mod attached;
mod compressed;
mod json_line;
mod spans;

pub(super) use self::compressed::Compressed;
pub(super) use self::spans::Spans;
