//! The life of a week in a store: how it begins, how it is committed, and how the next run recovers
//! a store after a kill.
//!
//! A week grows in `_nigh/work/week=DATE`, wave by wave, and `_nigh/work/scratch-DATE/journal.json`
//! lists the complete waves. Then its files are packed into the folder of the commit.
//! [`Store::commit`] makes the week part of the store:
//!
//! 1. Compare the journal on the disk with the week's own. If they differ, another run has taken
//!    over the work, and the commit fails.
//! 2. Stage `job.toml`, `summary.json` and `week.json`, and the `urls` of all weeks without deleted
//!    URLs (`forget.rs`).
//! 3. Publish all of it with a new manifest (`publication.rs`). **The week is committed.**
//! 4. Move the week's run of postings to `_nigh/postings`, replace `postings.json`, and remove the
//!    runs that it does not list.
//! 5. Remove the folders of the unfinished week.
//!
//! [`Store::recover`], which every run calls first, completes or undoes an interrupted commit.
//! After a kill before step 3 the week is unfinished, and the run resumes from its journal. Within
//! step 3, the publication is completed. After it, the postings may be lost (a run without postings
//! scans the vectors), and recovery removes the folders of the unfinished week.
//!
//! Only the run that holds the lock calls these functions. A process that outlived its run does not
//! know the present name of the work folder (see [`Store::take_work`]), so its renames fail.

use std::fs::File;
use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};

use super::folders::{JOURNAL, SCRATCH, Store, WEEK};
use crate::config::Method;
use crate::records::Week;
use crate::state::durable::replace;
use crate::state::indexes::PostingRuns;
use crate::state::weeks::{InputKey, Manifest, WeekJournal, WholeWeek};

/// A week that was begun or resumed.
#[derive(Clone, Debug, PartialEq)]
pub struct Begun {
    /// The complete waves; empty if the week starts from nothing.
    pub journal: WeekJournal,
    /// Complete waves that were removed, because they were made from another input, method or way
    /// of reading.
    pub dropped: usize,
}

impl Store {
    /// Begins a week, or resumes it if its journal has the same key. The caller holds the lock.
    ///
    /// Segments of incomplete waves are removed. An unfinished week with another key is removed
    /// entirely, since its rows are not those of this job.
    ///
    /// # Errors
    /// If the store was made with another method, or cannot be written.
    pub fn begin(&self, week: Week, method: &Method, key: &InputKey) -> Result<Begun> {
        if let Some(manifest) = self.manifest()? {
            manifest.check(&self.root, &manifest.with_links_of_store(method))?;
        }
        let unfinished = self.unfinished(week);
        let dropped = match WeekJournal::read(&unfinished.journal())? {
            Some(journal) if journal.key == *key && unfinished.has(&journal)? => {
                unfinished.drop_unlisted(&journal)?;
                return Ok(Begun { journal, dropped: 0 });
            }
            other => other.map_or(0, |journal| journal.waves),
        };
        // The journal is removed first: without it the other files count for nothing, wherever this
        // is interrupted.
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
        let journal = WeekJournal::new(key.clone());
        journal.write(&unfinished.journal())?;
        Ok(Begun { journal, dropped })
    }

    /// Commits a week whose files are all staged, by the steps at the head of this file. The caller
    /// holds the lock. After a kill at any step, [`Store::recover`] of the next run completes or
    /// undoes the commit.
    ///
    /// # Errors
    /// If another run has taken over the work, or a file cannot be written. The week is then
    /// unfinished or committed, never in part.
    pub fn commit(&self, whole: &WholeWeek, job: &str, summary: &[u8], postings: Option<&PostingRuns>) -> Result<()> {
        let committed = &whole.committed;
        let week = committed.week;
        let unfinished = self.unfinished(week);
        ensure!(WeekJournal::read(&unfinished.journal())?.as_ref() == Some(&whole.journal), unfinished.taken_over());
        let mut manifest = self.manifest()?.unwrap_or_else(|| Manifest::new(&whole.method)).next()?;
        ensure!(manifest.commits == committed.commit, unfinished.taken_over());
        manifest.set_method(&whole.method);
        let records = self.staged_records(week, committed.commit);
        std::fs::create_dir_all(&records).with_context(|| format!("cannot make {}", records.display()))?;
        replace(&records.join("job.toml"), job.as_bytes())?;
        replace(&records.join("summary.json"), summary)?;
        whole.write(&records.join(WEEK))?;
        self.stage_forgotten(&mut manifest, &unfinished)?;
        manifest.put(committed.clone());
        self.publish(&manifest)?;
        self.drop_later(week)?;
        self.keep_postings(committed, &unfinished, postings)?;
        unfinished.clear()
    }

