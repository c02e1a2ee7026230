//! A store in a bucket, on a real server.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::ops::Deref;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::program::{Ran, data, nigh, ran, run_well, tables};
use crate::seaweed::BucketServer;

const WEEKS: [&str; 2] = ["2024-01-08", "2024-01-15"];

/// Machines that work on a bucket of one server.
pub struct Cloud(BucketServer);

impl Deref for Cloud {
    type Target = BucketServer;

    fn deref(&self) -> &BucketServer {
        &self.0
    }
}

impl Cloud {
    pub fn start(wanted_by: &str) -> Option<Cloud> {
        BucketServer::start(wanted_by).map(Cloud)
    }

    /// A command of the program on a machine that works in a folder of its own.
    fn nigh(&self, machine: &Path, arguments: &[&str]) -> Command {
        let mut command = nigh(arguments);
        command.envs(self.environment()).env("XDG_CACHE_HOME", machine);
        command
    }

    fn run(&self, machine: &Path, arguments: &[&str]) -> Ran {
        ran(&mut self.nigh(machine, arguments))
    }

    pub fn run_well(&self, machine: &Path, arguments: &[&str]) -> Ran {
        let ran = self.run(machine, arguments);
        assert_eq!(ran.code, Some(0), "{arguments:?}\n{}\n{}", ran.stdout, ran.stderr);
        ran
    }

    /// The tables of a store as a machine sees it that never saw it before.
    fn tables(&self, url: &str) -> BTreeMap<String, Vec<u8>> {
        let machine = tempfile::tempdir().unwrap();
        self.run_well(machine.path(), &["vacuum", "--store", url, "--keep", "9"]);
        tables(&mirror(machine.path()))
    }
}

/// The mirror of the only store that a machine knows.
fn mirror(machine: &Path) -> PathBuf {
    let mut folders = std::fs::read_dir(machine.join("nigh/stores")).unwrap();
    folders.next().unwrap().unwrap().path()
}

/// Jobs of few shards, so that a week is some dozens of objects.
pub fn jobs(folder: &Path) -> [PathBuf; 8] {
    let texts = [
        ("first.toml", "[cluster]\nwave-bytes = \"4MiB\"\n[cluster.method]\nshards = 2\n"),
        ("later.toml", "[weekly]\nwave-bytes = \"4MiB\"\n"),
        ("evolution.toml", "[evolution]\n"),
        ("mirrors.toml", "[mirrors]\n"),
        ("overlap.toml", "[overlap]\n"),
        ("collections.toml", "[collections]\nleast-size = 2\npurity = 0.6\nshare = 0.4\n"),
        ("mirrors-by-url.toml", "[mirrors-by-url]\nleast-urls = 5\n"),
        ("paragraphs.toml", "[paragraphs]\n"),
    ];
    texts.map(|(name, text)| {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        path
    })
}

/// The commands that make a store of two weeks, and take things out of it again.
pub fn steps(jobs: &[PathBuf; 8], store: &str) -> Vec<Vec<String>> {
    let week = |job: usize, week: usize| {
        let input = data(&format!("week-{}", WEEKS[week])).display().to_string();
        let job = jobs[job].display().to_string();
        ["run", &job, "--store", store, "--week", WEEKS[week], "--input", &input].map(str::to_owned).to_vec()
    };
    let study = |job: usize| ["run", jobs[job].to_str().unwrap(), "--store", store].map(str::to_owned).to_vec();
    let delete = ["delete", "--store", store, "--host", "arm64.guide.debian.example"].map(str::to_owned).to_vec();
    let vacuum = ["vacuum", "--store", store, "--keep", "1"].map(str::to_owned).to_vec();
    vec![week(0, 0), week(1, 1), study(2), study(3), study(4), study(5), study(6), study(7), delete, vacuum]
}

/// The store of most tests.
const URL: &str = "s3://bucket/store";

/// A store of one week in a bucket: the commands that made it and go on with it, and the machine
/// that made it.
struct OneWeek {
    server: Cloud,
    folder: tempfile::TempDir,
    steps: Vec<Vec<String>>,
    one: PathBuf,
}

impl OneWeek {
    fn new(wanted_by: &str) -> Option<OneWeek> {
        let server = Cloud::start(wanted_by)?;
        let folder = tempfile::tempdir().unwrap();
        let steps = steps(&jobs(folder.path()), URL);
        let one = folder.path().join("one");
        server.run_well(&one, &texts(&steps[0]));
        Some(OneWeek { server, folder, steps, one })
    }
}

pub fn texts(arguments: &[String]) -> Vec<&str> {
    arguments.iter().map(String::as_str).collect()
}

