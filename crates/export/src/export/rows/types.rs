//! The types of Arrow that a format of files has no place for, and those that hold the same values
//! there.

use std::sync::Arc;

use anyhow::{Result, bail, ensure};
use arrow_array::cast::AsArray as _;
use arrow_array::temporal_conversions::{as_datetime, as_time};
use arrow_array::types::{
    ArrowTemporalType, Date32Type, Date64Type, Time32MillisecondType, Time32SecondType, Time64MicrosecondType,
    Time64NanosecondType, TimestampMicrosecondType, TimestampMillisecondType, TimestampSecondType,
};
use arrow_array::{Array, ArrayRef, OffsetSizeTrait, RecordBatch, make_array};
use arrow_buffer::NullBuffer;
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{DataType, Field, FieldRef, IntervalUnit, Schema, SchemaRef, TimeUnit};

use super::format::RowFormat;
use crate::export::dataset::AddedField;

/// A further field as one of Arrow.
pub(crate) fn arrow_field(field: AddedField) -> Field {
    let (kind, is_nullable) = match field {
        AddedField::Cluster | AddedField::Size | AddedField::Rank | AddedField::Matches => (DataType::Int64, false),
        AddedField::Stays => (DataType::Boolean, false),
        AddedField::Score | AddedField::Containment => (DataType::Float64, true),
        AddedField::Item => (DataType::Int64, true),
    };
    Field::new(field.name(), kind, is_nullable)
}