    /// Replaces the `week.json` of a committed week by one that lists other files for some tables.
    /// Those that the store lacks are staged. The week keeps its identity, so what was made from it
    /// still holds. Its job gets the line `note`, unless it has that. The caller holds the lock.
    ///
    /// # Errors
    /// If another run has committed meanwhile, or a file cannot be written. The store is then as it
    /// was, or the next run completes the commit.
    pub fn amend(&self, whole: &WholeWeek, note: &str) -> Result<()> {
        let committed = &whole.committed;
        let before = self.records(&self.committed(committed.week)?);
        let mut manifest = self.manifest()?.unwrap_or_else(|| Manifest::new(&whole.method)).next()?;
        ensure!(manifest.commits == committed.commit, "another run has committed to {} meanwhile", self.root.display());
        let records = self.staged_records(committed.week, committed.commit);
        std::fs::create_dir_all(&records).with_context(|| format!("cannot make {}", records.display()))?;
        for name in ["job.toml", "summary.json"] {
            let mut text = std::fs::read_to_string(before.join(name))
                .with_context(|| format!("cannot read {}", before.join(name).display()))?;
            if name == "job.toml" && !text.lines().any(|line| line == note) {
                text += &format!("{note}\n");
            }
            replace(&records.join(name), text.as_bytes())?;
        }
        whole.write(&records.join(WEEK))?;
        manifest.put(committed.clone());
        self.publish(&manifest)?;
        self.unfinished(committed.week).clear()
    }

