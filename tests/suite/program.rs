//! Running the program, and reading its tables.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use arrow_array::{
    Array, BinaryArray, BooleanArray, Date32Array, FixedSizeBinaryArray, Float32Array, Float64Array, Int32Array,
    Int64Array, StringArray,
};
use nigh::records::Week;
use nigh::state::{CommittedWeek, Store};
use nigh::tables::{Scan, field, result_tables, tables_of_weeks};

use crate::skips::{self, Need};

/// The week of the shipped crawl that most tests use.
pub const WEEK: &str = "2024-01-08";

/// No run of the program on test data takes nearly so long: one that does hangs.
const DEADLINE: Duration = Duration::from_secs(240);

/// The shipped data.
pub fn data(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(path)
}

/// Reports that a test, or a part of it, is skipped for want of something: at once, past the test
/// runner's capture, and once more in the summary at the end.
///
/// # Panics
/// If `CI` is set and `NIGH_MAY_SKIP` does not list the need: there, what is not tested is a
/// failure.
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
    Path::new(env!("CARGO_MANIFEST_DIR")).join("jobs/example.toml")
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

/// Runs the program and kills it, `rounds` times, at moments that are spread over `whole`, the time
/// of a whole run; calls `after` after each. Every second run has two processes.
pub fn kill_at_moments(arguments: &[&str], whole: Duration, rounds: u32, mut after: impl FnMut(u32)) {
    for (round, processes) in (0..rounds).zip(["1", "2"].into_iter().cycle()) {
        let mut child = nigh(&[arguments, &["--processes", processes]].concat())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(whole * round / rounds.saturating_sub(2).max(1));
        child.kill().unwrap();
        child.wait().unwrap();
        after(round);
    }
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

    /// Its only week, as [`week`] names it.
    pub fn week(&self) -> PathBuf {
        let folders = std::fs::read_dir(self.store().join("documents")).unwrap();
        let weeks: Vec<PathBuf> = folders.map(|entry| entry.unwrap().path()).collect();
        assert_eq!(weeks.len(), 1, "{weeks:?}");
        self.store().join(weeks[0].file_name().unwrap())
    }

    /// The bytes of all its tables, by table and number of the file.
    pub fn tables(&self) -> BTreeMap<String, Vec<u8>> {
        tables(&self.week())
    }
}

/// Checks that `nigh check` finds all files of a store as they were written.
pub fn assert_is_whole(store: &Path) {
    let checked = run_well(&["check", store.to_str().unwrap()]);
    assert!(checked.stdout.contains("are as they were written"), "{}", checked.stdout);
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

/// A week of a store, for the functions below: the path `STORE/week=DATE`. There is no such folder;
/// the tables of the week are `STORE/TABLE/week=DATE`. These functions read what the store's
/// manifest lists, and so no half of a commit.
pub fn week(store: &Path, date: &str) -> PathBuf {
    store.join(format!("week={date}"))
}

/// The store of a path that [`week`] returns, and the week's row of the manifest.
fn committed(week: &Path) -> Option<(Store, CommittedWeek)> {
    let date: Week = week.file_name()?.to_str()?.strip_prefix("week=")?.parse().ok()?;
    let store = Store::at(week.parent()?);
    let committed = store.manifest().ok()??.weeks.into_iter().find(|committed| committed.week == date)?;
    Some((store, committed))
}

/// Whether a store has a week.
pub fn has_week(week: &Path) -> bool {
    committed(week).is_some()
}

/// The folder with the records of a week: `week.json`, `job.toml` and `summary.json`.
pub fn records(week: &Path) -> PathBuf {
    let (store, committed) = committed(week).unwrap();
    store.records(&committed)
}

/// The bytes of all tables of a week, of a store or of results, by path. Numbers of commits are
/// left out of the paths: stores with the same weeks can have come to them by other commits.
pub fn tables(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let name = folder.file_name().unwrap().to_str().unwrap();
    let paths: Vec<PathBuf> = if name.starts_with("week=") {
        tables_of_weeks().flat_map(|table| files(folder, table.name)).collect()
    } else if folder.join("_nigh").exists() {
        tables_of_store(folder)
    } else {
        result_tables(name).iter().flat_map(|table| files(folder, table.name)).collect()
    };
    let root = if name.starts_with("week=") { folder.parent().unwrap() } else { folder };
    let is_commit = |part: &str| part.len() == 5 && part.bytes().all(|byte| byte.is_ascii_digit());
    let named = |path: PathBuf| {
        let parts = path.strip_prefix(root).unwrap().iter().map(|part| part.to_str().unwrap());
        let parts = parts.filter(|part| !is_commit(part) && *part != name);
        let parts =
            parts.map(|part| part.strip_prefix("nigh-").map_or(part, |numbers| numbers.split_once('-').unwrap().1));
        (parts.collect::<Vec<_>>().join("/"), std::fs::read(&path).unwrap())
    };
    paths.into_iter().map(named).collect()
}

/// The tables of all weeks and of all results, and the URLs of removed weeks.
fn tables_of_store(store: &Path) -> Vec<PathBuf> {
    let state = Store::at(store);
    let manifest = state.manifest().unwrap().unwrap();
    let weeks = manifest.weeks.iter().flat_map(|committed| state.whole(committed).unwrap().paths().collect::<Vec<_>>());
    let mut paths: Vec<PathBuf> = weeks.map(|path| store.join(path)).collect();
    if let Some(removed) = &manifest.removed {
        let folder = store.join(format!("_nigh/before={}/{:05}", removed.before, removed.commit));
        let entries = walkdir::WalkDir::new(folder).into_iter().map(|entry| entry.unwrap());
        paths.extend(entries.filter(|entry| entry.file_type().is_file()).map(|entry| entry.into_path()));
    }
    for name in manifest.results.keys() {
        paths.extend(result_tables(name).iter().flat_map(|table| files(&store.join(name), table.name)));
    }
    paths
}

/// The files of a table of a week or of results, in order.
pub fn files(folder: &Path, table: &str) -> Vec<PathBuf> {
    if let Some((store, committed)) = committed(folder) {
        let tables = store.tables(&committed).unwrap();
        return tables.all(table).iter().map(|rows| rows.path().to_owned()).collect();
    }
    let (Some(store), Some(name)) = (folder.parent(), folder.file_name().and_then(|name| name.to_str())) else {
        return Vec::new();
    };
    let results = Store::at(store).manifest().ok().flatten().map(|manifest| manifest.results);
    let Some(commit) = results.and_then(|results| results.get(name).copied()) else { return Vec::new() };
    let Ok(entries) = std::fs::read_dir(folder.join(table)) else { return Vec::new() };
    let of_commit = format!("nigh-{commit:05}-");
    let is_listed = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with(&of_commit);
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).filter(is_listed).collect();
    files.sort();
    files
}

