//! Reads pieces of tables, one after the other.
//!
//! Pieces are often small and lie one after the other in a file; a reader for each would cost more
//! than their rows. So pieces of one file that follow each other are read by one reader, also if
//! pieces of a few other files come between them.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use anyhow::Result;
use arrow_array::RecordBatch;

use super::Scan;
use super::row_range::RowRange;
use crate::tables::write::groups::BATCH;

/// The most files between whose pieces a reader stays open: each takes the memory of a batch.
const MOST_FILES: usize = 8;

/// A reader of some columns of pieces.
///
/// ```
/// use nigh_tables::tables::{PieceScan, RowRange, SizeRow, Writer};
///
/// # fn main() -> anyhow::Result<()> {
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("sizes.parquet");
/// let mut writer: Writer<SizeRow> = Writer::create(&path)?;
/// (1..6).try_for_each(|size| writer.push(SizeRow { level: "similar", size, clusters: 40 }))?;
/// writer.finish()?;
///
/// let file = RowRange::file(&path);
/// let mut rows = Vec::new();
/// PieceScan::new(vec![file.part(0..2), file.part(2..5)], &["size"]).for_each(|piece, batch| {
///     rows.push((piece, batch.num_rows()));
///     Ok(())
/// })?;
/// assert_eq!(rows, [(0, 2), (1, 3)]);
/// # Ok(())
/// # }
/// ```
pub struct PieceScan<'a> {
    pieces: Vec<RowRange>,
    columns: Vec<&'a str>,
    /// The rows of a batch, at most.
    most: usize,
    /// The run of each piece, by number.
    run_of: Vec<usize>,
    runs: Vec<PieceRun>,
    /// The piece that is read, and how many rows of it are left; `None` if that is not known.
    piece: usize,
    left: Option<u64>,
}

/// Pieces that follow each other in a file.
struct PieceRun {
    rows: RowRange,
    /// The number of the last piece.
    last: usize,
    scan: Option<Scan>,
    /// Rows that were read and belong to a later piece.
    rest: Option<RecordBatch>,
}

