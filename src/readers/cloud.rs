//! Object stores as plain [`Read`]s.
//!
//! All network traffic runs on one thread with one asynchronous runtime; readers stay synchronous. An open object is a task
//! there that fetches ranges of [`RANGE`] bytes, [`AHEAD`] at a time and in order, and hands them over a channel of one: some
//! 20 MiB an object are in memory. A range that fails is asked for again, so that an hour's reading survives a lost connection.
//! Servers that know no ranges are read in one piece.
//!
//! Options and credentials come from the environment by the names that each cloud's own tools use: `AWS_*` (also
//! `AWS_ENDPOINT_URL`, `AWS_ALLOW_HTTP`, and `AWS_SKIP_SIGNATURE` for public buckets), `GOOGLE_*`, `AZURE_*`.
//!
//! Known limitation: URLs with a query (signed URLs) are not understood, and web servers cannot be listed.

use std::collections::HashMap;
use std::io::{self, ErrorKind, Read};
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use futures_util::StreamExt as _;
use futures_util::stream;
use object_store::path::Path;
use object_store::{Error, ObjectMeta, ObjectStore, ObjectStoreExt as _, ObjectStoreScheme, parse_url_opts};
use tokio::runtime::{Builder, Handle};
use tokio::sync::mpsc;
use url::{Position, Url};

use crate::readers::Place;
use crate::readers::inputs::{self, Found, How};

/// Bytes fetched by one request.
const RANGE: u64 = 4 << 20;
/// Requests under way at once for one object.
const AHEAD: usize = 3;
/// Times a range is asked for, beside the store's own repetitions of a request.
const ATTEMPTS: u32 = 5;
/// Objects asked for at once when many are named.
const ASKED: usize = 64;

type Store = Arc<dyn ObjectStore>;

/// What one URL names.
struct Target {
    item: String,
    store: String,
    key: String,
    /// Whether the store can list what it has.
    listed: bool,
}

/// Finds the objects that some URLs name: one object, a glob, or all below a prefix.
///
/// # Errors
/// When there is none, or the store does not answer.
pub fn find(items: &[&String], found: &mut Vec<Found>) -> anyhow::Result<()> {
    let mut named = Vec::new();
    for item in items {
        let target = Target::parse(item)?;
        if target.listed && (inputs::is_glob(&target.key) || target.key.is_empty() || target.key.ends_with('/')) {
            list(&target, &store(&target.store)?, found)?;
        } else {
            named.push((store(&target.store)?, path(&target)?, target));
        }
    }
    let asked = stream::iter(named.into_iter().map(|(store, path, target)| async move {
        let answer = store.head(&path).await;
        (store, target, answer)
    }));
    for (store, target, answer) in wait(asked.buffered(ASKED).collect::<Vec<_>>())? {
        match answer {
            Ok(meta) => {
                let relative = target.key.rsplit('/').next().unwrap_or_default().to_owned();
                let place = Place::Object { store: target.store, key: target.key };
                found.push(Found { name: target.item, bytes: meta.size, place, relative, how: How::Named });
            }
            Err(Error::NotFound { .. }) if target.listed => {
                let folder = Target { key: format!("{}/", target.key), ..target };
                list(&folder, &store, found)?;
            }
            Err(Error::NotFound { .. }) => bail!("no input matches {}: the server has no such file", target.item),
            Err(error) => return Err(explained(error, &target.item)),
        }
    }
    Ok(())
}

/// Opens an object, of which the first `bytes` are wanted.
///
/// # Errors
/// When its store cannot be made; failures of the network come while reading.
pub fn open(name: &str, store_url: &str, key: &str, bytes: u64) -> anyhow::Result<Box<dyn Read + Send>> {
    let target = Target { item: name.to_owned(), store: store_url.to_owned(), key: key.to_owned(), listed: false };
    Ok(Box::new(read(store(store_url)?, path(&target)?, bytes)?))
}

