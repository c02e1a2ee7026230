//! The clusters after verification: the components of the pairs that are similar enough.
//!
//! ```text
//! a node:            its root is the smallest of its component
//! another page:      the root of the first of its equals
//! identical vectors  stay one class as long as they are in one cluster; else each cluster has a class of its own
//! ```

use std::rc::Rc;

use anyhow::Result;
use bytemuck::{Pod, Zeroable};
use nigh_exchange::{Context, LocalAnswers, all_to_all, lookup};

use crate::operators::components::component_roots;
use crate::operators::scan::VectorRoots;
use crate::operators::set_join::{Chains, NearestSet};
use crate::records::DocId;
use crate::structures::{CompactSort, Ownership};

/// The clusters after verification, of own documents by number.
#[derive(Debug, Default)]
pub struct SplitClusters {
    /// The new roots. Clusters without nodes have those that they had.
    pub roots: VectorRoots,
    /// The most similar neighbour of each own node that is not alone, ascending.
    pub nearest: Vec<NearestSet>,
}

/// Clusters of candidates, of own documents.
#[derive(Clone, Copy)]
pub struct CandidateClusters<'a> {
    /// Their roots, by number.
    pub roots: &'a VectorRoots,
    /// The first document that is equal to each, by number.
    pub firsts: &'a [DocId],
    /// The [nodes](super::nodes()), ascending.
    pub nodes: &'a [DocId],
}

/// A node whose vector the first node with this vector has no longer, as that is in another
/// cluster.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct Parted {
    first: DocId,
    root: DocId,
    doc: DocId,
}

/// Splits the clusters of candidates with a `wanted` root; `chains` are the pairs of nodes that are
/// similar enough.
///
/// # Errors
/// If a worker of this process failed.
pub fn split(
    cx: &mut Context,
    owned: &Ownership,
    candidates: CandidateClusters<'_>,
    wanted: impl Fn(DocId) -> bool,
    chains: Chains,
) -> Result<SplitClusters> {
    let CandidateClusters { roots: candidates, firsts, nodes } = candidates;
    let components = component_roots(cx, owned, chains.edges.concat())?;
    let mut roots = candidates.clone();
    for node in nodes {
        roots.similar[owned.index(*node)] = components[owned.index(*node)];
    }

    // Nodes with the vector of a smaller one.
    let of_node = |node: &DocId| candidates.identical[owned.index(*node)];
    let same_vector: Rc<Vec<(DocId, DocId)>> =
        Rc::new(nodes.iter().map(|node| (*node, of_node(node))).filter(|(node, first)| node != first).collect());
    let mut parted: Vec<Parted> = Vec::new();
    let questions = || {
        let same_vector = same_vector.clone();
        (0..same_vector.len()).map(move |place| same_vector[place].1)
    };
    // Fresh memory for all documents costs more than what is asked: the answers share the roots.
    let shared = Rc::new(roots);
    let own = shared.clone();
    let answers = LocalAnswers::own(cx, move |number: usize| [own.similar[number].to_table() as u64]);
    lookup(cx, owned, questions, &answers, |place, [root_of_first]| {
        let (doc, first) = same_vector[place];
        let root = components[owned.index(doc)];
        if root.to_table() as u64 != root_of_first {
            parted.push(Parted { first, root, doc });
        }
    })?;
    drop(answers);
    let mut roots = Rc::unwrap_or_clone(shared);
    for Parted { root, doc, .. } in first_of_parted(cx, parted)? {
        roots.identical[owned.index(doc)] = root;
    }

    // Pages that are equal to a node. One that is equal to the root of its candidates keeps that
    // root, which is the smallest of all.
    let is_copy = |(doc, (root, first)): &(DocId, (&DocId, &DocId))| {
        *first != doc && first != root && **root != DocId::NONE && wanted(**root)
    };
    let copies = owned.docs().zip(candidates.similar.iter().zip(firsts)).filter(is_copy);
    let copies: Rc<Vec<(DocId, DocId)>> = Rc::new(copies.map(|(doc, (_, first))| (doc, *first)).collect());
    let questions = || {
        let copies = copies.clone();
        (0..copies.len()).map(move |place| copies[place].1)
    };
    let shared = Rc::new(roots);
    let own = shared.clone();
    let mut of_copies: Vec<(usize, [DocId; 2])> = Vec::with_capacity(copies.len());
    let answers = LocalAnswers::own(cx, move |number: usize| {
        [own.similar[number], own.identical[number]].map(|root| root.to_table() as u64)
    });
    lookup(cx, owned, questions, &answers, |place, of_first| {
        of_copies.push((owned.index(copies[place].0), of_first.map(|root| DocId::from_table(root as i64))));
    })?;
    drop(answers);
    let mut roots = Rc::unwrap_or_clone(shared);
    for (number, of_copy) in of_copies {
        [roots.similar[number], roots.identical[number]] = of_copy;
    }
    Ok(SplitClusters { roots, nearest: chains.nearest })
}

/// Returns for each own parted node, as `root`, the smallest node of its new cluster with its
/// vector.
fn first_of_parted(cx: &mut Context, parted: Vec<Parted>) -> Result<Vec<Parted>> {
    let peers = cx.peers();
    let mut dealer = cx.dealer();
    for node in parted {
        dealer.deal(node.first.owner(peers) as u64, node);
    }
    let mut received: Vec<Parted> = Vec::new();
    all_to_all(cx, dealer)?.iter().for_each(|block| received.extend_from_slice(block.records()));
    received.sort_rows();
    let mut dealer = cx.dealer();
    for of_cluster in received.chunk_by(|a, b| (a.first, a.root) == (b.first, b.root)) {
        for node in of_cluster {
            dealer.deal(node.doc.owner(peers) as u64, Parted { root: of_cluster[0].doc, ..*node });
        }
    }
    let mut answers: Vec<Parted> = Vec::new();
    all_to_all(cx, dealer)?.iter().for_each(|block| answers.extend_from_slice(block.records()));
    Ok(answers)
}
