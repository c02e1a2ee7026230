//! Writes rows of Parquet and Arrow files again, with all of their columns, or with further ones.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Read};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use arrow_array::cast::AsArray as _;
use arrow_array::{
    Array as _, ArrayRef, BooleanArray, Float64Array, Int64Array, LargeStringArray, RecordBatch,
    RecordBatchReader as _, StringArray, StringViewArray,
};
use arrow_ipc::reader::StreamReader;
use arrow_schema::{DataType, FieldRef, Schema, SchemaRef};
use arrow_select::filter::filter_record_batch;
use nigh_text::contained::contained;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder, RowSelection,
};

use super::RowFields;
use super::format::RowFormat;
use super::types::{arrow_field, cast_to, decodable, schema_in};
use super::writer::{BATCH_BYTES, RowWriter};
use crate::config::{Method, Reading, TextColumns};
use crate::export::dataset::{AddedField, AddedValue, Exported, What, changed, check_plain, check_unannotated};
use crate::export::place::Output;
use crate::export::texts::LeftTexts;
use crate::export::verdicts::Verdict;
use crate::readers::{Input, Item, SIGNATURE, open, ordered_arrow, stored_file};

/// Rows of a batch, at most.
const BATCH: usize = 1024;

/// Writes the rows of an input that are wanted; Parquet in row groups of the same size. `verdicts`
/// are those on its documents, in order.
///
/// # Errors
/// As [`Writing::write`](crate::export::Writing::write).
pub(crate) fn export(
    input: &Input,
    (reading, method): (&Reading, &Method),
    verdicts: &[Verdict],
    what: What,
    fields: RowFields<'_>,
    format: RowFormat,
    out: Output,
) -> Result<(Exported, Output)> {
    let mut exported = check(input, reading, verdicts, what)?;
    let wanted: Vec<&Verdict> = verdicts.iter().filter(|verdict| what.wants(verdict)).collect();
    let own = RowFormat::of(input.format);
    if own == Some(RowFormat::Parquet) && format == RowFormat::Parquet {
        let file = super::parquet_copy::copy(input, (reading, method), &wanted, (what, fields), &mut exported, out)?;
        return Ok((exported, file));
    }
    let RowBatches { schema, group, mut batches } = match own {
        Some(RowFormat::Parquet) => parquet_rows(input, &wanted)?,
        _ => arrow_rows(input, &wanted)?,
    };
    let RowFields { added: fields, renamed } = fields;
    let of_rows = annotated(&schema, fields, input)?;
    let of_file = schema_in(format, &of_rows);
    let mut writer = RowWriter::new(format, out, renamed.schema(&of_file, input)?, group)?;
    let (mut next, mut left) = (0, LeftTexts::new(method));
    while let Some(batch) = batches().with_context(|| format!("cannot read {}", input.name))? {
        let Some(of_batch) = wanted.get(next..next + batch.num_rows()) else { return Err(changed(input, 0)) };
        next += batch.num_rows();
        let batch = match what {
            What::Kept if of_batch.iter().any(|verdict| !verdict.gone.is_nothing()) => {
                without_paragraphs(&batch, of_batch, reading, input, &mut left, &mut exported)?
            }
            _ if fields.is_empty() => batch,
            _ => {
                let mut columns = batch.columns().to_vec();
                columns.extend(annotations(of_batch, fields));
                RecordBatch::try_new(of_rows.clone(), columns)?
            }
        };
        writer.write(&cast_to(&of_file, batch).with_context(|| format!("a value of {} does not fit", input.name))?)?;
    }
    match wanted.get(next) {
        None => Ok((exported, writer.finish()?)),
        Some(verdict) if own == Some(RowFormat::Parquet) => Err(changed(input, verdict.offset)),
        // It was just read, behind the stream that is converted.
        Some(verdict) => bail!(
            "{} has the record at {} behind its first stream, and only files of one stream, without damage, are \
             converted: --list names the records that go",
            input.name,
            verdict.offset
        ),
    }
}

/// Some rows of an input.
struct RowBatches {
    schema: SchemaRef,
    /// The rows of a row group, at most.
    group: Option<usize>,
    /// Returns the next batch.
    batches: Box<dyn FnMut() -> Result<Option<RecordBatch>>>,
}

