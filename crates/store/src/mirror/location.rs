//! The location of a store as a command names it: a folder, or a folder of a bucket with its
//! mirror.

use std::fs::{DirBuilder, File};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use anyhow::{Context, Result};

use super::catalog::{Catalog, CatalogVersion};
use super::folder::{Base, MirrorFolder};
use super::lease::{Lease, LeasePhase, SharedLease};
use super::publish::publish;
use super::refresh::refresh;
use super::{Notify, url_of};
use crate::objects::Bucket;
use crate::records::short_hash;
use crate::state::Store;

/// Where a store is.
#[derive(Clone, Debug)]
pub struct StoreLocation {
    /// The path or URL on the command line.
    given: PathBuf,
    store: Store,
    in_bucket: Option<BucketStore>,
}

/// A store in a bucket, and its mirror.
#[derive(Clone, Debug)]
struct BucketStore {
    bucket: Bucket,
    folder: MirrorFolder,
    /// Whether the mirror is in this user's cache, where only this user may read it.
    private: bool,
}

/// The exclusive right to write to a store, until it is dropped.
pub struct WriteGuard {
    publishing: Option<Publishing>,
    /// The lock of the folder. It is dropped after the lock in the bucket, because fields are
    /// dropped in order.
    lock: File,
}

/// The bucket of a store that a run writes to, its current catalog and the lease on it.
struct Publishing {
    in_bucket: BucketStore,
    current: Option<CatalogVersion>,
    lease: Lease,
}

/// A handle on the publication of a run's work, for a signal handler. For a store that is a folder
/// there is nothing to publish.
#[derive(Clone)]
pub struct PublishHandle(Option<Arc<SharedLease>>);

impl StoreLocation {
    /// The location that a command names. The mirror of a store in a bucket is `mirror`, or a
    /// folder of this user's cache.
    ///
    /// # Errors
    /// If `given` is a URL that cannot hold a store, or the environment names no cache for the
    /// mirror.
    pub fn at(given: &Path, mirror: Option<&Path>) -> Result<StoreLocation> {
        let Some(url) = url_of(given)? else {
            return Ok(StoreLocation { given: given.to_owned(), store: Store::at(given), in_bucket: None });
        };
        let root = mirror.map_or_else(|| default_mirror(&url), |mirror| Ok(mirror.to_owned()))?;
        let (bucket, folder) = (Bucket::open(&url)?, MirrorFolder::at(&root, &url));
        let in_bucket = BucketStore { bucket, folder, private: mirror.is_none() };
        Ok(StoreLocation { given: given.to_owned(), store: Store::at(&root), in_bucket: Some(in_bucket) })
    }

    /// The path or URL by which the command names the store.
    pub fn given(&self) -> &Path {
        &self.given
    }

    /// Whether the store is in a bucket.
    pub fn is_in_bucket(&self) -> bool {
        self.in_bucket.is_some()
    }

    /// The folder in which runs work: the store itself, or its mirror.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Checks that the store exists.
    ///
    /// # Errors
    /// If there is no manifest, or it cannot be read by [`Store::upgrade`] either.
    pub fn expect(&self) -> Result<()> {
        let exists = match &self.in_bucket {
            None => self.store.manifest_of_any_format()?.is_some(),
            Some(in_bucket) => Catalog::read(&in_bucket.bucket)?.is_some(),
        };
        anyhow::ensure!(
            exists,
            "{} is not a nigh store (no manifest.json): `nigh run jobs/cluster.toml` makes a store",
            self.given.display()
        );
        Ok(())
    }

    /// Checks that the bucket can be read, whether or not it has a store.
    ///
    /// # Errors
    /// If the bucket cannot be read, or its manifest is damaged.
    pub fn reach(&self) -> Result<()> {
        self.in_bucket.as_ref().map_or(Ok(()), |in_bucket| Catalog::read(&in_bucket.bucket).map(drop))
    }

    /// Brings the mirror of a store in a bucket up to date, for a command that writes nothing.
    /// Takes no lock in the bucket.
    ///
    /// # Errors
    /// If another run works in the mirror, or the bucket cannot be read.
    pub fn look(&self, say: &Notify) -> Result<()> {
        let Some(in_bucket) = &self.in_bucket else { return Ok(()) };
        let _lock = self.lock()?;
        in_bucket.folder.make()?;
        refresh(&in_bucket.folder, &in_bucket.bucket, say).map(drop)
    }

