//! From labels to roots: pointer doubling over the forest of labels that `components` leaves.
//!
//! ```text
//! repeat until no label changes:
//!     for each document v: label[v] = label[label[v]]
//! ```
//!
//! A worker follows labels as far as it owns them. For each label with another owner it asks that
//! owner once how far the label leads. The answer skips everything that the other worker has
//! learned by then, so the distances double from one round to the next, without a barrier.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use anyhow::Result;
use bytemuck::{Pod, Zeroable};
use nigh_exchange::{Block, Context, Dealer, run_dataflow, source, unary};
use timely::dataflow::operators::{Concat, ConnectLoop, Feedback, Probe};

use crate::records::DocId;
use crate::structures::{DocHasher, Ownership};

/// A question to the owner of `from`, or the answer to it.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Hop {
    from: DocId,
    /// The last document that `from` is known to lead to.
    to: DocId,
    /// The worker that asks.
    worker: u32,
    /// [`QUESTION`], [`ANSWER`] or [`ROOT`].
    kind: u32,
}

const QUESTION: u32 = 0;
/// An answer: the label of `to` is not known to the worker that answers.
const ANSWER: u32 = 1;
/// An answer: `to` is the root.
const ROOT: u32 = 2;

/// What one worker knows of the forest of labels.
struct Resolver {
    owned: Ownership,
    label: Vec<DocId>,
    /// By foreign document: the last document that it is known to lead to, and whether that is a
    /// root.
    learned: HashMap<DocId, (DocId, bool), std::hash::BuildHasherDefault<DocHasher>>,
    worker: u32,
    peers: usize,
}

impl Resolver {
    /// Follows labels from a document as far as this worker knows them. Returns the last document,
    /// and whether it is a root.
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

    /// Shortens every own label to the first foreign document or root on its path. One step each is
    /// enough: a label is smaller than its document, and the loop ascends.
    fn shorten(&mut self) {
        for number in 0..self.label.len() {
            let label = self.label[number];
            if self.owned.has(label) {
                self.label[number] = self.label[self.owned.index(label)];
            }
        }
    }

    /// Returns the answer to a question, or the next question after an answer, with the worker to
    /// send it to.
    fn reply_to(&mut self, hop: Hop) -> Option<(usize, Hop)> {
        if hop.kind == QUESTION {
            let (to, root) = self.follow(hop.from);
            let kind = if root { ROOT } else { ANSWER };
            return Some((hop.worker as usize, Hop { to, kind, ..hop }));
        }
        self.learned.insert(hop.from, (hop.to, hop.kind == ROOT));
        if hop.kind == ROOT {
            return None;
        }
        self.question(hop.to)
    }

    /// Returns the question where a label leads and the worker to send it to, unless the root is
    /// known or the question is on its way already.
    fn question(&mut self, label: DocId) -> Option<(usize, Hop)> {
        let (end, root) = self.follow(label);
        if root || self.learned.contains_key(&end) {
            return None;
        }
        self.learned.insert(end, (end, false));
        Some((end.owner(self.peers), Hop { from: end, to: end, worker: self.worker, kind: QUESTION }))
    }
}

/// Returns the root of every own document, by own number. `label` holds, by own number, the
/// document itself or a smaller one of the same component.
///
/// # Errors
/// Where a worker of this process failed.
pub fn resolve(cx: &mut Context, owned: &Ownership, label: Vec<DocId>) -> Result<Vec<DocId>> {
    let watch = &cx.watch().clone();
    let (index, peers) = (cx.index() as u32, cx.peers());
    let mut resolver = Resolver { owned: owned.clone(), label, learned: HashMap::default(), worker: index, peers };
    resolver.shorten();
    let resolver = Rc::new(RefCell::new(resolver));
    run_dataflow(cx, |scope, probe| {
        let (handle, cycle) = scope.feedback::<Block>(1);
        let asked = source(scope, "Ask", |capability, _| {
            let resolver = resolver.clone();
            let mut dealer = Dealer::new(index as usize, peers, watch);
            let mut unused = Some(capability);
            move |output| {
                let Some(capability) = unused.take() else { return };
                let mut resolver = resolver.borrow_mut();
                let mut session = output.session_with_builder(&capability);
                for number in 0..resolver.label.len() {
                    let label = resolver.label[number];
                    if let Some((owner, hop)) = resolver.question(label) {
                        dealer.deal(owner as u64, hop);
                    }
                }
                dealer.finish().for_each(|mut block| session.give_container(&mut block));
            }
        });
        unary(asked.concat(cycle), "Resolve", |_| {
            let resolver = resolver.clone();
            let mut dealer = Dealer::new(index as usize, peers, watch);
            move |input, output| {
                let mut resolver = resolver.borrow_mut();
                input.for_each_stamp(|capability, blocks| {
                    for block in blocks {
                        for hop in std::mem::take(block).open().records() {
                            if let Some((recipient, hop)) = resolver.reply_to(*hop) {
                                dealer.deal(recipient as u64, hop);
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
    })?;
    let resolver = resolver.borrow();
    Ok(resolver.label.iter().map(|label| resolver.follow(*label).0).collect())
}
