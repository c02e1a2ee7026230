//! A column of fixed-size values as it lies in a Parquet file, piece by piece or value by value: what
//! [`Writer`](super::Writer) makes of columns that it neither compresses nor encodes is its own memory format.
//!
//! Nothing is decoded, and nothing is copied but once, from the file to memory that is used again: reading is a third as
//! long as through record batches, most of which is spent on fresh pages of memory. Pieces and single values are read
//! where they lie: the file's own index says where pages begin.

use std::cell::RefCell;
use std::fs::File;
use std::ops::Deref;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use parquet::basic::{Compression, Encoding, Type};
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader};

/// One column, whose values are some words each.
pub struct PlainColumn {
    path: PathBuf,
    file: File,
    /// Words of a value.
    width: usize,
    /// The first row of each page, and where its values begin in the file.
    pages: Vec<(u64, u64)>,
    rows: u64,
}

/// Bytes of a word.
const WORD: u64 = 8;
/// Bytes between two wanted values that are read with them, and bytes that are read at once: a call costs as much as some
/// thousand bytes.
const GAP: u64 = 4 << 10;
const SPAN: u64 = 256 << 10;

impl PlainColumn {
    /// Opens the named column, whose values have `width` words each, of the file at `path`.
    ///
    /// # Errors
    /// Names the file that cannot be opened, was not written by this program, or has no such column.
    pub fn open(path: &Path, name: &'static str, width: usize) -> Result<PlainColumn> {
        let failed = || format!("cannot read {}", path.display());
        let file = File::open(path).with_context(failed)?;
        let mut reader = ParquetMetaDataReader::new().with_page_index_policy(PageIndexPolicy::Optional);
        reader.try_parse(&file).with_context(failed)?;
        let metadata = reader.finish().with_context(failed)?;
        let column = column(&metadata, path, name, width * WORD as usize)?;
        let (mut pages, mut rows, size_of_value) = (Vec::new(), 0u64, width as u64 * WORD);
        for (number, group) in metadata.row_groups().iter().enumerate() {
            let described = group.column(column);
            let plain = described.compression() == Compression::UNCOMPRESSED
                && described.dictionary_page_offset().is_none()
                && described.encodings().all(|encoding| matches!(encoding, Encoding::PLAIN | Encoding::RLE));
            let index = metadata.page_index_for_row_group(number);
            let locations = index.page_locations(column).filter(|_| plain).with_context(|| {
                format!("{}: the column `{name}` is not plain: this program did not write it", path.display())
            })?;
            let of_group = u64::try_from(group.num_rows()).with_context(failed)?;
            let of_pages = locations.iter().map(|page| {
                [page.first_row_index, page.offset, page.compressed_page_size.into()].map(|n: i64| n as u64)
            });
            let starts = page_starts(&of_pages.collect::<Vec<_>>(), of_group, size_of_value);
            let starts = starts.with_context(|| format!("{} is damaged", path.display()))?;
            pages.extend(starts.into_iter().map(|(first, start)| (rows + first, start)));
            rows = rows.checked_add(of_group).with_context(failed)?;
        }
        Ok(PlainColumn { path: path.to_owned(), file, width, pages, rows })
    }

    /// How many values.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// The values of `count` rows from `first` on, one after the other.
    ///
    /// # Errors
    /// Names the file that cannot be read, or that has no such rows.
    pub fn read(&self, first: u64, count: usize) -> Result<Words> {
        let mut words = Words::new(count * self.width);
        let mut rest = &mut words.words[..count * self.width];
        let mut row = first;
        while !rest.is_empty() {
            let (start, end, offset) = self.page(row)?;
            let here = rest.len().min((end - row) as usize * self.width);
            let (now, later) = rest.split_at_mut(here);
            self.read_words(now, offset + (row - start) * self.width as u64 * WORD)?;
            (rest, row) = (later, end);
        }
        Ok(words)
    }

    /// The page of a row: its first row, the first row behind it, and where its values begin.
    fn page(&self, row: u64) -> Result<(u64, u64, u64)> {
        ensure!(row < self.rows, "{} has {} rows, the row {row} was expected", self.path.display(), self.rows);
        let page = self.page_of(row);
        let (start, end) = self.bounds(page);
        Ok((start, end, self.pages[page].1))
    }

    fn read_words(&self, words: &mut [u64], at: u64) -> Result<()> {
        let read = self.file.read_exact_at(bytemuck::cast_slice_mut(words), at);
        read.with_context(|| format!("cannot read {}", self.path.display()))?;
        words.iter_mut().for_each(|word| *word = u64::from_le(*word));
        Ok(())
    }

