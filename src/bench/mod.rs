//! `nigh bench`: measures how fast this machine does one part of the work.
//!
//! Timings are here and never in tests. The environment variable `NIGH_KERNELS` selects another
//! level of kernels than the fastest.
//!
//! What benchmarks share is in `crates/bench`; those of studies lie in the folders of the studies.
//!
//! In reading order: `crawl` (reading and fingerprinting, on one machine), `dataflow` (clusters,
//! components, a second week, the exchange of records, and the benchmarks of studies, in one
//! process or several), `job` (whole runs), `live` (documents that come and go in a process that
//! stays up), `made_up_crawl` (writes crawls to measure whole runs with).
//!
//! The figures of `crawl` are the CPU seconds of the working thread, so that other programs on the
//! machine disturb them less, and the median of several passes. The figures of `dataflow` are
//! wall-clock seconds, and CPU seconds of all processes.

mod crawl;
mod dataflow;
mod job;
#[cfg(feature = "live")]
mod live;
mod made_up_crawl;

pub use self::dataflow::serve_task;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Subcommand};
use nigh_bench::{BenchOutcome, BenchTask};

use self::crawl::{CrawlArgs, CrawlBenchArgs, Setting, StageReport, TextArgs, WorkerArgs};
use self::made_up_crawl::{MadeUpCrawlArgs, make_crawl};
use crate::report::print;

/// Arguments of `nigh bench`.
#[derive(Args)]
pub struct BenchArgs {
    #[command(subcommand)]
    benchmark: Benchmark,
}

#[derive(Subcommand)]
enum Benchmark {
    /// Reading crawl files: decompress them, parse records, decode HTTP bodies.
    Read {
        #[command(flatten)]
        crawl: CrawlArgs,
        #[command(flatten)]
        workers: WorkerArgs,
        #[command(flatten)]
        common: CrawlBenchArgs,
    },
    /// HTML to text, title and links.
    Html {
        #[command(flatten)]
        crawl: CrawlArgs,
        #[command(flatten)]
        common: CrawlBenchArgs,
    },
    /// Text to words and fingerprints of shingles (pre-images).
    Text {
        #[command(flatten)]
        texts: TextArgs,
        #[command(flatten)]
        common: CrawlBenchArgs,
    },
    /// Text to features, supershingles and megashingles; with --input also pages and whole crawls
    /// to features.
    Features {
        #[command(flatten)]
        texts: TextArgs,
        #[command(flatten)]
        workers: WorkerArgs,
        #[command(flatten)]
        common: CrawlBenchArgs,
    },
    /// Whole runs of a job on given or made-up crawls, with the share of each stage.
    Job(job::JobArgs),
    #[command(flatten)]
    Dataflow(dataflow::DataflowBench),
    /// Documents that come to a process that keeps clusters, in process and by HTTP; clusters that
    /// merge and split.
    #[cfg(feature = "live")]
    Live(live::LiveBenchArgs),
    /// Write the crawl of a made-up web, or a dataset of its texts: input for measuring whole runs.
    Crawl(MadeUpCrawlArgs),
}

/// Runs a benchmark and prints its report. `as_text` formats a task as a new process of this
/// program reads it.
///
/// The exit code is 1 if the results differ from those of the single thread.
///
/// # Errors
/// If the input cannot be read, or the benchmark fails in any process.
pub fn bench(args: &BenchArgs, as_text: fn(BenchTask) -> Result<String>) -> Result<ExitCode> {
    let crawl =
        |input: &[String], workers: usize, common: &CrawlBenchArgs, measure: fn(&Setting) -> Result<StageReport>| {
            let report = measure(&Setting::new(input, workers, common)?)?;
            BenchOutcome::new(true, &report, common.json)
        };
    let outcome = match &args.benchmark {
        Benchmark::Crawl(args) => match make_crawl(args)? {
            Some(outcome) => Ok(outcome),
            None => return Ok(ExitCode::SUCCESS),
        },
        Benchmark::Read { crawl: files, workers, common } => {
            crawl(&files.input, workers.workers.0, common, crawl::read)
        }
        Benchmark::Html { crawl: files, common } => crawl(&files.input, 1, common, crawl::html),
        Benchmark::Text { texts, common } => crawl(&texts.input, 1, common, crawl::text),
        Benchmark::Features { texts, workers, common } => {
            crawl(&texts.input, workers.workers.0, common, crawl::features)
        }
        Benchmark::Job(args) => job::bench_job(args),
        #[cfg(feature = "live")]
        Benchmark::Live(args) => live::bench_live(args),
        Benchmark::Dataflow(bench) => bench.run(as_text),
    };
    let outcome = outcome?;
    print(outcome.report())?;
    Ok(if outcome.is_correct() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
