//! The columns of the tables of the paragraphs job: where duplicates are, and how they grow (Pereira, Baeza-Yates and Ziviani 2006).
//!
//! They lie in `paragraphs/TABLE` of the store. `doc` and `root` join these tables with those of the job's week. A `region` is `all`,
//! `connected` or `disconnected`. The study has three years: 2003, 2004 and 2005.

use arrow_array::ArrayRef;

use crate::records::Week;
use crate::tables::columns::{
    Column, Table, booleans, doubles, ints, longs, maybe_dates, maybe_doubles, maybe_longs, nullable, required, texts,
};

/// The study's shares, by year.
type Published = [Option<f64>; 3];

/// The columns of the study's shares.
fn published<'a>(shares: impl Iterator<Item = &'a Published> + Clone) -> impl Iterator<Item = Column> {
    let names = ["published_2003", "published_2004", "published_2005"];
    let values: Vec<ArrayRef> = (0..3).map(|year| maybe_doubles(shares.clone().map(|shares| shares[year]))).collect();
    let column = |(name, values)| nullable(name, "the study's share in that year, where it gives one", values);
    names.into_iter().zip(values).map(column)
}

/// `summary`: duplicates and near-duplicates by region of the web (Tables 2 to 5).
#[derive(Clone, Debug, PartialEq)]
pub struct RegionRow {
    /// The region.
    pub region: &'static str,
    /// The least share of paragraphs in common; `None` for duplicates.
    pub near: Option<f64>,
    /// Pages of the region.
    pub documents: i64,
    /// Clusters with several pages in the region.
    pub clusters: i64,
    /// Their pages in the region, less one for each cluster.
    pub duplicates: i64,
    /// `duplicates / documents`.
    pub share: Option<f64>,
    /// The study's shares.
    pub published: Published,
}

impl Table for RegionRow {
    const NAME: &'static str = "summary";
    const DESCRIPTION: &'static str = "Duplicates and near-duplicates by region of the web (Tables 2 to 5): within a region, n pages of one cluster are n - 1 duplicates.";

    fn columns(rows: &[Self]) -> Vec<Column> {
        let mut columns = vec![
            required(
                "region",
                "all; connected: the pages that links lead to from the core or from `seeds`; disconnected: the others",
                texts(rows.iter().map(|r| r.region)),
            ),
            nullable(
                "near",
                "the share of paragraphs that two near-duplicates have in common, at least; null for duplicates",
                maybe_doubles(rows.iter().map(|r| r.near)),
            ),
            required(
                "documents",
                "pages of the region above `least-characters`",
                longs(rows.iter().map(|r| r.documents)),
            ),
            required("clusters", "clusters with several pages in the region", longs(rows.iter().map(|r| r.clusters))),
            required(
                "duplicates",
                "their pages in the region, less one for each",
                longs(rows.iter().map(|r| r.duplicates)),
            ),
            nullable(
                "share",
                "duplicates over documents; null without pages",
                maybe_doubles(rows.iter().map(|r| r.share)),
            ),
        ];
        columns.extend(published(rows.iter().map(|r| &r.published)));
        columns
    }
}

/// `coverage`: which clusters have a page in which region (Table 6).
#[derive(Clone, Debug, PartialEq)]
pub struct CoverageRow {
    /// The region.
    pub region: &'static str,
    /// Clusters of several pages, in all regions.
    pub clusters: i64,
    /// Those with a page in the region.
    pub clusters_there: i64,
    /// Pages in no cluster, in all regions.
    pub unique: i64,
    /// Those in the region.
    pub unique_there: i64,
    /// `(clusters_there + unique_there) / (clusters + unique)`.
    pub useful: Option<f64>,
    /// The study's shares.
    pub published: Published,
}

impl Table for CoverageRow {
    const NAME: &'static str = "coverage";
    const DESCRIPTION: &'static str = "How much of the web one sees from one region of it (Table 6): clusters of duplicates with a page there, and pages there that have no duplicate.";

