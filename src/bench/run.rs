//! Benchmarks of dataflows: some work on every worker of one process or of several, and what it took in all of them.

use std::path::Path;
use std::sync::{Arc, Mutex};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use timely::worker::Worker;

use super::clusters::{ClustersTask, measure_clusters};
use super::components::{ComponentsTask, measure_components};
use super::exchange::{ExchangeTask, measure_exchange};
use super::meter::Meter;
use super::weeks::{WeeksTask, measure_weeks};
use crate::config::Config;
use crate::launch::{Outcome, Peers, Pool, Voice, exit_on_panic, run_workers, supervise};
use crate::operators::{InProcess, gather};
use crate::watch::{Progress, Span, Watch};

/// A benchmark of a dataflow, as its processes are told of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Task {
    /// `nigh bench cluster`.
    Cluster(ClustersTask),
    /// `nigh bench components`.
    Components(ComponentsTask),
    /// `nigh bench weeks`.
    Weeks(WeeksTask),
    /// `nigh bench exchange`.
    Exchange(ExchangeTask),
}

impl Task {
    fn workers(&self) -> usize {
        match self {
            Task::Cluster(task) => task.workers,
            Task::Components(task) => task.workers,
            Task::Weeks(task) => task.workers,
            Task::Exchange(task) => task.workers,
        }
    }
}

/// What a task took, over all its workers.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Measured {
    /// The phases: seconds of process 0, CPU seconds of all.
    pub phases: Vec<Span>,
    /// Counters that the task names, summed over workers.
    pub sums: Vec<u64>,
    /// For each worker, what it counted as its work.
    pub shares: Vec<u64>,
    /// Rounds of label propagation.
    pub rounds: u64,
    /// Bytes and records given to exchange.
    pub exchanged: (u64, u64),
    /// The checksum of all labels.
    pub checksum: u64,
    /// Anonymous memory at the peak, summed over processes, where the system tells.
    pub peak_anonymous_bytes: Option<u64>,
}

/// What one worker has to say.
#[derive(Default)]
pub(super) struct Said {
    pub sums: Vec<u64>,
    pub share: u64,
    pub rounds: u64,
    pub checksum: u64,
}

/// Runs a task in this process, or in several; `told` puts it as a started process of this program understands it.
pub(super) fn run(task: Task, processes: usize, told: fn(Task) -> Result<String>) -> Result<Measured> {
    run_joined(task, processes, None, told)
}

/// As [`run`], several processes over TLS with the keys of a folder, where there is one.
pub(super) fn run_joined(
    task: Task,
    processes: usize,
    keys: Option<&Path>,
    told: fn(Task) -> Result<String>,
) -> Result<Measured> {
    if processes == 1 {
        exit_on_panic(1);
        return process(&task, Peers::None, &Arc::default())?.context("worker 0 says what was measured");
    }
    run_apart(task, processes, keys, told)
}

/// As [`run_joined`], in processes of its own: what ran before leaves no memory behind.
pub(super) fn run_apart(
    task: Task,
    processes: usize,
    keys: Option<&Path>,
    told: fn(Task) -> Result<String>,
) -> Result<Measured> {
    let progresses: Arc<Mutex<Vec<Progress>>> = Arc::default();
    let told = told(task)?;
    // A benchmark that was started anew would have measured something else.
    let config = Config { keys: keys.map(Path::to_owned), restarts: Some(0), ..Config::default() };
    let voice: Voice = Arc::new(|event| eprintln!("nigh: {}", event.text));
    match supervise(&Pool::here(processes, &config), &mut |_| Ok(Some(told.clone())), &progresses, &voice)? {
        Outcome::Done(measured) => serde_json::from_str(&measured.context("process 0 says what was measured")?)
            .context("figures are plain data"),
        Outcome::Failed { message, .. } => bail!(message),
    }
}

/// One process of a task.
///
/// # Errors
/// Where the task fails.
pub fn serve_task(task: &Task, peers: Peers, watch: &Arc<Watch>) -> Result<Option<String>> {
    let measured = process(task, peers, watch)?;
    measured.map(|measured| serde_json::to_string(&measured).context("figures are plain data")).transpose()
}

fn process(task: &Task, peers: Peers, watch: &Arc<Watch>) -> Result<Option<Measured>> {
    let meter = Meter::start();
    let (shared, mine, watched) = (Arc::<InProcess>::default(), task.clone(), watch.clone());
    let meter = Mutex::new(Some(meter));
    let workers = task.workers();
    let work = move |worker: &mut Worker| {
        let said = match &mine {
            Task::Cluster(task) => measure_clusters(worker, task, &shared, &watched)?,
            Task::Components(task) => measure_components(worker, task, &shared.forest, &watched)?,
            Task::Weeks(task) => measure_weeks(worker, task, &shared, &watched)?,
            Task::Exchange(task) => measure_exchange(worker, task, &watched)?,
        };
        // One worker speaks for its process.
        let first = worker.index().is_multiple_of(workers);
        let progress = watched.progress();
        let stop = || meter.lock().ok().and_then(|mut meter| meter.take()).and_then(Meter::stop);
        let peak = if first { stop() } else { None };
        let spans = if first { watched.spans() } else { Vec::new() };
        let micros = |seconds: f64| (seconds * 1e6) as u64;
        let told = spans.iter().map(|span| (span.stage, micros(span.wall_s), micros(span.cpu_s))).collect::<Vec<_>>();
        let exchanged = if first { (progress.exchanged, progress.exchanged_records) } else { (0, 0) };
        let all = gather(
            worker,
            vec![(worker.index(), (said.sums, said.share, said.rounds, said.checksum), told, exchanged, peak)],
            &watched,
        )?;
        let mut measured = Measured { phases: spans, ..Measured::default() };
        measured.phases.iter_mut().for_each(|span| span.cpu_s = 0.0);
        for (_, (sums, share, rounds, checksum), told, exchanged, peak) in all {
            measured.sums.resize(sums.len(), 0);
            measured.sums.iter_mut().zip(sums).for_each(|(sum, own)| *sum += own);
            measured.shares.push(share);
            measured.rounds = measured.rounds.max(rounds);
            measured.checksum = measured.checksum.wrapping_add(checksum);
            measured.exchanged.0 += exchanged.0;
            measured.exchanged.1 += exchanged.1;
            for (stage, _, cpu) in told {
                let known = measured.phases.iter_mut().filter(|span| span.stage == stage);
                known.take(1).for_each(|span| span.cpu_s += cpu as f64 / 1e6);
            }
            if let Some(peak) = peak {
                *measured.peak_anonymous_bytes.get_or_insert(0) += peak;
            }
        }
        Ok((worker.index() == 0).then_some(measured))
    };
    Ok(run_workers(workers, peers, watch, work)?.into_iter().flatten().next())
}
