//! The columns of the tables of the paragraphs job: where duplicates are, and how they grow
//! (Pereira, Baeza-Yates and Ziviani 2006).
//!
//! They lie in `paragraphs/TABLE` of the store. `doc` and `root` join these tables with those of
//! the job's week. A `region` is `all`, `connected` or `disconnected`. The study has three years:
//! 2003, 2004 and 2005.

use nigh_derive::Table;
use serde::{Deserialize, Serialize};

use super::genealogy::{BornPageRow, LifetimeRow, ParagraphTurnoverRow, ParentRow};
use crate::records::Week;
use crate::tables::store_table::{ResultTables, StoreTable};

/// The tables, in the order of their names.
pub(super) const TABLES: ResultTables = ResultTables {
    folder: "paragraphs",
    name_pages: true,
    read_chunks: true,
    tables: &[
        StoreTable::of::<BornPageRow>(),
        StoreTable::of::<BoilerplateRow>(),
        StoreTable::of::<CoverageRow>(),
        StoreTable::of::<EstimateRow>(),
        StoreTable::of::<GrowthRow>(),
        StoreTable::of::<LifetimeRow>(),
        StoreTable::of::<NearPageRow>(),
        StoreTable::of::<ParagraphPageRow>(),
        StoreTable::of::<ParentRow>(),
        StoreTable::of::<SeedRow>(),
        StoreTable::of::<ClusterSiteRow>(),
        StoreTable::of::<ClusterSizeRow>(),
        StoreTable::of::<RegionRow>(),
        StoreTable::of::<ParagraphTurnoverRow>(),
    ],
};

/// The study's shares, by year.
type Published = [Option<f64>; 3];

/// Duplicates and near-duplicates by region of the web (Tables 2 to 5): within a region, n pages of
/// one cluster are n - 1 duplicates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Table)]
#[table(name = "summary")]
pub struct RegionRow {
    /// All; connected: the pages that links lead to from the core or from `seeds`; disconnected:
    /// the others.
    pub region: String,
    /// The share of paragraphs that two near-duplicates have in common, at least; null for
    /// duplicates.
    pub near: Option<f64>,
    /// Pages of the region above `least-characters`.
    pub documents: u64,
    /// Clusters with several pages in the region.
    pub clusters: u64,
    /// Their pages in the region, less one for each.
    pub duplicates: u64,
    /// Duplicates over documents; null without pages.
    pub share: Option<f64>,
    /// The study's shares.
    #[columns(
        published_2003 = "the study's share in that year, where it gives one",
        published_2004 = "the study's share in that year, where it gives one",
        published_2005 = "the study's share in that year, where it gives one"
    )]
    pub published: Published,
}

/// How much of the web one sees from one region of it (Table 6): clusters of duplicates with a page
/// there, and pages there that have no duplicate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Table)]
#[table(name = "coverage")]
pub struct CoverageRow {
    /// Connected or disconnected.
    pub region: String,
    /// Clusters of duplicates.
    pub clusters: u64,
    /// Those with a page in the region.
    pub clusters_there: u64,
    /// Pages without a duplicate.
    pub unique: u64,
    /// Those in the region.
    pub unique_there: u64,
    /// (clusters_there + unique_there) / (clusters + unique): of different pages, those that are in
    /// the region; null without pages.
    pub useful: Option<f64>,
    /// The study's shares.
    #[columns(
        published_2003 = "the study's share in that year, where it gives one",
        published_2004 = "the study's share in that year, where it gives one",
        published_2005 = "the study's share in that year, where it gives one"
    )]
    pub published: Published,
}

/// Clusters of duplicates by their number of pages, for each region of the web (Fig. 2 to 4).
#[derive(Clone, Debug, PartialEq, Table)]
#[table(name = "sizes")]
pub struct ClusterSizeRow {
    /// All, connected or disconnected.
    pub region: &'static str,
    /// Pages of a cluster in the region, at least 2.
    pub size: i64,
    /// Clusters with so many pages.
    pub clusters: i64,
}

/// Whether clusters of duplicates lie on one site: by their number of pages (section 4.1 of the
/// study, which found by hand that large ones do).
#[derive(Clone, Debug, PartialEq, Table)]
#[table(name = "sites")]
pub struct ClusterSiteRow {
    /// Pages of a cluster, at least 2.
    pub size: i64,
    /// Clusters with so many pages.
    pub clusters: i64,
    /// Those of them with all pages on one host.
    pub one_host: i64,
    /// Those of them with all pages on one site: one registered domain, as `a.example` of
    /// `www.a.example`.
    pub one_site: i64,
}

