//! A folder of a bucket that an export writes to.
//!
//! A file is written on this machine first, and then put as a whole; the list of the files that are
//! whole is an object, too. What is on the list was put before. So a kill leaves whole objects
//! only, and at worst some that are not on the list yet: they are put again, with the same bytes.
//!
//! Each put of the list has the condition that it is the one that this export put last. So an
//! export that another one has taken over from ends, and has put nothing but the same bytes: only
//! an export of the same kind can take over.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use super::output::is_written;
use super::written_files::{ExportKey, LIST, WrittenFile, WrittenFiles};
use crate::mirror::cache_of;
use crate::objects::{Bucket, Digest, ObjectVersion, PutCondition, PutOutcome};

/// How long files may be whole before the list has them.
const LISTED_EVERY: Duration = Duration::from_secs(10);

/// The bucket of an export, and the list in it.
pub(super) struct ExportBucket {
    pub(super) bucket: Bucket,
    /// The version of the list that this export put last.
    version: ObjectVersion,
    /// When that was.
    listed: Instant,
    /// What no other export has.
    name: String,
    /// Whether the list has all files.
    is_listed: bool,
}

impl ExportBucket {
    /// Opens the folder of a bucket, which has nothing, or the files of an export of the same kind,
    /// and returns these. From now on it is this export's.
    ///
    /// # Errors
    /// If the folder has other files, or the files of another export, or another export begins at
    /// the same time; or it cannot be read or written.
    pub(super) fn open(bucket: Bucket, key: &ExportKey) -> Result<(ExportBucket, Vec<WrittenFile>)> {
        let url = bucket.url("");
        let before = bucket.get(LIST)?;
        let (list, when) = match before {
            None => (None, PutCondition::Absent),
            Some((text, version)) => {
                let list = WrittenFiles::parse(&String::from_utf8_lossy(&text), &bucket.url(LIST))?;
                (Some(list), PutCondition::Is(version))
            }
        };
        let files = match list {
            // The files of an export that was killed may not be on its list yet.
            Some(list) if list.key == *key => list.files,
            // Without files on its list it may be writing its first ones.
            Some(list) if list.files.is_empty() => bail!(
                "{url} has {LIST} of another export that runs or was killed: give another --out, or remove that object"
            ),
            Some(_) => bail!("{url} has files of another export ({LIST} says which): give another --out"),
            None => {
                let others = others(&bucket)?;
                ensure!(others.is_empty(), "{url} is not empty, it has {}: give another --out", others.join(", "));
                Vec::new()
            }
        };
        let opened = ExportBucket::take(bucket, key, &files, &when)?;
        Ok((opened, files))
    }

    fn take(bucket: Bucket, key: &ExportKey, files: &[WrittenFile], when: &PutCondition) -> Result<ExportBucket> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("{} {} {number}", std::process::id(), now.as_nanos());
        let text = text(key, files.iter(), Some(&name))?;
        let PutOutcome::Done(version) = bucket.put_if(LIST, text.as_bytes(), when)? else {
            bail!(
                "another export has begun to write {} at the same time: wait for it, or write elsewhere",
                bucket.url("")
            )
        };
        if let Err(error) = bucket.check_conditions(LIST, text.as_bytes()) {
            // It would be taken for the list of an export that was killed.
            if matches!(when, PutCondition::Absent) {
                _ = bucket.remove(LIST);
            }
            return Err(error);
        }
        Ok(ExportBucket { bucket, version, listed: Instant::now(), name, is_listed: true })
    }

    /// Puts the list, if the last one is old enough, or at once.
    ///
    /// # Errors
    /// If another export has taken the folder, or the list cannot be written.
    pub(super) fn list<'a>(
        &mut self,
        key: &ExportKey,
        files: impl Iterator<Item = &'a WrittenFile>,
        when: ListWhen,
    ) -> Result<()> {
        self.is_listed = false;
        if when == ListWhen::Due && self.listed.elapsed() < LISTED_EVERY {
            return Ok(());
        }
        let name = (when != ListWhen::AtEnd).then_some(&*self.name);
        let text = text(key, files, name)?;
        match self.bucket.put_if(LIST, text.as_bytes(), &PutCondition::Is(self.version.clone()))? {
            PutOutcome::Done(version) => self.version = version,
            PutOutcome::Refused => bail!(
                "another export has begun to write {} since: this one ends. The files that it has put are whole",
                self.bucket.url("")
            ),
        }
        (self.listed, self.is_listed) = (Instant::now(), true);
        Ok(())
    }

    /// Ends the work on the folder, also if it failed: what was put is on the list, and an export
    /// without a file leaves none.
    ///
    /// # Errors
    /// If the list cannot be written, or is that of another export.
    pub(super) fn end<'a>(&mut self, key: &ExportKey, mut files: impl Iterator<Item = &'a WrittenFile>) -> Result<()> {
        match files.next() {
            Some(first) if !self.is_listed => self.list(key, std::iter::once(first).chain(files), ListWhen::Now),
            Some(_) => Ok(()),
            None => match self.bucket.get(LIST)? {
                Some((_, version)) if version == self.version => self.bucket.remove(LIST),
                _ => Ok(()),
            },
        }
    }
}

