//! The service over HTTP/1.1.
//!
//! One thread has the service and answers one request after the other. Another one has the connections: it reads heads and bodies, each
//! within a time and a size, and puts whole requests into a queue of bounded length and bytes. If the queue is full, the answer is 429 with
//! `Retry-After`. So bodies take a bounded memory whatever clients do, and slow clients delay no other one while they have less than 256
//! connections. Answers are not in that bound: each has at most the names of its batch, with those of their nearest documents.
//!
//! Without a token the address is one of this machine, and requests of web pages (with `Origin`, or for another `Host`) are refused:
//! a browser would send them for anyone.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::header::{
    ALLOW, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderMap, HeaderValue, ORIGIN, RETRY_AFTER, WWW_AUTHENTICATE,
};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use ring::digest::{Digest, SHA256, digest};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use super::batch::Limits;
use super::commit::Commitment;
use super::engine::Counts;
use super::refusal::Refusal;
use super::service::{Lines, Service};

/// The most connections at a time; others wait.
const CONNECTIONS: usize = 256;
/// The most requests that wait for the service, and the most bytes of all bodies.
const QUEUE: usize = 64;
const QUEUE_BYTES: usize = 256 << 20;
/// How long a head may take, and a body, and a connection with all of its requests.
const HEAD_TIME: Duration = Duration::from_secs(10);
const BODY_TIME: Duration = Duration::from_secs(60);
const CONNECTION_TIME: Duration = Duration::from_secs(15 * 60);
/// The most bytes of a head.
const HEAD_BYTES: usize = 64 << 10;
/// Documents of a cluster, changes and near documents, if the request does not say how many; and the most of each.
const SOME: usize = 100;
const MOST: usize = 10_000;
/// The description of the requests.
const OPENAPI: &[u8] = include_bytes!("openapi.json");
/// The header with the id of a batch.
const BATCH_ID: &str = "batch-id";

/// Who may send requests.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// The SHA-256 of the token that each request must have; of any token if none is given.
    token: Option<[u8; 32]>,
}

impl Access {
    /// Requests with this token; without one, those of this machine.
    ///
    /// # Errors
    /// If the token is shorter than 16 bytes or has others than printable characters of ASCII.
    pub fn new(token: Option<&str>) -> Result<Access> {
        if let Some(token) = token
            && (token.len() < 16 || !token.bytes().all(|byte| byte.is_ascii_graphic()))
        {
            bail!("the token has {} bytes: it must have 16 at least, all printable ASCII without blanks", token.len());
        }
        Ok(Access { token: token.map(sha256) })
    }

    /// Checks that a server may listen at an address.
    ///
    /// # Errors
    /// If other machines reach the address, and no token is needed.
    pub fn check(&self, address: SocketAddr) -> Result<()> {
        if self.token.is_none() && !address.ip().is_loopback() {
            bail!(
                "--listen {address}: without --token-file only an address of this machine is allowed, such as 127.0.0.1:7744"
            );
        }
        Ok(())
    }

    /// Why a request is refused; `None` if it is not.
    fn refusal(&self, headers: &HeaderMap) -> Option<Refusal> {
        let Some(wanted) = &self.token else {
            let is_of_this_machine = headers.get(HOST).is_none_or(is_loopback);
            let is_refused = headers.contains_key(ORIGIN) || !is_of_this_machine;
            let text = "requests of web pages, or for other hosts than this machine, need a token: start nigh with --token-file";
            return is_refused.then(|| Refusal { status: 403, text: text.to_owned() });
        };
        let given = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let given = given.and_then(|value| value.strip_prefix("Bearer ")).unwrap_or_default();
        // Hashes of one length, compared as a whole: the time depends on no byte of the token.
        let differs = sha256(given).iter().zip(wanted).fold(0, |differs, (a, b)| differs | (a ^ b));
        let text = "the header `Authorization: Bearer TOKEN` with the token of the server is missing";
        (std::hint::black_box(differs) != 0).then(|| Refusal { status: 401, text: text.to_owned() })
    }
}

fn sha256(text: &str) -> [u8; 32] {
    let digest: Digest = digest(&SHA256, text.as_bytes());
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest.as_ref());
    bytes
}

