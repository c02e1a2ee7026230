//! The folders and files of a store, as paths; the drawing is in `state/mod.rs`.
//!
//! Everything except tables and views lies in the folder `_nigh`: query engines pass over names
//! that begin with `_`. All names are fixed, except that of the work folder: each generation of
//! processes in a pool of machines has one of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::records::Week;
use crate::state::durable::sync_folder;
use crate::state::indexes::UrlRunRow;
use crate::state::weeks::{
    CommittedWeek, Earlier, Manifest, RemovedWeeks, Unfinished, WeekTables, WholeWeek, shard_file,
};
use crate::structures::CompactSort;
use crate::tables::{FeatureRow, RowRange, Table, UrlRow};

/// How long the processes of a run may take to end after their supervisor was killed.
pub(crate) const ORPHANS_END: Duration = Duration::from_secs(10);

/// The paths of a store. Cheap to clone; every process of a run has one. It opens nothing: the
/// store need not exist.
#[derive(Clone, Debug)]
pub struct Store {
    pub(crate) root: PathBuf,
    /// The work folder: unfinished weeks, and a commit in preparation.
    pub(crate) work: PathBuf,
}

impl Store {
    /// The store at `root`, with the work folder `_nigh/work`.
    pub fn at(root: &Path) -> Store {
        Store { root: root.to_owned(), work: root.join(OWN).join(WORK) }
    }

    /// The same store with another work folder, of this name.
    pub fn working_in(&self, name: &str) -> Store {
        Store { root: self.root.clone(), work: self.own().join(name) }
    }

    /// The name of a work folder for one generation of processes, made unique by `seed`.
    pub fn work_name_of(seed: &str) -> String {
        format!("{WORK}-{}", crate::records::short_hash(seed.as_bytes()))
    }

    /// The folder of all files that are not tables.
    pub(crate) fn own(&self) -> PathBuf {
        self.root.join(OWN)
    }

    /// The folder of `nigh live`: its journal, and the documents that it committed.
    pub fn live(&self) -> PathBuf {
        self.own().join(LIVE)
    }

    /// Makes this store's work folder the only one: renames the existing work folder, whatever its
    /// name, and removes others.
    ///
    /// A process of an earlier run or generation may still be alive, on a machine that cannot be
    /// reached. It knows only an older name of the work folder, so its next write or commit fails.
    /// The caller holds the lock.
    ///
    /// # Errors
    /// Names the folder that cannot be moved or removed.
    pub fn take_work(&self) -> Result<()> {
        let mut folders = self.work_folders()?;
        // A folder that such a process made after the rename has no journal, no part of a commit,
        // and no store with more shards.
        let has_work = |folder: &PathBuf| {
            let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
            let is_work = |path: PathBuf| {
                [path.join(JOURNAL), path.join(MANIFEST), path.join(OWN).join(MANIFEST)]
                    .iter()
                    .any(|path| path.exists())
            };
            entries.map(|entry| entry.path()).any(is_work)
        };
        folders.sort_items_by_key(|folder| (!has_work(folder), *folder != self.work));
        for folder in folders.iter().skip(1) {
            std::fs::remove_dir_all(folder).with_context(|| format!("cannot remove {}", folder.display()))?;
        }
        match folders.first() {
            Some(folder) if *folder != self.work => rename(folder, &self.work).and_then(|()| sync_folder(&self.own())),
            _ => Ok(()),
        }
    }

