//! The life of a week in a store: how it begins, how it is committed, and how the next run recovers a store after a kill.
//!
//! A week grows in `_work/week=DATE`, wave by wave, and `_work/scratch-DATE/journal.json` lists the complete waves. A commit makes
//! the week part of the store. [`Store::commit`] takes these steps:
//!
//! 1. Compare the journal on the disk with the week's own. If they differ, another run has taken over the work, and the commit fails.
//! 2. Write `job.toml`, `summary.json` and `week.json` into the unfinished folder, then sync it. Every file of the week is durable.
//! 3. Only if the store has an older version of the week: remove unfinished later weeks, which build on that version; remove its
//!    postings; move it to `_work/replaced-DATE`; sync the store.
//! 4. Rename the unfinished folder to `week=DATE` and sync the store. **The week is committed.**
//! 5. Replace `manifest.json` by one that lists the week.
//! 6. Move the week's run of postings to `_postings`, replace `postings.json`, and remove the runs that it does not list.
//! 7. Remove `_work/scratch-DATE` and `_work/replaced-DATE`.
//! 8. Remove the rows of deleted URLs from `urls`, then the list of them (`forget.rs`).
//!
//! [`Store::recover`], which every run calls first, completes an interrupted commit. What it finds depends on the last step done:
//!
//! 1. After step 1 or 2: the store is as before, the week is unfinished, and the run resumes from its journal.
//! 2. Within step 3, before the move: the same, except that the postings may be gone. A run without postings scans the vectors.
//! 3. After step 3: no folder has the name `week=DATE`. The old version was moved away only after the new one was complete and durable, so
//!    the unfinished folder gets the name if it has a `week.json`. Otherwise the old version gets it back.
//! 4. After step 4: `week=DATE` is complete, since nothing else gets that name. Recovery adds it to the manifest. Its postings are lost.
//! 5. After step 5, 6 or 7: recovery removes the leftover folders. If `postings.json` does not match the last week, it is ignored.
//! 6. Within step 8: recovery repeats the step; doing it twice does no harm.
//!
//! Only the run that holds the lock calls these functions. A process that outlived its run does not know the present name of the work
//! folder (see [`Store::take_work`]), so its renames fail.

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use super::folders::{BEFORE, JOURNAL, REPLACED, SCRATCH, Store, rename};
use crate::config::Method;
use crate::records::Week;
use crate::state::durable::{replace, sync_folder};
use crate::state::indexes::PostingRuns;
use crate::state::weeks::{InputKey, Journal, Manifest, WholeWeek, week_of};
use crate::tables::{Table, UrlRow};

/// A week that was begun or resumed.
#[derive(Clone, Debug, PartialEq)]
pub struct Begun {
    /// The complete waves; empty if the week starts from nothing.
    pub journal: Journal,
    /// Complete waves that were removed, because they were made from another input, method or way of reading.
    pub dropped: usize,
}

impl Store {
    /// Begins a week, or resumes it if its journal has the same key. The caller holds the lock.
    ///
    /// Segments of incomplete waves are removed. An unfinished week with another key is removed entirely, since its rows are not
    /// those of this job.
    ///
    /// # Errors
    /// If the store was made with another method, or cannot be written.
    pub fn begin(&self, week: Week, method: &Method, key: &InputKey) -> Result<Begun> {
        if let Some(manifest) = self.manifest()? {
            manifest.check(&self.root, method)?;
        }
        let unfinished = self.unfinished(week);
        let dropped = match Journal::read(&unfinished.journal())? {
            Some(journal) if journal.key == *key => {
                unfinished.drop_unlisted(&journal)?;
                return Ok(Begun { journal, dropped: 0 });
            }
            other => other.map_or(0, |journal| journal.waves),
        };
        // The journal is removed first: without it the other files count for nothing, wherever this is interrupted.
        if unfinished.journal().exists() {
            std::fs::remove_file(unfinished.journal())
                .and_then(|()| File::open(&unfinished.scratch)?.sync_all())
                .with_context(|| format!("cannot remove {}", unfinished.journal().display()))?;
        }
        for folder in [&unfinished.folder, &unfinished.scratch] {
            if folder.exists() {
                std::fs::remove_dir_all(folder).with_context(|| format!("cannot remove {}", folder.display()))?;
            }
            std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        }
        let journal = Journal::new(key.clone());
        journal.write(&unfinished.journal())?;
        Ok(Begun { journal, dropped })
    }

