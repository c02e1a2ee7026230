//! Datasets of Hugging Face from a server with its layout, and what is said where a bucket cannot
//! be read.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};

use crate::program::{Ran, nigh, ran, texts, week};

const DATE: &str = "2024-01-08";

/// A server until the test ends, and the requests that it had.
struct HubServer {
    address: String,
    requests: Arc<Mutex<Vec<String>>>,
}

impl HubServer {
    /// `answer` gives the head and the body for a path; the server knows ranges.
    fn new(answer: impl Fn(&str, &str) -> (String, Vec<u8>) + Send + 'static) -> HubServer {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (log, own) = (requests.clone(), address.clone());
        std::thread::spawn(move || {
            for connection in listener.incoming().take(400) {
                // A client that goes away is none of the server's.
                let _ = connection.and_then(|connection| one(connection, &own, &answer, &log));
            }
        });
        HubServer { address, requests }
    }

    fn requests(&self) -> Vec<String> {
        std::mem::take(&mut self.requests.lock().unwrap())
    }
}

fn one(
    mut connection: TcpStream,
    own: &str,
    answer: &impl Fn(&str, &str) -> (String, Vec<u8>),
    log: &Mutex<Vec<String>>,
) -> std::io::Result<()> {
    connection.set_read_timeout(Some(std::time::Duration::from_secs(10)))?;
    let mut lines = BufReader::new(connection.try_clone()?).lines();
    let first = lines.next().transpose()?.unwrap_or_default();
    let mut range = None;
    for line in lines.by_ref() {
        let line = line?.to_ascii_lowercase();
        if let Some(found) = line.strip_prefix("range: bytes=") {
            range = found.split_once('-').map(|(a, b)| (a.parse::<usize>().unwrap(), b.parse::<usize>().unwrap()));
        }
        if line.is_empty() {
            break;
        }
    }
    let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
    log.lock().unwrap().push(first.clone());
    let (head, body) = answer(own, &path);
    let (head, body) = match range {
        Some((from, to)) if head.starts_with("200") => {
            let to = (to + 1).min(body.len());
            (format!("206 Part\r\nContent-Range: bytes {from}-{}/{}", to - 1, body.len()), body[from..to].to_vec())
        }
        _ => (head, body),
    };
    let length = body.len();
    write!(connection, "HTTP/1.1 {head}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n")?;
    if first.starts_with("HEAD") { Ok(()) } else { connection.write_all(&body) }
}

/// A file of a dataset: lines with URLs and texts.
fn file(name: &str) -> Vec<u8> {
    let words = |row: usize| (0..20).map(|word| format!("{name}{row}x{word} ")).collect::<String>();
    let line = |row: usize| format!("{{\"url\": \"http://a.example/{name}/{row}\", \"text\": \"{}\"}}\n", words(row));
    (0..5).map(line).collect::<String>().into_bytes()
}

const FILES: [&str; 5] = ["data/a.jsonl", "data/b b.jsonl", "data/sub/c.jsonl", "d.jsonl", "README.md"];

