//! The reference: its files, their records, and the items that these are.
//!
//! In reading order: `files` (what a user names), `store_documents` (where a store has its
//! documents), `records` (the records of a file, with the texts of some columns), `texts` (columns
//! of bytes that are texts), `items` (slices of items that fit into memory).

mod files;
mod items;
mod records;
mod store_documents;
mod texts;

pub use self::files::find;
pub use self::items::{ItemCounts, ReferenceItem, ReferenceItems};
