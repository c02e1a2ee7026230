//! `nigh bench job`: whole runs of a job, with the share of each stage.
//!
//! A run is that of `nigh run`, in a process of its own, into a temporary store. Its first stage
//! reads, fingerprints and writes rows record by record; reading and fingerprinting are measured
//! once more by themselves, on one thread, so that their shares are known.

use std::fmt;
use std::path::Path;
use std::process::Stdio;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use nigh_bench::{BenchOutcome, Temporary};
use serde::{Deserialize, Serialize};

use super::crawl::{CrawlBenchArgs, Setting, WorkDone, crawl_once};
use super::made_up_crawl::{CrawlFormat, MadeUpCrawlArgs, write_files};
use crate::config::Count;
use crate::launch::program_command;
use crate::sheet::grouped;
use crate::watch::{Span, Stage};

/// Arguments of `nigh bench job`.
#[derive(Args)]
pub(crate) struct JobArgs {
    /// Crawl files, as for `run --input`.
    #[arg(long, num_args = 1.., required_unless_present = "documents", value_name = "PATH_OR_GLOB_OR_URL")]
    input: Vec<String>,
    /// Number of documents of a made-up crawl, which is written first; as `bench crawl`.
    #[arg(long, conflicts_with = "input", value_name = "N")]
    documents: Option<u64>,
    /// Format of the made-up crawl.
    #[arg(long, value_enum, default_value_t = CrawlFormat::WarcGz)]
    format: CrawlFormat,
    /// Threads of the run.
    #[arg(long, default_value = "1", value_name = "N")]
    workers: Count,
    /// Runs; the one with the median of CPU seconds is reported.
    #[arg(long, default_value = "3", value_name = "N")]
    runs: Count,
    #[command(flatten)]
    common: CrawlBenchArgs,
}

/// What an event of a run says about its stages; see `Log::spans`.
#[derive(Deserialize)]
struct LoggedEvent {
    event: String,
    #[serde(default)]
    stages: Vec<Span>,
    #[serde(default)]
    message: String,
}

/// The time of one run.
struct TimedRun {
    /// Seconds of the process, from its start to its end.
    wall_s: f64,
    stages: Vec<Span>,
}

impl TimedRun {
    /// CPU seconds of all stages.
    fn cpu_s(&self) -> f64 {
        self.stages.iter().map(|span| span.cpu_s).sum()
    }
}

/// One line of the report.
#[derive(Serialize)]
struct ShareRow {
    stage: String,
    /// Seconds by the clock; none for a part of a stage.
    wall_s: Option<f64>,
    cpu_s: f64,
    /// The share of the CPU seconds of the run.
    share: f64,
}

/// The figures of the benchmark.
#[derive(Serialize)]
struct JobReport {
    workers: usize,
    runs: usize,
    documents: u64,
    words: u64,
    /// Bytes of the pages in the input: without compression, and without the records around them.
    bytes: u64,
    /// Bytes of a made-up crawl, without compression.
    crawl_bytes: Option<u64>,
    wall_s: f64,
    cpu_s: f64,
    mb_per_s: f64,
    mb_per_cpu_s: f64,
    rows: Vec<ShareRow>,
}

/// Runs the job some times, and reports the median run.
///
/// # Errors
/// If the input cannot be read, or a run fails: with its message.
pub(crate) fn bench_job(args: &JobArgs) -> Result<BenchOutcome> {
    let temporary = Temporary::of_process();
    let mut input = args.input.clone();
    let mut crawl_bytes = None;
    if let Some(documents) = args.documents {
        let crawl = temporary.folder.join("crawl");
        crawl_bytes = Some(write_files(&MadeUpCrawlArgs::new(documents, &crawl, args.format))?.bytes);
        input = vec![crawl.join("*").display().to_string()];
    }
    let setting = Setting::new(&input, args.workers.0, &args.common)?;
    // The first pass takes the files into the page cache.
    crawl_once(&setting, false)?;
    let (reading_s, _) = crawl_once(&setting, false)?;
    let (features_s, work) = crawl_once(&setting, true)?;
    let mut runs = Vec::new();
    for number in 0..args.runs.0 {
        // Stores stay until the end: to remove files, or to make new ones soon after, would count
        // in the next run.
        let store = temporary.folder.join(format!("store-{number}"));
        runs.push(run(args.common.job.as_deref(), &input, args.workers.0, &store)?);
    }
    runs.sort_by(|a, b| a.cpu_s().total_cmp(&b.cpu_s()));
    let median = runs.swap_remove(runs.len() / 2);
    let report = JobReport::new(args, &median, (reading_s, features_s), work, crawl_bytes);
    BenchOutcome::new(true, &report, args.common.json)
}

