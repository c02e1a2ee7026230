//! `nigh bench`: how fast this machine does one part of the work, on one core.
//!
//! Figures are CPU seconds of the thread that works, so that a busy machine shows less. Timings live here and
//! never in tests.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use serde::Serialize;

use crate::config::{Config, Method, Reading, read_job};
use crate::features::{Fingerprinter, polynomials};
use crate::readers::{self, Body, Item};
use crate::report::say;
use crate::text::urls;

/// Arguments of `nigh bench`.
#[derive(Args)]
pub struct BenchArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Reading crawl files: decompressing, parsing records, decoding HTTP bodies.
    Read(InputArgs),
    /// Fingerprinting pages that are in memory: charset, markup, words, shingles, features.
    Features(InputArgs),
}

#[derive(Args)]
struct InputArgs {
    /// Crawl files, as `run --input` takes them.
    #[arg(long, num_args = 1.., required = true, value_name = "PATH_OR_GLOB_OR_URL")]
    input: Vec<String>,
    /// A job whose way of reading and whose method are used.
    #[arg(long)]
    job: Option<PathBuf>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// What one run of a benchmark measured.
#[derive(Clone, Debug, Default, Serialize)]
struct Figures {
    /// What was measured.
    stage: &'static str,
    /// Bytes of page bodies.
    bytes: u64,
    /// Bytes of the inputs, as stored.
    stored_bytes: u64,
    /// Pages.
    documents: u64,
    /// Words of their texts; 0 where texts were not looked at.
    words: u64,
    /// CPU seconds.
    cpu_s: f64,
    /// Seconds.
    wall_s: f64,
    /// Megabytes (10^6) of bodies a CPU second.
    mb_per_s: f64,
    /// Pages a CPU second.
    documents_per_s: f64,
}

/// Runs a benchmark and prints its figures.
///
/// # Errors
/// Where the input cannot be read.
pub fn bench(args: &BenchArgs) -> Result<ExitCode> {
    let (input, features) = match &args.what {
        What::Read(input) => (input, false),
        What::Features(input) => (input, true),
    };
    let (reading, method) = match &input.job {
        Some(job) => {
            let crate::config::Job::Cluster(job) = read_job(job)?;
            (job.read, job.method)
        }
        None => (Reading::default(), Method::default()),
    };
    let figures = if features { bench_features(input, &reading, &method)? } else { bench_read(input, &reading)? };
    if input.json {
        say(&format!("{}\n", serde_json::to_string(&figures).context("figures are plain data")?))?;
    } else {
        say(&format!(
            "{}: {} pages, {:.1} MB of bodies ({:.1} MB stored), {} words\n{:.3} CPU s, {:.3} s: {:.1} MB/s and {:.0} pages/s a core\n",
            figures.stage,
            figures.documents,
            figures.bytes as f64 / 1e6,
            figures.stored_bytes as f64 / 1e6,
            figures.words,
            figures.cpu_s,
            figures.wall_s,
            figures.mb_per_s,
            figures.documents_per_s
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Calls `each` for every page of the inputs; returns the bytes of the inputs.
fn pages(args: &InputArgs, reading: &Reading, mut each: impl FnMut(readers::Page)) -> Result<u64> {
    let inputs = readers::list(&args.input, reading)?;
    for input in &inputs {
        let mut reader = readers::open(input, reading)?;
        while let Some(item) = reader.next().with_context(|| format!("cannot read {}", input.name))? {
            if let Item::Page(page) = item {
                each(page);
            }
        }
    }
    Ok(inputs.iter().map(|input| input.bytes).sum())
}

fn bench_read(args: &InputArgs, reading: &Reading) -> Result<Figures> {
    // Once unmeasured: the files are then in the page cache, as far as it holds them.
    pages(args, reading, |_| {})?;
    let mut figures = Figures { stage: "read", ..Figures::default() };
    let clock = Clock::start();
    figures.stored_bytes = pages(args, reading, |page| {
        figures.documents += 1;
        figures.bytes += body_bytes(&page.body);
    })?;
    Ok(clock.stop(figures))
}

fn bench_features(args: &InputArgs, reading: &Reading, method: &Method) -> Result<Figures> {
    let mut all = Vec::new();
    let memory = Config::default().memory();
    let mut figures = Figures { stage: "features", ..Figures::default() };
    figures.stored_bytes = pages(args, reading, |page| {
        if figures.bytes + body_bytes(&page.body) <= memory {
            figures.bytes += body_bytes(&page.body);
            all.push(page);
        }
    })?;
    figures.documents = all.len() as u64;
    let mut fingerprinter = Fingerprinter::new(method, &polynomials(method.seed, method.features), reading.max_links);
    let clock = Clock::start();
    for page in &all {
        let Some(url) = urls::canonical(&page.url) else { continue };
        let label = page.charset.as_deref();
        let facts = match &page.body {
            Body::Html(body) => fingerprinter.html(body, label, &url),
            Body::Plain(body) => fingerprinter.plain(body, label),
            Body::Text(text) => fingerprinter.text(text),
        };
        figures.words += facts.words;
    }
    Ok(clock.stop(figures))
}

fn body_bytes(body: &Body) -> u64 {
    match body {
        Body::Html(bytes) | Body::Plain(bytes) => bytes.len() as u64,
        Body::Text(text) => text.len() as u64,
    }
}

/// Wall and CPU time of this thread.
struct Clock {
    wall: Instant,
    cpu: f64,
}

fn thread_cpu() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

impl Clock {
    fn start() -> Clock {
        Clock { wall: Instant::now(), cpu: thread_cpu() }
    }

    fn stop(self, figures: Figures) -> Figures {
        let (cpu_s, wall_s) = (thread_cpu() - self.cpu, self.wall.elapsed().as_secs_f64());
        let per_second = |count: u64| count as f64 / cpu_s.max(1e-9);
        Figures {
            cpu_s,
            wall_s,
            mb_per_s: per_second(figures.bytes) / 1e6,
            documents_per_s: per_second(figures.documents),
            ..figures
        }
    }
}
