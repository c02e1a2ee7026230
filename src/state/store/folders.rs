//! The folders and files of a store, as paths; the drawing is in `state/mod.rs`.
//!
//! All names are fixed, except that of the work folder: each generation of processes in a pool of machines has one of its own.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::records::Week;
use crate::state::durable::sync_folder;
use crate::state::indexes::UrlRunRow;
use crate::state::weeks::{Earlier, Manifest, RemovedWeeks, Unfinished, WholeWeek};
use crate::tables::{Table, UrlRow};

/// How long the processes of a run may take to end after their supervisor was killed.
pub(crate) const ORPHANS_END: Duration = Duration::from_secs(10);

/// The paths of a store. Cheap to clone; every process of a run has one. It opens nothing: the store need not exist.
#[derive(Clone, Debug)]
pub struct Store {
    pub(crate) root: PathBuf,
    /// The work folder: unfinished weeks and results.
    pub(crate) work: PathBuf,
}

impl Store {
    /// The store at `root`, with the work folder `_work`.
    pub fn at(root: &Path) -> Store {
        Store { root: root.to_owned(), work: root.join(WORK) }
    }

    /// The same store with another work folder, of this name.
    pub fn working_in(&self, name: &str) -> Store {
        Store { root: self.root.clone(), work: self.root.join(name) }
    }

    /// Makes this store's work folder the only one: renames the existing work folder, whatever its name, and removes others.
    ///
    /// A process of an earlier run or generation may still be alive, on a machine that cannot be reached. It knows only an older name
    /// of the work folder, so its next write or commit fails. The caller holds the lock.
    ///
    /// # Errors
    /// Names the folder that cannot be moved or removed.
    pub fn take_work(&self) -> Result<()> {
        let mut folders = self.work_folders()?;
        // A folder that such a process made after the rename has no journal and no part of a commit.
        let has_work = |folder: &PathBuf| {
            let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
            entries.map(|entry| entry.path()).any(|path| {
                let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
                path.join(JOURNAL).exists() || name.starts_with(REPLACED) || name.ends_with(BEFORE)
            })
        };
        folders.sort_by_key(|folder| (!has_work(folder), *folder != self.work));
        for folder in folders.iter().skip(1) {
            std::fs::remove_dir_all(folder).with_context(|| format!("cannot remove {}", folder.display()))?;
        }
        match folders.first() {
            Some(folder) if *folder != self.work => rename(folder, &self.work).and_then(|()| sync_folder(&self.root)),
            _ => Ok(()),
        }
    }

    /// All work folders; a store in which no run writes has at most one.
    pub(crate) fn work_folders(&self) -> Result<Vec<PathBuf>> {
        let failed = || format!("cannot list the store {}", self.root.display());
        let mut folders = Vec::new();
        for entry in std::fs::read_dir(&self.root).with_context(failed)? {
            let entry = entry.with_context(failed)?;
            let name = entry.file_name();
            if name
                .to_str()
                .and_then(|name| name.strip_prefix(WORK))
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
            {
                folders.push(entry.path());
            }
        }
        Ok(folders)
    }

    /// The name of the work folder.
    pub fn work_name(&self) -> String {
        self.work.file_name().map_or_else(|| WORK.to_owned(), |name| name.to_string_lossy().into_owned())
    }

    /// The work folder.
    pub(crate) fn work(&self) -> &Path {
        &self.work
    }

    /// The folder of the store.
    pub fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn manifest_path(&self) -> PathBuf {
        self.root.join("manifest.json")
    }

    /// Reads the manifest; `None` if no week was committed yet.
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

    /// The `urls` files of these weeks, by shard, in the order of document ids.
    ///
    /// # Errors
    /// If a `week.json` is missing or damaged; the message names it.
    pub fn url_files(&self, weeks: &Earlier) -> Result<BTreeMap<u32, Vec<PathBuf>>> {
        self.files_of_urls(weeks, UrlRow::NAME)
    }

