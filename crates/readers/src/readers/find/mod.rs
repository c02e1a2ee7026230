//! Finds the input files that a user names.
//!
//! In reading order: `inputs` (what a user names to inputs), `search` (the files of folders, globs
//! and listings), `globs` (what a glob is, and whether it names an ending), `found` (a file or
//! object before its format is known), `recognised` (its format), `page_url` (the URL of a file
//! that is one page), `listings` (the lines of a listing), `common_crawl` (the listing of a crawl
//! that is named), `left_out` (what is not an input), `spool` (copies of pipes), `objects` (object
//! stores and web servers).

mod common_crawl;
mod found;
mod globs;
mod inputs;
mod left_out;
mod listings;
mod objects;
mod page_url;
mod recognised;
mod search;
mod spool;
#[cfg(test)]
mod tests;

pub use self::inputs::{FoundInputs, list, list_again, list_with_pipes, url_files};
pub use self::left_out::LeftOut;
pub use self::objects::open;
pub use self::recognised::{format_of_name, kind_of_name};
pub use self::spool::{Pipes, STANDARD_INPUT, Spool, is_passing};
