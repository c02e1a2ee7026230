//! Exports in another format than that of the inputs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array as _, ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_select::concat::concat_batches;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::Value;

use crate::exports::whole::{LineShards, record};
use crate::program::{Made, features, job, longs, run, run_well, texts, week};

const DATE: &str = "2024-01-08";

/// All rows of a Parquet file.
fn rows(path: &Path) -> RecordBatch {
    let reader = ParquetRecordBatchReaderBuilder::try_new(std::fs::File::open(path).unwrap()).unwrap();
    let schema = reader.schema().clone();
    let batches: Vec<RecordBatch> = reader.build().unwrap().map(Result::unwrap).collect();
    concat_batches(&schema, &batches).unwrap()
}

fn names(rows: &RecordBatch) -> Vec<String> {
    rows.schema().fields().iter().map(|field| field.name().clone()).collect()
}

pub fn values(path: &Path) -> Vec<Value> {
    std::fs::read_to_string(path).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Exports a store to a new folder beside it.
pub fn export(store: &Path, out: &str, flags: &[&str]) -> std::path::PathBuf {
    let folder = store.with_file_name(out);
    let arguments = ["export", store.to_str().unwrap(), "--out", folder.to_str().unwrap()];
    run_well(&[&arguments[..], flags].concat());
    folder
}

#[test]
fn lines_become_parquet_and_parquet_becomes_lines_with_the_same_values() {
    let dataset = LineShards::new();
    let kept = dataset.export("kept", &[]);
    let store = dataset.path("store");
    let parquet = export(&store, "parquet", &["--format", "parquet"]);
    let shards = ["a.parquet", "b.parquet", "deep/c.parquet"];
    for (shard, lines) in shards.iter().zip(&kept) {
        let rows = rows(&parquet.join(shard));
        assert_eq!(names(&rows), ["date", "id", "more", "text", "url"], "as the lines have them");
        let ids = rows.column_by_name("id").unwrap().as_primitive::<Int64Type>();
        let texts = rows.column_by_name("text").unwrap().as_string::<i32>();
        assert_eq!(rows.num_rows(), lines.len());
        for (row, line) in lines.iter().enumerate() {
            let line: Value = serde_json::from_str(line).unwrap();
            assert!(line["id"] == ids.value(row) && line["text"] == texts.value(row));
        }
    }
    assert_eq!(std::fs::read_dir(&parquet).unwrap().count(), 4, "three files or folders and the list");
    // The files of any number of threads are the same.
    let again = export(&store, "again", &["--format", "parquet", "--workers", "1"]);
    assert!(
        shards
            .iter()
            .all(|name| std::fs::read(again.join(name)).unwrap() == std::fs::read(parquet.join(name)).unwrap())
    );

    // All rows as Parquet, and of these what stays as lines.
    let all = export(&store, "all", &["--format", "parquet", "--what", "annotated"]);
    dataset.cluster(&all);
    let (clusters, mut found) = (dataset.clusters(), Vec::new());
    let jsonl = export(&store, "jsonl", &["--format", "jsonl"]);
    for name in ["a.jsonl", "b.jsonl", "deep/c.jsonl"] {
        found.extend(values(&jsonl.join(name)));
    }
    let wanted: Vec<usize> = (0..120).filter(|n| clusters[n].first() == Some(n)).collect();
    assert_eq!(found.len(), wanted.len());
    for (mut line, n) in found.into_iter().zip(wanted) {
        let fields = line.as_object_mut().unwrap();
        fields.retain(|name, _| !name.starts_with("nigh_"));
        assert_eq!(line, record(n));
    }
    // Annotated rows have fields that cannot be added again.
    let refused = run(&["export", store.to_str().unwrap(), "--out", "x", "--what", "annotated", "--format", "jsonl"]);
    assert!(refused.code == Some(1) && refused.stderr.contains("has `nigh_cluster` already"), "{}", refused.stderr);
    assert!(!Path::new("x").exists(), "nothing was written, and no folder is left");
}

#[test]
fn columns_are_those_of_all_lines() {
    let folder = tempfile::tempdir().unwrap();
    let (shards, store) = (folder.path().join("shards"), folder.path().join("store"));
    std::fs::create_dir(&shards).unwrap();
    let text = |n: usize| (0..60).map(|word| format!("w{}", n * 1000 + word)).collect::<Vec<_>>().join(" ");
    let first =
        format!("{{\"b\": 1, \"text\": \"{}\", \"id\": \"x\", \"none\": null, \"deep\": {{\"no\": []}}}}\n", text(1));
    let second = format!(
        "\u{feff}{{\"id\": 7, \"text\": \"{}\", \"b\": \"two\", \"more\": 1.5, \"deep\": {{\"yes\": [1]}}}}\n",
        text(2)
    );
    std::fs::write(shards.join("1.jsonl"), first).unwrap();
    std::fs::write(shards.join("2.jsonl"), second).unwrap();
    let of_job = job(
        folder.path(),
        "[cluster]\nweek = \"2024-01-08\"\n[cluster.read.columns]\nid = \"id\"\n[cluster.method]\nshards = 4\n",
    );
    let cluster = || {
        let arguments = ["run", of_job.to_str().unwrap(), "-q", "--replace", "--store", store.to_str().unwrap()];
        run_well(&[&arguments[..], &["--input", shards.to_str().unwrap()]].concat());
    };
    cluster();
    let out = export(&store, "out", &["--format", "parquet"]);
    let tables = ["1.parquet", "2.parquet"].map(|name| rows(&out.join(name)));
    for rows in &tables {
        assert_eq!(names(rows), ["b", "text", "id", "deep", "more"], "without the one that is always null");
        assert_eq!(rows.schema(), tables[0].schema());
    }
    let text_of =
        |table: usize, name: &str| tables[table].column_by_name(name).unwrap().as_string::<i32>().value(0).to_owned();
    assert_eq!([text_of(0, "b"), text_of(1, "b"), text_of(0, "id"), text_of(1, "id")], ["1", "two", "x", "7"]);
    let more = |table: usize| tables[table].column_by_name("more").unwrap().as_primitive::<Float64Type>().clone();
    assert!(more(0).is_null(0) && more(1).value(0) == 1.5);

    // An object here and a number there have no type in common.
    let both = format!("{{\"id\": 1, \"text\": \"{}\", \"deep\": 3}}\n", text(3));
    std::fs::write(shards.join("3.jsonl"), both).unwrap();
    cluster();
    let out = folder.path().join("other");
    let arguments = ["export", store.to_str().unwrap(), "--out", out.to_str().unwrap(), "--format", "parquet"];
    let refused = run(&arguments);
    assert!(refused.code == Some(1) && refused.stderr.contains("--format same"), "{}", refused.stderr);
    assert!(refused.stderr.contains("3.jsonl, line 1: the field `deep`") && !out.join(".nigh-export").exists());
}

#[test]
fn a_byte_order_mark_before_a_later_line_is_none_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let (input, store) = (folder.path().join("joined.jsonl"), folder.path().join("store"));
    let lines = "\u{feff}{\"id\":1,\"text\":\"one two\"}\n\u{feff}{\"id\":2,\"text\":\"three\",\"more\":7}\n";
    std::fs::write(&input, lines).unwrap();
    let job = job(folder.path(), "[cluster.read.columns]\nid = \"id\"\n");
    let [job, store_name, input] = [&job, &store, &input].map(|path| path.to_str().unwrap());
    run_well(&["run", job, "-q", "--no-accuracy", "--week", DATE, "--store", store_name, "--input", input]);
    let found = rows(&export(&store, "parquet", &["--format", "parquet"]).join("joined.parquet"));
    assert_eq!((names(&found), found.num_rows()), (["id", "text", "more"].map(str::to_owned).to_vec(), 2));
    assert_eq!(found.column_by_name("more").unwrap().as_primitive::<Int64Type>().value(1), 7);
}

