//! Copies rows of a table without some of them, as deletion does: those of one file
//! ([`copy_rows`]), or of many pieces, one after the other ([`PieceCopy`]).
//!
//! The copy has the bytes that a writer of the remaining rows would make. If no row is lost, large
//! row groups are copied unchanged.

use anyhow::{Context, Result};
use arrow_array::{BooleanArray, RecordBatch};
use arrow_select::filter::filter_record_batch;

use super::Writer;
use super::groups::COPIED;
use crate::tables::columns::Table;
use crate::tables::read::Scan;
use crate::tables::read::piece_scan::PieceScan;
use crate::tables::read::row_range::RowRange;

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

/// Copies pieces of a table, one after the other. Those that are read are read by one reader for
/// all that follow each other in a file.
pub struct PieceCopy {
    pieces: std::vec::IntoIter<CopiedPiece>,
    /// Those that are read.
    scan: PieceScan<'static>,
    /// How many of these were copied.
    passed: usize,
    /// What was read of a later one.
    next: Option<(usize, RecordBatch)>,
}

/// A piece to be copied.
pub struct CopiedPiece {
    /// Its rows.
    pub rows: RowRange,
    /// The number of them, if all stay as they are.
    pub unchanged: Option<u64>,
}

impl CopiedPiece {
    /// Whether its row groups may be large, so that they are copied as they are.
    fn is_appended(&self) -> bool {
        self.unchanged.is_some_and(|rows| rows >= COPIED as u64) && !self.rows.is_sifted()
    }
}

impl PieceCopy {
    /// A copy of these pieces of the table `T`, in this order.
    pub fn new<T: Table>(pieces: Vec<CopiedPiece>) -> PieceCopy {
        let read = pieces.iter().filter(|piece| !piece.is_appended()).map(|piece| piece.rows.clone());
        let columns: Vec<&str> = T::COLUMNS.iter().map(|column| column.name).collect();
        let scan = PieceScan::new(read.collect(), &columns);
        PieceCopy { pieces: pieces.into_iter(), scan, passed: 0, next: None }
    }

    /// Adds what `edit` makes of the rows of the next piece to `to`; it is not called if all stay
    /// as they are.
    ///
    /// # Errors
    /// Names the file that cannot be read or written; or returns the first error of `edit`.
    pub fn next<T: Table>(
        &mut self,
        to: &mut Writer<T>,
        mut edit: impl FnMut(&RecordBatch) -> Result<RecordBatch>,
    ) -> Result<()> {
        let Some(piece) = self.pieces.next() else { return Ok(()) };
        if piece.is_appended() {
            return to.append(&[piece.rows]).map(|_| ());
        }
        let number = self.passed;
        self.passed += 1;
        if self.next.is_none() {
            self.next = self.scan.batch()?;
        }
        while let Some((_, rows)) = self.next.take_if(|(of, _)| *of == number) {
            to.push_rows(&if piece.unchanged.is_some() { rows } else { edit(&rows)? })?;
            self.next = self.scan.batch()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::Int64Array;

    use super::*;
    use crate::records::mix;
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

    #[test]
    fn pieces_that_are_copied_together_are_those_that_are_copied_one_by_one() {
        let folder = tempfile::tempdir().unwrap();
        let file = |number: u64, rows: u64| {
            let path = folder.path().join(format!("{number}.parquet"));
            let mut writer: Writer<UrlRow> = Writer::create(&path).unwrap();
            for doc in 0..rows as i64 {
                writer.push(UrlRow { doc, hash: [doc as u8; 16], url: Some("u"), id: None }).unwrap();
            }
            writer.finish().unwrap();
            RowRange::file(&path)
        };
        let files = [file(0, 40_000), file(1, 9_000)];
        let keep = |piece: u64, doc: i64| !mix(piece * 1_000_000 + doc as u64).is_multiple_of(3);
        let pieces: Vec<(RowRange, bool)> = [
            (files[0].part(0..700), false),
            (files[0].part(700..700), false),
            (files[1].part(0..9000), true),
            (files[0].part(700..9_700), true),
            (files[0].part(9_700..9_720), true),
            (files[1].part(50..8_900), false),
            (files[0].part(9_720..40_000), false),
        ]
        .into();
        let copied = pieces.iter().map(|(rows, is_unchanged)| {
            let unchanged = is_unchanged.then(|| rows.rows().unwrap());
            CopiedPiece { rows: rows.clone(), unchanged }
        });
        let mut copy = PieceCopy::new::<UrlRow>(copied.collect());
        for (number, (rows, is_unchanged)) in pieces.iter().enumerate() {
            let stays = |batch: &RecordBatch| -> Result<BooleanArray> {
                let docs: &Int64Array = field(batch, "doc")?;
                Ok(docs.values().iter().map(|doc| Some(*is_unchanged || keep(number as u64, *doc))).collect())
            };
            let [one, other] = ["one", "other"].map(|name| folder.path().join(format!("{name}-{number}.parquet")));
            let mut writer: Writer<UrlRow> = Writer::create(&one).unwrap();
            copy.next(&mut writer, |batch| Ok(filter_record_batch(batch, &stays(batch)?)?)).unwrap();
            writer.finish().unwrap();
            let mut writer: Writer<UrlRow> = Writer::create(&other).unwrap();
            copy_rows(rows.clone(), &mut writer, &["doc"], stays).unwrap();
            writer.finish().unwrap();
            assert!(std::fs::read(&one).unwrap() == std::fs::read(&other).unwrap(), "piece {number}");
        }
    }
}
