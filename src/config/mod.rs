//! Job files say what to compute, config files say where. The same job makes the same tables, byte for byte, under any config.
//!
//! Both are TOML with kebab-case keys. The outer table of a job is its kind: `[cluster]`, `[chunks]`,
//! `[evolution]`, `[mirrors]`, `[overlap]`, `[collections]`, `[mirrors-by-url]`, `[paragraphs]` or `[samplers]`. Only `week`, `store` and `input`
//! have no default:
//!
//! ```
//! use nigh::config::{Bytes, Job, SameId};
//!
//! let job: Job = toml::from_str(
//!     r#"
//!     [cluster]
//!     week = "2024-01-08"
//!     store = "clusters"
//!     input = ["crawl/*.warc.gz"]
//!
//!     [cluster.read]
//!     same-id = "reject"
//!     "#,
//! )?;
//! let Job::Cluster(job) = job else { panic!("the outer table is the kind") };
//! assert_eq!((job.read.same_id, job.method), (SameId::Reject, None));
//! assert_eq!(job.wave_bytes, Bytes(16 << 30));
//! # Ok::<(), toml::de::Error>(())
//! ```
//!
//! A config has only what differs from the defaults; without a config file all defaults hold:
//!
//! ```
//! use nigh::config::{Bytes, Config};
//!
//! let config: Config = toml::from_str("workers = 8\nmemory = \"16GiB\"\n")?;
//! assert_eq!(config.workers(config.processes()), 8);
//! assert_eq!(config.memory, Some(Bytes(16 << 30)));
//! assert_eq!(config.restarts(), 3);
//! # Ok::<(), toml::de::Error>(())
//! ```
//!
//! An unknown key, a wrong type or a value out of bounds is refused. The error shows the line with a caret, and what is allowed;
//! [`read_job`] and [`read_config`] add the name of the file:
//!
//! ```
//! use nigh::config::Job;
//!
//! let error = toml::from_str::<Job>("[cluster]\nimput = []\n").unwrap_err().to_string();
//! assert!(error.contains("line 2, column 1") && error.contains("^^^^^"));
//! assert!(error.contains("unknown field `imput`, expected one of `week`, `store`, `input`"));
//! ```
//!
//! In reading order: `job` (the kinds of jobs), `overlap`, `collections`, `mirrors_by_url`, `paragraphs` and `samplers` (five of them), `method` (the
//! numbers of the study), `form` (what is done to a text before it is cut into words), `s_curve` (what they find), `preset` (numbers by name, and those for a similarity), `built_in` (the job files that come with nigh), `pool` (the machines of a config),
//! `tasks` (processes that a scheduler starts), `memory` (that of this machine).

mod built_in;
mod collections;
mod job;
mod memory;
mod mirrors_by_url;
mod mode;
mod overlap;
mod paragraphs;
mod policy;
mod pool;
mod samplers;
mod tasks;

pub use nigh_readers::reading::{Columns, Reading, SameId};
pub use nigh_readers::units::{Bytes, Count, Share, age};
pub use nigh_text::method::{
    CURVE, Chunking, Cut, Method, RECALL, STUDY, Shape, Similarity, SketchKind, Spaceless, TextForm, Unicode, Verify,
};

pub use self::built_in::{built_in_job, built_in_jobs};
pub use self::collections::{CollectionLinks, Collections, Merge, ReplicaLevel};
pub use self::job::{Chunks, Cluster, Evolution, HostPairs, Job, Keep, Mirrors, Study, Unresolved};
pub use self::mirrors_by_url::{MirrorsByUrl, Unfetched, UrlChoice};
pub use self::mode::{Absent, Mode};
pub use self::overlap::{Overlap, OverlapMethod, Unit};
pub use self::paragraphs::{Paragraphs, PartOrder};
pub use self::policy::{Candidate, Policy};
pub use self::pool::{Destination, HostTable, Ports, Variables};
pub use self::samplers::Samplers;
pub use self::tasks::{Scheduler, Tasks};

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};
use memory::machine_memory;
use pool::Time;
use serde::{Deserialize, Serialize};

