//! What could not be downloaded, against a plain walk over the tables and the inputs.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Instant;

use nigh::text::canonical;

use crate::program::{Made, copy_folder, data, files, job, longs, nigh, run, run_well, shipped_job, tables, texts};

/// The shipped weeks.
const WEEKS: [&str; 3] = ["2024-01-08", "2024-01-15", "2024-01-22"];

/// The folder of a shipped week's inputs.
fn crawl(week: &str) -> PathBuf {
    data(&format!("week-{week}"))
}

fn folder_of(store: &Path, week: &str) -> PathBuf {
    crate::program::week(store, week)
}

/// The weeks of a store.
fn weeks_of(store: &Path) -> Vec<String> {
    let manifest = nigh::state::Store::at(store).manifest().unwrap().unwrap();
    manifest.weeks.iter().map(|committed| committed.week.to_string()).collect()
}

/// The reason of every URL that could not be downloaded in a week of a store: URLs of the store's
/// earlier weeks without those of the week's documents; the reasons are read from the week's
/// inputs, files and folders of WARC.gz, JSONL and side files.
pub fn twin(store: &Path, week: &str, inputs: &[PathBuf]) -> BTreeMap<String, String> {
    let mut known = BTreeSet::new();
    for earlier in weeks_of(store).iter().filter(|earlier| earlier.as_str() < week) {
        let folder = folder_of(store, earlier);
        let (urls, documents) = (texts(&folder, "urls", "url"), texts(&folder, "documents", "url"));
        known.extend(urls.into_iter().chain(documents));
    }
    texts(&folder_of(store, week), "documents", "url").iter().for_each(|url| _ = known.remove(url));

    let all = inputs.iter().flat_map(walkdir::WalkDir::new).map(|entry| entry.unwrap());
    let mut paths: Vec<PathBuf> =
        all.filter(|entry| entry.file_type().is_file()).map(|entry| entry.into_path()).collect();
    paths.sort();
    let mut reasons: BTreeMap<String, String> = BTreeMap::new();
    for path in paths {
        let name = path.file_name().unwrap().to_str().unwrap();
        let failures = match name {
            _ if name.starts_with("failed") => side_file(&content(&path)),
            _ if name.ends_with(".warc.gz") => statuses(&content(&path)),
            _ => Vec::new(),
        };
        for (url, reason) in failures {
            if let Some(url) = canonical(&url) {
                reasons.entry(url.into()).or_insert(reason);
            }
        }
    }
    known.into_iter().map(|url| (url.clone(), reasons.remove(&url).unwrap_or("not seen".into()))).collect()
}

/// A file's bytes, inflated.
pub fn content(path: &Path) -> Vec<u8> {
    let stored = std::fs::read(path).unwrap();
    let mut bytes = Vec::new();
    if path.extension().is_some_and(|extension| extension == "gz") {
        flate2::read::MultiGzDecoder::new(&stored[..]).read_to_end(&mut bytes).unwrap();
    } else {
        bytes = stored;
    }
    bytes
}

pub fn side_file(bytes: &[u8]) -> Vec<(String, String)> {
    let text = std::str::from_utf8(bytes).unwrap();
    let mut lines = text.lines().map(|line| line.split('\t').collect::<Vec<_>>());
    let head = lines.next().unwrap_or_default();
    let at = |name: &str| head.iter().position(|column| *column == name).unwrap();
    lines.map(|line| (line[at("url")].to_owned(), line[at("reason")].to_owned())).collect()
}

/// The URLs of a WARC file's responses with another status than 200, with that status.
pub fn statuses(mut bytes: &[u8]) -> Vec<(String, String)> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
        let head = std::str::from_utf8(&bytes[..end]).unwrap();
        let field = |name: &str| head.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        let length: usize = field("Content-Length:").unwrap().parse().unwrap();
        let block = &bytes[end + 4..end + 4 + length];
        if field("WARC-Type:") == Some("response") {
            let status = std::str::from_utf8(&block[9..12]).unwrap();
            if status != "200" {
                found.push((field("WARC-Target-URI:").unwrap().to_owned(), format!("status {status}")));
            }
        }
        bytes = &bytes[end + 4 + length + 4..];
    }
    found
}

