//! Probes: for some pages, all pages of the week that their features say are similar.
//!
//! The features of the probes are an inverted index in memory. Every worker looks up the features of its own pages: most are not in a small
//! bitmap that comes before the index. Of the pages that have enough features in common with a probe, those with the smallest hashes are kept.
//!
//! Cost: one scan of the features, some 1 ns for each.

use std::rc::Rc;
use std::sync::Arc;

use anyhow::Result;
use timely::worker::Worker;

use super::sample::{Sample, sample_hash};
use crate::operators::scan::Vectors;
use crate::records::{DocId, mix};
use crate::structures::ByKey;
use crate::watch::Watch;

/// Bits of the bitmap before the index.
const BITS: u64 = 1 << 20;

/// A page whose similar pages are wanted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub struct Probe {
    /// The document.
    pub doc: DocId,
    /// The root of its cluster.
    pub root: DocId,
    /// Its features.
    pub features: Vec<u32>,
}

/// A page that may be similar to a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub struct NearProbe {
    /// The document.
    pub doc: DocId,
    /// The root of its cluster.
    pub root: DocId,
}

/// Which pages are near a probe.
#[derive(Clone, Copy, Debug)]
pub struct NearRule {
    /// The equal features that they have at least.
    pub least: u32,
    /// How many of them are sampled for each probe, at most.
    pub most: usize,
    /// The seed of the samples.
    pub seed: u64,
}

/// For each probe, a sample of the pages that are near it; the same at every worker. `root` is that of an own document.
///
/// # Errors
/// If a segment cannot be read, or a worker of this process failed.
pub fn near_probes(
    worker: &mut Worker,
    probes: &Rc<[Probe]>,
    rule: NearRule,
    root: impl Fn(DocId) -> DocId,
    mut own: Vectors,
    watch: &Arc<Watch>,
) -> Result<Vec<Sample<NearProbe>>> {
    let NearRule { least, most, seed } = rule;
    let mut index: ByKey<u64, Vec<u32>> = ByKey::default();
    let mut bitmap = vec![0u64; (BITS / 64) as usize];
    let key = |place: usize, feature: u32| (place as u64) << 32 | u64::from(feature);
    let bit = |key: u64| (mix(key) % BITS) as usize;
    for (number, probe) in (0u32..).zip(probes.iter()) {
        for (place, feature) in probe.features.iter().enumerate() {
            let key = key(place, *feature);
            index.entry(key).or_default().push(number);
            bitmap[bit(key) / 64] |= 1 << (bit(key) % 64);
        }
    }
    let mut near: Vec<Sample<NearProbe>> = probes.iter().map(|_| Sample::new(most)).collect();
    let (mut equal, mut touched) = (vec![0u32; probes.len()], Vec::new());
    while !probes.is_empty()
        && let Some(batch) = own.batch()?
    {
        let width = batch.features.len() / batch.docs.len().max(1);
        for (row, doc) in batch.docs.iter().enumerate() {
            for (place, feature) in batch.features[row * width..][..width].iter().enumerate() {
                let key = key(place, *feature);
                if bitmap[bit(key) / 64] >> (bit(key) % 64) & 1 == 0 {
                    continue;
                }
                for number in index.get(&key).into_iter().flatten() {
                    if equal[*number as usize] == 0 {
                        touched.push(*number);
                    }
                    equal[*number as usize] += 1;
                }
            }
            for number in touched.drain(..) {
                let equal = std::mem::take(&mut equal[number as usize]);
                let probe = &probes[number as usize];
                if equal >= least && probe.doc != *doc {
                    // Another hash for each probe: else the pages of one cluster would all be sampled by its probes, or none.
                    let hash = sample_hash(mix(seed ^ probe.doc.to_table() as u64), 1, *doc);
                    near[number as usize].add(hash, NearProbe { doc: *doc, root: root(*doc) });
                }
            }
        }
    }
    Sample::gather(worker, near, watch)
}
