//! The formats that records are written in.

use std::fmt;
use std::io::BufWriter;

use anyhow::{Result, bail};
use arrow_array::RecordBatch;
use arrow_json::LineDelimitedWriter;
use arrow_json::writer::{LineDelimited, WriterBuilder};
use arrow_schema::SchemaRef;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use serde::{Deserialize, Serialize};

use super::types;
use crate::export::place::Output;
use crate::readers::{Format, Input};

/// The format that records are written in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum ExportFormat {
    /// That of each input.
    #[default]
    Same,
    /// JSON Lines.
    Jsonl,
    /// Parquet.
    Parquet,
    /// WARC, of inputs that are WARC.
    Warc,
}

/// A format of rows that have fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowFormat {
    Jsonl,
    Parquet,
}

impl ExportFormat {
    /// The format that the rows of an input become; `None` if they stay in theirs.
    ///
    /// # Errors
    /// If this input is not written so.
    pub(crate) fn of(self, input: &Input) -> Result<Option<RowFormat>> {
        Ok(match (self, input.format) {
            (ExportFormat::Same, Format::Arrow) => bail!(
                "{} is arrow, which is not written: give --format parquet or jsonl, or --list for what is to be removed",
                input.name
            ),
            (ExportFormat::Same, _)
            | (ExportFormat::Jsonl, Format::Jsonl)
            | (ExportFormat::Parquet, Format::Parquet)
            | (ExportFormat::Warc, Format::Warc) => None,
            (ExportFormat::Jsonl, _) => Some(RowFormat::Jsonl),
            (ExportFormat::Parquet, _) => Some(RowFormat::Parquet),
            (ExportFormat::Warc, format) => bail!(
                "{} is {format}, which has no requests and answers to write as WARC: give --format same, jsonl or parquet",
                input.name
            ),
        })
    }

    /// The path of the file for an input, given that in the same format.
    pub(crate) fn path(self, input: &Input, same: &str) -> Result<String> {
        let Some(to) = self.of(input)? else { return Ok(same.to_owned()) };
        let (folder, name) = same.rsplit_once('/').map_or(("", same), |(folder, name)| (folder, name));
        let mut stem = name;
        // The compression, and the format.
        for extension in ["gz", "zst", "bz2", "xz"] {
            stem = stem.strip_suffix(extension).and_then(|stem| stem.strip_suffix('.')).unwrap_or(stem);
        }
        let stem = stem.rsplit_once('.').map_or(stem, |(stem, _)| if stem.is_empty() { name } else { stem });
        let slash = if folder.is_empty() { "" } else { "/" };
        Ok(format!("{folder}{slash}{stem}.{}", to.extension()))
    }
}

impl fmt::Display for RowFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RowFormat::Jsonl => "JSON Lines",
            RowFormat::Parquet => "Parquet",
        })
    }
}

impl RowFormat {
    fn extension(self) -> &'static str {
        match self {
            RowFormat::Jsonl => "jsonl",
            RowFormat::Parquet => "parquet",
        }
    }
}

/// Rows of a row group, if the input has none.
const ROW_GROUP: usize = 1 << 16;

/// Writes rows to a file.
pub(crate) enum RowWriter {
    Jsonl(LineDelimitedWriter<BufWriter<Output>>),
    Parquet(Box<ArrowWriter<Output>>),
}

impl RowWriter {
    /// Begins a file. Row groups of Parquet have `group` rows.
    ///
    /// # Errors
    /// If the format has no such columns, or the file cannot be written.
    pub(crate) fn new(format: RowFormat, out: Output, schema: SchemaRef, group: Option<usize>) -> Result<RowWriter> {
        types::check(format, &schema)?;
        Ok(match format {
            RowFormat::Jsonl => {
                let out = BufWriter::with_capacity(1 << 20, out);
                RowWriter::Jsonl(WriterBuilder::new().with_explicit_nulls(true).build::<_, LineDelimited>(out))
            }
            RowFormat::Parquet => {
                // The metadata of the schema, as its readers look for it, and the names of items that the format says.
                let pair = |(key, value): (&String, &String)| KeyValue::new(key.clone(), value.clone());
                let mut pairs: Vec<KeyValue> = schema.metadata().iter().map(pair).collect();
                pairs.sort_by(|a, b| a.key.cmp(&b.key));
                let properties = WriterProperties::builder()
                    .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
                    .set_max_row_group_row_count(Some(group.unwrap_or(ROW_GROUP)))
                    .set_created_by(format!("nigh {}", env!("CARGO_PKG_VERSION")))
                    .set_key_value_metadata(Some(pairs).filter(|pairs| !pairs.is_empty()))
                    .set_coerce_types(true)
                    .build();
                RowWriter::Parquet(Box::new(ArrowWriter::try_new(out, schema, Some(properties))?))
            }
        })
    }

    /// Writes rows.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(crate) fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        match self {
            RowWriter::Jsonl(writer) => {
                let columns = batch.columns().iter().zip(batch.schema_ref().fields());
                columns.into_iter().try_for_each(|(column, field)| types::check_times(column, field.name()))?;
                writer.write(batch)?;
            }
            RowWriter::Parquet(writer) => writer.write(batch)?,
        }
        Ok(())
    }

    /// Ends the file.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(crate) fn finish(self) -> Result<Output> {
        Ok(match self {
            RowWriter::Jsonl(mut writer) => {
                writer.finish()?;
                writer.into_inner().into_inner().map_err(std::io::IntoInnerError::into_error)?
            }
            RowWriter::Parquet(writer) => writer.into_inner()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::readers::Location;

    #[test]
    fn files_get_the_name_of_their_format() {
        let path = |format: ExportFormat, input: Format, name: &str| {
            let place = Location::File(name.into());
            let input =
                Input { name: name.to_owned(), bytes: 0, format: input, place, page_url: None, stamp: String::new() };
            format.path(&input, name).map_err(|error| error.to_string())
        };
        let (jsonl, parquet) = (ExportFormat::Jsonl, ExportFormat::Parquet);
        assert_eq!(path(parquet, Format::Jsonl, "x/a.b.jsonl.gz").as_deref(), Ok("x/a.b.parquet"));
        assert_eq!(path(jsonl, Format::Jsonl, "x/a.jsonl.gz").as_deref(), Ok("x/a.jsonl.gz"));
        assert_eq!(path(jsonl, Format::Warc, "x.1/a.warc.gz").as_deref(), Ok("x.1/a.jsonl"));
        assert_eq!(path(jsonl, Format::Csv, "a").as_deref(), Ok("a.jsonl"));
        assert_eq!(path(jsonl, Format::Parquet, ".parquet").as_deref(), Ok(".parquet.jsonl"));
        assert_eq!(path(ExportFormat::Warc, Format::Warc, "a.warc").as_deref(), Ok("a.warc"));
        assert!(path(ExportFormat::Warc, Format::Jsonl, "a.jsonl").unwrap_err().contains("a.jsonl is jsonl"));
        assert!(path(ExportFormat::Same, Format::Arrow, "a.arrow").unwrap_err().contains("--format parquet"));
    }
}
