//! A folder of a bucket that nigh writes to: `s3://bucket/prefix`.
//!
//! The code relies on two promises of the service. A put is done as a whole or not at all. A
//! conditional put (`If-None-Match: *`, `If-Match: ETAG`) is refused if its condition does not
//! hold. [`Bucket::check_conditions`] detects a service that ignores conditions.
//!
//! A put whose response was lost may have been done. Therefore a conditional put that fails or is
//! refused reads the object again: if the object has exactly the bytes of the put, the put was
//! done.
//!
//! Requests for small objects that decide something (the lock, the manifest), and removals, time
//! out after [`PATIENCE`] and are not repeated afterwards. Only the client's own limits apply to
//! all other requests, because a part may take minutes on a slow link.

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

use super::client::{ObjectStoreClient, absent, explained, store, store_to_write, wait, wait_at_most};
use super::digest::{Digest, Digester};
use super::read::read;
use super::{PATIENCE, PutCondition, PutOutcome};

/// Larger objects are uploaded in parts of at least this size, in bytes; S3 requires 5 MiB.
const PART: u64 = 8 << 20;
/// Parts of one object that are uploaded at the same time.
const PARTS_AT_ONCE: usize = 3;
/// The most parts of an object; S3 allows ten thousand.
const MOST_PARTS: u64 = 9000;

/// A folder of a bucket. Keys are relative to it.
#[derive(Clone, Debug)]
pub struct Bucket {
    /// The client for reads.
    store: ObjectStoreClient,
    /// The client for writes.
    writing: ObjectStoreClient,
    /// [`PATIENCE`]; shorter in tests.
    patience: Duration,
    /// `s3://bucket/`.
    home: String,
    /// `prefix/`, or empty.
    prefix: String,
}

/// A version of an object: its ETag and version id.
#[derive(Clone, Debug, PartialEq)]
pub struct ObjectVersion(UpdateVersion);

impl Bucket {
    /// The folder of a URL, `s3://bucket/prefix`. Sends no request.
    ///
    /// # Errors
    /// If the URL or the settings in the environment are wrong.
    pub fn open(url: &str) -> Result<Bucket> {
        let (home, prefix) = Bucket::parts(url)?;
        Ok(Bucket { store: store(&home)?, writing: store_to_write(&home)?, patience: PATIENCE, home, prefix })
    }

    /// The URL of the bucket, and the prefix of the folder.
    fn parts(url: &str) -> Result<(String, String)> {
        let (scheme, rest) = url.split_once("://").with_context(|| format!("{url} is not a URL"))?;
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        ensure!(!bucket.is_empty(), "{url} names no bucket: write {scheme}://BUCKET/PREFIX");
        let prefix = prefix.trim_matches('/');
        ensure!(
            !prefix.contains(['*', '?', '#', '%', '\\']) && !prefix.split('/').any(|part| matches!(part, "." | "..")),
            "{url} names no folder of a bucket: write {scheme}://BUCKET/PREFIX, without any of * ? # % \\"
        );
        let prefix = if prefix.is_empty() { String::new() } else { format!("{prefix}/") };
        Path::parse(&prefix).with_context(|| format!("{url} names no folder of a bucket"))?;
        Ok((format!("{scheme}://{bucket}/"), prefix))
    }

    /// The URL of an object; of the folder, for an empty key.
    pub fn url(&self, key: &str) -> String {
        format!("{}{}{key}", self.home, self.prefix)
    }

    fn path(&self, key: &str) -> Result<Path> {
        Path::parse(format!("{}{key}", self.prefix)).with_context(|| format!("{} names no object", self.url(key)))
    }

    /// Reads a small object: its bytes and their version; `None` if it does not exist.
    ///
    /// # Errors
    /// If the service does not respond within [`PATIENCE`], or responds with an error.
    pub fn get(&self, key: &str) -> Result<Option<(Vec<u8>, ObjectVersion)>> {
        let (store, path) = (self.store.clone(), self.path(key)?);
        let got = wait_at_most(self.patience, async move {
            let response = store.get(&path).await?;
            let tag = ObjectVersion(UpdateVersion {
                e_tag: response.meta.e_tag.clone(),
                version: response.meta.version.clone(),
            });
            Ok::<_, Error>((response.bytes().await?, tag))
        })?;
        match got {
            Some(Ok((bytes, tag))) => Ok(Some((bytes.into(), tag))),
            Some(Err(error @ Error::NotFound { .. })) => absent(error, &format!("read {}", self.url(key))),
            Some(Err(error)) => Err(explained(error, &format!("read {}", self.url(key)))),
            None => bail!("cannot read {}: no response for {:?}", self.url(key), self.patience),
        }
    }

