//! The pairs of candidates that are similar enough.
//!
//! ```text
//! for each small cluster, at the owner of its root, for its documents in ascending order:
//!     compare with each smaller one that is not in the same component yet
//! large clusters: `chains`, the set join for components
//! ```
//!
//! Cost: of a small cluster, some 1 ns for each element of a pair; a pair that is too unlike is
//! given up early.

use std::collections::BTreeMap;
use std::rc::Rc;

use anyhow::{Context as _, Result, ensure};
use nigh_exchange::{Context, all_to_all, blocks};

use super::candidate_sets::{CandidateSet, CandidateSource};
use super::gather::{Gathered, gather};
use crate::operators::set_join::{Chains, NearestSet, Requirement, SetJoinStage, SetSource, chains};
use crate::records::{DocId, Edge};
use crate::structures::{OwnUnionFind, Ownership, WordSet};

/// Documents of a small cluster, at most: pairs are looked at one by one.
const MOST_NODES: u64 = 64;
/// Elements of its documents together, at most: they are in memory.
const MOST_ELEMENTS: u64 = 1 << 22;

/// The roots of large clusters, ascending: of those with own nodes at any worker. Given are the
/// root of each own node, and the number of its elements.
///
/// # Errors
/// If a worker of this process failed.
pub fn large_clusters(cx: &mut Context, nodes: impl Iterator<Item = (DocId, u64)>) -> Result<Vec<DocId>> {
    let mut own: BTreeMap<DocId, [u64; 2]> = BTreeMap::new();
    for (root, elements) in nodes {
        let of_root = own.entry(root).or_default();
        *of_root = [of_root[0] + 1, of_root[1] + elements];
    }
    let mut dealer = cx.dealer();
    for (root, [nodes, elements]) in own {
        dealer.deal(root.owner(cx.peers()) as u64, [root.to_table() as u64, nodes, elements]);
    }
    let mut sums: BTreeMap<u64, [u64; 2]> = BTreeMap::new();
    for [root, nodes, elements] in all_to_all(cx, dealer)?.iter().flat_map(|block| block.records()) {
        let sum = sums.entry(*root).or_default();
        *sum = [sum[0] + nodes, sum[1] + elements];
    }
    sums.retain(|_, [nodes, elements]| *nodes > MOST_NODES || *elements > MOST_ELEMENTS);
    let large = sums.into_keys().map(|root| DocId::from_table(root as i64)).collect();
    cx.sorted(large)
}

/// Finds the pairs of candidates of one cluster that meet the requirement of `stage`, as far as the
/// components depend on them. `large` are the roots of large clusters, and `nodes` the number of
/// own candidates, all of which must have a set.
///
/// # Errors
/// [`TooManyPairs`](crate::operators::set_join::TooManyPairs), at every worker; or if sets or files
/// cannot be read or written, a candidate has no set, or a worker of this process failed.
pub fn similar_pairs(
    cx: &mut Context,
    stage: &SetJoinStage,
    owned: &Ownership,
    source: impl CandidateSource + 'static,
    large: Vec<DocId>,
    nodes: usize,
) -> Result<Chains> {
    let large: Rc<[DocId]> = large.into();
    let Gathered { small, large: of_large } = gather(cx, source, &large)?;
    let mut found = if large.is_empty() {
        Chains { edges: vec![Vec::new()], nearest: Vec::new() }
    } else {
        chains(cx, stage, owned, &of_large, &[stage.requirement], true).context(
            "a cluster of candidates is too large to compare its pages: a method with more agreements, or a higher similarity, makes smaller ones",
        )?
    };
    let mut sets = of_large.len() as u64;
    let mut compared = SmallClusters::new(stage.requirement);
    let mut small = small;
    let mut cluster: Vec<CandidateSet> = Vec::new();
    while let Some(set) = small.record()? {
        if cluster.first().is_some_and(|first| first.root != set.root) {
            compared.compare(&cluster);
            cluster.clear();
        }
        cluster.push(set);
        sets += 1;
    }
    compared.compare(&cluster);
    let [nodes, sets] = cx.sums([nodes as u64, sets])?;
    ensure!(nodes == sets, "of {nodes} candidates only {sets} have a set: a table is damaged");
    let SmallClusters { edges, nearest, .. } = compared;
    found.edges[0].extend(edges);
    let mut dealer = cx.dealer();
    nearest.into_iter().for_each(|nearest| dealer.deal(nearest.doc.owner(cx.peers()) as u64, nearest));
    found.nearest.extend(blocks(all_to_all(cx, dealer)?));
    found.nearest.sort_unstable_by_key(|nearest| nearest.doc);
    Ok(found)
}

/// The pairs of small clusters that were found.
struct SmallClusters {
    requirement: Requirement,
    edges: Vec<Edge>,
    nearest: Vec<NearestSet>,
    /// The elements of the document that is compared.
    elements: WordSet,
    /// The places in the cluster, by component.
    joined: OwnUnionFind,
    /// By place in the cluster: the most similar document that was found.
    best: Vec<Option<NearestSet>>,
}

impl SmallClusters {
    fn new(requirement: Requirement) -> SmallClusters {
        SmallClusters {
            requirement,
            edges: Vec::new(),
            nearest: Vec::new(),
            elements: WordSet::default(),
            joined: OwnUnionFind::default(),
            best: Vec::new(),
        }
    }

    /// Compares the documents of a cluster, which ascend.
    fn compare(&mut self, cluster: &[CandidateSet]) {
        self.joined = OwnUnionFind::new(cluster.len());
        self.best = vec![None; cluster.len()];
        for (place, set) in cluster.iter().enumerate().skip(1) {
            self.elements.reset(set.elements.len());
            set.elements.iter().for_each(|element| _ = self.elements.insert(*element));
            for (other, other_set) in cluster[..place].iter().enumerate() {
                let places = [place, other].map(|place| place as u32);
                if self.joined.root(places[0]) == self.joined.root(places[1]) {
                    continue;
                }
                let sizes = [set.elements.len() as u64, other_set.elements.len() as u64];
                let least = self.requirement.least_of_pair(sizes);
                if least > sizes[0].min(sizes[1]) {
                    continue;
                }
                let Some(shared) = self.elements.count_in(&other_set.elements, least as usize) else { continue };
                self.joined.join(places);
                self.edges.push(Edge { doc: set.doc, root: other_set.doc });
                let sizes = sizes[0] + sizes[1];
                for (at, doc, neighbour) in [(place, set.doc, other_set.doc), (other, other_set.doc, set.doc)] {
                    let found = NearestSet { doc, neighbour, shared: shared as u64, sizes };
                    if self.best[at].is_none_or(|best| found.is_nearer_than(&best)) {
                        self.best[at] = Some(found);
                    }
                }
            }
        }
        self.nearest.extend(self.best.iter().flatten());
    }
}
