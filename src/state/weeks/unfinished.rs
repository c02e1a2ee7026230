//! The files of a week that is not committed.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use super::journal::{Journal, Segment};
use crate::records::Week;
use crate::state::store::JOURNAL;

/// A week that is being made: the folder that will be the week's, and one for what is not kept with it.
#[derive(Clone, Debug)]
pub struct Unfinished {
    pub(crate) folder: PathBuf,
    pub(crate) scratch: PathBuf,
    /// Where the week that it replaces is put.
    pub(crate) replaced: PathBuf,
}

pub(crate) fn week_of(name: &std::ffi::OsStr, prefix: &str) -> Option<Week> {
    name.to_str()?.strip_prefix(prefix)?.parse().ok()
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
    pub(crate) fn taken(&self) -> String {
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
    pub(crate) fn clear(&self) -> Result<()> {
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
    pub(crate) fn drop_what_is_not_in(&self, journal: &Journal) -> Result<()> {
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