/// Whether a `Host` is a name or an address of this machine.
fn is_loopback(host: &HeaderValue) -> bool {
    let host = host.to_str().unwrap_or("?");
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// What is asked of the service.
#[derive(Debug)]
enum Ask {
    Add { id: Option<String>, lines: Vec<u8> },
    Delete { name: String },
    Document(String),
    Cluster { id: i64, most: usize },
    Similar { body: Vec<u8>, most: usize },
    Changes { since: u64, most: usize },
    Commit,
}

/// Runs the commands of a commit.
pub type Committer = Box<dyn FnMut(&Commitment) -> Result<()> + Send>;

/// A request on its way to the service, and back.
struct Job {
    ask: Ask,
    reply: oneshot::Sender<Result<Lines, Refusal>>,
    /// The share of the budget that its body takes, also if the client has gone meanwhile.
    _held: Vec<OwnedSemaphorePermit>,
}

/// The numbers of `/metrics`.
#[derive(Clone, Copy, Debug, Default)]
struct Shown {
    counts: Counts,
    journal: u64,
    requests: u64,
    refused: u64,
}

/// What connections share.
struct Shared {
    access: Access,
    limits: Limits,
    jobs: SyncSender<Job>,
    /// Bytes of bodies that may still come, in KiB.
    budget: Arc<Semaphore>,
    shown: Arc<Mutex<Shown>>,
}

/// A server, which works until the process ends.
pub struct Server {
    /// The address of the listener.
    pub address: SocketAddr,
    threads: [JoinHandle<()>; 2],
}

impl Server {
    /// Serves at an address. If the port is 0, the system chooses one.
    ///
    /// # Errors
    /// If the address is in use or not one of this machine, or [not allowed](Access::check).
    pub fn start(
        mut service: Service,
        address: SocketAddr,
        access: Access,
        limits: Limits,
        mut committer: Committer,
    ) -> Result<Server> {
        access.check(address)?;
        let failed = || format!("cannot listen at {address}: use another --listen");
        let listener = std::net::TcpListener::bind(address).with_context(failed)?;
        listener.set_nonblocking(true).with_context(failed)?;
        let address = listener.local_addr().with_context(failed)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().with_context(failed)?;
        let (jobs, queue) = sync_channel(QUEUE);
        let shown = Arc::new(Mutex::new(Shown::default()));
        show(&shown, |shown| (shown.counts, shown.journal) = service.counts());
        let budget = Arc::new(Semaphore::new(QUEUE_BYTES >> 10));
        let shared = Arc::new(Shared { access, limits, jobs, budget, shown: shown.clone() });
        let listener = {
            let _entered = runtime.enter();
            tokio::net::TcpListener::from_std(listener).with_context(failed)?
        };
        let answers = std::thread::spawn(move || answer_all(&mut service, &mut committer, &queue, &shown));
        let connections = std::thread::spawn(move || runtime.block_on(accept(listener, shared)));
        Ok(Server { address, threads: [answers, connections] })
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

/// Answers the requests of the queue, one after the other.
fn answer_all(service: &mut Service, committer: &mut Committer, queue: &Receiver<Job>, shown: &Mutex<Shown>) {
    for Job { ask, reply, _held } in queue {
        let answer = match ask {
            Ask::Add { id, lines } => service.add(id.as_deref(), &lines),
            Ask::Delete { name } => service.delete(&name),
            Ask::Document(name) => service.document(&name),
            Ask::Cluster { id, most } => service.cluster(id, most),
            Ask::Similar { body, most } => service.similar(&body, most),
            Ask::Changes { since, most } => service.changes(since, most),
            Ask::Commit => service.commit(committer),
        };
        show(shown, |shown| (shown.counts, shown.journal) = service.counts());
        // A client that has gone needs no answer.
        let _ = reply.send(answer);
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
            let respond = service_fn(move |request| {
                let shared = shared.clone();
                async move { Ok::<_, Infallible>(respond(request, &shared).await) }
            });
            let mut builder = http1::Builder::new();
            builder.timer(TokioTimer::new()).header_read_timeout(HEAD_TIME).max_buf_size(HEAD_BYTES);
            let connection = builder.serve_connection(TokioIo::new(socket), respond);
            // What goes wrong with a connection is the client's matter, or that of the network.
            let _ = tokio::time::timeout(CONNECTION_TIME, connection).await;
            drop(place);
        });
    }
}

/// Answers a request.
async fn respond(request: Request<Incoming>, shared: &Shared) -> Response<Full<Bytes>> {
    show(&shared.shown, |shown| shown.requests += 1);
    let methods = methods_of(request.uri().path());
    match answer(request, shared).await {
        Ok((kind, body)) => response(StatusCode::OK, kind, body),
        Err(refusal) => {
            show(&shared.shown, |shown| shown.refused += 1);
            let text = serde_json::json!({ "error": refusal.text }).to_string() + "\n";
            let status = StatusCode::from_u16(refusal.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            let mut response = response(status, JSON, text.into());
            let header = match refusal.status {
                401 => Some((WWW_AUTHENTICATE, "Bearer")),
                405 => methods.map(|methods| (ALLOW, methods)),
                429 | 503 => Some((RETRY_AFTER, "1")),
                _ => None,
            };
            response.headers_mut().extend(header.map(|(name, value)| (name, HeaderValue::from_static(value))));
            response
        }
    }
}

const JSON: &str = "application/json";
const NDJSON: &str = "application/x-ndjson";

fn response(status: StatusCode, kind: &'static str, body: Bytes) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// The media type and the body of an answer.
async fn answer(request: Request<Incoming>, shared: &Shared) -> Result<(&'static str, Bytes), Refusal> {
    let path = request.uri().path();
    if (request.method(), path) == (&Method::GET, "/healthz") {
        return Ok((JSON, Bytes::from_static(b"{\"status\":\"ok\"}\n")));
    }
    if (request.method(), path) == (&Method::GET, "/openapi.json") {
        return Ok((JSON, Bytes::from_static(OPENAPI)));
    }
    if let Some(refusal) = shared.access.refusal(request.headers()) {
        return Err(refusal);
    }
    if (request.method(), path) == (&Method::GET, "/metrics") {
        let shown = *shared.shown.lock().unwrap_or_else(PoisonError::into_inner);
        return Ok(("text/plain; version=0.0.4; charset=utf-8", metrics(shown).into()));
    }
    let query = request.uri().query().unwrap_or_default().to_owned();
    let most = number(&query, "most")?.map_or(SOME, |most| (most as usize).min(MOST));
    let name = |prefix: &str| path.strip_prefix(prefix).filter(|name| !name.is_empty());
    let (kind, ask) = match (request.method(), path) {
        (&Method::POST, "/documents") => {
            let id = request.headers().get(BATCH_ID);
            let id = id.map(|id| id.to_str().map(str::to_owned)).transpose();
            let id = id.map_err(|_| Refusal::bad("the header `Batch-Id` is not ASCII"))?;
            return queued(shared, NDJSON, request, |lines| Ask::Add { id, lines }).await;
        }
        (&Method::POST, "/similar") => {
            return queued(shared, NDJSON, request, |body| Ask::Similar { body, most }).await;
        }
        (&Method::POST, "/commit") => (JSON, Ask::Commit),
        (&Method::GET, "/changes") => {
            (NDJSON, Ask::Changes { since: number(&query, "since")?.unwrap_or_default(), most })
        }
        (&Method::GET, _) if name("/documents/").is_some() => {
            (JSON, Ask::Document(decoded(name("/documents/").unwrap_or_default())?))
        }
        (&Method::DELETE, _) if name("/documents/").is_some() => {
            (JSON, Ask::Delete { name: decoded(name("/documents/").unwrap_or_default())? })
        }
        (&Method::GET, _) if name("/clusters/").is_some() => {
            let id = name("/clusters/").unwrap_or_default();
            let id =
                id.parse().map_err(|_| Refusal::bad(format!("/clusters/{id}: the id of a cluster is a number")))?;
            (JSON, Ask::Cluster { id, most })
        }
        (method, _) => {
            if let Some(methods) = methods_of(path) {
                return Err(Refusal { status: 405, text: format!("{path} is not for {method}: it is for {methods}") });
            }
            let all = "/documents, /documents/NAME, /clusters/ID, /similar, /changes, /commit, /healthz, /metrics and /openapi.json";
            return Err(Refusal::missing(format!("there is no {path}: there are {all}")));
        }
    };
    Ok((kind, asked(shared, ask)?.await?))
}

/// The methods of a path; `None` if there is no such path.
fn methods_of(path: &str) -> Option<&'static str> {
    let is_below = |folder: &str| path.strip_prefix(folder).is_some_and(|name| !name.is_empty());
    match path {
        "/documents" | "/similar" | "/commit" => Some("POST"),
        "/changes" | "/healthz" | "/metrics" | "/openapi.json" => Some("GET"),
        _ if is_below("/documents/") => Some("GET, DELETE"),
        _ if is_below("/clusters/") => Some("GET"),
        _ => None,
    }
}

/// Reads the body of a request, and asks what `ask` makes of it. The bytes count until they are applied.
async fn queued(
    shared: &Shared,
    kind: &'static str,
    request: Request<Incoming>,
    ask: impl FnOnce(Vec<u8>) -> Ask,
) -> Result<(&'static str, Bytes), Refusal> {
    let limit = shared.limits.batch_bytes;
    let mut body = request.into_body();
    let too_large = || Refusal::too_large(format!("the body has more than {limit} bytes: send it in parts"));
    if hyper::body::Body::size_hint(&body).lower() > limit as u64 {
        return Err(too_large());
    }
    let mut held = Vec::new();
    let mut lines = Vec::new();
    let read = async {
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| Refusal::bad(format!("the body breaks off: {error}")))?;
            let Ok(data) = frame.into_data() else { continue };
            if lines.len() + data.len() > limit {
                return Err(too_large());
            }
            let places = data.len().div_ceil(1 << 10) as u32;
            held.push(shared.budget.clone().try_acquire_many_owned(places).map_err(|_| busy())?);
            lines.extend_from_slice(&data);
        }
        Ok(())
    };
    let too_slow = || Refusal { status: 408, text: format!("the body took more than {} seconds", BODY_TIME.as_secs()) };
    tokio::time::timeout(BODY_TIME, read).await.map_err(|_| too_slow())??;
    Ok((kind, asked_with(shared, ask(lines), held)?.await?))
}

