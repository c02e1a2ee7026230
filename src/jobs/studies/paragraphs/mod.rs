//! The paragraphs job.
//!
//! In reading order: `job` (from top to bottom), `former` (the weeks before), `genealogy`, `seeds` (URLs of pages), `estimates`, `summary`,
//! `tables`, `small_tables`.

mod estimates;
mod former;
mod genealogy;
mod job;
mod seeds;
mod small_tables;
mod summary;
mod tables;

pub use self::former::former_paragraphs;
pub(super) use self::job::paragraphs;
