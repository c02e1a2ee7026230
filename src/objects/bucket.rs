//! A folder of objects that is written to: `s3://bucket/prefix`.
//!
//! Two promises of the store are built upon: a put is whole or not at all, and a conditional one (`If-None-Match: *`,
//! `If-Match: ETAG`) is refused where its condition does not hold. A service that takes no notice of conditions is
//! found out ([`Bucket::check_conditions`]).
//!
//! A put whose answer was lost may have been done. So a conditional put that fails, or is refused, is looked at again:
//! where the object has just these bytes it was this put that made it.
//!
//! Small objects that decide something (the lock, the manifest) are waited for [`PATIENCE`] at most, and so is the
//! removal of one: after that no request of it is made any more. All else is bounded by the client alone, for on a slow
//! link a part may take minutes.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path as FilePath;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use futures_util::StreamExt as _;
use futures_util::future::try_join_all;
use object_store::path::Path;
use object_store::{Error, ObjectStoreExt as _, PutMode, PutPayload, UpdateVersion};

use super::client::{Store, explained, store, store_to_write, wait, wait_at_most};
use super::digest::{Digest, Summing};
use super::read::read;
use super::{PATIENCE, Put, When};

/// Larger objects are uploaded in parts of this size or more: S3 wants 5 MiB at least.
const PART: u64 = 8 << 20;
/// Parts of one object that are under way at once.
const PARTS_AT_ONCE: usize = 3;
/// S3 takes ten thousand.
const MOST_PARTS: u64 = 9000;

/// A folder of objects.
#[derive(Clone, Debug)]
pub struct Bucket {
    /// By which is read.
    store: Store,
    /// By which is written.
    writing: Store,
    /// [`PATIENCE`], but for tests.
    patience: Duration,
    /// `s3://bucket/`.
    home: String,
    /// `prefix/`, or nothing.
    prefix: String,
}

/// Which version of an object something is.
#[derive(Clone, Debug, PartialEq)]
pub struct Tag(UpdateVersion);

impl Bucket {
    /// The folder of a URL: `s3://bucket/prefix`.
    ///
    /// # Errors
    /// Where the URL or the settings in the environment are wrong. Nothing is asked for yet.
    pub fn open(url: &str) -> Result<Bucket> {
        let (scheme, rest) = url.split_once("://").with_context(|| format!("{url} is no URL"))?;
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        ensure!(!bucket.is_empty(), "{url} names no bucket: write {scheme}://BUCKET/PREFIX");
        let prefix = prefix.trim_matches('/');
        ensure!(
            !prefix.contains(['*', '?', '#', '%', '\\']) && !prefix.split('/').any(|part| matches!(part, "." | "..")),
            "{url} names no folder of a bucket: write {scheme}://BUCKET/PREFIX, without any of * ? # % \\"
        );
        let prefix = if prefix.is_empty() { String::new() } else { format!("{prefix}/") };
        Path::parse(&prefix).with_context(|| format!("{url} names no folder of a bucket"))?;
        let home = format!("{scheme}://{bucket}/");
        Ok(Bucket { store: store(&home)?, writing: store_to_write(&home)?, patience: PATIENCE, home, prefix })
    }

    /// The URL of one of its objects.
    pub fn url(&self, key: &str) -> String {
        format!("{}{}{key}", self.home, self.prefix)
    }

    fn path(&self, key: &str) -> Result<Path> {
        Path::parse(format!("{}{key}", self.prefix)).with_context(|| format!("{} names no object", self.url(key)))
    }

    /// An object's bytes, and which version they are; `None` where there is none.
    ///
    /// # Errors
    /// Where the store does not answer, or answers no.
    pub fn get(&self, key: &str) -> Result<Option<(Vec<u8>, Tag)>> {
        let (store, path) = (self.store.clone(), self.path(key)?);
        let got = wait_at_most(self.patience, async move {
            let answer = store.get(&path).await?;
            let tag = Tag(UpdateVersion { e_tag: answer.meta.e_tag.clone(), version: answer.meta.version.clone() });
            Ok::<_, Error>((answer.bytes().await?, tag))
        })?;
        match got {
            Some(Ok((bytes, tag))) => Ok(Some((bytes.into(), tag))),
            Some(Err(Error::NotFound { .. })) => Ok(None),
            Some(Err(error)) => Err(explained(error, &format!("read {}", self.url(key)))),
            None => bail!("cannot read {}: no answer for {:?}", self.url(key), self.patience),
        }
    }

