//! Comparing: the weight that the two sets of a candidate share, exactly.
//!
//! Sets of workers of this process are read in memory. Those of other processes are asked for, once
//! for each round of candidates.

mod marked_elements;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::mem;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result};
use bytemuck::{Pod, Zeroable};
use nigh_exchange::{Answerer, Asked, Asker, BlockOf, Context, Dealer, ask};

use self::marked_elements::MarkedElements;
use crate::operators::set_join::candidates::meet::PairToCompare;
use crate::operators::set_join::distinct_sets::SetLocation;
use crate::operators::set_join::merged_elements::{MergedElement, SortedSets};
use crate::operators::set_join::requirement::Requirement;
use crate::operators::set_join::stage::SetJoinStage;
use crate::structures::Sorted;

/// Of the memory for records in flight, the part that the sets of other processes take in a round:
/// all of them are in memory until the round ends.
const PART: u64 = 16;
/// Candidates of a round, at most.
const CANDIDATES: usize = 1 << 20;
/// Candidates that are looked at between two checks of the clock.
const AT_ONCE: usize = 1 << 12;

/// A pair of distinct sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetPair {
    /// The set of this worker. Which of the two that is depends on the workers.
    pub own: u32,
    /// The other set.
    pub other: SetLocation,
    /// The names of the own set and of the other.
    pub names: [u64; 2],
    /// How many equal sets each stands for.
    pub members: [u32; 2],
    /// How many of these are old.
    pub old: [u32; 2],
    /// Their sizes. The sets that one stands for may differ in size, unless the requirement depends
    /// on sizes.
    pub sizes: [u64; 2],
    /// What the shared elements weigh in the own set and in the other.
    pub shared: [u64; 2],
}

/// The sets that workers of a process share: by worker.
#[derive(Default)]
pub struct SetsInProcess(Mutex<Vec<(usize, Arc<SortedSets>)>>);

/// A set with its elements, as it is asked for.
#[derive(Clone, Debug, Default)]
struct ForeignSet {
    size: u32,
    members: u32,
    old: u32,
    name: u64,
    elements: Vec<MergedElement>,
}

/// A piece of an answer: two heads, then an element each.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct AnswerPiece([u32; 4]);

/// Compares the sets of all candidates, and calls `each` with those that are pairs, in the order of
/// candidates. Returns the numbers of candidates and of pairs.
///
/// # Errors
/// If a file cannot be read, `each` fails, or a worker of this process failed.
pub(super) fn compare(
    cx: &mut Context,
    stage: &SetJoinStage,
    sets: &Arc<SortedSets>,
    candidates: Sorted<PairToCompare>,
    each: impl FnMut(SetPair) -> Result<()> + 'static,
) -> Result<(u64, u64)> {
    let local = share_sets(cx, sets)?;
    let comparer = Comparer {
        requirement: stage.requirement,
        local,
        own: sets.clone(),
        candidates,
        round: Vec::new(),
        asked: None,
        elements: 0,
        most: (cx.memory() / PART) as usize / size_of::<MergedElement>(),
        last: None,
        next: None,
        foreign: BTreeMap::new(),
        arriving: vec![Vec::new(); cx.peers()],
        marked: None,
        marks: MarkedElements::default(),
        each,
        compared: 0,
        pairs: 0,
    };
    let comparer = Rc::new(RefCell::new(comparer));
    ask(cx, &comparer, SetAnswerer(sets.clone()))?;
    let comparer = comparer.borrow();
    Ok((comparer.compared, comparer.pairs))
}

/// The sets of all workers of this process, by worker; `None` for those of other processes.
fn share_sets(cx: &mut Context, sets: &Arc<SortedSets>) -> Result<Vec<Option<Arc<SortedSets>>>> {
    let shared = cx.shared().of(SetsInProcess::default);
    shared.0.lock().unwrap_or_else(PoisonError::into_inner).push((cx.index(), sets.clone()));
    // All workers have added their sets.
    cx.barrier()?;
    let mut local = vec![None; cx.peers()];
    for (index, sets) in shared.0.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        local[*index] = Some(sets.clone());
    }
    // All workers have read the list, before any of them drops it.
    cx.barrier()?;
    Ok(local)
}

/// A worker that compares its candidates.
struct Comparer<E> {
    requirement: Requirement,
    local: Vec<Option<Arc<SortedSets>>>,
    own: Arc<SortedSets>,
    candidates: Sorted<PairToCompare>,
    /// The candidates that wait for sets of other processes.
    round: Vec<PairToCompare>,
    /// The set of another process that was asked for last.
    asked: Option<SetLocation>,
    /// Elements of the sets of other processes in this round, at most: such a set has no more than
    /// the own set of its candidate.
    elements: usize,
    /// The last candidate that was looked at, and the first one of the next round.
    last: Option<PairToCompare>,
    next: Option<PairToCompare>,
    /// Elements at which a round ends.
    most: usize,
    foreign: BTreeMap<SetLocation, ForeignSet>,
    /// By worker: the pieces of its answers that are not complete yet.
    arriving: Vec<Vec<AnswerPiece>>,
    /// The other set whose elements are marked.
    marked: Option<SetLocation>,
    marks: MarkedElements,
    each: E,
    compared: u64,
    pairs: u64,
}

