//! One input file, and the file that is written for it.

use std::path::Path;

use anyhow::{Context, Result, bail};

use super::card::Card;
use super::exported::{AddedField, Exported, What};
use crate::config::{Method, Reading};
use crate::export::copied::Spans;
use crate::export::place::{Output, Written};
use crate::export::renamed::NewNames;
use crate::export::rows::{ExportFormat, JsonColumns, RowFields, RowFormat, columnar, convert, page_rows};
use crate::export::shards::ShardRule;
use crate::export::verdicts::Verdict;
use crate::readers::{Input, LineKind, RecordKind, Searched, columns};

/// How inputs are written again.
pub struct Writing<'a> {
    /// How they were read.
    pub reading: &'a Reading,
    /// How documents were compared.
    pub method: &'a Method,
    /// Which records are written.
    pub what: What,
    /// The fields that the records get.
    pub fields: Vec<AddedField>,
    /// The columns that are written under other names.
    pub renamed: NewNames,
    /// Whether records of WARC and ARC that go are replaced by revisit records, which refer to the
    /// ones that stay.
    pub revisits: bool,
    /// Whether records of WARC say which pages are near-duplicates.
    pub near_duplicates: bool,
    /// Whether records of WARC and ARC that are no pages are written, whatever they are.
    pub others: bool,
    /// The format of what is written.
    pub format: ExportFormat,
    /// How records are cut into shards, if they are.
    pub shards: Option<ShardRule>,
    /// The card of the dataset, if it gets one.
    pub card: Option<Card>,
    /// The columns of all inputs that are lines, if these are written as Parquet.
    pub columns: Option<JsonColumns>,
}

impl Writing<'_> {
    /// Whether records are written that ARC does not have, so that it becomes WARC.
    pub(in crate::export) fn makes_warc(&self) -> bool {
        self.revisits || self.near_duplicates
    }

    /// Writes the file for an input, which will have the name `name`, to `unfinished`. `None` if
    /// nothing of the input is written: it is one document, and goes; or nothing says which columns
    /// it has: it is Parquet or Arrow that is damaged from the beginning, or lines that become
    /// Parquet, and no line of any input has a value.
    ///
    /// # Errors
    /// If the input cannot be read or has changed, or has a format that is not written; or the file
    /// cannot be written.
    pub(in crate::export) fn write(
        &self,
        input: &Input,
        verdicts: &[Verdict],
        name: &Path,
        unfinished: &Path,
    ) -> Result<(Exported, Option<Written>)> {
        let Writing { reading, method, what, revisits, near_duplicates, others, .. } = *self;
        let failed = || format!("cannot write {}", name.display());
        let file = Output::create(unfinished).with_context(failed)?;
        let (fields, to, same_names) = (&self.fields[..], self.format.of(input)?, NewNames::default());
        // What is converted has the new names afterwards.
        let renamed = if to.is_none() { &self.renamed } else { &same_names };
        let spans =
            Spans { input, reading, method, what, fields, renamed, revisits, near_duplicates, others, verdicts };
        let fields = RowFields { added: fields, renamed: &self.renamed };
        let has_columns = || -> Result<bool> {
            Ok(match input.format.records() {
                RecordKind::Rows => columns(input, reading, Searched::First)?.is_some(),
                RecordKind::Lines(LineKind::Json) => !self.columns.as_ref().is_some_and(JsonColumns::is_empty),
                _ => true,
            })
        };
        let is_without_columns = verdicts.is_empty() && !has_columns()?;
        let (exported, file) = match (input.format.records(), to) {
            _ if is_without_columns => columnar::left_out(input, reading).map(|exported| (exported, file)),
            (RecordKind::Failures | RecordKind::UnreadableArchive, _) => bail!("{} has no documents", input.name),
            (RecordKind::Rows, format) => {
                let format = format.unwrap_or(RowFormat::Parquet);
                columnar::export(input, (reading, method), verdicts, what, fields, format, file)
            }
            (_, None) => spans.export(file, name),
            (RecordKind::Lines(kind), Some(format)) => {
                let source = unfinished.with_added_extension("source");
                // It is not compressed, whatever the name of the file says.
                let plain = Output::create(&source).with_context(failed)?;
                let (exported, _) = spans.export(plain, Path::new("source")).with_context(failed)?;
                let of_source = (source.as_path(), kind);
                let file =
                    convert(of_source, input, fields, self.columns.as_ref(), format, file).with_context(failed)?;
                std::fs::remove_file(&source).with_context(failed)?;
                Ok((exported, file))
            }
            (RecordKind::Captures(_) | RecordKind::WholeFile(_), Some(format)) => {
                page_rows::export(input, (reading, method), verdicts, what, fields, format, file)
            }
        }
        .with_context(failed)?;
        let written = file.finish().with_context(failed)?;
        let is_whole = matches!(input.format.records(), RecordKind::WholeFile(_));
        let is_nothing = is_without_columns || is_whole && exported.written == 0;
        Ok((exported, Some(written).filter(|_| !is_nothing)))
    }
}
