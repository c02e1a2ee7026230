//! Writes rows in a format that other programs read.
//!
//! Tables have no nested values. JSON Lines have an object for each row, with all columns: null
//! where there is no value, moments as texts, bytes as hexadecimal digits, and null for numbers
//! that are not finite. Arrow is a file if it goes to one, and a stream in a pipe.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use arrow_array::RecordBatch;
use arrow_ipc::writer::{FileWriter, StreamWriter};
use arrow_json::writer::{LineDelimited, WriterBuilder};
use arrow_schema::SchemaRef;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;

use super::cells::{Cells, TextStyle, push_text};
use crate::text::printable_json;

/// The format that rows are written in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum TableFormat {
    /// Values with commas between them, and a line of heads.
    #[default]
    Csv,
    /// Values with tabs between them, and a line of heads.
    Tsv,
    /// JSON Lines: an object for each row.
    Jsonl,
    /// Parquet.
    Parquet,
    /// Arrow: a file, or a stream in a pipe.
    Arrow,
}

impl TableFormat {
    /// Whether a person can read it.
    pub fn is_text(self) -> bool {
        matches!(self, TableFormat::Csv | TableFormat::Tsv | TableFormat::Jsonl)
    }

    /// How the name of a file of it ends.
    ///
    /// ```
    /// use nigh_store::query::TableFormat;
    /// assert_eq!(TableFormat::Jsonl.extension(), "jsonl");
    /// ```
    pub fn extension(self) -> &'static str {
        match self {
            TableFormat::Csv => "csv",
            TableFormat::Tsv => "tsv",
            TableFormat::Jsonl => "jsonl",
            TableFormat::Parquet => "parquet",
            TableFormat::Arrow => "arrow",
        }
    }
}

/// Where rows go.
pub struct RowSink {
    out: Box<dyn Write + Send>,
    /// Whether that is a file, of which readers can read any part.
    is_file: bool,
    /// Whether that is a terminal, where some characters act.
    is_terminal: bool,
    is_closed: Arc<AtomicBool>,
}

impl RowSink {
    /// A pipe, or memory.
    pub fn of(out: Box<dyn Write + Send>) -> RowSink {
        RowSink { out, is_file: false, is_terminal: false, is_closed: Arc::default() }
    }

    /// A file.
    pub fn file(file: std::fs::File) -> RowSink {
        RowSink { is_file: true, ..RowSink::of(Box::new(file)) }
    }

    /// Standard output.
    pub fn stdout() -> RowSink {
        use std::io::IsTerminal as _;
        RowSink { is_terminal: std::io::stdout().is_terminal(), ..RowSink::of(Box::new(std::io::stdout())) }
    }

    /// Whether this is a terminal.
    pub fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// Becomes true when the reader of a pipe has closed it: an error after that is of no interest.
    pub fn is_closed(&self) -> Arc<AtomicBool> {
        self.is_closed.clone()
    }
}

impl Write for RowSink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.out.write(bytes);
        self.note(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        let flushed = self.out.flush();
        self.note(flushed)
    }
}

impl RowSink {
    fn note<T>(&self, result: std::io::Result<T>) -> std::io::Result<T> {
        if result.as_ref().is_err_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe) {
            self.is_closed.store(true, Ordering::Relaxed);
        }
        result
    }
}

/// What is written, in memory.
#[derive(Clone, Default)]
pub(super) struct Collected(Arc<Mutex<Vec<u8>>>);

