//! A file that is written from its beginning to its end, and the digest of what it gets.

use std::fs::File;
use std::io::{self, Write};

use crate::objects::{Digester, FileContent};

/// The file. Nothing is read back for its digest.
pub(super) struct DigestedFile {
    file: File,
    digester: Digester,
    bytes: u64,
}

impl DigestedFile {
    /// The file, which is empty.
    pub(super) fn new(file: File) -> DigestedFile {
        DigestedFile { file, digester: Digester::default(), bytes: 0 }
    }

    /// The size and digest of what was written.
    pub(super) fn content(&self) -> FileContent {
        FileContent { bytes: self.bytes, digest: self.digester.digest() }
    }
}

impl Write for DigestedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.file.write(bytes)?;
        self.digester.add(&bytes[..count]);
        self.bytes += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_is_that_of_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let mut file = DigestedFile::new(File::create(&path).unwrap());
        for part in [&b"near-"[..], b"", b"duplicate", &[7; 100_000]] {
            file.write_all(part).unwrap();
        }
        assert_eq!(file.content(), FileContent::of_file(&path).unwrap());
        assert_eq!(file.content().bytes, 14 + 100_000);
    }
}