    /// Commits a week whose tables are all in its unfinished folder, by the steps at the head of this file. The caller holds the
    /// lock. After a kill at any step, [`Store::recover`] of the next run completes or undoes the commit.
    ///
    /// # Errors
    /// If another run has taken over the work, or a file cannot be written. The week is then unfinished or committed, never in part.
    pub fn commit(&self, whole: &WholeWeek, job: &str, summary: &[u8], postings: Option<&PostingRuns>) -> Result<()> {
        let week = whole.committed.week;
        let unfinished = self.unfinished(week);
        ensure!(Journal::read(&unfinished.journal())?.as_ref() == Some(&whole.journal), unfinished.taken_over());
        let folder = unfinished.folder();
        replace(&folder.join("job.toml"), job.as_bytes())?;
        replace(&folder.join("summary.json"), summary)?;
        whole.write(&folder.join("week.json"))?;
        sync_folder(folder)?;
        let target = self.week(week);
        if target.exists() {
            self.drop_later(week)?;
            self.drop_postings(postings)?;
            rename(&target, &unfinished.replaced)?;
            sync_folder(&self.root)?;
        }
        rename(folder, &target)?;
        sync_folder(&self.root)?;
        self.list(whole)?;
        self.keep_postings(&whole.committed, &unfinished, postings)?;
        unfinished.clear()?;
        self.forget(week)
    }

    /// Removes unfinished weeks after `week`: they build on the version of it that is being replaced.
    fn drop_later(&self, week: Week) -> Result<()> {
        let failed = || format!("cannot list {}", self.work.display());
        for entry in std::fs::read_dir(&self.work).with_context(failed)? {
            let entry = entry.with_context(failed)?;
            let unfinished = ["week=", SCRATCH].iter().find_map(|prefix| week_of(&entry.file_name(), prefix));
            if unfinished.is_some_and(|unfinished| unfinished > week) {
                let path = entry.path();
                std::fs::remove_dir_all(&path).with_context(|| format!("cannot remove {}", path.display()))?;
            }
        }
        Ok(())
    }

    /// Adds a committed week to the manifest, in place of an older version of it.
    fn list(&self, whole: &WholeWeek) -> Result<()> {
        let mut manifest = self.manifest()?.unwrap_or_else(|| Manifest::new(&whole.method));
        manifest.weeks.retain(|week| week.week != whole.committed.week);
        manifest.weeks.push(whole.committed.clone());
        manifest.weeks.sort_by_key(|week| week.week);
        manifest.version = env!("CARGO_PKG_VERSION").into();
        manifest.write(&self.manifest_path())
    }

    /// Whether a week is committed and no new version of it is unfinished.
    pub fn is_committed(&self, week: Week) -> bool {
        let is_listed = self.manifest().is_ok_and(|manifest| manifest.is_some_and(|manifest| manifest.has(week)));
        // All work folders are searched: a later generation of processes uses another one.
        let is_begun = |work: &PathBuf| work.join(format!("{SCRATCH}{week}")).join(JOURNAL).exists();
        is_listed && !self.work_folders().is_ok_and(|folders| folders.iter().any(is_begun))
    }

    /// Completes what a killed run began: the commit of a week (see the head of this file), of results
    /// ([`Results`](crate::state::Results)), a removal of weeks ([`Store::vacuum`]) or of URLs. The caller holds the lock.
    ///
    /// # Errors
    /// If the store cannot be read or written, or its manifest is missing although weeks were removed.
    pub fn recover(&self) -> Result<()> {
        let failed = || format!("cannot list the store {}", self.root.display());
        if self.manifest()?.is_none() && self.root.join(UrlRow::NAME).exists() {
            bail!(
                "{} is missing, and only it records the ids that the removed weeks of this store gave: restore it",
                self.manifest_path().display()
            );
        }
        if self.work.exists() {
            for entry in std::fs::read_dir(&self.work).with_context(failed)? {
                let entry = entry.with_context(failed)?;
                let name = entry.file_name();
                if let Some(results) = name.to_str().and_then(|name| name.strip_suffix(BEFORE)) {
                    self.recover_results(results, &entry.path())?;
                }
                if let Some(week) = week_of(&name, REPLACED) {
                    self.recover_replacement(week)?;
                }
            }
        }
        for entry in std::fs::read_dir(&self.root).with_context(failed)? {
            let name = entry.with_context(failed)?.file_name();
            if let Some(week) = week_of(&name, "week=") {
                self.recover_week(week)?;
            }
        }
        self.sweep()
    }

