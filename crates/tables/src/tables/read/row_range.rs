//! Rows of a table: a whole Parquet file, or some consecutive rows of one.
//!
//! A file has the rows of many shards and waves, one after the other
//! ([`pack`](crate::tables::pack)). A [`RowRange`] stands for the rows of one of them. It names its
//! file, and reads it only when a reader is opened. All ranges of one file share its footer, which
//! is parsed when it is first needed, and then kept as long as one of them is: k pieces of a file
//! cost one parse. The file stays open as long, too, except where many are.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, ensure};
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::file::metadata::PageIndexPolicy;

use super::guard::{check_footer, damaged, decoded};
use super::shared_file::SharedFile;

/// The most files that stay open between two readers: a process may have some 1,000 open files, and
/// sockets are among them.
const MOST_OPEN: usize = 128;

/// The files that are open so.
static OPEN: AtomicUsize = AtomicUsize::new(0);

/// Consecutive rows of one Parquet file: all of them, or a part. Cheap to clone.
///
/// ```
/// use nigh_tables::tables::{RowRange, Scan, SizeRow, Writer, pack};
///
/// # fn main() -> anyhow::Result<()> {
/// let folder = tempfile::tempdir()?;
/// let [small, other, packed] = ["small", "other", "packed"].map(|name| folder.path().join(format!("{name}.parquet")));
/// for (path, size) in [(&small, 1), (&other, 2)] {
///     let mut writer: Writer<SizeRow> = Writer::create(path)?;
///     writer.push(SizeRow { level: "similar", size, clusters: 40 })?;
///     writer.finish()?;
/// }
/// assert_eq!(pack::<SizeRow>(&[small.into(), other.into()], &packed, &[])?.rows, [1, 1], "rows of each");
///
/// let packed = RowRange::file(&packed);
/// let rows = |rows: RowRange| anyhow::Ok(Scan::open(rows, &["size"])?.batch()?.map_or(0, |batch| batch.num_rows()));
/// assert_eq!((rows(packed.part(1..2))?, rows(packed)?), (1, 2));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct RowRange {
    file: Arc<RangesFile>,
    /// The numbers of the rows in the file; `None` for all.
    range: Option<Range<u64>>,
    /// If given, only the rows count whose `doc` is in the column `doc` of these.
    live: Option<Box<RowRange>>,
}

/// What all ranges of a file share.
struct RangesFile {
    path: PathBuf,
    /// `None` until a reader is opened. A mutex, not a `OnceLock`, because a file that cannot be
    /// read now may be readable later.
    read: Mutex<Option<ReadFile>>,
}

/// What is kept of a file that was opened.
struct ReadFile {
    /// Footer and page index.
    footer: ArrowReaderMetadata,
    /// `None` if many others stay open.
    file: Option<SharedFile>,
}

impl ReadFile {
    fn open(path: &Path) -> Result<(ReadFile, SharedFile)> {
        let file = SharedFile::open(path)?;
        // The statistics of encodings are kept in full because `pack` copies them.
        let options = ArrowReaderOptions::new()
            .with_page_index_policy(PageIndexPolicy::Optional)
            .with_encoding_stats_as_mask(false);
        let footer = decoded(path, || Ok(ArrowReaderMetadata::load(&file, options)?))?;
        check_footer(footer.metadata()).with_context(|| damaged(path))?;
        let stays_open =
            OPEN.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |open| (open < MOST_OPEN).then_some(open + 1));
        Ok((ReadFile { footer, file: stays_open.is_ok().then(|| file.clone()) }, file))
    }
}

