//! Weeks that are removed from a store. What later weeks stand on stays: the ids of URLs, in one file a shard.
//!
//! ```text
//! urls of weeks before ─▶ urls/before=DATE/urls|url-runs/shard*.parquet     once by id, once by hash
//! manifest.json        replaced: it lists these instead of the weeks
//! week=…               removed
//! ```
//!
//! A kill before the manifest is replaced leaves all weeks; one after it is mended by [`Store::recover`].

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result, ensure};

use super::folders::{SCRATCH, Store};
use crate::records::Week;
use crate::state::durable::sync_folder;
use crate::state::indexes::{RunRow, UrlLookup};
use crate::state::weeks::{Earlier, RemovedWeeks, week_of};
use crate::tables::{Scan, Table, UrlRow, Writer};

/// What was removed from a store, or would be.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Vacuumed {
    /// The weeks.
    pub weeks: Vec<Week>,
    /// What runs left that were given up: folders, as the store sees them.
    pub unfinished: Vec<String>,
    /// Bytes of both.
    pub bytes: u64,
}

impl Store {
    /// What [`Store::vacuum`] would remove.
    ///
    /// # Errors
    /// Where there is no store, or it has no week from `before` on.
    pub fn to_vacuum(&self, before: Week) -> Result<Vacuumed> {
        let root = self.root().display();
        let manifest = self.manifest()?.with_context(|| format!("{root} is not a nigh store (no manifest.json)"))?;
        let last = manifest.weeks.last().with_context(|| format!("the store {root} has no week yet"))?.week;
        ensure!(
            last >= before,
            "the last week of the store {root} is {last}: it stays, for the next one goes on from it"
        );
        let weeks: Vec<Week> = manifest.weeks.iter().map(|week| week.week).filter(|week| *week < before).collect();
        let unfinished = self.given_up(last)?;
        let folders = weeks.iter().map(|week| self.week(*week));
        let unfinished_folders = unfinished.iter().map(|name| self.root().join(name));
        let bytes = folders.chain(unfinished_folders).map(|path| bytes_of(&path)).sum();
        Ok(Vacuumed { weeks, unfinished, bytes })
    }

    /// What runs left that were given up: of a later week that is not whole the run can be gone on with. A killed run of a
    /// pool left it in a folder of its own.
    fn given_up(&self, last: Week) -> Result<Vec<String>> {
        let mut given_up = Vec::new();
        for work in self.works()? {
            let failed = || format!("cannot list {}", work.display());
            for entry in std::fs::read_dir(&work).with_context(failed)? {
                let name = entry.with_context(failed)?.file_name();
                let week = ["week=", SCRATCH].iter().find_map(|prefix| week_of(&name, prefix));
                if week.is_some_and(|week| week <= last) {
                    let path = Path::new(work.file_name().unwrap_or_default()).join(name);
                    given_up.push(path.to_string_lossy().into_owned());
                }
            }
        }
        given_up.sort_unstable();
        Ok(given_up)
    }

    /// Removes the weeks before one, and what is left of runs that were given up. The caller holds the lock, and
    /// [`Store::recover`] was called.
    ///
    /// # Errors
    /// As [`Store::to_vacuum`]; or names what cannot be read, written or removed: all weeks are there then, or the same call
    /// removes the rest.
    pub fn vacuum(&self, before: Week, threads: usize) -> Result<Vacuumed> {
        let (vacuumed, work) = (self.to_vacuum(before)?, self.work());
        for name in &vacuumed.unfinished {
            remove(&self.root().join(name))?;
        }
        if !vacuumed.weeks.is_empty() {
            let mut manifest = self.manifest()?.context("there is a store")?;
            let kept = manifest.weeks.iter().map(|week| week.week).find(|week| *week >= before);
            let kept = kept.context("there is a week that stays")?;
            let going = Earlier::before(&manifest, kept);
            let shards = manifest.method.shards;
            let removed = RemovedWeeks { before: kept, urls: going.urls(shards), named: going.named(shards) };
            self.keep_urls(&going, &removed, threads)?;
            manifest.weeks.retain(|week| week.week >= kept);
            manifest.removed = Some(removed);
            manifest.write(&self.manifest_path())?;
        }
        self.sweep()?;
        // Empty unless a later week is unfinished.
        let _ = std::fs::remove_dir(work);
        Ok(vacuumed)
    }

