//! The accuracy of the clusters of a week, from samples of pairs that are compared exactly.
//!
//! ```text
//! links     of each band of similarity, some rows of `evidence`: how many are as similar as they should be
//! clusters  of the largest clusters, some pairs of members: a chain shows here
//! recall    for some pages, all pages that are similar enough: how many of them are in one cluster
//! ```
//!
//! All samples are those with the smallest hashes, so they do not depend on workers, nor on how the
//! clusters were found.
//!
//! Cost: a scan of the features, and about one page in thirty is read again; of a crawl of more
//! than 200,000 pages fewer.

mod recall;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use anyhow::Result;
use nigh_exchange::{Context, send_rows};

use self::recall::{Chances, Recall, share_together};
use super::page_places::{PagePlaces, files_again, places};
use super::week::IngestedWeek;
use crate::config::Verify;
use crate::features::equal_features;
use crate::kernels::Polynomials;
use crate::operators::accuracy::{
    NearProbe, NearRule, Probe, Sample, compare_pairs, near_probes, representatives, sample_hash,
};
use crate::operators::output::LevelClusters;
use crate::operators::verify::IfMissing;
use crate::records::{DocId, FeatureBits};
use crate::stats::{BANDS, Expectation, SampledShare, band};
use crate::structures::CompactSort;
use crate::summary::{AccuracySummary, LoosestCluster, SharePair};
use crate::tables::{AccuracyKind, AccuracyRow, EvidenceRow, Found};
use crate::watch::Stage;

/// The similarity that counts as enough, if the method has none.
const ENOUGH: f64 = 0.8;
/// For so many documents there is one in the samples of links; and the least and the most links of
/// each band.
const LINKS_ONE_IN: u64 = 400;
const LINKS_OF_BAND: [u64; 2] = [10, 100];
/// Of so many documents one is in the sample of pages; and the least and the most pages in it.
const PAGES_ONE_IN: u64 = 200;
const PAGES: [u64; 2] = [100, 1000];
/// The most clusters that are looked at, and the pairs of each.
const CLUSTERS: usize = 20;
const PAIRS: usize = 5;
/// The most pages that one page is compared with.
const NEAR: usize = 4;
/// Of pages that are near each other, how many stand for all.
const REPRESENTATIVES: usize = 4;
/// Pages with more words are compared by their features: all sampled pages are in memory together.
const MOST_WORDS: u64 = 20_000;

/// A row of `evidence` in a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
struct EvidenceLink {
    doc: DocId,
    neighbour: DocId,
    /// The bits of its similarity, if that is exact.
    exact: Option<u32>,
}

/// The samples of the rows of `evidence`, by band of their similarity.
pub(crate) struct LinkSamples {
    seed: u64,
    enough: f64,
    bands: Vec<Sample<EvidenceLink>>,
    exact: Vec<ExactLinks>,
}

/// The links of a band whose similarity is exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
struct ExactLinks {
    links: u64,
    /// Those that are similar enough.
    good: u64,
    /// The sum of their similarities, in millionths.
    millionths: u64,
}

impl LinkSamples {
    /// Empty samples of a week.
    pub(crate) fn new(week: &IngestedWeek<'_>) -> LinkSamples {
        let most = (week.journal.counts.documents / LINKS_ONE_IN).div_ceil(BANDS.len() as u64);
        let most = most.clamp(LINKS_OF_BAND[0], LINKS_OF_BAND[1]);
        LinkSamples {
            seed: week.plan.method.seed,
            enough: enough(week),
            bands: vec![Sample::new(most as usize); BANDS.len()],
            exact: vec![ExactLinks::default(); BANDS.len()],
        }
    }

    /// Adds a row.
    pub(crate) fn add(&mut self, row: &EvidenceRow) {
        let [doc, neighbour] = [row.doc, row.neighbour].map(DocId::from_table);
        let exact = (row.found != Found::Features).then(|| row.similarity.to_bits());
        if exact.is_some() {
            let of_band = &mut self.exact[band(row.similarity.into())];
            of_band.links += 1;
            of_band.good += u64::from(row.similarity >= self.enough as f32);
            of_band.millionths += (f64::from(row.similarity) * 1e6).round() as u64;
        }
        self.bands[band(row.similarity.into())]
            .add(sample_hash(self.seed, 0, doc), EvidenceLink { doc, neighbour, exact });
    }
}

