//! `nigh bench exchange`: the throughput of records between processes, over TLS and over plain
//! sockets.
//!
//! Every worker sends made-up records to all workers, including those of its own process, by a
//! hash, as jobs do with keys. With two processes half of the records cross between them. The
//! receiving worker adds the records up, so that a lost record would show.
//!
//! TLS and plain sockets are measured by turns, and the medians compared, so that other work on the
//! machine disturbs both alike.

use std::cell::Cell;
use std::fmt;
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::Args;
use nigh_bench::{
    AnyBench, Bench, BenchOutcome, Measure, Measured, Placement, Seconds, Temporary, WorkerCounts, WorkerResult, run,
};
use nigh_exchange::{BlockOf, Context, run_dataflow, source};
use serde::{Deserialize, Serialize};
use timely::dataflow::operators::Probe;

use crate::config::Count;
use crate::records::mix;
use crate::sheet::grouped;
use crate::watch::Stage;

/// `nigh bench exchange`.
pub(super) const BENCH: AnyBench = AnyBench::of::<ExchangeArgs>("exchange");

/// A record, as large as an edge: its hash and its number.
type ExchangedRecord = [u64; 2];
/// Records that a worker sends per timestamp: 1 MiB.
const BATCH: usize = 1 << 16;
/// The number of timestamps that may be under way.
const AHEAD: u64 = 16;
/// How often a worker that is ahead checks again.
const WAIT: Duration = Duration::from_micros(100);
/// How often TLS and plain sockets are each measured.
const ROUNDS: usize = 3;

/// Records sent between processes: over TLS, and over plain sockets.
#[derive(Args)]
struct ExchangeArgs {
    /// Number of records that all workers send together, 16 bytes each.
    #[arg(long, default_value = "100000000", value_name = "N")]
    records: u64,
    /// Worker threads of each process.
    #[arg(long, default_value = "1", value_name = "N")]
    workers: Count,
    /// Processes on this machine.
    #[arg(long, default_value = "2", value_name = "N")]
    processes: Count,
    /// Measure plain sockets only, instead of comparing TLS with them.
    #[arg(long)]
    plain: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// The benchmark as each process receives it.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct ExchangeTask {
    records: u64,
    /// Worker threads of each process.
    workers: usize,
}

/// What the benchmark counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct ExchangeCounts {
    /// Records that arrived.
    received: u64,
}

impl WorkerCounts for ExchangeCounts {
    fn merge(&mut self, other: &ExchangeCounts) {
        self.received += other.received;
    }
}

/// The figures of one measurement, over TLS or over plain sockets.
#[derive(Clone, Copy, Serialize)]
struct Throughput {
    records: u64,
    seconds: f64,
    records_per_second: f64,
    bytes_per_second: f64,
    cpu_s: f64,
    plain: bool,
    /// Whether all records arrived unchanged.
    complete: bool,
}

/// The figures of the benchmark.
#[derive(Serialize)]
struct ExchangeReport {
    processes: usize,
    workers: usize,
    /// The median measurement.
    #[serde(flatten)]
    median: Throughput,
    /// The median measurement of plain sockets, if `median` is of TLS.
    beside: Option<Throughput>,
    /// The throughput of TLS over that of plain sockets.
    times_plain: Option<f64>,
}

impl Bench for ExchangeArgs {
    type Task = ExchangeTask;

    fn bench(&self, as_text: impl Fn(ExchangeTask) -> Result<String>) -> Result<BenchOutcome> {
        let (workers, processes) = (self.workers.0, self.processes.0);
        let task = ExchangeTask { records: self.records, workers };
        let temporary = Temporary::of_process();
        let folder = temporary.folder.join("keys");
        // Without the feature `pool` the program cannot make keys.
        let tls = cfg!(feature = "pool") && !self.plain && processes > 1;
        if tls {
            crate::launch::make(&folder, processes, 1)?;
        }
        let measure = |plain: bool| -> Result<Throughput> {
            let keys = (!plain).then_some(folder.as_path());
            let measured = run(&task, Placement { processes, keys, apart: false }, &as_text)?;
            Ok(Throughput::new(self.records, plain, &measured))
        };
        let (mut encrypted, mut plain) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            if tls {
                encrypted.push(measure(false)?);
            }
            plain.push(measure(true)?);
        }
        let complete = encrypted.iter().chain(&plain).all(|measured| measured.complete);
        let plain = median(plain).context("plain sockets were measured")?;
        let (median, beside) = median(encrypted).map_or((plain, None), |encrypted| (encrypted, Some(plain)));
        let times_plain = beside.map(|plain| median.records_per_second / plain.records_per_second.max(1e-9));
        let report = ExchangeReport { processes, workers, median, beside, times_plain };
        BenchOutcome::new(complete, &report, self.json)
    }
}

