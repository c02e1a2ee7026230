//! Which documents of a cluster stay, by the columns of the input: against a slow twin.

mod records;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray as _;
use arrow_array::types::{Float64Type, Int64Type};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::Compression;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::properties::WriterProperties;
use serde_json::Value;

pub(crate) use self::records::{
    CHOICES, ChoiceCase, DATE, RECORDS, RecordsByRoot, cluster, clusters, job_of, record, value, write,
};
use self::records::{FAMILIES, SpokenTerm};
use crate::program::{run, run_well, tables, week};

#[test]
fn what_stays_by_columns_is_what_a_slow_twin_says_in_every_format() {
    let folder = tempfile::tempdir().unwrap();
    let (folder, store) = (folder.path(), folder.path().join("store"));
    let inputs = ["jsonl", "parquet", "arrow", "csv"].map(|format| write(folder, format, 0..RECORDS));
    for (number, choice) in CHOICES.iter().enumerate() {
        let (mut of_first, mut of_format) = (None, None);
        // One choice in every format; the others in one each.
        let formats = if number == 1 { 0..4 } else { number % 4..number % 4 + 1 };
        for input in &inputs[formats] {
            cluster(folder, choice.job, "", input, &["--workers", "1"]);
            let (clusters, docs, canonical) = clusters(&store, DATE);
            assert!(clusters.values().filter(|cluster| cluster.len() > 4).count() > 10);
            let expected = choice.kept(&clusters, &docs);
            assert_eq!(canonical, expected, "{}, {}", choice.job, input.display());
            assert_eq!(*of_format.get_or_insert(canonical.clone()), canonical, "{}", input.display());
            of_first = Some(tables(&week(&store, DATE)));
        }
        let input = &inputs[if number == 1 { 3 } else { number % 4 }];
        for flags in [
            ["--workers", "2", "--processes", "1"],
            ["--workers", "4", "--processes", "1"],
            ["--workers", "2", "--processes", "2"],
        ] {
            cluster(folder, choice.job, "", input, &flags);
            // The commit is in the names of files.
            let same = |tables: BTreeMap<String, Vec<u8>>| tables.into_values().collect::<Vec<_>>();
            assert!(same(tables(&week(&store, DATE))) == same(of_first.clone().unwrap()), "{} {flags:?}", choice.job);
        }
        assert_eq!(store.join("values").exists(), number != 6, "{}", choice.job);
    }
}

#[test]
fn an_export_chooses_by_columns_that_the_store_has() {
    let folder = tempfile::tempdir().unwrap();
    let (folder, store) = (folder.path(), folder.path().join("store"));
    let input = write(folder, "jsonl", 0..RECORDS);
    cluster(folder, "\"first\"", "values = [\"source\", \"meta.score\", \"day\", \"flag\"]", &input, &[]);
    let (clusters, docs, _) = clusters(&store, DATE);
    for (number, choice) in CHOICES.iter().enumerate() {
        let out = folder.join(format!("out-{number}"));
        let arguments = ["export", store.to_str().unwrap(), "--out", out.to_str().unwrap()];
        run_well(&[&arguments[..], choice.flags].concat());
        let text = std::fs::read_to_string(out.join(input.file_name().unwrap())).unwrap();
        let id = |line: &str| serde_json::from_str::<Value>(line).unwrap()["id"].as_u64().unwrap() as usize;
        let kept: BTreeSet<usize> = text.lines().map(id).collect();
        assert_eq!(kept, choice.kept(&clusters, &docs), "{:?}", choice.flags);
    }
    let out = folder.join("wrong");
    let wrong = |flags: &[&str]| {
        let ran = run(&[&["export", store.to_str().unwrap(), "--out", out.to_str().unwrap()], flags].concat());
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
        ran.stderr
    };
    let error = wrong(&["--keep", "score desc"]);
    let named =
        "no input has a column `score`, which --keep, --each, --score or the job names: they have day, flag, id, ";
    assert!(error.contains(named), "{error}");
    assert!(wrong(&["--each", "score"]).contains("no input has a column `score`"));
    assert!(wrong(&["--keep", "score down"]).contains("allowed are NAME, NAME asc"));
    assert!(!out.exists());
}

