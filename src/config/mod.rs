//! Jobs and configs: `jobs/` says what to compute, `configs/` says where.
//!
//! Both are TOML with kebab-case keys. Unknown fields, wrong types and values out of bounds are
//! refused with file, line, column and a caret, and with what would be allowed. A job's outer table
//! is its kind (`[cluster]`). The same job under any config gives the same tables, byte for byte.

mod job;
mod method;
mod pool;
mod tasks;
mod units;

pub use self::job::{Cluster, Columns, Evolution, Job, Mode, Reading, Weekly};
pub use self::method::Method;
pub use self::pool::{Destination, HostTable, Ports, Variables};
pub use self::tasks::{Scheduler, Tasks};
pub use self::units::{Bytes, Count, Share, age};

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};
use pool::Time;
use serde::{Deserialize, Serialize};

/// Where to compute: the whole of a config file.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Config {
    /// Worker threads of each process; all cores, shared between the processes, where it is not given.
    pub workers: Option<Count>,
    /// Processes on this machine, which exchange over loopback; 1 where it is not given.
    pub processes: Option<Count>,
    /// Memory that the buffers of all processes together may take; half of each machine's where it is not given, taking
    /// all machines for as large as this one.
    pub memory: Option<Bytes>,
    /// How often a run whose processes ended badly is started anew, from what is committed; 3 where it is not given.
    pub restarts: Option<u32>,
    /// A process that says nothing for so long is given up; 20 s where it is not given.
    pub timeout: Option<Time>,
    /// A run in which nothing moves for so long is given up; 30 min where it is not given.
    pub stall: Option<Time>,
    /// The command that reaches other machines, with its options; `ssh` where it is not given.
    pub ssh: Option<Vec<String>>,
    /// The program on the hosts that do not say it; `copy` sends this one along, `nigh` where it is not given.
    pub binary: Option<String>,
    /// The processes of a pool, one each; inputs and store must have the same paths on all of them.
    pub hosts: Vec<HostTable>,
    /// The processes where a scheduler starts them.
    pub tasks: Option<Tasks>,
    /// A folder of pool keys (`nigh pool keys`): processes join by TLS.
    pub keys: Option<PathBuf>,
    /// The folder in which a store in a bucket is worked on; one of this user's cache where it is not given. A pool must say it:
    /// all of its machines see it.
    pub mirror: Option<PathBuf>,
}

impl Config {
    /// Worker threads of each of so many processes.
    pub fn workers(&self, processes: usize) -> usize {
        match self.workers {
            Some(count) => count.0,
            None => (std::thread::available_parallelism().map_or(1, |n| n.get()) / processes).max(1),
        }
    }

    /// Processes in all: those of the pool, or on this machine.
    pub fn processes(&self) -> usize {
        match self.hosts.len() {
            0 => self.processes.map_or(1, |count| count.0),
            hosts => hosts,
        }
    }

    /// Memory for buffers, in bytes.
    pub fn memory(&self) -> u64 {
        let machines: BTreeSet<&str> = self.hosts.iter().map(|host| host.name.machine()).collect();
        let all = || (machine_memory() / 2).max(1 << 30) * machines.len().max(1) as u64;
        self.memory.map_or_else(all, |bytes| bytes.0)
    }

    /// How often a run is started anew.
    pub fn restarts(&self) -> u32 {
        self.restarts.unwrap_or(3)
    }

    /// How long a process may say nothing.
    pub fn timeout(&self) -> Duration {
        self.timeout.map_or(Duration::from_secs(20), |time| time.0)
    }

    /// For how long nothing may move.
    pub fn stall(&self) -> Duration {
        self.stall.map_or(Duration::from_secs(30 * 60), |time| time.0)
    }

    /// Checks what no field can tell alone.
    fn check(self) -> Result<Config> {
        let launcher = if self.tasks.is_some() { "[tasks]" } else { "[[hosts]]" };
        ensure!(
            cfg!(feature = "pool") || (self.hosts.is_empty() && self.tasks.is_none()),
            "{launcher}: this nigh is built without the feature `pool`, and starts processes on this machine only"
        );
        ensure!(
            self.hosts.is_empty() || self.processes.is_none(),
            "`processes` is for this machine alone: a pool has as many as it has [[hosts]]; list a host twice for two on it"
        );
        if let Some(tasks) = &self.tasks {
            tasks.check().map_err(|text| anyhow!("[tasks]: {text}"))?;
            ensure!(
                self.hosts.is_empty(),
                "[tasks] and [[hosts]]: either a scheduler starts the processes, or ssh does"
            );
            ensure!(
                self.processes.is_none(),
                "`processes` is for this machine alone: the scheduler says how many tasks there are"
            );
            ensure!(
                self.keys.is_some(),
                "`keys` is missing: tasks know each other by the keys that `nigh pool keys` makes"
            );
        }
        ensure!(
            self.hosts.is_empty() || self.workers.is_some(),
            "`workers` is missing: a pool has as many in every process, and what its hosts have is not known here"
        );
        ensure!(
            self.timeout() >= Duration::from_secs(1),
            "timeout = {}: allowed is 1s or more",
            self.timeout.map_or(String::new(), |time| time.to_string())
        );
        ensure!(self.ssh.as_ref().is_none_or(|ssh| !ssh.is_empty()), "`ssh` names no program");
        Ok(self)
    }
}

