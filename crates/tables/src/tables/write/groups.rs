//! Writes the row groups of one file, each encoded by its number of rows.
//!
//! A row group of many rows has dictionaries, zstd, statistics and Bloom filters. Their set-up
//! costs about 80 microseconds a column: more than the rows themselves if these are few. So a small
//! row group has none of them: its values are plain, compressed by LZ4, which needs no set-up (3
//! rows of 23 columns, not compressed at all: 50 microseconds instead of 1,900). A Bloom filter
//! begins with room for as many values as the row group may have, and is folded to those that it
//! got: so a row group of a batch or less begins with small ones.
//!
//! | rows of a row group | in a file that stays | in a bundle |
//! |---|---|---|
//! | fewer than 1,000 | small | small |
//! | up to 4,096 | full, with small filters | small |
//! | up to 8,191 | full | small |
//! | more, or values of 4 MiB | full | full, of one piece |
//!
//! The small row groups of a bundle have the rows of several pieces, and are read once or twice
//! before they are packed ([`pack`](crate::tables::pack)): that encodes them with others again.
//! Those of one piece are packed as they are. So the rows of a piece wait in memory until there are
//! enough of them, or the piece ends: then they are encoded beside those of the small pieces before
//! it.
//!
//! How values are encoded, and where Parquet pages end, depends on which rows are added at once,
//! and these come in any batches: so 2,048 are encoded at a time, cut from these or joined. The
//! bytes depend on the rows alone.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufWriter, Sink};
use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, SchemaRef};
use arrow_select::concat::concat_batches;
use parquet::arrow::arrow_writer::{ArrowColumnWriter, ArrowRowGroupWriterFactory, compute_leaves};
use parquet::arrow::{ArrowSchemaConverter, add_encoded_arrow_schema_to_metadata};
use parquet::bloom_filter::Sbbf;
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::Result;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;

use super::digested_file::DigestedFile;
use crate::objects::FileContent;
use crate::tables::read::row_range::OpenRange;

/// A row group of fewer rows, in a file that stays, is small.
pub(crate) const SMALL: usize = 1000;
/// The most rows of a row group that has small Bloom filters: those that a writer collects before
/// it writes them.
pub(crate) const BATCH: usize = 4096;
/// The rows that are encoded at a time, and the most rows of a Parquet page.
pub(crate) const PAGE: usize = 2048;
/// A row group of so many rows is packed as it is; smaller ones are encoded again, together.
pub(crate) const COPIED: usize = 1 << 13;
/// Rows with values of so many bytes do not wait, however few they are.
pub(crate) const HEAVY: u64 = 4 << 20;
/// The most rows of a row group.
pub(crate) const ROW_GROUP: usize = 1 << 17;

/// How the row groups of a file are encoded. All else, such as the key-values, is taken from
/// `full`.
pub(crate) struct Encodings {
    /// Of a row group of many rows.
    pub(crate) full: WriterProperties,
    /// Of one with [`BATCH`] rows or less.
    pub(crate) batch: WriterProperties,
    /// Of a small one.
    pub(crate) small: WriterProperties,
    /// Whether the file is a bundle.
    pub(crate) is_bundle: bool,
}

/// Writes the row groups of one file.
pub(crate) struct GroupWriter {
    file: SerializedFileWriter<BufWriter<DigestedFile>>,
    schema: SchemaRef,
    full: ArrowRowGroupWriterFactory,
    batch: ArrowRowGroupWriterFactory,
    small: ArrowRowGroupWriterFactory,
    is_bundle: bool,
    /// Rows of the row group that are not encoded yet.
    waiting: Waiting,
    /// The row group of the small pieces of a bundle that ended.
    joined: OpenGroup,
    /// The columns of the row group, once it has many rows.
    columns: Option<Vec<ArrowColumnWriter>>,
    /// The rows of the row group so far.
    rows: usize,
    /// The bytes of their values: the same however the rows are cut to batches.
    bytes: u64,
    /// The size of the piece so far, in bytes, without the rows that wait.
    piece_bytes: u64,
}

