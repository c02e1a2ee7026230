//! How far a run is, for Prometheus: text over HTTP, one family a counter, one line a process.
//!
//! The process that shows progress answers for all of a run, from what they tell it: one address, whatever the number of
//! processes and wherever they are. One request at a time, each within a deadline; whoever asks can change nothing.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::watch::Progress;

/// How long a request and its answer may take together.
const DEADLINE: Duration = Duration::from_secs(2);
/// The longest head of a request.
const HEAD: usize = 8 << 10;
/// How often it is looked whether the run is over, or somebody asks.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A server that answers until it is dropped.
pub struct Metrics {
    /// Where it listens.
    pub address: SocketAddr,
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Metrics {
    /// Answers at an address with what `read` says of every process of a run; the system chooses a port where it is 0.
    ///
    /// # Errors
    /// Where the address is taken, or none of this machine.
    pub fn serve(address: SocketAddr, read: impl Fn() -> Vec<Progress> + Send + 'static) -> Result<Metrics> {
        let failed = || format!("cannot serve metrics at {address}: take another --metrics");
        let listener = TcpListener::bind(address).with_context(failed)?;
        let address = listener.local_addr().with_context(failed)?;
        listener.set_nonblocking(true).with_context(failed)?;
        let ended = Arc::new(AtomicBool::new(false));
        let over = ended.clone();
        let thread = std::thread::spawn(move || {
            let mut ages = Ages::default();
            while !over.load(Ordering::Acquire) {
                let progresses = read();
                ages.see(&progresses, Instant::now());
                match listener.accept() {
                    // Whoever hangs up has lost interest.
                    Ok((socket, _)) => _ = answer(socket, &text(&progresses, &ages)),
                    Err(_) => std::thread::park_timeout(LOOK_EVERY),
                }
            }
        });
        Ok(Metrics { address, ended, thread: Some(thread) })
    }
}

impl Drop for Metrics {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A server that panicked has nothing more to say.
            let _ = thread.join();
        }
    }
}

/// When the counters of each process were last seen to move.
#[derive(Default)]
struct Ages(Vec<(Progress, Option<Instant>, f64)>);

impl Ages {
    fn see(&mut self, progresses: &[Progress], now: Instant) {
        self.0.resize(progresses.len(), (Progress::default(), None, 0.0));
        for ((last, at, age), progress) in self.0.iter_mut().zip(progresses) {
            // What a process uses changes without it getting anywhere.
            let counters = progress.counters();
            if at.is_none() || *last != counters {
                (*last, *at) = (counters, Some(now));
            }
            *age = at.map_or(0.0, |at| (now - at).as_secs_f64());
        }
    }
}

/// One family: name, kind, help, and its value for a process.
type Family = (&'static str, &'static str, &'static str, fn(&Progress) -> u64);

const FAMILIES: [Family; 7] = [
    ("nigh_input_bytes_total", "counter", "Bytes of input taken, as stored.", |p| p.bytes),
    ("nigh_records_total", "counter", "Records read.", |p| p.records),
    ("nigh_documents_total", "counter", "Pages fingerprinted.", |p| p.documents),
    ("nigh_rejects_total", "counter", "Bad records.", |p| p.rejects),
    ("nigh_exchanged_bytes_total", "counter", "Bytes of records given to exchange.", |p| p.exchanged),
    ("nigh_exchanged_records_total", "counter", "Records given to exchange.", |p| p.exchanged_records),
    ("nigh_anonymous_memory_bytes", "gauge", "Anonymous memory of the process.", |p| p.memory),
];

/// The counters in the text format.
fn text(progresses: &[Progress], ages: &Ages) -> String {
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
    head(&mut text, "nigh_stage", "gauge", "1 for the part of the run that a process is in.");
    for (process, progress) in progresses.iter().enumerate() {
        let _ = writeln!(text, "nigh_stage{{process=\"{process}\",stage=\"{}\"}} 1", progress.stage.title());
    }
    head(&mut text, "nigh_unchanged_seconds", "gauge", "Seconds since a counter of the process was seen to move.");
    for (process, (_, _, age)) in ages.0.iter().enumerate() {
        let _ = writeln!(text, "nigh_unchanged_seconds{{process=\"{process}\"}} {age:.3}");
    }
    text
}

/// Reads a request, and answers it.
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
        // Somebody who says nothing is not waited for longer than the deadline.
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
    fn ages_tell_since_when_nothing_moved() {
        let mut ages = Ages::default();
        let (begun, mut progress) = (Instant::now(), Progress::default());
        let after = |seconds| begun + Duration::from_secs(seconds);
        ages.see(&[progress], after(0));
        progress.memory = 5;
        ages.see(&[progress], after(7));
        assert_eq!(ages.0[0].2, 7.0, "memory is no counter");
        progress.records = 1;
        ages.see(&[progress, progress], after(9));
        assert_eq!((ages.0[0].2, ages.0[1].2), (0.0, 0.0));
        ages.see(&[progress, progress], after(11));
        assert_eq!((ages.0[0].2, ages.0[1].2), (2.0, 2.0));
    }
}
