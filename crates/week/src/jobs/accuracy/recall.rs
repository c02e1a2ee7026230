//! The recall of clusters: how many of the similar pairs of sampled pages are in one cluster, and
//! how many are expected to be.

use std::collections::BTreeMap;

use super::{PairSimilarity, Similarities, WeekSamples, upper_end};
use crate::config::{Method, Shape, Verify};
use crate::stats::{BANDS, ExpectedPairs, SampledShare, band, binomial_tail};
use crate::tables::{AccuracyKind, AccuracyRow};

/// A pair of a sampled page with one that is similar enough.
pub(super) struct RecallPair {
    /// The number of the sampled page.
    probe: usize,
    /// How many pairs of that page it stands for.
    weight: f64,
    pub(super) compared: PairSimilarity,
    /// Whether the two pages are in one cluster.
    is_together: bool,
    /// How likely they are linked directly.
    chance: f64,
}

/// How likely pairs of a similarity are linked.
pub(super) struct Chances {
    shape: Shape,
    /// If candidates are checked by their features: how many must be equal, and how many there are.
    check: Option<(u64, u64)>,
}

impl Chances {
    pub(super) fn new(method: &Method) -> Chances {
        let features = method.features as u64;
        let limit = method.similarity.filter(|_| method.verify == Verify::Estimate);
        let least = limit.map(|limit| (u64::from(limit.millionths()) * features).div_ceil(1_000_000));
        Chances { shape: method.shape(), check: least.map(|least| (least, features)) }
    }

    /// The chance that a pair becomes a candidate.
    fn candidate(&self, similarity: f64) -> f64 {
        self.shape.chance(similarity)
    }

    /// The chance that a candidate stays one: 1 if there is no check by features. Pairs that are
    /// similar enough pass an exact check.
    fn passes(&self, similarity: f64) -> f64 {
        self.check.map_or(1.0, |(least, features)| binomial_tail(least, features, similarity))
    }
}

/// The similar pairs of sampled pages.
pub(super) struct Recall {
    pub(super) pairs: Vec<RecallPair>,
    /// What is expected of the pairs of each sampled page that has some.
    pub(super) expected: Vec<ExpectedPairs>,
    /// The near pages that were compared exactly, and those that were compared by features.
    exact: u64,
    estimated: u64,
}

impl Recall {
    pub(super) fn new(
        samples: &WeekSamples,
        similarities: &Similarities,
        chances: Chances,
        (enough, features): (f64, usize),
    ) -> Recall {
        let mut recall = Recall { pairs: Vec::new(), expected: Vec::new(), exact: 0, estimated: 0 };
        for (number, (probe, (population, near))) in samples.probes.iter().zip(&samples.near).enumerate() {
            let stands_for = samples.stands_for[number];
            // How many near pages each compared one stands for.
            let each = *population as f64 / near.len().max(1) as f64;
            let first = recall.pairs.len();
            // The sums over compared pages, also over those that are not similar enough: a third
            // page may be one.
            let (mut candidates, mut passing) = (0.0, 0.0);
            for near in near {
                let Some(compared) = similarities.of(probe.doc, near.doc) else { continue };
                let PairSimilarity { similarity, is_exact } = compared;
                *(if is_exact { &mut recall.exact } else { &mut recall.estimated }) += 1;
                let (candidate, passes) = (chances.candidate(similarity), chances.passes(similarity));
                candidates += candidate;
                passing += passes;
                if compared.is_surely_enough(enough, features) {
                    let (is_together, chance) = (near.root == probe.root, candidate * passes);
                    recall.pairs.push(RecallPair {
                        probe: number,
                        weight: stands_for * each,
                        compared,
                        is_together,
                        chance,
                    });
                }
            }
            let similar = &recall.pairs[first..];
            if !similar.is_empty() {
                let direct = similar.iter().map(|pair| pair.chance).sum::<f64>() / similar.len() as f64;
                // The page is in a cluster only if it is a candidate with one near page, and passes
                // the check with one. With only one near page there is no third one.
                let any = (each * candidates).min(each * passing).min(1.0);
                let most = if *population == 1 { direct } else { any.max(direct) };
                let similar = each * similar.len() as f64;
                recall.expected.push(ExpectedPairs { stands_for, similar, direct, most });
            }
        }
        recall
    }

    /// Whether near pages were compared by their features only, and no pair of them counts.
    pub(super) fn is_unread(&self) -> bool {
        self.pairs.is_empty() && self.estimated > 0 && self.exact == 0
    }

    /// The rows, by band.
    pub(super) fn rows(&self, samples: &WeekSamples, enough: f64) -> Vec<AccuracyRow> {
        let mut bands: BTreeMap<usize, Vec<&RecallPair>> = BTreeMap::new();
        for pair in &self.pairs {
            bands.entry(band(pair.compared.similarity)).or_default().push(pair);
        }
        let row = |(number, pairs): (&usize, &Vec<&RecallPair>)| {
            let share = share_together(pairs)?;
            Some(AccuracyRow {
                kind: AccuracyKind::Recall,
                low: Some(BANDS[*number].max(enough)),
                high: Some(upper_end(*number)),
                cluster: None,
                population: samples.probes.len() as i64,
                sampled: pairs.len() as i64,
                exact: pairs.iter().filter(|pair| pair.compared.is_exact).count() as i64,
                good: pairs.iter().filter(|pair| pair.is_together).count() as i64,
                share: share.share,
                share_low: share.low,
                share_high: share.high,
                expected: weighted(pairs.iter().map(|pair| (pair.weight, pair.chance))),
                similarity: weighted(pairs.iter().map(|pair| (pair.weight, pair.compared.similarity)))?,
            })
        };
        bands.iter().filter_map(row).collect()
    }
}

/// The share of pairs in one cluster. Pairs of one page, which follow each other, are one draw.
pub(super) fn share_together(pairs: &[&RecallPair]) -> Option<SampledShare> {
    let of_probe = |pairs: &[&RecallPair]| {
        let together = pairs.iter().filter(|pair| pair.is_together).count();
        (pairs[0].weight, together as f64, pairs.len() as f64)
    };
    let groups: Vec<_> = pairs.chunk_by(|a, b| a.probe == b.probe).map(of_probe).collect();
    SampledShare::of_groups(&groups)
}

/// The weighted mean of values, each with its weight; `None` of nothing.
fn weighted(values: impl Iterator<Item = (f64, f64)>) -> Option<f64> {
    let (sum, weights) =
        values.fold((0.0, 0.0), |(sum, weights), (weight, value)| (sum + weight * value, weights + weight));
    (weights > 0.0).then(|| sum / weights)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_by_features_lets_some_pairs_pass() {
        let method = |text: &str| toml::from_str::<Method>(text).unwrap();
        let checked = Chances::new(&method("similarity = 0.8\nverify = \"estimate\""));
        assert!((0.4..0.7).contains(&checked.passes(0.8)), "{}", checked.passes(0.8));
        assert!(checked.passes(0.6) < 0.01 && checked.passes(0.95) > 0.99);
        let unchecked = Chances::new(&method("similarity = 0.8\nverify = \"exact\""));
        assert!(unchecked.passes(0.8) == 1.0 && unchecked.candidate(0.8) > 0.98);
    }
}
