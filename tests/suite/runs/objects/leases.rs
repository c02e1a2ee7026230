//! Runs that are refused, killed, suspended, or whose bucket does not answer.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::cloud::{Cloud, OneWeek, URL, WEEKS, assert_same, jobs, mirror, steps, texts};
use crate::program::{Ran, nigh, ran, tables};

#[test]
fn a_second_run_is_refused_with_the_name_of_the_run_that_writes() {
    let Some(server) = Cloud::start("two runs into one bucket") else { return };
    let folder = tempfile::tempdir().unwrap();
    let (url, jobs) = (URL, jobs(folder.path()));
    let first = &steps(&jobs, url)[0];
    let machines = [folder.path().join("one"), folder.path().join("two")];
    server.run_well(&machines[0], &texts(first));
    let free = server.get("/store/_nigh/lock.json");
    // A run that has been at it for three minutes, somewhere else.
    let before = jiff::Timestamp::now();
    let lock = |renewed: i64| {
        let ago = |seconds: i64| (before - jiff::SignedDuration::from_secs(seconds)).to_string();
        let owner = r#"{"host": "node-7", "process": 4711, "user": "ada", "machine": null}"#;
        let text = format!(
            r#"{{"free": false, "run": "other", "owner": {owner}, "since": "{}", "renewed": "{}"}}"#,
            ago(renewed + 180),
            ago(renewed)
        );
        server.put("/store/_nigh/lock.json", text.as_bytes());
    };
    lock(0);
    let second = &steps(&jobs, url)[1];
    for machine in &machines {
        let refused = server.run(machine, &texts(second));
        assert_eq!(refused.code, Some(1), "{}", refused.stderr);
        for part in ["another run writes to the store s3://bucket/store", "process 4711 of ada on node-7", "for 3 min"]
        {
            assert!(refused.stderr.contains(part), "{part}: {}", refused.stderr);
        }
    }
    server.run_well(&machines[1], &["show", url]);
    // It has not been heard of for ten minutes, or it comes from the future; but while it is
    // watched it is renewed.
    for (stale, renewed) in [(600, 0), (-3600, -3610)] {
        lock(stale);
        let refused = watched(server.nigh(&machines[1], &texts(second)), || lock(renewed));
        assert_eq!(refused.code, Some(1), "{}", refused.stderr);
        assert!(refused.stderr.contains("another run writes to the store s3://bucket/store"), "{}", refused.stderr);
    }
    // Its owner was of this machine, and is no more: nothing is waited for.
    server.put("/store/_nigh/lock.json", String::from_utf8(free).unwrap().replace("true", "false").as_bytes());
    let taken = server.run_well(&machines[1], &texts(second));
    let parts = ["has ended without freeing its lock", "taking over the lock"];
    assert!(parts.iter().all(|part| taken.stderr.contains(part)), "{}", taken.stderr);
    let free: serde_json::Value = serde_json::from_slice(&server.get("/store/_nigh/lock.json")).unwrap();
    assert_eq!(free["free"], true);
    // Who may not read the bucket may not read its mirror.
    for machine in &machines {
        assert_eq!(std::fs::metadata(mirror(machine)).unwrap().permissions().mode() & 0o777, 0o700);
    }
}

/// Runs a command that watches a lock, and does something meanwhile.
fn watched(mut command: Command, act: impl FnOnce()) -> Ran {
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let mut stderr: String = lines.by_ref().take_while(|line| !line.contains("watching its lock for")).collect();
    act();
    stderr.extend(lines);
    Ran { code: child.wait().unwrap().code(), stdout: String::new(), stderr }
}

/// Hands on what is sent to a server; what is sent while it is to be silent is lost.
fn silenced(target: &str) -> (String, Arc<AtomicBool>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (target, silent) = (target.to_owned(), Arc::new(AtomicBool::new(false)));
    let silence = silent.clone();
    let hand_on = move |mut from: TcpStream, mut to: TcpStream, silence: Arc<AtomicBool>| {
        let mut buffer = [0; 1 << 16];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            let lost = silence.load(Ordering::Relaxed);
            while silence.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(10));
            }
            if lost || to.write_all(&buffer[..count]).is_err() {
                break;
            }
        }
        let _ = to.shutdown(std::net::Shutdown::Write);
    };
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let (Ok(client), Ok(server)) = (client, TcpStream::connect(&target)) else { continue };
            let (a, b) = ((client.try_clone().unwrap(), server.try_clone().unwrap()), (server, client));
            for (from, to) in [a, b] {
                let silence = silence.clone();
                std::thread::spawn(move || hand_on(from, to, silence));
            }
        }
    });
    (format!("http://{address}"), silent)
}