    /// The bytes of an object that may be large, as lists are; `None` where there is none.
    ///
    /// # Errors
    /// Where the store does not answer, or answers no.
    pub fn get_whole(&self, key: &str) -> Result<Option<Vec<u8>>> {
        let (store, path) = (self.store.clone(), self.path(key)?);
        match wait(async move { store.get(&path).await?.bytes().await })? {
            Ok(bytes) => Ok(Some(bytes.into())),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(explained(error, &format!("read {}", self.url(key)))),
        }
    }

    /// Puts a small object where a condition holds. It takes [`PATIENCE`] at most, and as much again where it has to look
    /// what became of it.
    ///
    /// # Errors
    /// Where the store does not answer: whether the object is there is not known then.
    pub fn put_if(&self, key: &str, bytes: &[u8], when: &When) -> Result<Put> {
        let put = self.put_once(key, bytes, when);
        if matches!(put, Ok(Put::Done(_))) {
            return put;
        }
        match self.get(key) {
            Ok(Some((found, tag))) if found == bytes => Ok(Put::Done(tag)),
            _ => put,
        }
    }

    fn put_once(&self, key: &str, bytes: &[u8], when: &When) -> Result<Put> {
        let (store, path, payload) = (self.writing.clone(), self.path(key)?, PutPayload::from(bytes.to_vec()));
        let mode = match when {
            When::Absent => PutMode::Create,
            When::Is(tag) => PutMode::Update(tag.0.clone()),
        };
        let put = wait_at_most(self.patience, async move { store.put_opts(&path, payload, mode.into()).await })?;
        match put {
            Some(Ok(done)) if done.e_tag.is_none() && done.version.is_none() => {
                bail!("{} has no ETag: this service cannot hold a store", self.url(key))
            }
            Some(Ok(done)) => Ok(Put::Done(Tag(done.into()))),
            Some(Err(Error::AlreadyExists { .. } | Error::Precondition { .. })) => Ok(Put::Refused),
            Some(Err(error)) => Err(explained(error, &format!("write {}", self.url(key)))),
            None => bail!("cannot write {}: no answer for {:?}", self.url(key), self.patience),
        }
    }

    /// Finds out whether the service takes notice of conditions, by puts of an object that is there, with its own
    /// bytes.
    ///
    /// # Errors
    /// Where it does not, or does not answer.
    pub fn check_conditions(&self, key: &str, bytes: &[u8]) -> Result<()> {
        let other = Tag(UpdateVersion { e_tag: Some(format!("\"{}\"", "0".repeat(32))), version: Some("1".into()) });
        for (when, name) in [(When::Absent, "If-None-Match"), (When::Is(other), "If-Match")] {
            if let Put::Done(_) = self.put_once(key, bytes, &when)? {
                bail!(
                    "the service of {} takes no notice of conditional puts ({name}): two runs could meet in a store there; \
                     take another service, or a folder",
                    self.home
                );
            }
        }
        Ok(())
    }

    /// All objects below it, by name.
    ///
    /// # Errors
    /// Where the store cannot list them.
    pub fn list(&self) -> Result<BTreeMap<String, u64>> {
        let store = self.store.clone();
        let prefix = (!self.prefix.is_empty()).then(|| Path::parse(&self.prefix)).transpose()?;
        let answers = wait(async move { store.list(prefix.as_ref()).collect::<Vec<_>>().await })?;
        let mut found = BTreeMap::new();
        for answer in answers {
            let object = answer.map_err(|error| explained(error, &format!("list {}", self.url(""))))?;
            let key = object.location.to_string();
            if let Some(key) = key.strip_prefix(&self.prefix) {
                found.insert(key.to_owned(), object.size);
            }
        }
        Ok(found)
    }

