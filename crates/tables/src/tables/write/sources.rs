//! Rows of other files that a file takes: which row groups are copied as they are, and which rows
//! are read and encoded again.

use std::ops::Range;

use anyhow::Result;

use super::groups::{BATCH, COPIED, HEAVY};
use crate::tables::read::row_range::{GroupRows, RowRange};

/// A row group with values of so many bytes, encoded, is copied however few rows it has. The small
/// ones of a bundle have less: values of [`HEAVY`] bytes, and less than as much for lengths and
/// nulls.
const COPIED_BYTES: i64 = 2 * HEAVY as i64;
/// [`COPIED`] as a number of rows of a file.
const COPIED_ROWS: u64 = COPIED as u64;

/// Rows that are added in one way.
pub(super) struct RowSource {
    /// The number of their source.
    pub(super) source: usize,
    pub(super) rows: RowRange,
    /// The number of the row group that they are, if it is copied as it is.
    pub(super) copied: Option<usize>,
}

/// Cuts sources into large row groups and what lies between them. Parts without rows are left out.
pub(super) fn parts(sources: &[RowRange]) -> Result<Vec<RowSource>> {
    let mut parts = Vec::new();
    for (source, rows) in sources.iter().enumerate() {
        if rows.known_rows() == Some(0) {
            continue;
        }
        let opened = rows.open()?;
        let first = opened.rows.start;
        let mut small: Option<Range<u64>> = None;
        let part = |range: Range<u64>, copied| RowSource { source, rows: rows.part(range), copied };
        for GroupRows { group, rows: of_group, is_whole } in opened.by_group() {
            let range = of_group.start - first..of_group.end - first;
            let is_heavy = opened.footer.metadata().row_group(group).total_byte_size() >= COPIED_BYTES;
            if is_whole && (is_heavy || range.end - range.start >= COPIED_ROWS) {
                parts.extend(small.take().map(|small| part(small, None)));
                parts.push(part(range, Some(group)));
            } else {
                small = Some(small.map_or(range.start, |small| small.start)..range.end);
            }
        }
        parts.extend(small.map(|small| part(small, None)));
    }
    Ok(parts)
}

/// The rows of a batch in which small parts are read: few if their values are large.
pub(super) fn batch_rows(parts: &[RowSource]) -> Result<usize> {
    let mut rows = BATCH as u64;
    for part in parts.iter().filter(|part| part.copied.is_none()) {
        let opened = part.rows.open()?;
        for GroupRows { group, .. } in opened.by_group() {
            let group = opened.footer.metadata().row_group(group);
            let bytes_of_row = group.total_byte_size().unsigned_abs() / group.num_rows().unsigned_abs().max(1);
            rows = rows.min(HEAVY / bytes_of_row.max(1));
        }
    }
    Ok(rows.max(16) as usize)
}