    fn columns(rows: &[Self]) -> Vec<Column> {
        let mut columns = vec![
            required("region", "connected or disconnected", texts(rows.iter().map(|r| r.region))),
            required("clusters", "clusters of duplicates", longs(rows.iter().map(|r| r.clusters))),
            required("clusters_there", "those with a page in the region", longs(rows.iter().map(|r| r.clusters_there))),
            required("unique", "pages without a duplicate", longs(rows.iter().map(|r| r.unique))),
            required("unique_there", "those in the region", longs(rows.iter().map(|r| r.unique_there))),
            nullable(
                "useful",
                "(clusters_there + unique_there) / (clusters + unique): of different pages, those that are in the region; null without pages",
                maybe_doubles(rows.iter().map(|r| r.useful)),
            ),
        ];
        columns.extend(published(rows.iter().map(|r| &r.published)));
        columns
    }
}

/// `sizes`: clusters by size (Fig. 2 to 4).
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterSizeRow {
    /// The region.
    pub region: &'static str,
    /// Pages of a cluster in the region.
    pub size: i64,
    /// Clusters with so many.
    pub clusters: i64,
}

impl Table for ClusterSizeRow {
    const NAME: &'static str = "sizes";
    const DESCRIPTION: &'static str =
        "Clusters of duplicates by their number of pages, for each region of the web (Fig. 2 to 4).";

    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![
            required("region", "all, connected or disconnected", texts(rows.iter().map(|r| r.region))),
            required("size", "pages of a cluster in the region, at least 2", longs(rows.iter().map(|r| r.size))),
            required("clusters", "clusters with so many pages", longs(rows.iter().map(|r| r.clusters))),
        ]
    }
}

/// `growth`: duplicates by the parts of the crawl that were searched (Fig. 5).
#[derive(Clone, Debug, PartialEq)]
pub struct GrowthRow {
    /// The parts that were searched.
    pub step: i32,
    /// Their pages.
    pub documents: i64,
    /// Clusters that are found.
    pub clusters: i64,
    /// Duplicates that are found.
    pub duplicates: i64,
}

impl Table for GrowthRow {
    const NAME: &'static str = "growth";
    const DESCRIPTION: &'static str = "How many duplicates are found if only the paragraphs of some parts of the crawl are searched for in all pages (Fig. 5). All counts are of this step and the ones before.";

    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![
            required("step", "number of parts, from 1", ints(rows.iter().map(|r| r.step))),
            required("documents", "pages of these parts", longs(rows.iter().map(|r| r.documents))),
            required("clusters", "clusters that are found", longs(rows.iter().map(|r| r.clusters))),
            required(
                "duplicates",
                "pages of these clusters that are found, less one for each cluster",
                longs(rows.iter().map(|r| r.duplicates)),
            ),
        ]
    }
}

/// `estimates`: the number of duplicates, estimated from some parts of the crawl.
#[derive(Clone, Debug, PartialEq)]
pub struct EstimateRow {
    /// The parts that were searched.
    pub steps: i32,
    /// The week whose growth is taken for this one's; `None` for the estimate by sizes.
    pub of_week: Option<Week>,
    /// Duplicates that these parts find.
    pub found: i64,
    /// The estimate of all duplicates.
    pub estimated: f64,
    /// All duplicates.
    pub duplicates: i64,
    /// `estimated` over the pages.
    pub share: f64,
    /// `estimated / duplicates - 1`.
    pub error: Option<f64>,
    /// The study's estimate for 2005.
    pub published: Option<f64>,
}

