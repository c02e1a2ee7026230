//! A live process with others that have a part of the keys: the bytes of one process, whichever is
//! killed or stopped.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::live::ready::ready;
use crate::live::verified::{METHODS, begin};
use crate::live::{
    Live, Numbers, Response, apply, body, commits_are_those_of_nigh_add, found_by_method, found_live, metric,
    parquet_files, send_with_kills, text_of, values, wait_for,
};
use crate::program::{copy_folder, nigh, run};

/// The process ids of the other processes.
fn others(first: u32) -> Vec<u32> {
    let processes = std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let is_other = |id: &u32| {
        let read = |file: &str| std::fs::read_to_string(format!("/proc/{id}/{file}")).unwrap_or_default();
        // After the name, which may have blanks, are the state and the parent.
        let stat = read("stat");
        let parent = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(1)?.parse::<u32>().ok());
        parent == Some(first) && read("cmdline").contains("live-keys")
    };
    processes.filter_map(|name| name.parse().ok()).filter(is_other).collect()
}

fn signal(signal: &str, process: u32) {
    // It may have ended meanwhile.
    std::process::Command::new("kill").args([signal, &process.to_string()]).output().unwrap();
}

/// Sends a batch until it is taken. Returns the answer, and why it was refused before.
fn post_until_taken(live: &Live, id: &str, lines: &[Value]) -> (String, Vec<String>) {
    let mut reasons = Vec::new();
    let answer = wait_for("an answer", || {
        let Response { status, body, .. } =
            live.send("POST", "/documents", &[("Batch-Id", id)], body(lines).as_bytes());
        if status == 200 {
            return Some(body);
        }
        assert!(status == 503 && body.contains("process"), "{status} {body}");
        reasons.push(body);
        None
    });
    (answer, reasons)
}

/// Waits until all processes run again.
fn wait_until_well(live: &Live) {
    wait_for("an answer about keys", || {
        let similar = live.send("POST", "/similar", &[], json!({"text": text_of(1, 1)}).to_string().as_bytes());
        (similar.status == 200).then_some(())
    });
}

#[test]
fn several_processes_give_the_bytes_of_one() {
    for method in ["", METHODS[0], METHODS[1]] {
        let folder = tempfile::tempdir().unwrap();
        let mut numbers = Numbers(61);
        begin(folder.path(), &mut numbers, method);
        let first = folder.path().join("store");
        let stores = [1, 2, 3].map(|processes| {
            let store = folder.path().join(format!("store-{processes}"));
            copy_folder(&first, &store);
            store
        });
        let lives = [&stores[0], &stores[1], &stores[2]].into_iter().zip(["1", "2", "3"]);
        let lives: Vec<Live> =
            lives.map(|(store, processes)| Live::start(store, &["--processes", processes])).collect();
        for (live, count) in lives.iter().zip(0..) {
            assert_eq!(others(live.child.id()).len(), count);
        }
        let same = |method: &str, path: &str, headers: &[(&str, &str)], body: &str| {
            let all = lives.iter().map(|live| live.send(method, path, headers, body.as_bytes()));
            let all: Vec<(u16, String)> = all.map(|response| (response.status, response.body)).collect();
            assert!(all[0].0 == 200 && all.iter().all(|response| *response == all[0]), "{path}: {all:?}");
            all[0].1.clone()
        };
        for batch in 0..10 {
            let lines = body(&numbers.batch(40));
            same("POST", "/documents", &[("Batch-Id", &format!("b{batch}"))], &lines);
            same("POST", "/similar?most=50", &[], &json!({"text": numbers.text() + " more words"}).to_string());
            same("GET", "/changes?most=1000", &[], "");
            if batch % 5 == 4 {
                same("POST", "/commit", &[], "");
                let files = stores.each_ref().map(|store| parquet_files(store));
                assert!(files[0].len() > 5);
                // The tables name the folder of the documents of a commit.
                let clusters = files.map(|files| {
                    let of = files.into_iter().filter(|(name, _)| name.starts_with("clusters/"));
                    of.collect::<BTreeMap<String, Vec<u8>>>()
                });
                assert!(!clusters[0].is_empty() && clusters.iter().all(|files| *files == clusters[0]));
            }
        }
    }
}

#[test]
fn a_commit_of_two_processes_makes_the_tables_of_nigh_add() {
    let folder = tempfile::tempdir().unwrap();
    commits_are_those_of_nigh_add(folder.path(), Numbers(5), BTreeMap::new(), "", &["--processes", "2"]);
}

