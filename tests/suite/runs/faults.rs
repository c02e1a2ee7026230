//! Processes that are killed or freeze: the run restarts them by itself, and ends with the same
//! bytes.
//!
//! `scripts/faults.sh` does the same many times over, at random moments, and with more kinds of
//! faults.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::{OFlags, fcntl_setfl};
use serde_json::json;

use crate::program::{Made, Ran, nigh, run_well, tables};
use crate::runs::survival::waves;

/// A run of several processes that the test disturbs.
struct Disturbed {
    child: Child,
    store: PathBuf,
}

impl Disturbed {
    fn begin(folder: &Path, name: &str, processes: usize, config: &str) -> Disturbed {
        let (store, path) = (folder.join(name), folder.join(format!("{name}.toml")));
        std::fs::write(&path, format!("workers = 1\nprocesses = {processes}\n{config}")).unwrap();
        let mut command = nigh(&["run", waves(folder).to_str().unwrap(), "--json", "--config", path.to_str().unwrap()]);
        command.args(["--store", store.to_str().unwrap()]).stdout(Stdio::piped()).stderr(Stdio::piped());
        Disturbed { child: command.spawn().unwrap(), store }
    }

    /// Its processes that run now.
    fn processes(&self) -> Vec<u32> {
        let parent = |id: &u32| {
            let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
            stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse::<u32>().ok()
        };
        let all =
            std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        all.filter(|id| parent(id) == Some(self.child.id())).collect()
    }

