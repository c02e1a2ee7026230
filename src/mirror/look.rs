//! A store that is only read: of one in a bucket just the files are fetched that are asked for, into a folder that is
//! removed at the end. No lock is needed, and no mirror.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};

use super::catalog::Catalog;
use super::refresh::{Wanted, fetch_one};
use super::transfers::each;
use super::{Say, url_of};
use crate::objects::Bucket;
use crate::records::short_hash;
use crate::state::Store;

/// A store that is only read.
pub struct Look {
    store: Store,
    from: Option<From>,
}

/// Where files are fetched from.
struct From {
    bucket: Bucket,
    catalog: Catalog,
    folder: Removed,
}

/// A folder that is removed when this is dropped.
struct Removed(PathBuf);

impl Drop for Removed {
    fn drop(&mut self) {
        // Where it cannot be removed the system's own cleaning does it.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Look {
    /// The store that a command names.
    ///
    /// # Errors
    /// Where it is a bucket's, and there is none, or it cannot be read.
    pub fn at(given: &Path) -> Result<Look> {
        let Some(url) = url_of(given)? else { return Ok(Look { store: Store::at(given), from: None }) };
        let bucket = Bucket::open(&url)?;
        let found = Catalog::read(&bucket)?.with_context(|| {
            format!("{url} is no store: it has no manifest.json (a store is what `nigh run` makes)")
        })?;
        let name = short_hash(format!("{url} {} {}", std::process::id(), jiff::Timestamp::now()).as_bytes());
        let folder = Removed(std::env::temp_dir().join(format!("nigh-look-{name}")));
        let failed = || format!("cannot make {}", folder.0.display());
        std::fs::create_dir(&folder.0)
            .and_then(|()| std::fs::create_dir(folder.0.join("_mirror")))
            .with_context(failed)?;
        std::fs::write(folder.0.join("manifest.json"), found.catalog.manifest()).with_context(failed)?;
        let store = Store::at(&folder.0);
        Ok(Look { store, from: Some(From { bucket, catalog: found.catalog, folder }) })
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
        let Some(From { bucket, catalog, folder: to }) = &self.from else { return Ok(()) };
        let files = catalog.files(bucket, folder)?;
        let wanted = files.0.iter().filter(|(path, _)| names.iter().any(|name| path.starts_with(name)));
        let wanted: Vec<Wanted> = wanted.map(|(path, content)| Wanted::new(&to.0, folder, path, *content)).collect();
        let silent: Say = Arc::new(|_| {});
        each(&wanted, "fetching", &silent, |file| fetch_one(bucket, file, &to.0.join("_mirror")))
    }
}