    /// Writes the URLs of weeks into one file a shard, by id, and one by hash.
    fn keep_urls(&self, weeks: &Earlier, removed: &RemovedWeeks, threads: usize) -> Result<()> {
        let (folder, files, indexes) = (self.removed_folder(removed), self.url_files(weeks)?, self.url_indexes(weeks)?);
        remove(&folder)?;
        let all: Vec<(u32, &Vec<PathBuf>, &Vec<PathBuf>)> =
            files.iter().zip(indexes.values()).map(|((shard, files), indexes)| (*shard, files, indexes)).collect();
        let next = AtomicUsize::new(0);
        let merge = || -> Result<()> {
            while let Some((shard, files, indexes)) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                let path = self.urls_of_removed(removed, UrlRow::NAME, *shard);
                let mut writer: Writer<UrlRow> = Writer::create(&path)?;
                for path in *files {
                    Scan::open(path, &["doc", "hash", "url"])?.for_each(|batch| writer.push_rows(batch))?;
                }
                writer.finish()?;
                let path = self.urls_of_removed(removed, RunRow::NAME, *shard);
                let mut writer: Writer<RunRow> = Writer::create(&path)?;
                let mut urls = UrlLookup::open(indexes.iter().cloned())?;
                while let Some((hash, doc)) = urls.next()? {
                    writer.push(RunRow { doc: doc.to_table(), hash: hash.to_bytes() })?;
                }
                writer.finish()?;
            }
            Ok(())
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..threads).map(|_| scope.spawn(merge)).collect();
            threads.into_iter().try_for_each(|thread| thread.join().expect("a merge does not panic"))
        })?;
        sync_folder(self.root())
    }

    /// Removes what the manifest says is removed, and URLs that it does not know of.
    ///
    /// # Errors
    /// Names what cannot be removed.
    pub(crate) fn sweep(&self) -> Result<()> {
        let removed = self.manifest()?.and_then(|manifest| manifest.removed);
        let urls = self.root().join(UrlRow::NAME);
        let known = removed.as_ref().map(|removed| self.removed_folder(removed));
        for folder in folders(&urls)? {
            if Some(&folder) != known.as_ref() {
                remove(&folder)?;
            }
        }
        let Some(removed) = removed else {
            // Empty, or not there.
            let _ = std::fs::remove_dir(&urls);
            return Ok(());
        };
        for folder in folders(self.root())? {
            let week = folder.file_name().and_then(|name| week_of(name, "week="));
            if week.is_some_and(|week| week < removed.before) {
                remove(&folder)?;
            }
        }
        Ok(())
    }
}

fn folders(path: &Path) -> Result<Vec<PathBuf>> {
    let failed = || format!("cannot list {}", path.display());
    if !path.exists() {
        return Ok(Vec::new());
    }
    let entries = std::fs::read_dir(path).with_context(failed)?;
    entries
        .map(|entry| Ok(entry.with_context(failed)?.path()))
        .filter(|path| path.as_ref().is_ok_and(|path| path.is_dir()))
        .collect()
}

fn remove(folder: &Path) -> Result<()> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => std::fs::remove_file(folder),
        other => other,
    }
    .with_context(|| format!("cannot remove {}", folder.display()))
}

/// The bytes of all files of a folder; what cannot be read counts as none.
fn bytes_of(folder: &Path) -> u64 {
    let files = walkdir::WalkDir::new(folder).into_iter().filter_map(|entry| entry.ok()?.metadata().ok());
    files.filter(|file| file.is_file()).map(|file| file.len()).sum()
}