/// When the list is put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ListWhen {
    /// If the last one is old enough.
    Due,
    /// Now.
    Now,
    /// Now, for the last time: it is the same for each export of this kind.
    AtEnd,
}

/// The text of a list: a line for each file, and, while an export writes, one with its name.
fn text<'a>(key: &ExportKey, files: impl Iterator<Item = &'a WrittenFile>, name: Option<&str>) -> Result<String> {
    let list = WrittenFiles { key: key.clone(), files: files.cloned().collect() };
    let name = name.map(|name| serde_json::json!({"export": name}).to_string() + "\n");
    Ok(list.text()? + name.as_deref().unwrap_or_default())
}

/// Some of the objects of a folder besides the list.
fn others(bucket: &Bucket) -> Result<Vec<String>> {
    Ok(bucket.list()?.into_keys().filter(|key| key != LIST).take(3).collect())
}

/// Where the files of an export are put.
#[derive(Clone)]
pub(crate) enum ExportPlace {
    /// A folder.
    Folder(PathBuf),
    /// A folder of a bucket.
    Bucket(Bucket),
}

impl ExportPlace {
    /// Whether a file is in its place, as it was written. All of it is read.
    ///
    /// # Errors
    /// If what is there cannot be read.
    pub(crate) fn has(&self, file: &WrittenFile) -> Result<bool> {
        match (self, &file.written) {
            (ExportPlace::Folder(folder), Some(written)) => {
                let path = folder.join(&file.file);
                written.is_at(&path).with_context(|| format!("cannot read {}", path.display()))
            }
            (ExportPlace::Folder(folder), None) => Ok(std::fs::symlink_metadata(folder.join(&file.file)).is_err()),
            (ExportPlace::Bucket(bucket), Some(written)) => {
                if bucket.size(&file.file)? != Some(written.bytes) {
                    return Ok(false);
                }
                let failed = || format!("cannot read {}", bucket.url(&file.file));
                is_written(bucket.read(&file.file, written.bytes)?, written).with_context(failed)
            }
            (ExportPlace::Bucket(bucket), None) => Ok(bucket.size(&file.file)?.is_none()),
        }
    }

    /// Puts a file to a bucket. A folder gets it when it is on the list.
    ///
    /// # Errors
    /// If it cannot be read or put.
    pub(crate) fn put(&self, unfinished: &Path, file: &WrittenFile) -> Result<()> {
        let (ExportPlace::Bucket(bucket), Some(written)) = (self, &file.written) else { return Ok(()) };
        let digest = Digest::of_file(unfinished)?;
        bucket.upload(&file.file, unfinished, written.bytes, digest)?;
        std::fs::remove_file(unfinished).with_context(|| format!("cannot remove {}", unfinished.display()))
    }

    /// The folder, if it is one.
    pub(crate) fn folder(&self) -> Option<&Path> {
        match self {
            ExportPlace::Folder(folder) => Some(folder),
            ExportPlace::Bucket(_) => None,
        }
    }
}

/// The folder of this machine in which the files for a bucket are written: in this user's cache,
/// and only for this user.
pub(super) fn staging_of(url: &str) -> Result<PathBuf> {
    cache_of("exports", url).with_context(|| "no folder for the files until they are put: set HOME, or XDG_CACHE_HOME")
}