#[test]
fn records_of_csv_become_rows_of_texts() {
    let dataset = LineShards::new();
    let (store, input) = (dataset.path("store"), dataset.path("table.csv"));
    let note = "a \"quoted\"\nnote, and a comma";
    let line = |n: usize| {
        format!("{n},2024-01-01,\"{}\",\"{}\"\r\n", note.replace('"', "\"\""), record(n)["text"].as_str().unwrap())
    };
    let lines: Vec<String> = (0..60).map(line).collect();
    std::fs::write(
        &input,
        format!("\u{feff}id,date,note,text\n{}short\n{}", lines[..30].concat(), lines[30..].concat()),
    )
    .unwrap();
    dataset.cluster(&input);
    let clusters = dataset.clusters();
    let wanted: Vec<usize> = (0..60).filter(|n| clusters[n].first() == Some(n)).collect();
    let of_lines = values(&export(&store, "lines", &["--format", "jsonl"]).join("table.jsonl"));
    let of_rows = rows(&export(&store, "rows", &["--format", "parquet"]).join("table.parquet"));
    assert_eq!(names(&of_rows), ["id", "date", "note", "text"]);
    assert!(of_lines.len() == wanted.len() && of_rows.num_rows() == wanted.len());
    for (row, n) in wanted.into_iter().enumerate() {
        let of_record =
            serde_json::json!({"id": n.to_string(), "date": "2024-01-01", "note": note, "text": record(n)["text"]});
        assert_eq!(of_lines[row], of_record);
        for (name, value) in of_record.as_object().unwrap() {
            assert_eq!(*value, of_rows.column_by_name(name).unwrap().as_string::<i32>().value(row));
        }
    }
}

