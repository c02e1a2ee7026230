//! A store that nigh 0.1.0 made is brought up to date, and goes on as one that was never older.
//!
//! `tests/data/stores/0.1.0` was made by that version, from the inputs below.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use crate::program::{assert_is_whole, copy_folder, data, job, nigh, run, run_well, tables, week};

const WEEKS: [&str; 3] = ["2024-01-08", "2024-01-15", "2024-01-22"];
const INPUTS: [&[&str]; 3] = [
    &["tests/data/week-2024-01-08/crawl-0000[12].warc.gz"],
    &["tests/data/formats/pages.warc", "tests/data/week-2024-01-15/crawl-00002.warc.gz"],
    &["tests/data/week-2024-01-22/crawl-0000[12].warc.gz"],
];

/// A store in a folder of its own.
struct Upgrading {
    folder: tempfile::TempDir,
}

impl Upgrading {
    /// The store of version 0.1.0: the first two weeks, and the table of the overlap job.
    fn old() -> Upgrading {
        let old = Upgrading { folder: tempfile::tempdir().unwrap() };
        copy_folder(&data("stores/0.1.0"), &old.store());
        old
    }

    /// The same weeks, made by this program.
    fn fresh() -> Upgrading {
        let fresh = Upgrading { folder: tempfile::tempdir().unwrap() };
        (0..2).for_each(|week| fresh.add(week));
        fresh.overlap();
        fresh
    }

    fn store(&self) -> PathBuf {
        self.folder.path().join("store")
    }

    fn name(&self) -> String {
        self.store().to_str().unwrap().to_owned()
    }

    fn add(&self, number: usize) {
        let job = job(self.folder.path(), "[cluster]\nabsent = \"keep\"\n[cluster.method]\nshards = 4\n");
        let (job, store) = (job.to_str().unwrap(), self.name());
        let mut arguments = vec!["run", job, "-q", "--no-accuracy", "--store", &store, "--week", WEEKS[number]];
        arguments.extend(INPUTS[number].iter().flat_map(|input| ["--input", input]));
        run_well(&arguments);
    }

    fn overlap(&self) -> String {
        run_well(&["run", "jobs/overlap.toml", "-q", "--store", &self.name(), "--json"]).stdout
    }

    /// Whether the program refuses the store because of its format.
    fn is_refused(&self) -> bool {
        let ran = run(&["show", &self.name()]);
        let refused = ran.code == Some(1) && ran.stderr.contains("format 9") && ran.stderr.contains("`nigh upgrade`");
        assert!(refused || ran.code == Some(0), "{}", ran.stderr);
        refused
    }

    /// The files of its tables.
    fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let store = self.store();
        let entries = walkdir::WalkDir::new(&store).into_iter().map(|entry| entry.unwrap().into_path());
        let parts = entries.filter(|path| path.extension().is_some_and(|extension| extension == "parquet"));
        parts.map(|path| (path.strip_prefix(&store).unwrap().to_owned(), std::fs::read(&path).unwrap())).collect()
    }

    /// Every `week.json`, and the format.
    fn records(&self) -> (u64, Vec<Vec<u8>>) {
        let manifest = std::fs::read(self.store().join("_nigh/manifest.json")).unwrap();
        let manifest: serde_json::Value = serde_json::from_slice(&manifest).unwrap();
        let of_week = |week: &str, commit: &str| self.store().join(format!("_nigh/week={week}/{commit}/week.json"));
        let weeks = [of_week(WEEKS[0], "00001"), of_week(WEEKS[1], "00002")];
        (manifest["format"].as_u64().unwrap(), weeks.map(|path| std::fs::read(path).unwrap()).to_vec())
    }
}

/// What is shown of the weeks, without where they are.
fn shown(of: &Upgrading) -> Vec<String> {
    let weeks = WEEKS[..2].iter().flat_map(|week| {
        let with = |more: &[&str]| {
            run_well(&[&["show", &of.name(), "--week", week], more].concat()).stdout.replace(&of.name(), "STORE")
        };
        [with(&["--level", "similar", "--top", "50"]), with(&["--host", "amd64.guide.debian.example"])]
    });
    weeks.collect()
}

#[test]
fn an_older_store_goes_on_as_one_that_was_never_older() {
    let (old, fresh) = (Upgrading::old(), Upgrading::fresh());
    let files = old.files();
    assert!(old.is_refused());
    let error = run(&["run", "jobs/overlap.toml", "-q", "--store", &old.name()]);
    assert!(error.code == Some(1) && error.stderr.contains("`nigh upgrade`"), "{}", error.stderr);
    assert_eq!(old.records().0, 9, "what is refused stays as it is");
    let said = run_well(&["upgrade", &old.name()]).stdout;
    assert!(said.contains("format 11 now, instead of 9, with 2 weeks"), "{said}");
    assert_eq!(old.files(), files, "tables stay as they are");
    let records = old.records();
    assert!(run_well(&["upgrade", &old.name()]).stdout.contains("nothing to do"));
    assert_eq!(old.records(), records);
    assert_eq!(shown(&old), shown(&fresh));
    let overlap = |of: &Upgrading| -> serde_json::Value { serde_json::from_str(&of.overlap()).unwrap() };
    assert_eq!(overlap(&old)["mode"], overlap(&fresh)["mode"]);
    for store in [&old, &fresh] {
        store.add(2);
        store.overlap();
    }
    let of_week = |of: &Upgrading| tables(&week(&of.store(), WEEKS[2]));
    assert!(of_week(&old).len() > 15);
    assert!(of_week(&old) == of_week(&fresh));
    let overlap = |of: &Upgrading| tables(&of.store().join("overlap"));
    assert!(overlap(&old) == overlap(&fresh) && !overlap(&old).is_empty());
}