fn assert_same(a: &BTreeMap<String, Vec<u8>>, b: &BTreeMap<String, Vec<u8>>, what: &str) {
    assert!(b.len() > 10, "{what}: {} tables are too few to compare", b.len());
    let names = |tables: &BTreeMap<String, Vec<u8>>| tables.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(a), names(b), "{what}");
    for (name, bytes) in a {
        assert!(b[name] == *bytes, "{what}: {name} differs");
    }
}

/// The URLs of all pages of the last week, as a list for `roll-up`.
fn texts_of_pages(store: &Path) -> String {
    let urls = crate::program::texts(&crate::program::week(store, WEEKS[1]), "documents", "url");
    urls.iter().map(|url| format!("{url}\n")).collect()
}

/// What a command says, without the seconds that the steps of the overlap job took.
fn without_seconds(text: &str) -> String {
    let Some(steps) = text.find("\nsteps of ") else { return text.to_owned() };
    let is_second = |word: &&str| word.rsplit_once('.').is_some_and(|(_, digits)| digits.len() == 2);
    let kept = |line: &str| line.split_whitespace().filter(|word| !is_second(word)).collect::<Vec<&str>>().join(" ");
    let lines: Vec<String> = text[steps..].lines().map(kept).collect();
    text[..steps].to_owned() + &lines.join("\n")
}

/// The same of a report.
fn leave_out_seconds(value: &mut Value) {
    match value {
        Value::Array(values) => values.iter_mut().for_each(leave_out_seconds),
        Value::Object(fields) => {
            if fields.contains_key("step") {
                assert!(fields.remove("seconds").is_some());
            }
            fields.values_mut().for_each(leave_out_seconds);
        }
        _ => {}
    }
}