/// Compares `missing` of a week, and what its summary says of it, with the twin; gives the rows by
/// reason.
pub fn assert_missing_is_right(store: &Path, week: &str, inputs: &[PathBuf]) -> BTreeMap<String, u64> {
    let folder = folder_of(store, week);
    let (docs, urls) = (longs(&folder, "missing", "doc"), texts(&folder, "missing", "url"));
    let found: BTreeMap<String, String> = urls.iter().cloned().zip(texts(&folder, "missing", "reason")).collect();
    assert_eq!(found.len(), urls.len(), "every URL has one row");
    assert_eq!(found, twin(store, week, inputs), "{week}");
    // Files are read in the order of shards, which is that of ids.
    assert!(docs.is_sorted(), "{docs:?}");
    assert!(files(&folder, "missing").iter().all(|file| !file.to_str().unwrap().contains("wave")));
    let weeks = weeks_of(store).into_iter().map(|week| folder_of(store, &week));
    let ids: BTreeMap<String, i64> =
        weeks.flat_map(|week| texts(&week, "urls", "url").into_iter().zip(longs(&week, "urls", "doc"))).collect();
    assert!(urls.iter().zip(&docs).all(|(url, doc)| ids[url] == *doc));

    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    found.into_values().for_each(|reason| *counts.entry(reason).or_default() += 1);
    let summary = std::fs::read(crate::program::records(&folder).join("summary.json")).unwrap();
    let summary: serde_json::Value = serde_json::from_slice(&summary).unwrap();
    assert_eq!(summary["since"]["missing"], serde_json::to_value(&counts).unwrap());
    assert_eq!(summary["since"]["not_downloaded"], counts.values().sum::<u64>());
    counts
}

/// Makes the shipped weeks one after the other, each of its folder.
pub fn shipped_weeks(cluster: &Path, weekly: &Path, flags: &[&str]) -> Made {
    let input = crawl(WEEKS[0]);
    let made = Made::with_job(cluster, &[flags, &["--week", WEEKS[0], "--input", input.to_str().unwrap()]].concat());
    for week in &WEEKS[1..] {
        run_week(weekly, &made.store(), week, &crawl(week), flags);
    }
    made
}

/// Makes a later week of a store.
fn run_week(weekly: &Path, store: &Path, week: &str, input: &Path, flags: &[&str]) {
    run_well(&[&week_arguments(weekly, store, week, input)[..], flags].concat());
}

fn week_arguments<'a>(weekly: &'a Path, store: &'a Path, week: &'a str, input: &'a Path) -> [&'a str; 9] {
    let text = |path: &'a Path| path.to_str().unwrap();
    ["run", text(weekly), "-q", "--week", week, "--store", text(store), "--input", text(input)]
}

/// The shipped job of later weeks.
pub fn shipped_weekly_job() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("jobs/weekly.toml")
}

/// Jobs of a wave a file, a first week's and a later one's.
fn jobs_of_many_waves(folder: &Path) -> (PathBuf, PathBuf) {
    let (cluster, weekly) = (folder.join("cluster.toml"), folder.join("weekly.toml"));
    std::fs::write(&cluster, "[cluster]\nwave-bytes = 1\n[cluster.method]\nshards = 8\n").unwrap();
    std::fs::write(&weekly, "[weekly]\nwave-bytes = 1\n").unwrap();
    (cluster, weekly)
}

fn assert_same_weeks(a: &Made, b: &Made, what: &str) {
    for week in WEEKS {
        let (a, b) = (tables(&folder_of(&a.store(), week)), tables(&folder_of(&b.store(), week)));
        assert_eq!(a.keys().collect::<Vec<_>>(), b.keys().collect::<Vec<_>>(), "{what}: {week}");
        a.iter().for_each(|(name, bytes)| assert!(b[name] == *bytes, "{what}: {name} of {week} differs"));
    }
}

