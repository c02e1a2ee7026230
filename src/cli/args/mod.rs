//! The flags of `nigh run`. Each is also an environment variable: `NIGH_` and its name, in
//! capitals.

pub(super) mod fields;

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

use self::fields::{FieldFlags, truth};
use crate::config::{Absent, Count, WeekName};
use crate::log::{Display, Log};

/// Examples at the end of `nigh help run`.
const RUN_EXAMPLES: &str = "\
Examples:
  The first week of a store:
    nigh run --input 'crawl/*.warc.gz' --week 2024-01-08 --store crawls
  A later week:
    nigh run --input 'crawl-2/*.warc.gz' --week 2024-01-15 --store crawls
  A dataset, whose near-duplicates are at least 80% similar:
    nigh run --input 'shards/*.parquet' --store corpus --id id --text text --similarity 0.8 --verify exact
  A job of another kind, with its defaults:
    nigh run jobs/overlap.toml --store crawls

If a run is interrupted, give the same command again: it continues.

Each flag is also an environment variable, which the flag overrides: NIGH_STORE is --store, NIGH_NO_ACCURACY=true is --no-accuracy.";

#[derive(Args)]
// The text at the end says what the variables are called; after each flag they would be in the way.
#[command(after_help = RUN_EXAMPLES, mut_args(|arg| arg.hide_env(true)))]
pub(crate) struct RunArgs {
    /// Job file: what to compute. `nigh init` writes one [default: cluster a week, with the
    /// defaults of jobs/cluster.toml].
    pub(crate) job: Option<PathBuf>,
    /// Config file: where to compute [default: this machine].
    #[arg(long, env = "NIGH_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// Crawl files: paths, folders, globs, listings (*.paths, *.paths.gz), URLs, crawls of Common
    /// Crawl (cc:CC-MAIN-2024-10), or `-` for standard input. Overrides the job.
    #[arg(long, num_args = 1.., value_name = "PATH_OR_GLOB_OR_URL", env = "NIGH_INPUT")]
    pub(crate) input: Vec<String>,
    /// Compare the documents of the store with a reference, which is not clustered: files, folders,
    /// globs or URLs of benchmarks, or another store. Without a job: the defaults of
    /// jobs/decontamination.toml, whose `against` it overrides.
    #[arg(long, num_args = 1.., value_name = "PATH_OR_STORE", env = "NIGH_AGAINST")]
    pub(crate) against: Vec<String>,
    /// Week of the crawl: a date, `today`, or `monday` for the Monday of this week, both UTC.
    /// Overrides the job [default: today, or the day after the store's last week].
    #[arg(long, value_name = "YYYY-MM-DD", env = "NIGH_WEEK")]
    pub(crate) week: Option<WeekName>,
    /// Folder of all tables, or s3://BUCKET/PREFIX. Overrides the job.
    #[arg(long, value_name = "DIR_OR_URL", env = "NIGH_STORE")]
    pub(crate) store: Option<PathBuf>,
    /// Local folder for the work on a store in a bucket. Overrides the config.
    #[arg(long, value_name = "DIR", env = "NIGH_MIRROR")]
    pub(crate) mirror: Option<PathBuf>,
    /// Worker threads in each process. Overrides the config.
    #[arg(long, value_name = "N", env = "NIGH_WORKERS")]
    pub(crate) workers: Option<Count>,
    /// Processes on this machine. Overrides the config.
    #[arg(long, value_name = "N", env = "NIGH_PROCESSES")]
    pub(crate) processes: Option<Count>,
    /// What becomes of pages of the week before that the crawl does not have. Overrides the job.
    #[arg(long, value_enum, env = "NIGH_ABSENT")]
    pub(crate) absent: Option<Absent>,
    /// Of a batch that is added, only documents that duplicate one of an older batch go; those that
    /// duplicate only each other all stay. For --absent keep, as `nigh add` has it.
    #[arg(long, env = "NIGH_ONLY_OLDER", value_parser = truth())]
    pub(crate) only_older: bool,
    /// Make the week even if the input has no page.
    #[arg(long, env = "NIGH_ALLOW_EMPTY", value_parser = truth())]
    pub(crate) allow_empty: bool,
    /// Do not measure the accuracy of the clusters.
    #[arg(long, env = "NIGH_NO_ACCURACY", value_parser = truth())]
    pub(crate) no_accuracy: bool,
    /// Compute the store's last week again if it exists.
    #[arg(long, env = "NIGH_REPLACE", value_parser = truth())]
    pub(crate) replace: bool,
    /// Check inputs and store, print the plan with its memory and disk space, and stop.
    #[arg(long, env = "NIGH_DRY_RUN", value_parser = truth())]
    pub(crate) dry_run: bool,
    /// Print the summary as one JSON object on stdout, and events as JSON lines on stderr.
    #[arg(long, env = "NIGH_JSON", value_parser = truth())]
    pub(crate) json: bool,
    /// Serve metrics of all processes for Prometheus at this address, for example 127.0.0.1:9184.
    #[arg(long, value_name = "ADDR:PORT", env = "NIGH_METRICS")]
    pub(crate) metrics: Option<SocketAddr>,
    /// Write metrics of the run to this file at its end, for the textfile collector of
    /// node_exporter.
    #[arg(long, value_name = "FILE", env = "NIGH_METRICS_FILE")]
    pub(crate) metrics_file: Option<PathBuf>,
    /// Name of this run in events and in its result [default: one that no other run has].
    #[arg(long, value_name = "ID", env = "NIGH_RUN_ID")]
    pub(crate) run_id: Option<String>,
    /// Show no progress and no notices, only warnings and errors.
    #[arg(short, long, conflicts_with = "verbose", env = "NIGH_QUIET", value_parser = truth())]
    pub(crate) quiet: bool,
    /// Print the plan before the run, and the time of each stage after it (if there is one
    /// process).
    #[arg(short, long, env = "NIGH_VERBOSE", value_parser = truth())]
    pub(crate) verbose: bool,
    #[command(flatten)]
    pub(crate) fields: FieldFlags,
}

impl RunArgs {
    /// The log of the run.
    pub(crate) fn log(&self) -> Log {
        let display = Display::new(self.quiet, self.verbose, self.json);
        match &self.run_id {
            Some(run) => Log::of_run(run.clone(), display, self.json),
            None => Log::new(display, self.json),
        }
    }

    /// The job file, as messages name it.
    pub(crate) fn job_name(&self) -> String {
        self.job.as_ref().map_or_else(|| "the built-in job".to_owned(), |job| job.display().to_string())
    }
}

/// The variable of a flag.
pub(super) fn variable_of(flag: &str) -> String {
    format!("NIGH_{}", flag.to_uppercase().replace('-', "_"))
}

/// Whether a value is that of a variable, and not of a flag.
pub(super) fn is_of_variable(flag: &str, value: &std::ffi::OsStr) -> bool {
    std::env::var_os(variable_of(flag)).is_some_and(|of_variable| of_variable == *value)
}
