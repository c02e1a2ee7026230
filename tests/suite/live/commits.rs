//! Commits that `nigh live` makes by itself; the lock of the store meanwhile; kills.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use nigh::live::{Commitment, Limits, Lines, Service};
use nigh::records::DocumentKey;
use nigh::state::Store;
use serde_json::{Value, json};

use crate::live::{
    Live, Numbers, apply, body, found_by_run, found_live, longs_by_id, parquet_files, send_with_kills, text_of,
    wait_for,
};
use crate::program::{Ran, assert_is_whole, booleans, copy_folder, nigh, ran, run, run_well, texts, week};

/// A number of the metrics.
fn metric(live: &Live, name: &str) -> u64 {
    crate::live::metric(live, name).expect("a server that is there")
}

/// Runs a command as a commit does: with the lock of the store as its standard input.
fn run_in_commit(store: &Path, arguments: &[&str]) -> Ran {
    let lock = File::options().create(true).append(true).open(store.join("_nigh/lock")).unwrap();
    ran(nigh(arguments).stdin(lock))
}

/// As [`run_in_commit`], which succeeds.
fn run_well_in_commit(store: &Path, arguments: &[&str]) {
    let ran = run_in_commit(store, arguments);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
}

/// The commands of a commit.
pub(super) fn run_commands(store: &Path, commitment: &Commitment) -> anyhow::Result<()> {
    let root = store.to_str().unwrap();
    if let Some(names) = &commitment.deleted {
        run_well_in_commit(store, &["delete", "-q", "--store", root, "--ids", names.to_str().unwrap()]);
    }
    if let Some((job, input)) = &commitment.added {
        let [job, input] = [job, input].map(|path| path.to_str().unwrap());
        run_well_in_commit(store, &["add", root, job, "-q", "--input", input]);
    }
    Ok(())
}

/// The ids of the last week of a store; `None` if it has no week.
fn committed_ids(store: &Path) -> Option<Vec<String>> {
    let manifest = Store::at(store).manifest().unwrap()?;
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
    // The end of the input comes before the time. Variables of flags are for other runs; what a
    // flag says of credentials counts for the commands of the commit, too.
    let mut child = nigh(&["live", store.to_str().unwrap(), "--stdin", "--commit-every", "1h"])
        .args(["--cloud-credentials", "environment"])
        .envs([("NIGH_WEEK", "2000-01-03"), ("NIGH_REPLACE", "true"), ("NIGH_ID", "name"), ("NIGH_DRY_RUN", "true")])
        .env("NIGH_CLOUD_CREDENTIALS", "x")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    writeln!(child.stdin.take().unwrap(), "{}", json!({"id": 2, "text": "d e f"})).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(committed_ids(&store).unwrap(), ["1", "2"]);
    // Empty lines, and those that are wrong, leave nothing for a commit.
    for lines in ["", "\n\n", "{\n"] {
        let input = folder.path().join("lines");
        std::fs::write(&input, lines).unwrap();
        let mut live = nigh(&["live", store.to_str().unwrap(), "--stdin", "--commit-every", "1h"]);
        assert_eq!(ran(live.stdin(std::fs::File::open(&input).unwrap())).code, Some(0));
    }
    run_well(&["delete", "-q", "--store", store.to_str().unwrap(), "--id", "2"]);
    assert_eq!(committed_ids(&store).unwrap(), ["1"]);
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
fn batches_get_the_same_answers_after_a_commit_that_was_not_finished() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::at(&folder.path().join("store"));
    let root = store.root().to_str().unwrap();
    let open = || Service::open(&store, Some(DocumentKey::Id), 2, Limits::default()).unwrap().0;
    let (mut numbers, mut service) = (Numbers(12), open());
    let mut sent: Vec<(String, Lines)> = Vec::new();
    for round in 0..4 {
        for _ in 0..6 {
            let lines = body(&numbers.batch(40));
            let answers = service.add(Some(&format!("b{}", sent.len())), lines.as_bytes()).unwrap();
            sent.push((lines, answers));
        }
        let (counts, bytes) = service.counts();
        // The commands fail, or the process is killed after the first one or after both.
        let refused = service.commit(&mut |commitment: &Commitment| {
            let (deleted, added) = (&commitment.deleted, &commitment.added);
            if let Some(names) = deleted.as_ref().filter(|_| round > 0) {
                run_well_in_commit(store.root(), &["delete", "-q", "--store", root, "--ids", names.to_str().unwrap()]);
            }
            if let Some((job, input)) = added.as_ref().filter(|_| round != 1) {
                let [job, input] = [job, input].map(|path| path.to_str().unwrap());
                let is_bad = if round == 0 { "--no-such-flag" } else { "-q" };
                let ran = run_in_commit(store.root(), &["add", root, job, is_bad, "--input", input]);
                anyhow::ensure!(ran.code == Some(0), "it fails");
            }
            anyhow::bail!("it is killed")
        });
        assert!(refused.unwrap_err().text.contains(if round == 0 { "it fails" } else { "it is killed" }));
        // Where no table has changed, the journal is as it was.
        assert!(round > 0 || service.counts().1 == bytes);
        drop(service);
        service = open();
        for (number, (lines, answers)) in sent.iter().enumerate() {
            let again = service.add(Some(&format!("b{number}")), lines.as_bytes()).unwrap();
            assert_eq!(again, *answers, "batch {number} in round {round}");
        }
        let now = service.counts().0;
        assert_eq!((now.documents, now.clusters), (counts.documents, counts.clusters), "round {round}");
        assert!(now.changes >= counts.changes, "a number of a change is given twice");
    }
}