#[test]
fn pages_become_rows_whose_text_has_the_features_of_the_page() {
    let made = Made::new(&[]);
    let [lines, parquet] =
        ["jsonl", "parquet"].map(|format| export(&made.store(), format, &["--format", format, "--what", "annotated"]));
    let mut of_lines: Vec<Value> = Vec::new();
    let mut files: Vec<_> = walkdir::WalkDir::new(&lines).into_iter().map(|entry| entry.unwrap().into_path()).collect();
    files.retain(|path| {
        path.file_name().is_some_and(|name| name.to_string_lossy().ends_with(".jsonl") && name != "list.jsonl")
    });
    for path in &files {
        let of_file = values(path);
        let rows = rows(&parquet.join(path.strip_prefix(&lines).unwrap()).with_extension("parquet"));
        assert_eq!(names(&rows)[..6], ["url", "date", "status", "media_type", "title", "text"]);
        let texts = rows.column_by_name("text").unwrap().as_string::<i32>();
        assert!(
            of_file.iter().zip(texts).all(|(line, text)| line["text"] == text.unwrap()) && of_file.len() == texts.len()
        );
        of_lines.extend(of_file);
    }
    let first = week(&made.store(), DATE);
    let titles: BTreeSet<String> =
        texts(&first, "documents", "title").into_iter().filter(|title| !title.is_empty()).collect();
    let found: BTreeSet<String> =
        of_lines.iter().filter_map(|line| line["title"].as_str().map(str::to_owned)).collect();
    assert!(found == titles && of_lines[0]["status"] == 200 && of_lines[0]["date"].as_str().unwrap().starts_with("20"));

    // The same shingles, so the same features of each URL.
    let store = made.store().with_file_name("again");
    let input = lines.to_str().unwrap();
    run_well(&["run", "-q", "--week", DATE, "--store", store.to_str().unwrap(), "--input", input]);
    let of_url = |of: &Path| -> BTreeMap<String, Vec<u16>> {
        let urls = longs(of, "documents", "doc").into_iter().zip(texts(of, "documents", "url"));
        let mut features = features(of);
        urls.filter_map(|(doc, url)| features.remove(&doc).map(|features| (url, features))).collect()
    };
    let (before, after) = (of_url(&first), of_url(&week(&store, DATE)));
    assert!(before.len() > 100, "{}", before.len());
    assert_eq!(before.keys().collect::<Vec<_>>(), after.keys().collect::<Vec<_>>());
    let differing: Vec<&String> =
        before.iter().filter(|(url, features)| after[*url] != **features).map(|(url, _)| url).collect();
    assert!(differing.is_empty(), "{differing:?}");
}

#[test]
fn arrow_of_several_streams_is_not_converted_and_the_message_says_why() {
    let dataset = LineShards::new();
    let (store, input, out) = (dataset.path("store"), dataset.path("rows.arrow"), dataset.path("out"));
    let mut bytes = Vec::new();
    for first in [0, 20] {
        let texts: Vec<String> = (first..first + 20).map(|n| record(n)["text"].as_str().unwrap().to_owned()).collect();
        let first = first as i64;
        let columns: [(&str, ArrayRef); 3] = [
            ("id", Arc::new(Int64Array::from_iter_values(first..first + 20))),
            ("text", Arc::new(StringArray::from_iter_values(&texts))),
            ("date", Arc::new(StringArray::from_iter_values(texts.iter().map(|_| "2024-01-01")))),
        ];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let mut writer = arrow_ipc::writer::StreamWriter::try_new(&mut bytes, &batch.schema()).unwrap();
        writer.write(&batch).unwrap();
        writer.finish().unwrap();
    }
    std::fs::write(&input, &bytes).unwrap();
    dataset.cluster(&input);
    let [store, out] = [&store, &out].map(|path| path.to_str().unwrap());
    let refused = run(&["export", store, "--out", out, "--format", "parquet", "--what", "annotated"]);
    assert_eq!(refused.code, Some(1), "{}", refused.stderr);
    let wanted = "rows.arrow has the record at 20 behind its first stream";
    assert!(refused.stderr.contains(wanted) && !refused.stderr.contains("changed"), "{}", refused.stderr);
}

