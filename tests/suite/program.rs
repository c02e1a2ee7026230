//! Running the program, and reading its tables.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use arrow_array::{Array, FixedSizeBinaryArray, Int64Array, StringArray};
use nigh::tables::{Scan, field};

use crate::skips::{self, Need};

/// The week of the shipped crawl that most tests use.
pub const WEEK: &str = "2024-01-08";

/// No run of the program on test data takes nearly so long: one that does hangs.
const DEADLINE: Duration = Duration::from_secs(240);

/// The shipped data.
pub fn data(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(path)
}

/// Reports that a test, or a part of it, is skipped for want of something: at once, past the test runner's capture, and
/// once more in the summary at the end.
///
/// # Panics
/// If `CI` is set and `NIGH_MAY_SKIP` does not list the need: there, what is not tested is a failure.
pub fn skipped(need: Need, test: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "SKIPPED: {test}: it needs {}", need.words());
    let mut file = std::fs::File::options().create(true).append(true).open(skips::file()).unwrap();
    // In one write, since other tests append at the same time.
    file.write_all(format!("{}\t{test}\n", need.name()).as_bytes()).unwrap();
    let is_ci = std::env::var_os("CI").is_some_and(|value| !value.is_empty());
    assert!(
        !is_ci || skips::may_be_skipped().contains(&need),
        "{test} was skipped where CI is set: it needs {}; NIGH_MAY_SKIP={} would allow that",
        need.words(),
        need.name()
    );
}

/// The large corpus beside the repository; `None`, and a skip of the test, where there is none.
pub fn corpus(path: &str, test: &str) -> Option<PathBuf> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/corpus").join(path);
    if !corpus.exists() {
        skipped(Need::Corpus, test);
        return None;
    }
    Some(corpus)
}

/// A job file in a folder of its own, with what differs from the defaults.
pub fn job(folder: &Path, text: &str) -> PathBuf {
    let path = folder.join("job.toml");
    std::fs::write(&path, text).unwrap();
    path
}

/// The shipped job.
pub fn shipped_job() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("jobs/cluster.toml")
}

/// A command of the program, run in the repository's folder.
pub fn nigh(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nigh"));
    command.args(arguments).current_dir(env!("CARGO_MANIFEST_DIR")).stdin(Stdio::null());
    command
}

/// The output of a command that ends by itself.
pub fn output(command: &mut Command) -> Output {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let out = read_all(child.stdout.take().unwrap());
    let err = read_all(child.stderr.take().unwrap());
    let begun = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if begun.elapsed() > DEADLINE {
            child.kill().unwrap();
            panic!("{command:?} did not end within {DEADLINE:?}");
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    Output { status, stdout: out.join().unwrap(), stderr: err.join().unwrap() }
}

fn read_all(mut pipe: impl std::io::Read + Send + 'static) -> std::thread::JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        pipe.read_to_end(&mut bytes).unwrap();
        bytes
    })
}

/// What a command wrote and how it ended.
pub struct Ran {
    /// The exit code; `None` when a signal ended it.
    pub code: Option<i32>,
    /// What it wrote to stdout.
    pub stdout: String,
    /// What it wrote to stderr.
    pub stderr: String,
}

/// Runs the program with these arguments.
pub fn run(arguments: &[&str]) -> Ran {
    ran(&mut nigh(arguments))
}

