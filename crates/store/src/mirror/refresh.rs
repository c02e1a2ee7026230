//! Brings a mirror up to date: fetches from the bucket the files of its current catalog.
//!
//! Cost: only files whose digest differs are fetched. A kill leaves the mirror unsettled, and the
//! next call continues.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use super::Notify;
use super::catalog::{Catalog, CatalogVersion, FileList, MANIFEST, MissingObject, PUT_BACK, key, retry_if_published};
use super::folder::{Base, MirrorFolder};
use super::transfers::{Transfer, each};
use crate::config::Bytes;
use crate::objects::{Bucket, Digest, Digester, FileContent};
use crate::state::{OWN, Store, replace, sync_folder};

/// Brings a mirror up to date, and returns the catalog that is now its base. Unpublished work in
/// the mirror stays if no other run has published meanwhile. The caller holds the folder's lock. If
/// it does not hold the bucket's, other runs may publish while this reads.
///
/// # Errors
/// Names the object that is missing or damaged, or the file that cannot be written. Then the mirror
/// is unsettled, and the next call continues.
pub(super) fn refresh(folder: &MirrorFolder, bucket: &Bucket, say: &Notify) -> Result<Option<CatalogVersion>> {
    retry_if_published(bucket, |current| refresh_to(folder, bucket, current, say).map(|()| current.clone()))
}

fn refresh_to(folder: &MirrorFolder, bucket: &Bucket, current: &Option<CatalogVersion>, say: &Notify) -> Result<()> {
    let base = folder.base()?;
    match (base, current) {
        (Base::Catalog(digest), Some(current)) if current.digest == digest => {}
        (Base::Nothing, None) => {}
        // A run was killed after it had published and before it recorded the base.
        (Base::Catalog(_) | Base::Nothing, Some(current)) if has_content_of(folder, current)? => {
            folder.set_base(Base::Catalog(current.digest))?;
        }
        (_, None) if folder.manifest()?.is_some() => bail!(
            "{} is gone, but its mirror {} has weeks: restore it; or, to begin a new store, remove the mirror",
            bucket.url(MANIFEST),
            folder.root().display()
        ),
        (_, None) => folder.set_base(Base::Nothing)?,
        (_, Some(current)) => follow(folder, bucket, current, base != Base::Unsettled, say)?,
    }
    Ok(())
}

/// Whether a mirror has exactly the manifest and files of a catalog.
fn has_content_of(folder: &MirrorFolder, version: &CatalogVersion) -> Result<bool> {
    let Some(manifest) = folder.manifest()? else { return Ok(false) };
    Ok(Digest::of(&Catalog::new(manifest, &folder.files()?)?.bytes()?) == version.digest)
}

/// Makes the mirror equal to a catalog: removes other files and fetches those that differ.
fn follow(folder: &MirrorFolder, bucket: &Bucket, current: &CatalogVersion, settled: bool, say: &Notify) -> Result<()> {
    if settled && folder.manifest()?.is_some() {
        say(&format!("another run has published to {} since the last run of this machine", bucket.url("")));
    }
    folder.set_base(Base::Unsettled)?;
    let local = folder.all_files()?;
    let mut listed = BTreeMap::new();
    for name in current.catalog.folders.keys() {
        listed.insert(name.as_str(), current.catalog.files(bucket, name)?);
    }
    remove_others(folder, &listed)?;
    let none = FileList::default();
    let mut downloads = Vec::new();
    for (name, files) in &listed {
        let local = local.get(*name).unwrap_or(&none);
        let differing = files.0.iter().filter(|(path, content)| local.0.get(*path) != Some(*content));
        downloads.extend(differing.map(|(path, content)| FileDownload::new(folder.root(), name, path, *content)));
    }
    fetch(folder, bucket, &downloads, say)?;
    std::fs::create_dir_all(folder.root().join(OWN))
        .with_context(|| format!("cannot make {}", folder.root().display()))?;
    replace(&folder.manifest_path(), format!("{}\n", current.catalog.manifest()).as_bytes())?;
    sync_folder(folder.root())?;
    Store::at(folder.root()).write_views()?;
    // Computes and stores the digests of the new files.
    folder.files()?;
    folder.set_base(Base::Catalog(current.digest))
}

/// A file to fetch: its key, the path to write, and the expected content.
pub(super) struct FileDownload {
    key: String,
    target: PathBuf,
    content: FileContent,
}