/// The schema of the rows in a format. Parquet has no seconds, and of dates only days; JSON has no
/// dictionaries, and times with a zone are in UTC there: the offsets of a zone can have seconds.
pub(crate) fn schema_in(format: RowFormat, schema: &SchemaRef) -> SchemaRef {
    let fields: Vec<FieldRef> = schema.fields().iter().map(|field| field_in(format, field)).collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

/// The rows with the types of a schema that [`schema_in`] gave.
///
/// # Errors
/// If a value does not fit.
pub(crate) fn cast_to(schema: &SchemaRef, batch: RecordBatch) -> Result<RecordBatch> {
    if batch.schema_ref() == schema {
        return Ok(batch);
    }
    let options = CastOptions { safe: false, ..CastOptions::default() };
    let columns = batch.columns().iter().zip(schema.fields());
    let columns = columns.map(|(column, field)| cast_with_options(column, field.data_type(), &options));
    Ok(RecordBatch::try_new(schema.clone(), columns.collect::<Result<Vec<ArrayRef>, _>>()?)?)
}

/// The schema as a reader of Parquet can give the values of any file: without dictionaries, for
/// those of several row groups may have more values than their keys can count; and with offsets of
/// 64 bits, for texts of a batch can have more than 2 GiB.
pub(crate) fn decodable(schema: &SchemaRef) -> SchemaRef {
    fn plain(field: &FieldRef) -> FieldRef {
        Arc::new(Field::clone(field).with_data_type(plain_kind(field.data_type())))
    }
    fn plain_kind(kind: &DataType) -> DataType {
        match kind {
            DataType::Dictionary(_, values) => plain_kind(values),
            DataType::Utf8 => DataType::LargeUtf8,
            DataType::Binary => DataType::LargeBinary,
            kind => with_inner(kind, plain),
        }
    }
    Arc::new(Schema::new_with_metadata(
        schema.fields().iter().map(plain).collect::<Vec<_>>(),
        schema.metadata().clone(),
    ))
}

/// Checks that a format has a place for columns.
///
/// # Errors
/// If it has none for one of them; the message names it.
pub(crate) fn check(format: RowFormat, schema: &Schema) -> Result<()> {
    fn is_held(format: RowFormat, kind: &DataType) -> bool {
        match (format, kind) {
            (_, DataType::Union(..)) | (RowFormat::Parquet, DataType::FixedSizeBinary(0)) => false,
            // Months, days and nanoseconds in one value.
            (RowFormat::Parquet, DataType::Interval(IntervalUnit::MonthDayNano)) => false,
            // The names of an object are texts.
            (RowFormat::Jsonl, DataType::Map(entries, _)) if !has_texts_as_keys(entries.data_type()) => false,
            (
                _,
                DataType::List(item)
                | DataType::LargeList(item)
                | DataType::FixedSizeList(item, _)
                | DataType::Map(item, _),
            ) => is_held(format, item.data_type()),
            (_, DataType::Struct(fields)) => fields.iter().all(|field| is_held(format, field.data_type())),
            _ => true,
        }
    }
    fn has_texts_as_keys(entries: &DataType) -> bool {
        let DataType::Struct(fields) = entries else { return false };
        fields
            .first()
            .is_some_and(|key| matches!(key.data_type(), DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View))
    }
    match schema.fields().iter().find(|field| !is_held(format, field.data_type())) {
        Some(field) => bail!("the column `{}` is {}, which {format} has no place for", field.name(), field.data_type()),
        None => Ok(()),
    }
}

/// Checks that JSON Lines have a text for all times of a column.
///
/// # Errors
/// If one is too far away, or is of no day.
pub(super) fn check_times(column: &dyn Array, name: &str) -> Result<()> {
    fn each<T: ArrowTemporalType>(column: &dyn Array, name: &str) -> Result<()>
    where
        i64: From<T::Native>,
    {
        let mut values = column.as_primitive::<T>().iter().flatten().map(i64::from);
        let has_text = |value: &i64| match T::DATA_TYPE {
            DataType::Time32(_) | DataType::Time64(_) => as_time::<T>(*value).is_some(),
            _ => as_datetime::<T>(*value).is_some(),
        };
        match values.find(|value| !has_text(value)) {
            Some(value) => bail!("the column `{name}` has a time that JSON Lines has no text for: {value}"),
            None => Ok(()),
        }
    }
    let child = |number: usize| make_array(column.to_data().child_data()[number].clone());
    match column.data_type() {
        DataType::Date32 => each::<Date32Type>(column, name),
        DataType::Date64 => each::<Date64Type>(column, name),
        DataType::Time32(TimeUnit::Second) => each::<Time32SecondType>(column, name),
        DataType::Time32(_) => each::<Time32MillisecondType>(column, name),
        DataType::Time64(TimeUnit::Nanosecond) => each::<Time64NanosecondType>(column, name),
        DataType::Time64(_) => each::<Time64MicrosecondType>(column, name),
        DataType::Timestamp(TimeUnit::Second, _) => each::<TimestampSecondType>(column, name),
        DataType::Timestamp(TimeUnit::Millisecond, _) => each::<TimestampMillisecondType>(column, name),
        DataType::Timestamp(TimeUnit::Microsecond, _) => each::<TimestampMicrosecondType>(column, name),
        DataType::Duration(unit) => {
            // They are written by way of milliseconds.
            let most = if *unit == TimeUnit::Second { i64::MAX / 1000 } else { i64::MAX };
            let data = column.to_data();
            let values = &data.buffer::<i64>(0)[..column.len()];
            let is_far =
                |row: usize| column.is_valid(row) && values[row].checked_abs().is_none_or(|value| value > most);
            ensure!(
                !(0..column.len()).any(is_far),
                "the column `{name}` has a duration that JSON Lines has no text for"
            );
            Ok(())
        }
        kind if !kind.is_nested() => Ok(()),
        // What a null has in it are no values.
        DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..) | DataType::Map(..)
            if column.null_count() > 0 =>
        {
            let valid = |row: &usize| column.is_valid(*row);
            (0..column.len()).filter(valid).try_for_each(|row| check_times(&*value(column, row), name))
        }
        DataType::List(_) => {
            let lists = column.as_list::<i32>();
            check_times(&within(lists.values(), lists.value_offsets()), name)
        }
        DataType::LargeList(_) => {
            let lists = column.as_list::<i64>();
            check_times(&within(lists.values(), lists.value_offsets()), name)
        }
        DataType::FixedSizeList(..) => check_times(column.as_fixed_size_list().values(), name),
        DataType::Map(..) => {
            let maps = column.as_map();
            check_times(&within(maps.entries(), maps.value_offsets()), name)
        }
        DataType::Struct(_) => column.as_struct().columns().iter().try_for_each(|of_struct| {
            let nulls = NullBuffer::union(column.nulls(), of_struct.nulls());
            let valid = of_struct.to_data().into_builder().nulls(nulls).build()?;
            check_times(&*make_array(valid), name)
        }),
        DataType::ListView(_) | DataType::LargeListView(_) => check_times(&*child(0), name),
        DataType::RunEndEncoded(..) => check_times(&*child(1), name),
        _ => Ok(()),
    }
}

/// The list, or the entries of the map, of a row.
fn value(column: &dyn Array, row: usize) -> ArrayRef {
    match column.data_type() {
        DataType::List(_) => column.as_list::<i32>().value(row),
        DataType::LargeList(_) => column.as_list::<i64>().value(row),
        DataType::FixedSizeList(..) => column.as_fixed_size_list().value(row),
        _ => Arc::new(column.as_map().value(row)),
    }
}

/// The values between the first and the last offset: a list can be a part of a longer one.
fn within<O: OffsetSizeTrait>(values: &dyn Array, offsets: &[O]) -> ArrayRef {
    let [first, last] = [offsets.first(), offsets.last()].map(|offset| offset.map_or(0, |offset| offset.as_usize()));
    values.slice(first, last - first)
}

