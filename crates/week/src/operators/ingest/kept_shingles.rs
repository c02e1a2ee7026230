//! Shingles that are kept while a crawl is read, so that verification need not read its pages
//! again.
//!
//! A worker writes one file for each piece of a crawl file that it reads: a record for each page
//! with words, in the order of the piece.
//!
//! ```text
//! record = offset, hash of the key (2), checksum of the body (2), number of shingles, hash of what follows, shingles     words of 64 bits
//! ```
//!
//! The file gets its name when the piece has ended, and the name has the wave: files of incomplete
//! waves are removed like other ones. A record that is not whole, or a file that is not there, is
//! no failure: the page is read again from the crawl file.

use std::fs::File;
use std::io::{BufRead as _, BufReader, BufWriter, Read as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use xxhash_rust::xxh3::xxh3_64;

use crate::readers::InputPiece;
use crate::state::Unfinished;

/// The words of a record before its shingles.
const HEAD: usize = 7;
/// Bytes that are read or written at once.
const BUFFER: usize = 1 << 20;

/// Where the shingles of the pages of a piece of an input are kept.
pub fn kept_shingles(unfinished: &Unfinished, wave: usize, input: usize, piece: InputPiece) -> PathBuf {
    let name = format!("input{input:08}-piece{:08}-wave{wave:05}.shingles", piece.number);
    unfinished.scratch_table("shingles", &name)
}

/// Which page a record is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptPage {
    /// Its place in the crawl file.
    pub offset: u64,
    /// The hash of its key, in two halves.
    pub key: [u64; 2],
    /// The checksum of its body, in two halves.
    pub checksum: [u64; 2],
}

/// Writes the shingles of one crawl file.
pub struct ShingleWriter {
    path: PathBuf,
    file: BufWriter<File>,
}

impl ShingleWriter {
    /// Begins the file that will be at `path`.
    ///
    /// # Errors
    /// Names the file that cannot be made.
    pub fn create(path: PathBuf) -> Result<ShingleWriter> {
        let failed = || format!("cannot write {}", path.display());
        path.parent().map_or(Ok(()), std::fs::create_dir_all).with_context(failed)?;
        let file = File::create(unfinished(&path)).with_context(failed)?;
        Ok(ShingleWriter { file: BufWriter::with_capacity(BUFFER, file), path })
    }

    /// Adds the shingles of a page, of which some may be equal.
    ///
    /// # Errors
    /// Names the file that cannot be written.
    pub fn push(&mut self, page: KeptPage, shingles: &[u64]) -> Result<()> {
        let KeptPage { offset, key, checksum } = page;
        let bytes: &[u8] = bytemuck::cast_slice(shingles);
        let head = [offset, key[0], key[1], checksum[0], checksum[1], shingles.len() as u64, xxh3_64(bytes)];
        let written = self.file.write_all(bytemuck::cast_slice(&head)).and_then(|()| self.file.write_all(bytes));
        written.with_context(|| format!("cannot write {}", self.path.display()))
    }

    /// Gives the file its name.
    ///
    /// # Errors
    /// Names the file that cannot be written.
    pub fn finish(mut self) -> Result<()> {
        let failed = || format!("cannot write {}", self.path.display());
        self.file.flush().with_context(failed)?;
        std::fs::rename(unfinished(&self.path), &self.path).with_context(failed)
    }
}

/// The path of a file that is not complete.
fn unfinished(path: &Path) -> PathBuf {
    path.with_extension("part")
}

/// Reads the shingles of one crawl file, piece by piece.
pub struct ShingleReader {
    file: BufReader<File>,
    /// Those of the next pieces, the next one last.
    rest: Vec<PathBuf>,
    /// The record that is read: the number of its shingles, and their hash.
    open: Option<(u64, u64)>,
    words: Vec<u64>,
}

impl ShingleReader {
    /// Opens the file of the first piece of a crawl file; `None` if it, or that of another piece,
    /// is not there.
    pub fn open(pieces: &[PathBuf]) -> Option<ShingleReader> {
        let mut rest: Vec<PathBuf> = pieces.iter().rev().cloned().collect();
        if !rest.iter().all(|path| path.is_file()) {
            return None;
        }
        let file = BufReader::with_capacity(BUFFER, File::open(rest.pop()?).ok()?);
        Some(ShingleReader { file, rest, open: None, words: Vec::new() })
    }

    /// The page of the next record; `None` at the end, or where a record is not whole.
    pub fn page(&mut self) -> Option<KeptPage> {
        if let Some((count, _)) = self.open.take() {
            self.file.seek_relative(i64::try_from(count.checked_mul(8)?).ok()?).ok()?;
        }
        while self.file.fill_buf().ok()?.is_empty() {
            self.file = BufReader::with_capacity(BUFFER, File::open(self.rest.pop()?).ok()?);
        }
        let mut head = [0u64; HEAD];
        self.file.read_exact(bytemuck::cast_slice_mut(&mut head)).ok()?;
        let [offset, key_high, key_low, sum_high, sum_low, count, hash] = head;
        self.open = Some((count, hash));
        Some(KeptPage { offset, key: [key_high, key_low], checksum: [sum_high, sum_low] })
    }

    /// The shingles of this page; `None` if they are not whole. Called once for each page at most.
    pub fn shingles(&mut self) -> Option<&[u64]> {
        let (count, hash) = self.open.take()?;
        // No count that a damaged record claims is believed before that many bytes are there.
        let mut bytes = Vec::new();
        self.file.by_ref().take(count.checked_mul(8)?).read_to_end(&mut bytes).ok()?;
        self.words.clear();
        self.words.extend(bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)));
        (self.words.len() as u64 == count && xxh3_64(&bytes) == hash).then_some(&self.words[..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_as_they_were_written_and_broken_ones_are_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kept").join("input00000003-wave00001.shingles");
        let page = |n: u64| KeptPage { offset: 100 * n, key: [n, n + 1], checksum: [n + 2, n + 3] };
        let shingles = |n: u64| -> Vec<u64> { (0..n % 40).map(|word| word * word + n).collect() };
        let mut writer = ShingleWriter::create(path.clone()).unwrap();
        (0..200).for_each(|n| writer.push(page(n), &shingles(n)).unwrap());
        assert!(ShingleReader::open(std::slice::from_ref(&path)).is_none(), "it has no name yet");
        writer.finish().unwrap();
        let mut reader = ShingleReader::open(std::slice::from_ref(&path)).unwrap();
        for n in 0..200 {
            assert_eq!(reader.page(), Some(page(n)));
            if n % 3 == 0 {
                assert_eq!(reader.shingles().unwrap(), shingles(n));
            }
        }
        assert_eq!(reader.page(), None);
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[8 * HEAD * 2 + 3] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        let mut reader = ShingleReader::open(std::slice::from_ref(&path)).unwrap();
        reader.page();
        reader.page();
        assert!(reader.shingles().is_none(), "a flipped bit");
        std::fs::write(&path, &bytes[..8 * HEAD - 1]).unwrap();
        assert_eq!(ShingleReader::open(std::slice::from_ref(&path)).unwrap().page(), None, "half a head");
    }
}
