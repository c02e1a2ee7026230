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

mod clusters;
mod components;
mod dataset;
mod exchange;
mod graphs;
mod meter;
mod permutation;
mod rows;
mod run;
mod sizes;
mod stages;
mod synthetic;
mod temporary;
mod texts;
mod weeks;
mod yardstick;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};

use crate::config::{Count, Job, Method, Reading, read_job};
use crate::kernels;
use crate::report::say;
use rows::Report;
pub use run::{Task, serve_task};

/// Arguments of `nigh bench`.
#[derive(Args)]
pub struct BenchArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
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
    Cluster(clusters::ClusterArgs),
    /// Connected components of made-up graphs, against a single thread.
    Components(components::ComponentsArgs),
    /// Clusters of a second week of made-up vectors, from what changed and from all of them.
    Weeks(weeks::WeeksArgs),
    /// Records between processes, over TLS and plain.
    Exchange(exchange::ExchangeArgs),
}

#[derive(Args)]
struct Crawl {
    /// Crawl files, as `run --input` takes them.
    #[arg(long, num_args = 1.., required = true, value_name = "PATH_OR_GLOB_OR_URL")]
    input: Vec<String>,
}

#[derive(Args)]
struct Texts {
    /// Crawl files whose texts are taken, as `run --input` takes them; a made-up English text if there are none.
    #[arg(long, num_args = 1.., value_name = "PATH_OR_GLOB_OR_URL")]
    input: Vec<String>,
}

#[derive(Args)]
struct Workers {
    /// Threads that go over the crawl side by side.
    #[arg(long, default_value = "1")]
    workers: Count,
}

#[derive(Args)]
struct Common {
    /// A job whose way of reading and whose method are used.
    #[arg(long)]
    job: Option<PathBuf>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// What is measured, and how.
struct Setting {
    input: Vec<String>,
    reading: Reading,
    method: Method,
    workers: usize,
    kernels: &'static kernels::Kernels,
}

impl Setting {
    fn new(input: &[String], workers: usize, common: &Common) -> Result<Setting> {
        let (reading, method) = match &common.job {
            Some(job) => match read_job(job)? {
                Job::Cluster(job) => (job.read, job.method),
                Job::Weekly(job) => (job.read, job.method.unwrap_or_default()),
                Job::Evolution(_) => bail!("{}: a benchmark takes a [cluster] or a [weekly] job", job.display()),
            },
            None => (Reading::default(), Method::default()),
        };
        let kernels = kernels::chosen()?;
        Ok(Setting { input: input.to_vec(), reading, method, workers, kernels })
    }
}

/// Runs a benchmark and prints its figures; `told` puts a task as a started process of this program understands it.
///
/// # Errors
/// Where the input cannot be read.
pub fn bench(args: &BenchArgs, told: fn(Task) -> Result<String>) -> Result<ExitCode> {
    let measure = |input: &[String], workers: usize, common: &Common, of: fn(&Setting) -> Result<Report>| {
        let report = of(&Setting::new(input, workers, common)?)?;
        if common.json {
            say(&format!("{}\n", serde_json::to_string(&report).context("figures are plain data")?))
        } else {
            say(&report.to_string())
        }
    };
    // What has another outcome than the single thread's is no benchmark.
    let checked = |(same, text): (bool, String)| {
        say(&text)?;
        Ok(if same { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    };
    match &args.what {
        What::Cluster(args) => return checked(clusters::bench_cluster(args, told)?),
        What::Components(args) => return checked(components::bench_components(args, told)?),
        What::Weeks(args) => return checked(weeks::bench_weeks(args, told)?),
        What::Exchange(args) => return checked(exchange::bench_exchange(args, told)?),
        What::Read { crawl, workers, common } => measure(&crawl.input, workers.workers.0, common, stages::read)?,
        What::Html { crawl, common } => measure(&crawl.input, 1, common, stages::html)?,
        What::Text { texts, common } => measure(&texts.input, 1, common, stages::text)?,
        What::Features { texts, workers, common } => {
            measure(&texts.input, workers.workers.0, common, stages::features)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
