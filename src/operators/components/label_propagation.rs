//! Connected components by iterative label propagation, with links forwarded.
//!
//! Every document's owner keeps one word for it, its label: a document of the same component, never
//! larger than itself. An edge is a proposal to the owner of its larger end: *your label is at most
//! r*. A document that is its own label adopts r; one that has another label keeps the smaller of
//! the two and forwards the larger one to its owner as a proposal of its own, over the feedback edge
//! (splicing after Rem; compare Stergiou et al., Shortcutting label propagation, 2018):
//!
//! ```text
//! while v != r and label[v] != r:
//!     if label[v] == v: label[v] = r; stop
//!     label[v], v, r = min(label[v], r), max(label[v], r), min(label[v], r)
//!     if v is not mine: send (v, r) to its owner; stop
//! ```
//!
//! Each hop lowers the larger end, so that it ends; there is no barrier a round. A chain of a million
//! nodes takes tens of rounds, where plain label propagation takes half a million. What is left is a forest of labels,
//! which `resolve` turns into roots: the smallest document of each component, whatever the order in which
//! proposals came.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use timely::dataflow::operators::generic::Operator;
use timely::dataflow::operators::probe::Handle;
use timely::dataflow::operators::{Concat, ConnectLoop, Enter, LoopVariable, Probe};
use timely::dataflow::{Scope, Stream};
use timely::order::Product;

use crate::kernels::memory::advise_huge_pages;
use crate::operators::exchange::{Block, BlockBuilder, Dealer, by_part};
use crate::records::{DocId, Edge};
use crate::structures::Ownership;
use crate::watch::Watch;

/// What is known of a worker's own documents.
pub struct Labels {
    /// Whose they are.
    pub owned: Ownership,
    /// A document of the same component, not larger than the document itself.
    pub label: Vec<DocId>,
    /// Rounds of the loop so far.
    pub rounds: u32,
    /// Proposals taken from the loop so far.
    pub taken: u64,
}

impl Labels {
    /// Every document on its own.
    pub fn new(owned: &Ownership) -> Labels {
        let mut own = Vec::with_capacity(owned.len());
        advise_huge_pages(own.spare_capacity_mut());
        own.extend(owned.docs());
        Labels { owned: owned.clone(), label: own, rounds: 0, taken: 0 }
    }

    /// "The label of `v`, an own document, is at most `r`", r < v: see the module. Returns the proposal that another
    /// owner must hear.
    pub fn propose(&mut self, mut v: DocId, mut r: DocId) -> Option<Edge> {
        loop {
            if v == r {
                return None;
            }
            let label = &mut self.label[self.owned.index(v)];
            if *label == r {
                return None;
            }
            if *label == v {
                *label = r;
                return None;
            }
            let (low, high) = (r.min(*label), r.max(*label));
            *label = low;
            (v, r) = (high, low);
            if !self.owned.has(v) {
                return Some(Edge { doc: v, root: r });
            }
        }
    }
}

/// Labels the documents that the edges join; the probe says when nothing moves any more.
pub fn components<'scope>(
    scope: Scope<'scope, u64>,
    edges: Stream<'scope, u64, Block<Edge>>,
    labels: &Rc<RefCell<Labels>>,
    probe: &Handle<Product<u64, u32>>,
    watch: &Arc<Watch>,
) {
    let peers = scope.peers();
    let labels = labels.clone();
    let mut dealer = Dealer::new(scope.index(), peers, watch);
    scope.iterative::<u32, _, _>(|inner| {
        let (handle, forwarded) = inner.loop_variable::<Block<Edge>>(1);
        edges
            .enter(inner)
            .concat(forwarded)
            .unary::<BlockBuilder<Edge>, _, _, _>(by_part(), "Components", |_, _| {
                move |input, output| {
                    let mut labels = labels.borrow_mut();
                    input.for_each_time(|capability, blocks| {
                        let round = capability.time().inner;
                        labels.rounds = labels.rounds.max(round);
                        for block in blocks {
                            let block = std::mem::take(block);
                            labels.taken += block.records().len() as u64;
                            for edge in block.records() {
                                if let Some(forward) = labels.propose(edge.doc, edge.root) {
                                    dealer.deal(forward.doc.owner(peers) as u64, forward);
                                }
                            }
                        }
                        let mut session = output.session_with_builder(&capability);
                        dealer.finish().for_each(|mut block| session.give_container(&mut block));
                    });
                }
            })
            .probe_with(probe)
            .connect_loop(handle);
    });
}
