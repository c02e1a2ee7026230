//! Writes lines of JSON, and records of CSV, as rows of another format.
//!
//! An input is first written in its own format, whole and without compression, and that file is
//! read here. So everything that is done to records is done in one place.
//!
//! The columns of Parquet are those of all inputs together: see [`JsonColumns`]. Values of CSV are
//! texts.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use arrow_array::{ArrayRef, RecordBatch, StringArray};
use arrow_json::ReaderBuilder;
use arrow_json::reader::Decoder;
use arrow_schema::{DataType, Field, Schema};
use csv_core::{ReadRecordResult, Reader};

use super::RowFields;
use super::column_types::JsonColumns;
use super::columnar::annotated;
use super::format::RowFormat;
use super::input_lines::BYTE_ORDER_MARK;
use super::writer::{BATCH_BYTES, RowWriter};
use crate::export::place::Output;
use crate::readers::{Input, LineKind};

/// Rows of a batch.
const BATCH: usize = 1024;

/// Writes the records of `source`, a whole file of such lines as the input has, as rows.
///
/// # Errors
/// If a value does not fit the columns, or a file cannot be read or written.
pub(crate) fn convert(
    (source, kind): (&Path, LineKind),
    input: &Input,
    fields: RowFields<'_>,
    columns: Option<&JsonColumns>,
    format: RowFormat,
    out: Output,
) -> Result<Output> {
    let failed = || format!("cannot read {}", source.display());
    let mut file = BufReader::with_capacity(1 << 20, File::open(source).with_context(failed)?);
    match kind {
        LineKind::Json => {
            let columns = columns.context("lines are converted to the columns of all inputs")?;
            let schema = annotated(&columns.0, fields.added, input)?;
            let mut writer = RowWriter::new(format, out, fields.renamed.schema(&schema, input)?, None)?;
            let decoder = ReaderBuilder::new(schema).with_coerce_primitive(true).with_batch_size(BATCH);
            let mut rows = JsonRows { file, decoder: decoder.build_decoder()?, line: Vec::new(), at: 0, bytes: 0 };
            let bad = || match bad_line(source) {
                Some(line) => format!("{} has a line that Parquet cannot have: {line}", input.name),
                None => format!("{} has a value that does not fit its column", input.name),
            };
            while let Some(batch) = rows.next().with_context(bad)? {
                writer.write(&batch)?;
            }
            writer.finish()
        }
        LineKind::Delimited(delimiter) => {
            if file.fill_buf().with_context(failed)?.starts_with(BYTE_ORDER_MARK) {
                file.consume(BYTE_ORDER_MARK.len());
            }
            let mut records = CsvFile { file, reader: csv_core::ReaderBuilder::new().delimiter(delimiter).build() };
            let names = records.next().with_context(failed)?.unwrap_or_default();
            let of_names = names.iter().map(|name| Field::new(name, DataType::Utf8, true));
            let schema = Arc::new(Schema::new(of_names.collect::<Vec<_>>()));
            let mut writer = RowWriter::new(format, out, fields.renamed.schema(&schema, input)?, None)?;
            let (mut rows, mut bytes): (Vec<Vec<String>>, usize) = (Vec::new(), 0);
            loop {
                let record = records.next().with_context(failed)?;
                let has_ended = record.is_none();
                bytes += record.iter().flatten().map(String::len).sum::<usize>();
                rows.extend(record);
                if has_ended && !rows.is_empty() || rows.len() == BATCH || bytes >= BATCH_BYTES {
                    let value = |row: &Vec<String>, column: usize| row.get(column).cloned();
                    let columns = (0..names.len()).map(|column| {
                        Arc::new(rows.iter().map(|row| value(row, column)).collect::<StringArray>()) as ArrayRef
                    });
                    writer.write(&RecordBatch::try_new(schema.clone(), columns.collect())?)?;
                    rows.clear();
                    bytes = 0;
                }
                if has_ended {
                    return writer.finish();
                }
            }
        }
    }
}

