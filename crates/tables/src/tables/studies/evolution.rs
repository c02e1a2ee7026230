//! The columns of the tables of the evolution job, which compares the weeks of a store (Fetterly
//! 2004, section 3).
//!
//! They lie in `evolution/TABLE` of the store. A `week` is a date, as in the folder names of weeks.
//! A `class` is a range of cluster sizes in pages: `0`, `1`, `2-10`, `11-100`, `101-1000`,
//! `1001-10000`, `10001-100000` or `above 100000` ([`SizeClass`](crate::stats::SizeClass)). `week`
//! and `class` join these tables with each other; no column joins them with the tables of weeks.

use nigh_derive::Table;

use crate::records::Week;
use crate::tables::store_table::{ResultTables, StoreTable};

/// The tables, in the order of their names.
pub(super) const TABLES: ResultTables = ResultTables {
    folder: "evolution",
    name_pages: false,
    read_chunks: false,
    tables: &[
        StoreTable::of::<AmountRow>(),
        StoreTable::of::<BirthRow>(),
        StoreTable::of::<ChangeClassRow>(),
        StoreTable::of::<DeathRow>(),
        StoreTable::of::<HostChangeRow>(),
        StoreTable::of::<RetentionRow>(),
    ],
};

/// How well the clusters of the first week keep together: one row for each week and size class.
///
/// C_1 and C_m are the clusters of a URL in the first week and in the week of the row, as sets of
/// URLs. Means are over the URLs of the class, from 0 to 1; they are null if there are no URLs.
#[derive(Clone, Debug, PartialEq, Table)]
#[table(name = "retention")]
pub struct RetentionRow {
    /// The later week.
    pub week: Week,
    /// Size class of the URL's cluster in the first week.
    pub class: &'static str,
    /// URLs with a page in the first week.
    pub documents: i64,
    /// Mean share of its first cluster that is still in its cluster (Fig. 4).
    ///
    /// Mean of |C_1 n C_m| / |C_1|.
    pub retention: Option<f64>,
    /// Mean of intersection over union of the two clusters (Fig. 5).
    ///
    /// Mean of |C_1 n C_m| / |C_1 u C_m|.
    pub similarity: Option<f64>,
    /// Mean share of its later cluster that was in the first one (Fig. 7).
    ///
    /// Mean of |C_1 n C_m| / |C_m|.
    pub reverse: Option<f64>,
}

/// Hosts by the change of their number of clusters, from the first week to the last (Fig. 6).
#[derive(Clone, Debug, PartialEq, Table)]
#[table(name = "host-changes")]
pub struct HostChangeRow {
    /// Clusters of a host in the last week minus those in the first; singletons count.
    ///
    /// Pages without duplicates are clusters, too.
    pub change: i64,
    /// Hosts with this change.
    pub hosts: i64,
}

/// Pairs of successive downloads of a URL: one row for each change amount and size class.
#[derive(Clone, Debug, PartialEq, Table)]
#[table(name = "amounts")]
pub struct AmountRow {
    /// Equal features of two successive downloads; one more than all, 85 by default, if the bytes
    /// are equal.
    pub amount: i32,
    /// Size class of the URL's cluster at its first download in the weeks of the job.
    pub class: &'static str,
    /// Pairs of successive downloads.
    pub pairs: i64,
    /// Share of the class among all pairs of this amount (Fig. 8).
    ///
    /// From 0 to 1; null if there are no pairs.
    pub share: Option<f64>,
    /// Share over the class's mean share (Fig. 9).
    ///
    /// The mean is taken over all amounts, as in the study; one that does not occur counts as 0.
    /// Null if `share` is null or the mean is 0.
    pub relative: Option<f64>,
}

/// How much pages change: one row for each size class and kind of change.
#[derive(Clone, Debug, PartialEq, Table)]
#[table(name = "change-classes")]
pub struct ChangeClassRow {
    /// Size class of the URL's cluster at its first download in the weeks of the job.
    pub class: &'static str,
    /// `complete`, `large`, `medium`, `small`, `no-text-change` or `no-change`.
    ///
    /// See [`Change`](crate::stats::Change) for the amounts of each.
    pub change: &'static str,
    /// Pairs of successive downloads.
    pub pairs: i64,
    /// Share of the change among the pairs of the class (Fig. 10).
    ///
    /// From 0 to 1; null if there are no pairs.
    pub share: Option<f64>,
}

/// URLs first seen in a week: one row for each week and size class.
#[derive(Clone, Debug, PartialEq, Table)]
#[table(name = "births")]
pub struct BirthRow {
    /// The week.
    pub week: Week,
    /// Size class of the cluster they join, without births; `0`: only births.
    pub class: &'static str,
    /// URLs first seen in the week.
    pub documents: i64,
}

/// URLs with a page the week before and none in this one: one row for each week and size class.
#[derive(Clone, Debug, PartialEq, Table)]
#[table(name = "deaths")]
pub struct DeathRow {
    /// The week in which they are missing.
    pub week: Week,
    /// Size class of the cluster they leave.
    ///
    /// In the week before.
    pub class: &'static str,
    /// URLs with a page the week before and none in this one.
    pub documents: i64,
}
