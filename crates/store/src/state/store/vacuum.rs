//! Removes old weeks from a store. The ids of their URLs stay, because later weeks use them: one
//! file per shard and order.
//!
//! In this order:
//!
//! ```text
//! urls of old weeks  ─▶ _nigh/before=DATE/COMMIT/urls|url-runs/shard*.parquet     sorted by id, and by hash
//! manifest.json      replaced: it lists these files instead of the weeks
//! files of the weeks removed
//! ```
//!
//! A kill before the manifest is replaced leaves all weeks in place. After it, [`Store::recover`]
//! removes the rest.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result, ensure};

use super::folders::{SCRATCH, Store, removed_folder};
use crate::records::Week;
use crate::state::indexes::{UrlLookup, UrlRunRow};
use crate::state::weeks::{Earlier, Manifest, RemovedWeeks, shard_file, week_of};
use crate::structures::CompactSort;
use crate::tables::{RowRange, Scan, Table, UrlRow, Writer, name_pages, result_tables};

/// What [`Store::vacuum`] removed from a store, or would remove.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Vacuumed {
    /// The removed weeks.
    pub weeks: Vec<Week>,
    /// Folders of the results of jobs that name pages of removed weeks.
    pub results: Vec<String>,
    /// Folders of abandoned unfinished weeks, relative to the store.
    pub unfinished: Vec<String>,
    /// Bytes of all removed files.
    pub bytes: u64,
}

/// The part of every summary of results that says of which weeks they were made.
#[derive(serde::Deserialize)]
struct MadeOf {
    /// None, if they were made of lists.
    first: Option<Week>,
}

impl Store {
    /// Lists what [`Store::vacuum`] would remove.
    ///
    /// # Errors
    /// If the folder has no store, or if it holds no week from `before` on: the last week always
    /// stays.
    pub fn to_vacuum(&self, before: Week) -> Result<Vacuumed> {
        let root = self.root().display();
        let manifest = self.manifest()?.with_context(|| format!("{root} is not a nigh store (no manifest.json)"))?;
        let last = manifest.weeks.last().with_context(|| format!("the store {root} has no week yet"))?.week;
        ensure!(
            last >= before,
            "the last week of the store {root} is {last}: it stays, because the next week builds on it"
        );
        let unfinished = self.abandoned(last)?;
        let mut bytes: u64 = unfinished.iter().map(|name| bytes_of(&self.root().join(name))).sum();
        let (old, later): (Vec<_>, Vec<_>) = manifest.weeks.iter().partition(|week| week.week < before);
        let mut files = BTreeMap::new();
        for week in &old {
            bytes += bytes_of(&self.records(week));
            files.extend(self.whole(week)?.parts().map(|(path, part)| (path, part.bytes)));
        }
        // Pages of later weeks can have rows in files of earlier ones.
        for week in later {
            for path in self.whole(week)?.paths() {
                files.remove(&path);
            }
        }
        bytes += files.values().sum::<u64>();
        let weeks: Vec<Week> = old.iter().map(|week| week.week).collect();
        let results = if weeks.is_empty() { Vec::new() } else { self.results_from_before(&manifest, before)? };
        for name in &results {
            let own = self.own().join(name);
            bytes += bytes_of(&own);
            bytes +=
                result_tables(name).iter().map(|table| bytes_of(&self.root().join(name).join(table.name))).sum::<u64>();
        }
        Ok(Vacuumed { weeks, results, unfinished, bytes })
    }

    /// The results that name pages or hosts, and were made of a week before `before`.
    fn results_from_before(&self, manifest: &Manifest, before: Week) -> Result<Vec<String>> {
        let mut found = Vec::new();
        for (name, commit) in manifest.results.iter().filter(|(name, _)| name_pages(name)) {
            let path = self.own().join(name).join(format!("{commit:05}")).join("summary.json");
            let text = std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
            let made_of: MadeOf =
                serde_json::from_slice(&text).with_context(|| format!("{} is damaged", path.display()))?;
            if made_of.first.is_some_and(|first| first < before) {
                found.push(name.clone());
            }
        }
        Ok(found)
    }

