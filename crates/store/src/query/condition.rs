//! Which rows are wanted: those with a value in a column.
//!
//! `COLUMN=VALUE` is true of rows whose value is written `VALUE` as CSV has it: numbers, `true` and
//! `false`, dates, moments in UTC, bytes as hexadecimal digits. `COLUMN=` is true of rows without a
//! value there, and of empty texts.

use anyhow::{Context, Result};
use arrow_array::{
    Array, BinaryArray, BooleanArray, Date32Array, FixedSizeBinaryArray, Float32Array, Float64Array, Int32Array,
    Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray,
};

use crate::records::Week;
use crate::tables::{ColumnSpec, TableSpec, ValueType, field};

/// The value that a column of a wanted row has.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    /// The column.
    pub column: &'static str,
    kind: ValueType,
    wanted: WantedValue,
}

/// A value, by type.
#[derive(Clone, Debug, PartialEq)]
enum WantedValue {
    Nothing,
    Truth(bool),
    Whole(i64),
    Real(f64),
    Text(String),
    Bytes(Vec<u8>),
}

impl Condition {
    /// Reads `COLUMN=VALUE` for a table.
    ///
    /// # Errors
    /// If the table has no such column, or the value is not one of the type of the column: says
    /// what is allowed.
    pub fn read(text: &str, table: &TableSpec) -> Result<Condition, String> {
        let Some((name, value)) = text.split_once('=') else {
            return Err(format!("{text:?} has no `=`: give COLUMN=VALUE"));
        };
        let column = column_of(table, name)?;
        let wanted = if value.is_empty() { Some(WantedValue::Nothing) } else { WantedValue::of(value, column.values) };
        let wanted =
            wanted.ok_or_else(|| format!("{value:?} is not {}, as the values of `{name}` are", kind(column.values)))?;
        Ok(Condition { column: column.name, kind: column.values, wanted })
    }

    /// Which rows of a batch are wanted.
    ///
    /// # Errors
    /// If the batch lacks the column, or it has another type: the table is damaged.
    pub fn mask(&self, batch: &RecordBatch) -> Result<BooleanArray> {
        let column = batch.column_by_name(self.column).with_context(|| format!("no column `{}`", self.column))?;
        let name = self.column;
        Ok(match (&self.wanted, self.kind) {
            (WantedValue::Nothing, ValueType::Text) => {
                field::<StringArray>(batch, name)?.iter().map(|text| Some(text.is_none_or(str::is_empty))).collect()
            }
            (WantedValue::Nothing, _) => (0..column.len()).map(|row| Some(column.is_null(row))).collect(),
            (WantedValue::Truth(wanted), _) => {
                mask(field::<BooleanArray>(batch, name)?.iter(), |value| value == *wanted)
            }
            (WantedValue::Whole(wanted), ValueType::Int) => {
                mask(field::<Int32Array>(batch, name)?.iter(), |value| i64::from(value) == *wanted)
            }
            (WantedValue::Whole(wanted), ValueType::Date) => {
                mask(field::<Date32Array>(batch, name)?.iter(), |value| i64::from(value) == *wanted)
            }
            (WantedValue::Whole(wanted), ValueType::Timestamp) => {
                mask(field::<TimestampMicrosecondArray>(batch, name)?.iter(), |value| value == *wanted)
            }
            (WantedValue::Whole(wanted), _) => mask(field::<Int64Array>(batch, name)?.iter(), |value| value == *wanted),
            (WantedValue::Real(wanted), ValueType::Float) => {
                mask(field::<Float32Array>(batch, name)?.iter(), |value| value == *wanted as f32)
            }
            (WantedValue::Real(wanted), _) => {
                mask(field::<Float64Array>(batch, name)?.iter(), |value| value == *wanted)
            }
            (WantedValue::Text(wanted), _) => mask(field::<StringArray>(batch, name)?.iter(), |value| value == wanted),
            (WantedValue::Bytes(wanted), ValueType::FixedBytes(_)) => {
                mask(field::<FixedSizeBinaryArray>(batch, name)?.iter(), |value| value == wanted)
            }
            (WantedValue::Bytes(wanted), _) => mask(field::<BinaryArray>(batch, name)?.iter(), |value| value == wanted),
        })
    }
}

