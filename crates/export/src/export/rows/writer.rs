//! Writes rows to a file of a format.

use std::io::BufWriter;

use anyhow::Result;
use arrow_array::RecordBatch;
use arrow_json::LineDelimitedWriter;
use arrow_json::writer::{LineDelimited, WriterBuilder};
use arrow_schema::SchemaRef;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;

use super::format::RowFormat;
use super::types;
use crate::export::place::Output;

/// Rows of a row group, if the input has none.
const ROW_GROUP: usize = 1 << 16;
/// Bytes of a row group, encoded: a thread holds one in memory.
const ROW_GROUP_BYTES: usize = 128 << 20;
/// Bytes of a batch, about: a column of texts has less than 2 GiB in one.
pub(super) const BATCH_BYTES: usize = 64 << 20;

/// Writes rows to a file, whose columns may have other names than those of the rows.
pub(crate) struct RowWriter {
    /// The columns of the file.
    schema: SchemaRef,
    file: RowFile,
}

enum RowFile {
    Jsonl(LineDelimitedWriter<BufWriter<Output>>),
    Parquet(Box<ArrowWriter<Output>>),
}

impl RowWriter {
    /// Begins a file with these columns. Row groups of Parquet have `group` rows,
    /// or fewer if these are long.
    ///
    /// # Errors
    /// If the format has no such columns, or the file cannot be written.
    pub(crate) fn new(format: RowFormat, out: Output, schema: SchemaRef, group: Option<usize>) -> Result<RowWriter> {
        types::check(format, &schema)?;
        let of_file = schema.clone();
        let file = match format {
            RowFormat::Jsonl => {
                let out = BufWriter::with_capacity(1 << 20, out);
                RowFile::Jsonl(WriterBuilder::new().with_explicit_nulls(true).build::<_, LineDelimited>(out))
            }
            RowFormat::Parquet => {
                // The metadata of the schema, as its readers look for it, and the names of items
                // that the format says.
                let pair = |(key, value): (&String, &String)| KeyValue::new(key.clone(), value.clone());
                let mut pairs: Vec<KeyValue> = schema.metadata().iter().map(pair).collect();
                pairs.sort_by(|a, b| a.key.cmp(&b.key));
                let properties = WriterProperties::builder()
                    .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
                    .set_max_row_group_row_count(Some(group.unwrap_or(ROW_GROUP)))
                    .set_max_row_group_bytes(Some(ROW_GROUP_BYTES))
                    .set_created_by(format!("nigh {}", env!("CARGO_PKG_VERSION")))
                    .set_key_value_metadata(Some(pairs).filter(|pairs| !pairs.is_empty()))
                    .set_coerce_types(true)
                    .build();
                RowFile::Parquet(Box::new(ArrowWriter::try_new(out, schema, Some(properties))?))
            }
        };
        Ok(RowWriter { schema: of_file, file })
    }

    /// Writes rows, whose columns are those of the file in the same order.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(crate) fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let batch = &RecordBatch::try_new(self.schema.clone(), batch.columns().to_vec())?;
        match &mut self.file {
            RowFile::Jsonl(writer) => {
                let columns = batch.columns().iter().zip(batch.schema_ref().fields());
                columns.into_iter().try_for_each(|(column, field)| types::check_times(column, field.name()))?;
                writer.write(batch)?;
            }
            RowFile::Parquet(writer) => writer.write(batch)?,
        }
        Ok(())
    }

    /// Ends the file.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(crate) fn finish(self) -> Result<Output> {
        Ok(match self.file {
            RowFile::Jsonl(mut writer) => {
                writer.finish()?;
                writer.into_inner().into_inner().map_err(std::io::IntoInnerError::into_error)?
            }
            RowFile::Parquet(writer) => writer.into_inner()?,
        })
    }
}
