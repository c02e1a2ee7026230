//! A store as a command names it: a folder, or a folder of a bucket with its mirror.

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
use super::{Say, url_of};
use crate::objects::Bucket;
use crate::records::short_hash;
use crate::state::Store;

/// A store, wherever it is.
#[derive(Clone, Debug)]
pub struct StoreLocation {
    given: PathBuf,
    store: Store,
    mirrored: Option<BucketStore>,
}

/// A store in a bucket, and its mirror.
#[derive(Clone, Debug)]
struct BucketStore {
    bucket: Bucket,
    folder: MirrorFolder,
    /// Whether the folder is this user's alone, in the cache.
    private: bool,
}

/// A store that is taken for writing, until this is dropped.
pub struct WriteGuard {
    published: Option<Publishing>,
    /// Held until the bucket's lock is free.
    _lock: File,
}

/// What is needed to publish.
struct Publishing {
    mirrored: BucketStore,
    found: Option<CatalogVersion>,
    lease: Lease,
}

/// What a handler of signals may know and do.
#[derive(Clone)]
pub struct PublishHandle(Option<Arc<SharedLease>>);

impl StoreLocation {
    /// The store that a command names; where that is a bucket's, it is worked on in `mirror`, or in a folder of this
    /// user's cache.
    ///
    /// # Errors
    /// Where it is a URL that cannot hold a store, or no folder can be thought of for its mirror.
    pub fn at(given: &Path, mirror: Option<&Path>) -> Result<StoreLocation> {
        let Some(url) = url_of(given)? else {
            return Ok(StoreLocation { given: given.to_owned(), store: Store::at(given), mirrored: None });
        };
        let root = mirror.map_or_else(|| default_mirror(&url), |mirror| Ok(mirror.to_owned()))?;
        let (bucket, folder) = (Bucket::open(&url)?, MirrorFolder::at(&root, &url));
        let mirrored = BucketStore { bucket, folder, private: mirror.is_none() };
        Ok(StoreLocation { given: given.to_owned(), store: Store::at(&root), mirrored: Some(mirrored) })
    }

    /// As the command named it.
    pub fn given(&self) -> &Path {
        &self.given
    }

    /// Whether it is in a bucket.
    pub fn is_in_bucket(&self) -> bool {
        self.mirrored.is_some()
    }

    /// The folder in which it is worked on: the store itself, or its mirror.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Makes sure that there is a store.
    ///
    /// # Errors
    /// Where there is none: says so.
    pub fn expect(&self) -> Result<()> {
        let there = match &self.mirrored {
            None => self.store.manifest()?.is_some(),
            Some(mirrored) => Catalog::read(&mirrored.bucket)?.is_some(),
        };
        anyhow::ensure!(
            there,
            "{} is no store: it has no manifest.json (a store is what `nigh run jobs/cluster.toml` makes)",
            self.given.display()
        );
        Ok(())
    }

    /// Makes sure that a bucket can be read; whether there is a store in it is another question.
    ///
    /// # Errors
    /// Where it cannot be.
    pub fn reach(&self) -> Result<()> {
        self.mirrored.as_ref().map_or(Ok(()), |mirrored| Catalog::read(&mirrored.bucket).map(drop))
    }

    /// Brings the mirror of a bucket's store up to date for a command that writes nothing: no lock in the bucket is
    /// needed.
    ///
    /// # Errors
    /// Where another run works in the mirror, or the bucket cannot be read.
    pub fn look(&self, say: &Say) -> Result<()> {
        let Some(mirrored) = &self.mirrored else { return Ok(()) };
        let _lock = self.lock()?;
        mirrored.folder.make()?;
        refresh(&mirrored.folder, &mirrored.bucket, say).map(drop)
    }

