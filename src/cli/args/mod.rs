//! The flags of `nigh run`. Each is also an environment variable: `NIGH_` and its name, in
//! capitals.

pub(super) mod fields;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

use self::fields::{FieldFlags, truth};
use crate::config::{Absent, Count, WeekName};
use crate::job_file::AnyJob;
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

#[derive(Args, Clone, Default)]
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

    /// These flags without the variables that a job of this kind has no use for: variables are
    /// there for all jobs. What was typed stays, and the job refuses it.
    pub(crate) fn for_job(&self, job: &AnyJob, is_typed: impl Fn(&str) -> bool) -> RunArgs {
        let makes_week = matches!(job, AnyJob::Cluster(_));
        let (reads_crawl, has_week, has_reference) = match job {
            AnyJob::Cluster(_) | AnyJob::Chunks(_) => (true, true, false),
            AnyJob::Study(study) => {
                let mut study = study.clone();
                (false, study.week().is_some(), study.against().is_some())
            }
        };
        let stays = |flag: &str, has_use: bool| has_use || is_typed(flag);
        let mut args = self.clone();
        args.input.retain(|_| stays("--input", reads_crawl));
        args.against.retain(|_| stays("--against", has_reference));
        args.week = args.week.filter(|_| stays("--week", has_week));
        args.absent = args.absent.filter(|_| stays("--absent", makes_week));
        args.only_older &= stays("--only-older", makes_week);
        args.allow_empty &= stays("--allow-empty", makes_week);
        args.no_accuracy &= stays("--no-accuracy", makes_week);
        args.replace &= stays("--replace", makes_week);
        args
    }

    /// The job file, as messages name it.
    pub(crate) fn job_name(&self) -> String {
        self.job.as_ref().map_or_else(|| "the built-in job".to_owned(), |job| job.display().to_string())
    }
}

/// Whether a flag stands on the command line; its value may be that of a variable.
pub(super) fn is_typed(flag: &str) -> bool {
    let is_it = |argument: OsString| {
        let rest = argument.to_str().and_then(|argument| argument.strip_prefix(flag));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
    };
    std::env::args_os().any(is_it)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::studies::AnyStudy;

    #[derive(Parser)]
    struct RunLine {
        #[command(flatten)]
        run: RunArgs,
    }

    #[test]
    fn variables_stay_for_jobs_that_have_a_use_for_them() {
        let values = ["--input", "crawl", "--against", "reference", "--week", "2024-01-08", "--absent", "keep"];
        let truths = ["--only-older", "--allow-empty", "--no-accuracy", "--replace"];
        let given = RunLine::try_parse_from([&["run"][..], &values, &truths].concat()).map(|line| line.run).unwrap();
        let truths = |args: &RunArgs| [args.only_older, args.allow_empty, args.no_accuracy, args.replace];
        for study in AnyStudy::all() {
            let (has_week, has_reference) = (study.clone().week().is_some(), study.clone().against().is_some());
            let job = AnyJob::Study(study);
            let args = given.for_job(&job, |_| false);
            assert!(args.input.is_empty() && args.absent.is_none() && truths(&args) == [false; 4]);
            assert_eq!((args.week.is_some(), args.against.is_empty()), (has_week, !has_reference));
            let args = given.for_job(&job, |_| true);
            assert!(args.input == ["crawl"] && args.absent.is_some() && truths(&args) == [true; 4]);
            assert!(args.week.is_some() && args.against == ["reference"]);
        }
    }
}
