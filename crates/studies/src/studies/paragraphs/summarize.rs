//! The summary of the paragraphs job.

use std::collections::BTreeMap;

use super::estimates::estimates;
use super::followed::Genealogy;
use super::reach::LinkSeed;
use super::steps::{Growth, RegionCounts, SiteCounts};
use super::{
    Paragraphs, ParagraphsSummary, REGIONS, ShapeOfClusters, SitesOfClusters, published_coverage, published_of_region,
};
use crate::records::DocId;
use crate::stats::{SizeClass, ratio};
use crate::studies::StudyPlan;
use crate::studies::overlap::steps::PageName;
use crate::tables::studies::paragraphs::{CoverageRow, RegionRow};

/// What all workers found.
pub(super) struct ParagraphsFound<'a> {
    pub plan: &'a StudyPlan,
    pub job: &'a Paragraphs,
    /// Of duplicates.
    pub counts: RegionCounts,
    /// Of duplicates, by size.
    pub sites: BTreeMap<u64, SiteCounts>,
    /// Of near-duplicates, for each threshold of the job.
    pub near: Vec<RegionCounts>,
    /// Pairs of pages.
    pub false_matches: u64,
    pub growth: Growth,
    /// That of the week before.
    pub earlier: Option<Growth>,
    pub seeds: Vec<LinkSeed>,
    /// The names of the seeds.
    pub names: BTreeMap<DocId, PageName>,
    /// Paragraphs that enough pages have.
    pub boilerplate: u64,
    pub genealogy: Genealogy,
}

/// The study's shares: clusters of two pages, clusters of at most ten, duplicates in clusters of
/// two.
const SHAPES: [(&str, f64); 3] = [
    ("clusters of two pages", 0.63),
    ("clusters of at most ten pages", 0.957),
    ("duplicates in clusters of two", 0.19),
];

impl ParagraphsFound<'_> {
    /// The URL of a seed.
    pub fn url(&self, seed: &LinkSeed) -> String {
        self.names.get(&seed.doc).map(|name| name.url.clone()).unwrap_or_default()
    }

    /// The summary of the job.
    pub fn summary(&self) -> ParagraphsSummary {
        let ParagraphsFound { plan, job, counts, .. } = self;
        let (history, documents) = (&plan.history, counts.documents(0));
        let (words, chunks) = history.last().pages_with_chunks();
        let weeks = &history.weeks;
        let week_before = weeks.len().checked_sub(2).map(|before| weeks[before].week);
        let chosen = self.seeds.iter().find(|seed| seed.is_chosen);
        let first = self.genealogy.followed.first().map_or(history.last().week, |week| week.week);
        ParagraphsSummary {
            store: history.store.clone(),
            method: history.method.clone(),
            first: first.min(history.first().week),
            last: history.last().week,
            week_commit: history.last().commit,
            least_characters: job.least_characters,
            documents,
            short: chunks.saturating_sub(documents),
            without_chunks: words.saturating_sub(chunks),
            regions: self.regions(),
            false_matches: self.false_matches,
            coverage: [1, 2].map(|region| self.coverage(region)).into(),
            shapes: self.shapes(),
            sites: self.sites(),
            estimates: estimates(&self.growth, self.earlier.as_ref(), week_before, documents),
            seed: chosen.map(|seed| self.url(seed)),
            seeds: self.seeds.len() as u64,
            core: chosen.and_then(|seed| seed.core),
            births: self.genealogy.births,
            turnover: self.genealogy.turnover.clone(),
            followed: self.genealogy.followed.clone(),
            lifetimes: self.genealogy.lifetimes,
            mode: self.genealogy.mode,
            boilerplate: self.boilerplate,
            least_boilerplate: job.boilerplate.get().into(),
        }
    }

    /// By region of the web: duplicates, then near-duplicates.
    fn regions(&self) -> Vec<RegionRow> {
        let of_region = |region: usize| {
            let near = self.job.near.iter().map(|share| Some(share.0)).zip(&self.near);
            std::iter::once((None, &self.counts)).chain(near).map(move |(near, counts)| {
                let (documents, duplicates) = (counts.documents(region), counts.duplicates(region));
                RegionRow {
                    region: REGIONS[region].into(),
                    near,
                    documents,
                    clusters: counts.clusters(region),
                    duplicates,
                    share: ratio(duplicates, documents),
                    published: published_of_region(region, near),
                }
            })
        };
        (0..REGIONS.len()).flat_map(of_region).collect()
    }

    fn coverage(&self, region: usize) -> CoverageRow {
        let RegionCounts { with_page, unique, .. } = &self.counts;
        CoverageRow {
            region: REGIONS[region].into(),
            clusters: with_page[0],
            clusters_there: with_page[region],
            unique: unique[0],
            unique_there: unique[region],
            useful: ratio(with_page[region] + unique[region], with_page[0] + unique[0]),
            published: published_coverage(region),
        }
    }

    /// The clusters of each class of sizes that has some.
    fn sites(&self) -> Vec<SitesOfClusters> {
        let mut classes: BTreeMap<SizeClass, SiteCounts> = BTreeMap::new();
        self.sites.iter().for_each(|(size, counts)| classes.entry(SizeClass::of(*size)).or_default().add(*counts));
        let of_class = |(class, counts): (SizeClass, SiteCounts)| SitesOfClusters {
            class: class.name().into(),
            clusters: counts.clusters,
            one_host: counts.one_host,
            one_site: counts.one_site,
        };
        classes.into_iter().map(of_class).collect()
    }

    fn shapes(&self) -> Vec<ShapeOfClusters> {
        let (clusters, duplicates) = (self.counts.clusters(0), self.counts.duplicates(0));
        let up_to = |most: u64| self.counts.sizes[0].range(2..=most).map(|(_, clusters)| clusters).sum::<u64>();
        let shares = [ratio(up_to(2), clusters), ratio(up_to(10), clusters), ratio(up_to(2), duplicates)];
        let shapes = SHAPES.into_iter().zip(shares);
        shapes.map(|((what, published), share)| ShapeOfClusters { what: what.into(), share, published }).collect()
    }
}
