//! Datasets that are written again without duplicates.

mod archives;
mod line_shards;
mod lists;
mod paragraphs;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use self::line_shards::{DATE, id, store_of_ids};
pub use self::line_shards::{LineShards, record};
use crate::program::{booleans, job, nigh, ran, run, run_well, skipped, texts, week};
use crate::skips::Need;

#[test]
fn each_policy_keeps_what_a_walk_over_the_clusters_keeps() {
    let dataset = LineShards::new();
    let (clusters, docs) = (dataset.clusters(), dataset.docs());
    assert!(clusters.values().filter(|cluster| cluster.len() > 1).count() > 60);
    let field = |n: usize, name: &str| record(n)[name].as_str().unwrap().to_owned();
    let words = |n: usize| field(n, "text").split(' ').count();
    for policy in ["first", "longest", "newest", "shortest-url", "per-host", "root"] {
        let best = |cluster: &BTreeSet<usize>, n: usize| match policy {
            "first" => *cluster.first().unwrap() == n,
            "longest" => {
                let key = |n: usize| (usize::MAX - words(n), usize::MAX - field(n, "text").len(), docs[&n]);
                cluster.iter().min_by_key(|n| key(**n)) == Some(&n)
            }
            "newest" => cluster.iter().max_by_key(|n| (field(**n, "date"), -docs[n])) == Some(&n),
            "shortest-url" => cluster.iter().min_by_key(|n| (field(**n, "url").len(), docs[n])) == Some(&n),
            "root" => cluster.iter().min_by_key(|n| docs[n]) == Some(&n),
            _ => cluster.iter().find(|other| **other % 3 == n % 3) == Some(&n),
        };
        let kept = dataset.export(&format!("kept-{policy}"), &["--keep", policy]);
        let removed = dataset.export(&format!("removed-{policy}"), &["--keep", policy, "--what", "removed"]);
        for (shard, lines) in dataset.lines.iter().enumerate() {
            let wanted = |stays: bool| {
                let lines = lines.iter().filter(|line| best(&clusters[&id(line)], id(line)) == stays);
                lines.cloned().collect::<Vec<String>>()
            };
            assert_eq!(kept[shard], wanted(true), "{policy}, shard {shard}");
            assert_eq!(removed[shard], wanted(false), "{policy}, shard {shard}");
        }
        // The policy of the job says what is canonical, and what stays if the command does not say
        // it.
        for flags in [["--workers", "1", "--processes", "1"], ["--workers", "2", "--processes", "2"]] {
            dataset.cluster_as(&dataset.path("shards"), policy, &flags);
            let week = week(&dataset.path("store"), DATE);
            let ids = texts(&week, "clusters", "id").into_iter().map(|id| id.parse::<usize>().unwrap());
            for (id, is_canonical) in ids.zip(booleans(&week, "clusters", "canonical")) {
                assert_eq!(is_canonical, best(&clusters[&id], id), "{policy}, {id}");
            }
        }
        assert_eq!(dataset.export(&format!("default-{policy}"), &[]), kept, "{policy}");
        let [store, shards, out] = ["store", "shards", &format!("default-{policy}")].map(|name| dataset.path(name));
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/check_export.py");
        let checked = Command::new("python3").arg(script).arg(store).args([DATE, "id"]).args([shards, out]).output();
        match checked {
            Ok(checked) if checked.status.code() == Some(0) => {
                let rows = kept.iter().map(Vec::len).sum::<usize>();
                let wanted = format!("{rows} of 120 rows are exported; 0 are missing, 0 should not be there\n");
                assert_eq!(String::from_utf8(checked.stdout).unwrap(), wanted);
            }
            Ok(checked) if checked.status.code() != Some(4) => panic!("{}", String::from_utf8_lossy(&checked.stdout)),
            _ => skipped(Need::Engines, "exports are not compared with an anti-join"),
        }
    }
}