/// Kills processes while batches come, and compares what is there with a run.
fn kill_others(method: &str, seed: u64) {
    let folder = tempfile::tempdir().unwrap();
    let (mut numbers, store) = (Numbers(seed), folder.path().join("store"));
    let mut there = begin(folder.path(), &mut numbers, method);
    let live = Live::start(&store, &["--processes", "3"]);
    let (first, is_done) = (live.child.id(), Arc::new(AtomicBool::new(false)));
    let answered = Arc::new(AtomicU64::new(0));
    let killer = {
        let (is_done, answered, mut numbers) = (is_done.clone(), answered.clone(), Numbers(seed + 1));
        std::thread::spawn(move || {
            let (mut before, mut times) = (u64::MAX, 1);
            while !is_done.load(Ordering::Relaxed) {
                // On a busy machine a start may take longer than the time between two kills.
                let now = answered.load(Ordering::Relaxed);
                times = if now == before { 2 * times } else { 1 };
                before = now;
                std::thread::sleep(times * Duration::from_millis(200 + numbers.below(400)));
                let others = others(first);
                if let Some(process) = others.get(numbers.below(2) as usize) {
                    signal("-KILL", *process);
                }
            }
        })
    };
    let mut sent = Vec::new();
    // On a fast machine more batches are sent, until processes were started again twice.
    while sent.len() < 40 || metric(&live, "nigh_live_restarts_total") < Some(2) {
        let (number, batch) = (sent.len(), numbers.batch(40));
        assert!(number < 4000, "few processes were killed");
        let (answer, _) = post_until_taken(&live, &format!("b{number}"), &batch);
        assert_eq!(values(&answer).len(), batch.len());
        apply(&mut there, &batch);
        sent.push((batch, answer));
        if number == 19 || number == 39 {
            wait_for("a commit", || (live.send("POST", "/commit", &[], b"").status == 200).then_some(()));
        }
        answered.fetch_add(1, Ordering::Relaxed);
    }
    is_done.store(true, Ordering::Relaxed);
    killer.join().unwrap();
    wait_until_well(&live);
    let found = found_by_method(folder.path(), "run", &there, method);
    assert_eq!(found_live(&live, &there), found);
    assert_eq!(metric(&live, "nigh_live_documents"), Some(there.len() as u64));
    for (number, (batch, answer)) in sent.iter().enumerate() {
        assert_eq!(&post_until_taken(&live, &format!("b{number}"), batch).0, answer, "a batch that is sent again");
    }
    assert_eq!(found_live(&live, &there), found, "none was taken twice");
}

#[test]
fn a_kill_of_another_process_loses_nothing_and_doubles_nothing() {
    kill_others("", 71);
    kill_others(METHODS[0], 73);
}

#[test]
fn a_kill_of_the_first_process_loses_nothing_and_ends_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let (mut numbers, mut there) = (Numbers(79), BTreeMap::new());
    let batches: Vec<Vec<Value>> = (0..60).map(|_| numbers.batch(50)).collect();
    let flags = ["--by", "id", "--processes", "2"];
    let mut seen = Vec::new();
    let time = || Duration::from_millis(50 + numbers.below(100));
    send_with_kills(&store, &flags, &batches, time, |live| seen.extend(others(live.child.id())));
    batches.iter().for_each(|batch| apply(&mut there, batch));
    let live = Live::start(&store, &flags);
    assert_eq!(found_live(&live, &there), found_by_method(folder.path(), "run", &there, ""));
    assert_eq!(metric(&live, "nigh_live_documents"), Some(there.len() as u64));
    let is_there =
        |id: &u32| std::fs::read_to_string(format!("/proc/{id}/cmdline")).is_ok_and(|line| line.contains("live-keys"));
    assert!(!seen.is_empty());
    wait_for("the end of the others", || (!seen.iter().any(is_there)).then_some(()));
}

#[test]
fn a_process_that_is_stopped_is_noticed_and_started_again() {
    let folder = tempfile::tempdir().unwrap();
    let (config, store) = (folder.path().join("config.toml"), folder.path().join("store"));
    std::fs::write(&config, "processes = 2\ntimeout = \"2s\"\n").unwrap();
    let live = Live::start(&store, &["--by", "id", "--config", config.to_str().unwrap()]);
    let line = |id: u64, version: u64| json!({"id": id, "text": text_of(1, version)});
    live.post("1", &[line(1, 0)]);
    // While a request waits, and while nothing is asked.
    for round in 0..2 {
        let [stopped] = others(live.child.id())[..] else { panic!("one other process") };
        signal("-STOP", stopped);
        if round == 0 {
            let (_, reasons) = post_until_taken(&live, "2", &[line(2, 1)]);
            let reason = "process 1 of 0 to 1 does not answer within 2 seconds";
            assert!(reasons[0].contains(reason) && reasons[0].contains("the batch is not taken"), "{reasons:?}");
        }
        let restarts = wait_for("another process", || metric(&live, "nigh_live_restarts_total").filter(|n| *n > round));
        assert_eq!(restarts, round + 1);
        wait_for("its health", || (live.send("GET", "/healthz", &[], b"").status == 200).then_some(()));
        let [now] = others(live.child.id())[..] else { panic!("one other process") };
        assert!(now != stopped && !Path::new(&format!("/proc/{stopped}")).exists());
    }
    assert_eq!(live.post("3", &[line(3, 2)])[0]["size"], 3);
    assert_eq!(live.post("2", &[line(2, 1)])[0]["new"], true);
    assert_eq!(metric(&live, "nigh_live_documents"), Some(3));
}