#[test]
fn weights_are_fields_of_what_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let (folder, store) = (folder.path(), folder.path().join("store"));
    for format in ["jsonl", "parquet", "arrow", "csv"] {
        let input = write(folder, format, 0..RECORDS);
        cluster(folder, CHOICES[0].job, "", &input, &[]);
        let (clusters, docs, _) = clusters(&store, DATE);
        let kept = CHOICES[0].kept(&clusters, &docs);
        for what in ["kept", "annotated"] {
            let out = folder.join(format!("{format}-{what}"));
            // What is not written as lines is converted.
            let to = if ["jsonl", "csv"].contains(&format) { "same" } else { "jsonl" };
            let flags = ["--weights", "--score", "meta.score", "--what", what, "--format", to, "--workers", "2"];
            let arguments = ["export", store.to_str().unwrap(), "--out", out.to_str().unwrap()];
            run_well(&[&arguments[..], &flags].concat());
            let file = std::fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().path()).find(|path| path.is_file());
            let text = std::fs::read_to_string(file.unwrap()).unwrap();
            let mut found = BTreeMap::new();
            for line in text.lines().skip(usize::from(format == "csv")) {
                let (id, size, score) = if format == "csv" {
                    let fields: Vec<&str> = line.split(',').collect();
                    let size = fields[if what == "kept" { 6 } else { 7 }].parse().unwrap();
                    (fields[0].parse().unwrap(), size, fields.last().unwrap().parse().ok())
                } else {
                    let row: Value = serde_json::from_str(line).unwrap();
                    let size = row["nigh_size"].as_u64().unwrap() as usize;
                    (row["id"].as_u64().unwrap() as usize, size, row["nigh_score"].as_f64())
                };
                found.insert(id, (size, score));
            }
            assert_eq!(found.len(), if what == "kept" { kept.len() } else { RECORDS });
            for cluster in clusters.values() {
                // The sums of these numbers are exact.
                let scores: Vec<f64> = cluster.iter().filter_map(|n| value(*n, "meta.score")?.as_f64()).collect();
                let mean = (!scores.is_empty()).then(|| scores.iter().sum::<f64>() / scores.len() as f64);
                for n in cluster.iter().filter(|n| what == "annotated" || kept.contains(n)) {
                    assert_eq!(found[n], (cluster.len(), mean), "{format}, {n}");
                }
            }
        }
    }
    // Parquet as Parquet, where the columns are beside those of the file; and a list.
    let input = write(folder, "parquet", 0..RECORDS);
    cluster(folder, CHOICES[0].job, "", &input, &[]);
    let (clusters, docs, _) = clusters(&store, DATE);
    let kept = CHOICES[0].kept(&clusters, &docs);
    let [out, list] = ["as-parquet", "list.parquet"].map(|name| folder.join(name));
    let flags = ["--weights", "--score", "meta.score"];
    run_well(&[&["export", store.to_str().unwrap(), "--out", out.to_str().unwrap()], &flags[..]].concat());
    let rows = |path: &Path, size: &str, score: &str| {
        let file = std::fs::File::open(path).unwrap();
        let batches = ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap();
        let mut rows = Vec::new();
        for batch in batches {
            let batch = batch.unwrap();
            let column = |name: &str| batch.column_by_name(name).unwrap().clone();
            let (sizes, scores) = (column(size), column(score));
            let (sizes, scores) =
                (sizes.as_primitive::<Int64Type>().clone(), scores.as_primitive::<Float64Type>().clone());
            rows.extend(sizes.values().iter().copied().zip(scores.iter()));
        }
        rows
    };
    let of_files = rows(&out.join(input.file_name().unwrap()), "nigh_size", "nigh_score");
    assert_eq!(of_files.len(), kept.len());
    let flags = ["--list", list.to_str().unwrap(), "--what", "kept", "--score", "meta.score"];
    run_well(&[&["export", store.to_str().unwrap()], &flags[..]].concat());
    assert_eq!(rows(&list, "size", "score"), of_files);
}

