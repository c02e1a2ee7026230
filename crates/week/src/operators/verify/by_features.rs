//! Checks clusters of candidates by features.
//!
//! ```text
//! each candidate is compared with its neighbour
//! a cluster is in doubt if one of these pairs is not similar enough, or if a candidate other than the root has no smaller neighbour
//! all pairs of clusters in doubt are looked at; the other clusters hold together by what was compared
//! ```
//!
//! Cost: one comparison for each vector of a cluster, which the table `evidence` needs in any case;
//! and the clusters in doubt.

use anyhow::Result;
use nigh_exchange::Context;

use super::candidate_sets::FeatureSource;
use super::nodes::nodes;
use super::pairs::{large_clusters, similar_pairs};
use super::split::{CandidateClusters, SplitClusters, split};
use crate::operators::output;
use crate::operators::output::Agreement;
use crate::operators::scan::{SketchFiles, VectorRoots};
use crate::operators::set_join::{Requirement, SetJoinStage};
use crate::records::DocId;
use crate::structures::Ownership;

/// What is checked, and with what.
pub struct FeatureCheck<'a> {
    /// The documents that the worker owns.
    pub owned: &'a Ownership,
    /// The roots of the clusters of candidates, by number.
    pub candidates: &'a VectorRoots,
    /// A neighbour of each candidate, by number.
    pub neighbours: &'a [DocId],
    /// The features of a document.
    pub features: usize,
    /// How many features of two documents are equal at least.
    pub least: u32,
    /// The sketches of own documents.
    pub sketches: &'a SketchFiles,
}

/// What a check finds.
pub struct CheckedFeatures {
    /// The clusters that are left.
    pub split: SplitClusters,
    /// The roots of the clusters of candidates that were in doubt, ascending; the same at every
    /// worker.
    pub doubtful: Vec<DocId>,
    /// What each candidate agrees in with its neighbour, by number; of clusters that were not in
    /// doubt.
    pub agreements: Vec<Agreement>,
}

/// Checks the clusters of candidates with a `known` root.
///
/// # Errors
/// If a segment cannot be read, a file cannot be written, or a worker of this process failed.
pub fn check_by_features(
    cx: &mut Context,
    check: &FeatureCheck<'_>,
    known: impl Fn(DocId) -> bool,
) -> Result<CheckedFeatures> {
    let FeatureCheck { owned, candidates, neighbours, features, least, sketches } = *check;
    let memory = cx.memory();
    let VectorRoots { similar, identical } = candidates;
    let compared = owned.docs().enumerate().map(|(number, doc)| {
        let is_compared = similar[number] != doc && identical[number] == doc && known(similar[number]);
        if is_compared { neighbours[number] } else { doc }
    });
    let compared: Vec<DocId> = compared.collect();
    let agreements = output::evidence(cx, owned, compared.clone(), sketches, memory / 2)?;
    let is_doubtful = |(number, doc): &(usize, DocId)| {
        let neighbour = compared[*number];
        neighbour != *doc && (neighbour > *doc || agreements[*number].equal < least)
    };
    let own = owned.docs().enumerate().filter(is_doubtful).map(|(number, _)| similar[number]);
    let mut own: Vec<DocId> = own.collect();
    own.sort_unstable();
    own.dedup();
    let mut doubtful = cx.sorted(own)?;
    doubtful.dedup();
    let wanted = |root: DocId| doubtful.binary_search(&root).is_ok();
    let nodes = nodes(cx, owned, similar, identical, wanted)?;
    let sizes = nodes.iter().map(|node| (similar[owned.index(*node)], features as u64));
    let large = large_clusters(cx, sizes)?;
    let sets = FeatureSource::read(owned, &nodes, similar, sketches)?;
    let stage = SetJoinStage::of_components(Requirement::Shared(least));
    let chains = similar_pairs(&mut cx.with(memory / 4, cx.scratch()), &stage, owned, sets, large, nodes.len())?;
    let of_nodes = CandidateClusters { roots: candidates, firsts: identical, nodes: &nodes };
    let split = split(cx, owned, of_nodes, wanted, chains)?;
    Ok(CheckedFeatures { split, doubtful, agreements })
}
