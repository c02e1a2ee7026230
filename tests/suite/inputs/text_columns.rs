//! Texts in several columns: as a dataset whose only column has them joined by line breaks.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::types::Int64Type;
use arrow_array::{Array as _, ArrayRef, Int64Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::properties::WriterProperties;
use serde_json::{Map, Value, json};

use crate::program::{job, longs, rows_of, run, run_well, tables, week};

const DATE: &str = "2024-01-08";
const NAMES: [&str; 3] = ["instruction", "meta.input", "output"];
/// The records of each file.
const FILES: [(&str, std::ops::Range<usize>); 4] =
    [("a.jsonl", 0..50), ("b.parquet", 50..80), ("c.arrow", 80..100), ("d.csv", 100..120)];
/// The record without a text.
const EMPTY: usize = 7;

/// The texts of record `n`, of which some are not there.
fn columns(n: usize) -> [Option<String>; 3] {
    if n == EMPTY {
        return [None, None, None];
    }
    let words = |salt: usize, count: usize| {
        (0..count).map(|word| format!("w{}", salt * 7919 + word * 104_729)).collect::<Vec<_>>().join(" ")
    };
    let instruction = format!("Task {}: \u{e9}tude\nUse \"all\" of the words\n", n % 3);
    let input = if n.is_multiple_of(7) { String::new() } else { words(n % 30, 60) + &format!(" own{n}") };
    let output = format!("{}\nA line that all have\n{}", words(n % 30 + 100, 160), words(n + 1000, 3));
    [
        Some(instruction).filter(|_| n % 4 != 3),
        Some(input).filter(|_| !n.is_multiple_of(5)),
        Some(output).filter(|_| n % 11 != 10),
    ]
}

/// What the text of a record is, as a script would join it.
fn joined(texts: &[Option<String>; 3]) -> String {
    texts.iter().map(|text| text.as_deref().unwrap_or("")).collect::<Vec<_>>().join("\n")
}

/// A line of JSON; what is not there is null, or is left out.
fn line(n: usize) -> String {
    let mut object = Map::new();
    let [instruction, input, output] = columns(n);
    // The order of fields does not matter.
    object.insert("id".to_owned(), n.into());
    let add = |object: &mut Map<String, Value>, name: &str, text: Option<String>| {
        if text.is_some() || n.is_multiple_of(2) {
            object.insert(name.to_owned(), text.into());
        }
    };
    add(&mut object, "output", output);
    add(&mut object, "instruction", instruction);
    let mut meta = Map::new();
    add(&mut meta, "input", input);
    object.insert("meta".to_owned(), meta.into());
    object.insert("score".to_owned(), json!(n));
    Value::from(object).to_string() + "\n"
}

/// Columns of texts with their names, and the ids of records.
fn batch(range: std::ops::Range<usize>, texts: &[(&str, Vec<Option<String>>)]) -> RecordBatch {
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(range.map(|n| n as i64)));
    let texts = texts.iter().map(|(name, texts)| (*name, Arc::new(StringArray::from(texts.clone())) as ArrayRef, true));
    RecordBatch::try_from_iter_with_nullable([("id", ids, false)].into_iter().chain(texts)).unwrap()
}

/// Writes a file of rows, by the ending of its name.
fn write(path: &Path, range: std::ops::Range<usize>, names: &[&str], texts: impl Fn(usize) -> Vec<Option<String>>) {
    let columns: Vec<(&str, Vec<Option<String>>)> = names
        .iter()
        .enumerate()
        .map(|(column, name)| (*name, range.clone().map(|n| texts(n)[column].clone()).collect()))
        .collect();
    let batch = batch(range.clone(), &columns);
    let file = std::fs::File::create(path).unwrap();
    match path.extension().unwrap().to_str().unwrap() {
        "parquet" => {
            let properties = WriterProperties::builder().set_max_row_group_row_count(Some(13)).build();
            let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
            writer.write(&batch).unwrap();
            writer.close().unwrap();
        }
        "arrow" => {
            let mut writer = arrow_ipc::writer::FileWriter::try_new(file, &batch.schema()).unwrap();
            writer.write(&batch).unwrap();
            writer.finish().unwrap();
        }
        _ => {
            let quoted = |text: &Option<String>| format!("\"{}\"", text.as_deref().unwrap_or("").replace('"', "\"\""));
            let rows = range.map(|n| {
                let texts: Vec<String> = texts(n).iter().map(quoted).collect();
                format!("{n},{}\n", texts.join(","))
            });
            let text = format!("id,{}\n{}", names.join(","), rows.collect::<String>());
            std::fs::write(path, text).unwrap();
        }
    }
}