/// A row group of small pieces.
#[derive(Default)]
struct OpenGroup {
    /// Its columns, if it has rows.
    columns: Option<Vec<ArrowColumnWriter>>,
    rows: usize,
    /// The bytes of their values.
    bytes: u64,
}

/// Rows in their order.
#[derive(Default)]
struct Waiting {
    batches: VecDeque<RecordBatch>,
    rows: usize,
}

impl Waiting {
    fn push(&mut self, batch: RecordBatch) {
        self.rows += batch.num_rows();
        self.batches.push_back(batch);
    }

    /// Takes the next batch, cut to `most` rows.
    fn next(&mut self, most: usize) -> Option<RecordBatch> {
        let batch = self.batches.pop_front()?;
        let count = batch.num_rows().min(most);
        if count < batch.num_rows() {
            self.batches.push_front(batch.slice(count, batch.num_rows() - count));
        }
        self.rows -= count;
        Some(batch.slice(0, count))
    }

    /// Takes `count` rows, or all, as one batch.
    fn take(&mut self, schema: &SchemaRef, count: usize) -> Result<RecordBatch> {
        let (mut taken, mut rows) = (Vec::new(), 0);
        while let Some(batch) = (rows < count).then(|| self.next(count - rows)).flatten() {
            rows += batch.num_rows();
            taken.push(batch);
        }
        match <[RecordBatch; 1]>::try_from(taken) {
            Ok([batch]) => Ok(batch),
            Err(taken) => Ok(concat_batches(schema, &taken)?),
        }
    }
}

/// The size of the values of some rows in bytes.
fn bytes_of_rows(rows: &RecordBatch) -> u64 {
    rows.columns().iter().map(|column| bytes_of(column.as_ref())).sum()
}

/// The size of the values of a column in bytes.
fn bytes_of(column: &dyn Array) -> u64 {
    let rows = column.len() as u64;
    let of_offsets =
        |offsets: &[i32]| rows + offsets.last().zip(offsets.first()).map_or(0, |(end, first)| (end - first) as u64);
    match column.data_type() {
        DataType::Utf8 => of_offsets(column.as_string::<i32>().value_offsets()),
        DataType::Binary => of_offsets(column.as_binary::<i32>().value_offsets()),
        DataType::FixedSizeBinary(width) => rows * *width as u64,
        other => rows * other.primitive_width().unwrap_or(1) as u64,
    }
}

