//! Tables that a job makes of a store's weeks, in a folder of the store that is replaced as a whole.
//!
//! ```text
//! STORE/NAME                the tables of the last run that ended
//! STORE/_work/NAME          being made
//! STORE/_work/NAME-before   the former ones, between the two renames of a commit
//! ```
//!
//! A kill leaves the former tables or the new ones; between the two renames neither has its name, and the next run
//! puts the former ones back before it begins.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::state::durable::sync_folder;
use crate::state::store::{BEFORE, Store};

/// The folders of one kind of results.
#[derive(Clone, Debug)]
pub struct Results {
    store: PathBuf,
    folder: PathBuf,
    unfinished: PathBuf,
    before: PathBuf,
}

impl Results {
    /// The results of this name in a store.
    pub fn of(store: &Store, name: &str) -> Results {
        let (root, work) = (store.root(), store.work());
        let before = work.join(format!("{name}{BEFORE}"));
        Results { store: root.to_owned(), folder: root.join(name), unfinished: work.join(name), before }
    }

    /// Where they lie once they are whole.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// A file of one of the tables that are being made.
    pub fn table(&self, table: &str) -> PathBuf {
        self.unfinished.join(table).join("all.parquet")
    }

    /// A file beside the tables that are being made.
    pub fn file(&self, name: &str) -> PathBuf {
        self.unfinished.join(name)
    }

    /// Whether the former tables may be gone from their place: the exchange has begun, or ended.
    pub fn has_begun_to_commit(&self) -> bool {
        self.before.exists() || !self.unfinished.exists()
    }

    /// Whether the tables that were made are in their place, where [`Results::begin`] was called before.
    pub fn is_committed(&self) -> bool {
        !self.unfinished.exists() && self.folder.exists()
    }

    /// Mends what a killed run left, and makes room for new tables. The caller holds the store's lock.
    ///
    /// # Errors
    /// Names the folder that cannot be made, moved or removed.
    pub fn begin(&self) -> Result<()> {
        if self.before.exists() && !self.folder.exists() {
            rename(&self.before, &self.folder)?;
        }
        remove(&self.before)?;
        remove(&self.unfinished)?;
        std::fs::create_dir_all(&self.unfinished)
            .with_context(|| format!("cannot make the folder {}", self.unfinished.display()))
    }

    /// Puts the tables that were made in the place of the former ones, durably.
    ///
    /// # Errors
    /// Names the folder that cannot be moved or removed.
    pub fn commit(&self) -> Result<()> {
        sync_folder(&self.unfinished)?;
        if self.folder.exists() {
            rename(&self.folder, &self.before)?;
        }
        rename(&self.unfinished, &self.folder)?;
        sync_folder(&self.store)?;
        remove(&self.before)?;
        if let Some(work) = self.unfinished.parent() {
            // Empty unless a week is unfinished; then it stays.
            let _ = std::fs::remove_dir(work);
        }
        Ok(())
    }
}

fn rename(from: &Path, to: &Path) -> Result<()> {
    std::fs::rename(from, to).with_context(|| format!("cannot move {} to {}", from.display(), to.display()))
}

fn remove(folder: &Path) -> Result<()> {
    match folder.exists() {
        true => std::fs::remove_dir_all(folder).with_context(|| format!("cannot remove {}", folder.display())),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The one file of the folder of results, as text.
    fn kept(results: &Results) -> Option<String> {
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
        assert_eq!(kept(&results), None);
        results.commit().unwrap();
        make(&results, "two");
        assert_eq!(kept(&results).as_deref(), Some("one"));
        assert!(!results.has_begun_to_commit() && !results.is_committed());
        results.commit().unwrap();
        assert!(results.has_begun_to_commit() && results.is_committed());
        assert_eq!(kept(&results).as_deref(), Some("two"));
        assert!(!folder.path().join("_work").exists());
    }

    #[test]
    fn a_kill_at_any_step_of_a_commit_leaves_the_former_or_the_new() {
        for steps in 0..4 {
            let folder = tempfile::tempdir().unwrap();
            let results = Results::of(&Store::at(folder.path()), "evolution");
            make(&results, "one");
            results.commit().unwrap();
            make(&results, "two");
            // The commit's steps up to the kill.
            let renames = [(&results.folder, &results.before), (&results.unfinished, &results.folder)];
            renames.iter().take(steps).for_each(|(from, to)| rename(from, to).unwrap());
            if steps == 3 {
                remove(&results.before).unwrap();
            }
            results.begin().unwrap();
            assert_eq!(kept(&results).as_deref(), Some(if steps < 2 { "one" } else { "two" }), "{steps}");
            assert!(!results.before.exists() && !results.file("file").exists());
        }
    }
}