    /// Calls `each` with the values of some rows, which ascend, in their order.
    ///
    /// # Errors
    /// Names the file that cannot be read, or that has no such row.
    pub fn each(&self, rows: &[u64], mut each: impl FnMut(&[u64])) -> Result<()> {
        let size = self.width as u64 * WORD;
        let mut words = Vec::new();
        let mut rest = rows;
        while let Some(first) = rest.first() {
            let (start, end, offset) = self.page(*first)?;
            let near = |pair: &[u64]| (pair[1] - pair[0]) * size <= GAP && (pair[1] - first) * size < SPAN;
            let together = 1 + rest.windows(2).take_while(|pair| pair[1] < end && near(pair)).count();
            let (these, others) = rest.split_at(together);
            words.resize((these[together - 1] - first + 1) as usize * self.width, 0);
            self.read_words(&mut words, offset + (first - start) * size)?;
            for row in these {
                each(&words[(row - first) as usize * self.width..][..self.width]);
            }
            rest = others;
        }
        Ok(())
    }

    /// The first row of each page.
    pub(super) fn starts(&self) -> impl ExactSizeIterator<Item = u64> {
        self.pages.iter().map(|(start, _)| *start)
    }

    /// The number of the page of a row that there is.
    pub(super) fn page_of(&self, row: u64) -> usize {
        // The first page begins with the first row: see `page_starts`.
        self.pages.partition_point(|(start, _)| *start <= row).saturating_sub(1)
    }

    /// The first row of a page, and the first one behind it.
    pub(super) fn bounds(&self, page: usize) -> (u64, u64) {
        (self.pages[page].0, self.pages.get(page + 1).map_or(self.rows, |(next, _)| *next))
    }

    /// Says that the file is damaged unless its values ascend.
    pub(super) fn check(&self, ascends: bool) -> Result<()> {
        ensure!(ascends, "{} is damaged: the column does not ascend", self.path.display());
        Ok(())
    }
}

/// Where the values of each page of a row group begin in the file, behind the first row of each. Of the pages, their first
/// rows, offsets and sizes are given; the group has so many `rows`, of `size` bytes each. `None` where that cannot be.
fn page_starts(pages: &[[u64; 3]], rows: u64, size: u64) -> Option<Vec<(u64, u64)>> {
    // Every row is in a page.
    if rows > 0 && pages.first().is_none_or(|[first, ..]| *first != 0) {
        return None;
    }
    let ends = pages.iter().map(|[first, ..]| *first).skip(1).chain([rows]);
    let start = |([first, offset, length], end): (&[u64; 3], u64)| {
        // The values are the end of the page: they stand alone behind its header.
        let values = end.checked_sub(*first)?.checked_mul(size)?;
        Some((*first, offset.checked_add(length.checked_sub(values)?)?))
    };
    pages.iter().zip(ends).map(start).collect()
}

/// The number of the named column, whose values have `width` bytes each.
fn column(metadata: &ParquetMetaData, path: &Path, name: &str, width: usize) -> Result<usize> {
    let schema = metadata.file_metadata().schema_descr();
    let column = (0..schema.num_columns()).find(|at| schema.column(*at).name() == name);
    let column = column.with_context(|| format!("{} has no column `{name}`", path.display()))?;
    let described = schema.column(column);
    let size = match described.physical_type() {
        Type::FIXED_LEN_BYTE_ARRAY => usize::try_from(described.type_length()).unwrap_or(0),
        Type::INT64 => 8,
        _ => 0,
    };
    let fits = size == width && described.max_def_level() == 0;
    ensure!(fits, "{} holds another column `{name}` than this store has", path.display());
    Ok(column)
}

/// Some words, in memory that goes back to its thread's pool.
#[derive(Default)]
pub struct Words {
    words: Vec<u64>,
    count: usize,
}

/// Pieces of memory that a thread keeps.
const KEPT: usize = 4;

thread_local! {
    static FREE: RefCell<Vec<Vec<u64>>> = const { RefCell::new(Vec::new()) };
}

impl Words {
    /// So many words, of any content.
    fn new(count: usize) -> Words {
        let mut words = FREE.with(|free| free.borrow_mut().pop()).unwrap_or_default();
        words.resize(count.max(words.len()), 0);
        Words { words, count }
    }

    /// So many numbers, from one on.
    pub(super) fn counting(first: u64, count: usize) -> Words {
        let mut counting = Words::new(count);
        counting.words[..count].iter_mut().zip(first..).for_each(|(to, number)| *to = number);
        counting
    }
}

impl Deref for Words {
    type Target = [u64];

    fn deref(&self) -> &[u64] {
        &self.words[..self.count]
    }
}

