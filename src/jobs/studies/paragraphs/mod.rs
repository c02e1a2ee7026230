//! The paragraphs job.
//!
//! In reading order: `job` (from top to bottom), `earlier` (the week before), `seeds` (URLs of pages), `summary`, `tables`.

mod earlier;
mod job;
mod seeds;
mod summary;
mod tables;

pub use self::earlier::first_week;
pub(super) use self::job::paragraphs;
