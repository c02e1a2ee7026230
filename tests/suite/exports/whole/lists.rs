//! Lists of what goes, without the dataset.

use std::path::Path;

use arrow_array::cast::AsArray as _;
use arrow_array::types::Int64Type;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::line_shards::{DATE, LineShards, record, store_of_ids};
use crate::program::{run, run_well, texts, week};

#[test]
fn a_list_has_what_goes_without_reading_the_inputs() {
    let dataset = LineShards::new();
    let (store, clusters) = (dataset.path("store"), dataset.clusters());
    let removed: Vec<usize> = (0..120).filter(|n| clusters[n].first() != Some(n)).collect();
    assert!(removed.len() > 60);
    let list = |name: &str, flags: &[&str]| {
        let path = dataset.path(name);
        let ran = run_well(&[&["export", store.to_str().unwrap(), "--list", path.to_str().unwrap()], flags].concat());
        assert!(ran.stdout.contains("of 120 records"), "{}", ran.stdout);
        path
    };
    let text = std::fs::read_to_string(list("removed.txt", &[])).unwrap();
    assert_eq!(text, removed.iter().map(|n| format!("{n}\n")).collect::<String>());
    let kept = std::fs::read_to_string(list("kept.txt", &["--what", "kept"])).unwrap();
    assert_eq!(kept.lines().count(), 120 - removed.len());
    let file = std::fs::File::open(list("all.parquet", &["--what", "annotated"])).unwrap();
    let mut rows = 0;
    for batch in ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap() {
        let batch = batch.unwrap();
        let texts = |name: &str| batch[name].as_string::<i32>();
        let longs = |name: &str| batch[name].as_primitive::<Int64Type>();
        for row in 0..batch.num_rows() {
            let n: usize = texts("id").value(row).parse().unwrap();
            assert_eq!(n, rows);
            assert_eq!(texts("url").value(row), record(n)["url"]);
            assert!(texts("file").value(row).ends_with(["a.jsonl", "b.jsonl.gz", "deep/c.jsonl.zst"][n / 40]));
            assert_eq!(longs("size").value(row), clusters[&n].len() as i64);
            assert_eq!(batch["stays"].as_boolean().value(row), clusters[&n].first() == Some(&n));
            assert_eq!(longs("doc").value(row), dataset.docs()[&n]);
            rows += 1;
        }
    }
    assert_eq!(rows, 120);
    let both = run(&["export", store.to_str().unwrap(), "--list", "x", "--out", "y"]);
    assert_eq!(both.code, Some(2), "{}", both.stderr);
}

#[test]
fn a_list_of_lines_never_stands_for_another_record() {
    for (odd, shown) in [("a\nb", "\"a\\nb\""), ("b\r", "\"b\\r\""), ("a\rb", "\"a\\rb\"")] {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        let (lines, rows) = (path("l.txt"), path("l.parquet"));
        let store = store_of_ids(folder.path(), &[("0", false), (odd, false), ("z", false), ("b", true)], &[]);
        let refused = run(&["export", &store, "--list", &lines]);
        assert_eq!(refused.code, Some(1), "{}", refused.stderr);
        for wanted in [shown, "line break", "l.parquet"] {
            assert!(refused.stderr.contains(wanted), "{wanted}: {}", refused.stderr);
        }
        assert!(!Path::new(&lines).exists());
        // The form that it says is one that `nigh delete` reads.
        run_well(&["export", &store, "--list", &rows]);
        let deleted = run_well(&["delete", "--store", &store, "--ids", &rows]).stdout;
        assert!(deleted.contains("Deleted 2 pages") && !deleted.contains("Not found"), "{deleted}");
        let mut left: Vec<String> = texts(&week(Path::new(&store), DATE), "documents", "id").into_iter().collect();
        left.sort_unstable();
        assert_eq!(left, ["0", "b"]);
    }
}

#[test]
fn a_list_of_lines_has_no_ids_where_several_records_may_have_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (lines, rows) = (path("l.txt"), path("l.parquet"));
    let store = store_of_ids(folder.path(), &[("g1", false), ("g1", false), ("g2", true)], &["--same-id", "row"]);
    let refused = run(&["export", &store, "--list", &lines]);
    assert_eq!(refused.code, Some(1), "{}", refused.stderr);
    for wanted in ["\"g1\"", "known by file and place", "ids.jsonl", "l.parquet"] {
        assert!(refused.stderr.contains(wanted), "{wanted}: {}", refused.stderr);
    }
    assert!(!Path::new(&lines).exists());
    assert!(run_well(&["export", &store, "--list", &rows]).stdout.contains("listed 1 of 3 records"));
    let refused = run(&["delete", "--store", &store, "--ids", &rows]);
    assert!(refused.code == Some(2) && refused.stderr.contains("by file and place"), "{}", refused.stderr);
}
