//! The summary of the paragraphs job, and its estimates.

use std::collections::BTreeMap;

use super::genealogy::Genealogy;
use crate::config::Paragraphs;
use crate::jobs::studies::plan::StudyPlan;
use crate::operators::overlap::PageName;
use crate::operators::paragraphs::{Growth, PartCounts, Seed};
use crate::records::{DocId, Week};
use crate::stats::ratio;
use crate::summary::{CoverageSummary, Estimate, PARTS_OF_WEB, ParagraphsSummary, PartSummary, ShapeOfClusters};

/// What all workers found.
pub(super) struct ParagraphsFound<'a> {
    pub plan: &'a StudyPlan,
    pub job: &'a Paragraphs,
    /// Of duplicates.
    pub counts: PartCounts,
    /// Of near-duplicates, for each threshold of the job.
    pub near: Vec<PartCounts>,
    /// Pairs of pages.
    pub false_matches: u64,
    pub growth: Growth,
    /// That of the week before.
    pub earlier: Option<Growth>,
    pub seeds: Vec<Seed>,
    /// The names of the seeds.
    pub names: BTreeMap<DocId, PageName>,
    /// Paragraphs that enough pages have.
    pub boilerplate: u64,
    pub genealogy: Genealogy,
}

/// Of the parts of the crawl, those that estimates are made from: one of so many; and the study's estimate for 2005.
const ESTIMATED_FROM: [(u32, f64); 2] = [(5, 0.344), (2, 0.356)];
/// The study's shares (section 4.2): clusters of two pages, clusters of at most ten, duplicates in clusters of two.
const SHAPES: [(&str, f64); 3] = [
    ("clusters of two pages", 0.63),
    ("clusters of at most ten pages", 0.957),
    ("duplicates in clusters of two", 0.19),
];

impl ParagraphsFound<'_> {
    /// The URL of a seed.
    pub fn url(&self, seed: &Seed) -> String {
        self.names.get(&seed.doc).map(|name| name.url.clone()).unwrap_or_default()
    }

    /// The summary of the job.
    pub fn summary(&self) -> ParagraphsSummary {
        let ParagraphsFound { plan, job, counts, .. } = self;
        let (history, documents) = (&plan.history, counts.documents(0));
        let (words, chunks) = history.last().pages_with_chunks();
        let chosen = self.seeds.iter().find(|seed| seed.is_chosen);
        ParagraphsSummary {
            store: history.store.clone(),
            method: history.method.clone(),
            first: self.genealogy.first,
            last: history.last().week,
            week_commit: history.last().commit,
            least_characters: job.least_characters,
            documents,
            short: chunks.saturating_sub(documents),
            without_chunks: words.saturating_sub(chunks),
            parts: self.parts(),
            false_matches: self.false_matches,
            coverage: [1, 2].map(|part| self.coverage(part)).into(),
            shapes: self.shapes(),
            estimates: self.estimates(),
            seed: chosen.map(|seed| self.url(seed)),
            core: chosen.and_then(|seed| seed.core),
            births: self.genealogy.births,
            turnover: self.genealogy.turnover.clone(),
            boilerplate: self.boilerplate,
            least_boilerplate: job.boilerplate.get().into(),
        }
    }

    /// By part of the web: duplicates, then near-duplicates.
    fn parts(&self) -> Vec<PartSummary> {
        let of_part = |part: usize| {
            let near = self.job.near.iter().map(|share| Some(share.0)).zip(&self.near);
            std::iter::once((None, &self.counts)).chain(near).map(move |(near, counts)| {
                let (documents, duplicates) = (counts.documents(part), counts.duplicates(part));
                PartSummary {
                    part: PARTS_OF_WEB[part].into(),
                    near,
                    documents,
                    clusters: counts.clusters(part),
                    duplicates,
                    share: ratio(duplicates, documents),
                    published: PartSummary::published(part, near),
                }
            })
        };
        (0..PARTS_OF_WEB.len()).flat_map(of_part).collect()
    }

    fn coverage(&self, part: usize) -> CoverageSummary {
        let PartCounts { with_page, unique, .. } = &self.counts;
        CoverageSummary {
            part: PARTS_OF_WEB[part].into(),
            clusters: with_page[0],
            clusters_there: with_page[part],
            unique: unique[0],
            unique_there: unique[part],
            useful: ratio(with_page[part] + unique[part], with_page[0] + unique[0]),
            published: CoverageSummary::published(part),
        }
    }

    fn shapes(&self) -> Vec<ShapeOfClusters> {
        let (clusters, duplicates) = (self.counts.clusters(0), self.counts.duplicates(0));
        let up_to = |most: u64| self.counts.sizes[0].range(2..=most).map(|(_, clusters)| clusters).sum::<u64>();
        let shares = [ratio(up_to(2), clusters), ratio(up_to(10), clusters), ratio(up_to(2), duplicates)];
        let shapes = SHAPES.into_iter().zip(shares);
        shapes.map(|((what, published), share)| ShapeOfClusters { what: what.into(), share, published }).collect()
    }

    /// Estimates by the growth of the week before, and by sizes.
    fn estimates(&self) -> Vec<Estimate> {
        let (all, documents) = (self.counts.duplicates(0), self.counts.documents(0));
        let parts = self.job.parts.get();
        let weeks = &self.plan.history.weeks;
        let week_before = weeks.len().checked_sub(2).map(|before| weeks[before].week);
        let mut estimates = Vec::new();
        for (one_of, published) in ESTIMATED_FROM {
            let steps = parts.div_ceil(one_of);
            // Of one part or two, half is a fifth.
            if estimates.last().is_some_and(|before: &Estimate| before.steps == steps) {
                continue;
            }
            let found = found(&self.growth, steps);
            let mut add = |of_week: Option<Week>, estimated: f64, published| {
                let share = if documents > 0 { estimated / documents as f64 } else { 0.0 };
                let error = (all > 0).then(|| estimated / all as f64 - 1.0);
                estimates.push(Estimate { steps, of_week, found, estimated, share, error, published });
            };
            if let Some(earlier) = &self.earlier
                && let Some(share) = ratio(self::found(earlier, steps), self::found(earlier, parts))
                && share > 0.0
            {
                add(week_before, found as f64 / share, Some(published));
            }
            add(None, by_sizes(&self.growth, steps, parts), None);
        }
        estimates
    }
}

