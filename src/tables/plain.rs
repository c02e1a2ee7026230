//! A column of fixed-size values as it lies in a Parquet file, page by page or value by value: what
//! [`Writer`](super::Writer) makes of columns that it neither compresses nor encodes is its own memory format.
//!
//! Nothing is decoded, and nothing is copied but once, from the file to memory that is used again: reading is a third as
//! long as through record batches, most of which is spent on fresh pages of memory. Single values are read where they
//! lie: the file's own index says where pages begin.

use std::cell::RefCell;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use parquet::basic::{Compression, Encoding, Type};
use parquet::column::page::{Page, PageReader};
use parquet::errors::ParquetError;
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader};
use parquet::file::reader::{ChunkReader, FileReader, Length};
use parquet::file::serialized_reader::SerializedFileReader;

/// The pages of one column.
pub struct PlainColumn {
    path: PathBuf,
    name: &'static str,
    file: SerializedFileReader<Pooled>,
    column: usize,
    width: usize,
    /// The row group that is read next.
    group: usize,
    pages: Option<Box<dyn PageReader>>,
}

impl PlainColumn {
    /// Opens the named column, whose values have `width` bytes each, of the file at `path`.
    ///
    /// # Errors
    /// Names the file that cannot be opened, is no Parquet file, or has no such column.
    pub fn open(path: &Path, name: &'static str, width: usize) -> Result<PlainColumn> {
        let failed = || format!("cannot read {}", path.display());
        let file = File::open(path).with_context(failed)?;
        let file = SerializedFileReader::new(Pooled(Arc::new(file))).with_context(failed)?;
        let column = column(file.metadata(), path, name, width)?;
        Ok(PlainColumn { path: path.to_owned(), name, file, column, width, group: 0, pages: None })
    }

    /// The values of the next page, one after the other; `None` at the end.
    ///
    /// # Errors
    /// Names the file where it is damaged, or was not written by this program.
    pub fn page(&mut self) -> Result<Option<Bytes>> {
        let failed = || format!("{} is damaged", self.path.display());
        loop {
            if self.pages.is_none() {
                if self.group == self.file.num_row_groups() {
                    return Ok(None);
                }
                let group = self.file.get_row_group(self.group).with_context(failed)?;
                self.pages = Some(group.get_column_page_reader(self.column).with_context(failed)?);
                self.group += 1;
            }
            let Some(pages) = &mut self.pages else { continue };
            let Some(page) = pages.get_next_page().with_context(failed)? else {
                self.pages = None;
                continue;
            };
            let Page::DataPage { buf, num_values, encoding: Encoding::PLAIN, .. } = page else {
                anyhow::bail!(
                    "{}: the column `{}` is not plain: this program did not write it",
                    self.path.display(),
                    self.name
                );
            };
            ensure!(buf.len() == num_values as usize * self.width, failed());
            return Ok(Some(buf));
        }
    }
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

/// Single values of one column.
pub struct PlainValues {
    path: PathBuf,
    file: File,
    width: u64,
    /// The first row of each page, and where its values begin in the file.
    pages: Vec<(u64, u64)>,
    rows: u64,
}

/// Bytes between two wanted values that are read with them, and bytes that are read at once: a call costs as much as some
/// thousand bytes.
const GAP: u64 = 4 << 10;
const SPAN: u64 = 256 << 10;

impl PlainValues {
    /// Opens the named column, whose values have `width` bytes each, of the file at `path`.
    ///
    /// # Errors
    /// Names the file that cannot be opened, was not written by this program, or has no such column.
    pub fn open(path: &Path, name: &'static str, width: usize) -> Result<PlainValues> {
        let failed = || format!("cannot read {}", path.display());
        let file = File::open(path).with_context(failed)?;
        let mut reader = ParquetMetaDataReader::new().with_page_index_policy(PageIndexPolicy::Optional);
        reader.try_parse(&file).with_context(failed)?;
        let metadata = reader.finish().with_context(failed)?;
        let column = column(&metadata, path, name, width)?;
        let (mut pages, mut rows, width) = (Vec::new(), 0u64, width as u64);
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
            for (at, page) in locations.iter().enumerate() {
                let [first, offset, size] =
                    [page.first_row_index, page.offset, page.compressed_page_size.into()].map(|n: i64| n as u64);
                let end = locations.get(at + 1).map_or(of_group, |next| next.first_row_index as u64);
                // The values are the end of the page: they stand alone behind its header.
                let values = end.checked_sub(first).and_then(|values| values.checked_mul(width));
                let start =
                    values.and_then(|values| size.checked_sub(values)).and_then(|head| offset.checked_add(head));
                pages.push((rows + first, start.with_context(|| format!("{} is damaged", path.display()))?));
            }
            rows += of_group;
        }
        Ok(PlainValues { path: path.to_owned(), file, width, pages, rows })
    }

