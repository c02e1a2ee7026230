//! The folder of an export: its files, and a list of those that are whole. In a bucket it is
//! [another one](super::bucket).
//!
//! A file is written in the work folder, then added to the list with its size and checksum, then
//! put in its place. So whatever a kill leaves, a file in the folder that is not on the list was
//! not written by nigh, and is not replaced; and one that is not as the list says is written again.

use std::collections::BTreeMap;
use std::fs::{DirBuilder, File};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use super::bucket::{ExportBucket, ExportPlace, ListWhen, staging_of};
use super::output::{Written, sync_parent};
use super::workplace::{Workplace, check_own};
use super::written_files::{ExportKey, LIST, WrittenFile, WrittenFiles};
use crate::export::archives::wacz_of;
use crate::export::dataset::Exported;
use crate::export::revisits::warc_name;
use crate::export::rows::ExportFormat;
use crate::objects::Bucket;
use crate::readers::{Dialect, Input};

/// A hidden folder in the folder of the export, for the list of what was written: patterns of a
/// shell such as `*` pass over it.
const STATE: &str = ".nigh-export";

/// The folder that the export works in, which goes when it ends.
const WORK: &str = "_nigh-export-work";

/// The beginnings of names that no file of an export has.
const RESERVED: [&str; 2] = [STATE, WORK];

/// The folder of an export.
pub struct ExportFolder {
    key: ExportKey,
    files: BTreeMap<String, WrittenFile>,
    target: ExportTarget,
    work: Workplace,
    /// Dropped after the folder in it.
    staging: Option<Staging>,
}

/// A folder that is removed when there is nothing left in it: that in which files are written that
/// are put elsewhere, or the one of an export that fails before its first file.
struct Staging(Option<PathBuf>);

impl Drop for Staging {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            let _ = std::fs::remove_dir(path);
        }
    }
}

/// Where the files and the list are.
enum ExportTarget {
    /// In a folder: its path, and the list.
    Folder(PathBuf, File),
    /// In a bucket.
    Bucket(ExportBucket),
}

