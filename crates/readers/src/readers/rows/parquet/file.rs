//! The bytes of a Parquet file, and the pages of a column, with the sizes that they claim checked
//! before memory is reserved.

use std::fs::File;
use std::io;
use std::io::{BufRead as _, BufReader, Read};
use std::os::unix::fs::FileExt as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use ::parquet::column::page::{Page, PageMetadata, PageReader};
use ::parquet::errors::{ParquetError, Result};
use ::parquet::file::metadata::ColumnChunkMetaData;
use ::parquet::file::reader::{ChunkReader, Length};
use ::parquet::file::serialized_reader::SerializedPageReader;
use bytes::Bytes;

/// Bytes that are read ahead for the head of a page.
const AHEAD: usize = 8 << 10;

/// A file that is read at any position.
pub struct ChunkedFile {
    file: Arc<File>,
    bytes: u64,
    /// The failure of the disk, if there was one. The decoders return it as they return damage.
    failure: Mutex<Option<io::Error>>,
}

/// The bytes of a file from a position on. Who reads on after the end gets an error: the decoder of
/// page heads passes over a list of any number of elements, and tries to read each of them where
/// the file has ended.
pub struct FileFrom {
    file: Arc<File>,
    position: u64,
    has_ended: bool,
}

impl ChunkedFile {
    /// Makes the bytes of a file.
    ///
    /// # Errors
    /// If its size cannot be read.
    pub fn new(file: File) -> io::Result<Self> {
        let bytes = file.metadata()?.len();
        Ok(ChunkedFile { file: Arc::new(file), bytes, failure: Mutex::new(None) })
    }

    /// Returns the size of the file.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether the file ends as one whose columns and their description are encrypted.
    pub fn is_encrypted(&self) -> bool {
        let mut end = [0; 4];
        let at = self.bytes.checked_sub(end.len() as u64);
        at.is_some_and(|at| self.file.read_exact_at(&mut end, at).is_ok()) && end == *b"PARE"
    }

    /// Returns the failure of the disk, if there was one.
    pub fn take_failure(&self) -> Option<io::Error> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Remembers the failure of a read.
    fn failed(&self, error: io::Error) -> ParquetError {
        let again = io::Error::from(error.kind());
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        again.into()
    }
}

impl Length for ChunkedFile {
    fn len(&self) -> u64 {
        self.bytes
    }
}

impl ChunkReader for ChunkedFile {
    type T = BufReader<FileFrom>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        Ok(BufReader::with_capacity(AHEAD, FileFrom { file: self.file.clone(), position: start, has_ended: false }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        if start.checked_add(length as u64).is_none_or(|end| end > self.bytes) {
            return Err(ParquetError::EOF("the file ends before".to_owned()));
        }
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, start).map_err(|error| self.failed(error))?;
        Ok(bytes.into())
    }
}

impl Read for FileFrom {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(buffer, self.position)?;
        if count == 0 && std::mem::replace(&mut self.has_ended, true) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.position += count as u64;
        Ok(count)
    }
}

/// The pages of one column in a row group.
pub struct ColumnPages {
    pages: SerializedPageReader<PagedFile>,
    file: Arc<PagedFile>,
}

/// A file in which each read begins with the head of a page.
struct PagedFile {
    file: Arc<ChunkedFile>,
    /// The longest page that is decoded, in bytes as uncompressed.
    longest: u64,
    /// Whether the next read begins after the head of a page, which was looked at before.
    is_after_head: AtomicBool,
}

/// The longest page that is decoded in any memory, in bytes as uncompressed.
const PAGE: u64 = 1 << 30;
/// The error of a page that is longer.
pub const TOO_LONG: &str = "a page of more than 1 GiB";

impl ColumnPages {
    /// Makes the pages of a column, in a row group of `rows` rows. A page that becomes more than
    /// `longest` bytes is an error.
    ///
    /// # Errors
    /// If the compression is not known. It panics on some damaged files.
    pub fn new(file: &Arc<ChunkedFile>, column: &ColumnChunkMetaData, rows: u64, longest: u64) -> Result<Self> {
        let file = Arc::new(PagedFile { file: file.clone(), longest, is_after_head: AtomicBool::new(false) });
        let pages = SerializedPageReader::new(file.clone(), column, usize::try_from(rows)?, None)?;
        Ok(ColumnPages { pages, file })
    }
}

