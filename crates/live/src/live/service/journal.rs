//! The journal: the batches that were taken since the tables of the store were made, as they were
//! sent.
//!
//! ```text
//! record   length of the head (4 bytes), of the body (4), checksum of these lengths (4), checksum of both parts (16): little-endian;
//!          then head and body
//! head     {"batch": "the id that the client gave", "by": "id"}; with "taken": true for what is kept of all batches before a commit,
//!          with "answered": true for what is kept of the batch before it
//! body     the lines of the batch; or a line for each of those batches, with its answers
//! ```
//!
//! What is kept is written before the commands of a commit, and is all that a journal has after it.
//! If the process ends between the two, the batches before it are applied to tables that have them
//! already: their answers would be other ones. So would be those of batches that come after a
//! commit that changed tables and failed: the answers of each of these are written after it, until
//! a commit is made.
//!
//! A batch is acknowledged after its record is on the disk. A record that the end of the file cuts
//! was not acknowledged: it is removed when the journal is opened. Damage before the last record is
//! an error.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::live::engine::Given;
use crate::live::follow::Place;
use crate::records::{DocumentKey, checksum};
use crate::state::{replace, sync_folder};

/// The bytes before the head.
const FRAME: usize = 28;

/// What a journal has of a batch besides its lines.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Head {
    /// The id that the client gave.
    pub(super) batch: Option<String>,
    /// What documents are known by. A store without weeks does not say it.
    #[serde(default)]
    pub(super) by: DocumentKey,
    /// Whether this is not a batch, but what is kept of those before a commit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) taken: bool,
    /// Whether this is not a batch, but the answers of the one before it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) answered: bool,
    /// Of such records, the numbers that were given by then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) given: Option<Given>,
    /// How far files of a followed folder are read with this batch, or were by then.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) followed: BTreeMap<String, Place>,
    /// Where the body begins in the journal, of a record that was read.
    #[serde(skip)]
    pub(super) body_at: u64,
}

/// An open journal.
pub(super) struct Journal {
    file: File,
    path: PathBuf,
    /// The bytes of its whole records.
    length: u64,
}

impl Journal {
    /// Opens the journal, or makes it, and calls `each` with the batches in it. Returns it with the
    /// bytes of a cut record, which are removed.
    ///
    /// # Errors
    /// If it cannot be read or written, or is damaged; and those of `each`.
    pub(super) fn open(path: &Path, mut each: impl FnMut(Head, &[u8]) -> Result<()>) -> Result<(Journal, u64)> {
        let failed = || format!("cannot open the journal {}", path.display());
        let is_new = !path.exists();
        let file =
            File::options().read(true).write(true).create(true).truncate(false).open(path).with_context(failed)?;
        if is_new {
            sync_folder(path.parent().unwrap_or(Path::new(".")))?;
        }
        let size = file.metadata().with_context(failed)?.len();
        let mut journal = Journal { file, path: path.to_owned(), length: 0 };
        while let Some((head, body)) = journal.next(size)? {
            each(head, &body)
                .with_context(|| format!("{}: the record that ends at byte {}", path.display(), journal.length))?;
        }
        let cut = size - journal.length;
        if cut > 0 {
            journal.file.set_len(journal.length).and_then(|()| journal.file.sync_all()).with_context(failed)?;
        }
        Ok((journal, cut))
    }

    /// What documents are known by in the journal at a path; `None` if there is none, or it has no
    /// record.
    ///
    /// # Errors
    /// As [`Journal::open`].
    pub(super) fn by(path: &Path) -> Result<Option<DocumentKey>> {
        if !path.exists() {
            return Ok(None);
        }
        let (mut journal, size) = Journal::at(path)?;
        Ok(journal.next(size)?.map(|(head, _)| head.by))
    }

    /// Opens a journal to read it. Returns it with its bytes.
    pub(super) fn at(path: &Path) -> Result<(Journal, u64)> {
        let failed = || format!("cannot open the journal {}", path.display());
        let file = File::open(path).with_context(failed)?;
        let size = file.metadata().with_context(failed)?.len();
        Ok((Journal { file, path: path.to_owned(), length: 0 }, size))
    }

    /// Calls `each` with the batches of the journal at a path.
    ///
    /// # Errors
    /// As [`Journal::open`].
    pub(super) fn read(path: &Path, mut each: impl FnMut(Head, &[u8]) -> Result<()>) -> Result<()> {
        let (mut journal, size) = Journal::at(path)?;
        while let Some((head, body)) = journal.next(size)? {
            each(head, &body)?;
        }
        Ok(())
    }

    /// Puts a journal with these records, heads and bodies, in the place of this one, at once.
    ///
    /// # Errors
    /// If it cannot be written, or not be opened again. Then which of both is there is not known.
    pub(super) fn begin_again(&mut self, records: &[(&Head, &[u8])]) -> Result<()> {
        let records: Result<Vec<Vec<u8>>> = records.iter().map(|(head, body)| record_of(head, body)).collect();
        replace(&self.path, &records?.concat())?;
        let file = File::options().read(true).write(true).open(&self.path);
        self.file = file.with_context(|| format!("cannot open the journal {}", self.path.display()))?;
        self.length =
            self.file.metadata().with_context(|| format!("cannot open the journal {}", self.path.display()))?.len();
        Ok(())
    }

