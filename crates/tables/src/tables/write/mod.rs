//! Writing tables: rows to Parquet files.
//!
//! A file is written under a temporary name and gets its own when it is complete, so no reader
//! finds half a file. The commit makes it durable (`state::sync_folder`).
//!
//! In reading order: `properties` (how columns are encoded), `digested_file` (a file and the digest
//! of what is written to it), `groups` (the row groups of a file), `sources` (which rows of other
//! files are copied as they are), `found_links` (links of pages to files), `pack` (the rows of
//! several files to one), `sift` (a copy of rows without some of them).

mod digested_file;
pub(super) mod found_links;
pub(super) mod groups;
pub(super) mod pack;
mod properties;
pub(super) mod sift;
mod sources;
#[cfg(test)]
mod tests;

use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{Field, Schema};
use parquet::file::metadata::KeyValue;

use crate::objects::FileContent;
use crate::tables::columns::describe;
use crate::tables::columns::values::ColumnBuilder;
use crate::tables::columns::{Row, Table, TableSpec};
use crate::tables::read::guard::decoded;
use crate::tables::read::piece_scan::PieceScan;
use crate::tables::read::row_range::RowRange;
use groups::{BATCH, Encodings, GroupWriter, HEAVY};
use properties::{properties, small_properties};
use sources::{RowSource, batch_rows, parts};

/// Row groups that are read and encoded again are joined until they have so many rows: enough that
/// what each costs is little beside its rows, and few enough that a reader of one piece decodes few
/// rows of others.
const MERGED: usize = 1 << 15;
/// The same for rows with large values.
const MERGED_BYTES: u64 = 4 * HEAVY;

/// Writes one file of a table, row by row. A writer that is dropped before [`Writer::finish`]
/// leaves no file of that name.
pub struct Writer<T: Table> {
    file: TableFile,
    table: PhantomData<T>,
}

impl<T: Table> Writer<T> {
    /// Makes the folder of `path`, and a writer of the file, which appears when [`Writer::finish`]
    /// is called.
    ///
    /// # Errors
    /// Names the folder that cannot be made.
    pub fn create(path: &Path) -> Result<Writer<T>> {
        Ok(Writer { file: TableFile::create(path, T::SPEC)?, table: PhantomData })
    }

    /// As [`Writer::create`], of a bundle: its rows are read soon, piece by piece, and then packed
    /// into another file with others.
    ///
    /// # Errors
    /// As [`Writer::create`].
    pub fn bundle(path: &Path) -> Result<Writer<T>> {
        let mut writer = Writer::create(path)?;
        writer.file.is_bundle = true;
        Ok(writer)
    }

    /// Gives the columns the types of this row if no row is added: the widths of `features` depend
    /// on the method. The row itself is not written. Must be called before rows are added.
    #[must_use]
    pub fn like(mut self, example: impl Row<Table = T>) -> Writer<T> {
        example.append(self.file.builders());
        self.file.values();
        self
    }

    /// Adds key-values to the file, for instance `nigh.week`. A key that the file has already gets
    /// the new value. Must be called before rows are added.
    #[must_use]
    pub fn labelled(mut self, labels: &[(&str, &str)]) -> Writer<T> {
        labels.iter().for_each(|(key, value)| describe::set(&mut self.file.key_values, key, value));
        self
    }

    /// Takes the key-values of the file of these rows, except the version of the program. Must be
    /// called before rows are added.
    ///
    /// # Errors
    /// Names the file that cannot be read.
    pub(crate) fn described_as(mut self, rows: &RowRange) -> Result<Writer<T>> {
        let footer = rows.open()?.footer;
        let described = footer.metadata().file_metadata().key_value_metadata();
        self.file.key_values = described.cloned().unwrap_or_default();
        describe::set(&mut self.file.key_values, describe::VERSION, env!("CARGO_PKG_VERSION"));
        Ok(self)
    }

    /// Adds a row. What it borrows is copied at once.
    ///
    /// # Errors
    /// Names the file that cannot be written, for instance to a full disk.
    pub fn push(&mut self, row: impl Row<Table = T>) -> Result<()> {
        row.append(self.file.builders());
        self.file.add_row()
    }

    /// The number of rows added so far.
    pub fn len(&self) -> u64 {
        self.file.len()
    }

    /// Whether no row has been added.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds the rows of a batch, which must have the table's columns.
    ///
    /// # Errors
    /// As [`Writer::push`].
    pub fn push_rows(&mut self, batch: &RecordBatch) -> Result<()> {
        self.file.flush_rows()?;
        self.file.write(batch)
    }

    /// Adds rows as the values of the table's columns, in their order.
    ///
    /// # Errors
    /// As [`Writer::push`].
    pub fn push_columns(&mut self, values: Vec<ArrayRef>) -> Result<()> {
        self.file.flush_rows()?;
        self.file.write_columns(values)
    }