    /// Reads an object that may be large, such as a list of files; `None` if it does not exist.
    ///
    /// # Errors
    /// If the service does not respond, or responds with an error.
    pub fn get_whole(&self, key: &str) -> Result<Option<Vec<u8>>> {
        let (store, path) = (self.store.clone(), self.path(key)?);
        match wait(async move { store.get(&path).await?.bytes().await })? {
            Ok(bytes) => Ok(Some(bytes.into())),
            Err(error @ Error::NotFound { .. }) => absent(error, &format!("read {}", self.url(key))),
            Err(error) => Err(explained(error, &format!("read {}", self.url(key)))),
        }
    }

    /// Puts a small object if a condition holds. Takes at most [`PATIENCE`], and as long again if
    /// it must read the object to learn whether the put was done.
    ///
    /// # Errors
    /// If the service does not respond: then it is unknown whether the object was put.
    pub fn put_if(&self, key: &str, bytes: &[u8], when: &PutCondition) -> Result<PutOutcome> {
        let put = self.put_once(key, bytes, when);
        if matches!(put, Ok(PutOutcome::Done(_))) {
            return put;
        }
        match self.get(key) {
            Ok(Some((current, tag))) if current == bytes => Ok(PutOutcome::Done(tag)),
            _ => put,
        }
    }

    fn put_once(&self, key: &str, bytes: &[u8], when: &PutCondition) -> Result<PutOutcome> {
        let (store, path, payload) = (self.writing.clone(), self.path(key)?, PutPayload::from(bytes.to_vec()));
        let mode = match when {
            PutCondition::Absent => PutMode::Create,
            PutCondition::Is(tag) => PutMode::Update(tag.0.clone()),
        };
        let put = wait_at_most(self.patience, async move { store.put_opts(&path, payload, mode.into()).await })?;
        match put {
            Some(Ok(done)) if done.e_tag.is_none() && done.version.is_none() => {
                bail!("{} has no ETag: this service cannot hold a store", self.url(key))
            }
            Some(Ok(done)) => Ok(PutOutcome::Done(ObjectVersion(done.into()))),
            Some(Err(Error::AlreadyExists { .. } | Error::Precondition { .. })) => Ok(PutOutcome::Refused),
            Some(Err(error)) => Err(explained(error, &format!("write {}", self.url(key)))),
            None => bail!("cannot write {}: no response for {:?}", self.url(key), self.patience),
        }
    }

    /// Checks that the service obeys conditions: puts an existing object, with its own `bytes`,
    /// under two conditions that do not hold.
    ///
    /// # Errors
    /// If the service ignores a condition, or does not respond.
    pub fn check_conditions(&self, key: &str, bytes: &[u8]) -> Result<()> {
        let other =
            ObjectVersion(UpdateVersion { e_tag: Some(format!("\"{}\"", "0".repeat(32))), version: Some("1".into()) });
        for (when, name) in [(PutCondition::Absent, "If-None-Match"), (PutCondition::Is(other), "If-Match")] {
            if let PutOutcome::Done(_) = self.put_once(key, bytes, &when)? {
                bail!(
                    "the service of {} ignores the condition of a put ({name}): two runs could write to a store there at the \
                     same time; use another service, or a folder",
                    self.home
                );
            }
        }
        Ok(())
    }

    /// Lists all objects of the folder: key and size in bytes.
    ///
    /// # Errors
    /// If the service cannot list them.
    pub fn list(&self) -> Result<BTreeMap<String, u64>> {
        let store = self.store.clone();
        let prefix = (!self.prefix.is_empty()).then(|| Path::parse(&self.prefix)).transpose()?;
        let objects = wait(async move { store.list(prefix.as_ref()).collect::<Vec<_>>().await })?;
        let mut sizes = BTreeMap::new();
        for object in objects {
            let object = object.map_err(|error| explained(error, &format!("list {}", self.url(""))))?;
            let key = object.location.to_string();
            if let Some(key) = key.strip_prefix(&self.prefix) {
                sizes.insert(key.to_owned(), object.size);
            }
        }
        Ok(sizes)
    }