impl Iterator for ColumnPages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for ColumnPages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let page = self.pages.get_next_page()?;
        self.file.is_after_head.store(false, Ordering::Relaxed);
        if let Some(Page::DictionaryPage { buf, num_values, .. }) = &page
            && *num_values as usize > buf.len()
        {
            // A value takes a byte at least, and the decoder reserves memory for each.
            return Err(ParquetError::General("a dictionary of more values than bytes".to_owned()));
        }
        Ok(page)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        let page = self.pages.peek_next_page()?;
        self.file.is_after_head.store(page.is_some(), Ordering::Relaxed);
        Ok(page)
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.file.is_after_head.store(false, Ordering::Relaxed);
        self.pages.skip_next_page()
    }
}

impl Length for PagedFile {
    fn len(&self) -> u64 {
        self.file.len()
    }
}

impl ChunkReader for PagedFile {
    type T = BufReader<FileFrom>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        let mut read = self.file.get_read(start)?;
        // What the head claims was checked when it was looked at.
        if self.is_after_head.load(Ordering::Relaxed) {
            return Ok(read);
        }
        let head = read.fill_buf().map_err(|error| self.file.failed(error))?;
        match uncompressed_size(head) {
            Some(size) if size <= self.longest => Ok(read),
            // Not a reject: which rows there are does not depend on the memory.
            Some(size) if size <= PAGE => Err(self.file.failed(io::Error::other(format!(
                "a page of {size} bytes is more than the memory of a worker allows: raise `memory`, or run fewer workers"
            )))),
            Some(_) => Err(ParquetError::General(TOO_LONG.to_owned())),
            None => Err(ParquetError::General("no page begins here".to_owned())),
        }
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        self.file.get_bytes(start, length)
    }
}

/// Returns the uncompressed size that the head of a page claims: its second field, after the type
/// of the page.
///
/// The head is a struct in the compact protocol of Thrift. A field begins with a byte of its type
/// (5: a 32-bit integer) and the distance to the number of the field before; the value is a zigzag
/// varint.
fn uncompressed_size(head: &[u8]) -> Option<u64> {
    let rest = head.strip_prefix(&[0x15])?;
    let (_, rest) = varint(rest)?;
    let (size, _) = varint(rest.strip_prefix(&[0x15])?)?;
    (size & 1 == 0).then_some(size >> 1)
}

/// Splits a varint off.
fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let length = bytes.iter().take(5).position(|byte| byte & 0x80 == 0)? + 1;
    let (varint, rest) = bytes.split_at(length);
    let value = varint.iter().rev().fold(0, |value, byte| value << 7 | u64::from(byte & 0x7f));
    Some((value, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_of_a_page_is_read_from_its_head() {
        // Type 0, then 300 as zigzag 600 in two bytes.
        assert_eq!(uncompressed_size(&[0x15, 0, 0x15, 0xd8, 0x04, 0x15, 0]), Some(300));
        assert_eq!(uncompressed_size(&[0x15, 4, 0x15, 0xfe, 0xff, 0xff, 0xff, 0x0f]), Some((1 << 31) - 1));
        // A negative size, a head without sizes, no end, no head.
        for head in [&[0x15, 0, 0x15, 1][..], &[0x15, 0, 0x25, 2], &[0x15, 0, 0x15, 0x80], &[]] {
            assert_eq!(uncompressed_size(head), None, "{head:?}");
        }
    }

    #[test]
    fn a_head_with_a_list_longer_than_the_file_is_damage() {
        use std::io::Write as _;

        let mut file = tempfile::tempfile().unwrap();
        // Two sizes, then field 11, which no version has: a list (9) of 2^31 - 1 doubles (7).
        file.write_all(&[0x15, 0, 0x15, 2, 0x99, 0xf7, 0xff, 0xff, 0xff, 0xff, 0x07]).unwrap();
        let file = Arc::new(ChunkedFile::new(file).unwrap());
        let mut from = file.get_read(4).unwrap();
        let mut rest = Vec::new();
        assert_eq!((from.read_to_end(&mut rest).unwrap(), rest.len()), (7, 7));
        assert_eq!(from.read(&mut [0]).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);

        let schema = ::parquet::schema::types::Type::primitive_type_builder("text", ::parquet::basic::Type::BYTE_ARRAY);
        let path = ::parquet::schema::types::ColumnPath::from("text");
        let column = ::parquet::schema::types::ColumnDescriptor::new(Arc::new(schema.build().unwrap()), 0, 0, path);
        let column = ColumnChunkMetaData::builder(Arc::new(column)).set_num_values(1).set_total_compressed_size(11);
        let mut pages = ColumnPages::new(&file, &column.build().unwrap(), 1, 1 << 30).unwrap();
        assert!(pages.next().unwrap().is_err());
    }
}
