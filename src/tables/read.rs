//! Parquet files to rows: only the columns asked for, batch by batch.

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use arrow_array::{Array, RecordBatch};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};

/// Rows that are read at a time.
const BATCH: usize = 4096;

/// The batches of one file, with some of its columns.
pub struct Scan {
    path: PathBuf,
    batches: ParquetRecordBatchReader,
}

impl Scan {
    /// Opens the file at `path` for the named columns.
    ///
    /// # Errors
    /// Names the file that cannot be opened, is no Parquet file, or lacks a column.
    pub fn open(path: &Path, columns: &[&str]) -> Result<Scan> {
        Scan::open_by(path, columns, BATCH)
    }

    /// As [`Scan::open`], for batches of so many rows.
    ///
    /// # Errors
    /// As [`Scan::open`].
    pub fn open_by(path: &Path, columns: &[&str], rows: usize) -> Result<Scan> {
        let failed = || format!("cannot read {}", path.display());
        let file = File::open(path).with_context(failed)?;
        let builder = ParquetRecordBatchReaderBuilder::try_new(file).with_context(failed)?;
        let schema = builder.schema();
        if let Some(missing) = columns.iter().find(|column| schema.index_of(column).is_err()) {
            bail!("{} has no column `{missing}`", path.display());
        }
        let mask = ProjectionMask::columns(builder.parquet_schema(), columns.iter().copied());
        let batches = builder.with_projection(mask).with_batch_size(rows).build().with_context(failed)?;
        Ok(Scan { path: path.to_owned(), batches })
    }

    /// The next batch; `None` at the end.
    ///
    /// # Errors
    /// Names the file where it is damaged.
    pub fn batch(&mut self) -> Result<Option<RecordBatch>> {
        self.batches.next().transpose().with_context(|| format!("{} is damaged", self.path.display()))
    }

    /// Calls `each` for every batch.
    ///
    /// # Errors
    /// Names the file where it is damaged; or the first error of `each`.
    pub fn for_each(mut self, mut each: impl FnMut(&RecordBatch) -> Result<()>) -> Result<()> {
        while let Some(batch) = self.batch()? {
            each(&batch)?;
        }
        Ok(())
    }
}

/// A column of a batch, as the array type that its table declares.
///
/// # Errors
/// Where the file's column has another type: it was not written by this program.
pub fn field<'a, A: Array + 'static>(batch: &'a RecordBatch, name: &str) -> Result<&'a A> {
    let column = batch.column_by_name(name).with_context(|| format!("no column `{name}`"))?;
    column
        .as_any()
        .downcast_ref::<A>()
        .with_context(|| format!("column `{name}` has the unexpected type {}", column.data_type()))
}
