//! The service over HTTP/1.1.
//!
//! One thread has the service and answers one request after the other. Another one has the
//! connections: it reads heads and bodies, each within a time and a size, and puts whole requests
//! into a queue of bounded length and bytes. If the queue is full, the answer is 429 with
//! `Retry-After`. So it is if 256 MiB of answers are not read yet, when a request is to be carried
//! out. So bodies and answers take a bounded memory whatever clients do: an answer has the names of
//! its batch at most, as many canonical ones, and 16 MiB of those of near documents. Slow clients
//! delay no other one while they have less than 256 connections, and a client that reads no part of
//! an answer for a minute is given up.
//!
//! Without a token the address is one of this machine, and requests of web pages (with `Origin`, or
//! for another `Host`) are refused: a browser would send them for anyone. With a certificate each
//! connection begins with the handshake of TLS.
//!
//! In reading order: `requests` (paths, methods and bodies), `description` (of the requests, by
//! OpenAPI), `access` (who may send requests), `tls` (certificates), `unread` (answers until they
//! are read), `metrics`.

mod access;
mod description;
mod metrics;
mod requests;
mod tls;
mod unread;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use bytes::Bytes;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use self::description::description;
use self::metrics::Shown;
use self::requests::respond;
use self::unread::{HeldAnswer, UnreadAnswers};
use super::batch::Limits;
use super::follow::{Follower, Part};
use super::refusal::Refusal;
use super::service::{Commits, Service, line};

pub use self::access::Access;
pub use self::access::is_loopback;
pub use self::tls::Tls;

/// The most connections at a time; others wait.
const CONNECTIONS: usize = 256;
/// The most requests that wait for the service, and the most bytes of all bodies.
const QUEUE: usize = 64;
const QUEUE_BYTES: usize = 256 << 20;
/// The bytes of answers that are not read yet, with which no other request is carried out.
const UNREAD_BYTES: usize = 256 << 20;
/// How often a followed folder is looked at.
const LOOK: Duration = Duration::from_millis(500);
/// The most bytes of a head.
const HEAD_BYTES: usize = 64 << 10;

/// How long clients may take. The time in which the service works for them does not count.
#[derive(Clone, Copy, Debug)]
struct Patience {
    /// For a head, and for the handshake of TLS.
    head: Duration,
    /// For a body, for reading a part of an answer, and for reading an answer after the time of the
    /// connection is over.
    body: Duration,
    /// For a connection with all of its requests.
    connection: Duration,
    /// How often a connection is looked at.
    tick: Duration,
}

impl Default for Patience {
    fn default() -> Patience {
        let [head, body, connection, tick] = [10, 60, 15 * 60, 1].map(Duration::from_secs);
        Patience { head, body, connection, tick }
    }
}

/// What is asked of the service.
#[derive(Debug)]
enum Ask {
    Add { id: Option<String>, lines: Vec<u8> },
    Delete { name: String },
    Document { name: String, exact: bool },
    Cluster { id: i64, most: usize },
    Similar { body: Vec<u8>, most: usize, exact: bool },
    Changes { since: u64, most: usize },
    Commit,
    Follow(Part),
}

/// A request on its way to the service, and back.
struct Job {
    ask: Ask,
    reply: oneshot::Sender<Result<HeldAnswer, Refusal>>,
    /// The share of the budget that its body takes, also if the client has gone meanwhile.
    _held: Vec<OwnedSemaphorePermit>,
}

/// What connections share.
struct Shared {
    access: Access,
    /// What `/openapi.json` gives.
    description: Bytes,
    limits: Limits,
    patience: Patience,
    jobs: SyncSender<Job>,
    /// Bytes of bodies that may still come, in KiB.
    budget: Arc<Semaphore>,
    shown: Arc<Mutex<Shown>>,
}