#[test]
fn batches_after_a_commit_that_changed_tables_and_failed_get_the_same_answers() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::at(&folder.path().join("store"));
    let root = store.root().to_str().unwrap().to_owned();
    let open = |store: &Store| Service::open(store, Some(DocumentKey::Id), 2, Limits::default()).unwrap().0;
    let (mut numbers, mut service) = (Numbers(5), open(&store));
    let mut sent: Vec<(String, Lines)> = Vec::new();
    let add = |service: &mut Service, sent: &mut Vec<(String, Lines)>, lines: String| {
        let answers = service.add(Some(&format!("b{}", sent.len())), lines.as_bytes()).unwrap();
        sent.push((lines, answers));
    };
    let same = |service: &mut Service, sent: &[(String, Lines)], what: &str| {
        for (number, (lines, answers)) in sent.iter().enumerate() {
            let again = service.add(Some(&format!("b{number}")), lines.as_bytes()).unwrap();
            assert_eq!(again, *answers, "batch {number}: {what}");
        }
    };
    let run_commit = |commitment: &Commitment| run_commands(store.root(), commitment);
    for round in 0..3 {
        (0..6).for_each(|_| add(&mut service, &mut sent, body(&numbers.batch(40))));
        // Chains of similar texts, two of each version.
        let families = 10 * (round + 1)..10 * (round + 1) + 6;
        let chains = families.clone().flat_map(|family| (0..12).map(move |place| (family, place)));
        let chains: Vec<Value> = chains
            .map(|(family, place)| json!({"id": 100 * family + place, "text": text_of(family, place / 2)}))
            .collect();
        add(&mut service, &mut sent, body(&chains));
        service.commit(&mut { run_commit }).unwrap();
        // Documents of the tables are deleted, so that clusters are split, and the second command
        // fails.
        let middle = families.clone().flat_map(|family| (4..8).map(move |place| 100 * family + place));
        let deletes: Vec<Value> =
            (0..40).filter(|id| id % 3 == round).chain(middle).map(|id| json!({"id": id, "delete": true})).collect();
        add(&mut service, &mut sent, body(&deletes));
        add(&mut service, &mut sent, body(&[json!({"id": 100 + round, "text": numbers.text()})]));
        let fail = |commitment: &Commitment| -> anyhow::Result<()> {
            let names = commitment.deleted.as_ref().expect("documents of the tables are deleted");
            run_well_in_commit(store.root(), &["delete", "-q", "--store", &root, "--ids", names.to_str().unwrap()]);
            anyhow::bail!("the disk is full")
        };
        assert!(service.commit(&mut { fail }).unwrap_err().text.contains("the disk is full"));
        let copy = Store::at(&folder.path().join(format!("copy-{round}")));
        copy_folder(store.root(), copy.root());
        let mut started = open(&copy);
        for _ in 0..4 {
            let mut batch = numbers.batch(40);
            let ends = families
                .clone()
                .map(|family| json!({"id": 100 * family + 20, "text": text_of(family, numbers.below(6))}));
            batch.extend(ends);
            let (with_id, without) = (body(&batch), body(&numbers.batch(40)));
            // The process that failed has read tables and journal, as one that starts before this
            // batch.
            let others = started.add(None, with_id.as_bytes()).unwrap();
            add(&mut service, &mut sent, with_id);
            assert_eq!(others, sent.last().unwrap().1);
            for service in [&mut service, &mut started] {
                service.add(None, without.as_bytes()).unwrap();
            }
            // A commit that fails before it changes a table.
            let bytes = service.counts().1;
            let refused = service.commit(&mut |_: &Commitment| anyhow::bail!("the disk is full still"));
            assert!(refused.is_err() && service.counts().1 == bytes);
        }
        same(&mut service, &sent, "the same process");
        let counts = service.counts().0;
        if round < 2 {
            // It is killed.
            drop(service);
            service = open(&store);
            same(&mut service, &sent, "after a kill");
            assert_eq!(service.counts().0.documents, counts.documents);
            assert!(service.counts().0.changes >= counts.changes, "a number of a change is given twice");
        }
        if round > 0 {
            // The commit is tried again, by the process that failed or by the next one.
            service.commit(&mut { run_commit }).unwrap();
            same(&mut service, &sent, "after the commit");
            drop(service);
            service = open(&store);
            same(&mut service, &sent, "after the commit and a kill");
            assert_eq!(service.counts().0.documents, counts.documents);
        }
    }
}

