//! The forests of all processes, joined: what each process knows of a node goes to the node's owner, as one edge.
//!
//! ```text
//! forests ──(node, root there)──▶ owners ──components──▶ labels ──resolve──▶ roots ──verify──▶
//! ```
//!
//! Where there is one process, every owner sits beside the forest, and nothing is sent.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use anyhow::Result;
use timely::dataflow::operators::probe::Handle;
use timely::order::Product;
use timely::worker::Worker;

use super::edges::{edges, tell_edges};
use super::label_propagation::{Labels, components};
use super::pointer_doubling::resolve;
use super::verify::verify;
use crate::operators::exchange::run_to_end;
use crate::records::{DocId, Edge};
use crate::structures::{Numbering, Ownership, UnionFind};
use crate::watch::Watch;

/// What joining gives to a worker.
pub struct JoinedForests {
    /// The smallest node of the component of each own node, by number.
    pub roots: Vec<DocId>,
    /// The smallest neighbour that any process noted of each own node; the node itself where none did.
    pub neighbours: Vec<DocId>,
    /// Edges of this worker's share of its process' forest.
    pub edges: u64,
    /// Rounds of label propagation.
    pub rounds: u64,
    /// Proposals that this worker took from others.
    pub taken: u64,
}

/// Joins the forests of all processes, of `threads` workers each.
///
/// # Errors
/// Where an edge's ends have two roots in the end, or a worker of this process failed.
pub fn join_forests(
    worker: &mut Worker,
    numbering: &Numbering,
    owned: &Ownership,
    forest: Arc<UnionFind>,
    threads: usize,
    watch: &Arc<Watch>,
) -> Result<JoinedForests> {
    let (index, peers) = (worker.index(), worker.peers());
    // The shards of which this worker tells what its process knows: its own, and those of the workers in its place
    // elsewhere.
    let told = (0..numbering.shards() as u32).filter(move |shard| *shard as usize % peers % threads == index % threads);
    // Each node with its number and its root.
    let nodes = || {
        told.clone().flat_map(|shard| {
            let (first, end) = (numbering.first(shard), numbering.first(shard + 1));
            let node = move |number: u32| DocId::new(shard, u64::from(number) - first);
            forest.roots(first as u32..end as u32).map(move |(number, root)| (node(number), number, root))
        })
    };
    let mut labels = Labels::new(owned);
    let mut neighbours = Vec::with_capacity(owned.len());
    neighbours.extend(owned.docs());
    let (mut proposals, mut elsewhere): (Vec<Edge>, Vec<Edge>) = (Vec::new(), Vec::new());
    let mut count = 0;
    for (node, number, root) in nodes() {
        if root != number {
            let edge = Edge { doc: node, root: numbering.id(root.into()) };
            count += 1;
            match owned.has(node) {
                true => proposals.extend(labels.propose(edge.doc, edge.root)),
                false => proposals.push(edge),
            }
        }
        if let Some(neighbour) = forest.neighbour(number) {
            let edge = Edge { doc: node, root: numbering.id(neighbour.into()) };
            match owned.has(node) {
                true => keep_smallest(&mut neighbours[owned.index(node)], edge),
                false => elsewhere.push(edge),
            }
        }
    }
    let labels = Rc::new(RefCell::new(labels));
    let probe: Handle<Product<u64, u32>> = Handle::new();
    worker.dataflow::<u64, _, _>(|scope| components(scope, edges(scope, proposals, watch), &labels, &probe, watch));
    run_to_end(worker, &probe, watch)?;
    let Labels { label, rounds, taken, .. } = labels.replace(Labels::new(&Ownership::new(0, 1, &[])));
    // One process knows every edge: its roots are the roots, and there is nobody to ask.
    let roots = if threads == peers { label } else { resolve(worker, owned, label, watch)? };
    let links = nodes().filter(|(_, number, root)| root != number);
    let links = links.map(|(node, _, root)| Edge { doc: node, root: numbering.id(root.into()) });
    verify(worker, owned, links, &roots, watch)?;
    tell_edges(worker, elsewhere, watch, |edge| keep_smallest(&mut neighbours[owned.index(edge.doc)], edge))?;
    Ok(JoinedForests { roots, neighbours, edges: count, rounds: rounds.into(), taken })
}

/// Keeps the smallest neighbour; a node stands for none.
fn keep_smallest(kept: &mut DocId, edge: Edge) {
    if *kept == edge.doc || edge.root < *kept {
        *kept = edge.root;
    }
}
