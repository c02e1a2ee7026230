//! A column of a batch, and its values as a page has them.

use std::borrow::Cow;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{
    Date32Type, Date64Type, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type, Float16Type, Float32Type,
    Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, TimeUnit};

use super::schema::ColumnPath;
use crate::readers::fields::{self, Date};
use crate::readers::rows::page_row::RowId;
use crate::readers::rows::value;

/// Microseconds of a day.
const DAY: i64 = 86_400_000_000;

/// A column of a batch.
pub struct ArrowColumn {
    /// The structures around it, whose nulls are its own.
    around: Vec<ArrayRef>,
    values: ArrayRef,
    /// Of a dictionary, the place of the value of each row among its values, which then are
    /// `values`.
    keys: Option<(ArrayRef, Vec<usize>)>,
}

impl ArrowColumn {
    pub fn new(batch: &RecordBatch, path: &ColumnPath) -> Result<ArrowColumn, ()> {
        let mut values = batch.column_by_name(&path[0]).ok_or(())?.clone();
        let mut around = Vec::new();
        for name in &path[1..] {
            let field = values.as_struct_opt().and_then(|fields| fields.column_by_name(name)).ok_or(())?.clone();
            around.push(std::mem::replace(&mut values, field));
        }
        let keys = values.as_any_dictionary_opt().map(|dictionary| {
            let keys = if dictionary.values().is_empty() { Vec::new() } else { dictionary.normalized_keys() };
            (dictionary.values().clone(), keys)
        });
        let keys = keys.map(|(of_dictionary, keys)| (std::mem::replace(&mut values, of_dictionary), keys));
        Ok(ArrowColumn { around, values, keys })
    }

    /// The place of the value of a row among the values; `None` if it is null.
    fn place(&self, row: usize) -> Option<usize> {
        if self.around.iter().any(|fields| fields.is_null(row)) {
            return None;
        }
        let place = match &self.keys {
            Some((rows, _)) if rows.is_null(row) => return None,
            Some((_, keys)) => *keys.get(row)?,
            None => row,
        };
        self.values.is_valid(place).then_some(place)
    }

    /// The value of a row, if it is bytes or text.
    pub fn bytes(&self, row: usize) -> Option<&[u8]> {
        let (place, values) = (self.place(row)?, &self.values);
        Some(match values.data_type() {
            DataType::Binary => values.as_binary::<i32>().value(place),
            DataType::LargeBinary => values.as_binary::<i64>().value(place),
            DataType::BinaryView => values.as_binary_view().value(place),
            _ => return None,
        })
    }

