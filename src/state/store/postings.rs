//! The postings that a store keeps for its last week.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::folders::Store;
use crate::records::Week;
use crate::state::durable::{replace, sync_folder};
use crate::state::indexes::{FORMAT, PostingRuns};
use crate::state::weeks::{CommittedWeek, Unfinished};

/// The folder of a store's postings. A mirror leaves alone what begins so, and publishes nothing of it.
const FOLDER: &str = "_postings";

/// The content of `postings.json`.
#[derive(Serialize, Deserialize)]
struct PostingList {
    format: u32,
    week: Week,
    /// The hash of what the week was made from.
    key: String,
    #[serde(flatten)]
    runs: PostingRuns,
}

impl Store {
    /// The folder of its postings.
    pub fn postings_folder(&self) -> PathBuf {
        self.root().join(FOLDER)
    }

    /// The postings of the vectors of a committed week; `None` where there are none, or others.
    pub fn postings(&self, week: &CommittedWeek) -> Option<PostingRuns> {
        let text = std::fs::read(self.postings_folder().join("postings.json")).ok()?;
        let listed: PostingList = serde_json::from_slice(&text).ok()?;
        let is_of = (listed.format, listed.week, &listed.key) == (FORMAT, week.week, &week.key);
        Some(listed.runs).filter(|runs| is_of && runs.can_be())
    }

    /// Lets go of the postings of a week that is about to be replaced, whatever may happen then: of what is deleted nothing is
    /// kept, and the week that takes its place has other vectors. The runs stay where the new week's postings stand on them.
    pub(crate) fn drop_postings(&self, postings: Option<&PostingRuns>) -> Result<()> {
        let (folder, list) = (self.postings_folder(), self.postings_folder().join("postings.json"));
        let (path, removed) = match postings {
            None => (&folder, std::fs::remove_dir_all(&folder)),
            Some(_) => (&list, std::fs::remove_file(&list)),
        };
        match removed {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            other => other.with_context(|| format!("cannot remove {}", path.display())),
        }
    }

    /// Keeps the postings of a week that was committed, of which the last run is among what is unfinished; without any,
    /// removes those of the week before, which no week goes on from.
    pub(crate) fn keep_postings(
        &self,
        week: &CommittedWeek,
        unfinished: &Unfinished,
        postings: Option<&PostingRuns>,
    ) -> Result<()> {
        let folder = self.postings_folder();
        let removed = |path: &Path| format!("cannot remove {}", path.display());
        let Some(runs) = postings else { return self.drop_postings(None) };
        std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let made = unfinished.postings();
        // A run without a posting has no folder.
        if let Some(run) = runs.runs.last().map(|run| folder.join(&run.folder)).filter(|_| made.exists()) {
            if run.exists() {
                std::fs::remove_dir_all(&run).with_context(|| removed(&run))?;
            }
            std::fs::rename(&made, &run)
                .with_context(|| format!("cannot move {} to {}", made.display(), run.display()))?;
            sync_folder(&folder)?;
        }
        let listed = PostingList { format: FORMAT, week: week.week, key: week.key.clone(), runs: runs.clone() };
        let text = serde_json::to_vec(&listed).context("a list is plain data")?;
        replace(&folder.join("postings.json"), &text)?;
        let failed = || format!("cannot list {}", folder.display());
        for entry in std::fs::read_dir(&folder).with_context(failed)? {
            let path = entry.with_context(failed)?.path();
            let is_listed = runs.runs.iter().any(|run| path.ends_with(&run.folder));
            if path.is_dir() && !is_listed {
                std::fs::remove_dir_all(&path).with_context(|| removed(&path))?;
            }
        }
        Ok(())
    }
}

/// The name of the folder of the run that a week adds.
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
    fn postings_are_of_one_week_and_go_before_it_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(&folder.path().join("store"));
        let week = |key: &str| CommittedWeek {
            week: "2024-01-15".parse().unwrap(),
            key: key.into(),
            documents: 1,
            urls: vec![1],
            named: vec![0],
        };
        let unfinished = store.unfinished(week("a").week);
        let keep = |key: &str| {
            write_postings(&unfinished.postings(), 0, &[7, 9]).unwrap();
            let runs = PostingRuns::first(coding(), run_folder(week(key).week, key), vec![2, 0, 0, 0]);
            store.keep_postings(&week(key), &unfinished, Some(&runs)).unwrap();
            runs
        };
        let runs = keep("a");
        assert_eq!((store.postings(&week("a")), store.postings(&week("b"))), (Some(runs), None));
        let runs = keep("b");
        assert_eq!((store.postings(&week("a")), store.postings(&week("b"))), (None, Some(runs.clone())));
        let opened = runs.files(&store.postings_folder(), 0).unwrap();
        assert_eq!(opened[0].as_ref().unwrap().all().unwrap(), [7, 9]);
        assert_eq!(std::fs::read_dir(store.postings_folder()).unwrap().count(), 2, "the former run is gone");
        store.drop_postings(Some(&runs)).unwrap();
        assert_eq!(store.postings(&week("b")), None);
        assert!(runs.files(&store.postings_folder(), 0).is_ok(), "runs that others may stand on stay");
        for _ in 0..2 {
            store.drop_postings(None).unwrap();
            assert!(!store.postings_folder().exists());
        }
    }
}