#[test]
fn annotated_lines_have_cluster_size_rank_and_verdict() {
    let dataset = LineShards::new();
    let (clusters, docs) = (dataset.clusters(), dataset.docs());
    let annotated = dataset.export("annotated", &["--what", "annotated"]);
    for (of_shard, lines) in annotated.iter().zip(&dataset.lines) {
        assert_eq!(of_shard.len(), lines.len());
        for (line, before) in of_shard.iter().zip(lines) {
            let mut value: serde_json::Value = serde_json::from_str(line).unwrap();
            let cluster = &clusters[&id(line)];
            let rank = 1 + cluster.iter().position(|n| *n == id(line)).unwrap();
            let root = cluster.iter().map(|n| docs[n]).min().unwrap();
            let fields = value.as_object_mut().unwrap();
            let mut take = |name: &str| fields.remove(name).unwrap();
            assert_eq!(take("nigh_cluster"), root);
            assert_eq!((take("nigh_size"), take("nigh_rank")), (cluster.len().into(), rank.into()));
            assert_eq!(take("nigh_stays"), rank == 1);
            assert_eq!(value, serde_json::from_str::<serde_json::Value>(before).unwrap());
        }
    }
}

#[test]
fn rows_of_parquet_keep_all_columns_and_row_groups() {
    let dataset = LineShards::new();
    let input = dataset.path("rows.parquet");
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("id", Arc::new(Int64Array::from_iter_values(0..60))),
        (
            "text",
            Arc::new(StringArray::from_iter_values((0..60).map(|n| record(n)["text"].as_str().unwrap().to_owned()))),
        ),
        ("date", Arc::new(StringArray::from(vec!["2024-01-01"; 60]))),
        ("more", Arc::new(Int64Array::from_iter((0..60).map(|n| (n % 7 > 0).then_some(n))))),
    ];
    let batch =
        RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true))).unwrap();
    let mut writer = ArrowWriter::try_new(std::fs::File::create(&input).unwrap(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    dataset.cluster(&input);
    let clusters = dataset.clusters();
    let store = dataset.path("store");
    for (what, wanted) in [("kept", true), ("removed", false)] {
        let out = dataset.path(what);
        run_well(&["export", store.to_str().unwrap(), "--out", out.to_str().unwrap(), "--what", what]);
        let file = std::fs::File::open(out.join("rows.parquet")).unwrap();
        let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
        assert_eq!(reader.schema().fields(), batch.schema().fields());
        let rows: Vec<usize> = (0..60).filter(|n| (clusters[n].first() == Some(n)) == wanted).collect();
        let mut next = 0;
        for found in reader.build().unwrap() {
            let found = found.unwrap();
            for row in 0..found.num_rows() {
                assert_eq!(found.slice(row, 1), batch.slice(rows[next], 1), "{what}");
                next += 1;
            }
        }
        assert_eq!(next, rows.len(), "{what}");
    }
    let out = dataset.path("annotated");
    run_well(&["export", store.to_str().unwrap(), "--out", out.to_str().unwrap(), "--what", "annotated"]);
    let reader =
        ParquetRecordBatchReaderBuilder::try_new(std::fs::File::open(out.join("rows.parquet")).unwrap()).unwrap();
    let names: Vec<String> = reader.schema().fields().iter().map(|field| field.name().clone()).collect();
    assert_eq!(names, ["id", "text", "date", "more", "nigh_cluster", "nigh_size", "nigh_rank", "nigh_stays"]);
    assert_eq!(reader.build().unwrap().map(|batch| batch.unwrap().num_rows()).sum::<usize>(), 60);
}

#[test]
fn an_export_goes_on_where_it_was_stopped_and_gives_the_same_bytes() {
    let dataset = LineShards::new();
    let (store, out) = (dataset.path("store"), dataset.path("out"));
    let whole = dataset.export("whole", &["--workers", "1"]);
    let files = ["a.jsonl", "b.jsonl.gz", "deep/c.jsonl.zst", ".nigh-export/list.jsonl"];
    let bytes = |folder: &Path| files.map(|name| std::fs::read(folder.join(name)).unwrap());
    dataset.export("out", &["--workers", "4"]);
    assert!(bytes(&out) == bytes(&dataset.path("whole")));
    // As a kill leaves it: one file whole, one begun, the list cut.
    std::fs::remove_file(out.join("deep/c.jsonl.zst")).unwrap();
    std::fs::remove_file(out.join("b.jsonl.gz")).unwrap();
    std::fs::create_dir(out.join("_nigh-export-work")).unwrap();
    std::fs::write(out.join("_nigh-export-work/00001"), "half").unwrap();
    std::fs::write(out.join("_nigh-export-work/lock"), "nigh export\nprocess 1\n").unwrap();
    let list = std::fs::read_to_string(out.join(".nigh-export/list.jsonl")).unwrap();
    let lines: Vec<&str> = list.lines().filter(|line| line.contains("\"keep\"") || line.contains("a.jsonl")).collect();
    std::fs::write(out.join(".nigh-export/list.jsonl"), format!("{}\n{{\"file\":\"b.j", lines.join("\n"))).unwrap();
    let untouched = std::fs::metadata(out.join("a.jsonl")).unwrap().modified().unwrap();
    assert_eq!(dataset.export("out", &[]), whole);
    assert!(bytes(&out) == bytes(&dataset.path("whole")));
    assert_eq!(std::fs::metadata(out.join("a.jsonl")).unwrap().modified().unwrap(), untouched);
    assert!(!out.join("_nigh-export-work").exists());
    // Another export, and other files, are not written over.
    let arguments = ["export", store.to_str().unwrap(), "--out", out.to_str().unwrap(), "--keep", "longest"];
    let other = run(&arguments);
    assert!(other.code == Some(2) && other.stderr.contains("has files of another export"), "{}", other.stderr);
    let shards = dataset.path("shards");
    let other = run(&["export", store.to_str().unwrap(), "--out", shards.to_str().unwrap()]);
    assert!(other.code == Some(2) && other.stderr.contains("is not empty"), "{}", other.stderr);
}

#[test]
fn an_input_that_changed_is_named_and_its_file_is_not_written() {
    let dataset = LineShards::new();
    let (store, shard) = (dataset.path("store"), dataset.path("shards/a.jsonl"));
    let text = std::fs::read_to_string(&shard).unwrap();
    let content = "a.jsonl has changed since the week was made";
    let stamp = "a.jsonl has changed since week 2024-01-08 was made";
    for (number, changed) in [
        text.replacen("own3 ", "own9 ", 1),
        text.replacen("{\"date\"", "\n{\"date\"", 1).replacen("no json\n\n", "no json\n", 1),
        text[..text.len() / 2].to_owned(),
        text.replacen("own3 ", "own10 ", 1),
    ]
    .iter()
    .enumerate()
    {
        assert_ne!(*changed, text);
        std::fs::write(&shard, changed).unwrap();
        for (flags, wanted) in [(&[][..], stamp), (&["--touched"], content)] {
            let out = dataset.path(&format!("out-{number}-{}", flags.len()));
            let arguments = ["export", store.to_str().unwrap(), "--out", out.to_str().unwrap()];
            let ran = ran(&mut nigh(&[&arguments[..], flags].concat()));
            assert_eq!(ran.code, Some(1), "{}", ran.stderr);
            assert!(ran.stderr.contains(wanted), "{}", ran.stderr);
            assert!(!out.join("a.jsonl").exists());
        }
    }
    std::fs::remove_file(&shard).unwrap();
    let out = dataset.path("out");
    let ran = run(&["export", store.to_str().unwrap(), "--out", out.to_str().unwrap()]);
    assert!(ran.code == Some(1) && ran.stderr.contains("a.jsonl, not among the inputs now"), "{}", ran.stderr);
    assert!(ran.stderr.contains("with --input and the names that the inputs had"), "{}", ran.stderr);
}

#[test]
fn records_of_csv_are_copied_as_they_are() {
    let dataset = LineShards::new();
    let (store, input) = (dataset.path("store"), dataset.path("table.csv"));
    // Fields with line breaks, quotes and line ends of both kinds; one record has too few fields.
    let line = |n: usize| {
        let end = if n.is_multiple_of(3) { "\r\n" } else { "\n" };
        format!("{n},2024-01-01,\"a \"\"quoted\"\"\nnote\",\"{}\"{end}", record(n)["text"].as_str().unwrap())
    };
    let lines: Vec<String> = (0..60).map(line).collect();
    let names = "\u{feff}id,date,note,text\n";
    std::fs::write(&input, format!("{names}{}short\n{}", lines[..30].concat(), lines[30..].concat())).unwrap();
    dataset.cluster(&input);
    let clusters = dataset.clusters();
    let export = |what: &str| {
        let out = dataset.path(what);
        run_well(&["export", store.to_str().unwrap(), "--out", out.to_str().unwrap(), "--what", what]);
        std::fs::read_to_string(out.join("table.csv")).unwrap()
    };
    for (what, wanted) in [("kept", true), ("removed", false)] {
        let of_what = (0..60).filter(|n| (clusters[n].first() == Some(n)) == wanted);
        let text = names.to_owned() + &of_what.map(|n| lines[n].clone()).collect::<String>();
        assert_eq!(export(what), text, "{what}");
    }
    let annotated = export("annotated");
    assert!(
        annotated.starts_with("\u{feff}id,date,note,text,nigh_cluster,nigh_size,nigh_rank,nigh_stays\n"),
        "{annotated}"
    );
    let docs = dataset.docs();
    for n in 0..60 {
        let cluster = &clusters[&n];
        let root = cluster.iter().map(|n| docs[n]).min().unwrap();
        let rank = 1 + cluster.iter().position(|other| *other == n).unwrap();
        let end = lines[n].find("\"\r\n").map_or("\n", |_| "\r\n");
        let body = lines[n].trim_end_matches(['\r', '\n']);
        let wanted = format!("{body},{root},{},{rank},{}{end}", cluster.len(), rank == 1);
        assert!(annotated.contains(&wanted), "{wanted}");
    }
}

#[test]
fn files_that_are_documents_stay_or_go() {
    let folder = tempfile::tempdir().unwrap();
    let (texts, store) = (folder.path().join("texts"), folder.path().join("store"));
    std::fs::create_dir_all(texts.join("deep")).unwrap();
    for n in 0..40 {
        let name = if n % 2 == 0 { format!("{n:02}.txt") } else { format!("deep/{n:02}.txt") };
        std::fs::write(texts.join(name), record(n)["text"].as_str().unwrap()).unwrap();
    }
    let job = job(folder.path(), "[cluster.method]\nsimilarity = 0.8\n");
    let arguments = ["run", job.to_str().unwrap(), "-q", "--week", DATE, "--store", store.to_str().unwrap()];
    run_well(&[&arguments[..], &["--input", texts.to_str().unwrap()]].concat());
    let out = folder.path().join("out");
    let ran = run_well(&["export", store.to_str().unwrap(), "--out", out.to_str().unwrap(), "--card"]);
    // Only files that are there count, and are in the card.
    assert!(ran.stdout.contains("wrote 20 of 40 records (those that stay) to 20 files in"), "{}", ran.stdout);
    let card = std::fs::read_to_string(out.join("README.md")).unwrap();
    assert!(card.contains("| files | 20 |") && card.matches(".txt\"\n").count() == 20, "{card}");
    for n in 0..40 {
        let name = if n % 2 == 0 { format!("{n:02}.txt") } else { format!("deep/{n:02}.txt") };
        let file = std::fs::read_to_string(out.join(name)).ok();
        assert_eq!(file, (n < 20).then(|| record(n)["text"].as_str().unwrap().to_owned()), "{n}");
    }
    let list = folder.path().join("removed.txt");
    run_well(&["export", store.to_str().unwrap(), "--list", list.to_str().unwrap()]);
    let list = std::fs::read_to_string(list).unwrap();
    assert_eq!(list.lines().count(), 20);
    assert!(list.lines().all(|line| line.ends_with(".txt\t0")), "{list}");
}

#[test]
fn an_export_since_a_date_after_the_last_week_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let store = store_of_ids(folder.path(), &[("0", false), ("1", false)], &[]);
    let out = folder.path().join("out");
    let refused = run(&["export", &store, "--out", out.to_str().unwrap(), "--since", "2024-01-09"]);
    assert!(refused.code == Some(2) && refused.stderr.contains("is 2024-01-08, and no batch"), "{}", refused.stderr);
    assert!(!out.exists());
}
