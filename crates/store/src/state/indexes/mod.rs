//! Indexes beside the tables of a store: `urls` (from a URL to its document id) and `postings`
//! (from a supershingle to the documents that have it). Both can be made again from tables.

mod postings;
mod urls;

pub(crate) use self::postings::FORMAT;
pub use self::postings::{Coding, PostingFile, PostingRuns, write_postings};
pub(crate) use self::urls::UrlRunRow;
pub use self::urls::{UrlIndex, UrlLookup};
