//! Later weeks, from the tables of a former run and from what changed since, on stores with random
//! histories.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::random_numbers;
use super::twin::{OverlapSettings, assert_families_are_right, assert_right, rows};
use crate::program::{copy_folder, job, kill_at_moments, run, run_well, tables};

const WEEKS: [&str; 4] = ["2024-01-08", "2024-01-15", "2024-01-22", "2024-01-29"];

/// A store with a random history: pages change their texts, come, go, and become copies of others.
struct RandomHistory {
    folder: tempfile::TempDir,
    /// The number of the text of each page; 0 if it is not there.
    texts: Vec<u64>,
    random: Box<dyn FnMut(u64) -> u64>,
    weeks: usize,
}

impl RandomHistory {
    fn new(seed: u64, count: usize) -> RandomHistory {
        let mut random = random_numbers(seed);
        let texts = (0..count).map(|_| random(count as u64)).collect();
        let mut made =
            RandomHistory { folder: tempfile::tempdir().unwrap(), texts, random: Box::new(random), weeks: 0 };
        made.commit();
        made
    }

    fn store(&self) -> PathBuf {
        self.folder.path().join("store")
    }

    fn week(&self) -> &'static str {
        WEEKS[self.weeks - 1]
    }

    /// Changes about one page in `one_in`, and commits a week.
    fn next_week(&mut self, one_in: u64) {
        let count = self.texts.len() as u64;
        for page in 0..self.texts.len() {
            if (self.random)(one_in) == 0 {
                let text = match (self.random)(4) {
                    0 => 0,
                    1 => self.texts[(self.random)(count) as usize],
                    _ => (self.random)(1 << 40),
                };
                self.texts[page] = text;
            }
        }
        self.commit();
    }

    fn commit(&mut self) {
        let page = |(number, text): (usize, &u64)| {
            let url = format!("http://h{}.example/page{number}", number % 7);
            serde_json::json!({"url": url, "text": text_of(*text), "ip": format!("10.0.0.{}", number % 3)}).to_string()
        };
        let pages = self.texts.iter().enumerate().filter(|(_, text)| **text > 0);
        let lines: String = pages.map(|it| page(it) + "\n").collect();
        let kind = if self.weeks == 0 { "cluster" } else { "weekly" };
        let input = self.folder.path().join("pages.jsonl");
        std::fs::write(&input, lines).unwrap();
        let text = format!("[{kind}]\nallow-empty = true\n[{kind}.read.columns]\nip = \"ip\"\n");
        let path = job(self.folder.path(), &text);
        let (store, input) = (self.store(), input.to_str().unwrap().to_owned());
        let flags = ["-q", "--week", WEEKS[self.weeks], "--input", &input, "--store", store.to_str().unwrap()];
        run_well(&[&["run", path.to_str().unwrap()][..], &flags].concat());
        self.weeks += 1;
    }
}

/// The text with a number: most are like one of three templates with lines left out.
fn text_of(number: u64) -> String {
    let mut random = random_numbers(number);
    let kind = random(5);
    let mut lines: Vec<String> = Vec::new();
    if kind < 3 {
        let least = 40 + random(20);
        let has = (0..70).filter(|line| *line < least || random(10) > 0);
        lines.extend(has.map(|line| format!("template {kind} has line {line}")));
    }
    let from = random(40);
    lines.extend((from..from + random(30)).map(|line| format!("some pages say {line} of this")));
    lines.extend((0..random(6)).map(|line| format!("only text {number} says {line}")));
    if random(8) == 0 {
        // Equal except for lines that no other page has.
        lines = (0..60).map(|line| format!("copied text {} with line {line}", number % 2)).collect();
        lines.push(format!("only text {number} says this"));
    }
    lines.join("\n")
}

/// What the last run's summary says of how it found the pairs.
fn summary(store: &Path) -> serde_json::Value {
    let shown = run_well(&["show", store.to_str().unwrap(), "--job", "overlap", "--json"]).stdout;
    serde_json::from_str(&shown).unwrap()
}

/// A copy of a store, to run the job on it in another way.
fn copy_of(store: &Path) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("store");
    copy_folder(store, &copy);
    (folder, copy)
}

