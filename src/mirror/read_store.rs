//! A store that is only read: of one in a bucket just the files are fetched that are asked for, into a folder that is
//! removed at the end. No lock is needed, and no mirror.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};

use super::catalog::{Catalog, CatalogVersion, steadily};
use super::refresh::{FileDownload, fetch_one};
use super::transfers::each;
use super::{Say, url_of};
use crate::objects::Bucket;
use crate::records::short_hash;
use crate::state::Store;

/// A store that is only read.
pub struct ReadStore {
    store: Store,
    from: Option<BucketSource>,
}

/// Where files are fetched from.
struct BucketSource {
    bucket: Bucket,
    catalog: Catalog,
    folder: TemporaryFolder,
}

/// A folder that is removed when this is dropped.
struct TemporaryFolder(PathBuf);

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        // Where it cannot be removed the system's own cleaning does it.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl ReadStore {
    /// Looks at the store that a command names; again, where it is published meanwhile.
    ///
    /// # Errors
    /// Where it is a bucket's, and there is none, or it cannot be read; and what `look` says.
    pub fn at<T>(given: &Path, mut look: impl FnMut(&ReadStore) -> Result<T>) -> Result<T> {
        let Some(url) = url_of(given)? else { return look(&ReadStore { store: Store::at(given), from: None }) };
        let bucket = Bucket::open(&url)?;
        steadily(&bucket, |found| {
            let found = found.as_ref().with_context(|| {
                format!("{url} is no store: it has no manifest.json (a store is what `nigh run` makes)")
            })?;
            look(&ReadStore::of(&url, &bucket, found)?)
        })
    }

    fn of(url: &str, bucket: &Bucket, found: &CatalogVersion) -> Result<ReadStore> {
        let name = short_hash(format!("{url} {} {}", std::process::id(), jiff::Timestamp::now()).as_bytes());
        let folder = TemporaryFolder(std::env::temp_dir().join(format!("nigh-look-{name}")));
        let failed = || format!("cannot make {}", folder.0.display());
        // What a bucket keeps from others is kept from them here.
        DirBuilder::new()
            .mode(0o700)
            .create(&folder.0)
            .and_then(|()| std::fs::create_dir(folder.0.join("_mirror")))
            .with_context(failed)?;
        std::fs::write(folder.0.join("manifest.json"), found.catalog.manifest()).with_context(failed)?;
        let store = Store::at(&folder.0);
        Ok(ReadStore {
            store,
            from: Some(BucketSource { bucket: bucket.clone(), catalog: found.catalog.clone(), folder }),
        })
    }

    /// The folder in which what was asked for is.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Fetches what some names in one of the store's folders begin with: `summary.json`, `clusters/`.
    ///
    /// # Errors
    /// Names the object that is missing or damaged.
    pub fn need(&self, folder: &str, names: &[&str]) -> Result<()> {
        let Some(BucketSource { bucket, catalog, folder: to }) = &self.from else { return Ok(()) };
        let files = catalog.files(bucket, folder)?;
        let wanted = files.0.iter().filter(|(path, _)| names.iter().any(|name| path.starts_with(name)));
        let wanted: Vec<FileDownload> =
            wanted.map(|(path, content)| FileDownload::new(&to.0, folder, path, *content)).collect();
        let silent: Say = Arc::new(|_| {});
        each(&wanted, "fetching", &silent, |file| fetch_one(bucket, file, &to.0.join("_mirror")))
    }
}

#[cfg(all(test, feature = "cloud"))]
mod tests {
    use std::collections::BTreeMap;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::config::Method;
    use crate::objects::PATIENCE;
    use crate::objects::faulty::faulty;
    use crate::state::Manifest;

    #[test]
    fn what_is_fetched_is_for_this_user_alone() {
        let (bucket, _) = faulty(PATIENCE);
        let manifest = serde_json::to_string(&Manifest::new(&Method::default())).unwrap();
        let catalog = Catalog::new(manifest, &BTreeMap::new()).unwrap();
        bucket.put("manifest.json", catalog.bytes().unwrap()).unwrap();
        let found = Catalog::read(&bucket).unwrap().unwrap();
        let look = ReadStore::of("s3://bucket/a/store", &bucket, &found).unwrap();
        let root = look.store().root().to_owned();
        assert_eq!(std::fs::metadata(&root).unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(look.store().manifest().unwrap(), Some(Manifest::new(&Method::default())));
        drop(look);
        assert!(!root.exists());
    }
}
