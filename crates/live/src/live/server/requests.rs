//! Requests: their paths, methods and bodies, and how answers look over HTTP.

use std::sync::atomic::Ordering;
use std::sync::mpsc::TrySendError;
use std::sync::{Arc, PoisonError};

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use hyper::{Method, Request, Response, StatusCode};
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tokio::time::timeout;

use super::metrics::metrics;
use super::unread::{AnswerBody, HeldAnswer};
use super::{Ask, Client, Job, Shared, show};
use crate::live::refusal::Refusal;

/// Documents of a cluster, changes and near documents, if the request does not say how many; and
/// the most of each.
const SOME: usize = 100;
const MOST: usize = 10_000;
/// The header with the id of a batch.
const BATCH_ID: &str = "batch-id";

/// Answers a request.
pub(super) async fn respond(request: Request<Incoming>, client: &Arc<Client>) -> Response<AnswerBody> {
    let shared = &client.shared;
    show(&shared.shown, |shown| shown.requests += 1);
    let methods = methods_of(request.uri().path());
    match answer(request, client).await {
        Ok((kind, body)) => response(StatusCode::OK, kind, AnswerBody::new(body, client.clone())),
        Err(refusal) => {
            show(&shared.shown, |shown| shown.refused += 1);
            let text = serde_json::json!({ "error": refusal.text }).to_string() + "\n";
            let status = StatusCode::from_u16(refusal.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            let mut response = response(status, JSON, AnswerBody::new(text.into(), client.clone()));
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

fn response(status: StatusCode, kind: &'static str, body: AnswerBody) -> Response<AnswerBody> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// The media type and the body of an answer.
async fn answer(request: Request<Incoming>, client: &Client) -> Result<(&'static str, Bytes), Refusal> {
    let shared = &client.shared;
    let path = request.uri().path();
    // The server leaves the body of its answer out.
    let method = if request.method() == Method::HEAD { &Method::GET } else { request.method() };
    if (method, path) == (&Method::GET, "/healthz") {
        let shown = *shared.shown.lock().unwrap_or_else(PoisonError::into_inner);
        if shown.is_broken {
            return Err(ended());
        }
        if shown.has_fault {
            return Err(Refusal::unable("a process is gone: all start again, and the store is read"));
        }
        return Ok((JSON, Bytes::from_static(b"{\"status\":\"ok\"}\n")));
    }
    if (method, path) == (&Method::GET, "/openapi.json") {
        return Ok((JSON, shared.description.clone()));
    }
    if let Some(refusal) = shared.access.refusal(request.headers()) {
        return Err(refusal);
    }
    if (method, path) == (&Method::GET, "/metrics") {
        let shown = *shared.shown.lock().unwrap_or_else(PoisonError::into_inner);
        return Ok(("text/plain; version=0.0.4; charset=utf-8", metrics(shown).into()));
    }
    let query = request.uri().query().unwrap_or_default().to_owned();
    // Only what a request has is looked at.
    let most = || number(&query, "most").map(|most| most.map_or(SOME, |most| (most as usize).min(MOST)));
    let exact = || truth(&query, "exact");
    let name = |prefix: &str| path.strip_prefix(prefix).filter(|name| !name.is_empty());
    let (kind, ask) = match (method, path) {
        (&Method::POST, "/documents") => {
            let id = request.headers().get(BATCH_ID);
            let id = id.map(|id| id.to_str().map(str::to_owned)).transpose();
            let id = id.map_err(|_| Refusal::bad("the header `Batch-Id` is not ASCII"))?;
            return queued(client, NDJSON, request, |lines| Ask::Add { id, lines }).await;
        }
        (&Method::POST, "/similar") => {
            let (most, exact) = (most()?, exact()?);
            return queued(client, NDJSON, request, |body| Ask::Similar { body, most, exact }).await;
        }
        (&Method::POST, "/commit") => (JSON, Ask::Commit),
        (&Method::GET, "/changes") => {
            (NDJSON, Ask::Changes { since: number(&query, "since")?.unwrap_or_default(), most: most()? })
        }
        (&Method::GET, _) if name("/documents/").is_some() => {
            (JSON, Ask::Document { name: decoded(name("/documents/").unwrap_or_default())?, exact: exact()? })
        }
        (&Method::DELETE, _) if name("/documents/").is_some() => {
            (JSON, Ask::Delete { name: decoded(name("/documents/").unwrap_or_default())? })
        }
        (&Method::GET, _) if name("/clusters/").is_some() => {
            let id = name("/clusters/").unwrap_or_default();
            let bad = || Refusal::bad(format!("/clusters/{id}: the id of a cluster is a number"));
            let id = Some(id).filter(|id| has_digits(id.strip_prefix('-').unwrap_or(id)));
            (JSON, Ask::Cluster { id: id.and_then(|id| id.parse().ok()).ok_or_else(bad)?, most: most()? })
        }
        _ => {
            let method = request.method();
            if let Some(methods) = methods_of(path) {
                return Err(Refusal { status: 405, text: format!("{path} is not for {method}: it is for {methods}") });
            }
            let all = "/documents, /documents/NAME, /clusters/ID, /similar, /changes, /commit, /healthz, /metrics and /openapi.json";
            return Err(Refusal::missing(format!("there is no {path}: there are {all}")));
        }
    };
    Ok((kind, asked(client, ask, Vec::new()).await?))
}

/// The methods of a path; `None` if there is no such path.
fn methods_of(path: &str) -> Option<&'static str> {
    let is_below = |folder: &str| path.strip_prefix(folder).is_some_and(|name| !name.is_empty());
    match path {
        "/documents" | "/similar" | "/commit" => Some("POST"),
        "/changes" | "/healthz" | "/metrics" | "/openapi.json" => Some("GET, HEAD"),
        _ if is_below("/documents/") => Some("GET, HEAD, DELETE"),
        _ if is_below("/clusters/") => Some("GET, HEAD"),
        _ => None,
    }
}

/// Reads the body of a request, and asks what `ask` makes of it. The bytes count until they are
/// applied.
async fn queued(
    client: &Client,
    kind: &'static str,
    request: Request<Incoming>,
    ask: impl FnOnce(Vec<u8>) -> Ask,
) -> Result<(&'static str, Bytes), Refusal> {
    let shared = &client.shared;
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
            let kib = |bytes: usize| bytes.div_ceil(1 << 10);
            // A part of a KiB counts once, however small the pieces are.
            let places = (kib(lines.len() + data.len()) - kib(lines.len())) as u32;
            if places > 0 {
                held.push(shared.budget.clone().try_acquire_many_owned(places).map_err(|_| busy())?);
            }
            lines.extend_from_slice(&data);
        }
        Ok(())
    };
    let most = shared.patience.body;
    let too_slow = || Refusal { status: 408, text: format!("the body took more than {} seconds", most.as_secs()) };
    timeout(most, read).await.map_err(|_| too_slow())??;
    Ok((kind, asked(client, ask(lines), held).await?))
}

/// Asks the service, and waits for the answer.
async fn asked(client: &Client, ask: Ask, held: Vec<OwnedSemaphorePermit>) -> Result<Bytes, Refusal> {
    let answer = put(&client.shared, ask, held)?;
    client.is_waiting.store(true, Ordering::Relaxed);
    let answer = answer.await;
    client.is_waiting.store(false, Ordering::Relaxed);
    answer.map_err(|_| ended())?.map(Bytes::from_owner)
}

/// Puts a question, which has bytes of the budget, into the queue.
pub(super) fn put(
    shared: &Shared,
    ask: Ask,
    held: Vec<OwnedSemaphorePermit>,
) -> Result<oneshot::Receiver<Result<HeldAnswer, Refusal>>, Refusal> {
    let (reply, answer) = oneshot::channel();
    match shared.jobs.try_send(Job { ask, reply, _held: held }) {
        Ok(()) => Ok(answer),
        Err(TrySendError::Full(_)) => Err(busy()),
        Err(TrySendError::Disconnected(_)) => Err(ended()),
    }
}

fn busy() -> Refusal {
    Refusal { status: 429, text: "too many requests wait: send it again later".to_owned() }
}

pub(super) fn ended() -> Refusal {
    Refusal::unable("the service has ended by a fault: start nigh again, which reads the journal")
}

/// Whether a text is digits only: a number that is read may begin with `+`.
fn has_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// A number in a query.
fn number(query: &str, name: &str) -> Result<Option<u64>, Refusal> {
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let Some((_, value)) = pairs.find(|(key, _)| *key == name) else { return Ok(None) };
    let number = Some(value).filter(|value| has_digits(value)).and_then(|value| value.parse().ok());
    let bad = || Refusal::bad(format!("{name}={value} is not a number from 0 to {}", i64::MAX));
    number.filter(|number| *number <= i64::MAX as u64).map(Some).ok_or_else(bad)
}

/// Whether a query has a flag: `true` or `false`.
fn truth(query: &str, name: &str) -> Result<bool, Refusal> {
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    match pairs.find(|(key, _)| *key == name) {
        None | Some((_, "false")) => Ok(false),
        Some((_, "true")) => Ok(true),
        Some((_, value)) => Err(Refusal::bad(format!("{name}={value} is neither true nor false"))),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_decoded() {
        assert_eq!(decoded("http:%2F%2fa.example/%C3%A9?").unwrap(), "http://a.example/é?");
        for bad in ["%", "%4", "%zz", "%FF"] {
            assert_eq!(decoded(bad).unwrap_err().status, 400, "{bad}");
        }
        assert_eq!(number("most=3&since=9", "since").unwrap(), Some(9));
        assert_eq!(number("most=3", "since").unwrap(), None);
        assert_eq!(["", "exact=true", "exact=false"].map(|query| truth(query, "exact").unwrap()), [false, true, false]);
        assert!(truth("exact=1", "exact").unwrap_err().text.contains("exact=1"));
        for bad in ["since=-1", "since=+1", "since=", "since=9223372036854775808"] {
            assert!(number(bad, "since").unwrap_err().text.contains(bad), "{bad}");
        }
        assert_eq!(number("since=9223372036854775807", "since").unwrap(), Some(i64::MAX as u64));
    }
}