fn field_in(format: RowFormat, field: &FieldRef) -> FieldRef {
    let kind = kind_in(format, field.data_type());
    if kind == *field.data_type() {
        return field.clone();
    }
    // The values of a dictionary may be null where its keys are not.
    let was_dictionary = format == RowFormat::Jsonl && matches!(field.data_type(), DataType::Dictionary(..));
    Arc::new(Field::clone(field).with_data_type(kind).with_nullable(field.is_nullable() || was_dictionary))
}

/// The entries of a map: its keys are never null.
fn entries_in(format: RowFormat, entries: &FieldRef) -> FieldRef {
    let DataType::Struct(fields) = entries.data_type() else { return entries.clone() };
    let in_format = |(number, field): (usize, &FieldRef)| {
        let new = field_in(format, field);
        if number == 0 { Arc::new(Field::clone(&new).with_nullable(field.is_nullable())) } else { new }
    };
    let fields = fields.iter().enumerate().map(in_format).collect();
    Arc::new(Field::clone(entries).with_data_type(DataType::Struct(fields)))
}

/// A type with other fields inside.
fn with_inner(kind: &DataType, inner: impl Fn(&FieldRef) -> FieldRef) -> DataType {
    match kind {
        DataType::List(item) => DataType::List(inner(item)),
        DataType::LargeList(item) => DataType::LargeList(inner(item)),
        DataType::FixedSizeList(item, size) => DataType::FixedSizeList(inner(item), *size),
        DataType::Map(entries, sorted) => DataType::Map(inner(entries), *sorted),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(inner).collect()),
        kind => kind.clone(),
    }
}

fn kind_in(format: RowFormat, kind: &DataType) -> DataType {
    match (format, kind) {
        (RowFormat::Parquet, DataType::Timestamp(TimeUnit::Second, zone)) => {
            DataType::Timestamp(TimeUnit::Millisecond, zone.clone())
        }
        (RowFormat::Parquet, DataType::Date64) => DataType::Date32,
        (RowFormat::Parquet, DataType::Time32(TimeUnit::Second)) => DataType::Time32(TimeUnit::Millisecond),
        (RowFormat::Parquet, DataType::Dictionary(keys, values)) => {
            DataType::Dictionary(keys.clone(), Box::new(kind_in(format, values)))
        }
        (RowFormat::Jsonl, DataType::Dictionary(_, values)) => kind_in(format, values),
        (RowFormat::Jsonl, DataType::Timestamp(unit, Some(_))) => DataType::Timestamp(*unit, Some("UTC".into())),
        (_, DataType::Map(entries, sorted)) => DataType::Map(entries_in(format, entries), *sorted),
        (_, kind) => with_inner(kind, |field| field_in(format, field)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_without_a_place_are_named() {
        let map = |key: DataType| {
            let entries = vec![Field::new("key", key, false), Field::new("value", DataType::Int64, true)];
            DataType::Map(Arc::new(Field::new("entries", DataType::Struct(entries.into()), false)), false)
        };
        let interval = DataType::Interval(IntervalUnit::MonthDayNano);
        let refused = |format: RowFormat, kind: &DataType| {
            check(format, &Schema::new(vec![Field::new("x", kind.clone(), true)])).err().map(|error| error.to_string())
        };
        let of_map = refused(RowFormat::Jsonl, &map(DataType::Int32)).unwrap();
        assert!(of_map.starts_with("the column `x` is ") && of_map.ends_with("which JSON Lines has no place for"));
        assert!(refused(RowFormat::Parquet, &interval).unwrap().ends_with("which Parquet has no place for"));
        for (format, kind) in [
            (RowFormat::Parquet, map(DataType::Int32)),
            (RowFormat::Jsonl, map(DataType::LargeUtf8)),
            (RowFormat::Jsonl, interval),
        ] {
            assert_eq!(refused(format, &kind), None, "{kind}");
        }
    }

    #[test]
    fn texts_are_decoded_with_offsets_of_64_bits() {
        let item = |kind: DataType| Arc::new(Field::new("item", kind, true));
        let schema = |text: DataType, bytes: DataType, values: DataType| -> SchemaRef {
            let within = DataType::Struct(vec![item(bytes)].into());
            Arc::new(Schema::new(vec![item(DataType::List(item(text))), item(within), item(values)]))
        };
        let dictionary = DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8));
        let before = schema(DataType::Utf8, DataType::Binary, dictionary);
        let large = schema(DataType::LargeUtf8, DataType::LargeBinary, DataType::LargeUtf8);
        assert_eq!(decodable(&before), large);
        assert_eq!(decodable(&large), large);
    }
}
