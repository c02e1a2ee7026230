//! Connected components by iterative label propagation, with replaced links forwarded.
//!
//! Every document's owner keeps one word for it, its label: a document of the same component that
//! is never larger than the document itself. Morally it does this, where at first each document is
//! its own label:
//!
//! ```text
//! repeat until no label changes:
//!     for each edge (v, r), r < v:
//!         low = min(label[v], label[r])
//!         label[v], label[r] = low, low
//! ```
//!
//! That takes as many rounds as the longest path has edges. Here an edge is used once: it is a
//! proposal to the owner of its larger end, *the label of v is at most r*. A document that is its
//! own label adopts r. A document with another label keeps the smaller of the two and forwards the
//! larger one to its owner, over the feedback edge, as a proposal for that document (splicing after
//! Rem; compare Stergiou et al., Shortcutting label propagation, 2018):
//!
//! ```text
//! while v != r and label[v] != r:
//!     if label[v] == v: label[v] = r; stop
//!     label[v], v, r = min(label[v], r), max(label[v], r), min(label[v], r)
//!     if another worker owns v: send (v, r) to it; stop
//! ```
//!
//! It ends because each hop lowers the larger end. There is no barrier between rounds. A chain of a
//! million nodes takes tens of rounds, where plain label propagation takes half a million. The
//! labels that are left form a forest, and `resolve` turns them into roots: the smallest document
//! of each component, in whatever order proposals arrived.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use nigh_exchange::{Block, BlockOf, BlockStream, Dealer, time_of, unary};
use timely::dataflow::Scope;
use timely::dataflow::operators::probe::Handle;
use timely::dataflow::operators::{Concat, ConnectLoop, Enter, LoopVariable, Probe};
use timely::order::Product;

use crate::kernels::memory::advise_huge_pages;
use crate::records::{DocId, Edge};
use crate::structures::Ownership;
use crate::watch::Watch;

/// The labels of a worker's own documents.
pub struct Labels {
    /// Which documents are own ones, and their numbers.
    pub owned: Ownership,
    /// By own number: a document of the same component, not larger than the document itself.
    pub label: Vec<DocId>,
    /// Rounds of the loop so far.
    pub rounds: u32,
    /// Proposals received so far, from edges and from the loop.
    pub proposals: u64,
}

impl Labels {
    /// Labels every own document with itself.
    pub fn new(owned: &Ownership) -> Labels {
        let mut label = Vec::with_capacity(owned.len());
        advise_huge_pages(label.spare_capacity_mut());
        label.extend(owned.docs());
        Labels { owned: owned.clone(), label, rounds: 0, proposals: 0 }
    }

    /// Lowers the label of `v`, an own document, to at most `r`, where `r < v`: see the module.
    /// Returns the proposal that must be sent to another owner, if one is left.
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

/// Lowers `labels` along all edges, until no worker has a proposal left: then the probe is done.
///
/// Each edge arrives at the owner of its `doc`, as [`edges`](super::edges()) sends it, and its
/// `root` is the smaller end.
///
/// ```
/// use std::{cell::RefCell, rc::Rc, sync::Arc};
///
/// use nigh_week::operators::components::{Labels, components, edges, resolve};
/// use nigh_exchange::{Context, install, run_to_end};
/// use nigh_kernels::records::{DocId, Edge};
/// use nigh_kernels::structures::Ownership;
/// use timely::dataflow::operators::probe::Handle;
///
/// let doc = |row| DocId::new(0, row);
/// let links = vec![Edge { doc: doc(3), root: doc(1) }, Edge { doc: doc(3), root: doc(2) }];
/// let roots = timely::execute_directly(|worker| {
///     let cx = &mut Context::alone(worker);
///     let (owned, watch) = (Ownership::new(0, 1, &[4]), Arc::default());
///     let (labels, probe) = (Rc::new(RefCell::new(Labels::new(&owned))), Handle::new());
///     install(cx, |scope| components(scope, edges(scope, links, &watch), &labels, &probe, &watch));
///     run_to_end(cx, &probe).unwrap();
///     let label = labels.borrow().label.clone();
///     resolve(cx, &owned, label).unwrap()
/// });
/// assert_eq!(roots, [0, 1, 1, 1].map(doc));
/// ```
pub fn components<'scope>(
    scope: Scope<'scope, u64>,
    edges: BlockStream<'scope>,
    labels: &Rc<RefCell<Labels>>,
    probe: &Handle<Product<u64, u32>>,
    watch: &Arc<Watch>,
) {
    let peers = scope.peers();
    let mut dealer = Dealer::new(scope.index(), peers, watch);
    scope.iterative::<u32, _, _>(|inner| {
        let (handle, forwarded) = inner.loop_variable::<Block>(1);
        let proposals = edges.enter(inner).concat(forwarded);
        unary(proposals, "Components", |_| {
            let labels = labels.clone();
            move |input, output| {
                let mut labels = labels.borrow_mut();
                input.for_each_stamp(|capability, blocks| {
                    let round = time_of(&capability).inner;
                    labels.rounds = labels.rounds.max(round);
                    for block in blocks {
                        let block: BlockOf<Edge> = std::mem::take(block).open();
                        labels.proposals += block.records().len() as u64;
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