/// The layout of a hub: the branch `main` has all files, the branch `pr/1` has the first.
fn hub(own: &str, path: &str) -> (String, Vec<u8>) {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let none = || ("404 Not Found".to_owned(), b"{\"error\":\"none\"}".to_vec());
    let commit = |name: &str| ("200 OK".to_owned(), format!("{{\"sha\":\"{name}\",\"private\":false}}").into_bytes());
    if let Some(revision) = path.strip_prefix("/api/datasets/o/n/revision/") {
        return match revision {
            "main" => commit("c0ffee"),
            "pr%2F1" => commit("0badc0de"),
            _ => none(),
        };
    }
    if path.starts_with("/api/datasets/closed/") {
        return ("401 Unauthorized".to_owned(), b"{}".to_vec());
    }
    let files = |commit: &str| if commit == "c0ffee" { &FILES[..] } else { &FILES[..1] };
    if let Some(rest) = path.strip_prefix("/api/datasets/o/n/tree/") {
        let (commit, folder) = rest.split_once('/').unwrap_or((rest, ""));
        let folder = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        let below = files(commit).iter().filter(|file| file.starts_with(&folder));
        let mut entries: BTreeSet<(String, &str)> = BTreeSet::new();
        for file in below {
            let rest = &file[folder.len()..];
            let (first, deeper) = rest.split_once('/').map_or((rest, false), |(first, _)| (first, true));
            if deeper {
                entries.insert((format!("{folder}{first}"), "directory"));
            }
            if !deeper || query.contains("recursive=true") {
                entries.insert(((*file).to_owned(), "file"));
            }
        }
        if entries.is_empty() {
            return none();
        }
        // Two entries a page.
        let at: usize = query.split("cursor=").nth(1).map_or(0, |cursor| cursor.parse().unwrap());
        let page: Vec<String> = entries
            .iter()
            .skip(at)
            .take(2)
            .map(|(path, kind)| {
                let size = if *kind == "file" { file(path).len() } else { 0 };
                format!("{{\"type\":\"{kind}\",\"oid\":\"oid-{path}\",\"size\":{size},\"path\":\"{path}\"}}")
            })
            .collect();
        let recursive = if query.contains("recursive=true") { "recursive=true&" } else { "" };
        let next = if at + 2 < entries.len() {
            format!("\r\nLink: <{own}{path}?{recursive}cursor={}>; rel=\"next\"", at + 2)
        } else {
            String::new()
        };
        return (format!("200 OK{next}"), format!("[{}]", page.join(",")).into_bytes());
    }
    if let Some(rest) = path.strip_prefix("/datasets/o/n/resolve/") {
        return (format!("302 Found\r\nLocation: {own}/cdn/{rest}"), Vec::new());
    }
    match path.strip_prefix("/cdn/c0ffee/").or_else(|| path.strip_prefix("/cdn/0badc0de/")) {
        Some(name) => ("200 OK".to_owned(), file(&name.replace("%20", " "))),
        None => none(),
    }
}

fn cluster(folder: &Path, store: &str, inputs: &[&str], variables: &[(&str, &str)], flags: &[&str]) -> Ran {
    let store = folder.join(store).display().to_string();
    let fixed = ["run", "-q", "--no-accuracy", "--week", DATE, "--store", &store];
    let mut command = nigh(&[&fixed[..], flags, &["--input"], inputs].concat());
    for (name, _) in std::env::vars() {
        if ["AWS_", "GOOGLE_", "AZURE_", "NIGH_HUB", "NIGH_CLOUD"].iter().any(|prefix| name.starts_with(prefix)) {
            command.env_remove(name);
        }
    }
    ran(command.env("HOME", folder).envs(variables.iter().copied()))
}

#[test]
fn datasets_of_a_hub_are_read_by_name_revision_path_and_glob() {
    let (server, folder) = (HubServer::new(hub), tempfile::tempdir().unwrap());
    let variables = [("NIGH_HUB", server.address.as_str())];
    let all = ["d.jsonl", "data/a.jsonl", "data/b b.jsonl", "data/sub/c.jsonl"];
    for (number, (item, wanted)) in [
        ("hf://datasets/o/n", &all[..]),
        ("hf://datasets/o/n/data", &all[1..]),
        ("hf://datasets/o/n/data/", &all[1..]),
        ("hf://datasets/o/n/data/*.jsonl", &all[1..3]),
        ("hf://datasets/o/n/**/*.jsonl", &all),
        ("hf://datasets/o/n/data/b b.jsonl", &all[2..3]),
        ("hf://datasets/o/n@pr%2F1", &all[1..2]),
    ]
    .into_iter()
    .enumerate()
    {
        let store = format!("s{number}");
        let made = cluster(folder.path(), &store, &[item], &variables, &[]);
        assert_eq!(made.code, Some(0), "{item}: {}", made.stderr);
        let prefix = if item.contains('@') { "hf://datasets/o/n@pr%2F1/" } else { "hf://datasets/o/n/" };
        let files: BTreeSet<String> =
            texts(&week(&folder.path().join(&store), DATE), "documents", "file").into_iter().collect();
        assert_eq!(files, wanted.iter().map(|name| format!("{prefix}{name}")).collect(), "{item}");
        assert_eq!(texts(&week(&folder.path().join(&store), DATE), "documents", "url").len(), 5 * wanted.len());
        // Bytes are those of the commit.
        let commit = if item.contains('@') { "/resolve/0badc0de/" } else { "/resolve/c0ffee/" };
        let requests = server.requests();
        assert!(
            requests.iter().filter(|line| line.contains("/resolve/")).all(|line| line.contains(commit)),
            "{requests:?}"
        );
    }
    // The same in several processes; and what was made is known again.
    let flags = ["--processes", "2", "--workers", "1"];
    let made = cluster(folder.path(), "two", &["hf://datasets/o/n"], &variables, &flags);
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    let tables = |store: &str| crate::program::tables(&folder.path().join(store));
    assert!(tables("two") == tables("s0"));
    assert_eq!(cluster(folder.path(), "s0", &["hf://datasets/o/n"], &variables, &[]).code, Some(0));
    for (item, wanted) in [
        ("hf://datasets/o/n/none", "no input matches hf://datasets/o/n/none"),
        ("hf://datasets/o/n/data/*.parquet", "no input matches"),
        ("hf://datasets/o/n@other", "has no revision other"),
        ("hf://datasets/o/other", "has no revision main"),
        ("hf://datasets/closed/n", "not everyone may read it"),
        ("hf://models/o/n", "write hf://datasets/OWNER/NAME"),
    ] {
        let refused = cluster(folder.path(), "none", &[item], &variables, &[]);
        assert!(refused.code != Some(0) && refused.stderr.contains(wanted), "{item}: {}", refused.stderr);
    }
}

