//! Finds the input files that a user names.
//!
//! In reading order: `inputs` (files, folders, globs and listings to inputs), `globs` (what a glob
//! is), `found` (a file or object before its format is known), `listings` (the lines of a listing),
//! `common_crawl` (the listing of a crawl that is named), `left_out` (what is no input), `spool`
//! (copies of pipes), `objects` (URLs of object stores and web servers), `cloud` (the same, with
//! the feature `cloud`), `hugging_face` (files of its datasets).

#[cfg(feature = "cloud")]
mod cloud;
mod common_crawl;
mod found;
mod globs;
#[cfg(feature = "cloud")]
mod hugging_face;
mod inputs;
mod left_out;
mod listings;
mod objects;
mod spool;

pub use self::inputs::{FoundInputs, format_of_name, kind_of_name, list, list_again, list_with_pipes, url_files};
pub use self::left_out::LeftOut;
pub use self::objects::open;
pub use self::spool::{Pipes, STANDARD_INPUT, Spool, is_passing};
