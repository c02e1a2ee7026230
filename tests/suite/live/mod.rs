//! Documents that come and go over HTTP: against one run over what is there; kills; hostile
//! clients.

/// A client that follows the changes of clusters.
mod changes;
/// Clients of a live process in Python.
pub mod clients;
/// Commits that a live process makes by itself, and the lock meanwhile.
mod commits;
/// Exact similarities of a live process.
mod exact;
/// Files that grow, which a live process follows.
mod follow;
/// Clients that harm a live process, and the memory that they take.
mod hostile;
/// A live process with others that have a part of the keys, and what kills and stops of these do.
mod processes;
/// Documents of ready features in a live process.
mod ready;
/// A live process with TLS, and clients that do not keep to it.
mod tls;
/// A live process on stores whose method verifies clusters.
mod verified;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::program::{longs, nigh, run, run_well, texts, week};

/// A server, which is killed at the end.
pub(crate) struct Live {
    pub(crate) child: Child,
    pub(crate) address: SocketAddr,
}

/// An answer of HTTP.
#[derive(Debug, PartialEq)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Live {
    pub(crate) fn start(store: &Path, flags: &[&str]) -> Live {
        let arguments =
            [&["live", store.to_str().unwrap(), "--listen", "127.0.0.1:0", "--workers", "2"], flags].concat();
        let mut child = nigh(&arguments).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut said = Vec::new();
        let address = loop {
            let line = lines.next().unwrap_or_else(|| panic!("{said:?}")).unwrap();
            if let Some((_, url)) = line.split_once("listening at ") {
                break url.split_once("://").unwrap().1.parse().unwrap();
            }
            said.push(line);
        };
        // What it says later must not fill the pipe.
        std::thread::spawn(move || lines.for_each(drop));
        Live { child, address }
    }

    pub(crate) fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Response {
        self.try_send(method, path, headers, body).unwrap()
    }

    /// Sends a request on a connection of its own; `None` if the server ends meanwhile.
    pub(crate) fn try_send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Option<Response> {
        let mut socket = TcpStream::connect(self.address).ok()?;
        socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let mut head = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n", body.len());
        if !headers.iter().any(|(name, _)| *name == "Host") {
            head += &format!("Host: {}\r\n", self.address);
        }
        headers.iter().for_each(|(name, value)| head += &format!("{name}: {value}\r\n"));
        socket.write_all((head + "\r\n").as_bytes()).ok()?;
        // A body that is refused need not be read.
        let _ = socket.write_all(body);
        response(socket)
    }

    pub(crate) fn post(&self, id: &str, lines: &[Value]) -> Vec<Value> {
        let response = self.send("POST", "/documents", &[("Batch-Id", id)], body(lines).as_bytes());
        assert_eq!(response.status, 200, "{response:?}");
        values(&response.body)
    }

    pub(crate) fn get(&self, path: &str) -> Value {
        let response = self.send("GET", path, &[], b"");
        assert_eq!(response.status, 200, "{response:?}");
        serde_json::from_str(&response.body).unwrap()
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        // SIGKILL: there is no better moment than any.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads an answer to its end; `None` if it breaks off.
pub(crate) fn response(mut socket: impl Read) -> Option<Response> {
    let mut text = String::new();
    let read = socket.read_to_string(&mut text);
    let (head, body) = text.split_once("\r\n\r\n")?;
    let length = head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
    if read.is_err() && length != Some(body.len()) {
        return None;
    }
    let status = head.split(' ').nth(1)?.parse().ok()?;
    (length == Some(body.len())).then(|| Response { status, head: head.to_owned(), body: body.to_owned() })
}

pub(crate) fn body(lines: &[Value]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

pub(crate) fn values(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Numbers that are the same each time.
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    /// A text of one of a few families: equal ones, similar ones and others.
    pub(crate) fn text(&mut self) -> String {
        let (family, version) = (self.below(9), self.below(6));
        if family == 8 {
            return ["", " - "][(version % 2) as usize].to_owned();
        }
        text_of(family, version)
    }

    pub(crate) fn batch(&mut self, names: u64) -> Vec<Value> {
        let count = 1 + self.below(12);
        (0..count)
            .map(|_| match (self.below(names), self.below(5)) {
                (name, 0) => json!({"id": name, "delete": true}),
                (name, 1) => json!({"id": name.to_string(), "html": format!("<p>{}</p>", self.text())}),
                (name, _) => json!({"id": name, "text": self.text()}),
            })
            .collect()
    }
}

/// What is there after a batch, by name.
pub(crate) fn apply(there: &mut BTreeMap<String, Value>, batch: &[Value]) {
    for line in batch {
        let name = line["id"].as_str().map_or_else(|| line["id"].to_string(), str::to_owned);
        match line["delete"].as_bool() {
            Some(true) => _ = there.remove(&name),
            _ => _ = there.insert(name, line.clone()),
        }
    }
}

/// A version of a text of a family. Versions differ in a few words of different places, so that
/// chains of similar ones are there.
pub(crate) fn text_of(family: u64, version: u64) -> String {
    let mut words: Vec<String> = (0..300).map(|at| format!("w{family}x{at}")).collect();
    (0..version).for_each(|change| words[(40 * change + 3) as usize] = format!("changed{change}"));
    words.join(" ")
}

const JOB: &str = "[cluster]\n[cluster.read.columns]\nid = \"id\"\nhtml = \"html\"\n[cluster.method]\nshards = 4\n";

/// By name: the names of the similar cluster, and the strictest level.
pub(crate) type FoundLive = BTreeMap<String, (BTreeSet<String>, Option<String>)>;

/// What a run over some documents finds.
pub(crate) fn found_by_run(folder: &Path, name: &str, there: &BTreeMap<String, Value>) -> FoundLive {
    found_by_method(folder, name, there, "")
}

/// As [`found_by_run`], with more of a method.
pub(crate) fn found_by_method(folder: &Path, name: &str, there: &BTreeMap<String, Value>, method: &str) -> FoundLive {
    let (job, store, input) = (folder.join("job.toml"), folder.join(name), folder.join(format!("{name}.jsonl")));
    std::fs::write(&job, format!("{JOB}{method}")).unwrap();
    std::fs::write(&input, body(&there.values().cloned().collect::<Vec<_>>())).unwrap();
    let paths = [&job, &store, &input].map(|path| path.to_str().unwrap());
    run_well(&["run", paths[0], "-q", "--store", paths[1], "--week", "2024-01-08", "--input", paths[2]]);
    let of = week(&store, "2024-01-08");
    let ids = texts(&of, "clusters", "id");
    let levels = ["similar", "identical", "exact"];
    let [roots, _, _] = levels.map(|level| longs(&of, "clusters", &format!("{level}_root")));
    let sizes = levels.map(|level| longs(&of, "clusters", &format!("{level}_size")));
    let mut sets: BTreeMap<i64, BTreeSet<String>> = BTreeMap::new();
    ids.iter().zip(&roots).for_each(|(id, root)| _ = sets.entry(*root).or_default().insert(id.clone()));
    let level = |row: usize| (0..3).rev().find(|level| sizes[*level][row] > 1).map(|level| levels[level].to_owned());
    ids.iter().enumerate().map(|(row, id)| (id.clone(), (sets[&roots[row]].clone(), level(row)))).collect()
}

/// What a server says, in the same form.
pub(crate) fn found_live(live: &Live, there: &BTreeMap<String, Value>) -> FoundLive {
    let mut found = BTreeMap::new();
    for name in there.keys() {
        let answer = live.get(&format!("/documents/{name}"));
        let set = match answer["cluster"].as_i64() {
            None => BTreeSet::from([name.clone()]),
            Some(cluster) => {
                let cluster = live.get(&format!("/clusters/{cluster}?most=1000"));
                assert_eq!(cluster["size"], answer["size"]);
                cluster["documents"].as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()).collect()
            }
        };
        found.insert(name.clone(), (set, answer["level"].as_str().map(str::to_owned)));
    }
    found
}

#[test]
fn clusters_are_those_of_one_run_over_what_is_there_whenever_it_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    for seed in 0..3u64 {
        let (mut numbers, mut there) = (Numbers(seed), BTreeMap::new());
        let mut sent: Vec<(Vec<Value>, Vec<Value>)> = Vec::new();
        let store = folder.path().join(format!("live-{seed}"));
        if seed > 0 {
            // A store that has a week.
            apply(&mut there, &(0..30).map(|name| json!({"id": name, "text": numbers.text()})).collect::<Vec<_>>());
            found_by_run(folder.path(), &format!("live-{seed}"), &there);
        }
        let ids = if seed > 0 { longs_by_id(&store) } else { BTreeMap::new() };
        for round in 0..4 {
            let live = Live::start(&store, &["--by", "id"]);
            if round == 0 {
                for (name, id) in &ids {
                    assert_eq!(
                        live.get(&format!("/documents/{name}"))["cluster"].as_i64(),
                        *id,
                        "the ids are those of the tables"
                    );
                }
            }
            for (number, (batch, answer)) in sent.iter().enumerate() {
                assert_eq!(&live.post(&format!("b{number}"), batch), answer, "a batch that is sent again");
            }
            for _ in 0..8 {
                let batch = numbers.batch(40);
                let answer = live.post(&format!("b{}", sent.len()), &batch);
                assert_eq!(answer.len(), batch.len());
                apply(&mut there, &batch);
                sent.push((batch, answer));
            }
            assert_eq!(found_live(&live, &there), found_by_run(folder.path(), &format!("run-{seed}-{round}"), &there));
        }
    }
}