/// The memory in bytes that this process may use, or 4 GiB where the system does not tell: the machine's, or what its
/// control group allows (a container or a batch job has less than its host).
fn machine_memory() -> u64 {
    #[cfg(target_os = "linux")]
    {
        let info = rustix::system::sysinfo();
        let machine = info.totalram as u64 * u64::from(info.mem_unit.max(1));
        group_memory().unwrap_or(u64::MAX).min(machine)
    }
    #[cfg(not(target_os = "linux"))]
    {
        4 << 30
    }
}

/// The smallest limit of this process' control group and those above it (version 2).
#[cfg(target_os = "linux")]
fn group_memory() -> Option<u64> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let group = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let limit = |path: &Path| {
        let path = Path::new("/sys/fs/cgroup").join(path).join("memory.max");
        std::fs::read_to_string(path).ok()?.trim().parse::<u64>().ok()
    };
    Path::new(group).ancestors().filter_map(limit).min()
}

impl From<Share> for f64 {
    fn from(share: Share) -> f64 {
        share.0
    }
}

impl From<Count> for u64 {
    fn from(count: Count) -> u64 {
        count.0 as u64
    }
}

/// Reads a job file.
///
/// # Errors
/// Names the file and, for mistakes within it, line and column with a caret and what is allowed.
pub fn read_job(path: &Path) -> Result<Job> {
    let text = std::fs::read_to_string(path).with_context(|| {
        format!("cannot read the job {} (the ones that come with nigh are in jobs/)", path.display())
    })?;
    parse(path, &text)
}

/// Reads a config file.
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
        // The error's own text has line, column, the line itself and a caret under what was found.
        Err(error) => bail!("{}: {}", path.display(), error.to_string().trim_end()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::job::Job;
    use crate::config::method::Method;
    use crate::config::units::{Bytes, BytesText};

    fn job(text: &str) -> Result<Job, String> {
        parse(Path::new("job.toml"), text).map_err(|error| format!("{error:#}"))
    }

    #[test]
    fn a_job_says_only_what_differs() {
        let Job::Cluster(cluster) =
            job("[cluster]\nweek = \"2024-01-08\"\n[cluster.method]\nagreements = 3\n").unwrap()
        else {
            panic!("the outer table is the kind");
        };
        assert_eq!(cluster.week.unwrap().to_string(), "2024-01-08");
        assert_eq!(cluster.method, Method { agreements: 3, ..Method::default() });
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
            ("[cluster.method]\nfeatures = 83\n", "features = 83 cannot be cut"),
            ("[cluster.method]\nagreements = 7\n", "agreements = 7: allowed is 1 to 6"),
            ("[cluster.method]\nwords = 0\n", "words = 0: allowed is 1 to 64"),
            ("[cluster.method]\nshards = 48\n", "powers of two"),
            ("[cluster.method]\nfeatures = 64\nsupershingles = 64\nagreements = 30\n", "megashingles"),
            ("[cluster]\nweek = \"last\"\n", "YYYY-MM-DD"),
            ("[cluster]\nmax-reject-share = 2.0\n", "allowed is 0.0 to 1.0"),
            ("[cluster.read]\nmax-page-bytes = \"16 potatoes\"\n", "is no size"),
            ("[cluster.read]\nmax-page-bytes = \"2GiB\"\n", "allowed is at most 1024.0 MiB"),
        ] {
            let error = job(text).unwrap_err();
            assert!(error.contains(wanted) && error.contains("line ") && error.contains('^'), "{error}");
        }
    }

    #[test]
    fn sizes_have_units() {
        let bytes = |text: &str| Bytes::try_from(BytesText::Text(text.into())).map(|b| b.0);
        assert_eq!(bytes("2GiB"), Ok(2 << 30));
        assert_eq!(bytes("2 GB"), Ok(2_000_000_000));
        assert_eq!(bytes("7"), Ok(7));
        assert!(bytes("-1B").is_err() && bytes("99999999999TiB").is_err());
    }

    #[test]
    fn megashingles_are_the_choices_of_supershingles() {
        let count =
            |supershingles, agreements| Method { supershingles, agreements, ..Method::default() }.megashingles();
        assert_eq!((count(6, 2), count(6, 6), count(6, 1), count(12, 3)), (Some(15), Some(1), Some(6), Some(220)));
    }
}
