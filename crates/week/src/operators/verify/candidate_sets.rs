//! The sets of candidates, as they travel from where they are read to where they are compared.

use anyhow::{Result, bail};
use nigh_exchange::RowDealer;
use serde::{Deserialize, Serialize};

use crate::operators::scan::{VectorFiles, Vectors};
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
    /// Reads the `count` features of each of the own documents `nodes`, which ascend. `roots` are
    /// the roots of their clusters of candidates, by own number. `files` are those of own vectors,
    /// and `scan` opens a scan of them, for features that cannot be read at their rows.
    ///
    /// # Errors
    /// If a segment cannot be read: names its file.
    pub fn read(
        owned: &Ownership,
        nodes: &[DocId],
        roots: &[DocId],
        count: usize,
        files: &VectorFiles,
        scan: impl Fn() -> Vectors,
    ) -> Result<FeatureSource> {
        let (docs, features) = read_features(nodes, count, files, scan)?;
        let roots = docs.iter().map(|doc| roots[owned.index(*doc)]).collect();
        Ok(FeatureSource { docs, roots, features, next: 0 })
    }
}

/// The documents among `wanted`, own ones that ascend, that have features; and the `count` features
/// of each. `files` are those of own vectors, and `scan` opens a scan of them, for features that
/// cannot be read at their rows.
///
/// # Errors
/// If a segment cannot be read: names its file.
pub fn read_features(
    wanted: &[DocId],
    count: usize,
    files: &VectorFiles,
    scan: impl Fn() -> Vectors,
) -> Result<(Vec<DocId>, Vec<FeatureBits>)> {
    match files.features(count) {
        Some(files) => {
            let (docs, words) = files.find(wanted)?;
            Ok((docs, bytemuck::cast_slice(&words).to_vec()))
        }
        None => scan_features(wanted, scan()),
    }
}

/// The documents among `nodes` that have features, in their order, and these, from a scan of all
/// own ones.
fn scan_features(nodes: &[DocId], mut vectors: Vectors) -> Result<(Vec<DocId>, Vec<FeatureBits>)> {
    let mut found: Vec<(DocId, Vec<FeatureBits>)> = Vec::new();
    while found.len() < nodes.len() {
        let Some(batch) = vectors.batch()? else { break };
        let (Some(first), Some(last)) = (batch.docs.first(), batch.docs.last()) else { continue };
        let width = batch.features.len() / batch.docs.len();
        let [from, to] = [nodes.partition_point(|node| node < first), nodes.partition_point(|node| node <= last)];
        for node in &nodes[from..to] {
            if let Ok(row) = batch.docs.binary_search(node) {
                found.push((*node, batch.features[row * width..][..width].to_vec()));
            }
        }
    }
    // The documents of several waves of a shard interleave.
    found.sort_unstable();
    let features = found.iter().flat_map(|(_, features)| features).copied().collect();
    Ok((found.into_iter().map(|(doc, _)| doc).collect(), features))
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
