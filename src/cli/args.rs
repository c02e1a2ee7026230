//! The arguments of `nigh run` and `nigh show`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

use crate::config::Count;
use crate::records::Week;

#[derive(Args)]
pub(crate) struct RunArgs {
    /// The job: what to compute (jobs/cluster.toml, for instance).
    pub(crate) job: PathBuf,
    /// The config: where to compute.
    #[arg(long)]
    pub(crate) config: Option<PathBuf>,
    /// Crawl files instead of the job's: paths, folders, globs, listings (*.paths, *.paths.gz), URLs.
    #[arg(long, num_args = 1.., value_name = "PATH_OR_GLOB_OR_URL")]
    pub(crate) input: Vec<String>,
    /// The week of the crawl, instead of the job's.
    #[arg(long, value_name = "YYYY-MM-DD")]
    pub(crate) week: Option<Week>,
    /// The folder of tables, or s3://BUCKET/PREFIX, instead of the job's.
    #[arg(long, value_name = "DIR_OR_URL")]
    pub(crate) store: Option<PathBuf>,
    /// The folder in which a store in a bucket is worked on, instead of the config's.
    #[arg(long, value_name = "DIR")]
    pub(crate) mirror: Option<PathBuf>,
    /// Worker threads of each process, instead of the config's.
    #[arg(long, value_name = "N")]
    pub(crate) workers: Option<Count>,
    /// Processes on this machine, instead of the config's.
    #[arg(long, value_name = "N")]
    pub(crate) processes: Option<Count>,
    /// Make the store's last week anew, where it is there already.
    #[arg(long)]
    pub(crate) replace: bool,
    /// Print what would be done and needed, check inputs and store, and stop.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print one JSON object on stdout, and JSON events on stderr.
    #[arg(long)]
    pub(crate) json: bool,
    /// Serve the run's counters for Prometheus, for all of its processes, at this address: 127.0.0.1:9184, for instance.
    #[arg(long, value_name = "ADDR:PORT")]
    pub(crate) metrics: Option<SocketAddr>,
    /// No progress.
    #[arg(short, long, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Print the plan before the run, and how long each part took after it (where it runs in one process).
    #[arg(short, long)]
    pub(crate) verbose: bool,
}

#[derive(Args)]
pub(crate) struct ShowArgs {
    /// The folder of tables, or s3://BUCKET/PREFIX.
    pub(crate) store: PathBuf,
    /// The week; the last one where it is not given.
    #[arg(long, value_name = "YYYY-MM-DD")]
    pub(crate) week: Option<Week>,
    /// What became of the clusters of the week before.
    #[arg(long)]
    pub(crate) changes: bool,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}