/// The measurement with the median time; `None` if there are none.
fn median(mut measurements: Vec<Throughput>) -> Option<Throughput> {
    measurements.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    measurements.get(measurements.len() / 2).copied()
}

impl Throughput {
    fn new(records: u64, plain: bool, measured: &Measured<ExchangeCounts>) -> Throughput {
        let Seconds { wall: seconds, cpu: cpu_s } = measured.seconds(|span| span.stage == Stage::Pairs);
        let per_second = |amount: u64| amount as f64 / seconds.max(1e-9);
        let checksum: u64 = (0..records).map(mix).fold(0, u64::wrapping_add);
        Throughput {
            records,
            seconds,
            records_per_second: per_second(records),
            bytes_per_second: per_second(measured.exchanged_bytes),
            cpu_s,
            plain,
            complete: measured.counts.received == records && measured.checksum == checksum,
        }
    }
}

impl Measure for ExchangeTask {
    type Counts = ExchangeCounts;

    fn threads(&self) -> usize {
        self.workers
    }

    fn measure(&self, cx: &mut Context) -> Result<WorkerResult<ExchangeCounts>> {
        measure_exchange(cx, self)
    }
}

/// Sends this worker's share of the records, and adds up the records that it receives.
fn measure_exchange(cx: &mut Context, task: &ExchangeTask) -> Result<WorkerResult<ExchangeCounts>> {
    let (index, peers) = (cx.index(), cx.peers());
    let numbers = index as u64 * task.records / peers as u64..(index as u64 + 1) * task.records / peers as u64;
    // The number of received records, and the wrapping sum of their hashes.
    let received = Rc::new(Cell::new((0u64, 0u64)));
    cx.barrier()?;
    cx.enter(Stage::Pairs);
    let mut dealer = cx.dealer::<ExchangedRecord>();
    run_dataflow(cx, |scope, probe| {
        let records = source(scope, "Records", |capability, info| {
            let activator = scope.activator_for(info.address);
            let (mut capability, mut numbers, mut time) = (Some(capability), numbers, 0);
            let probe = probe.clone();
            move |output| {
                let Some(at_time) = capability.as_mut() else { return };
                if time > AHEAD && probe.less_than(&(time - AHEAD)) {
                    return activator.activate_after(WAIT);
                }
                for number in numbers.by_ref().take(BATCH) {
                    let hash = mix(number);
                    dealer.deal(((u128::from(hash) * peers as u128) >> 64) as u64, [hash, number]);
                }
                let mut session = output.session_with_builder(&*at_time);
                if numbers.is_empty() {
                    dealer.finish().for_each(|mut block| session.give_container(&mut block));
                    drop(session);
                    capability = None;
                    return;
                }
                dealer.full().for_each(|mut block| session.give_container(&mut block));
                drop(session);
                time += 1;
                at_time.downgrade(&time);
                activator.activate();
            }
        });
        let received = received.clone();
        let add = move |block: BlockOf<ExchangedRecord>| {
            let (count, sum) = received.get();
            let sum = block.records().iter().fold(sum, |sum, [hash, _]| sum.wrapping_add(*hash));
            received.set((count + block.records().len() as u64, sum));
        };
        nigh_exchange::received(records, add).probe_with(probe);
    })?;
    cx.barrier()?;
    cx.enter(Stage::Tables);
    let (received, checksum) = received.get();
    Ok(WorkerResult { counts: ExchangeCounts { received }, checksum })
}

impl fmt::Display for Throughput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:<6} {:>8.1} Mrec/s {:>7.3} GB/s {:>8.3} s {:>8.3} CPU s",
            if self.plain { "plain" } else { "TLS" },
            self.records_per_second / 1e6,
            self.bytes_per_second / 1e9,
            self.seconds,
            self.cpu_s
        )?;
        if self.complete { Ok(()) } else { write!(f, "  RECORDS ARE MISSING: a fault in this program") }
    }
}

impl fmt::Display for ExchangeReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let records = grouped(self.median.records);
        writeln!(f, "{records} records of 16 bytes, {} process(es) of {} worker(s)", self.processes, self.workers)?;
        writeln!(f, "{}", self.median)?;
        if let (Some(plain), Some(times)) = (&self.beside, self.times_plain) {
            writeln!(f, "{plain}")?;
            writeln!(f, "TLS has {:.0}% of the throughput of plain sockets", times * 100.0)?;
        }
        Ok(())
    }
}