/// The cluster of each document in the tables of the last week.
pub(crate) fn longs_by_id(store: &Path) -> BTreeMap<String, Option<i64>> {
    let last = nigh::state::Store::at(store).manifest().unwrap().unwrap().weeks.last().unwrap().week;
    let of = week(store, &last.to_string());
    let (ids, sizes) = (texts(&of, "clusters", "id"), longs(&of, "clusters", "similar_size"));
    let clusters = longs(&of, "clusters", "cluster_id");
    // Nulls are any number.
    ids.into_iter().zip(sizes).zip(clusters).map(|((id, size), cluster)| (id, (size > 1).then_some(cluster))).collect()
}

/// Sends batches to processes, one after the other, that are killed after some time: each batch
/// until it is answered. Calls `each` after each answer. Returns how many processes were killed.
pub(crate) fn send_with_kills(
    store: &Path,
    flags: &[&str],
    batches: &[Vec<Value>],
    mut time: impl FnMut() -> Duration,
    mut each: impl FnMut(&Live),
) -> usize {
    let (mut next, mut kills) = (0, 0);
    while next < batches.len() {
        let mut live = Live::start(store, flags);
        let (pid, after) = (live.child.id().to_string(), time());
        let killer = std::thread::spawn(move || {
            std::thread::sleep(after);
            std::process::Command::new("kill").args(["-9", &pid]).status().unwrap()
        });
        // The batch without an answer is sent again, with its id.
        while next < batches.len() {
            let id = format!("b{next}");
            match live.try_send("POST", "/documents", &[("Batch-Id", &id)], body(&batches[next]).as_bytes()) {
                Some(response) if response.status == 200 => next += 1,
                _ => break,
            }
            each(&live);
        }
        assert!(killer.join().unwrap().success());
        live.child.wait().unwrap();
        kills += 1;
        assert!(kills < 200, "no progress");
    }
    kills
}