/// How many duplicates are found if only the paragraphs of some parts of the crawl are searched for
/// in all pages (Fig. 5). All counts are of this step and the ones before.
#[derive(Clone, Debug, PartialEq, Table)]
#[table(name = "growth")]
pub struct GrowthRow {
    /// Number of parts, from 1.
    pub step: i32,
    /// Pages of these parts.
    pub documents: i64,
    /// Clusters that are found.
    pub clusters: i64,
    /// Pages of these clusters that are found, less one for each cluster.
    pub duplicates: i64,
}

/// The number of duplicates, estimated from a fifth and from half of the parts: by the growth of
/// the week before, as in the study, and by the sizes of the clusters that these parts find.
#[derive(Clone, Debug, PartialEq, Table)]
#[table(name = "estimates")]
pub struct EstimateRow {
    /// Number of parts that are searched.
    pub steps: i32,
    /// The week whose growth is taken for that of this week; null for the estimate by sizes, which
    /// needs no other week.
    pub of_week: Option<Week>,
    /// Duplicates that these parts find.
    pub found: i64,
    /// Estimate of all duplicates.
    pub estimated: f64,
    /// All duplicates.
    pub duplicates: i64,
    /// Estimated over all pages above `least-characters`.
    pub share: f64,
    /// Estimated / duplicates - 1; null without duplicates.
    pub error: Option<f64>,
    /// The study's share for 2005, estimated by the growth of 2004; the actual one was 0.358.
    pub published: Option<f64>,
}

/// The pages above `least-characters`, in the order of `doc` within each file, with their clusters
/// of duplicates.
#[derive(Clone, Debug, PartialEq, Table)]
#[table(name = "pages")]
pub struct ParagraphPageRow {
    /// Document id.
    #[column(ascending)]
    pub doc: i64,
    /// Its paragraphs, repeated ones included.
    pub paragraphs: i32,
    /// The smallest doc of its cluster of duplicates; doc itself if it is in none.
    pub root: i64,
    /// Pages of that cluster; 1 if it is in none.
    pub size: i64,
    /// Whether links lead to it from the core or from `seeds`.
    pub connected: bool,
    /// Its distinct paragraphs that are in `boilerplate`.
    pub boilerplate: i32,
}

/// The pages in clusters of near-duplicates, for each share of `near`. A duplicate is a
/// near-duplicate, too.
#[derive(Clone, Debug, PartialEq, Table)]
#[table(name = "near")]
pub struct NearPageRow {
    /// The share of paragraphs that two pages have in common, at least: 2 |A and B| / (|A| + |B|).
    pub near: f64,
    /// Document id.
    #[column(ascending)]
    pub doc: i64,
    /// The smallest doc of its cluster.
    pub root: i64,
    /// Pages of the cluster, at least 2.
    pub size: i64,
}

/// The pages of `seeds`; without them the 20 pages that most links of other hosts lead to. Of
/// these, the one whose page can be reached from most of the pages that it reaches is taken for a
/// page of the core.
#[derive(Clone, Debug, PartialEq, Table)]
#[table(name = "seeds")]
pub struct SeedRow {
    /// 1 for the page that most links lead to.
    pub rank: i32,
    /// Document id.
    pub doc: i64,
    /// Its URL.
    pub url: String,
    /// Links from pages of other hosts; null for given seeds.
    pub from_hosts: Option<i64>,
    /// Links from all pages; null for given seeds.
    pub in_links: Option<i64>,
    /// Pages that links lead to from it, short ones included; of given seeds, from all of them.
    pub reached: i64,
    /// Those from which links lead back: its strongly connected component; null for given seeds.
    pub core: Option<i64>,
    /// Whether the connected part is reached from it.
    pub chosen: bool,
}

/// Paragraphs that at least `boilerplate` pages have: navigation, licences, notices. With an
/// example each, so that they can be looked at.
#[derive(Clone, Debug, PartialEq, Table)]
#[table(name = "boilerplate")]
pub struct BoilerplateRow {
    /// 64-bit hash of the paragraph, as in `chunks.paragraphs` (there 8 bytes, little-endian).
    #[column(unique)]
    pub paragraph: i64,
    /// Pages above `least-characters` that have it.
    pub documents: i64,
    /// Hosts of these pages.
    pub hosts: i64,
    /// The host with most of these pages.
    pub host: String,
    /// These pages on that host.
    pub on_host: i64,
    /// An example: the smallest doc on that host.
    #[column(ascending)]
    pub doc: i64,
    /// URL of the example.
    pub url: String,
    /// Where the paragraph is in the example: 0 for the first paragraph of the page.
    pub place: i32,
}