/// A config file: where to compute. Every key is optional.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Config {
    /// Worker threads in each process, 1 to 1024. Default: the cores of this machine, divided by the processes. Required in a pool.
    /// All processes together have at most as many as the store has shards.
    pub workers: Option<Count>,
    /// Processes on this machine, 1 to 1024. They exchange over loopback. Default: 1. Not in a pool, nor with a scheduler.
    pub processes: Option<Count>,
    /// Memory for the buffers of all processes together. Default: half of this machine's memory, times the number of machines.
    pub memory: Option<Bytes>,
    /// Whether several workers read a large file that can be read from its middle. Default: true.
    pub split_files: Option<bool>,
    /// How often all processes are started again, from what is committed, before the run fails. Default: 3.
    pub restarts: Option<u32>,
    /// A process that reports nothing for this long is given up. At least 1 s. Default: 20 s.
    pub timeout: Option<Time>,
    /// The processes are given up if no counter of any of them moves for this long. Default: 30 min.
    pub stall: Option<Time>,
    /// The command that reaches other machines, with its options. Default: `ssh`.
    pub ssh: Option<Vec<String>>,
    /// The program on hosts without their own `binary`: a path, a name, or `copy` to send this program. Default: `nigh`.
    pub binary: Option<String>,
    /// The hosts of a pool, one `[[hosts]]` table for each process. Inputs and store must have the same paths on all of them.
    pub hosts: Vec<HostTable>,
    /// The `[tasks]` table, if a scheduler starts the processes.
    pub tasks: Option<Tasks>,
    /// The folder of keys that `nigh pool keys` made. With it, processes join by TLS. Required unless all processes are on this machine.
    pub keys: Option<PathBuf>,
    /// The local folder for the work on a store in a bucket. Default: a folder in this user's cache. Required in a pool, whose
    /// machines must all see it.
    pub mirror: Option<PathBuf>,
    /// The cores of each process, if a scheduler assigned them. Not a key of the file.
    #[serde(skip)]
    pub assigned_cores: Option<usize>,
}

impl Config {
    /// The number of workers in each process, if there are `processes` of them.
    pub fn workers(&self, processes: usize) -> usize {
        match self.workers {
            Some(count) => count.0,
            None => self
                .assigned_cores
                .unwrap_or_else(|| (std::thread::available_parallelism().map_or(1, |n| n.get()) / processes).max(1)),
        }
    }

    /// The number of processes: of the pool, or on this machine.
    pub fn processes(&self) -> usize {
        match self.hosts.len() {
            0 => self.processes.map_or(1, |count| count.0),
            hosts => hosts,
        }
    }

    /// Memory for the buffers of all processes, in bytes. The default is at least 1 GiB for each machine, and takes all machines to be
    /// as large as this one.
    pub fn memory(&self) -> u64 {
        let machines: BTreeSet<&str> = self.hosts.iter().map(|host| host.name.machine()).collect();
        let default = || (machine_memory() / 2).max(1 << 30) * machines.len().max(1) as u64;
        self.memory.map_or_else(default, |bytes| bytes.0)
    }

    /// Whether several workers read one large file.
    pub fn split_files(&self) -> bool {
        self.split_files.unwrap_or(true)
    }

    /// How often all processes are started again before the run fails.
    pub fn restarts(&self) -> u32 {
        self.restarts.unwrap_or(3)
    }

    /// How long a process may report nothing.
    pub fn timeout(&self) -> Duration {
        self.timeout.map_or(Duration::from_secs(20), |time| time.0)
    }

    /// How long the counters of all processes may stand still.
    pub fn stall(&self) -> Duration {
        self.stall.map_or(Duration::from_secs(30 * 60), |time| time.0)
    }

    /// Checks the rules that concern several keys.
    fn check(self) -> Result<Config> {
        let launcher = if self.tasks.is_some() { "[tasks]" } else { "[[hosts]]" };
        ensure!(
            cfg!(feature = "pool") || (self.hosts.is_empty() && self.tasks.is_none()),
            "{launcher}: this nigh is built without the feature `pool`, and starts processes on this machine only"
        );
        ensure!(
            self.hosts.is_empty() || self.processes.is_none(),
            "`processes` is for this machine only: a pool has one process for each [[hosts]]; list a host twice for two processes"
        );
        if let Some(tasks) = &self.tasks {
            tasks.check().map_err(|text| anyhow!("[tasks]: {text}"))?;
            ensure!(
                self.hosts.is_empty(),
                "[tasks] and [[hosts]] exclude each other: either a scheduler starts the processes, or ssh does"
            );
            ensure!(
                self.processes.is_none(),
                "`processes` is for this machine only: the scheduler decides how many tasks there are"
            );
            ensure!(
                self.keys.is_some(),
                "`keys` is missing: tasks authenticate each other by the keys that `nigh pool keys` makes"
            );
        }
        ensure!(
            self.hosts.is_empty() || self.workers.is_some(),
            "`workers` is missing: every process of a pool has the same number, and the cores of its hosts are not known here"
        );
        ensure!(
            self.timeout() >= Duration::from_secs(1),
            "timeout = {}: allowed is 1s or more",
            self.timeout.map_or(String::new(), |time| time.to_string())
        );
        ensure!(self.ssh.as_ref().is_none_or(|ssh| !ssh.is_empty()), "`ssh` is empty: give a program");
        Ok(self)
    }
}