/// A connection.
struct Client {
    shared: Arc<Shared>,
    /// Whether it waits for the service.
    is_waiting: AtomicBool,
    /// Whether an answer is being written, and how many parts of answers it took.
    is_sent_to: AtomicBool,
    parts: AtomicU64,
}

/// A server, which works until the process ends.
pub struct Server {
    /// The address of the listener.
    pub address: SocketAddr,
    threads: [JoinHandle<()>; 2],
    jobs: SyncSender<Job>,
}

impl Server {
    /// Serves at an address. If the port is 0, the system chooses one.
    ///
    /// # Errors
    /// If the address is in use or not one of this machine, or [not allowed](Access::check).
    pub fn start(
        service: Service,
        address: SocketAddr,
        access: Access,
        limits: Limits,
        commits: Commits,
    ) -> Result<Server> {
        let bounds = (Patience::default(), UnreadAnswers::new(UNREAD_BYTES));
        Server::start_with(bounds, service, address, access, limits, commits)
    }

    fn start_with(
        (patience, unread): (Patience, UnreadAnswers),
        mut service: Service,
        address: SocketAddr,
        access: Access,
        limits: Limits,
        mut commits: Commits,
    ) -> Result<Server> {
        access.check(address)?;
        let failed = || format!("cannot listen at {address}: use another --listen");
        let listener = std::net::TcpListener::bind(address).with_context(failed)?;
        listener.set_nonblocking(true).with_context(failed)?;
        let address = listener.local_addr().with_context(failed)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().with_context(failed)?;
        let (jobs, queue) = sync_channel(QUEUE);
        let shown = Arc::new(Mutex::new(Shown::default()));
        show(&shown, |shown| shown.update(&service));
        let budget = Arc::new(Semaphore::new(QUEUE_BYTES >> 10));
        let (shown_here, jobs_here) = (shown.clone(), jobs.clone());
        let description = description(service.documents(), access.needs_token())?;
        let shared = Arc::new(Shared { access, description, limits, patience, jobs, budget, shown: shown_here });
        let listener = {
            let _entered = runtime.enter();
            tokio::net::TcpListener::from_std(listener).with_context(failed)?
        };
        let answers = std::thread::spawn(move || answer_all(&mut service, &mut commits, &queue, (&shown, &unread)));
        let connections = std::thread::spawn(move || runtime.block_on(accept(listener, shared)));
        Ok(Server { address, threads: [answers, connections], jobs: jobs_here })
    }

    /// Takes what comes to a folder, besides requests. `say` is told what is passed over, and what
    /// cannot be read.
    pub fn follow(&self, mut follower: Follower, say: impl Fn(&str) + Send + 'static) {
        let jobs = self.jobs.clone();
        std::thread::spawn(move || {
            let mut before = Vec::new();
            loop {
                let faults = follower.look(&mut |part| {
                    part.bad.iter().for_each(|reason| say(reason));
                    let (reply, answer) = oneshot::channel();
                    let job = Job { ask: Ask::Follow(part.clone()), reply, _held: Vec::new() };
                    jobs.send(job).map_err(|_| requests::ended())?;
                    answer.blocking_recv().map_err(|_| requests::ended())?.map(drop)
                });
                // The same faults are found at each look.
                faults.iter().filter(|fault| !before.contains(*fault)).for_each(|fault| say(fault));
                before = faults;
                std::thread::sleep(LOOK);
            }
        });
    }

    /// Waits until a thread ends, which it does by a panic only.
    pub fn wait(self) {
        for thread in self.threads {
            // Its message was printed.
            let _ = thread.join();
        }
    }
}

fn show(shown: &Mutex<Shown>, change: impl FnOnce(&mut Shown)) {
    change(&mut shown.lock().unwrap_or_else(PoisonError::into_inner));
}

