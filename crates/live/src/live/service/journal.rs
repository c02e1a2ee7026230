//! The journal: the batches that were taken since the tables of the store were made, as they were
//! sent.
//!
//! ```text
//! record   length of the head (4 bytes), of the body (4), checksum of these lengths (4), checksum of both parts (16): little-endian;
//!          then head and body
//! head     {"format": 1, "batch": "the id that the client gave", "by": "id"}; with "taken": true for what is kept of all batches before a
//!          commit, with "answered": true for what is kept of the batch before it, with "rest": true for lines that no table can have
//! body     the lines of the batch; or a line for each of those batches, with its answers
//! ```
//!
//! What is kept, and the lines that no table can have, are written before the commands of a commit
//! (`makes` says what these make), and are all that a journal has after it. If the process ends
//! between the two, and the tables are made, the next one begins the journal again. If they are
//! made in part, the batches are applied to tables that have some of them already: their answers
//! would be other ones. So would be those of batches that come after a commit that changed tables
//! and failed: the answers of each of these are written after it, until a commit is made.
//!
//! `commits` says with which tables the records after it belong together. If another program has
//! changed the tables since, changes get other numbers, and this is noted: a record that is
//! `answered`, with no lines.
//!
//! A batch is acknowledged after its record is on the disk. A record that the end of the file cuts
//! was not acknowledged: it is removed when the journal is opened. Damage before the last record is
//! an error.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use crate::live::engine::Given;
use crate::live::follow::Place;
use crate::records::{DocumentKey, checksum};
use crate::state::{replace_with, sync_folder};

/// The bytes before the head.
const FRAME: usize = 28;
/// The format of heads that this version writes, and the largest that it reads. Those of format 0
/// do not name it: they have no `rest`, `commits` and `makes`.
const FORMAT: u32 = 1;

/// What a journal has of a batch besides its lines.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Head {
    /// The format; the one that is written is [`FORMAT`].
    #[serde(default)]
    pub(super) format: u32,
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
    /// Whether this is not a batch, but the documents of those before a commit that no table can
    /// have.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) rest: bool,
    /// Of such records, the numbers that were given by then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) given: Option<Given>,
    /// The number of commits of the store when its tables were those that the next records follow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) commits: Option<u64>,
    /// Of what is kept before the commands of a commit: what these make.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) makes: Option<Makes>,
    /// How far files of a followed folder are read with this batch, or were by then.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) followed: BTreeMap<String, Place>,
    /// Where the body begins in the journal, of a record that was read.
    #[serde(skip)]
    pub(super) body_at: u64,
}

impl Head {
    /// Whether this is a batch.
    pub(super) fn is_batch(&self) -> bool {
        !(self.taken || self.answered || self.rest)
    }
}

/// What the commands of a commit make of the tables.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Makes {
    /// The number of commits of the store before and after them.
    pub(super) from: u64,
    pub(super) to: u64,
    /// The file with the names of documents that they delete, and the one of those that they add,
    /// in the folder of the journal.
    pub(super) deleted: Option<String>,
    pub(super) added: Option<String>,
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
        replace_with(&self.path, |file| {
            records.iter().try_for_each(|(head, body)| Ok(file.write_all(&record_of(head, body)?)?))
        })?;
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
        let no_head = || format!("{}: no head at byte {at}", self.path.display());
        let FormatOfHead { format } = serde_json::from_slice(&record).with_context(no_head)?;
        ensure!(
            format <= FORMAT,
            "the journal {} has a record of format {format} at byte {at}, of a newer version of nigh: this one reads formats up to \
             {FORMAT}. Start the newer one",
            self.path.display()
        );
        let mut head: Head = serde_json::from_slice(&record).with_context(no_head)?;
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
    let head = Head { format: FORMAT, ..head.clone() };
    let head = serde_json::to_vec(&head).context("plain data has a JSON form")?;
    let length = |part: &[u8]| u32::try_from(part.len()).context("a record of the journal has 4 GiB at most");
    let (head_bytes, body_bytes) = (length(&head)?, length(body)?);
    let mut record = Vec::with_capacity(FRAME + head.len() + body.len());
    record.resize(FRAME, 0);
    record.extend_from_slice(&head);
    record.extend_from_slice(body);
    let sum = checksum_of(&record[FRAME..], head_bytes, body_bytes);
    record[..8].copy_from_slice([head_bytes.to_le_bytes(), body_bytes.to_le_bytes()].as_flattened());
    let sum_of_lengths = checksum_of_lengths(&record[..8]);
    record[8..12].copy_from_slice(&sum_of_lengths);
    record[12..FRAME].copy_from_slice(&sum);
    Ok(record)
}

/// The format of a head, which may have fields that are not known here.
#[derive(Deserialize)]
struct FormatOfHead {
    #[serde(default)]
    format: u32,
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
    fn a_newer_format_is_refused_and_the_first_one_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        // As a version of nigh wrote it that did not name the format, or will write it.
        let write = |head: &str| {
            let mut record = vec![0; FRAME];
            record.extend_from_slice(head.as_bytes());
            record.extend_from_slice(b"lines");
            let (head, body) = (head.len() as u32, 5);
            let sum = checksum_of(&record[FRAME..], head, body);
            record[..8].copy_from_slice([head.to_le_bytes(), body.to_le_bytes()].as_flattened());
            let sum_of_lengths = checksum_of_lengths(&record[..8]);
            record[8..12].copy_from_slice(&sum_of_lengths);
            record[12..FRAME].copy_from_slice(&sum);
            std::fs::write(&path, record).unwrap();
        };
        write("{\"batch\":\"a\",\"by\":\"id\"}");
        assert_eq!(read(&path).unwrap().0, [(Some("a".to_owned()), b"lines".to_vec())]);
        write("{\"format\":2,\"batch\":[\"of another kind\"]}");
        let error = read(&path).unwrap_err().to_string();
        assert!(error.contains("format 2 at byte 0") && error.contains("up to 1. Start the newer one"), "{error}");
        let (mut journal, _) = Journal::open(&folder.path().join("other"), |_, _| Ok(())).unwrap();
        journal.add(&Head::default(), b"lines").unwrap();
        let (mut journal, size) = Journal::at(&folder.path().join("other")).unwrap();
        assert_eq!(journal.next(size).unwrap().unwrap().0.format, FORMAT);
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
