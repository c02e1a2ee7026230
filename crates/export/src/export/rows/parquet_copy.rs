//! Parquet written again as Parquet: values go from column to column, with the levels of nulls and
//! lists, and no type between could change them. The schema and the metadata of the file stay as
//! they are.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use arrow_ipc::convert::try_fb_to_schema;
use arrow_ipc::root_as_message;
use arrow_schema::Schema;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use nigh_text::contained::contained;
use parquet::arrow::{ARROW_SCHEMA_META_KEY, add_encoded_arrow_schema_to_metadata};
use parquet::basic::{Compression, Repetition, Type as PhysicalType, ZstdLevel};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::column::writer::ColumnWriterImpl;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType as ParquetType, DoubleType, Int64Type};
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{ColumnPath, Type};

use super::RowFields;
use super::parquet_types::named;
use super::types::arrow_field;
use crate::config::{Method, Reading, TextColumns};
use crate::export::dataset::{AddedField, AddedValue, Exported, What, check_plain, check_unannotated};
use crate::export::place::Output;
use crate::export::renamed::NewNames;
use crate::export::texts::LeftTexts;
use crate::export::verdicts::Verdict;
use crate::readers::{Input, stored_file};

/// Rows that are read at once.
const BATCH: usize = 1024;

/// Writes the rows that are wanted, given by the verdicts on them, in order. A row group has the
/// rows of one or more groups of the input.
///
/// # Errors
/// If the input cannot be read, or the file not be written.
pub(crate) fn copy(
    input: &Input,
    (reading, method): (&Reading, &Method),
    wanted: &[&Verdict],
    (what, fields): (What, RowFields<'_>),
    exported: &mut Exported,
    out: Output,
) -> Result<Output> {
    let failed = || format!("cannot read {}", input.name);
    let reading = input.reading(reading);
    let copied = contained(|| -> Result<Output> {
        let file = SerializedFileReader::new(stored_file(input)?).with_context(failed)?;
        check_plain(file.metadata(), input)?;
        let mut copy = RowCopier::begin(file, input, fields, out)?;
        let mut left = LeftTexts::new(method);
        for groups in copy.groups(wanted) {
            let texts = (&reading.columns.text, &mut left);
            copy.write(groups, wanted, (what, fields.added), texts, input, exported)?;
        }
        Ok(copy.writer.into_inner()?)
    });
    copied.map_err(anyhow::Error::msg).with_context(failed)?
}

/// The rows of a file, and those that are written.
struct RowCopier {
    file: SerializedFileReader<std::fs::File>,
    writer: SerializedFileWriter<Output>,
}

/// The rows of one row group that are written: the number of the group, its first row, and the
/// places of these in the list of all.
struct WrittenGroup {
    group: usize,
    first: u64,
    wanted: Range<usize>,
}

impl RowCopier {
    fn begin(
        file: SerializedFileReader<std::fs::File>,
        input: &Input,
        RowFields { added, renamed }: RowFields<'_>,
        out: Output,
    ) -> Result<RowCopier> {
        let metadata = file.metadata().file_metadata();
        let mut pairs = metadata.key_value_metadata().cloned();
        let hint = pairs.iter().flatten().find(|pair| pair.key == ARROW_SCHEMA_META_KEY);
        let hint = hint.and_then(|pair| pair.value.as_deref()).and_then(arrow_schema_of);
        if hint.is_none() && !(added.is_empty() && renamed.is_empty()) {
            // One that cannot be read would not have the new columns, or the new names.
            pairs.iter_mut().for_each(|pairs| pairs.retain(|pair| pair.key != ARROW_SCHEMA_META_KEY));
        }
        for pair in pairs.iter_mut().flatten() {
            if let Some(new) = pair.value.as_deref().and_then(|value| renamed.metadata(&pair.key, value)) {
                pair.value = Some(new);
            }
        }
        let mut schema = metadata.schema_descr().root_schema_ptr();
        let mut properties = WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?));
        // Columns are compressed as in the first row group: the file does not say by which level.
        for column in file.metadata().row_groups().iter().take(1).flat_map(RowGroupMetaData::columns) {
            let compression = match column.compression() {
                Compression::LZ4 => Compression::LZ4_RAW,
                Compression::ZSTD(_) => Compression::ZSTD(ZstdLevel::try_new(3)?),
                compression => compression,
            };
            let mut path = column.column_path().parts().to_vec();
            if let Some(first) = path.first_mut() {
                *first = renamed.of(first).to_owned();
            }
            properties = properties.set_column_compression(ColumnPath::new(path), compression);
        }
        let mut properties = properties
            .set_created_by(format!("nigh {}", env!("CARGO_PKG_VERSION")))
            .set_key_value_metadata(pairs)
            .build();
        if !added.is_empty() || !renamed.is_empty() {
            check_unannotated(schema.get_fields().iter().map(|field| field.name()), added, input)?;
            let mut fields = schema.get_fields().to_vec();
            for field in added {
                let (kind, repetition) = match field {
                    AddedField::Cluster | AddedField::Size | AddedField::Rank | AddedField::Matches => {
                        (PhysicalType::INT64, Repetition::REQUIRED)
                    }
                    AddedField::Item => (PhysicalType::INT64, Repetition::OPTIONAL),
                    AddedField::Stays => (PhysicalType::BOOLEAN, Repetition::REQUIRED),
                    AddedField::Score | AddedField::Containment => (PhysicalType::DOUBLE, Repetition::OPTIONAL),
                };
                let field = Type::primitive_type_builder(field.name(), kind).with_repetition(repetition);
                fields.push(Arc::new(field.build()?));
            }
            renamed.check(fields.iter().map(|field| field.name()), &input.name)?;
            for field in &mut fields {
                let new = renamed.of(field.name());
                if new != field.name() {
                    *field = named(field, new)?;
                }
            }
            if let Some(before) = hint {
                // What readers of Arrow take the types from has the new columns and names, too.
                let more = added.iter().map(|field| Arc::new(arrow_field(*field)));
                let all: Vec<_> = before.fields().iter().cloned().chain(more).collect();
                let after = renamed.arrow_schema(&Schema::new_with_metadata(all, before.metadata().clone()));
                add_encoded_arrow_schema_to_metadata(&after, &mut properties);
            }
            schema = Arc::new(Type::group_type_builder(schema.name()).with_fields(fields).build()?);
        }
        let writer = SerializedFileWriter::new(out, schema, Arc::new(properties))?;
        Ok(RowCopier { file, writer })
    }

    /// The groups that are written together: as many as have no more rows than the largest group of
    /// the input.
    fn groups(&self, wanted: &[&Verdict]) -> Vec<Vec<WrittenGroup>> {
        let rows = |group: usize| self.file.metadata().row_group(group).num_rows().max(0) as u64;
        let count = self.file.num_row_groups();
        let most = (0..count).map(rows).max().unwrap_or(0) as usize;
        let mut all: Vec<Vec<WrittenGroup>> = Vec::new();
        let (mut first, mut next, mut of_last) = (0, 0, 0);
        for group in 0..count {
            let end = first + rows(group);
            let after = next + wanted[next..].partition_point(|verdict| verdict.offset < end);
            if after > next {
                let rows = WrittenGroup { group, first, wanted: next..after };
                match all.last_mut() {
                    Some(last) if of_last + rows.wanted.len() <= most => last.push(rows),
                    _ => {
                        of_last = 0;
                        all.push(vec![rows]);
                    }
                }
                of_last += after - next;
            }
            (first, next) = (end, after);
        }
        all
    }

    fn write(
        &mut self,
        groups: Vec<WrittenGroup>,
        all: &[&Verdict],
        (what, fields): (What, &[AddedField]),
        (columns, left_texts): (&TextColumns, &mut LeftTexts<'_>),
        input: &Input,
        exported: &mut Exported,
    ) -> Result<()> {
        let RowCopier { file, writer } = self;
        let descriptor = file.metadata().file_metadata().schema_descr_ptr();
        let leaf = |name: &String| descriptor.columns().iter().position(|leaf| leaf.path().string() == *name);
        let leaves: Vec<Option<usize>> = columns.names().iter().map(leaf).collect();
        // The texts that lack paragraphs, by their column, and of each group the rows that are
        // left.
        let (mut texts, mut left) = (vec![BTreeMap::new(); descriptor.num_columns()], Vec::new());
        for WrittenGroup { group, first, wanted } in groups {
            let verdicts = &all[wanted];
            let rows: Vec<usize> = verdicts.iter().map(|verdict| (verdict.offset - first) as usize).collect();
            let mut gone = BTreeMap::new();
            if what == What::Kept && verdicts.iter().any(|verdict| !verdict.gone.is_nothing()) {
                let of_group = file.get_row_group(group)?;
                let of_leaf = |leaf| Ok((of_group.get_column_reader(leaf)?, descriptor.column(leaf).max_def_level()));
                let of_leaves = leaves.iter().map(|leaf| leaf.map(of_leaf).transpose()).collect::<Result<_>>()?;
                let texts = (columns, &mut *left_texts);
                gone = without_paragraphs(of_leaves, &rows, verdicts, texts, input, exported)?;
            }
            let is_left = |place: &usize| gone.get(place).is_none_or(Option::is_some);
            let places: Vec<usize> = (0..rows.len()).filter(is_left).collect();
            let at = left.iter().map(|(_, rows, _): &(usize, Vec<usize>, Vec<&Verdict>)| rows.len()).sum::<usize>();
            for (number, place) in places.iter().enumerate() {
                let of_row = gone.get_mut(place).and_then(Option::take).unwrap_or_default();
                for (leaf, text) in leaves.iter().zip(of_row) {
                    if let (Some(leaf), Some(text)) = (leaf, text) {
                        texts[*leaf].insert(at + number, text);
                    }
                }
            }
            left.push((
                group,
                places.iter().map(|place| rows[*place]).collect(),
                places.iter().map(|place| verdicts[*place]).collect(),
            ));
        }
        if left.iter().all(|(_, rows, _)| rows.is_empty()) {
            return Ok(());
        }
        let mut of_group = writer.next_row_group()?;
        for (number, texts) in texts.iter().enumerate() {
            let mut to = of_group.next_column()?.context("the writer has the columns of the reader")?;
            let mut at = 0;
            for (group, rows, _) in &left {
                let from = file.get_row_group(*group)?.get_column_reader(number)?;
                copy_column(from, &mut to, rows, at, texts)?;
                at += rows.len();
            }
            to.close()?;
        }
        let verdicts: Vec<&Verdict> = left.into_iter().flat_map(|(_, _, verdicts)| verdicts).collect();
        for field in fields {
            let mut to = of_group.next_column()?.context("the writer has the columns that are added")?;
            let (mut longs, mut booleans, mut doubles, mut levels) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
            for verdict in &verdicts {
                match field.value(verdict) {
                    AddedValue::Long(value) => longs.push(value),
                    AddedValue::Boolean(value) => booleans.push(value),
                    AddedValue::MaybeLong(value) => {
                        longs.extend(value);
                        levels.push(i16::from(value.is_some()));
                    }
                    AddedValue::Double(value) => {
                        doubles.extend(value);
                        levels.push(i16::from(value.is_some()));
                    }
                }
            }
            match field {
                AddedField::Cluster | AddedField::Size | AddedField::Rank | AddedField::Matches => {
                    to.typed::<Int64Type>().write_batch(&longs, None, None)?
                }
                AddedField::Stays => to.typed::<BoolType>().write_batch(&booleans, None, None)?,
                AddedField::Item => to.typed::<Int64Type>().write_batch(&longs, Some(&levels), None)?,
                AddedField::Score | AddedField::Containment => {
                    to.typed::<DoubleType>().write_batch(&doubles, Some(&levels), None)?
                }
            };
            to.close()?;
        }
        of_group.close()?;
        Ok(())
    }
}

