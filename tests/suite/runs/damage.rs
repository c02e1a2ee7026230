//! `nigh check`: every file of a store that is not as it was written is named.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use crate::program::{Ran, data, run, run_well, tables, week};

const WEEKS: [&str; 2] = ["2024-01-08", "2024-01-15"];

/// Makes a week, with more flags.
fn run_week(store: &str, date: &str, more: &[&str]) {
    let input = data(&format!("week-{date}"));
    let arguments = ["run", "-q", "--week", date, "--store", store, "--input", input.to_str().unwrap()];
    run_well(&[&arguments, more].concat());
}

/// Two weeks, a deletion, the first week removed, and a study of the last one.
fn make(store: &str, folder: &Path) {
    let job = folder.join("overlap.toml");
    std::fs::write(&job, "[overlap]\n").unwrap();
    WEEKS.iter().for_each(|date| run_week(store, date, &[]));
    run_well(&["delete", "--store", store, "--host", "arm64.guide.debian.example"]);
    run_well(&["vacuum", "--store", store, "--keep", "1"]);
    run_well(&["run", job.to_str().unwrap(), "-q", "--store", store]);
}

/// The files that a check names, with what it found.
fn damaged(ran: &Ran) -> Vec<(String, String)> {
    let found: Value = serde_json::from_str(&ran.stdout).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    found["damaged"].as_array().unwrap().iter().map(|file| (text(&file["file"]), text(&file["found"]))).collect()
}

/// The files of a store, by their paths in it, that a check reads.
fn files_of(store: &Path) -> BTreeSet<String> {
    let entries = walkdir::WalkDir::new(store).into_iter().map(|entry| entry.unwrap());
    let files = entries.filter(|entry| entry.file_type().is_file());
    let names = files.map(|entry| entry.path().strip_prefix(store).unwrap().to_str().unwrap().to_owned());
    let is_read = |name: &String| {
        !["views.sql", "_nigh/lock", "_nigh/manifest.json"].contains(&name.as_str())
            && !name.starts_with("_nigh/postings")
    };
    names.filter(is_read).collect()
}

fn flip(path: &Path) {
    let mut bytes = std::fs::read(path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn each_file_with_a_flipped_bit_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let name = store.to_str().unwrap();
    make(name, folder.path());
    let files = files_of(&store);
    let all_is_well = run_well(&["check", name]);
    let said = format!("{name}: {} files, ", files.len());
    assert!(
        all_is_well.stdout.starts_with(&said) && all_is_well.stdout.contains("as they were written"),
        "{}",
        all_is_well.stdout
    );
    let json: Value = serde_json::from_str(&run_well(&["check", name, "--json"]).stdout).unwrap();
    assert_eq!((json["files"].as_u64(), json["without_digest"].as_u64()), (Some(files.len() as u64), Some(0)));

    // All files except those that say what others are, then each of those.
    let says_of_others = |name: &&String| {
        name.ends_with("/week.json") || name.ends_with("/tables.json") || name.starts_with("_nigh/digests/")
    };
    let (lists, others): (Vec<&String>, Vec<&String>) = files.iter().partition(says_of_others);
    assert!(lists.len() == 3 && others.len() > 30 && others.iter().any(|name| name.starts_with("_nigh/before=")));
    let found = |names: &[&String], found: &str| -> Vec<(String, String)> {
        names.iter().map(|name| ((*name).clone(), found.to_owned())).collect()
    };
    others.iter().for_each(|name| flip(&store.join(name)));
    let ran = run(&["check", name, "--json"]);
    assert_eq!(damaged(&ran), found(&others, "has other bytes than were written"));
    assert_eq!(ran.code, Some(1));
    let said = format!("{} of {} files of {name} are damaged: restore them from a copy", others.len(), files.len());
    assert!(ran.stderr.contains(&said), "{}", ran.stderr);
    others.iter().for_each(|name| flip(&store.join(name)));
    for list in &lists {
        flip(&store.join(list));
        let ran = run(&["check", name, "--json"]);
        let names: Vec<String> = damaged(&ran).into_iter().map(|(file, _)| file).collect();
        assert_eq!((ran.code, names), (Some(1), vec![(*list).clone()]), "only {list} is damaged");
        flip(&store.join(list));
    }
    run_well(&["check", name]);

    // Whatever is lost is missed, one after the other.
    for lost in others.iter().step_by(5).chain(&lists) {
        let bytes = std::fs::read(store.join(lost)).unwrap();
        std::fs::remove_file(store.join(lost)).unwrap();
        let ran = run(&["check", name, "--json"]);
        let [(file, said)] = &damaged(&ran)[..] else { panic!("{lost}: {}", ran.stdout) };
        assert!(ran.code == Some(1) && file == *lost && said.contains("is missing"), "{}", ran.stdout);
        std::fs::write(store.join(lost), bytes).unwrap();
    }
    run_well(&["check", name]);
}

#[test]
fn a_last_week_with_files_that_are_cut_or_missing_is_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let name = store.to_str().unwrap();
    WEEKS.iter().for_each(|date| run_week(name, date, &[]));
    let (before, files) = (tables(&week(&store, WEEKS[1])), files_of(&store));
    let of_table = |table: &str| files.iter().find(|name| name.starts_with(table)).unwrap();
    let (cut, missing) = (of_table("clusters/week=2024-01-15/"), of_table("documents/week=2024-01-15/"));
    let bytes = std::fs::read(store.join(cut)).unwrap();
    std::fs::write(store.join(cut), &bytes[..100]).unwrap();
    std::fs::remove_file(store.join(missing)).unwrap();
    let ran = run(&["check", name, "--json"]);
    let found = [
        (cut.clone(), format!("has 100 bytes, and {} were written", bytes.len())),
        (missing.clone(), "is missing".to_owned()),
    ];
    assert_eq!((ran.code, damaged(&ran)), (Some(1), found.to_vec()));
    run_week(name, WEEKS[1], &["--replace"]);
    run_well(&["check", name]);
    assert!(tables(&week(&store, WEEKS[1])) == before);
}

