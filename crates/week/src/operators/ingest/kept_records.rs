//! What was read of a wave that is not committed: kept, if the config says so, so that the next run
//! need not read it again.
//!
//! Waves cannot be made smaller for runs that are often interrupted: documents get their ids wave
//! by wave, so other waves make other ids. But what is read of a piece of a crawl file depends on
//! that piece alone. A worker writes one file for each piece that it has read to its end, with the
//! records and the counts; the next run, whose processes and workers may be others, takes them from
//! there. Lost work is then at most the pieces that were being read: 64 MiB, or a file that is read
//! as a whole.
//!
//! ```text
//! _nigh/work/scratch-DATE/read/wave00007/input00000012-piece00000003-of00000020.read
//!     the version of nigh and of the records, and a line feed; for each record its length (32 bits), the XXH3 of its
//!     bytes (64) and these (postcard); the last record has the counts
//! ```
//!
//! The file gets its name when all of it is durable. The files of a wave are removed when the wave
//! is committed.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::capture::PackedCapture;
use super::failures::FailedDownload;
use super::notes::BadRecord;
use crate::readers::InputPiece;
use crate::state::{ReadingCounts, Unfinished};

/// What a file begins with: another version may have other records. Raise their number when what
/// the source emits ([`CrawlRecord`]) changes its form between releases, so that a program of
/// another commit does not take bytes for what they are not.
const HEAD: &str = concat!("nigh ", env!("CARGO_PKG_VERSION"), ", records 3\n");

/// Bytes that are read or written at once.
const BUFFER: usize = 1 << 20;

/// A record that the source emits.
#[derive(Serialize, Deserialize)]
pub(super) enum CrawlRecord {
    /// A capture, for the owner of its shard.
    Answer(PackedCapture),
    /// A download that failed, for the owner of its shard.
    Failed(Box<FailedDownload>),
    /// A bad record, for the commit.
    Bad(BadRecord),
}

/// A record of a file.
#[derive(Serialize, Deserialize)]
pub(super) enum KeptRecord<R> {
    /// What the source emitted.
    Emitted(R),
    /// The counts of the piece, at its end.
    End(Box<ReadingCounts>),
}

/// Where what was read of a piece of an input is kept.
pub(super) fn kept_records(unfinished: &Unfinished, wave: usize, input: usize, piece: InputPiece) -> PathBuf {
    // A run with another `split-files` has other pieces.
    let InputPiece { number, of } = piece;
    unfinished.read_of_wave(wave).join(format!("input{input:08}-piece{number:08}-of{of:08}.read"))
}

/// Removes what was read of a wave; it is committed.
pub(super) fn forget_records(unfinished: &Unfinished, wave: usize) -> Result<()> {
    let folder = unfinished.read_of_wave(wave);
    match std::fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", folder.display()))
        }
        _ => Ok(()),
    }
}

/// Writes what is read of one piece.
pub(super) struct RecordWriter {
    path: PathBuf,
    file: BufWriter<File>,
    buffer: Vec<u8>,
}

impl RecordWriter {
    /// Begins the file that will be at `path`.
    ///
    /// # Errors
    /// Names the file that cannot be made.
    pub(super) fn create(path: PathBuf) -> Result<RecordWriter> {
        let failed = || format!("cannot write {}", path.display());
        path.parent().map_or(Ok(()), std::fs::create_dir_all).with_context(failed)?;
        let file = File::create(path.with_extension("part")).with_context(failed)?;
        let mut file = BufWriter::with_capacity(BUFFER, file);
        file.write_all(HEAD.as_bytes()).with_context(failed)?;
        Ok(RecordWriter { file, path, buffer: Vec::new() })
    }

    /// Adds a record.
    ///
    /// # Errors
    /// Names the file that cannot be written.
    pub(super) fn push(&mut self, record: &KeptRecord<&CrawlRecord>) -> Result<()> {
        self.buffer.clear();
        self.buffer =
            postcard::to_extend(record, std::mem::take(&mut self.buffer)).context("a record is plain data")?;
        let length = u32::try_from(self.buffer.len()).context("a record is shorter than 4 GiB")?;
        let sum = xxh3_64(&self.buffer).to_le_bytes();
        let parts = [&length.to_le_bytes()[..], &sum, &self.buffer];
        let written = parts.into_iter().try_for_each(|part| self.file.write_all(part));
        written.with_context(|| format!("cannot write {}", self.path.display()))
    }