#[test]
fn a_store_in_a_bucket_has_the_tables_of_one_in_a_folder() {
    let Some(server) = Cloud::start("a store in a bucket") else { return };
    let folder = tempfile::tempdir().unwrap();
    let (jobs, store) = (jobs(folder.path()), folder.path().join("store"));
    let url = "s3://bucket/some/where";
    // Every command is given on another machine than the one before.
    let machines = [folder.path().join("one"), folder.path().join("two")];
    let both = steps(&jobs, store.to_str().unwrap()).into_iter().zip(steps(&jobs, url));
    for (at, (plain, remote)) in both.enumerate() {
        let said = ran(&mut nigh(&texts(&plain)));
        assert_eq!(said.code, Some(0), "{}", said.stderr);
        let in_bucket = server.run_well(&machines[at % 2], &texts(&remote));
        let there = in_bucket.stdout.replace(url, store.to_str().unwrap());
        // Except for the bytes of what a deletion or a vacuum removed: the job is kept with the
        // week, and names the store.
        let without_bytes = |text: &str| {
            text.split(" KiB").next().unwrap_or_default().trim_end_matches(|c: char| !c.is_alphabetic()).to_owned()
        };
        match at {
            8 | 9 => assert_eq!(without_bytes(&there), without_bytes(&said.stdout)),
            _ => assert_eq!(without_seconds(&there), without_seconds(&said.stdout), "a command says the same"),
        }
        assert_same(&server.tables(url), &tables(&store), &format!("after {plain:?}"));
        let shown = server.run_well(&folder.path().join("nowhere"), &["show", url]);
        assert_eq!(
            shown.stdout.replace(url, store.to_str().unwrap()),
            ran(&mut nigh(&["show", store.to_str().unwrap()])).stdout
        );
        if at == 1 {
            let changes =
                |store: &str| server.run_well(&folder.path().join("nowhere"), &["show", store, "--changes"]).stdout;
            assert_eq!(changes(url), changes(store.to_str().unwrap()));
        }
        if at == 5 {
            let nowhere = folder.path().join("nowhere");
            let list = folder.path().join("list");
            std::fs::write(&list, texts_of_pages(&store)).unwrap();
            for (flags, store_at) in [(vec!["show"], 1), (vec!["roll-up", "--store"], 2)] {
                let more: &[&str] = if store_at == 1 { &["--avoid"] } else { &[list.to_str().unwrap()] };
                let said = |store: &str| {
                    [&flags[..], &[store], more].concat().iter().map(|part| part.to_string()).collect::<Vec<_>>()
                };
                let there = server.run_well(&nowhere, &texts(&said(url)));
                let here = ran(&mut nigh(&texts(&said(store.to_str().unwrap()))));
                assert!(here.code == Some(0) && !here.stdout.is_empty());
                assert_eq!(there.stdout, here.stdout, "{flags:?}");
            }
            let local = store.to_str().unwrap();
            let report = |store: &str| {
                let text = server.run_well(&nowhere, &["report", store, "--json"]).stdout.replace(url, local);
                let mut report = serde_json::from_str(&text).unwrap();
                leave_out_seconds(&mut report);
                report
            };
            assert_eq!(report(url), report(local), "a report of what is in the bucket");
        }
        // What is in the bucket is just that: each file is an object, beside one list for each
        // folder, the manifest, the lock and the views.
        let is_published = |path: &Path| {
            let own = path.strip_prefix(store.join("_nigh"));
            own.map_or(true, |own| {
                ["week=", "before=", "evolution", "mirrors", "overlap", "collections", "paragraphs"]
                    .iter()
                    .any(|name| own.to_string_lossy().starts_with(name))
            })
        };
        let entries = walkdir::WalkDir::new(&store).min_depth(2).into_iter().map(|entry| entry.unwrap());
        let files: Vec<PathBuf> = entries
            .filter(|entry| entry.file_type().is_file() && is_published(entry.path()))
            .map(|entry| entry.path().strip_prefix(&store).unwrap().to_owned())
            .collect();
        let folders: BTreeSet<_> = files.iter().map(|path| path.iter().next().unwrap()).collect();
        assert_eq!(server.keys("some/where").len(), files.len() + folders.len() + 3, "{:?}", server.keys("some/where"));
    }
    assert!(!folder.path().join("nowhere").exists(), "what is only read needs no mirror");
    let again =
        server.run_well(&machines[1], &["delete", "--store", url, "--host", "arm64.guide.debian.example", "--dry-run"]);
    assert!(again.stdout.contains("has no such URL"), "{}", again.stdout);
    let none = server.run(&machines[0], &["vacuum", "--store", "s3://bucket/none", "--keep", "1"]);
    assert!(none.code == Some(1) && none.stderr.contains("s3://bucket/none is not a nigh store"), "{}", none.stderr);
    // A store may begin with the tables of a job that needs no week.
    let (lists, job) = (folder.path().join("list"), folder.path().join("lists.toml"));
    let text = format!("[mirrors-by-url]\nleast-urls = 5\nlists = [{:?}]\n", lists.to_str().unwrap());
    std::fs::write(&job, text).unwrap();
    let (begun, job) = (folder.path().join("begun"), job.to_str().unwrap());
    let here = run_well(&["run", job, "--store", begun.to_str().unwrap()]);
    let there = server.run_well(&machines[0], &["run", job, "--store", "s3://bucket/lists"]);
    let of_url = there.stdout.replace("s3://bucket/lists", begun.to_str().unwrap());
    assert!(of_url == here.stdout && here.stdout.contains("of lists"), "{}", there.stdout);
    let shown =
        server.run_well(&folder.path().join("nowhere"), &["show", "s3://bucket/lists", "--job", "mirrors-by-url"]);
    assert_eq!(shown.stdout, there.stdout);
}

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

#[test]
fn a_mirror_does_not_use_what_another_machine_has_made_wrong() {
    let Some(server) = Cloud::start("two mirrors by turns") else { return };
    let folder = tempfile::tempdir().unwrap();
    let later = folder.path().join("delta.toml");
    std::fs::write(&later, "[weekly]\nmode = \"delta\"\n").unwrap();
    let [first, ..] = jobs(folder.path());
    let [one, two] = ["one", "two"].map(|name| folder.path().join(name));
    let dates = [WEEKS[0], WEEKS[1], "2024-01-22"];
    let store = folder.path().join("store").display().to_string();
    let run = |store: &str, week: usize, more: &[&str]| {
        let input = data(&format!("week-{}", dates[week])).display().to_string();
        let job = if week == 0 { &first } else { &later };
        let arguments = ["run", job.to_str().unwrap(), "--store", store, "--week", dates[week], "--input", &input];
        arguments.iter().chain(more).map(|text| (*text).to_owned()).collect::<Vec<String>>()
    };
    let delete =
        |store: &str| ["delete", "--store", store, "--host", "arm64.guide.debian.example"].map(str::to_owned).to_vec();
    // The first machine keeps an inverted index of the second week. The second machine deletes
    // pages of that week, and makes it again from the same input, so that the same URLs get other
    // ids. The index must not be used for the third week.
    let history = |store: &str| {
        vec![run(store, 0, &[]), run(store, 1, &[]), delete(store), run(store, 1, &["--replace"]), run(store, 2, &[])]
    };
    let machines = [&one, &one, &two, &two, &one];
    for (machine, (remote, local)) in machines.into_iter().zip(history(URL).into_iter().zip(history(&store))) {
        server.run_well(machine, &texts(&remote));
        let ran = ran(&mut nigh(&texts(&local)));
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    }
    assert_same(&server.tables(URL), &tables(Path::new(&store)), "after both machines");
}