    /// Ends a piece of a [bundle](Writer::bundle). Returns its size in bytes, which depends on its
    /// rows alone.
    ///
    /// # Errors
    /// As [`Writer::push`].
    pub fn end_piece(&mut self) -> Result<u64> {
        self.file.end_piece()
    }

    /// Adds rows of other files, which must have the table's columns: large row groups as they are,
    /// without reading their rows; the others are read and encoded again, together. Returns the
    /// number of rows of each.
    ///
    /// # Errors
    /// Names the file that cannot be read or written, or that has other columns.
    pub fn append(&mut self, sources: &[RowRange]) -> Result<Vec<u64>> {
        self.file.append(sources)
    }

    /// Ends the file, gives it its name, and returns the number of its rows. A file without rows is
    /// written too.
    ///
    /// # Errors
    /// Names the file that cannot be written.
    pub fn finish(self) -> Result<u64> {
        self.file.finish().map(|(rows, _)| rows)
    }

    /// As [`Writer::finish`]; returns the size and digest of the file.
    ///
    /// # Errors
    /// As [`Writer::finish`].
    pub(crate) fn finish_with_content(self) -> Result<FileContent> {
        self.file.finish().map(|(_, content)| content)
    }

    /// As [`Writer::finish`], except that no file is made if there are no rows.
    ///
    /// # Errors
    /// As [`Writer::finish`].
    pub fn finish_if_any(self) -> Result<u64> {
        if self.is_empty() { Ok(0) } else { self.finish() }
    }
}

/// The file of a [`Writer`], of any table.
struct TableFile {
    table: &'static TableSpec,
    target: TemporaryName,
    /// The values of rows that are not written yet. Empty before the first row.
    builders: Vec<ColumnBuilder>,
    /// The number of these rows.
    rows: usize,
    written: u64,
    key_values: Vec<KeyValue>,
    is_bundle: bool,
    writer: Option<GroupWriter>,
}

impl TableFile {
    fn create(path: &Path, table: &'static TableSpec) -> Result<TableFile> {
        let (target, key_values) = (TemporaryName::create(path)?, describe::key_values(table));
        Ok(TableFile {
            is_bundle: false,
            table,
            target,
            builders: Vec::new(),
            rows: 0,
            written: 0,
            key_values,
            writer: None,
        })
    }

    fn len(&self) -> u64 {
        self.written + self.rows as u64
    }

    /// The builders of all columns.
    fn builders(&mut self) -> &mut [ColumnBuilder] {
        if self.builders.is_empty() {
            self.builders = self.table.columns.iter().map(|column| ColumnBuilder::new(column.values)).collect();
        }
        &mut self.builders
    }

    /// Counts a row whose values have been appended.
    fn add_row(&mut self) -> Result<()> {
        self.rows += 1;
        if self.rows == BATCH { self.flush() } else { Ok(()) }
    }

    /// The values of all columns; the builders have none then.
    fn values(&mut self) -> Vec<ArrayRef> {
        self.builders().iter_mut().map(ColumnBuilder::finish).collect()
    }

    fn flush(&mut self) -> Result<()> {
        self.rows = 0;
        let values = self.values();
        self.write_columns(values)
    }

    fn flush_rows(&mut self) -> Result<()> {
        if self.rows > 0 { self.flush() } else { Ok(()) }
    }

