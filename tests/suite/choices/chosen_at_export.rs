//! Which documents stay by columns whose values the store does not have: they are read from the
//! inputs.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use crate::choices::chosen::{CHOICES, DATE, RECORDS, RecordsByRoot, cluster, clusters, job_of, value, write};
use crate::program::{run, run_well};

/// The ids of the records in a file of JSON Lines, CSV, or a list.
pub(crate) fn ids(path: &Path) -> BTreeSet<usize> {
    let text = std::fs::read_to_string(path).unwrap();
    let id = |line: &str| match serde_json::from_str::<Value>(line) {
        Ok(Value::Object(row)) => row["id"].as_u64().map(|id| id as usize),
        _ => line.split(',').next()?.parse().ok(),
    };
    text.lines().filter_map(id).collect()
}

#[test]
fn an_export_reads_the_columns_that_the_store_does_not_have() {
    let folder = tempfile::tempdir().unwrap();
    let (folder, store) = (folder.path(), folder.path().join("store"));
    let store_name = store.to_str().unwrap();
    for format in ["jsonl", "parquet", "arrow", "csv"] {
        let input = write(folder, format, 0..RECORDS);
        // Some of the columns, or none.
        let kept_columns = if format == "jsonl" { "values = [\"meta.score\"]" } else { "" };
        cluster(folder, "\"first\"", kept_columns, &input, &["--workers", "2", "--processes", "2"]);
        let (clusters, docs, _) = clusters(&store, DATE);
        for (number, choice) in CHOICES.iter().enumerate() {
            let expected = choice.kept(&clusters, &docs);
            let list = folder.join(format!("{format}-{number}.txt"));
            let arguments = ["export", store_name, "--list", list.to_str().unwrap(), "--what", "kept"];
            run_well(&[&arguments[..], choice.flags].concat());
            assert_eq!(ids(&list), expected, "{format} {:?}", choice.flags);
            if format == "arrow" || number > 2 {
                continue;
            }
            let mut files = Vec::new();
            for workers in ["1", "4"] {
                let out = folder.join(format!("{format}-{number}-{workers}"));
                let as_lines = if format == "csv" { "same" } else { "jsonl" };
                let arguments =
                    ["export", store_name, "--out", out.to_str().unwrap(), "--workers", workers, "--format", as_lines];
                run_well(&[&arguments[..], choice.flags].concat());
                let file =
                    std::fs::read_dir(&out).unwrap().map(|file| file.unwrap().path()).find(|file| file.is_file());
                files.push(file.unwrap());
            }
            assert_eq!(ids(&files[0]), expected, "{format} {:?}", choice.flags);
            assert!(std::fs::read(&files[0]).unwrap() == std::fs::read(&files[1]).unwrap());
        }
    }
}

