//! Bundles: the files of an unfinished week, or of unfinished tables of a study, each with the rows
//! of one worker and table.
//!
//! A week is made of *pieces*: the rows of a table for one shard and wave, for one shard, for one
//! wave, or all of them. Each has a name (`shard00005-wave00017.parquet`, `shard00005.parquet`,
//! `all-wave00017.parquet`, `all.parquet`) by which the committed week lists it. A file for each
//! piece would cost more than its rows where these are few, so a worker writes all of its pieces
//! one after the other to one file, the bundle. A piece is consecutive rows of it. How many, a list
//! beside the bundle says:
//!
//! ```text
//! documents/wave00017-worker00003.parquet     the pieces that worker 3 wrote in wave 17
//! documents/wave00017-worker00003.ranges      [{"name": "shard00003-wave00017.parquet", "rows": 412, "bytes": 70123}, …]
//! ```
//!
//! The list gets its name after the bundle has its own: without it a bundle counts for nothing. A
//! reader asks for a piece by its name, so it does not matter which worker of which run wrote it.
//!
//! Limitation: the names of all pieces of a table that is read are in memory, about 130 bytes each.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::ops::{Bound, Range};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::journal::WeekJournal;
use crate::tables::{Row, RowRange, Table, Writer};

/// The extension of the lists of pieces.
const LIST: &str = "ranges";

/// When the pieces of a bundle were made, and by which worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BundleName {
    /// In a wave.
    Wave(usize, usize),
    /// After the waves: of pages that stay from an earlier week.
    Kept(usize),
    /// After the waves: of pages that a revisit names.
    Revisited(usize),
    /// Instead of waves: what a deletion leaves of a week.
    Remaining(usize),
    /// After the waves, from what they wrote: made again by the next run if this one is killed.
    After(usize),
}

impl BundleName {
    /// The name of the file.
    pub fn file(self) -> String {
        match self {
            BundleName::Wave(wave, worker) => format!("wave{wave:05}-worker{worker:05}.parquet"),
            BundleName::Kept(worker) => format!("kept-worker{worker:05}.parquet"),
            BundleName::Revisited(worker) => format!("revisited-worker{worker:05}.parquet"),
            BundleName::Remaining(worker) => format!("remaining-worker{worker:05}.parquet"),
            BundleName::After(worker) => format!("worker{worker:05}.parquet"),
        }
    }

    /// Whether the next run of the week reads the file with this name, which is that of a bundle or
    /// of its list.
    ///
    /// ```
    /// use nigh_store::state::{BundleName, InputKey, Segment, WeekJournal};
    ///
    /// let (hash, stamps) = ("a".into(), Default::default());
    /// let mut journal = WeekJournal::new(InputKey { hash, waves: 2, files: 2, bytes: 10, stamps });
    /// journal.waves = 1;
    /// let stays = |journal: &WeekJournal, bundle: BundleName| BundleName::stays(&bundle.file(), journal);
    /// assert!(stays(&journal, BundleName::Wave(0, 7)) && !stays(&journal, BundleName::Wave(1, 7)));
    /// assert!(!stays(&journal, BundleName::Kept(0)) && !stays(&journal, BundleName::After(0)));
    /// journal.segments = vec![Segment { wave: 1, ..Segment::default() }];
    /// assert!(stays(&journal, BundleName::Kept(0)) && !stays(&journal, BundleName::After(0)));
    /// ```
    pub fn stays(file: &str, journal: &WeekJournal) -> bool {
        if let Some(wave) = file.strip_prefix("wave") {
            let wave = wave.split_once("-worker").and_then(|(wave, _)| wave.parse().ok());
            return wave.is_some_and(|wave: usize| wave < journal.waves);
        }
        match file.split_once("-worker") {
            Some(("kept" | "revisited", _)) => journal.segments.iter().any(|segment| segment.wave >= journal.waves),
            // A deletion writes its journal once, with all waves.
            Some(("remaining", _)) => journal.waves > 0 || !journal.segments.is_empty(),
            _ => false,
        }
    }
}

/// A piece in a bundle.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct ListedPiece {
    name: String,
    /// The number of its rows.
    rows: u64,
    /// Its size, which depends on the rows alone.
    bytes: u64,
}

/// Writes one bundle: row by row, piece by piece. A writer that is dropped before
/// [`BundleWriter::finish`] leaves no bundle.
#[must_use = "without `finish` there is no bundle"]
pub struct BundleWriter<T: Table> {
    path: PathBuf,
    /// Made for the first row.
    writer: Option<Writer<T>>,
    pieces: Vec<ListedPiece>,
    /// The rows of the pieces that are ended.
    rows: u64,
}

impl<T: Table> BundleWriter<T> {
    /// A writer of the bundle at `path`.
    pub(crate) fn new(path: PathBuf) -> BundleWriter<T> {
        BundleWriter { path, writer: None, pieces: Vec::new(), rows: 0 }
    }

    /// Writes rows of the piece.
    ///
    /// # Errors
    /// Names the folder that cannot be made.
    pub fn writer(&mut self) -> Result<&mut Writer<T>> {
        Ok(match &mut self.writer {
            Some(writer) => writer,
            none => none.insert(Writer::bundle(&self.path)?),
        })
    }

    /// Adds a row to the piece.
    ///
    /// # Errors
    /// Names the file that cannot be written, for instance to a full disk.
    pub fn push(&mut self, row: impl Row<Table = T>) -> Result<()> {
        self.writer()?.push(row)
    }

