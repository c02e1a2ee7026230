//! The evolution of clusters against a twin that goes over URLs one by one, on stores with random
//! histories.

mod twin;
mod written_store;

use std::path::Path;
use std::process::Stdio;
use std::time::Instant;

use arrow_array::Int64Array;
use nigh::tables::{Scan, field};

pub use self::twin::assert_evolution_is_right;
use self::twin::{EvolutionRow, EvolvingPage, WeekSeen, twin};
pub use self::written_store::WrittenStore;
use self::written_store::{cluster_row, write};
use crate::program::{Made, job, nigh, run, run_well, tables};

/// Two weeks whose figures are worked out by hand: what the twin says is checked, too.
#[test]
fn the_twin_gives_the_figures_of_a_store_that_is_worked_out_by_hand() {
    let page = |doc: i64, host: &str, root: i64, checksum: u8, features: [u16; 3]| {
        (doc, EvolvingPage { host: host.into(), root, checksum: vec![checksum], features: features.to_vec() })
    };
    // The clusters {1, 2} and {3}.
    let first = [page(1, "a", 1, 1, [1, 2, 3]), page(2, "a", 1, 2, [1, 2, 3]), page(3, "c", 3, 3, [7, 8, 9])];
    // Page 1 keeps one feature of three and is in a cluster with a new page, 4. Pages 2 and 3 could
    // not be downloaded.
    let second = [page(1, "a", 1, 9, [1, 5, 6]), page(4, "b", 1, 4, [1, 5, 6])];
    let weeks = [
        WeekSeen { week: "first".into(), pages: first.into(), known: [1, 2, 3].into() },
        WeekSeen { week: "second".into(), pages: second.into(), known: [1, 2, 3, 4].into() },
    ];
    let tables = twin(&weeks, 5);
    // The rows of a table that count something: the count is the last of the words.
    let rows = |table: &str| -> Vec<EvolutionRow> {
        tables[table].iter().filter(|(words, _)| words.last().unwrap() != "0").cloned().collect()
    };
    let row = |words: &[&str], fractions: &[Option<f64>]| -> EvolutionRow {
        (words.iter().map(|word| word.to_string()).collect(), fractions.to_vec())
    };
    let retention = [
        row(&["first", "1", "1"], &[Some(1.0); 3]),
        row(&["first", "2-10", "2"], &[Some(1.0); 3]),
        // Page 3 was alone, and is with 2 in the cluster of what could not be downloaded.
        row(&["second", "1", "1"], &[Some(1.0), Some(1.0 / 2.0), Some(1.0 / 2.0)]),
        // Page 1 was with 2 and is with 4; page 2 was with 1 and is with 3.
        row(&["second", "2-10", "2"], &[Some(1.0 / 2.0), Some(1.0 / 3.0), Some(1.0 / 2.0)]),
    ];
    assert_eq!(rows("retention"), retention);
    // Host c lost its cluster, a has one as before, b has one for the first time.
    assert_eq!(rows("host-changes"), [row(&["-1", "1"], &[]), row(&["0", "1"], &[]), row(&["1", "1"], &[])]);
    // Page 1 alone was downloaded twice. Its amount is one of five, so the mean share is a fifth.
    assert_eq!(rows("amounts"), [row(&["1", "2-10", "1"], &[Some(1.0), Some(5.0)])]);
    assert_eq!(rows("change-classes"), [row(&["2-10", "large", "1"], &[Some(1.0)])]);
    assert_eq!(rows("births"), [row(&["second", "1", "1"], &[])]);
    assert_eq!(rows("deaths"), [row(&["second", "1", "1"], &[]), row(&["second", "2-10", "1"], &[])]);
}

#[test]
fn evolution_is_that_of_brute_force_whatever_the_workers_and_processes() {
    for (seed, weeks) in [(1, 3), (2, 5), (3, 2), (4, 4)] {
        let store = WrittenStore::new(seed, weeks);
        let one = store.evolution(&["--workers", "1"]);
        assert_evolution_is_right(&store.path(), 0..weeks);
        for (workers, processes) in [("2", "1"), ("4", "1"), ("1", "2"), ("3", "2")] {
            let other = store.evolution(&["--workers", workers, "--processes", processes]);
            assert!(one == other, "{workers} workers in {processes} processes");
        }
    }
}

