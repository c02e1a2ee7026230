//! Publishes a mirror: uploads new files to the bucket, and commits them by one conditional put of
//! the manifest.
//!
//! Order: files, lists of files, `manifest.json` (the commit), `views.sql` and the logs of tables,
//! removal of replaced objects. Until the commit all readers see the store as it was.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail, ensure};

use super::Notify;
use super::catalog::{Catalog, CatalogVersion, FileList, MANIFEST, is_ours, key, list_key};
use super::folder::{Base, MirrorFolder};
use super::lease::SharedLease;
use super::transfers::{Transfer, each};
use crate::config::Bytes;
use crate::objects::{Bucket, Digest, FileContent, PutCondition, PutOutcome};
use crate::state::{ListedTable, Store, VIEWS, damaged_log, views};
use crate::tables::studies::RESULTS;
use crate::tables::{DataFile, DeltaLog, LOG_FOLDER, StoreTable};

/// A file to upload.
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

/// The key of an object that no list names any more.
struct Unreferenced(String);

impl Transfer for Unreferenced {
    fn bytes(&self) -> u64 {
        0
    }
}

/// The objects that a mirror's catalog names, and which of them the bucket lacks.
#[derive(Default)]
struct NamedObjects {
    /// The keys of all files and lists.
    keys: BTreeSet<String>,
    /// Files that the bucket lacks or has in another size.
    uploads: Vec<Upload>,
    /// Lists that the bucket lacks or has in another size: key and content.
    lists: Vec<(String, Vec<u8>)>,
}

impl NamedObjects {
    /// Compares the files of a mirror with the objects of the bucket, given by their `sizes`.
    fn of(
        folder: &MirrorFolder,
        folders: &BTreeMap<String, FileList>,
        sizes: &BTreeMap<String, u64>,
    ) -> Result<NamedObjects> {
        let mut objects = NamedObjects::default();
        for (name, files) in folders {
            for (path, content) in &files.0 {
                let key = key(name, path, content.digest);
                if sizes.get(&key) != Some(&content.bytes) {
                    let path = folder.root().join(name).join(path);
                    objects.uploads.push(Upload { key: key.clone(), path, content: *content });
                }
                objects.keys.insert(key);
            }
            let list = files.bytes()?;
            let key = list_key(name, Digest::of(&list));
            if sizes.get(&key) != Some(&(list.len() as u64)) {
                objects.lists.push((key.clone(), list));
            }
            objects.keys.insert(key);
        }
        Ok(objects)
    }

    /// Uploads the objects that the bucket lacks: files first, then the lists that name them.
    fn upload(&self, bucket: &Bucket, say: &Notify) -> Result<()> {
        let uploads = &self.uploads;
        if !uploads.is_empty() {
            let bytes = uploads.iter().map(|file| file.content.bytes).sum();
            let what = format!("publishing to {}", bucket.url(""));
            say(&format!("{what}: {} objects, {}", uploads.len(), Bytes(bytes)));
            each(uploads, &what, say, |file| {
                bucket.upload(&file.key, &file.path, file.content.bytes, file.content.digest)
            })?;
        }
        self.lists.iter().try_for_each(|(key, list)| bucket.put(key, list.clone()))
    }
}

/// Publishes a mirror whose content differs from the bucket's `before`, and returns the catalog
/// that is then its base.
///
/// Morally it does this:
///
/// ```text
/// if the mirror's catalog is `before`:
///     renew the lock, check that the bucket still has this catalog; return unless thorough
/// upload each file and list that the bucket lacks or has in another size
/// if the mirror's catalog is new:
///     put manifest.json if it is still `before`        the commit
/// remove the objects of nigh that the mirror's catalog does not name
/// ```
///
/// With `thorough`, a damaged bucket is repaired even if nothing is new. No object is read for
/// this: one of the right size with wrong bytes stays until it is removed by hand.
///
/// # Errors
/// If the lock is lost or given up, another run has published meanwhile, or the bucket cannot be
/// written. The run's work stays in the mirror. The store is as it was, except if the put of the
/// manifest gets no response: then its state is unknown.
pub(super) fn publish(
    folder: &MirrorFolder,
    bucket: &Bucket,
    before: Option<CatalogVersion>,
    lease: &SharedLease,
    thorough: bool,
    say: &Notify,
) -> Result<Option<CatalogVersion>> {
    let Some(manifest) = folder.manifest()? else { return Ok(before) };
    let folders = folder.files()?;
    let catalog = Catalog::new(manifest, &folders)?;
    let bytes = catalog.bytes()?;
    let digest = Digest::of(&bytes);
    let is_new = before.as_ref().is_none_or(|before| before.digest != digest);
    if !is_new {
        // The bucket has this content already; make sure that it is still so.
        lease.renew()?;
        let current = Catalog::read(bucket)?.map(|current| current.digest);
        ensure!(current == Some(digest), overtaken(bucket));
        if !thorough {
            return Ok(before);
        }
    }
    let sizes = bucket.list()?;
    let objects = NamedObjects::of(folder, &folders, &sizes)?;
    objects.upload(bucket, say)?;
    let mut after = before.clone();
    if is_new {
        let when = before.as_ref().map_or(PutCondition::Absent, |before| PutCondition::Is(before.tag.clone()));
        let put = || {
            bucket.put_if(MANIFEST, &bytes, &when).context(
                "it is unknown whether the store was published: `nigh show` shows it, and the same command publishes it if not",
            )
        };
        let PutOutcome::Done(tag) = lease.commit(put)? else {
            bail!(overtaken(bucket));
        };
        folder.set_base(Base::Catalog(digest))?;
        put_views(folder, bucket, &folders)?;
        after = Some(CatalogVersion { catalog, digest, tag });
    }
    put_catalog(folder, bucket, &folders, &sizes)?;
    let before = before.iter().flat_map(|before| before.catalog.folders.keys());
    let ours: Vec<&str> = before.chain(folders.keys()).map(String::as_str).collect();
    let is_old = |key: &String| !objects.keys.contains(key) && is_ours(key, &ours);
    let old: Vec<Unreferenced> = sizes.into_keys().filter(is_old).map(Unreferenced).collect();
    remove(bucket, &old, lease, say).context(
        "the commit is done, but some objects that it replaced are not removed: the next commit removes them",
    )?;
    Ok(after)
}