fn mask<T>(values: impl Iterator<Item = Option<T>>, is_wanted: impl Fn(T) -> bool) -> BooleanArray {
    values.map(|value| Some(value.is_some_and(&is_wanted))).collect()
}

impl WantedValue {
    /// A value of a type; `None` if the text does not stand for one.
    fn of(text: &str, values: ValueType) -> Option<WantedValue> {
        Some(match values {
            ValueType::Boolean => WantedValue::Truth(text.parse().ok()?),
            ValueType::Int | ValueType::Long => WantedValue::Whole(text.parse().ok()?),
            ValueType::Float | ValueType::Double => WantedValue::Real(text.parse().ok()?),
            ValueType::Text => WantedValue::Text(text.to_owned()),
            ValueType::Bytes | ValueType::FixedBytes(_) => WantedValue::Bytes(bytes(text)?),
            ValueType::Date => WantedValue::Whole(text.parse::<Week>().ok()?.days().into()),
            ValueType::Timestamp => WantedValue::Whole(text.parse::<jiff::Timestamp>().ok()?.as_microsecond()),
        })
    }
}

/// The bytes of hexadecimal digits.
fn bytes(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u32>> = text.chars().map(|c| c.to_digit(16)).collect();
    let (pairs, rest) = digits.as_ref()?.as_chunks::<2>();
    rest.is_empty().then(|| pairs.iter().map(|[high, low]| (16 * high + low) as u8).collect())
}

/// What a value of a type is called.
fn kind(values: ValueType) -> &'static str {
    match values {
        ValueType::Boolean => "`true` or `false`",
        ValueType::Int | ValueType::Long => "a whole number",
        ValueType::Float | ValueType::Double => "a number",
        ValueType::Text => "a text",
        ValueType::Bytes | ValueType::FixedBytes(_) => "bytes in hexadecimal digits",
        ValueType::Date => "a date like 2024-01-08",
        ValueType::Timestamp => "a moment like 2024-01-08T00:00:00Z",
    }
}

/// A column of a table by its name.
///
/// # Errors
/// If there is none: lists the columns.
pub(super) fn column_of(table: &TableSpec, name: &str) -> Result<&'static ColumnSpec, String> {
    table.columns.iter().find(|column| column.name == name).ok_or_else(|| {
        let names: Vec<&str> = table.columns.iter().map(|column| column.name).collect();
        format!("{name:?} is not a column of the table: it has {}", names.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::ArrayRef;

    use super::*;
    use crate::tables::{ChunkRow, DocumentRow, Row as _};

    fn read(text: &str) -> Result<Condition, String> {
        Condition::read(text, DocumentRow::SPEC)
    }

    #[test]
    fn a_condition_names_a_column_and_one_of_its_values() {
        assert!(read("status=200").is_ok() && read("url=http://one.example/?a=b").is_ok() && read("fetched=").is_ok());
        assert!(read("fetched=2024-01-08T00:00:00Z").is_ok());
        assert!(read("status").unwrap_err().contains("COLUMN=VALUE"));
        assert!(read("colour=red").unwrap_err().contains("it has doc, id, url"));
        assert!(read("status=ok").unwrap_err().contains("\"ok\" is not a whole number"));
        assert!(Condition::read("lines=0x", ChunkRow::SPEC).unwrap_err().contains("hexadecimal"));
        assert_eq!(bytes("00fF"), Some(vec![0, 255]));
        assert_eq!((bytes("0"), bytes("0g")), (None, None));
    }

    #[test]
    fn rows_are_wanted_by_their_values() {
        let url: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), None, Some(""), Some("b")]));
        let status: ArrayRef = Arc::new(Int32Array::from(vec![Some(200), None, Some(404), Some(200)]));
        let batch = RecordBatch::try_from_iter([("url", url), ("status", status)]).unwrap();
        let rows = |text: &str| {
            let mask = read(text).unwrap().mask(&batch).unwrap();
            (0..4).filter(|row| mask.value(*row)).collect::<Vec<usize>>()
        };
        assert_eq!(rows("url=a"), [0]);
        assert_eq!(rows("url="), [1, 2], "a null, and an empty text");
        assert_eq!(rows("status=200"), [0, 3]);
        assert_eq!(rows("status="), [1]);
    }
}