#[test]
fn a_command_that_fails_after_its_tables_are_there_loses_no_later_change() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::at(folder.path());
    let open = || Service::open(&store, Some(DocumentKey::Id), 1, Limits::default()).unwrap().0;
    let mut service = open();
    let lines: Vec<Value> = ["x", "y"].map(|id| json!({"id": id, "text": text_of(1, 1)})).into();
    service.add(None, body(&lines).as_bytes()).unwrap();
    let refused = service.commit(&mut |commitment| {
        run_commands(store.root(), commitment)?;
        anyhow::bail!("views.sql: no space left")
    });
    let refused = refused.unwrap_err().text;
    assert!(refused.starts_with("committed, but") && refused.contains("no space left"), "{refused}");
    assert_eq!(committed_ids(store.root()).unwrap(), ["x", "y"]);
    assert!(service.document("x", false).unwrap().starts_with(br#"{"id":"x","doc":"#), "the tables have it");
    service.delete("x").unwrap();
    service.commit(&mut |commitment| run_commands(store.root(), commitment)).unwrap();
    assert_eq!(committed_ids(store.root()).unwrap(), ["y"]);
    drop(service);
    let mut service = open();
    assert_eq!(service.document("x", false).unwrap_err().status, 404);
    assert_eq!(service.counts().0.documents, 1);
}

#[test]
fn a_kill_between_the_commands_and_the_new_journal_keeps_the_ids_of_the_tables() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::at(&folder.path().join("store"));
    let open = || Service::open(&store, Some(DocumentKey::Id), 2, Limits::default()).unwrap();
    let (mut numbers, mut service) = (Numbers(33), open().0);
    let mut sent: Vec<(String, Lines)> = Vec::new();
    for round in 0..4 {
        for _ in 0..8 {
            let lines = body(&numbers.batch(40));
            let answers = service.add(Some(&format!("b{}", sent.len())), lines.as_bytes()).unwrap();
            sent.push((lines, answers));
        }
        let refused = service.commit(&mut |commitment| {
            run_commands(store.root(), commitment)?;
            anyhow::bail!("it is killed")
        });
        assert!(refused.unwrap_err().text.contains("it is killed"));
        let counts = service.counts().0;
        if round == 3 {
            // A batch comes before it is killed: the journal does not begin again.
            let (id, lines) = (format!("b{}", sent.len()), body(&numbers.batch(40)));
            sent.push((lines.clone(), service.add(Some(&id), lines.as_bytes()).unwrap()));
        }
        drop(service);
        let (now, started) = open();
        service = now;
        assert_eq!(started.batches, u64::from(round == 3), "round {round}");
        assert_eq!(Service::uncommitted(store.root()).unwrap() == 0, round < 3);
        if round < 3 {
            // The ids are those of the tables, and so are the documents.
            let of_tables = longs_by_id(store.root());
            assert_eq!(service.counts().0.documents, of_tables.len() as u64);
            assert_eq!(service.counts().0.clusters, counts.clusters);
            for (name, id) in of_tables {
                let answer: Value = serde_json::from_slice(&service.document(&name, false).unwrap()).unwrap();
                assert_eq!(answer["cluster"].as_i64(), id, "{name} in round {round}");
            }
        }
        assert!(
            service.changes(counts.changes, 9).is_ok_and(|lines| round < 3 && lines.is_empty()) || counts.clusters > 0
        );
        for (number, (lines, answers)) in sent.iter().enumerate() {
            let again = service.add(Some(&format!("b{number}")), lines.as_bytes()).unwrap();
            assert_eq!(again, *answers, "batch {number} in round {round}");
        }
    }
    // Also if another program has made as many commits: its documents are those of the journal
    // then.
    let lines = body(&[json!({"id": "only here", "text": numbers.text()})]);
    service.add(None, lines.as_bytes()).unwrap();
    let other = folder.path().join("other.jsonl");
    std::fs::write(&other, body(&[json!({"id": "only there", "text": numbers.text()})])).unwrap();
    let _ = service.commit(&mut |commitment| {
        let makes = u64::from(commitment.deleted.is_some()) + u64::from(commitment.added.is_some());
        for _ in 0..makes {
            run_well_in_commit(
                store.root(),
                &["add", store.root().to_str().unwrap(), "-q", "--id", "id", "--input", other.to_str().unwrap()],
            );
            std::fs::write(&other, body(&[json!({"id": "only there", "text": numbers.text()})])).unwrap();
        }
        anyhow::bail!("it is killed")
    });
    drop(service);
    let (mut service, started) = open();
    assert!(started.batches > 0);
    for name in ["only here", "only there"] {
        assert!(service.document(name, false).is_ok(), "{name}");
    }
}

