//! Checks that the files of a store are as they were written: reads all of them, and compares their
//! sizes and digests with what the store knows of them.
//!
//! A store in a bucket has lists of all objects (`catalog.rs`), one in a folder the list of digests
//! of its last commit ([`Store::known_files`]).
//!
//! Cost: every byte of the store is read once. Nothing is locked: a run that commits meanwhile
//! removes files that it replaces, so a file counts as damaged only if the store still has it then.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, ensure};
use rustix::io::Errno;
use serde::Serialize;

use super::catalog::{Catalog, key, list_key};
use super::folder::MirrorFolder;
use super::transfers::{Transfer, each};
use super::{Notify, url_of};
use crate::objects::{Bucket, Digest, FileContent};
use crate::state::{KnownContent, Store};

/// What [`check_store`] found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CheckedStore {
    /// The number of files that count.
    pub files: u64,
    /// The bytes of those that have a digest.
    pub bytes: u64,
    /// How many of them have no digest: at most their sizes were compared. An older version wrote
    /// them, or the list of digests is damaged or was removed.
    pub without_digest: u64,
    /// The files that are not as they were written, by name.
    pub damaged: Vec<DamagedFile>,
}

/// A file that is not as it was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DamagedFile {
    /// Its path within the store; of an object its URL.
    pub file: String,
    /// What was found instead.
    pub found: String,
}

/// A file to compare.
struct FileToCheck {
    /// Its path within the store, or the key of the object.
    name: String,
    known: KnownContent,
}

impl Transfer for FileToCheck {
    fn bytes(&self) -> u64 {
        self.known.bytes.unwrap_or_default()
    }
}

/// What was found of a file.
enum FoundFile {
    Content(KnownContent),
    Missing,
    /// The disk cannot read it.
    Unreadable(io::Error),
}

/// The files of a store, and those of which it is known that they are damaged, by name.
struct FilesToCheck {
    files: Vec<FileToCheck>,
    damaged: BTreeMap<String, String>,
}

/// Compares all files of the store that a command names with what the store knows of them.
///
/// # Errors
/// If the store does not exist, the user lacks the right to read a file of it, or a bucket does not
/// respond. Files that are missing, or that the disk cannot read, are among what is returned.
pub fn check_store(given: &Path, say: &Notify) -> Result<CheckedStore> {
    let Some(url) = url_of(given)? else {
        let store = Store::at(given);
        ensure!(
            !MirrorFolder::is_unsettled(store.root())?,
            "{} is a mirror of a bucket, and not all of it is fetched: the next run on the bucket's store fetches the rest",
            given.display()
        );
        return check(|| files_of_folder(&store), |file| find_file(&store, file), say);
    };
    let bucket = Bucket::open(&url)?;
    let sizes = bucket.list()?;
    let mut checked =
        check(|| files_of_bucket(&bucket, &url), |file| find_object(&bucket, sizes.get(&file.name), file), say)?;
    checked.damaged.iter_mut().for_each(|damaged| damaged.file = bucket.url(&damaged.file));
    Ok(checked)
}

/// Compares the files that `list` names; `find` reads one. What seems damaged is looked at again.
fn check(
    list: impl Fn() -> Result<FilesToCheck>,
    find: impl Fn(&FileToCheck) -> Result<FoundFile> + Sync,
    say: &Notify,
) -> Result<CheckedStore> {
    let listed = list()?;
    let with_digest = || listed.files.iter().filter(|file| file.known.digest.is_some());
    let mut checked = CheckedStore {
        files: listed.files.len() as u64,
        bytes: with_digest().map(Transfer::bytes).sum(),
        without_digest: (listed.files.len() - with_digest().count()) as u64,
        damaged: Vec::new(),
    };
    let mut damaged = listed.damaged;
    damaged.extend(differing(&listed.files, &find, say)?);
    if !damaged.is_empty() {
        // Files that a commit replaced meanwhile are not listed any more.
        let FilesToCheck { mut files, damaged: mut still } = list()?;
        files.retain(|file| damaged.contains_key(&file.name));
        still.retain(|name, _| damaged.contains_key(name));
        for (name, found) in differing(&files, &find, say)? {
            still.entry(name).or_insert(found);
        }
        checked.damaged = still.into_iter().map(|(file, found)| DamagedFile { file, found }).collect();
    }
    Ok(checked)
}

fn files_of_folder(store: &Store) -> Result<FilesToCheck> {
    let root = store.root().display();
    let manifest = store.manifest()?.with_context(|| format!("{root} is not a nigh store (no manifest.json)"))?;
    let known = store.known_files(&manifest)?;
    let name = |path: PathBuf| path.to_string_lossy().into_owned();
    Ok(FilesToCheck {
        files: known.files.into_iter().map(|(path, known)| FileToCheck { name: name(path), known }).collect(),
        damaged: known.damaged.into_iter().map(|(path, found)| (name(path), found)).collect(),
    })
}

