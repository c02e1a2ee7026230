//! The columns of the tables of the mirrors job: pairs of hosts that have many pages in common
//! (Fetterly 2004, sections 2 and 4).
//!
//! They lie in `mirrors/TABLE` of the store. A `week` is a date, as in the folder names of weeks;
//! hosts are named as in `documents.host`, by which these tables join those of weeks.

use nigh_derive::Table;

use crate::records::Week;
use crate::tables::store_table::{ResultTables, StoreTable};

/// The tables, in the order of their names.
pub(super) const TABLES: ResultTables = ResultTables {
    folder: "mirrors",
    name_pages: true,
    read_chunks: false,
    tables: &[
        StoreTable::of::<MirrorChangeRow>(),
        StoreTable::of::<MirrorClassRow>(),
        StoreTable::of::<MirrorGroupRow>(),
        StoreTable::of::<MirrorLagRow>(),
        StoreTable::of::<MirroredRow>(),
        StoreTable::of::<MirrorPairRow>(),
        StoreTable::of::<MirrorSizeRow>(),
        StoreTable::of::<MirrorSpanRow>(),
    ],
};

/// One row for each pair of hosts that share enough pages, in the order of `week`, `host_a` and
/// `host_b`.
#[derive(Clone, Debug, PartialEq, Table)]
#[table(name = "pairs")]
pub struct MirrorPairRow {
    /// The week.
    pub week: Week,
    /// The host with more pages that have near-duplicates; in class `redirect` the host that
    /// redirects.
    pub host_a: String,
    /// The other host; in class `auto` the same one.
    pub host_b: String,
    /// `auto` (one host), `unresolved` (one has no address), `farm` (one cluster on very many
    /// hosts; only its first host is paired), `alias` (another name of a host), `kept` (a candidate
    /// for a mirror), or `redirect` (a host that redirects to the other and shares too few pages).
    pub class: &'static str,
    /// Whether the names differ only in a leading `www.`.
    pub www: bool,
    /// Pages of `host_a` in clusters with pages of `host_b`. If `pairs = "root"`, of these clusters
    /// count those whose first host is `host_a`; if `pairs = "study"`, those with the root on one
    /// host: the one for which more pages of the other count.
    pub pages_a: i64,
    /// Pages of `host_b` in clusters with pages of `host_a`.
    pub pages_b: i64,
    /// Clusters with pages of both.
    pub clusters: i64,
    /// Pages that count for the pair: the larger of the two numbers, as in the study, or the
    /// smaller if `size = "smaller"`; `pages_b` if `pairs = "root"`, and if `pairs = "study"` the
    /// pages of the host that has not the roots.
    pub size: i64,
    /// Pages of the second host that match the first one by URL: see
    /// `MATCHES` of the study of mirrors.
    #[columns(
        matched1 = "pages of `host_b` with the last arc of the path of a page of `host_a` in their cluster",
        matched2 = "the same for the last two arcs, or all of them if there are fewer",
        matched3 = "the same for three arcs",
        matched4 = "the same for four arcs",
        matched_path = "the same for the whole path"
    )]
    pub matched: [i64; 5],
    /// Whether the class is `kept` and `matched4` is enough.
    pub mirror: bool,
    /// URLs of one host that redirect to the other, if they are most of its URLs; else 0.
    pub redirects: i64,
    /// The share of the paths of the first host that the second one has, and of the second that the
    /// first one has.
    #[columns(
        coverage_a = "share of the paths of `host_a` that `host_b` has; null if it is no mirror",
        coverage_b = "share of the paths of `host_b` that `host_a` has; null if it is no mirror"
    )]
    pub coverage: [Option<f64>; 2],
}

impl MirrorPairRow {
    /// A row of two hosts without any number.
    pub fn new(week: Week, host_a: String, host_b: String, class: &'static str) -> MirrorPairRow {
        MirrorPairRow {
            week,
            host_a,
            host_b,
            class,
            www: false,
            pages_a: 0,
            pages_b: 0,
            clusters: 0,
            size: 0,
            matched: [0; 5],
            mirror: false,
            redirects: 0,
            coverage: [None, None],
        }
    }
}

