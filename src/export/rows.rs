//! Writes rows of Parquet again, with all of their columns, or with further ones.

use std::borrow::Cow;
use std::fs::File;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use arrow_array::cast::AsArray as _;
use arrow_array::{
    Array as _, ArrayRef, BooleanArray, Int64Array, LargeStringArray, RecordBatch, RecordBatchReader as _, StringArray,
    StringViewArray,
};
use arrow_schema::{DataType, Field, Schema};
use arrow_select::filter::filter_record_batch;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReaderBuilder, RowSelection};
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;

use super::exported::{Exported, What, changed};
use super::paragraphs::without;
use super::spans::FIELDS;
use super::verdicts::Verdict;
use crate::config::Reading;
use crate::readers::{Input, Item, Location, open};
use crate::records::checksum;

/// Rows of a batch.
const BATCH: usize = 1024;

/// Writes the rows of an input that are wanted, in row groups of the same size. `verdicts` are those on its documents, in order.
///
/// # Errors
/// As [`Writing::write`](super::Writing::write).
pub(super) fn export(
    input: &Input,
    reading: &Reading,
    verdicts: &[Verdict],
    what: What,
    out: File,
) -> Result<(Exported, File)> {
    let mut exported = check(input, reading, verdicts, what)?;
    let Location::File(path) = &input.place else {
        bail!("{} is not on a local disk: copy it there first", input.name);
    };
    let failed = || format!("cannot read {}", input.name);
    let file = File::open(path).with_context(failed)?;
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).with_context(failed)?;
    let metadata = builder.metadata().clone();
    let rows = metadata.file_metadata().num_rows().max(0) as usize;
    let wanted: Vec<&Verdict> = verdicts.iter().filter(|verdict| what.wants(verdict)).collect();
    let ranges = wanted.iter().map(|verdict| verdict.offset as usize..verdict.offset as usize + 1);
    let selection = RowSelection::from_consecutive_ranges(ranges, rows);
    let reader = builder.with_batch_size(BATCH).with_row_selection(selection).build().with_context(failed)?;
    let mut schema = Schema::clone(&reader.schema());
    if what == What::Annotated {
        let kinds = [DataType::Int64, DataType::Int64, DataType::Int64, DataType::Boolean];
        let more = FIELDS.into_iter().zip(kinds).map(|(name, kind)| Arc::new(Field::new(name, kind, false)));
        let more: Vec<Arc<Field>> = more.collect();
        if let Some(field) = more.iter().find(|field| schema.field_with_name(field.name()).is_ok()) {
            bail!("{} has a column {} already: it was annotated before", input.name, field.name());
        }
        schema = Schema::new_with_metadata(
            schema.fields().iter().cloned().chain(more).collect::<Vec<_>>(),
            schema.metadata().clone(),
        );
    }
    let schema = Arc::new(schema);
    let largest = metadata.row_groups().iter().map(|group| group.num_rows()).max().unwrap_or(0).max(1) as usize;
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
        .set_max_row_group_row_count(Some(largest))
        .set_created_by(format!("nigh {}", env!("CARGO_PKG_VERSION")))
        .build();
    let mut writer = ArrowWriter::try_new(out, schema.clone(), Some(properties))?;
    let mut next = 0;
    for batch in reader {
        let batch = batch.with_context(failed)?;
        let of_batch = &wanted[next..next + batch.num_rows()];
        next += batch.num_rows();
        let batch = match what {
            What::Kept if of_batch.iter().any(|verdict| !verdict.gone.is_empty()) => {
                without_paragraphs(&batch, of_batch, reading, input, &mut exported)?
            }
            What::Kept | What::Removed => batch,
            What::Annotated => {
                let mut columns = batch.columns().to_vec();
                columns.extend(annotations(of_batch));
                RecordBatch::try_new(schema.clone(), columns)?
            }
        };
        writer.write(&batch)?;
    }
    Ok((exported, writer.into_inner()?))
}

fn annotations(verdicts: &[&Verdict]) -> [ArrayRef; 4] {
    let longs = |of: fn(&Verdict) -> i64| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values(verdicts.iter().map(|verdict| of(verdict))))
    };
    [
        longs(|verdict| verdict.cluster),
        longs(|verdict| verdict.size as i64),
        longs(|verdict| verdict.rank as i64),
        Arc::new(BooleanArray::from_iter(verdicts.iter().map(|verdict| Some(verdict.stays)))),
    ]
}

/// Reads the contents of the documents, and checks that they are those of the week.
fn check(input: &Input, reading: &Reading, verdicts: &[Verdict], what: What) -> Result<Exported> {
    let mut reader = open(input, reading)?;
    let mut exported = Exported::default();
    let mut verdicts = verdicts.iter().peekable();
    while let Some(item) = reader.next()? {
        let offset = item.offset();
        let Some(verdict) = verdicts.next_if(|verdict| verdict.offset == offset) else {
            exported.no_document += 1;
            continue;
        };
        match item {
            Item::Page(page) if checksum(page.body.as_bytes()) == verdict.checksum => exported.add(verdict, what),
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
    exported: &mut Exported,
) -> Result<RecordBatch> {
    let column = reading.columns.text.as_deref().unwrap_or_default();
    let number = batch.schema().index_of(column).ok();
    let number = number.with_context(|| {
        format!(
            "paragraphs are taken out of columns, and `{column}` of {} is within one: --list has what goes",
            input.name
        )
    })?;
    let before = batch.column(number);
    let texts: Vec<Option<&str>> = match before.data_type() {
        DataType::Utf8 => before.as_string::<i32>().iter().collect(),
        DataType::LargeUtf8 => before.as_string::<i64>().iter().collect(),
        DataType::Utf8View => before.as_string_view().iter().collect(),
        kind => bail!("paragraphs are taken out of columns of text, and `{column}` of {} is {kind}", input.name),
    };
    let mut is_left = Vec::with_capacity(texts.len());
    let new: Vec<Option<Cow<'_, str>>> = texts
        .into_iter()
        .zip(verdicts)
        .map(|(text, verdict)| match text {
            Some(text) if !verdict.gone.is_empty() => {
                let after = without(text, &verdict.gone);
                exported.add_gone(verdict, text, after.as_deref());
                is_left.push(after.is_some());
                Some(Cow::Owned(after.unwrap_or_default()))
            }
            text => {
                is_left.push(true);
                text.map(Cow::Borrowed)
            }
        })
        .collect();
    let new = new.iter().map(Option::as_deref);
    let new: ArrayRef = match before.data_type() {
        DataType::Utf8 => Arc::new(new.collect::<StringArray>()),
        DataType::LargeUtf8 => Arc::new(new.collect::<LargeStringArray>()),
        _ => Arc::new(new.collect::<StringViewArray>()),
    };
    let mut columns = batch.columns().to_vec();
    columns[number] = new;
    let batch = RecordBatch::try_new(batch.schema(), columns)?;
    Ok(filter_record_batch(&batch, &is_left.into())?)
}