fn find_file(store: &Store, file: &FileToCheck) -> Result<FoundFile> {
    let path = store.root().join(&file.name);
    match content_of(&path, file.known) {
        Ok(content) => Ok(FoundFile::Content(content)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(FoundFile::Missing),
        Err(error) if is_of_this_process(&error) => {
            Err(error).with_context(|| format!("cannot read {}", path.display()))
        }
        Err(error) => Ok(FoundFile::Unreadable(error)),
    }
}

/// Whether an error says nothing of the file: the user lacks the right to read it, or the process
/// has too many files open or too little memory.
fn is_of_this_process(error: &io::Error) -> bool {
    let limits = [Errno::MFILE, Errno::NFILE, Errno::NOMEM];
    error.kind() == ErrorKind::PermissionDenied
        || Errno::from_io_error(error).is_some_and(|errno| limits.contains(&errno))
}

/// The size of a file; its digest, too, if one is known and the size is right.
fn content_of(path: &Path, known: KnownContent) -> io::Result<KnownContent> {
    let bytes = path.metadata()?.len();
    if known.digest.is_none() || known.bytes.is_some_and(|known| known != bytes) {
        return Ok(KnownContent { bytes: Some(bytes), digest: None });
    }
    let FileContent { bytes, digest } = FileContent::of(File::open(path)?)?;
    Ok(KnownContent { bytes: Some(bytes), digest: Some(digest) })
}

fn files_of_bucket(bucket: &Bucket, url: &str) -> Result<FilesToCheck> {
    let version = Catalog::read(bucket)?.with_context(|| format!("{url} is not a nigh store (no manifest.json)"))?;
    let mut files = Vec::new();
    for (folder, listed) in &version.catalog.folders {
        let name = list_key(folder, listed.list);
        // One that is damaged or missing is found as any object is.
        if bucket.get_whole(&name)?.is_some_and(|text| Digest::of(&text) == listed.list) {
            let list = version.catalog.files(bucket, folder)?;
            files.extend(list.0.into_iter().map(|(path, content)| FileToCheck {
                name: key(folder, &path, content.digest),
                known: content.into(),
            }));
        }
        files.push(FileToCheck { name, known: KnownContent { bytes: None, digest: Some(listed.list) } });
    }
    Ok(FilesToCheck { files, damaged: BTreeMap::new() })
}

/// Reads an object, which has this size when the bucket is listed.
fn find_object(bucket: &Bucket, size: Option<&u64>, file: &FileToCheck) -> Result<FoundFile> {
    // It may have come since.
    let Some(bytes) = size.copied().map_or_else(|| bucket.size(&file.name), |size| Ok(Some(size)))? else {
        return Ok(FoundFile::Missing);
    };
    if file.known.bytes.is_some_and(|known| known != bytes) {
        return Ok(FoundFile::Content(KnownContent { bytes: Some(bytes), digest: None }));
    }
    match bucket.read(&file.name, bytes).map(FileContent::of)? {
        Ok(content) => Ok(FoundFile::Content(content.into())),
        // Removed since.
        Err(_) if bucket.size(&file.name)?.is_none() => Ok(FoundFile::Missing),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", bucket.url(&file.name))),
    }
}

/// What is said of a file with another digest.
const OTHER_BYTES: &str = "has other bytes than were written";

/// How files differ from what is known of them, by name, of those that do; `find` reads one.
fn differing(
    files: &[FileToCheck],
    find: impl Fn(&FileToCheck) -> Result<FoundFile> + Sync,
    say: &Notify,
) -> Result<BTreeMap<String, String>> {
    let differing = Mutex::new(BTreeMap::new());
    each(files, "checking", say, |file| {
        let difference = match find(file)? {
            FoundFile::Content(found) => difference(file.known, found),
            FoundFile::Missing => Some("is missing".to_owned()),
            FoundFile::Unreadable(error) => Some(format!("cannot be read: {error}")),
        };
        if let Some(difference) = difference {
            differing.lock().unwrap_or_else(PoisonError::into_inner).insert(file.name.clone(), difference);
        }
        Ok(())
    })?;
    Ok(differing.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// How a file differs from what was written; `None` if nothing of what is known differs.
fn difference(known: KnownContent, found: KnownContent) -> Option<String> {
    match (known.bytes, found.bytes) {
        (Some(written), Some(found)) if written != found => {
            Some(format!("has {found} bytes, and {written} were written"))
        }
        _ => (known.digest.is_some() && known.digest != found.digest).then(|| OTHER_BYTES.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::Arc;

    use super::*;

    /// What a check reports of a store whose files are missing, if these are listed when it begins
    /// and when it looks again.
    fn missing(first: &[&str], then: &[&str]) -> Vec<String> {
        let calls = Cell::new(0);
        let list = || {
            calls.set(calls.get() + 1);
            let names = if calls.get() == 1 { first } else { then };
            let file = |name: &&str| FileToCheck { name: (*name).to_owned(), known: KnownContent::default() };
            Ok(FilesToCheck { files: names.iter().map(file).collect(), damaged: BTreeMap::new() })
        };
        let silent: Notify = Arc::new(|_| {});
        let checked = check(list, |_| Ok(FoundFile::Missing), &silent).unwrap();
        checked.damaged.into_iter().map(|file| file.file).collect()
    }

    #[test]
    fn what_a_commit_replaced_meanwhile_is_not_damaged() {
        assert_eq!(missing(&["a", "b"], &["a", "b"]), ["a", "b"]);
        assert_eq!(missing(&["a", "b"], &["b", "c"]), ["b"], "c was not there when the check began");
        assert!(missing(&["a", "b"], &["c"]).is_empty());
    }

    #[test]
    fn sizes_and_digests_are_compared_where_they_are_known() {
        let [one, other] = [Digest::of(b"one"), Digest::of(b"other")];
        let content = |bytes, digest| KnownContent { bytes, digest };
        let found = content(Some(3), Some(one));
        assert_eq!(difference(KnownContent::default(), content(Some(3), None)), None);
        assert_eq!(difference(content(Some(3), None), content(Some(3), None)), None);
        assert_eq!(difference(content(Some(3), Some(one)), found), None);
        assert_eq!(difference(content(None, Some(one)), found), None);
        let said = |known| difference(known, found).unwrap();
        assert_eq!(said(content(Some(4), None)), "has 3 bytes, and 4 were written");
        assert_eq!(said(content(Some(3), Some(other))), OTHER_BYTES);
        assert_eq!(said(content(None, Some(other))), OTHER_BYTES);
    }
}
