//! Exports in shards have the records of an export without, in the same order.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{ArrayRef, DurationMillisecondArray, DurationSecondArray, Int64Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use serde_json::Value;

use crate::choices::chosen::{RECORDS, job_of, record, write};
use crate::program::{run, run_well};

/// A store of these files, which have duplicates.
pub(crate) fn store_of(folder: &Path, name: &str, inputs: &[PathBuf]) -> PathBuf {
    let store = folder.join(name);
    let job = job_of(folder, "\"first\"", "");
    let [store_name, job] = [&store, &job].map(|path| path.to_str().unwrap());
    let mut arguments = vec!["run", job, "-q", "--week", "2024-01-08", "--store", store_name, "--input"];
    arguments.extend(inputs.iter().map(|path| path.to_str().unwrap()));
    run_well(&arguments);
    store
}

/// A store of three files of a format, which is made once. The order of their names is that of
/// their records.
pub(crate) fn store(folder: &Path, format: &str) -> PathBuf {
    let made = folder.join(format!("store-{format}"));
    if made.exists() {
        return made;
    }
    let inputs = [0..50, 50..75, 75..RECORDS].map(|records| write(folder, format, records));
    store_of(folder, &format!("store-{format}"), &inputs)
}

pub(crate) fn export(store: &Path, out: &Path, flags: &[&str]) -> Value {
    let arguments = ["export", store.to_str().unwrap(), "--json", "--out", out.to_str().unwrap()];
    serde_json::from_str(&run_well(&[&arguments[..], flags].concat()).stdout).unwrap()
}

/// The files of an export by their names, without the card.
pub(crate) fn files(out: &Path) -> BTreeMap<String, PathBuf> {
    let entries = std::fs::read_dir(out).unwrap().map(|entry| entry.unwrap().path());
    let files = entries.filter(|path| path.is_file() && !path.ends_with("README.md"));
    files.map(|path| (path.file_name().unwrap().to_str().unwrap().to_owned(), path)).collect()
}

/// The text of a file of lines.
fn text(path: &Path) -> String {
    let (mut file, mut text) = (File::open(path).unwrap(), String::new());
    match path.extension().unwrap().to_str() {
        Some("gz") => flate2::read::MultiGzDecoder::new(file).read_to_string(&mut text),
        Some("zst") => zstd::Decoder::new(file).unwrap().read_to_string(&mut text),
        _ => file.read_to_string(&mut text),
    }
    .unwrap();
    text
}

