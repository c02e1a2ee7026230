//! Clients that harm a live process, by intent or not: what they take of its memory, how long
//! others wait for them, and what they are told.
//!
//! Slow clients, and bodies that end early, are in `live`; handshakes in `live_tls`; times of heads
//! and connections in the server's own tests.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::live::{Live, Response, response, wait_for};

const MIB: u64 = 1 << 20;
const HEAD: &str = "Host: localhost\r\n";

/// Opens a connection, which waits for no answer longer than only a hang takes.
fn connect(live: &Live) -> TcpStream {
    let socket = TcpStream::connect(live.address).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    socket.set_write_timeout(Some(Duration::from_secs(60))).unwrap();
    socket
}

/// Sends a head, and then the same piece again and again until the server closes the connection or
/// `most` bytes are sent. Returns the bytes that were sent, and the begin of the answer, which may
/// be lost with the connection.
fn flood(live: &Live, head: &str, piece: &[u8], most: u64) -> (u64, String) {
    let mut socket = connect(live);
    socket.write_all(head.as_bytes()).unwrap();
    let mut sent = 0;
    while sent < most && socket.write_all(piece).is_ok() {
        sent += piece.len() as u64;
    }
    let mut answer = [0; 12];
    let read = socket.read(&mut answer).unwrap_or_default();
    (sent, String::from_utf8_lossy(&answer[..read]).into_owned())
}