    /// Reads the next record of a journal of `size` bytes; `None` at the end, or before a record
    /// that is cut.
    fn next(&mut self, size: u64) -> Result<Option<(Head, Vec<u8>)>> {
        let (at, left) = (self.length, size - self.length);
        if left < FRAME as u64 {
            return Ok(None);
        }
        let failed = || format!("cannot read the journal {} at byte {at}", self.path.display());
        let mut frame = [0; FRAME];
        self.file.seek(SeekFrom::Start(at)).with_context(failed)?;
        self.file.read_exact(&mut frame).with_context(failed)?;
        let (lengths, sums) = frame.split_at(8);
        let (sum_of_lengths, sum) = sums.split_at(4);
        let [head_bytes, body_bytes] = [0, 4].map(|at| u32::from_le_bytes([0, 1, 2, 3].map(|byte| lengths[at + byte])));
        let damaged = |what: &str| {
            anyhow::anyhow!(
                "the journal {} is damaged at byte {at}: {what}. Move the file away to go on without the batches in it",
                self.path.display()
            )
        };
        if sum_of_lengths != checksum_of_lengths(lengths) {
            let error = damaged("the lengths there have another checksum");
            // The file system may have made the file longer before it wrote the last record.
            return if self.is_empty_after(at)? { Ok(None) } else { Err(error) };
        }
        let bytes = u64::from(head_bytes) + u64::from(body_bytes);
        let end = at + FRAME as u64 + bytes;
        if end > size {
            return Ok(None);
        }
        let mut record = vec![0; bytes as usize];
        self.file.read_exact(&mut record).with_context(failed)?;
        if sum != checksum_of(&record, head_bytes, body_bytes) {
            let error = damaged("the record there has another checksum");
            return if end == size || self.is_empty_after(at)? { Ok(None) } else { Err(error) };
        }
        let body = record.split_off(head_bytes as usize);
        let mut head: Head = serde_json::from_slice(&record)
            .with_context(|| format!("{}: no head at byte {at}", self.path.display()))?;
        head.body_at = end - body.len() as u64;
        self.length = end;
        Ok(Some((head, body)))
    }

    /// Whether all bytes from a place on are zero.
    fn is_empty_after(&mut self, at: u64) -> Result<bool> {
        let failed = || format!("cannot read the journal {} at byte {at}", self.path.display());
        self.file.seek(SeekFrom::Start(at)).with_context(failed)?;
        let mut buffer = [0; 1 << 16];
        loop {
            match self.file.read(&mut buffer).with_context(failed)? {
                0 => return Ok(true),
                read if buffer[..read].iter().any(|byte| *byte != 0) => return Ok(false),
                _ => {}
            }
        }
    }

    /// Adds a batch. When this returns, it is on the disk.
    ///
    /// # Errors
    /// If the disk is full, say. The journal is then as it was.
    pub(super) fn add(&mut self, head: &Head, body: &[u8]) -> Result<()> {
        let record = record_of(head, body)?;
        let written = self
            .remove_rest()
            .and_then(|()| self.file.seek(SeekFrom::Start(self.length)))
            .and_then(|_| self.file.write_all(&record))
            .and_then(|()| self.file.sync_data());
        if let Err(error) = written {
            // If this fails, too, it is done before the next record is added.
            let _ = self.remove_rest();
            return Err(error).with_context(|| format!("cannot write the journal {}", self.path.display()));
        }
        self.length += record.len() as u64;
        Ok(())
    }

    /// Removes what is there of a record that was not added.
    fn remove_rest(&mut self) -> std::io::Result<()> {
        if self.file.metadata()?.len() > self.length { self.file.set_len(self.length) } else { Ok(()) }
    }

    /// Removes the records after a length that it had.
    ///
    /// # Errors
    /// If it cannot be written. The records are then there.
    pub(super) fn cut_to(&mut self, length: u64) -> Result<()> {
        let cut = self.file.set_len(length).and_then(|()| self.file.sync_data());
        cut.with_context(|| format!("cannot write the journal {}", self.path.display()))?;
        self.length = length;
        Ok(())
    }

    /// Some of its bytes.
    ///
    /// # Errors
    /// If they cannot be read.
    pub(super) fn read_at(&mut self, at: u64, bytes: usize) -> Result<Vec<u8>> {
        let failed = || format!("cannot read the journal {} at byte {at}", self.path.display());
        let mut read = vec![0; bytes];
        self.file.seek(SeekFrom::Start(at)).with_context(failed)?;
        self.file.read_exact(&mut read).with_context(failed)?;
        Ok(read)
    }

    /// Its bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.length
    }
}

