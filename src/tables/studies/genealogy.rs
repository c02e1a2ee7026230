//! The columns of the tables of the paragraphs job that are about two weeks or more: where the text of new pages is from, and which paragraphs
//! come and go.
//!
//! They lie in `paragraphs/TABLE` of the store. `doc` joins these tables with those of the job's week.

use crate::records::Week;
use crate::tables::columns::{
    Column, Table, booleans, dates, doubles, ints, longs, maybe_days, maybe_longs, nullable, required,
};

/// `births`: the pages that are new in the week, and how much of them is inherited.
#[derive(Clone, Debug, PartialEq)]
pub struct BornPageRow {
    /// The page.
    pub doc: i64,
    /// Its distinct paragraphs.
    pub paragraphs: i32,
    /// Those that some page of the week before had.
    pub inherited: i32,
    /// `inherited / paragraphs`.
    pub share: f64,
    /// The number of its parents.
    pub parents: i32,
}

impl Table for BornPageRow {
    const NAME: &'static str = "births";
    const DESCRIPTION: &'static str = "The pages above `least-characters` whose URLs had no page the week before, and how much of their text older pages had: none, all of it from one parent, or assembled from several.";
    const ASCENDING: &'static [&'static str] = &["doc"];

    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![
            required("doc", "document id", longs(rows.iter().map(|r| r.doc))),
            required("paragraphs", "its distinct paragraphs", ints(rows.iter().map(|r| r.paragraphs))),
            required(
                "inherited",
                "those that some page of the week before had",
                ints(rows.iter().map(|r| r.inherited)),
            ),
            required("share", "inherited over paragraphs", doubles(rows.iter().map(|r| r.share))),
            required(
                "parents",
                "its rows in `parents`: 0 for text of its own, 1 for a copy or a part of one page, more for text that was assembled",
                ints(rows.iter().map(|r| r.parents)),
            ),
        ]
    }
}

/// `parents`: where the inherited paragraphs of new pages are from.
#[derive(Clone, Debug, PartialEq)]
pub struct ParentRow {
    /// The new page.
    pub doc: i64,
    /// The rank of the parent.
    pub rank: i32,
    /// The parent: a page of the week before.
    pub parent: i64,
    /// Whether both are on one host.
    pub same_host: bool,
    /// Paragraphs that no parent of a smaller rank has.
    pub adds: i32,
    /// Paragraphs that both have.
    pub shared: i32,
    /// `shared` over the paragraphs of the new page.
    pub share: f64,
    /// `shared` over the paragraphs of the parent.
    pub share_of_parent: f64,
}

impl Table for ParentRow {
    const NAME: &'static str = "parents";
    const DESCRIPTION: &'static str = "Pages of the week before that have paragraphs of a new page: first the one that has most of them, then the one that has most of the others, until all inherited paragraphs are explained. Paragraphs that more than 100 pages had come last. `doc` joins `births`; `parent` the tables of the week before.";
    const ASCENDING: &'static [&'static str] = &["doc"];

    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![
            required("doc", "document id of the new page", longs(rows.iter().map(|r| r.doc))),
            required("rank", "1 for the parent that explains most", ints(rows.iter().map(|r| r.rank))),
            required("parent", "document id of the parent", longs(rows.iter().map(|r| r.parent))),
            required("same_host", "whether both are on one host", booleans(rows.iter().map(|r| r.same_host))),
            required(
                "adds",
                "inherited paragraphs that it has, and no parent of a smaller rank",
                ints(rows.iter().map(|r| r.adds)),
            ),
            required("shared", "distinct paragraphs that both have", ints(rows.iter().map(|r| r.shared))),
            required(
                "share",
                "shared over the distinct paragraphs of the new page",
                doubles(rows.iter().map(|r| r.share)),
            ),
            required(
                "share_of_parent",
                "shared over the distinct paragraphs of the parent",
                doubles(rows.iter().map(|r| r.share_of_parent)),
            ),
        ]
    }
}

/// `lifetimes`: when paragraphs were seen first and last.
#[derive(Clone, Debug, PartialEq)]
pub struct LifetimeRow {
    /// The hash of the paragraph.
    pub paragraph: i64,
    /// The first week that had it.
    pub first_week: Option<i32>,
    /// The smallest page of that week that had it.
    pub first_doc: Option<i64>,
    /// The last week that had it.
    pub last_week: Option<i32>,
    /// The smallest page of that week that had it.
    pub last_doc: Option<i64>,
}

impl Table for LifetimeRow {
    const NAME: &'static str = "lifetimes";
    const DESCRIPTION: &'static str = "Paragraphs that were first seen after the first week, or that are gone; pages above `least-characters` count. A paragraph that is in no row was in the first week, and is there now.";
    const UNIQUE: &'static [&'static str] = &["paragraph"];

    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![
            required(
                "paragraph",
                "64-bit hash of the paragraph, as in `chunks.paragraphs`",
                longs(rows.iter().map(|r| r.paragraph)),
            ),
            nullable(
                "first_week",
                "the first week that had it; null if the first week of all had it",
                maybe_days(rows.iter().map(|r| r.first_week)),
            ),
            nullable(
                "first_doc",
                "the smallest doc of that week that had it",
                maybe_longs(rows.iter().map(|r| r.first_doc)),
            ),
            nullable(
                "last_week",
                "the last week that had it; null if it is there now",
                maybe_days(rows.iter().map(|r| r.last_week)),
            ),
            nullable(
                "last_doc",
                "the smallest doc of that week that had it",
                maybe_longs(rows.iter().map(|r| r.last_doc)),
            ),
        ]
    }
}

/// `turnover`: paragraphs that come and go, by week.
#[derive(Clone, Debug, PartialEq)]
pub struct ParagraphTurnoverRow {
    /// The week.
    pub week: Week,
    /// Paragraphs that are there for the first time.
    pub first_seen: i64,
    /// Paragraphs that were away, and are there again.
    pub returned: i64,
    /// Paragraphs of the week before that are gone.
    pub gone: i64,
}

impl Table for ParagraphTurnoverRow {
    const NAME: &'static str = "turnover";
    const DESCRIPTION: &'static str = "Distinct paragraphs that come and go, for each week after the first.";

    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![
            required("week", "week", dates(rows.iter().map(|r| r.week))),
            required("first_seen", "paragraphs that no week before had", longs(rows.iter().map(|r| r.first_seen))),
            required(
                "returned",
                "paragraphs that some week had, and the week before had not",
                longs(rows.iter().map(|r| r.returned)),
            ),
            required("gone", "paragraphs of the week before that no page has", longs(rows.iter().map(|r| r.gone))),
        ]
    }
}