/// Puts a question into the queue. The future is its answer.
fn asked(shared: &Shared, ask: Ask) -> Result<impl Future<Output = Result<Bytes, Refusal>> + use<>, Refusal> {
    asked_with(shared, ask, Vec::new())
}

/// As [`asked`], for a question that has bytes of the budget.
fn asked_with(
    shared: &Shared,
    ask: Ask,
    held: Vec<OwnedSemaphorePermit>,
) -> Result<impl Future<Output = Result<Bytes, Refusal>> + use<>, Refusal> {
    let (reply, answer) = oneshot::channel();
    match shared.jobs.try_send(Job { ask, reply, _held: held }) {
        Ok(()) => Ok(async move {
            let answer = answer.await.map_err(|_| ended())?;
            answer.map(Bytes::from_owner)
        }),
        Err(TrySendError::Full(_)) => Err(busy()),
        Err(TrySendError::Disconnected(_)) => Err(ended()),
    }
}

fn busy() -> Refusal {
    Refusal { status: 429, text: "too many requests wait: send it again later".to_owned() }
}

fn ended() -> Refusal {
    Refusal::unable("the service has ended by a fault: start nigh again, which reads the journal")
}

/// A number in a query.
fn number(query: &str, name: &str) -> Result<Option<u64>, Refusal> {
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let Some((_, value)) = pairs.find(|(key, _)| *key == name) else { return Ok(None) };
    value.parse().map(Some).map_err(|_| Refusal::bad(format!("{name}={value} is not a number from 0")))
}