    /// All work folders; a store in which no run writes has at most one.
    pub(crate) fn work_folders(&self) -> Result<Vec<PathBuf>> {
        let own = self.own();
        let failed = || format!("cannot list {}", own.display());
        if !own.exists() {
            return Ok(Vec::new());
        }
        let mut folders = Vec::new();
        for entry in std::fs::read_dir(&own).with_context(failed)? {
            let entry = entry.with_context(failed)?;
            let name = entry.file_name();
            let rest = name.to_str().and_then(|name| name.strip_prefix(WORK));
            if rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-')) {
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

    /// Where the list of committed weeks is.
    pub fn manifest_path(&self) -> PathBuf {
        self.own().join(MANIFEST)
    }

    /// Reads the manifest; `None` if nothing was committed yet.
    ///
    /// # Errors
    /// As [`Manifest::read`]; or if the folder has a store of an older format, or is a part of a
    /// store.
    pub fn manifest(&self) -> Result<Option<Manifest>> {
        let manifest = self.manifest_of_any_format()?;
        if let Some(manifest) = &manifest {
            manifest.check_format(&self.root)?;
        }
        Ok(manifest)
    }

    /// Reads the manifest, also of a store that [`Store::upgrade`] is to bring up to date.
    ///
    /// # Errors
    /// As [`Store::manifest`], for formats before that.
    pub fn manifest_of_any_format(&self) -> Result<Option<Manifest>> {
        let manifest = Manifest::read(&self.manifest_path())?;
        let old = self.root.join(MANIFEST);
        if manifest.is_none() && old.exists() {
            // The formats up to 4 had it there.
            return Manifest::read(&old);
        }
        Ok(manifest)
    }

    /// A committed week, by its date.
    ///
    /// # Errors
    /// If the store has no such week, or its manifest cannot be read.
    pub fn committed(&self, week: Week) -> Result<CommittedWeek> {
        let weeks = self.manifest()?.map_or_else(Vec::new, |manifest| manifest.weeks);
        let committed = weeks.into_iter().find(|committed| committed.week == week);
        committed.with_context(|| format!("the store {} has no week {week}", self.root.display()))
    }

    /// The folder with the records of a committed week: `week.json`, `job.toml` and `summary.json`.
    pub fn records(&self, week: &CommittedWeek) -> PathBuf {
        self.own().join(records_folder(week.week, week.commit))
    }

    /// The folder with the files of a table of a committed week.
    pub fn table(&self, table: &str, week: Week) -> PathBuf {
        self.root.join(table).join(week.folder())
    }

    /// Reads the `week.json` of a committed week.
    ///
    /// # Errors
    /// If it is missing or damaged.
    pub fn whole(&self, week: &CommittedWeek) -> Result<WholeWeek> {
        let path = self.records(week).join(WEEK);
        WholeWeek::read(&path)?.with_context(|| format!("{} is missing: the store is damaged", path.display()))
    }

    /// As [`Store::whole`], of a week that another one is computed from. A week of an older version
    /// has the features of all of its pages in files of its own. Those of pages that stayed are
    /// also where they were: these files are listed, too, if the store has the weeks still.
    ///
    /// # Errors
    /// As [`Store::whole`], or if the manifest is damaged.
    pub fn whole_base(&self, week: &CommittedWeek) -> Result<WholeWeek> {
        let mut whole = self.whole(week)?;
        let origins = whole.journal.segments.iter().filter_map(|segment| segment.origin);
        let lists = |week: &Week| whole.kept.get(week).is_some_and(|files| files.contains_key(FeatureRow::NAME));
        let unlisted: BTreeSet<Week> = origins.map(|origin| origin.week).filter(|week| !lists(week)).collect();
        if unlisted.is_empty() {
            return Ok(whole);
        }
        let weeks = self.manifest()?.map(|manifest| manifest.weeks).unwrap_or_default();
        for earlier in weeks.iter().filter(|earlier| unlisted.contains(&earlier.week)) {
            let files = self.whole(earlier)?.kept_for(&whole.journal.segments).remove(&earlier.week);
            if let Some(features) = files.and_then(|mut files| files.remove(FeatureRow::NAME)) {
                whole.kept.entry(earlier.week).or_default().insert(FeatureRow::NAME.to_owned(), features);
            }
        }
        Ok(whole)
    }

    /// The tables of a committed week.
    ///
    /// # Errors
    /// As [`Store::whole`].
    pub fn tables(&self, week: &CommittedWeek) -> Result<WeekTables> {
        Ok(self.whole(week)?.tables(&self.root))
    }

    /// The `urls` of these weeks, by shard, in the order of document ids.
    ///
    /// # Errors
    /// If a `week.json` is missing or damaged; the message names it.
    pub fn url_files(&self, weeks: &Earlier) -> Result<BTreeMap<u32, Vec<RowRange>>> {
        self.rows_of_urls(weeks, UrlRow::NAME)
    }

    /// The URLs of these weeks, by shard, each item sorted by hash: the input of
    /// [`UrlIndex`](crate::state::UrlIndex).
    ///
    /// # Errors
    /// As [`Store::url_files`].
    pub fn url_indexes(&self, weeks: &Earlier) -> Result<BTreeMap<u32, Vec<RowRange>>> {
        self.rows_of_urls(weeks, UrlRunRow::NAME)
    }

    /// As [`Store::url_files`]; `table` is the table to take for removed weeks, `urls` or
    /// `url-runs`.
    fn rows_of_urls(&self, weeks: &Earlier, table: &str) -> Result<BTreeMap<u32, Vec<RowRange>>> {
        let mut rows: BTreeMap<u32, Vec<RowRange>> = BTreeMap::new();
        if let Some(removed) = &weeks.removed {
            let folder = self.own().join(removed_folder(removed)).join(table);
            rows.extend(removed.shards().map(|shard| (shard, vec![folder.join(shard_file(shard)).into()])));
        }
        for week in &weeks.weeks {
            let whole = self.whole(week)?;
            let tables = whole.tables(&self.root);
            for segment in whole.journal.segments.iter().filter(|segment| segment.urls > 0) {
                let urls = tables.rows(UrlRow::NAME, &segment.file())?;
                rows.entry(segment.shard).or_default().push(urls);
            }
        }
        Ok(rows)
    }

    /// The paths of an unfinished week.
    pub fn unfinished(&self, week: Week) -> Unfinished {
        let work = &self.work;
        Unfinished::new(work.join(week.folder()), work.join(format!("{SCRATCH}{week}")))
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

/// The folder of all files of a store that are not tables.
pub const OWN: &str = "_nigh";
/// The name of the work folder, or its beginning: a pool of machines adds `-` and a name of its
/// own.
const WORK: &str = "work";
/// The folder of [`Store::live`], in that of the store's own files.
const LIVE: &str = "live";
/// The beginning of the name of the folder for files of an unfinished week that are not kept with
/// it.
pub(crate) const SCRATCH: &str = "scratch-";
/// The name of the journal in that folder.
pub const JOURNAL: &str = "journal.json";
/// The name of the manifest, in the folder of the store's own files and in a staged commit.
pub const MANIFEST: &str = "manifest.json";
/// The name of the file that the run that writes has locked.
pub const LOCK: &str = "lock";
/// The name of the file with everything about a committed week that its tables do not hold.
pub(crate) const WEEK: &str = "week.json";
/// The name of the list of files of the tables of results that have a piece for each shard.
pub(crate) const TABLES: &str = "tables.json";

/// The folder with the records of a week, within [`OWN`]. `commit` is the number of the commit that
/// wrote them.
pub(crate) fn records_folder(week: Week, commit: u64) -> PathBuf {
    Path::new(&week.folder()).join(format!("{commit:05}"))
}

/// The folder with the URLs of the removed weeks, within [`OWN`].
pub fn removed_folder(removed: &RemovedWeeks) -> PathBuf {
    Path::new(&format!("before={}", removed.before)).join(format!("{:05}", removed.commit))
}

/// The name of a file of a table: the number of the commit that wrote it, and its number among the
/// files of the table.
///
/// No file of a table is written over: a new version of a week has other names.
pub(crate) fn part_file(commit: u64, part: usize) -> String {
    format!("nigh-{commit:05}-{part:05}.parquet")
}

/// The number of the commit in the name of a file of a table; `None` if nigh does not give such
/// names.
pub fn commit_of(name: &str) -> Option<u64> {
    let (commit, part) = name.strip_prefix("nigh-")?.strip_suffix(".parquet")?.split_once('-')?;
    let is_number = |digits: &str| digits.len() >= 5 && digits.bytes().all(|byte| byte.is_ascii_digit());
    (is_number(commit) && is_number(part)).then(|| commit.parse().ok()).flatten()
}

pub(crate) fn rename(from: &Path, to: &Path) -> Result<()> {
    std::fs::rename(from, to).with_context(|| format!("cannot move {} to {}", from.display(), to.display()))
}
