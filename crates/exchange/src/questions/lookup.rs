//! Lookups: the values of nodes, from the workers that own them.
//!
//! A node is a document or a vector: [`Ownership`] numbers both. A question takes four bytes, an
//! answer some words of 64 bits. The asker goes over its questions twice: once to send them, once
//! to use the answers, which arrive from each owner in the order of the questions, so that no
//! answer has to name its node. Recent questions are cached, so a popular node does not overload
//! its owner. Workers of one process may share their answers in memory; those lookups send nothing.
//!
//! All answers from other workers are in memory at once: `8 * WORDS` bytes for each question that
//! was sent.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Result, ensure};
use nigh_kernels::kernels::memory::SIDE_BY_SIDE;
use nigh_kernels::records::{DocId, mix};
use nigh_kernels::structures::Ownership;

use super::ask::{Answerer, Asked, Asker, ask};
use crate::blocks::block::BlockOf;
use crate::blocks::dealer::Dealer;
use crate::context::Context;

/// Questions that are dealt at once, between two checks of the clock.
const QUESTIONS: usize = 1 << 14;

/// A direct-mapped cache of recent questions and their answers.
///
/// The asker and the reader of its answers both go over all questions in order, each with such a
/// cache, so both agree on which questions were sent.
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

/// The answers of a worker about its own nodes.
pub trait NodeAnswers<const WORDS: usize> {
    /// Writes the answers about some own nodes, given by their numbers: at most `SIDE_BY_SIDE` of
    /// them, so that an implementation can read their memory side by side.
    fn look_up(&self, nodes: &[usize], answers: &mut [[u64; WORDS]]);
}

impl<const WORDS: usize, F: Fn(usize) -> [u64; WORDS]> NodeAnswers<WORDS> for F {
    fn look_up(&self, nodes: &[usize], answers: &mut [[u64; WORDS]]) {
        answers.iter_mut().zip(nodes).for_each(|(answer, node)| *answer = self(*node));
    }
}

impl<const WORDS: usize, K: NodeAnswers<WORDS> + ?Sized> NodeAnswers<WORDS> for Arc<K> {
    fn look_up(&self, nodes: &[usize], answers: &mut [[u64; WORDS]]) {
        (**self).look_up(nodes, answers);
    }
}

/// The answers that this worker can read without asking: its own, and those that other workers of
/// the process share.
pub struct LocalAnswers<const WORDS: usize> {
    /// By worker; `None` for a worker that must be asked.
    by_worker: Vec<Option<Rc<dyn NodeAnswers<WORDS>>>>,
}

impl<const WORDS: usize> LocalAnswers<WORDS> {
    /// The worker's own answers; all other workers must be asked.
    pub fn own(cx: &Context, answers: impl NodeAnswers<WORDS> + 'static) -> LocalAnswers<WORDS> {
        let mut local = LocalAnswers { by_worker: vec![None; cx.peers()] };
        local.by_worker[cx.index()] = Some(Rc::new(answers));
        local
    }

    /// The answers of all workers of this process. Every worker of every process calls this.
    ///
    /// # Errors
    /// Where a worker of this process failed.
    pub fn of_process(
        cx: &mut Context,
        answers: impl NodeAnswers<WORDS> + Send + Sync + 'static,
    ) -> Result<LocalAnswers<WORDS>> {
        let shared = cx.shared().of(SharedAnswers::<WORDS>::default);
        shared.lock().push((cx.index(), Arc::new(answers)));
        // All workers have added their answers.
        cx.barrier()?;
        let mut local = LocalAnswers { by_worker: vec![None; cx.peers()] };
        for (index, answers) in shared.lock().iter() {
            local.by_worker[*index] = Some(Rc::new(answers.clone()));
        }
        // All workers have read the list, before any of them drops it.
        cx.barrier()?;
        Ok(local)
    }
}

/// The list in which the workers of a process share their answers.
pub struct SharedAnswers<const WORDS: usize>(Mutex<Vec<WorkerAnswers<WORDS>>>);

/// A worker's index and its answers.
type WorkerAnswers<const WORDS: usize> = (usize, Arc<dyn NodeAnswers<WORDS> + Send + Sync>);

impl<const WORDS: usize> Default for SharedAnswers<WORDS> {
    fn default() -> SharedAnswers<WORDS> {
        SharedAnswers(Mutex::default())
    }
}

