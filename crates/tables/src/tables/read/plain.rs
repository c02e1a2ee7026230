//! A plain column: fixed-size values that lie in the Parquet file as they do in memory, read by row
//! without decoding.
//!
//! [`Writer`](crate::tables::Writer) writes some columns without compression or encoding
//! ([`ColumnSpec::random`](crate::tables::ColumnSpec::random) and
//! [`ColumnSpec::unique`](crate::tables::ColumnSpec::unique)). The file's page index gives the
//! place of each Parquet page, and thereby of each value.
//!
//! Cost: one copy, from the file to reused memory. Reading takes a third of the time of record
//! batches, which spend most of it on fresh pages of memory. Limit: the file must be of this
//! program, and values have whole 64-bit words.

use std::cell::RefCell;
use std::ops::{Deref, Range};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use parquet::basic::{Compression, Encoding, Type};
use parquet::file::metadata::ParquetMetaData;

use super::guard::{damaged, decoded};
use super::row_range::{OpenRange, RowRange};
use super::shared_file::SharedFile;

/// A plain column of a file or of some rows of it; each value has the same number of 64-bit words.
/// Rows count from the first of these.
pub struct PlainColumn {
    path: PathBuf,
    file: SharedFile,
    /// Words of a value.
    width: usize,
    /// The first row of each Parquet page, and where its values begin in the file. Of the first
    /// page, only the values of these rows count.
    pages: Vec<(u64, u64)>,
    rows: u64,
}

/// Bytes of a word.
const WORD: u64 = 8;
/// Two wanted values at most this far apart, in bytes, are fetched by one read: a call costs as
/// much as some thousand bytes.
const GAP: u64 = 4 << 10;
/// The most bytes that such a read fetches.
const SPAN: u64 = 256 << 10;

impl PlainColumn {
    /// Opens the named column, whose values have `width` words each, of `rows`, a path or some
    /// rows of a file.
    ///
    /// # Errors
    /// Names the file that cannot be opened, was not written by this program, or lacks the column
    /// or the rows.
    pub fn open(rows: impl Into<RowRange>, name: &'static str, width: usize) -> Result<PlainColumn> {
        let of_file = rows.into();
        decoded(of_file.path(), || PlainColumn::open_rows(&of_file, name, width))
    }

    fn open_rows(of_file: &RowRange, name: &'static str, width: usize) -> Result<PlainColumn> {
        let opened = of_file.open()?;
        let (groups, before) = opened.groups();
        let OpenRange { file, footer, rows: range } = opened;
        let (path, metadata) = (of_file.path(), footer.metadata());
        let failed = || format!("cannot read {}", path.display());
        let column = column(metadata, path, name, width * WORD as usize)?;
        let (mut pages, mut rows, size_of_value) = (Vec::new(), 0u64, width as u64 * WORD);
        for number in groups {
            let group = metadata.row_group(number);
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
            let starts = starts.with_context(|| damaged(path))?;
            pages.extend(starts.into_iter().map(|(first, start)| (rows + first, start)));
            rows = rows.checked_add(of_group).with_context(failed)?;
        }
        let rows = range.end - range.start;
        Ok(PlainColumn {
            path: path.to_owned(),
            file,
            width,
            pages: cut(pages, before..before + rows, size_of_value),
            rows,
        })
    }

    /// The number of rows, which is the number of values.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Reads the values of `count` rows, beginning with the row `first`: `count` times the width in
    /// words.
    ///
    /// # Errors
    /// Names the file that cannot be read, or that ends before the last of these rows.
    pub fn read(&self, first: u64, count: usize) -> Result<WordSlice> {
        let mut words = WordSlice::new(count * self.width);
        let mut rest = &mut words.words[..count * self.width];
        let mut row = first;
        while !rest.is_empty() {
            let (start, end, offset) = self.page(row)?;
            let in_page = rest.len().min((end - row) as usize * self.width);
            let (now, later) = rest.split_at_mut(in_page);
            self.read_words(now, offset + (row - start) * self.width as u64 * WORD)?;
            (rest, row) = (later, end);
        }
        Ok(words)
    }

