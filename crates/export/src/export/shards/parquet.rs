//! Shards of Parquet: rows go from column to column, as in a copy of a file.
//!
//! A row group of a shard has the rows of one or more row groups of the parts, and not more than
//! the largest of these has.

use std::fs::File;
use std::rc::Rc;

use anyhow::{Context as _, Result};
use parquet::file::reader::{FileReader as _, SerializedFileReader};

use super::stored_columns::SameColumns;
use super::{CutFile, Filling, Shards};
use crate::export::rows::{ParquetCopy, PieceOfGroup};

/// The pieces that a row group is made of, at most: a file may be open for each.
const MOST_PIECES: usize = 64;

/// Cuts Parquet files, which have the same columns.
///
/// # Errors
/// If two have other columns, or a file cannot be read or written.
pub(super) fn cut(parts: &[CutFile<'_>], filling: &mut Filling, shards: &mut Shards<'_>) -> Result<()> {
    let Some(first) = parts.first() else { return Ok(()) };
    let most_rows = largest_group(parts)?;
    let mut shard = ParquetShard { first, most_rows, out: None, pieces: Vec::new(), rows: 0 };
    for part in parts {
        let file = Rc::new(open(part)?);
        for (group, metadata) in file.metadata().row_groups().iter().enumerate() {
            let rows = metadata.num_rows().max(0) as usize;
            let size = metadata.compressed_size().max(0) as u64;
            let mut start = 0;
            for row in 0..rows {
                let bytes = bytes_of_row(size, row, rows);
                while filling.ends_before(bytes) {
                    shard.add(PieceOfGroup { file: file.clone(), group, rows: start..row }, shards)?;
                    start = row;
                    shard.end(filling.records, shards)?;
                    filling.begin()?;
                }
                filling.add(bytes);
            }
            shard.add(PieceOfGroup { file: file.clone(), group, rows: start..rows }, shards)?;
        }
        // What is open is read after it was removed, too. The first one is opened for each shard.
        if !std::ptr::eq(part, first) {
            part.remove()?;
        }
    }
    shard.end(filling.records, shards)?;
    while filling.is_short() {
        filling.begin()?;
        shard.end(0, shards)?;
    }
    first.remove()
}

fn open(part: &CutFile<'_>) -> Result<SerializedFileReader<File>> {
    let failed = || format!("cannot read {}", part.path.display());
    SerializedFileReader::new(File::open(&part.path).with_context(failed)?).with_context(failed)
}

/// The bytes of a row of a row group of so many rows: together they are its size.
fn bytes_of_row(size: u64, row: usize, rows: usize) -> u64 {
    let before = |row: usize| (u128::from(size) * row as u128 / rows as u128) as u64;
    before(row + 1) - before(row)
}

/// The rows of the largest row group. Checks that all files have the same columns.
fn largest_group(parts: &[CutFile<'_>]) -> Result<usize> {
    let (mut columns, mut most) = (SameColumns::default(), 0);
    for part in parts {
        let file = open(part)?;
        columns.check(file.metadata().file_metadata(), part.input)?;
        let rows = file.metadata().row_groups().iter().map(|group| group.num_rows().max(0) as usize);
        most = most.max(rows.max().unwrap_or(0));
    }
    Ok(most)
}

/// The shard that is written.
struct ParquetShard<'a> {
    /// The part whose columns and compression shards have.
    first: &'a CutFile<'a>,
    most_rows: usize,
    out: Option<ParquetCopy>,
    /// The rows of the next row group.
    pieces: Vec<PieceOfGroup>,
    rows: usize,
}

impl ParquetShard<'_> {
    /// Adds rows.
    fn add(&mut self, piece: PieceOfGroup, shards: &Shards<'_>) -> Result<()> {
        if piece.rows.is_empty() {
            return Ok(());
        }
        if self.rows + piece.rows.len() > self.most_rows || self.pieces.len() == MOST_PIECES {
            self.end_group(shards)?;
        }
        self.rows += piece.rows.len();
        self.pieces.push(piece);
        Ok(())
    }

    /// Writes the row group, if it has rows. Returns the file, which is begun if it is not.
    fn end_group(&mut self, shards: &Shards<'_>) -> Result<&mut ParquetCopy> {
        let mut out = match self.out.take() {
            Some(out) => out,
            None => {
                let file = open(self.first)?;
                ParquetCopy::begin(file, self.first.input, shards.create()?).with_context(|| shards.failed())?
            }
        };
        out.add(&self.pieces).with_context(|| shards.failed())?;
        self.pieces.clear();
        self.rows = 0;
        Ok(self.out.insert(out))
    }

    /// Ends the file.
    fn end(&mut self, records: u64, shards: &mut Shards<'_>) -> Result<()> {
        self.end_group(shards)?;
        let out = self.out.take().context("a shard is begun")?;
        let file = out.finish().with_context(|| shards.failed())?;
        shards.end(file, records)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_all_bytes_of_their_group() {
        for (size, rows) in [(10, 3), (3, 10), (0, 4), (u64::MAX, 7), (1, 1)] {
            let of_rows: Vec<u64> = (0..rows).map(|row| bytes_of_row(size, row, rows)).collect();
            assert_eq!(of_rows.iter().sum::<u64>(), size);
            assert!(of_rows.iter().max().unwrap() - of_rows.iter().min().unwrap() <= 1, "{of_rows:?}");
        }
    }
}
