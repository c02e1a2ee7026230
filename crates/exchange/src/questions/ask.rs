//! Questions to other workers, and their answers: requests and replies on a dataflow.
//!
//! Every worker deals questions to the workers that can answer them, and receives the answers.
//! Questions travel while the asker still deals more of them, and answers while more questions
//! arrive, so the exchange itself holds only blocks in flight. Simplified, this is what every
//! worker does:
//!
//! ```text
//! loop {
//!     while asker.ask() deals questions { send them to the workers that they are for }
//!     for each block of questions that arrives { send answerer.answer(block) back to its sender }
//!     when all questions of the round have arrived { send answerer.end_round() }
//!     for each block of answers that arrives { asker.take(block) }
//!     when all answers of the round have arrived { asker.end_round() }
//! } until the asker is done
//! ```
//!
//! Rounds bound the memory: timely has no backpressure, so a worker begins its next round only when
//! the questions of all workers' rounds are answered. Workers may have different numbers of rounds;
//! a worker that is done still answers.
//!
//! Order: one worker receives the questions of another in the order in which they were dealt to it,
//! and the asker receives the answers of one worker in the order in which these were dealt. Nothing
//! is known about the order of two workers' blocks, so a result must not depend on it.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use bytemuck::Pod;
use timely::dataflow::Scope;
use timely::dataflow::operators::probe::Handle;
use timely::dataflow::operators::{Capability, Probe};

use crate::blocks::block::{Block, BlockOf};
use crate::blocks::dealer::{Dealer, OpenBlocks};
use crate::context::Context;
use crate::dataflow::{BlockStream, hold, run_dataflow, sink, source, unary_frontier};
use crate::keyed::ranges::SLICE;
use crate::watch::Watch;

/// How often a source whose round is not answered yet checks again.
const POLL: Duration = Duration::from_millis(1);

/// Whether an asker has more questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// There are more questions in this round.
    More,
    /// The round has no more questions. The next one begins when all workers' questions so far are
    /// answered.
    Round,
    /// There are no more questions.
    All,
}

/// A worker as it asks questions.
pub trait Asker<Q: Pod, A: Pod> {
    /// Deals some questions; the partition of a question is the index of the worker that answers
    /// it. A call takes some milliseconds at most, so that other operators get their turn.
    ///
    /// # Errors
    /// An error fails this process.
    fn ask(&mut self, questions: &mut Dealer<Q>) -> Result<Asked>;

    /// Takes answers of one worker (`answers.from`).
    fn take(&mut self, answers: &BlockOf<A>);

    /// All questions of the round are answered.
    ///
    /// # Errors
    /// An error fails this process.
    fn end_round(&mut self) -> Result<()> {
        Ok(())
    }
}

/// A worker as it answers the questions of all workers.
pub trait Answerer<Q: Pod, A: Pod> {
    /// Receives questions of one worker (`questions.from`). Answers dealt here are sent at once;
    /// the partition of an answer is the index of the worker that receives it.
    ///
    /// # Errors
    /// An error fails this process.
    fn answer(&mut self, questions: &BlockOf<Q>, answers: &mut Dealer<A>) -> Result<()>;

    /// All questions of the round have arrived: deals the answers that had to wait for this. Not
    /// called if this worker received no question in the round.
    ///
    /// # Errors
    /// An error fails this process.
    fn end_round(&mut self, _answers: &mut Dealer<A>) -> Result<()> {
        Ok(())
    }
}

/// Asks the questions of every worker's `asker` and answers them with every worker's `answerer`. It
/// returns when all workers' questions are answered; every worker must call it.
///
/// The asker is shared because timely may hold the dataflow's operators until its next step: the
/// caller takes the answers out of it.
///
/// # Errors
/// Where a worker of this process failed.
pub fn ask<Q: Pod, A: Pod>(
    cx: &mut Context,
    asker: &Rc<RefCell<impl Asker<Q, A> + 'static>>,
    answerer: impl Answerer<Q, A> + 'static,
) -> Result<()> {
    let parts = Exchange {
        asker: Rc::new(OfRecords::new(asker.clone())),
        questions: cx.dealer::<Q>().into_blocks(),
        answerer: Box::new(OfRecords::new(answerer)),
        answers: cx.dealer::<A>().into_blocks(),
    };
    parts.run(cx)?;
    asker.borrow_mut().end_round()
}

/// An [`Asker`] that does not know the types of its questions and answers.
trait BlockAsker {
    fn ask(&self, questions: &mut OpenBlocks) -> Result<Asked>;
    fn take(&self, answers: &Block);
    fn end_round(&self) -> Result<()>;
}