/// The rows of a file as JSON.
pub(crate) fn rows(path: &Path) -> Vec<Value> {
    let text = match path.extension().is_some_and(|ending| ending == "parquet") {
        true => {
            let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap();
            let mut text = Vec::new();
            let mut writer = arrow_json::LineDelimitedWriter::new(&mut text);
            reader.build().unwrap().for_each(|batch| writer.write(&batch.unwrap()).unwrap());
            writer.finish().unwrap();
            String::from_utf8(text).unwrap()
        }
        false => text(path),
    };
    text.lines().filter(|line| !line.is_empty()).map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn all_rows(out: &Path) -> Vec<Value> {
    files(out).values().flat_map(|path| rows(path)).collect()
}

#[test]
fn shards_have_all_records_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for (format, flags) in [
        ("jsonl", &[][..]),
        ("parquet", &[]),
        ("jsonl", &["--format", "parquet"]),
        ("parquet", &["--weights", "--what", "removed"]),
        ("arrow", &["--format", "jsonl", "--what", "annotated"]),
        ("csv", &["--format", "jsonl"]),
    ] {
        let store = store(folder, format);
        let out = |name: &str| folder.join(format!("{name}-{format}-{}", flags.concat()));
        let whole = out("whole");
        let counts = export(&store, &whole, flags);
        let expected = all_rows(&whole);
        assert!(expected.len() > 10);
        for count in [1_usize, 4, 300] {
            let (one, other, count_text) =
                (out(&format!("one-{count}")), out(&format!("other-{count}")), count.to_string());
            let with = [flags, &["--shards", &count_text, "--card"]].concat();
            let in_shards = export(&store, &one, &[&with[..], &["--workers", "1"]].concat());
            assert_eq!((&in_shards["written"], &in_shards["documents"]), (&counts["written"], &counts["documents"]));
            assert_eq!(in_shards["files"], count);
            let shards = files(&one);
            assert!(shards.keys().next().unwrap().starts_with(&format!("data-00000-of-{count:05}.")));
            let sizes: Vec<usize> = shards.values().map(|path| rows(path).len()).collect();
            assert!(
                sizes.len() == count && sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1,
                "{sizes:?}"
            );
            assert!(all_rows(&one) == expected, "{format} {flags:?} {count}");
            let card = std::fs::read_to_string(one.join("README.md")).unwrap();
            assert!(card.contains(shards.keys().next_back().unwrap()) || count > 100, "{card}");
            if count != 4 {
                continue;
            }
            export(&store, &other, &[&with[..], &["--workers", "4"]].concat());
            for (name, path) in files(&other) {
                assert!(std::fs::read(path).unwrap() == std::fs::read(one.join(&name)).unwrap(), "{name}");
            }
            // The same command writes what is missing again, and nothing if all is there.
            let (first, last) = (shards.values().next().unwrap(), shards.values().next_back().unwrap());
            let modified = || std::fs::metadata(first).unwrap().modified().unwrap();
            let before = modified();
            let again = export(&store, &one, &with);
            assert!(again == in_shards && modified() == before, "{again}");
            std::fs::remove_file(last).unwrap();
            assert_eq!(export(&store, &one, &with), in_shards);
            assert!(all_rows(&one) == expected);
        }
        let by_bytes = out("bytes");
        export(&store, &by_bytes, &[flags, &["--shard-bytes", "2kB"]].concat());
        let shards = files(&by_bytes);
        assert!(shards.len() > 1 && all_rows(&by_bytes) == expected, "{format} {flags:?}");
        if format == "jsonl" && flags.is_empty() {
            // The next record would not fit.
            let sizes: Vec<u64> = shards.values().map(|path| std::fs::metadata(path).unwrap().len()).collect();
            let starts = shards.values().map(|path| text(path).lines().next().unwrap().len() as u64 + 1);
            assert!(sizes.iter().all(|bytes| *bytes <= 2_000), "{sizes:?}");
            assert!(sizes.iter().zip(starts.skip(1)).all(|(bytes, next)| bytes + next > 2_000), "{sizes:?}");
        }
    }
}

#[test]
fn lines_are_compressed_as_the_first_input_is() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    // A byte order mark, blank lines, a line that is not a record, and none that ends the file.
    let lines: Vec<String> = (0..40).map(|n| format!("  {}  ", record(n))).collect();
    let text_of = |lines: &[String]| format!("\u{feff}{}\n\n \r\n{{bad\n", lines.join("\r\n\n")).into_bytes();
    let (first, second) = (folder.join("a.jsonl.gz"), folder.join("b.jsonl"));
    let mut gzip = flate2::write::GzEncoder::new(File::create(&first).unwrap(), flate2::Compression::fast());
    gzip.write_all(&text_of(&lines[..25])).unwrap();
    gzip.finish().unwrap();
    std::fs::write(&second, text_of(&lines[25..]).trim_ascii_end()).unwrap();
    for (name, inputs, ending) in [
        ("gz", [first.clone(), second.clone()], "jsonl.gz"),
        ("plain", [second.clone(), folder.join("c.jsonl.gz")], "jsonl"),
    ] {
        std::fs::copy(&first, folder.join("c.jsonl.gz")).unwrap();
        let store = store_of(folder, name, &inputs);
        let out = folder.join(format!("{name}-out"));
        export(&store, &out, &["--shards", "3", "--what", "annotated"]);
        let shards = files(&out);
        assert!(shards.keys().all(|name| name.ends_with(&format!("-of-00003.{ending}"))), "{shards:?}");
        let ids = |rows: Vec<Value>| rows.iter().map(|row| row["id"].as_u64().unwrap()).collect::<Vec<_>>();
        let expected: Vec<u64> = if name == "gz" { (0..40).collect() } else { (25..40).chain(0..25).collect() };
        assert_eq!(ids(all_rows(&out)), expected);
        assert!(shards.values().all(|path| text(path).lines().all(|line| line.starts_with("  {"))));
    }
}