/// The rows with these verdicts, of Parquet.
fn parquet_rows(input: &Input, wanted: &[&Verdict]) -> Result<RowBatches> {
    let failed = || format!("cannot read {}", input.name);
    let file = stored_file(input)?;
    let metadata = ArrowReaderMetadata::load(&file, ArrowReaderOptions::new()).with_context(failed)?;
    check_plain(metadata.metadata(), input)?;
    let in_file = metadata.schema().clone();
    let schema = super::int96::schema(&metadata, &file).with_context(failed)?;
    let schema = decodable(schema.as_ref().unwrap_or(&in_file));
    let metadata = match schema == in_file {
        true => Ok(metadata),
        false => ArrowReaderMetadata::load(&file, ArrowReaderOptions::new().with_schema(schema)),
    };
    let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata.with_context(failed)?);
    let metadata = builder.metadata().clone();
    let rows = metadata.file_metadata().num_rows().max(0) as usize;
    let ranges = wanted.iter().map(|verdict| verdict.offset as usize..verdict.offset as usize + 1);
    let selection = RowSelection::from_consecutive_ranges(ranges, rows);
    let bytes = metadata.row_groups().iter().map(|group| group.total_byte_size().max(0) as usize);
    let of_row = bytes.fold(0, usize::saturating_add) / rows.max(1);
    // Rows are taken to be as long as those of the file are on average.
    let batch = (BATCH_BYTES / of_row.max(1)).clamp(1, BATCH);
    let mut reader = builder.with_batch_size(batch).with_row_selection(selection).build().with_context(failed)?;
    let group = metadata.row_groups().iter().map(|group| group.num_rows()).max().unwrap_or(0).max(1) as usize;
    let schema = reader.schema();
    Ok(RowBatches { schema, group: Some(group), batches: Box::new(move || Ok(reader.next().transpose()?)) })
}

/// Opens a stream or file of Arrow record batches.
///
/// # Errors
/// If it cannot be read.
pub(crate) fn arrow_batches(input: &Input) -> Result<StreamReader<BufReader<Box<dyn Read + Send>>>> {
    let failed =
        || format!("cannot read {}: only Arrow files that are not compressed as a whole are converted", input.name);
    let file = stored_file(input)?;
    let source: Box<dyn Read + Send> = match ordered_arrow(&file).with_context(failed)? {
        Some(ordered) => ordered.bytes,
        None => Box::new(file),
    };
    // After its signature a file is a stream; its table of contents, at the end, is not needed.
    let mut source = BufReader::with_capacity(1 << 20, source);
    if source.fill_buf().with_context(failed)?.starts_with(SIGNATURE) {
        source.consume(SIGNATURE.len() + 2);
        // Zeros may follow, in groups of four.
        while source.fill_buf().with_context(failed)?.starts_with(&[0; 4]) {
            source.consume(4);
        }
    }
    let batches = contained(|| StreamReader::try_new(source, None)).map_err(anyhow::Error::msg).with_context(failed)?;
    batches.with_context(failed)
}

/// The rows with these verdicts, of a stream or file of Arrow record batches.
fn arrow_rows(input: &Input, wanted: &[&Verdict]) -> Result<RowBatches> {
    let mut batches = arrow_batches(input)?;
    let schema = batches.schema();
    let mut rows: VecDeque<u64> = wanted.iter().map(|verdict| verdict.offset).collect();
    let mut before = 0;
    let batches = move || loop {
        let Some(batch) = contained(|| batches.next()).map_err(anyhow::Error::msg)?.transpose()? else {
            return Ok(None);
        };
        let mask = (0..batch.num_rows() as u64).map(|row| {
            let is_wanted = rows.front() == Some(&(before + row));
            if is_wanted {
                rows.pop_front();
            }
            Some(is_wanted)
        });
        let mask: BooleanArray = mask.collect();
        before += batch.num_rows() as u64;
        if mask.true_count() > 0 {
            return Ok(Some(filter_record_batch(&batch, &mask)?));
        }
    };
    Ok(RowBatches { schema, group: None, batches: Box::new(batches) })
}

/// The fields of rows with further ones.
///
/// # Errors
/// If the rows have one of them already.
pub(crate) fn annotated(schema: &SchemaRef, added: &[AddedField], input: &Input) -> Result<SchemaRef> {
    if added.is_empty() {
        return Ok(schema.clone());
    }
    check_unannotated(schema.fields().iter().map(|field| field.name().as_str()), added, input)?;
    let more = added.iter().map(|field| Arc::new(arrow_field(*field)));
    let fields: Vec<FieldRef> = schema.fields().iter().cloned().chain(more).collect();
    Ok(Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone())))
}

/// The values of these fields.
pub(crate) fn annotations(verdicts: &[&Verdict], fields: &[AddedField]) -> Vec<ArrayRef> {
    let column = |field: &AddedField| -> ArrayRef {
        let values = || verdicts.iter().map(|verdict| field.value(verdict));
        let long = |value| match value {
            AddedValue::Long(value) => Some(value),
            AddedValue::MaybeLong(value) => value,
            _ => None,
        };
        let boolean = |value| if let AddedValue::Boolean(value) = value { Some(value) } else { None };
        let double = |value| if let AddedValue::Double(value) = value { value } else { None };
        match field {
            AddedField::Cluster | AddedField::Size | AddedField::Rank | AddedField::Matches | AddedField::Item => {
                Arc::new(values().map(long).collect::<Int64Array>())
            }
            AddedField::Stays => Arc::new(values().map(boolean).collect::<BooleanArray>()),
            AddedField::Score | AddedField::Containment => Arc::new(values().map(double).collect::<Float64Array>()),
        }
    };
    fields.iter().map(column).collect()
}

