//! Files of rows or lines with columns: JSON Lines, Parquet, Arrow, CSV and TSV.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};

use anyhow::Context as _;

use super::face::{Cutting, FormatReader, InputColumns, ends_in, is_packed};
use super::records::{LineKind, RecordKind};
use crate::readers::input::{Input, Location, cannot};
use crate::readers::item::{Reader, RejectedFile};
use crate::readers::opened::{KeysOfInput, source, stored_file};
use crate::readers::rows::arrow::{self, ArrowReader};
use crate::readers::rows::jsonl::{self, JsonlReader, Searched};
use crate::readers::rows::{CsvReader, ordered_arrow, parquet};
use crate::readers::sniff;
use crate::reading::Reading;

/// One JSON object in each line.
pub(super) struct Jsonl;
/// Parquet rows.
pub(super) struct Parquet;
/// Arrow record batches.
pub(super) struct Arrow;
/// Records with this byte between fields.
pub(super) struct Delimited(pub u8);

/// The bytes of an input, in order.
fn bytes_of(input: &Input) -> anyhow::Result<Box<dyn std::io::Read + Send>> {
    source(&input.name, input.bytes, &input.place)
}

impl FormatReader for Jsonl {
    fn name(&self) -> &'static str {
        "jsonl"
    }

    fn is_named(&self, _name: &str, plain: &str) -> bool {
        ends_in(plain, &["jsonl", "ndjson", "json"])
    }

    fn begins(&self, first: &[u8]) -> bool {
        first.trim_ascii_start().starts_with(b"{")
    }

    fn records(&self) -> RecordKind {
        RecordKind::Lines(LineKind::Json)
    }

    fn open(&self, input: &Input, reading: &Reading) -> anyhow::Result<Box<dyn Reader>> {
        let reader = JsonlReader::new(bytes_of(input)?, &input.name, reading);
        Ok(Box::new(reader.with_context(|| cannot("read", &input.name))?))
    }

    fn open_at(
        &self,
        mut file: File,
        input: &Input,
        offset: u64,
        reading: &Reading,
    ) -> anyhow::Result<Option<Box<dyn Reader>>> {
        let failed = || cannot("read", &input.name);
        let mut first = Vec::new();
        file.seek(SeekFrom::Start(0)).with_context(failed)?;
        std::io::Read::by_ref(&mut file).take(16).read_to_end(&mut first).with_context(failed)?;
        if sniff::is_binary(&first) {
            return Ok(None);
        }
        file.seek(SeekFrom::Start(offset)).with_context(failed)?;
        Ok(Some(Box::new(JsonlReader::new(Box::new(file), &input.name, reading).with_context(failed)?)))
    }

    fn check(&self, input: &Input, reading: &Reading) -> anyhow::Result<KeysOfInput> {
        Ok(KeysOfInput::of_rows(jsonl::check(bytes_of(input)?, &input.name, reading)?))
    }

    fn columns(&self, input: &Input, reading: &Reading, searched: Searched) -> anyhow::Result<Option<InputColumns>> {
        Ok(Some(jsonl::columns(bytes_of(input)?, &input.name, reading, searched)?))
    }

    fn cutting(&self, name: &str) -> Cutting {
        if is_packed(name) { Cutting::Whole } else { Cutting::Lines }
    }
}

impl FormatReader for Parquet {
    fn name(&self) -> &'static str {
        "parquet"
    }

    fn is_named(&self, name: &str, _plain: &str) -> bool {
        ends_in(name, &["parquet"])
    }

    fn begins_stored(&self, first: &[u8]) -> bool {
        first.starts_with(b"PAR1")
    }

    fn records(&self) -> RecordKind {
        RecordKind::Rows
    }

    fn can_skip(&self) -> bool {
        true
    }

    fn is_read_from_end(&self) -> bool {
        true
    }

    fn open(&self, input: &Input, reading: &Reading) -> anyhow::Result<Box<dyn Reader>> {
        parquet::open(stored_file(input)?, &input.name, reading)
    }

    fn check(&self, input: &Input, reading: &Reading) -> anyhow::Result<KeysOfInput> {
        match &input.place {
            // The footer is at the end of an object.
            Location::Object { .. } | Location::Entry { .. } => Ok(KeysOfInput::Unknown),
            Location::File(_) => Ok(KeysOfInput::of_rows(parquet::check(stored_file(input)?, &input.name, reading)?)),
        }
    }

    fn slow_keys(&self, input: &Input, reading: &Reading) -> anyhow::Result<Option<KeysOfInput>> {
        let Location::Object { .. } = &input.place else { return Ok(None) };
        let has_url = parquet::check(stored_file(input)?, &input.name, reading)?;
        Ok(Some(KeysOfInput::of_rows(has_url)))
    }

    fn columns(&self, input: &Input, reading: &Reading, _searched: Searched) -> anyhow::Result<Option<InputColumns>> {
        parquet::columns(stored_file(input)?, &input.name, reading)
    }

    fn damage(&self, file: File, input: &Input, reading: &Reading) -> anyhow::Result<Option<String>> {
        parquet::damage(file, &input.name, reading)
    }

    fn cutting(&self, _name: &str) -> Cutting {
        Cutting::RowGroups
    }
}

