//! A column of fixed-size values as it lies in a Parquet file, page by page: what [`Writer`](super::Writer) makes of the
//! columns of hashes, plain and not compressed, is its own memory format.
//!
//! Nothing is decoded, and nothing is copied but once, from the file to memory that is used again: reading is a third as
//! long as through record batches, most of which is spent on fresh pages of memory.

use std::cell::RefCell;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use parquet::basic::{Encoding, Type};
use parquet::column::page::{Page, PageReader};
use parquet::errors::ParquetError;
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
        let schema = file.metadata().file_metadata().schema_descr();
        let column = (0..schema.num_columns()).find(|at| schema.column(*at).name() == name);
        let column = column.with_context(|| format!("{} has no column `{name}`", path.display()))?;
        let described = schema.column(column);
        let fits = described.physical_type() == Type::FIXED_LEN_BYTE_ARRAY
            && described.type_length() as usize == width
            && described.max_def_level() == 0;
        ensure!(fits, "{} holds another column `{name}` than this store has", path.display());
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
