//! Jobs and configs: `jobs/` says what to compute, `configs/` says where.
//!
//! Both are TOML with kebab-case keys. Unknown fields, wrong types and values out of bounds are
//! refused with file, line, column and a caret, and with what would be allowed. A job's outer table
//! is its kind (`[cluster]`). The same job under any config gives the same tables, byte for byte.

mod pool;
mod tasks;

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};
use serde::{Deserialize, Serialize};

use crate::records::{MAX_SHARDS, Week, short_hash};
pub use pool::{Destination, Host, Ports, Time, Variables};
pub use tasks::{Scheduler, Tasks};

/// What to compute: the outer table of a job file names its kind.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(clippy::large_enum_variant, reason = "a run has one job")]
pub enum Job {
    /// Near-duplicate clusters of a store's first week.
    Cluster(Cluster),
    /// Near-duplicate clusters of a later week, from what changed.
    Weekly(Weekly),
    /// How the clusters of a store's weeks evolve.
    Evolution(Evolution),
}

/// The `[cluster]` table: a crawl in, cluster tables out.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Cluster {
    /// The week of the crawl, YYYY-MM-DD.
    pub week: Option<Week>,
    /// The folder of tables that the job makes and later weeks go on from.
    pub store: Option<PathBuf>,
    /// Paths, folders, globs, listings (`*.paths`, `*.paths.gz`) and URLs of crawl files.
    pub input: Vec<String>,
    /// The job fails with exit code 3 when a larger share of the records is bad.
    pub max_reject_share: Share,
    /// Input is taken in waves of about this many bytes (as stored), committed one by one.
    pub wave_bytes: Bytes,
    /// How pages are read.
    pub read: Reading,
    /// What is computed from a page; a store holds one method for ever.
    pub method: Method,
}

impl Default for Cluster {
    fn default() -> Cluster {
        Cluster {
            week: None,
            store: None,
            input: Vec::new(),
            max_reject_share: Share(0.05),
            wave_bytes: Bytes(16 << 30),
            read: Reading::default(),
            method: Method::default(),
        }
    }
}

/// The `[weekly]` table: a later crawl in, the tables of its week out, in the store of the weeks before.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Weekly {
    /// The week of the crawl, YYYY-MM-DD: later than the weeks of the store.
    pub week: Option<Week>,
    /// The folder of tables that holds the weeks before.
    pub store: Option<PathBuf>,
    /// As for `[cluster]`.
    pub input: Vec<String>,
    /// As for `[cluster]`.
    pub max_reject_share: Share,
    /// As for `[cluster]`.
    pub wave_bytes: Bytes,
    /// How clusters are found.
    pub mode: Mode,
    /// How pages are read.
    pub read: Reading,
    /// What is computed from a page: the store's, where it is not given.
    pub method: Option<Method>,
}

impl Default for Weekly {
    fn default() -> Weekly {
        let Cluster { week, store, input, max_reject_share, wave_bytes, read, .. } = Cluster::default();
        Weekly { week, store, input, max_reject_share, wave_bytes, mode: Mode::default(), read, method: None }
    }
}

/// How the clusters of a later week are found. The tables are the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// As is predicted to be quicker.
    #[default]
    Auto,
    /// From the week before, and what changed since.
    Delta,
    /// From all pages.
    Full,
}

/// The `[evolution]` table: a store's weeks in, tables about their clusters out.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Evolution {
    /// The folder of tables that `[cluster]` made, week after week.
    pub store: Option<PathBuf>,
    /// The first week that is looked at; the store's first where it is not given.
    pub first: Option<Week>,
    /// The last week; the store's last where it is not given.
    pub last: Option<Week>,
}

/// The `[cluster.read]` table: how pages are read.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Reading {
    /// Larger bodies are cut there and counted.
    #[serde(deserialize_with = "page_bytes")]
    pub max_page_bytes: Bytes,
    /// Media types that count as pages; others are skipped and counted.
    pub media_types: Vec<String>,
    /// Put before relative paths of listings, and before the paths of HTML folders.
    pub base_url: Option<String>,
    /// Out-links kept of one page, in order of appearance.
    pub max_links: usize,
    /// Columns of JSONL and Parquet inputs.
    pub columns: Columns,
}

/// The largest `max-page-bytes`, 1 GiB: texts are addressed by 32 bits, and a body may triple when it is decoded.
const MAX_PAGE_BYTES: Bytes = Bytes(1 << 30);

