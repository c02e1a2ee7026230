//! Runs a dataflow benchmark on every worker of one or several processes, and adds up what all of
//! them counted.
//!
//! A benchmark implements [`Measure`]: plain data that each process receives as text, and a
//! function that one worker runs. What the benchmark counts is a struct of its own
//! ([`WorkerCounts`]).

use std::path::Path;
use std::sync::{Arc, Mutex};

use anyhow::{Context as _, Result, bail};
use nigh_exchange::Context;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use timely::ExchangeData;

use super::meter::Meter;
use crate::config::{Config, Restarts};
use crate::launch::{EventSink, GenerationWork, Outcome, Peers, Pool, exit_on_panic, run_workers, supervise};
use crate::watch::{Progress, Span, Watch};

/// A benchmark of a dataflow, as each process receives it.
pub trait Measure: Clone + Send + Sync + 'static {
    /// What the benchmark counts, besides times, bytes and memory.
    type Counts: WorkerCounts;

    /// Worker threads of each process.
    fn threads(&self) -> usize;

    /// Does the work of one worker. Every worker of every process calls it with the same task.
    ///
    /// # Errors
    /// If the work fails, or another worker of this process failed.
    fn measure(&self, cx: &mut Context) -> Result<WorkerResult<Self::Counts>>;
}

/// The counts of one worker, which are merged into those of all workers.
pub trait WorkerCounts: ExchangeData + Clone + Default + Ord + Send + Serialize + DeserializeOwned {
    /// Adds the counts of another worker.
    fn merge(&mut self, other: &Self);
}

/// What one worker counted, and the checksum of its results.
#[derive(Default)]
pub struct WorkerResult<C> {
    /// The counts that the benchmark names.
    pub counts: C,
    /// The checksum of the results; the wrapping sum over workers does not depend on their number.
    pub checksum: u64,
}

/// What a benchmark measured, over all its workers.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Measured<C> {
    /// The stages: wall-clock seconds of process 0, CPU seconds of all processes.
    pub phases: Vec<Span>,
    /// The counts that the benchmark names, of all workers.
    pub counts: C,
    /// Bytes passed to the exchange of records.
    pub exchanged_bytes: u64,
    /// Records passed to the exchange.
    pub exchanged_records: u64,
    /// The wrapping sum of the workers' checksums.
    pub checksum: u64,
    /// Peak anonymous memory, summed over processes, if the system reports it.
    pub peak_anonymous_bytes: Option<u64>,
}

impl<C> Measured<C> {
    /// Wall-clock seconds and CPU seconds of the stages that `is_counted` selects.
    pub fn seconds(&self, is_counted: impl Fn(&Span) -> bool) -> Seconds {
        self.phases
            .iter()
            .filter(|span| is_counted(span))
            .fold(Seconds::default(), |sum, span| Seconds { wall: sum.wall + span.wall_s, cpu: sum.cpu + span.cpu_s })
    }
}

/// The time of some stages.
#[derive(Clone, Copy, Default, Serialize)]
pub struct Seconds {
    /// By the clock, at process 0.
    pub wall: f64,
    /// CPU seconds of all processes.
    pub cpu: f64,
}

/// The processes in which a benchmark runs.
#[derive(Clone, Copy)]
pub struct Placement<'a> {
    /// The number of processes.
    pub processes: usize,
    /// The folder of their TLS keys; `None` for plain sockets.
    pub keys: Option<&'a Path>,
    /// Whether even a single process is a new one, so that memory of earlier work does not matter.
    pub apart: bool,
}

impl Placement<'_> {
    /// `processes` processes without TLS. A single one is this process itself.
    pub fn of(processes: usize) -> Placement<'static> {
        Placement { processes, keys: None, apart: false }
    }
}