    /// Takes the store for writing. One in a bucket is locked there, its mirror is brought up to date, and what an
    /// earlier run made and could not publish is published. `lost` is called where the lock in the bucket is lost
    /// later.
    ///
    /// # Errors
    /// Where another run has it: says which, and since when. Where the bucket cannot be read or written.
    pub fn take(&self, say: &Say, lost: impl Fn(&str) + Send + 'static) -> Result<WriteGuard> {
        let lock = self.lock()?;
        let Some(mirrored) = &self.mirrored else { return Ok(WriteGuard { published: None, _lock: lock }) };
        let BucketStore { bucket, folder, .. } = mirrored;
        folder.make()?;
        let lease = Lease::take(bucket, say, lost)?;
        if folder.base()? != Base::Unsettled {
            // What a killed run was about to commit here is to be published, too.
            self.store.take_work()?;
            self.store.recover()?;
        }
        let found = refresh(folder, bucket, say)?;
        let found = publish(folder, bucket, found, &lease.shared(), false, say)?;
        // That was an earlier run's; this one's is still to come.
        lease.shared().stand(LeasePhase::Held);
        Ok(WriteGuard { published: Some(Publishing { mirrored: mirrored.clone(), found, lease }), _lock: lock })
    }

    fn lock(&self) -> Result<File> {
        if self.mirrored.as_ref().is_some_and(|mirrored| mirrored.private) {
            // What a bucket keeps from others is kept from them here.
            let root = self.store.root();
            let made = DirBuilder::new().recursive(true).mode(0o700).create(root);
            made.with_context(|| format!("cannot make the mirror {}: take a --mirror", root.display()))?;
        }
        let lock = self.store.lock();
        match self.mirrored {
            Some(_) => lock
                .with_context(|| format!("{} is worked on in {}", self.given.display(), self.store.root().display())),
            None => lock,
        }
    }
}

impl WriteGuard {
    /// Publishes what was made, where the store is in a bucket. Where `thorough`, the bucket is looked through even
    /// when there is nothing to publish.
    ///
    /// # Errors
    /// Where it cannot be published: says what is known of the store, and what was made stays in the mirror.
    pub fn publish(&mut self, thorough: bool, say: &Say) -> Result<()> {
        let Some(Publishing { mirrored, found, lease }) = &mut self.published else { return Ok(()) };
        let BucketStore { bucket, folder, .. } = mirrored;
        *found = publish(folder, bucket, found.take(), &lease.shared(), thorough, say)?;
        // Where nothing was new there was no commit.
        lease.shared().stand(LeasePhase::Published);
        Ok(())
    }

    /// For a handler of signals.
    pub fn held(&self) -> PublishHandle {
        PublishHandle(self.published.as_ref().map(|held| held.lease.shared()))
    }
}

impl PublishHandle {
    /// Whether what is committed in the folder is committed for all: always, but for a bucket's mirror.
    pub fn is_published(&self) -> bool {
        self.0.as_ref().is_none_or(|lease| lease.standing() == LeasePhase::Published)
    }

    /// Has the run publish nothing, from now on, without asking the bucket; says whether it is so. It is not where the
    /// commit has begun: that ends by itself, soon. A store that is no bucket's has nothing to give up.
    pub fn give_up(&self) -> bool {
        self.0.as_ref().is_none_or(|lease| lease.give_up())
    }

    /// Frees the lock in the bucket, before the process ends; that is waited for so long. Where it is not done by then,
    /// the lock grows old.
    pub fn free(&self, within: Duration) {
        let Some(lease) = self.0.clone() else { return };
        let (done, freed) = channel::<()>();
        std::thread::spawn(move || {
            lease.free();
            drop(done);
        });
        // It ends when the sender is dropped, or in vain.
        let _ = freed.recv_timeout(within);
    }
}

/// A folder for the mirror of a URL's store in this user's cache.
fn default_mirror(url: &str) -> Result<PathBuf> {
    let of = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = of("XDG_CACHE_HOME").or_else(|| Some(of("HOME")?.join(".cache")));
    let cache = cache.with_context(|| format!("no folder to work on {url} in: give --mirror DIR, or set HOME"))?;
    Ok(cache.join("nigh/stores").join(short_hash(url.as_bytes())))
}