/// Answers the requests of the queue, one after the other, and commits when it is time. While too
/// many answers are not read yet, requests are refused.
fn answer_all(
    service: &mut Service,
    commits: &mut Commits,
    queue: &Receiver<Job>,
    (shown, unread): (&Mutex<Shown>, &UnreadAnswers),
) {
    loop {
        let job = match commits.wait(service).into_iter().chain(service.wait()).min() {
            Some(wait) => queue.recv_timeout(wait),
            None => queue.recv().map_err(RecvTimeoutError::from),
        };
        // Shown before all start again and the store is read, which may take minutes.
        if service.look() {
            show(shown, |shown| shown.update(service));
        }
        match job {
            Ok(Job { ask, reply, _held }) => {
                // No client reads the answers to what came from a followed folder.
                let refusal = unread.refusal().filter(|_| !matches!(ask, Ask::Follow(_)));
                let answer = refusal.map_or(Ok(()), Err).and_then(|()| match ask {
                    Ask::Add { id, lines } => service.add(id.as_deref(), &lines),
                    Ask::Delete { name } => service.delete(&name),
                    Ask::Document { name, exact } => service.document(&name, exact),
                    Ask::Cluster { id, most } => service.cluster(id, most),
                    Ask::Similar { body, most, exact } => service.similar(&body, most, exact),
                    Ask::Changes { since, most } => service.changes(since, most),
                    Ask::Follow(part) => service.add_followed(&part),
                    Ask::Commit => commits.commit(service).and_then(|committed| line(&committed)),
                });
                show(shown, |shown| shown.update(service));
                // A client that has gone needs no answer.
                let _ = reply.send(answer.map(|lines| unread.hold(lines)));
            }
            Err(RecvTimeoutError::Timeout) => service.mend(),
            Err(RecvTimeoutError::Disconnected) => return,
        }
        commits.commit_if_due(service);
        show(shown, |shown| shown.update(service));
    }
}

/// Takes connections, and serves each.
async fn accept(listener: tokio::net::TcpListener, shared: Arc<Shared>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let Ok(place) = places.clone().acquire_owned().await else { return };
        let Ok((socket, _)) = listener.accept().await else {
            // No file can be opened, say.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        // An answer is written at once: it has nothing to wait for.
        let _ = socket.set_nodelay(true);
        let shared = shared.clone();
        tokio::spawn(async move {
            match shared.access.tls() {
                None => serve(TokioIo::new(socket), shared).await,
                Some(tls) => {
                    let handshake = TlsAcceptor::from(tls.config()).accept(socket);
                    // Who does not finish it is not served.
                    if let Ok(Ok(socket)) = timeout(shared.patience.head, handshake).await {
                        serve(TokioIo::new(socket), shared).await;
                    }
                }
            }
            drop(place);
        });
    }
}