    /// Completes the commit of a week whose old version was moved to `_work/replaced-DATE`.
    fn recover_replacement(&self, week: Week) -> Result<()> {
        let unfinished = self.unfinished(week);
        if !self.week(week).exists() {
            // The old version was moved away only after the new one was complete.
            let is_complete = unfinished.folder.join("week.json").exists();
            rename(if is_complete { &unfinished.folder } else { &unfinished.replaced }, &self.week(week))?;
            sync_folder(&self.root)?;
        }
        self.list(&self.whole(week)?)?;
        unfinished.clear()
    }

    /// Completes the commit of a week that has its folder `week=DATE`, unless the week was removed.
    fn recover_week(&self, week: Week) -> Result<()> {
        let manifest = self.manifest()?;
        let is_removed = manifest.as_ref().is_some_and(|manifest| manifest.has_removed(week));
        let is_listed = manifest.is_some_and(|manifest| manifest.has(week));
        if !is_removed
            && !is_listed
            && let Some(whole) = WholeWeek::read(&self.week(week).join("week.json"))?
        {
            self.list(&whole)?;
        }
        let unfinished = self.unfinished(week);
        if !unfinished.folder.exists() {
            unfinished.clear()?;
        }
        if is_removed { Ok(()) } else { self.forget(week) }
    }

    /// Gives results that were moved to `before` their name back, or removes them if the new results have the name already.
    fn recover_results(&self, results: &str, before: &Path) -> Result<()> {
        let folder = self.root.join(results);
        if folder.exists() {
            std::fs::remove_dir_all(before).with_context(|| format!("cannot remove {}", before.display()))
        } else {
            rename(before, &folder).and_then(|()| sync_folder(&self.root))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Method;
    use crate::records::Week;
    use crate::state::store::folders::{Store, rename};
    use crate::state::weeks::{CommittedWeek, InputKey, Journal, Segment, WholeWeek};

    fn key(hash: &str) -> InputKey {
        InputKey { hash: hash.into(), waves: 2, files: 2, bytes: 10, stamps: Default::default() }
    }

    fn week() -> Week {
        "2024-01-08".parse().unwrap()
    }

    #[test]
    fn a_second_run_is_refused_while_the_first_writes() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(&folder.path().join("store"));
        let lock = store.lock().unwrap();
        let error = store.lock().unwrap_err().to_string();
        assert!(error.contains("another run") && error.contains(&std::process::id().to_string()), "{error}");
        // Dropping it would not be enough: processes that other tests start at the same time inherit the lock.
        lock.unlock().unwrap();
        store.lock().unwrap();
    }

    #[test]
    fn a_rerun_keeps_complete_waves_and_removes_other_files() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(folder.path());
        let method = Method::default();
        let mut journal = store.begin(week(), &method, &key("a")).unwrap().journal;
        let unfinished = store.unfinished(week());
        let segment = |wave| Segment { wave, shard: 3, documents: 1, urls: 1, features: 1, links: 0 };
        let file = |wave| unfinished.table("documents", &segment(wave).file());
        for wave in 0..2 {
            std::fs::create_dir_all(file(wave).parent().unwrap()).unwrap();
            std::fs::write(file(wave), "rows").unwrap();
        }
        // A file of a complete wave that the journal does not list does not belong to the week.
        let stray = unfinished.table("documents", &Segment { shard: 4, ..segment(0) }.file());
        std::fs::write(&stray, "rows").unwrap();
        journal.waves = 1;
        journal.segments = vec![segment(0)];
        journal.write(&unfinished.journal()).unwrap();
        assert_eq!(store.begin(week(), &method, &key("a")).unwrap(), Begun { journal, dropped: 0 });
        assert!(file(0).exists() && !file(1).exists() && !stray.exists());
        let begun = store.begin(week(), &method, &key("b")).unwrap();
        assert_eq!((begun.journal.waves, begun.dropped), (0, 1));
        assert!(!file(0).exists());
    }