#[test]
fn urls_that_could_not_be_downloaded_are_listed_with_the_reason() {
    let made = shipped_weeks(&shipped_job(), &shipped_weekly_job(), &["--workers", "1"]);
    let store = made.store();
    assert!(texts(&folder_of(&store, WEEKS[0]), "missing", "url").is_empty(), "a first week misses nothing");
    let second = assert_missing_is_right(&store, WEEKS[1], &[crawl(WEEKS[1])]);
    let third = assert_missing_is_right(&store, WEEKS[2], &[crawl(WEEKS[2])]);
    assert!(second.contains_key("timeout") && second.contains_key("connection-reset"), "{second:?}");
    // Five hosts are lost in the third week, with no record and no failed row.
    assert!(third["not seen"] > 60 && third.contains_key("timeout"), "{third:?}");
    assert!(second.keys().chain(third.keys()).any(|reason| reason.starts_with("status ")), "{second:?} {third:?}");
    let shown = run_well(&["show", store.to_str().unwrap(), "--week", WEEKS[2]]).stdout;
    let line = format!("         not downloaded: {} not seen, ", third["not seen"]);
    assert!(shown.contains(&line), "{line}: {shown}");
    // Side files are counted, in a first week too.
    for (week, failed) in WEEKS.iter().zip([13, 18, 11]) {
        let shown = run_well(&["show", store.to_str().unwrap(), "--week", week]).stdout;
        assert!(shown.contains(&format!("{failed}  passed over: failed download")), "{shown}");
    }
    let other = shipped_weeks(&shipped_job(), &shipped_weekly_job(), &["--workers", "2", "--processes", "2"]);
    assert_same_weeks(&made, &other, "two workers in each of two processes");
}

#[test]
fn the_missing_urls_do_not_depend_on_waves_and_memory() {
    let folder = tempfile::tempdir().unwrap();
    let (cluster, weekly) = jobs_of_many_waves(folder.path());
    let config = folder.path().join("config.toml");
    // So little that failures spill.
    std::fs::write(&config, "memory = 40000\n").unwrap();
    let made = shipped_weeks(&cluster, &weekly, &["--workers", "1"]);
    for week in &WEEKS[1..] {
        assert_missing_is_right(&made.store(), week, &[crawl(week)]);
    }
    let flags = ["--workers", "2", "--processes", "2", "--config", config.to_str().unwrap()];
    assert_same_weeks(&made, &shipped_weeks(&cluster, &weekly, &flags), "two workers in each of two processes, 40 kB");
}

