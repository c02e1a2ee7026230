//! Tables that a job makes of several weeks, in one folder of the store that is replaced as a whole.
//!
//! ```text
//! STORE/NAME                the tables of the last complete run
//! STORE/_work/NAME          the tables of an unfinished run
//! STORE/_work/NAME-before   the old tables, between the two renames of a commit
//! ```
//!
//! A kill leaves the old tables or the new ones. Between the two renames there is no `STORE/NAME`; the next run then gives the old
//! tables their name back before it begins.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::state::durable::sync_folder;
use crate::state::store::{BEFORE, Store};

/// The folders of the results of one name.
#[derive(Clone, Debug)]
pub struct Results {
    store: PathBuf,
    folder: PathBuf,
    unfinished: PathBuf,
    before: PathBuf,
}

impl Results {
    /// The paths of the results `name` in a store.
    pub fn of(store: &Store, name: &str) -> Results {
        let (root, work) = (store.root(), store.work());
        let before = work.join(format!("{name}{BEFORE}"));
        Results { store: root.to_owned(), folder: root.join(name), unfinished: work.join(name), before }
    }

    /// The folder of the complete tables.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The path of the file of a table that is being made.
    pub fn table(&self, table: &str) -> PathBuf {
        self.unfinished.join(table).join("all.parquet")
    }

    /// The path of another file beside the tables that are being made.
    pub fn file(&self, name: &str) -> PathBuf {
        self.unfinished.join(name)
    }

    /// Whether a commit has begun or ended, so that the old tables may no longer be in their place.
    pub fn has_begun_to_commit(&self) -> bool {
        self.before.exists() || !self.unfinished.exists()
    }

    /// Whether the new tables are in their place, provided that [`Results::begin`] was called before.
    pub fn is_committed(&self) -> bool {
        !self.unfinished.exists() && self.folder.exists()
    }

    /// Recovers the old tables after a killed run, removes its other files, and creates the folder for the new tables. The caller
    /// holds the store's lock.
    ///
    /// # Errors
    /// If a folder cannot be created, moved or removed.
    pub fn begin(&self) -> Result<()> {
        if self.before.exists() && !self.folder.exists() {
            rename(&self.before, &self.folder)?;
        }
        remove(&self.before)?;
        remove(&self.unfinished)?;
        std::fs::create_dir_all(&self.unfinished)
            .with_context(|| format!("cannot make the folder {}", self.unfinished.display()))
    }

    /// Replaces the old tables by the new ones, durably.
    ///
    /// # Errors
    /// If a folder cannot be moved or removed.
    pub fn commit(&self) -> Result<()> {
        sync_folder(&self.unfinished)?;
        if self.folder.exists() {
            rename(&self.folder, &self.before)?;
        }
        rename(&self.unfinished, &self.folder)?;
        sync_folder(&self.store)?;
        remove(&self.before)?;
        if let Some(work) = self.unfinished.parent() {
            // Fails if a week is unfinished: then the work folder stays.
            let _ = std::fs::remove_dir(work);
        }
        Ok(())
    }
}

fn rename(from: &Path, to: &Path) -> Result<()> {
    std::fs::rename(from, to).with_context(|| format!("cannot move {} to {}", from.display(), to.display()))
}

fn remove(folder: &Path) -> Result<()> {
    if folder.exists() {
        std::fs::remove_dir_all(folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text of the file in the folder of the complete tables.
    fn text_of(results: &Results) -> Option<String> {
        std::fs::read_to_string(results.folder().join("file")).ok()
    }

    fn make(results: &Results, text: &str) {
        results.begin().unwrap();
        std::fs::write(results.file("file"), text).unwrap();
    }

    #[test]
    fn results_are_replaced_as_a_whole() {
        let folder = tempfile::tempdir().unwrap();
        let results = Results::of(&Store::at(folder.path()), "evolution");
        make(&results, "one");
        assert_eq!(text_of(&results), None);
        results.commit().unwrap();
        make(&results, "two");
        assert_eq!(text_of(&results).as_deref(), Some("one"));
        assert!(!results.has_begun_to_commit() && !results.is_committed());
        results.commit().unwrap();
        assert!(results.has_begun_to_commit() && results.is_committed());
        assert_eq!(text_of(&results).as_deref(), Some("two"));
        assert!(!folder.path().join("_work").exists());
    }

    #[test]
    fn a_kill_at_any_step_of_a_commit_leaves_the_old_tables_or_the_new() {
        for steps in 0..4 {
            let folder = tempfile::tempdir().unwrap();
            let results = Results::of(&Store::at(folder.path()), "evolution");
            make(&results, "one");
            results.commit().unwrap();
            make(&results, "two");
            // The steps of the commit before the kill.
            let renames = [(&results.folder, &results.before), (&results.unfinished, &results.folder)];
            renames.iter().take(steps).for_each(|(from, to)| rename(from, to).unwrap());
            if steps == 3 {
                remove(&results.before).unwrap();
            }
            results.begin().unwrap();
            assert_eq!(text_of(&results).as_deref(), Some(if steps < 2 { "one" } else { "two" }), "{steps}");
            assert!(!results.before.exists() && !results.file("file").exists());
        }
    }
}