fn page_bytes<'de, D: serde::Deserializer<'de>>(value: D) -> Result<Bytes, D::Error> {
    let bytes = Bytes::deserialize(value)?;
    match bytes <= MAX_PAGE_BYTES {
        true => Ok(bytes),
        false => {
            Err(serde::de::Error::custom(format!("max-page-bytes = {bytes}: allowed is at most {MAX_PAGE_BYTES}")))
        }
    }
}

impl Default for Reading {
    fn default() -> Reading {
        Reading {
            max_page_bytes: Bytes(16 << 20),
            media_types: vec!["text/html".into(), "application/xhtml+xml".into()],
            base_url: None,
            max_links: 10_000,
            columns: Columns::default(),
        }
    }
}

impl Reading {
    /// `max-page-bytes`, as a length in memory.
    pub fn page_limit(&self) -> usize {
        usize::try_from(self.max_page_bytes.0).unwrap_or(usize::MAX)
    }
}

/// The `[cluster.read.columns]` table: where JSONL and Parquet rows hold a page.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Columns {
    /// The page's URL.
    pub url: String,
    /// Its text, markup already removed.
    pub text: Option<String>,
    /// Its HTML; taken before `text` where both are named.
    pub html: Option<String>,
    /// The address of its machine.
    pub ip: Option<String>,
    /// When it was fetched, RFC 3339.
    pub date: Option<String>,
}

impl Default for Columns {
    fn default() -> Columns {
        Columns { url: "url".into(), text: Some("text".into()), html: None, ip: None, date: None }
    }
}

/// The `[cluster.method]` table: the numbers of Fetterly 2004, section 2, and how the id space is cut.
///
/// They are part of the format: a store refuses a job with others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "MethodTable", into = "MethodTable")]
pub struct Method {
    /// Words of a shingle.
    pub words: usize,
    /// Min-wise features of a document.
    pub features: usize,
    /// Supershingles, each of `features / supershingles` consecutive features.
    pub supershingles: usize,
    /// Supershingles that two very similar pages share at least.
    pub agreements: usize,
    /// Whether words are compared without case.
    pub fold_case: bool,
    /// The seed of the polynomials.
    pub seed: u64,
    /// Shards of the URL space, a power of two.
    pub shards: u32,
}

/// The method as it is written; [`Method`] is the checked form.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
struct MethodTable {
    words: usize,
    features: usize,
    supershingles: usize,
    agreements: usize,
    fold_case: bool,
    seed: u64,
    shards: u32,
}

/// More megashingles than this for one document are refused: they multiply what workers exchange.
const MAX_MEGASHINGLES: usize = 1000;

impl Default for Method {
    fn default() -> Method {
        Method {
            words: 5,
            features: 84,
            supershingles: 6,
            agreements: 2,
            fold_case: false,
            seed: 20_031_107,
            shards: 64,
        }
    }
}

impl Default for MethodTable {
    fn default() -> MethodTable {
        Method::default().into()
    }
}

impl From<Method> for MethodTable {
    fn from(m: Method) -> MethodTable {
        MethodTable {
            words: m.words,
            features: m.features,
            supershingles: m.supershingles,
            agreements: m.agreements,
            fold_case: m.fold_case,
            seed: m.seed,
            shards: m.shards,
        }
    }
}

impl TryFrom<MethodTable> for Method {
    type Error = String;

    fn try_from(t: MethodTable) -> Result<Method, String> {
        let within = |name: &str, value: usize, low: usize, high: usize| match (low..=high).contains(&value) {
            true => Ok(()),
            false => Err(format!("{name} = {value}: allowed is {low} to {high}")),
        };
        within("words", t.words, 1, 64)?;
        within("features", t.features, 1, 1024)?;
        within("supershingles", t.supershingles, 1, t.features.min(64))?;
        within("agreements", t.agreements, 1, t.supershingles)?;
        if !t.features.is_multiple_of(t.supershingles) {
            return Err(format!(
                "features = {} cannot be cut in supershingles = {}: one must be a multiple of the other",
                t.features, t.supershingles
            ));
        }
        if i64::try_from(t.seed).is_err() {
            return Err(format!("seed = {}: allowed is 0 to {}", t.seed, i64::MAX));
        }
        if !t.shards.is_power_of_two() || t.shards > MAX_SHARDS {
            return Err(format!("shards = {}: allowed are the powers of two from 1 to {MAX_SHARDS}", t.shards));
        }
        let method = Method {
            words: t.words,
            features: t.features,
            supershingles: t.supershingles,
            agreements: t.agreements,
            fold_case: t.fold_case,
            seed: t.seed,
            shards: t.shards,
        };
        match method.megashingles() {
            Some(count) if count <= MAX_MEGASHINGLES => Ok(method),
            _ => Err(format!(
                "agreements = {} of supershingles = {} gives more than {MAX_MEGASHINGLES} megashingles a document",
                t.agreements, t.supershingles
            )),
        }
    }
}

