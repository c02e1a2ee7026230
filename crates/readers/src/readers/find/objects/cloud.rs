//! Inputs in object stores and on web servers: finds and opens the objects that a URL names.
//!
//! Known limitation: URLs with a query (signed URLs) are refused, and web servers cannot be listed.

use std::collections::HashSet;
use std::io::Read;

use anyhow::{Context as _, bail};
use futures_util::{StreamExt as _, stream};
use object_store::path::Path;
use object_store::{Error, ObjectMeta, ObjectStoreExt as _, ObjectStoreScheme};
use url::{Position, Url};

use crate::objects::{ObjectStoreClient, explained, read, refuse_secrets, store, wait, without_secrets};
use crate::readers::find::found::{FoundBy, FoundInput};
use crate::readers::find::globs::{fixed_prefix, found_by, is_glob, matcher};
use crate::readers::input::Location;

/// Concurrent requests for the sizes of named objects.
const REQUESTS: usize = 64;

/// A URL in its parts.
struct ObjectUrl {
    /// The URL as the user wrote it, for messages.
    item: String,
    /// URL of the store: scheme, and bucket or host.
    store: String,
    /// Path of the object in the store, or a glob or prefix.
    key: String,
    /// Whether the store can list its objects; web servers cannot.
    can_list: bool,
}

/// Finds the objects that URLs name: one object, the matches of a glob, or all objects below a
/// prefix.
///
/// # Errors
/// If a URL names no object, or a store does not respond.
pub fn find(items: &[&String], objects: &mut Vec<FoundInput>) -> anyhow::Result<()> {
    let mut named = Vec::new();
    for item in items {
        if item.starts_with(super::hugging_face::SCHEME) {
            super::hugging_face::find(item, objects)?;
            continue;
        }
        let target = ObjectUrl::parse(item)?;
        if target.can_list && (is_glob(&target.key) || target.key.is_empty() || target.key.ends_with('/')) {
            list(&target, &store(&target.store)?, objects)?;
        } else {
            named.push((store(&target.store)?, path(&target)?, target));
        }
    }
    let requests = stream::iter(named.into_iter().map(|(store, path, target)| async move {
        let response = store.head(&path).await;
        (store, target, response)
    }));
    for (store, target, response) in wait(requests.buffered(REQUESTS).collect::<Vec<_>>())? {
        match response {
            Ok(meta) => {
                let relative = target.key.rsplit('/').next().unwrap_or_default().to_owned();
                let place = Location::Object { store: target.store, key: target.key };
                let (bytes, stamp) = (meta.size, stamp(&meta));
                objects.push(FoundInput { name: target.item, bytes, place, relative, by: FoundBy::Name, stamp });
            }
            Err(Error::NotFound { .. }) if target.can_list => {
                let folder = ObjectUrl { key: format!("{}/", target.key), ..target };
                list(&folder, &store, objects)?;
            }
            Err(Error::NotFound { .. }) => bail!("no input matches {}: the server has no such file", target.item),
            Err(error) => return Err(explained(error, &format!("open {}", target.item))),
        }
    }
    Ok(())
}

/// Opens the first `bytes` of an object.
///
/// # Errors
/// If the URL of the store cannot be used. Failures of the network are errors of the returned
/// reader.
pub fn open(name: &str, store_url: &str, key: &str, bytes: u64) -> anyhow::Result<Box<dyn Read + Send>> {
    let target = ObjectUrl { item: name.to_owned(), store: store_url.to_owned(), key: key.to_owned(), can_list: false };
    Ok(Box::new(read(store(store_url)?, path(&target)?, bytes)?))
}

