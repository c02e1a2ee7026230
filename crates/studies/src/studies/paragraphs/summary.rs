//! The summary of the paragraphs job, with the study's published numbers beside it (Pereira,
//! Baeza-Yates and Ziviani 2006).

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::config::Mode;
use crate::records::Week;
use crate::tables::studies::genealogy::ParagraphTurnoverRow;
use crate::tables::studies::paragraphs::{CoverageRow, RegionRow};

/// Regions of the web, as tables name them.
pub const REGIONS: [&str; 3] = ["all", "connected", "disconnected"];

/// The study's shares for 2003, 2004 and 2005, where it gives them.
pub type PublishedYears = [Option<f64>; 3];

/// The summary of a paragraphs job: kept as `summary.json` beside its tables, printed by `run` and
/// `show`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ParagraphsSummary {
    /// The store, as the run named it.
    pub store: PathBuf,
    /// The parameters of the store, on one line.
    pub method: String,
    /// The first week of which the tables know: paragraphs are followed since then.
    pub first: Week,
    /// The week.
    pub last: Week,
    /// The number of the commit that made the week.
    pub week_commit: u64,
    /// A page has more characters.
    pub least_characters: u64,
    /// Pages with so many.
    pub documents: u64,
    /// Pages with words that are shorter.
    pub short: u64,
    /// Pages with words of which the store has no paragraphs.
    pub without_chunks: u64,
    /// Duplicates and near-duplicates by region of the web: the table `summary`.
    pub regions: Vec<RegionRow>,
    /// Pairs of duplicates that are so only because one page repeats a paragraph.
    pub false_matches: u64,
    /// What is seen of the web from its connected part, and from the rest: the table `coverage`.
    pub coverage: Vec<CoverageRow>,
    /// Clusters of duplicates by size.
    pub shapes: Vec<ShapeOfClusters>,
    /// Clusters of duplicates on one host and on one site, by class of sizes. Empty in summaries of
    /// older versions.
    #[serde(default)]
    pub sites: Vec<SitesOfClusters>,
    /// Estimates of all duplicates from some parts of the crawl.
    pub estimates: Vec<Estimate>,
    /// The page from which the connected part is reached; the first of given seeds. `None` if no
    /// link leads to a page.
    pub seed: Option<String>,
    /// The number of given seeds; or of the candidates for a page of the core.
    pub seeds: u64,
    /// The pages of the core, if it was found.
    pub core: Option<u64>,
    /// The births of the week; `None` without genealogy, or without a week before.
    pub births: Option<BirthsSummary>,
    /// Paragraphs that come and go: the table `turnover`.
    pub turnover: Vec<ParagraphTurnoverRow>,
    /// The weeks in which paragraphs were followed, in order; the week alone without genealogy.
    pub followed: Vec<FollowedWeek>,
    /// The rows of `lifetimes`.
    pub lifetimes: u64,
    /// How paragraphs were followed: from the tables of a former run, or from the first week.
    pub mode: Mode,
    /// Paragraphs that enough pages have.
    pub boilerplate: u64,
    /// The pages that such a paragraph has, at least.
    pub least_boilerplate: u64,
}

/// What the study found in a region of the web, by its number.
pub fn published_of_region(region: usize, near: Option<f64>) -> PublishedYears {
    let is = |share: f64| near.is_some_and(|near| (near - share).abs() < 1e-9);
    match region {
        0 if near.is_none() => [0.389, 0.431, 0.358].map(Some),
        0 if is(0.9) => [Some(0.408), None, None],
        0 if is(0.7) => [Some(0.461), None, None],
        0 if is(0.5) => [0.528, 0.534, 0.499].map(Some),
        1 if near.is_none() => [0.259, 0.293, 0.260].map(Some),
        2 if near.is_none() => [0.430, 0.504, 0.411].map(Some),
        _ => [None; 3],
    }
}

/// What the study found of the web from a region, by its number.
pub fn published_coverage(region: usize) -> PublishedYears {
    if region == 1 { [0.626, 0.705, 0.736].map(Some) } else { [None; 3] }
}

/// A share of the clusters of duplicates, or of duplicates, by size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ShapeOfClusters {
    /// What is counted.
    pub what: String,
    /// The share; `None` without clusters.
    pub share: Option<f64>,
    /// The study's share.
    pub published: f64,
}

/// Clusters of duplicates of a class of sizes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SitesOfClusters {
    /// The class, as in the tables of the evolution job.
    pub class: String,
    /// Clusters with so many pages.
    pub clusters: u64,
    /// Those with all pages on one host.
    pub one_host: u64,
    /// Those with all pages on one site: under one registered domain.
    pub one_site: u64,
}

/// An estimate of all duplicates.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The parts that are searched.
    pub steps: u32,
    /// The week whose growth is taken for that of this one; `None` for the estimate by sizes.
    pub of_week: Option<Week>,
    /// Duplicates that these parts find.
    pub found: u64,
    /// The estimate of all.
    pub estimated: f64,
    /// The estimate over the pages; 0 without pages.
    pub share: f64,
    /// `estimated / duplicates - 1`; `None` without duplicates.
    pub error: Option<f64>,
    /// The study's estimate of the share for 2005, which was 0.358.
    pub published: Option<f64>,
}

/// The pages that are new in the week.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BirthsSummary {
    /// The week before, which has no page at their URLs.
    pub since: Week,
    /// These pages.
    pub born: u64,
    /// Those without a paragraph that the week before had.
    pub original: u64,
    /// Those of which one page of the week before had all paragraphs.
    pub copies: u64,
    /// Those with paragraphs from several pages.
    pub assembled: u64,
    /// Those whose first parent is on another host.
    pub from_other_hosts: u64,
    /// The distinct paragraphs of all of them.
    pub paragraphs: u64,
    /// Those that the week before had.
    pub inherited: u64,
}

/// A week in which paragraphs were followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FollowedWeek {
    /// The week.
    pub week: Week,
    /// The number of the commit that made it.
    pub commit: u64,
}
