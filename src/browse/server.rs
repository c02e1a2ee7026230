//! The pages over HTTP/1.1, from this machine to this machine.
//!
//! One thread has the connections, and reads heads within a time and a size; bodies are not read.
//! Some others make pages: what is asked for waits in a queue of bounded length, and if that is
//! full, the answer is 503 with `Retry-After`. There are at most 64 connections at a time.
//!
//! Only GET is answered, and only if the `Host` is a name or an address of this machine: a page of
//! another site whose name was made to lead here (DNS rebinding) has another one. Browsers say
//! which requests come from other sites; these are refused, too.

use std::convert::Infallible;
use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result};
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{
    ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue,
    REFERRER_POLICY, RETRY_AFTER, X_CONTENT_TYPE_OPTIONS,
};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::sync::{Notify, Semaphore, oneshot};

use super::Browse;
use super::request::AskedPage;
use crate::live::{Refusal, is_loopback};

/// The most connections at a time; others wait.
const CONNECTIONS: usize = 64;
/// Threads that make pages, and the most pages that wait for them.
const THREADS: usize = 4;
const QUEUE: usize = 64;
/// How long a head may take, and a connection with all of its requests.
const HEAD_TIME: Duration = Duration::from_secs(10);
const CONNECTION_TIME: Duration = Duration::from_secs(5 * 60);
/// The most bytes of a head. An address has 64 KiB at most.
const HEAD_BYTES: usize = 128 << 10;

/// Nothing but the style of these pages and forms that lead to them.
const POLICY: &str =
    "default-src 'none'; style-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
const HTML: &str = "text/html; charset=utf-8";

/// How a user ends the program.
#[derive(Debug, Default)]
pub struct Stop {
    /// Whether it is to end.
    pub is_stopped: AtomicBool,
    signal: AtomicI32,
    notify: Notify,
}

impl Stop {
    /// Ends the server, or what is made before it begins.
    pub fn stop(&self, signal: i32) {
        self.signal.store(signal, Ordering::Relaxed);
        self.is_stopped.store(true, Ordering::Relaxed);
        self.notify.notify_one();
    }

    /// The signal that ended it; `None` if none did.
    pub fn signal(&self) -> Option<i32> {
        self.is_stopped.load(Ordering::Relaxed).then(|| self.signal.load(Ordering::Relaxed))
    }
}

/// A page on its way.
struct BrowserRequest {
    asked: Result<AskedPage, Refusal>,
    reply: oneshot::Sender<BrowserAnswer>,
}

/// A page, or why it is not there.
struct BrowserAnswer {
    status: u16,
    kind: &'static str,
    body: Bytes,
}

/// Answers until the program is to end.
///
/// # Errors
/// If the listener cannot be used.
pub fn serve(browse: &Browse<'_>, listener: TcpListener, stop: &Stop) -> Result<()> {
    let failed = "cannot listen";
    listener.set_nonblocking(true).context(failed)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context(failed)?;
    let listener = {
        let _entered = runtime.enter();
        tokio::net::TcpListener::from_std(listener).context(failed)?
    };
    let (jobs, queue) = sync_channel(QUEUE);
    let queue = Mutex::new(queue);
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| answer_all(browse, &queue));
        }
        runtime.spawn(accept(listener, Arc::new(jobs), HEAD_TIME));
        runtime.block_on(stop.notify.notified());
        // The connections have what the threads wait for.
        drop(runtime);
    });
    Ok(())
}

/// Makes pages, one after the other, until no connection can ask for one.
fn answer_all(browse: &Browse<'_>, queue: &Mutex<Receiver<BrowserRequest>>) {
    loop {
        let job = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(BrowserRequest { asked, reply }) = job else { return };
        // A client that has gone needs no answer.
        let _ = reply.send(answer(browse, asked));
    }
}

fn answer(browse: &Browse<'_>, asked: Result<AskedPage, Refusal>) -> BrowserAnswer {
    let kind = if matches!(asked, Ok(AskedPage::Style)) { "text/css; charset=utf-8" } else { HTML };
    let refusal = match asked {
        Err(refusal) => refusal,
        Ok(asked) => match browse.page(&asked) {
            Ok(page) => return BrowserAnswer { status: 200, kind, body: page.into() },
            Err(error) => error.downcast::<Refusal>().unwrap_or_else(|error| {
                Refusal::unable(format!(
                    "the store cannot be read: {error:#}. If it was changed meanwhile, start `nigh browse` again"
                ))
            }),
        },
    };
    BrowserAnswer { status: refusal.status, kind: HTML, body: browse.refusal(&refusal).into() }
}

/// Takes connections, and serves each. A head may take so long.
async fn accept(listener: tokio::net::TcpListener, jobs: Arc<SyncSender<BrowserRequest>>, head_time: Duration) {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let Ok(place) = places.clone().acquire_owned().await else { return };
        let Ok((socket, _)) = listener.accept().await else {
            // No file can be opened, say.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let _ = socket.set_nodelay(true);
        let jobs = jobs.clone();
        tokio::spawn(async move {
            let respond = service_fn(move |request| {
                let jobs = jobs.clone();
                async move { Ok::<_, Infallible>(respond(&request, &jobs).await) }
            });
            let mut builder = http1::Builder::new();
            builder.timer(TokioTimer::new()).header_read_timeout(head_time).max_buf_size(HEAD_BYTES);
            let connection = builder.serve_connection(TokioIo::new(socket), respond);
            // What goes wrong with a connection is the client's matter.
            let _ = tokio::time::timeout(CONNECTION_TIME, connection).await;
            drop(place);
        });
    }
}

