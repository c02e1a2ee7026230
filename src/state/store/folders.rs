//! A store: its folders, its lock, and the commit of a week.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::records::Week;
use crate::state::durable::sync_folder;
use crate::state::indexes::RunRow;
use crate::state::weeks::{Earlier, Manifest, RemovedWeeks, Unfinished, WholeWeek};
use crate::tables::{Table, UrlRow};

/// How long processes of a run whose supervisor was killed may take to notice and end.
pub(crate) const ORPHANS_END: Duration = Duration::from_secs(10);

/// A store, as its paths. Cheap to clone; every process of a run has one.
#[derive(Clone, Debug)]
pub struct Store {
    pub(crate) root: PathBuf,
    /// Where what is unfinished lies.
    pub(crate) work: PathBuf,
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
    pub(crate) fn works(&self) -> Result<Vec<PathBuf>> {
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
    pub(crate) fn work(&self) -> &Path {
        &self.work
    }

    /// Its folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn manifest_path(&self) -> PathBuf {
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

    /// Files with the URLs of some weeks, by shard, each in the order of hashes: for [`UrlIndex`](crate::state::indexes::UrlIndex).
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
    pub(crate) fn urls_of_removed(&self, removed: &RemovedWeeks, table: &str, shard: u32) -> PathBuf {
        self.removed_folder(removed).join(table).join(format!("shard{shard:05}.parquet"))
    }

    /// Where the URLs of removed weeks are.
    pub(crate) fn removed_folder(&self, removed: &RemovedWeeks) -> PathBuf {
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
}

/// The folder of unfinished work, or what its name begins with.
const WORK: &str = "_work";
/// What stands after the name of results that are put aside.
pub(crate) const BEFORE: &str = "-before";
/// What stands before the name of a week that is put aside.
pub(crate) const REPLACED: &str = "replaced-";
/// What stands before the name of a week's folder of what is not kept.
pub(crate) const SCRATCH: &str = "scratch-";
/// The name of a journal.
pub(crate) const JOURNAL: &str = "journal.json";

pub(crate) fn rename(from: &Path, to: &Path) -> Result<()> {
    std::fs::rename(from, to).with_context(|| format!("cannot move {} to {}", from.display(), to.display()))
}
