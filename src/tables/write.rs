//! Writing tables: rows to Parquet files.
//!
//! A file is written under a temporary name and gets its own when it is complete, so no reader finds half a file. The commit
//! makes it durable (`state::sync_folder`).

use std::fs::File;
use std::io::BufWriter;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use arrow_array::RecordBatch;
use arrow_schema::{Field, Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder};
use parquet::schema::types::ColumnPath;

use super::rows::Table;

/// Rows that are collected before they are turned into columns.
const BATCH: usize = 4096;
/// The most rows of a row group.
const ROW_GROUP: usize = 1 << 17;

/// Writes one file of a table, row by row. A writer that is dropped before [`Writer::finish`] leaves no file of that name.
pub struct Writer<T: Table> {
    target: Target,
    rows: Vec<T>,
    written: u64,
    writer: Option<ArrowWriter<BufWriter<File>>>,
    table: PhantomData<T>,
}

impl<T: Table> Writer<T> {
    /// Makes the folder of `path`, and a writer of the file, which appears when [`Writer::finish`] is called.
    ///
    /// # Errors
    /// Names the folder that cannot be made.
    pub fn create(path: &Path) -> Result<Writer<T>> {
        let target = Target::create(path)?;
        Ok(Writer { target, rows: Vec::new(), written: 0, writer: None, table: PhantomData })
    }

    /// Adds a row.
    ///
    /// # Errors
    /// Names the file that cannot be written, for instance to a full disk.
    pub fn push(&mut self, row: T) -> Result<()> {
        self.rows.push(row);
        if self.rows.len() == BATCH { self.flush() } else { Ok(()) }
    }

    /// The number of rows added so far.
    pub fn len(&self) -> u64 {
        self.written + self.rows.len() as u64
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
        if !self.rows.is_empty() {
            self.flush()?;
        }
        self.write(batch)
    }

    fn flush(&mut self) -> Result<()> {
        let columns = T::columns(&self.rows);
        let schema: SchemaRef = Arc::new(Schema::new(
            columns.iter().map(|c| Field::new(c.name, c.values.data_type().clone(), c.nullable)).collect::<Vec<_>>(),
        ));
        let batch = RecordBatch::try_new(schema, columns.into_iter().map(|c| c.values).collect())
            .with_context(|| format!("cannot write {}", self.target.temporary().display()))?;
        self.write(&batch)?;
        self.rows.clear();
        Ok(())
    }

    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let failed = || format!("cannot write {}", self.target.temporary().display());
        let writer = match &mut self.writer {
            Some(writer) => writer,
            none => {
                let file = File::create(self.target.temporary()).with_context(failed)?;
                none.insert(
                    ArrowWriter::try_new(BufWriter::new(file), batch.schema(), Some(properties::<T>().build()))
                        .with_context(failed)?,
                )
            }
        };
        writer.write(batch).with_context(failed)?;
        self.written += batch.num_rows() as u64;
        Ok(())
    }

    /// Ends the file, gives it its name, and returns the number of its rows. A file without rows is written too.
    ///
    /// # Errors
    /// Names the file that cannot be written.
    pub fn finish(mut self) -> Result<u64> {
        if !self.rows.is_empty() || self.writer.is_none() {
            self.flush()?;
        }
        let failed = || format!("cannot write {}", self.target.temporary().display());
        let writer = self.writer.take().expect("flush made the writer");
        let file = writer.into_inner().with_context(failed)?;
        file.into_inner().map_err(|error| error.into_error()).with_context(failed)?;
        self.target.finish()?;
        Ok(self.written)
    }

    /// As [`Writer::finish`], except that no file is made if there are no rows.
    ///
    /// # Errors
    /// As [`Writer::finish`].
    pub fn finish_if_any(self) -> Result<u64> {
        if self.is_empty() { Ok(0) } else { self.finish() }
    }
}

/// The name of a file that is being written, and its temporary name until it is complete.
pub(super) struct Target {
    path: PathBuf,
    temporary: PathBuf,
}

impl Target {
    /// Makes the folder of `path`.
    pub(super) fn create(path: &Path) -> Result<Target> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
        }
        Ok(Target { path: path.to_owned(), temporary: path.with_extension("parquet.tmp") })
    }

    /// The name under which to write.
    pub(super) fn temporary(&self) -> &Path {
        &self.temporary
    }

    /// Gives the file its name.
    pub(super) fn finish(self) -> Result<()> {
        std::fs::rename(&self.temporary, &self.path)
            .with_context(|| format!("cannot rename {} to its final name", self.temporary.display()))
    }
}

/// How the columns of a table are encoded and compressed: the constants of [`Table`] as settings of the Parquet writer.
pub(super) fn properties<T: Table>() -> WriterPropertiesBuilder {
    let zstd = Compression::ZSTD(ZstdLevel::try_new(3).expect("zstd has a level 3"));
    let mut properties = WriterProperties::builder()
        .set_compression(zstd)
        .set_max_row_group_row_count(Some(ROW_GROUP))
        .set_created_by(format!("nigh {}", env!("CARGO_PKG_VERSION")));
    for column in T::UNIQUE {
        properties = properties.set_column_dictionary_enabled(ColumnPath::from(*column), false);
    }
    for column in T::ASCENDING {
        properties = properties
            .set_column_dictionary_enabled(ColumnPath::from(*column), false)
            .set_column_encoding(ColumnPath::from(*column), Encoding::DELTA_BINARY_PACKED)
            .set_column_compression(ColumnPath::from(*column), Compression::UNCOMPRESSED);
    }
    for column in T::RANDOM {
        properties = properties.set_column_compression(ColumnPath::from(*column), Compression::UNCOMPRESSED);
    }
    for column in T::UNORDERED {
        properties = properties.set_column_statistics_enabled(ColumnPath::from(*column), EnabledStatistics::None);
    }
    properties
}

#[cfg(test)]
mod tests {
    use parquet::file::reader::{FileReader, SerializedFileReader};

    use super::*;
    use crate::tables::FeatureRow;

    #[test]
    fn hashes_of_a_page_have_no_statistics() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("features.parquet");
        let mut writer: Writer<FeatureRow> = Writer::create(&path).unwrap();
        writer.push(FeatureRow { doc: 7, supershingles: vec![1; 48], features: vec![2; 336] }).unwrap();
        writer.finish().unwrap();
        let reader = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
        let columns = reader.metadata().row_group(0).columns();
        let with: Vec<&str> =
            columns.iter().filter(|c| c.statistics().is_some()).map(|c| c.column_descr().name()).collect();
        assert_eq!(with, ["doc"]);
    }
}
