//! The publication of a commit: files that were staged in the work folder become part of the store,
//! all at once.
//!
//! A commit is a folder `_nigh/work/commit` that is laid out as the store is, and a new manifest in
//! it:
//!
//! ```text
//! STORE/_nigh/work/commit/
//!   documents/week=2024-01-08/nigh-00001-00000.parquet      new files; no file of the store has their names
//!   _nigh/week=2024-01-08/00001/week.json
//!   manifest.json                                           written last: with it the commit is complete
//! ```
//!
//! [`Store::publish`] takes these steps:
//!
//! 1. List the digests of all files (`digests.rs`), write the new manifest into the staged folder,
//!    and sync the folder. **From here on the commit is completed, even after a kill.**
//! 2. Move each file to its place in the store. A reader that goes by the manifest, or by
//!    `views.sql`, does not see them yet.
//! 3. Sync the store, then rename the new manifest to `_nigh/manifest.json`. **The commit is
//!    done.**
//! 4. Replace `views.sql`, continue the logs of `catalog.rs` if there are any, and remove all files
//!    that the manifest does not list any more (`sweep.rs`).
//!
//! A run that finds a staged manifest repeats the steps from the second. It finds the staged
//! manifest only if the kill came before the rename, and repeating a move does no harm. Files that
//! were staged without a manifest are removed.
//!
//! A process that outlived its run does not know the present name of the work folder, so its
//! renames fail, that of the manifest included.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use super::folders::{MANIFEST, OWN, Store, part_file, records_folder, rename};
use crate::records::Week;
use crate::state::durable::sync_folder;
use crate::state::weeks::Manifest;

/// The name of the folder, within the work folder, of a commit in preparation.
const STAGED: &str = "commit";
/// The name of the folder, within the work folder, of what does not fit into memory while results
/// are made.
const RESULTS_SCRATCH: &str = "results";

impl Store {
    /// The folder of a commit in preparation.
    pub(crate) fn staged(&self) -> PathBuf {
        self.work().join(STAGED)
    }

    /// The folder for what does not fit into memory while [`Results`](crate::state::Results) are
    /// made.
    pub(crate) fn scratch_of_results(&self) -> PathBuf {
        self.work().join(RESULTS_SCRATCH)
    }

    /// File number `part` of a committed table, in the folder `folder` of the store.
    pub(crate) fn part(&self, folder: &Path, commit: u64, part: usize) -> PathBuf {
        self.root().join(folder).join(part_file(commit, part))
    }

    /// Where file number `part` of a table is staged, in the folder `folder` of the store.
    pub fn staged_part(&self, folder: &Path, commit: u64, part: usize) -> PathBuf {
        self.staged().join(folder).join(part_file(commit, part))
    }

    /// Where the records of a week are staged.
    pub(crate) fn staged_records(&self, week: Week, commit: u64) -> PathBuf {
        self.staged_own(&records_folder(week, commit))
    }

    /// Where a file is staged that the store keeps in its own folder under this path.
    pub(crate) fn staged_own(&self, path: &Path) -> PathBuf {
        self.staged().join(OWN).join(path)
    }

    /// Makes the staged files and the new manifest those of the store, by the steps at the head of
    /// this file. The caller holds the lock.
    ///
    /// # Errors
    /// If another run has committed meanwhile, or a file cannot be written or moved. Then the next
    /// run completes the commit, or the store is as it was.
    pub(crate) fn publish(&self, manifest: &Manifest) -> Result<()> {
        let current = self.current()?;
        let fits = manifest.follows(current.as_ref())?;
        ensure!(fits, "another run has committed to {} meanwhile: run the command again", self.root().display());
        let staged = self.staged();
        std::fs::create_dir_all(&staged).with_context(|| format!("cannot make {}", staged.display()))?;
        let mut manifest = manifest.clone();
        self.stage_digests(&Store::at(&staged), &mut manifest)?;
        manifest.write(&staged.join(MANIFEST))?;
        sync_folder(&staged)?;
        self.complete()
    }

    /// Whether a commit is staged completely, so that it will be done even if the run is killed.
    pub fn is_publishing(&self) -> bool {
        self.staged().join(MANIFEST).exists()
    }

    /// Completes a commit that a killed run has begun, or removes what it has staged. The caller
    /// holds the lock.
    pub(super) fn recover_publication(&self) -> Result<()> {
        remove(&self.scratch_of_results())?;
        let staged = self.staged();
        if let Some(manifest) = Manifest::read(&staged.join(MANIFEST))?
            && manifest.follows(self.current()?.as_ref())?
        {
            return self.complete();
        }
        remove(&staged)
    }

    /// The manifest, or an empty one for `None`.
    fn current(&self) -> Result<Option<Manifest>> {
        Manifest::read(&self.manifest_path())
    }

    /// The steps from the second on.
    fn complete(&self) -> Result<()> {
        let staged = self.staged();
        let failed = || format!("cannot list {}", staged.display());
        for entry in walkdir::WalkDir::new(&staged).sort_by_file_name() {
            let entry = entry.with_context(failed)?;
            let path = entry.path().strip_prefix(&staged).unwrap_or(entry.path());
            if !entry.file_type().is_file() || path == Path::new(MANIFEST) {
                continue;
            }
            let target = self.root().join(path);
            if let Some(folder) = target.parent() {
                std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
            }
            rename(entry.path(), &target)?;
        }
        sync_folder(self.root())?;
        rename(&staged.join(MANIFEST), &self.manifest_path())?;
        sync_folder(&self.own())?;
        remove(&staged)?;
        // It was begun from the store as it was.
        remove(self.resharded().root())?;
        self.write_views()?;
        self.write_catalog()?;
        self.sweep()
    }
}

impl Manifest {
    /// Whether this is the manifest of the commit after `current`.
    pub(super) fn follows(&self, current: Option<&Manifest>) -> Result<bool> {
        let first = Manifest::new(&self.method);
        let next = current.unwrap_or(&first).next()?;
        Ok((self.commits, &self.before) == (next.commits, &next.before))
    }
}

/// Removes a folder, if it exists.
pub(super) fn remove(folder: &Path) -> Result<()> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", folder.display()))
        }
        _ => Ok(()),
    }
}