/// The files with all columns in a folder, and in another one those with the joined text.
fn write_all(folder: &Path) -> [Vec<PathBuf>; 2] {
    let [several, one] = ["several", "one"].map(|name| folder.join(name));
    for folder in [&several, &one] {
        std::fs::create_dir(folder).unwrap();
    }
    for (name, range) in FILES {
        if name == "a.jsonl" {
            std::fs::write(several.join(name), range.clone().map(line).collect::<String>()).unwrap();
            let of_one = |n: usize| match n {
                EMPTY => json!({"id": n}).to_string() + "\n",
                n => json!({"id": n, "text": joined(&columns(n)), "score": n}).to_string() + "\n",
            };
            std::fs::write(one.join(name), range.map(of_one).collect::<String>()).unwrap();
        } else {
            write(&several.join(name), range.clone(), &NAMES, |n| columns(n).to_vec());
            write(&one.join(name), range, &["text"], |n| vec![Some(joined(&columns(n)))]);
        }
    }
    [several, one].map(|folder| FILES.map(|(name, _)| folder.join(name)).to_vec())
}

const JOB: &str = "[cluster]\nweek = \"2024-01-08\"\nmax-reject-share = 0.2\ncanonical = { by = \"score desc\" }\n[cluster.read.columns]\nid = \"id\"\n\
                   [cluster.method]\nshards = 4\nsimilarity = 0.7\nverify = \"exact\"\n";

/// Makes a store, in `folder`, of some inputs.
fn cluster(folder: &Path, name: &str, inputs: &[PathBuf], flags: &[&str]) -> PathBuf {
    let (store, job) = (folder.join(name), job(folder, JOB));
    let arguments = ["run", job.to_str().unwrap(), "-q", "--store", store.to_str().unwrap()];
    let inputs = inputs.iter().flat_map(|input| ["--input", input.to_str().unwrap()]);
    run_well(&[&arguments[..], &inputs.collect::<Vec<_>>(), flags].concat());
    store
}

const SEVERAL: [&str; 6] = ["--text", "instruction", "--text", "meta.input", "--text", "output"];

/// The texts of each record of an export, by its id; of all files that are Parquet or lines.
fn exported(out: &Path, names: &[&str]) -> BTreeMap<usize, Vec<Option<String>>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(out).unwrap() {
        let path = entry.unwrap().path();
        match path.extension().and_then(std::ffi::OsStr::to_str) {
            Some("jsonl") => {
                for line in std::fs::read_to_string(&path).unwrap().lines() {
                    let line: Value = serde_json::from_str(line).unwrap();
                    let field = |name: &&str| match name.split_once('.') {
                        Some((outer, inner)) if line.get(*name).is_none() => line[outer][inner].clone(),
                        _ => line[*name].clone(),
                    };
                    let texts = names.iter().map(field).map(|value| value.as_str().map(str::to_owned));
                    // That of a CSV file is a text.
                    let id = line["id"].to_string().trim_matches('"').parse().unwrap();
                    found.insert(id, texts.collect());
                }
            }
            Some("parquet") => {
                let file = std::fs::File::open(&path).unwrap();
                for batch in ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap() {
                    let batch = batch.unwrap();
                    let ids = batch["id"].as_primitive::<Int64Type>();
                    for row in 0..batch.num_rows() {
                        let text = |name: &&str| {
                            let within = || {
                                let (outer, inner) = name.split_once('.')?;
                                batch.column_by_name(outer)?.as_struct().column_by_name(inner)
                            };
                            let column = batch.column_by_name(name).or_else(within)?.as_string::<i32>();
                            (!column.is_null(row)).then(|| column.value(row).to_owned())
                        };
                        found.insert(ids.value(row) as usize, names.iter().map(text).collect());
                    }
                }
            }
            _ => {}
        }
    }
    found
}

