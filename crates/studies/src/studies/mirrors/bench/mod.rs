//! `nigh bench mirrors`: pairs of hosts of a made-up web that have enough pages in common (Fetterly
//! 2004, section 4).

mod host_clusters;

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use clap::{Args, ValueEnum};
use nigh_bench::{
    AnyBench, Bench, BenchOutcome, Measure, Measured, Placement, Seconds, Temporary, WorkerCounts, WorkerResult, run,
};
use nigh_exchange::Context;
use serde::{Deserialize, Serialize};

use self::host_clusters::HostClusters;
use super::Mirrors;
use super::steps::{Counting, Hosts, MirrorStage, raw_pairs};
use crate::config::{Bytes, Config, Count};
use crate::operators::host_pages::host_owner;
use crate::records::{fold, mix};
use crate::sheet::grouped;
use crate::structures::Sums;
use crate::studies::Study;
use crate::tables::{Table, Writer};
use crate::watch::Stage;

/// `nigh bench mirrors`.
pub(super) const BENCH: AnyBench = AnyBench::of::<MirrorsArgs>(Mirrors::NAME);

/// The fewest pages of a made-up web.
const LEAST_DOCUMENTS: u64 = 100_000;
/// Pages that two hosts have in common, at least.
const LEAST: u32 = 10;

/// Which pairs of a cluster are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum PairsOfCluster {
    /// Any two hosts
    All,
    /// One host with each other one
    Root,
}

/// Pairs of hosts of a made-up web that have enough pages in common.
#[derive(Args)]
struct MirrorsArgs {
    /// Number of pages.
    #[arg(long, value_name = "N")]
    documents: u64,
    /// Let two clusters be on a tenth of all hosts.
    #[arg(long)]
    wide: bool,
    /// Which pairs of a cluster are counted.
    #[arg(long, default_value = "all")]
    pairs: PairsOfCluster,
    /// Pairs to look at, at most.
    #[arg(long, default_value = "1000000000", value_name = "N")]
    max_pairs: u64,
    /// Worker threads of each process.
    #[arg(long, default_value = "2", value_name = "N")]
    workers: Count,
    /// Processes on this machine.
    #[arg(long, default_value = "1", value_name = "N")]
    processes: Count,
    /// Memory of all processes together for records in flight; half of the machine's by default.
    #[arg(long, value_name = "BYTES")]
    memory: Option<Bytes>,
    /// Write the pages of hosts in clusters to this Parquet file (`cluster`, `host`, `pages`), for
    /// comparison with other programs, and stop.
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// The benchmark as each process receives it.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct MirrorsTask {
    documents: u64,
    wide: bool,
    pairs: PairsOfCluster,
    max_pairs: u64,
    /// Worker threads of each process.
    threads: usize,
    worker_memory: u64,
    scratch: PathBuf,
}

/// What the benchmark counts; sums over workers.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct MirrorsBenchCounts {
    /// Pages that have near-duplicates.
    pages: u64,
    /// Hosts with such pages.
    hosts: u64,
    /// Pairs of a host and a cluster.
    entries: u64,
    /// Pairs of different hosts; at worker 0.
    pairs: u64,
    /// Hosts that are pairs with themselves; at worker 0.
    auto: u64,
}

impl WorkerCounts for MirrorsBenchCounts {
    fn merge(&mut self, other: &MirrorsBenchCounts) {
        self.pages += other.pages;
        self.hosts += other.hosts;
        self.entries += other.entries;
        self.pairs += other.pairs;
        self.auto += other.auto;
    }
}

/// The figures of the benchmark.
#[derive(Serialize)]
struct MirrorsReport {
    documents: u64,
    wide: bool,
    workers: usize,
    processes: usize,
    wall_s: f64,
    cpu_s: f64,
    cpu_ns_per_document: f64,
    peak_anonymous_bytes: Option<u64>,
    exchanged_bytes_per_document: f64,
    #[serde(flatten)]
    counts: MirrorsBenchCounts,
    checksum: String,
}

impl Bench for MirrorsArgs {
    type Task = MirrorsTask;

    fn bench(&self, as_text: impl Fn(MirrorsTask) -> Result<String>) -> Result<BenchOutcome> {
        ensure!(
            self.documents >= LEAST_DOCUMENTS,
            "--documents {}: a made-up web has {LEAST_DOCUMENTS} pages at least",
            self.documents
        );
        if let Some(file) = &self.write {
            let rows = write(&HostClusters::new(self.documents, self.wide), file)?;
            return BenchOutcome::new(true, &WrittenPairs { file: file.clone(), rows }, self.json);
        }
        let temporary = Temporary::of_process();
        let memory = self.memory.map_or_else(|| Config::default().memory(), |bytes| bytes.0);
        let task = MirrorsTask {
            documents: self.documents,
            wide: self.wide,
            pairs: self.pairs,
            max_pairs: self.max_pairs,
            threads: self.workers.0,
            worker_memory: memory / (self.workers.0 * self.processes.0) as u64,
            scratch: temporary.folder.join("scratch"),
        };
        let measured = run(&task, Placement::of(self.processes.0), as_text)?;
        BenchOutcome::new(true, &MirrorsReport::new(self, measured), self.json)
    }
}

