//! Commits that `nigh live` makes by itself; the lock of the store meanwhile; kills.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::live::{Live, Numbers, apply, body, found_by_run, found_live};
use crate::program::{nigh, run, texts, week};

/// A number of the metrics.
fn metric(live: &Live, name: &str) -> u64 {
    let metrics = live.send("GET", "/metrics", &[], b"").body;
    let line = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok());
    line.unwrap_or_else(|| panic!("{name}: {metrics}"))
}

/// Waits until something is there, within a bound that only a hang breaks.
fn wait_for<T>(what: &str, mut find: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = find() {
            return found;
        }
        assert!(begun.elapsed() < Duration::from_secs(120), "{what} is not there");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The ids of the last week of a store; `None` if it has no week.
fn committed_ids(store: &Path) -> Option<Vec<String>> {
    let manifest = nigh::state::Store::at(store).manifest().unwrap()?;
    let mut ids = texts(&week(store, &manifest.weeks.last()?.week.to_string()), "clusters", "id");
    ids.sort();
    Some(ids)
}

#[test]
fn a_server_commits_after_a_number_of_lines_and_after_a_time() {
    let folder = tempfile::tempdir().unwrap();
    for (flag, seed) in [("30", 1), ("1s", 2)] {
        let store = folder.path().join(format!("store-{seed}"));
        let (mut numbers, mut there) = (Numbers(seed), BTreeMap::new());
        let live = Live::start(&store, &["--by", "id", "--commit-every", flag]);
        let mut number = 0;
        for commits in 1..=2 {
            while metric(&live, "nigh_live_commits_total") < commits {
                let batch = numbers.batch(40);
                live.post(&format!("b{number}"), &batch);
                apply(&mut there, &batch);
                number += 1;
                let pending = metric(&live, "nigh_live_pending_lines");
                assert!(flag != "30" || pending < 30 + 12, "{pending} lines wait");
                assert!(number < 10_000, "no commit");
            }
        }
        if flag == "1s" {
            // What is pending is committed without a further request.
            wait_for("a commit", || (metric(&live, "nigh_live_pending_lines") == 0).then_some(()));
            assert!(committed_ids(&store).unwrap().iter().eq(there.keys()));
        } else {
            // Fewer lines stay in the journal.
            assert!(metric(&live, "nigh_live_pending_lines") < 30);
        }
        assert_eq!(found_live(&live, &there), found_by_run(folder.path(), &format!("run-{seed}"), &there));
    }
    let store = folder.path().join("store-1");
    for (flag, reason) in [("never", "neither a time"), ("1min,2min", "two times"), ("0", "neither a time")] {
        let refused = run(&["live", store.to_str().unwrap(), "--commit-every", flag]);
        assert!(refused.code == Some(2) && refused.stderr.contains(reason), "{flag}: {}", refused.stderr);
    }
}

#[test]
fn standard_input_is_committed_while_no_line_comes_and_at_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let mut child = nigh(&["live", store.to_str().unwrap(), "--stdin", "--by", "id", "--commit-every", "500ms"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut answers = BufReader::new(child.stdout.take().unwrap()).lines();
    writeln!(input, "{}", json!({"id": 1, "text": "a b c"})).unwrap();
    assert!(answers.next().unwrap().unwrap().contains("\"new\":true"));
    wait_for("a commit", || committed_ids(&store).filter(|ids| ids == &["1"]));
    drop(input);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    // The end of the input comes before the time.
    let mut child = nigh(&["live", store.to_str().unwrap(), "--stdin", "--commit-every", "1h"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    writeln!(child.stdin.take().unwrap(), "{}", json!({"id": 2, "text": "d e f"})).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(committed_ids(&store).unwrap(), ["1", "2"]);
}

#[test]
fn no_other_run_has_the_store_during_a_commit() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let live = Live::start(&store, &["--by", "id"]);
    let documents = |from: usize| -> Vec<Value> {
        (from..from + 300).map(|id| json!({"id": id, "text": format!("text {id} with some words")})).collect()
    };
    live.post("1", &documents(0));
    assert_eq!(live.send("POST", "/commit", &[], b"").status, 200);
    // A commit of two commands.
    live.post("2", &documents(200));
    live.post("3", &[json!({"id": 3, "delete": true})]);
    let other = folder.path().join("other.jsonl");
    std::fs::write(&other, body(&[json!({"id": 9000, "text": "intruder"})])).unwrap();
    let mut refused = 0;
    std::thread::scope(|scope| {
        let commit = scope.spawn(|| live.send("POST", "/commit", &[], b""));
        while !commit.is_finished() {
            let ran = run(&["delete", "--store", store.to_str().unwrap(), "--id", "5"]);
            assert!(ran.code == Some(1) && ran.stderr.contains("another run writes to the store"), "{}", ran.stderr);
            refused += 1;
        }
        let response = commit.join().unwrap();
        assert_eq!(response.status, 200, "{response:?}");
    });
    assert!(refused > 0);
    let ids = committed_ids(&store).unwrap();
    assert!(ids.len() == 499 && ids.contains(&"5".to_owned()) && !ids.contains(&"3".to_owned()), "{}", ids.len());
    // The lock is free when the process has ended.
    drop(live);
    assert_eq!(run(&["delete", "--store", store.to_str().unwrap(), "--id", "5"]).code, Some(0));
}

#[test]
fn a_kill_during_a_commit_loses_none_and_doubles_none() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let (mut numbers, mut there) = (Numbers(99), BTreeMap::new());
    let batches: Vec<Vec<Value>> = (0..40).map(|_| numbers.batch(50)).collect();
    let (mut next, mut kills, mut commits) = (0, 0, 0);
    while next < batches.len() {
        let mut live = Live::start(&store, &["--by", "id", "--commit-every", "20"]);
        let pid = live.child.id().to_string();
        let after = Duration::from_millis(100 + numbers.below(900));
        let killer = std::thread::spawn(move || {
            std::thread::sleep(after);
            std::process::Command::new("kill").args(["-9", &pid]).status().unwrap()
        });
        // The batch without an answer is sent again, with its id.
        while next < batches.len() {
            let id = format!("b{next}");
            match live.try_send("POST", "/documents", &[("Batch-Id", &id)], body(&batches[next]).as_bytes()) {
                Some(response) if response.status == 200 => next += 1,
                _ => break,
            }
            let metrics = live.try_send("GET", "/metrics", &[], b"").map(|response| response.body);
            commits += u32::from(metrics.is_some_and(|text| !text.contains("nigh_live_commits_total 0\n")));
        }
        assert!(killer.join().unwrap().success());
        live.child.wait().unwrap();
        kills += 1;
        assert!(kills < 200, "no progress");
    }
    assert!(kills > 1 && commits > 0, "{kills} kills, {commits} batches after a commit");
    batches.iter().for_each(|batch| apply(&mut there, batch));
    let live = Live::start(&store, &[]);
    assert_eq!(found_live(&live, &there), found_by_run(folder.path(), "run", &there));
    assert_eq!(metric(&live, "nigh_live_documents"), there.len() as u64);
    assert_eq!(live.send("POST", "/commit", &[], b"").status, 200);
    assert_eq!(committed_ids(&store).unwrap(), there.keys().cloned().collect::<Vec<_>>());
    assert_eq!(found_live(&live, &there), found_by_run(folder.path(), "committed", &there));
}
