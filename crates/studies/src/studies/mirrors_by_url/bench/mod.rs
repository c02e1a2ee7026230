//! `nigh bench mirrors-by-url`: samples, features and candidates of made-up URLs (Bharat and Broder
//! 1999).

mod url_hosts;

use std::fmt;
use std::path::PathBuf;

use anyhow::{Result, ensure};
use clap::Args;
use nigh_bench::{
    AnyBench, Bench, BenchOutcome, Measure, Measured, Placement, Seconds, Temporary, WorkerCounts, WorkerResult, run,
};
use nigh_exchange::Context;
use serde::{Deserialize, Serialize};

use self::url_hosts::UrlHosts;
use super::MirrorsByUrl;
use super::steps::{UrlCounts, UrlSource, UrlStage, UrlState, candidates, host_features, sampled_hosts};
use crate::config::{Bytes, Config, Count};
use crate::readers::ListLines;
use crate::records::{fold, mix};
use crate::sheet::grouped;
use crate::studies::Study;
use crate::watch::Stage;

/// `nigh bench mirrors-by-url`.
pub(super) const BENCH: AnyBench = AnyBench::of::<MirrorsByUrlArgs>(MirrorsByUrl::NAME);

/// The fewest URLs.
const LEAST_URLS: u64 = 10_000;

/// Samples, features and candidates of made-up URLs.
#[derive(Args)]
struct MirrorsByUrlArgs {
    /// Number of distinct URLs.
    #[arg(long, value_name = "N")]
    urls: u64,
    /// How often each URL is read, as links repeat it.
    #[arg(long, default_value = "1", value_name = "N")]
    times: u64,
    /// Worker threads of each process.
    #[arg(long, default_value = "2", value_name = "N")]
    workers: Count,
    /// Processes on this machine.
    #[arg(long, default_value = "1", value_name = "N")]
    processes: Count,
    /// Memory of all processes together for records in flight; half of the machine's by default.
    #[arg(long, value_name = "BYTES")]
    memory: Option<Bytes>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// The benchmark as each process receives it.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct MirrorsByUrlTask {
    urls: u64,
    times: u64,
    /// Worker threads of each process.
    threads: usize,
    worker_memory: u64,
    scratch: PathBuf,
}

/// What the benchmark counts; sums over workers.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct MirrorsByUrlCounts {
    /// URLs and hosts.
    urls: UrlCounts,
    /// Pairs of hosts with enough features in common.
    candidates: u64,
}

impl WorkerCounts for MirrorsByUrlCounts {
    fn merge(&mut self, other: &MirrorsByUrlCounts) {
        self.urls.add(&other.urls);
        self.candidates += other.candidates;
    }
}

/// The figures of the benchmark.
#[derive(Serialize)]
struct MirrorsByUrlReport {
    workers: usize,
    processes: usize,
    /// Of samples and features, for which URLs are read twice.
    samples: Seconds,
    /// Of candidates.
    pairs: Seconds,
    ns_per_url: f64,
    peak_anonymous_bytes: Option<u64>,
    exchanged_bytes_per_url: f64,
    #[serde(flatten)]
    counts: MirrorsByUrlCounts,
    checksum: String,
}

impl Bench for MirrorsByUrlArgs {
    type Task = MirrorsByUrlTask;

    fn bench(&self, as_text: impl Fn(MirrorsByUrlTask) -> Result<String>) -> Result<BenchOutcome> {
        ensure!(self.urls >= LEAST_URLS, "--urls {}: made-up hosts have {LEAST_URLS} URLs at least", self.urls);
        ensure!((1..=1000).contains(&self.times), "--times {}: allowed is 1 to 1000", self.times);
        let temporary = Temporary::of_process();
        let memory = self.memory.map_or_else(|| Config::default().memory(), |bytes| bytes.0);
        let task = MirrorsByUrlTask {
            urls: self.urls,
            times: self.times,
            threads: self.workers.0,
            worker_memory: memory / (self.workers.0 * self.processes.0) as u64,
            scratch: temporary.folder.join("scratch"),
        };
        let measured = run(&task, Placement::of(self.processes.0), as_text)?;
        BenchOutcome::new(true, &MirrorsByUrlReport::new(self, measured), self.json)
    }
}

/// The URLs that one worker reads, in memory.
struct MadeUrls {
    text: String,
    /// Where each URL ends.
    ends: Vec<usize>,
}

