//! The metrics of a run for Prometheus: text over HTTP while it lasts, one family for each counter,
//! one line for each process; and a file at its end.
//!
//! The process that shows progress serves the metrics of all processes, which report their counters
//! to it. So a run has one address, for any number of processes on any machines. The server handles
//! one request at a time, each within a deadline. Requests change nothing.
//!
//! The file is for the textfile collector of node_exporter, since the address is there only as long
//! as the run. It is written under another name, and renamed. A run that fails keeps the time of
//! the last success, which it reads from the file that is there.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::records::Week;
use crate::watch::Progress;

/// The most time that reading a request may take; the response has as long again.
const DEADLINE: Duration = Duration::from_secs(2);
/// The longest head of a request, in bytes.
const HEAD: usize = 8 << 10;
/// The pause between two checks for a request and for the end of the run.
const POLL_EVERY: Duration = Duration::from_millis(50);

/// The labels of all metrics of a run.
#[derive(Clone, Debug, Default)]
pub struct RunLabels {
    /// The kind of the job.
    pub job: String,
    /// The week that the job makes or reads, if it is about one.
    pub week: Option<Week>,
}

impl RunLabels {
    /// The labels as a metric has them, without the brackets.
    fn text(&self) -> String {
        let week = self.week.map_or_else(String::new, |week| format!(",week=\"{week}\""));
        format!("job=\"{}\"{week}", self.job)
    }
}

/// A run at a moment.
#[derive(Clone, Debug, Default)]
pub struct RunState {
    /// The job and its week.
    pub labels: RunLabels,
    /// The counters of each process.
    pub progresses: Vec<Progress>,
    /// Bytes of input that the run reads in all.
    pub of_bytes: u64,
    /// How often its processes were restarted.
    pub restarts: u64,
    /// When a run before it was a success, as far as that is known, in seconds since 1970.
    pub last_success: Option<i64>,
}

/// A run that has ended.
#[derive(Clone, Debug, Default)]
pub struct RunEnd {
    /// The job and its week.
    pub labels: RunLabels,
    /// The counters of all processes together.
    pub sum: Progress,
    /// How often its processes were restarted.
    pub restarts: u64,
    /// Seconds that it took.
    pub seconds: f64,
    /// CPU seconds of all processes.
    pub cpu_seconds: f64,
    /// The sum of the most memory that each process had, in bytes.
    pub peak_memory_bytes: u64,
    /// Whether it did what it was to do, or that was done already.
    pub is_success: bool,
    /// When it ended, in seconds since 1970.
    pub ended: i64,
    /// When a run last was a success, as far as that is known.
    pub last_success: Option<i64>,
}

/// A server of metrics, which runs until this is dropped.
pub struct Metrics {
    /// The address of the listener.
    pub address: SocketAddr,
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Metrics {
    /// Serves metrics at an address. `read` returns the state of the run. If the port is 0, the
    /// system chooses one.
    ///
    /// # Errors
    /// If the address is in use, or is not one of this machine.
    pub fn serve(address: SocketAddr, read: impl Fn() -> RunState + Send + 'static) -> Result<Metrics> {
        let failed = || format!("cannot serve metrics at {address}: use another --metrics");
        let listener = TcpListener::bind(address).with_context(failed)?;
        let address = listener.local_addr().with_context(failed)?;
        listener.set_nonblocking(true).with_context(failed)?;
        let ended = Arc::new(AtomicBool::new(false));
        let thread = {
            let ended = ended.clone();
            std::thread::spawn(move || {
                let mut moves = LastMoves::default();
                while !ended.load(Ordering::Acquire) {
                    let state = read();
                    moves.update(&state.progresses, Instant::now());
                    match listener.accept() {
                        // An error here means that the client has hung up: it needs no response.
                        Ok((socket, _)) => _ = answer(socket, &text(&state, &moves)),
                        Err(_) => std::thread::park_timeout(POLL_EVERY),
                    }
                }
            })
        };
        Ok(Metrics { address, ended, thread: Some(thread) })
    }
}

impl Drop for Metrics {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // If the thread panicked, the server has ended too.
            let _ = thread.join();
        }
    }
}

/// The last change of the counters of each process.
#[derive(Default)]
struct LastMoves(Vec<LastMove>);

/// The last change of the counters of one process.
#[derive(Clone, Default)]
struct LastMove {
    counters: Progress,
    /// When the counters changed; `None` before the first update.
    at: Option<Instant>,
    /// Seconds from then to the last update.
    age: f64,
}