impl ObjectUrl {
    /// Splits a URL into store and key.
    fn parse(item: &str) -> anyhow::Result<Self> {
        refuse_secrets(item)?;
        let (scheme, rest) = item.split_once("://").with_context(|| format!("{item} is not a URL"))?;
        if !matches!(scheme, "http" | "https") {
            let (bucket, key) = rest.split_once('/').unwrap_or((rest, ""));
            let (store, key) = (format!("{scheme}://{bucket}/"), key.to_owned());
            return Ok(ObjectUrl { item: item.to_owned(), store, key, can_list: true });
        }
        if rest.contains(['*', '{', '[']) {
            bail!(
                "{item} is a glob, but web servers cannot list their files: name the files, or use a listing (X.paths)"
            );
        }
        let url = Url::parse(item).with_context(|| format!("{item} is not a URL"))?;
        if url.query().is_some() {
            let shown = without_secrets(item);
            bail!("{shown} has a query, which nigh cannot read: use the URL without it, or download the file first");
        }
        let (kind, key) = ObjectStoreScheme::parse(&url).with_context(|| format!("{item} does not name an object"))?;
        let mut store = url[..Position::BeforePath].to_owned() + "/";
        if !matches!(kind, ObjectStoreScheme::Http) {
            // In https URLs of the clouds the bucket is the host or the first part of the path.
            store.extend(url.path_segments().and_then(|mut parts| parts.next()));
        }
        Ok(ObjectUrl { item: item.to_owned(), store, key: key.to_string(), can_list: false })
    }
}

/// Lists the objects that a glob or a prefix matches.
fn list(target: &ObjectUrl, store: &ObjectStoreClient, objects: &mut Vec<FoundInput>) -> anyhow::Result<()> {
    let glob = is_glob(&target.key);
    let prefix = if glob { fixed_prefix(&target.key) } else { target.key.trim_end_matches('/') };
    let matcher = if glob { Some(matcher(&target.key)?) } else { None };
    let path = Path::parse(prefix).with_context(|| format!("{} does not name objects", target.item))?;
    let responses = {
        let store = store.clone();
        wait(async move { store.list(Some(&path)).collect::<Vec<_>>().await })?
    };
    let before = objects.len();
    let metas: Result<Vec<ObjectMeta>, Error> = responses.into_iter().collect();
    let metas = metas.map_err(|error| explained(error, &format!("open {}", target.item)))?;
    let folders = empty_folders(&metas);
    for (meta, is_folder) in metas.iter().zip(folders) {
        let key = meta.location.to_string();
        if is_folder || matcher.as_ref().is_some_and(|matcher| !matcher.is_match(&key)) {
            continue;
        }
        let relative = key.strip_prefix(prefix).unwrap_or(&key).trim_start_matches('/').to_owned();
        let name = format!("{}{key}", target.store);
        let by = matcher.as_ref().map_or(FoundBy::Folder, |matcher| found_by(matcher, &key));
        objects.push(FoundInput {
            name,
            bytes: meta.size,
            place: Location::Object { store: target.store.clone(), key },
            relative,
            by,
            stamp: stamp(meta),
        });
    }
    if objects.len() == before {
        bail!("no input matches {}: the store has no such object", target.item);
    }
    Ok(())
}

/// Which objects stand for folders: some tools create an empty object `out.parquet/`, of which the
/// client leaves out the last character. It is known by the objects below it; one that has none is
/// taken for an empty file.
fn empty_folders(metas: &[ObjectMeta]) -> Vec<bool> {
    let empty = metas.iter().filter(|meta| meta.size == 0).map(|meta| meta.location.as_ref());
    let empty: HashSet<&str> = empty.collect();
    let mut folders = HashSet::new();
    for key in metas.iter().map(|meta| meta.location.as_ref()) {
        folders.extend(key.match_indices('/').map(|(end, _)| &key[..end]).filter(|folder| empty.contains(folder)));
    }
    metas.iter().map(|meta| folders.contains(meta.location.as_ref())).collect()
}

/// What changes with the content of an object: its ETag, or the time of its last change; empty if
/// the server states neither.
fn stamp(meta: &ObjectMeta) -> String {
    match &meta.e_tag {
        Some(tag) => format!("etag {tag}"),
        None if meta.last_modified.timestamp() > 0 => format!("modified {}", meta.last_modified.to_rfc3339()),
        None => String::new(),
    }
}