#[test]
fn arrow_files_become_parquet_or_lines() {
    let dataset = LineShards::new();
    let store = dataset.path("store");
    let texts: Vec<String> = (0..60).map(|n| record(n)["text"].as_str().unwrap().to_owned()).collect();
    let columns: [(&str, ArrayRef); 3] = [
        ("id", Arc::new(Int64Array::from_iter_values(0..60))),
        ("text", Arc::new(StringArray::from_iter_values(&texts))),
        ("date", Arc::new(StringArray::from_iter_values((0..60).map(|_| "2024-01-01")))),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    for kind in ["file", "stream", "polars"] {
        let input = dataset.path("rows.arrow");
        let mut bytes = Vec::new();
        let parts = [batch.slice(0, 17), batch.slice(17, 43)];
        if kind == "stream" {
            let mut writer = arrow_ipc::writer::StreamWriter::try_new(&mut bytes, &batch.schema()).unwrap();
            parts.iter().for_each(|part| writer.write(part).unwrap());
            writer.finish().unwrap();
        } else {
            let mut writer = arrow_ipc::writer::FileWriter::try_new(&mut bytes, &batch.schema()).unwrap();
            parts.iter().for_each(|part| writer.write(part).unwrap());
            writer.finish().unwrap();
        }
        if kind == "polars" {
            // The head of the schema without its marker and its length: only the table of contents
            // has the schema.
            let at = bytes.windows(4).position(|word| word == [0xff; 4]).unwrap();
            let length = u32::from_le_bytes(*bytes[at + 4..].first_chunk().unwrap()) as usize;
            bytes.copy_within(at + 8..at + 8 + length, at);
            bytes[at + length..at + length + 8].fill(0);
        }
        std::fs::write(&input, &bytes).unwrap();
        dataset.cluster(&input);
        let clusters = dataset.clusters();
        let wanted: Vec<usize> = (0..60).filter(|n| clusters[n].first() == Some(n)).collect();
        let out = export(&store, &format!("parquet-{kind}"), &["--format", "parquet"]);
        let found = rows(&out.join("rows.parquet"));
        assert_eq!(found.num_rows(), wanted.len());
        for (row, n) in wanted.iter().enumerate() {
            assert_eq!(found.slice(row, 1), batch.slice(*n, 1));
        }
        let lines = values(&export(&store, &format!("lines-{kind}"), &["--format", "jsonl"]).join("rows.jsonl"));
        assert!(lines.iter().zip(&wanted).all(|(line, n)| line["id"] == *n && line["text"] == texts[*n]));
        assert_eq!(lines.len(), wanted.len());
        let other = dataset.path("same");
        let refused = run(&["export", store.to_str().unwrap(), "--out", other.to_str().unwrap()]);
        assert!(refused.code == Some(1) && refused.stderr.contains("--format parquet or jsonl"), "{}", refused.stderr);
        assert!(!other.exists(), "nothing was written, and no folder is left");
    }
    let folder = dataset.path("folder");
    let refused = run(&["export", store.to_str().unwrap(), "--out", folder.to_str().unwrap(), "--format", "warc"]);
    assert!(
        refused.code == Some(1) && refused.stderr.contains("give --format same, jsonl or parquet"),
        "{}",
        refused.stderr
    );
    let refused = run(&["export", store.to_str().unwrap(), "--list", "x", "--format", "jsonl"]);
    assert!(refused.code == Some(2) && refused.stderr.contains("--format is for --out"), "{}", refused.stderr);
}

/// A value of JSON in one way: numbers by their digits, without fields that are null and lists and
/// objects without anything.
fn normal(json: &serde_json::value::RawValue) -> Option<String> {
    use serde_json::value::RawValue;
    let text = json.get();
    Some(match text.as_bytes()[0] {
        b'n' => return None,
        b'{' => {
            let fields: BTreeMap<String, Box<RawValue>> = serde_json::from_str(text).unwrap();
            let fields: Vec<String> =
                fields.iter().filter_map(|(name, value)| Some(format!("{name}:{}", normal(value)?))).collect();
            if fields.is_empty() {
                return None;
            }
            format!("{{{}}}", fields.join(","))
        }
        b'[' => {
            let items: Vec<Box<RawValue>> = serde_json::from_str(text).unwrap();
            format!("[{}]", items.iter().map(|item| normal(item).unwrap_or_default()).collect::<Vec<_>>().join(","))
        }
        b'-' | b'0'..=b'9' => {
            let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
            let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |rest| ("-", rest));
            let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
            let digits = format!("{whole}{fraction}");
            let digits = digits.trim_start_matches('0');
            let zeros = digits.len() - digits.trim_end_matches('0').len();
            let exponent = exponent.parse::<i64>().unwrap() - fraction.len() as i64 + zeros as i64;
            match digits.trim_end_matches('0') {
                "" => "0".to_owned(),
                digits => format!("{sign}{digits}e{exponent}"),
            }
        }
        b'"' => format!("{:?}", serde_json::from_str::<String>(text).unwrap()),
        _ => text.to_owned(),
    })
}

