//! Records that match a reference: `documents` (which these are, by the tables of the
//! decontamination job), `items` (what a record matches, and what becomes of it).

mod documents;
mod items;

pub use self::documents::{MatchRules, MatchedDocuments};
pub use self::items::MatchedRecords;
pub(super) use self::items::{Matched, MatchedPlace};