fn path(target: &ObjectUrl) -> anyhow::Result<Path> {
    Path::parse(&target.key).with_context(|| format!("{} does not name an object", target.item))
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::net::TcpListener;
    use std::sync::Arc;

    use object_store::memory::InMemory;

    use super::*;
    use crate::objects::RANGE;
    use crate::readers;
    use crate::readers::item::Item;
    use crate::reading::Reading;

    fn pattern(length: usize) -> Vec<u8> {
        (0..length).map(|i| (i * i % 251) as u8).collect()
    }

    /// Serves one file over HTTP until the test ends. With `ranges`, every third connection is lost
    /// half way through its response.
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
                let response = format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
                let _ = connection.write_all(response.as_bytes()).and_then(|()| connection.write_all(body));
            }
        });
        format!("http://{address}")
    }

    fn stored(input: &readers::Input) -> Vec<u8> {
        let mut bytes = Vec::new();
        crate::readers::opened::source(&input.name, input.bytes, &input.place)
            .unwrap()
            .read_to_end(&mut bytes)
            .unwrap();
        bytes
    }

    #[test]
    fn a_web_server_is_read_by_ranges_despite_lost_connections() {
        let file = pattern(3 * RANGE as usize + 1000);
        let server = serve(file.clone(), true);
        let inputs = readers::list(&[format!("{server}/crawl/x.warc")], &Reading::default()).unwrap();
        assert_eq!((inputs.len(), inputs[0].bytes), (1, file.len() as u64));
        assert_eq!(inputs[0].stamp, "", "the server states no time and no tag");
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
        let store: ObjectStoreClient = Arc::new(InMemory::new());
        let file = pattern(RANGE as usize + 7);
        for name in ["w1/a.warc.gz", "w1/b.warc.gz", "w1/sub/c.warc.gz", "w2/d.warc.gz"] {
            let (store, file) = (store.clone(), file.clone());
            wait(async move { store.put(&Path::from(name), file.into()).await }).unwrap().unwrap();
        }
        // A folder that is an object, too, and an empty file.
        for (name, file) in [("w4/out.parquet", ""), ("w4/out.parquet/a.parquet", "x"), ("w4/b.jsonl", "")] {
            let store = store.clone();
            wait(async move { store.put(&Path::from(name), file.into()).await }).unwrap().unwrap();
        }
        let listed = |key: &str| {
            let target = ObjectUrl { item: key.into(), store: "s3://bucket/".into(), key: key.into(), can_list: true };
            let mut objects = Vec::new();
            list(&target, &store, &mut objects).map(|()| {
                assert!(objects.iter().all(|object| object.stamp.starts_with("etag ")));
                let mut names: Vec<String> =
                    objects.iter().map(|object| format!("{} {}", object.name, object.relative)).collect();
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
        let of_folder =
            ["s3://bucket/w4/b.jsonl b.jsonl", "s3://bucket/w4/out.parquet/a.parquet out.parquet/a.parquet"];
        assert_eq!(listed("w4/").unwrap(), of_folder);
        assert_eq!(listed("w4/*.jsonl").unwrap().len(), 1);
        assert!(listed("w4/*.parquet").unwrap_err().to_string().starts_with("no input matches"));
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
            ObjectUrl::parse(item).map(|target| (target.store, target.key)).map_err(|error| error.to_string())
        };
        let is = |store: &str, key: &str| Ok((store.to_owned(), key.to_owned()));
        assert_eq!(parts("s3://bucket/a b/*.gz"), is("s3://bucket/", "a b/*.gz"));
        assert_eq!(parts("gs://bucket"), is("gs://bucket/", ""));
        assert_eq!(parts("https://data.example/crawl/a%20b.warc"), is("https://data.example/", "crawl/a b.warc"));
        assert_eq!(
            parts("https://s3.eu-west-1.amazonaws.com/bucket/k"),
            is("https://s3.eu-west-1.amazonaws.com/bucket", "k")
        );
        let error = parts("https://a/b?x=1").unwrap_err();
        assert!(error.contains("query") && !error.contains("x=1"), "{error}");
        let error = parts("http://user:s3cret@a/b.warc").unwrap_err();
        assert!(error.contains("password") && !error.contains("s3cret"), "{error}");
    }
}