async fn respond(request: &Request<Incoming>, jobs: &SyncSender<BrowserRequest>) -> Response<Full<Bytes>> {
    let answer = match check(request) {
        Err(refusal) => plain(&refusal),
        Ok(()) => {
            let (reply, answer) = oneshot::channel();
            let asked = AskedPage::of(request.uri().path(), request.uri().query());
            match jobs.try_send(BrowserRequest { asked, reply }) {
                Ok(()) => answer.await.unwrap_or_else(|_| plain(&Refusal::unable("the server ends"))),
                Err(TrySendError::Full(_)) => plain(&Refusal::unable("too many pages wait: ask again")),
                Err(TrySendError::Disconnected(_)) => plain(&Refusal::unable("the server ends")),
            }
        }
    };
    let mut response = Response::new(Full::new(answer.body));
    *response.status_mut() = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    let mut set = |name: HeaderName, value: &'static str| headers.insert(name, HeaderValue::from_static(value));
    set(CONTENT_TYPE, answer.kind);
    set(CONTENT_SECURITY_POLICY, POLICY);
    set(X_CONTENT_TYPE_OPTIONS, "nosniff");
    set(REFERRER_POLICY, "no-referrer");
    set(CACHE_CONTROL, "no-store");
    set(HeaderName::from_static("cross-origin-resource-policy"), "same-origin");
    set(HeaderName::from_static("cross-origin-opener-policy"), "same-origin");
    match answer.status {
        405 => _ = set(ALLOW, "GET"),
        503 => _ = set(RETRY_AFTER, "1"),
        _ => {}
    }
    response
}

/// A refusal as text: of what is not asked by a page of this program.
fn plain(refusal: &Refusal) -> BrowserAnswer {
    BrowserAnswer {
        status: refusal.status,
        kind: "text/plain; charset=utf-8",
        body: format!("{}\n", refusal.text).into(),
    }
}

/// Checks that a request is a GET from this machine, and not from a page of another site.
fn check(request: &Request<Incoming>) -> Result<(), Refusal> {
    check_origin(request.headers())?;
    if request.uri().authority().is_some_and(|of| HeaderValue::from_str(of.as_str()).is_ok_and(|of| !is_loopback(&of)))
    {
        return Err(other_host());
    }
    if request.method() != Method::GET {
        return Err(Refusal { status: 405, text: "only GET is answered: nothing here can be changed".to_owned() });
    }
    Ok(())
}

fn check_origin(headers: &HeaderMap) -> Result<(), Refusal> {
    let mut hosts = headers.get_all(HOST).into_iter();
    let Some(host) = hosts.next() else { return Err(Refusal::bad("the header `Host` is missing")) };
    if hosts.next().is_some() {
        return Err(Refusal::bad("the header `Host` is there twice"));
    }
    if !is_loopback(host) {
        return Err(other_host());
    }
    let is_own = headers.get("sec-fetch-site").is_none_or(|site| site == "same-origin" || site == "none");
    if !is_own {
        let text = "requests of other web pages are refused: paste the address into the browser".to_owned();
        return Err(Refusal { status: 403, text });
    }
    Ok(())
}

fn other_host() -> Refusal {
    Refusal { status: 403, text: "the `Host` must be a name or an address of this machine".to_owned() }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpStream;
    use std::time::Instant;

    use super::*;

    #[test]
    fn only_requests_of_this_machine_are_answered() {
        let status = |pairs: &[(&'static str, &'static str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in pairs {
                headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
            }
            check_origin(&headers).map_or_else(|refusal| refusal.status, |()| 200)
        };
        for host in ["127.0.0.1:7745", "localhost:7745", "LOCALHOST", "[::1]:7745"] {
            assert_eq!(status(&[("host", host)]), 200, "{host}");
        }
        for host in ["evil.example", "127.0.0.1.evil.example", "10.0.0.1", "", "localhost.evil.example:7745", "[::2]"] {
            assert_eq!(status(&[("host", host)]), 403, "{host}");
        }
        assert_eq!(status(&[]), 400);
        assert_eq!(status(&[("host", "localhost"), ("host", "evil.example")]), 400);
        for (site, expected) in [("same-origin", 200), ("none", 200), ("cross-site", 403), ("same-site", 403)] {
            assert_eq!(status(&[("host", "localhost"), ("sec-fetch-site", site)]), expected, "{site}");
        }
    }

    #[test]
    fn connections_that_say_nothing_are_closed() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let (jobs, _queue) = sync_channel(1);
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                accept(listener, Arc::new(jobs), Duration::from_millis(200)).await;
            });
        });
        for part in ["", "GET / HT", "GET / HTTP/1.1\r\nHost: loc"] {
            let begun = Instant::now();
            let mut socket = TcpStream::connect(address).unwrap();
            socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
            socket.write_all(part.as_bytes()).unwrap();
            // It is closed, or reset if bytes are unread.
            let _ = socket.read_to_end(&mut Vec::new());
            assert!(begun.elapsed() < Duration::from_secs(8), "less than the ten seconds of a server");
        }
    }
}
