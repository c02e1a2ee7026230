//! Pages that are like another one: `pages` (which these are, and how similar), `record` (the
//! record that says so).

mod pages;
mod record;

pub use self::pages::near_duplicates;
pub use self::record::NearDuplicate;
pub(super) use self::record::{Subject, warc_date};
