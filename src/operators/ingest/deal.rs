//! Deals the pieces of the inputs to the processes, so that all are busy until the last pieces.
//!
//! ```text
//! ask    the first worker of each process: when few pieces are left to its workers, ask for more
//! deal   worker 0: answer with the next pieces of the wave, the largest first
//! dealt  the first worker of the process that asked: add them to the list from which its workers take
//! ```
//!
//! An answer has a share of what is left (guided self-scheduling: Polychronopoulos and Kuck, 1987): many pieces at first, so that few
//! questions are asked, and single ones at the end, so that processes end together though their machines or inputs differ.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use nigh_exchange::{BlockStream, RowDealer, rows_of, sink, source, unary};
use serde::{Deserialize, Serialize};
use timely::dataflow::Scope;

use super::unread::UnreadPieces;
use crate::plan::{PieceOfInput, Plan};
use crate::structures::CompactSort;
use crate::watch::Watch;

/// The time between two looks at what a process has left.
const LOOK: Duration = Duration::from_millis(1);

/// A process asks for more pieces of a wave.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Question {
    process: usize,
    wave: usize,
}

/// The pieces that a process gets.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Answer {
    wave: usize,
    pieces: Vec<PieceOfInput>,
    /// Whether none are left after these.
    is_last: bool,
}

/// Fills the `unread` pieces of every process.
pub fn deal(scope: Scope<'_, u64>, plan: &Arc<Plan>, unread: &Arc<UnreadPieces>, watch: &Arc<Watch>) {
    let (index, peers, workers) = (scope.index(), scope.peers(), plan.workers);
    let questions = questions(scope, workers, unread, watch);
    let answers = {
        let (plan, watch) = (plan.clone(), watch.clone());
        let (mut dealers, mut answers) = (BTreeMap::new(), RowDealer::new(index, peers, &watch));
        let mut answer = move |Question { process, wave }, answers: &mut RowDealer| {
            let dealer = dealers.entry(wave).or_insert_with(|| WaveDealer::new(&plan, wave));
            let (pieces, is_last) = dealer.next(plan.processes);
            answers.deal(process * workers, &Answer { wave, pieces, is_last });
        };
        unary(questions, "Deal", |_| {
            move |input, output| {
                input.for_each(|time, questions| {
                    let mut questions = rows_of(questions);
                    watch.check(questions.try_for_each(|question| question.map(|it| answer(it, &mut answers))));
                    let mut session = output.session_with_builder(&time);
                    answers.finish().for_each(|mut block| session.give_container(&mut block));
                });
            }
        })
    };
    let (unread, watch) = (unread.clone(), watch.clone());
    sink(answers, "Dealt", move |answers| {
        let add = |Answer { wave, pieces, is_last }| unread.add(wave, pieces, is_last);
        watch.check(rows_of(&answers).try_for_each(|answer| answer.map(add)));
    });
}

/// Asks for more pieces whenever a process has few. Ends when the process has all that it gets.
fn questions<'scope>(
    scope: Scope<'scope, u64>,
    workers: usize,
    unread: &Arc<UnreadPieces>,
    watch: &Arc<Watch>,
) -> BlockStream<'scope> {
    let (process, is_first) = (scope.index() / workers, scope.index().is_multiple_of(workers));
    let mut questions = RowDealer::new(scope.index(), 1, watch);
    let (unread, watch) = (unread.clone(), watch.clone());
    source(scope, "Ask", |capability, info| {
        let activator = scope.activator_for(info.address);
        let mut capability = Some(capability).filter(|_| is_first);
        move |output| {
            // After a failure the operator keeps its capability, as others do.
            if watch.failed() {
                return;
            }
            if unread.has_all() {
                capability = None;
            }
            let Some(capability) = &capability else { return };
            if let Some(wave) = unread.wanted() {
                questions.deal(0, &Question { process, wave });
                let mut session = output.session_with_builder(capability);
                questions.finish().for_each(|mut block| session.give_container(&mut block));
            }
            activator.activate_after(LOOK);
        }
    })
}

/// The pieces of a wave that no process has yet.
struct WaveDealer {
    /// With their bytes; the next one is the last.
    pieces: Vec<(u64, PieceOfInput)>,
    bytes: u64,
}

impl WaveDealer {
    fn new(plan: &Plan, wave: usize) -> WaveDealer {
        WaveDealer::of(plan.pieces_of_wave(wave))
    }