#[test]
fn commands_refuse_a_store_with_batches_that_no_table_has() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let root = store.to_str().unwrap();
    let first = folder.path().join("1.jsonl");
    std::fs::write(&first, body(&[json!({"id": 5, "text": text_of(1, 0)}), json!({"id": 6, "text": text_of(2, 0)})]))
        .unwrap();
    let add = ["add", root, "-q", "--id", "id", "--input", first.to_str().unwrap()];
    run_well(&add);
    let live = Live::start(&store, &[]);
    live.post("1", &[json!({"id": 5, "text": text_of(3, 0)})]);
    drop(live);
    let second = folder.path().join("2.jsonl");
    std::fs::write(&second, body(&[json!({"id": 5, "text": text_of(4, 0)})])).unwrap();
    let second = second.to_str().unwrap();
    let commands: [&[&str]; 4] = [
        &["add", root, "-q", "--id", "id", "--input", second],
        &["run", "jobs/cluster.toml", "-q", "--store", root, "--id", "id", "--input", second],
        &["delete", "-q", "--store", root, "--id", "6"],
        &["reshard", root, "-q", "--shards", "128"],
    ];
    let before = parquet_files(&store);
    for command in commands {
        let refused = run(command);
        let says = |text: &str| refused.stderr.contains(text);
        assert_eq!(refused.code, Some(1), "{command:?}: {}", refused.stderr);
        assert!(says("_nigh/live/journal has 1 batches of `nigh live`") && says("POST /commit"), "{}", refused.stderr);
    }
    assert!(parquet_files(&store) == before);
    // This brings no document, and takes none away. A commit may need it, where a text is gone.
    run_well(&["verify", root, "-q", "--by", "estimate", "--similarity", "0.8"]);
    // What they say helps.
    let live = Live::start(&store, &[]);
    assert_eq!(live.send("POST", "/commit", &[], b"").status, 200);
    drop(live);
    run_well(commands[0]);
    let live = Live::start(&store, &[]);
    assert_eq!(live.get("/documents/5")["cluster"], Value::Null);
    let similar = live.send("POST", "/similar", &[], json!({"text": text_of(4, 0)}).to_string().as_bytes());
    assert!(similar.body.contains("\"name\":\"5\""), "{similar:?}");
}