/// The similarity that counts as enough.
fn enough(week: &IngestedWeek<'_>) -> f64 {
    week.plan.method.similarity.map_or(ENOUGH, f64::from)
}

/// A cluster whose members are sampled.
struct SampledCluster {
    root: DocId,
    pages: u64,
    /// Two members each.
    pairs: Vec<(DocId, DocId)>,
}

/// The samples of a week, the same at every worker.
struct WeekSamples {
    /// By band: how many links there are, and some of them.
    links: Vec<(u64, Vec<EvidenceLink>)>,
    /// By band: the links whose similarity is exact.
    exact: Vec<ExactLinks>,
    clusters: Vec<SampledCluster>,
    /// The pages with words, and how many of them are sampled.
    population: u64,
    sampled: u64,
    /// As how many independent pages the sampled ones are expected to count, by the sizes of
    /// clusters; `None` without clusters.
    draws: Option<f64>,
    /// The sampled pages, or some for all that are near each other.
    probes: Rc<[Probe]>,
    /// By probe: how many sampled pages it stands for.
    stands_for: Vec<f64>,
    /// By probe: how many pages are near it, and some of them.
    near: Vec<(u64, Vec<NearProbe>)>,
}

impl WeekSamples {
    /// The pairs whose similarity is wanted, the smaller document first.
    fn pairs(&self) -> BTreeSet<(DocId, DocId)> {
        let unknown = self.links.iter().flat_map(|(_, links)| links).filter(|link| link.exact.is_none());
        let links = unknown.map(|link| (link.doc, link.neighbour));
        let clusters = self.clusters.iter().flat_map(|cluster| cluster.pairs.iter().copied());
        let near = self.probes.iter().zip(&self.near);
        let near = near.flat_map(|(probe, (_, near))| near.iter().map(|near| (probe.doc, near.doc)));
        links.chain(clusters).chain(near).map(|(a, b)| ordered(a, b)).collect()
    }
}

/// A pair with its smaller document first.
fn ordered(a: DocId, b: DocId) -> (DocId, DocId) {
    (a.min(b), a.max(b))
}

/// Measures the accuracy of the clusters of documents with words, given those without, ascending;
/// worker 0 writes the table `accuracy` and returns the summary.
///
/// # Errors
/// If a table cannot be read or written, or a worker of this process failed.
pub(super) fn accuracy(
    cx: &mut Context,
    week: &IngestedWeek<'_>,
    (similar, wordless): (&LevelClusters, &[(DocId, u128)]),
    links: LinkSamples,
    polynomials: &Polynomials,
) -> Result<Option<AccuracySummary>> {
    cx.enter(Stage::Accuracy);
    let enough = enough(week);
    let samples = samples(cx, week, (similar, wordless), links, enough)?;
    let similarities = similarities(cx, week, &samples.pairs(), polynomials)?;
    if cx.index() > 0 {
        return Ok(None);
    }
    let found = MeasuredAccuracy {
        links: link_rows(&samples, &similarities, enough),
        clusters: cluster_rows(&samples, &similarities, enough),
        recall: Recall::new(
            &samples,
            &similarities,
            Chances::new(&week.plan.method),
            (enough, week.plan.method.features),
        ),
    };
    let mut writer = week.bundle();
    let recall_rows = found.recall.rows(&samples, enough);
    found.links.iter().chain(&found.clusters).chain(&recall_rows).try_for_each(|row| writer.push(row.clone()))?;
    writer.end_any_piece("all.parquet")?;
    writer.finish()?;
    let verified = week.plan.method.verify != Verify::None;
    Ok(Some(found.summary(&samples, week.journal.counts.documents, (enough, week.plan.method.features), verified)))
}