    /// Waits until it has so many processes, none of which are `former`, and the store has what a
    /// worker wrote.
    fn working(&mut self, processes: usize, former: &[u32]) -> Vec<u32> {
        let begun = Instant::now();
        loop {
            let now = self.processes();
            let written = self.store.join("_nigh/work/week=2024-01-08/documents").exists();
            if written && now.len() == processes && !now.iter().any(|id| former.contains(id)) {
                return now;
            }
            assert!(self.child.try_wait().unwrap().is_none(), "it ended before it was disturbed");
            assert!(begun.elapsed() < Duration::from_secs(120));
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn end(self) -> Ran {
        let output = self.child.wait_with_output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Ran { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}

fn signal(name: &str, process: u32) {
    // One that ended meanwhile needs no signal.
    let _ = Command::new("kill").args(["-s", name, &process.to_string()]).stderr(Stdio::null()).status().unwrap();
}

#[test]
fn a_run_whose_processes_are_killed_ends_by_itself_with_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let undisturbed = Made::with_job(&waves(folder.path()), &[]);
    let begun = Instant::now();
    let run = Disturbed::begin(folder.path(), "undisturbed", 3, "");
    assert_eq!(run.end().code, Some(0));
    let whole = begun.elapsed();
    let mut restarts = 0;
    for (round, processes) in (0..8).zip([2, 3].into_iter().cycle()) {
        let mut run = Disturbed::begin(folder.path(), &format!("store-{round}"), processes, "");
        let victim = match round {
            // Surely before the end.
            0 | 1 => run.working(processes, &[])[round],
            _ => {
                std::thread::sleep(whole * round as u32 / 8);
                let all = run.processes();
                if all.is_empty() { 0 } else { all[round % all.len()] }
            }
        };
        if victim > 0 {
            signal("KILL", victim);
        }
        let store = run.store.clone();
        let ran = run.end();
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let was_done = ran.stderr.contains("all of its work was committed by then");
        let restarted = ran.stderr.contains("was killed by SIGKILL") && !was_done;
        assert_eq!(restarted, ran.stderr.contains("(restart 1 of 3 in 10min)"), "{}", ran.stderr);
        assert_eq!(restarted, ran.stderr.contains("done; the processes were restarted once"), "{}", ran.stderr);
        assert!(restarted || round > 1, "round {round}: {}", ran.stderr);
        let result: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(result["restarts"], u64::from(restarted), "{}", ran.stdout);
        let events = ran.stderr.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
        let levels: Vec<_> =
            events.filter(|event| event["event"] == "restart").map(|event| event["level"].clone()).collect();
        assert_eq!(levels, vec!["warning"; usize::from(restarted)]);
        restarts += usize::from(restarted);
        assert!(tables(&store.join("week=2024-01-08")) == undisturbed.tables(), "round {round}");
        assert!(!store.join("_nigh/work").exists());
    }
    eprintln!("{restarts} of 8 runs were restarted");
}

#[test]
fn a_frozen_process_is_detected_reported_and_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let undisturbed = Made::with_job(&waves(folder.path()), &[]);
    for (round, processes) in [(0, 2), (1, 3)] {
        let mut run = Disturbed::begin(folder.path(), &format!("store-{round}"), processes, "timeout = \"3s\"\n");
        let frozen = run.working(processes, &[])[round];
        signal("STOP", frozen);
        let store = run.store.clone();
        let ran = run.end();
        let gone = !Path::new(&format!("/proc/{frozen}")).exists();
        if !gone {
            signal("KILL", frozen);
        }
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(ran.stderr.contains("has sent nothing for 3 s: it is frozen"), "{}", ran.stderr);
        assert!(gone, "the frozen process is still there");
        // Each event names its job, process and epoch.
        let events = ran.stderr.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        let restart = events.into_iter().find(|event| event["event"] == "restart").unwrap();
        assert_eq!((&restart["job"], &restart["epoch"]), (&"cluster 2024-01-08".into(), &1.into()), "{restart}");
        assert!(restart["process"].as_u64().is_some_and(|process| process < processes as u64), "{restart}");
        assert!(tables(&store.join("week=2024-01-08")) == undisturbed.tables());
    }
}

#[test]
fn after_the_last_restart_the_cause_is_reported_and_a_rerun_finishes_the_week() {
    let folder = tempfile::tempdir().unwrap();
    for (restarts, wanted) in [(0, "process "), (1, "it was restarted once already")] {
        let config = format!("restarts = {restarts}\n");
        let mut run = Disturbed::begin(folder.path(), &format!("store-{restarts}"), 3, &config);
        let mut former = Vec::new();
        for _ in 0..=restarts {
            former.extend(run.working(3, &former));
            signal("KILL", former[former.len() - 2]);
        }
        let store = run.store.clone();
        let ran = run.end();
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        let last = ran.stderr.lines().last().unwrap();
        assert!(last.contains(wanted) && last.contains("was killed by SIGKILL"), "{last}");
        assert!(last.contains("the same command continues from what is committed"), "{last}");
        assert!(!former.iter().any(|id| Path::new(&format!("/proc/{id}")).exists()), "a process is left");
        let job = waves(folder.path());
        run_well(&["run", job.to_str().unwrap(), "-q", "--store", store.to_str().unwrap()]);
        assert!(tables(&store.join("week=2024-01-08")) == Made::with_job(&job, &[]).tables());
    }
}

#[test]
fn an_error_that_would_only_repeat_is_not_retried() {
    let folder = tempfile::tempdir().unwrap();
    let job = waves(folder.path());
    let strict = std::fs::read_to_string(&job).unwrap().replace("share = 1.0", "share = 0.0");
    std::fs::write(&job, strict).unwrap();
    let store = folder.path().join("store");
    let ran = crate::program::run(&[
        "run",
        job.to_str().unwrap(),
        "--workers",
        "1",
        "--processes",
        "2",
        "--store",
        store.to_str().unwrap(),
    ]);
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    assert!(!ran.stderr.contains("restart"), "{}", ran.stderr);
}

/// As while its supervisor is stopped (Ctrl-Z): the pipe of its reports is full.
#[test]
fn a_second_signal_ends_a_process_whose_reports_are_not_read() {
    let (reader, mut writer) = std::io::pipe().unwrap();
    fcntl_setfl(&writer, OFlags::NONBLOCK).unwrap();
    while writer.write(&[b'\n'; 4096]).is_ok_and(|bytes| bytes > 0) {}
    fcntl_setfl(&writer, OFlags::empty()).unwrap();
    let mut child = nigh(&["worker"]).stdin(Stdio::piped()).stdout(writer).spawn().unwrap();
    let (secret, folder) = ([0u8; 16], std::env::temp_dir());
    let identity = json!({"secrets": {"hello": secret, "welcome": secret}});
    let start = json!({
        "me": 0, "folder": folder, "listen": "127.0.0.1:0", "last_port": 0, "identity": identity, "plan": {}
    });
    let mut stdin = child.stdin.take().unwrap();
    writeln!(stdin, "{start}").unwrap();
    let begun = Instant::now();
    let mut wait = |reached: &mut dyn FnMut(&mut Child) -> bool| {
        while !reached(&mut child) {
            if begun.elapsed() > Duration::from_secs(60) {
                child.kill().unwrap();
                panic!("the process does not end");
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    // Until then the first signal would end it.
    wait(&mut |child| {
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
        u64::from_str_radix(caught.trim(), 16).unwrap() & 1 << 14 != 0
    });
    wait(&mut |child| {
        signal("TERM", child.id());
        child.try_wait().unwrap().is_some()
    });
    assert_eq!(child.wait().unwrap().code(), Some(143));
    drop((reader, stdin));
}