impl Table for EstimateRow {
    const NAME: &'static str = "estimates";
    const DESCRIPTION: &'static str = "The number of duplicates, estimated from a fifth and from half of the parts: by the growth of the week before, as in the study, and by the sizes of the clusters that these parts find.";

    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![
            required("steps", "number of parts that are searched", ints(rows.iter().map(|r| r.steps))),
            nullable(
                "of_week",
                "the week whose growth is taken for that of this week; null for the estimate by sizes, which needs no other week",
                maybe_dates(rows.iter().map(|r| r.of_week)),
            ),
            required("found", "duplicates that these parts find", longs(rows.iter().map(|r| r.found))),
            required("estimated", "estimate of all duplicates", doubles(rows.iter().map(|r| r.estimated))),
            required("duplicates", "all duplicates", longs(rows.iter().map(|r| r.duplicates))),
            required(
                "share",
                "estimated over all pages above `least-characters`",
                doubles(rows.iter().map(|r| r.share)),
            ),
            nullable(
                "error",
                "estimated / duplicates - 1; null without duplicates",
                maybe_doubles(rows.iter().map(|r| r.error)),
            ),
            nullable(
                "published",
                "the study's share for 2005, estimated by the growth of 2004; the actual one was 0.358",
                maybe_doubles(rows.iter().map(|r| r.published)),
            ),
        ]
    }
}

/// `pages`: the pages above `least-characters`, and their clusters.
#[derive(Clone, Debug, PartialEq)]
pub struct ParagraphPageRow {
    /// The page.
    pub doc: i64,
    /// Its paragraphs.
    pub paragraphs: i32,
    /// The smallest page of its cluster of duplicates.
    pub root: i64,
    /// The pages of that cluster.
    pub size: i64,
    /// Whether it is in the connected part.
    pub connected: bool,
    /// Its distinct paragraphs that are in `boilerplate`.
    pub boilerplate: i32,
}

impl Table for ParagraphPageRow {
    const NAME: &'static str = "pages";
    const DESCRIPTION: &'static str = "The pages above `least-characters`, in the order of `doc` within each file, with their clusters of duplicates.";
    const ASCENDING: &'static [&'static str] = &["doc"];

    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![
            required("doc", "document id", longs(rows.iter().map(|r| r.doc))),
            required("paragraphs", "its paragraphs, repeated ones included", ints(rows.iter().map(|r| r.paragraphs))),
            required(
                "root",
                "the smallest doc of its cluster of duplicates; doc itself if it is in none",
                longs(rows.iter().map(|r| r.root)),
            ),
            required("size", "pages of that cluster; 1 if it is in none", longs(rows.iter().map(|r| r.size))),
            required(
                "connected",
                "whether links lead to it from the core or from `seeds`",
                booleans(rows.iter().map(|r| r.connected)),
            ),
            required(
                "boilerplate",
                "its distinct paragraphs that are in `boilerplate`",
                ints(rows.iter().map(|r| r.boilerplate)),
            ),
        ]
    }
}

/// `near`: pages in clusters of near-duplicates.
#[derive(Clone, Debug, PartialEq)]
pub struct NearPageRow {
    /// The least share of paragraphs in common.
    pub near: f64,
    /// The page.
    pub doc: i64,
    /// The smallest page of its cluster.
    pub root: i64,
    /// The pages of the cluster.
    pub size: i64,
}

impl Table for NearPageRow {
    const NAME: &'static str = "near";
    const DESCRIPTION: &'static str =
        "The pages in clusters of near-duplicates, for each share of `near`. A duplicate is a near-duplicate, too.";
    const ASCENDING: &'static [&'static str] = &["doc"];

    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![
            required(
                "near",
                "the share of paragraphs that two pages have in common, at least: 2 |A and B| / (|A| + |B|)",
                doubles(rows.iter().map(|r| r.near)),
            ),
            required("doc", "document id", longs(rows.iter().map(|r| r.doc))),
            required("root", "the smallest doc of its cluster", longs(rows.iter().map(|r| r.root))),
            required("size", "pages of the cluster, at least 2", longs(rows.iter().map(|r| r.size))),
        ]
    }
}

