//! Estimates of the resemblance of pairs of pages by each sampler, and their exact resemblance.

use std::collections::BTreeMap;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::Samplers;
use crate::config::Shape;
use crate::features::{ExactPair, SampleMaker, Sampler};
use crate::kernels;
use crate::kernels::polynomials;
use crate::operators::accuracy::shared_elements;
use crate::operators::verify::CandidateSet;
use crate::records::{DocId, mix};
use crate::structures::{Sorted, WordSet};

/// The samplers of a job, in the order of its tables.
pub(super) fn samplers(job: &Samplers) -> Vec<Sampler> {
    let mut samplers = vec![Sampler::Functions { bits: 64 }];
    samplers.extend(job.bits.iter().map(|bits| Sampler::Functions { bits: *bits }));
    samplers.extend([Sampler::Min, Sampler::ModPower]);
    samplers.extend(job.moduli.iter().map(|modulus| Sampler::Mod(*modulus)));
    samplers
}

/// A pair of pages, compared exactly and by all samplers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct MeasuredPair {
    /// Its number among the chosen pairs.
    pub number: usize,
    /// The shingles of both pages.
    pub shared: usize,
    /// The shingles of each.
    pub shingles: [usize; 2],
    /// The draws in which enough supershingles agree.
    pub joined: usize,
    /// By sampler.
    pub samplers: Vec<Estimates>,
}

/// What a sampler says of a pair.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Estimates {
    /// The resemblance, by draw; none where neither page has a sample.
    pub by_draw: Vec<Option<f64>>,
    /// The values of the samples of both pages, of all draws.
    pub values: usize,
}

impl MeasuredPair {
    /// The truth about the pair.
    pub fn exact(&self) -> ExactPair {
        let union = self.shingles[0] + self.shingles[1] - self.shared;
        let larger = self.shingles[0].max(self.shingles[1]);
        ExactPair { similarity: self.shared as f64 / union.max(1) as f64, union, larger }
    }
}

/// Compares pairs of pages.
pub(super) struct PairComparer {
    samplers: Vec<Sampler>,
    /// By draw.
    makers: Vec<SampleMaker>,
    /// Which supershingles join a pair.
    shape: Option<Shape>,
    elements: WordSet,
}

impl PairComparer {
    /// The samplers of a job, on a store of this seed; `shape` says which supershingles join a
    /// pair.
    ///
    /// # Errors
    /// If this machine has no kernels for it.
    pub fn new(job: &Samplers, seed: u64, shape: Option<Shape>) -> Result<PairComparer> {
        let kernels = kernels::chosen()?;
        let draws = 1..=u64::from(job.seeds.get());
        let maker = |draw: u64| SampleMaker::new(&polynomials(mix(seed ^ draw), job.functions).features, kernels);
        let (samplers, makers) = (samplers(job), draws.map(maker).collect());
        Ok(PairComparer { samplers, makers, shape, elements: WordSet::default() })
    }

    /// Compares a pair, from the shingles of both pages; neither is empty.
    fn pair(&mut self, number: usize, sets: [&[u64]; 2]) -> MeasuredPair {
        let shared = shared_elements(sets[0], sets[1], &mut self.elements);
        let mut of_samplers = vec![Estimates::default(); self.samplers.len()];
        let mut joined = 0;
        for maker in &self.makers {
            let [a, b] = sets.map(|set| maker.samples(set));
            for (estimates, sampler) in of_samplers.iter_mut().zip(&self.samplers) {
                estimates.by_draw.push(a.resemblance(&b, *sampler));
                estimates.values += a.values(*sampler) + b.values(*sampler);
            }
            joined += usize::from(self.shape.is_some_and(|shape| a.are_joined(&b, shape)));
        }
        MeasuredPair { number, shared, shingles: sets.map(<[u64]>::len), joined, samplers: of_samplers }
    }

    /// Compares the pairs of which this worker has both sets. `pairs` are all pairs, each with its
    /// number, by the root under which their sets were gathered. `sets` must be grouped by root.
    ///
    /// # Errors
    /// If sets cannot be read.
    pub fn own_pairs(
        &mut self,
        pairs: &BTreeMap<DocId, Vec<(usize, [DocId; 2])>>,
        mut sets: Sorted<CandidateSet>,
    ) -> Result<Vec<MeasuredPair>> {
        let (mut measured, mut of_root, mut next) = (Vec::new(), BTreeMap::new(), sets.record()?);
        while let Some(CandidateSet { doc, root, elements }) = next {
            of_root.insert(doc, elements);
            next = sets.record()?;
            if next.as_ref().is_some_and(|set| set.root == root) {
                continue;
            }
            for (number, [a, b]) in pairs.get(&root).into_iter().flatten() {
                if let (Some(a), Some(b)) = (of_root.get(a), of_root.get(b))
                    && !a.is_empty()
                    && !b.is_empty()
                {
                    measured.push(self.pair(*number, [a, b]));
                }
            }
            of_root.clear();
        }
        Ok(measured)
    }
}