/// The pages of a host in a cluster, for other programs.
#[derive(Table)]
#[table(name = "host-clusters")]
struct EntryRow {
    cluster: i64,
    host: i64,
    pages: i64,
}

fn write(web: &HostClusters, file: &Path) -> Result<u64> {
    let mut sums = Sums::default();
    web.pages.iter().for_each(|page| sums.add(*page, 1));
    let mut writer: Writer<EntryRow> = Writer::create(file)?;
    for ((cluster, host), pages) in sums.finish() {
        writer.push(EntryRow { cluster: cluster.into(), host: host.into(), pages: pages as i64 })?;
    }
    writer.finish()
}

/// What was written for other programs.
#[derive(Serialize)]
struct WrittenPairs {
    file: PathBuf,
    rows: u64,
}

impl fmt::Display for WrittenPairs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {} pairs of a host and a cluster", self.file.display(), grouped(self.rows))
    }
}

impl Measure for MirrorsTask {
    type Counts = MirrorsBenchCounts;

    fn threads(&self) -> usize {
        self.threads
    }

    fn measure(&self, cx: &mut Context) -> Result<WorkerResult<MirrorsBenchCounts>> {
        let (index, peers) = (cx.index(), cx.peers());
        let mut sums = Sums::default();
        let mut counts = MirrorsBenchCounts::default();
        for (cluster, host) in HostClusters::new(self.documents, self.wide).pages {
            let hash = HostClusters::hash(host);
            if host_owner(hash, peers) == index as u64 {
                sums.add((hash, u64::from(cluster)), 1);
                counts.pages += 1;
            }
        }
        let pages = sums.finish();
        let hosts = Hosts::new(&pages, &[])?;
        (counts.hosts, counts.entries) = (hosts.len() as u64, pages.len() as u64);
        drop(pages);
        let cx = &mut cx.with(self.worker_memory, &self.scratch);
        let stage = MirrorStage { least: LEAST, farm: 1000, max_pairs: self.max_pairs };
        let counting = match self.pairs {
            PairsOfCluster::All => Counting::All,
            PairsOfCluster::Root => Counting::First,
        };
        cx.barrier()?;
        cx.enter(Stage::Join);
        let raw = raw_pairs(cx, &stage, &hosts, &[], counting)?;
        cx.barrier()?;
        cx.enter(Stage::Tables);
        let mut checksum = 0u64;
        if index == 0 {
            (counts.pairs, counts.auto) = (raw.pairs.len() as u64, raw.auto.len() as u64);
            for (a, b) in &raw.pairs {
                checksum = checksum.wrapping_add(mix(fold(&[a.0, b.0])));
            }
        }
        Ok(WorkerResult { counts, checksum })
    }
}

impl MirrorsReport {
    fn new(args: &MirrorsArgs, measured: Measured<MirrorsBenchCounts>) -> MirrorsReport {
        let Seconds { wall: wall_s, cpu: cpu_s } = measured.seconds(|span| span.stage == Stage::Join);
        MirrorsReport {
            documents: args.documents,
            wide: args.wide,
            workers: args.workers.0,
            processes: args.processes.0,
            wall_s,
            cpu_s,
            cpu_ns_per_document: cpu_s * 1e9 / args.documents as f64,
            peak_anonymous_bytes: measured.peak_anonymous_bytes,
            exchanged_bytes_per_document: measured.exchanged_bytes as f64 / args.documents as f64,
            counts: measured.counts,
            checksum: format!("{:016x}", measured.checksum),
        }
    }
}

impl fmt::Display for MirrorsReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let MirrorsReport { documents, workers, processes, wall_s, cpu_s, counts, .. } = self;
        writeln!(
            f,
            "{} pages, {} of them with near-duplicates on {} hosts, {} pairs of a host and a cluster; {processes} process(es) of {workers} \
             worker(s)",
            grouped(*documents),
            grouped(counts.pages),
            grouped(counts.hosts),
            grouped(counts.entries)
        )?;
        writeln!(f, "{} pairs of hosts, {} hosts with themselves", grouped(counts.pairs), grouped(counts.auto))?;
        writeln!(
            f,
            "{wall_s:.3} seconds, {cpu_s:.3} CPU s, {:.1} CPU ns a page; exchanged {:.1} bytes a page",
            self.cpu_ns_per_document, self.exchanged_bytes_per_document
        )?;
        if let Some(peak) = self.peak_anonymous_bytes {
            writeln!(f, "peak anonymous memory: {:.1} MiB", peak as f64 / (1 << 20) as f64)?;
        }
        writeln!(f, "checksum of pairs {}", self.checksum)
    }
}
