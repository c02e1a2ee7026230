//! Peers that do not belong to a run are refused with the reason and do not disturb it; two
//! processes over TLS give the same tables.
//!
//! The test is the supervisor of processes that it starts itself. Everything is on loopback.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use nigh::launch::wire::{key_files, keys};
use nigh::launch::{Deadlines, Identity, Roster, join, listen};
use serde_json::{Value, json};

use crate::program::{Made, nigh, run, run_well};

/// Longer than anything takes that does not hang, and than the deadlines of the program.
const PATIENCE: Duration = Duration::from_secs(120);

fn patient() -> Deadlines {
    Deadlines { join: PATIENCE, handshake: PATIENCE, hello: PATIENCE }
}

/// One process of the program, with the test as its supervisor.
struct Process {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    stderr: Receiver<String>,
    said: Arc<Mutex<String>>,
    address: SocketAddr,
}

impl Process {
    fn start(me: usize, identity: &Identity, plan: &Value) -> Process {
        let mut command = nigh(&["worker"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (mut stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let folder = env!("CARGO_MANIFEST_DIR");
        let start = json!({
            "me": me, "folder": folder, "listen": "127.0.0.1:0", "last_port": 0, "identity": identity, "plan": plan
        });
        writeln!(stdin, "{start}").unwrap();
        let mut stdout = BufReader::new(stdout);
        // Its counters come first, and then where it listens.
        let ready = (&mut stdout).lines().map_while(Result::ok).find_map(|line| {
            let report: Value = serde_json::from_str(&line).unwrap();
            report["ready"]["address"].as_str().map(|address| address.parse().unwrap())
        });
        let address = ready.expect("it says where it listens");
        let (sender, stderr) = channel();
        let errors = BufReader::new(child.stderr.take().unwrap());
        std::thread::spawn(move || errors.lines().map_while(Result::ok).for_each(|line| drop(sender.send(line))));
        Process { child, stdin, stdout, stderr, said: Arc::default(), address }
    }

    fn tell(&mut self, roster: &Roster) {
        writeln!(self.stdin, "{}", serde_json::to_string(roster).unwrap()).unwrap();
    }

    /// Waits until its stderr has all these words.
    fn hears(&self, words: &[&str]) {
        let begun = Instant::now();
        loop {
            let mut said = self.said.lock().unwrap();
            if words.iter().all(|word| said.contains(word)) {
                return;
            }
            let left = PATIENCE.saturating_sub(begun.elapsed());
            match self.stderr.recv_timeout(left) {
                Ok(line) => said.extend([&line, "\n"]),
                Err(_) => panic!("{words:?} are not in what the process said:\n{said}"),
            }
        }
    }

    /// What it reports when it ends.
    fn ends(&mut self) -> Value {
        for line in (&mut self.stdout).lines() {
            let report: Value = serde_json::from_str(&line.unwrap()).unwrap();
            if report.get("ended").is_some() {
                return report;
            }
        }
        Value::Null
    }

    fn code(&mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // An error says that it ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Records between two processes, and how many must arrive.
fn plan() -> Value {
    json!({ "bench": { "bench": "exchange", "task": { "records": 300_000, "workers": 1 } } })
}

/// Joins with a roster and the keys of a process, and says why it could not.
fn impostor(me: usize, roster: &Roster, folder: &Path, keys_of: usize) -> String {
    let credentials = Identity::Keys(folder.to_owned()).credentials(keys_of).unwrap();
    let (listener, _) = listen("127.0.0.1:0".parse().unwrap(), &credentials).unwrap();
    format!("{:#}", join(me, &listener, roster, &credentials, patient()).err().expect("it was refused"))
}

/// A client of TLS that shows no certificate.
fn without_certificate(folder: &Path, address: SocketAddr) -> String {
    use rustls::pki_types::pem::PemObject;
    let mut roots = rustls::RootCertStore::empty();
    roots.add(rustls::pki_types::CertificateDer::from_pem_file(folder.join("authority.pem")).unwrap()).unwrap();
    let ring = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(ring).with_safe_default_protocol_versions().unwrap();
    let config = config.with_root_certificates(roots).with_no_client_auth();
    let name = key_files::name(0).try_into().unwrap();
    let mut connection = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
    let mut socket = TcpStream::connect(address).unwrap();
    let mut stream = rustls::Stream::new(&mut connection, &mut socket);
    let wrote = stream.write_all(b"let me in").and_then(|()| stream.flush());
    wrote.and_then(|()| stream.read_exact(&mut [0])).unwrap_err().to_string()
}

fn assert_words(text: &str, words: &[&str]) {
    words.iter().for_each(|word| assert!(text.contains(word), "{word}: {text}"));
}

#[test]
fn intruders_are_refused_with_reasons_while_the_processes_of_the_run_work() {
    let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    keys::make(folder.path(), 3, 1).unwrap();
    keys::make(elsewhere.path(), 2, 1).unwrap();
    let identity = Identity::Keys(folder.path().to_owned());
    let mut processes: Vec<Process> = (0..2).map(|me| Process::start(me, &identity, &plan())).collect();
    let roster = Roster::new(7, 3, processes.iter().map(|process| process.address).collect());
    let door = roster.addresses[0];
    processes[0].tell(&roster);
    // These hold their places until the end: one is silent, one sends a byte now and then.
    let silent = TcpStream::connect(door).unwrap();
    let dripping = std::thread::spawn(move || {
        let mut socket = TcpStream::connect(door).unwrap();
        let begun = Instant::now();
        // The header of a TLS record, and then its bytes: it ends when the program closes it.
        for byte in [22, 3, 1, 63, 0].into_iter().chain(std::iter::repeat(0)) {
            if begun.elapsed() > PATIENCE || socket.write_all(&[byte]).is_err() {
                break;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        begun.elapsed()
    });
    assert_words(&without_certificate(folder.path(), door), &["CertificateRequired"]);
    processes[0].hears(&["process 0 refused a connection from 127.0.0.1", "no certificate was shown"]);
    let pools = impostor(1, &roster, elsewhere.path(), 1);
    assert_words(&pools, &["process 1 cannot join process 0", "not of the authority of this pool"]);
    processes[0].hears(&["the other side refuses the connection"]);
    let wrong = impostor(1, &roster, folder.path(), 2);
    let reason = "that of process-2.nigh.internal, not of process-1.nigh.internal";
    assert_words(&wrong, &["process 1 cannot join process 0", "it refuses", reason]);
    processes[0].hears(&[reason]);
    let straggler = impostor(1, &Roster { epoch: 2, ..roster.clone() }, folder.path(), 1);
    let reason = "process 1 is of epoch 2, process 0 is of epoch 3";
    assert_words(&straggler, &["process 1 cannot join process 0", "it refuses", reason]);
    processes[0].hears(&[reason]);
    let mut garbage = TcpStream::connect(door).unwrap();
    garbage.write_all(&[0xff; 1000]).unwrap();
    processes[0].hears(&["this is not TLS"]);
    // The run itself: the other process comes, and all records arrive.
    processes[1].tell(&roster);
    let ended = processes[0].ends();
    let measured: Value =
        serde_json::from_str(ended["ended"]["done"].as_str().unwrap_or_else(|| panic!("{ended}"))).unwrap();
    assert_eq!(measured["counts"], json!({ "received": 300_000 }));
    for process in &mut processes {
        assert_eq!(process.code(), Some(0));
    }
    assert!(dripping.join().unwrap() < PATIENCE, "it was closed");
    drop(silent);
}

#[test]
fn a_process_that_sends_too_long_a_frame_is_disconnected_and_reported() {
    let folder = tempfile::tempdir().unwrap();
    keys::make(folder.path(), 2, 1).unwrap();
    let identity = Identity::Keys(folder.path().to_owned());
    let mut process = Process::start(0, &identity, &plan());
    let credentials = identity.credentials(1).unwrap();
    let (listener, own) = listen("127.0.0.1:0".parse().unwrap(), &credentials).unwrap();
    let roster = Roster::new(7, 0, vec![process.address, own]);
    process.tell(&roster);
    let mut links = join(1, &listener, &roster, &credentials, patient()).unwrap();
    let link = links[0].as_mut().unwrap();
    let mut header = [0; 48];
    header[32..40].copy_from_slice(&(1u64 << 60).to_be_bytes());
    link.write_all(&header).unwrap();
    link.flush().unwrap();
    process.hears(&["refused a frame of 1152921504606846976 bytes", "at most 1073741824"]);
    assert_eq!(process.code(), Some(70));
}

#[test]
fn the_keys_of_one_command_serve_a_run() {
    let folder = tempfile::tempdir().unwrap();
    let pool = folder.path().join("pool");
    let pool = pool.to_str().unwrap();
    let made = run_well(&["pool", "keys", "--processes", "2", "--out", pool]);
    assert_words(&made.stdout, &["keys for 2 processes", "a new authority", "365 days", "authority.key to yourself"]);
    let again = run_well(&["pool", "keys", "--processes", "2", "--out", pool]);
    assert_words(&again.stdout, &["all 2 processes have keys already", "the existing authority"]);
    assert_eq!(run(&["pool", "keys", "--processes", "2", "--out", pool, "--days", "0"]).code, Some(2));
    let config = folder.path().join("config.toml");
    std::fs::write(&config, format!("workers = 1\nprocesses = 2\nkeys = {pool:?}\n")).unwrap();
    let config = config.to_str().unwrap();
    let (alone, joined) = (Made::new(&["--workers", "1"]), Made::new(&["--config", config]));
    let (alone, joined) = (alone.tables(), joined.tables());
    assert!(alone.len() >= 12, "{} tables are too few to compare", alone.len());
    assert!(alone == joined, "tables over TLS differ");
    // Without its key a process does not begin, and says which file it wants.
    std::fs::remove_file(folder.path().join("pool/process-001.key")).unwrap();
    let store = folder.path().join("store");
    let failed = run(&["run", "jobs/example.toml", "-q", "--config", config, "--store", store.to_str().unwrap()]);
    assert_eq!(failed.code, Some(1));
    assert_words(&failed.stderr, &["process 1 cannot join by TLS", "process-001.key", "nigh pool keys"]);
}

#[test]
fn exchange_is_measured_over_tls_and_plain() {
    let arguments = ["bench", "exchange", "--records", "200000", "--json"];
    let figures =
        |more: &[&str]| -> Value { serde_json::from_str(&run_well(&[&arguments, more].concat()).stdout).unwrap() };
    let both = figures(&[]);
    let plain = figures(&["--plain"]);
    for key in ["processes", "seconds", "records_per_second", "bytes_per_second", "cpu_s"] {
        assert!(both[key].is_number() && plain[key].is_number(), "{key}: {both} {plain}");
    }
    assert_eq!((&both["records"], &both["complete"], &both["plain"]), (&json!(200_000), &json!(true), &json!(false)));
    assert_eq!((&plain["complete"], &plain["plain"]), (&json!(true), &json!(true)));
    assert!(both["times_plain"].is_number() && plain["times_plain"].is_null(), "{both} {plain}");
}
