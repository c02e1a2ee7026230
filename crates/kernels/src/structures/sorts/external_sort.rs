//! External sort: records in the order of their keys, in bounded memory.
//!
//! Records are collected up to a budget of bytes, sorted, and written to a *run*, a file of
//! length-prefixed records. At the end the runs and the records in memory are merged. When there
//! are 64 runs they are merged into one, so the number of open files is bounded. Records with equal
//! keys come in no particular order.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A record that [`ExternalSort`] sorts.
pub trait Sortable: Serialize + DeserializeOwned {
    /// The type of the key that records are sorted by.
    type Key: Ord;

    /// The key of this record.
    fn key(&self) -> Self::Key;

    /// The bytes that the record takes in memory, about.
    fn weight(&self) -> usize;
}

/// Collects records, then returns them in the order of their keys. Records of which there are many
/// are sorted with less memory as rows: [`row_sort`](super::row_sort).
///
/// ```
/// use nigh_kernels::structures::{ExternalSort, Sortable};
///
/// #[derive(serde::Serialize, serde::Deserialize)]
/// struct Page(String);
///
/// impl Sortable for Page {
///     type Key = String;
///
///     fn key(&self) -> String {
///         self.0.clone()
///     }
///
///     fn weight(&self) -> usize {
///         size_of::<Page>() + self.0.len()
///     }
/// }
///
/// # let folder = tempfile::tempdir()?;
/// // A budget of one byte: every record becomes a run.
/// let mut sort = ExternalSort::new(&folder.path().join("pages"), 1);
/// ["b", "c", "a"].iter().try_for_each(|url| sort.push(Page(url.to_string())))?;
/// let mut sorted = sort.sorted()?;
/// assert_eq!(sorted.record()?.unwrap().0, "a");
/// assert_eq!(sorted.record()?.unwrap().0, "b");
/// # Ok::<(), anyhow::Error>(())
/// ```
pub struct ExternalSort<T> {
    /// The path of a run, without the extension that numbers it.
    prefix: PathBuf,
    /// Bytes of records at which they are written to a run.
    budget: usize,
    records: Vec<T>,
    bytes: usize,
    runs: Vec<Run>,
    /// How often runs were merged into one.
    merges: usize,
}

/// A file of sorted records.
pub(super) struct Run {
    pub path: PathBuf,
    /// How many records it has: one that ends before them is not taken for the whole.
    pub records: u64,
}

/// The number of runs at which they are merged into one.
pub(super) const MOST_RUNS: usize = 64;

impl<T: Sortable> ExternalSort<T> {
    /// A sort that keeps about `budget` bytes of records in memory, and writes the rest to runs:
    /// files named `prefix` with an extension that numbers them. Their folder is created with the
    /// first run.
    pub fn new(prefix: &Path, budget: u64) -> ExternalSort<T> {
        ExternalSort {
            prefix: prefix.to_owned(),
            budget: budget as usize,
            records: Vec::new(),
            bytes: 0,
            runs: Vec::new(),
            merges: 0,
        }
    }

    /// Adds a record; writes a run if the budget is exceeded.
    ///
    /// # Errors
    /// If a run cannot be written: names its file.
    pub fn push(&mut self, record: T) -> Result<()> {
        self.bytes += record.weight();
        self.records.push(record);
        if self.bytes > self.budget { self.spill() } else { Ok(()) }
    }

