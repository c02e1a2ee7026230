//! Indexes beside the tables: `urls` (URL to document) and `postings` (supershingle to documents).

mod postings;
mod urls;

pub(crate) use self::postings::FORMAT;
pub use self::postings::{Coding, PostingFile, PostingRuns, write_postings};
pub(crate) use self::urls::RunRow;
pub use self::urls::{UrlIndex, UrlLookup};