#[test]
fn parquet_is_compressed_as_it_was_and_has_a_card() {
    let folder = tempfile::tempdir().unwrap();
    let (folder, store) = (folder.path(), folder.path().join("store"));
    let input = write(folder, "parquet", 0..RECORDS);
    let codecs = |path: &Path| -> BTreeMap<String, String> {
        let file = std::fs::File::open(path).unwrap();
        let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
        let group = reader.metadata().row_group(0).clone();
        let codec = |column: &ColumnChunkMetaData| format!("{:?}", column.compression());
        group.columns().iter().map(|column| (column.column_path().string(), codec(column))).collect()
    };
    let file = std::fs::File::open(&input).unwrap();
    let batches: Vec<RecordBatch> =
        ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap().map(Result::unwrap).collect();
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_column_compression("text".into(), Compression::GZIP(Default::default()))
        .set_column_compression("source".into(), Compression::UNCOMPRESSED)
        .set_column_compression("day".into(), Compression::LZ4_RAW)
        .build();
    let file = std::fs::File::create(&input).unwrap();
    let mut writer = ArrowWriter::try_new(file, batches[0].schema(), Some(properties)).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.close().unwrap();
    cluster(folder, CHOICES[2].job, "", &input, &[]);
    let out = folder.join("out");
    let export =
        || run_well(&["export", store.to_str().unwrap(), "--out", out.to_str().unwrap(), "--weights", "--card"]);
    export();
    let name = input.file_name().unwrap();
    let (before, mut after) = (codecs(&input), codecs(&out.join(name)));
    assert!(after.remove("nigh_size").is_some());
    assert_eq!(after, before);

    let card = std::fs::read_to_string(out.join("README.md")).unwrap();
    let (clusters, docs, canonical) = clusters(&store, DATE);
    assert_eq!(canonical, CHOICES[2].kept(&clusters, &docs));
    let head = "---\nconfigs:\n- config_name: default\n  data_files:\n  - split: train\n    path:\n    - \"0-160.parquet\"\n\
                size_categories:\n- n<1K\ntags:\n- deduplicated\n- nigh\n---\n\n# Records without near-duplicates\n";
    assert!(card.starts_with(head), "{card}");
    for row in [
        format!("| records of the input | {RECORDS} |"),
        format!("| records here | {} |", canonical.len()),
        format!("| records left out | {} |", RECORDS - canonical.len()),
        "| what stays of a cluster | the first 2 by day, flag desc |".to_owned(),
        "| `nigh_size` | the records of its cluster, with those that go |".to_owned(),
        "| linked pairs that are similar enough | ".to_owned(),
    ] {
        assert!(card.contains(&row), "{row}\n{card}");
    }
    // The same command writes it again if it is missing or changed, and nothing else.
    let of_file = std::fs::metadata(out.join(name)).unwrap().modified().unwrap();
    for change in [true, false] {
        match change {
            true => std::fs::write(out.join("README.md"), "changed").unwrap(),
            false => std::fs::remove_file(out.join("README.md")).unwrap(),
        }
        export();
        assert_eq!(std::fs::read_to_string(out.join("README.md")).unwrap(), card);
        assert_eq!(std::fs::metadata(out.join(name)).unwrap().modified().unwrap(), of_file);
    }
}