/// A file that takes rows of several Parquet files, as they are.
pub(crate) struct ParquetCopy {
    writer: SerializedFileWriter<Output>,
}

/// Some rows of a row group, one behind the other.
pub(crate) struct PieceOfGroup {
    /// The file that has them.
    pub(crate) file: Rc<SerializedFileReader<std::fs::File>>,
    /// The number of the row group in it.
    pub(crate) group: usize,
    /// The rows, counted in the group.
    pub(crate) rows: Range<usize>,
}

impl ParquetCopy {
    /// Begins a file with the schema, the metadata and the compression of another one.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(crate) fn begin(like: SerializedFileReader<std::fs::File>, input: &Input, out: Output) -> Result<ParquetCopy> {
        let as_they_are = RowFields { added: &[], renamed: &NewNames::default() };
        Ok(ParquetCopy { writer: RowCopier::begin(like, input, as_they_are, out)?.writer })
    }

    /// Adds rows, as one row group.
    ///
    /// # Errors
    /// If they cannot be read, or the file not be written.
    pub(crate) fn add(&mut self, pieces: &[PieceOfGroup]) -> Result<()> {
        let Some(first) = pieces.first() else { return Ok(()) };
        let mut of_group = self.writer.next_row_group()?;
        for column in 0..first.file.metadata().file_metadata().schema_descr().num_columns() {
            let mut to = of_group.next_column()?.context("the writer has the columns of the reader")?;
            for PieceOfGroup { file, group, rows } in pieces {
                let from = file.get_row_group(*group)?.get_column_reader(column)?;
                copy_column(from, &mut to, &rows.clone().collect::<Vec<_>>(), 0, &BTreeMap::new())?;
            }
            to.close()?;
        }
        of_group.close()?;
        Ok(())
    }

    /// Ends the file.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(crate) fn finish(self) -> Result<Output> {
        Ok(self.writer.into_inner()?)
    }
}

