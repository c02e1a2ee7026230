//! Comparing: the weight that the two rows of a candidate share, exactly.
//!
//! Rows of workers of this process are read in memory. Those of other processes are asked for, once
//! for each round of candidates.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::mem;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result};
use bytemuck::{Pod, Zeroable};
use nigh_exchange::{Answerer, Asked, Asker, BlockOf, Context, Dealer, ask};

use super::joined_rows::SetPlace;
use super::marked_columns::MarkedColumns;
use super::meet::PairToCompare;
use super::requirement::Requirement;
use super::row_columns::{RowColumn, SortedSets};
use super::stage::SetJoinStage;
use crate::structures::Sorted;

/// Of the memory for records in flight, the part that the rows of other processes take in a round.
const PART: u64 = 16;
/// Candidates of a round, at most.
const CANDIDATES: usize = 1 << 20;
/// Candidates that are looked at between two checks of the clock.
const AT_ONCE: usize = 1 << 12;

/// A pair of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowPair {
    /// The row of this worker. Which of the two rows that is depends on the workers.
    pub own: u32,
    /// The other row.
    pub other: SetPlace,
    /// The names of the own row and of the other.
    pub names: [u64; 2],
    /// The numbers of their sets.
    pub members: [u32; 2],
    /// The numbers of their old sets.
    pub old: [u32; 2],
    /// The sizes of the two sets that stand for the rows. Sets of one row may differ in size,
    /// unless the requirement depends on sizes.
    pub sizes: [u64; 2],
    /// What the shared elements weigh in the own row and in the other.
    pub shared: [u64; 2],
}

/// The rows that workers of a process share: by worker.
#[derive(Default)]
pub struct RowsInProcess(Mutex<Vec<(usize, Arc<SortedSets>)>>);

/// A row with its columns, as it is asked for.
#[derive(Clone, Debug, Default)]
struct ForeignRow {
    size: u32,
    members: u32,
    old: u32,
    name: u64,
    columns: Vec<RowColumn>,
}

/// A piece of an answer: two heads, then a column each.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct AnswerPiece([u32; 4]);

/// Compares the rows of all candidates, and calls `each` with those that are pairs, in the order of
/// candidates. Returns the numbers of candidates and of pairs.
///
/// # Errors
/// If a file cannot be read, `each` fails, or a worker of this process failed.
pub(super) fn compare(
    cx: &mut Context,
    stage: &SetJoinStage,
    rows: &Arc<SortedSets>,
    candidates: Sorted<PairToCompare>,
    each: impl FnMut(RowPair) -> Result<()> + 'static,
) -> Result<(u64, u64)> {
    let local = share_rows(cx, rows)?;
    let comparer = Comparer {
        requirement: stage.requirement,
        local,
        own: rows.clone(),
        candidates,
        round: Vec::new(),
        asked: None,
        columns: 0,
        most: (cx.memory() / PART) as usize / size_of::<RowColumn>(),
        last: None,
        next: None,
        foreign: BTreeMap::new(),
        arriving: vec![Vec::new(); cx.peers()],
        marked: None,
        marks: MarkedColumns::default(),
        each,
        compared: 0,
        pairs: 0,
    };
    let comparer = Rc::new(RefCell::new(comparer));
    ask(cx, &comparer, RowAnswerer(rows.clone()))?;
    let comparer = comparer.borrow();
    Ok((comparer.compared, comparer.pairs))
}

/// The rows of all workers of this process, by worker; `None` for those of other processes.
fn share_rows(cx: &mut Context, rows: &Arc<SortedSets>) -> Result<Vec<Option<Arc<SortedSets>>>> {
    let shared = cx.shared().of(RowsInProcess::default);
    shared.0.lock().unwrap_or_else(PoisonError::into_inner).push((cx.index(), rows.clone()));
    // All workers have added their rows.
    cx.barrier()?;
    let mut local = vec![None; cx.peers()];
    for (index, rows) in shared.0.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        local[*index] = Some(rows.clone());
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
    /// The candidates that wait for rows of other processes.
    round: Vec<PairToCompare>,
    /// The row of another process that was asked for last.
    asked: Option<SetPlace>,
    /// Columns of the rows of other processes in this round, at most: such a row has no more than
    /// the own row of its candidate.
    columns: usize,
    /// The last candidate that was looked at, and the first one of the next round.
    last: Option<PairToCompare>,
    next: Option<PairToCompare>,
    /// Columns at which a round ends.
    most: usize,
    foreign: BTreeMap<SetPlace, ForeignRow>,
    /// By worker: the pieces of its answers that are not complete yet.
    arriving: Vec<Vec<AnswerPiece>>,
    /// The other row whose columns are marked.
    marked: Option<SetPlace>,
    marks: MarkedColumns,
    each: E,
    compared: u64,
    pairs: u64,
}

