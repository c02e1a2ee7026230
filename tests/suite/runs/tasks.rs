//! The tasks of a scheduler: three processes of the program with the variables that SLURM or
//! Kubernetes would set, on loopback. Whatever happens to one of them, the run ends with the same
//! bytes or says why not.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use crate::program::{Made, Ran, nigh, run, run_well, tables};
use crate::runs::survival::waves;

/// No run of the test data takes nearly so long, not even one that waits for several timeouts of 4
/// s.
const PATIENCE: Duration = Duration::from_secs(120);
/// Tasks of a run.
const COUNT: usize = 3;

/// The scheduler whose variables the tasks get.
#[derive(Clone, Copy, Debug, PartialEq)]
enum TestedScheduler {
    Slurm,
    Kubernetes,
}

/// A job, its keys and a config, for runs of three tasks.
struct TaskRuns {
    folder: tempfile::TempDir,
    scheduler: TestedScheduler,
}

/// One task; it is killed when this is dropped.
struct Task {
    child: Child,
    stdout: Option<std::thread::JoinHandle<String>>,
    stderr: Option<std::thread::JoinHandle<String>>,
}

impl Drop for Task {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A port that is free, and of which the system makes no use of its own.
fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    loop {
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let port = 11_000 + (std::process::id() % 2000) as u16 * 10 + next % 1000;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

impl TaskRuns {
    fn new(scheduler: TestedScheduler, more: &str) -> TaskRuns {
        let runs = TaskRuns { folder: tempfile::tempdir().unwrap(), scheduler };
        let keys = runs.path("keys");
        run_well(&["pool", "keys", "--processes", "3", "--out", keys.to_str().unwrap()]);
        waves(runs.folder.path());
        let port = free_port();
        let scheduler = match scheduler {
            TestedScheduler::Slurm => "scheduler = \"slurm\"",
            TestedScheduler::Kubernetes => "scheduler = \"kubernetes\"\nservice = \"pods\"\nsupervisor = \"127.0.0.1\"",
        };
        let config = format!(
            "workers = 1\nkeys = {keys:?}\ntimeout = \"4s\"\n{more}\n[tasks]\n{scheduler}\ncontrol = {port}\nlisten = \"127.0.0.1\"\n\
             wait = \"100s\"\n"
        );
        std::fs::write(runs.path("config.toml"), config).unwrap();
        runs
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes another config.
    fn config(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// What one process makes of the job.
    fn undisturbed(&self) -> Made {
        Made::with_job(&self.path("job.toml"), &["--workers", "2"])
    }

    fn command(&self, me: usize, config: &Path, store: &Path) -> Command {
        let path = |path: &Path| path.to_str().unwrap().to_owned();
        let job = self.path("job.toml");
        let mut command = nigh(&["run", &path(&job), "--config", &path(config), "--store", &path(store)]);
        let (me, count) = (me.to_string(), COUNT.to_string());
        match self.scheduler {
            TestedScheduler::Slurm => command.envs([
                ("SLURM_JOB_ID", "7"),
                ("SLURM_STEP_ID", "0"),
                ("SLURM_STEP_NODELIST", "127.0.0.1,node[02-03]"),
                ("SLURM_PROCID", &me),
                ("SLURM_NTASKS", &count),
            ]),
            TestedScheduler::Kubernetes => command.envs([
                ("JOB_COMPLETION_INDEX", &me[..]),
                ("NIGH_TASKS", &count),
                ("HOSTNAME", &format!("week-{me}")),
            ]),
        };
        command
    }

    fn start(&self, me: usize, store: &Path) -> Task {
        Task::start(self.command(me, &self.path("config.toml"), store))
    }

    fn all(&self, store: &Path) -> Vec<Task> {
        (0..COUNT).map(|me| self.start(me, store)).collect()
    }

    fn assert_same(&self, what: &str, store: &Path, undisturbed: &Made) {
        assert!(tables(&store.join("week=2024-01-08")) == undisturbed.tables(), "{what}: tables differ");
        let left: Vec<_> =
            std::fs::read_dir(store.join("_nigh")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert!(!left.iter().any(|name| name.to_string_lossy().starts_with("work")), "{what}: {left:?}");
    }

    /// Runs the tasks once more into the store of a run that was ended: they finish it with the
    /// same tables.
    fn assert_rerun_ends_the_same(&self, store: &Path, undisturbed: &Made) {
        all_end_well(&mut self.all(store));
        self.assert_same("rerun", store, undisturbed);
    }
}

impl Task {
    fn start(mut command: Command) -> Task {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let text = |mut pipe: Box<dyn Read + Send>| {
            Some(std::thread::spawn(move || {
                let mut text = String::new();
                pipe.read_to_string(&mut text).unwrap();
                text
            }))
        };
        let stdout = text(Box::new(child.stdout.take().unwrap()));
        let stderr = text(Box::new(child.stderr.take().unwrap()));
        Task { child, stdout, stderr }
    }

    fn signal(&self, name: &str) {
        signal(name, self.child.id());
    }

    /// The process of the run that it has.
    fn process(&self) -> Option<u32> {
        let parent = |id: &u32| {
            let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
            stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse::<u32>().ok()
        };
        let mut all =
            std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        all.find(|id| parent(id) == Some(self.child.id()))
    }

    fn ends(&mut self) -> Ran {
        let begun = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(begun.elapsed() < PATIENCE, "a task does not end");
            std::thread::sleep(Duration::from_millis(5));
        };
        let stdout = self.stdout.take().unwrap().join().unwrap();
        Ran { code: status.code(), stdout, stderr: self.stderr.take().unwrap().join().unwrap() }
    }
}

/// Waits for all tasks, which must end with exit code 0.
fn all_end_well(tasks: &mut [Task]) -> Vec<Ran> {
    let ended: Vec<Ran> = tasks.iter_mut().map(Task::ends).collect();
    for (me, ran) in ended.iter().enumerate() {
        assert_eq!(ran.code, Some(0), "task {me}: {}\ntask 0: {}", ran.stderr, ended[0].stderr);
    }
    ended
}

/// Waits until none of the processes is left.
fn wait_until_gone(processes: &[u32]) {
    wait_until(|| !processes.iter().any(|id| Path::new(&format!("/proc/{id}")).exists()));
}

fn signal(name: &str, process: u32) {
    // One that ended meanwhile needs no signal.
    let _ = Command::new("kill").args(["-s", name, &process.to_string()]).stderr(Stdio::null()).status().unwrap();
}

/// Waits until a process of the run has written something.
fn wait_until_working(tasks: &mut [Task], store: &Path) {
    wait_until(|| {
        assert!(tasks[0].child.try_wait().unwrap().is_none(), "it ended before it was disturbed");
        let works =
            std::fs::read_dir(store.join("_nigh")).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
        works.into_iter().any(|work| work.join("week=2024-01-08/documents").exists())
    });
}

fn wait_until(mut reached: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !reached() {
        assert!(begun.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn three_tasks_give_the_bytes_of_one_process() {
    for scheduler in [TestedScheduler::Slurm, TestedScheduler::Kubernetes] {
        let runs = TaskRuns::new(scheduler, "");
        let (store, undisturbed) = (runs.path("store"), runs.undisturbed());
        // In any order; the first comes last.
        let mut tasks: Vec<Task> = (1..COUNT).rev().map(|me| runs.start(me, &store)).collect();
        std::thread::sleep(Duration::from_millis(700));
        tasks.push(runs.start(0, &store));
        let ended: Vec<Ran> = tasks.iter_mut().rev().map(Task::ends).collect();
        for (me, ran) in ended.iter().enumerate() {
            assert_eq!(ran.code, Some(0), "{scheduler:?}, task {me}: {}", ran.stderr);
            assert_eq!(ran.stdout.contains("Week 2024-01-08"), me == 0, "task {me}: {}", ran.stdout);
            assert!(!ran.stderr.contains("restart"), "{}", ran.stderr);
        }
        runs.assert_same("undisturbed", &store, &undisturbed);
        // Where there is nothing to do, all of them know it.
        for task in &mut runs.all(&store) {
            let ran = task.ends();
            assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        }
    }
}

#[test]
fn the_processes_of_tasks_do_what_a_flag_of_the_tasks_says_of_credentials() {
    let runs = TaskRuns::new(TestedScheduler::Slurm, "");
    let task = |me| {
        let mut command = runs.command(me, &runs.path("config.toml"), &runs.path("store"));
        // A process that took this value would refuse it.
        command.args(["--cloud-credentials", "environment"]).env("NIGH_CLOUD_CREDENTIALS", "x");
        Task::start(command)
    };
    all_end_well(&mut (0..COUNT).map(task).collect::<Vec<Task>>());
}

#[test]
fn a_task_or_its_process_that_is_killed_does_not_end_the_run() {
    for scheduler in [TestedScheduler::Slurm, TestedScheduler::Kubernetes] {
        let runs = TaskRuns::new(scheduler, "");
        let undisturbed = runs.undisturbed();
        let store = runs.path("process");
        let mut tasks = runs.all(&store);
        wait_until_working(&mut tasks, &store);
        signal("KILL", tasks[1].process().expect("it has a process"));
        let log = &all_end_well(&mut tasks)[0].stderr;
        assert!(log.contains("process 1 on") && log.contains("was killed by SIGKILL"), "{log}");
        assert!(log.contains("(restart 1 of 3 in 10min)"), "{log}");
        runs.assert_same("a process was killed", &store, &undisturbed);

        let store = runs.path("task");
        let mut tasks = runs.all(&store);
        wait_until_working(&mut tasks, &store);
        let orphan = tasks[2].process().expect("it has a process");
        tasks[2].signal("KILL");
        wait_until_gone(&[orphan]);
        tasks[2] = runs.start(2, &store);
        let log = &all_end_well(&mut tasks)[0].stderr;
        assert!(log.contains("process 2 on") && log.contains("its task, host or network has failed"), "{log}");
        runs.assert_same("a task was killed", &store, &undisturbed);
    }
}

#[test]
fn a_run_goes_on_without_a_task_that_does_not_come_back() {
    let runs = TaskRuns::new(TestedScheduler::Kubernetes, "min-processes = 2\ngrace = \"2s\"");
    let (store, undisturbed) = (runs.path("store"), runs.undisturbed());
    let mut tasks = runs.all(&store);
    wait_until_working(&mut tasks, &store);
    tasks.remove(1).signal("KILL");
    let begun = Instant::now();
    let log = &all_end_well(&mut tasks)[0].stderr;
    assert!(log.contains("its task, host or network has failed"), "{log}");
    assert!(log.contains("did not join in time: the run goes on with 2 of 3 processes"), "{log}");
    // `wait` is 100 s: the end of the run does not wait for a lost task either.
    assert!(begun.elapsed() < Duration::from_secs(60));
    runs.assert_same("a task was lost", &store, &undisturbed);
}

#[test]
fn a_task_that_is_back_stands_in_for_one_that_is_lost() {
    let runs = TaskRuns::new(TestedScheduler::Kubernetes, "min-processes = 2\ngrace = \"1s\"");
    let (store, undisturbed) = (runs.path("store"), runs.undisturbed());
    let mut tasks: Vec<Task> = (0..2).map(|me| runs.start(me, &store)).collect();
    wait_until_working(&mut tasks, &store);
    tasks.remove(1).signal("KILL");
    // Task 0 waits for task 1 by then.
    std::thread::sleep(Duration::from_millis(500));
    tasks.push(runs.start(2, &store));
    let begun = Instant::now();
    let log = &all_end_well(&mut tasks)[0].stderr;
    for wanted in ["its task, host or network has failed", "can be used again", "the run goes on with 2 of 3 processes"]
    {
        assert!(log.contains(wanted), "{wanted}: {log}");
    }
    // `wait` is 100 s.
    assert!(begun.elapsed() < Duration::from_secs(60));
    runs.assert_same("another task stood in", &store, &undisturbed);
}

#[test]
fn a_task_that_is_told_to_end_does_so_after_a_wave_and_another_takes_its_place() {
    let more = "min-processes = 2\ngrace = \"1s\"\nrejoin = \"100ms\"";
    let runs = TaskRuns::new(TestedScheduler::Kubernetes, more);
    let (store, undisturbed) = (runs.path("store"), runs.undisturbed());
    let mut tasks = runs.all(&store);
    wait_until_working(&mut tasks, &store);
    tasks[2].signal("TERM");
    let left = tasks[2].ends();
    assert_eq!(left.code, Some(143), "{}", left.stderr);
    assert!(left.stderr.contains("task 2 was told to end, and ends after the wave"), "{}", left.stderr);
    tasks[2] = runs.start(2, &store);
    let log = &all_end_well(&mut tasks)[0].stderr;
    assert!(log.contains("process 2 on") && log.contains("was told to end (SIGTERM)"), "{log}");
    assert!(log.contains("was told to end: the run goes on with 2 of 3 processes"), "{log}");
    assert!(!log.contains("(restart "), "{log}");
    runs.assert_same("a task was told to end", &store, &undisturbed);
}

#[test]
fn a_task_that_is_frozen_is_given_up_and_may_come_back() {
    let runs = TaskRuns::new(TestedScheduler::Kubernetes, "");
    let (store, undisturbed) = (runs.path("store"), runs.undisturbed());
    let mut tasks = runs.all(&store);
    wait_until_working(&mut tasks, &store);
    tasks[1].signal("STOP");
    // Longer than the timeout of 4 s, and than the supervisor waits for an answer to the kill.
    std::thread::sleep(Duration::from_secs(12));
    tasks[1].signal("CONT");
    let ended = all_end_well(&mut tasks);
    assert!(ended[0].stderr.contains("process 1 on"), "{}", ended[0].stderr);
    assert!(ended[1].stderr.contains("task 1 lost task 0"), "{}", ended[1].stderr);
    runs.assert_same("a task was frozen", &store, &undisturbed);
}

#[test]
fn tasks_end_by_themselves_when_the_supervisor_is_killed_and_a_rerun_goes_on() {
    let runs = TaskRuns::new(TestedScheduler::Slurm, "");
    let (store, undisturbed) = (runs.path("store"), runs.undisturbed());
    let mut tasks = runs.all(&store);
    wait_until_working(&mut tasks, &store);
    let processes: Vec<u32> = tasks.iter().filter_map(Task::process).collect();
    assert_eq!(processes.len(), COUNT);
    tasks[0].signal("KILL");
    for task in &mut tasks[1..] {
        let ran = task.ends();
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        assert!(ran.stderr.contains("lost task 0") && ran.stderr.contains("task 0 has ended"), "{}", ran.stderr);
    }
    wait_until_gone(&processes);
    runs.assert_rerun_ends_the_same(&store, &undisturbed);
}

#[test]
fn a_signal_ends_all_tasks_and_a_rerun_goes_on() {
    let runs = TaskRuns::new(TestedScheduler::Kubernetes, "");
    let undisturbed = runs.undisturbed();
    // As a scheduler does, and as one does that stops only the first.
    for to_all in [true, false] {
        let store = runs.path(&format!("store-{to_all}"));
        let mut tasks = runs.all(&store);
        wait_until_working(&mut tasks, &store);
        let processes: Vec<u32> = tasks.iter().filter_map(Task::process).collect();
        let stopped = if to_all { &tasks[..] } else { &tasks[..1] };
        stopped.iter().for_each(|task| task.signal("TERM"));
        for task in &mut tasks {
            let ran = task.ends();
            assert_eq!(ran.code, Some(143), "to all: {to_all}: {}", ran.stderr);
        }
        wait_until_gone(&processes);
        runs.assert_rerun_ends_the_same(&store, &undisturbed);
    }
}

#[test]
fn tasks_that_do_not_join_in_time_are_named_with_the_connections_that_were_refused() {
    let runs = TaskRuns::new(TestedScheduler::Slurm, "");
    let text = std::fs::read_to_string(runs.path("config.toml")).unwrap();
    let port = text.lines().find_map(|line| line.strip_prefix("control = ")).unwrap().parse::<u16>().unwrap();
    let short_wait = runs.config("short.toml", &text.replace("wait = \"100s\"", "wait = \"3s\""));
    let mut command = runs.command(0, &short_wait, &runs.path("store"));
    command.arg("--json");
    let mut first = Task::start(command);
    wait_until(|| match TcpStream::connect(("127.0.0.1", port)) {
        Ok(mut garbage) => garbage.write_all(&[0xff; 1000]).is_ok(),
        Err(_) => false,
    });
    let ran = first.ends();
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stderr.contains("task 1, task 2 of 3 tasks did not join task 0"), "{}", ran.stderr);
    assert!(ran.stderr.contains("this is not TLS"), "{}", ran.stderr);
    // Programs read this log: every line is an event that says of what it is.
    let events = ran.stderr.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).expect(line));
    let refused = events.into_iter().find(|event| event["event"] == "refused").expect(&ran.stderr);
    let of = (&refused["job"], &refused["epoch"], &refused["process"]);
    assert_eq!(of, (&"cluster 2024-01-08".into(), &0.into(), &0.into()), "{refused}");
}

#[test]
fn tasks_of_another_pool_or_job_or_with_the_key_of_another_task_are_refused_and_do_not_disturb_the_run() {
    let runs = TaskRuns::new(TestedScheduler::Slurm, "");
    let store = runs.path("store");
    let text = std::fs::read_to_string(runs.path("config.toml")).unwrap();
    let other = runs.path("other");
    run_well(&["pool", "keys", "--processes", "3", "--out", other.to_str().unwrap()]);
    let stolen = runs.path("stolen");
    std::fs::create_dir(&stolen).unwrap();
    let keys = runs.path("keys");
    std::fs::copy(keys.join("authority.pem"), stolen.join("authority.pem")).unwrap();
    for kind in ["pem", "key"] {
        std::fs::copy(keys.join(format!("process-001.{kind}")), stolen.join(format!("process-002.{kind}"))).unwrap();
    }
    let with_keys =
        |name: &str, folder: &Path| runs.config(name, &text.replace(keys.to_str().unwrap(), folder.to_str().unwrap()));
    let (foreign, thief) = (with_keys("foreign.toml", &other), with_keys("thief.toml", &stolen));
    let mut first = runs.start(0, &store);
    let refused = |me: usize, config: &Path, variable: Option<(&str, &str)>, words: &[&str]| {
        let mut command = runs.command(me, config, &store);
        command.envs(variable);
        let ran = Task::start(command).ends();
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        words.iter().for_each(|word| assert!(ran.stderr.contains(word), "{word}: {}", ran.stderr));
    };
    refused(1, &foreign, None, &["task 1 cannot join task 0", "not of the authority"]);
    refused(2, &thief, None, &["process-002.pem", "that of process-1.nigh.internal, not of process-2.nigh.internal"]);
    let right_config = runs.path("config.toml");
    refused(2, &right_config, Some(("SLURM_JOB_ID", "8")), &["it refuses", "process 2 does job"]);
    // The run is not disturbed by any of them.
    let mut others: Vec<Task> = (1..COUNT).map(|me| runs.start(me, &store)).collect();
    for task in others.iter_mut().chain([&mut first]) {
        let ran = task.ends();
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    }
    runs.assert_same("strangers", &store, &runs.undisturbed());
}

#[test]
fn variables_that_the_scheduler_does_not_set_and_mistakes_in_its_config_are_named() {
    let wrong = |config: &str, flags: &[&str], words: &[&str]| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        std::fs::write(&path, config).unwrap();
        let store = folder.path().join("store");
        let arguments = ["run", "jobs/example.toml", "--config", path.to_str().unwrap()];
        let ran = run(&[&arguments[..], &["--store", store.to_str().unwrap()], flags].concat());
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
        words.iter().for_each(|word| assert!(ran.stderr.contains(word), "{word}: {}", ran.stderr));
    };
    // The shipped configs, too.
    for (config, word) in [("slurm", "run it under srun"), ("kubernetes", "run it as an Indexed Job")] {
        let text = std::fs::read_to_string(format!("configs/{config}.toml")).unwrap();
        wrong(&text, &[], &["is not set", word]);
    }
    let slurm = "keys = \"k\"\n[tasks]\nscheduler = \"slurm\"\n";
    wrong(slurm, &[], &["is not set", "run it under srun"]);
    wrong(slurm, &["--processes", "2"], &["--processes", "the scheduler decides"]);
    wrong("keys = \"k\"\n[tasks]\nscheduler = \"kubernetes\"\n", &[], &["`service` is missing"]);
    wrong("[tasks]\nscheduler = \"slurm\"\n", &[], &["`keys` is missing"]);
    wrong("processes = 2\nkeys = \"k\"\n[tasks]\nscheduler = \"slurm\"\n", &[], &["`processes`"]);
    wrong("workers = 1\nkeys = \"k\"\n[[hosts]]\nname = \"a\"\n[tasks]\nscheduler = \"slurm\"\n", &[], &["[[hosts]]"]);
}
