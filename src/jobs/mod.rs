//! The jobs: each is one function that runs on every worker, from top to bottom like the study.
//!
//! A job does not know how its processes were started. It gets a timely worker and a plan, and worker 0 returns the summary. *Own*
//! documents, vectors and shards are those that the worker owns; documents are numbered among them (*by number*).
//!
//! - `cluster`: makes a week, the first of a store or a later one. Start here.
//! - Its parts: `week` (the week while it is made), `roots` (finds the clusters), `missing` (URLs that could not be downloaded),
//!   `failed_urls` (redirects, and failed downloads by host), `tables` (writes the tables), `packing` (packs their
//!   files for the commit).
//! - `deletion`: what `cluster` does instead of reading a crawl if pages are deleted.
//! - `chunks`: makes the table `chunks` of a week that was made without it.
//! - `study`: what the jobs have in common that read committed weeks: `evolution` (compares the weeks of a store), `mirrors`
//!   (hosts that mirror each other; with `mirror_pairs` and `mirror_tables`) and `overlap` (pages and hosts that share chunks of text).

pub mod chunks;
pub mod cluster;
pub mod deletion;
pub mod evolution;
pub mod failed_urls;
mod mirror_pairs;
mod mirror_tables;
pub mod mirrors;
pub mod missing;
pub mod overlap;
pub mod packing;
pub mod roots;
pub mod study;
pub mod study_plan;
pub mod tables;
pub mod week;

pub use self::overlap::check_chunks;
pub use self::study_plan::StudyPlan;