    /// The size of an object in bytes; `None` if it does not exist.
    ///
    /// # Errors
    /// As [`Bucket::get`].
    pub fn size(&self, key: &str) -> Result<Option<u64>> {
        let (store, path) = (self.store.clone(), self.path(key)?);
        match wait(async move { store.head(&path).await })? {
            Ok(meta) => Ok(Some(meta.size)),
            Err(error @ Error::NotFound { .. }) => absent(error, &format!("read {}", self.url(key))),
            Err(error) => Err(explained(error, &format!("read {}", self.url(key)))),
        }
    }

    /// Opens the first `bytes` bytes of an object for reading.
    ///
    /// # Errors
    /// If the key is not valid. Errors of the network appear while reading.
    pub fn read(&self, key: &str, bytes: u64) -> Result<impl Read + use<>> {
        read(self.store.clone(), self.path(key)?, bytes)
    }

    /// Uploads a file, in parts if it is large. The file must have the size `bytes` and the given
    /// digest.
    ///
    /// # Errors
    /// Names the file that cannot be read or has changed, or the object that cannot be written:
    /// then the object does not exist, or is as it was.
    pub fn upload(&self, key: &str, file: &FilePath, bytes: u64, digest: Digest) -> Result<()> {
        let failed = || format!("cannot read {}", file.display());
        let mut reader = File::open(file).with_context(failed)?;
        let changed = || format!("{} has changed while it was read", file.display());
        let (store, path) = (self.writing.clone(), self.path(key)?);
        let written = |error| explained(error, &format!("write {}", self.url(key)));
        if bytes <= PART {
            let mut content = Vec::new();
            reader.read_to_end(&mut content).with_context(failed)?;
            ensure!(content.len() as u64 == bytes && Digest::of(&content) == digest, changed());
            return wait(async move { store.put(&path, content.into()).await })?.map(drop).map_err(written);
        }
        let part = PART.max(bytes.div_ceil(MOST_PARTS));
        let mut upload = wait(async move { store.put_multipart(&path).await })?.map_err(written)?;
        let (mut digester, mut left) = (Digester::default(), bytes);
        let mut put_parts = || -> Result<()> {
            while left > 0 {
                let mut puts = Vec::new();
                while puts.len() < PARTS_AT_ONCE && left > 0 {
                    let mut content = Vec::new();
                    reader.by_ref().take(part.min(left)).read_to_end(&mut content).with_context(failed)?;
                    ensure!(!content.is_empty(), changed());
                    left -= content.len() as u64;
                    digester.add(&content);
                    puts.push(upload.put_part(content.into()));
                }
                wait(try_join_all(puts))?.map_err(written)?;
            }
            ensure!(digester.digest() == digest, changed());
            Ok(())
        };
        match put_parts() {
            Ok(()) => wait(async move { upload.complete().await })?.map(drop).map_err(written),
            Err(error) => {
                // If the parts cannot be removed now, the bucket's own rule for unfinished uploads
                // removes them.
                let _ = wait(async move { upload.abort().await });
                Err(error)
            }
        }
    }

    /// Puts an object from memory, in the place of any that was there.
    ///
    /// # Errors
    /// If the service does not respond, or responds with an error.
    pub fn put(&self, key: &str, bytes: Vec<u8>) -> Result<()> {
        let (store, path) = (self.writing.clone(), self.path(key)?);
        let put = wait(async move { store.put(&path, bytes.into()).await })?;
        put.map(drop).map_err(|error| explained(error, &format!("write {}", self.url(key))))
    }

    /// Removes an object; it need not exist.
    ///
    /// # Errors
    /// If the service does not respond within [`PATIENCE`], or responds with an error.
    pub fn remove(&self, key: &str) -> Result<()> {
        let (store, path) = (self.writing.clone(), self.path(key)?);
        match wait_at_most(self.patience, async move { store.delete(&path).await })? {
            Some(Ok(()) | Err(Error::NotFound { .. })) => Ok(()),
            Some(Err(error)) => Err(explained(error, &format!("remove {}", self.url(key)))),
            None => bail!("cannot remove {}: no response for {:?}", self.url(key), self.patience),
        }
    }
}

