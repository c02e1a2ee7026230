//! The metrics of a run for Prometheus: text over HTTP, one family for each counter, one line for each process.
//!
//! The process that shows progress serves the metrics of all processes, which report their counters to it. So a run has one
//! address, for any number of processes on any machines. The server handles one request at a time, each within a deadline.
//! Requests change nothing.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::watch::Progress;

/// The most time that reading a request may take; the response has as long again.
const DEADLINE: Duration = Duration::from_secs(2);
/// The longest head of a request, in bytes.
const HEAD: usize = 8 << 10;
/// The pause between two checks for a request and for the end of the run.
const POLL_EVERY: Duration = Duration::from_millis(50);

/// A server of metrics, which runs until this is dropped.
pub struct Metrics {
    /// The address of the listener.
    pub address: SocketAddr,
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Metrics {
    /// Serves metrics at an address. `read` returns the progress of every process of the run. If the port is 0, the system
    /// chooses one.
    ///
    /// # Errors
    /// If the address is in use, or is not one of this machine.
    pub fn serve(address: SocketAddr, read: impl Fn() -> Vec<Progress> + Send + 'static) -> Result<Metrics> {
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
                    let progresses = read();
                    moves.update(&progresses, Instant::now());
                    match listener.accept() {
                        // An error here means that the client has hung up: it needs no response.
                        Ok((socket, _)) => _ = answer(socket, &text(&progresses, &moves)),
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

const FAMILIES: [MetricFamily; 7] = [
    ("nigh_input_bytes_total", "counter", "Bytes of input read, as stored.", |p| p.bytes),
    ("nigh_records_total", "counter", "Records read.", |p| p.records),
    ("nigh_documents_total", "counter", "Pages fingerprinted.", |p| p.documents),
    ("nigh_rejects_total", "counter", "Bad records.", |p| p.rejects),
    ("nigh_exchanged_bytes_total", "counter", "Bytes of records sent between workers.", |p| p.exchanged),
    ("nigh_exchanged_records_total", "counter", "Records sent between workers.", |p| p.exchanged_records),
    ("nigh_anonymous_memory_bytes", "gauge", "Anonymous memory of the process.", |p| p.memory),
];

/// The metrics in Prometheus' text format.
fn text(progresses: &[Progress], moves: &LastMoves) -> String {
    let mut text = String::new();
    let head = |text: &mut String, name: &str, kind: &str, help: &str| {
        // Writing to a string does not fail.
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    };
    for (name, kind, help, value) in FAMILIES {
        head(&mut text, name, kind, help);
        for (process, progress) in progresses.iter().enumerate() {
            let _ = writeln!(text, "{name}{{process=\"{process}\"}} {}", value(progress));
        }
    }
    head(&mut text, "nigh_stage", "gauge", "1 for the stage of the run that a process is in.");
    for (process, progress) in progresses.iter().enumerate() {
        let _ = writeln!(text, "nigh_stage{{process=\"{process}\",stage=\"{}\"}} 1", progress.stage.title());
    }
    head(&mut text, "nigh_unchanged_seconds", "gauge", "Seconds since a counter of the process last changed.");
    for (process, last) in moves.0.iter().enumerate() {
        let _ = writeln!(text, "nigh_unchanged_seconds{{process=\"{process}\"}} {:.3}", last.age);
    }
    text
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
        let progresses = Arc::new(Mutex::new(vec![Progress { documents: 7, ..Progress::default() }; 2]));
        let read = progresses.clone();
        let metrics = Metrics::serve((Ipv4Addr::LOCALHOST, 0).into(), move || read.lock().unwrap().clone()).unwrap();
        // A client that sends nothing delays the others by the deadline at most.
        let silent = TcpStream::connect(metrics.address).unwrap();
        let first = get(metrics.address, "/metrics");
        drop(silent);
        assert!(first.starts_with("HTTP/1.1 200 OK\r\n"), "{first}");
        for line in [
            "# TYPE nigh_documents_total counter",
            "nigh_documents_total{process=\"0\"} 7",
            "nigh_documents_total{process=\"1\"} 7",
            "nigh_stage{process=\"1\",stage=\"reading\"} 1",
        ] {
            assert!(first.lines().any(|found| found == line), "{line}: {first}");
        }
        let length = first.split("Content-Length: ").nth(1).unwrap().split("\r\n").next().unwrap();
        assert_eq!(first.split("\r\n\r\n").nth(1).unwrap().len().to_string(), length);
        progresses.lock().unwrap()[1] = Progress { documents: 9, stage: Stage::Tables, ..Progress::default() };
        let second = get(metrics.address, "/metrics");
        assert!(second.contains("nigh_documents_total{process=\"1\"} 9"), "{second}");
        assert!(second.contains("nigh_stage{process=\"1\",stage=\"writing tables\"} 1"), "{second}");
        assert!(get(metrics.address, "/other").starts_with("HTTP/1.1 404"));
        let address = metrics.address;
        assert!(Metrics::serve(address, Vec::new).is_err(), "the address is taken");
        drop(metrics);
        Metrics::serve(address, Vec::new).unwrap();
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