    /// Removes unfinished weeks after `week`: they build on the version of it that was replaced.
    fn drop_later(&self, week: Week) -> Result<()> {
        for prefix in [SCRATCH, "week="] {
            for (unfinished, folder) in self.unfinished_weeks(prefix)? {
                if unfinished > week {
                    std::fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))?;
                }
            }
        }
        Ok(())
    }

    /// Whether a week is committed and no new version of it is unfinished.
    pub fn is_committed(&self, week: Week) -> bool {
        let is_listed = self.manifest().is_ok_and(|manifest| manifest.is_some_and(|manifest| manifest.has(week)));
        // All work folders are searched: a later generation of processes uses another one.
        let is_begun = |work: &PathBuf| work.join(format!("{SCRATCH}{week}")).join(JOURNAL).exists();
        is_listed && !self.work_folders().is_ok_and(|folders| folders.iter().any(is_begun))
    }

    /// Completes what a killed run began: the commit of a week or of results
    /// ([`Results`](crate::state::Results)), or a removal of weeks ([`Store::vacuum`]); and removes
    /// files that no commit lists. The caller holds the lock.
    ///
    /// # Errors
    /// If the store cannot be read or written, its manifest is missing although it has weeks, or
    /// the list of digests is damaged.
    pub fn recover(&self) -> Result<()> {
        self.recover_publication()?;
        let Some(manifest) = self.manifest_of_any_format()? else {
            if self.has_records()? {
                bail!(
                    "{} is missing, and only it records the weeks of this store and the ids that they gave: restore it",
                    self.manifest_path().display()
                );
            }
            return Ok(());
        };
        if manifest.check_format(self.root()).is_err() {
            // Only `nigh upgrade` goes on with such a store.
            return Ok(());
        }
        self.check_digests(&manifest)?;
        // A kill may have come right after the manifest was replaced.
        self.write_views()?;
        self.write_catalog()?;
        self.sweep()?;
        self.drop_other_postings(manifest.weeks.last())?;
        // A kill came between a commit and the removal of the unfinished week, or of a part of it.
        for (week, _) in [self.unfinished_weeks(SCRATCH)?, self.unfinished_weeks("week=")?].concat() {
            let unfinished = self.unfinished(week);
            let key = WeekJournal::read(&unfinished.journal())?.map(|journal| journal.key.hash);
            let committed = manifest.weeks.iter().find(|other| other.week == week);
            // Without a journal the other files count for nothing.
            if committed.is_some_and(|committed| key.is_none_or(|key| key == committed.key)) {
                unfinished.clear()?;
            }
        }
        // Fails if a week is unfinished: then the work folder stays.
        let _ = std::fs::remove_dir(self.work());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::state::store::folders::{part_file, rename};
    use crate::state::weeks::{BundleName, CommittedWeek, Segment, TablePart};

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
        // Dropping it would not be enough: processes that other tests start at the same time
        // inherit the lock.
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
        let segment =
            |wave| Segment { wave, shard: 3, documents: 1, urls: 1, features: 1, links: 0, chunks: 0, origin: None };
        let file = |wave| unfinished.table("documents", &BundleName::Wave(wave, 0).file());
        for wave in 0..2 {
            std::fs::create_dir_all(file(wave).parent().unwrap()).unwrap();
            std::fs::write(file(wave), "rows").unwrap();
            let list = format!(r#"[{{"name": "{}", "rows": 1, "bytes": 9}}]"#, segment(wave).file());
            std::fs::write(file(wave).with_extension("ranges"), list).unwrap();
        }
        // A file of a complete wave that the journal does not list does not belong to the week.
        let stray = unfinished.table("documents", &Segment { shard: 4, ..segment(0) }.file());
        std::fs::write(&stray, "rows").unwrap();
        journal.waves = 1;
        journal.segments = vec![segment(0)];
        journal.write(&unfinished.journal()).unwrap();
        assert_eq!(store.begin(week(), &method, &key("a")).unwrap(), Begun { journal: journal.clone(), dropped: 0 });
        assert!(file(0).exists() && !file(1).exists() && !stray.exists());
        // Files of an older version, or that were removed: then the waves are read again.
        std::fs::remove_file(file(0).with_extension("ranges")).unwrap();
        assert_eq!(store.begin(week(), &method, &key("a")).unwrap().dropped, 1);
        assert!(!file(0).exists());
        journal.write(&unfinished.journal()).unwrap();
        let begun = store.begin(week(), &method, &key("b")).unwrap();
        assert_eq!((begun.journal.waves, begun.dropped), (0, 1));
    }

    /// A version of the week with this number of documents, made by this commit; and a file of its
    /// table.
    fn whole(documents: u64, commit: u64) -> WholeWeek {
        let part = TablePart { file: part_file(commit, 0), bytes: 0, digest: None, pieces: vec![] };
        WholeWeek {
            committed: CommittedWeek {
                week: week(),
                commit,
                made: None,
                stands_on: String::new(),
                key: format!("{documents}"),
                documents,
                urls: vec![7],
                named: vec![1],
            },
            method: Method::default(),
            journal: WeekJournal::new(key(&documents.to_string())),
            files: [("documents".to_owned(), vec![part])].into(),
            kept: Default::default(),
            folders: Default::default(),
            readings: Default::default(),
        }
    }

    /// Begins a version of the week, as far as its commit.
    fn stage(store: &Store, whole: &WholeWeek) {
        store.begin(week(), &whole.method, &whole.journal.key).unwrap();
        let path = store.staged_part(Path::new("documents/week=2024-01-08"), whole.committed.commit, 0);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, whole.committed.documents.to_string()).unwrap();
    }

    fn make(store: &Store, whole: &WholeWeek) {
        stage(store, whole);
        store.commit(whole, "[cluster]", b"{}", None).unwrap();
    }

    /// The text of the only file of the table, and the committed week, which must list that file.
    fn committed(store: &Store) -> (String, WholeWeek) {
        let whole = store.whole(&store.committed(week()).unwrap()).unwrap();
        let folder = store.table("documents", week());
        let files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(files, [whole.files["documents"][0].file.as_str()]);
        (std::fs::read_to_string(folder.join(&files[0])).unwrap(), whole)
    }

    #[test]
    fn a_kill_at_any_step_of_a_commit_leaves_the_old_version_or_the_new() {
        // How far the commit of the second version got: nothing staged; files staged; the manifest
        // too; one file moved; all moved.
        for done in 0..5 {
            let folder = tempfile::tempdir().unwrap();
            let store = Store::at(folder.path());
            make(&store, &whole(7, 1));
            let second = whole(8, 2);
            let journal = store.begin(week(), &second.method, &second.journal.key).unwrap().journal;
            journal.write(&store.unfinished(week()).journal()).unwrap();
            if done > 0 {
                stage(&store, &second);
            }
            let records = store.staged_records(week(), 2);
            if done > 1 {
                let mut manifest = store.manifest().unwrap().unwrap().next().unwrap();
                manifest.put(second.committed.clone());
                std::fs::create_dir_all(&records).unwrap();
                second.write(&records.join(WEEK)).unwrap();
                manifest.write(&store.staged().join("manifest.json")).unwrap();
            }
            if done > 2 {
                let file = Path::new("documents/week=2024-01-08").join(part_file(2, 0));
                rename(&store.staged().join(&file), &store.root().join(&file)).unwrap();
                // Readers that go by the manifest still see the old version.
                assert_eq!(store.committed(week()).unwrap().documents, 7);
            }
            if done > 3 {
                std::fs::create_dir_all(store.records(&second.committed)).unwrap();
                rename(&records.join(WEEK), &store.records(&second.committed).join(WEEK)).unwrap();
            }
            store.recover().unwrap();
            let (old, new) = (("7".to_owned(), whole(7, 1)), ("8".to_owned(), second));
            assert_eq!(committed(&store), if done < 2 { old } else { new }, "after {done}");
            assert!(!store.staged().exists());
            let unfinished = store.unfinished(week());
            assert_eq!(unfinished.scratch.exists(), done < 2, "after {done}: an unfinished week can be resumed");
        }
    }

    #[test]
    fn a_staged_commit_of_another_state_of_the_store_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(folder.path());
        make(&store, &whole(7, 1));
        let mut manifest = store.manifest().unwrap().unwrap();
        manifest.before = "another state".into();
        manifest.write(&store.manifest_path()).unwrap();
        let mut later = whole(8, 2);
        stage(&store, &later);
        let mut staged = manifest.next().unwrap();
        staged.put(later.committed.clone());
        staged.write(&store.staged().join("manifest.json")).unwrap();
        // Another run commits: as a mirror that follows its bucket does.
        manifest.weeks[0].documents = 9;
        manifest.write(&store.manifest_path()).unwrap();
        store.recover().unwrap();
        assert_eq!(store.committed(week()).unwrap().documents, 9);
        // A run whose plan was made before the other one committed cannot commit either.
        later.committed.commit = 5;
        stage(&store, &later);
        let error = store.commit(&later, "[cluster]", b"{}", None).unwrap_err().to_string();
        assert!(error.contains("another run"), "{error}");
    }

    #[test]
    fn only_files_with_names_of_nigh_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(folder.path());
        make(&store, &whole(7, 1));
        let mine = [
            "documents/week=2024-01-08/mine.parquet",
            "documents/notes/nigh-00001-00000.parquet",
            "_work-notes/a",
            "urls/mine/seeds.txt",
            "week=2024-01-08/old.parquet",
            "notes/nigh-00001-00000.parquet",
        ];
        let of_a_kill = "documents/week=2024-01-08/nigh-00009-00000.parquet";
        for path in mine.iter().chain([&of_a_kill]) {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "text").unwrap();
        }
        store.take_work().unwrap();
        store.recover().unwrap();
        for path in mine {
            assert!(folder.path().join(path).exists(), "{path}");
        }
        assert!(!folder.path().join(of_a_kill).exists());
    }

    #[test]
    fn a_store_without_its_manifest_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(folder.path());
        make(&store, &whole(7, 1));
        std::fs::remove_file(store.manifest_path()).unwrap();
        let error = store.recover().unwrap_err().to_string();
        assert!(error.contains("_nigh/manifest.json is missing") && error.contains("restore it"), "{error}");
    }

    #[test]
    fn a_store_of_an_older_format_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("manifest.json"), "{\"format\": 4}").unwrap();
        let error = Store::at(folder.path()).manifest().unwrap_err().to_string();
        assert!(error.contains("format 4") && error.contains("another --store"), "{error}");
    }

    #[test]
    fn a_process_of_an_earlier_generation_can_neither_write_its_journal_nor_commit() {
        let folder = tempfile::tempdir().unwrap();
        let method = Method::default();
        let earlier = Store::at(folder.path()).working_in("work-1");
        let mut journal = earlier.begin(week(), &method, &key("a")).unwrap().journal;
        journal.waves = 1;
        journal.write(&earlier.unfinished(week()).journal()).unwrap();
        let store = Store::at(folder.path()).working_in("work-2");
        store.take_work().unwrap();
        assert_eq!(store.begin(week(), &method, &key("a")).unwrap().journal, journal);
        // The process of the earlier generation wakes, and tries to write its journal and to
        // commit.
        let straggler = WeekJournal::new(key("a"));
        assert!(earlier.unfinished(week()).write_journal(&straggler).is_err());
        std::fs::create_dir_all(earlier.unfinished(week()).spill()).unwrap();
        assert!(earlier.unfinished(week()).write_journal(&straggler).is_err());
        let whole = WholeWeek { journal: straggler, ..whole(7, 1) };
        assert!(earlier.commit(&whole, "[cluster]", b"{}", None).is_err());
        assert!(store.manifest().unwrap().is_none());
        // Folders that it makes without a journal are not taken over.
        std::fs::create_dir_all(earlier.unfinished(week()).table("documents", "x")).unwrap();
        let last = Store::at(folder.path());
        last.take_work().unwrap();
        assert_eq!(last.work_folders().unwrap(), [folder.path().join("_nigh/work")]);
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