impl GroupWriter {
    /// Makes the file at `path`.
    ///
    /// # Errors
    /// If it cannot be made.
    pub(crate) fn create(path: &Path, schema: SchemaRef, encodings: Encodings) -> Result<GroupWriter> {
        let Encodings { mut full, batch, small, is_bundle } = encodings;
        let of_file = ArrowSchemaConverter::new().convert(&schema)?.root_schema_ptr();
        add_encoded_arrow_schema_to_metadata(&schema, &mut full);
        let file = BufWriter::new(DigestedFile::new(File::create(path)?));
        let file = SerializedFileWriter::new(file, of_file.clone(), Arc::new(full))?;
        // The properties of column writers are those of a file: other ones are taken from files
        // that are not written.
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
            is_bundle,
            waiting: Waiting::default(),
            joined: OpenGroup::default(),
            columns: None,
            rows: 0,
            bytes: 0,
            piece_bytes: 0,
        })
    }

    /// Adds rows to the row group, and begins others when it is full.
    pub(crate) fn write(&mut self, batch: &RecordBatch) -> Result<()> {
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
        self.bytes += bytes_of_rows(&batch);
        self.waiting.push(batch);
        let least = if self.is_bundle { COPIED } else { BATCH + 1 };
        if self.columns.is_none() {
            if self.rows < least && self.bytes < HEAVY {
                return Ok(());
            }
            // The piece gets a row group of its own.
            self.close_joined()?;
        }
        let columns = match &mut self.columns {
            Some(columns) => columns,
            none => none.insert(self.full.create_column_writers(self.file.flushed_row_groups().len())?),
        };
        while self.waiting.rows >= PAGE {
            write_columns(columns, &self.schema, &self.waiting.take(&self.schema, PAGE)?)?;
        }
        Ok(())
    }

    /// The rows of the row group so far, and the bytes of their values.
    pub(crate) fn size(&self) -> (usize, u64) {
        (self.rows, self.bytes)
    }

    /// Ends the row group, if it has rows.
    pub(crate) fn end_group(&mut self) -> Result<()> {
        if let Some(mut columns) = self.columns.take() {
            if self.waiting.rows > 0 {
                let rest = self.waiting.take(&self.schema, self.waiting.rows)?;
                write_columns(&mut columns, &self.schema, &rest)?;
            }
            (self.rows, self.bytes) = (0, 0);
            self.piece_bytes += self.close(columns)?;
        } else if self.is_bundle {
            self.join()?;
            self.close_joined()?;
        } else if self.rows > 0 {
            let encoding = if self.rows < SMALL { &self.small } else { &self.batch };
            let mut columns = encoding.create_column_writers(self.file.flushed_row_groups().len())?;
            while self.waiting.rows > 0 {
                let rows = self.waiting.take(&self.schema, self.waiting.rows.min(PAGE))?;
                write_columns(&mut columns, &self.schema, &rows)?;
            }
            (self.rows, self.bytes) = (0, 0);
            self.close(columns)?;
        }
        Ok(())
    }

    /// Encodes the rows that wait beside those of the small pieces before. They are not copied, so
    /// their pages may depend on batches.
    fn join(&mut self) -> Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        let columns = match &mut self.joined.columns {
            Some(columns) => columns,
            none => none.insert(self.small.create_column_writers(self.file.flushed_row_groups().len())?),
        };
        while let Some(batch) = self.waiting.next(usize::MAX) {
            write_columns(columns, &self.schema, &batch)?;
        }
        self.piece_bytes += self.bytes;
        self.joined.rows += std::mem::take(&mut self.rows);
        self.joined.bytes += std::mem::take(&mut self.bytes);
        Ok(())
    }

    /// Writes the row group of the small pieces that ended, if there are some.
    fn close_joined(&mut self) -> Result<()> {
        match std::mem::take(&mut self.joined).columns {
            Some(columns) => self.close(columns).map(|_| ()),
            None => Ok(()),
        }
    }

    /// Writes the row group of these columns. Returns its size in bytes.
    fn close(&mut self, columns: Vec<ArrowColumnWriter>) -> Result<u64> {
        let mut group = self.file.next_row_group()?;
        for column in columns {
            column.close()?.append_to_row_group(&mut group)?;
        }
        Ok(group.close()?.compressed_size() as u64)
    }

    /// Ends the piece of a bundle. Returns its size in bytes, which depends on its rows alone.
    pub(crate) fn end_piece(&mut self) -> Result<u64> {
        if self.columns.is_some() {
            self.end_group()?;
        } else {
            self.join()?;
            if self.joined.rows >= COPIED || self.joined.bytes >= HEAVY {
                self.close_joined()?;
            }
        }
        Ok(std::mem::take(&mut self.piece_bytes))
    }

    /// Ends the row group, and adds one of another file as it is.
    pub(crate) fn append(&mut self, opened: &OpenRange, number: usize) -> Result<()> {
        self.end_group()?;
        let OpenRange { file, footer, .. } = opened;
        let group = footer.metadata().row_group(number);
        let index = footer.metadata().page_index_for_row_group(number);
        let mut next = self.file.next_row_group()?;
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
        self.piece_bytes += next.close()?.compressed_size() as u64;
        Ok(())
    }

    /// Ends the file. Returns its size and digest.
    pub(crate) fn finish(mut self) -> Result<FileContent> {
        self.end_group()?;
        let file = self.file.into_inner()?.into_inner().map_err(|error| error.into_error())?;
        Ok(file.content())
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