/// A number of /proc/PID/status, in bytes.
fn memory(live: &Live, name: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", live.child.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

/// Sends bytes on a connection of their own, and reads all that comes.
fn answers(live: &Live, bytes: &[u8]) -> String {
    let mut socket = connect(live);
    // A request that is refused need not be read.
    let _ = socket.write_all(bytes);
    let mut answer = Vec::new();
    let _ = socket.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

fn post(live: &Live, body: &[u8]) -> Response {
    live.send("POST", "/documents", &[], body)
}

#[test]
fn what_clients_send_takes_a_bounded_memory() {
    let folder = tempfile::tempdir().unwrap();
    let live = Live::start(&folder.path().join("store"), &["--by", "id"]);
    assert_eq!(post(&live, b"{\"id\":1,\"text\":\"a b c\"}").status, 200);
    let before = memory(&live, "VmHWM");
    let head = format!("POST /documents HTTP/1.1\r\n{HEAD}");

    // A line of a gigabyte, in chunks and with its length. What the sockets hold is sent, too.
    let mut chunk = format!("{MIB:x}\r\n").into_bytes();
    chunk.resize(chunk.len() + MIB as usize, b'x');
    chunk.extend_from_slice(b"\r\n");
    let chunked = format!("{head}Transfer-Encoding: chunked\r\n\r\n");
    for (head, piece) in
        [(&chunked, &chunk), (&format!("{head}Content-Length: {}\r\n\r\n", 1 << 30), &vec![b'x'; 1 << 20])]
    {
        let (sent, answer) = flood(&live, head, piece, 1 << 30);
        assert!(sent < 64 * MIB, "{sent} bytes were taken");
        assert!(answer.is_empty() || answer == "HTTP/1.1 413", "{answer}");
    }
    // What is no part of a body, without an end: what a chunk has besides its size, what comes
    // after the last one, a path, a header.
    for (head, piece) in [
        (format!("{chunked}1;"), "e".repeat(1 << 16)),
        (chunked.clone(), "1;eeeeeeeeeeee\r\nx\r\n".repeat(1 << 12)),
        (format!("{chunked}0\r\n"), "X: y\r\n".repeat(1 << 13)),
        ("GET /".to_owned(), "a".repeat(1 << 16)),
        (format!("GET / HTTP/1.1\r\n{HEAD}X: "), "y".repeat(1 << 16)),
    ] {
        let (sent, answer) = flood(&live, &head, piece.as_bytes(), 256 * MIB);
        assert!(sent < 32 * MIB, "{head:?}: {sent} bytes were taken");
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{head:?}: {answer}");
    }
    // Requests whose answers are not read: no more are taken than the sockets hold.
    let mut unread = connect(&live);
    unread.set_write_timeout(Some(Duration::from_secs(1))).unwrap();
    let requests = format!("GET /metrics HTTP/1.1\r\n{HEAD}\r\n").repeat(1000);
    _ = (0..200).take_while(|_| unread.write_all(requests.as_bytes()).is_ok()).count();
    let of_small_ones = memory(&live, "VmHWM");
    assert!(of_small_ones < before + 128 * MIB, "{} MiB besides", (of_small_ones - before) / MIB);

    // Bodies that do not end, of 15 of 16 MiB each: 256 MiB of all are taken, and others are told
    // to come later.
    let head = format!("{head}Content-Length: {}\r\n\r\n", 16 * MIB);
    let piece = vec![b'x'; MIB as usize];
    let (mut taken, mut refused) = (Vec::new(), 0);
    for _ in 0..40 {
        let mut socket = connect(&live);
        socket.write_all(head.as_bytes()).unwrap();
        if (0..15).all(|_| socket.write_all(&piece).is_ok()) {
            taken.push(socket);
        } else {
            refused += 1;
        }
    }
    // What a socket holds of a body that is refused was sent, too: so some of these are among those
    // that were taken.
    assert!(refused > 15 && taken.len() >= 16, "{refused} were refused, {} taken", taken.len());
    let busy = post(&live, format!("{{\"id\":2,\"text\":\"{}\"}}", "x".repeat(3 << 20)).as_bytes());
    assert!(busy.status == 429 && busy.head.to_lowercase().contains("retry-after: 1"), "{busy:?}");
    assert_eq!(live.get("/documents/1")["size"], 1);
    let of_bodies = memory(&live, "VmHWM");
    assert!(of_bodies < of_small_ones + (256 + 128) * MIB, "{} MiB besides", (of_bodies - of_small_ones) / MIB);
    drop((taken, unread));
    wait_for("a batch that is taken", || (post(&live, b"{\"id\":2,\"text\":\"a b c\"}").status == 200).then_some(()));
}

#[test]
fn idle_connections_end_and_others_are_served_then() {
    let folder = tempfile::tempdir().unwrap();
    let live = Live::start(&folder.path().join("store"), &["--by", "id"]);
    let before = memory(&live, "VmRSS");
    // More than are served at a time. Half of them begin a head.
    let idle: Vec<TcpStream> = (0..300)
        .map(|number| {
            let mut socket = connect(&live);
            socket.write_all(if number % 2 == 0 { b"" } else { b"GET /healthz HTT" }).unwrap();
            socket
        })
        .collect();
    let begun = Instant::now();
    // It waits for its place behind them: for the ten seconds of a head.
    assert_eq!(post(&live, b"{\"id\":1,\"text\":\"a b c\"}").status, 200);
    assert!(begun.elapsed() < Duration::from_secs(45), "a bound that only a hang breaks");
    let taken = memory(&live, "VmRSS").saturating_sub(before);
    assert!(taken < 64 * MIB, "{} MiB for idle connections", taken / MIB);
    drop(idle);
}

#[test]
fn requests_that_come_at_once_are_answered_in_their_order() {
    let folder = tempfile::tempdir().unwrap();
    let live = Live::start(&folder.path().join("store"), &["--by", "id"]);
    let mut requests = String::new();
    for number in 0..100 {
        let line = json!({"id": number, "text": "the quick brown fox jumps"}).to_string();
        requests += &format!("POST /documents HTTP/1.1\r\n{HEAD}Content-Length: {}\r\n\r\n{line}", line.len());
        requests += &format!("GET /documents/{number} HTTP/1.1\r\n{HEAD}\r\nGET /nothing HTTP/1.1\r\n{HEAD}\r\n");
    }
    requests += &format!("GET /healthz HTTP/1.1\r\n{HEAD}Connection: close\r\n\r\n");
    let all = answers(&live, requests.as_bytes());
    // Each head ends with an empty line, and each body with the end of a line.
    let bodies: Vec<Value> =
        all.lines().filter(|line| line.starts_with('{')).map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((bodies.len(), all.matches("HTTP/1.1 ").count()), (301, 301));
    for (number, three) in bodies[..300].chunks(3).enumerate() {
        assert_eq!((&three[0]["id"], &three[0]["size"]), (&json!(number.to_string()), &json!(number + 1)));
        assert_eq!((&three[1]["id"], &three[1]["size"]), (&three[0]["id"], &three[0]["size"]));
        assert!(three[2]["error"].as_str().unwrap().contains("/nothing"), "{}", three[2]);
    }
}

#[test]
fn heads_that_are_wrong_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let live = Live::start(&folder.path().join("store"), &["--by", "id"]);
    let many: String = (0..150).map(|number| format!("X{number}: y\r\n")).collect();
    for (request, status) in [
        (format!("GET /healthz HTTP/1.1\r\n{HEAD}{many}\r\n"), "431"),
        (format!("GET /documents/{} HTTP/1.1\r\n{HEAD}\r\n", "a".repeat(70_000)), "414"),
        // Which of two lengths counts must not be in doubt.
        (format!("POST /documents HTTP/1.1\r\n{HEAD}Content-Length: 5\r\nContent-Length: 6\r\n\r\n{{}}    "), "400"),
        (format!("POST /documents HTTP/1.1\r\n{HEAD}Content-Length: -1\r\n\r\n"), "400"),
        (
            format!("POST /documents HTTP/1.1\r\n{HEAD}Transfer-Encoding: chunked\r\n\r\n{}\r\n{{", "F".repeat(18)),
            "400",
        ),
        (format!("GET /documents/\0 HTTP/1.1\r\n{HEAD}\r\n"), "400"),
        ("\u{16}\u{3}\u{1}\u{2}".to_owned(), "400"),
    ] {
        let answer = answers(&live, request.as_bytes());
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{:?}: {answer}",
            &request[..60.min(request.len())]
        );
    }
    // Both a length and chunks: the chunks count, and nothing is left over that would be taken for
    // a request.
    let line = "{\"id\":1,\"text\":\"a b c\"}";
    let both = format!(
        "POST /documents HTTP/1.1\r\n{HEAD}Content-Length: 3\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n{:x}\r\n{line}\r\n0\r\n\r\n",
        line.len()
    );
    let answer = answers(&live, both.as_bytes());
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.matches("HTTP/1.1").count() == 1, "{answer}");
    assert_eq!(live.get("/documents/1")["size"], 1);
}