impl<E: FnMut(SetPair) -> Result<()>> Comparer<E> {
    /// The next candidate that differs from the last one. They are sorted, so a pair that several
    /// elements proposed is compared once.
    fn next_candidate(&mut self) -> Result<Option<PairToCompare>> {
        loop {
            let next = match self.next.take() {
                Some(next) => Some(next),
                None => self.candidates.record()?,
            };
            if next.is_none() || next != self.last {
                self.last = next;
                return Ok(next);
            }
        }
    }

    fn compare(&mut self, candidate: PairToCompare) -> Result<()> {
        let PairToCompare { worker, other, own } = candidate;
        let location = SetLocation { worker, number: other };
        let (size, members, old, name, elements) = match &self.local[worker as usize] {
            Some(sets) => {
                let other = other as usize;
                (sets.sizes[other], sets.members[other], sets.old[other], sets.names[other], sets.elements(other))
            }
            None => {
                let set = self.foreign.get(&location);
                let set = set.context("a worker of another process did not send a set that was asked for")?;
                (set.size, set.members, set.old, set.name, &set.elements[..])
            }
        };
        let sets = &self.own;
        let sizes = [sets.sizes[own as usize].into(), size.into()];
        let least = self.requirement.least_of_pair(sizes);
        self.compared += 1;
        // In the order of the other set: it is marked once for all of its candidates.
        if self.marked != Some(location) {
            self.marks.mark(elements);
            self.marked = Some(location);
        }
        if let Some(shared) = self.marks.shared(sets.elements(own as usize), sets.weights[own as usize], least) {
            self.pairs += 1;
            let (names, members) = ([sets.names[own as usize], name], [sets.members[own as usize], members]);
            let old = [sets.old[own as usize], old];
            (self.each)(SetPair { own, other: location, names, members, old, sizes, shared })?;
        }
        Ok(())
    }
}

impl<E: FnMut(SetPair) -> Result<()>> Asker<u32, AnswerPiece> for Comparer<E> {
    /// Compares candidates with sets of this process, and collects those of a round that need sets
    /// of others.
    fn ask(&mut self, questions: &mut Dealer<u32>) -> Result<Asked> {
        for _ in 0..AT_ONCE {
            let Some(candidate) = self.next_candidate()? else { return Ok(Asked::All) };
            let location = SetLocation { worker: candidate.worker, number: candidate.other };
            if self.local[candidate.worker as usize].is_some() {
                self.compare(candidate)?;
                continue;
            }
            if self.elements > self.most || self.round.len() == CANDIDATES {
                // It is looked at again in the next round, where it does not count as a repeated
                // one.
                (self.next, self.last) = (Some(candidate), None);
                return Ok(Asked::Round);
            }
            // Once a round, however many candidates have this set.
            if self.asked != Some(location) {
                self.asked = Some(location);
                self.elements += self.own.elements(candidate.own as usize).len();
                questions.deal(location.worker.into(), location.number);
            }
            self.round.push(candidate);
        }
        Ok(Asked::More)
    }

    fn take(&mut self, answers: &BlockOf<AnswerPiece>) {
        let pieces = &mut self.arriving[answers.from as usize];
        pieces.extend_from_slice(answers.records());
        let mut rest = &pieces[..];
        while let [AnswerPiece([number, count, size, members]), AnswerPiece([low, high, old, _]), elements @ ..] = rest
        {
            let Some(of_set) = elements.get(..*count as usize) else { break };
            let set = ForeignSet {
                size: *size,
                members: *members,
                old: *old,
                name: u64::from(*high) << 32 | u64::from(*low),
                elements: of_set.iter().map(|piece| bytemuck::cast(piece.0)).collect(),
            };
            self.foreign.insert(SetLocation { worker: answers.from, number: *number }, set);
            rest = &elements[*count as usize..];
        }
        let used = pieces.len() - rest.len();
        pieces.drain(..used);
    }

    fn end_round(&mut self) -> Result<()> {
        for candidate in mem::take(&mut self.round) {
            self.compare(candidate)?;
        }
        self.foreign.clear();
        (self.asked, self.elements) = (None, 0);
        Ok(())
    }
}

/// A worker that sends sets.
struct SetAnswerer(Arc<SortedSets>);

impl Answerer<u32, AnswerPiece> for SetAnswerer {
    fn answer(&mut self, questions: &BlockOf<u32>, answers: &mut Dealer<AnswerPiece>) -> Result<()> {
        let sets = &self.0;
        for number in questions.records() {
            let set = *number as usize;
            let (elements, name) = (sets.elements(set), sets.names[set]);
            let to = questions.from.into();
            answers.deal(to, AnswerPiece([*number, elements.len() as u32, sets.sizes[set], sets.members[set]]));
            answers.deal(to, AnswerPiece([name as u32, (name >> 32) as u32, sets.old[set], 0]));
            elements.iter().for_each(|element| answers.deal(to, AnswerPiece(bytemuck::cast(*element))));
        }
        Ok(())
    }
}
