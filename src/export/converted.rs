//! Writes lines of JSON, and records of CSV, as rows of another format.
//!
//! An input is first written in its own format, whole and without compression, and that file is read here. So everything that is done to
//! records is done in one place.
//!
//! The columns of Parquet are those of all inputs together: see [`JsonColumns`]. Values of CSV are texts.

use std::fmt;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use arrow_array::{ArrayRef, RecordBatch, StringArray};
use arrow_json::ReaderBuilder;
use arrow_json::reader::infer_json_schema_from_iterator;
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Schema, SchemaRef};
use csv_core::{ReadRecordResult, Reader};
use serde::Deserializer as _;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde_json::Value;

use super::exported::What;
use super::format::{RowFormat, RowWriter};
use super::rows::annotated;
use crate::readers::{CountedIn, Format, Input, RawBytes};

/// Rows of a batch.
const BATCH: usize = 1024;
/// What some programs write at the beginning of a text.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// The columns of lines of JSON.
#[derive(Clone, Debug)]
pub struct JsonColumns(SchemaRef);

impl JsonColumns {
    /// The columns that the lines of all these inputs have, in the order of their first lines. A field whose values are of several simple types
    /// is text; one that is null or empty everywhere is left out, for Parquet has no type for it.
    ///
    /// Cost: all lines are parsed once.
    ///
    /// # Errors
    /// If an input cannot be read; or a field has objects in one line and simple values in another.
    pub fn of(inputs: &[Input]) -> Result<JsonColumns> {
        let mut names = Names::default();
        let mut failure = None;
        let mut inputs = inputs.iter().filter(|input| input.format == Format::Jsonl);
        let mut lines: Option<Lines> = None;
        let values = std::iter::from_fn(|| {
            loop {
                let mut step = || -> Result<Option<Option<Value>>> {
                    let Some(open) = &mut lines else { return Ok(None) };
                    let is_first = open.is_first;
                    let Some(line) = open.next()? else { return Ok(None) };
                    if is_first {
                        names.add(line);
                    }
                    // What is no object is no document either.
                    Ok(Some(serde_json::from_slice(line).ok().filter(Value::is_object)))
                };
                match step() {
                    Ok(Some(Some(value))) => return Some(Ok::<Value, ArrowError>(value)),
                    Ok(Some(None)) => {}
                    Ok(None) => match Lines::open(inputs.next()?) {
                        Ok(next) => lines = Some(next),
                        Err(error) => {
                            failure = Some(error);
                            return None;
                        }
                    },
                    Err(error) => {
                        failure = Some(error);
                        return None;
                    }
                }
            }
        });
        let inferred = infer_json_schema_from_iterator(values);
        if let Some(error) = failure {
            return Err(error);
        }
        let inferred =
            inferred.context("the lines have no columns in common, and Parquet needs some: give --format same")?;
        let of_names = names.0.iter().filter_map(|name| inferred.field_with_name(name).ok());
        let others = inferred.fields().iter().map(AsRef::as_ref).filter(|field| !names.0.contains(field.name()));
        let fields = of_names.chain(others).filter_map(with_values);
        Ok(JsonColumns(Arc::new(Schema::new(fields.collect::<Vec<_>>()))))
    }
}

/// A field without the parts that never have a value; `None` if it never has one.
fn with_values(field: &Field) -> Option<Field> {
    let kind = match field.data_type() {
        DataType::Null => return None,
        DataType::List(item) => DataType::List(Arc::new(with_values(item)?)),
        DataType::Struct(fields) => {
            let fields: Vec<FieldRef> = fields.iter().filter_map(|field| with_values(field).map(Arc::new)).collect();
            if fields.is_empty() {
                return None;
            }
            DataType::Struct(fields.into())
        }
        kind => kind.clone(),
    };
    Some(field.clone().with_data_type(kind))
}

/// The names of fields, in the order in which lines have them.
#[derive(Default)]
struct Names(Vec<String>);

impl Names {
    /// Adds those of a line.
    fn add(&mut self, line: &[u8]) {
        struct Keys<'a>(&'a mut Names);
        impl<'de> Visitor<'de> for Keys<'_> {
            type Value = ();

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
                while let Some((name, IgnoredAny)) = map.next_entry::<String, IgnoredAny>()? {
                    if !self.0.0.contains(&name) {
                        self.0.0.push(name);
                    }
                }
                Ok(())
            }
        }
        // A line that is no object adds nothing.
        let _ = serde_json::Deserializer::from_slice(line).deserialize_map(Keys(self));
    }
}