impl FormatReader for Arrow {
    fn name(&self) -> &'static str {
        "arrow"
    }

    fn is_named(&self, _name: &str, plain: &str) -> bool {
        ends_in(plain, &["arrow", "arrows", "feather"])
    }

    fn begins_stored(&self, first: &[u8]) -> bool {
        arrow::begins(first)
    }

    fn records(&self) -> RecordKind {
        RecordKind::Rows
    }

    fn open(&self, input: &Input, reading: &Reading) -> anyhow::Result<Box<dyn Reader>> {
        Ok(match arrow_reader(input, reading)? {
            Some(reader) => Box::new(reader),
            None => Box::new(RejectedFile::new("arrow: no schema at the beginning".to_owned(), input.bytes)),
        })
    }

    fn check(&self, input: &Input, reading: &Reading) -> anyhow::Result<KeysOfInput> {
        match &input.place {
            // The schema is at the end of an object.
            Location::Object { .. } if lacks_schema(input)? => Ok(KeysOfInput::Unknown),
            _ => Ok(KeysOfInput::of_rows(arrow_reader(input, reading)?.map(|reader| reader.has_url()))),
        }
    }

    fn slow_keys(&self, input: &Input, reading: &Reading) -> anyhow::Result<Option<KeysOfInput>> {
        let Location::Object { .. } = &input.place else { return Ok(None) };
        let has_url = arrow_reader(input, reading)?.map(|reader| reader.has_url());
        Ok(Some(KeysOfInput::of_rows(has_url)))
    }

    fn columns(&self, input: &Input, reading: &Reading, _searched: Searched) -> anyhow::Result<Option<InputColumns>> {
        Ok(arrow_reader(input, reading)?.map(|reader| reader.columns()))
    }
}

/// The reader of an input of Arrow; `None` if it is damaged before its schema ends.
fn arrow_reader(input: &Input, reading: &Reading) -> anyhow::Result<Option<ArrowReader>> {
    if lacks_schema(input)?
        && let Some(file) = ordered_arrow(&stored_file(input)?).with_context(|| cannot("read", &input.name))?
    {
        return ArrowReader::ordered(file, &input.name, reading);
    }
    let reader = ArrowReader::new(bytes_of(input)?, &input.name, reading)?;
    Ok(match (reader, &input.place) {
        (Some(reader), Location::File(_)) => Some(reader.with_contents(stored_file(input)?)),
        (reader, _) => reader,
    })
}

/// Whether an input is a file of Arrow without a schema at its beginning.
fn lacks_schema(input: &Input) -> anyhow::Result<bool> {
    let mut first = Vec::new();
    let source = source(&input.name, input.bytes.min(arrow::FIRST as u64), &input.place)?;
    let read = source.take(arrow::FIRST as u64).read_to_end(&mut first);
    read.with_context(|| cannot("read", &input.name))?;
    Ok(arrow::lacks_schema(&first))
}

impl Delimited {
    fn reader_of(&self, input: &Input, reading: &Reading) -> anyhow::Result<CsvReader> {
        CsvReader::new(bytes_of(input)?, self.0, &input.name, reading)
    }
}

impl FormatReader for Delimited {
    fn name(&self) -> &'static str {
        if self.0 == b',' { "csv" } else { "tsv" }
    }

    fn is_named(&self, _name: &str, plain: &str) -> bool {
        ends_in(plain, &[self.name()])
    }

    fn records(&self) -> RecordKind {
        RecordKind::Lines(LineKind::Delimited(self.0))
    }

    fn open(&self, input: &Input, reading: &Reading) -> anyhow::Result<Box<dyn Reader>> {
        Ok(Box::new(self.reader_of(input, reading)?))
    }

    fn check(&self, input: &Input, reading: &Reading) -> anyhow::Result<KeysOfInput> {
        Ok(KeysOfInput::of_rows(self.reader_of(input, reading)?.has_url()?))
    }

    fn columns(&self, input: &Input, reading: &Reading, _searched: Searched) -> anyhow::Result<Option<InputColumns>> {
        Ok(self.reader_of(input, reading)?.columns())
    }
}