/// A part of a path without its percent signs.
fn decoded(part: &str) -> Result<String, Refusal> {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.bytes();
    let bad =
        || Refusal::bad(format!("{part}: `%` is not followed by two hexadecimal digits, or the name is not UTF-8"));
    while let Some(byte) = rest.next() {
        let byte = match byte {
            b'%' => {
                let digits = [rest.next(), rest.next()].map(|digit| (digit.unwrap_or_default() as char).to_digit(16));
                let [Some(high), Some(low)] = digits else { return Err(bad()) };
                (high * 16 + low) as u8
            }
            byte => byte,
        };
        bytes.push(byte);
    }
    String::from_utf8(bytes).map_err(|_| bad())
}

/// The metrics for Prometheus.
fn metrics(shown: Shown) -> String {
    let Shown { counts, journal, requests, refused } = shown;
    let mut text = String::new();
    for (name, kind, help, value) in [
        ("nigh_live_documents", "gauge", "Documents.", counts.documents),
        ("nigh_live_vectors", "gauge", "Distinct vectors of documents.", counts.nodes),
        ("nigh_live_clusters", "gauge", "Clusters of two documents or more.", counts.clusters),
        (
            "nigh_live_records_total",
            "counter",
            "Records taken since the start, with those of the journal.",
            counts.records,
        ),
        ("nigh_live_changes_total", "counter", "Changes of clusters since the start.", counts.changes),
        ("nigh_live_journal_bytes", "gauge", "Bytes of the journal.", journal),
        ("nigh_live_requests_total", "counter", "Requests.", requests),
        ("nigh_live_refused_total", "counter", "Requests that were refused.", refused),
    ] {
        // Writing to a string does not fail.
        let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_refused_while_too_many_wait() {
        let (jobs, queue) = sync_channel(2);
        let (access, limits) = (Access::default(), Limits::default());
        let shared = Shared { access, limits, jobs, budget: Arc::new(Semaphore::new(1)), shown: Arc::default() };
        let refused = || asked(&shared, Ask::Commit).err().map(|refusal| refusal.status);
        assert_eq!([refused(), refused(), refused()], [None, None, Some(429)]);
        queue.recv().unwrap();
        assert_eq!([refused(), refused()], [None, Some(429)]);
        drop(queue);
        assert_eq!(refused(), Some(503));
    }

    #[test]
    fn a_method_that_a_path_does_not_have_is_refused_with_those_that_it_has() {
        use std::io::{Read as _, Write as _};
        let folder = tempfile::tempdir().unwrap();
        let (store, limits) = (crate::state::Store::at(folder.path()), Limits::default());
        let (service, _) = Service::open(&store, None, 1, limits).unwrap();
        let address = ([127, 0, 0, 1], 0).into();
        let server = Server::start(service, address, Access::default(), limits, Box::new(|_| Ok(()))).unwrap();
        for (request, allowed) in [
            ("TRACE /commit", "POST"),
            ("PUT /documents/x", "GET, DELETE"),
            ("POST /clusters/1", "GET"),
            ("POST /metrics", "GET"),
        ] {
            let mut socket = std::net::TcpStream::connect(server.address).unwrap();
            write!(socket, "{request} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
            let mut answer = String::new();
            socket.read_to_string(&mut answer).unwrap();
            assert!(
                answer.starts_with("HTTP/1.1 405") && answer.contains(&format!("allow: {allowed}\r\n")),
                "{answer}"
            );
        }
    }

    #[test]
    fn names_are_decoded() {
        assert_eq!(decoded("http:%2F%2fa.example/%C3%A9?").unwrap(), "http://a.example/é?");
        for bad in ["%", "%4", "%zz", "%FF"] {
            assert_eq!(decoded(bad).unwrap_err().status, 400, "{bad}");
        }
        assert_eq!(number("most=3&since=9", "since").unwrap(), Some(9));
        assert_eq!(number("most=3", "since").unwrap(), None);
        assert!(number("since=-1", "since").unwrap_err().text.contains("since=-1"));
    }

    #[test]
    fn only_requests_with_the_token_or_of_this_machine_are_allowed() {
        let headers = |pairs: &[(&'static str, &'static str)]| -> HeaderMap {
            let pair = |(name, value): &(&'static str, &'static str)| {
                (hyper::header::HeaderName::from_static(name), HeaderValue::from_static(value))
            };
            pairs.iter().map(pair).collect()
        };
        let status = |access: &Access, pairs: &[(&'static str, &'static str)]| {
            access.refusal(&headers(pairs)).map_or(200, |refusal| refusal.status)
        };
        let open = Access::new(None).unwrap();
        for (host, wanted) in [
            ("127.0.0.1:7744", 200),
            ("localhost", 200),
            ("[::1]:80", 200),
            ("evil.example", 403),
            ("127.0.0.1.evil.example:80", 403),
            ("10.0.0.1", 403),
        ] {
            assert_eq!(status(&open, &[("host", host)]), wanted, "{host}");
        }
        assert_eq!(status(&open, &[("host", "localhost"), ("origin", "http://localhost")]), 403);
        let closed = Access::new(Some("0123456789abcdef")).unwrap();
        assert_eq!(status(&closed, &[("authorization", "Bearer 0123456789abcdef"), ("origin", "x")]), 200);
        for wrong in ["Bearer 0123456789abcdeg", "Bearer ", "0123456789abcdef", "Bearer 0123456789abcdef0"] {
            assert_eq!(status(&closed, &[("authorization", wrong)]), 401, "{wrong}");
        }
        assert_eq!(status(&closed, &[]), 401);
        assert!(Access::new(Some("short")).is_err());
        let anywhere: SocketAddr = "0.0.0.0:1".parse().unwrap();
        assert!(open.check(anywhere).unwrap_err().to_string().contains("--token-file"));
        closed.check(anywhere).unwrap();
    }
}
