//! How often a run opens the files that it makes: counted by strace.

use std::collections::BTreeMap;
use std::process::Command;

use crate::program::{data, skipped};
use crate::skips::Need;

/// The paths that a run opens or makes, and how often.
fn opened(arguments: &[&str]) -> BTreeMap<String, usize> {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace");
    let mut strace = Command::new("strace");
    strace.args(["-f", "-e", "trace=openat", "-o"]).arg(&trace).arg(env!("CARGO_BIN_EXE_nigh")).args(arguments);
    let output = strace.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut counts = BTreeMap::new();
    for line in std::fs::read_to_string(&trace).unwrap().lines().filter(|line| !line.contains("ENOENT")) {
        let path = line.split_once("openat(").and_then(|(_, call)| call.split('"').nth(1));
        *counts.entry(path.unwrap_or_default().to_owned()).or_default() += 1;
    }
    counts
}

#[test]
fn no_run_opens_a_file_of_rows_more_than_twice() {
    let runs = Command::new("strace").args(["-f", "-o", "/dev/null", "true"]).output();
    if !runs.is_ok_and(|output| output.status.success()) {
        return skipped(Need::Strace, "no_run_opens_a_file_of_rows_more_than_twice");
    }
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let store = store.to_str().unwrap();
    for week in ["2024-01-08", "2024-01-15"] {
        let input = data(&format!("week-{week}"));
        let arguments =
            ["run", "-q", "--workers", "1", "--week", week, "--input", input.to_str().unwrap(), "--store", store];
        let of_work: BTreeMap<String, usize> =
            opened(&arguments).into_iter().filter(|(path, _)| path.contains("_nigh/work/")).collect();
        let rows = of_work.iter().filter(|(path, _)| path.ends_with(".parquet") || path.ends_with(".parquet.tmp"));
        let (mut files, mut made) = (0, 0);
        for (path, count) in rows {
            assert!(*count <= 2, "{week}: {path} is opened {count} times");
            files += 1;
            made += usize::from(path.ends_with(".tmp"));
        }
        // Pages, features, chunks, URLs, links, and what is computed of them: a file each, and one
        // that is packed of each.
        assert!((10..60).contains(&files) && made >= 10, "{week}: {files} files, {made} of them written");
    }
}