impl<const WORDS: usize> SharedAnswers<WORDS> {
    fn lock(&self) -> MutexGuard<'_, Vec<WorkerAnswers<WORDS>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Calls `each` with the position and the answer of every node of `questions`, in their order.
///
/// `questions` is called twice, and must return the same nodes. Some questions are read, and their
/// local answers looked up, before `each` is called for the first of them: `each` may change what
/// `questions` goes over, but only at positions that it was called for.
///
/// # Errors
/// Where a worker of this process failed.
pub fn lookup<const WORDS: usize, Q: Iterator<Item = DocId> + 'static>(
    cx: &mut Context,
    owned: &Ownership,
    questions: impl Fn() -> Q,
    local: &LocalAnswers<WORDS>,
    each: impl FnMut(usize, [u64; WORDS]),
) -> Result<()> {
    // Whether all answers are local is the same at every worker, so all of them skip the exchange
    // or none does.
    let answers = if local.by_worker.iter().all(Option::is_some) {
        Vec::new()
    } else {
        remote_answers(cx, owned, questions(), local)?
    };
    each_answer(owned, questions(), local, answers, each);
    Ok(())
}

/// Returns, by worker, the words of its answers to the questions that were sent to it, in their
/// order.
fn remote_answers<const WORDS: usize, Q: Iterator<Item = DocId> + 'static>(
    cx: &mut Context,
    owned: &Ownership,
    questions: Q,
    local: &LocalAnswers<WORDS>,
) -> Result<Vec<VecDeque<u64>>> {
    ensure!(
        owned.len() <= u32::MAX as usize,
        "{} documents are too many for one worker, at most {}: use more workers",
        owned.len(),
        u32::MAX
    );
    let asker = NodeAsker {
        questions,
        owned: owned.clone(),
        is_local: local.by_worker.iter().map(Option::is_some).collect(),
        recent: RecentQuestions::new(),
        answers: vec![VecDeque::new(); cx.peers()],
    };
    let own = local.by_worker[cx.index()].clone().expect("a worker's own answers are local");
    let asker = Rc::new(RefCell::new(asker));
    ask(cx, &asker, NodeAnswerer(own))?;
    let answers = std::mem::take(&mut asker.borrow_mut().answers);
    Ok(answers)
}

/// Sends the questions that have no local answer, and collects their answers.
struct NodeAsker<Q> {
    questions: Q,
    owned: Ownership,
    /// By worker.
    is_local: Vec<bool>,
    recent: RecentQuestions<0>,
    /// Words of answers, by worker.
    answers: Vec<VecDeque<u64>>,
}

impl<Q: Iterator<Item = DocId>> Asker<u32, u64> for NodeAsker<Q> {
    fn ask(&mut self, questions: &mut Dealer<u32>) -> Result<Asked> {
        let mut read = 0;
        for node in self.questions.by_ref().take(QUESTIONS) {
            read += 1;
            let owner = self.owned.owner(node);
            let slot = self.recent.slot(node);
            if !self.is_local[owner] && slot.is_none_or(|(recent, _)| recent != node) {
                *slot = Some((node, []));
                questions.deal(owner as u64, self.owned.index(node) as u32);
            }
        }
        Ok(if read < QUESTIONS { Asked::All } else { Asked::More })
    }

    fn take(&mut self, answers: &BlockOf<u64>) {
        self.answers[answers.from as usize].extend(answers.records());
    }
}

/// Answers questions about own nodes as they arrive, word by word.
struct NodeAnswerer<const WORDS: usize>(Rc<dyn NodeAnswers<WORDS>>);

impl<const WORDS: usize> Answerer<u32, u64> for NodeAnswerer<WORDS> {
    fn answer(&mut self, questions: &BlockOf<u32>, answers: &mut Dealer<u64>) -> Result<()> {
        for questions_at_once in questions.records().chunks(SIDE_BY_SIDE) {
            let (mut nodes, mut words) = ([0; SIDE_BY_SIDE], [[0; WORDS]; SIDE_BY_SIDE]);
            nodes.iter_mut().zip(questions_at_once).for_each(|(node, question)| *node = *question as usize);
            let (nodes, words) = (&nodes[..questions_at_once.len()], &mut words[..questions_at_once.len()]);
            self.0.look_up(nodes, words);
            words.as_flattened().iter().for_each(|word| answers.deal(questions.from.into(), *word));
        }
        Ok(())
    }
}

/// Nodes of one worker with local answers, and these answers.
#[derive(Clone, Default)]
struct LookedUp<const WORDS: usize> {
    nodes: Vec<usize>,
    answers: Vec<[u64; WORDS]>,
    /// How many of the answers `next_answer` has returned.
    used: usize,
}

impl<const WORDS: usize> LookedUp<WORDS> {
    fn look_up(&mut self, local: &dyn NodeAnswers<WORDS>) {
        self.answers.resize(self.nodes.len(), [0; WORDS]);
        let chunks = self.nodes.chunks(SIDE_BY_SIDE).zip(self.answers.chunks_mut(SIDE_BY_SIDE));
        chunks.for_each(|(nodes, answers)| local.look_up(nodes, answers));
        self.nodes.clear();
        self.used = 0;
    }

