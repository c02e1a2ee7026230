//! Exports with columns under other names have the records of one without.

use std::path::Path;

use serde_json::{Map, Value};

use crate::program::{run, run_well};
use crate::shards::{export, files, rows, store};

/// The new name of a column.
fn new_name(name: &str) -> &str {
    match name {
        "text" => "body",
        "meta" => "about",
        "flag" => "source",
        "source" => "flag",
        "nigh_size" => "weight",
        name => name,
    }
}

const FLAGS: [&str; 8] =
    ["--rename", "text=body", "--rename", "flag=source", "--rename", "source=flag", "--rename", "meta=about"];

#[test]
fn columns_are_written_under_other_names() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for (format, to) in [
        ("jsonl", "same"),
        ("jsonl", "parquet"),
        ("parquet", "same"),
        ("parquet", "jsonl"),
        ("arrow", "jsonl"),
        ("arrow", "parquet"),
    ] {
        let store = store(folder, format);
        for (number, flags) in
            [&[][..], &["--weights"], &["--shards", "3"], &["--level", "paragraph"]].into_iter().enumerate()
        {
            if format == "arrow" && number == 3 {
                // Paragraphs are not taken out of Arrow.
                continue;
            }
            let out = |name: &str| folder.join(format!("{name}-{format}-{to}-{number}"));
            let flags = [flags, &["--format", to]].concat();
            let (plain, renamed) = (out("plain"), out("renamed"));
            export(&store, &plain, &flags);
            let of_size = if number == 1 { &["--rename", "nigh_size=weight"][..] } else { &[] };
            let with = [&flags[..], &FLAGS, of_size].concat();
            let counts = export(&store, &renamed, &with);
            let named = |row: Value| -> Map<String, Value> {
                let Value::Object(row) = row else { panic!("{row}") };
                row.into_iter().map(|(name, value)| (new_name(&name).to_owned(), value)).collect()
            };
            let plain = files(&plain);
            assert!(plain.len() == 3, "{plain:?}");
            for (name, path) in &plain {
                let expected: Vec<Map<String, Value>> = rows(path).into_iter().map(named).collect();
                let found: Vec<Value> = rows(&renamed.join(name));
                assert!(found == expected.into_iter().map(Value::Object).collect::<Vec<_>>(), "{name} {flags:?}");
            }
            assert_eq!(export(&store, &renamed, &with), counts);
        }
    }
}

#[test]
fn csv_keeps_all_but_its_first_line() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let store = store(folder, "csv");
    let (plain, renamed) = (folder.join("plain"), folder.join("renamed"));
    export(&store, &plain, &["--weights"]);
    let flags = ["--weights", "--rename", "text=a, b", "--rename", "nigh_size=\"n\"", "--card"];
    export(&store, &renamed, &flags);
    let text = |path: &Path| std::fs::read_to_string(path).unwrap();
    for (name, path) in files(&plain) {
        let before = text(&path);
        let (head, records) = before.split_once('\n').unwrap();
        let head = head.replace("text", "\"a, b\"").replace("nigh_size", "\"\"\"n\"\"\"");
        assert_eq!(text(&renamed.join(&name)), format!("{head}\n{records}"));
    }
    assert!(text(&renamed.join("README.md")).contains("| renamed column | `a, b` is `text` of the input |"));
    // As lines, the names are those of fields.
    let lines = folder.join("lines");
    export(&store, &lines, &["--rename", "text=a, b", "--format", "jsonl"]);
    let all: Vec<Value> = files(&lines).values().flat_map(|path| rows(path)).collect();
    assert!(all.iter().all(|row| row["a, b"].is_string() && row.get("text").is_none()) && all.len() > 10);
}

#[test]
fn names_that_cannot_be_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let refused = |store: &Path, flags: &[&str], code: i32| {
        let out = tempfile::tempdir_in(folder).unwrap();
        let ran = run(&[&["export", store.to_str().unwrap(), "--out", out.path().to_str().unwrap()], flags].concat());
        assert_eq!(ran.code, Some(code), "{flags:?}: {}", ran.stderr);
        // Files of which nothing stays have no columns, and are whole.
        let written = files(out.path()).into_values().map(|path| match path.extension().unwrap().to_str() {
            Some("csv") => std::fs::read_to_string(path).unwrap().lines().skip(1).count(),
            _ => rows(&path).len(),
        });
        assert_eq!(written.sum::<usize>(), 0, "{flags:?}");
        ran.stderr
    };
    for format in ["jsonl", "parquet", "arrow", "csv"] {
        let store = store(folder, format);
        let to = ["--format", if format == "arrow" { "parquet" } else { "same" }];
        for (flags, code, wanted) in [
            (&["--rename", "txt=body"][..], 2, "no input has records with a column `txt`"),
            (&["--rename", "text=id"], 1, "has a column `id`, and `text` would be called so"),
            (&["--rename", "text=a", "--rename", "text=b"], 2, "the column `text` would have two new names"),
            (&["--rename", "text=a", "--rename", "flag=a"], 2, "two columns would have the name `a`"),
            (&["--rename", "nigh_size=a"], 2, "no input has records with a column `nigh_size`"),
            (&["--rename", "text"], 2, "`text` is not OLD=NEW"),
            (&["--rename", "text=a", "--others"], 2, "--rename is for rows"),
        ] {
            let said = refused(&store, &[flags, &to].concat(), code);
            assert!(said.contains(wanted), "{format} {flags:?}: {said}");
        }
        if format != "csv" {
            let said = refused(&store, &[&["--rename", "meta.score=score"], &to[..]].concat(), 2);
            assert!(said.contains("a column `meta.score` that is not within another one"), "{said}");
        }
    }
    // A text file has no columns; as a row it has those that are written.
    let page = folder.join("page.txt");
    std::fs::write(&page, "some words of a page\n").unwrap();
    let store = store_of_text(folder, &page);
    let out = folder.join("out");
    let said = refused(&store, &["--rename", "text=body"], 1);
    assert!(said.contains("page.txt is text, whose records have no columns to rename"), "{said}");
    run_well(&[
        "export",
        store.to_str().unwrap(),
        "--out",
        out.to_str().unwrap(),
        "--rename",
        "text=body",
        "--format",
        "jsonl",
    ]);
    let row = &rows(&out.join("page.jsonl"))[0];
    assert!(row["body"] == "some words of a page\n" || row["body"] == "some words of a page", "{row}");
    // The folder is of one export.
    let other = run(&["export", store.to_str().unwrap(), "--out", out.to_str().unwrap(), "--format", "jsonl"]);
    assert!(other.code == Some(2) && other.stderr.contains("has files of another export"), "{}", other.stderr);
}

fn store_of_text(folder: &Path, page: &Path) -> std::path::PathBuf {
    let store = folder.join("store-text");
    let [store_name, page] = [&store, page].map(|path: &Path| path.to_str().unwrap());
    run_well(&["run", "-q", "--week", "2024-01-08", "--store", store_name, "--input", page]);
    store
}