#[test]
fn a_week_from_what_changed_is_the_whole_week() {
    for (seed, thresholds, content) in [(1, [1, 1, 2], false), (2, [1, 2, 15], true), (3, [1, 15, 25], false)] {
        let mut made = RandomHistory::new(seed, 120);
        let listed = OverlapSettings { thresholds, content, mode: "auto", ..OverlapSettings::default() };
        listed.run(&made.store(), &[]);
        assert_eq!(summary(&made.store())["mode"], "full", "the first run has none to follow");
        for one_in in [40, 8, 3] {
            made.next_week(one_in);
            let (_folder, copy) = copy_of(&made.store());
            let full = OverlapSettings { mode: "full", ..listed }.run(&copy, &["--workers", "1"]);
            let delta = OverlapSettings { mode: "delta", ..listed }.run(&made.store(), &["--workers", "2"]);
            let said = summary(&made.store());
            assert_eq!((&said["mode"], &said["week_commit"].is_u64()), (&"delta".into(), &true));
            assert!(said["changed"].as_f64().unwrap() > 0.0 && said["former"] == WEEKS[made.weeks - 2]);
            assert_right(&made.store(), made.week(), &listed);
            assert!(delta == full, "seed {seed}, week {}", made.week());
        }
    }
}

#[test]
fn families_of_a_former_run_take_new_pages_and_lose_others() {
    for (seed, thresholds) in [(4, [1, 1, 2]), (5, [1, 2, 15]), (6, [1, 15, 25])] {
        let mut made = RandomHistory::new(seed, 120);
        let settings =
            OverlapSettings { thresholds, family: 5, list: false, mode: "auto", ..OverlapSettings::default() };
        settings.run(&made.store(), &[]);
        assert_families_are_right(&made.store(), made.week(), &settings);
        let members = |store: &Path| rows(store, "families").into_iter().filter(|row| row[0] != "document").count();
        assert!(members(&made.store()) > 10, "seed {seed}");
        let mut joined = 0;
        for one_in in [30, 8, 4] {
            let before = rows(&made.store(), "families");
            made.next_week(one_in);
            let settings = OverlapSettings { mode: "delta", ..settings };
            let mut ways: Vec<BTreeMap<String, Vec<u8>>> = Vec::new();
            for flags in [&["--workers", "1"][..], &["--workers", "4"], &["--workers", "2", "--processes", "2"]] {
                let (_folder, copy) = copy_of(&made.store());
                ways.push(settings.run(&copy, flags));
            }
            let two = settings.run(&made.store(), &["--workers", "2"]);
            assert!(ways.iter().all(|way| *way == two), "seed {seed}: workers and processes change no byte");
            assert!(assert_families_are_right(&made.store(), made.week(), &settings) > 0);
            let of_former = |row: &&Vec<String>| before.iter().any(|former| former[..3] == row[..3]);
            joined +=
                rows(&made.store(), "families").iter().filter(|row| row[0] != "document" && !of_former(row)).count();
        }
        assert!(joined > 0, "seed {seed}: no page joined a family");
    }
}

#[test]
fn pairs_of_a_former_run_count_against_the_most_that_are_listed() {
    let mut made = RandomHistory::new(5, 120);
    let settings = OverlapSettings { thresholds: [1, 1, 2], mode: "auto", ..OverlapSettings::default() };
    settings.run(&made.store(), &[]);
    made.next_week(8);
    let (folder, copy) = copy_of(&made.store());
    OverlapSettings { mode: "full", ..settings }.run(&copy, &[]);
    let said = summary(&copy);
    let pairs = said["chunkings"].as_array().unwrap().iter().map(|of| of["pairs"].as_u64().unwrap()).max().unwrap();
    assert!(pairs > 100, "{said}");
    for mode in ["delta", "auto", "full"] {
        let text = OverlapSettings { mode, ..settings }.toml() + &format!("max-pairs = {}\n", pairs - 1);
        let path = job(folder.path(), &text);
        let ran = run(&["run", path.to_str().unwrap(), "-q", "--store", made.store().to_str().unwrap()]);
        assert_eq!(ran.code, Some(1), "{mode}: {}", ran.stderr);
        let wanted = format!("`max-pairs` allows {}", pairs - 1);
        assert!(ran.stderr.contains("too many pairs") && ran.stderr.contains(&wanted), "{mode}: {}", ran.stderr);
    }
}