/// An [`Answerer`] that does not know the types of its questions and answers.
trait BlockAnswerer {
    fn answer(&mut self, questions: Block, answers: &mut OpenBlocks) -> Result<()>;
    fn end_round(&mut self, answers: &mut OpenBlocks) -> Result<()>;
}

/// An asker or an answerer, and the types of its questions and answers.
struct OfRecords<W, Q, A> {
    of: W,
    records: PhantomData<(Q, A)>,
}

impl<W, Q, A> OfRecords<W, Q, A> {
    fn new(of: W) -> OfRecords<W, Q, A> {
        OfRecords { of, records: PhantomData }
    }
}

impl<W: Asker<Q, A>, Q: Pod, A: Pod> BlockAsker for OfRecords<Rc<RefCell<W>>, Q, A> {
    fn ask(&self, questions: &mut OpenBlocks) -> Result<Asked> {
        self.of.borrow_mut().ask(Dealer::of(questions))
    }

    fn take(&self, answers: &Block) {
        self.of.borrow_mut().take(answers.view());
    }

    fn end_round(&self) -> Result<()> {
        self.of.borrow_mut().end_round()
    }
}

impl<W: Answerer<Q, A>, Q: Pod, A: Pod> BlockAnswerer for OfRecords<W, Q, A> {
    fn answer(&mut self, questions: Block, answers: &mut OpenBlocks) -> Result<()> {
        self.of.answer(&questions.open(), Dealer::of(answers))
    }

    fn end_round(&mut self, answers: &mut OpenBlocks) -> Result<()> {
        self.of.end_round(Dealer::of(answers))
    }
}

/// What asks and what answers at one worker, and the blocks of both.
struct Exchange {
    asker: Rc<dyn BlockAsker>,
    questions: OpenBlocks,
    answerer: Box<dyn BlockAnswerer>,
    answers: OpenBlocks,
}

impl Exchange {
    fn run(self, cx: &mut Context) -> Result<()> {
        let watch = &cx.watch().clone();
        run_dataflow(cx, |scope, probe| {
            let asked = questions(scope, self.asker.clone(), self.questions, probe.clone(), watch);
            let answers = answers(asked, self.answerer, self.answers, watch);
            let asker = self.asker;
            sink(answers, "Received", move |block| asker.take(&block)).probe_with(probe);
        })
    }
}

/// The source: it deals the asker's questions, one round at a time. A round is its own time.
fn questions<'scope>(
    scope: Scope<'scope, u64>,
    asker: Rc<dyn BlockAsker>,
    mut dealer: OpenBlocks,
    answered: Handle<u64>,
    watch: &Arc<Watch>,
) -> BlockStream<'scope> {
    let watch = watch.clone();
    source(scope, "Ask", |capability, info| {
        let activator = scope.activator_for(info.address);
        let mut capability = Some(capability);
        let (mut round, mut waiting) = (0, false);
        move |output| {
            let Some(current) = capability.as_mut() else { return };
            // After a failure the capability is kept: other processes would take silence for an
            // end.
            if watch.failed() {
                return;
            }
            if waiting {
                if answered.less_than(&round) {
                    return activator.activate_after(POLL);
                }
                waiting = false;
                if watch.check(asker.end_round()).is_none() {
                    return;
                }
            }
            let mut session = output.session_with_builder(&*current);
            let slice = Instant::now();
            let asked = loop {
                let Some(asked) = watch.check(asker.ask(&mut dealer)) else { return };
                if asked != Asked::More {
                    break asked;
                }
                dealer.full().for_each(|mut block| session.give_container(&mut block));
                if slice.elapsed() > SLICE {
                    return activator.activate();
                }
            };
            dealer.finish().for_each(|mut block| session.give_container(&mut block));
            drop(session);
            if asked == Asked::All {
                capability = None;
            } else {
                round += 1;
                current.downgrade(&round);
                waiting = true;
                activator.activate();
            }
        }
    })
}

