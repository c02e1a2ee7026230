//! Deals the pieces of the inputs to the processes, so that all are busy until the last pieces.
//!
//! ```text
//! ask    the first worker of each process: when few pieces are left to its workers, ask for more
//! deal   worker 0: answer with the next pieces of the wave, the largest first
//! dealt  the first worker of the process that asked: add them to the list from which its workers take
//! ```
//!
//! When the supervisor has asked for it, worker 0 ends the run after a wave: it deals the pieces of
//! no other wave, and answers so to every process. All processes thus end at the same place, with
//! all waves before it committed ([`Border`]).
//!
//! An answer has a share of what is left (guided self-scheduling: Polychronopoulos and Kuck, 1987):
//! many pieces at first, so that few questions are asked, and single ones at the end, so that
//! processes end together though their machines or inputs differ.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

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
struct PiecesWanted {
    process: usize,
    wave: usize,
}

/// The pieces that a process gets.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct DealtPieces {
    wave: usize,
    pieces: Vec<PieceOfInput>,
    /// Whether none are left after these.
    is_last: bool,
    /// Whether the wave, and those after it, are not read in this run.
    ends: bool,
}

/// Where a run ends if it was asked to end after a wave. Worker 0 has it, and decides once for all
/// processes.
struct Border {
    plan: Arc<Plan>,
    watch: Arc<Watch>,
    begun: Instant,
    /// The wave that the run began with; it is read in any case.
    first: usize,
    /// The first wave that is not read.
    end: Option<usize>,
}

impl Border {
    /// Whether the run ends before this wave, of which no process has got a piece yet.
    fn is_before(&mut self, wave: usize) -> bool {
        if self.end.is_none()
            && wave > self.first
            && let Some(worth) = self.watch.asked_for_end()
            && self.rest(wave, self.begun.elapsed()) >= worth
        {
            self.end = Some(wave);
        }
        self.end.is_some_and(|end| wave >= end)
    }

    /// How long it would take to read this wave and the others, as fast as those before it were
    /// read in this time.
    fn rest(&self, wave: usize, elapsed: Duration) -> Duration {
        let [before, done, all] =
            [self.first, wave, self.plan.waves.len()].map(|waves| self.plan.bytes_of_waves(waves));
        let share = (all - done) as f64 / (done - before).max(1) as f64;
        Duration::try_from_secs_f64(elapsed.as_secs_f64() * share).unwrap_or(Duration::MAX)
    }
}