    #[test]
    fn a_kill_between_rename_and_manifest_loses_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(folder.path());
        let method = Method::default();
        let journal = store.begin(week(), &method, &key("a")).unwrap().journal;
        let committed = CommittedWeek { week: week(), key: "a".into(), documents: 7, urls: vec![7], named: vec![1] };
        let whole = WholeWeek { committed, method, journal };
        store.commit(&whole, "[cluster]", b"{}", None).unwrap();
        let manifest = store.manifest().unwrap();
        std::fs::remove_file(store.manifest_path()).unwrap();
        store.recover().unwrap();
        assert_eq!(store.manifest().unwrap(), manifest);
        assert_eq!(manifest.unwrap().weeks, [whole.committed]);
    }

    #[test]
    fn a_kill_while_a_week_is_replaced_leaves_the_old_version_or_the_new() {
        let method = Method::default();
        let whole = |documents| WholeWeek {
            committed: CommittedWeek { week: week(), key: "k".into(), documents, urls: vec![7], named: vec![1] },
            method: method.clone(),
            journal: Journal::new(key("k")),
        };
        // Steps done before the kill: 0, the new week is complete; 1, the old one was moved away; 2, the new one has its name.
        for (done, documents) in [(0, 7), (1, 8), (2, 8)] {
            let folder = tempfile::tempdir().unwrap();
            let store = Store::at(folder.path());
            store.begin(week(), &method, &key("k")).unwrap();
            store.commit(&whole(7), "[cluster]", b"{}", None).unwrap();
            store.begin(week(), &method, &key("b")).unwrap();
            assert!(!store.is_committed(week()));
            let unfinished = store.unfinished(week());
            whole(8).write(&unfinished.folder.join("week.json")).unwrap();
            if done > 0 {
                rename(&store.week(week()), &unfinished.replaced).unwrap();
            }
            if done > 1 {
                rename(&unfinished.folder, &store.week(week())).unwrap();
            }
            store.recover().unwrap();
            assert_eq!(store.whole(week()).unwrap(), whole(documents), "after {done}");
            assert_eq!(store.manifest().unwrap().unwrap().weeks, [whole(documents).committed], "after {done}");
            assert_eq!(unfinished.folder.exists(), done == 0, "the unfinished week can be resumed");
            assert!(!unfinished.replaced.exists());
        }
    }

    #[test]
    fn a_process_of_an_earlier_generation_can_neither_write_its_journal_nor_commit() {
        let folder = tempfile::tempdir().unwrap();
        let method = Method::default();
        let earlier = Store::at(folder.path()).working_in("_work-1");
        let mut journal = earlier.begin(week(), &method, &key("a")).unwrap().journal;
        journal.waves = 1;
        journal.write(&earlier.unfinished(week()).journal()).unwrap();
        let store = Store::at(folder.path()).working_in("_work-2");
        store.take_work().unwrap();
        assert_eq!(store.begin(week(), &method, &key("a")).unwrap().journal, journal);
        // The process of the earlier generation wakes, and tries to write its journal and to commit.
        let straggler = Journal::new(key("a"));
        assert!(earlier.unfinished(week()).write_journal(&straggler).is_err());
        std::fs::create_dir_all(earlier.unfinished(week()).spill()).unwrap();
        assert!(earlier.unfinished(week()).write_journal(&straggler).is_err());
        let committed = CommittedWeek { week: week(), key: "a".into(), documents: 7, urls: vec![7], named: vec![1] };
        let whole = WholeWeek { committed, method: method.clone(), journal: straggler };
        assert!(earlier.commit(&whole, "[cluster]", b"{}", None).is_err());
        assert!(!store.week(week()).exists() && store.manifest().unwrap().is_none());
        // Folders that it makes without a journal are not taken over.
        std::fs::create_dir_all(earlier.unfinished(week()).table("documents", "x")).unwrap();
        let last = Store::at(folder.path());
        last.take_work().unwrap();
        assert_eq!(last.work_folders().unwrap(), [folder.path().join("_work")]);
        assert_eq!(last.begin(week(), &method, &key("a")).unwrap().journal, journal);
    }

    #[test]
    fn a_store_cannot_be_below_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "").unwrap();
        assert!(Store::at(&path.join("store")).check_writable().unwrap_err().to_string().contains("is a file"));
        Store::at(&folder.path().join("not/yet")).check_writable().unwrap();
    }
}