#[test]
fn an_export_against_older_records_only_keeps_what_is_repeated_within() {
    let folder = tempfile::tempdir().unwrap();
    let (folder, store) = (folder.path(), folder.path().join("store"));
    let job = job_of(folder, "\"first\"", "");
    let dates = ["2024-01-08", "2024-01-09"];
    let is_old = |n: usize| n < RECORDS / 2;
    // Half of the families have older records.
    let has_record = |n: &usize| !is_old(*n) || n % FAMILIES < FAMILIES / 2;
    for (number, date) in dates.into_iter().enumerate() {
        let lines = (0..RECORDS).filter(|n| is_old(*n) == (number == 0)).filter(has_record);
        let input = folder.join(format!("{number}.jsonl"));
        std::fs::write(&input, lines.map(|n| record(n).to_string() + "\n").collect::<String>()).unwrap();
        let arguments = ["add", store.to_str().unwrap(), job.to_str().unwrap(), "-q", "--week", date];
        run_well(&[&arguments[..], &["--input", input.to_str().unwrap()]].concat());
    }
    let (clusters, ..) = clusters(&store, dates[1]);
    let without_older = clusters.values().filter(|cluster| !cluster.iter().any(|n| is_old(*n)));
    let expected: BTreeSet<String> = without_older.flatten().map(usize::to_string).collect();
    assert!((20..60).contains(&expected.len()), "{}", expected.len());
    let list = |flags: &[&str]| -> BTreeSet<String> {
        let list = folder.join("list.txt");
        let arguments = ["export", store.to_str().unwrap(), "--list", list.to_str().unwrap(), "--since", dates[1]];
        run_well(&[&arguments[..], flags].concat());
        std::fs::read_to_string(list).unwrap().lines().map(str::to_owned).collect()
    };
    assert_eq!(list(&["--only-older", "--what", "kept"]), expected);
    let new = RECORDS / 2;
    assert_eq!(list(&["--only-older"]).len(), new - expected.len());
    assert!(list(&["--what", "kept"]).len() < expected.len());
}

#[test]
fn pages_that_stay_keep_their_values() {
    const ORDER: &str = "{ by = [\"meta.score desc\", \"day\", \"id\"], most = 2 }";
    let choice = ChoiceCase {
        job: ORDER,
        flags: &[],
        terms: &[SpokenTerm::Down("meta.score"), SpokenTerm::Up("day"), SpokenTerm::Up("id")],
        most: 2,
        each: None,
    };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let store = folder.join("store");
    let files = [
        write(folder, "jsonl", 0..RECORDS / 2),
        write(folder, "parquet", RECORDS / 2..RECORDS / 2 + 20),
        // Some of these records come again.
        write(folder, "jsonl", RECORDS / 2 - 10..RECORDS),
    ];
    let job = job_of(folder, ORDER, "");
    let dates = ["2024-01-08", "2024-01-09", "2024-01-10"];
    for (number, date) in dates.iter().enumerate() {
        let (flags, input) = ([["--workers", "1"], ["--workers", "2"], ["--workers", "4"]][number], &files[number]);
        let arguments = [
            "add",
            store.to_str().unwrap(),
            job.to_str().unwrap(),
            "-q",
            "--week",
            date,
            "--input",
            input.to_str().unwrap(),
        ];
        run_well(&[&arguments[..], &flags].concat());
        let (clusters, docs, canonical) = clusters(&store, date);
        assert_eq!(canonical, choice.kept(&clusters, &docs), "{date}");
    }
    let (of_batches, docs, canonical) = clusters(&store, dates[2]);
    assert_eq!(docs.len(), RECORDS);
    let whole = tempfile::tempdir().unwrap();
    cluster(whole.path(), ORDER, "", &write(whole.path(), "jsonl", 0..RECORDS), &[]);
    let (of_one, _, of_one_run) = clusters(&whole.path().join("store"), DATE);
    let sets = |clusters: RecordsByRoot| clusters.into_values().collect::<BTreeSet<_>>();
    assert_eq!(sets(of_batches), sets(of_one));
    assert_eq!(canonical, of_one_run);

    // What is deleted is replaced by the next one of its cluster.
    let gone: Vec<String> = canonical.iter().take(5).map(usize::to_string).collect();
    let gone: Vec<&str> = gone.iter().map(String::as_str).collect();
    run_well(&[&["delete", "--quiet", "--store", store.to_str().unwrap(), "--id"], &gone[..]].concat());
    let (left, docs, canonical) = clusters(&store, dates[2]);
    assert_eq!(docs.len(), RECORDS - 5);
    assert_eq!(canonical, choice.kept(&left, &docs));

    // A column that the weeks before did not keep cannot be compared.
    let job = job_of(folder, "{ by = [\"flag\"] }", "");
    let ran = run(&[
        "add",
        store.to_str().unwrap(),
        job.to_str().unwrap(),
        "-q",
        "--week",
        "2024-01-11",
        "--input",
        files[1].to_str().unwrap(),
    ]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("week 2024-01-10 has no values of `flag`"), "{}", ran.stderr);
}