/// The lines of an input.
struct Lines {
    name: String,
    raw: RawBytes,
    /// What was read; the next line begins at `at`.
    bytes: Vec<u8>,
    at: usize,
    ended: bool,
    is_first: bool,
}

impl Lines {
    fn open(input: &Input) -> Result<Lines> {
        let raw = RawBytes::open(input, CountedIn::Decoded)?;
        Ok(Lines { name: input.name.clone(), raw, bytes: Vec::new(), at: 0, ended: false, is_first: true })
    }

    /// The next line.
    fn next(&mut self) -> Result<Option<&[u8]>> {
        let mut searched = self.at;
        let end = loop {
            if let Some(end) = memchr::memchr(b'\n', &self.bytes[searched..]) {
                break searched + end + 1;
            }
            searched = self.bytes.len();
            if self.ended {
                break searched;
            }
            searched -= self.at;
            self.bytes.drain(..self.at);
            self.at = 0;
            let more = self.raw.before(u64::MAX).with_context(|| format!("cannot read {}", self.name))?;
            self.ended = more.is_empty();
            self.bytes.extend_from_slice(more);
        };
        let start = std::mem::replace(&mut self.at, end);
        let line = &self.bytes[start..end];
        let line = if self.is_first { line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line) } else { line };
        self.is_first = false;
        Ok((start < end).then_some(line))
    }
}

/// Writes the records of `source`, a whole file in the format of the input, as rows.
///
/// # Errors
/// If a value does not fit the columns, or a file cannot be read or written.
pub(super) fn convert(
    source: &Path,
    input: &Input,
    what: What,
    columns: Option<&JsonColumns>,
    format: RowFormat,
    out: File,
) -> Result<File> {
    let failed = || format!("cannot read {}", source.display());
    let mut file = BufReader::with_capacity(1 << 20, File::open(source).with_context(failed)?);
    if file.fill_buf().with_context(failed)?.starts_with(BYTE_ORDER_MARK) {
        file.consume(BYTE_ORDER_MARK.len());
    }
    match input.format {
        Format::Jsonl => {
            let columns = columns.context("lines are converted to the columns of all inputs")?;
            let schema = if what == What::Annotated { annotated(&columns.0, input)? } else { columns.0.clone() };
            let mut writer = RowWriter::new(format, out, schema.clone(), None)?;
            let reader = ReaderBuilder::new(schema).with_coerce_primitive(true).with_batch_size(BATCH).build(file)?;
            for batch in reader {
                writer.write(
                    &batch.with_context(|| format!("{} has a value that does not fit its column", input.name))?,
                )?;
            }
            writer.finish()
        }
        Format::Csv | Format::Tsv => {
            let delimiter = if input.format == Format::Csv { b',' } else { b'\t' };
            let mut records = Records { file, reader: csv_core::ReaderBuilder::new().delimiter(delimiter).build() };
            let names = records.next().with_context(failed)?.unwrap_or_default();
            let fields = names.iter().map(|name| Field::new(name, DataType::Utf8, true));
            let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
            let mut writer = RowWriter::new(format, out, schema.clone(), None)?;
            let mut rows: Vec<Vec<String>> = Vec::new();
            loop {
                let record = records.next().with_context(failed)?;
                let has_ended = record.is_none();
                rows.extend(record);
                if has_ended && !rows.is_empty() || rows.len() == BATCH {
                    let value = |row: &Vec<String>, column: usize| row.get(column).cloned();
                    let columns = (0..names.len()).map(|column| {
                        Arc::new(rows.iter().map(|row| value(row, column)).collect::<StringArray>()) as ArrayRef
                    });
                    writer.write(&RecordBatch::try_new(schema.clone(), columns.collect())?)?;
                    rows.clear();
                }
                if has_ended {
                    return writer.finish();
                }
            }
        }
        format => bail!("{} is {format}, which is not converted from a file", input.name),
    }
}

/// The records of a CSV file.
struct Records {
    file: BufReader<File>,
    reader: Reader,
}

impl Records {
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
                    let field =
                        |(start, end): (usize, &usize)| String::from_utf8_lossy(&text[start..*end]).into_owned();
                    return Ok(Some(spans.map(field).collect()));
                }
                ReadRecordResult::End => return Ok(None),
            }
        }
    }
}
