//! Runs whose hosts come and go: they go on with those that are there, and the tables have the same
//! bytes.
//!
//! The hosts are processes of this machine. In place of `ssh` is a script that runs the command
//! here, or fails while a file says that the host is down. `NIGH_SCHEDULES` sets how many random
//! schedules are tried, and `NIGH_SEED` the first of them (`scripts/elastic.sh`).

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::program::{Made, nigh, run, run_well, tables};

/// No run of these tests takes nearly so long.
const PATIENCE: Duration = Duration::from_secs(240);
/// The hosts.
const COUNT: usize = 3;
/// The files of the crawl, each of which is a wave.
const FILES: usize = 60;
/// The pages of each file.
const PAGES: usize = 400;

/// Hosts, a job and keys.
struct ElasticHosts {
    folder: tempfile::TempDir,
}

/// A run that is disturbed.
struct DisturbedRun {
    child: Child,
    log: Arc<Mutex<String>>,
    reader: Option<JoinHandle<()>>,
    store: PathBuf,
}

impl Drop for DisturbedRun {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Writes a crawl of so many files, each of so many pages, and `job.toml`, by which each file is a
/// wave.
pub fn many_waves(folder: &Path, files: usize, pages: usize) {
    // Pages of few words from few, so that there are clusters over all files; and URLs that come
    // twice.
    let mut seed = 11u64;
    let mut random = |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below
    };
    std::fs::create_dir(folder.join("crawl")).unwrap();
    for file in 0..files {
        let mut text = String::new();
        for page in 0..pages {
            let (number, topic) = (file * pages + page - random(page + 1), random(500));
            let words: Vec<String> = (0..30 + random(5)).map(|word| format!("t{topic}w{word}")).collect();
            text.push_str(&format!(
                "{{\"url\":\"http://host{}.example/{number}\",\"text\":\"{}\"}}\n",
                number % 40,
                words.join(" ")
            ));
        }
        std::fs::write(folder.join(format!("crawl/{file:03}.jsonl")), text).unwrap();
    }
    let job = format!(
        "[cluster]\nweek = \"2024-01-08\"\nwave-bytes = 1\ninput = [{:?}]\n[cluster.method]\nshards = 8\n",
        folder.join("crawl")
    );
    std::fs::write(folder.join("job.toml"), job).unwrap();
}