    /// Calls `each` with the values of some rows, which ascend, in their order.
    ///
    /// # Errors
    /// Names the file that cannot be read, or that has no such row.
    pub fn each(&self, rows: &[u64], mut each: impl FnMut(&[u8])) -> Result<()> {
        let failed = || format!("cannot read {}", self.path.display());
        let mut bytes = Vec::new();
        let mut rest = rows;
        while let Some(first) = rest.first() {
            ensure!(*first < self.rows, "{} has {} rows, the row {first} was expected", self.path.display(), self.rows);
            let page = self.pages.partition_point(|(start, _)| start <= first).checked_sub(1);
            let page = page.with_context(|| format!("{} is damaged", self.path.display()))?;
            let (start, offset) = self.pages[page];
            let end = self.pages.get(page + 1).map_or(self.rows, |(next, _)| *next);
            let near = |pair: &[u64]| (pair[1] - pair[0]) * self.width <= GAP && (pair[1] - first) * self.width < SPAN;
            let together = 1 + rest.windows(2).take_while(|pair| pair[1] < end && near(pair)).count();
            let (these, others) = rest.split_at(together);
            let length = (these[together - 1] - first + 1) * self.width;
            bytes.resize(length as usize, 0);
            self.file.read_exact_at(&mut bytes, offset + (first - start) * self.width).with_context(failed)?;
            for row in these {
                let at = ((row - first) * self.width) as usize;
                each(&bytes[at..at + self.width as usize]);
            }
            rest = others;
        }
        Ok(())
    }

    /// The rows of the wanted ones of the values, words that ascend in the file as `wanted` does: each with its place in
    /// `wanted`. Only pages that may hold some are read.
    ///
    /// # Errors
    /// Names the file that cannot be read, or whose values do not ascend.
    pub fn find(&self, wanted: &[u64]) -> Result<Vec<(usize, u64)>> {
        let word = |value: &[u8]| value.first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
        let damaged = || format!("{} is damaged: the column does not ascend", self.path.display());
        let starts: Vec<u64> = self.pages.iter().map(|(start, _)| *start).collect();
        let mut firsts = Vec::with_capacity(starts.len());
        self.each(&starts, |value| firsts.push(word(value)))?;
        ensure!(firsts.is_sorted(), damaged());
        let ends = starts.iter().copied().skip(1).chain([self.rows]);
        let (mut found, mut from) =
            (Vec::new(), wanted.partition_point(|word| firsts.first().is_some_and(|f| word < f)));
        let (mut rows, mut values) = (Vec::new(), Vec::new());
        for (page, end) in ends.enumerate() {
            let next = firsts.get(page + 1);
            let to = from + wanted[from..].partition_point(|word| next.is_none_or(|next| word < next));
            if from < to {
                rows.clear();
                rows.extend(starts[page]..end);
                values.clear();
                self.each(&rows, |value| values.push(word(value)))?;
                ensure!(values.is_sorted(), damaged());
                let mut at = 0;
                for (place, word) in wanted.iter().enumerate().take(to).skip(from) {
                    at += values[at..].partition_point(|value| value < word);
                    if values.get(at) == Some(word) {
                        found.push((place, starts[page] + at as u64));
                    }
                }
            }
            from = to;
        }
        Ok(found)
    }
}

/// A file whose pages are read into memory that is used again.
struct Pooled(Arc<File>);

/// Memory that goes back to its thread's pool.
struct Buffer {
    words: Vec<u64>,
    bytes: usize,
}

/// Buffers that a thread keeps.
const KEPT: usize = 4;

thread_local! {
    static FREE: RefCell<Vec<Vec<u64>>> = const { RefCell::new(Vec::new()) };
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.words)[..self.bytes]
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let words = std::mem::take(&mut self.words);
        // At the end of a thread there is no pool any more.
        let _ = FREE.try_with(|free| {
            let mut free = free.borrow_mut();
            if free.len() < KEPT {
                free.push(words);
            }
        });
    }
}

impl Length for Pooled {
    fn len(&self) -> u64 {
        self.0.metadata().map_or(0, |metadata| metadata.len())
    }
}

impl ChunkReader for Pooled {
    type T = At;

    fn get_read(&self, start: u64) -> Result<At, ParquetError> {
        Ok(At { file: self.0.clone(), at: start })
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        let mut words = FREE.with(|free| free.borrow_mut().pop()).unwrap_or_default();
        words.resize(length.div_ceil(8).max(words.len()), 0);
        self.0.read_exact_at(&mut bytemuck::cast_slice_mut(&mut words)[..length], start)?;
        Ok(Bytes::from_owner(Buffer { words, bytes: length }))
    }
}

/// A file from some place on.
struct At {
    file: Arc<File>,
    at: u64,
}