impl FileDownload {
    /// The download of the file `path` of the store's folder `folder` to below `root`.
    pub fn new(root: &Path, folder: &str, path: &str, content: FileContent) -> FileDownload {
        FileDownload { key: key(folder, path, content.digest), target: root.join(folder).join(path), content }
    }
}

impl Transfer for FileDownload {
    fn bytes(&self) -> u64 {
        self.content.bytes
    }
}

/// Fetches files; incomplete ones lie in the mirror's folder for them.
fn fetch(folder: &MirrorFolder, bucket: &Bucket, downloads: &[FileDownload], say: &Notify) -> Result<()> {
    if downloads.is_empty() {
        return Ok(());
    }
    let bytes = downloads.iter().map(|file| file.content.bytes).sum();
    let what = format!("fetching from {} to {}", bucket.url(""), folder.root().display());
    say(&format!("{what}: {} objects, {}", downloads.len(), Bytes(bytes)));
    let fetched = folder.fetched();
    let failed = || format!("cannot make {}", fetched.display());
    if fetched.exists() {
        std::fs::remove_dir_all(&fetched).with_context(failed)?;
    }
    std::fs::create_dir_all(&fetched).with_context(failed)?;
    each(downloads, &what, say, |file| fetch_one(bucket, file, &fetched))?;
    std::fs::remove_dir(&fetched).with_context(|| format!("cannot remove {}", fetched.display()))
}

/// Fetches a file into the folder `temporary`, on the same file system, and renames it if its size
/// and digest are right.
pub(super) fn fetch_one(bucket: &Bucket, file: &FileDownload, temporary: &Path) -> Result<()> {
    let FileDownload { key, target, content } = file;
    let name = key.rsplit('/').next().unwrap_or(key);
    let temporary = temporary.join(format!("{}-{name}", crate::records::short_hash(key.as_bytes())));
    let failed = || format!("cannot write {}", temporary.display());
    let (mut out, mut digester) = (File::create(&temporary).with_context(failed)?, Digester::default());
    let (mut object, mut buffer, mut bytes) = (bucket.read(key, content.bytes)?, vec![0; 1 << 18], 0);
    loop {
        let count = match object.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) => return Err(damage(bucket, key, *content, error)),
        };
        digester.add(&buffer[..count]);
        bytes += count as u64;
        out.write_all(&buffer[..count]).with_context(failed)?;
    }
    let digest = digester.digest();
    ensure!(
        bytes == content.bytes && digest == content.digest,
        "{} is damaged: it has {bytes} bytes with digest {digest}, but its list has {} bytes with {}; remove it, and {PUT_BACK}",
        bucket.url(key),
        content.bytes,
        content.digest
    );
    if let Some(parent) = target.parent() {
        std::fs::create_dir_all(parent).with_context(|| format!("cannot make {}", parent.display()))?;
    }
    std::fs::rename(&temporary, target).with_context(|| format!("cannot write {}", target.display()))
}

/// Adds to the error of a failed read what is wrong with the object: missing, of another size than
/// listed, or unreadable.
fn damage(bucket: &Bucket, key: &str, listed: FileContent, error: std::io::Error) -> anyhow::Error {
    let url = bucket.url(key);
    let error = anyhow::Error::new(error);
    match bucket.size(key) {
        Ok(None) => error.context(MissingObject(url)),
        Ok(Some(bytes)) if bytes != listed.bytes => error
            .context(format!("{url} is damaged: it has {bytes} bytes, but its list has {}; {PUT_BACK}", listed.bytes)),
        Ok(Some(_)) => error.context(format!("cannot read {url} ({} bytes)", listed.bytes)),
        Err(_) => error.context(format!("cannot read {url}")),
    }
}

/// Removes all files that can be part of a store and are not `listed`, and folders that are empty
/// then.
fn remove_others(folder: &MirrorFolder, listed: &BTreeMap<&str, FileList>) -> Result<()> {
    let root = folder.root();
    for path in folder.all_paths()? {
        let Some((first, within)) = path.to_str().and_then(|path| path.split_once('/')) else { continue };
        if listed.get(first).is_some_and(|files| files.0.contains_key(within)) {
            continue;
        }
        let file = root.join(&path);
        std::fs::remove_file(&file).with_context(|| format!("cannot remove {}", file.display()))?;
        // Fails for a folder with files.
        let folders = file.ancestors().skip(1).take_while(|folder| *folder != root);
        folders.map_while(|folder| std::fs::remove_dir(folder).ok()).for_each(drop);
    }
    ensure!(root.is_dir(), "the mirror {} is gone", root.display());
    Ok(())
}