impl ElasticHosts {
    fn new() -> ElasticHosts {
        let hosts = ElasticHosts { folder: tempfile::tempdir().unwrap() };
        run_well(&["pool", "keys", "--processes", "3", "--out", hosts.path("keys").to_str().unwrap()]);
        let ssh = format!(
            "while [ \"$1\" != -- ]; do host=$1; shift; done; shift\n\
             if [ -e '{}/down-'\"$host\" ]; then echo \"$host is down\" >&2; exit 255; fi\n\
             exec sh -c \"$*\"\n",
            hosts.folder.path().display()
        );
        std::fs::write(hosts.path("ssh"), ssh).unwrap();
        many_waves(hosts.folder.path(), FILES, PAGES);
        hosts
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// What one process makes of the job.
    fn undisturbed(&self) -> Made {
        Made::with_job(&self.path("job.toml"), &[])
    }

    fn set_down(&self, node: usize, is_down: bool) {
        let path = self.path(&format!("down-node-{node}"));
        if is_down {
            std::fs::write(path, "").unwrap();
        } else if path.exists() {
            std::fs::remove_file(path).unwrap();
        }
    }

    /// Writes a config of the hosts, with more keys before them.
    fn config(&self, more: &str) -> PathBuf {
        let mut text = format!(
            "workers = 1\nssh = [\"sh\", {:?}]\nkeys = {:?}\nbinary = {:?}\n{more}\n",
            self.path("ssh"),
            self.path("keys"),
            env!("CARGO_BIN_EXE_nigh")
        );
        for node in 1..=COUNT {
            text.push_str(&format!(
                "[[hosts]]\nname = \"node-{node}\"\naddress = \"127.0.0.1\"\nenvironment = {{ NIGH_NODE = \"{node}\" }}\n"
            ));
        }
        let path = self.path("config.toml");
        std::fs::write(&path, text).unwrap();
        path
    }

    fn arguments(&self, config: &Path, store: &Path) -> Vec<String> {
        let text = |path: &Path| path.to_str().unwrap().to_owned();
        let job = self.path("job.toml");
        ["run", &text(&job), "--config", &text(config), "--store", &text(store)].map(str::to_owned).to_vec()
    }

    fn begin(&self, name: &str, more: &str) -> DisturbedRun {
        let store = self.path(name);
        let arguments = self.arguments(&self.config(more), &store);
        let mut command = nigh(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let (log, stderr) = (Arc::new(Mutex::new(String::new())), child.stderr.take().unwrap());
        let reader = std::thread::spawn({
            let log = log.clone();
            move || {
                for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                    let mut log = log.lock().unwrap();
                    log.push_str(&line);
                    log.push('\n');
                }
            }
        });
        DisturbedRun { child, log, reader: Some(reader), store }
    }
}

impl DisturbedRun {
    fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// The process of the run on a node.
    fn process(&self, node: usize) -> Option<u32> {
        let is_of_node = |id: &u32| {
            let read = |name: &str| std::fs::read(format!("/proc/{id}/{name}")).unwrap_or_default();
            let stat = String::from_utf8_lossy(&read("stat")).into_owned();
            let parent = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(1)?.parse::<u32>().ok());
            let wanted = format!("NIGH_NODE={node}");
            parent == Some(self.child.id())
                && read("cmdline").ends_with(b"\0worker\0")
                && read("environ").split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes())
        };
        let all = std::fs::read_dir("/proc").unwrap();
        all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).find(is_of_node)
    }

    fn signal(&self, name: &str, node: usize) {
        if let Some(id) = self.process(node) {
            // One that ended meanwhile needs no signal.
            let id = id.to_string();
            let _ = Command::new("kill").args(["-s", name, &id]).stderr(Stdio::null()).status().unwrap();
        }
    }

    /// Waits until something is true of the run.
    fn wait_for(&mut self, what: &str, reached: impl Fn(&DisturbedRun) -> bool) {
        let begun = Instant::now();
        while !reached(self) {
            assert!(self.child.try_wait().unwrap().is_none(), "it ended before {what}: {}", self.log());
            assert!(begun.elapsed() < PATIENCE, "{what}: {}", self.log());
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Waits until a worker has written something.
    fn wait_for_work(&mut self) {
        self.wait_for("it wrote anything", |run| {
            let works = std::fs::read_dir(run.store.join("_nigh")).into_iter().flatten();
            let mut works = works.filter_map(|entry| Some(entry.ok()?.path()));
            works.any(|work| work.join("week=2024-01-08/documents").exists())
        });
    }

    /// Waits for its end; gives its exit code and its log.
    fn end(&mut self) -> (Option<i32>, String) {
        let begun = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(begun.elapsed() < PATIENCE, "it does not end: {}", self.log());
            std::thread::sleep(Duration::from_millis(5));
        };
        self.reader.take().unwrap().join().unwrap();
        (status.code(), self.log())
    }
}

/// The store has the bytes that one process makes, and nothing unfinished.
fn assert_same(store: &Path, undisturbed: &Made, log: &str) {
    assert!(tables(&store.join("week=2024-01-08")) == undisturbed.tables(), "tables differ: {log}");
    let left: Vec<_> =
        std::fs::read_dir(store.join("_nigh")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().starts_with("work")), "{left:?}");
}

/// Asserts that the log has these words, in this order.
fn assert_in_order(log: &str, words: &[&str]) {
    let mut rest = log;
    for word in words {
        rest = rest.split_once(word).unwrap_or_else(|| panic!("{word} is not there, or too early: {log}")).1;
    }
}