/// Draws all samples.
fn samples(
    cx: &mut Context,
    week: &IngestedWeek<'_>,
    (similar, wordless): (&LevelClusters, &[(DocId, u128)]),
    links: LinkSamples,
    enough: f64,
) -> Result<WeekSamples> {
    let plan = week.plan;
    let mut exact = vec![ExactLinks::default(); BANDS.len()];
    let of_workers = links.exact.into_iter().enumerate().collect();
    for (number, ExactLinks { links, good, millionths }) in cx.concat(of_workers)? {
        let sum = &mut exact[number];
        *sum = ExactLinks { links: sum.links + links, good: sum.good + good, millionths: sum.millionths + millionths };
    }
    let links = Sample::gather(cx, links.bands)?;
    let clusters = sampled_clusters(cx, week, similar, wordless)?;
    let features = plan.method.features as f64;
    // Pages whose estimate is four standard errors below are not similar enough.
    let least = features * (enough - 4.0 * (enough * (1.0 - enough) / features).sqrt());
    let rule = NearRule { least: least.floor().max(1.0) as u32, most: NEAR, seed: plan.method.seed };
    let (all, population) = probes(cx, week, similar)?;
    let sampled = all.len() as u64;
    let draws = expected_draws(pair_sums(cx, similar, wordless)?, (sampled, population));
    let (chosen, stands_for): (Vec<Probe>, Vec<f64>) = representatives(&all, rule.least, REPRESENTATIVES)
        .into_iter()
        .map(|(number, weight)| (all[number].clone(), weight))
        .unzip();
    let probes: Rc<[Probe]> = chosen.into();
    let root = |doc: DocId| similar.roots.of(doc);
    let near = near_probes(cx, &probes, rule, root, week.sketches()?.all())?;
    Ok(WeekSamples {
        links: links.into_iter().map(|sample| (sample.population, sample.into_things())).collect(),
        exact,
        clusters,
        population,
        sampled,
        draws,
        probes,
        stands_for,
        near: near.into_iter().map(|sample| (sample.population, sample.into_things())).collect(),
    })
}

/// The similarities of pairs, at worker 0.
struct Similarities {
    exact: BTreeMap<(DocId, DocId), f64>,
    /// The features of all pages of the pairs: where pages could not be read again, these are
    /// compared.
    features: BTreeMap<DocId, Vec<FeatureBits>>,
}

/// The similarity of a pair.
#[derive(Clone, Copy)]
struct PairSimilarity {
    similarity: f64,
    /// Whether it is exact, or an estimate from features.
    is_exact: bool,
}

impl PairSimilarity {
    /// Whether the pair is similar enough. Similarities of `evidence` are rounded.
    fn is_enough(&self, enough: f64) -> bool {
        self.similarity as f32 >= enough as f32
    }

    /// Whether the pair is certainly similar enough. There are more pairs below than above most
    /// limits, so of those that an estimate puts above many are below, and rightly apart: an
    /// estimate counts from two standard errors above on. It never counts if that is so high that
    /// all features must be equal: such pairs always are in one cluster.
    fn is_surely_enough(&self, enough: f64, features: usize) -> bool {
        if self.is_exact {
            return self.is_enough(enough);
        }
        let from = surely_enough(enough, features);
        from < 1.0 - 0.5 / features.max(1) as f64 && self.is_enough(from)
    }
}

/// The least estimate of a pair that is certainly similar enough.
fn surely_enough(enough: f64, features: usize) -> f64 {
    enough + 2.0 * (enough * (1.0 - enough) / features.max(1) as f64).sqrt()
}

impl Similarities {
    fn of(&self, a: DocId, b: DocId) -> Option<PairSimilarity> {
        if let Some(similarity) = self.exact.get(&ordered(a, b)) {
            return Some(PairSimilarity { similarity: *similarity, is_exact: true });
        }
        let (a, b) = (self.features.get(&a)?, self.features.get(&b)?);
        Some(PairSimilarity { similarity: equal_features(a, b) as f64 / a.len() as f64, is_exact: false })
    }
}

/// Compares pairs: their pages are read again where that is cheap.
fn similarities(
    cx: &mut Context,
    week: &IngestedWeek<'_>,
    pairs: &BTreeSet<(DocId, DocId)>,
    polynomials: &Polynomials,
) -> Result<Similarities> {
    let (plan, owned) = (week.plan, week.owned);
    let own: BTreeSet<DocId> = pairs.iter().flat_map(|(a, b)| [*a, *b]).filter(|doc| owned.has(*doc)).collect();
    let own: Vec<DocId> = own.into_iter().collect();
    // All sets meet at worker 0, which owns the first shard.
    let PagePlaces { places, words } = places(
        week.documents()?.into_iter(),
        (plan.week, plan.method.documents, &plan.inputs_again()),
        &own,
        |_| DocId::new(0, 0),
        IfMissing::LeaveOut,
    )?;
    let places =
        places.into_iter().zip(words).filter(|(_, words)| *words <= MOST_WORDS).map(|(place, _)| place).collect();
    let again = files_again(cx, week, polynomials, places, IfMissing::LeaveOut)?;
    let in_flight = &mut cx.with(plan.worker_memory / 4, &week.unfinished.spill());
    let exact = compare_pairs(in_flight, pairs, again)?;
    let (docs, values) = week.sketches()?.features(&own)?;
    let values = values.chunks_exact(plan.method.features).map(<[FeatureBits]>::to_vec);
    let to_first = docs.into_iter().zip(values).map(|row| (0, row)).collect();
    let features = send_rows(cx, to_first)?.into_iter().collect();
    Ok(Similarities { exact, features })
}