#[test]
fn first_and_last_choose_the_weeks_of_the_evolution() {
    let store = WrittenStore::new(5, 4);
    let text = "[evolution]\nfirst = \"2024-01-08\"\nlast = \"2024-01-15\"\n";
    let job = job(store.folder.path(), text);
    let path = store.path();
    let ran = run_well(&["run", job.to_str().unwrap(), "--store", path.to_str().unwrap(), "--workers", "2"]);
    assert_evolution_is_right(&path, 1..3);
    for wanted in ["from 2024-01-08 to 2024-01-15, 2 weeks", "91.8%", "retention of singletons", "births", "Tables"] {
        assert!(ran.stdout.contains(wanted), "{wanted}: {}", ran.stdout);
    }
    eprintln!("{}", ran.stdout);
    let kept = std::fs::read_to_string(path.join("_nigh/evolution/00002/job.toml")).unwrap();
    assert!(kept.contains("first = \"2024-01-08\""), "{kept}");
    // Another run replaces all of it, except a file of the user.
    std::fs::write(path.join("evolution/notes"), "").unwrap();
    store.evolution(&[]);
    assert_evolution_is_right(&path, 0..4);
    assert!(path.join("evolution/notes").exists() && !path.join("_nigh/evolution/00002").exists());
    assert_eq!(
        std::fs::read_dir(path.join("evolution/retention")).unwrap().count(),
        1,
        "only the new tables are there"
    );
}

#[test]
fn one_week_is_compared_with_itself() {
    let made = Made::new(&[]);
    let path = made.store();
    let arguments = ["run", "jobs/evolution.toml", "--store", path.to_str().unwrap()];
    let ran = run_well(&arguments);
    assert_evolution_is_right(&path, 0..1);
    assert!(ran.stdout.contains("one week only") && ran.stdout.contains("100.0%"), "{}", ran.stdout);
    let json = run_well(&[&arguments[..], &["--json"]].concat());
    let summary: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!((&summary["documents"], &summary["hosts"]["published"]), (&523.into(), &0.918.into()));
    for line in json.stderr.lines() {
        let event: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(event["event"] == "progress" || event["event"] == "stages", "{event}");
    }
    let dry = run_well(&[&arguments[..], &["--dry-run"]].concat());
    assert!(dry.stdout.contains("2024-01-08 to 2024-01-08"), "{}", dry.stdout);
    // The store goes on as before.
    run_well(&["show", path.to_str().unwrap()]);
}