/// Counts what is left out of an input without documents.
///
/// # Errors
/// If it cannot be read, or has documents.
pub(crate) fn left_out(input: &Input, reading: &Reading) -> Result<Exported> {
    check(input, reading, &[], What::Kept)
}

/// Reads the contents of the documents, and checks that they are those of the week.
fn check(input: &Input, reading: &Reading, verdicts: &[Verdict], what: What) -> Result<Exported> {
    let mut reader = open(input, reading)?;
    let mut exported = Exported::default();
    let mut verdicts = verdicts.iter().peekable();
    while let Some(item) = reader.next()? {
        let offset = item.offset();
        let Some(verdict) = verdicts.next_if(|verdict| verdict.offset == offset) else {
            exported.left_out.add(&item);
            continue;
        };
        match item {
            Item::Page(page) if verdict.is_of(&page, input.format) => exported.add(verdict, what),
            _ => return Err(changed(input, offset)),
        }
    }
    match verdicts.next() {
        Some(verdict) => Err(changed(input, verdict.offset)),
        None => Ok(exported),
    }
}

/// A batch whose texts lack the paragraphs that go, and without the rows of which nothing is left.
fn without_paragraphs(
    batch: &RecordBatch,
    verdicts: &[&Verdict],
    reading: &Reading,
    input: &Input,
    left: &mut LeftTexts<'_>,
    exported: &mut Exported,
) -> Result<RecordBatch> {
    let schema = batch.schema();
    let reading = input.reading(reading);
    let names = reading.columns.text.names();
    let within = |name: &&String| {
        let root = name.split_once('.').map(|(root, _)| root);
        schema.index_of(name).is_err() && root.is_some_and(|root| schema.index_of(root).is_ok())
    };
    if let Some(column) = names.iter().find(within) {
        bail!("text is taken out of columns, and `{column}` of {} is within one: --list has what goes", input.name);
    }
    let numbers: Vec<Option<usize>> = names.iter().map(|name| schema.index_of(name).ok()).collect();
    let mut columns = batch.columns().to_vec();
    let none = || vec![None; batch.num_rows()];
    let texts = |(name, number): (&String, &Option<usize>)| {
        number.map_or_else(|| Ok(none()), |number| texts_of(&columns[number], name, input))
    };
    let before: Vec<Vec<Option<&str>>> = names.iter().zip(&numbers).map(texts).collect::<Result<_>>()?;
    let mut after: Vec<Vec<Option<Cow<'_, str>>>> = vec![Vec::with_capacity(batch.num_rows()); names.len()];
    let mut is_left = Vec::with_capacity(batch.num_rows());
    for (row, verdict) in verdicts.iter().enumerate() {
        let of_row: Vec<Option<&str>> = before.iter().map(|texts| texts[row]).collect();
        let joined = TextColumns::joined(of_row.iter().map(|text| text.map(Cow::Borrowed)));
        let of_row = match joined {
            Some(joined) if !verdict.gone.is_nothing() => {
                let of_joined = left.of(&verdict.gone, &joined)?;
                exported.add_gone(verdict, &joined, of_joined.as_deref());
                is_left.push(of_joined.is_some());
                left.of_columns(&verdict.gone, &of_row)?.into_iter().map(|text| text.map(Cow::Owned)).collect()
            }
            _ => {
                is_left.push(true);
                of_row.into_iter().map(|text| text.map(Cow::Borrowed)).collect::<Vec<_>>()
            }
        };
        after.iter_mut().zip(of_row).for_each(|(after, text)| after.push(text));
    }
    let made: Vec<(usize, ArrayRef)> = numbers
        .iter()
        .zip(&after)
        .filter_map(|(number, texts)| Some(((*number)?, texts)))
        .map(|(number, texts)| {
            let texts = texts.iter().map(Option::as_deref);
            let texts: ArrayRef = match columns[number].data_type() {
                DataType::Utf8 => Arc::new(texts.collect::<StringArray>()),
                DataType::LargeUtf8 => Arc::new(texts.collect::<LargeStringArray>()),
                _ => Arc::new(texts.collect::<StringViewArray>()),
            };
            (number, texts)
        })
        .collect();
    made.into_iter().for_each(|(number, texts)| columns[number] = texts);
    let batch = RecordBatch::try_new(schema, columns)?;
    Ok(filter_record_batch(&batch, &is_left.into())?)
}

/// The texts of a column, by the rows.
fn texts_of<'a>(column: &'a ArrayRef, name: &str, input: &Input) -> Result<Vec<Option<&'a str>>> {
    Ok(match column.data_type() {
        DataType::Utf8 => column.as_string::<i32>().iter().collect(),
        DataType::LargeUtf8 => column.as_string::<i64>().iter().collect(),
        DataType::Utf8View => column.as_string_view().iter().collect(),
        kind => bail!("text is taken out of columns of text, and `{name}` of {} is {kind}", input.name),
    })
}