/// A list of shards on a web server, with lines relative to it or whole URLs.
#[test]
fn a_listing_of_shards_on_a_web_server_is_read() {
    let answer = |own: &str, path: &str| match path {
        "/x/shards.paths" => {
            ("200 OK".to_owned(), format!("{own}/x/1.jsonl\n# a note\n{own}/x/2.jsonl\n").into_bytes())
        }
        "/x/list.txt" => ("200 OK".to_owned(), b"1.jsonl\n2.jsonl\n".to_vec()),
        "/x/1.jsonl" | "/x/2.jsonl" => ("200 OK".to_owned(), file(&path[3..4])),
        _ => ("404 Not Found".to_owned(), Vec::new()),
    };
    let (server, folder) = (HubServer::new(answer), tempfile::tempdir().unwrap());
    let listing = format!("{}/x/shards.paths", server.address);
    let made = cluster(folder.path(), "s", &[&listing], &[], &[]);
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    assert_eq!(texts(&week(&folder.path().join("s"), DATE), "documents", "url").len(), 10);
    let job = crate::program::job(
        folder.path(),
        &format!("[cluster]\n[cluster.read]\nbase-url = \"{}/x\"\n", server.address),
    );
    let store = folder.path().join("t").display().to_string();
    let listing = format!("@{}/x/list.txt", server.address);
    let arguments =
        ["run", job.to_str().unwrap(), "-q", "--no-accuracy", "--week", DATE, "--store", &store, "--input", &listing];
    let made = ran(&mut nigh(&arguments));
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    assert_eq!(texts(&week(&folder.path().join("t"), DATE), "documents", "url").len(), 10);
}

