//! The columns of the tables of the evolution job (Fetterly 2004, section 3). A class is a class of cluster sizes.

use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array};

use super::rows::{Column, Table, ints, longs, nullable, required, texts};

fn maybe_doubles(values: impl Iterator<Item = Option<f64>>) -> ArrayRef {
    Arc::new(Float64Array::from_iter(values))
}

/// `retention`: how the clusters of the first week keep together; a week and class a row. Means are null of no URLs.
#[derive(Clone, Debug, PartialEq)]
pub struct RetentionRow {
    /// The later week.
    pub week: String,
    /// The class of the URL's cluster in the first week.
    pub class: &'static str,
    /// URLs with a page in the first week.
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

    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![
            required("week", texts(rows.iter().map(|r| r.week.as_str()))),
            required("class", texts(rows.iter().map(|r| r.class))),
            required("documents", longs(rows.iter().map(|r| r.documents))),
            nullable("retention", maybe_doubles(rows.iter().map(|r| r.retention))),
            nullable("similarity", maybe_doubles(rows.iter().map(|r| r.similarity))),
            nullable("reverse", maybe_doubles(rows.iter().map(|r| r.reverse))),
        ]
    }
}

/// `host-changes`: hosts by the change of their number of clusters from the first to the last week (Fig. 6).
#[derive(Clone, Debug, PartialEq)]
pub struct HostChangeRow {
    /// Clusters in the last week less those in the first.
    pub change: i64,
    /// Hosts with this change.
    pub hosts: i64,
}

impl Table for HostChangeRow {
    const NAME: &'static str = "host-changes";

    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![
            required("change", longs(rows.iter().map(|r| r.change))),
            required("hosts", longs(rows.iter().map(|r| r.hosts))),
        ]
    }
}

/// `amounts`: pairs of successive downloads of a URL by change amount and class (Fig. 8 and 9).
#[derive(Clone, Debug, PartialEq)]
pub struct AmountRow {
    /// Equal features, or one more than there are where the bytes are equal.
    pub amount: i32,
    /// The class of the URL's cluster at its first download.
    pub class: &'static str,
    /// Pairs of downloads.
    pub pairs: i64,
    /// These over the pairs of all classes with this amount; null where there are none.
    pub share: Option<f64>,
    /// The share over the class' mean share over the amounts that occur; null where that is none or 0.
    pub relative: Option<f64>,
}

impl Table for AmountRow {
    const NAME: &'static str = "amounts";

    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![
            required("amount", ints(rows.iter().map(|r| r.amount))),
            required("class", texts(rows.iter().map(|r| r.class))),
            required("pairs", longs(rows.iter().map(|r| r.pairs))),
            nullable("share", maybe_doubles(rows.iter().map(|r| r.share))),
            nullable("relative", maybe_doubles(rows.iter().map(|r| r.relative))),
        ]
    }
}

/// `change-classes`: the changes of each class (Fig. 10).
#[derive(Clone, Debug, PartialEq)]
pub struct ChangeClassRow {
    /// The class of the URL's cluster at its first download.
    pub class: &'static str,
    /// `complete`, `large`, `medium`, `small`, `no-text-change` or `no-change`.
    pub change: &'static str,
    /// Pairs of downloads.
    pub pairs: i64,
    /// These over all pairs of the class; null where there are none.
    pub share: Option<f64>,
}

impl Table for ChangeClassRow {
    const NAME: &'static str = "change-classes";

    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![
            required("class", texts(rows.iter().map(|r| r.class))),
            required("change", texts(rows.iter().map(|r| r.change))),
            required("pairs", longs(rows.iter().map(|r| r.pairs))),
            nullable("share", maybe_doubles(rows.iter().map(|r| r.share))),
        ]
    }
}

/// `births`: URLs first seen in a week, by the cluster that they join.
#[derive(Clone, Debug, PartialEq)]
pub struct BirthRow {
    /// The week.
    pub week: String,
    /// The class of the cluster without the week's births.
    pub class: &'static str,
    /// URLs.
    pub documents: i64,
}

impl Table for BirthRow {
    const NAME: &'static str = "births";

    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![
            required("week", texts(rows.iter().map(|r| r.week.as_str()))),
            required("class", texts(rows.iter().map(|r| r.class))),
            required("documents", longs(rows.iter().map(|r| r.documents))),
        ]
    }
}

/// `deaths`: URLs with a page in the week before and none in this one, by the cluster that they leave.
#[derive(Clone, Debug, PartialEq)]
pub struct DeathRow {
    /// The week in which they are missing.
    pub week: String,
    /// The class of their cluster in the week before.
    pub class: &'static str,
    /// URLs.
    pub documents: i64,
}

impl Table for DeathRow {
    const NAME: &'static str = "deaths";

    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![
            required("week", texts(rows.iter().map(|r| r.week.as_str()))),
            required("class", texts(rows.iter().map(|r| r.class))),
            required("documents", longs(rows.iter().map(|r| r.documents))),
        ]
    }
}