    /// The page of a row: its first row, the first row after it, and where its values begin in the
    /// file.
    fn page(&self, row: u64) -> Result<(u64, u64, u64)> {
        ensure!(row < self.rows, "{} has {} rows, but row {row} was expected", self.path.display(), self.rows);
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

    /// Calls `each` with the value of each of some ascending rows, in their order. Near rows are
    /// fetched by one read.
    ///
    /// # Errors
    /// Names the file that cannot be read, or that has fewer rows.
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
    pub(crate) fn starts(&self) -> impl ExactSizeIterator<Item = u64> {
        self.pages.iter().map(|(start, _)| *start)
    }

    /// The number of the page that holds a row of the column.
    pub(crate) fn page_of(&self, row: u64) -> usize {
        // The first page begins with the first row: see `page_starts`.
        self.pages.partition_point(|(start, _)| *start <= row).saturating_sub(1)
    }

    /// The first row of a page, and the first row after the page.
    pub(crate) fn bounds(&self, page: usize) -> (u64, u64) {
        (self.pages[page].0, self.pages.get(page + 1).map_or(self.rows, |(next, _)| *next))
    }

    /// Fails with the name of the damaged file unless `ascends`.
    pub(crate) fn check(&self, ascends: bool) -> Result<()> {
        ensure!(ascends, "{} is damaged: the column does not ascend", self.path.display());
        Ok(())
    }
}

/// The first row of each page of a row group, with the place in the file where the page's values
/// begin.
///
/// A page is given as first row, offset and length in bytes. The row group has `rows` rows of
/// `size` bytes each. `None` if these numbers contradict each other.
fn page_starts(pages: &[[u64; 3]], rows: u64, size: u64) -> Option<Vec<(u64, u64)>> {
    // Every row is in a page.
    if rows > 0 && pages.first().is_none_or(|[first, ..]| *first != 0) {
        return None;
    }
    let ends = pages.iter().map(|[first, ..]| *first).skip(1).chain([rows]);
    let start = |([first, offset, length], end): (&[u64; 3], u64)| {
        // The values fill the page after its header, and end with it.
        let values = end.checked_sub(*first)?.checked_mul(size)?;
        length.checked_sub(values)?;
        Some((*first, offset.checked_add(*length)? - values))
    };
    pages.iter().zip(ends).map(start).collect()
}

/// The pages that have some rows, given as first row and place, and their rows counted from the
/// first of these.
fn cut(pages: Vec<(u64, u64)>, rows: Range<u64>, size: u64) -> Vec<(u64, u64)> {
    let first = pages.partition_point(|(start, _)| *start <= rows.start).saturating_sub(1);
    let with_rows = pages.into_iter().skip(first).take_while(|(start, _)| *start < rows.end && !rows.is_empty());
    let from_first = |(start, place): (u64, u64)| {
        let passed = rows.start.saturating_sub(start);
        (start + passed - rows.start, place + passed * size)
    };
    with_rows.map(from_first).collect()
}

/// The index of the named column in the schema; its values must have `width` bytes each and must
/// not be null.
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
    ensure!(fits, "{} has another column `{name}` than this store", path.display());
    Ok(column)
}

/// A slice of 64-bit words whose memory is reused by its thread after it is dropped.
#[derive(Default)]
pub struct WordSlice {
    words: Vec<u64>,
    count: usize,
}

/// The most unused buffers that a thread keeps.
const BUFFERS_KEPT: usize = 4;

thread_local! {
    static FREE: RefCell<Vec<Vec<u64>>> = const { RefCell::new(Vec::new()) };
}