/// A number of the metrics; `None` if the server ends meanwhile.
pub(crate) fn metric(live: &Live, name: &str) -> Option<u64> {
    let metrics = live.try_send("GET", "/metrics", &[], b"")?.body;
    let number = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok());
    assert!(number.is_some(), "{name}: {metrics}");
    number
}

/// Waits until something is there, within a bound that only a hang breaks.
pub(crate) fn wait_for<T>(what: &str, mut find: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = find() {
            return found;
        }
        assert!(begun.elapsed() < Duration::from_secs(120), "{what} is not there");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_kill_while_batches_come_loses_none_and_doubles_none() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let (mut numbers, mut there) = (Numbers(77), BTreeMap::new());
    let batches: Vec<Vec<Value>> = (0..60).map(|_| numbers.batch(50)).collect();
    send_with_kills(&store, &["--by", "id"], &batches, || Duration::from_millis(numbers.below(60)), |_| {});
    batches.iter().for_each(|batch| apply(&mut there, batch));
    let live = Live::start(&store, &[]);
    assert_eq!(found_live(&live, &there), found_by_run(folder.path(), "run", &there));
    assert_eq!(metric(&live, "nigh_live_documents"), Some(there.len() as u64));
}

/// The files of tables of a store, by path.
pub(crate) fn parquet_files(store: &Path) -> BTreeMap<String, Vec<u8>> {
    let files = walkdir::WalkDir::new(store).into_iter().map(|entry| entry.unwrap().into_path());
    let files = files.filter(|path| path.extension().is_some_and(|extension| extension == "parquet"));
    files.map(|path| (path.strip_prefix(store).unwrap().display().to_string(), std::fs::read(&path).unwrap())).collect()
}

