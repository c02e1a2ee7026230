//! A store that a command only reads. From a bucket it fetches only the files needed, into a
//! temporary folder. It needs neither a lock nor a mirror.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};

use super::catalog::{Catalog, CatalogVersion, READINGS, retry_if_published};
use super::refresh::{FileDownload, fetch_one};
use super::transfers::each;
use super::{Notify, url_of};
use crate::objects::Bucket;
use crate::records::short_hash;
use crate::state::{CommittedWeek, MANIFEST, OWN, Store};

/// A read-only store: a folder, or files fetched from a bucket.
pub struct ReadStore {
    store: Store,
    from: Option<BucketSource>,
}

/// The bucket that files are fetched from, the catalog that names them, and the folder that they
/// are fetched to.
struct BucketSource {
    bucket: Bucket,
    catalog: Catalog,
    folder: TemporaryFolder,
}

/// A folder that is removed when this is dropped.
struct TemporaryFolder(PathBuf);

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        // If this fails, the folder stays until the system cleans its temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl ReadStore {
    /// Calls `read` with the store that a command names. If another run commits or publishes
    /// meanwhile, so that a file is gone, `read` is called again with what is there then.
    ///
    /// # Errors
    /// If the store is in a bucket and does not exist or cannot be read; and the errors of `read`.
    pub fn at<T>(given: &Path, mut read: impl FnMut(&ReadStore) -> Result<T>) -> Result<T> {
        let Some(url) = url_of(given)? else { return in_folder(&Store::at(given), read) };
        let bucket = Bucket::open(&url)?;
        retry_if_published(&bucket, |current| {
            let current = current
                .as_ref()
                .with_context(|| format!("{url} is not a nigh store (no manifest.json): `nigh run` makes a store"))?;
            read(&ReadStore::of(&url, &bucket, current)?)
        })
    }

    fn of(url: &str, bucket: &Bucket, current: &CatalogVersion) -> Result<ReadStore> {
        let name = short_hash(format!("{url} {} {}", std::process::id(), jiff::Timestamp::now()).as_bytes());
        let folder = TemporaryFolder(std::env::temp_dir().join(format!("nigh-look-{name}")));
        let failed = || format!("cannot make {}", folder.0.display());
        // Users who may not read the bucket must not read its copy.
        DirBuilder::new()
            .mode(0o700)
            .create(&folder.0)
            .and_then(|()| std::fs::create_dir(folder.0.join("_mirror")))
            .and_then(|()| std::fs::create_dir(folder.0.join(OWN)))
            .with_context(failed)?;
        std::fs::write(folder.0.join(OWN).join(MANIFEST), current.catalog.manifest()).with_context(failed)?;
        let store = Store::at(&folder.0);
        let from = BucketSource { bucket: bucket.clone(), catalog: current.catalog.clone(), folder };
        Ok(ReadStore { store, from: Some(from) })
    }

    /// The folder that has the manifest, and the files fetched so far.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Fetches the records of a week: its `week.json`, `job.toml` and `summary.json`.
    ///
    /// # Errors
    /// As [`ReadStore::need`].
    pub fn need_records(&self, week: &CommittedWeek) -> Result<()> {
        let folder = self.store.records(week);
        self.need_own(folder.strip_prefix(self.store.root().join(OWN)).unwrap_or(&folder))
    }

    /// Fetches the files of a table of a week, whose records are at hand; and those of earlier
    /// weeks in which pages that stayed have their rows.
    ///
    /// # Errors
    /// As [`ReadStore::need`]; or if the records are damaged.
    pub fn need_table(&self, week: &CommittedWeek, table: &str) -> Result<()> {
        if self.from.is_none() {
            return Ok(());
        }
        let whole = self.store.whole(week)?;
        let mut files = vec![format!("{}/", week.week.folder())];
        for (earlier, kept) in &whole.kept {
            let parts = kept.get(table).into_iter().flatten();
            files.extend(parts.map(|part| format!("{}/{}", earlier.folder(), part.file)));
        }
        self.need(table, &files.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// Fetches the files in a folder of the store's own folder.
    ///
    /// # Errors
    /// As [`ReadStore::need`].
    pub fn need_own(&self, folder: &Path) -> Result<()> {
        self.need(OWN, &[&format!("{}/", folder.display())])
    }

    /// Fetches the files of one of the store's folders, by name, whose paths in it begin with one
    /// of the `prefixes`: of `clusters`, `week=2024-01-08/`.
    ///
    /// # Errors
    /// Names the object that is missing or damaged.
    pub fn need(&self, folder: &str, prefixes: &[&str]) -> Result<()> {
        let Some(BucketSource { bucket, catalog, folder: to }) = &self.from else { return Ok(()) };
        let files = catalog.files(bucket, folder)?;
        let files = files.0.iter().filter(|(path, _)| prefixes.iter().any(|prefix| path.starts_with(prefix)));
        let downloads: Vec<FileDownload> =
            files.map(|(path, content)| FileDownload::new(&to.0, folder, path, *content)).collect();
        let silent: Notify = Arc::new(|_| {});
        each(&downloads, "fetching", &silent, |file| fetch_one(bucket, file, &to.0.join("_mirror")))
    }
}

/// Calls `read` with a store in a folder, and again after an error if another run committed
/// meanwhile, which removes the files that it replaces.
fn in_folder<T>(store: &Store, mut read: impl FnMut(&ReadStore) -> Result<T>) -> Result<T> {
    // What cannot be read is missed by `read`.
    let manifest = || std::fs::read(store.manifest_path()).ok();
    let (read_store, mut before) = (ReadStore { store: store.clone(), from: None }, manifest());
    for _ in 1..READINGS {
        let found = read(&read_store);
        if found.is_ok() {
            return found;
        }
        let now = manifest();
        if now == before {
            return found;
        }
        before = now;
    }
    read(&read_store)
}

#[cfg(test)]
mod tests {
    use anyhow::bail;

    use super::*;

    #[test]
    fn a_store_to_which_another_run_commits_meanwhile_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join(OWN)).unwrap();
        let mut readings = 0;
        let mut read = |commits: usize, store: &ReadStore| {
            readings += 1;
            if readings <= commits {
                std::fs::write(store.store().manifest_path(), readings.to_string()).unwrap();
                bail!("a file is gone");
            }
            if commits == 0 { bail!("damaged") } else { Ok(readings) }
        };
        assert_eq!(ReadStore::at(folder.path(), |store| read(2, store)).unwrap(), 3);
        let error = ReadStore::at(folder.path(), |store| read(0, store)).unwrap_err().to_string();
        assert_eq!((error.as_str(), readings), ("damaged", 4), "without a commit it is an error at once");
        let mut endless = 0;
        let error = ReadStore::at(folder.path(), |store| -> Result<()> {
            endless += 1;
            std::fs::write(store.store().manifest_path(), endless.to_string()).unwrap();
            bail!("a file is gone")
        });
        assert!(error.is_err() && endless == READINGS);
    }

    #[cfg(feature = "cloud")]
    #[test]
    fn only_this_user_may_read_what_is_fetched() {
        use std::collections::BTreeMap;
        use std::os::unix::fs::PermissionsExt as _;

        use crate::config::Method;
        use crate::objects::PATIENCE;
        use crate::objects::faulty::faulty;
        use crate::state::Manifest;

        let (bucket, _) = faulty(PATIENCE);
        let manifest = serde_json::to_string(&Manifest::new(&Method::default())).unwrap();
        let catalog = Catalog::new(manifest, &BTreeMap::new()).unwrap();
        bucket.put(crate::mirror::catalog::MANIFEST, catalog.bytes().unwrap()).unwrap();
        let current = Catalog::read(&bucket).unwrap().unwrap();
        let read_store = ReadStore::of("s3://bucket/a/store", &bucket, &current).unwrap();
        let root = read_store.store().root().to_owned();
        assert_eq!(std::fs::metadata(&root).unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(read_store.store().manifest().unwrap(), Some(Manifest::new(&Method::default())));
        drop(read_store);
        assert!(!root.exists());
    }
}
