//! More workers than shards: those without a shard read and compare, and the tables are the same
//! bytes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::program::{kill_at_moments, run, run_well};

/// Where work is done: workers, and processes.
type How = [&'static str; 2];

/// The files of all tables of a store, by their paths in it.
fn files(store: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = walkdir::WalkDir::new(store).into_iter().map(Result::unwrap);
    let in_store = |path: &Path| path.strip_prefix(store).unwrap().to_owned();
    let is_table = |path: &Path| path.extension() == Some("parquet".as_ref()) && !path.starts_with("_nigh");
    let tables = entries.filter(|entry| is_table(&in_store(entry.path())));
    tables.map(|entry| (in_store(entry.path()), std::fs::read(entry.path()).unwrap())).collect()
}

fn assert_same(found: &Path, expected: &Path, what: &str) {
    let (found, expected) = (files(found), files(expected));
    assert!(expected.keys().eq(found.keys()), "{what}");
    for (path, bytes) in &expected {
        assert!(found[path] == *bytes, "{what}: {} differs", path.display());
    }
}

/// The job of a first week with so many shards.
fn job(folder: &Path, shards: u32) -> String {
    let path = folder.join(format!("shards{shards}.toml"));
    let text = format!(
        "[cluster]\nweek = \"2024-01-08\"\nwave-bytes = \"200kB\"\ninput = [\"tests/data/week-2024-01-08\"]\n\
         [cluster.method]\nshards = {shards}\nsimilarity = 0.8\nverify = \"exact\"\n"
    );
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Makes two weeks, the second from what changed, deletes a host, and compares the weeks.
fn history(job: &str, store: &Path, [workers, processes]: How) {
    let store = store.to_str().unwrap();
    let how = ["--quiet", "--store", store, "--workers", workers, "--processes", processes];
    run_well(&[&["run", job], &how[..]].concat());
    let weekly = store.to_owned() + ".toml";
    std::fs::write(&weekly, "[weekly]\nmode = \"delta\"\n").unwrap();
    let input = ["--week", "2024-01-15", "--input", "tests/data/week-2024-01-15"];
    run_well(&[&["run", &weekly], &how[..], &input].concat());
    let host = "arm64.guide.debian.example";
    run_well(&["delete", "--quiet", "--store", store, "--host", host, "--workers", workers]);
    run_well(&["studies", store, "--quiet", "--workers", workers, "--processes", processes]);
}

#[test]
fn the_tables_are_the_same_with_more_workers_than_shards() {
    let folder = tempfile::tempdir().unwrap();
    for (shards, many) in [(1, [["4", "1"], ["2", "2"]]), (2, [["3", "1"], ["1", "3"]])] {
        let job = job(folder.path(), shards);
        let store = |name: &str| folder.path().join(format!("{shards}-{name}"));
        let one = store("one");
        history(&job, &one, ["1", "1"]);
        assert!(files(&one).len() > 40, "{} files", files(&one).len());
        for how in many {
            let other = store(&how.join("x"));
            history(&job, &other, how);
            assert_same(&other, &one, &format!("{shards} shards, {how:?}"));
        }
    }
}

#[test]
fn kills_with_more_workers_than_shards_leave_what_can_be_continued() {
    let folder = tempfile::tempdir().unwrap();
    let job = job(folder.path(), 1);
    let [undisturbed, killed] = ["undisturbed", "killed"].map(|name| folder.path().join(name));
    let of = |store: &Path| store.to_str().unwrap().to_owned();
    let (of_undisturbed, of_killed) = (of(&undisturbed), of(&killed));
    let flags = ["run", &job, "--quiet", "--workers", "2", "--store"];
    let command = |store| [&flags[..], &[store]].concat();
    let begun = Instant::now();
    run_well(&command(&of_undisturbed));
    kill_at_moments(&command(&of_killed), begun.elapsed(), 10, |_| {});
    run_well(&command(&of_killed));
    assert_same(&killed, &undisturbed, "after kills");
}

#[test]
fn workers_without_a_shard_are_spoken_of() {
    let folder = tempfile::tempdir().unwrap();
    let (job, store) = (job(folder.path(), 2), folder.path().join("store"));
    let with = |workers| {
        run(&["run", &job, "--dry-run", "--store", store.to_str().unwrap(), "--workers", workers, "--processes", "2"])
    };
    let text = "4 of 6 workers own none of the store's 2 shards";
    let six = with("3");
    assert!(six.code == Some(0) && six.stderr.contains(text), "{}", six.stderr);
    let two = with("1");
    assert!(two.code == Some(0) && !two.stderr.contains("shards:"), "{}", two.stderr);
    let nine = with("5");
    assert!(nine.code == Some(2) && nine.stderr.contains("use --workers 4 or fewer"), "{}", nine.stderr);
}