impl Collected {
    /// The bytes so far.
    pub(super) fn take(&self) -> Vec<u8> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Write for Collected {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Writes batches of rows.
pub enum TableWriter {
    /// Lines of values with a separator between them.
    Text(RowSink, char),
    /// Lines of JSON.
    Jsonl(RowSink),
    /// Parquet.
    Parquet(Box<ArrowWriter<RowSink>>),
    /// Arrow, of which any part can be read.
    ArrowFile(Box<FileWriter<RowSink>>),
    /// Arrow, to be read from its beginning.
    ArrowStream(Box<StreamWriter<RowSink>>),
}

impl TableWriter {
    /// Begins with what stands before the rows.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn new(format: TableFormat, target: RowSink, schema: SchemaRef) -> Result<TableWriter> {
        let separator = if format == TableFormat::Tsv { '\t' } else { ',' };
        Ok(match format {
            TableFormat::Csv | TableFormat::Tsv => {
                let mut writer = TableWriter::Text(target, separator);
                writer.heads(&schema)?;
                writer
            }
            TableFormat::Jsonl => TableWriter::Jsonl(target),
            TableFormat::Parquet => {
                let mut about: Vec<KeyValue> =
                    schema.metadata().iter().map(|(key, value)| KeyValue::new(key.clone(), value.clone())).collect();
                about.sort_by(|a, b| a.key.cmp(&b.key));
                let properties = WriterProperties::builder()
                    .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
                    .set_created_by(format!("nigh {}", env!("CARGO_PKG_VERSION")))
                    .set_key_value_metadata(Some(about))
                    .build();
                TableWriter::Parquet(Box::new(ArrowWriter::try_new(target, schema, Some(properties))?))
            }
            TableFormat::Arrow if target.is_file => {
                TableWriter::ArrowFile(Box::new(FileWriter::try_new(target, &schema)?))
            }
            TableFormat::Arrow => TableWriter::ArrowStream(Box::new(StreamWriter::try_new(target, &schema)?)),
        })
    }

    /// The line of heads.
    fn heads(&mut self, schema: &SchemaRef) -> Result<()> {
        let TableWriter::Text(target, separator) = self else { return Ok(()) };
        let style = TextStyle { separator: *separator, is_for_terminal: target.is_terminal };
        let mut line = String::new();
        for (place, field) in schema.fields().iter().enumerate() {
            line.extend((place > 0).then_some(style.separator));
            push_text(field.name(), style, &mut line);
        }
        line.push('\n');
        target.write_all(line.as_bytes()).context("cannot write the rows")
    }

    /// Writes rows.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let failed = "cannot write the rows";
        match self {
            TableWriter::Text(target, separator) => {
                let style = TextStyle { separator: *separator, is_for_terminal: target.is_terminal };
                let columns: Vec<Cells<'_>> = batch.columns().iter().map(Cells::of).collect::<Result<_>>()?;
                let mut lines = String::new();
                for row in 0..batch.num_rows() {
                    let start = lines.len();
                    for (place, cells) in columns.iter().enumerate() {
                        lines.extend((place > 0).then_some(style.separator));
                        cells.push(row, style, &mut lines);
                    }
                    if lines.len() == start {
                        // Programs that read CSV pass over empty lines.
                        lines.push_str("\"\"");
                    }
                    lines.push('\n');
                }
                target.write_all(lines.as_bytes()).context(failed)
            }
            TableWriter::Jsonl(target) => {
                let mut writer =
                    WriterBuilder::new().with_explicit_nulls(true).build::<_, LineDelimited>(Vec::<u8>::new());
                writer.write(batch).context(failed)?;
                writer.finish().context(failed)?;
                let lines = String::from_utf8(writer.into_inner()).context("JSON is text")?;
                target.write_all(printable_json(&lines).as_bytes()).context(failed)
            }
            TableWriter::Parquet(writer) => writer.write(batch).context(failed),
            TableWriter::ArrowFile(writer) => writer.write(batch).context(failed),
            TableWriter::ArrowStream(writer) => writer.write(batch).context(failed),
        }
    }

    /// Ends with what stands after the rows.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish(self) -> Result<()> {
        let mut target = match self {
            TableWriter::Text(target, _) | TableWriter::Jsonl(target) => target,
            TableWriter::Parquet(writer) => writer.into_inner()?,
            TableWriter::ArrowFile(mut writer) => {
                writer.finish()?;
                writer.into_inner()?
            }
            TableWriter::ArrowStream(mut writer) => {
                writer.finish()?;
                writer.into_inner()?
            }
        };
        target.flush().context("cannot write the rows")
    }
}
