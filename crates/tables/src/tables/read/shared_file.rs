//! A file that several readers read at once.
//!
//! Each reader reads from places that it names (`pread`), because handles that are copies of one
//! another share their position. So a file is opened once, however many readers it has, and a read
//! is one call of the system.

use std::fs::File;
use std::io::{BufReader, Read, Result};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use parquet::errors::Result as ParquetResult;
use parquet::file::reader::{ChunkReader, Length};

/// A file that is open. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct SharedFile {
    file: Arc<File>,
    bytes: u64,
}

impl SharedFile {
    /// Opens the file at `path`.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) fn open(path: &Path) -> Result<SharedFile> {
        let file = File::open(path)?;
        Ok(SharedFile { bytes: file.metadata()?.len(), file: Arc::new(file) })
    }

    /// Fills a buffer with the bytes from `at` on.
    ///
    /// # Errors
    /// If the file ends before the buffer is full, or cannot be read.
    pub(crate) fn read_exact_at(&self, bytes: &mut [u8], at: u64) -> Result<()> {
        self.file.read_exact_at(bytes, at)
    }
}

impl Length for SharedFile {
    fn len(&self) -> u64 {
        self.bytes
    }
}

impl ChunkReader for SharedFile {
    type T = BufReader<RestOfFile>;

    fn get_read(&self, start: u64) -> ParquetResult<Self::T> {
        Ok(BufReader::new(RestOfFile { file: self.file.clone(), at: start }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        // A damaged file may name any length.
        if start.checked_add(length as u64).is_none_or(|end| end > self.bytes) {
            return Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into());
        }
        // Not zeroed first: that would cost as much as reading.
        let mut bytes = Vec::with_capacity(length);
        while bytes.len() < length {
            let at = start + bytes.len() as u64;
            match rustix::io::pread(&self.file, rustix::buffer::spare_capacity(&mut bytes), at) {
                Ok(0) => return Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into()),
                Err(error) if error != rustix::io::Errno::INTR => return Err(std::io::Error::from(error).into()),
                _ => {}
            }
        }
        bytes.truncate(length);
        Ok(bytes.into())
    }
}

/// The bytes of a file from some place on.
pub(crate) struct RestOfFile {
    file: Arc<File>,
    at: u64,
}

impl Read for RestOfFile {
    fn read(&mut self, bytes: &mut [u8]) -> Result<usize> {
        let count = self.file.read_at(bytes, self.at)?;
        self.at += count as u64;
        Ok(count)
    }
}