fn export(store: &Path, out: &str, flags: &[&str]) -> (PathBuf, Value) {
    let out = store.with_file_name(out);
    let arguments = ["export", store.to_str().unwrap(), "--out", out.to_str().unwrap(), "--json"];
    let ran = run_well(&[&arguments[..], flags].concat());
    (out, serde_json::from_str(&ran.stdout).unwrap())
}

#[test]
fn joined_texts_are_those_of_one_column() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let [several, one] = write_all(folder);
    let stores = ["1", "2", "4"].map(|workers| {
        let flags = [&SEVERAL[..], &["--workers", workers]].concat();
        cluster(folder, &format!("several-{workers}"), &several, &flags)
    });
    let of_one = cluster(folder, "of-one", &one, &[]);
    let rows = |store: &Path| {
        let week = week(store, DATE);
        let documents = rows_of(&week, "documents", &["doc", "id", "bytes", "checksum", "words"]);
        let clusters = rows_of(&week, "clusters", &["doc", "similar_root", "exact_root", "canonical"]);
        (documents, clusters, rows_of(&week, "features", &["doc", "features"]))
    };
    for store in &stores {
        assert_eq!(tables(store), tables(&stores[0]), "for any number of workers");
    }
    assert_eq!(rows(&stores[0]), rows(&of_one));
    assert_eq!(rows(&of_one).0.len(), 119, "one record has no text");
    assert!(longs(&week(&of_one, DATE), "clusters", "similar_size").iter().any(|size| *size > 1));
    // All columns come back, of the records that stay.
    let (out, _) = export(&stores[0], "kept", &["--format", "jsonl"]);
    let (out_of_one, _) = export(&of_one, "kept-of-one", &["--format", "jsonl"]);
    let (kept, of_one) = (exported(&out, &NAMES), exported(&out_of_one, &["text"]));
    assert_eq!(kept.keys().collect::<BTreeSet<_>>(), of_one.keys().collect());
    assert!(kept.len() < 119);
    for (n, texts) in &kept {
        let is_csv = FILES[3].1.contains(n);
        let expected = columns(*n).map(|text| text.or_else(|| is_csv.then(String::new)));
        assert_eq!(texts[..], expected);
    }
}

#[test]
fn one_of_the_columns_is_enough_for_comparing() {
    let folder = tempfile::tempdir().unwrap();
    let [several, _] = write_all(folder.path());
    let arguments = ["--text", "output"];
    let store = cluster(folder.path(), "store", &several, &arguments);
    // A family has its outputs, whatever the other columns are; the last three words differ.
    let ids = rows_of(&week(&store, DATE), "clusters", &["id", "similar_root"]);
    let mut roots: BTreeMap<usize, BTreeSet<String>> = BTreeMap::new();
    for row in ids {
        let id: usize = row[0].parse().unwrap();
        if columns(id)[2].is_some() {
            roots.entry(id % 30).or_default().insert(row[1].clone());
        }
    }
    assert!(roots.len() == 30 && roots.values().all(|of_family| of_family.len() == 1), "{roots:?}");
}