    /// Writes the records in memory to a new run.
    fn spill(&mut self) -> Result<()> {
        let path = self.prefix.with_extension(format!("{}-{}.run", self.merges, self.runs.len()));
        let failed = || format!("cannot write {}", path.display());
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).with_context(failed)?;
        }
        let mut file = BufWriter::with_capacity(1 << 20, create(&path).with_context(failed)?);
        self.sort();
        let (mut buffer, records) = (Vec::new(), self.records.len() as u64);
        for record in self.records.drain(..) {
            buffer = write(&record, buffer, &mut file).with_context(failed)?;
        }
        file.flush().with_context(failed)?;
        self.runs.push(Run { path, records });
        self.bytes = 0;
        if self.runs.len() >= MOST_RUNS { self.merge() } else { Ok(()) }
    }

    /// Merges all runs into one: each run costs an open file and a buffer while records are
    /// returned.
    fn merge(&mut self) -> Result<()> {
        self.merges += 1;
        let path = self.prefix.with_extension(format!("merged{}.run", self.merges));
        let failed = || format!("cannot write {}", path.display());
        let mut file = BufWriter::with_capacity(1 << 20, create(&path).with_context(failed)?);
        let mut sorted = Sorted::<T>::open(Vec::new(), std::mem::take(&mut self.runs))?;
        let (mut buffer, mut records) = (Vec::new(), 0);
        while let Some(record) = sorted.record()? {
            buffer = write(&record, buffer, &mut file).with_context(failed)?;
            records += 1;
        }
        file.flush().with_context(failed)?;
        self.runs.push(Run { path, records });
        Ok(())
    }

    fn sort(&mut self) {
        self.records.sort_unstable_by_key(T::key);
    }

    /// Returns all records in order. The runs are removed when [`Sorted`] is dropped.
    ///
    /// # Errors
    /// If a run cannot be read: names its file.
    pub fn sorted(mut self) -> Result<Sorted<T>> {
        self.sort();
        Sorted::open(std::mem::take(&mut self.records), std::mem::take(&mut self.runs))
    }
}

/// Writes the length of a record and the record; returns the buffer, empty.
fn write<T: Serialize>(record: &T, buffer: Vec<u8>, file: &mut impl Write) -> std::io::Result<Vec<u8>> {
    let mut buffer = postcard::to_extend(record, buffer).map_err(std::io::Error::other)?;
    let length = u32::try_from(buffer.len()).map_err(|_| std::io::Error::other("a record has 4 GiB or more"))?;
    file.write_all(&length.to_le_bytes())?;
    file.write_all(&buffer)?;
    buffer.clear();
    Ok(buffer)
}

/// Records in the order of their keys: see [`ExternalSort::sorted`].
pub struct Sorted<T> {
    /// The next record of each source; `None` at its end.
    heads: Vec<Option<T>>,
    sources: Vec<SortedSource<T>>,
    runs: Vec<Run>,
}

/// Sorted records: the ones that stayed in memory, or a run.
enum SortedSource<T> {
    Memory(std::vec::IntoIter<T>),
    Run {
        file: BufReader<File>,
        path: PathBuf,
        /// The records that are not read yet.
        left: u64,
    },
}

impl<T: Sortable> SortedSource<T> {
    fn next(&mut self) -> Result<Option<T>> {
        match self {
            SortedSource::Memory(records) => Ok(records.next()),
            SortedSource::Run { left: 0, .. } => Ok(None),
            SortedSource::Run { file, path, left } => {
                *left -= 1;
                let mut read = || {
                    let mut length = [0; 4];
                    file.read_exact(&mut length)?;
                    let mut bytes = vec![0; u32::from_le_bytes(length) as usize];
                    file.read_exact(&mut bytes)?;
                    Ok(bytes)
                };
                let bytes = read().map_err(|error| unread(error, path))?;
                postcard::from_bytes(&bytes).map(Some).with_context(|| damaged(path))
            }
        }
    }
}

impl<T: Sortable> Sorted<T> {
    fn open(records: Vec<T>, runs: Vec<Run>) -> Result<Sorted<T>> {
        let mut sorted = Sorted { heads: Vec::new(), sources: vec![SortedSource::Memory(records.into_iter())], runs };
        for Run { path, records } in &sorted.runs {
            let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
            let file = BufReader::with_capacity(1 << 18, file);
            sorted.sources.push(SortedSource::Run { file, path: path.clone(), left: *records });
        }
        for source in &mut sorted.sources {
            sorted.heads.push(source.next()?);
        }
        Ok(sorted)
    }

    /// Returns the next record; `None` at the end.
    ///
    /// # Errors
    /// If a run cannot be read, or is damaged: names its file.
    pub fn record(&mut self) -> Result<Option<T>> {
        // At most 65 sources: a linear search for the smallest head is faster than a heap.
        let heads = self.heads.iter().enumerate();
        let smallest = heads.filter_map(|(source, head)| Some((head.as_ref()?.key(), source))).min();
        let Some((_, source)) = smallest else { return Ok(None) };
        let next = self.sources[source].next()?;
        Ok(std::mem::replace(&mut self.heads[source], next))
    }
}

