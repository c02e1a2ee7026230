//! Rows of three numbers in a file of their own, sorted: what is looked up by its first numbers,
//! however many rows there are.
//!
//! They are sorted in bounded memory ([`ExternalSort`]), and a lookup is a binary search that reads
//! some numbers of the file. So memory does not depend on the number of rows.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{BufWriter, Write as _};
use std::ops::Range;
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use crate::records::short_hash;
use crate::structures::{ExternalSort, Sortable};

/// A row.
pub(super) type IndexRow = [u64; 3];

/// The bytes of a row in the file.
const ROW: u64 = size_of::<IndexRow>() as u64;

/// A folder for files whose names are needed until this is dropped. Files that are open stay.
pub(super) struct Scratch(PathBuf);

impl Scratch {
    /// Makes the folder, which only this user may read, where the system has its temporary files.
    ///
    /// # Errors
    /// If it cannot be made.
    pub(super) fn new() -> Result<Scratch> {
        let name = short_hash(format!("{} {}", std::process::id(), jiff::Timestamp::now()).as_bytes());
        let path = std::env::temp_dir().join(format!("nigh-browse-{name}"));
        let failed = || format!("cannot make {}: set TMPDIR to a folder with room", path.display());
        DirBuilder::new().mode(0o700).create(&path).with_context(failed)?;
        Ok(Scratch(path))
    }

    /// The path of a file in it.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // If this fails, the folder stays until the system cleans its temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A row that is sorted.
#[derive(Serialize, Deserialize)]
struct SortableRow(IndexRow);

impl Sortable for SortableRow {
    type Key = IndexRow;

    fn key(&self) -> IndexRow {
        self.0
    }

    fn weight(&self) -> usize {
        size_of::<IndexRow>()
    }
}

/// Rows that are being collected.
pub(super) struct RowSorter {
    sort: ExternalSort<SortableRow>,
    path: PathBuf,
}

impl RowSorter {
    /// Collects rows, of which about `budget` bytes are in memory.
    pub(super) fn new(scratch: &Scratch, name: &str, budget: u64) -> RowSorter {
        let path = scratch.file(name);
        RowSorter { sort: ExternalSort::new(&path, budget), path }
    }

    /// Adds a row.
    ///
    /// # Errors
    /// If the disk is full.
    pub(super) fn push(&mut self, row: IndexRow) -> Result<()> {
        self.sort.push(SortableRow(row))
    }

    /// Writes the rows in their order.
    ///
    /// # Errors
    /// As [`RowSorter::push`].
    pub(super) fn finish(self) -> Result<SortedRowFile> {
        let path = self.path;
        let failed = || format!("cannot write {}", path.display());
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path);
        let mut to = BufWriter::with_capacity(1 << 20, file.with_context(failed)?);
        let (mut sorted, mut rows) = (self.sort.sorted()?, 0);
        while let Some(SortableRow(row)) = sorted.record()? {
            row.iter().try_for_each(|word| to.write_all(&word.to_le_bytes())).with_context(failed)?;
            rows += 1;
        }
        let file = to.into_inner().map_err(std::io::IntoInnerError::into_error).with_context(failed)?;
        Ok(SortedRowFile { file, rows, path })
    }
}

/// Sorted rows in a file.
pub(super) struct SortedRowFile {
    file: File,
    rows: u64,
    path: PathBuf,
}

impl SortedRowFile {
    /// The places of the rows that begin with `first`.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub(super) fn range<const N: usize>(&self, first: [u64; N]) -> Result<Range<u64>> {
        let begin = self.partition_point(|row| row[..N] < first[..])?;
        let end = self.partition_point(|row| row[..N] <= first[..])?;
        Ok(begin..end)
    }

    /// The number of rows at the front for which `is_before` holds.
    fn partition_point(&self, is_before: impl Fn(&IndexRow) -> bool) -> Result<u64> {
        let (mut low, mut high) = (0, self.rows);
        while low < high {
            let middle = low + (high - low) / 2;
            let row = self.read(middle..middle + 1)?;
            if row.first().is_some_and(&is_before) { low = middle + 1 } else { high = middle }
        }
        Ok(low)
    }

    /// The rows at these places; fewer if the file has fewer.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub(super) fn read(&self, places: Range<u64>) -> Result<Vec<IndexRow>> {
        let places = places.start.min(self.rows)..places.end.min(self.rows);
        let mut bytes = vec![0; (places.end.saturating_sub(places.start) * ROW) as usize];
        self.file.read_exact_at(&mut bytes, places.start * ROW).with_context(|| self.failed())?;
        let (words, _) = bytes.as_chunks::<8>();
        let (rows, _) = words.as_chunks::<3>();
        Ok(rows.iter().map(|row| row.map(u64::from_le_bytes)).collect())
    }

    fn failed(&self) -> String {
        format!("cannot read {}", Path::display(&self.path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::mix;

    #[test]
    fn rows_are_found_by_their_first_numbers() {
        let scratch = Scratch::new().unwrap();
        let folder = scratch.0.clone();
        for (number, count) in [0, 1, 5, 3000].into_iter().enumerate() {
            // Some are sorted in runs.
            let mut sorter = RowSorter::new(&scratch, &format!("rows{number}"), 20_000);
            let mut rows: Vec<IndexRow> = (0..count).map(|n| [mix(n) % 40, mix(n << 20) % 7, n]).collect();
            rows.iter().try_for_each(|row| sorter.push(*row)).unwrap();
            rows.sort_unstable();
            let sorted = sorter.finish().unwrap();
            assert_eq!(sorted.read(0..u64::MAX).unwrap(), rows);
            for first in 0..41 {
                let of_first = sorted.read(sorted.range([first]).unwrap()).unwrap();
                assert!(of_first.iter().eq(rows.iter().filter(|row| row[0] == first)), "{first} of {count}");
                for second in 0..8 {
                    let found = sorted.read(sorted.range([first, second]).unwrap()).unwrap();
                    assert!(found.iter().eq(rows.iter().filter(|row| row[..2] == [first, second])));
                }
            }
        }
        drop(scratch);
        assert!(!folder.exists());
    }
}
