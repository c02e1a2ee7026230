//! A file that is written, and what is known of it once it is whole.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3Default;

/// Bytes that are read at once.
const CHUNK: usize = 1 << 18;

/// A new file, and the checksum of what was written to it.
pub(crate) struct Output {
    file: File,
    written: Checksum,
}

/// The size and the checksum of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Written {
    pub(super) bytes: u64,
    /// XXH3 of 128 bits, hexadecimal.
    xxh3: String,
}

struct Checksum {
    bytes: u64,
    hash: Box<Xxh3Default>,
}

impl Checksum {
    fn new() -> Checksum {
        Checksum { bytes: 0, hash: Box::new(Xxh3Default::new()) }
    }

    fn add(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        self.hash.update(bytes);
    }

    fn finish(&self) -> Written {
        Written { bytes: self.bytes, xxh3: format!("{:032x}", self.hash.digest128()) }
    }
}

impl Output {
    /// Begins a file.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(crate) fn create(path: &Path) -> std::io::Result<Output> {
        Ok(Output { file: File::create(path)?, written: Checksum::new() })
    }

    /// Ends the file, which then is on the disk.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(crate) fn finish(self) -> std::io::Result<Written> {
        self.file.sync_all()?;
        Ok(self.written.finish())
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let count = self.file.write(bytes)?;
        self.written.add(&bytes[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.flush()
    }
}

impl Written {
    /// Whether the file at `path` is this one: a link or a folder is not.
    ///
    /// # Errors
    /// If it is there and cannot be read.
    pub(crate) fn is_at(&self, path: &Path) -> std::io::Result<bool> {
        match std::fs::symlink_metadata(path) {
            Ok(metadata) if !metadata.is_file() || metadata.len() != self.bytes => return Ok(false),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(false),
            other => _ = other?,
        }
        is_written(File::open(path)?, self)
    }
}

/// Whether a reader gives what was written.
///
/// # Errors
/// If it cannot be read.
pub(super) fn is_written(mut reader: impl std::io::Read, written: &Written) -> std::io::Result<bool> {
    let (mut found, mut chunk) = (Checksum::new(), vec![0; CHUNK]);
    loop {
        match reader.read(&mut chunk)? {
            0 => return Ok(found.finish() == *written),
            count => found.add(&chunk[..count]),
        }
    }
}

/// Makes a new name of a file durable.
pub(crate) fn sync_parent(path: &Path) -> std::io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}
