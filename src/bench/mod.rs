//! `nigh bench`: how fast this machine does one part of the work.
//!
//! Timings live here and never in tests. `NIGH_KERNELS` takes another level of kernels than the fastest.
//!
//! Of reading and fingerprinting, figures are CPU seconds of the thread that works, so that a busy machine shows
//! less, and the median of several passes: `rows` (what a measurement says), `texts` (documents to measure on),
//! `stages` (the measurements).
//!
//! Of clusters, figures are those of one run, by the clock and in CPU seconds of all processes: `clusters` and
//! `components` (the measurements), `run` (on every worker of every process), `permutation` and `sizes` (what is
//! random in made-up input), `synthetic` (vectors of any number of documents), `dataset` (these as files), `graphs`
//! (edges of some shapes), `yardstick` (one thread to compare with), `meter` (memory at its peak). Of exchange: `exchange`.

mod crawl;
mod dataflow;
mod single_thread;
mod synthetic;

pub use self::dataflow::{BenchTask, serve_task};

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Args, Subcommand};

use crate::bench::crawl::{Common, Crawl, Setting, StageReport, Texts, Workers};
use crate::report::print;

/// Arguments of `nigh bench`.
#[derive(Args)]
pub struct BenchArgs {
    #[command(subcommand)]
    what: Benchmark,
}

#[derive(Subcommand)]
enum Benchmark {
    /// Reading crawl files: decompressing, parsing records, decoding HTTP bodies.
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
    /// Text to words and pre-images of shingles.
    Text {
        #[command(flatten)]
        texts: Texts,
        #[command(flatten)]
        common: Common,
    },
    /// Text to features, supershingles and megashingles; with --input also pages and whole crawls to features.
    Features {
        #[command(flatten)]
        texts: Texts,
        #[command(flatten)]
        workers: Workers,
        #[command(flatten)]
        common: Common,
    },
    /// Clusters of made-up vectors with the study's distribution, against a single thread.
    Cluster(crate::bench::dataflow::ClusterArgs),
    /// Connected components of made-up graphs, against a single thread.
    Components(crate::bench::dataflow::ComponentsArgs),
    /// Clusters of a second week of made-up vectors, from what changed and from all of them.
    Weeks(crate::bench::dataflow::WeeksArgs),
    /// Records between processes, over TLS and plain.
    Exchange(crate::bench::dataflow::ExchangeArgs),
}

/// Runs a benchmark and prints its figures; `as_text` writes a task as a new process of this program reads it.
///
/// # Errors
/// Where the input cannot be read.
pub fn bench(args: &BenchArgs, as_text: fn(BenchTask) -> Result<String>) -> Result<ExitCode> {
    let measure = |input: &[String], workers: usize, common: &Common, of: fn(&Setting) -> Result<StageReport>| {
        let report = of(&Setting::new(input, workers, common)?)?;
        if common.json {
            print(&format!("{}\n", serde_json::to_string(&report).context("figures are plain data")?))
        } else {
            print(&report.to_string())
        }
    };
    // What has another outcome than the single thread's is no benchmark.
    let checked = |(same, text): (bool, String)| {
        print(&text)?;
        Ok(if same { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    };
    match &args.what {
        Benchmark::Cluster(args) => {
            return checked(dataflow::bench_cluster(args, |task| as_text(BenchTask::Cluster(task)))?);
        }
        Benchmark::Components(args) => {
            return checked(dataflow::bench_components(args, |task| as_text(BenchTask::Components(task)))?);
        }
        Benchmark::Weeks(args) => return checked(dataflow::bench_weeks(args, |task| as_text(BenchTask::Weeks(task)))?),
        Benchmark::Exchange(args) => {
            return checked(dataflow::bench_exchange(args, |task| as_text(BenchTask::Exchange(task)))?);
        }
        Benchmark::Read { crawl, workers, common } => {
            measure(&crawl.input, workers.workers.0, common, crate::bench::crawl::read)?
        }
        Benchmark::Html { crawl, common } => measure(&crawl.input, 1, common, crate::bench::crawl::html)?,
        Benchmark::Text { texts, common } => measure(&texts.input, 1, common, crate::bench::crawl::text)?,
        Benchmark::Features { texts, workers, common } => {
            measure(&texts.input, workers.workers.0, common, crate::bench::crawl::features)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