    /// An object's size; `None` where there is none.
    ///
    /// # Errors
    /// As [`Bucket::get`].
    pub fn size(&self, key: &str) -> Result<Option<u64>> {
        let (store, path) = (self.store.clone(), self.path(key)?);
        match wait(async move { store.head(&path).await })? {
            Ok(meta) => Ok(Some(meta.size)),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(explained(error, &format!("read {}", self.url(key)))),
        }
    }

    /// Reads the first `bytes` of an object.
    ///
    /// # Errors
    /// Where its name is none; failures of the network come while reading.
    pub fn read(&self, key: &str, bytes: u64) -> Result<impl Read + use<>> {
        read(self.store.clone(), self.path(key)?, bytes)
    }

    /// Puts a file there, in parts where it is large; it must have this size and this digest.
    ///
    /// # Errors
    /// Names the file that cannot be read or has changed, or the object that cannot be written: it is not there then,
    /// or as it was.
    pub fn upload(&self, key: &str, file: &FilePath, bytes: u64, digest: Digest) -> Result<()> {
        let failed = || format!("cannot read {}", file.display());
        let mut open = File::open(file).with_context(failed)?;
        let changed = || format!("{} has changed while it was read", file.display());
        let (store, path) = (self.writing.clone(), self.path(key)?);
        let written = |error| explained(error, &format!("write {}", self.url(key)));
        if bytes <= PART {
            let mut content = Vec::new();
            open.read_to_end(&mut content).with_context(failed)?;
            ensure!(content.len() as u64 == bytes && Digest::of(&content) == digest, changed());
            return wait(async move { store.put(&path, content.into()).await })?.map(drop).map_err(written);
        }
        let part = PART.max(bytes.div_ceil(MOST_PARTS));
        let mut upload = wait(async move { store.put_multipart(&path).await })?.map_err(written)?;
        let (mut summing, mut left) = (Summing::default(), bytes);
        let mut parts = || -> Result<()> {
            while left > 0 {
                let mut sent = Vec::new();
                while sent.len() < PARTS_AT_ONCE && left > 0 {
                    let mut content = Vec::new();
                    open.by_ref().take(part.min(left)).read_to_end(&mut content).with_context(failed)?;
                    ensure!(!content.is_empty(), changed());
                    left -= content.len() as u64;
                    summing.add(&content);
                    sent.push(upload.put_part(content.into()));
                }
                wait(try_join_all(sent))?.map_err(written)?;
            }
            ensure!(summing.digest() == digest, changed());
            Ok(())
        };
        match parts() {
            Ok(()) => wait(async move { upload.complete().await })?.map(drop).map_err(written),
            Err(error) => {
                // Where they cannot be dropped, the bucket's own rule for unfinished uploads does it.
                let _ = wait(async move { upload.abort().await });
                Err(error)
            }
        }
    }

    /// Puts an object that is in memory, whatever was there.
    ///
    /// # Errors
    /// Where the store does not answer, or answers no.
    pub fn put(&self, key: &str, bytes: Vec<u8>) -> Result<()> {
        let (store, path) = (self.writing.clone(), self.path(key)?);
        let put = wait(async move { store.put(&path, bytes.into()).await })?;
        put.map(drop).map_err(|error| explained(error, &format!("write {}", self.url(key))))
    }

    /// Removes an object, where it is there; the store is asked for [`PATIENCE`] at most.
    ///
    /// # Errors
    /// Where the store does not answer, or answers no.
    pub fn remove(&self, key: &str) -> Result<()> {
        let (store, path) = (self.writing.clone(), self.path(key)?);
        match wait_at_most(self.patience, async move { store.delete(&path).await })? {
            Some(Ok(()) | Err(Error::NotFound { .. })) => Ok(()),
            Some(Err(error)) => Err(explained(error, &format!("remove {}", self.url(key)))),
            None => bail!("cannot remove {}: no answer for {:?}", self.url(key), self.patience),
        }
    }
}