/// The first line that is not JSON in UTF-8, as it begins: readers that take some of its fields can
/// read it.
fn bad_line(source: &Path) -> Option<String> {
    let lines = BufReader::with_capacity(1 << 20, File::open(source).ok()?).split(b'\n');
    lines.map_while(Result::ok).find_map(|line| {
        let why = match std::str::from_utf8(&line) {
            Ok(text) if text.trim().is_empty() => return None,
            Ok(text) => {
                serde_json::from_str::<serde_json::Value>(text.trim_start_matches('\u{feff}')).err()?.to_string()
            }
            Err(error) => format!("not UTF-8 at column {}", error.valid_up_to() + 1),
        };
        let start: String = String::from_utf8_lossy(&line).chars().take(60).collect();
        Some(format!("{start:?}... ({}). Give --format same, or mend it", why.replace(" at line 1", "")))
    })
}

/// The rows of a file of lines of JSON, each of which may begin with a byte order mark, as in files
/// that were joined.
struct JsonRows {
    file: BufReader<File>,
    decoder: Decoder,
    /// The line that is decoded from `at` on.
    line: Vec<u8>,
    at: usize,
    /// The bytes of the lines of the batch.
    bytes: usize,
}

impl JsonRows {
    /// The next rows.
    fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            // It stops before the end of a line if the batch is full.
            self.at += self.decoder.decode(&self.line[self.at..])?;
            let is_long = self.bytes >= BATCH_BYTES && !self.decoder.is_empty() && !self.decoder.has_partial_record();
            if self.at < self.line.len() || is_long {
                self.bytes = self.line.len() - self.at;
                return Ok(self.decoder.flush()?);
            }
            self.line.clear();
            if self.file.read_until(b'\n', &mut self.line)? == 0 {
                self.at = 0;
                return Ok(self.decoder.flush()?);
            }
            self.bytes += self.line.len();
            self.at = if self.line.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
        }
    }
}

/// The records of a CSV file.
struct CsvFile {
    file: BufReader<File>,
    reader: Reader,
}

impl CsvFile {
    /// The fields of the next record.
    fn next(&mut self) -> std::io::Result<Option<Vec<String>>> {
        let (mut text, mut ends) = (vec![0; 1 << 12], vec![0; 64]);
        let (mut written, mut fields) = (0, 0);
        loop {
            let input = self.file.fill_buf()?;
            let (result, read, more, ended) = self.reader.read_record(input, &mut text[written..], &mut ends[fields..]);
            self.file.consume(read);
            (written, fields) = (written + more, fields + ended);
            match result {
                ReadRecordResult::InputEmpty => {}
                ReadRecordResult::OutputFull => text.resize(2 * text.len(), 0),
                ReadRecordResult::OutputEndsFull => ends.resize(2 * ends.len(), 0),
                ReadRecordResult::Record => {
                    let starts = std::iter::once(0).chain(ends.iter().copied());
                    let spans = starts.zip(&ends[..fields]);
                    // Records that are not UTF-8 are no documents.
                    let field = |(start, end): (usize, &usize)| String::from_utf8(text[start..*end].to_vec());
                    return spans.map(field).collect::<Result<_, _>>().map(Some).map_err(std::io::Error::other);
                }
                ReadRecordResult::End => return Ok(None),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_of_long_lines_has_fewer_rows() {
        let lines = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(lines.path(), "{\"a\":1}\n\n{\"a\":2}\n{\"a\":3}\n").unwrap();
        let schema = Arc::new(Schema::new(vec![Field::new("a", DataType::Int64, true)]));
        let decoder = ReaderBuilder::new(schema).with_batch_size(BATCH).build_decoder().unwrap();
        let file = BufReader::new(File::open(lines.path()).unwrap());
        // As if long lines were there before.
        let mut rows = JsonRows { file, decoder, line: Vec::new(), at: 0, bytes: BATCH_BYTES - 10 };
        let batches = std::iter::from_fn(|| rows.next().unwrap());
        assert_eq!(batches.map(|batch| batch.num_rows()).collect::<Vec<_>>(), [2, 1]);
    }
}
