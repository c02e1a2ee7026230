//! From the bucket to the mirror: it is brought up to date.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use super::Say;
use super::catalog::{
    Catalog, CatalogVersion, FileContent, FileList, MANIFEST, MissingObject, PUT_BACK, key, steadily,
};
use super::folder::{Base, MirrorFolder};
use super::transfers::{Transfer, each};
use crate::config::Bytes;
use crate::objects::{Bucket, Digest, Summing};
use crate::state::{replace, sync_folder};

/// Brings a mirror up to date, and gives the catalog that it stands on. What was made in it and not published yet
/// stays, where nobody else has published meanwhile. The caller holds the folder's lock; where it does not hold the
/// bucket's, others may publish while it reads.
///
/// # Errors
/// Names the object that is missing or damaged, or what cannot be written here. The mirror is then unsettled; the next
/// call goes on.
pub(super) fn refresh(folder: &MirrorFolder, bucket: &Bucket, say: &Say) -> Result<Option<CatalogVersion>> {
    steadily(bucket, |found| refresh_to(folder, bucket, found, say).map(|()| found.clone()))
}

fn refresh_to(folder: &MirrorFolder, bucket: &Bucket, found: &Option<CatalogVersion>, say: &Say) -> Result<()> {
    let base = folder.base()?;
    match (base, found) {
        (Base::Catalog(digest), Some(found)) if found.digest == digest => {}
        (Base::Nothing, None) => {}
        // A run was killed when it had published, and before it could note it.
        (Base::Catalog(_) | Base::Nothing, Some(found)) if is_as(folder, found)? => {
            folder.stand_on(Base::Catalog(found.digest))?;
        }
        (_, None) if folder.manifest()?.is_some() => bail!(
            "{} is gone, but its mirror {} has weeks: restore it; or, if the store is to begin anew, remove the mirror",
            bucket.url(MANIFEST),
            folder.root().display()
        ),
        (_, None) => folder.stand_on(Base::Nothing)?,
        (_, Some(found)) => follow(folder, bucket, found, base != Base::Unsettled, say)?,
    }
    Ok(())
}

/// Whether a mirror holds just what a catalog says.
fn is_as(folder: &MirrorFolder, found: &CatalogVersion) -> Result<bool> {
    let Some(manifest) = folder.manifest()? else { return Ok(false) };
    Ok(Digest::of(&Catalog::new(manifest, &folder.files()?)?.bytes()?) == found.digest)
}

/// Makes of the mirror what a catalog says.
fn follow(folder: &MirrorFolder, bucket: &Bucket, found: &CatalogVersion, settled: bool, say: &Say) -> Result<()> {
    if settled && folder.manifest()?.is_some() {
        say(&format!("another run has published to {} since this machine's last one", bucket.url("")));
    }
    folder.stand_on(Base::Unsettled)?;
    let here = folder.all_files()?;
    let mut there = BTreeMap::new();
    for name in found.catalog.folders.keys() {
        there.insert(name.as_str(), found.catalog.files(bucket, name)?);
    }
    remove_others(folder, &there)?;
    let none = FileList::default();
    let mut wanted = Vec::new();
    for (name, files) in &there {
        let here = here.get(*name).unwrap_or(&none);
        let differing = files.0.iter().filter(|(path, content)| here.0.get(*path) != Some(*content));
        wanted.extend(differing.map(|(path, content)| FileDownload::new(folder.root(), name, path, *content)));
    }
    fetch(folder, bucket, &wanted, say)?;
    replace(&folder.root().join("manifest.json"), format!("{}\n", found.catalog.manifest()).as_bytes())?;
    sync_folder(folder.root())?;
    folder.files()?;
    folder.stand_on(Base::Catalog(found.digest))
}

/// A file that is to be fetched.
pub(super) struct FileDownload {
    key: String,
    target: PathBuf,
    content: FileContent,
}

impl FileDownload {
    /// A file of a folder, wanted below a store's folder on this machine.
    pub fn new(root: &Path, folder: &str, path: &str, content: FileContent) -> FileDownload {
        FileDownload { key: key(folder, path, content.digest), target: root.join(folder).join(path), content }
    }
}

impl Transfer for FileDownload {
    fn bytes(&self) -> u64 {
        self.content.bytes
    }
}

