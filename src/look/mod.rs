//! Looks into a committed week: what it has of a page, and why two pages are in one cluster or not.
//!
//! In reading order: `week` (pages and clusters of a week, found by URL or id), `chain` (the shortest chain of links between two pages of a
//! cluster), `passages` (the words that two texts do not share), `compare` (all of it, for two pages).
//!
//! Everything is read when it is asked for. To find a page, one shard's URLs are read; to find the pages of a cluster, a column of the week.

mod chain;
mod compare;
mod passages;
mod week;

pub use self::compare::{ChainLink, Comparison, Passage, SketchComparison, TextComparison, compare};
pub use self::week::{LookedPage, LookedWeek};