#[cfg(test)]
impl Bucket {
    /// A folder of a store that a test made.
    pub(super) fn over(store: Store, patience: Duration) -> Bucket {
        Bucket { writing: store.clone(), store, patience, home: "s3://bucket/".into(), prefix: "a/store/".into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::faulty::{Fault, faulty};

    fn bucket() -> Bucket {
        faulty(PATIENCE).0
    }

    #[test]
    fn what_decides_is_not_waited_for_for_ever() {
        let (bucket, faults) = faulty(Duration::from_millis(50));
        bucket.put("m", b"1".to_vec()).unwrap();
        faults.set(Fault::Silent);
        let ends = [bucket.get("m").map(drop), bucket.put_if("m", b"2", &When::Absent).map(drop), bucket.remove("m")];
        for error in ends.map(Result::unwrap_err) {
            assert!(error.to_string().contains("no answer for 50ms"), "{error}");
        }
        faults.set(Fault::None);
        assert_eq!(bucket.get_whole("m").unwrap().as_deref(), Some(&b"1"[..]));
        assert_eq!(bucket.get_whole("n").unwrap(), None);
    }

    #[test]
    fn large_files_go_in_parts_and_come_back_whole() {
        let folder = tempfile::tempdir().unwrap();
        let (bucket, file) = (bucket(), folder.path().join("file"));
        for length in [0, 1, PART as usize, (PARTS_AT_ONCE + 1) * PART as usize + 7] {
            let bytes: Vec<u8> = (0..length).map(|i| (i * i % 251) as u8).collect();
            std::fs::write(&file, &bytes).unwrap();
            bucket.upload("week=1/x", &file, length as u64, Digest::of(&bytes)).unwrap();
            let mut found = Vec::new();
            bucket.read("week=1/x", length as u64).unwrap().read_to_end(&mut found).unwrap();
            assert!(found == bytes, "{length} bytes");
            let other = bucket.upload("week=1/y", &file, length as u64, Digest::of(b"other")).unwrap_err().to_string();
            assert!(other.contains("has changed while it was read"), "{other}");
        }
        assert_eq!(bucket.list().unwrap().into_keys().collect::<Vec<_>>(), ["week=1/x"]);
        bucket.remove("week=1/x").unwrap();
        bucket.remove("week=1/x").unwrap();
        assert_eq!(bucket.size("week=1/x").unwrap(), None);
    }

    #[test]
    fn a_put_is_refused_where_its_condition_does_not_hold() {
        let bucket = bucket();
        let Put::Done(first) = bucket.put_if("m", b"1", &When::Absent).unwrap() else { panic!("there was none") };
        assert!(matches!(bucket.put_if("m", b"2", &When::Absent).unwrap(), Put::Refused));
        let Put::Done(second) = bucket.put_if("m", b"2", &When::Is(first.clone())).unwrap() else {
            panic!("it was so")
        };
        assert!(matches!(bucket.put_if("m", b"3", &When::Is(first.clone())).unwrap(), Put::Refused));
        // As if the answer had been lost.
        assert!(matches!(bucket.put_if("m", b"2", &When::Is(first)).unwrap(), Put::Done(_)));
        assert_eq!(bucket.get("m").unwrap(), Some((b"2".to_vec(), second)));
        bucket.check_conditions("m", b"2").unwrap();
    }

    #[test]
    fn urls_name_a_folder_of_a_bucket() {
        let url = |url: &str| Bucket::open(url).map(|bucket| bucket.url("m")).map_err(|error| error.to_string());
        assert_eq!(url("s3://bucket/a/store"), Ok("s3://bucket/a/store/m".into()));
        assert_eq!(url("s3://bucket"), Ok("s3://bucket/m".into()));
        assert!(url("s3:///a").unwrap_err().contains("names no bucket"));
        for odd in ["s3://bucket/a*", "s3://bucket/a?x=1", "s3://bucket/a//b", "s3://bucket/../b"] {
            assert!(url(odd).unwrap_err().contains("names no folder"), "{odd}");
        }
    }
}