/// What is measured.
struct MeasuredAccuracy {
    links: Vec<AccuracyRow>,
    clusters: Vec<AccuracyRow>,
    recall: Recall,
}

impl MeasuredAccuracy {
    fn summary(
        &self,
        samples: &WeekSamples,
        documents: u64,
        (enough, features): (f64, usize),
        verified: bool,
    ) -> AccuracySummary {
        let share_of = |row: &AccuracyRow| SampledShare { share: row.share, low: row.share_low, high: row.share_high };
        let strata: Vec<(f64, SampledShare)> =
            self.links.iter().map(|row| (row.population as f64, share_of(row))).collect();
        let pair = |share: SampledShare, sampled: i64, exact: i64| {
            let SampledShare { share, low, high } = share;
            SharePair { share, low, high, sampled: sampled as u64, estimated: (sampled - exact) as u64 }
        };
        let sampled_links = self.links.iter().map(|row| row.sampled).sum();
        let exact_links = self.links.iter().map(|row| row.exact).sum();
        let exact_pairs = self.recall.pairs.iter().filter(|pair| pair.compared.is_exact).count() as i64;
        let cluster = |row: &AccuracyRow| LoosestCluster {
            root: row.cluster.unwrap_or_default(),
            name: String::new(),
            pages: row.population as u64,
            similarity: row.similarity,
            share: row.share,
            high: row.share_high,
        };
        let loosest = self.clusters.iter().min_by(|a, b| a.similarity.total_cmp(&b.similarity));
        let largest = samples.clusters.first().map_or(0, |cluster| cluster.pages);
        let expected = Expectation::of(&self.recall.expected, samples.sampled, samples.population);
        AccuracySummary {
            similarity: enough,
            estimates_from: surely_enough(enough, features),
            links: SampledShare::of_strata(&strata).map(|share| pair(share, sampled_links, exact_links)),
            recall: share_together(&self.recall.pairs.iter().collect::<Vec<_>>())
                .map(|share| pair(share, self.recall.pairs.len() as i64, exact_pairs)),
            expected: expected.map(|expected| expected.share),
            expected_low: expected.map(|expected| expected.low),
            expected_most: expected.map(|expected| expected.most),
            expected_high: expected.map(|expected| expected.high),
            draws: samples.draws,
            unread: self.recall.is_unread(),
            loosest: loosest.map(cluster),
            loose: self.clusters.iter().map(cluster).filter(AccuracySummary::is_loose).collect(),
            verified,
            largest: largest as f64 / documents.max(1) as f64,
            largest_pages: largest,
        }
    }
}

/// The rows of links, by band.
fn link_rows(samples: &WeekSamples, similarities: &Similarities, enough: f64) -> Vec<AccuracyRow> {
    let compared = |link: &EvidenceLink| match link.exact {
        Some(bits) => Some(PairSimilarity { similarity: f32::from_bits(bits).into(), is_exact: true }),
        None => similarities.of(link.doc, link.neighbour),
    };
    let row = |(number, (population, links)): (usize, &(u64, Vec<EvidenceLink>))| {
        let exact = samples.exact[number];
        let row = if exact.links == *population {
            all_links(exact)?
        } else {
            let pairs: Vec<PairSimilarity> = links.iter().filter_map(compared).collect();
            counted(AccuracyKind::Links, *population, &pairs, enough)?
        };
        Some(AccuracyRow { low: Some(BANDS[number]), high: Some(upper_end(number)), ..row })
    };
    samples.links.iter().enumerate().filter_map(row).collect()
}

