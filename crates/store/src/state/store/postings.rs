//! The postings that a store keeps for its last week: which week they belong to, and when they are
//! replaced.
//!
//! `_nigh/postings/postings.json` is one JSON object: `format`, `week`, `identity` ([of the
//! week](CommittedWeek::identity), and thereby of all that it stands on), and the [`PostingRuns`]:
//! `coding` and `runs`. It is replaced atomically, after the commit of the week. If it does not
//! match the last week, it is ignored, and the next delta scans all vectors instead. The files of
//! the runs are described in `state/indexes/postings.rs`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::folders::Store;
use crate::records::Week;
use crate::state::durable::{replace, sync_folder};
use crate::state::indexes::{FORMAT, PostingRuns};
use crate::state::weeks::{CommittedWeek, Unfinished};

/// The folder of a store's postings. A mirror neither removes nor publishes it.
const FOLDER: &str = "postings";

/// The content of `postings.json`.
#[derive(Serialize, Deserialize)]
struct PostingList {
    format: u32,
    week: Week,
    identity: String,
    #[serde(flatten)]
    runs: PostingRuns,
}

impl Store {
    /// The folder of the postings.
    pub fn postings_folder(&self) -> PathBuf {
        self.own().join(FOLDER)
    }

    /// The postings of a committed week; `None` if there are none, or if they belong to another
    /// week or another version of it.
    pub fn postings(&self, week: &CommittedWeek) -> Option<PostingRuns> {
        let text = std::fs::read(self.postings_folder().join("postings.json")).ok()?;
        let listed: PostingList = serde_json::from_slice(&text).ok()?;
        let matches = (listed.format, listed.week, &listed.identity) == (FORMAT, week.week, &week.identity());
        Some(listed.runs).filter(|runs| matches && runs.is_plausible())
    }

    /// Removes postings that belong to another week than `last`, or to another version of it: no
    /// run can use them, and they may have deleted pages.
    pub(super) fn drop_other_postings(&self, last: Option<&CommittedWeek>) -> Result<()> {
        let fits = last.is_some_and(|last| self.postings(last).is_some());
        if fits || !self.postings_folder().exists() { Ok(()) } else { self.drop_postings() }
    }

    /// Removes the postings: nothing may remain of deleted pages.
    fn drop_postings(&self) -> Result<()> {
        let folder = self.postings_folder();
        match std::fs::remove_dir_all(&folder) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            other => other.with_context(|| format!("cannot remove {}", folder.display())),
        }
    }

    /// Makes `postings` those of the store, after the commit of their week. Their last run, which
    /// the week added, is still among the files of the unfinished week, and is moved. Without
    /// postings, removes those of the week before: no later week can use them.
    pub fn keep_postings(
        &self,
        week: &CommittedWeek,
        unfinished: &Unfinished,
        postings: Option<&PostingRuns>,
    ) -> Result<()> {
        let folder = self.postings_folder();
        let cannot_remove = |path: &Path| format!("cannot remove {}", path.display());
        let Some(runs) = postings else { return self.drop_postings() };
        std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let made = unfinished.postings();
        // A run without postings has no folder.
        if let Some(run) = runs.runs.last().map(|run| folder.join(&run.folder)).filter(|_| made.exists()) {
            if run.exists() {
                std::fs::remove_dir_all(&run).with_context(|| cannot_remove(&run))?;
            }
            std::fs::rename(&made, &run)
                .with_context(|| format!("cannot move {} to {}", made.display(), run.display()))?;
            sync_folder(&folder)?;
        }
        let listed = PostingList { format: FORMAT, week: week.week, identity: week.identity(), runs: runs.clone() };
        let text = serde_json::to_vec(&listed).context("a list is plain data")?;
        replace(&folder.join("postings.json"), &text)?;
        let failed = || format!("cannot list {}", folder.display());
        for entry in std::fs::read_dir(&folder).with_context(failed)? {
            let path = entry.with_context(failed)?.path();
            let is_listed = runs.runs.iter().any(|run| path.ends_with(&run.folder));
            if path.is_dir() && !is_listed {
                std::fs::remove_dir_all(&path).with_context(|| cannot_remove(&path))?;
            }
        }
        Ok(())
    }
}

/// The name of the folder of the run of postings that a week adds; `key` is the hash of what the
/// week was made from.
pub fn run_folder(week: Week, key: &str) -> String {
    format!("run-{week}-{key}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::indexes::{Coding, write_postings};

    fn coding() -> Coding {
        Coding::new(&[1000, 900, 0, 17])
    }

    #[test]
    fn postings_belong_to_one_version_of_a_week_and_to_what_it_stands_on() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(&folder.path().join("store"));
        let week = |key: &str, stands_on: &str| CommittedWeek {
            week: "2024-01-15".parse().unwrap(),
            commit: 2,
            made: None,
            stands_on: stands_on.into(),
            key: key.into(),
            documents: 1,
            urls: vec![1],
            named: vec![0],
        };
        let unfinished = store.unfinished(week("a", "").week);
        let keep = |key: &str| {
            write_postings(&unfinished.postings(), 0, &[7, 9]).unwrap();
            let runs = PostingRuns::first(coding(), run_folder(week(key, "x").week, key), vec![2, 0, 0, 0]);
            store.keep_postings(&week(key, "x"), &unfinished, Some(&runs)).unwrap();
            runs
        };
        let postings = |key: &str, stands_on: &str| store.postings(&week(key, stands_on));
        let runs = keep("a");
        // The same input after a deletion has the same key, and other documents.
        assert_eq!((postings("a", "x"), postings("a", "y"), postings("b", "x")), (Some(runs), None, None));
        let runs = keep("b");
        assert_eq!((postings("a", "x"), postings("b", "x")), (None, Some(runs.clone())));
        let opened = runs.files(&store.postings_folder(), 0).unwrap();
        assert_eq!(opened[0].as_ref().unwrap().all().unwrap(), [7, 9]);
        assert_eq!(
            std::fs::read_dir(store.postings_folder()).unwrap().count(),
            2,
            "the run of the other version is gone"
        );
        store.drop_other_postings(Some(&week("b", "x"))).unwrap();
        assert_eq!(postings("b", "x"), Some(runs));
        for _ in 0..2 {
            store.drop_other_postings(Some(&week("b", "y"))).unwrap();
            assert!(!store.postings_folder().exists());
        }
    }
}
