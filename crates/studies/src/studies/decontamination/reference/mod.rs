//! The reference: its files, their records, and the items that these are.
//!
//! In reading order: `files` (what a user names), `records` (the records of a file, with the texts
//! of some columns), `items` (slices of items that fit into memory).

mod files;
mod items;
mod records;

pub use self::files::find;
pub use self::items::{ItemCounts, ReferenceItem, ReferenceItems};
