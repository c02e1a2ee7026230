//! Lookups: what the owners of some nodes know of them, for everybody who asks.
//!
//! A question is four bytes, an answer some words; whoever asks goes over the questions twice, and the answers of an
//! owner come in the order of the questions. What was asked lately is not asked again, so that a node that everybody
//! asks about burdens nobody. What workers of the same process know may be laid open to each other: nobody asks for
//! that.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Result, ensure};
use timely::container::CapacityContainerBuilder;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::Probe;
use timely::dataflow::operators::generic::Operator;
use timely::dataflow::operators::generic::operator::source;
use timely::dataflow::operators::probe::Handle;
use timely::worker::Worker;

use super::all_gather::barrier;
use super::block::{BlockBuilder, by_part};
use super::dealer::Dealer;
use super::ranges::SLICE;
use super::run::run_to_end;
use super::shared::Shared;
use crate::kernels::memory::SIDE_BY_SIDE;
use crate::records::{DocId, mix};
use crate::structures::Ownership;
use crate::watch::Watch;

/// Questions between two looks at the clock.
const SOME: usize = 1 << 14;

/// Nodes that were asked about lately, in a direct-mapped cache.
struct RecentQuestions<const WORDS: usize>(Vec<Option<(DocId, [u64; WORDS])>>);

impl<const WORDS: usize> RecentQuestions<WORDS> {
    fn new() -> RecentQuestions<WORDS> {
        RecentQuestions(vec![None; 1 << 12])
    }

    #[inline]
    fn slot(&mut self, node: DocId) -> &mut Option<(DocId, [u64; WORDS])> {
        let slot = mix(node.to_table() as u64) as usize % self.0.len();
        &mut self.0[slot]
    }
}

/// What a worker knows of its own nodes.
pub trait NodeAnswers<const WORDS: usize> {
    /// Writes what is known of some own nodes, by number, at most `SIDE_BY_SIDE` of them.
    fn tell(&self, nodes: &[usize], answers: &mut [[u64; WORDS]]);
}

impl<const WORDS: usize, F: Fn(usize) -> [u64; WORDS]> NodeAnswers<WORDS> for F {
    fn tell(&self, nodes: &[usize], answers: &mut [[u64; WORDS]]) {
        answers.iter_mut().zip(nodes).for_each(|(answer, node)| *answer = self(*node));
    }
}

impl<const WORDS: usize, K: NodeAnswers<WORDS> + ?Sized> NodeAnswers<WORDS> for Arc<K> {
    fn tell(&self, nodes: &[usize], answers: &mut [[u64; WORDS]]) {
        (**self).tell(nodes, answers);
    }
}

/// What can be looked up without asking: of the own nodes, and of those of other workers that laid it open.
pub struct LocalAnswers<const WORDS: usize> {
    /// By worker.
    known: Vec<Option<Rc<dyn NodeAnswers<WORDS>>>>,
}

impl<const WORDS: usize> LocalAnswers<WORDS> {
    /// What a worker knows of its own nodes.
    pub fn own(worker: &Worker, known: impl NodeAnswers<WORDS> + 'static) -> LocalAnswers<WORDS> {
        let mut near = LocalAnswers { known: vec![None; worker.peers()] };
        near.known[worker.index()] = Some(Rc::new(known));
        near
    }

    /// What all workers of the process know of their nodes. Every worker of every process calls this; `board` is for this
    /// call alone.
    ///
    /// # Errors
    /// Where a worker of this process failed.
    pub fn of_process(
        worker: &mut Worker,
        board: &Shared<SharedAnswers<WORDS>>,
        known: impl NodeAnswers<WORDS> + Send + Sync + 'static,
        watch: &Arc<Watch>,
    ) -> Result<LocalAnswers<WORDS>> {
        let board = board.of(SharedAnswers::default);
        board.laid_open().push((worker.index(), Arc::new(known)));
        // All have laid open what they know.
        barrier(worker, watch)?;
        let mut near = LocalAnswers { known: vec![None; worker.peers()] };
        for (index, known) in board.laid_open().iter() {
            near.known[*index] = Some(Rc::new(known.clone()));
        }
        // And all have seen it, before any lets go of it.
        barrier(worker, watch)?;
        Ok(near)
    }
}

