//! From the mirror to the bucket: what is new is put there, and one conditional put makes it the store.

use anyhow::{Context, Result, bail, ensure};

use super::Say;
use super::catalog::{Catalog, CatalogVersion, FileContent, MANIFEST, is_ours, key, list_key};
use super::folder::{Base, MirrorFolder};
use super::lease::SharedLease;
use super::transfers::{Transfer, each};
use crate::config::Bytes;
use crate::objects::{Bucket, Digest, Put, When};

/// A file that is to be put into the bucket.
struct Upload {
    key: String,
    path: std::path::PathBuf,
    content: FileContent,
}

impl Transfer for Upload {
    fn bytes(&self) -> u64 {
        self.content.bytes
    }
}

/// An object that nothing names any more.
struct Unreferenced(String);

impl Transfer for Unreferenced {
    fn bytes(&self) -> u64 {
        0
    }
}

/// Publishes what a mirror holds, where that is not what the bucket has; and gives the catalog that it stands on then.
/// Then the bucket is looked through, and where `thorough` in any case: what nothing names is removed, and what is
/// missing or of another size than it should be is put back. Nothing is read for that: an object of the right size with
/// other bytes stays until it is removed.
///
/// # Errors
/// Where the lock is lost or given up, another run has published meanwhile, or the bucket cannot be written: what was
/// made stays in the mirror. The store is as it was, but where the last put gets no answer: then it is not known.
pub(super) fn publish(
    folder: &MirrorFolder,
    bucket: &Bucket,
    before: Option<CatalogVersion>,
    lease: &SharedLease,
    thorough: bool,
    say: &Say,
) -> Result<Option<CatalogVersion>> {
    let Some(manifest) = folder.manifest()? else { return Ok(before) };
    let folders = folder.files()?;
    let catalog = Catalog::new(manifest, &folders)?;
    let bytes = catalog.bytes()?;
    let digest = Digest::of(&bytes);
    let is_new = before.as_ref().is_none_or(|before| before.digest != digest);
    if !is_new {
        // What was made is what is there already, if it still is.
        lease.renew()?;
        let now = Catalog::read(bucket)?.map(|found| found.digest);
        ensure!(now == Some(digest), overtaken(bucket));
        if !thorough {
            return Ok(before);
        }
    }
    let there = bucket.list()?;
    let mut named = std::collections::BTreeSet::new();
    let (mut new, mut lists) = (Vec::new(), Vec::new());
    for (name, files) in &folders {
        for (path, content) in &files.0 {
            let key = key(name, path, content.digest);
            if there.get(&key) != Some(&content.bytes) {
                let path = folder.root().join(name).join(path);
                new.push(Upload { key: key.clone(), path, content: *content });
            }
            named.insert(key);
        }
        let list = files.bytes()?;
        let key = list_key(name, Digest::of(&list));
        if there.get(&key) != Some(&(list.len() as u64)) {
            lists.push((key.clone(), list));
        }
        named.insert(key);
    }
    if !new.is_empty() {
        let bytes = new.iter().map(|file| file.content.bytes).sum();
        let what = format!("publishing to {}", bucket.url(""));
        say(&format!("{what}: {} objects, {}", new.len(), Bytes(bytes)));
        each(&new, &what, say, |file| bucket.upload(&file.key, &file.path, file.content.bytes, file.content.digest))?;
    }
    for (key, list) in lists {
        bucket.put(&key, list)?;
    }
    let mut after = before.clone();
    if is_new {
        let when = before.as_ref().map_or(When::Absent, |before| When::Is(before.tag.clone()));
        let put = || {
            bucket.put_if(MANIFEST, &bytes, &when).context(
                "whether it is published is not known: `nigh show` tells, and the same command ends it if it is not",
            )
        };
        let Put::Done(tag) = lease.commit(put)? else {
            bail!(overtaken(bucket));
        };
        folder.stand_on(Base::Catalog(digest))?;
        after = Some(CatalogVersion { catalog, digest, tag });
    }
    let before = before.iter().flat_map(|before| before.catalog.folders.keys());
    let ours: Vec<&str> = before.chain(folders.keys()).map(String::as_str).collect();
    let old: Vec<Unreferenced> =
        there.into_keys().filter(|key| !named.contains(key) && is_ours(key, &ours)).map(Unreferenced).collect();
    remove(bucket, &old, lease, say)
        .context("the commit is done, but what it replaced is not removed: the next one does it")?;
    Ok(after)
}

/// Says that the store is not the one that the run began with.
fn overtaken(bucket: &Bucket) -> String {
    format!(
        "{} was published by somebody else meanwhile: the store is theirs, and nothing of this run is in it; the same \
         command begins from there",
        bucket.url(MANIFEST)
    )
}

/// Removes objects, as long as the lock is surely ours: another run may be about to name one of them.
fn remove(bucket: &Bucket, old: &[Unreferenced], lease: &SharedLease, say: &Say) -> Result<()> {
    each(old, "removing what was replaced", say, |old| {
        if !lease.is_fresh() {
            lease.renew()?;
        }
        bucket.remove(&old.0)
    })
}