    /// The folders of unfinished weeks that are abandoned: those up to the last committed week. The
    /// run of a later week can still be resumed. All work folders are searched, since a killed run
    /// of a pool left one with a name of its own.
    fn abandoned(&self, last: Week) -> Result<Vec<String>> {
        let mut abandoned = Vec::new();
        for work in self.work_folders()? {
            let failed = || format!("cannot list {}", work.display());
            for entry in std::fs::read_dir(&work).with_context(failed)? {
                let name = entry.with_context(failed)?.file_name();
                let week = ["week=", SCRATCH].iter().find_map(|prefix| week_of(&name, prefix));
                if week.is_some_and(|week| week <= last) {
                    let path = work.join(name);
                    let path = path.strip_prefix(self.root()).unwrap_or(&path);
                    abandoned.push(path.to_string_lossy().into_owned());
                }
            }
        }
        abandoned.sort_items();
        Ok(abandoned)
    }

    /// Removes the weeks before `before`, and abandoned unfinished weeks. The caller holds the lock
    /// and has called [`Store::recover`]. `threads` threads rewrite the URLs, one shard at a time.
    ///
    /// # Errors
    /// As [`Store::to_vacuum`]; or if a file cannot be read, written or removed. Then either all
    /// weeks remain, or the same call removes the rest.
    pub fn vacuum(&self, before: Week, threads: usize) -> Result<Vacuumed> {
        let (vacuumed, work) = (self.to_vacuum(before)?, self.work());
        for name in &vacuumed.unfinished {
            remove(&self.root().join(name))?;
        }
        if !vacuumed.weeks.is_empty() {
            let mut manifest = self.manifest()?.context("there is a store")?.next()?;
            let first_kept = manifest.weeks.iter().map(|week| week.week).find(|week| *week >= before);
            let first_kept = first_kept.context("the last week stays")?;
            let old = Earlier::before(&manifest, first_kept);
            let shards = manifest.method.shards;
            let (urls, named) = (old.urls(shards), old.named(shards));
            let removed = RemovedWeeks { before: first_kept, commit: manifest.commits, urls, named };
            self.stage_urls(&old, &removed, threads)?;
            manifest.weeks.retain(|week| week.week >= first_kept);
            manifest.removed = Some(removed);
            manifest.results.retain(|name, _| !vacuumed.results.contains(name));
            self.publish(&manifest)?;
        }
        // Fails if a later week is unfinished: then the work folder stays.
        let _ = std::fs::remove_dir(work);
        Ok(vacuumed)
    }

    /// Stages the URLs of `weeks` as two files per shard: one sorted by id, one by hash.
    fn stage_urls(&self, weeks: &Earlier, removed: &RemovedWeeks, threads: usize) -> Result<()> {
        let folder = self.staged_own(&removed_folder(removed));
        let (files, indexes) = (self.url_files(weeks)?, self.url_indexes(weeks)?);
        // Of a shard of which every URL was deleted, no week has rows.
        let of = |all: &BTreeMap<u32, Vec<RowRange>>, shard| all.get(&shard).cloned().unwrap_or_default();
        let shards: Vec<(u32, Vec<RowRange>, Vec<RowRange>)> =
            removed.shards().map(|shard| (shard, of(&files, shard), of(&indexes, shard))).collect();
        let next = AtomicUsize::new(0);
        let merge = || -> Result<()> {
            while let Some((shard, files, indexes)) = shards.get(next.fetch_add(1, Ordering::Relaxed)) {
                let path = folder.join(UrlRow::NAME).join(shard_file(*shard));
                let mut writer: Writer<UrlRow> = Writer::create(&path)?;
                for rows in files {
                    Scan::open(rows, &["doc", "hash", "url", "id"])?.for_each(|batch| writer.push_rows(batch))?;
                }
                writer.finish()?;
                let path = folder.join(UrlRunRow::NAME).join(shard_file(*shard));
                let mut writer: Writer<UrlRunRow> = Writer::create(&path)?;
                let mut urls = UrlLookup::open(indexes.iter().cloned())?;
                while let Some((hash, doc)) = urls.next_key()? {
                    writer.push(UrlRunRow { doc: doc.to_table(), hash: hash.to_bytes() })?;
                }
                writer.finish()?;
            }
            Ok(())
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..threads).map(|_| scope.spawn(merge)).collect();
            threads.into_iter().try_for_each(|thread| thread.join().expect("a merge does not panic"))
        })
    }
}

fn remove(folder: &Path) -> Result<()> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => std::fs::remove_file(folder),
        other => other,
    }
    .with_context(|| format!("cannot remove {}", folder.display()))
}

/// The bytes of all files below a folder; a file that cannot be read counts as 0.
fn bytes_of(folder: &Path) -> u64 {
    let files = walkdir::WalkDir::new(folder).into_iter().filter_map(|entry| entry.ok()?.metadata().ok());
    files.filter(|file| file.is_file()).map(|file| file.len()).sum()
}
