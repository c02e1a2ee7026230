//! Stores in buckets, `s3://bucket/prefix`, and their mirrors: the folders on this machine in which
//! runs work.
//!
//! In reading order: `location` (where a store is, and how a command takes and publishes it),
//! `lease` (which run may write), `catalog` (the files in the bucket and their keys), `folder` (the
//! mirror and its base), `refresh` (bucket to mirror), `publish` (mirror to bucket), `read_store`
//! (for commands that only read), `check` (whether files are as they were written), `transfers`
//! (several objects at once).
//!
//! A run works in the *mirror*, a folder laid out as any store, and does not use the network.
//! Before the run the mirror is brought up to date, and after the run new files are published:
//!
//! ```text
//! s3://bucket/prefix/
//!   clusters/week=2024-01-08/nigh-00001-00000-HASH.parquet
//!   evolution/…  views.sql                as in a folder
//!   _nigh/
//!     manifest.json                       the catalog; a conditional put replaces a known version of it
//!     lock.json                           the run that may write
//!     files/clusters-HASH.json            the files of a folder, each with its size and digest
//!     digests/…  week=…/  before=…/       as in a folder
//! ```
//!
//! The key of an object contains the digest of its content, so that no object is overwritten,
//! except the manifest, the lock and `views.sql`. An object is part of the store once
//! `manifest.json` names the list that names the object: the put of `manifest.json` is the commit.
//! A kill before it leaves the weeks as they were. A kill after it leaves objects that nothing
//! names, which the next commit removes. A query over `clusters/week=*/*.parquet` also finds such
//! objects: during a commit, or after a kill, it may see a week twice, or one that is not committed
//! yet. nigh itself reads by the catalog and does not; nor do the views of `views.sql`.
//!
//! Two runs cannot write at the same time. `lock.json` is made and renewed by conditional puts, and
//! the manifest is put only if it is still the one that the run began with. Therefore even a run
//! that was suspended while another run took its place commits nothing.

mod catalog;
mod check;
mod folder;
mod lease;
mod location;
mod publish;
mod read_store;
mod refresh;
mod transfers;

pub use check::{CheckedStore, DamagedFile, check_store};
pub use location::{PublishHandle, StoreLocation, WriteGuard, cache_of};
pub use read_store::ReadStore;

use std::path::Path;
use std::sync::Arc;

/// Receives messages for the user.
pub type Notify = Arc<dyn Fn(&str) + Send + Sync>;

/// Schemes of buckets.
const SCHEMES: [&str; 7] = ["s3", "s3a", "gs", "az", "azure", "abfs", "abfss"];

/// The URL of a store in a bucket, without a slash at its end; `None` for a folder.
///
/// ```
/// use nigh_store::mirror::url_of;
/// assert_eq!(url_of("s3://crawls/store/".as_ref()).unwrap().as_deref(), Some("s3://crawls/store"));
/// assert_eq!(url_of("stores/example".as_ref()).unwrap(), None);
/// assert!(url_of("http://example.org/store".as_ref()).is_err());
/// ```
///
/// # Errors
/// If it is a URL whose scheme cannot hold a store.
pub fn url_of(store: &Path) -> anyhow::Result<Option<String>> {
    let Some((scheme, _)) = store.to_str().and_then(|text| text.split_once("://")) else { return Ok(None) };
    anyhow::ensure!(
        SCHEMES.contains(&scheme),
        "--store {}: {scheme}:// cannot hold a store: give a folder, or s3://BUCKET/PREFIX",
        store.display()
    );
    Ok(store.to_str().map(|text| text.trim_end_matches('/').to_owned()))
}