impl LastMoves {
    fn update(&mut self, progresses: &[Progress], now: Instant) {
        self.0.resize(progresses.len(), LastMove::default());
        for (last, progress) in self.0.iter_mut().zip(progresses) {
            // CPU time and memory change even if the process makes no progress: they do not count.
            let counters = progress.counters();
            if last.at.is_none() || last.counters != counters {
                (last.counters, last.at) = (counters, Some(now));
            }
            last.age = last.at.map_or(0.0, |at| (now - at).as_secs_f64());
        }
    }
}

/// A metric: its name, kind and help, and its value for a process.
type MetricFamily = (&'static str, &'static str, &'static str, fn(&Progress) -> u64);

const FAMILIES: [MetricFamily; 10] = [
    ("nigh_input_bytes_total", "counter", "Bytes of input read, as stored.", |p| p.bytes),
    ("nigh_records_total", "counter", "Records read.", |p| p.records),
    ("nigh_documents_total", "counter", "Pages fingerprinted.", |p| p.documents),
    ("nigh_rejects_total", "counter", "Bad records.", |p| p.rejects),
    ("nigh_exchanged_bytes_total", "counter", "Bytes of records sent between workers.", |p| p.exchanged),
    ("nigh_exchanged_records_total", "counter", "Records sent between workers.", |p| p.exchanged_records),
    ("nigh_cpu_milliseconds_total", "counter", "CPU time of the process.", |p| p.cpu_ms),
    ("nigh_anonymous_memory_bytes", "gauge", "Anonymous memory of the process.", |p| p.memory),
    ("nigh_stage_steps", "gauge", "Steps of the stage that are done.", |p| p.steps),
    ("nigh_stage_expected_steps", "gauge", "All steps of the stage, as far as they are known.", |p| p.of_steps),
];

/// How many of the families count what a run has done, from the first one on: the others are of a
/// moment, or of one process.
const OF_THE_RUN: usize = 6;

/// Metrics in Prometheus' text format.
#[derive(Default)]
struct MetricsText(String);

impl MetricsText {
    /// Begins a family.
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a string does not fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    /// Adds a value of a family.
    fn value(&mut self, name: &str, labels: &str, value: impl std::fmt::Display) {
        let _ = writeln!(self.0, "{name}{{{labels}}} {value}");
    }

    /// A family with one value.
    fn single(&mut self, name: &str, kind: &str, help: &str, labels: &str, value: impl std::fmt::Display) {
        self.family(name, kind, help);
        self.value(name, labels, value);
    }

    /// What the metrics of a run and of its end have in common.
    fn of_run(&mut self, labels: &RunLabels, restarts: u64, last_success: Option<i64>) {
        // The week is in no label of the last success: an alert is about its age, whatever the
        // week.
        let job = RunLabels { week: None, ..labels.clone() }.text();
        let labels = &labels.text();
        let version = concat!("version=\"", env!("CARGO_PKG_VERSION"), "\"");
        self.single("nigh_build_info", "gauge", "1 for the version of the program.", version, 1);
        self.single("nigh_restarts_total", "counter", "Restarts of the processes of the run.", labels, restarts);
        if let Some(time) = last_success {
            self.single(LAST_SUCCESS, "gauge", "When a run last was a success.", &job, time);
        }
    }
}

/// The metrics of a run at a moment.
fn text(state: &RunState, moves: &LastMoves) -> String {
    let labels = state.labels.text();
    let mut text = MetricsText::default();
    text.of_run(&state.labels, state.restarts, state.last_success);
    let help = "Bytes of input that the run reads in all, as stored.";
    text.single("nigh_input_expected_bytes", "gauge", help, &labels, state.of_bytes);
    let of_process = |process: usize| format!("{labels},process=\"{process}\"");
    for (name, kind, help, value) in FAMILIES {
        text.family(name, kind, help);
        for (process, progress) in state.progresses.iter().enumerate() {
            text.value(name, &of_process(process), value(progress));
        }
    }
    text.family("nigh_stage", "gauge", "1 for the stage of the run that a process is in.");
    for (process, progress) in state.progresses.iter().enumerate() {
        let stage = format!("{},stage=\"{}\"", of_process(process), progress.stage.title());
        text.value("nigh_stage", &stage, 1);
    }
    text.family("nigh_unchanged_seconds", "gauge", "Seconds since a counter of the process last changed.");
    for (process, last) in moves.0.iter().enumerate() {
        text.value("nigh_unchanged_seconds", &of_process(process), format_args!("{:.3}", last.age));
    }
    text.0
}

/// The metrics of a run that has ended.
fn end_text(end: &RunEnd) -> String {
    let labels = end.labels.text();
    let mut text = MetricsText::default();
    text.of_run(&end.labels, end.restarts, end.last_success);
    for (name, kind, help, value) in &FAMILIES[..OF_THE_RUN] {
        text.single(name, kind, help, &labels, value(&end.sum));
    }
    let success = u8::from(end.is_success);
    text.single("nigh_run_success", "gauge", "1 if the last run was a success, else 0.", &labels, success);
    text.single("nigh_run_seconds", "gauge", "Seconds that the last run took.", &labels, end.seconds);
    text.single("nigh_run_cpu_seconds", "gauge", "CPU seconds of all its processes.", &labels, end.cpu_seconds);
    let help = "The sum of the most memory that each of its processes had.";
    text.single("nigh_run_peak_memory_bytes", "gauge", help, &labels, end.peak_memory_bytes);
    text.single("nigh_run_end_timestamp_seconds", "gauge", "When the last run ended.", &labels, end.ended);
    text.0
}

/// The metric of the last success.
const LAST_SUCCESS: &str = "nigh_last_success_timestamp_seconds";

/// The last success that a file of metrics knows of; `None` if there is no such file, or it knows
/// of none.
pub fn previous_success(path: &Path) -> Option<i64> {
    let text = std::fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(LAST_SUCCESS))?;
    line.rsplit(' ').next()?.parse().ok()
}