impl Drop for Words {
    fn drop(&mut self) {
        let words = std::mem::take(&mut self.words);
        // At the end of a thread there is no pool any more.
        let _ = FREE.try_with(|free| {
            let mut free = free.borrow_mut();
            if words.capacity() > 0 && free.len() < KEPT {
                free.push(words);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::{FeatureRow, UrlRow, Writer};

    #[test]
    fn every_value_comes_back_piece_by_piece() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("features.parquet");
        let mut writer: Writer<FeatureRow> = Writer::create(&path).unwrap();
        let rows = 300_000u64;
        for row in 0..rows {
            let supershingles = (0..6).flat_map(|column| (row * 6 + column).to_le_bytes()).collect();
            writer.push(FeatureRow { doc: row as i64, supershingles, features: vec![0; 4] }).unwrap();
        }
        writer.finish().unwrap();
        let column = PlainColumn::open(&path, "supershingles", 6).unwrap();
        assert!(column.rows() == rows && column.pages.len() > 10);
        // Within pages, to their ends, over one and over several of them.
        for size in [1000, 7777, 20_000, 90_000, rows] {
            let mut held = Vec::new();
            for first in (0..rows).step_by(size as usize) {
                let end = rows.min(first + size);
                let piece = column.read(first, (end - first) as usize).unwrap();
                assert!(piece.iter().copied().eq(6 * first..6 * end), "{size} from {first}");
                // A piece that is held is not written over.
                held.push((first, piece));
            }
            assert!(held.iter().all(|(first, piece)| piece[0] == 6 * first));
        }
        assert!(column.read(rows, 0).unwrap().is_empty());
        for (first, count) in [(rows, 1), (rows - 1, 2), (u64::MAX, 1)] {
            let error = column.read(first, count).err().unwrap().to_string();
            assert!(error.contains("features.parquet") && error.contains("300000"), "{error}");
        }
    }

    #[test]
    fn single_values_are_those_of_their_rows() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("features.parquet");
        let mut writer: Writer<FeatureRow> = Writer::create(&path).unwrap();
        let count = 300_000u64;
        for row in 0..count {
            let supershingles = (0..6).flat_map(|column| (row * 6 + column).to_le_bytes()).collect();
            writer.push(FeatureRow { doc: row as i64, supershingles, features: vec![0; 4] }).unwrap();
        }
        writer.finish().unwrap();
        let [vectors, docs] =
            [("supershingles", 6), ("doc", 1)].map(|(name, width)| PlainColumn::open(&path, name, width).unwrap());
        // One alone, some near each other, some far; at the ends of pages and of row groups.
        for step in [1, 2, 7, 90, 1000, 19_999, 131_071, 299_999] {
            let rows: Vec<u64> = (0..count).step_by(step).collect();
            let (mut found, mut of_docs) = (Vec::new(), Vec::new());
            vectors.each(&rows, |value| found.push((value.len(), value[0]))).unwrap();
            docs.each(&rows, |value| of_docs.push((value.len(), value[0]))).unwrap();
            assert!(found.iter().copied().eq(rows.iter().map(|row| (6, 6 * row))), "every {step}");
            assert!(of_docs.iter().copied().eq(rows.iter().map(|row| (1, *row))), "every {step}");
        }
        vectors.each(&[], |_| panic!("no row was asked for")).unwrap();
        let error = vectors.each(&[count], |_| panic!("there is no such row")).unwrap_err().to_string();
        assert!(error.contains("features.parquet") && error.contains("300000"), "{error}");
        // Dictionaries and compressed pages are not what they seem.
        let path = folder.path().join("urls.parquet");
        let mut writer: Writer<UrlRow> = Writer::create(&path).unwrap();
        writer.push(UrlRow { doc: 1, hash: [0; 16], url: "http://h/".into() }).unwrap();
        writer.finish().unwrap();
        let error = PlainColumn::open(&path, "doc", 1).err().unwrap().to_string();
        assert!(error.contains("is not plain"), "{error}");
    }

    #[test]
    fn an_index_that_cannot_be_is_refused() {
        let [a, b] = [[0, 100, 30 + 7 * 8], [7, 300, 20 + 3 * 8]];
        assert_eq!(page_starts(&[a, b], 10, 8), Some(vec![(0, 130), (7, 320)]));
        assert_eq!(page_starts(&[], 0, 8), Some(vec![]));
        let huge = u64::MAX - 3;
        for (pages, rows) in [
            (vec![], 10),
            (vec![b], 10),
            (vec![a, b], 6),
            (vec![a, b], 13),
            (vec![b, a], 10),
            (vec![a, [11, 300, 500]], 10),
            (vec![a, [huge, 300, 500]], 10),
            (vec![a, [7, huge, 500]], 10),
            (vec![a, b], huge),
            (vec![a], 1 << 60),
        ] {
            assert_eq!(page_starts(&pages, rows, 8), None, "{pages:?} of {rows} rows");
        }
    }

    #[test]
    fn a_column_without_rows_has_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("features.parquet");
        let writer: Writer<FeatureRow> = Writer::create(&path).unwrap();
        writer.finish().unwrap();
        let column = PlainColumn::open(&path, "doc", 1).unwrap();
        assert_eq!(column.rows(), 0);
        assert!(column.each(&[0], |_| panic!("there is no row")).is_err());
    }

    #[test]
    fn another_column_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("urls.parquet");
        let mut writer: Writer<UrlRow> = Writer::create(&path).unwrap();
        writer.push(UrlRow { doc: 1, hash: [0; 16], url: "http://h/".into() }).unwrap();
        writer.finish().unwrap();
        for (name, width, wanted) in
            [("hash", 6, "another column"), ("url", 2, "another column"), ("supershingles", 6, "no column")]
        {
            let error = PlainColumn::open(&path, name, width).err().unwrap().to_string();
            assert!(error.contains(wanted), "{error}");
        }
        assert_eq!(PlainColumn::open(&path, "hash", 2).unwrap().read(0, 1).unwrap().len(), 2);
    }
}
