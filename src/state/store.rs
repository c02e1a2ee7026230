//! A store: its folders, its lock, and the commit of a week.

use std::collections::{BTreeMap, HashSet};
use std::fs::{File, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use super::durable::{replace, sync_folder};
use super::earlier::Earlier;
use super::journal::{InputKey, Journal, Segment};
use super::manifest::{Manifest, Removed, WholeWeek};
use super::postings::Runs;
use super::urls::RunRow;
use crate::config::Method;
use crate::records::{Week, age};
use crate::tables::{Table, UrlRow};

/// A week that was begun, or gone on with.
#[derive(Clone, Debug, PartialEq)]
pub struct Begun {
    /// What is done already.
    pub journal: Journal,
    /// Whole waves of an unfinished week that was made from something else: they are gone.
    pub dropped: usize,
}

/// How long processes of a run whose supervisor was killed may take to notice and end.
const ORPHANS_END: Duration = Duration::from_secs(10);

/// A store, as its paths. Cheap to clone; every process of a run has one.
#[derive(Clone, Debug)]
pub struct Store {
    root: PathBuf,
    /// Where what is unfinished lies.
    work: PathBuf,
}

/// A week that is being made: the folder that will be the week's, and one for what is not kept with it.
#[derive(Clone, Debug)]
pub struct Unfinished {
    folder: PathBuf,
    scratch: PathBuf,
    /// Where the week that it replaces is put.
    replaced: PathBuf,
}

impl Store {
    /// The store at `root`, which need not exist yet.
    pub fn at(root: &Path) -> Store {
        Store { root: root.to_owned(), work: root.join(WORK) }
    }

    /// The same store, whose unfinished work lies in a folder of this name.
    pub fn working_in(&self, name: &str) -> Store {
        Store { root: self.root.clone(), work: self.root.join(name) }
    }

    /// Moves what is unfinished, wherever it lies, to this store's folder of work. A process of an earlier run or
    /// generation that nobody could end knows another name, and whatever it still begins to write, or to commit, fails:
    /// the folder is not there. The caller holds the lock.
    ///
    /// # Errors
    /// Names the folder that cannot be moved or removed.
    pub fn take_work(&self) -> Result<()> {
        let mut works = self.works()?;
        // What such a process left after it was moved away has no journal, and nothing of a commit.
        let begun = |work: &PathBuf| {
            let entries = std::fs::read_dir(work).into_iter().flatten().flatten();
            entries.map(|entry| entry.path()).any(|path| {
                let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
                path.join(JOURNAL).exists() || name.starts_with(REPLACED) || name.ends_with(BEFORE)
            })
        };
        works.sort_by_key(|work| (!begun(work), *work != self.work));
        for (at, work) in works.iter().enumerate() {
            if at > 0 {
                std::fs::remove_dir_all(work).with_context(|| format!("cannot remove {}", work.display()))?;
            }
        }
        match works.first() {
            Some(work) if *work != self.work => rename(work, &self.work).and_then(|()| sync_folder(&self.root)),
            _ => Ok(()),
        }
    }

    /// All folders of unfinished work; a store at rest has at most one.
    pub(super) fn works(&self) -> Result<Vec<PathBuf>> {
        let failed = || format!("cannot list the store {}", self.root.display());
        let mut works = Vec::new();
        for entry in std::fs::read_dir(&self.root).with_context(failed)? {
            let entry = entry.with_context(failed)?;
            let name = entry.file_name();
            if name
                .to_str()
                .and_then(|name| name.strip_prefix(WORK))
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
            {
                works.push(entry.path());
            }
        }
        Ok(works)
    }

    /// The name of its folder of work.
    pub fn work_name(&self) -> String {
        self.work.file_name().map_or_else(|| WORK.to_owned(), |name| name.to_string_lossy().into_owned())
    }

    /// Its folder of work.
    pub(super) fn work(&self) -> &Path {
        &self.work
    }

    /// Its folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    pub(super) fn manifest_path(&self) -> PathBuf {
        self.root.join("manifest.json")
    }

    /// What it holds; `None` where nothing was committed yet.
    ///
    /// # Errors
    /// As [`Manifest::read`].
    pub fn manifest(&self) -> Result<Option<Manifest>> {
        Manifest::read(&self.manifest_path())
    }

    /// The folder of a committed week.
    pub fn week(&self, week: Week) -> PathBuf {
        self.root.join(week.folder())
    }

    /// The `urls` files of some weeks, by shard, in the order of ids.
    ///
    /// # Errors
    /// Names the week that is not there, or whose list of segments is damaged.
    pub fn url_files(&self, weeks: &Earlier) -> Result<BTreeMap<u32, Vec<PathBuf>>> {
        self.files_of_urls(weeks, UrlRow::NAME)
    }

    /// Files with the URLs of some weeks, by shard, each in the order of hashes: for [`UrlIndex`](super::UrlIndex).
    ///
    /// # Errors
    /// As [`Store::url_files`].
    pub fn url_indexes(&self, weeks: &Earlier) -> Result<BTreeMap<u32, Vec<PathBuf>>> {
        self.files_of_urls(weeks, RunRow::NAME)
    }

    /// As [`Store::url_files`], where `table` is that of the URLs of removed weeks.
    fn files_of_urls(&self, weeks: &Earlier, table: &str) -> Result<BTreeMap<u32, Vec<PathBuf>>> {
        let mut files: BTreeMap<u32, Vec<PathBuf>> = BTreeMap::new();
        if let Some(removed) = &weeks.removed {
            let given = (0..).zip(&removed.urls).filter(|(_, urls)| **urls > 0);
            files.extend(given.map(|(shard, _)| (shard, vec![self.urls_of_removed(removed, table, shard)])));
        }
        for week in &weeks.weeks {
            for segment in self.whole(week.week)?.journal.segments.iter().filter(|segment| segment.urls > 0) {
                let path = self.week(week.week).join(UrlRow::NAME).join(segment.file());
                files.entry(segment.shard).or_default().push(path);
            }
        }
        Ok(files)
    }

    /// The file of a shard's URLs of removed weeks, in the order of ids (`urls`) or of hashes (`url-runs`).
    pub(super) fn urls_of_removed(&self, removed: &Removed, table: &str, shard: u32) -> PathBuf {
        self.removed_folder(removed).join(table).join(format!("shard{shard:05}.parquet"))
    }

    /// Where the URLs of removed weeks are.
    pub(super) fn removed_folder(&self, removed: &Removed) -> PathBuf {
        self.root.join(UrlRow::NAME).join(format!("before={}", removed.before))
    }

    /// What the tables of a committed week do not hold.
    ///
    /// # Errors
    /// Where it is missing or damaged.
    pub fn whole(&self, week: Week) -> Result<WholeWeek> {
        let path = self.week(week).join("week.json");
        WholeWeek::read(&path)?.with_context(|| format!("{} is missing: the store is damaged", path.display()))
    }

    /// A week that is being made.
    pub fn unfinished(&self, week: Week) -> Unfinished {
        let work = &self.work;
        Unfinished {
            folder: work.join(week.folder()),
            scratch: work.join(format!("{SCRATCH}{week}")),
            replaced: work.join(format!("{REPLACED}{week}")),
        }
    }

    /// Checks that the store's folder can be made and written to.
    ///
    /// # Errors
    /// Names the folder, and says what to do.
    pub fn check_writable(&self) -> Result<()> {
        let failed = || {
            format!(
                "cannot write to the store {}: take another --store, or change its permissions",
                self.root.display()
            )
        };
        // Before the folder exists its nearest existing parent tells; nothing is made by a check.
        let existing = self.root.ancestors().find(|path| path.exists() || path.as_os_str().is_empty());
        let existing = existing.filter(|path| !path.as_os_str().is_empty()).unwrap_or(Path::new("."));
        if !existing.is_dir() {
            bail!("the store {} cannot be a folder: {} is a file", self.root.display(), existing.display());
        }
        rustix::fs::access(existing, rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK).with_context(failed)
    }

    /// Takes the store for writing. It is free again when the file returned is dropped and every process that was
    /// started meanwhile has ended: they inherit the lock, so that what outlives a killed run cannot meet the next one.
    ///
    /// # Errors
    /// Where another run has it: says which, as it wrote itself.
    pub fn lock(&self) -> Result<File> {
        std::fs::create_dir_all(&self.root)
            .with_context(|| format!("cannot make the store {}: take another --store", self.root.display()))?;
        let path = self.root.join("lock");
        let failed = || format!("cannot lock {}", path.display());
        let mut file =
            File::options().read(true).write(true).create(true).truncate(false).open(&path).with_context(failed)?;
        let begun = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::Error(error)) => return Err(error).with_context(failed),
                Err(TryLockError::WouldBlock) => {
                    let owner = std::fs::read_to_string(&path).unwrap_or_default();
                    if is_running(&owner) || begun.elapsed() > ORPHANS_END {
                        // The owner wrote itself into the file when it took it.
                        let taken = file.metadata().and_then(|metadata| metadata.modified());
                        let held = taken.ok().and_then(|taken| taken.elapsed().ok()).unwrap_or_default();
                        bail!(
                            "another run writes to the store {} ({}, for {}): wait for it, or take another --store",
                            self.root.display(),
                            owner.trim(),
                            age(held.as_secs() as i64)
                        );
                    }
                    std::thread::sleep(Duration::from_millis(10));
                }
            }
        }
        rustix::io::fcntl_setfd(&file, rustix::io::FdFlags::empty()).with_context(failed)?;
        let host = rustix::system::uname();
        let owner = format!(
            "process {} on {} since {}\n",
            std::process::id(),
            host.nodename().to_string_lossy(),
            jiff::Timestamp::now().strftime("%F %T UTC")
        );
        file.set_len(0).and_then(|()| file.write_all(owner.as_bytes())).with_context(failed)?;
        Ok(file)
    }

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
    pub fn commit(&self, whole: &WholeWeek, job: &str, summary: &[u8], postings: Option<&Runs>) -> Result<()> {
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

/// The folder of unfinished work, or what its name begins with.
const WORK: &str = "_work";
/// What stands after the name of results that are put aside.
pub(super) const BEFORE: &str = "-before";
/// What stands before the name of a week that is put aside.
const REPLACED: &str = "replaced-";
/// What stands before the name of a week's folder of what is not kept.
pub(super) const SCRATCH: &str = "scratch-";
/// The name of a journal.
const JOURNAL: &str = "journal.json";

pub(super) fn week_of(name: &std::ffi::OsStr, prefix: &str) -> Option<Week> {
    name.to_str()?.strip_prefix(prefix)?.parse().ok()
}

fn rename(from: &Path, to: &Path) -> Result<()> {
    std::fs::rename(from, to).with_context(|| format!("cannot move {} to {}", from.display(), to.display()))
}

/// Whether the process that wrote itself into a lock still runs; taken as true where the system does not tell.
fn is_running(owner: &str) -> bool {
    let id =
        owner.strip_prefix("process ").and_then(|rest| rest.split(' ').next()).and_then(|id| id.parse::<u32>().ok());
    match id {
        Some(id) if Path::new("/proc/self").exists() => Path::new(&format!("/proc/{id}")).exists(),
        _ => true,
    }
}

impl Unfinished {
    /// Its folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Its journal.
    pub fn journal(&self) -> PathBuf {
        self.scratch.join(JOURNAL)
    }

    /// Replaces its journal, which was there since the week was begun.
    ///
    /// # Errors
    /// Names the file that cannot be written, or that is gone: a process that wakes when another generation has taken the
    /// work may have made its folders again, but not this.
    pub fn write_journal(&self, journal: &Journal) -> Result<()> {
        ensure!(self.journal().exists(), self.taken());
        journal.write(&self.journal())
    }

    /// Says that the work is not this run's any more.
    fn taken(&self) -> String {
        let journal = self.journal();
        format!("{} is not this run's any more: another one has taken over what is unfinished", journal.display())
    }

    /// A file of one of its tables.
    pub fn table(&self, table: &str, file: &str) -> PathBuf {
        self.folder.join(table).join(file)
    }

    /// A file of a table that is not kept with the week.
    pub fn scratch_table(&self, table: &str, file: &str) -> PathBuf {
        self.scratch.join(table).join(file)
    }

    /// The folder of the run of postings that the week adds.
    pub fn postings(&self) -> PathBuf {
        self.scratch.join("postings")
    }

    /// Where runs that do not fit in memory are put.
    pub fn spill(&self) -> PathBuf {
        self.scratch.join("spill")
    }

    /// Removes what is not kept, once the week is committed.
    fn clear(&self) -> Result<()> {
        for folder in [&self.scratch, &self.replaced] {
            if folder.exists() {
                std::fs::remove_dir_all(folder).with_context(|| format!("cannot remove {}", folder.display()))?;
            }
        }
        if let Some(work) = self.scratch.parent() {
            // Empty unless another week is unfinished; then it stays.
            let _ = std::fs::remove_dir(work);
        }
        Ok(())
    }

    /// Removes what waves made that are not whole, all tables that are made after the waves, and temporary files.
    fn drop_what_is_not_in(&self, journal: &Journal) -> Result<()> {
        let listed: HashSet<(usize, u32)> =
            journal.segments.iter().map(|segment| (segment.wave, segment.shard)).collect();
        let of_waves = |name: &str| match (Segment::wave_of(name), Segment::shard_of(name)) {
            (Some(wave), Some(shard)) => listed.contains(&(wave, shard)),
            (Some(wave), None) => wave < journal.waves,
            _ => false,
        };
        let folders = [&self.folder, &self.scratch];
        for entry in folders.into_iter().flat_map(|folder| walkdir::WalkDir::new(folder).min_depth(2)) {
            let entry = entry.with_context(|| format!("cannot list {}", self.folder.display()))?;
            let whole = of_waves(&entry.file_name().to_string_lossy());
            if entry.file_type().is_file() && !whole {
                std::fs::remove_file(entry.path())
                    .with_context(|| format!("cannot remove {}", entry.path().display()))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::CommittedWeek;

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