#[test]
fn a_signal_ends_a_run_whose_bucket_does_not_answer() {
    let Some(OneWeek { server, folder: _folder, steps, one }) = OneWeek::new("a bucket that is silent") else { return };
    let before = server.get("/store/_nigh/manifest.json");
    let [(_, endpoint), ..] = server.environment();
    let (endpoint, silent) = silenced(endpoint.strip_prefix("http://").unwrap());
    let mut command = server.nigh(&one, &texts(&steps[1]));
    command.env("AWS_ENDPOINT_URL", endpoint).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let (begun, documents) = (Instant::now(), mirror(&one).join("_nigh/work/week=2024-01-15/documents"));
    while !documents.exists() && begun.elapsed() < Duration::from_secs(60) && child.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(1));
    }
    silent.store(true, Ordering::Relaxed);
    // A renewal of the lock may be under way by then.
    std::thread::sleep(Duration::from_secs(11));
    let begun = Instant::now();
    assert!(Command::new("kill").args(["-s", "INT", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(130), "{stderr}");
    // One request to the bucket is waited for that long.
    assert!(begun.elapsed() < Duration::from_secs(25), "{:?}", begun.elapsed());
    let last = stderr.lines().last().unwrap();
    assert!(last.contains("stopped; ") && last.contains("The same command"), "{stderr}");
    silent.store(false, Ordering::Relaxed);
    assert!(
        server.get("/store/_nigh/manifest.json") == before,
        "nothing is published after it was said that it is not"
    );
    let again = server.run_well(&one, &texts(&steps[1]));
    assert!(again.stderr.contains("has ended without freeing its lock"), "{}", again.stderr);
}

#[test]
fn after_a_kill_at_any_moment_a_rerun_here_or_elsewhere_ends_with_the_same_bytes() {
    let Some(server) = Cloud::start("kills while a bucket is written") else { return };
    let folder = tempfile::tempdir().unwrap();
    let (jobs, store) = (jobs(folder.path()), folder.path().join("store"));
    let plain = steps(&jobs, store.to_str().unwrap());
    for step in &plain[..2] {
        assert_eq!(ran(&mut nigh(&texts(step))).code, Some(0));
    }
    let both = tables(&store);
    let undisturbed = folder.path().join("undisturbed");
    let (url, begun) = ("s3://bucket/undisturbed", Instant::now());
    steps(&jobs, url)[..2].iter().for_each(|step| _ = server.run_well(&undisturbed, &texts(step)));
    let whole = begun.elapsed() / 2;
    let mut halves = 0;
    for round in 0..10u32 {
        let url = format!("s3://bucket/round-{round}");
        let steps = steps(&jobs, &url);
        let (here, elsewhere) =
            (folder.path().join(format!("here-{round}")), folder.path().join(format!("there-{round}")));
        server.run_well(&here, &texts(&steps[0]));
        let mut command = server.nigh(&here, &texts(&steps[1]));
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(whole * (round + 5) / 10);
        // SIGKILL: nothing of the program runs any more.
        child.kill().unwrap();
        child.wait().unwrap();
        // There is the first week, or both.
        let shown = server.run_well(&here, &["show", &url, "--json"]);
        let published = shown.stdout.contains(WEEKS[1]);
        halves +=
            usize::from(!published && server.keys(&format!("round-{round}")).iter().any(|key| key.contains(WEEKS[1])));
        let machine = if round % 2 == 0 { &here } else { &elsewhere };
        server.run_well(machine, &texts(&steps[1]));
        let found = server.tables(&url);
        assert_same(&found, &both, &format!("round {round}"));
        // And the other one goes on from there.
        let other = if round % 2 == 0 { &elsewhere } else { &here };
        server.run_well(other, &texts(&steps[1]));
        // What the killed run left unfinished is no part of the store.
        let mut there = tables(&mirror(other));
        there.retain(|name, _| !name.starts_with('_'));
        assert_same(&there, &both, &format!("round {round}, the other machine"));
        let objects = server.keys(&format!("round-{round}")).len();
        assert_eq!(objects, server.keys("undisturbed").len(), "nothing is left that nothing names");
    }
    eprintln!("{halves} of 10 runs were killed between their first object and their commit");
}

/// Begins a command, and does something while it is asleep in the middle of its work.
fn meanwhile(server: &Cloud, machine: &Path, step: &[String], act: impl FnOnce()) -> Ran {
    let work = mirror(machine).join("_nigh/work");
    let mut command = server.nigh(machine, &texts(step));
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let begun = Instant::now();
    while !work.exists() && begun.elapsed() < Duration::from_secs(60) && child.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(1));
    }
    let signal = |name: &str| {
        let id = child.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &id]).status().unwrap().success());
    };
    signal("STOP");
    act();
    signal("CONT");
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    Ran { code: output.status.code(), stdout: String::new(), stderr }
}

#[test]
fn a_run_that_was_suspended_while_another_took_the_lease_commits_nothing() {
    let Some(OneWeek { server, folder: _folder, steps, one }) = OneWeek::new("a race for a bucket's manifest") else {
        return;
    };
    // The other one has the lock.
    let before = server.get("/store/_nigh/manifest.json");
    let free = server.get("/store/_nigh/lock.json");
    let theirs =
        String::from_utf8(free.clone()).unwrap().replace("\"process\": ", "\"process\": 9").replace("true", "false");
    let theirs = theirs.replace("\"run\": \"", "\"run\": \"other-");
    let slept = meanwhile(&server, &one, &steps[1], || server.put("/store/_nigh/lock.json", theirs.as_bytes()));
    assert_eq!(slept.code, Some(1), "{}", slept.stderr);
    assert!(
        slept.stderr.contains("this run no longer has the lock s3://bucket/store/_nigh/lock.json"),
        "{}",
        slept.stderr
    );
    assert!(
        server.get("/store/_nigh/lock.json") == theirs.as_bytes() && server.get("/store/_nigh/manifest.json") == before
    );
    // The other one has published.
    server.put("/store/_nigh/lock.json", &free);
    let mut published = Vec::new();
    let slept = meanwhile(&server, &one, &steps[6], || {
        // When the run began, it published the week that it had made before.
        published = [&server.get("/store/_nigh/manifest.json")[..], b"\n"].concat();
        server.put("/store/_nigh/manifest.json", &published);
    });
    assert_eq!(slept.code, Some(1), "{}", slept.stderr);
    assert!(slept.stderr.contains("was published by another run meanwhile"), "{}", slept.stderr);
    assert!(server.get("/store/_nigh/manifest.json") == published);
    // The next run begins from there.
    let again = server.run_well(&one, &texts(&steps[1]));
    assert!(again.stderr.contains("another run has published"), "{}", again.stderr);
    assert!(server.tables(URL).keys().any(|name| name.contains(WEEKS[1])));
}