#[test]
fn batches_have_their_columns_read_from_all_inputs() {
    let folder = tempfile::tempdir().unwrap();
    let (folder, store) = (folder.path(), folder.path().join("store"));
    let store_name = store.to_str().unwrap();
    let job = job_of(folder, "\"first\"", "");
    let batches = [write(folder, "jsonl", 0..90), write(folder, "parquet", 90..RECORDS)];
    for (date, input) in ["2024-01-08", "2024-01-09"].into_iter().zip(&batches) {
        let arguments = ["add", store_name, job.to_str().unwrap(), "-q", "--week", date];
        run_well(&[&arguments[..], &["--input", input.to_str().unwrap()]].concat());
    }
    let (clusters, docs, _): (RecordsByRoot, _, _) = clusters(&store, "2024-01-09");
    for (number, choice) in CHOICES.iter().enumerate() {
        let list = folder.join(format!("list-{number}.txt"));
        let arguments = ["export", store_name, "--list", list.to_str().unwrap(), "--what", "kept"];
        run_well(&[&arguments[..], choice.flags].concat());
        assert_eq!(ids(&list), choice.kept(&clusters, &docs), "{:?}", choice.flags);
        // Of the second batch what has no older record stays, by the same order.
        let since = folder.join(format!("since-{number}.txt"));
        let arguments = ["export", store_name, "--list", since.to_str().unwrap(), "--what", "kept"];
        run_well(&[&arguments[..], choice.flags, &["--since", "2024-01-09"]].concat());
        let is_old = |n: &usize| *n < 90;
        let without_older: RecordsByRoot =
            clusters.clone().into_iter().filter(|(_, all)| !all.iter().any(is_old)).collect();
        let ids = ids(&since);
        assert!(choice.kept(&without_older, &docs).is_subset(&ids) && !ids.iter().any(is_old), "{:?}", choice.flags);
    }

    // The mean of a column, with records that are alone in their cluster.
    let out = folder.join("scored");
    run_well(&["export", store_name, "--out", out.to_str().unwrap(), "--score", "meta.score", "--format", "jsonl"]);
    let text: String = ["0-90.jsonl", "90-160.jsonl"]
        .into_iter()
        .filter_map(|name| std::fs::read_to_string(out.join(name)).ok())
        .collect();
    let mut rows = 0;
    for row in text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
        let n = row["id"].as_u64().unwrap() as usize;
        let cluster = clusters.values().find(|cluster| cluster.contains(&n)).unwrap();
        // The sums of these numbers are exact.
        let scores: Vec<f64> = cluster.iter().filter_map(|n| value(*n, "meta.score")?.as_f64()).collect();
        let mean = (!scores.is_empty()).then(|| scores.iter().sum::<f64>() / scores.len() as f64);
        assert_eq!(row["nigh_score"].as_f64(), mean, "{row}");
        rows += 1;
    }
    assert_eq!(rows, clusters.len());

    // The inputs must be there, as they were.
    let by_score = |name: &str| {
        let list = folder.join(name);
        run(&["export", store_name, "--list", list.to_str().unwrap(), "--keep-by", "meta.score desc"])
    };
    let wrong = run(&["export", store_name, "--list", "x.txt", "--keep-by", "meta.quality desc"]);
    let named = "no input has a column `meta.quality`, which --keep, --each, --score or the job names: they have day, flag, id, meta, meta.score, source, text";
    assert!(wrong.code == Some(2) && wrong.stderr.contains(named), "{}", wrong.stderr);
    std::fs::rename(&batches[0], folder.join("elsewhere.jsonl")).unwrap();
    let gone = by_score("gone.txt");
    assert!(gone.code == Some(1) && gone.stderr.contains("which is not there"), "{}", gone.stderr);
    std::fs::write(&batches[0], "{}\n").unwrap();
    let changed = by_score("changed.txt");
    assert!(changed.code == Some(1) && changed.stderr.contains("has changed since"), "{}", changed.stderr);
}

#[test]
fn a_column_is_read_wherever_it_begins_and_whatever_bytes_it_has() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    // The best copy is after line 1000, and no line before has the column.
    let mut lines: Vec<Vec<u8>> =
        (0..1100).map(|n| format!("{{\"id\":{n},\"text\":\"text {n}\"}}").into_bytes()).collect();
    for (n, source) in
        [(1, &b""[..]), (1050, b",\"quality\":0.5,\"source\":\"b\xff\""), (1060, b",\"quality\":0.9,\"source\":\"c\"")]
    {
        lines[n] = [format!("{{\"id\":{n},\"text\":\"the same text\"").as_bytes(), source, b"}"].concat();
    }
    let input = folder.join("late.jsonl");
    std::fs::write(&input, lines.join(&b'\n')).unwrap();
    cluster(folder, "\"first\"", "", &input, &[]);
    let store = folder.join("store");
    for (order, kept) in [
        ("quality desc", 1060),
        ("quality", 1050),
        ("source", 1050),
        ("source desc", 1060),
        ("source in [\"c\"]", 1060),
    ] {
        let list = folder.join(format!("{order}.txt").replace(['"', '[', ']', ' '], "-"));
        let arguments = ["export", store.to_str().unwrap(), "--what", "kept", "--list", list.to_str().unwrap()];
        run_well(&[&arguments[..], &["--keep", order]].concat());
        let of_copies: Vec<usize> = ids(&list).into_iter().filter(|id| [1, 1050, 1060].contains(id)).collect();
        assert_eq!(of_copies, [kept], "{order}");
    }
    let none = run(&["export", store.to_str().unwrap(), "--list", "none.txt", "--keep", "qualities desc"]);
    assert!(none.code == Some(2) && none.stderr.contains("no input has a column `qualities`"), "{}", none.stderr);
    assert!(none.stderr.contains("quality"), "a name that begins late is listed: {}", none.stderr);
    // What cannot be read is not said to be written.
    let changed = String::from_utf8_lossy(&lines.join(&b'\n')).replace("the same text", "another text now");
    std::fs::write(&input, changed).unwrap();
    let arguments = ["export", store.to_str().unwrap(), "--touched", "--list", "none.txt", "--keep", "id desc"];
    let ran = run(&arguments);
    assert!(ran.code == Some(1) && ran.stderr.contains("late.jsonl has changed"), "{}", ran.stderr);
    assert!(ran.stderr.contains("cannot read ") && !ran.stderr.contains("cannot write"), "{}", ran.stderr);
}
