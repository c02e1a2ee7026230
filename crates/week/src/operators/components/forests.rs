//! Joins the union-finds of all processes into one set of roots.
//!
//! Each process sends, for every node that its union-find joined with a smaller one, one edge to
//! the node's owner: the node and its root in that process. Label propagation over these edges
//! finds the roots over all processes.
//!
//! ```text
//! union-finds ──(node, root in the process)──▶ owners ──components──▶ labels ──resolve──▶ roots ──verify──▶
//! ```
//!
//! With one process every owner reads the union-find directly: label propagation sends nothing, and
//! the labels are the roots.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use anyhow::Result;
use nigh_exchange::{Context, install, run_to_end};
use timely::dataflow::operators::probe::Handle;
use timely::order::Product;

use super::edges::{edges, send_edges};
use super::label_propagation::{Labels, components};
use super::pointer_doubling::resolve;
use super::verify::verify;
use crate::records::{DocId, Edge};
use crate::structures::{Numbering, Ownership, UnionFind};

/// The roots of a worker's own nodes over all processes, and how much work it was to find them.
pub struct JoinedForests {
    /// The smallest node of the component of each own node, by own number.
    pub roots: Vec<DocId>,
    /// The smallest neighbour of each own node that any process noted; the node itself if no
    /// process noted one.
    pub neighbours: Vec<DocId>,
    /// Edges that this worker took from its process' union-find: one for each node of its share
    /// that is not a root there.
    pub edges: u64,
    /// Rounds of label propagation.
    pub rounds: u64,
    /// Proposals that this worker received in label propagation.
    pub proposals: u64,
}

/// Joins the union-finds of all processes, which have `threads` workers each.
///
/// Nodes are the documents of `numbering`; node `n` of `union_find` is the document with the number
/// `n`. `owned` are this worker's own nodes. All workers of a process pass the same union-find, and
/// no worker joins edges in it any more.
///
/// ```
/// use std::sync::Arc;
///
/// use nigh_week::operators::components::join_forests;
/// use nigh_exchange::Context;
/// use nigh_kernels::records::DocId;
/// use nigh_kernels::structures::{Numbering, Ownership, UnionFind};
///
/// // One worker, and one shard of five documents: 3 is linked to 1, and 4 to 3.
/// let roots = timely::execute_directly(|worker| {
///     let cx = &mut Context::alone(worker);
///     let (numbering, owned) = (Numbering::new(&[5]), Ownership::new(0, 1, &[5]));
///     let union_find = Arc::new(UnionFind::new(5));
///     union_find.join(&[(3, 1), (4, 3)]).unwrap();
///     join_forests(cx, &numbering, &owned, union_find, 1).unwrap().roots
/// });
/// assert_eq!(roots, [0, 1, 2, 1, 1].map(|row| DocId::new(0, row)));
/// ```
///
/// # Errors
/// Where the ends of an edge have different roots in the end, or a worker of this process failed.
pub fn join_forests(
    cx: &mut Context,
    numbering: &Numbering,
    owned: &Ownership,
    union_find: Arc<UnionFind>,
    threads: usize,
) -> Result<JoinedForests> {
    let watch = &cx.watch().clone();
    let (index, peers) = (cx.index(), cx.peers());
    // This worker's share of the process' union-find: its own shards, and those of the workers with
    // the same place in other processes.
    let shards =
        (0..numbering.shards() as u32).filter(move |shard| *shard as usize % peers % threads == index % threads);
    // Every node of the share with its number and its root.
    let nodes = || {
        shards.clone().flat_map(|shard| {
            let (first, end) = (numbering.first(shard), numbering.first(shard + 1));
            let node = move |number: u32| DocId::new(shard, u64::from(number) - first);
            union_find.roots(first as u32..end as u32).map(move |(number, root)| (node(number), number, root))
        })
    };
    let mut labels = Labels::new(owned);
    let mut neighbours = Vec::with_capacity(owned.len());
    neighbours.extend(owned.docs());
    // Edges for the owners: proposals for label propagation, and neighbours of nodes that other
    // workers own.
    let (mut proposals, mut foreign_neighbours): (Vec<Edge>, Vec<Edge>) = (Vec::new(), Vec::new());
    let mut edge_count = 0;
    for (node, number, root) in nodes() {
        if root != number {
            let edge = Edge { doc: node, root: numbering.id(root.into()) };
            edge_count += 1;
            if owned.has(node) {
                proposals.extend(labels.propose(edge.doc, edge.root));
            } else {
                proposals.push(edge);
            }
        }
        if let Some(neighbour) = union_find.neighbour(number) {
            let edge = Edge { doc: node, root: numbering.id(neighbour.into()) };
            if owned.has(node) {
                keep_smallest(&mut neighbours[owned.index(node)], edge);
            } else {
                foreign_neighbours.push(edge);
            }
        }
    }
    let labels = Rc::new(RefCell::new(labels));
    let probe: Handle<Product<u64, u32>> = Handle::new();
    install(cx, |scope| components(scope, edges(scope, proposals, watch), &labels, &probe, watch));
    run_to_end(cx, &probe)?;
    let Labels { label, rounds, proposals, .. } = labels.replace(Labels::new(&Ownership::new(0, 1, &[])));
    // A single process has every edge in its union-find: its roots are the roots already.
    let roots = if threads == peers { label } else { resolve(cx, owned, label)? };
    let non_roots = nodes().filter(|(_, number, root)| root != number);
    let tree_edges = non_roots.map(|(node, _, root)| Edge { doc: node, root: numbering.id(root.into()) });
    verify(cx, owned, tree_edges, &roots)?;
    send_edges(cx, foreign_neighbours, |edge| keep_smallest(&mut neighbours[owned.index(edge.doc)], edge))?;
    Ok(JoinedForests { roots, neighbours, edges: edge_count, rounds: rounds.into(), proposals })
}

/// Sets the neighbour of `edge.doc` to `edge.root` if that is smaller, or if there is no neighbour
/// yet: then the node itself stands in its place.
fn keep_smallest(neighbour: &mut DocId, edge: Edge) {
    if *neighbour == edge.doc || edge.root < *neighbour {
        *neighbour = edge.root;
    }
}