/// `seeds`: the pages from which the connected part is reached, or that were candidates for it.
#[derive(Clone, Debug, PartialEq)]
pub struct SeedRow {
    /// The rank, from 1.
    pub rank: i32,
    /// The page.
    pub doc: i64,
    /// Its URL.
    pub url: String,
    /// Links from other hosts.
    pub from_hosts: Option<i64>,
    /// Links from any page.
    pub in_links: Option<i64>,
    /// The pages that links lead to from it.
    pub reached: i64,
    /// The pages of its strongly connected component.
    pub core: Option<i64>,
    /// Whether the connected part is reached from it.
    pub chosen: bool,
}

impl Table for SeedRow {
    const NAME: &'static str = "seeds";
    const DESCRIPTION: &'static str = "The pages of `seeds`; without them the 20 pages that most links of other hosts lead to. Of these, the one whose page can be reached from most of the pages that it reaches is taken for a page of the core.";

    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![
            required("rank", "1 for the page that most links lead to", ints(rows.iter().map(|r| r.rank))),
            required("doc", "document id", longs(rows.iter().map(|r| r.doc))),
            required("url", "its URL", texts(rows.iter().map(|r| r.url.as_str()))),
            nullable(
                "from_hosts",
                "links from pages of other hosts; null for given seeds",
                maybe_longs(rows.iter().map(|r| r.from_hosts)),
            ),
            nullable(
                "in_links",
                "links from all pages; null for given seeds",
                maybe_longs(rows.iter().map(|r| r.in_links)),
            ),
            required(
                "reached",
                "pages that links lead to from it, short ones included; of given seeds, from all of them",
                longs(rows.iter().map(|r| r.reached)),
            ),
            nullable(
                "core",
                "those from which links lead back: its strongly connected component; null for given seeds",
                maybe_longs(rows.iter().map(|r| r.core)),
            ),
            required(
                "chosen",
                "whether the connected part is reached from it",
                booleans(rows.iter().map(|r| r.chosen)),
            ),
        ]
    }
}

/// `boilerplate`: paragraphs that many pages have.
#[derive(Clone, Debug, PartialEq)]
pub struct BoilerplateRow {
    /// The hash of the paragraph.
    pub paragraph: i64,
    /// Pages that have it.
    pub documents: i64,
    /// Hosts of these pages.
    pub hosts: i64,
    /// The host with most of them.
    pub host: String,
    /// The pages of that host.
    pub on_host: i64,
    /// A page of that host that has it.
    pub doc: i64,
    /// Its URL.
    pub url: String,
    /// Where it is in that page.
    pub place: i32,
}

impl Table for BoilerplateRow {
    const NAME: &'static str = "boilerplate";
    const DESCRIPTION: &'static str = "Paragraphs that at least `boilerplate` pages have: navigation, licences, notices. With an example each, so that they can be looked at.";
    const UNIQUE: &'static [&'static str] = &["paragraph"];
    const ASCENDING: &'static [&'static str] = &["doc"];

    fn columns(rows: &[Self]) -> Vec<Column> {
        vec![
            required(
                "paragraph",
                "64-bit hash of the paragraph, as in `chunks.paragraphs` (there 8 bytes, little-endian)",
                longs(rows.iter().map(|r| r.paragraph)),
            ),
            required(
                "documents",
                "pages above `least-characters` that have it",
                longs(rows.iter().map(|r| r.documents)),
            ),
            required("hosts", "hosts of these pages", longs(rows.iter().map(|r| r.hosts))),
            required("host", "the host with most of these pages", texts(rows.iter().map(|r| r.host.as_str()))),
            required("on_host", "these pages on that host", longs(rows.iter().map(|r| r.on_host))),
            required("doc", "an example: the smallest doc on that host", longs(rows.iter().map(|r| r.doc))),
            required("url", "URL of the example", texts(rows.iter().map(|r| r.url.as_str()))),
            required(
                "place",
                "where the paragraph is in the example: 0 for the first paragraph of the page",
                ints(rows.iter().map(|r| r.place)),
            ),
        ]
    }
}