/// Fetches files, by way of the mirror's folder for that.
fn fetch(folder: &MirrorFolder, bucket: &Bucket, wanted: &[FileDownload], say: &Say) -> Result<()> {
    if wanted.is_empty() {
        return Ok(());
    }
    let bytes = wanted.iter().map(|file| file.content.bytes).sum();
    let what = format!("fetching from {} to {}", bucket.url(""), folder.root().display());
    say(&format!("{what}: {} objects, {}", wanted.len(), Bytes(bytes)));
    let fetched = folder.fetched();
    let failed = || format!("cannot make {}", fetched.display());
    if fetched.exists() {
        std::fs::remove_dir_all(&fetched).with_context(failed)?;
    }
    std::fs::create_dir_all(&fetched).with_context(failed)?;
    each(wanted, &what, say, |file| fetch_one(bucket, file, &fetched))?;
    std::fs::remove_dir(&fetched).with_context(|| format!("cannot remove {}", fetched.display()))
}

/// Fetches a file by way of a folder on the same file system; nothing that is not as listed gets its name.
pub(super) fn fetch_one(bucket: &Bucket, file: &FileDownload, by: &Path) -> Result<()> {
    let FileDownload { key, target, content } = file;
    let name = key.rsplit('/').next().unwrap_or(key);
    let temporary = by.join(format!("{}-{name}", crate::records::short_hash(key.as_bytes())));
    let failed = || format!("cannot write {}", temporary.display());
    let (mut out, mut sum) = (File::create(&temporary).with_context(failed)?, Summing::default());
    let (mut object, mut buffer, mut bytes) = (bucket.read(key, content.bytes)?, vec![0; 1 << 18], 0);
    loop {
        let count = match object.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) => return Err(damage(bucket, key, *content, error)),
        };
        sum.add(&buffer[..count]);
        bytes += count as u64;
        out.write_all(&buffer[..count]).with_context(failed)?;
    }
    let digest = sum.digest();
    ensure!(
        bytes == content.bytes && digest == content.digest,
        "{} is damaged: it has {bytes} bytes of the digest {digest}, its list says {} bytes of {}; remove it, and {PUT_BACK}",
        bucket.url(key),
        content.bytes,
        content.digest
    );
    if let Some(parent) = target.parent() {
        std::fs::create_dir_all(parent).with_context(|| format!("cannot make {}", parent.display()))?;
    }
    std::fs::rename(&temporary, target).with_context(|| format!("cannot write {}", target.display()))
}

/// What is wrong with an object that could not be read as it is listed.
fn damage(bucket: &Bucket, key: &str, listed: FileContent, error: std::io::Error) -> anyhow::Error {
    let url = bucket.url(key);
    let error = anyhow::Error::new(error);
    match bucket.size(key) {
        Ok(None) => error.context(MissingObject(url)),
        Ok(Some(bytes)) if bytes != listed.bytes => {
            error.context(format!("{url} is damaged: it has {bytes} bytes, its list says {}; {PUT_BACK}", listed.bytes))
        }
        Ok(Some(_)) => error.context(format!("cannot read {url}, of {} bytes", listed.bytes)),
        Err(_) => error.context(format!("cannot read {url}")),
    }
}

/// Removes what a catalog does not list: files, and folders that are neither work nor the mirror's own.
fn remove_others(folder: &MirrorFolder, there: &BTreeMap<&str, FileList>) -> Result<()> {
    let root = folder.root();
    let failed = || format!("cannot list {}", root.display());
    for entry in std::fs::read_dir(root).with_context(failed)? {
        let path = entry.with_context(failed)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.starts_with(['_', '.']) || !path.is_dir() {
            continue;
        }
        let removed = |path: &Path| format!("cannot remove {}", path.display());
        let Some(files) = there.get(name.as_str()) else {
            std::fs::remove_dir_all(&path).with_context(|| removed(&path))?;
            continue;
        };
        for entry in walkdir::WalkDir::new(&path).contents_first(true).min_depth(1) {
            let entry = entry.with_context(|| format!("cannot list {}", path.display()))?;
            let within = entry.path().strip_prefix(&path).unwrap_or(entry.path());
            if entry.file_type().is_dir() {
                // Those that are empty now go; the others stay.
                let _ = std::fs::remove_dir(entry.path());
            } else if !within.to_str().is_some_and(|within| files.0.contains_key(within)) {
                std::fs::remove_file(entry.path()).with_context(|| removed(entry.path()))?;
            }
        }
    }
    ensure!(root.is_dir(), "the mirror {} is gone", root.display());
    Ok(())
}