    /// Ends the piece, and returns its number of rows. There is no piece if it has none.
    ///
    /// # Errors
    /// As [`BundleWriter::push`].
    pub fn end_piece(&mut self, name: &str) -> Result<u64> {
        let Some(writer) = &mut self.writer else { return Ok(0) };
        let rows = writer.len() - self.rows;
        if rows > 0 { self.end_any_piece(name) } else { Ok(0) }
    }

    /// As [`BundleWriter::end_piece`], except that there is a piece even without rows.
    ///
    /// # Errors
    /// As [`BundleWriter::push`].
    pub fn end_any_piece(&mut self, name: &str) -> Result<u64> {
        let before = self.rows;
        let writer = self.writer()?;
        let (bytes, end) = (writer.end_piece()?, writer.len());
        let rows = end - before;
        self.pieces.push(ListedPiece { name: name.to_owned(), rows, bytes });
        self.rows = end;
        Ok(rows)
    }

    /// Ends the bundle. There is none if it has no pieces.
    ///
    /// # Errors
    /// Names the file that cannot be written.
    pub fn finish(self) -> Result<()> {
        let BundleWriter { path, writer, pieces, .. } = self;
        let Some(writer) = writer.filter(|_| !pieces.is_empty()) else { return Ok(()) };
        writer.finish()?;
        let (list, temporary) = (path.with_extension(LIST), path.with_extension("ranges.tmp"));
        let written = fs::write(&temporary, serde_json::to_vec(&pieces)?).and_then(|()| fs::rename(&temporary, &list));
        written.with_context(|| format!("cannot write {}", list.display()))
    }
}

/// The bundles that were read, by the folder of their table.
#[derive(Debug, Default)]
pub(super) struct Bundles(Mutex<HashMap<PathBuf, TableBundles>>);

#[derive(Debug, Default)]
struct TableBundles {
    /// The names of the lists that were read.
    lists: HashSet<std::ffi::OsString>,
    /// By their names.
    pieces: BTreeMap<String, RowRange>,
}

/// A piece of an unfinished week, and where it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PlacedPiece {
    /// Its name.
    pub name: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// The file of the bundle.
    pub bundle: String,
    /// Its rows in the bundle: from the first number on, up to the second.
    pub rows: (u64, u64),
}

impl Bundles {
    /// A piece by its name; `None` if the folder has no bundle with it.
    pub(super) fn find(&self, folder: &Path, name: &str) -> Result<Option<RowRange>> {
        let mut tables = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of_table = tables.entry(folder.to_owned()).or_default();
        if let Some(rows) = of_table.pieces.get(name) {
            return Ok(Some(rows.clone()));
        }
        // It may be in a bundle that was written since.
        of_table.read(folder)?;
        Ok(of_table.pieces.get(name).cloned())
    }

    /// All pieces whose names begin so, in the order of their names.
    pub(super) fn find_all(&self, folder: &Path, prefix: &str) -> Result<Vec<(String, RowRange)>> {
        let mut tables = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of_table = tables.entry(folder.to_owned()).or_default();
        of_table.read(folder)?;
        let from = of_table.pieces.range::<str, _>((Bound::Included(prefix), Bound::Unbounded));
        let pieces = from.take_while(|(name, _)| name.starts_with(prefix));
        Ok(pieces.map(|(name, rows)| (name.clone(), rows.clone())).collect())
    }
}

impl TableBundles {
    /// Reads the lists of bundles that were written since.
    fn read(&mut self, folder: &Path) -> Result<()> {
        for list in lists(folder)? {
            let file = list.file_name().unwrap_or_default().to_owned();
            if self.lists.contains(&file) {
                continue;
            }
            let bundle = RowRange::file(list.with_extension("parquet"));
            for (piece, rows) in read_list(&list)? {
                self.pieces.insert(piece.name, bundle.part(rows));
            }
            self.lists.insert(file);
        }
        Ok(())
    }
}

/// All pieces of the bundles in a folder.
pub(super) fn placed_pieces(folder: &Path) -> Result<Vec<PlacedPiece>> {
    let mut pieces = Vec::new();
    for list in lists(folder)? {
        let bundle = list.with_extension("parquet").file_name().unwrap_or_default().to_string_lossy().into_owned();
        pieces.extend(read_list(&list)?.into_iter().map(|(piece, rows)| PlacedPiece {
            name: piece.name,
            bytes: piece.bytes,
            bundle: bundle.clone(),
            rows: (rows.start, rows.end),
        }));
    }
    Ok(pieces)
}

/// The lists of pieces in a folder, which need not exist.
fn lists(folder: &Path) -> Result<Vec<PathBuf>> {
    let failed = || format!("cannot list {}", folder.display());
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).with_context(failed),
    };
    let mut lists = Vec::new();
    for entry in entries {
        let path = entry.with_context(failed)?.path();
        lists.extend(path.extension().is_some_and(|extension| extension == LIST).then_some(path));
    }
    Ok(lists)
}

/// The pieces that a list has, each with its rows.
fn read_list(list: &Path) -> Result<Vec<(ListedPiece, Range<u64>)>> {
    let failed = || format!("cannot read {}", list.display());
    let pieces: Vec<ListedPiece> =
        serde_json::from_slice(&fs::read(list).with_context(failed)?).with_context(failed)?;
    let mut first = 0;
    let placed = pieces.into_iter().map(|piece| {
        let rows = first..first + piece.rows;
        first = rows.end;
        (piece, rows)
    });
    Ok(placed.collect())
}