impl Target {
    fn parse(item: &str) -> anyhow::Result<Self> {
        let (scheme, rest) = item.split_once("://").with_context(|| format!("{item} is no URL"))?;
        if !matches!(scheme, "http" | "https") {
            let (bucket, key) = rest.split_once('/').unwrap_or((rest, ""));
            let (store, key) = (format!("{scheme}://{bucket}/"), key.to_owned());
            return Ok(Target { item: item.to_owned(), store, key, listed: true });
        }
        if rest.contains(['*', '{', '[']) {
            bail!("{item} is a glob, but a web server cannot list its files: name them, or give a listing (X.paths)");
        }
        let url = Url::parse(item).with_context(|| format!("{item} is no URL"))?;
        if url.query().is_some() {
            bail!("{item} has a query, which object stores do not take: name the file without it");
        }
        let (kind, key) = ObjectStoreScheme::parse(&url).with_context(|| format!("{item} names no object"))?;
        let mut store = url[..Position::BeforePath].to_owned() + "/";
        if !matches!(kind, ObjectStoreScheme::Http) {
            // Addresses of the clouds name the bucket as host or as the first part of the path.
            store.extend(url.path_segments().and_then(|mut parts| parts.next()));
        }
        Ok(Target { item: item.to_owned(), store, key: key.to_string(), listed: false })
    }
}

/// Lists what a glob or a prefix matches.
fn list(target: &Target, store: &Store, found: &mut Vec<Found>) -> anyhow::Result<()> {
    let glob = inputs::is_glob(&target.key);
    let fixed = if glob { inputs::fixed_prefix(&target.key) } else { target.key.trim_end_matches('/') };
    let matcher = if glob { Some(inputs::matcher(&target.key)?) } else { None };
    let prefix = Path::parse(fixed).with_context(|| format!("{} names no objects", target.item))?;
    let answers = {
        let store = store.clone();
        wait(async move { store.list(Some(&prefix)).collect::<Vec<_>>().await })?
    };
    let before = found.len();
    for answer in answers {
        let ObjectMeta { location, size, .. } = answer.map_err(|error| explained(error, &target.item))?;
        let key = location.to_string();
        // Stores keep empty objects in the place of folders.
        if key.ends_with('/') || matcher.as_ref().is_some_and(|matcher| !matcher.is_match(&key)) {
            continue;
        }
        let relative = key.strip_prefix(fixed).unwrap_or(&key).trim_start_matches('/').to_owned();
        let name = format!("{}{key}", target.store);
        let how = if glob { How::Matched } else { How::Walked };
        found.push(Found {
            name,
            bytes: size,
            place: Place::Object { store: target.store.clone(), key },
            relative,
            how,
        });
    }
    if found.len() == before {
        bail!("no input matches {}: the store has no object of such a name", target.item);
    }
    Ok(())
}

fn path(target: &Target) -> anyhow::Result<Path> {
    Path::parse(&target.key).with_context(|| format!("{} names no object", target.item))
}

fn explained(error: Error, item: &str) -> anyhow::Error {
    let advice = match error {
        Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => {
            "set the credentials in the environment, or AWS_SKIP_SIGNATURE=true for a public bucket"
        }
        _ => "check the name, the network, and the settings in the environment",
    };
    anyhow!(error).context(format!("cannot open {item} ({advice})"))
}

/// Gives the store of a URL, always the same one for the same URL.
fn store(url: &str) -> anyhow::Result<Store> {
    static STORES: OnceLock<Mutex<HashMap<String, Store>>> = OnceLock::new();
    let mut stores = STORES.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(store) = stores.get(url) {
        return Ok(store.clone());
    }
    // Without a default provider the client panics; another part of the program may have installed it.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let parsed = Url::parse(url).with_context(|| format!("{url} is no URL"))?;
    let mut options: Vec<(String, String)> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| ["AWS_", "AZURE_", "GOOGLE_"].iter().any(|prefix| name.starts_with(prefix)))
        .collect();
    if parsed.scheme() == "http" {
        options.push(("allow_http".to_owned(), "true".to_owned()));
    }
    let made = parse_url_opts(&parsed, options);
    let (store, _) =
        made.with_context(|| format!("cannot use the store {url}: check its settings in the environment"))?;
    let store: Store = Arc::from(store);
    stores.insert(url.to_owned(), store.clone());
    Ok(store)
}