#[test]
fn a_column_that_no_input_has_is_an_error_that_names_those_that_are_there() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let job = job_of(folder, "{ by = [\"meta.quality\"] }", "");
    let store = folder.join("store");
    for format in ["jsonl", "parquet", "arrow", "csv"] {
        let input = write(folder, format, 0..30);
        let ran = run(&[
            "run",
            job.to_str().unwrap(),
            "-q",
            "--store",
            store.to_str().unwrap(),
            "--input",
            input.to_str().unwrap(),
        ]);
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
        let named = "no input has a column `meta.quality`, which `canonical` or `values` of [cluster.read.columns] names: they have day, flag, id, ";
        assert!(ran.stderr.contains(named) && ran.stderr.contains("meta.score, source, text"), "{}", ran.stderr);
    }
    // One of the inputs has it: the records of the others have no value.
    let with = folder.join("with.jsonl");
    std::fs::write(&with, record(3).to_string().replace("score", "quality")).unwrap();
    let input = write(folder, "parquet", 0..30);
    run_well(&[
        "run",
        job.to_str().unwrap(),
        "-q",
        "--store",
        store.to_str().unwrap(),
        "--input",
        input.to_str().unwrap(),
        with.to_str().unwrap(),
    ]);
}

#[test]
fn batches_keep_the_same_columns_and_a_flag_replaces_only_what_it_names() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let store = folder.join("store");
    let store = store.to_str().unwrap();
    let (first, second) = (write(folder, "jsonl", 0..30), write(folder, "parquet", 30..60));
    let add = |job: &Path, date: &str, input: &Path| {
        run(&["add", store, job.to_str().unwrap(), "-v", "--week", date, "--input", input.to_str().unwrap()])
    };
    let most = job_of(folder, "{ by = \"first\", most = 3 }", "");
    assert_eq!(add(&most, "2024-01-08", &first).code, Some(0));
    // The order is another; how many stay is as the job says.
    let kept = |flags: &[&str]| {
        let out = tempfile::tempdir().unwrap();
        let out = out.path().join("out");
        let ran = run(&[&["export", store, "--json", "--out", out.to_str().unwrap()], flags].concat());
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        serde_json::from_str::<Value>(&ran.stdout).unwrap()["written"].as_u64().unwrap()
    };
    let by_job = kept(&[]);
    assert!(by_job > kept(&["--most", "1"]));
    assert_eq!(kept(&["--keep", "longest"]), by_job);
    // Documents of the first batch have no values of a column.
    let folder_of_values = folder.join("values");
    std::fs::create_dir(&folder_of_values).unwrap();
    let values = job_of(&folder_of_values, "{ by = \"first\", most = 3 }", "values = [\"source\"]");
    let ran = add(&values, "2024-01-09", &second);
    assert!(ran.code == Some(2) && ran.stderr.contains("week 2024-01-08 has no values of `source`"), "{}", ran.stderr);
    // Another choice is told.
    let folder_of_other = folder.join("other");
    std::fs::create_dir(&folder_of_other).unwrap();
    let ran = add(&job_of(&folder_of_other, "\"longest\"", ""), "2024-01-09", &second);
    assert!(
        ran.code == Some(0) && ran.stderr.contains("chose the canonical document of a cluster by"),
        "{}",
        ran.stderr
    );
    for (flags, wanted) in [
        (&["--revisits", "--level", "exact", "--most", "0"][..], "none of a cluster stays"),
        (&["--keep", "per-host", "--each", "source"][..], "choose one of the two"),
    ] {
        let out = folder.join("refused");
        let ran = run(&[&["export", store, "--out", out.to_str().unwrap()], flags].concat());
        assert!(ran.code == Some(2) && ran.stderr.contains(wanted), "{}", ran.stderr);
    }
}
