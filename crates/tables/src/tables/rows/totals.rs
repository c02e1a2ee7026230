//! The rows of a week's totals: sizes of clusters, the largest of them, and the summary.

use nigh_derive::Table;

/// How many clusters there are of each size: one row for each level and size.
///
/// Size 1 is included.
#[derive(Clone, Debug, Table)]
#[table(name = "sizes")]
pub struct SizeRow {
    /// `similar`, `identical` or `exact`.
    pub level: &'static str,
    /// Pages of a cluster, from 1.
    pub size: i64,
    /// How many clusters have this size.
    pub clusters: i64,
}

/// The 20 largest clusters of each level (Fetterly 2004, tables 1 and 2).
#[derive(Clone, Debug, Table)]
#[table(name = "largest")]
pub struct LargestRow {
    /// `similar`, `identical` or `exact`.
    pub level: &'static str,
    /// From 1.
    pub rank: i32,
    /// Pages of the cluster.
    pub urls: i64,
    /// Distinct hosts.
    pub hosts: i64,
    /// Machines: hosts with an IP address in common are on one, directly or over other hosts; hosts
    /// without an address are not counted.
    pub machines: i64,
    /// Hosts without a known address (the summary prints `machines (+unresolved)`).
    pub unresolved: i64,
    /// Title of the cluster's root.
    pub title: String,
    /// The root: its canonical URL, or where it has none its id, or file and offset.
    pub name: String,
    /// Document id of the root: the `similar_root`, `identical_root` or `exact_root` of the
    /// cluster's pages, by level.
    pub doc: i64,
    /// The very similar cluster's id through the weeks, as in `clusters`; null at the other levels.
    pub cluster_id: Option<i64>,
}

/// The totals of a week: one row for each level.
#[derive(Clone, Debug, Table)]
#[table(name = "summary")]
pub struct SummaryRow {
    /// `similar`, `identical` or `exact`.
    pub level: &'static str,
    /// Pages of the week.
    pub documents: i64,
    /// Pages in clusters of at least two.
    pub clustered: i64,
    /// Clusters of at least two pages.
    pub clusters: i64,
    /// Clustered pages minus one for each cluster.
    ///
    /// Pages that go if one of each cluster stays.
    pub duplicates: i64,
    /// Duplicates over documents, from 0 to 1.
    ///
    /// 0 for a week without pages.
    pub share: f64,
    /// Exponent of the power law of cluster sizes, by maximum likelihood; null if there are too few
    /// clusters.
    ///
    /// Rounded to three decimals.
    pub exponent: Option<f64>,
    /// The smallest size the power law is fitted to; null if there are too few clusters.
    pub x_min: Option<i64>,
}