#[test]
fn a_manifest_with_other_values_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let name = store.to_str().unwrap();
    run_week(name, WEEKS[0], &[]);
    let record = store.join("_nigh/week=2024-01-08/00001/week.json");
    let text = std::fs::read(&record).unwrap();
    std::fs::write(&record, "{").unwrap();
    let ran = run(&["check", name]);
    assert!(
        ran.code == Some(1) && ran.stdout.contains("week.json cannot be used: EOF while parsing"),
        "{}",
        ran.stdout
    );
    std::fs::write(&record, text).unwrap();
    let manifest = store.join("_nigh/manifest.json");
    let text = std::fs::read_to_string(&manifest).unwrap();
    let documents: fn(&mut Value) = |json| json["weeks"][0]["documents"] = 7.into();
    let named: fn(&mut Value) = |json| json["weeks"][0]["named"][0] = 7.into();
    let digests: fn(&mut Value) = |json| drop(json.as_object_mut().unwrap().remove("digests"));
    for (damage, found) in [
        (documents, "has other values than were written"),
        (named, "has other values than were written"),
        (digests, "does not name the list of digests that the last commit wrote"),
    ] {
        change(&manifest, damage);
        let ran = run(&["check", name, "--json"]);
        assert_eq!((ran.code, damaged(&ran)), (Some(1), vec![("_nigh/manifest.json".to_owned(), found.to_owned())]));
        std::fs::write(&manifest, &text).unwrap();
    }
    run_well(&["check", name]);
}

#[test]
fn a_damaged_list_of_digests_is_not_written_over() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let name = store.to_str().unwrap();
    run_week(name, WEEKS[0], &[]);
    let list = store.join("_nigh/digests/00001.json");
    flip(&list);
    let input = data(&format!("week-{}", WEEKS[1]));
    let next = ["run", "-q", "--week", WEEKS[1], "--store", name, "--input", input.to_str().unwrap()];
    let ran = run(&next);
    let said = "00001.json has other bytes than were written: restore it from a copy, or remove it";
    assert!(ran.code == Some(1) && ran.stderr.contains(said), "{}", ran.stderr);
    assert!(!store.join("clusters/week=2024-01-15").exists());
    std::fs::remove_file(&list).unwrap();
    run_well(&next);
    // Records of the first week have no digest any more, its tables have them in its record.
    let json: Value = serde_json::from_str(&run_well(&["check", name, "--json"]).stdout).unwrap();
    assert_eq!(json["without_digest"].as_u64(), Some(3));
}

#[test]
fn files_of_an_older_version_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let name = store.to_str().unwrap();
    make(name, folder.path());
    let files = files_of(&store);
    // As such a version left it.
    for list in files.iter().filter(|name| name.ends_with("/week.json") || name.ends_with("/tables.json")) {
        change(&store.join(list), remove_digests);
    }
    change(&store.join("_nigh/manifest.json"), |json| {
        assert!(json.as_object_mut().unwrap().remove("digests").is_some())
    });
    std::fs::remove_dir_all(store.join("_nigh/digests")).unwrap();
    let ran = run_well(&["check", name]);
    let said = format!("{} files have no digest, so at most their sizes were compared", files.len() - 1);
    assert!(ran.stdout.starts_with(&said), "{}", ran.stdout);
    let part = files.iter().find(|name| name.starts_with("features/")).unwrap();
    std::fs::write(store.join(part), "x").unwrap();
    let ran = run(&["check", name, "--json"]);
    let [(file, _)] = &damaged(&ran)[..] else { panic!("{}", ran.stdout) };
    assert_eq!(file, part);
    // The next commit lists what it makes, and the rest stays as it was.
    run_well(&["run", folder.path().join("overlap.toml").to_str().unwrap(), "-q", "--store", name]);
    let ran = run(&["check", name, "--json"]);
    let json: Value = serde_json::from_str(&ran.stdout).unwrap();
    let without = json["without_digest"].as_u64().unwrap() as usize;
    assert!(damaged(&ran).len() == 1 && without > 10 && without < files.len() - 3, "{without} of {}", files.len());
}

fn change(path: &Path, change: impl FnOnce(&mut Value)) {
    let mut json = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    change(&mut json);
    std::fs::write(path, json.to_string()).unwrap();
}

fn remove_digests(json: &mut Value) {
    match json {
        Value::Array(values) => values.iter_mut().for_each(remove_digests),
        Value::Object(fields) => {
            // A part of a table; an input has a digest, too.
            if fields.contains_key("pieces") {
                assert!(fields.remove("digest").is_some());
            }
            fields.values_mut().for_each(remove_digests);
        }
        _ => {}
    }
}

#[test]
fn a_folder_without_a_store_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let ran = run(&["check", folder.path().to_str().unwrap()]);
    assert!(ran.code == Some(1) && ran.stderr.contains("is not a nigh store"), "{}", ran.stderr);
}
