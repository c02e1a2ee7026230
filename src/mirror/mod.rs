//! A store in a bucket: `s3://bucket/prefix`, and the folder on this machine in which it is worked on.
//!
//! In reading order: `location` (a store as a command names it, and how a command takes and publishes it), `lease` (who
//! writes), `catalog` (what is in the bucket, and under which names), `folder` (the mirror, and what it stands on),
//! `refresh` (bucket to mirror), `publish` (mirror to bucket), `read_store` (for commands that only read), `transfers` (many
//! at once).
//!
//! A run works in the *mirror*, a folder that is laid out as any store, and knows nothing of the network. Before it the
//! mirror is brought up to date, and after it what is new is published:
//!
//! ```text
//! s3://bucket/prefix/
//!   manifest.json                         what there is: replaced by a put that names what it replaces
//!   lock.json                             who writes
//!   week=2024-01-08/
//!     files-HASH.json                     the week's files, each with its size and digest
//!     clusters/shard00000-wave00000-HASH.parquet
//!   urls/…  evolution/…                   as in a folder
//! ```
//!
//! The name of an object has the digest of its content, so that none is ever overwritten: what is put there means
//! nothing until `manifest.json` names the list that names it, and that one put is the commit. A kill before it leaves
//! the weeks as they were; a kill after it leaves objects that nothing names, which the next commit removes.
//! `week=*/clusters/*.parquet` finds all of them: for the time of a commit, or after a kill, who reads so may see a
//! week twice, or one that is still coming; nigh itself does not.
//!
//! Two runs cannot meet: `lock.json` is made and renewed by conditional puts, and the manifest is put only in the place
//! of the one that the run began with. So even a run that was asleep while another one took its place commits nothing.

mod catalog;
mod folder;
mod lease;
mod location;
mod publish;
mod read_store;
mod refresh;
mod transfers;

pub use location::{PublishHandle, StoreLocation, WriteGuard};
pub use read_store::ReadStore;

use std::path::Path;
use std::sync::Arc;

/// Takes what a person should know.
pub type Say = Arc<dyn Fn(&str) + Send + Sync>;

/// Schemes of buckets.
const SCHEMES: [&str; 7] = ["s3", "s3a", "gs", "az", "azure", "abfs", "abfss"];

/// The URL of a bucket's folder, where that is what names a store; `None` for a folder.
///
/// # Errors
/// Where it is the URL of something that cannot hold a store.
pub fn url_of(store: &Path) -> anyhow::Result<Option<String>> {
    let Some((scheme, _)) = store.to_str().and_then(|text| text.split_once("://")) else { return Ok(None) };
    anyhow::ensure!(
        SCHEMES.contains(&scheme),
        "--store {}: {scheme}:// cannot hold a store: give a folder, or s3://BUCKET/PREFIX",
        store.display()
    );
    Ok(store.to_str().map(|text| text.trim_end_matches('/').to_owned()))
}