#[test]
fn lines_are_the_same_values_after_they_were_parquet() {
    let mut numbers = crate::weeks::partial::Lcg(11);
    let edges: [&[&str]; 4] = [
        &["0", "-1", "9007199254740993", "-9007199254740993", "9223372036854775807", "-9223372036854775808"],
        &["0", "9223372036854775808", "18446744073709551615", "7"],
        &["-1", "18446744073709551616", "99999999999999999999999999999999999999", "0"],
        &["0.1", "-0.0", "1e300", "5e-324", "1.5", "9007199254740992", "1E2"],
    ];
    let decimals = ["9007199254740993.25", "0.10000000000000000555", "-3"];
    for _ in 0..6 {
        let folder = tempfile::tempdir().unwrap();
        let (input, store) = (folder.path().join("in.jsonl"), folder.path().join("store"));
        let mut pick = |of: &[&str]| of[numbers.below(of.len())].to_owned();
        let mut lines = String::new();
        for row in 0..40 {
            let [a, b, c, d] = edges.map(&mut pick);
            let decimal = pick(&decimals);
            let list = pick(&["[]", "null", "[null,[1,null]]", "[[2],[]]", "[[3,4],null]"]);
            let object = pick(&[
                r#"{"x":null,"y":true}"#,
                r#"{"y":false,"z":{"deep":[{"q":1.5},{}]}}"#,
                "null",
                r#"{"x":"t","x":"u"}"#,
                r#"{"x":"\u00e9\n\"","w":"2024-01-01T00:00:00Z"}"#,
            ]);
            let absent = pick(&["", r#","sometimes":"s""#, r#","sometimes":null"#]);
            let text = record(row)["text"].as_str().unwrap().to_owned();
            lines += &format!(
                "{{\"id\":{row},\"text\":\"{text}\",\"a\":{a},\"b\":{b},\"c\":{c},\"d\":{d},\"e\":{decimal},\"in\":{{\"b\":[{b},{b}]}},\"list\":{list},\"object\":{object}{absent}}}\n"
            );
        }
        std::fs::write(&input, &lines).unwrap();
        let job = job(folder.path(), "[cluster.read.columns]\nid = \"id\"\n");
        let make = |input: &Path, store: &Path| {
            let arguments = [
                "run",
                job.to_str().unwrap(),
                "-q",
                "--no-accuracy",
                "--week",
                DATE,
                "--store",
                store.to_str().unwrap(),
            ];
            run_well(&[&arguments[..], &["--input", input.to_str().unwrap()]].concat());
        };
        make(&input, &store);
        let flags = |format| ["--what", "kept", "--level", "exact", "--format", format];
        let parquet = export(&store, "parquet", &flags("parquet"));
        let again = folder.path().join("again");
        make(&parquet.join("in.parquet"), &again);
        let back = export(&again, "back", &flags("jsonl"));
        let all = |text: &str| -> Vec<Option<String>> {
            text.lines().map(|line| normal(serde_json::from_str(line).unwrap())).collect()
        };
        let (found, wanted) = (all(&std::fs::read_to_string(back.join("in.jsonl")).unwrap()), all(&lines));
        assert_eq!(found.len(), 40);
        for (found, wanted) in found.iter().zip(&wanted) {
            assert_eq!(found, wanted);
        }
    }
}

#[test]
fn a_compressed_file_without_records_becomes_one_of_the_other_format() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let gzip = |name: &str, text: &str| {
        let mut file = flate2::write::GzEncoder::new(std::fs::File::create(path(name)).unwrap(), Default::default());
        std::io::Write::write_all(&mut file, text.as_bytes()).unwrap();
        file.finish().unwrap();
    };
    gzip("a.jsonl.gz", "{\"id\": 1, \"text\": \"some words of a text\"}\n");
    gzip("b.jsonl.gz", "");
    std::fs::write(path("c.jsonl.zst"), zstd::encode_all(&b""[..], 1).unwrap()).unwrap();
    let (store, input) = (path("store"), path("*.jsonl.*"));
    let flags = ["-q", "--id", "id", "--text", "text", "--input", input.to_str().unwrap()];
    run_well(&[&["add", store.to_str().unwrap()], &flags[..]].concat());
    let out = export(&store, "parquet", &["--format", "parquet"]);
    let counts = ["a.parquet", "b.parquet", "c.parquet"].map(|name| rows(&out.join(name)).num_rows());
    assert_eq!(counts, [1, 0, 0]);
    let same = export(&store, "same", &[]);
    let empty = flate2::read::MultiGzDecoder::new(std::fs::File::open(same.join("b.jsonl.gz")).unwrap());
    assert_eq!(std::io::read_to_string(empty).unwrap(), "");
    assert_eq!(zstd::decode_all(std::fs::File::open(same.join("c.jsonl.zst")).unwrap()).unwrap(), b"");
}

/// Writes a Parquet file of two rows with an id and a text.
fn write_two_rows(path: &Path) {
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["some words of a text", "other words of another text"]));
    let ids: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
    let batch = RecordBatch::try_from_iter([("id", ids), ("text", texts)]).unwrap();
    let file = std::fs::File::create(path).unwrap();
    let mut writer = parquet::arrow::ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