/// The schema of Arrow that the metadata of a file has; `None` if it cannot be read.
fn arrow_schema_of(encoded: &str) -> Option<Schema> {
    let bytes = BASE64_STANDARD.decode(encoded).ok()?;
    // Since Arrow 0.15 a mark and the length are before the message.
    let message = if bytes.starts_with(&[0xFF; 4]) { bytes.get(8..)? } else { &bytes };
    try_fb_to_schema(root_as_message(message).ok()?.header_as_schema()?).ok()
}

/// Copies the values of some rows of a column, given by their places in the row group, ascending.
/// Those that `texts` has by their number, which begins at `at`, are replaced.
fn copy_column(
    from: ColumnReader,
    to: &mut SerializedColumnWriter<'_>,
    rows: &[usize],
    at: usize,
    texts: &BTreeMap<usize, String>,
) -> Result<()> {
    fn plain<T: ParquetType>(
        mut from: ColumnReaderImpl<T>,
        to: &mut SerializedColumnWriter<'_>,
        rows: &[usize],
    ) -> Result<()> {
        let to = to.typed::<T>();
        each_batch(&mut from, rows, &mut |_, values, definitions, repetitions| {
            write(to, values, definitions, repetitions)
        })
    }
    match from {
        ColumnReader::BoolColumnReader(from) => plain(from, to, rows),
        ColumnReader::Int32ColumnReader(from) => plain(from, to, rows),
        ColumnReader::Int64ColumnReader(from) => plain(from, to, rows),
        ColumnReader::Int96ColumnReader(from) => plain(from, to, rows),
        ColumnReader::FloatColumnReader(from) => plain(from, to, rows),
        ColumnReader::DoubleColumnReader(from) => plain(from, to, rows),
        ColumnReader::FixedLenByteArrayColumnReader(from) => plain(from, to, rows),
        ColumnReader::ByteArrayColumnReader(from) if texts.is_empty() => plain(from, to, rows),
        ColumnReader::ByteArrayColumnReader(mut from) => {
            let to = to.typed::<ByteArrayType>();
            each_batch(&mut from, rows, &mut |first, values, definitions, repetitions| {
                // A column of texts has one value in each row, or none.
                let most = to.get_descriptor().max_def_level();
                let has_value = |row: &usize| definitions.get(row - first).is_none_or(|level| *level == most);
                for (value, row) in values.iter_mut().zip((first..).filter(has_value)) {
                    if let Some(text) = texts.get(&(at + row)) {
                        *value = ByteArray::from(text.as_str());
                    }
                }
                write(to, values, definitions, repetitions)
            })
        }
    }
}