/// Runs a benchmark. `as_text` formats the task as a new process of this program reads it.
///
/// # Errors
/// If the work fails in any process, or a process ends early.
pub fn run<T: Measure>(
    task: &T,
    placement: Placement<'_>,
    as_text: impl Fn(T) -> Result<String>,
) -> Result<Measured<T::Counts>> {
    if placement.processes == 1 && !placement.apart {
        exit_on_panic(1);
        return measure(task, Peers::None, &Arc::default())?.context("worker 0 returns what was measured");
    }
    let progresses: Arc<Mutex<Vec<Progress>>> = Arc::default();
    let text = as_text(task.clone())?;
    // No restarts: a restarted benchmark would measure something else.
    let config = Config {
        keys: placement.keys.map(Path::to_owned),
        restarts: Some(Restarts { most: 0, within: None }),
        ..Config::default()
    };
    let events: EventSink = Arc::new(|event| eprintln!("nigh: {}", event.text));
    let pool = Pool::here(placement.processes, &config);
    match supervise(&pool, &mut |_| Ok(Some(GenerationWork::fixed(text.clone()))), &progresses, &events)? {
        Outcome::Done(measured) => serde_json::from_str(&measured.context("process 0 returns what was measured")?)
            .context("figures are plain data"),
        Outcome::Failed { message, .. } => bail!(message),
        Outcome::AtBorder => bail!("a benchmark has no waves to end after"),
    }
}

/// Runs one process of a benchmark. The process of worker 0 returns the figures of all processes,
/// the others `None`.
///
/// # Errors
/// If the work fails.
pub fn measure<T: Measure>(task: &T, peers: Peers, watch: &Arc<Watch>) -> Result<Option<Measured<T::Counts>>> {
    let meter = Mutex::new(Some(Meter::start()));
    let threads = task.threads();
    let work = {
        let (task, watch) = (task.clone(), watch.clone());
        move |cx: &mut Context| {
            let counted = task.measure(cx)?;
            // The first worker of a process reports the figures of the whole process.
            let mut process = ProcessFigures::default();
            if cx.index().is_multiple_of(threads) {
                let progress = watch.progress();
                process.exchanged_bytes = progress.exchanged;
                process.exchanged_records = progress.exchanged_records;
                process.peak = meter.lock().ok().and_then(|mut meter| meter.take()).and_then(Meter::stop);
                process.phases = watch.spans();
            }
            let measured = add_up(cx, counted, process)?;
            Ok((cx.index() == 0).then_some(measured))
        }
    };
    Ok(run_workers(threads, peers, watch, work)?.into_iter().flatten().next())
}

/// The figures of a process as a whole; empty at workers other than its first.
#[derive(Default)]
struct ProcessFigures {
    phases: Vec<Span>,
    exchanged_bytes: u64,
    exchanged_records: u64,
    /// Peak anonymous memory in bytes.
    peak: Option<u64>,
}

/// Adds up the counts and figures of all workers. The wall-clock seconds are those of this worker's
/// process.
fn add_up<C: WorkerCounts>(cx: &mut Context, counted: WorkerResult<C>, process: ProcessFigures) -> Result<Measured<C>> {
    // Records that are gathered have an order, so seconds travel as whole microseconds.
    let micros = |seconds: f64| (seconds * 1e6) as u64;
    let cpu: Vec<_> = process.phases.iter().map(|span| (span.stage, micros(span.cpu_s))).collect();
    let exchanged = (process.exchanged_bytes, process.exchanged_records);
    let of_worker = (cx.index(), counted.counts, counted.checksum, cpu, exchanged, process.peak);
    let of_all = cx.sorted(vec![of_worker])?;
    let mut phases = process.phases;
    phases.iter_mut().for_each(|span| span.cpu_s = 0.0);
    let mut measured: Measured<C> = Measured { phases, ..Measured::default() };
    for (_, counts, checksum, cpu, (bytes, records), peak) in of_all {
        measured.counts.merge(&counts);
        measured.checksum = measured.checksum.wrapping_add(checksum);
        measured.exchanged_bytes += bytes;
        measured.exchanged_records += records;
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
