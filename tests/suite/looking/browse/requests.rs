//! Requests that are malformed or come from elsewhere, and stores that change or are empty.

use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::json;

use super::{Served, elements, walk};
use crate::program::{Made, copy_folder, job, longs, run};

#[test]
fn bad_requests_and_other_sites_are_refused() {
    let made = Made::new(&[]);
    let store = made.store();
    let mut served = Served::start(&store, &[]);
    let doc = longs(&made.week(), "documents", "doc")[0];
    for (path, status) in [
        ("/nothing", 404),
        ("/../../../etc/passwd", 404),
        ("/%2e%2e/%2e%2e/etc/passwd", 404),
        ("/style.css/..%2f..%2fetc/passwd", 404),
        ("/page/1152921504606846975", 404),
        ("/page/x", 400),
        ("/cluster/1152921504606846975", 404),
        ("/cluster/-1", 400),
        ("/cluster/99999999999999999999999", 400),
        ("/clusters?sort=x", 400),
        ("/clusters?page=0", 400),
        ("/clusters?page=9223372036854775807", 404),
        ("/clusters?page=99999999999999999999", 400),
        ("/host?name=nowhere.example", 404),
        ("/host?name=%00", 404),
        ("/host", 400),
        ("/search", 400),
        ("/search?q=a&piece=99999", 404),
        ("/search?q=a&piece=0&row=9223372036854775807", 404),
        ("/search?q=%ff", 400),
        ("/compare?a=1", 400),
        (&format!("/compare?a={doc}&b={doc}"), 400),
        (&format!("/compare?a={doc}&b=1152921504606846975"), 404),
        ("/text?text=", 400),
        ("/?x=1", 400),
    ] {
        let answer = served.send("GET", path, &[]);
        assert_eq!(answer.status, status, "{path}: {}", answer.body);
    }
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH"] {
        let answer = served.send(method, "/", &[]);
        assert!(answer.status == 405 && answer.head.contains("allow: GET"), "{method}: {answer:?}");
    }
    for headers in [
        &[("Host", "evil.example")][..],
        &[("Host", "127.0.0.1.evil.example")],
        &[("Host", "10.0.0.1:7745")],
        &[("Sec-Fetch-Site", "cross-site")],
    ] {
        assert_eq!(served.send("GET", "/", headers).status, 403, "{headers:?}");
    }
    assert_eq!(served.send("GET", "/", &[("Host", "localhost")]).status, 200);
    let two = "GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\nConnection: close\r\n\r\n";
    assert_eq!(served.raw(two.as_bytes()).unwrap().status, 400);
    let none = "GET / HTTP/1.1\r\nConnection: close\r\n\r\n";
    assert_eq!(served.raw(none.as_bytes()).unwrap().status, 400);
    let absolute = "GET http://evil.example/ HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    assert_eq!(served.raw(absolute.as_bytes()).unwrap().status, 403);
    // Heads that are too large, or no HTTP.
    let large =
        format!("GET /search?q={} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", "a".repeat(200_000));
    assert!(served.raw(large.as_bytes()).is_none_or(|answer| (400..500).contains(&answer.status)));
    assert!(
        served.raw(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n").is_none_or(|answer| answer.status == 400)
    );
    // Connections that say nothing delay no other one.
    let silent: Vec<TcpStream> = (0..40).map(|_| TcpStream::connect(served.address).unwrap()).collect();
    let begun = Instant::now();
    let answer = served.send("GET", "/", &[]);
    assert!(begun.elapsed() < Duration::from_secs(5), "it waits for others");
    for header in [
        "content-security-policy: default-src 'none'; style-src 'self'",
        "x-content-type-options: nosniff",
        "referrer-policy: no-referrer",
    ] {
        assert!(answer.head.contains(header), "{}", answer.head);
    }
    drop(silent);
    assert_eq!(std::fs::read_dir(served.temporary.path()).unwrap().count(), 0, "the index has no names");
    assert_eq!(served.end("-INT"), Some(130));
    assert_eq!(std::fs::read_dir(served.temporary.path()).unwrap().count(), 0, "nothing is left behind");
    // Only addresses of this machine.
    let refused = run(&["browse", store.to_str().unwrap(), "--listen", "0.0.0.0:7745"]);
    assert!(refused.code == Some(2) && refused.stderr.contains("an address of this machine"), "{}", refused.stderr);
    let missing = run(&["browse", "/nowhere", "--listen", "127.0.0.1:0"]);
    assert!(missing.code == Some(1) && missing.stderr.contains("is not a nigh store"), "{}", missing.stderr);
}

#[test]
fn a_store_that_changes_meanwhile_is_told_and_empty_ones_are_shown() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("store");
    let made = Made::new(&[]);
    copy_folder(&made.store(), &copy);
    let served = Served::start(&copy, &[]);
    let path = served.get("/clusters");
    let (_, addresses) = elements(&path, "/clusters");
    let cluster = addresses.iter().find(|address| address.starts_with("/cluster/")).unwrap();
    std::fs::remove_dir_all(copy.join("evidence")).unwrap();
    let answer = served.send("GET", cluster, &[]);
    // Files that are open are there until the end.
    assert!(answer.status == 200 || answer.status == 503 && answer.body.contains("start `nigh browse` again"));
    drop(served);
    let input = folder.path().join("texts.jsonl");
    std::fs::write(&input, format!("{}\n{}\n", json!({"text": "one two three"}), json!({"text": "four five six"})))
        .unwrap();
    let job = job(folder.path(), "[cluster]\nweek = \"2024-01-08\"\n");
    let made = Made::with_job(&job, &["--input", input.to_str().unwrap()]);
    let served = Served::start(&made.store(), &[]);
    assert!(served.get("/clusters").contains("it has no cluster"));
    assert!(served.get("/").contains("no hosts"));
    walk(&served, 20);
}
