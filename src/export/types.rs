//! The types of Arrow that a format of files has no place for, and those that hold the same values there.

use std::sync::Arc;

use anyhow::Result;
use arrow_array::{ArrayRef, RecordBatch};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef, TimeUnit};

use super::format::RowFormat;

/// The schema of the rows in a format. Parquet has no seconds, and of dates only days; JSON has no dictionaries.
pub(super) fn schema_in(format: RowFormat, schema: &SchemaRef) -> SchemaRef {
    let fields: Vec<FieldRef> = schema.fields().iter().map(|field| field_in(format, field)).collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

/// The rows with the types of a schema that [`schema_in`] gave.
///
/// # Errors
/// If a value does not fit.
pub(super) fn cast_to(schema: &SchemaRef, batch: RecordBatch) -> Result<RecordBatch> {
    if batch.schema_ref() == schema {
        return Ok(batch);
    }
    let options = CastOptions { safe: false, ..CastOptions::default() };
    let columns = batch.columns().iter().zip(schema.fields());
    let columns = columns.map(|(column, field)| cast_with_options(column, field.data_type(), &options));
    Ok(RecordBatch::try_new(schema.clone(), columns.collect::<Result<Vec<ArrayRef>, _>>()?)?)
}

fn field_in(format: RowFormat, field: &FieldRef) -> FieldRef {
    let kind = kind_in(format, field.data_type());
    // The values of a dictionary may be null where its keys are not.
    let is_nullable = field.is_nullable() || kind != *field.data_type();
    if kind == *field.data_type() {
        field.clone()
    } else {
        Arc::new(Field::clone(field).with_data_type(kind).with_nullable(is_nullable))
    }
}

fn kind_in(format: RowFormat, kind: &DataType) -> DataType {
    let inner = |field: &FieldRef| field_in(format, field);
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
        (_, DataType::List(item)) => DataType::List(inner(item)),
        (_, DataType::LargeList(item)) => DataType::LargeList(inner(item)),
        (_, DataType::FixedSizeList(item, size)) => DataType::FixedSizeList(inner(item), *size),
        (_, DataType::Map(entries, sorted)) => DataType::Map(inner(entries), *sorted),
        (_, DataType::Struct(fields)) => DataType::Struct(fields.iter().map(inner).collect()),
        (_, kind) => kind.clone(),
    }
}