    fn write_columns(&mut self, values: Vec<ArrayRef>) -> Result<()> {
        let TableSpec { name, columns, .. } = self.table;
        ensure!(columns.len() == values.len(), "{name} has {} columns, not {}", columns.len(), values.len());
        let batch = RecordBatch::try_new(Arc::new(describe::schema(columns, &values)), values)
            .with_context(|| format!("cannot write {}", self.target.temporary().display()))?;
        self.write(&batch)
    }

    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        if self.writer.is_none() {
            // The batch itself may come from another file, and then its schema has that file's
            // key-values.
            self.open(describe::schema(self.table.columns, batch.columns()))?;
        }
        let writer = self.writer.as_mut().expect("the file is open");
        writer.write(batch).with_context(|| format!("cannot write {}", self.target.temporary().display()))?;
        self.written += batch.num_rows() as u64;
        Ok(())
    }

    /// Makes the file, for columns of these types.
    fn open(&mut self, schema: Schema) -> Result<()> {
        let schema = Arc::new(schema.with_metadata(describe::of_schema(&self.key_values)));
        let full = properties(self.table).set_key_value_metadata(Some(self.key_values.clone())).build();
        let batch = properties(self.table).set_max_row_group_row_count(Some(BATCH)).build();
        let encodings = Encodings { full, batch, small: small_properties(self.table), is_bundle: self.is_bundle };
        let writer = GroupWriter::create(self.target.temporary(), schema, encodings);
        self.writer = Some(writer.with_context(|| format!("cannot write {}", self.target.temporary().display()))?);
        Ok(())
    }

    fn end_piece(&mut self) -> Result<u64> {
        self.flush_rows()?;
        let failed = || format!("cannot write {}", self.target.temporary().display());
        self.writer.as_mut().map_or(Ok(0), GroupWriter::end_piece).with_context(failed)
    }

    fn append(&mut self, sources: &[RowRange]) -> Result<Vec<u64>> {
        self.flush_rows()?;
        let parts = parts(sources)?;
        // Without rows, the first source says what types the columns have.
        let Some(first) = parts.first().map(|part| &part.rows).or(sources.first()) else { return Ok(Vec::new()) };
        let schema = first.open()?.footer.schema().as_ref().clone();
        if self.writer.is_none() {
            self.open(schema.clone())?;
        }
        let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        let small = parts.iter().filter(|part| part.copied.is_none()).map(|part| part.rows.clone());
        let mut small = PieceScan::new(small.collect(), &names).by(batch_rows(&parts)?);
        let mut next = small.batch()?;
        let (mut counts, mut piece) = (vec![0; sources.len()], 0);
        let mut last = None;
        for RowSource { source, rows, copied } in &parts {
            let opened = rows.open()?;
            ensure!(
                have_same_columns(opened.footer.schema(), &schema),
                "{} has other columns than {}",
                rows.path().display(),
                first.path().display()
            );
            let count = opened.rows.end - opened.rows.start;
            counts[*source] += count;
            let writer = self.writer.as_mut().expect("the file is open");
            if let Some(number) = copied {
                let failed =
                    || format!("cannot copy {} to {}", rows.path().display(), self.target.temporary().display());
                decoded(rows.path(), || writer.append(&opened, *number).with_context(failed))?;
                self.written += count;
                continue;
            }
            let (rows_so_far, bytes) = writer.size();
            if (rows_so_far >= MERGED || bytes >= MERGED_BYTES) && !self.is_bundle {
                self.end_group()?;
            }
            while let Some((_, batch)) = next.take_if(|(of, _)| *of == piece) {
                let ascends = self.table.columns.iter().find(|column| column.sorted).map(|column| column.name);
                let ends = ascends.and_then(|name| ends_of(&batch, name));
                // The rows of a row group ascend, as the file says.
                if last.zip(ends).is_some_and(|(last, [first, _])| first < last) && !self.is_bundle {
                    self.end_group()?;
                }
                last = ends.map(|[_, last]| last);
                self.write(&batch)?;
                next = small.batch()?;
            }
            piece += 1;
        }
        Ok(counts)
    }

    fn end_group(&mut self) -> Result<()> {
        let failed = || format!("cannot write {}", self.target.temporary().display());
        self.writer.as_mut().map_or(Ok(()), GroupWriter::end_group).with_context(failed)
    }

    /// Ends the file. Returns the number of its rows, and its size and digest.
    fn finish(mut self) -> Result<(u64, FileContent)> {
        if self.rows > 0 || self.writer.is_none() {
            self.flush()?;
        }
        let failed = || format!("cannot write {}", self.target.temporary().display());
        let content = self.writer.take().expect("flush made the writer").finish().with_context(failed)?;
        self.target.finish()?;
        Ok((self.written, content))
    }
}

/// The first and the last value of a column of numbers; `None` of a column of another type, or
/// without rows.
fn ends_of(batch: &RecordBatch, name: &str) -> Option<[i64; 2]> {
    let values = batch.column_by_name(name)?.as_primitive_opt::<Int64Type>()?.values();
    Some([*values.first()?, *values.last()?])
}

/// Whether columns have the same names and types.
fn have_same_columns(these: &Schema, others: &Schema) -> bool {
    let column = |field: &Arc<Field>| (field.name().clone(), field.data_type().clone());
    these.fields().iter().map(column).eq(others.fields().iter().map(column))
}

/// The name of a file that is being written, and its temporary name until it is complete.
pub(crate) struct TemporaryName {
    path: PathBuf,
    temporary: PathBuf,
}

impl TemporaryName {
    /// Makes the folder of `path`, if there is none.
    pub(crate) fn create(path: &Path) -> Result<TemporaryName> {
        if let Some(folder) = path.parent().filter(|folder| !folder.is_dir()) {
            std::fs::create_dir_all(folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
        }
        Ok(TemporaryName { path: path.to_owned(), temporary: path.with_extension("parquet.tmp") })
    }

    /// The name under which to write.
    pub(crate) fn temporary(&self) -> &Path {
        &self.temporary
    }

    /// Gives the file its name.
    pub(crate) fn finish(self) -> Result<()> {
        std::fs::rename(&self.temporary, &self.path)
            .with_context(|| format!("cannot rename {} to its final name", self.temporary.display()))
    }
}
