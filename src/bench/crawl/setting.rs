//! The arguments that the benchmarks of crawl stages share, and what follows from them.

use std::path::PathBuf;

use anyhow::{Result, bail, ensure};
use clap::Args;

use crate::config::{Cluster, Count, Method, Reading};
use crate::job_file::{AnyJob, read_job};
use crate::kernels;

/// Crawl files, which must be given.
#[derive(Args)]
pub(crate) struct CrawlArgs {
    /// Crawl files, as for `run --input`.
    #[arg(long, num_args = 1.., required = true, value_name = "PATH_OR_GLOB_OR_URL")]
    pub(crate) input: Vec<String>,
}

/// Crawl files, which may be left out.
#[derive(Args)]
pub(crate) struct TextArgs {
    /// Crawl files to take texts from, as for `run --input`; by default a made-up English-like
    /// text.
    #[arg(long, num_args = 1.., value_name = "PATH_OR_GLOB_OR_URL")]
    pub(crate) input: Vec<String>,
}

/// Threads, for benchmarks that can use several.
#[derive(Args)]
pub(crate) struct WorkerArgs {
    /// Threads that read the crawl in parallel.
    #[arg(long, default_value = "1")]
    pub(crate) workers: Count,
}

/// Arguments of all these benchmarks.
#[derive(Args)]
pub(crate) struct CrawlBenchArgs {
    /// Job file whose way of reading and whose method are used; by default the default parameters.
    #[arg(long)]
    pub(crate) job: Option<PathBuf>,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// The input of a benchmark, and the parameters to measure with.
pub(crate) struct Setting {
    pub(crate) input: Vec<String>,
    pub(crate) reading: Reading,
    pub(crate) method: Method,
    /// Whether the job keeps chunks.
    pub(crate) chunks: bool,
    pub(crate) workers: usize,
    pub(crate) kernels: &'static kernels::Kernels,
}

impl Setting {
    /// Reads the job, if one is given, and chooses the kernels.
    ///
    /// # Errors
    /// If the job cannot be read or has no crawl as input, or `NIGH_KERNELS` names a level that
    /// this machine lacks.
    pub(crate) fn new(input: &[String], workers: usize, common: &CrawlBenchArgs) -> Result<Setting> {
        let job = match &common.job {
            Some(job) => match read_job(job)? {
                AnyJob::Cluster(job) => job,
                _ => bail!("{}: a benchmark needs a [cluster] job", job.display()),
            },
            None => Cluster::default(),
        };
        let mut method = job.method.map(|given| given.method).unwrap_or_default();
        let (reading, chunks) = (job.read, job.keep.chunks);
        method.content = reading.content.unwrap_or(method.content);
        method.content.check()?;
        method.rule.check()?;
        let kernels = kernels::chosen()?;
        Ok(Setting { input: input.to_vec(), reading, method, chunks, workers, kernels })
    }

    /// Checks that the job makes words of texts and texts of pages as the single stages do.
    ///
    /// # Errors
    /// If it has another rule of words, form or content.
    pub(crate) fn check_stages(&self) -> Result<()> {
        let (method, default) = (&self.method, Method::default());
        let is_default = (&method.rule, method.form, method.content) == (&default.rule, default.form, default.content);
        ensure!(
            is_default,
            "the stages are measured with whole pages and with words of letters and digits as they are, and the job has another rule of \
             words, form or content: `nigh bench read` and `nigh bench job` measure it"
        );
        Ok(())
    }
}
