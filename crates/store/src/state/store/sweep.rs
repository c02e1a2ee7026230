//! Removes the files of a store that no commit lists any more: older versions, removed weeks, and
//! leftovers of killed runs.
//!
//! Only files and folders are removed whose names nigh gives: parts of its tables
//! (`nigh-00001-00000.parquet`), and its own folder. A folder that a user made, or a file that a
//! user put beside the tables, stays.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::digests::DIGESTS;
use super::folders::{SCRATCH, Store, commit_of, records_folder, removed_folder};
use crate::records::Week;
use crate::state::weeks::{Manifest, week_of};
use crate::structures::CompactSort;
use crate::tables::studies::RESULTS;
use crate::tables::{LOG_FOLDER, result_tables, tables_of_weeks};

impl Store {
    /// The paths of all files of the store that the manifest and the weeks' records list, relative
    /// to the store; the manifest itself is not among them.
    ///
    /// # Errors
    /// If a `week.json` is missing or damaged, or a folder cannot be listed.
    pub(crate) fn listed_files(&self, manifest: &Manifest) -> Result<Vec<PathBuf>> {
        let own = self.own();
        let own_name = own.strip_prefix(self.root()).unwrap_or(&own);
        let mut files = Vec::new();
        for week in &manifest.weeks {
            files.extend(self.whole(week)?.paths());
            self.list(&own_name.join(records_folder(week.week, week.commit)), &mut files)?;
        }
        if let Some(removed) = &manifest.removed {
            self.list(&own_name.join(removed_folder(removed)), &mut files)?;
        }
        // Later weeks have rows in the files of earlier ones.
        files.sort_items();
        files.dedup();
        for (results, commit) in &manifest.results {
            self.list(&own_name.join(results).join(format!("{commit:05}")), &mut files)?;
            files.extend(self.files_of_results(results, *commit)?);
        }
        files.extend(self.listed_digests(manifest));
        Ok(files)
    }

    /// The files of the tables of results that a commit made, relative to the store.
    pub(super) fn files_of_results(&self, results: &str, commit: u64) -> Result<Vec<PathBuf>> {
        let mut files = Vec::new();
        for table in result_tables(results) {
            self.list(&Path::new(results).join(table.name), &mut files)?;
        }
        files.retain(|path| name_of(path).and_then(commit_of) == Some(commit));
        Ok(files)
    }

    /// Adds all files below a folder of the store, relative to the store; none if it does not
    /// exist.
    pub(super) fn list(&self, folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
        let path = self.root().join(folder);
        if !path.exists() {
            return Ok(());
        }
        for entry in walkdir::WalkDir::new(&path).sort_by_file_name() {
            let entry = entry.with_context(|| format!("cannot list {}", path.display()))?;
            // A kill left a `.tmp` file while it was to replace another one.
            if entry.file_type().is_file() && entry.path().extension().is_none_or(|extension| extension != "tmp") {
                files.push(entry.path().strip_prefix(self.root()).unwrap_or(entry.path()).to_owned());
            }
        }
        Ok(())
    }

    /// Removes what the manifest does not list. The caller holds the lock.
    ///
    /// # Errors
    /// If a folder cannot be listed, or a file cannot be removed; the message names it.
    pub(crate) fn sweep(&self) -> Result<()> {
        let Some(manifest) = Manifest::read(&self.manifest_path())? else { return Ok(()) };
        let listed: HashSet<PathBuf> = self.listed_files(&manifest)?.into_iter().collect();
        for table in tables_of_weeks() {
            for folder in folders(&self.root().join(table.name))? {
                if folder.file_name().is_some_and(|name| week_of(name, "week=").is_some()) {
                    self.sweep_parts(&folder, &listed)?;
                }
            }
        }
        // Also those that the manifest no longer has: the commit of a deletion took them out.
        for results in RESULTS {
            let own = self.own().join(results.folder);
            let is_listed = manifest.results.contains_key(results.folder);
            if own.exists() || is_listed {
                for table in results.tables {
                    let folder = self.root().join(results.folder).join(table.name);
                    if !is_listed && folder.join(LOG_FOLDER).exists() {
                        std::fs::remove_dir_all(folder.join(LOG_FOLDER))
                            .with_context(|| format!("cannot remove the log in {}", folder.display()))?;
                    }
                    self.sweep_parts(&folder, &listed)?;
                }
                self.sweep_versions(&own, &listed)?;
            }
        }
        self.remove_unlisted(&self.own().join(DIGESTS), &listed, |name| name.contains(".json"))?;
        for folder in folders(&self.own())? {
            let date = |prefix| folder.file_name().and_then(|name| week_of(name, prefix));
            if ["week=", "before="].into_iter().find_map(date).is_some() {
                self.sweep_versions(&folder, &listed)?;
            }
        }
        Ok(())
    }

