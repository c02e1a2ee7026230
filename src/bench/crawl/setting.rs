//! The arguments that benchmarks of stages have in common.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;

use crate::config::{Count, Job, Method, Reading, read_job};
use crate::kernels;

#[derive(Args)]
pub(crate) struct Crawl {
    /// Crawl files, as `run --input` takes them.
    #[arg(long, num_args = 1.., required = true, value_name = "PATH_OR_GLOB_OR_URL")]
    pub(crate) input: Vec<String>,
}

#[derive(Args)]
pub(crate) struct Texts {
    /// Crawl files whose texts are taken, as `run --input` takes them; a made-up English text if there are none.
    #[arg(long, num_args = 1.., value_name = "PATH_OR_GLOB_OR_URL")]
    pub(crate) input: Vec<String>,
}

#[derive(Args)]
pub(crate) struct Workers {
    /// Threads that go over the crawl side by side.
    #[arg(long, default_value = "1")]
    pub(crate) workers: Count,
}

#[derive(Args)]
pub(crate) struct Common {
    /// A job whose way of reading and whose method are used.
    #[arg(long)]
    job: Option<PathBuf>,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// What is measured, and how.
pub(crate) struct Setting {
    pub(crate) input: Vec<String>,
    pub(crate) reading: Reading,
    pub(crate) method: Method,
    pub(crate) workers: usize,
    pub(crate) kernels: &'static kernels::Kernels,
}

impl Setting {
    pub(crate) fn new(input: &[String], workers: usize, common: &Common) -> Result<Setting> {
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