#[test]
fn parquet_keeps_its_compression_and_the_rows_of_its_groups() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    // Thirty files of 3 to 5 rows, and one of 40 rows in groups of 8.
    let mut start = 0;
    let inputs: Vec<PathBuf> = (0..31)
        .map(|number| {
            let rows = start..start + if number == 30 { 40 } else { 3 + number % 3 };
            start = rows.end;
            let texts = rows.clone().map(|n| Value::as_str(&record(n)["text"]).unwrap().to_owned());
            let columns: [(&str, ArrayRef); 2] = [
                ("id", Arc::new(Int64Array::from_iter_values(rows.clone().map(|n| n as i64)))),
                ("text", Arc::new(StringArray::from_iter_values(texts))),
            ];
            let batch = RecordBatch::try_from_iter(columns).unwrap();
            let properties = WriterProperties::builder()
                .set_max_row_group_row_count(Some(8))
                .set_column_compression("id".into(), Compression::SNAPPY)
                .set_column_compression("text".into(), Compression::LZ4_RAW);
            let path = folder.join(format!("{number:02}.parquet"));
            let file = File::create(&path).unwrap();
            let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties.build())).unwrap();
            writer.write(&batch).unwrap();
            writer.close().unwrap();
            path
        })
        .collect();
    let store = store_of(folder, "store", &inputs);
    for (flags, least) in [(&["--shards", "2"][..], 2), (&["--shard-bytes", "4kB"], 5)] {
        let out = folder.join(flags.concat());
        let counts = export(&store, &out, &[flags, &["--what", "annotated"]].concat());
        assert_eq!(counts["written"], start);
        let (shards, mut groups) = (files(&out), Vec::new());
        assert!(shards.len() >= least, "{shards:?}");
        for path in shards.values() {
            let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
            for group in reader.metadata().row_groups() {
                groups.push(group.num_rows());
                let codecs: Vec<Compression> = group.columns().iter().map(|column| column.compression()).collect();
                assert_eq!(codecs[..2], [Compression::SNAPPY, Compression::LZ4_RAW]);
            }
        }
        assert!(groups.iter().all(|rows| (1..=8).contains(rows)), "{groups:?}");
        assert!(flags[0] == "--shard-bytes" || groups.len() < 30, "small groups are joined: {groups:?}");
        let ids: Vec<u64> = all_rows(&out).iter().map(|row| row["id"].as_u64().unwrap()).collect();
        assert_eq!(ids, (0..start as u64).collect::<Vec<_>>());
    }
}