/// Stores of format 10 have nothing that must be changed.
#[test]
fn a_store_of_the_format_before_goes_on_as_it_is() {
    let [upgraded, goes_on] = [Upgrading::fresh(), Upgrading::fresh()];
    for store in [&upgraded, &goes_on] {
        let manifest = store.store().join("_nigh/manifest.json");
        let text = std::fs::read_to_string(&manifest).unwrap();
        let before = text.replacen("\"format\": 11", "\"format\": 10", 1);
        assert_ne!(text, before);
        std::fs::write(manifest, before).unwrap();
        assert!(!store.is_refused());
        store.overlap();
    }
    let weeks = goes_on.records();
    assert_eq!(weeks.0, 10, "no week came");
    let said = run_well(&["upgrade", &upgraded.name()]).stdout;
    assert!(said.contains("format 11 now, instead of 10, with 2 weeks"), "{said}");
    assert_eq!(upgraded.records(), (11, weeks.1.clone()));
    goes_on.add(2);
    assert_eq!(goes_on.records(), (11, weeks.1));
    assert!(run_well(&["upgrade", &goes_on.name()]).stdout.contains("nothing to do"));
}

#[test]
fn a_kill_leaves_the_old_format_or_the_new() {
    let whole = Upgrading::old();
    run_well(&["upgrade", &whole.name()]);
    for moment in 0..24 {
        let old = Upgrading::old();
        let mut command = nigh(&["upgrade", &old.name()]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(2) * moment);
        child.kill().unwrap();
        child.wait().unwrap();
        // Refused, or whole: nothing between.
        old.is_refused();
        run_well(&["upgrade", &old.name()]);
        let (format, weeks) = old.records();
        assert!(format == 11 && weeks == whole.records().1, "after {moment}");
        assert_is_whole(&old.store());
        assert_eq!(shown(&old).len(), 4);
    }
}

#[test]
fn a_damaged_store_is_named_and_stays_as_it_is() {
    let week_of = |store: &Path| store.join("_nigh/week=2024-01-08/00001/week.json");
    let table = Path::new("links/week=2024-01-08/nigh-00001-00000.parquet");
    for (damage, expected) in [("cut", "links/week=2024-01-08"), ("gone", "links/week=2024-01-08"), ("list", "lists")] {
        let old = Upgrading::old();
        let path = old.store().join(table);
        match damage {
            "cut" => std::fs::write(&path, &std::fs::read(&path).unwrap()[..20_000]).unwrap(),
            "gone" => std::fs::remove_file(&path).unwrap(),
            _ => {
                let text = std::fs::read_to_string(week_of(&old.store())).unwrap();
                let changed = text.replacen("[\"shard00001-wave00000.parquet\",1]", "", 1).replacen(",,", ",", 1);
                assert_ne!(text, changed);
                std::fs::write(week_of(&old.store()), changed).unwrap();
            }
        }
        let before = old.records();
        let ran = run(&["upgrade", &old.name()]);
        assert!(ran.code == Some(1) && ran.stderr.contains(expected), "{damage}: {}", ran.stderr);
        assert_eq!(old.records(), before);
    }
    let ran = run(&["upgrade", "tests/data"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("not a nigh store"), "{}", ran.stderr);
    assert!(!Path::new("tests/data/_nigh").exists());
}

/// A store in a bucket is upgraded by a machine that never saw it; others see the new format.
#[cfg(feature = "cloud")]
#[test]
fn a_store_in_a_bucket_is_brought_up_to_date() {
    let test = "weeks::upgrade::a_store_in_a_bucket_is_brought_up_to_date";
    let Some(server) = crate::seaweed::BucketServer::start(test) else { return };
    let url = "s3://bucket/upgraded";
    let old = Upgrading::old();
    // A mirror as version 0.1.0 leaves it when it cannot publish.
    std::fs::create_dir(old.store().join("_mirror")).unwrap();
    std::fs::write(old.store().join("_mirror/base.json"), format!("{{\"url\":\"{url}\",\"base\":\"nothing\"}}"))
        .unwrap();
    let there = |arguments: &[&str]| crate::program::ran(nigh(arguments).envs(server.environment()));
    let again = ["run", "jobs/example.toml", "-q", "--store", url, "--week", "2024-01-22", "--mirror"];
    let published = there(&[&again[..], &[&old.name()]].concat());
    assert!(published.code == Some(1) && published.stderr.contains("`nigh upgrade`"), "{}", published.stderr);
    let refused = there(&["show", url]);
    assert!(refused.code == Some(1) && refused.stderr.contains("`nigh upgrade`"), "{}", refused.stderr);
    let mirror = tempfile::tempdir().unwrap();
    let upgraded = there(&["upgrade", url, "--mirror", mirror.path().join("mirror").to_str().unwrap()]);
    assert_eq!(upgraded.code, Some(0), "{}", upgraded.stderr);
    let fresh = Upgrading::old();
    run_well(&["upgrade", &fresh.name()]);
    let expected = run_well(&["show", &fresh.name()]).stdout.replace(&fresh.name(), "STORE");
    let seen = there(&["show", url]);
    assert_eq!((seen.code, seen.stdout.replace(url, "STORE")), (Some(0), expected), "{}", seen.stderr);
}