/// Writes values with their levels, which a column without nulls and lists does not have.
fn write<T: ParquetType>(
    to: &mut ColumnWriterImpl<'_, T>,
    values: &[T::T],
    definitions: &[i16],
    repetitions: &[i16],
) -> Result<()> {
    let (most_defined, most_repeated) = (to.get_descriptor().max_def_level(), to.get_descriptor().max_rep_level());
    let levels = |most: i16, levels| Some(levels).filter(|_| most > 0);
    to.write_batch(values, levels(most_defined, definitions), levels(most_repeated, repetitions))?;
    Ok(())
}

/// What is done with some rows: the number of the first among those that are read, the values, and
/// the levels of definition and repetition.
type EachBatch<'a, T> = &'a mut dyn FnMut(usize, &mut Vec<T>, &[i16], &[i16]) -> Result<()>;

/// Reads the rows at some places, ascending.
fn each_batch<T: ParquetType>(from: &mut ColumnReaderImpl<T>, rows: &[usize], each: EachBatch<'_, T::T>) -> Result<()> {
    let (mut values, mut definitions, mut repetitions) = (Vec::new(), Vec::new(), Vec::new());
    let (mut at, mut next) = (0, 0);
    while next < rows.len() {
        let first = rows[next];
        let follow =
            rows[next..].iter().zip(first..).take(BATCH).take_while(|(row, expected)| **row == *expected).count();
        let skipped = from.skip_records(first - at)?;
        ensure!(skipped == first - at, "a column ends before its row group");
        values.clear();
        definitions.clear();
        repetitions.clear();
        let (mut records, end) = (0, follow);
        while records < end {
            let (more, ..) =
                from.read_records(end - records, Some(&mut definitions), Some(&mut repetitions), &mut values)?;
            ensure!(more > 0, "a column ends before its row group");
            records += more;
        }
        each(next, &mut values, &definitions, &repetitions)?;
        (at, next) = (first + follow, next + follow);
    }
    Ok(())
}