/// Writes the metrics of a run to a file, which has its name only when it is whole.
///
/// # Errors
/// If the file cannot be written; the message names it.
pub fn write_file(path: &Path, end: &RunEnd) -> Result<()> {
    let name = path.file_name().with_context(|| format!("{} is not the name of a file", path.display()))?;
    // node_exporter reads names that end in `.prom`.
    let unfinished = path.with_file_name(format!(".{}.{}.unfinished", name.to_string_lossy(), std::process::id()));
    let written = std::fs::write(&unfinished, end_text(end)).and_then(|()| std::fs::rename(&unfinished, path));
    written.with_context(|| {
        // It is not there if it could not be made.
        let _ = std::fs::remove_file(&unfinished);
        format!("cannot write {}", path.display())
    })
}

/// Reads a request and sends the response: `text` for `/metrics` and `/`, otherwise status 404.
fn answer(mut socket: TcpStream, text: &str) -> std::io::Result<()> {
    socket.set_nonblocking(false)?;
    let deadline = Instant::now() + DEADLINE;
    let (mut head, mut buffer) = (Vec::new(), [0; 1024]);
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() || head.len() > HEAD {
            return Ok(());
        }
        socket.set_read_timeout(Some(left))?;
        match socket.read(&mut buffer)? {
            0 => return Ok(()),
            read => head.extend_from_slice(&buffer[..read]),
        }
    }
    let wanted = [&b"GET /metrics "[..], b"GET / "].iter().any(|request| head.starts_with(request));
    let (status, body) = if wanted { ("200 OK", text) } else { ("404 Not Found", "only /metrics is here\n") };
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    let length = body.len();
    socket.set_write_timeout(Some(DEADLINE))?;
    write!(
        socket,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::net::Ipv4Addr;
    use std::sync::Mutex;

    use super::*;
    use crate::watch::Stage;

    fn get(address: SocketAddr, path: &str) -> String {
        let mut socket = TcpStream::connect(address).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        write!(socket, "GET {path} HTTP/1.1\r\nHost: here\r\n\r\n").unwrap();
        let mut all = String::new();
        socket.read_to_string(&mut all).unwrap();
        all
    }

    #[test]
    fn counters_of_every_process_are_served_as_they_are_now() {
        let progresses = Arc::new(Mutex::new(vec![Progress { documents: 7, of_steps: 64, ..Progress::default() }; 2]));
        let read = progresses.clone();
        let labels = RunLabels { job: "cluster".to_owned(), week: Some("2024-01-08".parse().unwrap()) };
        let state = move || {
            let (labels, progresses) = (labels.clone(), read.lock().unwrap().clone());
            RunState { labels, progresses, of_bytes: 1000, restarts: 2, last_success: Some(1_704_700_800) }
        };
        let metrics = Metrics::serve((Ipv4Addr::LOCALHOST, 0).into(), state).unwrap();
        // A client that sends nothing delays the others by the deadline at most.
        let silent = TcpStream::connect(metrics.address).unwrap();
        let first = get(metrics.address, "/metrics");
        drop(silent);
        assert!(first.starts_with("HTTP/1.1 200 OK\r\n"), "{first}");
        for line in [
            "# TYPE nigh_documents_total counter",
            "nigh_documents_total{job=\"cluster\",week=\"2024-01-08\",process=\"0\"} 7",
            "nigh_documents_total{job=\"cluster\",week=\"2024-01-08\",process=\"1\"} 7",
            "nigh_stage{job=\"cluster\",week=\"2024-01-08\",process=\"1\",stage=\"reading\"} 1",
            "nigh_stage_expected_steps{job=\"cluster\",week=\"2024-01-08\",process=\"1\"} 64",
            "nigh_input_expected_bytes{job=\"cluster\",week=\"2024-01-08\"} 1000",
            "nigh_restarts_total{job=\"cluster\",week=\"2024-01-08\"} 2",
            "nigh_last_success_timestamp_seconds{job=\"cluster\"} 1704700800",
            concat!("nigh_build_info{version=\"", env!("CARGO_PKG_VERSION"), "\"} 1"),
        ] {
            assert!(first.lines().any(|found| found == line), "{line}: {first}");
        }
        let length = first.split("Content-Length: ").nth(1).unwrap().split("\r\n").next().unwrap();
        assert_eq!(first.split("\r\n\r\n").nth(1).unwrap().len().to_string(), length);
        progresses.lock().unwrap()[1] = Progress { documents: 9, stage: Stage::Tables, ..Progress::default() };
        let second = get(metrics.address, "/metrics");
        assert!(second.contains("process=\"1\"} 9"), "{second}");
        assert!(second.contains("process=\"1\",stage=\"writing tables\"} 1"), "{second}");
        assert!(get(metrics.address, "/other").starts_with("HTTP/1.1 404"));
        let address = metrics.address;
        assert!(Metrics::serve(address, RunState::default).is_err(), "the address is taken");
        drop(metrics);
        Metrics::serve(address, RunState::default).unwrap();
    }

    #[test]
    fn a_run_that_fails_keeps_the_time_of_the_last_success() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("nigh.prom");
        assert_eq!(previous_success(&path), None);
        let labels = RunLabels { job: "cluster".to_owned(), week: Some("2024-01-08".parse().unwrap()) };
        let good = RunEnd {
            labels,
            is_success: true,
            ended: 1_704_700_800,
            last_success: Some(1_704_700_800),
            ..RunEnd::default()
        };
        write_file(&path, &good).unwrap();
        let bad = RunEnd { is_success: false, ended: 1_705_305_600, last_success: previous_success(&path), ..good };
        write_file(&path, &bad).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        for line in [
            "nigh_run_success{job=\"cluster\",week=\"2024-01-08\"} 0",
            "nigh_run_end_timestamp_seconds{job=\"cluster\",week=\"2024-01-08\"} 1705305600",
            "nigh_last_success_timestamp_seconds{job=\"cluster\"} 1704700800",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}: {text}");
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing unfinished is left");
        // Each family has its type once, before its values.
        let types: Vec<&str> = text.lines().filter(|line| line.starts_with("# TYPE")).collect();
        let distinct: BTreeSet<&&str> = types.iter().collect();
        assert_eq!(types.len(), distinct.len());
        assert!(write_file(&folder.path().join("none/nigh.prom"), &bad).unwrap_err().to_string().contains("nigh.prom"));
    }

    #[test]
    fn the_docs_list_the_metrics() {
        let progresses = vec![Progress::default()];
        let mut moves = LastMoves::default();
        moves.update(&progresses, Instant::now());
        let state = RunState { progresses, last_success: Some(1), ..RunState::default() };
        let texts = text(&state, &moves) + &end_text(&RunEnd { last_success: Some(1), ..RunEnd::default() });
        let of_code: BTreeSet<&str> =
            texts.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/running.md");
        let page = std::fs::read_to_string(page).unwrap();
        let named = page.match_indices("nigh_").map(|(at, _)| &page[at..]);
        let whole = named.map(|rest| rest.split(|c: char| c != '_' && !c.is_ascii_lowercase()).next());
        assert_eq!(whole.flatten().collect::<BTreeSet<&str>>(), of_code);
    }

    #[test]
    fn the_age_of_counters_counts_from_their_last_change() {
        let mut moves = LastMoves::default();
        let (begun, mut progress) = (Instant::now(), Progress::default());
        let after = |seconds| begun + Duration::from_secs(seconds);
        moves.update(&[progress], after(0));
        progress.memory = 5;
        moves.update(&[progress], after(7));
        assert_eq!(moves.0[0].age, 7.0, "memory is not a counter");
        progress.records = 1;
        moves.update(&[progress, progress], after(9));
        assert_eq!((moves.0[0].age, moves.0[1].age), (0.0, 0.0));
        moves.update(&[progress, progress], after(11));
        assert_eq!((moves.0[0].age, moves.0[1].age), (2.0, 2.0));
    }
}