impl WordSlice {
    /// `count` words of unspecified content.
    fn new(count: usize) -> WordSlice {
        let mut words = FREE.with(|free| free.borrow_mut().pop()).unwrap_or_default();
        words.resize(count.max(words.len()), 0);
        WordSlice { words, count }
    }

    /// `count` consecutive numbers, beginning with `first`.
    pub(crate) fn counting(first: u64, count: usize) -> WordSlice {
        let mut words = WordSlice::new(count);
        words.words[..count].iter_mut().zip(first..).for_each(|(word, number)| *word = number);
        words
    }
}

impl Deref for WordSlice {
    type Target = [u64];

    fn deref(&self) -> &[u64] {
        &self.words[..self.count]
    }
}

impl Drop for WordSlice {
    fn drop(&mut self) {
        let words = std::mem::take(&mut self.words);
        // While a thread ends, its pool may be gone already.
        let _ = FREE.try_with(|free| {
            let mut free = free.borrow_mut();
            if words.capacity() > 0 && free.len() < BUFFERS_KEPT {
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
            let supershingles: Vec<u8> = (0..6).flat_map(|column| (row * 6 + column).to_le_bytes()).collect();
            writer.push(FeatureRow::new(row as i64, &supershingles, &[0; 4])).unwrap();
        }
        writer.finish().unwrap();
        let column = PlainColumn::open(&path, "supershingles", 6).unwrap();
        assert!(column.rows() == rows && column.pages.len() > 10);
        // Pieces within a page, up to its end, and over the ends of one or several pages.
        for size in [1000, 7777, 20_000, 90_000, rows] {
            let mut pieces = Vec::new();
            for first in (0..rows).step_by(size as usize) {
                let end = rows.min(first + size);
                let piece = column.read(first, (end - first) as usize).unwrap();
                assert!(piece.iter().copied().eq(6 * first..6 * end), "{size} from {first}");
                // The memory of a piece is not reused while the piece lives.
                pieces.push((first, piece));
            }
            assert!(pieces.iter().all(|(first, piece)| piece[0] == 6 * first));
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
            let supershingles: Vec<u8> = (0..6).flat_map(|column| (row * 6 + column).to_le_bytes()).collect();
            writer.push(FeatureRow::new(row as i64, &supershingles, &[0; 4])).unwrap();
        }
        writer.finish().unwrap();
        let [vectors, docs] =
            [("supershingles", 6), ("doc", 1)].map(|(name, width)| PlainColumn::open(&path, name, width).unwrap());
        // Rows near each other and far apart, up to two rows alone; at the ends of pages and of row
        // groups.
        for step in [1, 2, 7, 90, 1000, 19_999, 131_071, 299_999] {
            let rows: Vec<u64> = (0..count).step_by(step).collect();
            let (mut of_vectors, mut of_docs) = (Vec::new(), Vec::new());
            vectors.each(&rows, |value| of_vectors.push((value.len(), value[0]))).unwrap();
            docs.each(&rows, |value| of_docs.push((value.len(), value[0]))).unwrap();
            assert!(of_vectors.iter().copied().eq(rows.iter().map(|row| (6, 6 * row))), "every {step}");
            assert!(of_docs.iter().copied().eq(rows.iter().map(|row| (1, *row))), "every {step}");
        }
        vectors.each(&[], |_| panic!("no row was asked for")).unwrap();
        let error = vectors.each(&[count], |_| panic!("there is no such row")).unwrap_err().to_string();
        assert!(error.contains("features.parquet") && error.contains("300000"), "{error}");
        // A column that is encoded or compressed is refused: its bytes are not its values.
        let path = folder.path().join("urls.parquet");
        let mut writer: Writer<UrlRow> = Writer::create(&path).unwrap();
        writer.push(UrlRow { doc: 1, hash: [0; 16], url: Some("http://h/"), id: None }).unwrap();
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
        writer.push(UrlRow { doc: 1, hash: [0; 16], url: Some("http://h/"), id: None }).unwrap();
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