/// The row of a band of which all similarities are exact: nothing is uncertain. `None` without
/// links.
fn all_links(ExactLinks { links, good, millionths }: ExactLinks) -> Option<AccuracyRow> {
    let share = good as f64 / links as f64;
    (links > 0).then(|| AccuracyRow {
        kind: AccuracyKind::Links,
        low: None,
        high: None,
        cluster: None,
        population: links as i64,
        sampled: links as i64,
        exact: links as i64,
        good: good as i64,
        share,
        share_low: share,
        share_high: share,
        expected: None,
        similarity: millionths as f64 / 1e6 / links as f64,
    })
}

/// The rows of the largest clusters.
fn cluster_rows(samples: &WeekSamples, similarities: &Similarities, enough: f64) -> Vec<AccuracyRow> {
    let row = |cluster: &SampledCluster| {
        let pairs: Vec<PairSimilarity> = cluster.pairs.iter().filter_map(|(a, b)| similarities.of(*a, *b)).collect();
        let row = counted(AccuracyKind::Clusters, cluster.pages, &pairs, enough)?;
        Some(AccuracyRow { cluster: Some(cluster.root.to_table()), ..row })
    };
    samples.clusters.iter().filter_map(row).collect()
}

/// The upper end of a band.
fn upper_end(band: usize) -> f64 {
    BANDS.get(band + 1).copied().unwrap_or(1.0)
}

/// The row of some pairs that were compared; `None` if there are none.
fn counted(kind: AccuracyKind, population: u64, compared: &[PairSimilarity], enough: f64) -> Option<AccuracyRow> {
    let good = compared.iter().filter(|pair| pair.is_enough(enough)).count();
    let share = match kind {
        AccuracyKind::Links => SampledShare::of_counts(good as u64, compared.len() as u64)?,
        _ if compared.is_empty() => return None,
        // By Clopper and Pearson even none in five would not be surely less than one half: no
        // cluster would give an alarm.
        AccuracyKind::Clusters | AccuracyKind::Recall => {
            SampledShare::of_draws(good as f64 / compared.len() as f64, compared.len() as f64)
        }
    };
    Some(AccuracyRow {
        kind,
        low: None,
        high: None,
        cluster: None,
        population: population as i64,
        sampled: compared.len() as i64,
        exact: compared.iter().filter(|pair| pair.is_exact).count() as i64,
        good: good as i64,
        share: share.share,
        share_low: share.low,
        share_high: share.high,
        expected: None,
        similarity: compared.iter().map(|pair| pair.similarity).sum::<f64>() / compared.len() as f64,
    })
}

/// The root and size of every cluster of several pages with words whose root is an own document.
fn clusters_with_words(similar: &LevelClusters, wordless: &[(DocId, u128)]) -> impl Iterator<Item = (DocId, u64)> {
    // Pages without words have no shingles to compare.
    let has_words = move |root: &DocId| wordless.binary_search_by_key(root, |(doc, _)| *doc).is_err();
    similar.sizes.own_clusters().filter(move |(root, _)| has_words(root))
}

/// Over all clusters of k pages with words: the sum of k (k - 1), and that of k (k - 1)².
fn pair_sums(cx: &mut Context, similar: &LevelClusters, wordless: &[(DocId, u128)]) -> Result<[u128; 2]> {
    let add = |[pairs, squares]: [u128; 2], [more_pairs, more_squares]: [u128; 2]| {
        [pairs.saturating_add(more_pairs), squares.saturating_add(more_squares)]
    };
    let of_clusters = clusters_with_words(similar, wordless).map(|(_, pages)| {
        let (pages, others) = (u128::from(pages), u128::from(pages.saturating_sub(1)));
        [pages * others, (pages * others).saturating_mul(others)]
    });
    let own = of_clusters.fold([0; 2], add);
    Ok(cx.concat(vec![own])?.into_iter().fold([0; 2], add))
}

/// As how many independent pages a sample of pages is expected to count (Kish 1965), for a page
/// weighs as much as it has others in its cluster. Given are the sums over clusters, and the
/// numbers of sampled pages and of all. `None` without clusters.
fn expected_draws([pairs, squares]: [u128; 2], (sampled, population): (u64, u64)) -> Option<f64> {
    let part = sampled as f64 / population.max(1) as f64;
    (squares > 0).then(|| part * (pairs as f64).powi(2) / squares as f64)
}