impl ExportFolder {
    /// Makes the folder, or goes on with what an export of the same kind left there. One export at
    /// a time has the folder.
    ///
    /// # Errors
    /// If the folder has other files, or the files of another export, or another export writes to
    /// it; or cannot be written.
    pub fn open(path: &Path, key: &ExportKey) -> Result<ExportFolder> {
        let failed = || format!("cannot write {}", path.display());
        let work = path.join(WORK);
        // Nothing is made or removed before it is clear that the folder is free.
        let was_there = path.try_exists().with_context(failed)?;
        if was_there {
            check_own(&work)?;
            check_list(path, key)?;
        }
        std::fs::create_dir_all(path).with_context(failed)?;
        // One that is made here goes if nothing is written.
        let own = (!was_there).then(|| Staging(Some(path.to_owned())));
        let work = Workplace::take(work, path)?;
        // Another export may have come and gone in between.
        let files = check_list(path, key)?;
        let files: BTreeMap<_, _> = files.into_iter().map(|file| (file.file.clone(), file)).collect();
        let list = path.join(LIST);
        match std::fs::create_dir(path.join(STATE)) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            made => made.with_context(failed)?,
        }
        WrittenFiles { key: key.clone(), files: files.values().cloned().collect() }.write(&work, &list)?;
        let list = File::options().append(true).open(&list).with_context(failed)?;
        Ok(ExportFolder {
            key: key.clone(),
            files,
            target: ExportTarget::Folder(path.to_owned(), list),
            work,
            staging: own,
        })
    }

    /// As [`ExportFolder::open`], in a bucket: `s3://bucket/prefix`. Files are in this user's cache
    /// until they are put.
    ///
    /// # Errors
    /// As [`ExportFolder::open`]; or if the environment names no cache.
    pub fn in_bucket(url: &str, key: &ExportKey) -> Result<ExportFolder> {
        ExportFolder::over(Bucket::open(url)?, &staging_of(url)?, key)
    }

    /// As [`ExportFolder::in_bucket`], with the folder of this machine.
    pub(super) fn over(bucket: Bucket, staging: &Path, key: &ExportKey) -> Result<ExportFolder> {
        let failed = || format!("cannot write {}", staging.display());
        // Files may be of objects that others may not read.
        DirBuilder::new().recursive(true).mode(0o700).create(staging).with_context(failed)?;
        let own = Staging(Some(staging.to_owned()));
        let work = Workplace::take(staging.join(WORK), Path::new(&bucket.url("")))?;
        let (bucket, files) = ExportBucket::open(bucket, key)?;
        let files = files.into_iter().map(|file| (file.file.clone(), file)).collect();
        Ok(ExportFolder { key: key.clone(), files, target: ExportTarget::Bucket(bucket), work, staging: Some(own) })
    }

    /// Where its files are put.
    pub(crate) fn place(&self) -> ExportPlace {
        match &self.target {
            ExportTarget::Folder(path, _) => ExportPlace::Folder(path.clone()),
            ExportTarget::Bucket(bucket) => ExportPlace::Bucket(bucket.bucket.clone()),
        }
    }

    /// A folder for runs of sorts, which goes when the export ends.
    pub fn scratch(&self) -> PathBuf {
        self.work.scratch()
    }

    /// The path of the file with this number while it is written.
    pub(crate) fn unfinished(&self, number: usize) -> PathBuf {
        self.work.unfinished(number)
    }

    /// What was written for a file, as the list has it: the file may be gone since.
    pub(crate) fn listed(&self, file: &str) -> Option<WrittenFile> {
        self.files.get(file).cloned()
    }

    /// The names of the files on the list.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    /// Adds a whole file to the list, and puts it in its place; to a bucket it may have been
    /// [put](ExportPlace::put) before.
    ///
    /// # Errors
    /// If something else is there; or the list or the file cannot be written.
    pub(crate) fn add(&mut self, unfinished: &Path, file: WrittenFile) -> Result<()> {
        let place = self.place();
        let ExportFolder { key, files, target, .. } = self;
        if let ExportTarget::Bucket(bucket) = target {
            let failed = || format!("cannot write {}", bucket.bucket.url(&file.file));
            if unfinished.try_exists().with_context(failed)? {
                match file.written {
                    Some(_) => place.put(unfinished, &file)?,
                    None => std::fs::remove_file(unfinished).with_context(failed)?,
                }
            }
            if file.written.is_none() && files.contains_key(&file.file) {
                bucket.bucket.remove(&file.file)?;
            }
            files.insert(file.file.clone(), file);
            return bucket.list(key, files.values(), ListWhen::Due);
        }
        let ExportPlace::Folder(path) = place else { bail!("a fault of nigh: a folder has two places") };
        let target = path.join(&file.file);
        let failed = || format!("cannot write {}", target.display());
        let before = std::fs::symlink_metadata(&target).ok();
        let is_own = self.files.contains_key(&file.file);
        if before.as_ref().is_some_and(|before| !before.is_file() || !is_own) {
            bail!("{} was not written by this export: take it away, or give another --out", target.display());
        }
        // What is on the list may be replaced: so it is there before the file is.
        self.append(&file)?;
        if file.written.is_some() {
            make_folders(&path, &file.file)?;
            std::fs::rename(unfinished, &target).and_then(|()| sync_parent(&target)).with_context(failed)?;
        } else {
            std::fs::remove_file(unfinished).with_context(failed)?;
            if before.is_some() {
                std::fs::remove_file(&target).with_context(failed)?;
            }
        }
        self.files.insert(file.file.clone(), file);
        Ok(())
    }

    /// Removes files of the list, and takes them off it.
    ///
    /// # Errors
    /// If one cannot be removed, or the list not be written.
    pub(crate) fn remove(&mut self, names: &[String]) -> Result<()> {
        if names.is_empty() {
            return Ok(());
        }
        let outer = match &mut self.target {
            ExportTarget::Folder(outer, _) => outer.clone(),
            ExportTarget::Bucket(bucket) => {
                // The list comes after the objects: a kill in between leaves none without an owner.
                names.iter().try_for_each(|name| bucket.bucket.remove(name))?;
                self.files.retain(|name, _| !names.contains(name));
                return bucket.list(&self.key, self.files.values(), ListWhen::Now);
            }
        };
        for name in names {
            let path = outer.join(name);
            let failed = || format!("cannot remove {}", path.display());
            // The list comes after the file: a kill in between leaves no file without an owner.
            if std::fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.is_file()) {
                std::fs::remove_file(&path).and_then(|()| sync_parent(&path)).with_context(failed)?;
            }
            self.files.remove(name);
        }
        let path = outer.join(LIST);
        WrittenFiles { key: self.key.clone(), files: self.files.values().cloned().collect() }
            .write(&self.work, &path)?;
        // It is another file now.
        let list = File::options().append(true).open(&path);
        self.target = ExportTarget::Folder(outer, list.with_context(|| format!("cannot write {}", path.display()))?);
        Ok(())
    }

    /// Whether the file at `path` is the one that the list has under a name: one that is not in
    /// this folder.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(crate) fn has_written(&self, name: &str, path: &Path) -> Result<bool> {
        let written = self.files.get(name).and_then(|file| file.written.as_ref());
        let is_at = written.map_or(Ok(false), |written| written.is_at(path));
        is_at.with_context(|| format!("cannot read {}", path.display()))
    }

    /// Adds to the list a whole file that gets its place elsewhere.
    ///
    /// # Errors
    /// If the list cannot be written.
    pub(crate) fn note(&mut self, name: &str, written: Written) -> Result<()> {
        let file = WrittenFile::new(name.to_owned(), Some(written), Exported::default());
        self.append(&file)?;
        self.files.insert(file.file.clone(), file);
        Ok(())
    }

    fn append(&mut self, file: &WrittenFile) -> Result<()> {
        let ExportTarget::Folder(path, list) = &mut self.target else {
            bail!("a fault of nigh: a bucket has no such list")
        };
        let line = serde_json::to_string(file)? + "\n";
        let written = list.write_all(line.as_bytes()).and_then(|()| list.sync_data());
        written.with_context(|| format!("cannot write {}", path.join(LIST).display()))
    }

    /// Puts the list in the order of the files, once all are whole: it is the same for any number
    /// of threads.
    ///
    /// # Errors
    /// If the list cannot be written.
    pub(crate) fn finish(mut self) -> Result<()> {
        let ExportFolder { key, files, target, work, staging } = &mut self;
        match target {
            ExportTarget::Folder(path, _) => {
                // The folder stays, even if it is empty.
                if let Some(Staging(path)) = staging {
                    *path = None;
                }
                let files = files.values().cloned().collect();
                WrittenFiles { key: key.clone(), files }.write(work, &path.join(LIST))
            }
            ExportTarget::Bucket(bucket) => bucket.list(key, files.values(), ListWhen::AtEnd),
        }
    }
}