fn copy(from: &Path, to: &Path) {
    for entry in walkdir::WalkDir::new(from) {
        let entry = entry.unwrap();
        let target = to.join(entry.path().strip_prefix(from).unwrap());
        if entry.file_type().is_dir() {
            std::fs::create_dir_all(target).unwrap();
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[test]
fn a_commit_makes_the_tables_of_nigh_add() {
    let folder = tempfile::tempdir().unwrap();
    commits_are_those_of_nigh_add(folder.path(), Numbers(5), BTreeMap::new(), "", &[]);
}

/// Sends batches to the store `store` in a folder, which has some documents or is not there, and
/// compares the tables of commits with those of `nigh add`. Its method has `method`, and processes
/// have `flags`.
pub(crate) fn commits_are_those_of_nigh_add(
    folder: &Path,
    mut numbers: Numbers,
    mut there: BTreeMap<String, Value>,
    method: &str,
    flags: &[&str],
) {
    let (store, other) = (folder.join("store"), folder.join("other"));
    let mut sent: Vec<(Vec<Value>, Vec<Value>)> = Vec::new();
    let mut live = Live::start(&store, &[&["--by", "id"], flags].concat());
    for round in 0..3 {
        for _ in 0..6 {
            let batch = numbers.batch(40);
            let answer = live.post(&format!("b{}", sent.len()), &batch);
            apply(&mut there, &batch);
            sent.push((batch, answer));
        }
        let _ = std::fs::remove_dir_all(&other);
        copy(&store, &other);
        // Commands refuse a store with batches that no table has.
        std::fs::remove_dir_all(other.join("_nigh/live")).unwrap();
        let response = live.send("POST", "/commit", &[], b"");
        assert_eq!(response.status, 200, "{response:?}");
        let committed: Value = serde_json::from_str(&response.body).unwrap();
        // The same by hand. A deletion is a commit of its own.
        let manifest = nigh::state::Store::at(&other).manifest().unwrap();
        let number = manifest.map_or(0, |manifest| manifest.commits) + 1;
        let own = store.join("_nigh/live");
        let path = |name: String| own.join(name).to_str().unwrap().to_owned();
        let to = other.to_str().unwrap();
        if committed["deleted"] != 0 {
            run_well(&["delete", "-q", "--store", to, "--ids", &path(format!("deleted-{number:05}.txt"))]);
        }
        let [job, input] = [format!("job-{number:05}.toml"), format!("documents-{number:05}.jsonl")].map(path);
        run_well(&["add", to, &job, "-q", "--input", &input]);
        let (made, wanted) = (parquet_files(&store), parquet_files(&other));
        assert!(made.len() > 5 && made.keys().eq(wanted.keys()), "{:?} {:?}", made.keys(), wanted.keys());
        for (name, bytes) in &made {
            assert!(*bytes == wanted[name], "{name} differs in round {round}");
        }
        // The ids are now those of the tables.
        let found = found_live(&live, &there);
        assert_eq!(found, found_by_method(folder, &format!("run-{round}"), &there, method));
        let week_of = committed["week"].as_str().unwrap();
        let of = week(&store, week_of);
        let (ids, docs, clusters) =
            (texts(&of, "clusters", "id"), longs(&of, "clusters", "doc"), longs(&of, "clusters", "cluster_id"));
        assert_eq!(ids.len(), there.len());
        for ((id, doc), cluster) in ids.iter().zip(docs).zip(clusters) {
            let answer = live.get(&format!("/documents/{id}"));
            assert_eq!(answer["doc"].as_i64(), Some(doc));
            assert!(answer["cluster"].is_null() || answer["cluster"].as_i64() == Some(cluster), "{id}");
        }
        if round == 1 {
            drop(live);
            live = Live::start(&store, flags);
        }
        for (number, (batch, answer)) in sent.iter().enumerate() {
            assert_eq!(&live.post(&format!("b{number}"), batch), answer, "a batch that is in the tables");
        }
        let nothing = live.send("POST", "/commit", &[], b"");
        assert!(nothing.status == 200 && nothing.body.contains("\"documents\":0"), "{nothing:?}");
    }
}

#[test]
fn requests_are_answered_and_bad_ones_are_explained() {
    let folder = tempfile::tempdir().unwrap();
    let live = Live::start(&folder.path().join("store"), &[]);
    let words = (0..80).map(|at| format!("w{at} ")).collect::<String>();
    let page = |path: &str, text: &str| json!({"url": format!("http://a.example/{path}"), "text": text});
    let answers = live.post("1", &[page("1", &words), page("2", &words), page("3", "other words are here")]);
    assert_eq!((&answers[1]["canonical"], &answers[1]["level"]), (&json!("http://a.example/1"), &json!("exact")));
    assert_eq!(answers[1]["nearest"][0], json!({"name": "http://a.example/1", "similarity": 1.0, "cluster": -1}));
    assert_eq!(answers[2]["cluster"], Value::Null);
    assert_eq!(live.get("/documents/http://a.example/2")["size"], 2);
    assert_eq!(live.get("/documents/http%3A%2F%2Fa.example%2F2")["size"], 2);
    let near = live.send("POST", "/similar?most=1", &[], page("", &words).to_string().as_bytes());
    assert_eq!(values(&near.body), [json!({"name": "http://a.example/1", "similarity": 1.0, "cluster": -1})]);
    assert_eq!(live.get("/clusters/-1")["documents"], json!(["http://a.example/1", "http://a.example/2"]));
    let deleted = live.send("DELETE", "/documents/http://a.example/1", &[], b"");
    assert_eq!((deleted.status, values(&deleted.body)[0]["deleted"].as_bool()), (200, Some(true)));
    let events = |path: &str| -> Vec<String> {
        values(&live.send("GET", path, &[], b"").body)
            .iter()
            .map(|change| change["event"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(events("/changes"), ["birth", "death"]);
    assert_eq!(events("/changes?since=1"), ["death"]);
    assert_eq!(live.get("/healthz"), json!({"status": "ok"}));

    let long = format!("{{\"url\":\"http://a.example/\",\"text\":\"{}\"}}", "x".repeat(5 << 20));
    for (method, path, body, status, reason) in [
        ("POST", "/documents", &b"{\"url\":\"http://a.example/\"}"[..], 400, "line 1: neither `text` nor `html`"),
        (
            "POST",
            "/documents",
            b"{\"url\":\"http://a.example/\",\"text\":\"\xff\"}",
            400,
            "line 1: not UTF-8 at byte 35",
        ),
        ("POST", "/documents", b"\n{\"text\":\"a\"}", 400, "line 2: no `url`"),
        ("POST", "/documents", long.as_bytes(), 413, "line 1 has"),
        ("POST", "/similar", b"{\"text\":\"-\"}", 400, "no word"),
        ("GET", "/documents/http://a.example/1", b"", 404, "there is no document"),
        ("GET", "/documents/17", b"", 400, "not an http or https address"),
        ("DELETE", "/documents/http://a.example/1", b"", 404, "there is no document"),
        ("GET", "/clusters/-1", b"", 404, "there is no cluster -1"),
        ("GET", "/clusters/x", b"", 400, "the id of a cluster is a number"),
        ("GET", "/changes?since=x", b"", 400, "since=x"),
        ("PUT", "/documents", b"", 405, "not for PUT"),
        ("GET", "/etc/passwd", b"", 404, "there are /documents"),
    ] {
        let response = live.send(method, path, &[], body);
        let error: Value = serde_json::from_str(&response.body).unwrap();
        assert!(response.status == status && error["error"].as_str().unwrap().contains(reason), "{path}: {response:?}");
    }
    let response = live.send("POST", "/documents", &[("Batch-Id", "1")], b"");
    assert!(response.status == 409 && response.body.contains("other lines"), "{response:?}");
    assert_eq!(live.send("GET", "/changes", &[("Host", "evil.example")], b"").status, 403);
    assert_eq!(live.send("GET", "/changes", &[("Origin", "http://evil.example")], b"").status, 403);
    // A second process is refused, and so is a run.
    let store = folder.path().join("store");
    let other = run(&["live", store.to_str().unwrap()]);
    assert!(other.code == Some(1) && other.stderr.contains("another run writes to the store"), "{}", other.stderr);
}

#[test]
fn a_token_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let (store, token) = (folder.path().join("store"), folder.path().join("token"));
    std::fs::write(&token, "0123456789abcdef0123\n").unwrap();
    let live = Live::start(&store, &["--token-file", token.to_str().unwrap()]);
    let status = |headers: &[(&str, &str)]| live.send("GET", "/changes", headers, b"").status;
    assert_eq!(status(&[("Authorization", "Bearer 0123456789abcdef0123")]), 200);
    assert_eq!(status(&[("Authorization", "Bearer 0123456789abcdef0124")]), 401);
    assert_eq!(status(&[]), 401);
    assert!(live.send("GET", "/metrics", &[], b"").head.to_lowercase().contains("www-authenticate: bearer"));
    assert_eq!(live.send("GET", "/healthz", &[], b"").status, 200);
    drop(live);
    let open = run(&["live", store.to_str().unwrap(), "--listen", "0.0.0.0:0"]);
    assert!(open.code == Some(2) && open.stderr.contains("--token-file"), "{}", open.stderr);
    std::fs::write(&token, "short\n").unwrap();
    let short = run(&["live", store.to_str().unwrap(), "--token-file", token.to_str().unwrap()]);
    assert!(short.code == Some(2) && short.stderr.contains("16"), "{}", short.stderr);
}

#[test]
fn slow_and_broken_clients_hold_no_other_one_up() {
    let folder = tempfile::tempdir().unwrap();
    let live = Live::start(&folder.path().join("store"), &["--by", "id"]);
    let begun = Instant::now();
    let connect = || TcpStream::connect(live.address).unwrap();
    // Heads and bodies that do not end; and one that claims a gigabyte.
    let mut open: Vec<TcpStream> = Vec::new();
    for part in
        ["", "POST /docu", "POST /documents HTTP/1.1\r\nHost: localhost\r\nContent-Length: 900\r\n\r\n{\"id\":1,"]
    {
        for _ in 0..40 {
            let mut socket = connect();
            socket.write_all(part.as_bytes()).unwrap();
            open.push(socket);
        }
    }
    assert_eq!(live.post("1", &[json!({"id": 1, "text": "a b c"})])[0]["new"], true);
    let mut socket = connect();
    socket.write_all(b"POST /documents HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000000\r\n\r\n").unwrap();
    assert_eq!(response_of_open(socket), 413);
    // A body in chunks that never ends: it is cut at the limit.
    let mut socket = connect();
    socket.write_all(b"POST /documents HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n").unwrap();
    let chunk = format!("100000\r\n{}\r\n", "x".repeat(1 << 20));
    let sent = (0..40).take_while(|_| socket.write_all(chunk.as_bytes()).is_ok()).count();
    assert!(sent < 40 || response_of_open(socket) == 413, "{sent} MiB were taken");
    // A body that ends early, and one that is closed without an answer.
    let mut socket = connect();
    socket.write_all(b"POST /documents HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n\r\n{\"id\":2,").unwrap();
    socket.shutdown(std::net::Shutdown::Write).unwrap();
    drop(socket);
    // Bytes that are no HTTP, and a head that is too long.
    for bytes in [vec![0xff; 300], format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "y".repeat(200_000)).into_bytes()] {
        let mut socket = connect();
        let _ = socket.write_all(&bytes);
        socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let mut answer = Vec::new();
        let _ = socket.read_to_end(&mut answer);
        assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 4"), "{:?}", String::from_utf8_lossy(&answer));
    }
    assert_eq!(live.get("/documents/1")["size"], 1);
    assert_eq!(live.send("GET", "/documents/2", &[], b"").status, 404);
    // They hold on to their connections meanwhile. That these end is a test of the server.
    assert!(begun.elapsed() < Duration::from_secs(60), "a bound that only a hang breaks");
    drop(open);
}

/// The status of an answer on a connection that stays open.
fn response_of_open(socket: TcpStream) -> u16 {
    socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let mut line = String::new();
    let _ = BufReader::new(socket).read_line(&mut line);
    line.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default()
}

#[test]
fn standard_input_is_answered_line_by_line() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let mut child = nigh(&["live", store.to_str().unwrap(), "--stdin", "--by", "id", "--workers", "1"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
    // Each line is answered before the next one comes.
    for (line, wanted) in [
        (json!({"id": 1, "text": "a b c"}).to_string(), "\"new\":true"),
        ("{\"id\":2".to_owned(), "{\"error\":\"line 2: "),
        (json!({"id": 2, "text": "a b c"}).to_string(), "\"level\":\"exact\""),
    ] {
        writeln!(input, "{line}").unwrap();
        let answer = output.next().unwrap().unwrap();
        assert!(answer.contains(wanted), "{line}: {answer}");
    }
    drop(input);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