/// The bytes of a record.
fn record_of(head: &Head, body: &[u8]) -> Result<Vec<u8>> {
    let head = serde_json::to_vec(head).context("plain data has a JSON form")?;
    let length = |part: &[u8]| u32::try_from(part.len()).context("a record of the journal has 4 GiB at most");
    let (head_bytes, body_bytes) = (length(&head)?, length(body)?);
    let parts = [&head, body].concat();
    let mut record = Vec::with_capacity(FRAME + parts.len());
    record.extend([head_bytes.to_le_bytes(), body_bytes.to_le_bytes()].as_flattened());
    record.extend(checksum_of_lengths(&record));
    record.extend(checksum_of(&parts, head_bytes, body_bytes));
    record.extend(parts);
    Ok(record)
}

/// The checksum of a record, with the lengths of its parts.
fn checksum_of(record: &[u8], head: u32, body: u32) -> [u8; 16] {
    (checksum(record) ^ u128::from(head) << 64 ^ u128::from(body)).to_le_bytes()
}

/// The checksum of the two lengths of a record: those of a cut record are believed, so they must be
/// right.
fn checksum_of_lengths(lengths: &[u8]) -> [u8; 4] {
    (checksum(lengths) as u32).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A batch: its id, and its lines.
    type Batch = (Option<String>, Vec<u8>);

    fn read(path: &Path) -> Result<(Vec<Batch>, u64)> {
        let mut all = Vec::new();
        let (_, cut) = Journal::open(path, |head, body| {
            all.push((head.batch, body.to_vec()));
            Ok(())
        })?;
        Ok((all, cut))
    }

    #[test]
    fn whole_records_come_back_wherever_the_file_is_cut() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let (mut journal, _) = Journal::open(&path, |_, _| Ok(())).unwrap();
        let batches =
            [(Some("a".to_owned()), b"one\ntwo".to_vec()), (None, Vec::new()), (Some("c".to_owned()), vec![0; 300])];
        let mut ends = Vec::new();
        for (batch, body) in &batches {
            journal.add(&Head { batch: batch.clone(), ..Head::default() }, body).unwrap();
            ends.push(journal.bytes());
        }
        drop(journal);
        let whole = std::fs::read(&path).unwrap();
        assert_eq!(read(&path).unwrap(), (batches.to_vec(), 0));
        for length in 0..whole.len() {
            std::fs::write(&path, &whole[..length]).unwrap();
            let there = ends.iter().take_while(|end| **end <= length as u64).count();
            let before = there.checked_sub(1).map_or(0, |last| ends[last]);
            assert_eq!(read(&path).unwrap(), (batches[..there].to_vec(), length as u64 - before), "{length}");
            // What was cut is removed, and another record fits.
            let (mut journal, _) = Journal::open(&path, |_, _| Ok(())).unwrap();
            journal.add(&Head::default(), b"more").unwrap();
            assert_eq!(read(&path).unwrap().0[there..], [(None, b"more".to_vec())]);
        }
    }

    #[test]
    fn the_rest_of_a_record_that_was_not_added_is_gone_before_the_next_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let (mut journal, _) = Journal::open(&path, |_, _| Ok(())).unwrap();
        journal.add(&Head::default(), b"one").unwrap();
        let length = journal.bytes();
        journal.add(&Head::default(), &[b'x'; 500]).unwrap();
        // As if the second one was refused, and could not be removed.
        journal.length = length;
        journal.add(&Head::default(), b"two").unwrap();
        let bodies = |path: &Path| read(path).unwrap().0.into_iter().map(|(_, body)| body).collect::<Vec<_>>();
        assert_eq!(bodies(&path), [b"one", b"two"]);
        journal.cut_to(length).unwrap();
        journal.add(&Head::default(), b"three").unwrap();
        assert_eq!(bodies(&path), [&b"one"[..], b"three"]);
    }

    #[test]
    fn damage_before_the_end_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let (mut journal, _) = Journal::open(&path, |_, _| Ok(())).unwrap();
        (0..3).for_each(|_| journal.add(&Head::default(), b"some lines").unwrap());
        let mut bytes = std::fs::read(&path).unwrap();
        let one = bytes.len() / 3;
        bytes[one - 3] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        let error = read(&path).unwrap_err().to_string();
        assert!(error.contains("damaged at byte 0") && error.contains("journal"), "{error}");
        // A damaged length is no cut record, wherever the bit is.
        bytes[one - 3] ^= 1;
        for byte in 0..FRAME {
            bytes[one + byte] ^= 0x40;
            std::fs::write(&path, &bytes).unwrap();
            let error = read(&path).unwrap_err().to_string();
            assert!(error.contains(&format!("damaged at byte {one}")), "{byte}: {error}");
            bytes[one + byte] ^= 0x40;
        }
        bytes[one - 3] ^= 1;
        // Of the last record it is one that was not acknowledged; or the file system wrote zeros.
        bytes[one - 3] ^= 1;
        bytes[3 * one - 3] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(read(&path).unwrap().0.len(), 2);
        bytes.truncate(2 * one);
        bytes.resize(5 * one, 0);
        std::fs::write(&path, &bytes).unwrap();
        let (all, cut) = read(&path).unwrap();
        assert_eq!((all.len(), cut), (2, 3 * one as u64));
    }
}
