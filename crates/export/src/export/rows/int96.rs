//! The old times of Parquet, of 96 bits: a day, and the nanoseconds of it. They reach further than
//! nanoseconds of 64 bits, which end in the year 2262 and begin in 1677; microseconds hold them, if
//! they have no nanoseconds of their own.

use std::fs::File;
use std::sync::Arc;

use anyhow::{Result, bail};
use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef, TimeUnit};
use parquet::arrow::arrow_reader::ArrowReaderMetadata;
use parquet::basic::Type;
use parquet::column::reader::ColumnReader;
use parquet::data_type::Int96;
use parquet::file::reader::{FileReader as _, SerializedFileReader};

/// Nanoseconds of a day.
const DAY: i128 = 86_400_000_000_000;
/// The Julian day of 1970-01-01.
const EPOCH: i128 = 2_440_588;

/// The schema of a file in which such times are microseconds, where nanoseconds would not hold
/// them; `None` if it has none of those.
///
/// Cost: the columns of such times are read once.
///
/// # Errors
/// If the file cannot be read, or has a column with times that neither unit holds.
pub(crate) fn schema(metadata: &ArrowReaderMetadata, file: &File) -> Result<Option<SchemaRef>> {
    let descriptor = metadata.parquet_schema();
    let is_old: Vec<bool> = descriptor.columns().iter().map(|column| column.physical_type() == Type::INT96).collect();
    if !is_old.contains(&true) {
        return Ok(None);
    }
    let reader = SerializedFileReader::new(file.try_clone()?)?;
    let mut in_microseconds = Vec::new();
    for (leaf, is_old) in is_old.into_iter().enumerate() {
        let units = if is_old { units(&reader, leaf)? } else { TimePrecision::default() };
        if units.need_nanoseconds && units.need_microseconds {
            bail!(
                "the column `{}` has times with nanoseconds and times outside the years 1677 to 2262, which no type of 64 bits holds",
                descriptor.column(leaf).path().string()
            );
        }
        in_microseconds.push(units.need_microseconds);
    }
    if !in_microseconds.contains(&true) {
        return Ok(None);
    }
    let mut leaf = 0;
    let schema = metadata.schema();
    let fields: Vec<FieldRef> =
        schema.fields().iter().map(|field| in_unit(field, &in_microseconds, &mut leaf)).collect();
    Ok(Some(Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))))
}

/// What the times of a column need.
#[derive(Default)]
struct TimePrecision {
    need_nanoseconds: bool,
    need_microseconds: bool,
}

fn units(reader: &SerializedFileReader<File>, leaf: usize) -> Result<TimePrecision> {
    let mut units = TimePrecision::default();
    for group in 0..reader.num_row_groups() {
        let ColumnReader::Int96ColumnReader(mut column) = reader.get_row_group(group)?.get_column_reader(leaf)? else {
            continue;
        };
        let mut values: Vec<Int96> = Vec::new();
        loop {
            values.clear();
            // A column without nulls has no levels.
            let (records, ..) = column.read_records(1024, Some(&mut Vec::new()), Some(&mut Vec::new()), &mut values)?;
            if records == 0 {
                break;
            }
            for value in &values {
                let [low, high, day] = *<&[u32; 3]>::try_from(value.data())?;
                let of_day = i128::from(i64::from(high) << 32 | i64::from(low));
                let nanoseconds = (i128::from(day.cast_signed()) - EPOCH) * DAY + of_day;
                units.need_nanoseconds |= nanoseconds % 1000 != 0;
                units.need_microseconds |= i64::try_from(nanoseconds).is_err();
            }
        }
    }
    Ok(units)
}

/// A field whose leaves have other units, by their numbers.
fn in_unit(field: &FieldRef, in_microseconds: &[bool], leaf: &mut usize) -> FieldRef {
    let mut inner = |field: &FieldRef| in_unit(field, in_microseconds, leaf);
    let kind = match field.data_type() {
        DataType::List(item) => DataType::List(inner(item)),
        DataType::LargeList(item) => DataType::LargeList(inner(item)),
        DataType::FixedSizeList(item, size) => DataType::FixedSizeList(inner(item), *size),
        DataType::Map(entries, sorted) => DataType::Map(inner(entries), *sorted),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(inner).collect()),
        kind => {
            *leaf += 1;
            match kind {
                DataType::Timestamp(_, zone) if in_microseconds.get(*leaf - 1) == Some(&true) => {
                    DataType::Timestamp(TimeUnit::Microsecond, zone.clone())
                }
                kind => kind.clone(),
            }
        }
    };
    Arc::new(Field::clone(field).with_data_type(kind))
}
