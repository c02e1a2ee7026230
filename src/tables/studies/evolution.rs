//! The columns of the tables of the evolution job, which compares the weeks of a store (Fetterly 2004, section 3).
//!
//! They lie in `evolution/TABLE` of the store. A `week` is a date, as in the folder names of weeks. A
//! `class` is a range of cluster sizes in pages: `0`, `1`, `2-10`, `11-100`, `101-1000`, `1001-10000`, `10001-100000` or
//! `above 100000` ([`SizeClass`](crate::stats::SizeClass)). `week` and `class` join these tables with each other; no column
//! joins them with the tables of weeks.

use crate::records::Week;
use crate::tables::columns::{Column, Table, dates, ints, longs, maybe_doubles, nullable, required, texts};

/// `retention`: how well the clusters of the first week keep together: one row for every week and class.
///
/// C_1 and C_m are the clusters of a URL in the first week and in the week of the row, as sets of URLs. Means are over
/// the URLs of the class, from 0 to 1; they are null if there are no URLs.
#[derive(Clone, Debug, PartialEq)]
pub struct RetentionRow {
    /// The later week, m.
    pub week: Week,
    /// The class of the URL's cluster in the first week.
    pub class: &'static str,
    /// URLs of the class: those with a page in the first week.
    pub documents: i64,
    /// Mean of |C_1 n C_m| / |C_1| (Fig. 4).
    pub retention: Option<f64>,
    /// Mean of |C_1 n C_m| / |C_1 u C_m| (Fig. 5).
    pub similarity: Option<f64>,
    /// Mean of |C_1 n C_m| / |C_m| (Fig. 7).
    pub reverse: Option<f64>,
}

impl Table for RetentionRow {
    const NAME: &'static str = "retention";
    const DESCRIPTION: &'static str =
        "How well the clusters of the first week keep together: one row for each week and size class.";

    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![
            required("week", "the later week", dates(rows.iter().map(|r| r.week))),
            required("class", "size class of the URL's cluster in the first week", texts(rows.iter().map(|r| r.class))),
            required("documents", "URLs with a page in the first week", longs(rows.iter().map(|r| r.documents))),
            nullable(
                "retention",
                "mean share of its first cluster that is still in its cluster (Fig. 4)",
                maybe_doubles(rows.iter().map(|r| r.retention)),
            ),
            nullable(
                "similarity",
                "mean of intersection over union of the two clusters (Fig. 5)",
                maybe_doubles(rows.iter().map(|r| r.similarity)),
            ),
            nullable(
                "reverse",
                "mean share of its later cluster that was in the first one (Fig. 7)",
                maybe_doubles(rows.iter().map(|r| r.reverse)),
            ),
        ]
    }
}

/// `host-changes`: hosts by the change of their number of clusters from the first to the last week (Fig. 6): one row for every
/// change that occurs.
#[derive(Clone, Debug, PartialEq)]
pub struct HostChangeRow {
    /// The host's number of clusters in the last week less that in the first week; pages without duplicates are clusters too.
    pub change: i64,
    /// Hosts with this change.
    pub hosts: i64,
}

impl Table for HostChangeRow {
    const NAME: &'static str = "host-changes";
    const DESCRIPTION: &'static str =
        "Hosts by the change of their number of clusters, from the first week to the last (Fig. 6).";

    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![
            required(
                "change",
                "clusters of a host in the last week minus those in the first; singletons count",
                longs(rows.iter().map(|r| r.change)),
            ),
            required("hosts", "hosts with this change", longs(rows.iter().map(|r| r.hosts))),
        ]
    }
}

/// `amounts`: pairs of successive downloads of a URL (Fig. 8 and 9): one row for every change amount and class.
#[derive(Clone, Debug, PartialEq)]
pub struct AmountRow {
    /// The change amount: the number of equal features, 0 to 84 for the study's 84; one more (85) if the bytes are equal.
    pub amount: i32,
    /// The class of the URL's cluster at its first download in the weeks of the job.
    pub class: &'static str,
    /// Pairs of downloads with this amount and class.
    pub pairs: i64,
    /// `pairs` over the pairs of all classes with this amount, from 0 to 1; null if there are none (Fig. 8).
    pub share: Option<f64>,
    /// `share` over the class's mean share, which is taken over the amounts that occur; null if `share` is null or the mean is
    /// 0 (Fig. 9).
    pub relative: Option<f64>,
}