impl<T> Drop for Sorted<T> {
    fn drop(&mut self) {
        for run in &self.runs {
            // A run that cannot be removed now is removed when the week starts again, or with the
            // week's folder.
            let _ = std::fs::remove_file(&run.path);
        }
    }
}

/// The error of a run that cannot be read at `path`, or ends too early.
pub(super) fn unread(error: std::io::Error, path: &Path) -> anyhow::Error {
    let text = match error.kind() {
        std::io::ErrorKind::UnexpectedEof => damaged(path),
        _ => format!("cannot read {}", path.display()),
    };
    anyhow::Error::new(error).context(text)
}

/// A run is read by the program that wrote it a moment before.
fn damaged(path: &Path) -> String {
    format!("{} was changed while it was in use: check its disk, and give the command again", path.display())
}

/// Makes a file for a run, which only this user may read: it is not a part of the store.
pub(super) fn create(path: &Path) -> std::io::Result<File> {
    File::options().write(true).create(true).truncate(true).mode(0o600).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::mix;

    /// A record with what makes records differ in size: lists and texts.
    #[derive(Debug, serde::Serialize, serde::Deserialize)]
    struct SizedRecord {
        url: String,
        ordinal: u64,
        title: Option<String>,
        features: Vec<u16>,
        links: Vec<String>,
    }

    impl Sortable for SizedRecord {
        type Key = (String, u64);

        fn key(&self) -> (String, u64) {
            (self.url.clone(), self.ordinal)
        }

        fn weight(&self) -> usize {
            let links: usize = self.links.iter().map(|link| size_of::<String>() + link.len()).sum();
            size_of::<SizedRecord>() + self.url.len() + 2 * self.features.len() + links
        }
    }

    fn capture(i: u64) -> SizedRecord {
        SizedRecord {
            url: format!("http://h/{}", mix(i) % 500),
            ordinal: i,
            title: i.is_multiple_of(2).then(|| format!("Page {i}")),
            features: vec![i as u16; 84],
            links: std::iter::repeat_n("http://h/".to_owned(), (i % 5) as usize).collect(),
        }
    }

    fn sorted(budget: u64) -> (Vec<String>, usize) {
        let folder = tempfile::tempdir().unwrap();
        let mut sort = ExternalSort::new(&folder.path().join("spill/wave"), budget);
        (0..1000).for_each(|i| sort.push(capture(i)).unwrap());
        let runs = sort.runs.len();
        let mut sorted = sort.sorted().unwrap();
        let mut all = Vec::new();
        while let Some(capture) = sorted.record().unwrap() {
            all.push(format!("{capture:?}"));
        }
        drop(sorted);
        let left = std::fs::read_dir(folder.path().join("spill")).map_or(0, |files| files.count());
        assert_eq!(left, 0, "runs are removed");
        (all, runs)
    }

    #[test]
    fn the_order_does_not_depend_on_memory() {
        let (in_memory, runs) = sorted(u64::MAX);
        assert_eq!((runs, in_memory.len()), (0, 1000));
        // A few runs; and then enough that they were merged.
        for (budget, least, most) in [(50_000, 5, 60), (2_000, 1, 64)] {
            let (spilled, runs) = sorted(budget);
            assert!((least..=most).contains(&runs), "{runs}");
            assert_eq!(spilled, in_memory);
        }
    }
    #[test]
    fn a_run_that_is_cut_is_named_wherever_it_is_cut() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("records.0-0.run");
        let made = || {
            let mut sort = ExternalSort::new(&folder.path().join("records"), 600);
            (0..3).for_each(|i| sort.push(capture(i)).unwrap());
            assert_eq!(sort.runs.len(), 1);
            sort
        };
        drop(made());
        let bytes = std::fs::read(&path).unwrap();
        for cut in 0..bytes.len() {
            let sort = made();
            std::fs::write(&path, &bytes[..cut]).unwrap();
            let read = |mut sorted: Sorted<SizedRecord>| {
                while sorted.record()?.is_some() {}
                Ok(())
            };
            let error = sort.sorted().and_then(read).unwrap_err();
            assert!(format!("{error:#}").contains("records.0-0.run was changed while"), "{cut}: {error:#}");
        }
    }
}