#[test]
fn a_run_that_loses_a_host_for_good_ends_with_the_others_and_one_that_gets_it_back_uses_it() {
    let hosts = ElasticHosts::new();
    let undisturbed = hosts.undisturbed();
    let mut run = hosts.begin("lost", "min-processes = 2\ngrace = \"1s\"\ntimeout = \"4s\"");
    run.wait_for_work();
    hosts.set_down(2, true);
    run.signal("KILL", 2);
    let (code, log) = run.end();
    assert_eq!(code, Some(0), "{log}");
    assert_in_order(
        &log,
        &[
            "process 1 on node-2 was killed",
            "process 1 on node-2: ssh cannot reach its host",
            "process 1 on node-2 is lost: the run goes on with 2 of 3 processes",
        ],
    );
    assert!(!log.contains("2 of 3 processes, and") && !log.contains("3 of 3 processes"), "{log}");
    assert_same(&run.store, &undisturbed, &log);

    // The first host, whose process has rank 0 and worker 0: another process takes its place, and
    // gives it back.
    hosts.set_down(2, false);
    let mut run = hosts.begin("back", "min-processes = 2\ngrace = \"500ms\"\nrejoin = \"100ms\"");
    run.wait_for_work();
    hosts.set_down(1, true);
    run.signal("KILL", 1);
    run.wait_for("it goes on with two", |run| run.log().contains("the run goes on with 2 of 3 processes"));
    hosts.set_down(1, false);
    let (code, log) = run.end();
    assert_eq!(code, Some(0), "{log}");
    assert_in_order(
        &log,
        &[
            "process 0 on node-1 is lost: the run goes on with 2 of 3 processes",
            "process 0 on node-1 can be used again: the processes end after a wave",
            "the run goes on with 3 of 3 processes",
        ],
    );
    assert_same(&run.store, &undisturbed, &log);
}

#[test]
fn a_run_that_begins_with_one_host_ends_with_three() {
    let hosts = ElasticHosts::new();
    let undisturbed = hosts.undisturbed();
    [2, 3].into_iter().for_each(|node| hosts.set_down(node, true));
    let mut run = hosts.begin("store", "min-processes = 1\ngrace = \"500ms\"\nrejoin = \"100ms\"");
    run.wait_for("it begins with one", |run| run.log().contains("the run goes on with 1 of 3 processes"));
    run.wait_for_work();
    [2, 3].into_iter().for_each(|node| hosts.set_down(node, false));
    let (code, log) = run.end();
    assert_eq!(code, Some(0), "{log}");
    assert_in_order(&log, &["are lost: the run goes on with 1 of 3", "can be used again", "goes on with 3 of 3"]);
    // No work is lost when hosts are taken in, and it is no restart.
    assert!(!log.contains("(restart "), "{log}");
    assert_same(&run.store, &undisturbed, &log);
}

#[test]
fn a_host_that_is_told_to_end_hands_back_what_is_read() {
    let hosts = ElasticHosts::new();
    let undisturbed = hosts.undisturbed();
    let mut run = hosts.begin("store", "min-processes = 2\ngrace = \"60s\"");
    run.wait_for_work();
    run.signal("TERM", 3);
    let (code, log) = run.end();
    assert_eq!(code, Some(0), "{log}");
    assert_in_order(
        &log,
        &[
            "process 2 on node-3 was told to end (SIGTERM)",
            "a wave is committed, and process 2 on node-3 was told to end: the run goes on with 2 of 3 processes",
        ],
    );
    assert!(!log.contains("(restart "), "{log}");
    assert_same(&run.store, &undisturbed, &log);
}

#[test]
fn a_host_that_is_back_is_taken_in_after_a_failure() {
    let hosts = ElasticHosts::new();
    let undisturbed = hosts.undisturbed();
    hosts.set_down(2, true);
    // After a wave it would be taken in after an hour.
    let more = "min-processes = 1\ngrace = \"500ms\"\nrejoin = \"1h\"\nrestarts = 1000";
    let mut run = hosts.begin("store", more);
    run.wait_for("it begins with two", |run| run.log().contains("the run goes on with 2 of 3 processes"));
    run.wait_for_work();
    hosts.set_down(2, false);
    let taken = "process 1 on node-2 can be used again: the run goes on with 3 of 3 processes";
    // The first restart looks for it at once, and the next one has it.
    while !run.log().contains(taken) {
        run.wait_for("node-3 works", |run| run.process(3).is_some() || run.log().contains(taken));
        std::thread::sleep(Duration::from_millis(400));
        run.signal("KILL", 3);
        std::thread::sleep(Duration::from_millis(100));
    }
    let (code, log) = run.end();
    assert_eq!(code, Some(0), "{log}");
    assert_in_order(&log, &["process 1 on node-2 is lost: the run goes on with 2 of 3", taken]);
    assert!(!log.contains("the processes end after a wave"), "{log}");
    assert_same(&run.store, &undisturbed, &log);
}