#[test]
fn a_former_run_that_cannot_be_followed_is_not() {
    let mut made = RandomHistory::new(7, 60);
    let store = made.store();
    let settings = OverlapSettings { thresholds: [1, 2, 2], mode: "auto", ..OverlapSettings::default() };
    let folder = tempfile::tempdir().unwrap();
    let refused = |settings: &OverlapSettings, wanted: &str| {
        let path = job(folder.path(), &OverlapSettings { mode: "delta", ..*settings }.toml());
        let ran = run(&["run", path.to_str().unwrap(), "-q", "--store", store.to_str().unwrap()]);
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        assert!(ran.stderr.contains("mode = \"delta\"") && ran.stderr.contains(wanted), "{wanted}: {}", ran.stderr);
    };
    refused(&settings, "has no tables of this job");
    settings.run(&store, &[]);
    refused(&settings, "the run before was for week 2024-01-08");
    made.next_week(20);
    refused(&OverlapSettings { thresholds: [1, 2, 3], ..settings }, "differs");
    refused(&OverlapSettings { host: true, ..settings }, "only pages are followed");
    refused(&OverlapSettings { method: "sort", ..settings }, "`method`");
    // A whole run where nothing can be followed.
    OverlapSettings { thresholds: [1, 2, 3], ..settings }.run(&store, &[]);
    assert_eq!(summary(&store)["mode"], "full");
    assert_right(&store, made.week(), &OverlapSettings { thresholds: [1, 2, 3], ..settings });

    // The week of the former run is made again with other pages.
    settings.run(&store, &[]);
    let input = made.folder.path().join("pages.jsonl");
    std::fs::write(&input, "{\"url\": \"http://a.example/\", \"text\": \"one line\"}\n").unwrap();
    let path = job(made.folder.path(), "[weekly]\n");
    let (input, week) = (input.to_str().unwrap(), made.week());
    run_well(&[
        "run",
        path.to_str().unwrap(),
        "-q",
        "--week",
        week,
        "--input",
        input,
        "--store",
        store.to_str().unwrap(),
        "--replace",
    ]);
    made.next_week(10);
    refused(&settings, "was made again or removed since");
    settings.run(&store, &[]);
    assert_right(&store, made.week(), &settings);

    // Deletion removes the former tables.
    run_well(&["delete", "--store", store.to_str().unwrap(), "--host", "h1.example"]);
    refused(&settings, "has no tables of this job");
    settings.run(&store, &[]);
    assert_right(&store, made.week(), &settings);
}

#[test]
fn damaged_tables_of_a_former_run_are_an_error() {
    for table in ["overlap", "families", "family-chunks"] {
        let mut made = RandomHistory::new(8, 100);
        let store = made.store();
        let settings = OverlapSettings {
            thresholds: [1, 2, 2],
            family: 5,
            list: false,
            mode: "auto",
            ..OverlapSettings::default()
        };
        settings.run(&store, &[]);
        made.next_week(40);
        // The largest file is lost.
        let folder = store.join("overlap").join(table);
        let files = std::fs::read_dir(&folder).unwrap().map(|file| file.unwrap());
        let largest = files.max_by_key(|file| file.metadata().unwrap().len()).unwrap();
        std::fs::remove_file(largest.path()).unwrap();
        let path = job(made.folder.path(), &settings.toml());
        let ran = run(&["run", path.to_str().unwrap(), "-q", "--store", store.to_str().unwrap()]);
        assert_eq!(ran.code, Some(1), "{table}: {}", ran.stderr);
        for wanted in ["are damaged", "mode = \"full\""] {
            assert!(ran.stderr.contains(wanted), "{table}: {wanted}: {}", ran.stderr);
        }
        let settings = OverlapSettings { mode: "full", ..settings };
        settings.run(&store, &[]);
        assert_families_are_right(&store, made.week(), &settings);
    }
}

#[test]
fn a_killed_run_of_a_later_week_leaves_the_former_tables_to_follow() {
    let mut made = RandomHistory::new(9, 120);
    let store = made.store();
    let settings =
        OverlapSettings { thresholds: [1, 2, 2], family: 5, list: false, mode: "delta", ..OverlapSettings::default() };
    OverlapSettings { mode: "full", ..settings }.run(&store, &[]);
    let before = tables(&store.join("overlap"));
    made.next_week(10);
    let (_folder, copy) = copy_of(&store);
    let begun = Instant::now();
    let after = settings.run(&copy, &["--workers", "2"]);
    let whole = begun.elapsed();
    assert!(before != after);
    let folder = tempfile::tempdir().unwrap();
    let path = job(folder.path(), &settings.toml());
    let arguments = ["run", path.to_str().unwrap(), "-q", "--workers", "2", "--store", store.to_str().unwrap()];
    // Once a run has committed, the next one has none to follow, and ends with an error.
    kill_at_moments(&arguments, whole, 10, |round| {
        let found = tables(&store.join("overlap"));
        assert!(found == before || found == after, "round {round}");
    });
    if tables(&store.join("overlap")) == before {
        assert!(settings.run(&store, &["--workers", "2"]) == after);
    }
}