/// Makes the folders of a file below another one. A link is not followed: it leads elsewhere.
fn make_folders(path: &Path, file: &str) -> Result<()> {
    let mut folder = path.to_owned();
    for name in Path::new(file).parent().into_iter().flat_map(Path::components) {
        folder.push(name);
        let made = match std::fs::create_dir(&folder) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                std::fs::symlink_metadata(&folder).and_then(|found| match found.is_dir() {
                    true => Ok(()),
                    false => Err(ErrorKind::NotADirectory.into()),
                })
            }
            made => made,
        };
        made.with_context(|| format!("cannot write {}", folder.display()))?;
    }
    Ok(())
}

impl Drop for ExportFolder {
    fn drop(&mut self) {
        // An export without a file, which failed before its first one or had no input, leaves no
        // list.
        match &mut self.target {
            ExportTarget::Folder(path, _) if self.files.is_empty() => {
                let _ = std::fs::remove_file(path.join(LIST)).and_then(|()| std::fs::remove_dir(path.join(STATE)));
            }
            ExportTarget::Folder(..) => {}
            ExportTarget::Bucket(bucket) => _ = bucket.end(&self.key, self.files.values()),
        }
    }
}

/// Checks that a folder has nothing besides the work of an export, or has the files of an export of
/// this kind, and returns these.
fn check_list(path: &Path, key: &ExportKey) -> Result<Vec<WrittenFile>> {
    let failed = || format!("cannot read {}", path.display());
    let state = path.join(STATE);
    // A link is not followed: it leads elsewhere.
    let has_state = std::fs::symlink_metadata(&state).is_ok_and(|state| state.is_dir());
    let list = if has_state { WrittenFiles::read(&path.join(LIST))? } else { None };
    let Some(list) = list else {
        let entries = std::fs::read_dir(path).with_context(failed)?;
        // A kill can leave the folder of the list before the list is there.
        let in_state = if has_state { std::fs::read_dir(&state).with_context(failed)?.next().is_some() } else { false };
        for entry in entries {
            let name = entry.with_context(failed)?.file_name();
            let is_own = name == WORK || name == STATE && has_state && !in_state;
            ensure!(is_own, "{} is not empty: give another --out", path.display());
        }
        return Ok(Vec::new());
    };
    // An export that ended before its first file leaves nothing to be kept.
    ensure!(
        list.key == *key || list.files.is_empty(),
        "{} has files of another export ({LIST} says which): give another --out",
        path.display()
    );
    Ok(list.files)
}

