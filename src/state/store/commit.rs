//! A week of a store, from its beginning to its commit, and what recovers a store after a kill.

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

/// A week that was begun, or gone on with.
#[derive(Clone, Debug, PartialEq)]
pub struct Begun {
    /// What is done already.
    pub journal: Journal,
    /// Whole waves of an unfinished week that was made from something else: they are gone.
    pub dropped: usize,
}

impl Store {
    /// Begins a week, or goes on with it. The caller holds the lock.
    ///
    /// Segments of waves that were not whole are removed; so is an unfinished week that was begun from
    /// something else, for its rows would not be those of this job.
    ///
    /// # Errors
    /// Where the store has another method, or cannot be written.
    pub fn begin(&self, week: Week, method: &Method, key: &InputKey) -> Result<Begun> {
        if let Some(manifest) = self.manifest()? {
            manifest.check(&self.root, method)?;
        }
        let unfinished = self.unfinished(week);
        let found = Journal::read(&unfinished.journal())?;
        let dropped = match found {
            Some(journal) if journal.key == *key => {
                unfinished.drop_what_is_not_in(&journal)?;
                return Ok(Begun { journal, dropped: 0 });
            }
            other => other.map_or(0, |journal| journal.waves),
        };
        // The journal goes first: without it the rest is nothing, whenever this is interrupted.
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

    /// Commits a week, whose tables are all in its unfinished folder: one rename makes it visible, then the
    /// manifest lists it, its postings are kept, and what was deleted from it is forgotten. Where the week is there already, that
    /// one is put aside first, and then removed. A kill in between is mended by [`Store::recover`] of the next run.
    ///
    /// # Errors
    /// Names what cannot be written; the week is then whole, unfinished or committed.
    pub fn commit(&self, whole: &WholeWeek, job: &str, summary: &[u8], postings: Option<&PostingRuns>) -> Result<()> {
        let week = whole.committed.week;
        let unfinished = self.unfinished(week);
        ensure!(Journal::read(&unfinished.journal())?.as_ref() == Some(&whole.journal), unfinished.taken());
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

    /// Drops what is done of later weeks that are not whole: it stands on the week that is replaced.
    fn drop_later(&self, week: Week) -> Result<()> {
        let failed = || format!("cannot list {}", self.work.display());
        for entry in std::fs::read_dir(&self.work).with_context(failed)? {
            let entry = entry.with_context(failed)?;
            let of = ["week=", SCRATCH].iter().find_map(|prefix| week_of(&entry.file_name(), prefix));
            if of.is_some_and(|of| of > week) {
                let path = entry.path();
                std::fs::remove_dir_all(&path).with_context(|| format!("cannot remove {}", path.display()))?;
            }
        }
        Ok(())
    }

    /// Puts a whole week into the manifest.
    fn list(&self, whole: &WholeWeek) -> Result<()> {
        let mut manifest = self.manifest()?.unwrap_or_else(|| Manifest::new(&whole.method));
        manifest.weeks.retain(|week| week.week != whole.committed.week);
        manifest.weeks.push(whole.committed.clone());
        manifest.weeks.sort_by_key(|week| week.week);
        manifest.version = env!("CARGO_PKG_VERSION").into();
        manifest.write(&self.manifest_path())
    }

    /// Whether a week is committed, and is not being made anew.
    pub fn is_committed(&self, week: Week) -> bool {
        let listed = self.manifest().is_ok_and(|known| known.is_some_and(|known| known.has(week)));
        // Another generation may work elsewhere by now.
        let begun = |work: &PathBuf| work.join(format!("{SCRATCH}{week}")).join(JOURNAL).exists();
        listed && !self.works().is_ok_and(|works| works.iter().any(begun))
    }

    /// Ends what a killed run had begun to commit: a week that it was replacing takes its place, and weeks that have
    /// their names are listed; they are whole, or they would not have them; weeks that were removed go, and what was
    /// deleted is forgotten; results that were put aside are there again. The caller holds the lock.
    ///
    /// # Errors
    /// Where the store cannot be read or written.
    pub fn recover(&self) -> Result<()> {
        let failed = || format!("cannot list the store {}", self.root.display());
        if self.manifest()?.is_none() && self.root.join(UrlRow::NAME).exists() {
            bail!(
                "{} is missing, and weeks were removed from the store: restore it, for it says which ids they gave",
                self.manifest_path().display()
            );
        }
        if self.work.exists() {
            for entry in std::fs::read_dir(&self.work).with_context(failed)? {
                let entry = entry.with_context(failed)?;
                let name = entry.file_name();
                if let Some(results) = name.to_str().and_then(|name| name.strip_suffix(BEFORE)) {
                    self.put_back(results, &entry.path())?;
                }
                let Some(week) = week_of(&name, REPLACED) else { continue };
                let unfinished = self.unfinished(week);
                if !self.week(week).exists() {
                    // The old week was put aside only when the new one was whole.
                    let whole = unfinished.folder.join("week.json").exists();
                    rename(if whole { &unfinished.folder } else { &unfinished.replaced }, &self.week(week))?;
                    sync_folder(&self.root)?;
                }
                self.list(&self.whole(week)?)?;
                unfinished.clear()?;
            }
        }
        for entry in std::fs::read_dir(&self.root).with_context(failed)? {
            let name = entry.with_context(failed)?.file_name();
            let Some(week) = week_of(&name, "week=") else { continue };
            let manifest = self.manifest()?;
            let gone = manifest.as_ref().is_some_and(|manifest| manifest.has_removed(week));
            let listed = manifest.is_some_and(|manifest| manifest.has(week));
            if !gone
                && !listed
                && let Some(whole) = WholeWeek::read(&self.week(week).join("week.json"))?
            {
                self.list(&whole)?;
            }
            let unfinished = self.unfinished(week);
            if !unfinished.folder.exists() {
                unfinished.clear()?;
            }
            if !gone {
                self.forget(week)?;
            }
        }
        self.sweep()
    }

    /// Results that were put aside get their name again, where the new ones have not got it.
    fn put_back(&self, results: &str, before: &Path) -> Result<()> {
        let folder = self.root.join(results);
        match folder.exists() {
            true => std::fs::remove_dir_all(before).with_context(|| format!("cannot remove {}", before.display())),
            false => rename(before, &folder).and_then(|()| sync_folder(&self.root)),
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
        InputKey { hash: hash.into(), waves: 2, files: 2, bytes: 10 }
    }

    fn week() -> Week {
        "2024-01-08".parse().unwrap()
    }

    #[test]
    fn a_second_run_is_refused_while_the_first_writes() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(&folder.path().join("store"));
        let held = store.lock().unwrap();
        let error = store.lock().unwrap_err().to_string();
        assert!(error.contains("another run") && error.contains(&std::process::id().to_string()), "{error}");
        // Not only dropped: what other tests start beside this one inherits it.
        held.unlock().unwrap();
        store.lock().unwrap();
    }

    #[test]
    fn a_rerun_keeps_whole_waves_and_drops_the_rest() {
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
        // A file of a whole wave that the journal does not list is none of the week.
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
    fn a_kill_while_a_week_takes_the_place_of_another_leaves_one_of_them() {
        let method = Method::default();
        let whole = |documents| WholeWeek {
            committed: CommittedWeek { week: week(), key: "k".into(), documents, urls: vec![7], named: vec![1] },
            method: method.clone(),
            journal: Journal::new(key("k")),
        };
        // What is done before the kill: the new week whole, the old one put aside, the new one in its place.
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
            assert_eq!(unfinished.folder.exists(), done == 0, "what is being made is gone on with");
            assert!(!unfinished.replaced.exists());
        }
    }

    #[test]
    fn who_knows_a_former_folder_of_work_can_neither_write_there_nor_commit() {
        let folder = tempfile::tempdir().unwrap();
        let method = Method::default();
        let former = Store::at(folder.path()).working_in("_work-1");
        let mut journal = former.begin(week(), &method, &key("a")).unwrap().journal;
        journal.waves = 1;
        journal.write(&former.unfinished(week()).journal()).unwrap();
        let store = Store::at(folder.path()).working_in("_work-2");
        store.take_work().unwrap();
        assert_eq!(store.begin(week(), &method, &key("a")).unwrap().journal, journal);
        // The straggler wakes: its journal, and the week that it would commit.
        let straggler = Journal::new(key("a"));
        assert!(former.unfinished(week()).write_journal(&straggler).is_err());
        std::fs::create_dir_all(former.unfinished(week()).spill()).unwrap();
        assert!(former.unfinished(week()).write_journal(&straggler).is_err());
        let committed = CommittedWeek { week: week(), key: "a".into(), documents: 7, urls: vec![7], named: vec![1] };
        let whole = WholeWeek { committed, method: method.clone(), journal: straggler };
        assert!(former.commit(&whole, "[cluster]", b"{}", None).is_err());
        assert!(!store.week(week()).exists() && store.manifest().unwrap().is_none());
        // What it left is no work of anybody.
        std::fs::create_dir_all(former.unfinished(week()).table("documents", "x")).unwrap();
        let last = Store::at(folder.path());
        last.take_work().unwrap();
        assert_eq!(last.works().unwrap(), [folder.path().join("_work")]);
        assert_eq!(last.begin(week(), &method, &key("a")).unwrap().journal, journal);
    }

    #[test]
    fn a_file_is_no_store() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "").unwrap();
        assert!(Store::at(&path.join("store")).check_writable().unwrap_err().to_string().contains("is a file"));
        Store::at(&folder.path().join("not/yet")).check_writable().unwrap();
    }
}