/// Gives the runtime that all network traffic runs on.
fn runtime() -> anyhow::Result<&'static Handle> {
    static RUNTIME: OnceLock<Option<Handle>> = OnceLock::new();
    let start = || {
        let (sender, receiver) = std::sync::mpsc::channel();
        let run = move || {
            if let Ok(runtime) = Builder::new_current_thread().enable_all().build() {
                let _ = sender.send(runtime.handle().clone());
                runtime.block_on(std::future::pending::<()>());
            }
        };
        std::thread::Builder::new().name("objects".to_owned()).spawn(run).ok()?;
        receiver.recv().ok()
    };
    RUNTIME.get_or_init(start).as_ref().context("cannot start the thread that reads from the network")
}

/// Runs a future on the runtime and waits for what it gives.
fn wait<F>(future: F) -> anyhow::Result<F::Output>
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    let (sender, receiver) = std::sync::mpsc::channel();
    runtime()?.spawn(async move {
        let _ = sender.send(future.await);
    });
    receiver.recv().context("the thread that reads from the network has stopped")
}

/// Reads the first `bytes` of an object.
fn read(store: Store, path: Path, bytes: u64) -> anyhow::Result<Chunks> {
    let (sender, receiver) = mpsc::channel(1);
    runtime()?.spawn(async move {
        let ranges = (0..bytes.div_ceil(RANGE)).map(|part| part * RANGE..bytes.min((part + 1) * RANGE));
        let fetches = ranges.map(|range| {
            let (store, path) = (store.clone(), path.clone());
            async move { part(&store, &path, range).await }
        });
        let mut parts = Box::pin(stream::iter(fetches).buffered(AHEAD));
        let mut first = true;
        while let Some(part) = parts.next().await {
            match part {
                Err(Error::NotSupported { .. }) if first => {
                    // The other requests are under way, and a server may wait until they are read or given up.
                    drop(parts);
                    return whole(&store, &path, bytes, &sender).await;
                }
                part => {
                    let failed = part.is_err();
                    if sender.send(part).await.is_err() || failed {
                        return;
                    }
                }
            }
            first = false;
        }
    });
    Ok(Chunks { receiver, chunk: Vec::new(), at: 0, left: bytes })
}

/// Fetches a range, again and again if need be.
async fn part(store: &Store, path: &Path, range: Range<u64>) -> Result<Vec<u8>, Error> {
    let mut attempt = 1;
    loop {
        match store.get_range(path, range.clone()).await {
            Ok(bytes) => return Ok(bytes.into()),
            Err(error) if attempt == ATTEMPTS || is_final(&error) => return Err(error),
            Err(_) => tokio::time::sleep(Duration::from_millis(100 << attempt)).await,
        }
        attempt += 1;
    }
}

/// Fetches an object in one piece.
async fn whole(store: &Store, path: &Path, bytes: u64, sender: &mpsc::Sender<Result<Vec<u8>, Error>>) {
    let mut parts = match store.get(path).await {
        Ok(answer) => answer.into_stream(),
        Err(error) => {
            // The reader may be gone: then nobody waits for the error.
            let _ = sender.send(Err(error)).await;
            return;
        }
    };
    let mut sent = 0;
    while sent < bytes {
        let Some(part) = parts.next().await else {
            return;
        };
        sent += part.as_ref().map_or(bytes, |part| part.len() as u64);
        if sender.send(part.map(Vec::from)).await.is_err() {
            return;
        }
    }
}

