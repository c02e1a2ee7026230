//! `nigh catalog`: the logs of Delta Lake list just the files of a store, after every command that
//! changes it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use nigh::tables::WEEK_TABLES;
use serde_json::Value;

use crate::program::{run, run_well};
use crate::runs::objects::{Cloud, jobs, steps, texts};

/// The files of all tables by their logs, from the objects or files of a store and what is in them;
/// each log as a reader of Delta goes through it.
fn described(names: &[String], read: impl Fn(&str) -> Vec<u8>) -> BTreeSet<String> {
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (table, name) in names.iter().filter_map(|name| name.split_once("/_delta_log/")) {
        versions.entry(table).or_default().insert(name);
    }
    let mut files = BTreeSet::new();
    for (table, names) in versions {
        for (number, name) in names.into_iter().enumerate() {
            assert_eq!(name, format!("{number:020}.json"), "versions of {table}");
            let text = String::from_utf8(read(&format!("{table}/_delta_log/{name}"))).unwrap();
            for action in text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
                if let Some(path) = action["remove"]["path"].as_str() {
                    assert!(files.remove(&format!("{table}/{path}")), "{table}/{path} was not there");
                }
                if let Some(path) = action["add"]["path"].as_str() {
                    let week = path.strip_prefix("week=").map(|path| path.split('/').next().unwrap());
                    assert_eq!(action["add"]["partitionValues"]["week"].as_str(), week, "{path}");
                    assert!(files.insert(format!("{table}/{path}")), "{table}/{path} was there");
                }
            }
        }
    }
    files
}

/// The files below a store, by their paths in it.
fn names_of(store: &Path) -> Vec<String> {
    let entries = walkdir::WalkDir::new(store).into_iter().map(|entry| entry.unwrap());
    let files = entries.filter(|entry| entry.file_type().is_file());
    files.map(|entry| entry.path().strip_prefix(store).unwrap().to_str().unwrap().to_owned()).collect()
}

fn tables_among(names: &[String]) -> BTreeSet<String> {
    let tables = names.iter().filter(|name| name.ends_with(".parquet") && !name.starts_with("_nigh/"));
    tables.cloned().collect()
}

fn assert_is_described(store: &Path, after: &str) {
    let names = names_of(store);
    let files = described(&names, |name| std::fs::read(store.join(name)).unwrap());
    assert!(files.len() >= 12, "{after}: {files:?}");
    assert_eq!(files, tables_among(&names), "{after}");
}

#[test]
fn the_logs_follow_every_commit() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let name = store.to_str().unwrap();
    let commands = steps(&jobs(folder.path()), name);
    run_well(&texts(&commands[0]));
    assert!(described(&names_of(&store), |_| vec![]).is_empty(), "a store has no logs unless the user asks for them");
    let said = run_well(&["catalog", name, "--format", "delta"]);
    assert!(said.stdout.starts_with(&format!("{} tables of ", WEEK_TABLES.len())), "{}", said.stdout);
    assert_is_described(&store, "catalog");
    for command in &commands[1..] {
        run_well(&texts(command));
        assert_is_described(&store, &command[0]);
        let checked = run_well(&["check", name]);
        assert!(!checked.stdout.contains("no digest"), "after {}: {}", command[0], checked.stdout);
    }
    // A version is written only if a table changed, and a log that was removed is made again.
    let log = store.join("evolution/births/_delta_log");
    assert_eq!(std::fs::read_dir(&log).unwrap().count(), 1);
    std::fs::remove_dir_all(&log).unwrap();
    run_well(&["catalog", name, "--format", "delta", "--json"]);
    assert_is_described(&store, "a lost log");
    run_well(&["catalog", name, "--format", "none"]);
    assert!(names_of(&store).iter().all(|name| !name.contains("_delta_log")));
}

#[test]
fn logs_of_other_programs_stay() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let name = store.to_str().unwrap();
    run_well(&texts(&steps(&jobs(folder.path()), name)[0]));
    let log = store.join("urls/_delta_log");
    std::fs::create_dir(&log).unwrap();
    let version = log.join("00000000000000000000.json");
    let text = "{\"commitInfo\":{\"engineInfo\":\"delta-rs:1.0\"}}\n{\"protocol\":{\"minReaderVersion\":1}}\n";
    std::fs::write(&version, text).unwrap();
    for format in ["delta", "none"] {
        let ran = run(&["catalog", name, "--format", format]);
        assert_eq!(ran.code, Some(1));
        assert!(ran.stderr.contains("urls/_delta_log was made by another program: remove it"), "{}", ran.stderr);
        assert_eq!(std::fs::read_to_string(&version).unwrap(), text);
        assert!(!store.join("clusters/_delta_log").exists());
    }
    std::fs::write(&version, "{\"add\":").unwrap();
    let ran = run(&["catalog", name, "--format", "delta"]);
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.stderr.contains("urls/_delta_log is damaged: remove it, and `nigh catalog` makes it"),
        "{}",
        ran.stderr
    );
    std::fs::remove_dir_all(&log).unwrap();
    run_well(&["catalog", name, "--format", "delta"]);
    assert_is_described(&store, "after the damage");
}

#[test]
fn a_folder_without_a_store_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let ran = run(&["catalog", folder.path().to_str().unwrap(), "--format", "delta"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("is not a nigh store"), "{}", ran.stderr);
    assert_eq!(run(&["catalog", "somewhere", "--format", "iceberg"]).code, Some(2));
}

#[test]
fn the_logs_of_a_bucket_name_its_objects() {
    let Some(server) = Cloud::start("a catalog in a bucket") else { return };
    let folder = tempfile::tempdir().unwrap();
    let url = "s3://bucket/store";
    let commands = steps(&jobs(folder.path()), url);
    // Every command is given on another machine than the one before.
    let machines = [folder.path().join("one"), folder.path().join("two")];
    let catalog = |format: &str| ["catalog", url, "--format", format].map(str::to_owned).to_vec();
    let all = [&commands[..1], &[catalog("delta")], &commands[1..]].concat();
    for (at, command) in all.iter().enumerate() {
        server.run_well(&machines[at % 2], &texts(command));
        let names = server.keys("store");
        let files = described(&names, |name| server.get(&format!("/store/{name}")));
        let expected = if at == 0 { BTreeSet::new() } else { tables_among(&names) };
        assert_eq!(files, expected, "after {command:?}");
    }
    server.run_well(&machines[0], &texts(&catalog("none")));
    assert!(server.keys("store").iter().all(|name| !name.contains("_delta_log")));
}