#[test]
fn a_commit_keeps_the_copies_that_stayed_before() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let root = store.to_str().unwrap();
    let text = |family: &str| (0..60).map(|at| format!("{family}{at}")).collect::<Vec<_>>().join(" ");
    let batch = |name: &str, pages: &[(&str, &str)]| {
        let lines: Vec<Value> = pages.iter().map(|(id, family)| json!({ "id": id, "text": text(family) })).collect();
        let path = folder.path().join(name);
        std::fs::write(&path, body(&lines)).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (first, second) = (batch("1.jsonl", &[("a", "w")]), batch("2.jsonl", &[("b1", "v"), ("b2", "v"), ("a2", "w")]));
    run_well(&["add", root, "-q", "--id", "id", "--week", "2024-01-08", "--input", &first]);
    run_well(&["add", root, "-q", "--id", "id", "--week", "2024-01-09", "--only-older", "--input", &second]);
    let live = Live::start(&store, &[]);
    live.post("1", &[json!({ "id": "c", "text": text("u") })]);
    assert_eq!(live.send("POST", "/commit", &[], b"").status, 200);
    let last = Store::at(&store).manifest().unwrap().unwrap().weeks.last().unwrap().week.to_string();
    let of = week(&store, &last);
    let stays = texts(&of, "clusters", "id").into_iter().zip(booleans(&of, "clusters", "canonical"));
    let mut stays: Vec<String> = stays.filter_map(|(id, stays)| stays.then_some(id)).collect();
    stays.sort();
    assert_eq!(stays, ["a", "b1", "b2", "c"]);
}

#[test]
fn what_was_committed_is_found_after_the_store_is_moved() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (before, store, out) = (path("before"), path("store"), path("out"));
    let document = |id: &str, family: &str| {
        let words: Vec<String> = (0..60).map(|at| format!("{family}{at}")).collect();
        json!({ "id": id, "text": words.join(" ") })
    };
    let add = |store: &str, lines: &[Value]| {
        let batch = path(&format!("{}.jsonl", lines[0]["id"].as_str().unwrap()));
        std::fs::write(&batch, body(lines)).unwrap();
        let flags = ["--id", "id", "--text", "text", "--similarity", "0.8", "--verify", "exact", "--input"];
        run_well(&[&["add", store, "-q"][..], &flags, &[&batch]].concat());
    };
    add(&before, &[document("a", "w"), document("b", "v")]);
    let live = Live::start(Path::new(&before), &[]);
    for lines in [[document("c", "w"), document("d", "u")], [document("e", "w"), document("f", "t")]] {
        live.post(lines[0]["id"].as_str().unwrap(), &lines);
        assert_eq!(live.send("POST", "/commit", &[], b"").status, 200);
    }
    drop(live);
    std::fs::rename(&before, &store).unwrap();
    let why = run_well(&["why", &store, "c", "e"]).stdout;
    assert!(why.contains("shingles are in both"), "{why}");
    run_well(&["export", &store, "--out", &out]);
    let written = walkdir::WalkDir::new(&out).into_iter().map(Result::unwrap);
    let written = written.filter(|entry| entry.file_type().is_file() && entry.path().extension().is_some());
    let texts: String = written.map(|entry| std::fs::read_to_string(entry.path()).unwrap()).collect();
    let once = |word: &&str| texts.matches(&format!("{word}\"}}")).count() == 1;
    assert!(["w59", "v59", "u59", "t59"].iter().all(once), "{texts}");
    // Exact verification reads the texts of the cluster again.
    add(&store, &[document("g", "w")]);
}

#[test]
fn a_kill_during_a_commit_loses_none_and_doubles_none() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let (mut numbers, mut there) = (Numbers(99), BTreeMap::new());
    let batches: Vec<Vec<Value>> = (0..40).map(|_| numbers.batch(50)).collect();
    let mut commits = 0;
    // A commit may take longer than a process stays, on a machine that is busy: so each one stays
    // longer than those before.
    let mut turn = 0;
    let time = || {
        turn += 1;
        Duration::from_millis((100 + numbers.below(900)) * (8 + turn) / 8)
    };
    let kills = send_with_kills(&store, &["--by", "id", "--commit-every", "20"], &batches, time, |live| {
        let committed = crate::live::metric(live, "nigh_live_commits_total");
        commits += u32::from(committed.is_some_and(|committed| committed > 0));
    });
    assert!(kills > 1 && commits > 0, "{kills} kills, {commits} batches after a commit");
    batches.iter().for_each(|batch| apply(&mut there, batch));
    let live = Live::start(&store, &[]);
    assert_eq!(found_live(&live, &there), found_by_run(folder.path(), "run", &there));
    assert_eq!(metric(&live, "nigh_live_documents"), there.len() as u64);
    assert_eq!(live.send("POST", "/commit", &[], b"").status, 200);
    assert_eq!(committed_ids(&store).unwrap(), there.keys().cloned().collect::<Vec<_>>());
    assert_eq!(found_live(&live, &there), found_by_run(folder.path(), "committed", &there));
    assert_is_whole(&store);
}
