//! `nigh bench exchange`: what it takes processes to exchange records, over TLS and plain.
//!
//! Every worker deals made-up records to all workers, its own process' too, as jobs do by the hashes of their keys;
//! with two processes half of them cross. Whoever receives a record adds it up, so that what was lost would show.
//!
//! Both ways are measured in turns and the medians compared, as a busy machine then hampers both.

use std::cell::Cell;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use serde::{Deserialize, Serialize};
use timely::container::CapacityContainerBuilder;
use timely::dataflow::operators::Probe;
use timely::dataflow::operators::generic::Operator;
use timely::dataflow::operators::generic::operator::source;
use timely::dataflow::operators::probe::Handle;
use timely::worker::Worker;

use super::harness::{Counted, Measure, Measured, Placement, run};
use super::temporary::Temporary;
use crate::config::Count;
use crate::operators::InProcess;
use crate::operators::exchange::{BlockBuilder, Dealer, barrier, by_part, run_to_end};
use crate::records::mix;
use crate::report::grouped;
use crate::watch::{Stage, Watch};

/// A record: as large as an edge.
type ExchangedRecord = [u64; 2];
/// Records that are dealt at a time: 1 MiB.
const SOME: u64 = 1 << 16;
/// How many times of these may be on their way.
const AHEAD: u64 = 16;
/// How often a worker that is ahead looks again.
const WAIT: Duration = Duration::from_micros(100);
/// How often each way is measured.
const ROUNDS: usize = 3;

/// Arguments of `nigh bench exchange`.
#[derive(Args)]
pub(crate) struct ExchangeArgs {
    /// Records that all workers send together, 16 bytes each.
    #[arg(long, default_value = "100000000", value_name = "N")]
    records: u64,
    /// Worker threads of each process.
    #[arg(long, default_value = "1", value_name = "N")]
    workers: Count,
    /// Processes on this machine.
    #[arg(long, default_value = "2", value_name = "N")]
    processes: Count,
    /// Over plain sockets only; both ways are measured and compared otherwise.
    #[arg(long)]
    plain: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// What the processes of the benchmark are told.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ExchangeTask {
    records: u64,
    /// Worker threads of each process.
    pub(crate) workers: usize,
}

/// One way, as measured.
#[derive(Clone, Copy, Serialize)]
struct Way {
    records: u64,
    seconds: f64,
    records_per_second: f64,
    bytes_per_second: f64,
    cpu_s: f64,
    plain: bool,
    /// Whether all records arrived as they were sent.
    complete: bool,
}

#[derive(Serialize)]
struct ExchangeReport {
    processes: usize,
    workers: usize,
    /// The median of the rounds.
    #[serde(flatten)]
    way: Way,
    /// Plain sockets in the same rounds, where this is TLS.
    beside: Option<Way>,
    /// The throughput of TLS over that of plain sockets.
    times_plain: Option<f64>,
}

pub(crate) fn bench_exchange(
    args: &ExchangeArgs,
    as_text: impl Fn(ExchangeTask) -> Result<String>,
) -> Result<(bool, String)> {
    let (workers, processes) = (args.workers.0, args.processes.0);
    let task = ExchangeTask { records: args.records, workers };
    let temporary = Temporary::new();
    let folder = temporary.folder.join("keys");
    let tls = !args.plain && processes > 1;
    if tls {
        crate::launch::make(&folder, processes, 1)?;
    }
    let measure = |plain: bool| -> Result<Way> {
        let keys = (!plain).then_some(folder.as_path());
        let measured = run(&task, Placement { processes, keys, apart: false }, &as_text)?;
        Ok(Way::new(args.records, plain, &measured))
    };
    let (mut encrypted, mut plain) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        if tls {
            encrypted.push(measure(false)?);
        }
        plain.push(measure(true)?);
    }
    let complete = encrypted.iter().chain(&plain).all(|way| way.complete);
    let plain = median(plain).context("plain sockets were measured")?;
    let (way, beside) = median(encrypted).map_or((plain, None), |encrypted| (encrypted, Some(plain)));
    let times_plain = beside.map(|plain| way.records_per_second / plain.records_per_second.max(1e-9));
    let report = ExchangeReport { processes, workers, way, beside, times_plain };
    let text = match args.json {
        true => format!("{}\n", serde_json::to_string(&report).context("figures are plain data")?),
        false => report.to_string(),
    };
    Ok((complete, text))
}

