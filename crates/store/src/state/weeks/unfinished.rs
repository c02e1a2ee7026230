//! The folders of an unfinished week, and the removal of files that its journal does not list.
//!
//! Each worker writes files of its own, the [bundles](super::bundles). Before the commit their
//! pieces are packed into the files of the committed week
//! ([`Store::staged_part`](crate::state::Store::staged_part)).

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, ensure};

use super::bundles::{BundleName, BundleWriter, Bundles, PlacedPiece, placed_pieces};
use super::journal::{Segment, WeekJournal};
use crate::records::Week;
use crate::state::store::JOURNAL;
use crate::tables::{DocumentRow, RowRange, Table};

/// An unfinished week, or the unfinished tables of a study: the folder of the tables, and one for
/// files that are not kept. Cheap to clone: clones share the footers of the files that they read.
#[derive(Clone, Debug)]
pub struct Unfinished {
    pub(crate) folder: PathBuf,
    pub(crate) scratch: PathBuf,
    bundles: Arc<Bundles>,
}

/// The week in the name of a folder that begins with `prefix`; `None` for other names.
pub(crate) fn week_of(name: &std::ffi::OsStr, prefix: &str) -> Option<Week> {
    name.to_str()?.strip_prefix(prefix)?.parse().ok()
}

impl Unfinished {
    /// The week with these folders.
    pub(crate) fn new(folder: PathBuf, scratch: PathBuf) -> Unfinished {
        Unfinished { folder, scratch, bundles: Arc::default() }
    }

    /// The rows of a piece of a table: of a segment ([`Segment::file`]), a shard or a wave.
    ///
    /// # Errors
    /// If no worker has written it, or a file cannot be read.
    pub fn rows<T: Table>(&self, name: &str) -> Result<RowRange> {
        let folder = self.folder_of::<T>();
        self.find::<T>(name)?.with_context(|| format!("{} lacks the rows of {name}", folder.display()))
    }

    /// As [`Unfinished::rows`]; `None` if no worker has written the piece.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn find<T: Table>(&self, name: &str) -> Result<Option<RowRange>> {
        self.bundles.find(&self.folder_of::<T>(), name)
    }

    /// The pieces of a table whose names begin so, in the order of their names.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn find_all<T: Table>(&self, prefix: &str) -> Result<Vec<(String, RowRange)>> {
        self.bundles.find_all(&self.folder_of::<T>(), prefix)
    }

    /// A writer of a bundle of a table.
    pub fn bundle<T: Table>(&self, name: BundleName) -> BundleWriter<T> {
        BundleWriter::new(self.folder_of::<T>().join(name.file()))
    }

    /// The pieces of a table that is kept with the week, of all workers.
    ///
    /// # Errors
    /// If a list of pieces cannot be read.
    pub fn pieces(&self, table: &str) -> Result<Vec<PlacedPiece>> {
        placed_pieces(&self.folder.join(table))
    }

    fn folder_of<T: Table>(&self) -> PathBuf {
        (if T::IS_SCRATCH { &self.scratch } else { &self.folder }).join(T::NAME)
    }

    /// The folder of its tables.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The path of the journal.
    pub fn journal(&self) -> PathBuf {
        self.scratch.join(JOURNAL)
    }

    /// Replaces the journal, which exists since the week was begun.
    ///
    /// # Errors
    /// If the file cannot be written, or does not exist. It does not exist if another run has taken
    /// over the work: a process of the earlier run may create the folders again, but not the
    /// journal.
    pub fn write_journal(&self, journal: &WeekJournal) -> Result<()> {
        ensure!(self.journal().exists(), self.taken_over());
        journal.write(&self.journal())
    }

    /// The message for a run that lost its work to another one.
    pub(crate) fn taken_over(&self) -> String {
        let journal = self.journal();
        format!("{} no longer belongs to this run: another run has taken over the unfinished week", journal.display())
    }

    /// The path of a file of one of its tables.
    pub fn table(&self, table: &str, file: &str) -> PathBuf {
        self.folder.join(table).join(file)
    }

    /// The folder of what is not kept with the week.
    pub fn scratch_folder(&self) -> &Path {
        &self.scratch
    }

    /// The path of a file of a table that is not kept with the week.
    pub fn scratch_table(&self, table: &str, file: &str) -> PathBuf {
        self.scratch.join(table).join(file)
    }

    /// The folder of what was read of a wave that is not committed.
    pub fn read_of_wave(&self, wave: usize) -> PathBuf {
        self.scratch.join("read").join(format!("wave{wave:05}"))
    }

    /// The list of the documents that the week is made without, if a deletion makes it.
    pub fn deleted(&self) -> PathBuf {
        self.scratch_table("deleted", "all.parquet")
    }

    /// The folder of the run of postings that the week adds.
    pub fn postings(&self) -> PathBuf {
        self.scratch.join("postings")
    }

    /// The folder for spilled buffers and sorted runs that do not fit in memory.
    pub fn spill(&self) -> PathBuf {
        self.scratch.join("spill")
    }

    /// Removes both folders; called once the week is committed. The scratch folder goes first:
    /// without a journal the other files count for nothing.
    pub(crate) fn clear(&self) -> Result<()> {
        for folder in [&self.scratch, &self.folder] {
            if folder.exists() {
                std::fs::remove_dir_all(folder).with_context(|| format!("cannot remove {}", folder.display()))?;
            }
        }
        if let Some(work) = self.scratch.parent() {
            // Fails if another week is unfinished: then the work folder stays.
            let _ = std::fs::remove_dir(work);
        }
        Ok(())
    }

    /// Whether it has the documents of all segments of its journal. An older version wrote them to
    /// other files.
    pub(crate) fn has(&self, journal: &WeekJournal) -> Result<bool> {
        let names: HashSet<String> = self.pieces(DocumentRow::NAME)?.into_iter().map(|piece| piece.name).collect();
        Ok(journal.segments.iter().all(|segment| names.contains(&segment.file())))
    }

    /// Removes the files of incomplete waves, all tables that are made after the waves, and
    /// temporary files.
    ///
    /// A file stays if its name has a wave and a shard that the journal lists, or a complete wave
    /// and no shard, or is that of a bundle that [stays](BundleName::stays). So does what was read
    /// of a wave that is not complete. Files directly in the two folders (the journal, for example)
    /// stay too.
    pub(crate) fn drop_unlisted(&self, journal: &WeekJournal) -> Result<()> {
        let listed: HashSet<(usize, u32)> =
            journal.segments.iter().map(|segment| (segment.wave, segment.shard)).collect();
        let is_listed = |name: &str| match (Segment::wave_of(name), Segment::shard_of(name)) {
            (Some(wave), Some(shard)) => listed.contains(&(wave, shard)),
            (Some(wave), None) => wave < journal.waves,
            _ => BundleName::stays(name, journal),
        };
        let folders = [&self.folder, &self.scratch];
        for entry in folders.into_iter().flat_map(|folder| walkdir::WalkDir::new(folder).min_depth(2)) {
            let entry = entry.with_context(|| format!("cannot list {}", self.folder.display()))?;
            let name = entry.file_name().to_string_lossy();
            let of_wave = |path: &Path| path.file_name()?.to_str()?.strip_prefix("wave")?.parse::<usize>().ok();
            let was_read = name.ends_with(".read")
                && entry.path().parent().and_then(of_wave).is_some_and(|wave| wave >= journal.waves);
            if entry.file_type().is_file() && !was_read && !is_listed(&name) {
                std::fs::remove_file(entry.path())
                    .with_context(|| format!("cannot remove {}", entry.path().display()))?;
            }
        }
        Ok(())
    }
}