/// Runs a command.
pub fn ran(command: &mut Command) -> Ran {
    let output = output(command);
    Ran {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Runs the program, which must end well.
pub fn run_well(arguments: &[&str]) -> Ran {
    let ran = run(arguments);
    assert_eq!(ran.code, Some(0), "{arguments:?}\n{}\n{}", ran.stdout, ran.stderr);
    ran
}

/// A store made of the shipped week, or of other inputs, with the shipped job and more flags.
pub struct Made {
    folder: tempfile::TempDir,
}

impl Made {
    /// Runs the shipped job into a new store.
    pub fn new(flags: &[&str]) -> Made {
        Made::with_job(&shipped_job(), flags)
    }

    /// Runs a job into a new store.
    pub fn with_job(job: &Path, flags: &[&str]) -> Made {
        let made = Made { folder: tempfile::tempdir().unwrap() };
        let store = made.store();
        let mut arguments = vec!["run", job.to_str().unwrap(), "--quiet", "--store", store.to_str().unwrap()];
        arguments.extend(flags);
        run_well(&arguments);
        made
    }

    /// The store.
    pub fn store(&self) -> PathBuf {
        self.folder.path().join("store")
    }

    /// The folder of its only week.
    pub fn week(&self) -> PathBuf {
        let weeks: Vec<PathBuf> = std::fs::read_dir(self.store())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with("week="))
            .collect();
        assert_eq!(weeks.len(), 1, "{weeks:?}");
        weeks[0].clone()
    }

    /// The bytes of all its tables, by path within the week.
    pub fn tables(&self) -> BTreeMap<String, Vec<u8>> {
        tables(&self.week())
    }
}

/// Copies a folder with all that is in it.
pub fn copy_folder(from: &Path, to: &Path) {
    for entry in walkdir::WalkDir::new(from) {
        let entry = entry.unwrap();
        let target = to.join(entry.path().strip_prefix(from).unwrap());
        if entry.file_type().is_dir() {
            std::fs::create_dir_all(target).unwrap();
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// The bytes of all tables of a week, by path within its folder.
pub fn tables(week: &Path) -> BTreeMap<String, Vec<u8>> {
    walkdir::WalkDir::new(week)
        .into_iter()
        .map(|entry| entry.unwrap().into_path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "parquet"))
        .map(|path| (path.strip_prefix(week).unwrap().to_str().unwrap().to_owned(), std::fs::read(&path).unwrap()))
        .collect()
}

/// The files of a table of a week, in order.
pub fn files(week: &Path, table: &str) -> Vec<PathBuf> {
    let Ok(folder) = std::fs::read_dir(week.join(table)) else { return Vec::new() };
    let mut files: Vec<PathBuf> = folder.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// A column of signed numbers.
pub fn longs(week: &Path, table: &str, column: &str) -> Vec<i64> {
    let mut all = Vec::new();
    each(week, table, column, |array: &Int64Array| all.extend(array.values()));
    all
}

/// A column of text; null as the empty text.
pub fn texts(week: &Path, table: &str, column: &str) -> Vec<String> {
    let mut all = Vec::new();
    each(week, table, column, |array: &StringArray| {
        all.extend(array.iter().map(|text| text.unwrap_or_default().to_owned()))
    });
    all
}

/// A column of fixed-size bytes.
pub fn bytes(week: &Path, table: &str, column: &str) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    each(week, table, column, |array: &FixedSizeBinaryArray| {
        all.extend(array.iter().map(|bytes| bytes.unwrap().to_vec()))
    });
    all
}

/// Calls `take` with the column of every batch of a table.
pub fn each<A: Array + 'static>(week: &Path, table: &str, column: &str, mut take: impl FnMut(&A)) {
    for file in files(week, table) {
        let mut scan = Scan::open(&file, &[column]).unwrap();
        while let Some(batch) = scan.batch().unwrap() {
            take(field(&batch, column).unwrap());
        }
    }
}

/// Every page's supershingles, by id.
pub fn vectors(week: &Path) -> BTreeMap<i64, Vec<u64>> {
    let words = |bytes: Vec<u8>| bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
    let vectors = bytes(week, "features", "supershingles").into_iter().map(words);
    longs(week, "features", "doc").into_iter().zip(vectors).collect()
}

/// Every page's features, by id.
pub fn features(week: &Path) -> BTreeMap<i64, Vec<u32>> {
    let words = |bytes: Vec<u8>| bytes.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
    let features = bytes(week, "features", "features").into_iter().map(words);
    longs(week, "features", "doc").into_iter().zip(features).collect()
}

/// The root of every page at a level, by id.
pub fn roots(week: &Path, level: &str) -> BTreeMap<i64, i64> {
    let roots = longs(week, "clusters", &format!("{level}_root"));
    longs(week, "clusters", "doc").into_iter().zip(roots).collect()
}

/// A sequential union-find: the yardstick of every clustering.
#[derive(Default)]
pub struct UnionFind {
    parents: BTreeMap<i64, i64>,
}

impl UnionFind {
    /// The smallest member of the set of `x`.
    pub fn find(&mut self, x: i64) -> i64 {
        let parent = *self.parents.entry(x).or_insert(x);
        if parent == x {
            return x;
        }
        let root = self.find(parent);
        self.parents.insert(x, root);
        root
    }

    /// Joins two sets.
    pub fn union(&mut self, a: i64, b: i64) {
        let (a, b) = (self.find(a), self.find(b));
        self.parents.insert(a.max(b), a.min(b));
    }
}