/// Fills the `unread` pieces of every process, of the waves from `first_wave` on.
pub fn deal(
    scope: Scope<'_, u64>,
    plan: &Arc<Plan>,
    first_wave: usize,
    unread: &Arc<UnreadPieces>,
    watch: &Arc<Watch>,
) {
    let (index, peers, workers) = (scope.index(), scope.peers(), plan.workers);
    let questions = questions(scope, workers, unread, watch);
    let answers = {
        let (plan, watch) = (plan.clone(), watch.clone());
        let (mut dealers, mut answers) = (BTreeMap::new(), RowDealer::new(index, peers, &watch));
        let (begun, first, end) = (Instant::now(), first_wave, None);
        let mut border = Border { plan: plan.clone(), watch: watch.clone(), begun, first, end };
        let mut answer = move |PiecesWanted { process, wave }, answers: &mut RowDealer| {
            if !dealers.contains_key(&wave) && border.is_before(wave) {
                return answers
                    .deal(process * workers, &DealtPieces { wave, pieces: Vec::new(), is_last: true, ends: true });
            }
            let dealer = dealers.entry(wave).or_insert_with(|| WaveDealer::new(&plan, wave));
            let (pieces, is_last) = dealer.next(plan.processes);
            answers.deal(process * workers, &DealtPieces { wave, pieces, is_last, ends: false });
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
        let add = |DealtPieces { wave, pieces, is_last, ends }| match ends {
            true => unread.end_before(wave),
            false => unread.add(wave, pieces, is_last),
        };
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
                questions.deal(0, &PiecesWanted { process, wave });
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

    /// Takes pieces for one of some processes until they have 1 / (2 × processes) of the bytes that
    /// are left. Returns them, and whether no piece is left.
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
    use crate::config::{Absent, Canonical, Cluster, Mode};
    use crate::plan::cut_waves;
    use crate::readers::{Format, Input, InputPiece, Location};
    use crate::state::Earlier;
    use nigh_exchange::{Context, install};

    fn inputs(bytes: &[u64]) -> Vec<Input> {
        let input = |(i, bytes): (usize, &u64)| Input {
            name: format!("{i:03}.warc"),
            bytes: *bytes,
            format: Format::Warc,
            place: Location::File("file".into()),
            page_url: None,
            stamp: String::new(),
            reading: None,
        };
        bytes.iter().enumerate().map(input).collect()
    }

    /// A plan with files of these bytes, for one worker.
    fn plan(bytes: &[u64], wave_bytes: u64) -> Plan {
        let inputs = inputs(bytes);
        let job = Cluster::default();
        Plan {
            week: "2024-01-08".parse().unwrap(),
            store: "store".into(),
            work: "work".into(),
            earlier: Earlier::default(),
            stands_on: String::new(),
            commit: 1,
            deletion: None,
            resharding: None,
            absent: Absent::Missing,
            folders: std::collections::BTreeMap::new(),
            readings: std::collections::BTreeMap::new(),
            earlier_inputs: Vec::new(),
            canonical: Canonical::default(),
            accuracy: true,
            mode: Mode::Full,
            method: job.method.clone().map(|given| given.method).unwrap_or_default(),
            reading: job.read.clone(),
            keep: job.keep,
            waves: cut_waves(&inputs, wave_bytes),
            inputs,
            max_reject_share: 0.1,
            max_unknown_share: 0.1,
            allow_empty: false,
            job: job.to_text(),
            processes: 1,
            workers: 1,
            worker_memory: 1,
            split_files: true,
            keep_read: false,
        }
    }

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
        taken_until(plan, None).into_iter().map(|(taken, _)| taken).collect()
    }

    /// What the workers of some processes take, and the wave at which each ends. A worker asks for
    /// the end when it has a piece of this wave.
    fn taken_until(plan: Plan, asks_at: Option<usize>) -> Vec<(Vec<(usize, PieceOfInput)>, usize)> {
        let plan = Arc::new(plan);
        let watch = Arc::new(Watch::default());
        let of_processes: Vec<Arc<UnreadPieces>> =
            (0..plan.processes).map(|_| Arc::new(UnreadPieces::new(plan.workers, 0..plan.waves.len()))).collect();
        let workers = timely::execute(timely::Config::process(plan.peers()), move |worker| {
            let cx = &mut Context::alone(worker);
            let unread = &of_processes[cx.index() / plan.workers];
            install(cx, |scope| deal(scope, &plan, 0, unread, &watch));
            let (mut taken, mut wave) = (Vec::new(), 0);
            while wave < unread.end() {
                match unread.take(wave) {
                    NextPiece::Piece(piece) => {
                        taken.push((wave, piece));
                        if asks_at == Some(wave) {
                            watch.ask_for_end(Duration::ZERO);
                        }
                    }
                    NextPiece::NotYet => _ = cx.worker().step_or_park(Some(LOOK)),
                    NextPiece::End => wave += 1,
                }
            }
            (taken, wave)
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

    #[test]
    fn all_processes_end_before_the_same_wave_with_all_pieces_of_those_before_it() {
        for (processes, workers) in [(1, 1), (2, 1), (3, 1), (2, 3)] {
            let mut plan = plan(&[9, 0, 3, 3, 3, 0, 7, 1, 1, 1, 12, 13, 14, 15, 16], 12);
            (plan.processes, plan.workers) = (processes, workers);
            let plan_of_all = plan.clone();
            let taken = taken_until(plan, Some(2));
            let end = taken[0].1;
            // The next wave may have been dealt when the request came; and other processes may be
            // further.
            let at_most = if processes * workers == 1 { 4 } else { 7 };
            assert!((3..=at_most).contains(&end), "{processes} processes of {workers} workers end at {end}");
            assert!(taken.iter().all(|(_, wave)| *wave == end));
            let of_wave = |wave| plan_of_all.pieces_of_wave(wave).into_iter().map(move |(_, piece)| (wave, piece));
            let mut all: Vec<_> = (0..end).flat_map(of_wave).collect();
            let mut taken: Vec<_> = taken.into_iter().flat_map(|(taken, _)| taken).collect();
            all.sort_unstable();
            taken.sort_unstable();
            assert_eq!(taken, all, "{processes} processes of {workers} workers");
        }
    }

    #[test]
    fn a_run_ends_early_only_if_the_rest_is_worth_it() {
        let plan = Arc::new(plan(&[10; 10], 10));
        let watch = Arc::new(Watch::default());
        let border = |first| Border {
            plan: plan.clone(),
            watch: watch.clone(),
            begun: Instant::now() - Duration::from_secs(60),
            first,
            end: None,
        };
        let rest = |first, wave| border(first).rest(wave, Duration::from_secs(60)).as_secs();
        // Of ten waves: two in a minute, so that eight take four; and the same after a restart at
        // the sixth.
        assert_eq!((rest(0, 2), rest(6, 8), rest(0, 10)), (240, 60, 0));
        assert!(!border(0).is_before(2), "it was not asked");
        watch.ask_for_end(Duration::from_secs(300));
        assert!(!border(0).is_before(2) && border(0).is_before(1));
        assert!(!border(1).is_before(1), "one wave is read in any case");
        // A request for less counts from then on, and what was decided stays.
        watch.ask_for_end(Duration::ZERO);
        watch.ask_for_end(Duration::from_secs(9999));
        let mut border = border(0);
        assert!(border.is_before(9) && border.is_before(10) && !border.is_before(8));
    }
}