#[cfg(any(test, feature = "faulty"))]
impl Bucket {
    /// A folder of a store that a test has made.
    pub(super) fn over(store: ObjectStoreClient, patience: Duration) -> Bucket {
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
    fn requests_for_small_objects_time_out() {
        let (bucket, faults) = faulty(Duration::from_millis(50));
        bucket.put("m", b"1".to_vec()).unwrap();
        faults.set(Fault::Silent);
        let results =
            [bucket.get("m").map(drop), bucket.put_if("m", b"2", &PutCondition::Absent).map(drop), bucket.remove("m")];
        for error in results.map(Result::unwrap_err) {
            assert!(error.to_string().contains("no response for 50ms"), "{error}");
        }
        faults.set(Fault::None);
        assert_eq!(bucket.get_whole("m").unwrap().as_deref(), Some(&b"1"[..]));
        assert_eq!(bucket.get_whole("n").unwrap(), None);
    }

    #[test]
    fn files_of_one_part_and_of_several_come_back_with_their_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let (bucket, file) = (bucket(), folder.path().join("file"));
        for length in [0, 1, PART as usize, (PARTS_AT_ONCE + 1) * PART as usize + 7] {
            let bytes: Vec<u8> = (0..length).map(|i| (i * i % 251) as u8).collect();
            std::fs::write(&file, &bytes).unwrap();
            bucket.upload("week=1/x", &file, length as u64, Digest::of(&bytes)).unwrap();
            let mut read = Vec::new();
            bucket.read("week=1/x", length as u64).unwrap().read_to_end(&mut read).unwrap();
            assert!(read == bytes, "{length} bytes");
            let other = bucket.upload("week=1/y", &file, length as u64, Digest::of(b"other")).unwrap_err().to_string();
            assert!(other.contains("has changed while it was read"), "{other}");
        }
        assert_eq!(bucket.list().unwrap().into_keys().collect::<Vec<_>>(), ["week=1/x"]);
        bucket.remove("week=1/x").unwrap();
        bucket.remove("week=1/x").unwrap();
        assert_eq!(bucket.size("week=1/x").unwrap(), None);
    }

    #[test]
    fn a_put_is_refused_if_its_condition_does_not_hold() {
        let bucket = bucket();
        let PutOutcome::Done(first) = bucket.put_if("m", b"1", &PutCondition::Absent).unwrap() else {
            panic!("there was none")
        };
        assert!(matches!(bucket.put_if("m", b"2", &PutCondition::Absent).unwrap(), PutOutcome::Refused));
        let PutOutcome::Done(second) = bucket.put_if("m", b"2", &PutCondition::Is(first.clone())).unwrap() else {
            panic!("it was so")
        };
        assert!(matches!(bucket.put_if("m", b"3", &PutCondition::Is(first.clone())).unwrap(), PutOutcome::Refused));
        // A put of the bytes that the object has counts as done: its first response may have been
        // lost.
        assert!(matches!(bucket.put_if("m", b"2", &PutCondition::Is(first)).unwrap(), PutOutcome::Done(_)));
        assert_eq!(bucket.get("m").unwrap(), Some((b"2".to_vec(), second)));
        bucket.check_conditions("m", b"2").unwrap();
    }

    #[test]
    fn urls_name_a_folder_of_a_bucket() {
        let url =
            |url: &str| Bucket::parts(url).map(|(home, prefix)| home + &prefix).map_err(|error| error.to_string());
        assert_eq!(url("s3://bucket/a/store"), Ok("s3://bucket/a/store/".into()));
        assert_eq!(url("s3://bucket"), Ok("s3://bucket/".into()));
        assert!(url("s3:///a").unwrap_err().contains("names no bucket"));
        for odd in ["s3://bucket/a*", "s3://bucket/a?x=1", "s3://bucket/a//b", "s3://bucket/../b"] {
            assert!(url(odd).unwrap_err().contains("names no folder"), "{odd}");
        }
    }
}