    fn next_answer(&mut self) -> [u64; WORDS] {
        self.used += 1;
        self.answers[self.used - 1]
    }
}

/// Calls `each` in the order of the questions, with local answers where there are any, and
/// otherwise with those of `remote`. Simplified:
///
/// ```text
/// for (position, node) in questions {
///     let owner = owned.owner(node);
///     each(position, if local(owner) { look_up(node) } else if recent(node) { its answer } else { remote[owner].pop() });
/// }
/// ```
///
/// Questions are read some at a time, so that the local lookups of one worker follow each other.
fn each_answer<const WORDS: usize>(
    owned: &Ownership,
    mut questions: impl Iterator<Item = DocId>,
    local: &LocalAnswers<WORDS>,
    mut remote: Vec<VecDeque<u64>>,
    mut each: impl FnMut(usize, [u64; WORDS]),
) {
    let at_once = SIDE_BY_SIDE * local.by_worker.iter().flatten().count();
    let mut recent = RecentQuestions::<WORDS>::new();
    let mut nodes: Vec<(DocId, usize)> = Vec::with_capacity(at_once);
    let mut looked_up: Vec<LookedUp<WORDS>> = vec![LookedUp::default(); local.by_worker.len()];
    let mut before = 0;
    loop {
        nodes.clear();
        nodes.extend(questions.by_ref().take(at_once).map(|node| (node, owned.owner(node))));
        if nodes.is_empty() {
            return;
        }
        for (node, owner) in &nodes {
            if local.by_worker[*owner].is_some() {
                looked_up[*owner].nodes.push(owned.index(*node));
            }
        }
        for (local, looked_up) in local.by_worker.iter().zip(&mut looked_up) {
            if let Some(local) = local {
                looked_up.look_up(&**local);
            }
        }
        for (position, (node, owner)) in (before..).zip(&nodes) {
            if local.by_worker[*owner].is_some() {
                each(position, looked_up[*owner].next_answer());
                continue;
            }
            let slot = recent.slot(*node);
            let answer = match slot {
                Some((recent, answer)) if recent == node => *answer,
                _ => {
                    let words = &mut remote[*owner];
                    let answer = std::array::from_fn(|_| words.pop_front().expect("every question is answered"));
                    *slot = Some((*node, answer));
                    answer
                }
            };
            each(position, answer);
        }
        before += nodes.len();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::SharedValues;

    /// Four workers look up nodes; the answer about a node is some bits and its number. Groups of
    /// `together` workers share their answers, as if each group were a process.
    fn looked_up(together: usize) {
        let shared: Vec<Arc<SharedValues>> = (0..4).map(|_| Arc::default()).collect();
        let guards = timely::execute(timely::Config::process(4), move |worker| {
            let cx = &mut Context::new(worker, &Arc::default(), &shared[worker.index() / together]);
            let rows = [300, 0, 1000, 7, 2, 0, 500];
            let owned = Ownership::new(cx.index(), cx.peers(), &rows);
            let docs: Vec<DocId> = owned.docs().collect();
            let bits_and_number = move |node: usize| [mix(docs[node].to_table() as u64), node as u64];
            let (index, watch) = (cx.index(), cx.watch().clone());
            let local = match together {
                1 => LocalAnswers::own(cx, bits_and_number),
                _ => LocalAnswers::of_process(cx, bits_and_number).unwrap(),
            };
            let all: Vec<DocId> = (0..rows.len() as u32)
                .flat_map(|shard| (0..rows[shard as usize]).map(move |row| DocId::new(shard, row)))
                .collect();
            // Neighbours, repeated nodes, and any order.
            for count in [0, 1, 63, 64, 5000] {
                let asked: Vec<DocId> = (0..count)
                    .map(|at| all[(mix(at / 3 * 4 + index as u64) % (1 + at % 2 * (all.len() as u64 - 1))) as usize])
                    .collect();
                let questions = || asked.clone().into_iter();
                let (mut answers, sent) = (Vec::new(), watch.progress().exchanged_records);
                lookup(cx, &owned, questions, &local, |at, answer| answers.push((at, answer))).unwrap();
                let wanted = asked.iter().map(|node| [mix(node.to_table() as u64), owned.index(*node) as u64]);
                assert!(answers.into_iter().eq(wanted.enumerate()), "{count} questions, {together} together");
                let sent = watch.progress().exchanged_records - sent;
                assert!(together < 4 || sent == 0, "a lookup of shared answers sends nothing");
                assert!(together == 4 || count < 60 || sent > 0, "{count} questions, {together} together");
            }
        });
        guards.unwrap().join().into_iter().for_each(|end| end.unwrap());
    }

    #[test]
    fn every_question_has_its_answer_whether_it_is_local_or_not() {
        [1, 2, 4].into_iter().for_each(looked_up);
    }
}
