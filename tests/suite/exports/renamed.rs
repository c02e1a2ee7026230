//! Exports with columns under other names have the records of one without.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use parquet::file::metadata::KeyValue;
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use serde_json::{Map, Value};

use crate::exports::shards::{export, files, rows, store, store_of};
use crate::program::{run, run_well};

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
fn the_metadata_of_parquet_has_the_new_names() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![0, 1]));
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["one text", "another text"]));
    let batch = RecordBatch::try_from_iter([("id", numbers.clone()), ("text", texts), ("label", numbers)]).unwrap();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    let features = r#"{"info":{"features":{"label":{"names":["neg","pos"],"_type":"ClassLabel"}}}}"#;
    writer.append_key_value_metadata(KeyValue::new("huggingface".to_owned(), features.to_owned()));
    let store = store_of_file(folder, "labels.parquet", &writer.into_inner().unwrap());
    let out = folder.join("out");
    export(&store, &out, &["--rename", "label=target"]);
    let file = SerializedFileReader::new(std::fs::File::open(out.join("labels.parquet")).unwrap()).unwrap();
    let pairs = file.metadata().file_metadata().key_value_metadata().unwrap();
    let of_hub = pairs.iter().find(|pair| pair.key == "huggingface").unwrap().value.as_deref().unwrap();
    let of_hub: Value = serde_json::from_str(of_hub).unwrap();
    assert_eq!(of_hub["info"]["features"]["target"]["names"][1], "pos");
    assert!(of_hub["info"]["features"].get("label").is_none(), "{of_hub}");
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
    // A field that records get has a row with its new name, and is not of the input.
    let card = text(&renamed.join("README.md"));
    assert!(card.contains("| `\"n\"` | the records of its cluster") && !card.contains("nigh_size"), "{card}");
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
            (&["--rename", "text=id"], 2, "has a column `id`, and `text` would be called so"),
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

/// A store of one file, whose records have texts of their own.
fn store_of_file(folder: &Path, name: &str, text: &[u8]) -> PathBuf {
    let input = folder.join(name);
    std::fs::write(&input, text).unwrap();
    store_of(folder, &format!("store-{name}"), &[input])
}

#[test]
fn the_first_record_of_csv_is_found_as_readers_find_it() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for (number, (text, flag, wanted)) in [
        ("\nid,text\n1,a\n", "text=body", "\nid,body\n1,a\n"),
        ("\u{feff}\r\n\r\nid,text\r\n1,a\r\n", "text=body", "\u{feff}\r\n\r\nid,body\r\n1,a\r\n"),
        ("id,text,size 5\",note\n1,a,2,x\n", "note=remark", "id,text,size 5\",remark\n1,a,2,x\n"),
        ("id,text,size 5\",note\n1,a,2,x\n", "size 5\"=size", "id,text,size,note\n1,a,2,x\n"),
    ]
    .into_iter()
    .enumerate()
    {
        let store = store_of_file(folder, &format!("{number}.csv"), text.as_bytes());
        let out = folder.join(format!("out-{number}"));
        export(&store, &out, &["--rename", flag]);
        assert_eq!(std::fs::read_to_string(out.join(format!("{number}.csv"))).unwrap(), wanted);
    }
    let store = folder.join("store-3.csv");
    let refused = ["export", store.to_str().unwrap(), "--out", "none", "--rename", "text=note"];
    let ran = run(&refused);
    assert!(ran.code == Some(2) && ran.stderr.contains("3.csv has a column `note`"), "{}", ran.stderr);
}

#[test]
fn a_name_is_taken_if_any_line_has_it() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let two = "{\"id\":1,\"text\":\"x\",\"lang\":\"en\"}\n{\"id\":2,\"text\":\"y\",\"language\":\"de\"}\n";
    let store = store_of_file(folder, "two.jsonl", two.as_bytes());
    let refused = |store: &Path, name: &str| {
        let out = folder.join(name);
        run(&["export", store.to_str().unwrap(), "--out", out.to_str().unwrap(), "--rename", "lang=language"])
    };
    let ran = refused(&store, "out-two");
    let wanted = "two.jsonl has a column `language`, and `lang` would be called so";
    assert!(ran.code == Some(2) && ran.stderr.contains(wanted), "{}", ran.stderr);
    // Both can change their names.
    let out = folder.join("both");
    export(&store, &out, &["--rename", "lang=language", "--rename", "language=lang"]);
    let all = rows(&out.join("two.jsonl"));
    assert_eq!((&all[0]["language"], &all[1]["lang"]), (&Value::from("en"), &Value::from("de")));

    // Of a long file the first lines are looked at before; a later one is named. Blank lines count.
    let line = |n: usize, more: &str| format!("{{\"id\":{n},\"text\":\"text {n}\"{more}}}\n");
    let mut late = line(0, ",\"lang\":\"en\"") + "\n";
    (1..1200).for_each(|n| late += &line(n, ""));
    late += &line(1200, ",\"language\":\"de\"");
    let store = store_of_file(folder, "late.jsonl", late.as_bytes());
    let ran = refused(&store, "out-late");
    let wanted = "late.jsonl, line 1202: it has a column `language`, and `lang` would be called so";
    assert!(ran.code == Some(1) && ran.stderr.contains(wanted), "{}", ran.stderr);

    // A column that begins late is there.
    let store = store_of_file(folder, "begins.jsonl", late.replace("lang\":\"en", "other\":\"x").as_bytes());
    let out = folder.join("begins");
    export(&store, &out, &["--rename", "language=lang"]);
    assert!(rows(&out.join("begins.jsonl")).iter().any(|row| row["lang"] == "de"));
}