/// The duplicates that the first steps find.
fn found(growth: &Growth, steps: u32) -> u64 {
    growth.steps[..steps as usize].iter().map(|step| step.duplicates).sum()
}

/// Estimates all duplicates from the clusters that the first `steps` of `parts` find: a cluster of s pages is found if one of them is in these
/// parts, so with the probability 1 - (1 - x)^s, where x is their share. Each that is found stands for as many as the inverse of that
/// (Horvitz and Thompson 1952).
///
/// ```text
/// sum over found clusters of (s - 1) / (1 - (1 - x)^s)
/// ```
fn by_sizes(growth: &Growth, steps: u32, parts: u32) -> f64 {
    let missed = 1.0 - f64::from(steps) / f64::from(parts);
    let mut by_size: BTreeMap<u64, u64> = BTreeMap::new();
    for ((step, size), clusters) in &growth.found {
        if *step < steps {
            *by_size.entry(*size).or_default() += clusters;
        }
    }
    let stand_for = |(size, clusters): (u64, u64)| {
        let probability = 1.0 - missed.powi(i32::try_from(size).unwrap_or(i32::MAX));
        (clusters * (size - 1)) as f64 / probability
    };
    by_size.into_iter().map(stand_for).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operators::paragraphs::Step;
    use crate::records::mix;

    #[test]
    fn the_estimate_by_sizes_is_right_on_average() {
        // 2000 clusters of 2 to 21 pages; a part for each page, 40 times anew.
        let (parts, rounds) = (10u64, 40);
        let sizes: Vec<u64> = (0..2000).map(|cluster| 2 + mix(cluster) % 20).collect();
        let all: u64 = sizes.iter().map(|size| size - 1).sum();
        let mut sums = [0.0; 2];
        for round in 0..rounds {
            let mut growth = Growth { steps: vec![Step::default(); parts as usize], found: BTreeMap::new() };
            for (cluster, size) in sizes.iter().enumerate() {
                let part = |page| mix(mix(round) ^ (cluster as u64 * 100 + page)) % parts;
                let first = (0..*size).map(part).min().unwrap() as u32;
                *growth.found.entry((first, *size)).or_default() += 1;
            }
            for (sum, steps) in sums.iter_mut().zip([2, 5]) {
                *sum += by_sizes(&growth, steps, parts as u32) / all as f64 / rounds as f64;
            }
        }
        assert!(sums.iter().all(|mean| (mean - 1.0).abs() < 0.01), "{sums:?}");
        // With all parts it is the number itself.
        let growth = Growth { steps: Vec::new(), found: [((0, 3), 5), ((9, 2), 4)].into() };
        assert_eq!(by_sizes(&growth, 10, 10), 14.0);
    }
}