#[test]
fn a_file_without_columns_is_a_bad_record_and_no_file_of_the_export() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    write_two_rows(&path("rows.parquet"));
    std::fs::write(path("empty.parquet"), "").unwrap();
    std::fs::write(path("cut.arrow"), b"ARROW1\0\0\xff\xff\xff\xff\x10\0\0\0").unwrap();
    let (store, inputs) = (path("store"), ["rows.parquet", "empty.parquet", "cut.arrow"].map(path));
    let inputs = inputs.iter().map(|input| input.to_str().unwrap());
    let job = job(folder.path(), "[cluster]\nmax-reject-share = 1\n[cluster.read.columns]\nid = \"id\"\n");
    let flags = ["run", job.to_str().unwrap(), "-q", "--store", store.to_str().unwrap(), "--input"];
    run_well(&[&flags[..], &inputs.collect::<Vec<_>>()].concat());
    let names = |out: &Path| -> Vec<String> {
        let entries = std::fs::read_dir(out).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        entries.filter(|name| !name.starts_with('.')).collect()
    };
    for (number, (flags, file)) in [
        (&["--format", "jsonl"][..], "rows.jsonl"),
        (&["--format", "parquet", "--rename", "text=words"], "rows.parquet"),
        (&["--format", "parquet", "--shards", "1"], "data-00000-of-00001.parquet"),
    ]
    .into_iter()
    .enumerate()
    {
        let out = path(&format!("out-{number}"));
        let arguments = ["export", store.to_str().unwrap(), "--out", out.to_str().unwrap(), "--json"];
        let said: Value = serde_json::from_str(&run_well(&[&arguments[..], flags].concat()).stdout).unwrap();
        assert_eq!((&said["written"], &said["left_out"]["bad"]), (&2.into(), &2.into()), "{flags:?} {said}");
        assert_eq!(names(&out), [file], "{flags:?}");
    }
}