/// Whether asking again cannot help.
fn is_final(error: &Error) -> bool {
    use Error::{NotFound, NotImplemented, NotSupported, PermissionDenied, Precondition, Unauthenticated};
    matches!(error, NotFound { .. } | NotImplemented { .. } | NotSupported { .. } | PermissionDenied { .. })
        || matches!(error, Precondition { .. } | Unauthenticated { .. })
}

/// The bytes of an object as they come.
struct Chunks {
    receiver: mpsc::Receiver<Result<Vec<u8>, Error>>,
    chunk: Vec<u8>,
    at: usize,
    left: u64,
}

impl Read for Chunks {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.at == self.chunk.len() && self.left > 0 {
            match self.receiver.blocking_recv() {
                Some(chunk) => (self.chunk, self.at) = (chunk.map_err(io::Error::other)?, 0),
                None => {
                    return Err(io::Error::new(
                        ErrorKind::UnexpectedEof,
                        "the object ended early: it may have been replaced",
                    ));
                }
            }
        }
        let count = out.len().min(self.chunk.len() - self.at).min(usize::try_from(self.left).unwrap_or(usize::MAX));
        out[..count].copy_from_slice(&self.chunk[self.at..self.at + count]);
        self.at += count;
        self.left -= count as u64;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::net::TcpListener;

    use object_store::local::LocalFileSystem;

    use super::*;
    use crate::config::Reading;
    use crate::readers::{self, Item};

    fn pattern(length: usize) -> Vec<u8> {
        (0..length).map(|i| (i * i % 251) as u8).collect()
    }