    /// Removes the parts in a folder of a table that are not listed, then the folder if it is
    /// empty, then its parent.
    fn sweep_parts(&self, folder: &Path, listed: &HashSet<PathBuf>) -> Result<()> {
        if !folder.exists() {
            return Ok(());
        }
        self.remove_unlisted(folder, listed, |name| commit_of(name).is_some())?;
        // Each call fails if the folder has files.
        if std::fs::remove_dir(folder).is_ok()
            && let Some(parent) = folder.parent()
        {
            let _ = std::fs::remove_dir(parent);
        }
        Ok(())
    }

    /// Removes the files in a folder, if it exists, that have such names and are not listed.
    fn remove_unlisted(&self, folder: &Path, listed: &HashSet<PathBuf>, is_ours: impl Fn(&str) -> bool) -> Result<()> {
        if !folder.exists() {
            return Ok(());
        }
        let failed = || format!("cannot list {}", folder.display());
        for entry in std::fs::read_dir(folder).with_context(failed)? {
            let entry = entry.with_context(failed)?;
            let (path, is_file) = (entry.path(), entry.file_type().with_context(failed)?.is_file());
            let is_listed = listed.contains(path.strip_prefix(self.root()).unwrap_or(&path));
            if is_file && !is_listed && name_of(&path).is_some_and(&is_ours) {
                std::fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
            }
        }
        Ok(())
    }

    /// Removes the folders of versions, named by the number of their commit, of which no file is
    /// listed; then the folder, if it is empty.
    fn sweep_versions(&self, folder: &Path, listed: &HashSet<PathBuf>) -> Result<()> {
        for version in folders(folder)? {
            let path = version.strip_prefix(self.root()).unwrap_or(&version);
            if !listed.iter().any(|listed| listed.starts_with(path)) {
                std::fs::remove_dir_all(&version).with_context(|| format!("cannot remove {}", version.display()))?;
            }
        }
        // Fails if the folder has files.
        let _ = std::fs::remove_dir(folder);
        Ok(())
    }

    /// Whether the store's own folder has records of weeks.
    pub(super) fn has_records(&self) -> Result<bool> {
        let is_week = |folder: &PathBuf| folder.file_name().is_some_and(|name| week_of(name, "week=").is_some());
        Ok(folders(&self.own())?.iter().any(is_week))
    }

    /// The weeks that were begun and are not committed.
    ///
    /// # Errors
    /// If the work folder cannot be listed.
    pub fn begun_weeks(&self) -> Result<Vec<Week>> {
        Ok(self.unfinished_weeks(SCRATCH)?.into_iter().map(|(week, _)| week).collect())
    }

    /// The weeks whose unfinished work is in the work folder.
    pub(super) fn unfinished_weeks(&self, prefix: &str) -> Result<Vec<(Week, PathBuf)>> {
        let weeks = folders(self.work())?.into_iter();
        Ok(weeks.filter_map(|folder| Some((week_of(folder.file_name()?, prefix)?, folder))).collect())
    }
}

fn name_of(path: &Path) -> Option<&str> {
    path.file_name()?.to_str()
}

/// The folders in a folder; none if it does not exist.
pub(super) fn folders(path: &Path) -> Result<Vec<PathBuf>> {
    let failed = || format!("cannot list {}", path.display());
    if !path.exists() {
        return Ok(Vec::new());
    }
    let mut folders = Vec::new();
    for entry in std::fs::read_dir(path).with_context(failed)? {
        let entry = entry.with_context(failed)?;
        // A link is not followed: it is not nigh's.
        if entry.file_type().with_context(failed)?.is_dir() {
            folders.push(entry.path());
        }
    }
    folders.sort_items();
    Ok(folders)
}