/// Puts `views.sql` of the objects, which is not part of the store: it is replaced in place, after
/// the commit.
fn put_views(folder: &MirrorFolder, bucket: &Bucket, folders: &BTreeMap<String, FileList>) -> Result<()> {
    let store = Store::at(folder.root());
    let Some(manifest) = store.manifest()? else { return Ok(()) };
    let mut tables = store.listed_tables(&manifest)?;
    for table in &mut tables {
        table.files = objects_of(table, folders).into_iter().map(|object| object.path).collect();
    }
    bucket
        .put(VIEWS, views(&tables).into_bytes())
        .context("the commit is done, but views.sql is not replaced: the next commit replaces it")
}

/// Continues the logs of Delta Lake beside the tables of the bucket, whose files have other names
/// than in the folder; or removes them, if the store is to have none. `sizes` lists the objects of
/// the bucket.
fn put_catalog(
    folder: &MirrorFolder,
    bucket: &Bucket,
    folders: &BTreeMap<String, FileList>,
    sizes: &BTreeMap<String, u64>,
) -> Result<()> {
    let store = Store::at(folder.root());
    let Some(manifest) = store.manifest()? else { return Ok(()) };
    let prefix = |folder: &str| format!("{folder}/{LOG_FOLDER}/");
    let files_of_log = |prefix: &str| -> Result<BTreeMap<String, Vec<u8>>> {
        let keys = sizes.keys().filter(|key| key.starts_with(prefix) && key.ends_with(".json"));
        let read = |key: &String| bucket.get_whole(key)?.with_context(|| format!("{} is missing", bucket.url(key)));
        keys.map(|key| Ok((key[prefix.len()..].to_owned(), read(key)?))).collect()
    };
    let remove_log = |prefix: &str| -> Result<()> {
        let log = files_of_log(prefix)?;
        let is_ours = DeltaLog::read(&log).is_ok_and(|log| !log.is_foreign());
        log.keys().filter(|_| is_ours).try_for_each(|name| bucket.remove(&format!("{prefix}{name}")))
    };
    for dropped in RESULTS.iter().filter(|results| !manifest.results.contains_key(results.folder)) {
        let folder = |table: &StoreTable| format!("{}/{}", dropped.folder, table.name);
        dropped.tables.iter().try_for_each(|table| remove_log(&prefix(&folder(table))))?;
    }
    for table in store.listed_tables(&manifest)? {
        let prefix = prefix(&table.folder);
        if manifest.catalog.is_none() {
            remove_log(&prefix)?;
            continue;
        }
        let log = files_of_log(&prefix)?;
        let log = DeltaLog::read(&log).with_context(|| damaged_log(bucket.url(&prefix)))?;
        ensure!(
            !log.is_foreign(),
            "the commit is done, but {} was made by another program: remove it, and `nigh catalog` makes one",
            bucket.url(&prefix)
        );
        if let Some((name, text)) = table.next_version(&log, &objects_of(&table, folders), &bucket.url("")) {
            let key = format!("{prefix}{name}");
            let put = bucket.put_if(&key, &text, &PutCondition::Absent)?;
            ensure!(
                matches!(put, PutOutcome::Done(_)),
                "the commit is done, but another program has written {}: `nigh catalog` writes the next version",
                bucket.url(&key)
            );
        }
    }
    Ok(())
}

/// The objects of a table, by their keys within its folder.
fn objects_of(table: &ListedTable, folders: &BTreeMap<String, FileList>) -> Vec<DataFile> {
    let of_file = |file: &String| {
        let path = format!("{}/{file}", table.folder);
        let (folder, within) = path.split_once('/')?;
        let content = folders.get(folder)?.0.get(within)?;
        let key = key(folder, within, content.digest);
        Some(DataFile { path: key.strip_prefix(&format!("{}/", table.folder))?.to_owned(), bytes: content.bytes })
    };
    table.files.iter().filter_map(of_file).collect()
}

/// The message that the store is no longer the one that the run began with.
fn overtaken(bucket: &Bucket) -> String {
    format!(
        "{} was published by another run meanwhile: the store has nothing of this run; run the same command again to \
         continue from the new state",
        bucket.url(MANIFEST)
    )
}

/// Removes objects, each only while the run certainly has the lock: another run may be about to
/// name one of them.
fn remove(bucket: &Bucket, old: &[Unreferenced], lease: &SharedLease, say: &Notify) -> Result<()> {
    each(old, "removing replaced objects", say, |old| {
        if !lease.is_fresh() {
            lease.renew()?;
        }
        bucket.remove(&old.0)
    })
}
