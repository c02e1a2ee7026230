//! Labels to roots: pointer doubling over the forest that `components` leaves.
//!
//! A worker follows labels as far as it owns them; for each label of another owner it asks once: *how
//! far do you know from here?* The answer skips everything that the other worker has learned
//! meanwhile, so that distances double from round to round, without a barrier.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use anyhow::Result;
use bytemuck::{Pod, Zeroable};
use timely::dataflow::operators::generic::Operator;
use timely::dataflow::operators::generic::operator::source;
use timely::dataflow::operators::probe::Handle;
use timely::dataflow::operators::{Concat, ConnectLoop, Feedback, Probe};
use timely::worker::Worker;

use crate::operators::exchange::{Block, BlockBuilder, Dealer, by_part, run_to_end};
use crate::records::DocId;
use crate::structures::{DocHasher, Ownership};
use crate::watch::Watch;

/// A question to the owner of `from`, or the answer to it.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Hop {
    from: DocId,
    /// How far `from` is known to lead.
    to: DocId,
    /// Who asks.
    worker: u32,
    /// [`QUESTION`], [`ANSWER`] or [`ROOT`].
    kind: u32,
}

const QUESTION: u32 = 0;
/// `to` has a label that the answering worker does not own.
const ANSWER: u32 = 1;
/// `to` is the root.
const ROOT: u32 = 2;

struct Resolver {
    owned: Ownership,
    label: Vec<DocId>,
    /// How far labels of other owners are known to lead, and whether that is a root.
    learned: HashMap<DocId, (DocId, bool), std::hash::BuildHasherDefault<DocHasher>>,
    worker: u32,
    peers: usize,
}

impl Resolver {
    /// Follows labels from a document as far as this worker knows; tells whether the end is a root.
    fn follow(&self, mut doc: DocId) -> (DocId, bool) {
        loop {
            if self.owned.has(doc) {
                let label = self.label[self.owned.index(doc)];
                if label == doc {
                    return (doc, true);
                }
                doc = label;
            } else {
                match self.learned.get(&doc) {
                    Some(&(to, true)) => return (to, true),
                    Some(&(to, false)) if to != doc => doc = to,
                    _ => return (doc, false),
                }
            }
        }
    }

    /// Shortens every own label to the last document that this worker knows of. Labels are smaller than their
    /// documents, and own ones are met in ascending order: one step each.
    fn shorten(&mut self) {
        for at in 0..self.label.len() {
            let label = self.label[at];
            if self.owned.has(label) {
                self.label[at] = self.label[self.owned.index(label)];
            }
        }
    }

    /// The answer to a question, or the next question after an answer.
    fn take(&mut self, hop: Hop) -> Option<(usize, Hop)> {
        if hop.kind == QUESTION {
            let (to, root) = self.follow(hop.from);
            let kind = if root { ROOT } else { ANSWER };
            return Some((hop.worker as usize, Hop { to, kind, ..hop }));
        }
        self.learned.insert(hop.from, (hop.to, hop.kind == ROOT));
        if hop.kind == ROOT {
            return None;
        }
        self.ask(hop.to)
    }

    /// A question about where a label leads, unless that is known or asked already.
    fn ask(&mut self, label: DocId) -> Option<(usize, Hop)> {
        let (end, root) = self.follow(label);
        if root || self.learned.contains_key(&end) {
            return None;
        }
        self.learned.insert(end, (end, false));
        Some((end.owner(self.peers), Hop { from: end, to: end, worker: self.worker, kind: QUESTION }))
    }
}

/// The root of every own document, by number, from labels such that each is its document or a smaller one.
///
/// # Errors
/// Where a worker of this process failed.
pub fn resolve(worker: &mut Worker, owned: &Ownership, label: Vec<DocId>, watch: &Arc<Watch>) -> Result<Vec<DocId>> {
    let (index, peers) = (worker.index() as u32, worker.peers());
    let mut resolver = Resolver { owned: owned.clone(), label, learned: HashMap::default(), worker: index, peers };
    resolver.shorten();
    let resolver = Rc::new(RefCell::new(resolver));
    let probe = Handle::new();
    worker.dataflow::<u64, _, _>(|scope| {
        let (handle, cycle) = scope.feedback::<Block<Hop>>(1);
        let (first, rest) = (resolver.clone(), resolver.clone());
        let mut first_dealer = Dealer::new(index as usize, peers, watch);
        let mut dealer = Dealer::new(index as usize, peers, watch);
        source::<_, BlockBuilder<Hop>, _, _>(scope, "Ask", |capability, _| {
            let mut held = Some(capability);
            move |output| {
                let Some(capability) = held.take() else { return };
                let mut resolver = first.borrow_mut();
                let mut session = output.session_with_builder(&capability);
                for at in 0..resolver.label.len() {
                    let label = resolver.label[at];
                    if let Some((part, hop)) = resolver.ask(label) {
                        first_dealer.deal(part as u64, hop);
                    }
                }
                first_dealer.finish().for_each(|mut block| session.give_container(&mut block));
            }
        })
        .concat(cycle)
        .unary::<BlockBuilder<Hop>, _, _, _>(by_part(), "Resolve", |_, _| {
            move |input, output| {
                let mut resolver = rest.borrow_mut();
                input.for_each_time(|capability, blocks| {
                    for block in blocks {
                        for hop in std::mem::take(block).records() {
                            if let Some((part, hop)) = resolver.take(*hop) {
                                dealer.deal(part as u64, hop);
                            }
                        }
                    }
                    let mut session = output.session_with_builder(&capability);
                    dealer.finish().for_each(|mut block| session.give_container(&mut block));
                });
            }
        })
        .probe_with(&probe)
        .connect_loop(handle);
    });
    run_to_end(worker, &probe, watch)?;
    let resolver = resolver.borrow();
    Ok(resolver.label.iter().map(|label| resolver.follow(*label).0).collect())
}
