//! Studies: jobs that read committed weeks of a store, and write tables about them.
//!
//! In reading order: `plan` (what a run gets, and how it writes a table), `shards` (tables with a file for each shard), `study` (what all
//! studies have in common), then a study: `evolution` (compares the weeks of a store), `mirrors` (hosts that mirror each other), `overlap`
//! (pages and hosts that share chunks of text), `collections` (pages that are copied together), `mirrors_by_url` (hosts that have URLs in
//! common), `paragraphs` (where duplicates are, and how they grow), `samplers` (how well samples estimate resemblance).

mod collections;
mod evolution;
mod mirrors;
mod mirrors_by_url;
mod overlap;
mod paragraphs;
mod plan;
mod samplers;
mod shards;
mod study;

pub use self::collections::{check_level, former_list};
pub use self::overlap::former_overlap;
pub use self::paragraphs::former_paragraphs;
pub use self::plan::{StudyFiles, StudyPlan, check_chunks};
pub use self::study::study;
