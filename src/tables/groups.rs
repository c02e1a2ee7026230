//! Writes the row groups of one file, each encoded by its number of rows.
//!
//! A row group of many rows has dictionaries, zstd, statistics and Bloom filters. Their set-up costs
//! about 80 microseconds a column: more than the rows themselves if these are few. So a small row
//! group has none of them: its values are plain, compressed by LZ4, which needs no set-up (3 rows of 23
//! columns, not compressed at all: 50 microseconds instead of 1,900). A Bloom filter begins with room
//! for as many values as the row group may have, and is folded to those that it got: so a row group of a
//! batch or less begins with small ones. Which of the three it is, is known when a second batch comes,
//! or when the row group ends.

use std::fs::File;
use std::io::{BufWriter, Sink};
use std::path::Path;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use parquet::arrow::arrow_writer::{ArrowColumnWriter, ArrowRowGroupWriterFactory, compute_leaves};
use parquet::arrow::{ArrowSchemaConverter, add_encoded_arrow_schema_to_metadata};
use parquet::bloom_filter::Sbbf;
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::Result;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;

use super::row_groups::Opened;

/// A row group of fewer rows is small.
pub(super) const SMALL: usize = 1000;
/// The most rows of a row group that has small Bloom filters: those that a writer collects before it writes them.
pub(super) const BATCH: usize = 4096;
/// The most rows of a row group.
pub(super) const ROW_GROUP: usize = 1 << 17;

/// How the row groups of a file are encoded. All else, such as the key-values, is taken from `full`.
pub(super) struct Encodings {
    /// Of a row group of many rows.
    pub(super) full: WriterProperties,
    /// Of one with [`BATCH`] rows or less.
    pub(super) batch: WriterProperties,
    /// Of one with fewer than [`SMALL`].
    pub(super) small: WriterProperties,
}

/// Writes the row groups of one file.
pub(super) struct GroupWriter {
    file: SerializedFileWriter<BufWriter<File>>,
    schema: SchemaRef,
    full: ArrowRowGroupWriterFactory,
    batch: ArrowRowGroupWriterFactory,
    small: ArrowRowGroupWriterFactory,
    /// The rows of the row group so far, while they are few.
    waiting: Vec<RecordBatch>,
    /// The columns of the row group, once it has many rows.
    columns: Option<Vec<ArrowColumnWriter>>,
    /// The rows of the row group so far.
    rows: usize,
}

impl GroupWriter {
    /// Makes the file at `path`.
    ///
    /// # Errors
    /// If it cannot be made.
    pub(super) fn create(path: &Path, schema: SchemaRef, encodings: Encodings) -> Result<GroupWriter> {
        let Encodings { mut full, batch, small } = encodings;
        let of_file = ArrowSchemaConverter::new().convert(&schema)?.root_schema_ptr();
        add_encoded_arrow_schema_to_metadata(&schema, &mut full);
        let file = BufWriter::new(File::create(path)?);
        let file = SerializedFileWriter::new(file, of_file.clone(), Arc::new(full))?;
        // The properties of column writers are those of a file: other ones are taken from files that are not written.
        let unwritten = |properties| -> Result<ArrowRowGroupWriterFactory> {
            let file: SerializedFileWriter<Sink> =
                SerializedFileWriter::new(std::io::sink(), of_file.clone(), Arc::new(properties))?;
            Ok(ArrowRowGroupWriterFactory::new(&file, schema.clone()))
        };
        Ok(GroupWriter {
            full: ArrowRowGroupWriterFactory::new(&file, schema.clone()),
            batch: unwritten(batch)?,
            small: unwritten(small)?,
            file,
            schema,
            waiting: Vec::new(),
            columns: None,
            rows: 0,
        })
    }

    /// Adds rows to the row group, and begins others when it is full.
    pub(super) fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let mut first = 0;
        while first < batch.num_rows() {
            if self.rows == ROW_GROUP {
                self.end_group()?;
            }
            let count = (batch.num_rows() - first).min(ROW_GROUP - self.rows);
            self.add(batch.slice(first, count))?;
            first += count;
        }
        Ok(())
    }

    /// Adds rows for which the row group has room.
    fn add(&mut self, batch: RecordBatch) -> Result<()> {
        self.rows += batch.num_rows();
        self.waiting.push(batch);
        if self.columns.is_none() && self.rows <= BATCH {
            return Ok(());
        }
        let columns = match &mut self.columns {
            Some(columns) => columns,
            none => none.insert(self.full.create_column_writers(self.file.flushed_row_groups().len())?),
        };
        self.waiting.drain(..).try_for_each(|batch| write_columns(columns, &self.schema, &batch))
    }

    /// Ends the row group, if it has rows.
    pub(super) fn end_group(&mut self) -> Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        let columns = match self.columns.take() {
            Some(columns) => columns,
            None => {
                let encoding = if self.rows < SMALL { &self.small } else { &self.batch };
                let mut columns = encoding.create_column_writers(self.file.flushed_row_groups().len())?;
                self.waiting.drain(..).try_for_each(|batch| write_columns(&mut columns, &self.schema, &batch))?;
                columns
            }
        };
        self.rows = 0;
        let mut group = self.file.next_row_group()?;
        for column in columns {
            column.close()?.append_to_row_group(&mut group)?;
        }
        group.close().map(|_| ())
    }

    /// Ends the row group, and adds those of another file as they are.
    pub(super) fn append(&mut self, opened: &Opened) -> Result<()> {
        self.end_group()?;
        append(&mut self.file, opened)
    }

    /// The number of row groups that are ended, and their size in bytes.
    pub(super) fn written(&self) -> (usize, u64) {
        let groups = self.file.flushed_row_groups();
        (groups.len(), groups.iter().map(|group| group.compressed_size() as u64).sum())
    }

    /// Ends the file.
    pub(super) fn finish(mut self) -> Result<()> {
        self.end_group()?;
        self.file.into_inner()?.into_inner().map_err(|error| error.into_error())?;
        Ok(())
    }
}

/// Adds the rows of a batch to the columns of a row group.
fn write_columns(columns: &mut [ArrowColumnWriter], schema: &SchemaRef, batch: &RecordBatch) -> Result<()> {
    let mut columns = columns.iter_mut();
    for (field, values) in schema.fields().iter().zip(batch.columns()) {
        for leaf in compute_leaves(field.as_ref(), values)? {
            columns.next().expect("a column of the schema has a writer").write(&leaf)?;
        }
    }
    Ok(())
}

/// Adds the row groups of a file that is open.
pub(super) fn append(writer: &mut SerializedFileWriter<BufWriter<File>>, opened: &Opened) -> Result<()> {
    let Opened { file, footer, groups } = opened;
    for number in groups.clone() {
        let group = footer.metadata().row_group(number);
        let index = footer.metadata().page_index_for_row_group(number);
        let mut next = writer.next_row_group()?;
        for (place, column) in group.columns().iter().enumerate() {
            let closed = ColumnCloseResult {
                bytes_written: column.compressed_size() as u64,
                rows_written: group.num_rows() as u64,
                metadata: column.clone(),
                bloom_filter: Sbbf::read_from_column_chunk(column, file)?,
                column_index: index.column_index(place).cloned(),
                offset_index: index.offset_index(place).cloned(),
            };
            next.append_column(file, closed)?;
        }
        next.close()?;
    }
    Ok(())
}