#[test]
fn a_damaged_object_is_named_and_restored_by_a_run_that_has_a_good_copy() {
    let Some(OneWeek { server, folder, steps, one }) = OneWeek::new("damaged objects") else { return };
    let keys = server.keys("store");
    let key = keys.iter().find(|key| key.starts_with("clusters/week=2024-01-08/nigh-")).unwrap();
    let path = format!("/store/{}", key.replace('=', "%3D"));
    let whole = server.get(&path);
    let mut other = whole.clone();
    other[100] ^= 1;
    for (damaged, said) in
        [(&whole[..whole.len() / 2], format!("its list has {}", whole.len())), (&other[..], "with digest".into())]
    {
        server.put(&path, damaged);
        let failed = server.run(&folder.path().join("two"), &texts(&steps[1]));
        assert_eq!(failed.code, Some(1), "{}", failed.stderr);
        assert!(
            failed.stderr.contains(&format!("s3://bucket/store/{key}")) && failed.stderr.contains(&said),
            "{}",
            failed.stderr
        );
        assert!(failed.stderr.contains("run `nigh vacuum`"), "{}", failed.stderr);
    }
    // By one that looks, or that has something to publish.
    for step in [vec!["vacuum", "--store", URL, "--keep", "9"], texts(&steps[1])] {
        server.put(&path, &whole[..10]);
        server.run_well(&one, &step);
        assert!(server.get(&path) == whole);
    }
    server.run_well(&folder.path().join("two"), &texts(&steps[1]));
    // A list, and the manifest.
    let list = server.keys("store").into_iter().find(|key| key.contains("_nigh/files/clusters-")).unwrap();
    server.put(&format!("/store/{}", list.replace('=', "%3D")), b"{}");
    let failed = server.run(&folder.path().join("three"), &["vacuum", "--store", URL, "--keep", "1"]);
    assert!(
        failed.code == Some(1) && failed.stderr.contains(&list) && failed.stderr.contains("is damaged"),
        "{}",
        failed.stderr
    );
    server.put("/store/_nigh/manifest.json", b"{\"format\": 3}");
    let failed = server.run(&one, &["show", URL]);
    assert!(failed.stderr.contains("a store does not work after a copy into a bucket"), "{}", failed.stderr);
}

/// The files below a folder, by name, without what begins with a point.
fn files_below(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let files =
        walkdir::WalkDir::new(folder).into_iter().map(Result::unwrap).filter(|entry| entry.file_type().is_file());
    let named = files.map(|entry| {
        let name = entry.path().strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
        (name, std::fs::read(entry.path()).unwrap())
    });
    named.filter(|(name, _)| !name.starts_with('.')).collect()
}

/// Writes records as lines and as Parquet, of which some are copies; a Parquet file has more than a
/// part of an upload.
fn write_shards(folder: &Path) {
    use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
    let text = |n: usize| (0..70).map(|word| format!("w{}", n % 6 * 7919 + word * 31)).collect::<Vec<_>>().join(" ");
    std::fs::create_dir_all(folder.join("deep")).unwrap();
    let line = |n: usize| serde_json::json!({"id": n, "text": text(n)}).to_string() + "\n";
    std::fs::write(folder.join("a.jsonl"), (0..20).map(line).collect::<String>()).unwrap();
    for (name, ids) in [("deep/b.parquet", 20..30), ("c.parquet", 30..36)] {
        let noise = |n: i64| {
            let next = |state: &mut u64| {
                *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                Some((*state >> 40).to_string())
            };
            std::iter::repeat_n(n as u64 + 1, 1)
                .flat_map(|mut state| (0..160_000).filter_map(move |_| next(&mut state)))
                .collect::<String>()
        };
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("id", Arc::new(Int64Array::from_iter_values(ids.clone()))),
            (
                "text",
                Arc::new(StringArray::from_iter_values(ids.clone().map(|n| text(n as usize + 3 * (n == 31) as usize)))),
            ),
            ("noise", Arc::new(StringArray::from_iter_values(ids.map(noise)))),
        ];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let file = std::fs::File::create(folder.join(name)).unwrap();
        let mut writer = parquet::arrow::ArrowWriter::try_new(file, batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
    }
}

