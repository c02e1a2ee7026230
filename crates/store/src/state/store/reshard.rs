//! A store that gets more shards: its weeks are made again in a store within its work folder, which
//! then takes its place.
//!
//! ```text
//! _nigh/work/reshard/                  laid out as a store: the weeks with more shards
//! _nigh/work/reshard/manifest.json     the manifest with these weeks: all of them are made
//! _nigh/work/commit/                   the same folder, renamed: a commit in preparation
//! ```
//!
//! 1. [`Store::begin_resharding`] makes the inner store, or goes on with one that was begun from
//!    the same weeks. Each of its weeks is begun, committed and recovered as a week of any store.
//! 2. [`Store::finish_resharding`] writes the next manifest into its folder. A kill from here on
//!    leaves a folder that the next `nigh reshard` publishes.
//! 3. It removes from the folder all that is not part of a commit, renames it to the folder of a
//!    commit in preparation, and publishes it (`publication.rs`). **With the rename it will be
//!    completed, even after a kill.**
//!
//! A kill before the rename leaves the store as it was. Any other commit to the store removes the
//! inner store, which was begun from other weeks.
//!
//! All weeks get the number of one commit, that of the publication. Results
//! ([`Results`](crate::state::Results)) stay as they are: their ids of documents are those from
//! before.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use super::digests::DIGESTS;
use super::folders::{MANIFEST, Store, rename};
use super::publication::remove;
use super::sweep::folders;
use crate::config::Method;
use crate::state::durable::sync_folder;
use crate::state::weeks::{CommittedWeek, FORMAT, Manifest, week_of};

/// The name of the inner store, within the work folder.
const RESHARDED: &str = "reshard";

impl Store {
    /// The store in which the weeks of this one are made with more shards.
    pub(crate) fn resharded(&self) -> Store {
        Store::at(&self.work().join(RESHARDED))
    }

    /// Begins to give the store more shards, or goes on with it. Returns the inner store, ready for
    /// its next week. The caller holds the lock and has called [`Store::recover`].
    ///
    /// # Errors
    /// If a file cannot be read, written or removed.
    pub fn begin_resharding(&self, manifest: &Manifest, method: &Method) -> Result<Store> {
        let made = self.resharded();
        let begin = || {
            std::fs::create_dir_all(made.own()).with_context(|| format!("cannot make {}", made.own().display()))?;
            made.recover()
        };
        // A commit within it that a kill has cut short is looked at as a whole one.
        begin()?;
        if !made.is_of(manifest, method.shards).unwrap_or(false) {
            remove(made.root())?;
            begin()?;
        }
        let of_made = made.manifest()?.unwrap_or_else(|| Manifest::new(method));
        // Every week gets the number of the commit that publishes all of them.
        Manifest { commits: manifest.commits, digests: None, ..of_made }.write(&made.manifest_path())?;
        Ok(made)
    }

    /// Whether the weeks of this inner store are the first ones of a store with this manifest, with
    /// so many shards.
    fn is_of(&self, manifest: &Manifest, shards: u32) -> Result<bool> {
        let Some(Manifest { method, weeks: of_made, .. }) = self.manifest()? else { return Ok(true) };
        let is_of = |(made, of): (&CommittedWeek, &CommittedWeek)| {
            (made.week, made.commit, &made.key) == (of.week, manifest.commits + 1, &of.key_with_shards(shards))
        };
        let is_part = method.shards == shards && of_made.len() <= manifest.weeks.len();
        Ok(is_part && of_made.iter().zip(&manifest.weeks).all(is_of))
    }

    /// Goes on with a store with so many shards, if all of its weeks are made and a kill came
    /// before it was published. Returns whether there was one. The caller holds the lock and has
    /// called [`Store::recover`].
    ///
    /// # Errors
    /// As [`Store::finish_resharding`].
    pub fn resume_resharding(&self, shards: u32) -> Result<bool> {
        let made = self.resharded();
        let Some(manifest) = Manifest::read(&made.root().join(MANIFEST)).ok().flatten() else { return Ok(false) };
        if manifest.method.shards != shards || !manifest.follows(self.manifest()?.as_ref())? {
            remove(made.root())?;
            return Ok(false);
        }
        self.publish_resharded(&manifest).map(|()| true)
    }

    /// Puts the weeks of the inner store, which has all of them, in the place of those of this one.
    /// The caller holds the lock.
    ///
    /// # Errors
    /// If another run has committed meanwhile, or a file cannot be written or moved. Then the store
    /// is as it was, or the next run completes the commit.
    pub fn finish_resharding(&self, method: &Method) -> Result<()> {
        let made = self.resharded();
        let missing = |store: &Store| format!("{} is missing", store.manifest_path().display());
        let of_made = made.manifest()?.with_context(|| missing(&made))?;
        let current = self.manifest()?.with_context(|| missing(self))?;
        ensure!(
            of_made.weeks.len() == current.weeks.len() && made.is_of(&current, method.shards)?,
            "{} has other weeks than the store: run the same command again",
            made.root().display()
        );
        let (method, method_hash) = (method.clone(), method.hash());
        let mut manifest = Manifest { format: FORMAT, method, method_hash, weeks: of_made.weeks, ..current.next()? };
        self.stage_digests(&made, &mut manifest)?;
        manifest.write(&made.root().join(MANIFEST))?;
        self.publish_resharded(&manifest)
    }

    fn publish_resharded(&self, manifest: &Manifest) -> Result<()> {
        let (made, staged) = (self.resharded(), self.staged());
        made.keep_parts_of_commit()?;
        remove(&staged)?;
        sync_folder(made.root())?;
        rename(made.root(), &staged)?;
        self.publish(manifest)?;
        // What was begun and not committed has other ids, and so have the postings.
        for week in self.begun_weeks()? {
            self.unfinished(week).clear()?;
        }
        self.drop_other_postings(manifest.weeks.last())?;
        // Fails if it is not empty.
        let _ = std::fs::remove_dir(self.work());
        Ok(())
    }

    /// Removes from the folder of this inner store all that no commit moves: everything except
    /// tables, records of weeks, the list of digests, and the manifest of the commit.
    fn keep_parts_of_commit(&self) -> Result<()> {
        let is_part = |name: &OsStr| name == DIGESTS || week_of(name, "week=").is_some();
        let is_part = |path: &PathBuf| path.file_name().is_some_and(is_part);
        for folder in folders(&self.own())?.into_iter().filter(|folder| !is_part(folder)) {
            remove(&folder)?;
        }
        remove_files(&self.own(), |_| false)?;
        remove_files(self.root(), |name| name == MANIFEST)?;
        Ok(())
    }
}

/// Removes the files in a folder, except those whose name is to stay.
fn remove_files(folder: &Path, stays: impl Fn(&str) -> bool) -> Result<()> {
    let failed = || format!("cannot list {}", folder.display());
    for entry in std::fs::read_dir(folder).with_context(failed)? {
        let entry = entry.with_context(failed)?;
        if !entry.file_type().with_context(failed)?.is_dir() && !stays(&entry.file_name().to_string_lossy()) {
            std::fs::remove_file(entry.path()).with_context(|| format!("cannot remove {}", entry.path().display()))?;
        }
    }
    Ok(())
}