fn median(mut ways: Vec<Way>) -> Option<Way> {
    ways.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    ways.get(ways.len() / 2).copied()
}

impl Way {
    fn new(records: u64, plain: bool, measured: &Measured) -> Way {
        let spans = measured.phases.iter().filter(|span| span.stage == Stage::Pairs);
        let (seconds, cpu_s) = spans.fold((0.0, 0.0), |(wall, cpu), span| (wall + span.wall_s, cpu + span.cpu_s));
        let each_second = |amount: u64| amount as f64 / seconds.max(1e-9);
        let sent: u64 = (0..records).map(mix).fold(0, u64::wrapping_add);
        Way {
            records,
            seconds,
            records_per_second: each_second(records),
            bytes_per_second: each_second(measured.exchanged.0),
            cpu_s,
            plain,
            complete: measured.sums == [records] && measured.checksum == sent,
        }
    }
}

impl Measure for ExchangeTask {
    fn workers(&self) -> usize {
        self.workers
    }

    fn measure(&self, worker: &mut Worker, _: &Arc<InProcess>, watch: &Arc<Watch>) -> Result<Counted> {
        measure_exchange(worker, self, watch)
    }
}

/// Sends and receives as one worker does it.
fn measure_exchange(worker: &mut Worker, task: &ExchangeTask, watch: &Arc<Watch>) -> Result<Counted> {
    let (index, peers) = (worker.index(), worker.peers());
    let own = index as u64 * task.records / peers as u64..(index as u64 + 1) * task.records / peers as u64;
    let received = Rc::new(Cell::new((0u64, 0u64)));
    barrier(worker, watch)?;
    watch.enter(Stage::Pairs);
    let probe = Handle::new();
    worker.dataflow::<u64, _, _>(|scope| {
        let (arrived, counted) = (probe.clone(), received.clone());
        let mut dealer = Dealer::<ExchangedRecord>::new(index, peers, watch);
        source::<_, BlockBuilder<ExchangedRecord>, _, _>(scope, "Records", |capability, info| {
            let activator = scope.activator_for(info.address);
            let (mut held, mut numbers, mut time) = (Some(capability), own, 0);
            move |output| {
                let Some(capability) = held.as_mut() else { return };
                if time > AHEAD && arrived.less_than(&(time - AHEAD)) {
                    return activator.activate_after(WAIT);
                }
                for number in numbers.by_ref().take(SOME as usize) {
                    let hash = mix(number);
                    dealer.deal(((u128::from(hash) * peers as u128) >> 64) as u64, [hash, number]);
                }
                let mut session = output.session_with_builder(&*capability);
                if numbers.is_empty() {
                    dealer.finish().for_each(|mut block| session.give_container(&mut block));
                    drop(session);
                    held = None;
                    return;
                }
                dealer.full().for_each(|mut block| session.give_container(&mut block));
                drop(session);
                time += 1;
                capability.downgrade(&time);
                activator.activate();
            }
        })
        .unary::<CapacityContainerBuilder<Vec<()>>, _, _, _>(by_part(), "Received", |_, _| {
            move |input, _output| {
                input.for_each(|_, block| {
                    let block = std::mem::take(block);
                    let (count, sum) = counted.get();
                    let more = block.records().iter().fold(sum, |sum, [hash, _]| sum.wrapping_add(*hash));
                    counted.set((count + block.records().len() as u64, more));
                })
            }
        })
        .probe_with(&probe);
    });
    run_to_end(worker, &probe, watch)?;
    barrier(worker, watch)?;
    watch.enter(Stage::Tables);
    let (count, checksum) = received.get();
    Ok(Counted { sums: vec![count], share: count, rounds: 0, checksum })
}

impl fmt::Display for Way {
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
        let records = grouped(self.way.records);
        writeln!(f, "{records} records of 16 bytes, {} process(es) of {} worker(s)", self.processes, self.workers)?;
        writeln!(f, "{}", self.way)?;
        if let (Some(plain), Some(times)) = (&self.beside, self.times_plain) {
            writeln!(f, "{plain}")?;
            writeln!(f, "TLS has {:.0}% of the throughput of plain sockets", times * 100.0)?;
        }
        Ok(())
    }
}