/// Serves the requests of a connection, one after the other.
///
/// When its time is over, it takes no further request. An answer that is still to come is waited
/// for: a commit may take long. If no part of an answer is read for the time of a body, the
/// connection is closed.
async fn serve<Io: hyper::rt::Read + hyper::rt::Write + Unpin>(io: Io, shared: Arc<Shared>) {
    let patience = shared.patience;
    let (is_waiting, is_sent_to, parts) = (AtomicBool::new(false), AtomicBool::new(false), AtomicU64::new(0));
    let client = Arc::new(Client { shared, is_waiting, is_sent_to, parts });
    let respond = {
        let client = client.clone();
        service_fn(move |request| {
            let client = client.clone();
            async move { Ok::<_, Infallible>(respond(request, &client).await) }
        })
    };
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(patience.head).max_buf_size(HEAD_BYTES);
    let mut connection = pin!(builder.serve_connection(io, respond));
    let begun = Instant::now();
    // Parts that were taken, and since when no other one was.
    let (mut taken, mut since) = (0, begun);
    // For the rest of a body, and then for the answer.
    let mut left = 2 * patience.body;
    // What goes wrong with a connection is the client's matter, or that of the network.
    while left > Duration::ZERO && timeout(patience.tick, connection.as_mut()).await.is_err() {
        let parts = client.parts.load(Ordering::Relaxed);
        if parts != taken || !client.is_sent_to.load(Ordering::Relaxed) {
            (taken, since) = (parts, Instant::now());
        }
        if since.elapsed() >= patience.body {
            return;
        }
        if begun.elapsed() >= patience.connection {
            connection.as_mut().graceful_shutdown();
            if !client.is_waiting.load(Ordering::Relaxed) {
                left = left.saturating_sub(patience.tick);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpStream;
    use std::time::Instant;

    use super::*;
    use crate::live::service::Commitment;

    /// A server of ids, whose commits are made so.
    fn serve_in(
        folder: &tempfile::TempDir,
        patience: Patience,
        access: Access,
        mut commit: impl FnMut() + Send + 'static,
    ) -> SocketAddr {
        let (store, limits) = (crate::state::Store::at(folder.path()), Limits::default());
        let (service, _) = Service::open(&store, Some(crate::records::DocumentKey::Id), 1, limits).unwrap();
        let committer = Box::new(move |_: &Commitment| {
            commit();
            Ok(())
        });
        let commits = Commits::new(Default::default(), committer, Box::new(|_| {}));
        let bounds = (patience, UnreadAnswers::new(UNREAD_BYTES));
        Server::start_with(bounds, service, ([127, 0, 0, 1], 0).into(), access, limits, commits).unwrap().address
    }

    /// Sends some bytes; returns the connection, and what came until the server closed it.
    fn sent(address: SocketAddr, bytes: &str) -> (TcpStream, String) {
        let mut socket = TcpStream::connect(address).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        socket.write_all(bytes.as_bytes()).unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).unwrap();
        (socket, answer)
    }

    #[test]
    fn a_long_commit_is_answered_and_an_idle_connection_ends() {
        let folder = tempfile::tempdir().unwrap();
        let short = Duration::from_millis(200);
        let patience = Patience { head: Duration::from_secs(20), body: short, connection: short, tick: short / 10 };
        let address = serve_in(&folder, patience, Access::default(), move || std::thread::sleep(10 * short));
        let add = "{\"id\":1,\"text\":\"one two\"}";
        let head = |method: &str, length: usize| {
            format!("{method} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n")
        };
        // The commit takes ten times as long as a connection may. Neither request asks for the
        // connection to be closed.
        let (_, answer) = sent(address, &(head("POST /documents", add.len()) + add + &head("POST /commit", 0)));
        let (taken, committed) = answer.split_once("HTTP/1.1 503").unwrap();
        assert!(taken.starts_with("HTTP/1.1 200 OK") && taken.contains("\"new\":true"), "{answer}");
        // It made no table, so the journal stays.
        assert!(committed.contains("the last week does not have the documents of the journal"), "{answer}");
        let journal = std::fs::read(Service::journal_path(folder.path())).unwrap();
        assert!(journal.windows(add.len()).any(|bytes| bytes == add.as_bytes()));
        // An idle connection, and one with a body that does not end.
        for bytes in [String::new(), head("POST /documents", 100) + add] {
            let begun = Instant::now();
            sent(address, &bytes);
            assert!(begun.elapsed() < Duration::from_secs(15), "it ends before the time of a head");
        }
    }

    #[test]
    fn heads_and_handshakes_that_do_not_end_are_given_up() {
        let folder = tempfile::tempdir().unwrap();
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let [certificate, key] = ["pem", "key"].map(|name| folder.path().join(name));
        std::fs::write(&certificate, made.cert.pem()).unwrap();
        std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        let tls = Tls::read(&certificate, &key, |_| {}).unwrap();
        let patience = Patience { head: Duration::from_millis(200), ..Patience::default() };
        // The begin of a hello of TLS 1.3, and nothing at all.
        let hello = &[22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3][..];
        let cases = [
            (Access::default(), [&b""[..], b"POST /docu", b"GET / HTTP/1.1\r\nX: "]),
            (Access::default().with_tls(tls), [&b""[..], &hello[..1], hello]),
        ];
        for (access, parts) in cases {
            let store = tempfile::tempdir().unwrap();
            let address = serve_in(&store, patience, access, || {});
            for part in parts {
                let begun = Instant::now();
                let mut socket = TcpStream::connect(address).unwrap();
                socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
                socket.write_all(part).unwrap();
                let mut answer = Vec::new();
                // It is closed, or reset if bytes are unread.
                let _ = socket.read_to_end(&mut answer);
                assert!(begun.elapsed() < Duration::from_secs(8), "less than the ten seconds of a server");
                assert!(!answer.starts_with(b"HTTP/1.1 2"), "{:?}", String::from_utf8_lossy(&answer));
            }
        }
    }

    #[test]
    fn answers_that_nobody_reads_are_bounded_and_given_up() {
        let folder = tempfile::tempdir().unwrap();
        let (store, limits) = (crate::state::Store::at(folder.path()), Limits::default());
        let (mut service, _) = Service::open(&store, Some(crate::records::DocumentKey::Id), 1, limits).unwrap();
        // More bytes than the system keeps for a connection.
        for batch in 0..24 {
            let line = |at| format!("{{\"id\":\"{}\",\"text\":\"one two\"}}\n", format!("{batch} {at} ").repeat(1300));
            service.add(None, (0..100).map(line).collect::<String>().as_bytes()).unwrap();
        }
        let commits = Commits::new(Default::default(), Box::new(|_| Ok(())), Box::new(|_| {}));
        let short = Duration::from_secs(2);
        let bounds = (Patience { body: short, tick: short / 20, ..Patience::default() }, UnreadAnswers::new(1 << 20));
        let address = ([127, 0, 0, 1], 0).into();
        let server = Server::start_with(bounds, service, address, Access::default(), limits, commits).unwrap();
        let get = "GET /clusters/-1?most=10000 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        let mut unread = TcpStream::connect(server.address).unwrap();
        unread.write_all(get.as_bytes()).unwrap();
        // The first byte is there, so the answer waits.
        let mut first = [0];
        unread.read_exact(&mut first).unwrap();
        let begun = Instant::now();
        let refused = sent(server.address, get).1;
        assert!(refused.starts_with("HTTP/1.1 429") && refused.contains("wait to be read"), "{refused:.200}");
        assert!(refused.contains("retry-after: 1"), "{refused:.200}");
        // What needs no answer of the service is answered.
        assert!(
            sent(server.address, &get.replace("/clusters/-1?most=10000", "/healthz")).1.starts_with("HTTP/1.1 200")
        );
        let answer = loop {
            let answer = sent(server.address, get).1;
            if answer.starts_with("HTTP/1.1 200") {
                break answer;
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "{answer:.200}");
            std::thread::sleep(short / 20);
        };
        assert!(begun.elapsed() >= short / 2, "it was waited for");
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("content-length: {}", body.len())), "{head}");
        // The names have 16 MiB at most.
        let cluster: serde_json::Value = serde_json::from_str(body).unwrap();
        let names = cluster["documents"].as_array().unwrap().iter().filter_map(|name| name.as_str());
        let bytes: usize = names.map(str::len).sum();
        assert!(cluster["size"] == 2400 && (15 << 20..=16 << 20).contains(&bytes), "{bytes}");
        // The connection was closed before all of the answer was written.
        let mut rest = Vec::new();
        let _ = unread.read_to_end(&mut rest);
        assert!(rest.len() < body.len());
    }

    #[test]
    fn a_server_that_takes_nothing_more_does_not_say_that_it_is_well() {
        let folder = tempfile::tempdir().unwrap();
        let journal = Service::journal_path(folder.path());
        let address = serve_in(&folder, Patience::default(), Access::default(), || {});
        let ask = |request: &str, body: &str| {
            let length = body.len();
            let head = format!("{request} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n");
            sent(address, &format!("{head}Content-Length: {length}\r\n\r\n{body}")).1
        };
        // No command is needed for these lines, and the journal cannot begin again after the
        // commit.
        let line = "{\"id\":1,\"text\":\"one two\"}\n{\"id\":1,\"delete\":true}";
        assert!(ask("POST /documents", line).starts_with("HTTP/1.1 200"));
        std::fs::create_dir(journal.with_extension("tmp")).unwrap();
        assert!(ask("GET /healthz", "").starts_with("HTTP/1.1 200"));
        for (request, body) in [("POST /commit", ""), ("POST /documents", line), ("GET /healthz", "")] {
            let answer = ask(request, body);
            assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("start nigh again"), "{request}: {answer}");
        }
    }

    #[test]
    fn small_pieces_of_a_body_count_by_their_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let address = serve_in(&folder, Patience::default(), Access::default(), || {});
        let line = format!("{{\"id\":1,\"text\":\"{}\"}}", "x".repeat(QUEUE_BYTES >> 10));
        // Each piece has one byte: there are more of them than KiB in the budget.
        let chunks: String = line.chars().map(|byte| format!("1\r\n{byte}\r\n")).collect();
        let head =
            "POST /documents HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n";
        let (_, answer) = sent(address, &format!("{head}{chunks}0\r\n\r\n"));
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }

    #[test]
    fn requests_are_refused_while_too_many_wait() {
        let (jobs, queue) = sync_channel(2);
        let (access, limits) = (Access::default(), Limits::default());
        let patience = Patience::default();
        let (budget, description) = (Arc::new(Semaphore::new(1)), Bytes::new());
        let shared = Shared { access, description, limits, patience, jobs, budget, shown: Arc::default() };
        let refused = || requests::put(&shared, Ask::Commit, Vec::new()).err().map(|refusal| refusal.status);
        assert_eq!([refused(), refused(), refused()], [None, None, Some(429)]);
        queue.recv().unwrap();
        assert_eq!([refused(), refused()], [None, Some(429)]);
        drop(queue);
        assert_eq!(refused(), Some(503));
    }

    #[test]
    fn a_head_is_that_of_the_answer_to_get() {
        let folder = tempfile::tempdir().unwrap();
        let address = serve_in(&folder, Patience::default(), Access::default(), || {});
        for path in ["/healthz", "/openapi.json", "/metrics", "/changes", "/documents/x"] {
            let [get, head] = ["GET", "HEAD"].map(|method| {
                let head = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
                sent(address, &head).1
            });
            let status = |answer: &str| answer.split(' ').nth(1).map(str::to_owned);
            let (_, body) = head.split_once("\r\n\r\n").unwrap();
            assert_eq!((status(&head), body), (status(&get), ""), "{head}");
            assert_eq!(head.contains("content-type"), get.contains("content-type"), "{head}");
        }
    }

    #[test]
    fn a_method_that_a_path_does_not_have_is_refused_with_those_that_it_has() {
        let folder = tempfile::tempdir().unwrap();
        let address = serve_in(&folder, Patience::default(), Access::default(), || {});
        for (request, allowed) in [
            ("TRACE /commit", "POST"),
            // What a query has is not looked at before.
            ("PUT /commit?most=x", "POST"),
            ("PUT /documents/x", "GET, HEAD, DELETE"),
            ("HEAD /commit", "POST"),
            ("POST /clusters/1", "GET, HEAD"),
            ("POST /metrics", "GET, HEAD"),
        ] {
            let head = format!("{request} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
            let (_, answer) = sent(address, &head);
            assert!(
                answer.starts_with("HTTP/1.1 405") && answer.contains(&format!("allow: {allowed}\r\n")),
                "{answer}"
            );
        }
    }
}