/// The number of pairs of each class: one row for each week and class.
#[derive(Clone, Debug, PartialEq, Table)]
#[table(name = "classes")]
pub struct MirrorClassRow {
    /// The week.
    pub week: Week,
    /// `raw` (the sum of the next five), `auto`, `alias`, `unresolved`, `farm` (with the pairs that
    /// are not listed), `kept`; of the kept ones `kept-www`, `kept-last-arc` and
    /// `kept-last-four-arcs` (enough pages match); and `redirect`.
    pub class: &'static str,
    /// Pairs of the class.
    pub pairs: i64,
    /// Pairs of the class as the study counts them, for the numbers beside its own: pairs of the
    /// host of a cluster's root with each other host, without regard to redirects.
    pub study: Option<i64>,
    /// The study's number, for its first week.
    pub published: Option<i64>,
}

/// Pairs of mirrors by size (Fig. 12 and 13): one row for each week and size.
#[derive(Clone, Debug, PartialEq, Table)]
#[table(name = "sizes")]
pub struct MirrorSizeRow {
    /// The week.
    pub week: Week,
    /// The size of a pair, as in `pairs`.
    pub size: i64,
    /// Pairs of mirrors of this size.
    pub pairs: i64,
}

/// How much pages of mirrors change (Fig. 11): one row for each class of sizes and kind of change.
#[derive(Clone, Debug, PartialEq, Table)]
#[table(name = "changes")]
pub struct MirrorChangeRow {
    /// The size of the largest pair that the page counts for in the first week, as a class like
    /// `11-100`.
    pub class: &'static str,
    /// `complete`, `large`, `medium`, `small`, `no-text-change` or `no-change`, as in
    /// `evolution/change-classes`.
    pub change: &'static str,
    /// Pairs of successive downloads with this change.
    pub pairs: i64,
    /// Share of the change among the pairs of the class.
    pub share: Option<f64>,
}

/// Hosts that are mirrors of each other, directly or through others: one row for each week and
/// host.
#[derive(Clone, Debug, PartialEq, Table)]
#[table(name = "groups")]
pub struct MirrorGroupRow {
    /// The week.
    pub week: Week,
    /// Number of the group in its week, from 1.
    ///
    /// In the order of the names of preferred hosts.
    pub group: i64,
    /// A host of the group.
    pub host: String,
    /// Its pages in the week.
    pub pages: i64,
    /// Whether it is the one of the group to keep: the first in the order of hosts, see
    /// docs/avoid.md.
    pub preferred: bool,
    /// Number of its IP addresses.
    pub addresses: i64,
}

/// The pages that mirrors have in common: one row for each week.
#[derive(Clone, Debug, PartialEq, Table)]
#[table(name = "mirrored")]
pub struct MirroredRow {
    /// The week.
    pub week: Week,
    /// Pages in a cluster with a page of a mirror of their host.
    pub pages: i64,
    /// All pages of the week.
    pub documents: i64,
    /// `pages` over `documents`.
    ///
    /// Null if there are no pages.
    pub share: Option<f64>,
    /// The same share by the pairs that the study counts (`classes.study`): 0.049 in the study.
    pub study_share: Option<f64>,
}

/// From when to when two hosts are mirrors: one row for each pair and run of successive weeks.
#[derive(Clone, Debug, PartialEq, Table)]
#[table(name = "spans")]
pub struct MirrorSpanRow {
    /// The host whose name comes first.
    pub host_a: String,
    /// The other host.
    pub host_b: String,
    /// The first of the weeks.
    pub first: Week,
    /// The last of the weeks.
    pub last: Week,
    /// Number of weeks.
    ///
    /// Those of the store, from the first to the last.
    pub weeks: i64,
    /// Whether the next week of the job has no such pair.
    pub ended: bool,
}

/// How long changes of pages take from a host to its mirror: one row for each pair, direction and
/// number of weeks.
#[derive(Clone, Debug, PartialEq, Table)]
#[table(name = "lags")]
pub struct MirrorLagRow {
    /// The host with a change.
    pub host: String,
    /// Its mirror, which has a page of the same path.
    pub copy: String,
    /// Weeks until the mirror's page has the same features; 0: the same week; null: not until the
    /// last week.
    pub weeks: Option<i64>,
    /// Changes of pages.
    pub changes: i64,
}
