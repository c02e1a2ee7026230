//! The columns of the tables of the paragraphs job that are about two weeks or more: where the text
//! of new pages is from, and which paragraphs come and go.
//!
//! They lie in `paragraphs/TABLE` of the store. `doc` joins these tables with those of the job's
//! week.

use nigh_derive::Table;
use serde::{Deserialize, Serialize};

use crate::records::Week;

/// The pages above `least-characters` whose URLs had no page the week before, and how much of their
/// text older pages had: none, all of it from one parent, or assembled from several.
#[derive(Clone, Debug, PartialEq, Table)]
#[table(name = "births")]
pub struct BornPageRow {
    /// Document id.
    #[column(ascending)]
    pub doc: i64,
    /// Its distinct paragraphs.
    pub paragraphs: i32,
    /// Those that some page of the week before had.
    pub inherited: i32,
    /// Inherited over paragraphs.
    pub share: f64,
    /// Its rows in `parents`: 0 for text of its own, 1 for a copy or a part of one page, more for
    /// text that was assembled.
    pub parents: i32,
}

/// Pages of the week before that have paragraphs of a new page: first the one that has most of
/// them, then the one that has most of the others, until all inherited paragraphs are explained.
/// Paragraphs that more than 100 pages had come last. `doc` joins `births`; `parent` the tables of
/// the week before.
#[derive(Clone, Debug, PartialEq, Table)]
#[table(name = "parents")]
pub struct ParentRow {
    /// Document id of the new page.
    #[column(ascending)]
    pub doc: i64,
    /// 1 for the parent that explains most.
    pub rank: i32,
    /// Document id of the parent.
    pub parent: i64,
    /// Whether both are on one host.
    pub same_host: bool,
    /// Inherited paragraphs that it has, and no parent of a smaller rank.
    pub adds: i32,
    /// Distinct paragraphs that both have.
    pub shared: i32,
    /// Shared over the distinct paragraphs of the new page.
    pub share: f64,
    /// Shared over the distinct paragraphs of the parent.
    pub share_of_parent: f64,
}

/// Paragraphs that were first seen after the first week, or that are gone; pages above
/// `least-characters` count. A paragraph that is in no row was in the first week, and is there now.
#[derive(Clone, Debug, PartialEq, Table)]
#[table(name = "lifetimes")]
pub struct LifetimeRow {
    /// 64-bit hash of the paragraph, as in `chunks.paragraphs`.
    #[column(unique)]
    pub paragraph: i64,
    /// The first week that had it; null if the first week of all had it.
    pub first_week: Option<Week>,
    /// The smallest doc of that week that had it.
    pub first_doc: Option<i64>,
    /// The last week that had it; null if it is there now.
    pub last_week: Option<Week>,
    /// The smallest doc of that week that had it.
    pub last_doc: Option<i64>,
}

/// Distinct paragraphs that come and go, for each week after the first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Table)]
#[table(name = "turnover")]
pub struct ParagraphTurnoverRow {
    /// Week.
    pub week: Week,
    /// Paragraphs that no week before had.
    pub first_seen: u64,
    /// Paragraphs that some week had, and the week before had not.
    pub returned: u64,
    /// Paragraphs of the week before that no page has.
    pub gone: u64,
}