#[test]
fn a_host_that_is_back_stands_in_for_one_that_is_lost() {
    let hosts = ElasticHosts::new();
    let undisturbed = hosts.undisturbed();
    hosts.set_down(3, true);
    let mut run = hosts.begin("store", "min-processes = 2\ngrace = \"1s\"\nrejoin = \"1h\"");
    run.wait_for("it begins with two", |run| run.log().contains("the run goes on with 2 of 3 processes"));
    run.wait_for_work();
    hosts.set_down(3, false);
    hosts.set_down(2, true);
    run.signal("KILL", 2);
    let (code, log) = run.end();
    assert_eq!(code, Some(0), "{log}");
    assert_in_order(
        &log,
        &[
            "process 2 on node-3 is lost: the run goes on with 2 of 3 processes",
            "process 1 on node-2 was killed",
            "process 2 on node-3 can be used again: the run goes on with 3 of 3 processes",
            "process 1 on node-2 is lost: the run goes on with 2 of 3 processes",
        ],
    );
    assert_same(&run.store, &undisturbed, &log);
}

#[test]
fn a_host_that_was_told_to_end_is_taken_in_again_after_the_grace() {
    let hosts = ElasticHosts::new();
    let undisturbed = hosts.undisturbed();
    let mut run = hosts.begin("store", "min-processes = 2\ngrace = \"700ms\"\nrejoin = \"100ms\"");
    run.wait_for_work();
    run.signal("TERM", 3);
    let (code, log) = run.end();
    assert_eq!(code, Some(0), "{log}");
    assert_in_order(
        &log,
        &[
            "process 2 on node-3 was told to end: the run goes on with 2 of 3 processes",
            "process 2 on node-3 can be used again: the processes end after a wave",
            "the run goes on with 3 of 3 processes",
        ],
    );
    assert_same(&run.store, &undisturbed, &log);
}

#[test]
fn too_few_hosts_end_the_run_which_names_them_and_goes_on_later() {
    let hosts = ElasticHosts::new();
    let mut run = hosts.begin("store", "min-processes = 2\ngrace = \"500ms\"");
    run.wait_for_work();
    [2, 3].into_iter().for_each(|node| hosts.set_down(node, true));
    run.signal("KILL", 3);
    let (code, log) = run.end();
    assert_eq!(code, Some(1), "{log}");
    let last = log.lines().last().unwrap();
    assert!(last.contains("fewer than 2 processes would be left (`min-processes`)"), "{last}");
    assert!(last.contains("process 1 on node-2, process 2 on node-3 missing for 500ms (`grace`)"), "{last}");
    [2, 3].into_iter().for_each(|node| hosts.set_down(node, false));
    let store = run.store.clone();
    let again = hosts.arguments(&hosts.path("config.toml"), &store);
    run_well(&again.iter().map(String::as_str).collect::<Vec<_>>());
    assert_same(&store, &hosts.undisturbed(), &log);
}

#[test]
fn a_config_that_asks_for_more_than_there_is_names_both() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config.toml");
    for (text, wanted) in [
        ("workers = 1\nmin-processes = 2\n[[hosts]]\nname = \"a\"\n", "min-processes = 2: there are only 1 [[hosts]]"),
        ("processes = 2\nmin-processes = 1\n", "`min-processes` is for machines of a pool and tasks of a scheduler"),
        ("restarts = \"3 per day\"\n", "such as \"3 in 10min\""),
    ] {
        std::fs::write(&config, text).unwrap();
        let store = folder.path().join("store");
        let ran = run(&[
            "run",
            "jobs/example.toml",
            "--config",
            config.to_str().unwrap(),
            "--store",
            store.to_str().unwrap(),
        ]);
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
        assert!(ran.stderr.contains(wanted), "{wanted}: {}", ran.stderr);
    }
}