    /// Files with the URLs of these weeks, by shard, each sorted by hash: the input of [`UrlIndex`](crate::state::UrlIndex).
    ///
    /// # Errors
    /// As [`Store::url_files`].
    pub fn url_indexes(&self, weeks: &Earlier) -> Result<BTreeMap<u32, Vec<PathBuf>>> {
        self.files_of_urls(weeks, UrlRunRow::NAME)
    }

    /// As [`Store::url_files`]; `table` is the table to take for removed weeks, `urls` or `url-runs`.
    fn files_of_urls(&self, weeks: &Earlier, table: &str) -> Result<BTreeMap<u32, Vec<PathBuf>>> {
        let mut files: BTreeMap<u32, Vec<PathBuf>> = BTreeMap::new();
        if let Some(removed) = &weeks.removed {
            let with_urls = (0..).zip(&removed.urls).filter(|(_, urls)| **urls > 0);
            files.extend(with_urls.map(|(shard, _)| (shard, vec![self.urls_of_removed(removed, table, shard)])));
        }
        for week in &weeks.weeks {
            for segment in self.whole(week.week)?.journal.segments.iter().filter(|segment| segment.urls > 0) {
                let path = self.week(week.week).join(UrlRow::NAME).join(segment.file());
                files.entry(segment.shard).or_default().push(path);
            }
        }
        Ok(files)
    }

    /// The file with a shard's URLs of the removed weeks, sorted by document id (`urls`) or by hash (`url-runs`).
    pub(crate) fn urls_of_removed(&self, removed: &RemovedWeeks, table: &str, shard: u32) -> PathBuf {
        self.removed_folder(removed).join(table).join(format!("shard{shard:05}.parquet"))
    }

    /// The folder with the URLs of the removed weeks.
    pub(crate) fn removed_folder(&self, removed: &RemovedWeeks) -> PathBuf {
        self.root.join(UrlRow::NAME).join(format!("before={}", removed.before))
    }

    /// Reads the `week.json` of a committed week.
    ///
    /// # Errors
    /// If it is missing or damaged.
    pub fn whole(&self, week: Week) -> Result<WholeWeek> {
        let path = self.week(week).join("week.json");
        WholeWeek::read(&path)?.with_context(|| format!("{} is missing: the store is damaged", path.display()))
    }

    /// The paths of an unfinished week.
    pub fn unfinished(&self, week: Week) -> Unfinished {
        let work = &self.work;
        Unfinished {
            folder: work.join(week.folder()),
            scratch: work.join(format!("{SCRATCH}{week}")),
            replaced: work.join(format!("{REPLACED}{week}")),
        }
    }

    /// Checks that the store's folder can be created and written to. Creates nothing.
    ///
    /// # Errors
    /// If it cannot; the message names the folder and says what to do.
    pub fn check_writable(&self) -> Result<()> {
        let failed = || {
            format!("cannot write to the store {}: use another --store, or change its permissions", self.root.display())
        };
        // If the folder does not exist, its nearest existing parent decides.
        let existing = self.root.ancestors().find(|path| path.exists() || path.as_os_str().is_empty());
        let existing = existing.filter(|path| !path.as_os_str().is_empty()).unwrap_or(Path::new("."));
        if !existing.is_dir() {
            bail!("the store {} cannot be a folder: {} is a file", self.root.display(), existing.display());
        }
        rustix::fs::access(existing, rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK).with_context(failed)
    }
}

/// The name of the work folder, or its beginning: a pool of machines adds `-` and a name of its own.
const WORK: &str = "_work";
/// The end of the name of the old results while the new ones are moved into place.
pub(crate) const BEFORE: &str = "-before";
/// The beginning of the name of a week's old version while the new one is moved into place.
pub(crate) const REPLACED: &str = "replaced-";
/// The beginning of the name of the folder for files of an unfinished week that are not kept with it.
pub(crate) const SCRATCH: &str = "scratch-";
/// The name of the journal in that folder.
pub(crate) const JOURNAL: &str = "journal.json";

pub(crate) fn rename(from: &Path, to: &Path) -> Result<()> {
    std::fs::rename(from, to).with_context(|| format!("cannot move {} to {}", from.display(), to.display()))
}
