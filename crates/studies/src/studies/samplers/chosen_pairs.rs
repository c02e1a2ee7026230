//! Which pairs of pages are compared: some of each band of resemblance, as far as the features of
//! the week say it.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use nigh_exchange::Context;

use crate::operators::accuracy::{Probe, Sample, own_near_pages, representatives, sample_hash};
use crate::operators::scan::Vectors;
use crate::records::{DocId, mix};
use crate::stats::{BANDS, band};
use crate::structures::CompactSort;

/// The most pages of which all similar pages are found.
const PROBES: usize = 4096;
/// Of these, how many stand for pages that are near each other: pairs of one cluster are hardly
/// used.
const REPRESENTATIVES: usize = 8;

/// The numbers of the bands that pairs are drawn from: [`BANDS`] from 0.5 on. Equal pages would say
/// nothing of a sampler.
pub(super) const FIRST_BAND: usize = 1;
pub(super) const LAST_BAND: usize = BANDS.len() - 2;

/// What the choice depends on.
pub(super) struct PairRule {
    /// The features of a page.
    pub features: usize,
    /// The most pairs of a band.
    pub most: usize,
    /// The seed of the samples.
    pub seed: u64,
}

/// A pair that may be chosen, as it is ordered.
type OrderedPair = (u64, [DocId; 2], [DocId; 2]);

/// Chooses pairs, each with its smaller document first, by band and in the order of a hash; the
/// same at every worker. `vectors` opens a scan of own features, and `root` is the root of the
/// cluster of an own document.
///
/// Pages of one cluster are alike, so that a sampler errs in the same way for all of their pairs:
/// of one cluster a band has one pair at most.
///
/// # Errors
/// If a segment cannot be read, or a worker of this process failed.
pub(super) fn chosen_pairs(
    cx: &mut Context,
    rule: &PairRule,
    vectors: impl Fn() -> Vectors,
    root: impl Fn(DocId) -> DocId,
) -> Result<Vec<[DocId; 2]>> {
    let least = (BANDS[FIRST_BAND] * rule.features as f64).ceil() as u32;
    let probes = probes(cx, rule, &vectors, &root, least)?;
    let mut own: BTreeMap<(usize, DocId), OrderedPair> = BTreeMap::new();
    own_near_pages(&probes, least, vectors(), |number, doc, equal| {
        let probe = &probes[number];
        if equal as usize == rule.features {
            return;
        }
        let pair = [probe.doc.min(doc), probe.doc.max(doc)];
        let hash = sample_hash(mix(rule.seed ^ pair[0].to_table() as u64), 5, pair[1]);
        let candidate = (hash, pair, [probe.root, root(doc)]);
        let place = (band(f64::from(equal) / rule.features as f64), probe.root);
        own.entry(place).and_modify(|known| *known = candidate.min(*known)).or_insert(candidate);
    })?;
    let own = own.into_iter().map(|((band, _), candidate)| (band, candidate)).collect();
    let all: Vec<(usize, OrderedPair)> = cx.sorted(own)?;
    let mut chosen: BTreeSet<(usize, u64, [DocId; 2])> = BTreeSet::new();
    for of_band in all.chunk_by(|a, b| a.0 == b.0) {
        let (mut used, mut seen, mut count) = (BTreeSet::new(), BTreeSet::new(), 0);
        for (band, (hash, pair, roots)) in of_band {
            // Of each cluster its first pair only: which others are here depends on the workers.
            let is_first = seen.insert(roots[0]);
            if is_first && count < rule.most && !roots.iter().any(|root| used.contains(root)) {
                used.extend(*roots);
                count += 1;
                chosen.insert((*band, *hash, *pair));
            }
        }
    }
    Ok(chosen.into_iter().map(|(_, _, pair)| pair).collect())
}

/// Sampled pages with their features, the same at every worker.
fn probes(
    cx: &mut Context,
    rule: &PairRule,
    vectors: &impl Fn() -> Vectors,
    root: &impl Fn(DocId) -> DocId,
    least: u32,
) -> Result<Vec<Probe>> {
    let (mut sample, mut own) = (Sample::new(PROBES), vectors());
    while let Some(batch) = own.batch()? {
        for (doc, features) in batch.docs.iter().zip(batch.features.chunks_exact(rule.features)) {
            let probe = || Probe { doc: *doc, root: root(*doc), features: features.to_vec() };
            sample.add_with(sample_hash(rule.seed, 4, *doc), probe);
        }
    }
    let mut all = Sample::gather(cx, vec![sample])?.remove(0).into_things();
    all.sort_items_by_key(|probe| probe.doc);
    let chosen = representatives(&all, least, REPRESENTATIVES);
    Ok(chosen.into_iter().map(|(number, _)| all[number].clone()).collect())
}