/// The files of what was read of waves that are not committed.
fn kept(store: &Path) -> Vec<PathBuf> {
    let files = walkdir::WalkDir::new(store.join("_nigh")).into_iter().filter_map(Result::ok);
    files
        .map(|entry| entry.into_path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "read"))
        .collect()
}

#[test]
fn what_was_read_of_a_wave_is_taken_over_by_the_next_run() {
    let hosts = ElasticHosts::new();
    // One wave: without what is kept, all of it would be read again.
    let job = hosts.path("job.toml");
    let text = std::fs::read_to_string(&job).unwrap().replace("wave-bytes = 1\n", "");
    std::fs::write(&job, text).unwrap();
    let undisturbed = hosts.undisturbed();
    let config = hosts.path("here.toml");
    std::fs::write(&config, "workers = 1\nprocesses = 2\nkeep-read = true\n").unwrap();
    let store = hosts.path("store");
    let arguments = hosts.arguments(&config, &store);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut child = nigh(&arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let begun = Instant::now();
    while kept(&store).len() < 3 {
        assert!(child.try_wait().unwrap().is_none(), "it ended before anything was kept");
        assert!(begun.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    // The processes end when they notice it.
    std::thread::sleep(Duration::from_millis(300));

    // Other processes read what was kept: a damaged file of it is named.
    std::fs::write(&config, "workers = 2\nprocesses = 1\nkeep-read = true\n").unwrap();
    let first = kept(&store).into_iter().min().unwrap();
    let whole = std::fs::read(&first).unwrap();
    std::fs::write(&first, &whole[..whole.len() / 2]).unwrap();
    let damaged = run(&arguments);
    assert_eq!(damaged.code, Some(1), "{}", damaged.stderr);
    let name = first.file_name().unwrap().to_str().unwrap();
    assert!(damaged.stderr.contains(name) && damaged.stderr.contains("is damaged: remove it"), "{}", damaged.stderr);
    std::fs::write(&first, &whole).unwrap();
    let again = run_well(&arguments);
    assert_same(&store, &undisturbed, &again.stderr);
    assert_eq!(kept(&store), Vec::<PathBuf>::new());
}

/// A number of the environment.
fn variable(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |text| text.parse().unwrap())
}

#[test]
fn random_schedules_of_kills_stops_and_joins_give_the_same_bytes() {
    let hosts = ElasticHosts::new();
    let undisturbed = hosts.undisturbed();
    let (schedules, first) = (variable("NIGH_SCHEDULES", 6), variable("NIGH_SEED", 1));
    let mut seen = [0; 3];
    for seed in first..first + schedules {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        (1..=COUNT).for_each(|node| hosts.set_down(node, node > 1 && random(3) == 0));
        let name = format!("store-{seed}");
        let more = "min-processes = 1\ngrace = \"300ms\"\nrejoin = \"200ms\"\ntimeout = \"2s\"\nrestarts = 1000";
        let mut run = hosts.begin(&name, &format!("{more}\nkeep-read = {}", seed % 2 == 0));
        let mut schedule = Vec::new();
        for _ in 0..12 {
            std::thread::sleep(Duration::from_millis(random(700)));
            if run.child.try_wait().unwrap().is_some() {
                break;
            }
            // The first host can always be reached: the run must go on.
            let (node, other) = (1 + random(3) as usize, 2 + random(2) as usize);
            let what = random(6);
            schedule.push((what, node, other));
            match what {
                0 => run.signal("KILL", node),
                1 => run.signal("STOP", node),
                2 => run.signal("TERM", node),
                3 => {
                    hosts.set_down(other, true);
                    run.signal("KILL", other);
                }
                _ => hosts.set_down(other, false),
            }
        }
        let (code, log) = run.end();
        assert_eq!(code, Some(0), "seed {seed}, {schedule:?}: {log}");
        assert_same(&run.store, &undisturbed, &format!("seed {seed}, {schedule:?}: {log}"));
        for (count, word) in seen.iter_mut().zip(["(restart ", " lost: the run goes on", "a wave is committed, and "]) {
            *count += log.matches(word).count();
        }
        std::fs::remove_dir_all(&run.store).unwrap();
    }
    let [restarts, lost, borders] = seen;
    eprintln!("{schedules} schedules: {restarts} restarts, {lost} hosts lost, {borders} ends after a wave");
}