    /// Serves one file over HTTP until the test ends; every third connection is lost half way through its answer.
    fn serve(file: Vec<u8>, ranges: bool) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for (number, connection) in listener.incoming().take(100).enumerate() {
                let mut connection = connection.unwrap();
                let mut request = BufReader::new(connection.try_clone().unwrap());
                let (mut head, mut line) = (String::new(), String::new());
                while request.read_line(&mut line).unwrap() > 2 {
                    head.push_str(&line.to_ascii_lowercase());
                    line.clear();
                }
                if !head.contains(" /crawl/x") {
                    connection.write_all(b"HTTP/1.1 404 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").unwrap();
                    continue;
                }
                let range = head.lines().find_map(|line| line.strip_prefix("range: bytes=")).filter(|_| ranges);
                let (status, body) = match range.and_then(|range| range.trim().split_once('-')) {
                    Some((from, to)) => {
                        let (from, to) =
                            (from.parse::<usize>().unwrap(), to.parse::<usize>().unwrap().min(file.len() - 1));
                        (format!("206 Part\r\nContent-Range: bytes {from}-{to}/{}", file.len()), &file[from..=to])
                    }
                    None => ("200 OK".to_owned(), &file[..]),
                };
                let length = body.len();
                let head_only = head.starts_with("head");
                let body = if head_only { &body[..0] } else { body };
                let body = if ranges && number % 3 == 2 { &body[..body.len() / 2] } else { body };
                let answer = format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
                let _ = connection.write_all(answer.as_bytes()).and_then(|()| connection.write_all(body));
            }
        });
        format!("http://{address}")
    }

    fn stored(input: &readers::Input) -> Vec<u8> {
        let mut bytes = Vec::new();
        readers::source(&input.name, input.bytes, &input.place).unwrap().read_to_end(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn a_web_server_is_read_by_ranges_and_lost_connections_are_survived() {
        let file = pattern(3 * RANGE as usize + 1000);
        let server = serve(file.clone(), true);
        let inputs = readers::list(&[format!("{server}/crawl/x.warc")], &Reading::default()).unwrap();
        assert_eq!((inputs.len(), inputs[0].bytes), (1, file.len() as u64));
        readers::check(&inputs[0], &Reading::default()).unwrap();
        assert!(stored(&inputs[0]) == file);
        let error = readers::list(&[format!("{server}/crawl/none.warc")], &Reading::default()).unwrap_err();
        assert!(error.to_string().starts_with("no input matches http://"), "{error:#}");
        let error = readers::list(&[format!("{server}/crawl/*.warc")], &Reading::default()).unwrap_err();
        assert!(error.to_string().contains("cannot list"), "{error:#}");
    }

    #[test]
    fn a_web_server_without_ranges_is_read_in_one_piece() {
        let file = b"{\"url\":\"http://a/\",\"text\":\"words\"}\n".repeat(200_000);
        let server = serve(file.clone(), false);
        let reading = Reading { base_url: Some(server), ..Reading::default() };
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("x.paths"), "crawl/x.jsonl\n").unwrap();
        let inputs = readers::list(&[folder.path().join("x.paths").display().to_string()], &reading).unwrap();
        assert!(stored(&inputs[0]) == file);
        let mut reader = readers::open(&inputs[0], &reading).unwrap();
        let pages = std::iter::from_fn(|| reader.next().unwrap()).filter(|item| matches!(item, Item::Page(_))).count();
        assert_eq!((pages, reader.position()), (200_000, file.len() as u64));
    }

    #[test]
    fn a_store_is_listed_by_glob_and_prefix_and_read() {
        let folder = tempfile::tempdir().unwrap();
        let file = pattern(RANGE as usize + 7);
        for name in ["w1/a.warc.gz", "w1/b.warc.gz", "w1/sub/c.warc.gz", "w2/d.warc.gz"] {
            std::fs::create_dir_all(folder.path().join(name).parent().unwrap()).unwrap();
            std::fs::write(folder.path().join(name), &file).unwrap();
        }
        let store: Store = Arc::new(LocalFileSystem::new_with_prefix(folder.path()).unwrap());
        let listed = |key: &str| {
            let target = Target { item: key.into(), store: "s3://bucket/".into(), key: key.into(), listed: true };
            let mut found = Vec::new();
            list(&target, &store, &mut found).map(|()| {
                let mut names: Vec<String> = found.iter().map(|one| format!("{} {}", one.name, one.relative)).collect();
                names.sort();
                names
            })
        };
        assert_eq!(
            listed("w1/*.warc.gz").unwrap(),
            ["s3://bucket/w1/a.warc.gz a.warc.gz", "s3://bucket/w1/b.warc.gz b.warc.gz"]
        );
        assert_eq!(listed("w1/").unwrap().len(), 3);
        assert_eq!(listed("**/[cd].warc.gz").unwrap().len(), 2);
        assert!(listed("w3/*").unwrap_err().to_string().starts_with("no input matches w3/*"));
        let mut bytes = Vec::new();
        read(store.clone(), Path::parse("w2/d.warc.gz").unwrap(), file.len() as u64)
            .unwrap()
            .read_to_end(&mut bytes)
            .unwrap();
        assert!(bytes == file);
        let early = read(store, Path::parse("w2/none").unwrap(), 10).unwrap().read(&mut [0; 4]);
        assert!(early.is_err());
    }

    #[test]
    fn urls_name_a_store_and_a_key() {
        let parts = |item: &str| {
            Target::parse(item).map(|target| (target.store, target.key)).map_err(|error| error.to_string())
        };
        let is = |store: &str, key: &str| Ok((store.to_owned(), key.to_owned()));
        assert_eq!(parts("s3://bucket/a b/*.gz"), is("s3://bucket/", "a b/*.gz"));
        assert_eq!(parts("gs://bucket"), is("gs://bucket/", ""));
        assert_eq!(parts("https://data.example/crawl/a%20b.warc"), is("https://data.example/", "crawl/a b.warc"));
        assert_eq!(
            parts("https://s3.eu-west-1.amazonaws.com/bucket/k"),
            is("https://s3.eu-west-1.amazonaws.com/bucket", "k")
        );
        assert!(parts("https://a/b?x=1").unwrap_err().contains("query"));
    }
}
