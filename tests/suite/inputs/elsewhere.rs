//! Inputs with relative names: commands find them from other folders than that of the run.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

use crate::program::{Ran, nigh, ran, tables};

const DATE: &str = "2024-01-08";

/// Lines of records, of which each has three words of its own.
fn lines(range: std::ops::Range<usize>) -> String {
    let text = |n: usize| {
        let words = (0..60).map(|word| format!("w{}", n % 5 * 7919 + word * 31));
        words.chain((0..3).map(|word| format!("own{n}x{word}"))).collect::<Vec<_>>().join(" ")
    };
    range.map(|n| json!({"id": n, "text": text(n)}).to_string() + "\n").collect()
}

/// Runs nigh in a folder.
fn run_in(folder: &Path, arguments: &[&str]) -> Ran {
    ran(nigh(arguments).current_dir(folder))
}

fn run_well_in(folder: &Path, arguments: &[&str]) -> Ran {
    let ran = run_in(folder, arguments);
    assert_eq!(ran.code, Some(0), "{arguments:?} in {}: {}", folder.display(), ran.stderr);
    ran
}

/// The ids of an export's lines, by the file.
fn ids(out: &Path) -> BTreeMap<String, Vec<u64>> {
    let mut found = BTreeMap::new();
    for entry in walkdir::WalkDir::new(out).into_iter().map(Result::unwrap) {
        if entry.path().extension().is_some_and(|ending| ending == "jsonl")
            && !entry.path().starts_with(out.join(".nigh-export"))
        {
            let id = |line: &str| serde_json::from_str::<Value>(line).unwrap()["id"].as_u64().unwrap();
            let text = std::fs::read_to_string(entry.path()).unwrap();
            let name = entry.path().strip_prefix(out).unwrap().to_str().unwrap().to_owned();
            found.insert(name, text.lines().map(id).collect());
        }
    }
    found
}

const FLAGS: [&str; 8] = ["-q", "--id", "id", "--similarity", "0.7", "--verify", "exact", "--input"];

#[test]
fn inputs_are_found_where_the_run_was() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    for name in ["first/shards/deep", "second", "elsewhere"] {
        std::fs::create_dir_all(path(name)).unwrap();
    }
    std::fs::write(path("first/shards/a.jsonl"), lines(0..10)).unwrap();
    std::fs::write(path("first/shards/deep/b.jsonl"), lines(10..20)).unwrap();
    std::fs::write(path("second/c.jsonl"), lines(20..30)).unwrap();
    let store = path("store").to_str().unwrap().to_owned();
    let elsewhere = path("elsewhere");

    // A folder, and a glob, which are the same to the tables.
    for (number, input) in ["shards", "shards/**", "./shards/"].into_iter().enumerate() {
        let run = ["run", "--replace", "--week", DATE, "--store", &store];
        run_well_in(&path("first"), &[&run[..], &FLAGS, &[input]].concat());
        let why = run_well_in(&elsewhere, &["why", &store, "3", "18"]);
        assert!(why.stdout.contains("shingles are in both"), "{input}: {}", why.stdout);
        let out = path(&format!("out-{number}"));
        run_well_in(&elsewhere, &["export", &store, "--out", out.to_str().unwrap()]);
        let found = ids(&out);
        assert_eq!(found["a.jsonl"], [0, 1, 2, 3, 4], "{input}: {found:?}");
        assert!(found["deep/b.jsonl"].is_empty(), "{input}: {found:?}");
    }

    // The tables have nothing of the folder.
    std::fs::create_dir(path("copy")).unwrap();
    crate::program::copy_folder(&path("first/shards"), &path("copy/shards"));
    let other = path("other-store").to_str().unwrap().to_owned();
    let run = ["run", "--week", DATE, "--store", &other];
    run_well_in(&path("copy"), &[&run[..], &FLAGS, &["shards"]].concat());
    assert_eq!(tables(Path::new(&other)), tables(Path::new(&store)));

    // A batch from another folder, verified by the texts of both, and without some documents.
    let add = ["add", &store, "--week", "2024-01-15"];
    run_well_in(&path("second"), &[&add[..], &FLAGS, &["c.jsonl"]].concat());
    let out = path("both");
    run_well_in(&elsewhere, &["export", &store, "--out", out.to_str().unwrap(), "--most", "2"]);
    assert_eq!(ids(&out).values().map(Vec::len).sum::<usize>(), 10, "{:?}", ids(&out));
    run_well_in(&elsewhere, &["delete", "--store", &store, "--id", "0"]);
    let why = run_well_in(&elsewhere, &["why", &store, "3", "28"]);
    assert!(why.stdout.contains("shingles are in both"), "{}", why.stdout);
}

#[test]
fn an_error_says_where_inputs_were_looked_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    for name in ["first/shards", "elsewhere"] {
        std::fs::create_dir_all(path(name)).unwrap();
    }
    std::fs::write(path("first/shards/a.jsonl"), lines(0..10)).unwrap();
    let (store, elsewhere, first) = (path("store").to_str().unwrap().to_owned(), path("elsewhere"), path("first"));
    let run = ["run", "--week", DATE, "--store", &store];
    run_well_in(&first, &[&run[..], &FLAGS, &["shards/*.jsonl"]].concat());
    // Where the run was comes first: other files of this name are not those of the week.
    std::fs::create_dir(elsewhere.join("shards")).unwrap();
    std::fs::write(elsewhere.join("shards/a.jsonl"), lines(50..60)).unwrap();
    let out = path("out").to_str().unwrap().to_owned();
    run_well_in(&elsewhere, &["export", &store, "--out", &out]);
    // What --input names is here.
    let out = path("out-of-input").to_str().unwrap().to_owned();
    let refused = run_in(&elsewhere, &["export", &store, "--out", &out, "--input", "shards"]);
    assert!(refused.code == Some(1) && refused.stderr.contains("shards/a.jsonl has changed"), "{}", refused.stderr);

    // Moved, the inputs are found from where they are now.
    std::fs::rename(first.join("shards"), path("shards")).unwrap();
    run_well_in(folder.path(), &["export", &store, "--out", &out]);
    std::fs::remove_dir_all(elsewhere.join("shards")).unwrap();
    let first = std::fs::canonicalize(&first).unwrap().display().to_string();
    let refused = run_in(&elsewhere, &["export", &store, "--out", &out, "--what", "removed"]);
    assert!(
        refused.code == Some(1) && refused.stderr.contains(&format!("nor is it in {first}, from where earlier runs")),
        "{}",
        refused.stderr
    );
    let why = run_well_in(&elsewhere, &["why", &store, "3", "8"]);
    let said = format!("shards/a.jsonl was looked for in the working directory and in {first}, and is not there");
    assert!(why.stdout.split_whitespace().collect::<Vec<_>>().join(" ").contains(&said), "{}", why.stdout);
}