    /// Takes the store for writing. For a store in a bucket this locks the bucket, brings the
    /// mirror up to date, and publishes what an earlier run made but could not publish. If the lock
    /// in the bucket is lost later, `lost` is called with the reason.
    ///
    /// # Errors
    /// If another run has the store: the message describes that run. If the bucket cannot be read
    /// or written.
    pub fn take(&self, say: &Notify, lost: impl Fn(&str) + Send + 'static) -> Result<WriteGuard> {
        let lock = self.lock()?;
        let Some(in_bucket) = &self.in_bucket else { return Ok(WriteGuard { publishing: None, lock }) };
        let BucketStore { bucket, folder, .. } = in_bucket;
        folder.make()?;
        let lease = Lease::take(bucket, say, lost)?;
        if folder.base()? != Base::Unsettled {
            // If a run was killed during its commit in the mirror, finish that commit, so that it
            // is published too.
            self.store.take_work()?;
            self.store.recover()?;
        }
        let current = refresh(folder, bucket, say)?;
        let current = publish(folder, bucket, current, &lease.shared(), false, say)?;
        // This published an earlier run's work; this run has published nothing yet.
        lease.shared().enter(LeasePhase::Held);
        let publishing = Publishing { in_bucket: in_bucket.clone(), current, lease };
        Ok(WriteGuard { publishing: Some(publishing), lock })
    }

    /// Locks the folder, and makes the mirror's if there is none.
    fn lock(&self) -> Result<File> {
        if self.in_bucket.as_ref().is_some_and(|in_bucket| in_bucket.private) {
            // Users who may not read the bucket must not read its copy.
            let root = self.store.root();
            let made = DirBuilder::new().recursive(true).mode(0o700).create(root);
            made.with_context(|| format!("cannot make the mirror {}: give another --mirror", root.display()))?;
        }
        let lock = self.store.lock();
        if self.in_bucket.is_none() {
            return lock;
        }
        lock.with_context(|| format!("the mirror of {} is {}", self.given.display(), self.store.root().display()))
    }
}

impl WriteGuard {
    /// Publishes the store, if it is in a bucket. If `thorough`, the objects of the bucket are
    /// checked even if there is nothing to publish.
    ///
    /// # Errors
    /// If the store cannot be published: the message says what is known of it. The run's work stays
    /// in the mirror.
    pub fn publish(&mut self, thorough: bool, say: &Notify) -> Result<()> {
        let Some(Publishing { in_bucket, current, lease }) = &mut self.publishing else { return Ok(()) };
        let BucketStore { bucket, folder, .. } = in_bucket;
        *current = publish(folder, bucket, current.take(), &lease.shared(), thorough, say)?;
        // If nothing was new, there was no commit that entered this phase.
        lease.shared().enter(LeasePhase::Published);
        Ok(())
    }

    /// The lock of the folder, for a command that this process starts: [`Store::lock`] takes it
    /// from the command's standard input.
    ///
    /// # Errors
    /// If the system has no file descriptor left.
    pub fn lend(&self) -> Result<File> {
        self.lock.try_clone().context("cannot lend the lock of the store")
    }

    /// The handle for a signal handler.
    pub fn publish_handle(&self) -> PublishHandle {
        PublishHandle(self.publishing.as_ref().map(|publishing| publishing.lease.shared()))
    }
}

impl PublishHandle {
    /// Whether everything committed in the folder is visible to all readers of the store. Always
    /// true for a store that is a folder.
    pub fn is_published(&self) -> bool {
        self.0.as_ref().is_none_or(|lease| lease.phase() == LeasePhase::Published)
    }

    /// Gives up: from now on the run publishes nothing. Returns false if the commit has begun; then
    /// it ends soon by itself. Always true for a store that is a folder. Sends no request.
    pub fn give_up(&self) -> bool {
        self.0.as_ref().is_none_or(|lease| lease.give_up())
    }

    /// Frees the lock in the bucket before the process ends. Waits at most `within` for it; a lock
    /// that is not freed by then becomes stale.
    pub fn free(&self, within: Duration) {
        let Some(lease) = self.0.clone() else { return };
        let (done, freed) = channel::<()>();
        std::thread::spawn(move || {
            lease.free();
            drop(done);
        });
        // Returns when the sender is dropped, or after the timeout.
        let _ = freed.recv_timeout(within);
    }
}

/// The folder in this user's cache for the mirror of a URL's store.
fn default_mirror(url: &str) -> Result<PathBuf> {
    cache_of("stores", url)
        .with_context(|| format!("no folder for the mirror of {url}: give --mirror DIR, or set HOME"))
}

/// The folder in this user's cache for something of a URL, by its kind; `None` if the environment
/// names no cache.
pub fn cache_of(kind: &str, url: &str) -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")))?;
    Some(cache.join("nigh").join(kind).join(short_hash(url.as_bytes())))
}
