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

#[cfg(all(test, feature = "cloud"))]
mod tests {
    use std::collections::BTreeSet;
    use std::io::Write as _;

    use super::super::folder::ExportFolder;
    use super::super::output::Output;
    use super::*;
    use crate::export::dataset::Exported;
    use crate::objects::PATIENCE;
    use crate::objects::faulty::{Fault, faulty};

    fn key(week: &str) -> ExportKey {
        let key = serde_json::json!({
            "week": week, "identity": "", "keep": "first", "level": "similar", "what": "kept", "revisits": false,
        });
        serde_json::from_value(key).unwrap()
    }

    /// Writes a file of an export.
    fn add(folder: &mut ExportFolder, name: &str, bytes: &[u8]) -> Result<()> {
        let unfinished = folder.unfinished(0);
        let mut out = Output::create(&unfinished).unwrap();
        out.write_all(bytes).unwrap();
        let file = WrittenFile::new(name.to_owned(), Some(out.finish().unwrap()), Exported::default());
        folder.place().put(&unfinished, &file)?;
        folder.add(&unfinished, file)
    }

    fn keys(bucket: &Bucket) -> Vec<String> {
        bucket.list().unwrap().into_keys().collect()
    }

    #[test]
    fn what_is_whole_is_put_and_the_list_says_so_at_the_end() {
        let (bucket, _) = faulty(PATIENCE);
        let machine = tempfile::tempdir().unwrap();
        let open = |week: &str| ExportFolder::over(bucket.clone(), &machine.path().join("staging"), &key(week));
        let mut folder = open("2024-01-08").unwrap();
        add(&mut folder, "a.jsonl", b"1\n").unwrap();
        add(&mut folder, "deep/b.jsonl", &vec![b'x'; 20 << 20]).unwrap();
        let files = |list: &[u8]| WrittenFiles::parse(std::str::from_utf8(list).unwrap(), "").unwrap().files.len();
        let list = || bucket.get_whole(LIST).unwrap().unwrap();
        assert_eq!((keys(&bucket).len(), files(&list())), (3, 0), "the list is not due yet");
        folder.finish().unwrap();
        assert_eq!(files(&list()), 2);
        assert!(!machine.path().join("staging").exists(), "nothing is left here");
        // The same bytes, whichever export it was.
        let text = list();
        let folder = open("2024-01-08").unwrap();
        let listed: BTreeSet<&str> = folder.names().collect();
        assert_eq!(listed, ["a.jsonl", "deep/b.jsonl"].into());
        let is_whole = |name: &str| folder.place().has(&folder.listed(name).unwrap()).unwrap();
        assert!(is_whole("a.jsonl") && is_whole("deep/b.jsonl"));
        bucket.put("a.jsonl", b"2\n".to_vec()).unwrap();
        bucket.remove("deep/b.jsonl").unwrap();
        assert!(!is_whole("a.jsonl") && !is_whole("deep/b.jsonl"));
        folder.finish().unwrap();
        assert_eq!(list(), text);
        let refused = open("2024-01-15").err().unwrap().to_string();
        assert!(refused.contains("has files of another export"), "{refused}");
    }

    #[test]
    fn an_export_goes_on_after_another_one_that_then_ends() {
        let (bucket, _) = faulty(PATIENCE);
        let machines = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let open = |machine: usize, week: &str| {
            ExportFolder::over(bucket.clone(), &machines[machine].path().join("staging"), &key(week))
        };
        let mut first = open(0, "2024-01-08").unwrap();
        let of_another = ".nigh-export/list.jsonl of another export that runs or was killed";
        let refused = open(1, "2024-01-15").err().unwrap().to_string();
        assert!(refused.contains(of_another) && keys(&bucket) == [LIST], "{refused}");
        add(&mut first, "a.jsonl", b"1\n").unwrap();
        let busy = open(0, "2024-01-08").err().unwrap().to_string();
        assert!(busy.contains("another export writes s3://bucket/a/store/"), "{busy}");
        // It was put, and is not on the list yet.
        let refused = open(1, "2024-01-15").err().unwrap().to_string();
        assert!(refused.contains(of_another), "{refused}");
        let mut second = open(1, "2024-01-08").unwrap();
        assert_eq!(second.names().count(), 0);
        add(&mut second, "a.jsonl", b"1\n").unwrap();
        add(&mut second, "b.jsonl", b"2\n").unwrap();
        let ended = first.finish().unwrap_err().to_string();
        assert!(ended.contains("another export has begun to write"), "{ended}");
        // One that fails leaves a list of what it has put.
        drop(second);
        assert_eq!(open(0, "2024-01-08").unwrap().names().collect::<Vec<_>>(), ["a.jsonl", "b.jsonl"]);

        let mut third = open(0, "2024-01-08").unwrap();
        third.remove(&["a.jsonl".to_owned()]).unwrap();
        assert_eq!(keys(&bucket), [LIST, "b.jsonl"]);
        drop(third);
        let (empty, faults) = faulty(PATIENCE);
        faults.set(Fault::NoConditions);
        for _ in 0..2 {
            let refused = ExportFolder::over(empty.clone(), &machines[0].path().join("staging"), &key("2024-01-08"));
            assert!(refused.err().unwrap().to_string().contains("ignores the condition of a put"));
        }
    }

    #[test]
    fn what_others_have_put_is_not_touched() {
        let (bucket, _) = faulty(PATIENCE);
        let machine = tempfile::tempdir().unwrap();
        let open = || ExportFolder::over(bucket.clone(), &machine.path().join("staging"), &key("2024-01-08"));
        bucket.put("own.txt", b"1".to_vec()).unwrap();
        let refused = open().err().unwrap().to_string();
        assert!(refused.contains("s3://bucket/a/store/ is not empty, it has own.txt"), "{refused}");
        bucket.remove("own.txt").unwrap();
        // An export without a file leaves nothing.
        drop(open().unwrap());
        assert_eq!(keys(&bucket), [""; 0]);
        bucket.put(LIST, b"no list".to_vec()).unwrap();
        assert!(open().err().unwrap().to_string().contains("is not a list that nigh wrote"));
    }
}
