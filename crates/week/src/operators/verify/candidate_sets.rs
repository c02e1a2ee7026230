//! The sets of candidates, as they travel from where they are read to where they are compared.

use anyhow::{Result, bail};
use nigh_exchange::RowDealer;
use serde::{Deserialize, Serialize};

use crate::operators::scan::SketchFiles;
use crate::records::{DocId, FeatureBits};
use crate::structures::{Ownership, Sortable};

/// The elements of a candidate: its shingles, or its features with their places.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CandidateSet {
    /// The document.
    pub doc: DocId,
    /// The root of its cluster of candidates.
    pub root: DocId,
    /// Distinct elements, in any order.
    pub elements: Vec<u64>,
}

impl CandidateSet {
    /// Deals the set to a worker, as a row: document, root, elements.
    pub fn deal(&self, to: usize, dealer: &mut RowDealer) {
        let ends = [self.doc, self.root];
        dealer.deal_bytes(to, &[bytemuck::cast_slice(&ends), bytemuck::cast_slice(&self.elements)]);
    }

    /// Reads a row that [`CandidateSet::deal`] dealt.
    ///
    /// # Errors
    /// If it is not one.
    pub fn read(row: &[u8]) -> Result<CandidateSet> {
        let Ok([doc, root, elements @ ..]) = bytemuck::try_cast_slice::<u8, u64>(row) else { bail!("a set is cut") };
        Ok(CandidateSet { doc: bytemuck::cast(*doc), root: bytemuck::cast(*root), elements: elements.to_vec() })
    }
}

impl Sortable for CandidateSet {
    type Key = (DocId, DocId);

    fn key(&self) -> Self::Key {
        (self.root, self.doc)
    }

    fn weight(&self) -> usize {
        size_of::<CandidateSet>() + 8 * self.elements.len()
    }
}

/// Where a worker reads sets of candidates, step by step.
pub trait CandidateSource {
    /// Takes a step, of some milliseconds at most.
    ///
    /// # Errors
    /// If sets cannot be read.
    fn step(&mut self) -> Result<SetStep>;
}

/// The result of one step.
pub enum SetStep {
    /// A set.
    Set(CandidateSet),
    /// Nothing yet.
    Passed,
    /// There are no more sets.
    End,
}

/// The features of some own documents, as sets of (place, feature): two sets share as many elements
/// as the documents have equal features.
pub struct FeatureSource {
    docs: Vec<DocId>,
    roots: Vec<DocId>,
    /// The features of all documents, one after the other.
    features: Vec<FeatureBits>,
    next: usize,
}

impl FeatureSource {
    /// Reads the features of each of the own documents `nodes`, which ascend. `roots` are the roots
    /// of their clusters of candidates, by own number.
    ///
    /// # Errors
    /// If a segment cannot be read: names its file.
    pub fn read(owned: &Ownership, nodes: &[DocId], roots: &[DocId], sketches: &SketchFiles) -> Result<FeatureSource> {
        let (docs, features) = sketches.features(nodes)?;
        let roots = docs.iter().map(|doc| roots[owned.index(*doc)]).collect();
        Ok(FeatureSource { docs, roots, features, next: 0 })
    }
}

impl CandidateSource for FeatureSource {
    fn step(&mut self) -> Result<SetStep> {
        let Some(doc) = self.docs.get(self.next) else { return Ok(SetStep::End) };
        let width = self.features.len() / self.docs.len();
        let of_doc = &self.features[self.next * width..][..width];
        let elements = (0..)
            .zip(of_doc)
            .map(|(place, feature): (u64, &FeatureBits)| place << FeatureBits::BITS | u64::from(*feature))
            .collect();
        let root = self.roots[self.next];
        self.next += 1;
        Ok(SetStep::Set(CandidateSet { doc: *doc, root, elements }))
    }
}