/// Where the workers of a process lay open what they know.
pub struct SharedAnswers<const WORDS: usize>(Mutex<Vec<WorkerAnswers<WORDS>>>);

/// A worker, and what it knows.
type WorkerAnswers<const WORDS: usize> = (usize, Arc<dyn NodeAnswers<WORDS> + Send + Sync>);

impl<const WORDS: usize> Default for SharedAnswers<WORDS> {
    fn default() -> SharedAnswers<WORDS> {
        SharedAnswers(Mutex::default())
    }
}

impl<const WORDS: usize> SharedAnswers<WORDS> {
    fn laid_open(&self) -> MutexGuard<'_, Vec<WorkerAnswers<WORDS>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Calls `each` with what is known of every node of `questions`, in their order. Some questions are taken, and what is
/// near looked up, before `each` is called for the first of them: it may change what `questions` goes over, but only
/// what was asked already.
///
/// # Errors
/// Where a worker of this process failed.
pub fn lookup<const WORDS: usize, Q: Iterator<Item = DocId> + 'static>(
    worker: &mut Worker,
    owned: &Ownership,
    questions: impl Fn() -> Q,
    near: &LocalAnswers<WORDS>,
    watch: &Arc<Watch>,
    each: impl FnMut(usize, [u64; WORDS]),
) -> Result<()> {
    // Nobody asks anybody where all are near; who is near to whom, all know alike.
    let answers = match near.known.iter().all(Option::is_some) {
        true => Vec::new(),
        false => ask(worker, owned, questions(), near, watch)?,
    };
    hear(owned, questions(), near, answers, each);
    Ok(())
}