#[test]
fn text_is_taken_out_of_the_column_that_has_it() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let [several, one] = write_all(folder);
    // Arrow and CSV are not written without parts of their texts.
    let several = cluster(folder, "several-columns", &several[..2], &SEVERAL);
    let one = cluster(folder, "one-column", &one[..2], &[]);
    for (number, flags) in
        [&["--level", "paragraph"][..], &["--level", "paragraph", "--overlap", "0.5", "--ngram", "4"]]
            .into_iter()
            .enumerate()
    {
        for format in [&["--format", "jsonl"][..], &["--format", "parquet"]] {
            let of = |store: &Path, name: &str, names: &[&str]| {
                let flags = [flags, format].concat();
                let (out, counts) = export(store, &format!("{name}-{number}-{}", format[1]), &flags);
                (exported(&out, names), counts)
            };
            let (found, counts) = of(&several, "several", &NAMES);
            let (expected, counts_of_one) = of(&one, "one", &["text"]);
            for field in ["written", "emptied", "paragraphs", "paragraph_bytes"] {
                assert_eq!(counts[field], counts_of_one[field], "{field}");
            }
            assert!(counts["paragraphs"].as_u64().unwrap() > 20, "{counts}");
            assert_eq!(found.keys().collect::<BTreeSet<_>>(), expected.keys().collect());
            let lines =
                |text: &str| text.split('\n').map(str::to_owned).filter(|line| !line.is_empty()).collect::<Vec<_>>();
            for (n, texts) in &found {
                let all: Vec<&str> = texts.iter().map(|text| text.as_deref().unwrap_or("")).collect();
                assert_eq!(lines(&all.join("\n")), lines(expected[n][0].as_deref().unwrap()), "{n}");
                // Each column has lines of its own, and is null where it was.
                for (text, before) in texts.iter().zip(columns(*n)) {
                    assert_eq!(text.is_some(), before.is_some(), "{n}");
                    let before = lines(before.as_deref().unwrap_or(""));
                    assert!(lines(text.as_deref().unwrap_or("")).iter().all(|line| before.contains(line)), "{n}");
                }
            }
        }
    }
}

#[test]
fn files_may_lack_some_of_the_columns_but_not_all() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let path = |name: &str| folder.join(name);
    for name in ["question.parquet", "question.arrow", "question.csv"] {
        write(&path(name), 0..10, &["question"], |n| vec![Some(joined(&columns(n + 10)))]);
    }
    let lines = |field: &str, from: usize| -> String {
        (0..10).map(|n| json!({"id": n + from, field: joined(&columns(n + from))}).to_string() + "\n").collect()
    };
    std::fs::write(path("answer.jsonl"), lines("answer", 20)).unwrap();
    let run = |name: &str, texts: &[&str]| {
        let (input, answers, store) = (path(name), path("answer.jsonl"), path("store"));
        let arguments = ["run", "--week", DATE, "--replace", "--store", store.to_str().unwrap(), "--id", "id"];
        let inputs = ["--input", input.to_str().unwrap(), answers.to_str().unwrap()];
        let texts = texts.iter().flat_map(|text| ["--text", text]);
        run(&[&arguments[..], &inputs, &texts.collect::<Vec<_>>()].concat())
    };
    for name in ["question.parquet", "question.arrow", "question.csv"] {
        let ran = run(name, &["question", "answer"]);
        assert_eq!(ran.code, Some(0), "{name}: {}", ran.stderr);
        // A column that no input has is an error, and so is a file that has none of them.
        let ran = run(name, &["question", "answer", "anwser"]);
        assert!(ran.code == Some(2) && ran.stderr.contains("no input has a column `anwser`"), "{}", ran.stderr);
        let ran = run(name, &["answer", "text"]);
        assert!(ran.code == Some(1) && ran.stderr.contains("has no column `answer`"), "{}", ran.stderr);
    }
    let ran = run("question.csv", &["question", "question"]);
    assert!(ran.code == Some(2) && ran.stderr.contains("`question` is named twice"), "{}", ran.stderr);
    // The default is not asked for where HTML is named.
    let job = job(folder, "[cluster]\nstore = \"store\"\n[cluster.read.columns]\nid = \"id\"\nhtml = \"question\"\n");
    for name in ["question.parquet", "question.arrow", "question.csv"] {
        let (input, store) = (path(name), path(&format!("html-{name}")));
        let flags = ["--week", DATE, "--store", store.to_str().unwrap(), "--input", input.to_str().unwrap()];
        run_well(&[&["run", job.to_str().unwrap(), "-q"][..], &flags].concat());
        assert_eq!(longs(&week(&store, DATE), "documents", "doc").len(), 10, "{name}");
    }
    // Without records nothing lacks a column: a batch may be empty.
    std::fs::write(path("empty.jsonl"), "").unwrap();
    let [input, store] = ["empty.jsonl", "store"].map(|name| path(name).to_str().unwrap().to_owned());
    let flags = ["-q", "--week", "2024-01-15", "--id", "id", "--text", "question", "--text", "answer", "--allow-empty"];
    run_well(&[&["add", &store][..], &flags, &["--input", &input]].concat());
}