#[test]
fn a_run_that_fails_leaves_the_former_tables() {
    let store = WrittenStore::new(6, 2);
    let before = store.evolution(&[]);
    let (folder, damaged) = (store.path().join("evolution"), store.path().join("clusters"));
    std::fs::rename(&damaged, store.path().join("elsewhere")).unwrap();
    let ran = run(&["run", "jobs/evolution.toml", "--store", store.path().to_str().unwrap()]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(tables(&folder) == before);
    std::fs::rename(store.path().join("elsewhere"), &damaged).unwrap();
    assert!(store.evolution(&[]) == before);
}

#[test]
fn a_run_killed_at_any_moment_leaves_the_former_tables_or_the_new_ones() {
    let store = WrittenStore::new(10, 3);
    let text = "[evolution]\nlast = \"2024-01-08\"\n";
    let two_weeks = job(store.folder.path(), text);
    let path = store.path();
    let path = path.to_str().unwrap();
    let begun = Instant::now();
    let new = store.evolution(&["--workers", "2"]);
    let whole = begun.elapsed();
    let former = || {
        run_well(&["run", two_weeks.to_str().unwrap(), "--quiet", "--store", path]);
        tables(&store.path().join("evolution"))
    };
    let former_tables = former();
    assert!(former_tables != new);
    for (round, processes) in (0..16).zip(["1", "2"].into_iter().cycle()) {
        assert!(former() == former_tables);
        let arguments =
            ["run", "jobs/evolution.toml", "-q", "--workers", "2", "--processes", processes, "--store", path];
        let mut child = nigh(&arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(whole * round / 14);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!([&former_tables, &new].contains(&&tables(&store.path().join("evolution"))), "round {round}");
    }
    assert!(store.evolution(&[]) == new);
}

#[test]
fn a_damaged_or_missing_file_is_named() {
    let file = |store: &Path, table: &str| {
        let mut files = crate::program::files(&store.join("week=2024-01-08"), table);
        files.swap_remove(0)
    };
    for table in ["clusters", "documents", "features"] {
        for processes in ["1", "2"] {
            let store = WrittenStore::new(7, 2);
            let path = store.path();
            let file = file(&path, table);
            let arguments = ["run", "jobs/evolution.toml", "--store", path.to_str().unwrap(), "--processes", processes];
            std::fs::write(&file, "no table").unwrap();
            let ran = run(&arguments);
            assert_eq!(ran.code, Some(1));
            assert!(ran.stderr.contains(file.to_str().unwrap()), "{}", ran.stderr);
            std::fs::remove_file(&file).unwrap();
            let ran = run(&arguments);
            assert_eq!(ran.code, Some(1));
            assert!(ran.stderr.contains(file.to_str().unwrap()), "{}", ran.stderr);
            assert!(!path.join("evolution").exists());
        }
    }
}

#[test]
fn tables_that_contradict_each_other_are_reported_as_damage() {
    let store = WrittenStore::new(8, 2);
    let path = store.path();
    let arguments = ["run", "jobs/evolution.toml", "--store", path.to_str().unwrap()];
    let week = crate::program::week(&path, "2024-01-08");
    let (clusters, documents) = (crate::program::files(&week, "clusters"), crate::program::files(&week, "documents"));
    let kept = std::fs::read(&documents[0]).unwrap();
    // Pages of another shard.
    std::fs::copy(documents.last().unwrap(), &documents[0]).unwrap();
    let ran = run(&arguments);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("is damaged: it holds document"), "{}", ran.stderr);
    std::fs::write(&documents[0], kept).unwrap();
    run_well(&arguments);
    // A cluster of one page that says two.
    let mut scan = Scan::open(&clusters[0], &["doc"]).unwrap();
    let batch = scan.batch().unwrap().unwrap();
    let docs: &Int64Array = field(&batch, "doc").unwrap();
    let claims = docs.values().iter().map(|doc| cluster_row(*doc, None, docs.value(0), 2));
    write(&clusters[0], claims);
    let ran = run(&arguments);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("the store is damaged: "), "{}", ran.stderr);
}

#[test]
fn wrong_use_is_refused_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let nowhere = folder.path().join("nowhere");
    let nowhere = nowhere.to_str().unwrap();
    let evolution = ["run", "jobs/evolution.toml", "--store", nowhere];
    for (arguments, code, wanted) in [
        (evolution.to_vec(), 1, "is not a nigh store"),
        ([&evolution[..], &["--input", "x"]].concat(), 2, "--input"),
        ([&evolution[..], &["--week", "2024-01-08"]].concat(), 2, "`first` and `last`"),
        ([&evolution[..], &["--replace"]].concat(), 2, "--replace"),
        (vec!["bench", "text", "--job", "jobs/evolution.toml"], 1, "[cluster]"),
    ] {
        let ran = run(&arguments);
        assert_eq!(ran.code, Some(code), "{arguments:?} {}", ran.stderr);
        assert!(ran.stderr.contains(wanted), "{wanted}: {}", ran.stderr);
    }
    assert!(!Path::new(nowhere).exists());
    for (text, wanted) in [
        ("[evolution]\nfrist = \"2024-01-08\"\n", ["line 2, column 1", "frist", "`first`"]),
        ("[evolution]\nlast = \"soon\"\n", ["line 2", "soon", "YYYY-MM-DD"]),
        ("[evolution]\n", ["no store", "--store DIR", "job.toml"]),
    ] {
        let path = job(folder.path(), text);
        let ran = run(&["run", path.to_str().unwrap()]);
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
        for wanted in wanted {
            assert!(ran.stderr.contains(wanted), "{wanted}: {}", ran.stderr);
        }
    }
    let store = WrittenStore::new(9, 2);
    let path = job(folder.path(), "[evolution]\nfirst = \"2024-02-01\"\n");
    let ran = run(&["run", path.to_str().unwrap(), "--store", store.path().to_str().unwrap()]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("has no week 2024-02-01; it has 2024-01-01, 2024-01-08"), "{}", ran.stderr);
}
