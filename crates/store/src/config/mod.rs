//! Job files say what to compute, config files say where. The same job makes the same tables, byte
//! for byte, under any config.
//!
//! Both are TOML with kebab-case keys. Job files are read by `job_file`, in the package of the
//! studies.
//!
//! A config has only what differs from the defaults; without a config file all defaults hold:
//!
//! ```
//! use nigh_store::config::{Bytes, Config};
//!
//! let config: Config = toml::from_str("workers = 8\nmemory = \"16GiB\"\n")?;
//! assert_eq!(config.workers(config.processes()), 8);
//! assert_eq!(config.memory, Some(Bytes(16 << 30)));
//! assert_eq!(config.restarts().to_string(), "3 in 10min");
//! # Ok::<(), toml::de::Error>(())
//! ```
//!
//! In reading order: `job` (the jobs that make weeks; studies have their own), `mode` and
//! `week_name` (two of their keys), `canonical`, `policy` and `terms` (which documents of a cluster
//! stay), `pool` (the machines of a config),
//! `restarts` (how often its processes are started again), `tasks` (processes that a scheduler
//! starts), `memory` (that of this machine).

mod canonical;
mod job;
mod memory;
mod mode;
mod policy;
mod pool;
mod restarts;
mod tasks;
mod terms;
mod week_name;

pub use nigh_readers::reading::{Columns, Reading, SameId, TextColumns};
pub use nigh_readers::units::{Bytes, Count, Share, age};
pub use nigh_text::method::{
    CURVE, Chunking, Content, Cut, Method, RECALL, STUDY, Shape, Similarity, SketchKind, Spaceless, TextForm, Unicode,
    Verify,
};

pub use self::canonical::{Canonical, CanonicalOrder, ChosenSoFar, DocumentOrder};
pub use self::job::{Chunks, Cluster, Keep};
pub use self::mode::{Absent, Mode};
pub use self::policy::{DocumentFacts, Policy};
pub use self::pool::{HostTable, Ports, SshDestination, Variables};
pub use self::restarts::Restarts;
pub use self::tasks::{Scheduler, Tasks};
pub use self::terms::{Term, TermKey};
pub use self::week_name::WeekName;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use self::pool::Time;
use anyhow::{Context, Result, anyhow, bail, ensure};
use memory::machine_memory;
use serde::{Deserialize, Serialize};

/// A config file: where to compute. Every key is optional.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Config {
    /// Worker threads in each process, 1 to 1024. Default: the cores of this machine, divided by
    /// the processes. Required in a pool. All processes together have at most four for each shard
    /// of the store.
    pub workers: Option<Count>,
    /// Processes on this machine, 1 to 1024. They exchange over loopback. Default: 1. Not in a
    /// pool, nor with a scheduler.
    pub processes: Option<Count>,
    /// Memory for the buffers of all processes together. Default: half of this machine's memory,
    /// times the number of machines.
    pub memory: Option<Bytes>,
    /// Whether several workers read a large file that can be read from its middle. Default: true.
    pub split_files: Option<bool>,
    /// Whether what is read of a wave is kept until the wave is committed, so that a run that is
    /// interrupted does not read it again. Default: false.
    pub keep_read: Option<bool>,
    /// How often all processes are started again, from what is committed, before the run fails: a
    /// number in all, such as 3, or a rate, such as `3 in 10min`, of which only restarts since the
    /// last progress count. Default: 3 in 10min.
    pub restarts: Option<Restarts>,
    /// With how many processes a run on several machines goes on, if the others are missing for
    /// longer than `grace`. Default: all.
    pub min_processes: Option<Count>,
    /// How long a host or task may be missing before the run goes on without it, where
    /// `min-processes` allows that. Default: 5 min.
    pub grace: Option<Time>,
    /// How often at most a host or task that is back is taken in. Default: 10 min.
    pub rejoin: Option<Time>,
    /// A process that reports nothing for this long is given up. At least 1 s. Default: 20 s.
    pub timeout: Option<Time>,
    /// The processes are given up if no counter of any of them moves for this long. Default: 30
    /// min.
    pub stall: Option<Time>,
    /// The command that reaches other machines, with its options. Default: `ssh`.
    pub ssh: Option<Vec<String>>,
    /// The program on hosts without their own `binary`: a path, a name, or `copy` to send this
    /// program. Default: `nigh`.
    pub binary: Option<String>,
    /// The hosts of a pool, one `[[hosts]]` table for each process. Inputs and store must have the
    /// same paths on all of them.
    pub hosts: Vec<HostTable>,
    /// The `[tasks]` table, if a scheduler starts the processes.
    pub tasks: Option<Tasks>,
    /// The folder of keys that `nigh pool keys` made. With it, processes join by TLS. Required
    /// unless all processes are on this machine.
    pub keys: Option<PathBuf>,
    /// The local folder for the work on a store in a bucket. Default: a folder in this user's
    /// cache. Required in a pool, whose machines must all see it.
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

    /// Memory for the buffers of all processes, in bytes. The default is at least 1 GiB for each
    /// machine, and takes all machines to be as large as this one.
    pub fn memory(&self) -> u64 {
        let machines: BTreeSet<&str> = self.hosts.iter().map(|host| host.name.machine()).collect();
        let default = || (machine_memory() / 2).max(1 << 30) * machines.len().max(1) as u64;
        self.memory.map_or_else(default, |bytes| bytes.0)
    }

    /// Whether several workers read one large file.
    pub fn split_files(&self) -> bool {
        self.split_files.unwrap_or(true)
    }

    /// Whether what is read of a wave is kept until the wave is committed.
    pub fn keep_read(&self) -> bool {
        self.keep_read.unwrap_or(false)
    }

    /// How often all processes are started again before the run fails.
    pub fn restarts(&self) -> Restarts {
        self.restarts.unwrap_or_default()
    }

    /// How long a host may be missing before the run goes on without it.
    pub fn grace(&self) -> Duration {
        self.grace.map_or(Duration::from_secs(5 * 60), |time| time.0)
    }

    /// How often at most a host that is back is taken in.
    pub fn rejoin(&self) -> Duration {
        self.rejoin.map_or(Duration::from_secs(10 * 60), |time| time.0)
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
        if let Some(Count(min)) = self.min_processes {
            ensure!(
                !self.hosts.is_empty() || self.tasks.is_some(),
                "`min-processes` is for machines of a pool and tasks of a scheduler: a process of this machine can be started again"
            );
            ensure!(
                self.tasks.is_some() || min <= self.hosts.len(),
                "min-processes = {min}: there are only {} [[hosts]]",
                self.hosts.len()
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

/// Reads a config file, and checks the rules that concern several keys.
///
/// # Errors
/// Names the file. For a mistake in it, the error shows line and column with a caret, and what is
/// allowed.
pub fn read_config(path: &Path) -> Result<Config> {
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("cannot read the config {} (examples are in configs/)", path.display()))?;
    parse::<Config>(path, &text)?.check().with_context(|| path.display().to_string())
}

/// Reads the text of a file. An error has its name, the line and the column, the line itself, and a
/// caret.
pub fn parse<T: serde::de::DeserializeOwned>(path: &Path, text: &str) -> Result<T> {
    match toml::from_str(text) {
        Ok(value) => Ok(value),
        Err(error) => bail!("{}: {}", path.display(), error.to_string().trim_end()),
    }
}
