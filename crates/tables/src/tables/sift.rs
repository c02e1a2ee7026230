//! Copies rows of a table without some of them, as deletion does.
//!
//! The copy has the bytes that a writer of the remaining rows would make. If no row is lost, large
//! row groups are copied unchanged.

use anyhow::{Context, Result};
use arrow_array::{BooleanArray, RecordBatch};
use arrow_select::filter::filter_record_batch;

use super::columns::Table;
use super::read::Scan;
use super::row_range::RowRange;
use super::write::Writer;

/// The numbers of rows that [`copy_rows`] copied and left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowCounts {
    /// Rows of the new file.
    pub kept: u64,
    /// Rows of the source that the new file lacks.
    pub left_out: u64,
}

/// Adds to `to` the rows of `from`, a path or some rows of a file, that `keep` selects. `keep`
/// receives batches of the named columns and returns one bool for each row.
///
/// If all rows count ([`RowRange::is_sifted`]), and it selects all of them, large row groups are
/// [appended](Writer::append) as they are.
///
/// Cost: one pass over the named columns; a second one over all columns if rows are left out.
///
/// # Errors
/// Names the file that cannot be read or written; or returns the first error of `keep`.
pub fn copy_rows<T: Table>(
    from: impl Into<RowRange>,
    to: &mut Writer<T>,
    columns: &[&str],
    keep: impl FnMut(&RecordBatch) -> Result<BooleanArray>,
) -> Result<RowCounts> {
    copy::<T>(from.into(), to, columns, keep, None)
}

/// As [`copy_rows`], with rows that `edit` changes: so all are written again.
///
/// # Errors
/// As [`copy_rows`], or the first error of `edit`.
pub fn copy_rows_edited<T: Table>(
    from: impl Into<RowRange>,
    to: &mut Writer<T>,
    columns: &[&str],
    keep: impl FnMut(&RecordBatch) -> Result<BooleanArray>,
    mut edit: impl FnMut(RecordBatch) -> Result<RecordBatch>,
) -> Result<RowCounts> {
    copy::<T>(from.into(), to, columns, keep, Some(&mut edit))
}

fn copy<T: Table>(
    from: RowRange,
    to: &mut Writer<T>,
    columns: &[&str],
    mut keep: impl FnMut(&RecordBatch) -> Result<BooleanArray>,
    mut edit: Option<&mut dyn FnMut(RecordBatch) -> Result<RecordBatch>>,
) -> Result<RowCounts> {
    let mut masks: Vec<BooleanArray> = Vec::new();
    Scan::open(&from, columns)?.for_each(|batch| {
        masks.push(keep(batch)?);
        Ok(())
    })?;
    let rows: u64 = masks.iter().map(|mask| mask.len() as u64).sum();
    let kept: u64 = masks.iter().map(|mask| mask.true_count() as u64).sum();
    let sifted = RowCounts { kept, left_out: rows - kept };
    if sifted.left_out == 0 && !from.is_sifted() && edit.is_none() {
        to.append(&[from])?;
    } else if sifted.kept > 0 {
        let all: Vec<&str> = T::COLUMNS.iter().map(|column| column.name).collect();
        let changed = || format!("{} has changed while it was read", from.path().display());
        let mut masks = masks.iter();
        // Batches have the same rows whatever the columns are.
        Scan::open(&from, &all)?.for_each(|batch| {
            let mask = masks.next().with_context(changed)?;
            let rows = filter_record_batch(batch, mask).with_context(changed)?;
            to.push_rows(&match &mut edit {
                Some(edit) => edit(rows)?,
                None => rows,
            })
        })?;
    }
    Ok(sifted)
}

#[cfg(test)]
mod tests {
    use arrow_array::Int64Array;

    use super::*;
    use crate::tables::{UrlRow, field, pack};

    #[test]
    fn the_copy_has_the_bytes_of_a_file_of_the_remaining_rows() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from.parquet"), folder.path().join("other/to.parquet"));
        let rows = 10_000;
        let mut writer: Writer<UrlRow> = Writer::create(&from).unwrap();
        for doc in 0..rows {
            writer.push(UrlRow { doc, hash: [doc as u8; 16], url: Some(&format!("u{doc}")), id: None }).unwrap();
        }
        writer.finish().unwrap();
        let sifted = |keep: fn(i64) -> bool| {
            let mask = |batch: &RecordBatch| {
                let docs: &Int64Array = field(batch, "doc")?;
                Ok(docs.values().iter().map(|doc| Some(keep(*doc))).collect())
            };
            let mut writer: Writer<UrlRow> = Writer::create(&to).unwrap();
            let sifted = copy_rows(&from, &mut writer, &["doc"], mask).unwrap();
            assert_eq!(writer.finish().unwrap(), sifted.kept);
            (sifted.kept, sifted.left_out)
        };
        assert_eq!(sifted(|_| false), (0, 10_000));
        assert_eq!(sifted(|_| true), (10_000, 0));
        let packed = folder.path().join("packed.parquet");
        pack::<UrlRow>(&[(&from).into()], &packed, &[]).unwrap();
        assert!(std::fs::read(&to).unwrap() == std::fs::read(&packed).unwrap(), "all rows as they are");
        assert_eq!(sifted(|doc| doc % 5000 == 7), (2, 9_998));
        let mut writer: Writer<UrlRow> = Writer::create(&from).unwrap();
        for doc in [7, 5007] {
            writer.push(UrlRow { doc, hash: [doc as u8; 16], url: Some(&format!("u{doc}")), id: None }).unwrap();
        }
        writer.finish().unwrap();
        assert!(std::fs::read(&to).unwrap() == std::fs::read(&from).unwrap(), "as if only these had been written");
    }
}