/// No request goes to the address at which a cloud tells a machine its credentials, unless that is
/// asked for.
#[test]
fn credentials_of_the_machine_are_asked_for_only_if_they_are_wanted() {
    let (server, folder) =
        (HubServer::new(|_, _| ("404 Not Found".to_owned(), Vec::new())), tempfile::tempdir().unwrap());
    let variables = [("AWS_METADATA_ENDPOINT", server.address.as_str()), ("AWS_ENDPOINT_URL", "https://127.0.0.1:1")];
    for (item, variable) in [
        ("s3://bucket/x.warc", "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"),
        ("gs://bucket/x.warc", "GOOGLE_APPLICATION_CREDENTIALS"),
        ("az://container/x.warc", "AZURE_STORAGE_ACCOUNT_KEY"),
    ] {
        let refused = cluster(folder.path(), "s", &[item], &variables, &[]);
        let bucket = item.trim_end_matches("x.warc");
        assert_eq!(refused.code, Some(1), "{}", refused.stderr);
        assert!(refused.stderr.contains(&format!("no credentials in {variable}")), "{}", refused.stderr);
        assert!(
            refused.stderr.contains(bucket) && refused.stderr.contains("--cloud-credentials instance"),
            "{}",
            refused.stderr
        );
    }
    let store =
        ran(nigh(&["show", "s3://bucket/store"]).env_remove("AWS_ACCESS_KEY_ID").env_remove("AWS_SKIP_SIGNATURE"));
    assert!(store.code == Some(1) && store.stderr.contains("no credentials in AWS_ACCESS_KEY_ID"), "{}", store.stderr);
    assert_eq!(server.requests(), Vec::<String>::new());
    let flag = cluster(folder.path(), "s", &["s3://bucket/x.warc"], &variables, &["--cloud-credentials", "instance"]);
    assert!(flag.code == Some(1) && !server.requests().is_empty(), "{}", flag.stderr);
    let variable = [&variables[..], &[("NIGH_CLOUD_CREDENTIALS", "instance")]].concat();
    let asked = cluster(folder.path(), "s", &["s3://bucket/x.warc"], &variable, &[]);
    assert!(asked.code == Some(1) && !server.requests().is_empty(), "{}", asked.stderr);
    let wrong = cluster(folder.path(), "s", &["x.warc"], &[("NIGH_CLOUD_CREDENTIALS", "x")], &[]);
    assert!(wrong.code == Some(2) && wrong.stderr.contains("neither `environment` nor `instance`"), "{}", wrong.stderr);
}

#[test]
fn errors_of_a_service_name_what_is_missing_and_each_cause_once() {
    let answer = |_: &str, path: &str| {
        let code = if path.starts_with("/nobucket") { "NoSuchBucket" } else { "NoSuchKey" };
        let text = format!("<?xml version=\"1.0\"?><Error><Code>{code}</Code></Error>");
        ("404 Not Found\r\nContent-Type: application/xml".to_owned(), text.into_bytes())
    };
    let (server, folder) = (HubServer::new(answer), tempfile::tempdir().unwrap());
    let keys = [("AWS_ACCESS_KEY_ID", "k"), ("AWS_SECRET_ACCESS_KEY", "s3cret"), ("AWS_REGION", "x")];
    let plain = [&keys[..], &[("AWS_ENDPOINT_URL", server.address.as_str())]].concat();
    let refused = cluster(folder.path(), "s", &["s3://nobucket/x.warc"], &plain, &[]);
    assert!(refused.code == Some(1) && refused.stderr.contains("set AWS_ALLOW_HTTP=true"), "{}", refused.stderr);
    assert_eq!(server.requests(), Vec::<String>::new());
    let allowed = [&plain[..], &[("AWS_ALLOW_HTTP", "true")]].concat();
    for item in ["s3://nobucket/x.warc", "s3://nobucket/x/", "s3://nobucket/*.warc"] {
        let refused = cluster(folder.path(), "s", &[item], &allowed, &[]);
        assert!(
            refused.code == Some(1) && refused.stderr.contains("the service has no such bucket"),
            "{}",
            refused.stderr
        );
    }
    let store = ran(nigh(&["show", "s3://nobucket/store"]).envs(allowed.iter().copied()));
    assert!(
        store.stderr.contains("s3://nobucket/store") && store.stderr.contains("no such bucket"),
        "{}",
        store.stderr
    );
    let store = ran(nigh(&["show", "s3://bucket/store"]).envs(allowed.iter().copied()));
    assert!(store.stderr.contains("is not a nigh store"), "{}", store.stderr);
    // Nothing listens there.
    let other = [
        &keys[..],
        &[("AWS_ENDPOINT_URL", "http://127.0.0.1:1"), ("AWS_ALLOW_HTTP", "true"), ("AWS_MAX_RETRIES", "0")],
    ]
    .concat();
    let refused = cluster(folder.path(), "s", &["s3://bucket/x.warc"], &other, &[]);
    let count = |text: &str| refused.stderr.matches(text).count();
    assert!(
        count("refused") <= 1 && count("error sending request") <= 1 && count("127.0.0.1:1/") <= 1,
        "{}",
        refused.stderr
    );
}