    /// Ends the file with the counts of the piece.
    ///
    /// # Errors
    /// Names the file that cannot be written.
    pub(super) fn finish(mut self, counts: &ReadingCounts) -> Result<()> {
        self.push(&KeptRecord::End(Box::new(counts.clone())))?;
        let failed = || format!("cannot write {}", self.path.display());
        self.file.flush().and_then(|()| self.file.get_ref().sync_all()).with_context(failed)?;
        std::fs::rename(self.path.with_extension("part"), &self.path).with_context(failed)
    }
}

/// Reads what was kept of one piece.
pub(super) struct RecordReader {
    path: PathBuf,
    file: BufReader<File>,
    buffer: Vec<u8>,
}

impl RecordReader {
    /// Opens the file; `None` if the piece was not read to its end, or by another version.
    ///
    /// # Errors
    /// Names the file that cannot be opened.
    pub(super) fn open(path: &Path) -> Result<Option<RecordReader>> {
        match File::open(path) {
            Ok(file) => {
                let mut file = BufReader::with_capacity(BUFFER, file);
                let mut head = Vec::new();
                let read = file.by_ref().take(HEAD.len() as u64).read_to_end(&mut head);
                read.with_context(|| format!("cannot read {}", path.display()))?;
                let is_ours = head == HEAD.as_bytes();
                Ok(is_ours.then(|| RecordReader { path: path.to_owned(), file, buffer: Vec::new() }))
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
        }
    }

    /// The next record.
    ///
    /// # Errors
    /// Names the file if it is damaged: some of its records were emitted already, so the piece
    /// cannot be read instead.
    pub(super) fn next(&mut self) -> Result<KeptRecord<CrawlRecord>> {
        let damaged =
            || format!("{} is damaged: remove it, and its part of the input is read again", self.path.display());
        let (mut length, mut sum) = ([0; 4], [0; 8]);
        self.file.read_exact(&mut length).and_then(|()| self.file.read_exact(&mut sum)).with_context(damaged)?;
        let length = u32::from_le_bytes(length);
        self.buffer.clear();
        // No length that a damaged file claims is believed before that many bytes are there.
        self.file.by_ref().take(length.into()).read_to_end(&mut self.buffer).with_context(damaged)?;
        let is_whole = self.buffer.len() == length as usize && xxh3_64(&self.buffer).to_le_bytes() == sum;
        ensure!(is_whole, damaged());
        postcard::from_bytes(&self.buffer).with_context(damaged)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bad(ordinal: u64) -> BadRecord {
        BadRecord { file: 3, ordinal, offset: 7, url: None, reason: "no url".into(), is_duplicate: false }
    }

    #[test]
    fn records_are_read_as_they_were_written_and_only_when_the_piece_has_ended() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("wave00001/a.read");
        let mut writer = RecordWriter::create(path.clone()).unwrap();
        writer.push(&KeptRecord::Emitted(&CrawlRecord::Bad(bad(1)))).unwrap();
        writer.push(&KeptRecord::Emitted(&CrawlRecord::Bad(bad(2)))).unwrap();
        assert!(RecordReader::open(&path).unwrap().is_none());
        let counts = ReadingCounts { records: 2, ..ReadingCounts::default() };
        writer.finish(&counts).unwrap();
        let mut reader = RecordReader::open(&path).unwrap().unwrap();
        for ordinal in [1, 2] {
            let KeptRecord::Emitted(CrawlRecord::Bad(read)) = reader.next().unwrap() else { panic!("it is bad") };
            assert_eq!(read, bad(ordinal));
        }
        assert!(matches!(reader.next().unwrap(), KeptRecord::End(read) if *read == counts));
    }

    #[test]
    fn a_file_that_is_cut_is_named_with_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.read");
        let mut writer = RecordWriter::create(path.clone()).unwrap();
        writer.push(&KeptRecord::Emitted(&CrawlRecord::Bad(bad(1)))).unwrap();
        writer.finish(&ReadingCounts::default()).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        let cut = (0..bytes.len()).map(|left| bytes[..left].to_vec());
        let flipped = (0..bytes.len()).map(|at| {
            let mut bytes = bytes.clone();
            bytes[at] ^= 0x20;
            bytes
        });
        for (left, bytes) in (0..bytes.len()).cycle().zip(cut.chain(flipped)) {
            std::fs::write(&path, bytes).unwrap();
            let opened = RecordReader::open(&path).unwrap();
            // Of another version, as far as it says.
            assert_eq!(opened.is_some(), left >= HEAD.len(), "{left}");
            let Some(mut reader) = opened else { continue };
            let mut read = 0;
            let error = loop {
                match reader.next() {
                    Ok(_) => read += 1,
                    Err(error) => break error,
                }
            };
            assert!(read < 2, "{left}: both records are right");
            let text = format!("{error:#}");
            assert!(text.contains("a.read is damaged: remove it"), "{left}: {text}");
        }
    }
}
