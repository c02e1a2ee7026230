//! How far a followed file is read, and what was there then: so a file that was cut or replaced is
//! not taken for one that grew.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use crate::records::checksum;

/// The bytes at the beginning of a file, and those at its end, that are compared later.
const COMPARED: u64 = 4096;

/// Where the next part of a file begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The byte from which on the file is read.
    pub(super) at: u64,
    /// Items there that were taken: a member of a compressed file may have several.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) items: u64,
    /// The bytes before, from which on records are read again: what they say of later ones counts.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) back: u64,
    /// What the file had when it was read.
    pub(super) seen: Seen,
}

impl Place {
    /// Checks that a file of `size` bytes has grown since it was read to this place.
    ///
    /// # Errors
    /// If it was cut or replaced, or cannot be read.
    pub(super) fn check(self, file: &File, size: u64) -> Result<()> {
        const RULE: &str = "files of a followed folder may only grow. Write new records to a file with another name";
        // Bytes that were written while the file was read lie after `seen.bytes`.
        let read = self.at.max(self.seen.bytes);
        // Its size now is left out: it may change until the next look, whose fault is the same.
        ensure!(size >= read, "the file was cut: it has fewer bytes than the {read} that were read: {RULE}");
        ensure!(
            self.seen.is_of(file)?,
            "the file was replaced, or its first {} bytes have changed since they were read: {RULE}",
            self.seen.bytes
        );
        Ok(())
    }
}

/// The beginning of a file that only grows, which does not change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Seen {
    /// Its bytes.
    bytes: u64,
    /// A checksum of the first and the last ones of them.
    sum: u64,
}

impl Seen {
    /// The first bytes of a file.
    pub(super) fn of(file: &File, bytes: u64) -> io::Result<Seen> {
        let some = bytes.min(COMPARED) as usize;
        let mut read = vec![0; 2 * some];
        file.read_exact_at(&mut read[..some], 0)?;
        file.read_exact_at(&mut read[some..], bytes - some as u64)?;
        Ok(Seen { bytes, sum: checksum(&read) as u64 })
    }

    /// Whether a file still begins with them.
    fn is_of(self, file: &File) -> io::Result<bool> {
        Ok(self.bytes == 0 || Seen::of(file, self.bytes)? == self)
    }
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}