    fn of(mut pieces: Vec<(u64, PieceOfInput)>) -> WaveDealer {
        // An empty file costs something, too.
        pieces.iter_mut().for_each(|(bytes, _)| *bytes = (*bytes).max(1));
        // The largest first; of equal ones, in the order of the plan.
        pieces.sort_items_by_key(|(bytes, piece)| (*bytes, Reverse(*piece)));
        let bytes = pieces.iter().map(|(bytes, _)| bytes).sum();
        WaveDealer { pieces, bytes }
    }

    /// Takes pieces for one of some processes until they have 1 / (2 × processes) of the bytes that are left. Returns them, and whether no
    /// piece is left.
    fn next(&mut self, processes: usize) -> (Vec<PieceOfInput>, bool) {
        let enough = self.bytes / (2 * processes as u64);
        let (mut pieces, mut dealt) = (Vec::new(), 0);
        while let Some((bytes, piece)) = self.pieces.pop() {
            pieces.push(piece);
            dealt += bytes;
            if dealt >= enough {
                break;
            }
        }
        self.bytes -= dealt;
        (pieces, self.pieces.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::super::unread::NextPiece;
    use super::*;
    use crate::plan::tests::plan;
    use crate::readers::InputPiece;
    use nigh_exchange::{Context, install};

    fn dealer(bytes: &[u64]) -> WaveDealer {
        WaveDealer::of(bytes.iter().enumerate().map(|(file, bytes)| (*bytes, (file, InputPiece::WHOLE))).collect())
    }

    #[test]
    fn each_answer_has_half_of_a_share_of_what_is_left_and_the_last_ones_one_piece() {
        let mut dealer = dealer(&[8; 32]);
        let mut counts = Vec::new();
        loop {
            let (pieces, is_last) = dealer.next(2);
            counts.push(pieces.len());
            if is_last {
                break;
            }
        }
        assert_eq!(counts, [8, 6, 5, 4, 3, 2, 1, 1, 1, 1]);
        assert_eq!(dealer.next(2), (vec![], true));
    }

    #[test]
    fn many_empty_files_are_dealt_in_few_answers() {
        let mut dealer = dealer(&[0; 10_000]);
        assert_eq!(dealer.next(2).0.len(), 2500);
        let answers = std::iter::repeat_with(|| dealer.next(2)).take_while(|(_, is_last)| !is_last).count();
        assert!(answers < 50, "{answers}");
    }

    /// What the workers of some processes take.
    fn taken(plan: Plan) -> Vec<Vec<(usize, PieceOfInput)>> {
        let plan = Arc::new(plan);
        let of_processes: Vec<Arc<UnreadPieces>> =
            (0..plan.processes).map(|_| Arc::new(UnreadPieces::new(plan.workers, 0..plan.waves.len()))).collect();
        let workers = timely::execute(timely::Config::process(plan.peers()), move |worker| {
            let cx = &mut Context::alone(worker);
            let unread = &of_processes[cx.index() / plan.workers];
            install(cx, |scope| deal(scope, &plan, unread, &Arc::default()));
            let (mut taken, mut wave) = (Vec::new(), 0);
            while wave < plan.waves.len() {
                match unread.take(wave) {
                    NextPiece::Piece(piece) => taken.push((wave, piece)),
                    NextPiece::NotYet => _ = cx.worker().step_or_park(Some(LOOK)),
                    NextPiece::End => wave += 1,
                }
            }
            taken
        });
        workers.unwrap().join().into_iter().map(Result::unwrap).collect()
    }

    #[test]
    fn every_piece_is_given_to_one_process() {
        for (processes, workers) in [(1, 1), (2, 1), (1, 2), (2, 2), (3, 1), (2, 3)] {
            let mut plan = plan(&[9, 0, 3, 3, 3, 0, 7, 300 << 20, 1, 1], 12);
            (plan.processes, plan.workers) = (processes, workers);
            let of_wave = |wave| plan.pieces_of_wave(wave).into_iter().map(move |(_, piece)| (wave, piece));
            let mut all: Vec<_> = (0..plan.waves.len()).flat_map(of_wave).collect();
            assert_eq!((plan.waves.len(), all.len()), (4, 13));
            let mut taken = taken(plan).concat();
            all.sort_unstable();
            taken.sort_unstable();
            assert_eq!(taken, all, "{processes} processes of {workers} workers");
        }
    }
}