#[test]
fn a_fault_changes_no_number_and_no_id() {
    let folder = tempfile::tempdir().unwrap();
    // A fault before the first batch: what documents are known by is kept.
    let live = Live::start(&folder.path().join("store"), &["--by", "id", "--processes", "2"]);
    let kill = || {
        others(live.child.id()).into_iter().for_each(|process| signal("-KILL", process));
        wait_for("a look at processes", || (others(live.child.id()).len() == 1).then(|| wait_until_well(&live)));
    };
    kill();
    let mut lines: Vec<Value> = (0..20).map(|id| json!({"id": id, "text": text_of(id / 2, id % 2)})).collect();
    let mut without_text = BTreeMap::new();
    apply(&mut without_text, &["r", "s"].map(|id| json!({"id": id, "text": text_of(30, 0)})));
    found_by_method(folder.path(), "made", &without_text, "");
    lines.extend(ready(&folder.path().join("made")).into_values());
    live.post("1", &lines);
    let names: Vec<String> = (0..20).map(|id| id.to_string()).chain(["r".to_owned(), "s".to_owned()]).collect();
    let ids =
        || names.iter().map(|name| live.get(&format!("/documents/{name}"))["cluster"].clone()).collect::<Vec<_>>();
    for round in 0..3 {
        let changes = || live.send("GET", "/changes?since=0&most=1000", &[], b"").body;
        let (before, of) = (changes(), ids());
        kill();
        assert_eq!((changes(), ids()), (before, of), "round {round}");
        // Documents without texts stay in the journal; the others are in tables from here on.
        let committed = live.send("POST", "/commit", &[], b"");
        assert_eq!(committed.status, 200, "{committed:?}");
        live.post(&format!("more {round}").replace(' ', "-"), &[json!({"id": 20 + round, "text": text_of(round, 0)})]);
    }
}

#[test]
fn a_line_of_standard_input_waits_for_a_process_that_starts_again() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let mut child = nigh(&["live", store.to_str().unwrap(), "--stdin", "--by", "id", "--processes", "2"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
    for size in 1..5 {
        writeln!(input, "{}", json!({"id": size, "text": text_of(1, 0)})).unwrap();
        let answer: Value = serde_json::from_str(&output.next().unwrap().unwrap()).unwrap();
        assert_eq!((&answer["size"], &answer["new"]), (&json!(size), &json!(true)));
        others(child.id()).into_iter().for_each(|process| signal("-KILL", process));
    }
    drop(input);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn hosts_of_a_config_have_parts_of_the_keys() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| -> PathBuf { folder.path().join(name) };
    // An `ssh` that reaches this machine, prints something if it is to, and may fail.
    let ssh = format!(
        "while [ \"$1\" != -- ]; do host=$1; shift; done; shift\n\
         if [ -e '{0}/down' ]; then echo \"$host is down\" >&2; exit 255; fi\n\
         if [ -e '{0}/banner' ]; then echo 'Welcome to the machine'; fi\nexec sh -c \"$*\"\n",
        folder.path().display()
    );
    std::fs::write(path("ssh"), ssh).unwrap();
    // Only ssh knows the names.
    let host = |node: usize| format!("[[hosts]]\nname = \"node-{node}\"\n");
    let binary = env!("CARGO_BIN_EXE_nigh");
    let config = format!("workers = 2\nssh = [\"sh\", {:?}]\nbinary = {binary:?}\n{}{}", path("ssh"), host(1), host(2));
    std::fs::write(path("config.toml"), config).unwrap();
    let flags = ["--by", "id", "--config", path("config.toml").to_str().unwrap()].map(str::to_owned);
    let flags = flags.each_ref().map(String::as_str);
    let mut there = BTreeMap::new();
    let live = Live::start(&path("store"), &flags);
    assert_eq!(others(live.child.id()).len(), 2);
    let mut numbers = Numbers(91);
    for number in 0..6 {
        let batch = numbers.batch(40);
        live.post(&format!("b{number}"), &batch);
        apply(&mut there, &batch);
    }
    assert_eq!(found_live(&live, &there), found_by_method(folder.path(), "run", &there, ""));
    drop(live);
    let start = || run(&[&["live", path("store").to_str().unwrap()], &flags[..]].concat());
    std::fs::write(path("banner"), "").unwrap();
    let ran = start();
    assert!(ran.code == Some(1) && ran.stderr.contains("it begins with \"Welc\""), "{}", ran.stderr);
    std::fs::write(path("down"), "").unwrap();
    let ran = start();
    assert!(ran.code == Some(1) && ran.stderr.contains("cannot start process 1 of 0 to 2 on node-1"), "{}", ran.stderr);
    let ran = run(&[&["live", path("store").to_str().unwrap(), "--processes", "2"], &flags[..]].concat());
    assert!(ran.code == Some(2) && ran.stderr.contains("--processes is for this machine only"), "{}", ran.stderr);
}