/// Runs the job once into a new store.
fn run(job: Option<&Path>, input: &[String], workers: usize, store: &Path) -> Result<TimedRun> {
    let mut command = program_command()?;
    command.arg("run").args(job).arg("--input").args(input).args(["--workers", &workers.to_string(), "--json"]);
    command.arg("--store").arg(store).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let begun = Instant::now();
    let ended = command.output().context("cannot run this program")?;
    let wall_s = begun.elapsed().as_secs_f64();
    let events = String::from_utf8_lossy(&ended.stderr);
    let events: Vec<LoggedEvent> = events.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    if !ended.status.success() {
        let message = events.iter().rfind(|event| event.event == "error").map(|event| event.message.as_str());
        bail!("the run failed ({}): {}", ended.status, message.unwrap_or("it says no reason"));
    }
    let stages = events.into_iter().find(|event| event.event == "stages").map(|event| event.stages);
    let stages = stages.context("the run does not say how long its stages took")?;
    ensure!(!stages.is_empty(), "the run has no stages");
    Ok(TimedRun { wall_s, stages })
}

impl JobReport {
    /// The report of a run, of whose first stage reading, and reading and fingerprinting, take so
    /// many CPU seconds.
    fn new(
        args: &JobArgs,
        run: &TimedRun,
        (reading_s, features_s): (f64, f64),
        work: WorkDone,
        crawl_bytes: Option<u64>,
    ) -> JobReport {
        let cpu_s = run.cpu_s().max(1e-9);
        let row = |stage: &str, wall_s, seconds: f64| ShareRow {
            stage: stage.to_owned(),
            wall_s,
            cpu_s: seconds,
            share: seconds / cpu_s,
        };
        let mut rows = Vec::new();
        for Span { stage, wall_s, cpu_s } in &run.stages {
            rows.push(row(stage.title(), Some(*wall_s), *cpu_s));
            if *stage == Stage::Read {
                rows.push(row("  records", None, reading_s));
                rows.push(row("  features", None, features_s - reading_s));
                rows.push(row("  rows of pages", None, cpu_s - features_s));
            }
        }
        let megabytes = work.bytes as f64 / 1e6;
        JobReport {
            workers: args.workers.0,
            runs: args.runs.0,
            documents: work.documents,
            words: work.words,
            bytes: work.bytes,
            crawl_bytes,
            wall_s: run.wall_s,
            cpu_s,
            mb_per_s: megabytes / run.wall_s.max(1e-9),
            mb_per_cpu_s: megabytes / cpu_s,
            rows,
        }
    }
}

impl fmt::Display for JobReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let JobReport { workers, runs, documents, words, bytes, .. } = self;
        let (documents, words, megabytes) = (grouped(*documents), grouped(*words), grouped(bytes / 1_000_000));
        writeln!(f, "{documents} pages, {words} words, {megabytes} MB of page content")?;
        if let Some(bytes) = self.crawl_bytes {
            writeln!(f, "made-up crawl of {} MB before compression", grouped(bytes / 1_000_000))?;
        }
        writeln!(
            f,
            "workers: {workers}; the run with the median of CPU seconds, of {runs}; records and features by one thread"
        )?;
        writeln!(f, "{:<22} {:>9} {:>9} {:>7}", "stage", "seconds", "CPU s", "share")?;
        for ShareRow { stage, wall_s, cpu_s, share } in &self.rows {
            let wall = wall_s.map_or_else(String::new, |seconds| format!("{seconds:.3}"));
            writeln!(f, "{stage:<22} {wall:>9} {cpu_s:>9.3} {:>6.1}%", 100.0 * share)?;
        }
        writeln!(f, "{:<22} {:>9.3} {:>9.3}", "whole run", self.wall_s, self.cpu_s)?;
        writeln!(f, "{:.0} MB/s by the clock, {:.0} MB in a CPU second", self.mb_per_s, self.mb_per_cpu_s)
    }
}