/// A column of signed numbers.
pub fn longs(week: &Path, table: &str, column: &str) -> Vec<i64> {
    let mut all = Vec::new();
    each(week, table, column, |array: &Int64Array| all.extend(array.values()));
    all
}

/// A column of booleans.
pub fn booleans(week: &Path, table: &str, column: &str) -> Vec<bool> {
    let mut all = Vec::new();
    each(week, table, column, |array: &BooleanArray| all.extend(array.iter().map(|value| value.unwrap())));
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
    of_features(week, "supershingles").into_iter().map(|(doc, bytes)| (doc, words(bytes))).collect()
}

/// Every page's features, by id.
pub fn features(week: &Path) -> BTreeMap<i64, Vec<u16>> {
    let words = |bytes: Vec<u8>| bytes.as_chunks::<2>().0.iter().map(|word| u16::from_le_bytes(*word)).collect();
    of_features(week, "features").into_iter().map(|(doc, bytes)| (doc, words(bytes))).collect()
}

/// A column of bytes of `features` of the pages of a week, by id: as a user finds it, in the week
/// that `documents.stored` names.
pub fn of_features(of: &Path, column: &str) -> BTreeMap<i64, Vec<u8>> {
    let stored = rows_of(of, "documents", &["doc", "stored"]);
    let stored: BTreeMap<i64, String> =
        stored.into_iter().map(|row| (row[0].parse().unwrap(), row[1].clone())).collect();
    let mut all = BTreeMap::new();
    for date in stored.values().collect::<BTreeSet<_>>() {
        let of = week(of.parent().unwrap(), date);
        let rows = longs(&of, "features", "doc").into_iter().zip(bytes(&of, "features", column));
        all.extend(rows.filter(|(doc, _)| stored.get(doc) == Some(date)));
    }
    all
}

/// The root of every page at a level, by id.
pub fn roots(week: &Path, level: &str) -> BTreeMap<i64, i64> {
    let roots = longs(week, "clusters", &format!("{level}_root"));
    longs(week, "clusters", "doc").into_iter().zip(roots).collect()
}

/// A sequential union-find: the yardstick of every clustering.
#[derive(Default)]
pub struct PlainUnionFind {
    parents: BTreeMap<i64, i64>,
}

impl PlainUnionFind {
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

/// Rows of a table, each with its values as text; in no particular order.
pub type Rows = BTreeSet<Vec<String>>;

/// The rows of a table of a week or of results, in order, with the values of some columns as text.
pub fn rows_of(folder: &Path, table: &str, columns: &[&str]) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for file in files(folder, table) {
        let mut scan = Scan::open(&file, columns).unwrap();
        while let Some(batch) = scan.batch().unwrap() {
            let columns = || columns.iter().map(|name| batch.column_by_name(name).unwrap());
            rows.extend((0..batch.num_rows()).map(|at| columns().map(|column| value_text(column, at)).collect()));
        }
    }
    rows
}

/// A value as text.
pub fn value_text(column: &dyn Array, at: usize) -> String {
    let any = column.as_any();
    if column.is_null(at) {
        "null".to_owned()
    } else if let Some(texts) = any.downcast_ref::<StringArray>() {
        texts.value(at).to_owned()
    } else if let Some(longs) = any.downcast_ref::<Int64Array>() {
        longs.value(at).to_string()
    } else if let Some(ints) = any.downcast_ref::<Int32Array>() {
        ints.value(at).to_string()
    } else if let Some(dates) = any.downcast_ref::<Date32Array>() {
        dates.value_as_date(at).unwrap().to_string()
    } else if let Some(truths) = any.downcast_ref::<BooleanArray>() {
        truths.value(at).to_string()
    } else if let Some(floats) = any.downcast_ref::<Float32Array>() {
        floats.value(at).to_string()
    } else if let Some(bytes) = any.downcast_ref::<FixedSizeBinaryArray>() {
        format!("{:?}", bytes.value(at))
    } else if let Some(bytes) = any.downcast_ref::<BinaryArray>() {
        format!("{:?}", bytes.value(at))
    } else {
        any.downcast_ref::<Float64Array>().unwrap().value(at).to_string()
    }
}
