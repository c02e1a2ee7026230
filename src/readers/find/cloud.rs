//! Inputs that are objects: what a URL names, found and opened.
//!
//! Known limitation: URLs with a query (signed URLs) are not understood, and web servers cannot be listed.

use std::io::Read;

use anyhow::{Context as _, bail};
use futures_util::{StreamExt as _, stream};
use object_store::path::Path;
use object_store::{Error, ObjectMeta, ObjectStoreExt as _, ObjectStoreScheme};
use url::{Position, Url};

use super::found::{FoundInput, How};
use crate::objects::{Store, explained, read, store, wait};
use crate::readers::input::Location;

/// Objects asked for at once when many are named.
const ASKED: usize = 64;

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
pub fn find(items: &[&String], found: &mut Vec<FoundInput>) -> anyhow::Result<()> {
    let mut named = Vec::new();
    for item in items {
        let target = Target::parse(item)?;
        if target.listed && (super::inputs::is_glob(&target.key) || target.key.is_empty() || target.key.ends_with('/'))
        {
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
                let place = Location::Object { store: target.store, key: target.key };
                found.push(FoundInput { name: target.item, bytes: meta.size, place, relative, how: How::Named });
            }
            Err(Error::NotFound { .. }) if target.listed => {
                let folder = Target { key: format!("{}/", target.key), ..target };
                list(&folder, &store, found)?;
            }
            Err(Error::NotFound { .. }) => bail!("no input matches {}: the server has no such file", target.item),
            Err(error) => return Err(explained(error, &format!("open {}", target.item))),
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
fn list(target: &Target, store: &Store, found: &mut Vec<FoundInput>) -> anyhow::Result<()> {
    let glob = super::inputs::is_glob(&target.key);
    let fixed = if glob { super::inputs::fixed_prefix(&target.key) } else { target.key.trim_end_matches('/') };
    let matcher = if glob { Some(super::inputs::matcher(&target.key)?) } else { None };
    let prefix = Path::parse(fixed).with_context(|| format!("{} names no objects", target.item))?;
    let answers = {
        let store = store.clone();
        wait(async move { store.list(Some(&prefix)).collect::<Vec<_>>().await })?
    };
    let before = found.len();
    for answer in answers {
        let ObjectMeta { location, size, .. } =
            answer.map_err(|error| explained(error, &format!("open {}", target.item)))?;
        let key = location.to_string();
        // Stores keep empty objects in the place of folders.
        if key.ends_with('/') || matcher.as_ref().is_some_and(|matcher| !matcher.is_match(&key)) {
            continue;
        }
        let relative = key.strip_prefix(fixed).unwrap_or(&key).trim_start_matches('/').to_owned();
        let name = format!("{}{key}", target.store);
        let how = if glob { How::Matched } else { How::Walked };
        found.push(FoundInput {
            name,
            bytes: size,
            place: Location::Object { store: target.store.clone(), key },
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

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::net::TcpListener;
    use std::sync::Arc;

    use object_store::local::LocalFileSystem;

    use super::*;
    use crate::config::Reading;
    use crate::objects::RANGE;
    use crate::readers;
    use crate::readers::item::Item;

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
        crate::readers::open::source(&input.name, input.bytes, &input.place).unwrap().read_to_end(&mut bytes).unwrap();
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