#[test]
fn what_has_no_shards_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (csv, out) = (store(folder, "csv"), folder.join("refused"));
    let refused = |store: &Path, flags: &[&str]| {
        let ran = run(&[&["export", store.to_str().unwrap(), "--out", out.to_str().unwrap()], flags].concat());
        assert_eq!(ran.code, Some(2), "{flags:?}: {}", ran.stderr);
        assert!(!out.exists(), "{flags:?}");
        ran.stderr
    };
    for (flags, wanted) in [
        (
            &["--shards", "2"][..],
            "0-50.csv is csv, and shards are JSON Lines or Parquet: give --format jsonl or parquet",
        ),
        (&["--shards", "0"], "0 is not in 1..=99999"),
        (&["--shard-bytes", "0"], "--shard-bytes 0"),
        (&["--shard-bytes", "much"], "`much` is not a size"),
        (&["--shards", "2", "--shard-bytes", "1MB"], "cannot be used with"),
        (&["--shards", "2", "--others"], "write rows"),
    ] {
        let said = refused(&csv, flags);
        assert!(said.contains(wanted), "{flags:?}: {said}");
    }
    // Files with other columns or formats have no shards in common.
    let (lines, rows) = (write(folder, "jsonl", 0..30), write(folder, "parquet", 30..60));
    let columns: [(&str, ArrayRef); 2] = [
        ("id", Arc::new(Int64Array::from_iter_values([77]))),
        ("text", Arc::new(StringArray::from_iter_values(["one text of its own"]))),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let other = folder.join("x.parquet");
    let mut writer = ArrowWriter::try_new(File::create(&other).unwrap(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let mixed = store_of(folder, "mixed", &[lines, rows.clone()]);
    let said = refused(&mixed, &["--shards", "2"]);
    assert!(said.contains("0-30.jsonl is jsonl, and ") && said.contains("shards have one format"), "{said}");
    let differing = store_of(folder, "differing", &[rows, other]);
    let said = refused(&differing, &["--shards", "2"]);
    assert!(said.contains("x.parquet differ in the column `") && said.contains("give --format jsonl"), "{said}");
    export(&differing, &folder.join("as-lines"), &["--shards", "2", "--format", "jsonl"]);
    let ids: BTreeSet<u64> = all_rows(&folder.join("as-lines")).iter().map(|row| row["id"].as_u64().unwrap()).collect();
    assert!(ids.contains(&77) && ids.contains(&30), "{ids:?}");
}

#[test]
fn what_parquet_does_not_tell_apart_is_not_joined() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let waits = [
        Arc::new(DurationSecondArray::from_iter_values([7])) as ArrayRef,
        Arc::new(DurationMillisecondArray::from_iter_values([7])),
        Arc::new(Int64Array::from_iter_values([7])),
    ];
    let inputs: Vec<PathBuf> = waits
        .into_iter()
        .enumerate()
        .map(|(n, waits)| {
            let text = record(n)["text"].as_str().unwrap().to_owned();
            let columns: [(&str, ArrayRef); 3] = [
                ("id", Arc::new(Int64Array::from_iter_values([n as i64]))),
                ("text", Arc::new(StringArray::from_iter_values([text]))),
                ("waits", waits),
            ];
            let batch = RecordBatch::try_from_iter(columns).unwrap();
            let path = folder.join(format!("{n}.parquet"));
            let mut writer = ArrowWriter::try_new(File::create(&path).unwrap(), batch.schema(), None).unwrap();
            writer.write(&batch).unwrap();
            writer.close().unwrap();
            path
        })
        .collect();
    for (name, other) in [("units", &inputs[1]), ("numbers", &inputs[2])] {
        let store = store_of(folder, name, &[inputs[0].clone(), other.clone()]);
        let out = folder.join(format!("{name}-out"));
        let arguments = ["export", store.to_str().unwrap(), "--shards", "1", "--out", out.to_str().unwrap()];
        let ran = run(&arguments);
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
        assert!(ran.stderr.contains("differ in the column `waits`") && !out.exists(), "{}", ran.stderr);
    }
    let store = store_of(folder, "same", &inputs[..1]);
    export(&store, &folder.join("same-out"), &["--shards", "1"]);
}

#[test]
fn shards_of_an_earlier_attempt_do_not_stay_beside_others() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let store = store(folder, "jsonl");
    for (flags, renamed) in [(&["--shards", "4"][..], false), (&["--shard-bytes", "4kB"], true)] {
        let out = folder.join(flags.concat());
        let counts = export(&store, &out, flags);
        let (shards, expected) = (files(&out), all_rows(&out));
        assert!(shards.len() > 2 && expected.len() > 10);
        let bytes = |path: &Path| std::fs::read(path).unwrap();
        let before: Vec<Vec<u8>> = shards.values().map(|path| bytes(path)).collect();
        // As a kill leaves it that comes when the first two have their names.
        let list = out.join(".nigh-export/list.jsonl");
        let lines: Vec<String> = std::fs::read_to_string(&list).unwrap().lines().map(str::to_owned).collect();
        let mut left = lines[..3].join("\n") + "\n";
        shards.values().skip(2).for_each(|path| std::fs::remove_file(path).unwrap());
        if renamed {
            // Of as many shards as there are not now.
            let count = format!("-of-{:05}", shards.len());
            left = left.replace(&count, "-of-00099");
            for (name, path) in shards.iter().take(2) {
                std::fs::rename(path, out.join(name.replace(&count, "-of-00099"))).unwrap();
            }
        }
        std::fs::write(&list, left).unwrap();
        assert_eq!(export(&store, &out, flags), counts);
        assert!(files(&out).keys().eq(shards.keys()), "{:?}", files(&out));
        assert!(files(&out).values().map(|path| bytes(path)).eq(before));
        assert!(all_rows(&out) == expected);
        assert_eq!(std::fs::read_to_string(&list).unwrap().lines().collect::<Vec<_>>(), lines);
    }
}