impl MadeUrls {
    /// Every URL is read `times` times, by any workers.
    fn new(task: &MirrorsByUrlTask, cx: &Context) -> MadeUrls {
        let (hosts, mut made) = (UrlHosts::new(task.urls), MadeUrls { text: String::new(), ends: Vec::new() });
        for number in 0..hosts.urls() {
            for time in 0..task.times {
                if mix(fold(&[number, time])) % cx.peers() as u64 == cx.index() as u64 {
                    hosts.url(number, &mut made.text);
                    made.ends.push(made.text.len());
                }
            }
        }
        made
    }
}

impl UrlSource for MadeUrls {
    fn each(&self, take: &mut dyn FnMut(&str, UrlState) -> Result<()>) -> Result<ListLines> {
        let mut start = 0;
        for end in &self.ends {
            take(&self.text[start..*end], UrlState::Named)?;
            start = *end;
        }
        Ok(ListLines::default())
    }
}

impl Measure for MirrorsByUrlTask {
    type Counts = MirrorsByUrlCounts;

    fn threads(&self) -> usize {
        self.threads
    }

    fn measure(&self, cx: &mut Context) -> Result<WorkerResult<MirrorsByUrlCounts>> {
        let (urls, job) = (MadeUrls::new(self, cx), MirrorsByUrl::default());
        let cx = &mut cx.with(self.worker_memory / 4, &self.scratch);
        let stage = UrlStage::new(&job);
        cx.barrier()?;
        cx.enter(Stage::Join);
        let (sample, counts) = sampled_hosts(cx, &stage, &urls)?;
        let (features, _) = host_features(cx, &stage, &urls, &sample)?;
        cx.barrier()?;
        cx.enter(Stage::Components);
        let (listed, all) = candidates(cx, &stage, features)?;
        cx.barrier()?;
        cx.enter(Stage::Tables);
        let is_first = cx.index() == 0;
        let counts = MirrorsByUrlCounts { urls: counts, candidates: if is_first { all } else { 0 } };
        let listed = listed.iter().filter(|_| is_first);
        let checksum = listed.fold(0u64, |sum, candidate| {
            let [a, b] = candidate.hosts;
            let words = [a, b, candidate.features, candidate.path_features, candidate.score().to_bits()];
            sum.wrapping_add(mix(fold(&words)))
        });
        Ok(WorkerResult { counts, checksum })
    }
}

impl MirrorsByUrlReport {
    fn new(args: &MirrorsByUrlArgs, measured: Measured<MirrorsByUrlCounts>) -> MirrorsByUrlReport {
        let samples = measured.seconds(|span| span.stage == Stage::Join);
        let pairs = measured.seconds(|span| span.stage == Stage::Components);
        let read = measured.counts.urls.read as f64;
        MirrorsByUrlReport {
            workers: args.workers.0,
            processes: args.processes.0,
            samples,
            pairs,
            ns_per_url: (samples.cpu + pairs.cpu) * 1e9 / read,
            peak_anonymous_bytes: measured.peak_anonymous_bytes,
            exchanged_bytes_per_url: measured.exchanged_bytes as f64 / read,
            counts: measured.counts,
            checksum: format!("{:016x}", measured.checksum),
        }
    }
}

impl fmt::Display for MirrorsByUrlReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let MirrorsByUrlReport { workers, processes, samples, pairs, counts, .. } = self;
        let urls = &counts.urls;
        writeln!(
            f,
            "{} URLs read, {} distinct, of {} hosts; {processes} process(es) of {workers} worker(s)",
            grouped(urls.read),
            grouped(urls.urls),
            grouped(urls.hosts)
        )?;
        writeln!(
            f,
            "{} hosts with enough URLs, {} sampled paths, {} candidates",
            grouped(urls.sampled),
            grouped(urls.paths),
            grouped(counts.candidates)
        )?;
        writeln!(
            f,
            "samples and features: {:.3} seconds, {:.3} CPU s; candidates: {:.3} seconds, {:.3} CPU s",
            samples.wall, samples.cpu, pairs.wall, pairs.cpu
        )?;
        writeln!(f, "{:.1} CPU ns a URL; exchanged {:.1} bytes a URL", self.ns_per_url, self.exchanged_bytes_per_url)?;
        if let Some(peak) = self.peak_anonymous_bytes {
            writeln!(f, "peak anonymous memory: {:.1} MiB", peak as f64 / (1 << 20) as f64)?;
        }
        writeln!(f, "checksum of candidates {}", self.checksum)
    }
}
