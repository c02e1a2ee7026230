//! Lookups: what the owners of some nodes know of them, for everybody who asks.
//!
//! A question is four bytes, an answer some words; whoever asks goes over the questions twice, and the answers of an
//! owner come in the order of the questions. What was asked lately is not asked again, so that a node that everybody
//! asks about burdens nobody.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

use anyhow::{Result, ensure};
use timely::container::CapacityContainerBuilder;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::Probe;
use timely::dataflow::operators::generic::Operator;
use timely::dataflow::operators::generic::operator::source;
use timely::dataflow::operators::probe::Handle;
use timely::worker::Worker;

use super::block::{BlockBuilder, Dealer, by_part};
use super::phase::{Owned, run_to_end};
use super::ranges::SLICE;
use crate::records::{DocId, mix};
use crate::watch::Watch;

/// Questions between two looks at the clock.
const SOME: usize = 1 << 14;
/// Nodes of which something is looked up in one go: with little between the loads many of them are under way at once.
pub(super) const SIDE_BY_SIDE: usize = 64;

/// Nodes that were asked about lately, in a direct-mapped cache.
struct Asked<const WORDS: usize>(Vec<Option<(DocId, [u64; WORDS])>>);

impl<const WORDS: usize> Asked<WORDS> {
    fn new() -> Asked<WORDS> {
        Asked(vec![None; 1 << 12])
    }

    #[inline]
    fn slot(&mut self, node: DocId) -> &mut Option<(DocId, [u64; WORDS])> {
        let slot = mix(node.to_table() as u64) as usize % self.0.len();
        &mut self.0[slot]
    }
}

/// What a worker knows of its own nodes.
pub trait Known<const WORDS: usize> {
    /// Writes what is known of some own nodes, by number, at most `SIDE_BY_SIDE` of them.
    fn tell(&self, nodes: &[usize], answers: &mut [[u64; WORDS]]);
}

impl<const WORDS: usize, F: Fn(usize) -> [u64; WORDS]> Known<WORDS> for F {
    fn tell(&self, nodes: &[usize], answers: &mut [[u64; WORDS]]) {
        answers.iter_mut().zip(nodes).for_each(|(answer, node)| *answer = self(*node));
    }
}

/// Calls `each` with what is known of every node of `questions`, in their order. Some questions are taken, and what is
/// `known` looked up, before `each` is called for the first of them: it may change what `questions` goes over, but only
/// what was asked already.
///
/// # Errors
/// Where a worker of this process failed.
pub fn lookup<const WORDS: usize, Q: Iterator<Item = DocId> + 'static>(
    worker: &mut Worker,
    owned: &Owned,
    questions: impl Fn() -> Q,
    known: impl Known<WORDS> + 'static,
    watch: &Arc<Watch>,
    mut each: impl FnMut(usize, [u64; WORDS]),
) -> Result<()> {
    let (index, peers) = (worker.index(), worker.peers());
    ensure!(
        owned.len() <= u32::MAX as usize,
        "{} pages are more than one worker can know: use more workers",
        owned.len()
    );
    let known = Rc::new(known);
    let answers: Rc<RefCell<Vec<VecDeque<u64>>>> = Rc::new(RefCell::new(vec![VecDeque::new(); peers]));
    let probe = Handle::new();
    let mut asking = questions();
    worker.dataflow::<u64, _, _>(|scope| {
        let (own, answering, kept) = (owned.clone(), known.clone(), answers.clone());
        let mut dealer = Dealer::new(index, peers, watch);
        let mut replies = Dealer::new(index, peers, watch);
        source::<_, BlockBuilder<u32>, _, _>(scope, "Ask", |capability, info| {
            let activator = scope.activator_for(info.address);
            let mut held = Some(capability);
            let mut asked = Asked::<0>::new();
            move |output| {
                let Some(capability) = held.as_ref() else { return };
                let mut session = output.session_with_builder(capability);
                let slice = std::time::Instant::now();
                loop {
                    let mut taken = 0;
                    for node in asking.by_ref().take(SOME) {
                        taken += 1;
                        if own.has(node) {
                            continue;
                        }
                        let slot = asked.slot(node);
                        if slot.is_none_or(|(known, _)| known != node) {
                            *slot = Some((node, []));
                            dealer.deal(node.owner(peers) as u64, own.index(node) as u32);
                        }
                    }
                    if taken < SOME {
                        dealer.finish().for_each(|mut block| session.give_container(&mut block));
                        drop(session);
                        held = None;
                        return;
                    }
                    dealer.full().for_each(|mut block| session.give_container(&mut block));
                    if slice.elapsed() > SLICE {
                        return activator.activate();
                    }
                }
            }
        })
        .unary::<BlockBuilder<u64>, _, _, _>(by_part(), "Look", |_, _| {
            move |input, output| {
                // In the order of arrival, as the answers are taken.
                input.for_each(|capability, block| {
                    let block = std::mem::take(block);
                    for some in block.records().chunks(SIDE_BY_SIDE) {
                        let (mut nodes, mut answers) = ([0; SIDE_BY_SIDE], [[0; WORDS]; SIDE_BY_SIDE]);
                        nodes.iter_mut().zip(some).for_each(|(node, at)| *node = *at as usize);
                        let answers = &mut answers[..some.len()];
                        answering.tell(&nodes[..some.len()], answers);
                        let words = answers.as_flattened();
                        words.iter().for_each(|word| replies.deal(block.from.into(), *word));
                    }
                    let mut session = output.session_with_builder(&capability);
                    replies.finish().for_each(|mut block| session.give_container(&mut block));
                });
            }
        })
        .unary::<BlockBuilder<u64>, _, _, _>(by_part(), "Hear", |_, _| {
            move |input, _output| {
                let mut kept = kept.borrow_mut();
                input.for_each(|_, block| kept[block.from as usize].extend(std::mem::take(block).records()));
            }
        })
        .unary::<CapacityContainerBuilder<Vec<()>>, _, _, _>(Pipeline, "End", |_, _| {
            |input, _| input.for_each(|_, _| {})
        })
        .probe_with(&probe);
    });
    run_to_end(worker, &probe, watch)?;
    let mut answers = answers.take();
    let mut asked = Asked::<WORDS>::new();
    let (mut questions, mut before) = (questions().fuse(), 0);
    let (mut nodes, mut own): (Vec<DocId>, Vec<usize>) = (Vec::new(), Vec::new());
    loop {
        nodes.clear();
        nodes.extend(questions.by_ref().take(SIDE_BY_SIDE));
        if nodes.is_empty() {
            return Ok(());
        }
        own.clear();
        own.extend(nodes.iter().filter(|node| owned.has(**node)).map(|node| owned.index(*node)));
        let mut of_own = [[0; WORDS]; SIDE_BY_SIDE];
        known.tell(&own, &mut of_own[..own.len()]);
        let mut of_own = of_own.iter();
        for (at, node) in (before..).zip(&nodes) {
            if owned.has(*node) {
                each(at, *of_own.next().expect("as many as are own"));
                continue;
            }
            let slot = asked.slot(*node);
            let answer = match slot {
                Some((known, answer)) if known == node => *answer,
                _ => {
                    let queue = &mut answers[node.owner(peers)];
                    let answer = std::array::from_fn(|_| queue.pop_front().expect("every question is answered"));
                    *slot = Some((*node, answer));
                    answer
                }
            };
            each(at, answer);
        }
        before += nodes.len();
    }
}