/// Writes inputs into a folder.
fn write(folder: &Path, files: &[(&str, &str)]) -> PathBuf {
    for (name, content) in files {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    folder.to_owned()
}

/// Lines of JSON, a page for each path below `http://a.example/`.
fn pages(paths: &[&str]) -> String {
    let page = |path: &&str| format!("{{\"url\": \"http://a.example/{path}\", \"text\": \"the words of {path}\"}}\n");
    paths.iter().map(page).collect()
}

#[test]
fn the_first_failure_of_a_url_counts_unless_it_has_a_page() {
    let folder = tempfile::tempdir().unwrap();
    let first = write(&folder.path().join("1"), &[("pages.jsonl", &pages(&["p", "q", "r", "s", "t", "u"]))]);
    let second = write(&folder.path().join("2"), &[("pages.jsonl", &pages(&["p", "r", "s", "t", "u", "v"]))]);
    // Among pages, since some of many waves then have failures alone; `q` was missing the week
    // before, too.
    let failed = "date\treason\turl\n\
                  \tdns\thttp://a.example/p\n\tfirst\thttp://a.example/q\n\tsecond\thttp://a.example/q\n\
                  \tdns\thttp://nowhere.example/\n\tdns\tmailto:nobody\n\ttimeout\thttp://a.example/w\n";
    let again =
        "url\treason\nhttp://a.example/q\tthird\nHTTP://A.example:80/x/../r#top\tlate\nhttp://a.example/v\tlate\n";
    let third = write(
        &folder.path().join("3"),
        &[
            ("a/failed.tsv", failed),
            ("b/pages.jsonl", &pages(&["s", "w"])),
            ("c/failed-again.tsv", again),
            ("d/pages.jsonl", &pages(&["p", "v", "x"])),
        ],
    );
    let (cluster, many) = jobs_of_many_waves(folder.path());
    let one = job(folder.path(), "[weekly]\n");
    for weekly in [one, many] {
        let input = first.to_str().unwrap();
        let made = Made::with_job(&cluster, &["--week", WEEKS[0], "--input", input, "--workers", "2"]);
        run_week(&weekly, &made.store(), WEEKS[1], &second, &["--workers", "2"]);
        run_week(&weekly, &made.store(), WEEKS[2], &third, &["--workers", "3"]);
        assert_missing_is_right(&made.store(), WEEKS[1], std::slice::from_ref(&second));
        assert_missing_is_right(&made.store(), WEEKS[2], std::slice::from_ref(&third));
        let week = folder_of(&made.store(), WEEKS[2]);
        let found: BTreeMap<String, String> =
            texts(&week, "missing", "url").into_iter().zip(texts(&week, "missing", "reason")).collect();
        let wanted = [("q", "first"), ("r", "late"), ("t", "not seen"), ("u", "not seen")];
        let wanted = wanted.map(|(path, reason)| (format!("http://a.example/{path}"), reason.to_owned()));
        assert_eq!(found, BTreeMap::from(wanted));
    }
}

#[test]
fn side_files_change_only_the_failures_of_hosts_in_a_first_week() {
    let folder = crawl(WEEKS[0]);
    let pages = folder.join("*.warc.gz");
    let [with, without] = [&folder, &pages].map(|input| Made::new(&["--input", input.to_str().unwrap()]));
    let (with, mut expected) = (with.tables(), without.tables());
    let name = expected.keys().find(|name| name.starts_with("host-failures/")).unwrap().clone();
    assert_ne!(with[&name], expected[&name]);
    expected.insert(name.clone(), with[&name].clone());
    assert!(with == expected);
}

/// A store of a first week, and the job of a second one in many waves.
fn first_week(folder: &Path) -> (Made, PathBuf) {
    let (cluster, weekly) = jobs_of_many_waves(folder);
    let input = crawl(WEEKS[0]);
    (Made::with_job(&cluster, &["--week", WEEKS[0], "--input", input.to_str().unwrap()]), weekly)
}

#[test]
fn after_a_kill_at_any_moment_a_rerun_lists_the_same_missing_urls() {
    let folder = tempfile::tempdir().unwrap();
    let (first, weekly) = first_week(folder.path());
    let undisturbed = folder.path().join("undisturbed");
    copy_folder(&first.store(), &undisturbed);
    let begun = Instant::now();
    run_week(&weekly, &undisturbed, WEEKS[1], &crawl(WEEKS[1]), &["--workers", "2"]);
    let whole = begun.elapsed();
    let wanted = tables(&folder_of(&undisturbed, WEEKS[1]));
    for (round, processes) in (1..=10).zip(["1", "2"].into_iter().cycle()) {
        let store = folder.path().join(format!("store-{round}"));
        copy_folder(&first.store(), &store);
        let input = crawl(WEEKS[1]);
        let arguments = week_arguments(&weekly, &store, WEEKS[1], &input);
        let arguments = [&arguments[..], &["--workers", "2", "--processes", processes]].concat();
        let mut child = nigh(&arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(whole * round / 10);
        child.kill().unwrap();
        child.wait().unwrap();
        run_well(&arguments);
        assert!(tables(&folder_of(&store, WEEKS[1])) == wanted, "round {round}");
        assert!(!store.join("_nigh/work").exists());
    }
}

#[test]
fn failures_of_committed_waves_are_not_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let (first, weekly) = first_week(folder.path());
    // The last file of the week is of failures alone: no shard has a page in its wave. One line of
    // it is bad.
    let input = folder.path().join("crawl");
    copy_folder(&crawl(WEEKS[1]), &input);
    let failed = input.join("failed.tsv");
    let text = std::fs::read_to_string(&failed).unwrap();
    std::fs::write(&failed, format!("{text}http://a.example/\n")).unwrap();
    let undisturbed = folder.path().join("undisturbed");
    copy_folder(&first.store(), &undisturbed);
    run_week(&weekly, &undisturbed, WEEKS[1], &input, &[]);
    assert_missing_is_right(&undisturbed, WEEKS[1], &[crawl(WEEKS[1])]);
    // A job that accepts no bad record stops when all waves are committed.
    let strict = job(folder.path(), "[weekly]\nwave-bytes = 1\nmax-reject-share = 0.0\n");
    let stopped = run(&week_arguments(&strict, &first.store(), WEEKS[1], &input));
    assert_eq!(stopped.code, Some(3), "{}", stopped.stderr);
    let store = first.store();
    let arguments = week_arguments(&weekly, &store, WEEKS[1], &input);
    let again = run_well(&arguments.into_iter().filter(|flag| *flag != "-q").collect::<Vec<_>>());
    assert!(again.stderr.contains("resuming after wave 4 of 4"), "{}", again.stderr);
    assert!(tables(&folder_of(&first.store(), WEEKS[1])) == tables(&folder_of(&undisturbed, WEEKS[1])));
}