impl Drop for ReadFile {
    fn drop(&mut self) {
        if self.file.is_some() {
            OPEN.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// A file that is open, its footer, and which of its rows to read.
pub(crate) struct OpenRange {
    pub(crate) file: SharedFile,
    pub(crate) footer: ArrowReaderMetadata,
    pub(crate) rows: Range<u64>,
}

/// Some rows of a row group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GroupRows {
    /// The number of the row group in the file.
    pub(crate) group: usize,
    /// The rows, as numbers in the file.
    pub(crate) rows: Range<u64>,
    /// Whether these are all rows of the row group.
    pub(crate) is_whole: bool,
}

impl OpenRange {
    /// The rows by row group; none without rows.
    pub(crate) fn by_group(&self) -> Vec<GroupRows> {
        let (mut by_group, mut first) = (Vec::new(), 0);
        for (group, described) in self.footer.metadata().row_groups().iter().enumerate() {
            let end = first + described.num_rows() as u64;
            let rows = first.max(self.rows.start)..end.min(self.rows.end);
            if !rows.is_empty() {
                by_group.push(GroupRows { group, is_whole: rows == (first..end), rows });
            }
            first = end;
        }
        by_group
    }

    /// The row groups that have the rows, and how many rows of the first of them come before these.
    pub(crate) fn groups(&self) -> (Range<usize>, u64) {
        let mut groups = self.footer.metadata().row_groups().iter();
        let (mut first, mut before) = (0, self.rows.start);
        while let Some(rows) = groups.next().map(|group| group.num_rows() as u64).filter(|rows| *rows <= before) {
            (first, before) = (first + 1, before - rows);
        }
        let (mut end, mut rows) = (first, 0);
        let all = self.footer.metadata().row_groups();
        while rows < before + (self.rows.end - self.rows.start) && end < all.len() {
            rows += all[end].num_rows() as u64;
            end += 1;
        }
        (first..end, before)
    }
}

impl RowRange {
    /// All rows of the file at `path`, which need not exist yet.
    pub fn file(path: impl Into<PathBuf>) -> RowRange {
        RowRange { file: Arc::new(RangesFile { path: path.into(), read: Mutex::default() }), range: None, live: None }
    }

    /// A part of these rows; `range` counts from the first of them. A reader fails if the file has
    /// fewer.
    #[must_use]
    pub fn part(&self, range: Range<u64>) -> RowRange {
        let first = self.range.as_ref().map_or(0, |range| range.start);
        let range = first.saturating_add(range.start)..first.saturating_add(range.end);
        RowRange { file: self.file.clone(), range: Some(range), live: self.live.clone() }
    }

    /// These rows and those of `next`; `None` unless they follow these in the same file, and all of
    /// both count.
    pub(crate) fn joined(&self, next: &RowRange) -> Option<RowRange> {
        let (Some(range), Some(following)) = (&self.range, &next.range) else { return None };
        let all_count = self.live.is_none() && next.live.is_none();
        let follow = Arc::ptr_eq(&self.file, &next.file) && range.end == following.start;
        let range = Some(range.start..following.end);
        (all_count && follow).then(|| RowRange { file: self.file.clone(), range, live: None })
    }

    /// The number of rows if it is known without reading the file, and all count.
    pub(crate) fn known_rows(&self) -> Option<u64> {
        self.range.as_ref().filter(|_| self.live.is_none()).map(|range| range.end - range.start)
    }

    /// Only the rows of documents that `live` has rows of: pages of an earlier week that are still
    /// there. Both have a column `doc`, which ascends. Only a [`Scan`](crate::tables::Scan) can
    /// read these, and not by the numbers of rows: for these there is [`RowRange::with_all_rows`].
    #[must_use]
    pub fn live_in(&self, live: RowRange) -> RowRange {
        RowRange { live: Some(Box::new(live)), ..self.clone() }
    }

    /// The same rows, all of which count: for a reader by the numbers of rows, which has to pass
    /// over the others itself.
    #[must_use]
    pub fn with_all_rows(&self) -> RowRange {
        RowRange { live: None, ..self.clone() }
    }

    /// The rows whose documents count; `None` if all do.
    pub(crate) fn live(&self) -> Option<&RowRange> {
        self.live.as_deref()
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.file.path
    }

    /// Whether these are all rows of the file because no part was chosen.
    pub fn is_whole(&self) -> bool {
        self.range.is_none()
    }

    /// Whether some of these rows do not count.
    pub fn is_sifted(&self) -> bool {
        self.live.is_some()
    }

    /// The number of rows.
    ///
    /// # Errors
    /// Names the file that cannot be read or is not a Parquet file.
    pub fn rows(&self) -> Result<u64> {
        let OpenRange { rows, .. } = self.open()?;
        Ok(rows.end - rows.start)
    }

    /// The number of rows in each row group of these rows.
    ///
    /// # Errors
    /// As [`RowRange::rows`].
    pub fn rows_of_groups(&self) -> Result<Vec<u64>> {
        Ok(self.open()?.by_group().into_iter().map(|group| group.rows.end - group.rows.start).collect())
    }

    /// Opens the file, and parses its footer unless one of its ranges was opened before.
    pub(crate) fn open(&self) -> Result<OpenRange> {
        self.check_all_count()?;
        self.open_all()
    }

    /// Checks that all rows count.
    pub(crate) fn check_all_count(&self) -> Result<()> {
        ensure!(
            self.live.is_none(),
            "{} has rows that do not count: they cannot be read by their places",
            self.path().display()
        );
        Ok(())
    }

    /// As [`RowRange::open`], with the rows that do not count.
    pub(crate) fn open_all(&self) -> Result<OpenRange> {
        let path = self.path();
        let failed = || format!("cannot read {}", path.display());
        let (file, footer) = {
            let mut read = self.file.read.lock().unwrap_or_else(PoisonError::into_inner);
            match &*read {
                Some(ReadFile { footer, file: Some(file) }) => (file.clone(), footer.clone()),
                Some(ReadFile { footer, file: None }) => (SharedFile::open(path).with_context(failed)?, footer.clone()),
                None => {
                    let (kept, file) = ReadFile::open(path).with_context(failed)?;
                    (file, read.insert(kept).footer.clone())
                }
            }
        };
        let count: u64 = footer.metadata().row_groups().iter().map(|group| group.num_rows() as u64).sum();
        let rows = self.range.clone().unwrap_or(0..count);
        ensure!(
            rows.start <= rows.end && rows.end <= count,
            "{} has {count} rows, but those from {} to {} were expected",
            path.display(),
            rows.start,
            rows.end
        );
        Ok(OpenRange { file, footer, rows })
    }
}

impl fmt::Debug for RowRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RowRange").field("path", &self.file.path).field("range", &self.range).finish()
    }
}

/// Equal if the same rows of a file of the same name; a range that happens to have all rows differs
/// from the whole file.
impl PartialEq for RowRange {
    fn eq(&self, other: &RowRange) -> bool {
        (self.path(), &self.range, &self.live) == (other.path(), &other.range, &other.live)
    }
}

impl Eq for RowRange {}

impl From<&Path> for RowRange {
    fn from(path: &Path) -> RowRange {
        RowRange::file(path)
    }
}

impl From<PathBuf> for RowRange {
    fn from(path: PathBuf) -> RowRange {
        RowRange::file(path)
    }
}

impl From<&PathBuf> for RowRange {
    fn from(path: &PathBuf) -> RowRange {
        RowRange::file(path)
    }
}

impl From<&RowRange> for RowRange {
    fn from(rows: &RowRange) -> RowRange {
        rows.clone()
    }
}