impl<E: FnMut(RowPair) -> Result<()>> Comparer<E> {
    /// The next candidate that differs from the last one.
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
        let place = SetPlace { worker, number: other };
        let (size, members, old, name, columns) = match &self.local[worker as usize] {
            Some(rows) => {
                let other = other as usize;
                (rows.sizes[other], rows.members[other], rows.old[other], rows.names[other], rows.columns(other))
            }
            None => {
                let row = self.foreign.get(&place);
                let row = row.context("a worker of another process did not send a row that was asked for")?;
                (row.size, row.members, row.old, row.name, &row.columns[..])
            }
        };
        let rows = &self.own;
        let sizes = [rows.sizes[own as usize].into(), size.into()];
        let least = self.requirement.least_of_pair(sizes);
        self.compared += 1;
        if self.marked != Some(place) {
            self.marks.mark(columns);
            self.marked = Some(place);
        }
        if let Some(shared) = self.marks.shared(rows.columns(own as usize), rows.weights[own as usize], least) {
            self.pairs += 1;
            let (names, members) = ([rows.names[own as usize], name], [rows.members[own as usize], members]);
            let old = [rows.old[own as usize], old];
            (self.each)(RowPair { own, other: place, names, members, old, sizes, shared })?;
        }
        Ok(())
    }
}

impl<E: FnMut(RowPair) -> Result<()>> Asker<u32, AnswerPiece> for Comparer<E> {
    /// Compares candidates with rows of this process, and collects those of a round that need rows
    /// of others.
    fn ask(&mut self, questions: &mut Dealer<u32>) -> Result<Asked> {
        for _ in 0..AT_ONCE {
            let Some(candidate) = self.next_candidate()? else { return Ok(Asked::All) };
            let place = SetPlace { worker: candidate.worker, number: candidate.other };
            if self.local[candidate.worker as usize].is_some() {
                self.compare(candidate)?;
                continue;
            }
            if self.columns > self.most || self.round.len() == CANDIDATES {
                (self.next, self.last) = (Some(candidate), None);
                return Ok(Asked::Round);
            }
            if self.asked != Some(place) {
                self.asked = Some(place);
                self.columns += self.own.columns(candidate.own as usize).len();
                questions.deal(place.worker.into(), place.number);
            }
            self.round.push(candidate);
        }
        Ok(Asked::More)
    }

    fn take(&mut self, answers: &BlockOf<AnswerPiece>) {
        let pieces = &mut self.arriving[answers.from as usize];
        pieces.extend_from_slice(answers.records());
        let mut rest = &pieces[..];
        while let [AnswerPiece([number, count, size, members]), AnswerPiece([low, high, old, _]), columns @ ..] = rest {
            let Some(of_row) = columns.get(..*count as usize) else { break };
            let row = ForeignRow {
                size: *size,
                members: *members,
                old: *old,
                name: u64::from(*high) << 32 | u64::from(*low),
                columns: of_row.iter().map(|piece| bytemuck::cast(piece.0)).collect(),
            };
            self.foreign.insert(SetPlace { worker: answers.from, number: *number }, row);
            rest = &columns[*count as usize..];
        }
        let used = pieces.len() - rest.len();
        pieces.drain(..used);
    }

    fn end_round(&mut self) -> Result<()> {
        for candidate in mem::take(&mut self.round) {
            self.compare(candidate)?;
        }
        self.foreign.clear();
        (self.asked, self.columns) = (None, 0);
        Ok(())
    }
}

/// A worker that sends rows.
struct RowAnswerer(Arc<SortedSets>);

impl Answerer<u32, AnswerPiece> for RowAnswerer {
    fn answer(&mut self, questions: &BlockOf<u32>, answers: &mut Dealer<AnswerPiece>) -> Result<()> {
        let rows = &self.0;
        for number in questions.records() {
            let row = *number as usize;
            let (columns, name) = (rows.columns(row), rows.names[row]);
            let to = questions.from.into();
            answers.deal(to, AnswerPiece([*number, columns.len() as u32, rows.sizes[row], rows.members[row]]));
            answers.deal(to, AnswerPiece([name as u32, (name >> 32) as u32, rows.old[row], 0]));
            columns.iter().for_each(|column| answers.deal(to, AnswerPiece(bytemuck::cast(*column))));
        }
        Ok(())
    }
}