/// The largest clusters, the largest first, with pairs of their members.
fn sampled_clusters(
    cx: &mut Context,
    week: &IngestedWeek<'_>,
    similar: &LevelClusters,
    wordless: &[(DocId, u128)],
) -> Result<Vec<SampledCluster>> {
    let own = clusters_with_words(similar, wordless);
    let mut own: Vec<(Reverse<u64>, DocId)> = own.map(|(root, pages)| (Reverse(pages), root)).collect();
    own.sort_rows();
    own.truncate(CLUSTERS);
    let mut chosen = cx.sorted(own.iter().map(|(pages, root)| (u64::MAX - pages.0, *root)).collect())?;
    chosen.truncate(CLUSTERS);
    let numbers: BTreeMap<DocId, usize> = chosen.iter().map(|(_, root)| *root).zip(0..).collect();
    let mut members: Vec<Sample<DocId>> = vec![Sample::new(2 * PAIRS); chosen.len()];
    for (doc, root) in similar.roots.iter() {
        if let Some(number) = numbers.get(&root) {
            members[*number].add(sample_hash(week.plan.method.seed, 2, doc), doc);
        }
    }
    let members = Sample::gather(cx, members)?;
    let cluster = |((pages, root), members): ((u64, DocId), Sample<DocId>)| {
        let members = members.into_things();
        let pairs = members.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
        SampledCluster { root, pages: u64::MAX - pages, pairs }
    };
    Ok(chosen.into_iter().zip(members).map(cluster).collect())
}

/// The sampled pages with their features, in the order of the hash by which they are sampled, and
/// the number of all pages with words; the same at every worker.
fn probes(cx: &mut Context, week: &IngestedWeek<'_>, similar: &LevelClusters) -> Result<(Vec<Probe>, u64)> {
    let (plan, owned) = (week.plan, week.owned);
    let most = (week.journal.counts.documents / PAGES_ONE_IN).clamp(PAGES[0], PAGES[1]);
    let hash = |doc: DocId| sample_hash(plan.method.seed, 3, doc);
    let mut sample = Sample::new(most as usize);
    week.vector_files()?.docs(owned)?.into_iter().for_each(|doc| sample.add(hash(doc), doc));
    let sample = Sample::gather(cx, vec![sample])?.remove(0);
    let (population, chosen) = (sample.population, sample.into_things());
    let mut own: Vec<DocId> = chosen.into_iter().filter(|doc| owned.has(*doc)).collect();
    own.sort_rows();
    let (docs, features) = week.sketches()?.features(&own)?;
    let features = features.chunks_exact(plan.method.features);
    let probe = |(doc, features): (DocId, &[FeatureBits])| Probe {
        doc,
        root: similar.roots.of(doc),
        features: features.to_vec(),
    };
    let mut all = cx.sorted(docs.into_iter().zip(features).map(probe).collect())?;
    all.sort_items_by_key(|probe: &Probe| (hash(probe.doc), probe.doc));
    Ok((all, population))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_expected_by_the_sizes_of_clusters() {
        let sums = |sizes: &[u128]| {
            let pairs: u128 = sizes.iter().map(|k| k * (k - 1)).sum();
            let squares: u128 = sizes.iter().map(|k| k * (k - 1) * (k - 1)).sum();
            [pairs, squares]
        };
        // Of 100 sampled pages of 1,000, those of 200 pairs are 40; and those of one cluster of 60
        // are 6, however many pairs it has.
        assert!((expected_draws(sums(&[2; 200]), (100, 1000)).unwrap() - 40.0).abs() < 1e-9);
        assert!((expected_draws(sums(&[60]), (100, 1000)).unwrap() - 6.0).abs() < 1e-9);
        assert!(expected_draws(sums(&[60, 2, 2, 2]), (100, 1000)).unwrap() < 6.1);
        assert_eq!(expected_draws(sums(&[]), (100, 1000)), None);
    }

    #[test]
    fn estimates_that_need_all_features_do_not_count() {
        let all = |is_exact| PairSimilarity { similarity: 1.0, is_exact };
        for (enough, counts) in [(0.8, true), (0.9, true), (0.95, false), (0.97, false)] {
            assert_eq!(all(false).is_surely_enough(enough, 84), counts, "{enough}");
            assert!(all(true).is_surely_enough(enough, 84));
        }
    }
}
