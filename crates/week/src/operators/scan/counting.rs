//! Which rows of a file of features count.
//!
//! The rows of a page that stays are in the file of the week that crawled it, beside rows of pages
//! that are gone, or that a later week has crawled again. Readers by place read the file as it is,
//! and pass over these others.

use anyhow::{Result, ensure};
use arrow_array::Int64Array;

use crate::tables::{AscendingColumn, RowRange, Scan, field};

/// The column of documents.
pub(super) const DOCS: &str = "doc";

/// A bit for each row of a file, or of some rows of one: whether it counts.
#[derive(Debug)]
pub(super) struct CountingRows {
    bits: Vec<u64>,
    count: u64,
}

impl CountingRows {
    /// Finds which of the rows count: merges their column `doc` with that of the documents that
    /// these are [live in](RowRange::live_in).
    ///
    /// # Errors
    /// If a file cannot be read, or its documents do not ascend: names the file.
    pub(super) fn of(range: &RowRange) -> Result<CountingRows> {
        let all = AscendingColumn::open(range.with_all_rows(), DOCS)?;
        let mut rows = CountingRows { bits: vec![0; (all.rows() as usize).div_ceil(64)], count: 0 };
        let mut after = 0;
        Scan::open(range, &[DOCS])?.for_each(|batch| {
            let docs: &Int64Array = field(batch, DOCS)?;
            let docs: Vec<u64> = docs.values().iter().map(|doc| *doc as u64).collect();
            let ascend = docs.first().is_none_or(|first| *first >= after) && docs.is_sorted_by(|a, b| a < b);
            ensure!(ascend, "{} is out of order", range.path().display());
            after = docs.last().map_or(after, |last| last.saturating_add(1));
            for (_, row) in all.find(&docs)? {
                rows.bits[row as usize / 64] |= 1 << (row % 64);
                rows.count += 1;
            }
            Ok(())
        })?;
        Ok(rows)
    }

    /// How many rows count.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Whether a row counts.
    pub(super) fn has(&self, row: u64) -> bool {
        self.bits[row as usize / 64] >> (row % 64) & 1 == 1
    }
}