    /// The value of a row as text, with invalid bytes as U+FFFD.
    pub fn text(&self, row: usize) -> Option<Cow<'_, str>> {
        self.bytes(row).map(fields::utf8)
    }

    /// The value of a row, if it is an integer; `None` of a larger one than 64 bits with a sign
    /// have.
    fn integer(&self, row: usize) -> Option<i64> {
        let (place, values) = (self.place(row)?, &self.values);
        Some(match values.data_type() {
            DataType::Int8 => values.as_primitive::<Int8Type>().value(place).into(),
            DataType::Int16 => values.as_primitive::<Int16Type>().value(place).into(),
            DataType::Int32 => values.as_primitive::<Int32Type>().value(place).into(),
            DataType::Int64 => values.as_primitive::<Int64Type>().value(place),
            DataType::UInt8 => values.as_primitive::<UInt8Type>().value(place).into(),
            DataType::UInt16 => values.as_primitive::<UInt16Type>().value(place).into(),
            DataType::UInt32 => values.as_primitive::<UInt32Type>().value(place).into(),
            DataType::UInt64 => values.as_primitive::<UInt64Type>().value(place).try_into().ok()?,
            _ => return None,
        })
    }

    /// The value of a row as an id: text, or a whole number.
    pub fn id(&self, row: usize) -> RowId<'_> {
        let Some(place) = self.place(row) else { return RowId::None };
        match self.values.data_type() {
            DataType::UInt64 => self.values.as_primitive::<UInt64Type>().value(place).into(),
            kind if kind.is_integer() => self.integer(row).map_or(RowId::Unusable, RowId::from),
            DataType::Decimal32(_, 0) => self.values.as_primitive::<Decimal32Type>().value(place).into(),
            DataType::Decimal64(_, 0) => self.values.as_primitive::<Decimal64Type>().value(place).into(),
            DataType::Decimal128(_, 0) => self.values.as_primitive::<Decimal128Type>().value(place).into(),
            DataType::Decimal256(_, 0) => self.values.as_primitive::<Decimal256Type>().value(place).into(),
            _ => self.bytes(row).map_or(RowId::Unusable, RowId::of_bytes),
        }
    }

    /// The value of a row as text.
    pub fn value(&self, row: usize) -> Option<String> {
        let (place, values) = (self.place(row)?, &self.values);
        match values.data_type() {
            DataType::Boolean => Some(values.as_boolean().value(place).to_string()),
            DataType::Float16 => value::of_half(values.as_primitive::<Float16Type>().value(place).to_bits()),
            DataType::Float32 => value::of_float(values.as_primitive::<Float32Type>().value(place)),
            DataType::Float64 => value::of_double(values.as_primitive::<Float64Type>().value(place)),
            DataType::UInt64 => Some(values.as_primitive::<UInt64Type>().value(place).to_string()),
            kind if kind.is_integer() => Some(self.integer(row)?.to_string()),
            DataType::Decimal32(_, scale) => {
                let whole = values.as_primitive::<Decimal32Type>().value(place);
                Some(value::of_decimal(whole.into(), (*scale).into()))
            }
            DataType::Decimal64(_, scale) => {
                let whole = values.as_primitive::<Decimal64Type>().value(place);
                Some(value::of_decimal(whole.into(), (*scale).into()))
            }
            DataType::Decimal128(_, scale) => {
                Some(value::of_decimal(values.as_primitive::<Decimal128Type>().value(place), (*scale).into()))
            }
            DataType::Decimal256(..) => Some(values.as_primitive::<Decimal256Type>().value_as_string(place)),
            kind if kind.is_temporal() => self.date(row).microseconds().and_then(value::of_time),
            _ => self.bytes(row).and_then(value::of_bytes),
        }
    }

    /// The value of a row as a time.
    pub fn date(&self, row: usize) -> Date {
        let Some(place) = self.place(row) else { return Date::None };
        let values = &self.values;
        let at = |microseconds: Option<i64>| microseconds.map_or(Date::Unreadable, Date::At);
        match values.data_type() {
            DataType::Timestamp(TimeUnit::Second, _) => {
                at(values.as_primitive::<TimestampSecondType>().value(place).checked_mul(1_000_000))
            }
            DataType::Timestamp(TimeUnit::Millisecond, _) => {
                at(values.as_primitive::<TimestampMillisecondType>().value(place).checked_mul(1000))
            }
            DataType::Timestamp(TimeUnit::Microsecond, _) => {
                at(Some(values.as_primitive::<TimestampMicrosecondType>().value(place)))
            }
            DataType::Timestamp(TimeUnit::Nanosecond, _) => {
                at(Some(values.as_primitive::<TimestampNanosecondType>().value(place).div_euclid(1000)))
            }
            DataType::Date32 => at(i64::from(values.as_primitive::<Date32Type>().value(place)).checked_mul(DAY)),
            DataType::Date64 => at(values.as_primitive::<Date64Type>().value(place).checked_mul(1000)),
            DataType::Float32 => fields::epoch(values.as_primitive::<Float32Type>().value(place).into()),
            DataType::Float64 => fields::epoch(values.as_primitive::<Float64Type>().value(place)),
            kind if kind.is_integer() => {
                self.integer(row).map_or(Date::Unreadable, |value| fields::epoch(value as f64))
            }
            _ => match self.bytes(row) {
                Some(bytes) => std::str::from_utf8(bytes).map_or(Date::Unreadable, fields::date),
                None => Date::Unreadable,
            },
        }
    }
}