#[test]
fn lines_that_are_compressed_go_with_what_is_converted() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let text_of = |range: std::ops::Range<usize>| range.map(|n| record(n).to_string() + "\n").collect::<String>();
    let csv = write(folder, "csv", 10..18);
    let parquet = write(folder, "parquet", 18..20);
    let gzip = folder.join("0.jsonl.gz");
    let mut encoder = flate2::write::GzEncoder::new(File::create(&gzip).unwrap(), flate2::Compression::fast());
    encoder.write_all(text_of(0..10).as_bytes()).unwrap();
    encoder.finish().unwrap();
    let zstd = folder.join("0.jsonl.zst");
    std::fs::write(&zstd, zstd::bulk::compress(text_of(0..10).as_bytes(), 1).unwrap()).unwrap();
    let last = folder.join("z.jsonl.gz");
    std::fs::copy(&gzip, &last).unwrap();
    for (number, (inputs, ending)) in [
        ([&gzip, &csv, &parquet], "jsonl.gz"),
        ([&zstd, &csv, &parquet], "jsonl.zst"),
        ([&csv, &parquet, &last], "jsonl"),
    ]
    .into_iter()
    .enumerate()
    {
        let store = store_of(folder, &format!("store-{number}"), &inputs.map(PathBuf::from));
        let out = folder.join(format!("out-{number}"));
        export(&store, &out, &["--shards", "2", "--format", "jsonl", "--what", "annotated"]);
        assert!(files(&out).keys().all(|name| name.ends_with(&format!("-of-00002.{ending}"))), "{:?}", files(&out));
        let id = |row: &Value| row["id"].as_u64().or_else(|| row["id"].as_str()?.parse().ok()).unwrap();
        let ids: BTreeSet<u64> = all_rows(&out).iter().map(id).collect();
        assert_eq!(ids, (0..20).collect());
    }
}

#[test]
fn a_line_with_nothing_but_a_mark_is_not_a_record() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let input = folder.join("a.jsonl");
    let lines: Vec<String> = (0..6).map(|n| record(n).to_string()).collect();
    std::fs::write(
        &input,
        format!("{}\n\u{feff}\n{}\n\u{feff}\r\n", lines[..3].join("\n"), lines[3..].join("\n\u{feff} \n")),
    )
    .unwrap();
    let store = store_of(folder, "store", &[input]);
    for shards in ["1", "5"] {
        let out = folder.join(shards);
        let counts = export(&store, &out, &["--shards", shards]);
        let found: usize = files(&out).values().map(|path| text(path).lines().count()).sum();
        assert_eq!((Value::from(found), all_rows(&out).len()), (counts["written"].clone(), found));
    }
}