/// The texts of a row, by the columns of the text; `None` for a column without one.
type RowTexts = Vec<Option<String>>;

/// The texts of rows that lack paragraphs, by the number of the row among these; `None` if nothing
/// is left of one. `readers` are those of the columns that the file has, with the level of
/// definition of a value.
fn without_paragraphs(
    readers: Vec<Option<(ColumnReader, i16)>>,
    rows: &[usize],
    verdicts: &[&Verdict],
    (columns, left): (&TextColumns, &mut LeftTexts<'_>),
    input: &Input,
    exported: &mut Exported,
) -> Result<BTreeMap<usize, Option<RowTexts>>> {
    let with_gone: Vec<usize> = (0..rows.len()).filter(|number| !verdicts[*number].gone.is_nothing()).collect();
    let places: Vec<usize> = with_gone.iter().map(|number| rows[*number]).collect();
    let mut texts: Vec<RowTexts> = vec![Vec::new(); places.len()];
    for (reader, column) in readers.into_iter().zip(columns.names()) {
        let (mut reader, most) = match reader {
            Some((ColumnReader::ByteArrayColumnReader(reader), most)) => (reader, most),
            Some(_) => bail!("text is taken out of columns of text, and `{column}` of {} is none", input.name),
            None => {
                texts.iter_mut().for_each(|texts| texts.push(None));
                continue;
            }
        };
        each_batch(&mut reader, &places, &mut |first, values, definitions, _| {
            // A column without nulls has no levels.
            let read = values.len().max(definitions.len());
            let mut values = values.iter();
            for (number, texts) in texts[first..first + read].iter_mut().enumerate() {
                let text = match definitions.get(number).is_none_or(|level| *level == most) {
                    true => values.next().map(|value| std::str::from_utf8(value.data()).map(str::to_owned)),
                    false => None,
                };
                texts.push(text.transpose().context("a text is UTF-8")?);
            }
            Ok(())
        })?;
    }
    let mut found = BTreeMap::new();
    for (number, of_row) in with_gone.into_iter().zip(texts) {
        let of_row: Vec<Option<&str>> = of_row.iter().map(Option::as_deref).collect();
        // A row without a text has no paragraphs.
        let Some(before) = TextColumns::joined(of_row.iter().map(|text| text.map(Cow::Borrowed))) else { continue };
        let gone = &verdicts[number].gone;
        let after = left.of(gone, &before)?;
        exported.add_gone(verdicts[number], &before, after.as_deref());
        found.insert(number, after.map(|_| left.of_columns(gone, &of_row)).transpose()?);
    }
    Ok(found)
}