impl Table for AmountRow {
    const NAME: &'static str = "amounts";
    const DESCRIPTION: &'static str =
        "Pairs of successive downloads of a URL: one row for each change amount and size class.";

    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![
            required(
                "amount",
                "equal features of two successive downloads; one more than all, 85 by default, if the bytes are equal",
                ints(rows.iter().map(|r| r.amount)),
            ),
            required(
                "class",
                "size class of the URL's cluster at its first download in the weeks of the job",
                texts(rows.iter().map(|r| r.class)),
            ),
            required("pairs", "pairs of successive downloads", longs(rows.iter().map(|r| r.pairs))),
            nullable(
                "share",
                "share of the class among all pairs of this amount (Fig. 8)",
                maybe_doubles(rows.iter().map(|r| r.share)),
            ),
            nullable(
                "relative",
                "share over the class's mean share (Fig. 9)",
                maybe_doubles(rows.iter().map(|r| r.relative)),
            ),
        ]
    }
}

/// `change-classes`: how much pages change, by size class (Fig. 10): one row for every class and change.
#[derive(Clone, Debug, PartialEq)]
pub struct ChangeClassRow {
    /// The class of the URL's cluster at its first download in the weeks of the job.
    pub class: &'static str,
    /// The kind of change: `complete`, `large`, `medium`, `small`, `no-text-change` or `no-change`; see
    /// [`Change`](crate::stats::Change) for the amounts of each.
    pub change: &'static str,
    /// Pairs of successive downloads with this change.
    pub pairs: i64,
    /// `pairs` over all pairs of the class, from 0 to 1; null if there are none.
    pub share: Option<f64>,
}

impl Table for ChangeClassRow {
    const NAME: &'static str = "change-classes";
    const DESCRIPTION: &'static str = "How much pages change: one row for each size class and kind of change.";

    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![
            required(
                "class",
                "size class of the URL's cluster at its first download in the weeks of the job",
                texts(rows.iter().map(|r| r.class)),
            ),
            required(
                "change",
                "`complete`, `large`, `medium`, `small`, `no-text-change` or `no-change`",
                texts(rows.iter().map(|r| r.change)),
            ),
            required("pairs", "pairs of successive downloads", longs(rows.iter().map(|r| r.pairs))),
            nullable(
                "share",
                "share of the change among the pairs of the class (Fig. 10)",
                maybe_doubles(rows.iter().map(|r| r.share)),
            ),
        ]
    }
}

/// `births`: URLs first seen in a week, by the size of the cluster that they join: one row for every week and class.
#[derive(Clone, Debug, PartialEq)]
pub struct BirthRow {
    /// The week in which the URLs are first seen.
    pub week: Week,
    /// The class of the cluster without this week's births; `0` if it has only births.
    pub class: &'static str,
    /// URLs first seen in this week that join such a cluster.
    pub documents: i64,
}

impl Table for BirthRow {
    const NAME: &'static str = "births";
    const DESCRIPTION: &'static str = "URLs first seen in a week: one row for each week and size class.";

    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![
            required("week", "the week", dates(rows.iter().map(|r| r.week))),
            required(
                "class",
                "size class of the cluster they join, without births; `0`: only births",
                texts(rows.iter().map(|r| r.class)),
            ),
            required("documents", "URLs first seen in the week", longs(rows.iter().map(|r| r.documents))),
        ]
    }
}

/// `deaths`: URLs with a page in the week before and none in this one, by the size of the cluster that they leave: one row for
/// every week and class.
#[derive(Clone, Debug, PartialEq)]
pub struct DeathRow {
    /// The week in which the URLs have no page.
    pub week: Week,
    /// The class of the URL's cluster in the week before.
    pub class: &'static str,
    /// URLs that leave such a cluster.
    pub documents: i64,
}

impl Table for DeathRow {
    const NAME: &'static str = "deaths";
    const DESCRIPTION: &'static str =
        "URLs with a page the week before and none in this one: one row for each week and size class.";

    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![
            required("week", "the week in which they are missing", dates(rows.iter().map(|r| r.week))),
            required("class", "size class of the cluster they leave", texts(rows.iter().map(|r| r.class))),
            required(
                "documents",
                "URLs with a page the week before and none in this one",
                longs(rows.iter().map(|r| r.documents)),
            ),
        ]
    }
}