impl Method {
    /// How many megashingles a document has: the ways to choose `agreements` of `supershingles`.
    /// `None` where that is beyond counting.
    pub fn megashingles(&self) -> Option<usize> {
        (0..self.agreements).try_fold(1usize, |ways, i| Some(ways.checked_mul(self.supershingles - i)? / (i + 1)))
    }

    /// A hash of all parameters, to tell two methods apart.
    pub fn hash(&self) -> String {
        short_hash(self.to_string().as_bytes())
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "words = {}, features = {}, supershingles = {}, agreements = {}, fold-case = {}, seed = {}, shards = {}",
            self.words, self.features, self.supershingles, self.agreements, self.fold_case, self.seed, self.shards
        )
    }
}

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
    pub hosts: Vec<Host>,
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

/// A number of bytes, written as a number or with a unit: `"512MiB"`, `"16GB"`, `1048576`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "BytesText")]
pub struct Bytes(pub u64);

#[derive(Deserialize)]
#[serde(untagged, expecting = "a number of bytes, or a text such as \"512MiB\" or \"16GB\"")]
enum BytesText {
    Number(u64),
    Text(String),
}

/// Units of [`Bytes`], the longest spelling of a suffix first.
const UNITS: [(&str, u64); 10] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("kB", 1000),
    ("KB", 1000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("B", 1),
];

impl TryFrom<BytesText> for Bytes {
    type Error = String;

    fn try_from(text: BytesText) -> Result<Bytes, String> {
        match text {
            BytesText::Number(number) => Ok(Bytes(number)),
            BytesText::Text(text) => text.parse(),
        }
    }
}

impl FromStr for Bytes {
    type Err = String;

    fn from_str(text: &str) -> Result<Bytes, String> {
        let (digits, unit) = UNITS
            .iter()
            .find_map(|(suffix, unit)| Some((text.strip_suffix(suffix)?.trim_end(), *unit)))
            .unwrap_or((text, 1));
        let bytes = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(unit));
        bytes.map(Bytes).ok_or_else(|| {
            format!("`{text}` is no size: write a whole number and one of B, kB, KiB, MB, MiB, GB, GiB, TB, TiB")
        })
    }
}

impl Serialize for Bytes {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.0)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            bytes if bytes < 10 << 10 => write!(f, "{bytes} B"),
            bytes if bytes < 10 << 20 => write!(f, "{:.1} KiB", bytes as f64 / (1u64 << 10) as f64),
            bytes if bytes < 10 << 30 => write!(f, "{:.1} MiB", bytes as f64 / (1u64 << 20) as f64),
            bytes => write!(f, "{:.1} GiB", bytes as f64 / (1u64 << 30) as f64),
        }
    }
}

/// A share from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Share(pub f64);

impl TryFrom<f64> for Share {
    type Error = String;

    fn try_from(value: f64) -> Result<Share, String> {
        match (0.0..=1.0).contains(&value) {
            true => Ok(Share(value)),
            false => Err(format!("{value} is no share: allowed is 0.0 to 1.0")),
        }
    }
}

impl From<Share> for f64 {
    fn from(share: Share) -> f64 {
        share.0
    }
}

/// A number of workers or processes: 1 to 1024.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u64", into = "u64")]
pub struct Count(pub usize);

impl TryFrom<u64> for Count {
    type Error = String;

    fn try_from(value: u64) -> Result<Count, String> {
        match value {
            1..=1024 => Ok(Count(value as usize)),
            _ => Err(format!("{value}: allowed is 1 to 1024")),
        }
    }
}

impl From<Count> for u64 {
    fn from(count: Count) -> u64 {
        count.0 as u64
    }
}

impl std::str::FromStr for Count {
    type Err = String;

    fn from_str(text: &str) -> Result<Count, String> {
        text.parse::<u64>().map_err(|_| format!("`{text}` is no whole number"))?.try_into()
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
