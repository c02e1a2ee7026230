//! Runs the benchmark of a dataflow on every worker of one or several processes, and adds up what it took in all of them.
//!
//! A benchmark is a [`Measure`]: plain data that each process receives as text, and what one worker does with it. The
//! harness does not know the benchmarks; `task.rs` lists them.

use std::path::Path;
use std::sync::{Arc, Mutex};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use timely::worker::Worker;

use super::meter::Meter;
use crate::config::Config;
use crate::launch::{EventSink, Outcome, Peers, Pool, exit_on_panic, run_workers, supervise};
use crate::operators::InProcess;
use crate::operators::exchange::all_gather;
use crate::watch::{Progress, Span, Watch};

/// A benchmark of a dataflow.
pub(crate) trait Measure: Clone + Send + Sync + 'static {
    /// Worker threads of each process.
    fn workers(&self) -> usize;

    /// Does the work of one worker; every worker of every process calls it with the same task.
    ///
    /// # Errors
    /// Where the work fails, or a worker of this process did.
    fn measure(&self, worker: &mut Worker, shared: &Arc<InProcess>, watch: &Arc<Watch>) -> Result<Counted>;
}

/// What one worker counted.
#[derive(Default)]
pub(crate) struct Counted {
    /// Counters that the benchmark names.
    pub sums: Vec<u64>,
    /// Its part of the work.
    pub share: u64,
    /// Rounds of label propagation.
    pub rounds: u64,
    /// The checksum of its results.
    pub checksum: u64,
}

/// What a benchmark took, over all its workers.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Measured {
    /// The phases: seconds of process 0, CPU seconds of all.
    pub phases: Vec<Span>,
    /// Counters that the benchmark names, summed over workers.
    pub sums: Vec<u64>,
    /// For each worker, its part of the work.
    pub shares: Vec<u64>,
    /// Rounds of label propagation.
    pub rounds: u64,
    /// Bytes and records handed to the exchange.
    pub exchanged: (u64, u64),
    /// The sum of the workers' checksums.
    pub checksum: u64,
    /// Anonymous memory at the peak, summed over processes, where the system reports it.
    pub peak_anonymous_bytes: Option<u64>,
}

/// The processes in which a benchmark runs.
#[derive(Clone, Copy)]
pub(crate) struct Placement<'a> {
    /// How many.
    pub processes: usize,
    /// The folder of their TLS keys; without one they connect in plain.
    pub keys: Option<&'a Path>,
    /// Whether a single process is a new one too, so that what ran before leaves no memory behind.
    pub apart: bool,
}

impl Placement<'_> {
    /// So many processes without TLS; one is this process itself.
    pub fn of(processes: usize) -> Placement<'static> {
        Placement { processes, keys: None, apart: false }
    }
}

/// Runs a benchmark; `as_text` writes it as a new process of this program reads it.
///
/// # Errors
/// Where the work fails in any process, or a process ends.
pub(crate) fn run<T: Measure>(
    task: &T,
    placement: Placement<'_>,
    as_text: impl Fn(T) -> Result<String>,
) -> Result<Measured> {
    if placement.processes == 1 && !placement.apart {
        exit_on_panic(1);
        return measure(task, Peers::None, &Arc::default())?.context("worker 0 returns what was measured");
    }
    let progresses: Arc<Mutex<Vec<Progress>>> = Arc::default();
    let text = as_text(task.clone())?;
    // A restarted benchmark would measure something else.
    let config = Config { keys: placement.keys.map(Path::to_owned), restarts: Some(0), ..Config::default() };
    let events: EventSink = Arc::new(|event| eprintln!("nigh: {}", event.text));
    let pool = Pool::here(placement.processes, &config);
    match supervise(&pool, &mut |_| Ok(Some(text.clone())), &progresses, &events)? {
        Outcome::Done(measured) => serde_json::from_str(&measured.context("process 0 returns what was measured")?)
            .context("figures are plain data"),
        Outcome::Failed { message, .. } => bail!(message),
    }
}

/// Runs one process of a benchmark; the process of worker 0 returns the figures of all.
///
/// # Errors
/// Where the work fails.
pub(crate) fn measure<T: Measure>(task: &T, peers: Peers, watch: &Arc<Watch>) -> Result<Option<Measured>> {
    let meter = Mutex::new(Some(Meter::start()));
    let workers = task.workers();
    let work = {
        let (shared, task, watch) = (Arc::<InProcess>::default(), task.clone(), watch.clone());
        move |worker: &mut Worker| {
            let counted = task.measure(worker, &shared, &watch)?;
            // The first worker of a process reports what the process took as a whole.
            let is_first = worker.index().is_multiple_of(workers);
            let mut took = ProcessTook::default();
            if is_first {
                let progress = watch.progress();
                took.exchanged = (progress.exchanged, progress.exchanged_records);
                took.peak = meter.lock().ok().and_then(|mut meter| meter.take()).and_then(Meter::stop);
                took.phases = watch.spans();
            }
            let phases = took.phases.clone();
            let measured = add_up(worker, counted, took, phases, &watch)?;
            Ok((worker.index() == 0).then_some(measured))
        }
    };
    Ok(run_workers(workers, peers, watch, work)?.into_iter().flatten().next())
}

/// What a process took as a whole; nothing from workers that do not report for theirs.
#[derive(Default)]
struct ProcessTook {
    phases: Vec<Span>,
    exchanged: (u64, u64),
    peak: Option<u64>,
}

/// Adds up the counts of all workers. `phases` are those of this process, whose seconds are kept.
fn add_up(
    worker: &mut Worker,
    counted: Counted,
    took: ProcessTook,
    mut phases: Vec<Span>,
    watch: &Watch,
) -> Result<Measured> {
    let micros = |seconds: f64| (seconds * 1e6) as u64;
    let cpu: Vec<_> = took.phases.iter().map(|span| (span.stage, micros(span.cpu_s))).collect();
    let counts = (counted.sums, counted.share, counted.rounds, counted.checksum);
    let all = all_gather(worker, vec![(worker.index(), counts, cpu, took.exchanged, took.peak)], watch)?;
    phases.iter_mut().for_each(|span| span.cpu_s = 0.0);
    let mut measured = Measured { phases, ..Measured::default() };
    for (_, (sums, share, rounds, checksum), cpu, exchanged, peak) in all {
        measured.sums.resize(sums.len(), 0);
        measured.sums.iter_mut().zip(sums).for_each(|(sum, count)| *sum += count);
        measured.shares.push(share);
        measured.rounds = measured.rounds.max(rounds);
        measured.checksum = measured.checksum.wrapping_add(checksum);
        measured.exchanged.0 += exchanged.0;
        measured.exchanged.1 += exchanged.1;
        for (stage, micros) in cpu {
            if let Some(span) = measured.phases.iter_mut().find(|span| span.stage == stage) {
                span.cpu_s += micros as f64 / 1e6;
            }
        }
        if let Some(peak) = peak {
            *measured.peak_anonymous_bytes.get_or_insert(0) += peak;
        }
    }
    Ok(measured)
}