/// The answers of all workers to those of the questions that must be asked, in their order.
fn ask<const WORDS: usize>(
    worker: &mut Worker,
    owned: &Ownership,
    mut asking: impl Iterator<Item = DocId> + 'static,
    near: &LocalAnswers<WORDS>,
    watch: &Arc<Watch>,
) -> Result<Vec<VecDeque<u64>>> {
    let (index, peers) = (worker.index(), worker.peers());
    ensure!(
        owned.len() <= u32::MAX as usize,
        "{} pages are more than one worker can know: use more workers",
        owned.len()
    );
    let is_near: Vec<bool> = near.known.iter().map(Option::is_some).collect();
    let known = near.known[index].clone().expect("what a worker knows is near to it");
    let answers: Rc<RefCell<Vec<VecDeque<u64>>>> = Rc::new(RefCell::new(vec![VecDeque::new(); peers]));
    let probe = Handle::new();
    worker.dataflow::<u64, _, _>(|scope| {
        let (own, kept) = (owned.clone(), answers.clone());
        let mut dealer = Dealer::new(index, peers, watch);
        let mut replies = Dealer::new(index, peers, watch);
        source::<_, BlockBuilder<u32>, _, _>(scope, "Ask", |capability, info| {
            let activator = scope.activator_for(info.address);
            let mut held = Some(capability);
            let mut asked = RecentQuestions::<0>::new();
            move |output| {
                let Some(capability) = held.as_ref() else { return };
                let mut session = output.session_with_builder(capability);
                let slice = std::time::Instant::now();
                loop {
                    let mut taken = 0;
                    for node in asking.by_ref().take(SOME) {
                        taken += 1;
                        let owner = own.owner(node);
                        let slot = asked.slot(node);
                        if !is_near[owner] && slot.is_none_or(|(known, _)| known != node) {
                            *slot = Some((node, []));
                            dealer.deal(owner as u64, own.index(node) as u32);
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
                        known.tell(&nodes[..some.len()], answers);
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
    Ok(answers.take())
}

/// Nodes of a worker that is near, and what it knows of them.
#[derive(Clone, Default)]
struct LookedUp<const WORDS: usize> {
    nodes: Vec<usize>,
    answers: Vec<[u64; WORDS]>,
    /// Answers that were taken.
    taken: usize,
}

impl<const WORDS: usize> LookedUp<WORDS> {
    fn look(&mut self, known: &dyn NodeAnswers<WORDS>) {
        self.answers.resize(self.nodes.len(), [0; WORDS]);
        let some = self.nodes.chunks(SIDE_BY_SIDE).zip(self.answers.chunks_mut(SIDE_BY_SIDE));
        some.for_each(|(nodes, answers)| known.tell(nodes, answers));
        self.nodes.clear();
        self.taken = 0;
    }

    fn take(&mut self) -> [u64; WORDS] {
        self.taken += 1;
        self.answers[self.taken - 1]
    }
}

/// Looks up what is near, takes from `answers` what is not, and calls `each` in the order of the questions.
fn hear<const WORDS: usize>(
    owned: &Ownership,
    mut questions: impl Iterator<Item = DocId>,
    near: &LocalAnswers<WORDS>,
    mut answers: Vec<VecDeque<u64>>,
    mut each: impl FnMut(usize, [u64; WORDS]),
) {
    let peers = near.known.len();
    let some = SIDE_BY_SIDE * near.known.iter().flatten().count();
    let mut asked = RecentQuestions::<WORDS>::new();
    let mut nodes: Vec<(DocId, usize)> = Vec::with_capacity(some);
    let mut looked_up: Vec<LookedUp<WORDS>> = vec![LookedUp::default(); peers];
    let mut before = 0;
    loop {
        nodes.clear();
        nodes.extend(questions.by_ref().take(some).map(|node| (node, owned.owner(node))));
        if nodes.is_empty() {
            return;
        }
        for (node, owner) in &nodes {
            if near.known[*owner].is_some() {
                looked_up[*owner].nodes.push(owned.index(*node));
            }
        }
        for (known, looked_up) in near.known.iter().zip(&mut looked_up) {
            if let Some(known) = known {
                looked_up.look(&**known);
            }
        }
        for (at, (node, owner)) in (before..).zip(&nodes) {
            if near.known[*owner].is_some() {
                each(at, looked_up[*owner].take());
                continue;
            }
            let slot = asked.slot(*node);
            let answer = match slot {
                Some((known, answer)) if known == node => *answer,
                _ => {
                    let queue = &mut answers[*owner];
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// Four workers look up nodes of which each tells some bits and its number; those of `together` lay open to each other
    /// what they know.
    fn looked_up(together: usize) {
        let boards: Arc<Vec<Shared<SharedAnswers<2>>>> = Arc::new((0..4).map(|_| Shared::default()).collect());
        let guards = timely::execute(timely::Config::process(4), move |worker| {
            let rows = [300, 0, 1000, 7, 2, 0, 500];
            let owned = Ownership::new(worker.index(), worker.peers(), &rows);
            let docs: Vec<DocId> = owned.docs().collect();
            let told = move |own: usize| [mix(docs[own].to_table() as u64), own as u64];
            let (index, watch) = (worker.index(), Arc::default());
            let near = match together {
                1 => LocalAnswers::own(worker, told),
                _ => LocalAnswers::of_process(worker, &boards[index / together], told, &watch).unwrap(),
            };
            let all: Vec<DocId> = (0..rows.len() as u32)
                .flat_map(|shard| (0..rows[shard as usize]).map(move |row| DocId::new(shard, row)))
                .collect();
            // Near each other, again and again, and in any order.
            for count in [0, 1, 63, 64, 5000] {
                let asked: Vec<DocId> = (0..count)
                    .map(|at| all[(mix(at / 3 * 4 + index as u64) % (1 + at % 2 * (all.len() as u64 - 1))) as usize])
                    .collect();
                let questions = || asked.clone().into_iter();
                let (mut answers, sent) = (Vec::new(), watch.progress().exchanged_records);
                lookup(worker, &owned, questions, &near, &watch, |at, answer| answers.push((at, answer))).unwrap();
                let wanted = asked.iter().map(|node| [mix(node.to_table() as u64), owned.index(*node) as u64]);
                assert!(answers.into_iter().eq(wanted.enumerate()), "{count} questions, {together} together");
                let sent = watch.progress().exchanged_records - sent;
                assert!(together < 4 || sent == 0, "of what is known near by nobody is asked");
                assert!(together == 4 || count < 60 || sent > 0, "{count} questions, {together} together");
            }
        });
        guards.unwrap().join().into_iter().for_each(|end| end.unwrap());
    }

    #[test]
    fn every_question_has_its_answer_wherever_it_is_known() {
        [1, 2, 4].into_iter().for_each(looked_up);
    }
}
