//! The digest of a file's content: XXH3-128, written as 32 hexadecimal digits.
//!
//! It detects damage and differences. It is not cryptographic and does not protect against malice:
//! any user who may write to a store may write anything.

use std::fmt;
use std::fs::File;
use std::path::Path;
use std::str::FromStr;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

/// The digest of a sequence of bytes.
///
/// ```
/// use nigh_readers::objects::{Digest, Digester};
///
/// let mut digester = Digester::default();
/// digester.add(b"near-");
/// digester.add(b"duplicate");
/// let digest = digester.digest();
/// assert_eq!(digest, Digest::of(b"near-duplicate"));
/// assert_eq!(digest.to_string().len(), 32);
/// assert_eq!(digest.to_string().parse(), Ok(digest));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest(u128);

impl Digest {
    /// The digest of bytes in memory.
    pub fn of(bytes: &[u8]) -> Digest {
        Digest(xxh3_128(bytes))
    }

    /// The digest of a file.
    ///
    /// # Errors
    /// Names the file that cannot be read.
    pub fn of_file(path: &Path) -> Result<Digest> {
        FileContent::of_file(path).map(|content| content.digest)
    }
}

/// The size and digest of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileContent {
    /// The size in bytes.
    pub bytes: u64,
    /// The digest of the bytes.
    pub digest: Digest,
}

impl FileContent {
    /// The size and digest of all bytes that a reader gives.
    ///
    /// # Errors
    /// An error of the reader.
    pub fn of(mut from: impl std::io::Read) -> std::io::Result<FileContent> {
        let (mut digester, mut buffer, mut bytes) = (Digester::default(), vec![0; 1 << 18], 0);
        loop {
            let count = from.read(&mut buffer)?;
            if count == 0 {
                return Ok(FileContent { bytes, digest: digester.digest() });
            }
            digester.add(&buffer[..count]);
            bytes += count as u64;
        }
    }

    /// The size and digest of a file.
    ///
    /// # Errors
    /// Names the file that cannot be read.
    pub fn of_file(path: &Path) -> Result<FileContent> {
        File::open(path).and_then(FileContent::of).with_context(|| format!("cannot read {}", path.display()))
    }
}

/// Computes a [`Digest`] of bytes that arrive in pieces.
#[derive(Default)]
pub struct Digester(Xxh3);

impl Digester {
    /// Adds the next bytes.
    pub fn add(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The digest of all bytes so far.
    pub fn digest(&self) -> Digest {
        Digest(self.0.digest128())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl FromStr for Digest {
    type Err = String;

    fn from_str(text: &str) -> Result<Digest, String> {
        let digits = text.len() == 32 && text.bytes().all(|c| c.is_ascii_digit() || (b'a'..=b'f').contains(&c));
        match u128::from_str_radix(text, 16) {
            Ok(number) if digits => Ok(Digest(number)),
            _ => Err(format!("{text:?} is not a digest: a digest has 32 lower-case hexadecimal digits")),
        }
    }
}

impl TryFrom<String> for Digest {
    type Error = String;

    fn try_from(text: String) -> Result<Digest, String> {
        text.parse()
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> String {
        digest.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_the_digest_of_its_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let bytes: Vec<u8> = (0..1_000_000u64).map(|i| (i * i % 251) as u8).collect();
        std::fs::write(&path, &bytes).unwrap();
        let digest = Digest::of_file(&path).unwrap();
        assert_eq!(digest, Digest::of(&bytes));
        assert_eq!(digest.to_string().parse(), Ok(digest));
        assert!("0123".parse::<Digest>().is_err() && "+".repeat(32).parse::<Digest>().is_err());
    }
}
