//! Reading tables: Parquet files to arrow record batches, only the columns asked for.
//!
//! A file is read front to back, batch by batch: memory is that of one batch, and of the Parquet reader's page of each column.

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use arrow_array::{Array, RecordBatch};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};

/// Rows of a batch.
const BATCH: usize = 4096;

/// A reader of one file and some of its columns, in batches of rows.
pub struct Scan {
    path: PathBuf,
    batches: ParquetRecordBatchReader,
}

impl Scan {
    /// Opens the file at `path` and selects the named columns.
    ///
    /// # Errors
    /// Names the file that cannot be opened, is not a Parquet file, or lacks one of the columns.
    pub fn open(path: &Path, columns: &[&str]) -> Result<Scan> {
        Scan::open_by(path, columns, BATCH)
    }

    /// As [`Scan::open`], with batches of `rows` rows.
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

    /// Reads the next batch; `None` at the end of the file.
    ///
    /// # Errors
    /// Names the damaged file.
    pub fn batch(&mut self) -> Result<Option<RecordBatch>> {
        self.batches.next().transpose().with_context(|| format!("{} is damaged", self.path.display()))
    }

    /// Calls `each` with every batch, in the file's order.
    ///
    /// # Errors
    /// Names the damaged file; or returns the first error of `each`.
    pub fn for_each(mut self, mut each: impl FnMut(&RecordBatch) -> Result<()>) -> Result<()> {
        while let Some(batch) = self.batch()? {
            each(&batch)?;
        }
        Ok(())
    }
}

/// A column of a batch, as the array type that the table's [`columns`](super::Table::columns) have.
///
/// ```
/// use arrow_array::{Int64Array, RecordBatch, StringArray};
/// use nigh::tables::{SizeRow, Table, field};
///
/// let columns = SizeRow::columns(&[SizeRow { level: "exact", size: 3, clusters: 8 }]);
/// let batch = RecordBatch::try_from_iter(columns.into_iter().map(|column| (column.name, column.values))).unwrap();
/// assert_eq!(field::<Int64Array>(&batch, "clusters").unwrap().value(0), 8);
/// assert!(field::<StringArray>(&batch, "clusters").is_err());
/// ```
///
/// # Errors
/// If the batch lacks the column, or the column has another type: then this program did not write the file.
pub fn field<'a, A: Array + 'static>(batch: &'a RecordBatch, name: &str) -> Result<&'a A> {
    let column = batch.column_by_name(name).with_context(|| format!("no column `{name}`"))?;
    column
        .as_any()
        .downcast_ref::<A>()
        .with_context(|| format!("column `{name}` has the unexpected type {}", column.data_type()))
}