/// Reads a job file; `jobs/NAME.toml` is built in where there is no such file, for those who have no clone.
///
/// # Errors
/// Names the file. For a mistake in it, the error shows line and column with a caret, and what is allowed.
pub fn read_job(path: &Path) -> Result<Job> {
    match std::fs::read_to_string(path) {
        Ok(text) => parse(path, &text),
        Err(error) => match built_in_of(path) {
            Some(text) if error.kind() == std::io::ErrorKind::NotFound => parse(path, text),
            _ => Err(error).with_context(|| {
                let names: Vec<&str> = built_in_jobs().collect();
                format!(
                    "cannot read the job {} (`nigh init` writes one; jobs/NAME.toml is built in, where NAME is one of {})",
                    path.display(),
                    names.join(", ")
                )
            }),
        },
    }
}

/// The built-in job that a path names, `jobs/NAME.toml`.
fn built_in_of(path: &Path) -> Option<&'static str> {
    let name = path.to_str()?.strip_prefix("jobs/")?.strip_suffix(".toml")?;
    built_in_job(name).filter(|_| name != "example")
}

/// Reads a config file, and checks the rules that concern several keys.
///
/// # Errors
/// As [`read_job`].
pub fn read_config(path: &Path) -> Result<Config> {
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("cannot read the config {} (examples are in configs/)", path.display()))?;
    parse::<Config>(path, &text)?.check().with_context(|| path.display().to_string())
}

fn parse<T: serde::de::DeserializeOwned>(path: &Path, text: &str) -> Result<T> {
    match toml::from_str(text) {
        Ok(value) => Ok(value),
        // The text of the error has the line and column, the line itself, and a caret.
        Err(error) => bail!("{}: {}", path.display(), error.to_string().trim_end()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(text: &str) -> Result<Job, String> {
        parse(Path::new("job.toml"), text).map_err(|error| format!("{error:#}"))
    }

    #[test]
    fn keys_that_a_job_leaves_out_have_defaults() {
        let Job::Cluster(cluster) =
            job("[cluster]\nweek = \"2024-01-08\"\n[cluster.method]\nagreements = 3\n").unwrap()
        else {
            panic!("the outer table is the kind");
        };
        assert_eq!(cluster.week.unwrap().to_string(), "2024-01-08");
        assert_eq!(cluster.method.unwrap(), Method { agreements: 3, ..Method::default() });
        assert_eq!(cluster.read.max_page_bytes, Bytes(16 << 20));
    }

    #[test]
    fn a_typo_is_shown_with_its_place_and_what_is_allowed() {
        let error = job("[cluster]\nweek = \"2024-01-08\"\nimput = []\n").unwrap_err();
        assert!(error.contains("job.toml") && error.contains("line 3, column 1"), "{error}");
        assert!(error.contains('^') && error.contains("expected one of") && error.contains("`input`"), "{error}");
        let error = job("[clutser]\n").unwrap_err();
        assert!(error.contains("`clutser`") && error.contains("`cluster`") && error.contains("line 1"), "{error}");
    }

    #[test]
    fn numbers_out_of_bounds_are_refused_where_they_stand() {
        for (text, wanted) in [
            ("[cluster.method]\nfeatures = 83\n", "features = 83 cannot be divided"),
            ("[cluster.method]\nagreements = 7\n", "agreements = 7: allowed is 1 to 6"),
            ("[cluster.method]\nwords = 0\n", "words = 0: allowed is 1 to 64"),
            ("[cluster.method]\nshards = 48\n", "powers of two"),
            ("[cluster.method]\nfeatures = 64\nsupershingles = 64\nagreements = 30\n", "megashingles"),
            ("[cluster]\nweek = \"last\"\n", "YYYY-MM-DD"),
            ("[cluster]\nmax-reject-share = 2.0\n", "allowed is 0.0 to 1.0"),
            ("[cluster.read]\nmax-page-bytes = \"16 potatoes\"\n", "is not a size"),
            ("[cluster.read]\nmax-page-bytes = \"2GiB\"\n", "allowed is at most 1.0 GiB"),
        ] {
            let error = job(text).unwrap_err();
            assert!(error.contains(wanted) && error.contains("line ") && error.contains('^'), "{error}");
        }
    }
}
