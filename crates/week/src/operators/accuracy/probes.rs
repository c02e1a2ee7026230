//! Probes: for some pages, all pages of the week that their features say are similar.
//!
//! The features of the probes are an inverted index in memory. Every worker looks up the features
//! of its own pages: most are not in a small bitmap that comes before the index. Of the pages that
//! have enough features in common with a probe, those with the smallest hashes are kept.
//!
//! Cost: one scan of the features, some 1 ns for each; and a page that is near some probes costs as
//! many additions as it has features for each of them. So of probes that are near each other a few
//! stand for all ([`representatives`]): in a crawl of equal pages every page would be compared with
//! every probe.

use std::rc::Rc;

use anyhow::Result;
use nigh_exchange::Context;

use super::sample::{Sample, sample_hash};
use crate::operators::scan::Vectors;
use crate::records::{DocId, FeatureBits, mix};
use crate::structures::{ByKey, CompactSort};

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
    pub features: Vec<FeatureBits>,
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

/// For each probe, a sample of the pages that are near it; the same at every worker. `root` is that
/// of an own document.
///
/// # Errors
/// If a segment cannot be read, or a worker of this process failed.
pub fn near_probes(
    cx: &mut Context,
    probes: &Rc<[Probe]>,
    rule: NearRule,
    root: impl Fn(DocId) -> DocId,
    own: Vectors,
) -> Result<Vec<Sample<NearProbe>>> {
    let NearRule { least, most, seed } = rule;
    let mut near: Vec<Sample<NearProbe>> = probes.iter().map(|_| Sample::new(most)).collect();
    own_near_pages(probes, least, own, |number, doc, _| {
        // Another hash for each probe: else the pages of one cluster would all be sampled by its
        // probes, or none.
        let hash = sample_hash(mix(seed ^ probes[number].doc.to_table() as u64), 1, doc);
        near[number].add(hash, NearProbe { doc, root: root(doc) });
    })?;
    Sample::gather(cx, near)
}

/// Finds the own pages that have at least `least` features in common with a probe: calls `each`
/// with the number of the probe, the page, and how many they are. A probe is not near itself.
///
/// # Errors
/// If a segment cannot be read.
pub fn own_near_pages(
    probes: &[Probe],
    least: u32,
    mut own: Vectors,
    mut each: impl FnMut(usize, DocId, u32),
) -> Result<()> {
    let mut index = FeatureIndex::default();
    probes.iter().for_each(|probe| index.add(&probe.features));
    while !probes.is_empty()
        && let Some(batch) = own.batch()?
    {
        let width = batch.features.len() / batch.docs.len().max(1);
        for (row, doc) in batch.docs.iter().enumerate() {
            index.near(&batch.features[row * width..][..width], least, |number, equal| {
                if probes[number].doc != *doc {
                    each(number, *doc, equal);
                }
            });
        }
    }
    Ok(())
}

/// Of probes that have at least `least` features in common with the first of them, the first ones,
/// at most `most`: the numbers of these, ascending, each with the number of probes that it stands
/// for. The order of `probes` decides: by document, these are the oldest pages of their cluster,
/// and often its centre; by [`sample_hash`], they are a sample.
///
/// ```
/// use nigh_week::operators::accuracy::{Probe, representatives};
/// use nigh_kernels::records::DocId;
/// let probe = |row, features: [u16; 3]| Probe { doc: DocId::new(0, row), root: DocId::new(0, row), features: features.to_vec() };
/// let probes = [probe(0, [1, 2, 3]), probe(1, [1, 2, 9]), probe(2, [7, 8, 9]), probe(3, [5, 2, 3])];
/// assert_eq!(representatives(&probes, 2, 2), [(0, 1.5), (1, 1.5), (2, 1.0)]);
/// ```
pub fn representatives(probes: &[Probe], least: u32, most: usize) -> Vec<(usize, f64)> {
    let (mut firsts, mut families) = (FeatureIndex::default(), Vec::<Vec<usize>>::new());
    for (number, probe) in probes.iter().enumerate() {
        let mut family: Option<usize> = None;
        firsts.near(&probe.features, least, |near, _| family = Some(family.map_or(near, |known| known.min(near))));
        match family {
            Some(family) => families[family].push(number),
            None => {
                firsts.add(&probe.features);
                families.push(vec![number]);
            }
        }
    }
    let of_family = |family: Vec<usize>| {
        let weight = family.len() as f64 / family.len().min(most) as f64;
        family.into_iter().take(most).map(move |number| (number, weight))
    };
    let mut chosen: Vec<(usize, f64)> = families.into_iter().flat_map(of_family).collect();
    chosen.sort_rows_by_key(|(number, _)| *number);
    chosen
}

/// An inverted index of some lists of features.
struct FeatureIndex {
    lists: ByKey<u64, Vec<u32>>,
    /// Which keys may be in the lists.
    bitmap: Vec<u64>,
    /// By list of features: how many are equal; 0 between questions.
    equal: Vec<u32>,
    /// The lists of which some are.
    touched: Vec<u32>,
}

impl Default for FeatureIndex {
    fn default() -> FeatureIndex {
        let bitmap = vec![0; (BITS / 64) as usize];
        FeatureIndex { lists: ByKey::default(), bitmap, equal: Vec::new(), touched: Vec::new() }
    }
}

impl FeatureIndex {
    /// The key of a feature at its place.
    fn key(place: usize, feature: FeatureBits) -> u64 {
        (place as u64) << FeatureBits::BITS | u64::from(feature)
    }

    /// Adds a list; lists are numbered from 0.
    fn add(&mut self, features: &[FeatureBits]) {
        let number = self.equal.len() as u32;
        self.equal.push(0);
        for (place, feature) in features.iter().enumerate() {
            let key = FeatureIndex::key(place, *feature);
            self.lists.entry(key).or_default().push(number);
            let bit = mix(key) % BITS;
            self.bitmap[(bit / 64) as usize] |= 1 << (bit % 64);
        }
    }

    /// Calls `each` with the lists that have at least `least` features in common with these, and
    /// how many.
    #[inline]
    fn near(&mut self, features: &[FeatureBits], least: u32, mut each: impl FnMut(usize, u32)) {
        for (place, feature) in features.iter().enumerate() {
            let key = FeatureIndex::key(place, *feature);
            let bit = mix(key) % BITS;
            if self.bitmap[(bit / 64) as usize] >> (bit % 64) & 1 == 0 {
                continue;
            }
            for number in self.lists.get(&key).into_iter().flatten() {
                if self.equal[*number as usize] == 0 {
                    self.touched.push(*number);
                }
                self.equal[*number as usize] += 1;
            }
        }
        for number in self.touched.drain(..) {
            let equal = std::mem::take(&mut self.equal[number as usize]);
            if equal >= least {
                each(number as usize, equal);
            }
        }
    }
}