/// The name of the WACZ that an input is in, if that is written as one.
pub(crate) fn whole_wacz(input: &Input, format: ExportFormat) -> Option<&str> {
    let (name, _) = wacz_of(input)?;
    matches!(format.of(input), Ok(None)).then_some(name)
}

/// The path of each file below the folder of the export: that of the input, below the folder that
/// all inputs have in common. The archives of a WACZ that is written as one have the path of that;
/// ARC has the name of a WARC file, if `is_warc` says that it becomes one.
///
/// # Errors
/// If two inputs have the same path there, or one is not written in this format.
pub fn output_paths(inputs: &[Input], format: ExportFormat, is_warc: bool) -> Result<Vec<String>> {
    // A file must not be written beside the folder.
    let parts: Vec<Vec<&str>> = inputs
        .iter()
        .map(|input| {
            let name = whole_wacz(input, format).unwrap_or(&input.name);
            name.split('/').filter(|part| !matches!(*part, "" | "." | "..")).collect()
        })
        .collect();
    let mut common = parts.first().map_or(0, |first| first.len().saturating_sub(1));
    for other in &parts {
        let same = parts[0].iter().zip(other).take_while(|(a, b)| a == b).count();
        common = common.min(same).min(other.len().saturating_sub(1));
    }
    let paths = inputs.iter().zip(&parts).map(|(input, parts)| match input.format {
        of_input if !of_input.has_documents() => Ok(parts[common..].join("/")),
        of_input if is_warc && of_input.dialect() == Some(Dialect::Arc) => {
            format.path(input, &warc_name(&parts[common..].join("/")))
        }
        _ => format.path(input, &parts[common..].join("/")),
    });
    let paths: Vec<String> = paths.collect::<Result<_>>()?;
    if let Some(reserved) = paths.iter().find(|path| RESERVED.iter().any(|reserved| path.starts_with(reserved))) {
        bail!("an input would be written to {reserved}, which is a name of nigh's own: give it another name");
    }
    let mut seen = BTreeMap::new();
    for (input, path) in inputs.iter().zip(&paths) {
        let of_wacz = whole_wacz(input, format);
        if let Some((before, other)) = seen.insert(path, (&input.name, of_wacz))
            && (other.is_none() || other != of_wacz)
        {
            bail!(
                "{before} and {} would both be written to {path}: give --shards, which joins the rows of all files, or export a store of one of them",
                input.name
            );
        }
    }
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::readers::{Format, Location};

    #[test]
    fn paths_are_below_the_folder_that_inputs_have_in_common() {
        let paths = |names: &[&str]| {
            let input = |name: &&str| Input {
                name: (*name).to_owned(),
                bytes: 0,
                format: Format::Jsonl,
                place: Location::File(name.into()),
                page_url: None,
                stamp: String::new(),
                reading: None,
            };
            output_paths(&names.iter().map(input).collect::<Vec<_>>(), ExportFormat::Same, false)
                .map_err(|error| error.to_string())
        };
        assert_eq!(paths(&["/data/a.jsonl"]), Ok(vec!["a.jsonl".to_owned()]));
        assert_eq!(
            paths(&["data/x/a.jsonl", "data/y/a.jsonl"]),
            Ok(vec!["x/a.jsonl".to_owned(), "y/a.jsonl".to_owned()])
        );
        assert_eq!(paths(&["../a.jsonl", "b.jsonl"]), Ok(vec!["a.jsonl".to_owned(), "b.jsonl".to_owned()]));
        let refused = paths(&["../a.jsonl", "a.jsonl"]).unwrap_err();
        assert!(refused.contains("../a.jsonl and a.jsonl would both be written to a.jsonl"), "{refused}");
        assert_eq!(paths(&[]), Ok(Vec::new()));
    }
}
