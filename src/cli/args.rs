//! The flags of `nigh run`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

use crate::config::{Absent, Count};
use crate::records::Week;

/// Examples at the end of `nigh help run`.
const RUN_EXAMPLES: &str = "\
Examples:
  The first week of a store:
    nigh run --input 'crawl/*.warc.gz' --week 2024-01-08 --store crawls
  A later week:
    nigh run --input 'crawl-2/*.warc.gz' --week 2024-01-15 --store crawls
  A job of another kind, with its defaults:
    nigh run jobs/overlap.toml --store crawls

If a run is interrupted, give the same command again: it continues.";

#[derive(Args)]
#[command(after_help = RUN_EXAMPLES)]
pub(crate) struct RunArgs {
    /// Job file: what to compute. `nigh init` writes one [default: cluster a week, with the defaults of jobs/cluster.toml].
    pub(crate) job: Option<PathBuf>,
    /// Config file: where to compute [default: this machine].
    #[arg(long)]
    pub(crate) config: Option<PathBuf>,
    /// Crawl files: paths, folders, globs, listings (*.paths, *.paths.gz), URLs, crawls of Common
    /// Crawl (cc:CC-MAIN-2024-10), or `-` for standard input. Overrides the job.
    #[arg(long, num_args = 1.., value_name = "PATH_OR_GLOB_OR_URL")]
    pub(crate) input: Vec<String>,
    /// Week of the crawl. Overrides the job [default: today, or the day after the store's last week].
    #[arg(long, value_name = "YYYY-MM-DD")]
    pub(crate) week: Option<Week>,
    /// Folder of all tables, or s3://BUCKET/PREFIX. Overrides the job.
    #[arg(long, value_name = "DIR_OR_URL")]
    pub(crate) store: Option<PathBuf>,
    /// Local folder for the work on a store in a bucket. Overrides the config.
    #[arg(long, value_name = "DIR")]
    pub(crate) mirror: Option<PathBuf>,
    /// Worker threads in each process. Overrides the config.
    #[arg(long, value_name = "N")]
    pub(crate) workers: Option<Count>,
    /// Processes on this machine. Overrides the config.
    #[arg(long, value_name = "N")]
    pub(crate) processes: Option<Count>,
    /// What becomes of pages of the week before that the crawl does not have. Overrides the job.
    #[arg(long, value_enum)]
    pub(crate) absent: Option<Absent>,
    /// Make the week even if the input has no page.
    #[arg(long)]
    pub(crate) allow_empty: bool,
    /// Do not measure the accuracy of the clusters.
    #[arg(long)]
    pub(crate) no_accuracy: bool,
    /// Compute the store's last week again if it exists.
    #[arg(long)]
    pub(crate) replace: bool,
    /// Check inputs and store, print the plan with its memory and disk space, and stop.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print the summary as one JSON object on stdout, and events as JSON lines on stderr.
    #[arg(long)]
    pub(crate) json: bool,
    /// Serve metrics of all processes for Prometheus at this address, for example 127.0.0.1:9184.
    #[arg(long, value_name = "ADDR:PORT")]
    pub(crate) metrics: Option<SocketAddr>,
    /// Show no progress.
    #[arg(short, long, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Print the plan before the run, and the time of each stage after it (if there is one process).
    #[arg(short, long)]
    pub(crate) verbose: bool,
}

impl RunArgs {
    /// The job file, as messages name it.
    pub(crate) fn job_name(&self) -> String {
        self.job.as_ref().map_or_else(|| "the built-in job".to_owned(), |job| job.display().to_string())
    }
}