#[test]
fn values_that_are_deep_or_long_are_refused_in_a_few_words() {
    let folder = tempfile::tempdir().unwrap();
    let live = Live::start(&folder.path().join("store"), &["--by", "id"]);
    let (open, close, long) = ("[".repeat(200_000), "]".repeat(200_000), "x".repeat(1 << 20));
    for line in [
        format!("{{\"id\":{open}{close},\"text\":\"a\"}}"),
        format!("{{\"id\":1,\"text\":{open}"),
        open.clone(),
        format!("{{\"id\":1,\"delete\":\"{long}\"}}"),
        format!("{{\"id\":\"{long}\",\"text\":\"a\"}}"),
        format!("{{\"id\":{},\"text\":\"a\"}}", "1.".repeat(1 << 19)),
        "{\"id\":1e400,\"text\":\"a\"}".to_owned(),
        "{\"id\":1,\"text\":\"\\ud800\"}".to_owned(),
        "{\"id\":1,\"text\":\"a\",\"text\":\"b\"}".to_owned(),
        "{\"id\":1\u{feff},\"text\":\"a\"}".to_owned(),
    ] {
        let refused = post(&live, line.as_bytes());
        let begin = &line[..60.min(line.len())];
        assert!(refused.status == 400 && refused.body.contains("line 1: "), "{begin:?}: {}", refused.status);
        assert!(refused.body.len() < 5000, "{begin:?}: {} bytes", refused.body.len());
    }
    // Files begin with a byte order mark, and several become one.
    let marked = "\u{feff}{\"id\":2,\"text\":\"two\"}\n\u{feff} {\"id\":3,\"text\":\"three\"}\n\u{feff}\n";
    let marked = post(&live, marked.as_bytes());
    assert_eq!((marked.status, marked.body.lines().count()), (200, 2), "{}", marked.body);
    // A field that is passed over may be deep.
    let passed = post(&live, format!("{{\"id\":1,\"text\":\"a\",\"more\":{open}{close}}}").as_bytes());
    assert_eq!(passed.status, 200, "{}", passed.body);
    assert_eq!(live.get("/documents/1")["size"], 1);
}

#[test]
fn a_wrong_token_is_refused_before_the_body_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    std::fs::write(&token, "0123456789abcdef0123\n").unwrap();
    let live = Live::start(&folder.path().join("store"), &["--by", "id", "--token-file", token.to_str().unwrap()]);
    for wrong in
        ["", "Authorization: Bearer 0123456789abcdef0124\r\n", "Authorization: Basic MDEyMzQ1Njc4OWFiY2RlZjAxMjM=\r\n"]
    {
        let begun = Instant::now();
        let mut socket = connect(&live);
        let head =
            format!("POST /documents HTTP/1.1\r\n{HEAD}{wrong}Content-Length: 1000\r\nConnection: close\r\n\r\n");
        socket.write_all(head.as_bytes()).unwrap();
        // It sends no body.
        let mut begin = [0; 12];
        socket.read_exact(&mut begin).unwrap();
        assert_eq!(String::from_utf8_lossy(&begin), "HTTP/1.1 401", "{wrong:?}");
        assert!(begun.elapsed() < Duration::from_secs(30), "less than the time of a body");
    }
    let right = [("Authorization", "Bearer 0123456789abcdef0123")];
    assert_eq!(live.send("GET", "/documents/1", &right, b"").status, 404);
    let socket = connect(&live);
    socket.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(response(socket), None, "a connection without a request has no answer");
}
