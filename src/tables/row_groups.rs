//! Rows of a table: a whole Parquet file, or some consecutive row groups of one.
//!
//! A week's files hold the rows of many shards and waves, one after the other ([`pack`](super::pack)). A [`RowGroups`] stands
//! for the rows of one of them. It names its file, and reads it only when a reader is opened. All row groups of one file share
//! its footer, which is parsed when it is first needed, and then kept as long as one of them is: k pieces of a file cost one
//! parse. The file stays open as long, too, except where many are.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, ensure};
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::file::metadata::PageIndexPolicy;

use super::shared_file::SharedFile;

/// The most files that stay open between two readers: a process may have some 1,000 open files, and sockets are among them.
const MOST_OPEN: usize = 128;

/// The files that are open so.
static OPEN: AtomicUsize = AtomicUsize::new(0);

/// Consecutive row groups of one Parquet file: all of them, or a part. Cheap to clone.
///
/// ```
/// use nigh::tables::{RowGroups, Scan, SizeRow, Writer, pack};
///
/// # fn main() -> anyhow::Result<()> {
/// let folder = tempfile::tempdir()?;
/// let [small, other, packed] = ["small", "other", "packed"].map(|name| folder.path().join(format!("{name}.parquet")));
/// for (path, size) in [(&small, 1), (&other, 2)] {
///     let mut writer: Writer<SizeRow> = Writer::create(path)?;
///     writer.push(SizeRow { level: "similar", size, clusters: 40 })?;
///     writer.finish()?;
/// }
/// assert_eq!(pack::<SizeRow>(&[small.into(), other.into()], &packed)?, [1, 1], "row groups of each");
///
/// let packed = RowGroups::file(&packed);
/// let rows = |rows: RowGroups| anyhow::Ok(Scan::open(rows, &["size"])?.batch()?.map_or(0, |batch| batch.num_rows()));
/// assert_eq!((rows(packed.groups(1..2))?, rows(packed)?), (1, 2));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct RowGroups {
    file: Arc<Shared>,
    /// The numbers of the row groups in the file; `None` for all.
    range: Option<Range<usize>>,
    /// If given, only the rows count whose `doc` is in the column `doc` of these.
    live: Option<Box<RowGroups>>,
}

/// What all row groups of a file share.
struct Shared {
    path: PathBuf,
    /// `None` until a reader is opened. A mutex, not a `OnceLock`, because a file that cannot be read now may be readable later.
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
        let footer = ArrowReaderMetadata::load(&file, options)?;
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

/// A file that is open, its footer, and which of its row groups to read.
pub(super) struct Opened {
    pub(super) file: SharedFile,
    pub(super) footer: ArrowReaderMetadata,
    pub(super) groups: Range<usize>,
}

impl RowGroups {
    /// All row groups of the file at `path`, which need not exist yet.
    pub fn file(path: impl Into<PathBuf>) -> RowGroups {
        RowGroups { file: Arc::new(Shared { path: path.into(), read: Mutex::default() }), range: None, live: None }
    }

    /// A part of these row groups; `range` counts from the first of them. A reader fails if the file has fewer.
    #[must_use]
    pub fn groups(&self, range: Range<usize>) -> RowGroups {
        let first = self.range.as_ref().map_or(0, |range| range.start);
        let range = first.saturating_add(range.start)..first.saturating_add(range.end);
        RowGroups { file: self.file.clone(), range: Some(range), live: self.live.clone() }
    }

    /// Only the rows of documents that `live` has rows of: pages of an earlier week that are still there. Both have a column `doc`, which ascends.
    /// Only a [`Scan`](super::Scan) can read these, and not by the numbers of rows.
    #[must_use]
    pub fn live_in(&self, live: RowGroups) -> RowGroups {
        RowGroups { live: Some(Box::new(live)), ..self.clone() }
    }

    /// The same row groups, of which all rows count.
    pub(super) fn with_all_rows(&self) -> RowGroups {
        RowGroups { live: None, ..self.clone() }
    }

    /// The rows whose documents count; `None` if all do.
    pub(super) fn live(&self) -> Option<&RowGroups> {
        self.live.as_deref()
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.file.path
    }

    /// Whether these are all row groups of the file because no part was chosen.
    pub fn is_whole(&self) -> bool {
        self.range.is_none()
    }

    /// Whether rows of these row groups do not count.
    pub fn is_sifted(&self) -> bool {
        self.live.is_some()
    }

    /// The number of row groups.
    ///
    /// # Errors
    /// Names the file that cannot be read or is not a Parquet file.
    pub fn count(&self) -> Result<usize> {
        Ok(self.open()?.groups.len())
    }

    /// The number of rows.
    ///
    /// # Errors
    /// As [`RowGroups::count`].
    pub fn rows(&self) -> Result<u64> {
        let Opened { footer, groups, .. } = self.open()?;
        Ok(footer.metadata().row_groups()[groups].iter().map(|group| group.num_rows() as u64).sum())
    }

    /// Opens the file, and parses its footer unless one of its row groups was opened before.
    pub(super) fn open(&self) -> Result<Opened> {
        self.check_all_count()?;
        self.open_all()
    }

    /// Checks that all rows count.
    pub(super) fn check_all_count(&self) -> Result<()> {
        ensure!(
            self.live.is_none(),
            "{} has rows that do not count: they cannot be read by their places",
            self.path().display()
        );
        Ok(())
    }

    /// As [`RowGroups::open`], with the rows that do not count.
    pub(super) fn open_all(&self) -> Result<Opened> {
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
        let count = footer.metadata().num_row_groups();
        let groups = self.range.clone().unwrap_or(0..count);
        ensure!(
            groups.start <= groups.end && groups.end <= count,
            "{} has {count} row groups, but those from {} to {} were expected",
            path.display(),
            groups.start,
            groups.end
        );
        Ok(Opened { file, footer, groups })
    }
}

impl fmt::Debug for RowGroups {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RowGroups").field("path", &self.file.path).field("range", &self.range).finish()
    }
}

/// Equal if the same row groups of a file of the same name; one of a range that happens to have all row groups differs from the
/// whole file.
impl PartialEq for RowGroups {
    fn eq(&self, other: &RowGroups) -> bool {
        (self.path(), &self.range, &self.live) == (other.path(), &other.range, &other.live)
    }
}

impl Eq for RowGroups {}

impl From<&Path> for RowGroups {
    fn from(path: &Path) -> RowGroups {
        RowGroups::file(path)
    }
}

impl From<PathBuf> for RowGroups {
    fn from(path: PathBuf) -> RowGroups {
        RowGroups::file(path)
    }
}

impl From<&PathBuf> for RowGroups {
    fn from(path: &PathBuf) -> RowGroups {
        RowGroups::file(path)
    }
}

impl From<&RowGroups> for RowGroups {
    fn from(rows: &RowGroups) -> RowGroups {
        rows.clone()
    }
}
