//! `nigh bench`: measures how fast this machine does one part of the work.
//!
//! Timings are here and never in tests. The environment variable `NIGH_KERNELS` selects another
//! level of kernels than the fastest.
//!
//! In reading order: `crawl` (reading and fingerprinting, on one machine), `dataflow` (clusters,
//! components, a second week and the exchange of records, in one process or several), `job` (whole
//! runs), `live` (documents that come and go in a process that stays up), `made_up_crawl` (writes
//! crawls to measure whole runs with), `synthetic` (their made-up input), `single_thread` (the
//! sequential algorithms to compare with), `outcome` (the report, and whether the results were
//! right).
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
mod outcome;
mod single_thread;
mod synthetic;
mod temporary;

pub use self::dataflow::{BenchTask, serve_task};

use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Subcommand};

use self::crawl::{Common, Crawl, Setting, StageReport, Texts, Workers};
use self::made_up_crawl::{MadeUpCrawlArgs, make_crawl};
use self::outcome::BenchOutcome;

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
        crawl: Crawl,
        #[command(flatten)]
        workers: Workers,
        #[command(flatten)]
        common: Common,
    },
    /// HTML to text, title and links.
    Html {
        #[command(flatten)]
        crawl: Crawl,
        #[command(flatten)]
        common: Common,
    },
    /// Text to words and fingerprints of shingles (pre-images).
    Text {
        #[command(flatten)]
        texts: Texts,
        #[command(flatten)]
        common: Common,
    },
    /// Text to features, supershingles and megashingles; with --input also pages and whole crawls
    /// to features.
    Features {
        #[command(flatten)]
        texts: Texts,
        #[command(flatten)]
        workers: Workers,
        #[command(flatten)]
        common: Common,
    },
    /// Whole runs of a job on given or made-up crawls, with the share of each stage.
    Job(job::JobArgs),
    /// Clusters of made-up vectors with the study's distribution, compared with a single thread.
    Cluster(dataflow::ClusterArgs),
    /// Connected components of made-up graphs, compared with a single thread.
    Components(dataflow::ComponentsArgs),
    /// Clusters of a second week of made-up vectors: from the changed documents, and from all
    /// documents.
    Weeks(dataflow::WeeksArgs),
    /// Records sent between processes: over TLS, and over plain sockets.
    Exchange(dataflow::ExchangeArgs),
    /// Pairs of pages of a made-up web that share enough chunks.
    Overlap(dataflow::OverlapArgs),
    /// Pairs of hosts of a made-up web that have enough pages in common.
    Mirrors(dataflow::MirrorsArgs),
    /// Link statistics and collections of a made-up web.
    Collections(dataflow::CollectionsArgs),
    /// Samples, features and candidates of made-up URLs.
    MirrorsByUrl(dataflow::MirrorsByUrlArgs),
    /// Duplicates, near-duplicates and repeated paragraphs of a made-up web; or what its links lead
    /// to.
    Paragraphs(dataflow::ParagraphsArgs),
    /// A check of made-up clusters by features, beside the stage that finds their candidates.
    Verify(dataflow::VerifyArgs),
    /// Documents that come to a process that keeps clusters, in process and by HTTP; clusters that
    /// merge and split.
    #[cfg(feature = "live")]
    Live(live::LiveArgs),
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
    let crawl = |input: &[String], workers: usize, common: &Common, measure: fn(&Setting) -> Result<StageReport>| {
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
        Benchmark::Cluster(args) => dataflow::bench_cluster(args, |task| as_text(BenchTask::Cluster(task))),
        Benchmark::Components(args) => dataflow::bench_components(args, |task| as_text(BenchTask::Components(task))),
        Benchmark::Weeks(args) => dataflow::bench_weeks(args, |task| as_text(BenchTask::Weeks(task))),
        Benchmark::Exchange(args) => dataflow::bench_exchange(args, |task| as_text(BenchTask::Exchange(task))),
        Benchmark::Overlap(args) => dataflow::bench_overlap(args, |task| as_text(BenchTask::Overlap(task))),
        Benchmark::Mirrors(args) => dataflow::bench_mirrors(args, |task| as_text(BenchTask::Mirrors(task))),
        Benchmark::Collections(args) => dataflow::bench_collections(args, |task| as_text(BenchTask::Collections(task))),
        Benchmark::Verify(args) => dataflow::bench_verify(args, |task| as_text(BenchTask::Verify(task))),
        Benchmark::Paragraphs(args) => dataflow::bench_paragraphs(args, |task| as_text(BenchTask::Paragraphs(task))),
        Benchmark::MirrorsByUrl(args) => {
            dataflow::bench_mirrors_by_url(args, |task| as_text(BenchTask::MirrorsByUrl(task)))
        }
    };
    outcome?.print()
}