impl Read for At {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.file.read_at(buffer, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::{FeatureRow, UrlRow, Writer};

    #[test]
    fn every_value_comes_back_page_by_page() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("features.parquet");
        let mut writer: Writer<FeatureRow> = Writer::create(&path).unwrap();
        let rows = 300_000u64;
        for row in 0..rows {
            let supershingles = (0..6).flat_map(|column| (row * 6 + column).to_le_bytes()).collect();
            writer.push(FeatureRow { doc: row as i64, supershingles, features: vec![0; 4] }).unwrap();
        }
        writer.finish().unwrap();
        let mut column = PlainColumn::open(&path, "supershingles", 48).unwrap();
        let (mut next, mut pages, mut held) = (0u64, 0, Vec::new());
        while let Some(page) = column.page().unwrap() {
            for word in page.as_chunks::<8>().0 {
                assert_eq!(u64::from_le_bytes(*word), next);
                next += 1;
            }
            pages += 1;
            // A page that is held is not written over.
            held.push((next, page));
        }
        assert_eq!(next, 6 * rows);
        assert!(pages > 10);
        for (end, page) in held {
            assert_eq!(page[page.len() - 8..], (end - 1).to_le_bytes());
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
            [("supershingles", 48), ("doc", 8)].map(|(name, width)| PlainValues::open(&path, name, width).unwrap());
        // One alone, some near each other, some far; at the ends of pages and of row groups.
        for step in [1, 2, 7, 90, 1000, 19_999, 131_071, 299_999] {
            let rows: Vec<u64> = (0..count).step_by(step).collect();
            let word = |bytes: &[u8]| u64::from_le_bytes(bytes[..8].try_into().unwrap());
            let (mut found, mut of_docs) = (Vec::new(), Vec::new());
            vectors.each(&rows, |value| found.push((value.len(), word(value)))).unwrap();
            docs.each(&rows, |value| of_docs.push((value.len(), word(value)))).unwrap();
            assert!(found.iter().copied().eq(rows.iter().map(|row| (48, 6 * row))), "every {step}");
            assert!(of_docs.iter().copied().eq(rows.iter().map(|row| (8, *row))), "every {step}");
        }
        // Values are found where they are; others are not.
        let doubled = folder.path().join("doubled.parquet");
        let mut writer: Writer<FeatureRow> = Writer::create(&doubled).unwrap();
        for row in 0..count {
            writer
                .push(FeatureRow { doc: 10 + 2 * row as i64, supershingles: vec![0; 48], features: vec![0; 4] })
                .unwrap();
        }
        writer.finish().unwrap();
        let doubled = PlainValues::open(&doubled, "doc", 8).unwrap();
        for (first, step) in [(0, 1), (0, 7), (3, 1001), (10, 65_536), (599_000, 1), (610_000, 1), (9, 1 << 40)] {
            let wanted: Vec<u64> = (first..620_000).step_by(step).collect();
            let held =
                wanted.iter().enumerate().filter(|(_, word)| (10..10 + 2 * count).contains(*word) && *word % 2 == 0);
            let held: Vec<(usize, u64)> = held.map(|(place, word)| (place, (word - 10) / 2)).collect();
            assert_eq!(doubled.find(&wanted).unwrap(), held, "from {first}, every {step}");
        }
        assert_eq!(doubled.find(&[]).unwrap(), []);
        vectors.each(&[], |_| panic!("no row was asked for")).unwrap();
        let error = vectors.each(&[count], |_| panic!("there is no such row")).unwrap_err().to_string();
        assert!(error.contains("features.parquet") && error.contains("300000"), "{error}");
        // Dictionaries and compressed pages are not what they seem.
        let path = folder.path().join("urls.parquet");
        let mut writer: Writer<UrlRow> = Writer::create(&path).unwrap();
        writer.push(UrlRow { doc: 1, hash: [0; 16], url: "http://h/".into() }).unwrap();
        writer.finish().unwrap();
        let error = PlainValues::open(&path, "doc", 8).err().unwrap().to_string();
        assert!(error.contains("is not plain"), "{error}");
    }

    #[test]
    fn another_column_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("urls.parquet");
        let mut writer: Writer<UrlRow> = Writer::create(&path).unwrap();
        writer.push(UrlRow { doc: 1, hash: [0; 16], url: "http://h/".into() }).unwrap();
        writer.finish().unwrap();
        for (name, width, wanted) in
            [("hash", 48, "another column"), ("url", 16, "another column"), ("supershingles", 48, "no column")]
        {
            let error = PlainColumn::open(&path, name, width).err().unwrap().to_string();
            assert!(error.contains(wanted), "{error}");
        }
        assert_eq!(PlainColumn::open(&path, "hash", 16).unwrap().page().unwrap().unwrap().len(), 16);
    }
}