/// Exchanges questions to the workers that answer them, and returns their answers.
fn answers<'scope>(
    questions: BlockStream<'scope>,
    mut answerer: Box<dyn BlockAnswerer>,
    mut dealer: OpenBlocks,
    watch: &Arc<Watch>,
) -> BlockStream<'scope> {
    let watch = watch.clone();
    unary_frontier(questions, "Answer", |_, _| {
        // The round that has questions. There is one at most: no worker begins a round before this
        // one is dropped.
        let mut round: Option<Capability<u64>> = None;
        move |input, frontier, output| {
            // As above, the capability is kept after a failure.
            if watch.failed() {
                return;
            }
            input.for_each(|capability, block| {
                let block = std::mem::take(block);
                round.get_or_insert_with(|| hold(&capability, output));
                watch.check(answerer.answer(block, &mut dealer));
                let mut session = output.session_with_builder(&capability);
                dealer.finish().for_each(|mut block| session.give_container(&mut block));
            });
            if watch.failed() {
                return;
            }
            let over = round.take_if(|round| !frontier.less_equal(round.time()));
            let Some(over) = over else { return };
            if watch.check(answerer.end_round(&mut dealer)).is_none() {
                round = Some(over);
                return;
            }
            let mut session = output.session_with_builder(&over);
            dealer.finish().for_each(|mut block| session.give_container(&mut block));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asks for the squares of some numbers, `ROUND` at a time; worker `number % peers` computes
    /// them.
    struct SquareAsker {
        peers: u64,
        numbers: std::ops::Range<u64>,
        /// Answers of the round.
        round: Vec<[u64; 2]>,
        /// Answers of the rounds before.
        rounds: Vec<Vec<[u64; 2]>>,
    }

    const ROUND: u64 = 5000;

    impl Asker<u64, [u64; 2]> for SquareAsker {
        fn ask(&mut self, questions: &mut Dealer<u64>) -> Result<Asked> {
            // Two calls a round.
            for number in self.numbers.by_ref().take(ROUND as usize / 2) {
                questions.deal(number % self.peers, number);
            }
            Ok(if self.numbers.is_empty() {
                Asked::All
            } else if self.numbers.start.is_multiple_of(ROUND) {
                Asked::Round
            } else {
                Asked::More
            })
        }

        fn take(&mut self, answers: &BlockOf<[u64; 2]>) {
            assert!(answers.records().iter().all(|[number, _]| number % self.peers == u64::from(answers.from)));
            self.round.extend(answers.records());
        }

        fn end_round(&mut self) -> Result<()> {
            self.rounds.push(std::mem::take(&mut self.round));
            Ok(())
        }
    }

    /// Answers even numbers at once, and odd ones at the end of the round.
    #[derive(Default)]
    struct Squaring(Vec<(u64, u64)>);

    impl Answerer<u64, [u64; 2]> for Squaring {
        fn answer(&mut self, questions: &BlockOf<u64>, answers: &mut Dealer<[u64; 2]>) -> Result<()> {
            for number in questions.records() {
                if number.is_multiple_of(2) {
                    answers.deal(questions.from.into(), [*number, number * number]);
                } else {
                    self.0.push((questions.from.into(), *number));
                }
            }
            Ok(())
        }

        fn end_round(&mut self, answers: &mut Dealer<[u64; 2]>) -> Result<()> {
            self.0.drain(..).for_each(|(worker, number)| answers.deal(worker, [number, number * number]));
            Ok(())
        }
    }

    #[test]
    fn every_round_of_questions_is_answered_before_the_next_begins() {
        for workers in [1, 2, 4, 7] {
            let guards = timely::execute(timely::Config::process(workers), move |worker| {
                let cx = &mut Context::alone(worker);
                let (index, peers) = (cx.index() as u64, cx.peers() as u64);
                // Workers have different numbers of rounds; the first one asks nothing.
                let numbers = 0..index * (2 * ROUND + 1);
                let asker = SquareAsker { peers, numbers: numbers.clone(), round: Vec::new(), rounds: Vec::new() };
                let asker = Rc::new(RefCell::new(asker));
                ask(cx, &asker, Squaring::default()).unwrap();
                let rounds = std::mem::take(&mut asker.borrow_mut().rounds);
                assert_eq!(rounds.len() as u64, numbers.end.div_ceil(ROUND).max(1));
                for (round, mut answers) in (0..).zip(rounds) {
                    // One worker's answers at once arrive in the order of the questions.
                    for owner in 0..peers {
                        let at_once = answers.iter().filter(|[n, _]| n % peers == owner && n.is_multiple_of(2));
                        assert!(at_once.is_sorted(), "{workers} workers");
                    }
                    answers.sort_unstable();
                    let asked = round * ROUND..((round + 1) * ROUND).min(numbers.end);
                    assert!(answers.into_iter().eq(asked.map(|n| [n, n * n])), "round {round}, {workers} workers");
                }
            });
            guards.unwrap().join().into_iter().for_each(|end| end.unwrap());
        }
    }
}