#[test]
fn an_export_to_a_bucket_has_the_files_of_one_to_a_folder() {
    let Some(server) = Cloud::start("an export to a bucket") else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (shards, store, machine) = (folder.path().join("shards"), path("store"), folder.path().join("machine"));
    write_shards(&shards);
    let flags = ["-q", "--week", WEEKS[0], "--id", "id", "--similarity", "0.8", "--input", shards.to_str().unwrap()];
    run_well(&[&["run", "--store", &store][..], &flags].concat());
    // A file of Parquet has 10 MB and more: an upload in parts.
    for (number, flags) in [
        &["--card", "--keep", "newest", "--most", "2"][..],
        &["--format", "jsonl", "--rename", "text=body"],
        &["--shard-bytes", "9MB", "--format", "jsonl", "--card", "--most", "9"],
    ]
    .into_iter()
    .enumerate()
    {
        let (out, url) = (path(&format!("out-{number}")), format!("s3://bucket/out/{number}"));
        run_well(&[&["export", &store, "--out", &out][..], flags].concat());
        let wanted = files_below(Path::new(&out));
        let arguments = [&["export", &store, "--out", &url, "--workers", "3"][..], flags].concat();
        let of_bucket = |what: &str| {
            let keys = server.keys(&format!("out/{number}"));
            let keys: Vec<&String> = keys.iter().filter(|key| !key.starts_with('.')).collect();
            assert_eq!(keys, wanted.keys().collect::<Vec<_>>(), "{what}");
            for (key, bytes) in &wanted {
                assert!(server.get(&format!("/out/{number}/{key}")) == *bytes, "{what}: {key}");
            }
        };
        let written = server.run_well(&machine, &arguments);
        assert!(written.stdout.contains(&url), "{}", written.stdout);
        of_bucket("first");
        // Again: what is whole stays; what is missing or another is written, by any machine.
        let list = server.get(&format!("/out/{number}/.nigh-export/list.jsonl"));
        let changed = wanted.keys().next_back().unwrap();
        server.put(&format!("/out/{number}/{changed}"), b"x");
        server.run_well(&folder.path().join("another-machine"), &arguments);
        of_bucket("again");
        assert!(server.get(&format!("/out/{number}/.nigh-export/list.jsonl")) == list);
        // Nothing is left on a machine.
        let left = std::fs::read_dir(machine.join("nigh/exports")).unwrap().count();
        assert_eq!(left, 0);
        let refused = server.run(&machine, &["export", &store, "--out", &url, "--what", "removed"]);
        assert!(
            refused.code == Some(2) && refused.stderr.contains("has files of another export"),
            "{}",
            refused.stderr
        );
    }
    let refused = server.run(&machine, &["export", &store, "--out", "s3://bucket/x", "--cdxj", "x.cdxj"]);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    for (flag, url) in
        [("--out", "hf://datasets/a/b"), ("--out", "s3://me:secret@bucket/x"), ("--list", "s3://bucket/list")]
    {
        let refused = server.run(&machine, &["export", &store, flag, url]);
        assert!(refused.code == Some(2) && !refused.stderr.contains("secret@"), "{url}: {}", refused.stderr);
    }
}

#[test]
fn a_dataset_in_a_bucket_is_exported_as_one_in_a_folder() {
    let Some(server) = Cloud::start("a dataset in a bucket") else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (shards, machine) = (folder.path().join("shards"), folder.path().join("machine"));
    write_shards(&shards);
    for (name, bytes) in files_below(&shards) {
        server.put(&format!("/shards/{name}"), &bytes);
    }
    let run = |store: &str, input: &str| {
        let flags = ["-q", "--week", WEEKS[0], "--id", "id", "--similarity", "0.8", "--input", input];
        server.run_well(&machine, &[&["run", "--store", store][..], &flags].concat());
    };
    let (here, there) = (path("here"), path("there"));
    run(&here, shards.to_str().unwrap());
    run(&there, "s3://bucket/shards/");
    for (number, flags) in [&[][..], &["--shards", "3", "--format", "jsonl"]].into_iter().enumerate() {
        let [out, of_bucket] = ["of-here", "of-there"].map(|name| path(&format!("{name}-{number}")));
        server.run_well(&machine, &[&["export", &here, "--out", &out][..], flags].concat());
        server.run_well(&machine, &[&["export", &there, "--out", &of_bucket][..], flags].concat());
        let [wanted, found] = [&out, &of_bucket].map(|out| files_below(Path::new(out)));
        assert_eq!(found.keys().collect::<Vec<_>>(), wanted.keys().collect::<Vec<_>>());
        assert!(found == wanted);
    }
}