#[test]
fn lines_without_a_value_are_no_file_of_parquet() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    write_two_rows(&path("rows.parquet"));
    std::fs::write(path("none.jsonl"), "").unwrap();
    let job = job(folder.path(), "[cluster.read.columns]\nid = \"id\"\n");
    let store = path("store");
    let inputs = ["rows.parquet", "none.jsonl"].map(path);
    let [rows_name, none] = [&inputs[0], &inputs[1]].map(|input| input.to_str().unwrap());
    let job = job.to_str().unwrap();
    run_well(&["run", job, "-q", "--store", store.to_str().unwrap(), "--input", rows_name, none]);
    let out = export(&store, "parquet", &["--format", "parquet"]);
    assert_eq!(rows(&out.join("rows.parquet")).num_rows(), 2);
    assert!(!out.join("none.parquet").exists());
    let out = export(&store, "shards", &["--format", "parquet", "--shards", "1"]);
    assert_eq!(rows(&out.join("data-00000-of-00001.parquet")).num_rows(), 2);
}

#[test]
fn rows_of_a_damaged_member_are_in_no_export() {
    use std::io::Write as _;
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let line = |n: usize| {
        let words: Vec<String> = (0..30).map(|word| format!("w{n}x{}", (n * 7919 + word * 104_729) % 9973)).collect();
        format!("{{\"id\":{n},\"text\":\"{}\"}}\n", words.join(" "))
    };
    let member = |from: usize| {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        gzip.write_all((from..from + 50).map(line).collect::<String>().as_bytes()).unwrap();
        gzip.finish().unwrap()
    };
    // The second member is damaged; the last one is cut, and has lines before.
    let (mut damaged, mut cut) = (member(50), member(150));
    let middle = damaged.len() / 2;
    damaged[middle] ^= 4;
    cut.truncate(middle);
    std::fs::write(path("a.jsonl.gz"), [member(0), damaged, member(100), cut].concat()).unwrap();
    let job = job(folder.path(), "[cluster]\nmax-reject-share = 1\n[cluster.read.columns]\nid = \"id\"\n");
    let (store, input) = (path("store"), path("a.jsonl.gz"));
    let [job, store_name, input] = [&job, &store, &input].map(|path| path.to_str().unwrap());
    run_well(&["run", job, "-q", "--no-accuracy", "--week", DATE, "--store", store_name, "--input", input]);
    let same = std::fs::File::open(export(&store, "same", &[]).join("a.jsonl.gz")).unwrap();
    let same = std::io::read_to_string(flate2::read::MultiGzDecoder::new(same)).unwrap();
    let parquet = rows(&export(&store, "parquet", &["--format", "parquet"]).join("a.parquet"));
    let (good, of_cut) = same.split_at((0..50).chain(100..150).map(|n| line(n).len()).sum());
    assert_eq!(good, (0..50).chain(100..150).map(line).collect::<String>());
    assert!(of_cut.lines().count() > 5 && (150..200).map(line).collect::<String>().starts_with(of_cut), "{of_cut}");
    assert_eq!(parquet.num_rows(), same.lines().count());
}

#[test]
fn records_of_csv_that_are_not_utf8_are_in_no_export() {
    let folder = tempfile::tempdir().unwrap();
    let (input, store) = (folder.path().join("a.csv"), folder.path().join("store"));
    let [names, one, two, three, four] = [
        &b"id,text,note\n"[..],
        b"1,some words of a text,x\n",
        b"2,other words of another caf\xe9,x\n",
        b"3,words that are neither of these,caf\xe9\n",
        "4,nothing that was there before,caf\u{e9}\n".as_bytes(),
    ];
    std::fs::write(&input, [names, one, two, three, four].concat()).unwrap();
    let job = job(folder.path(), "[cluster]\nmax-reject-share = 1\n[cluster.read.columns]\nid = \"id\"\n");
    let [job, store_name, input] = [&job, &store, &input].map(|path| path.to_str().unwrap());
    run_well(&["run", job, "-q", "--no-accuracy", "--week", DATE, "--store", store_name, "--input", input]);
    let same = std::fs::read(export(&store, "same", &[]).join("a.csv")).unwrap();
    assert_eq!(same, [names, one, four].concat());
    let of_lines = values(&export(&store, "lines", &["--format", "jsonl"]).join("a.jsonl"));
    let found: Vec<(&str, &str)> =
        of_lines.iter().map(|line| (line["id"].as_str().unwrap(), line["note"].as_str().unwrap())).collect();
    assert_eq!(found, [("1", "x"), ("4", "caf\u{e9}")]);
}