impl<'a> PieceScan<'a> {
    /// A reader of these columns of the pieces. A file is opened when its first piece is read.
    pub fn new(pieces: Vec<RowRange>, columns: &[&'a str]) -> PieceScan<'a> {
        let files: HashSet<&Path> = pieces.iter().map(RowRange::path).collect();
        let are_few = files.len() <= MOST_FILES;
        let (mut runs, mut run_of): (Vec<PieceRun>, Vec<usize>) = (Vec::new(), Vec::with_capacity(pieces.len()));
        let mut of_file: HashMap<&Path, usize> = HashMap::new();
        for (number, piece) in pieces.iter().enumerate() {
            let run = of_file.get(piece.path()).copied().filter(|run| are_few || run_of.last() == Some(run));
            let joined = run.and_then(|run| Some((run, runs[run].rows.joined(piece)?)));
            let run = match joined {
                Some((run, rows)) => {
                    (runs[run].rows, runs[run].last) = (rows, number);
                    run
                }
                None => {
                    runs.push(PieceRun { rows: piece.clone(), last: number, scan: None, rest: None });
                    runs.len() - 1
                }
            };
            of_file.insert(piece.path(), run);
            run_of.push(run);
        }
        let left = pieces.first().and_then(RowRange::known_rows);
        PieceScan { columns: columns.to_vec(), most: BATCH, run_of, runs, piece: 0, left, pieces }
    }

    /// The same, with batches of at most `most` rows.
    #[must_use]
    pub(crate) fn by(self, most: usize) -> PieceScan<'a> {
        PieceScan { most, ..self }
    }

    /// The next rows, with the number of their piece; `None` after the last piece.
    ///
    /// # Errors
    /// As [`Scan::open`] and [`Scan::batch`].
    pub fn batch(&mut self) -> Result<Option<(usize, RecordBatch)>> {
        while self.piece < self.pieces.len() {
            let run = &mut self.runs[self.run_of[self.piece]];
            let batch = match (self.left, run.rest.take()) {
                (Some(0), rest) => {
                    run.rest = rest;
                    None
                }
                (_, Some(rest)) => Some(rest),
                (_, None) => {
                    let scan = match &mut run.scan {
                        Some(scan) => scan,
                        none => none.insert(Scan::open_by(&run.rows, &self.columns, self.most)?),
                    };
                    scan.batch()?
                }
            };
            let Some(batch) = batch else {
                if run.last == self.piece {
                    (run.scan, run.rest) = (None, None);
                }
                self.piece += 1;
                self.left = self.pieces.get(self.piece).and_then(RowRange::known_rows);
                continue;
            };
            let rows = batch.num_rows();
            let of_piece = self.left.map_or(rows, |left| rows.min(usize::try_from(left).unwrap_or(rows)));
            self.left = self.left.map(|left| left - of_piece as u64);
            if of_piece < rows {
                run.rest = Some(batch.slice(of_piece, rows - of_piece));
            }
            return Ok(Some((self.piece, batch.slice(0, of_piece))));
        }
        Ok(None)
    }

    /// Calls `each` with all rows, in their order: the number of a piece, and rows of it. A piece
    /// without rows has no call.
    ///
    /// # Errors
    /// As [`PieceScan::batch`], or the first error of `each`.
    pub fn for_each(mut self, mut each: impl FnMut(usize, &RecordBatch) -> Result<()>) -> Result<()> {
        while let Some((piece, batch)) = self.batch()? {
            each(piece, &batch)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::Int64Array;

    use super::*;
    use crate::records::mix;
    use crate::tables::{UrlRow, Writer, field};

    #[test]
    fn pieces_of_any_files_in_any_order_have_the_rows_that_a_reader_of_each_gives() {
        for (seed, files) in [(1, 1), (2, 2), (3, 7), (4, 8), (5, 9), (6, 30)] {
            let folder = tempfile::tempdir().unwrap();
            let random = |at: u64| mix(seed * 1000 + at);
            let file = |number: u64| {
                let path = folder.path().join(format!("{number}.parquet"));
                let mut writer: Writer<UrlRow> = Writer::create(&path).unwrap();
                for doc in 0..random(number) % 20_000 {
                    let doc = (doc + number * 100_000) as i64;
                    writer.push(UrlRow { doc, hash: [doc as u8; 16], url: Some("u"), id: None }).unwrap();
                }
                let rows = writer.finish().unwrap();
                (RowRange::file(&path), rows)
            };
            let files: Vec<(RowRange, u64)> = (0..files).map(file).collect();
            // In most files the next piece begins where the last one ended; some leave rows out, or
            // come again.
            let mut ends = vec![0; files.len()];
            let mut pieces = Vec::new();
            for step in 0..400 {
                let number = random(step * 7 + 1) as usize % files.len();
                let (file, rows) = &files[number];
                let first = match random(step * 7 + 2) % 12 {
                    0 => random(step * 7 + 3) % (rows + 1),
                    _ => ends[number],
                };
                let most = if random(step * 7 + 4).is_multiple_of(3) { 9000 } else { 40 };
                ends[number] = (first + random(step * 7 + 5) % most).min(*rows);
                pieces.push(match random(step * 7 + 6) % 40 {
                    0 => file.clone(),
                    1 => file.part(first..ends[number]).live_in(file.part(first..first + (ends[number] - first) / 2)),
                    _ => file.part(first..ends[number]),
                });
            }
            let docs = |batch: &RecordBatch| field::<Int64Array>(batch, "doc").unwrap().values().to_vec();
            let mut expected = vec![Vec::new(); pieces.len()];
            for (rows, piece) in pieces.iter().zip(&mut expected) {
                let mut scan = Scan::open(rows, &["doc"]).unwrap();
                while let Some(batch) = scan.batch().unwrap() {
                    piece.extend(docs(&batch));
                }
            }
            let mut found = vec![Vec::new(); pieces.len()];
            let mut last = 0;
            let scan = PieceScan::new(pieces, &["doc", "url"]);
            scan.for_each(|piece, batch| {
                assert!(last <= piece && batch.num_rows() > 0 && batch.num_columns() == 2);
                last = piece;
                found[piece].extend(docs(batch));
                Ok(())
            })
            .unwrap();
            assert!(found == expected, "seed {seed}");
        }
    }

    #[test]
    fn a_file_that_ends_too_early_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("urls.parquet");
        let mut writer: Writer<UrlRow> = Writer::create(&path).unwrap();
        writer.push(UrlRow { doc: 1, hash: [1; 16], url: None, id: Some("a") }).unwrap();
        writer.finish().unwrap();
        let file = RowRange::file(&path);
        let mut scan = PieceScan::new(vec![file.part(0..1), file.part(1..2)], &["doc"]);
        let error = std::iter::from_fn(|| scan.batch().transpose()).find_map(Result::err).unwrap().to_string();
        assert!(error.contains("urls.parquet has 1 rows"), "{error}");
    }
}
