//! The values of one column of a row group, one row at a time.

use std::borrow::Cow;
use std::sync::Arc;

use ::parquet::basic::{ConvertedType, LogicalType, TimeUnit};
use ::parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_column_reader};
use ::parquet::data_type::{
    BoolType, ByteArrayType, DataType, DoubleType, FixedLenByteArrayType, FloatType, Int32Type, Int64Type, Int96Type,
};
use ::parquet::errors::{ParquetError, Result};
use ::parquet::file::metadata::ColumnChunkMetaData;

use super::file::{ChunkedFile, ColumnPages};
use crate::readers::fields::{self, Date};
use crate::readers::rows::page_row::RowId;
use crate::readers::rows::value;

/// Microseconds of a day.
const DAY: i64 = 86_400_000_000;

/// A column of a row group, at one of its rows.
pub struct Column {
    values: ColumnValues,
    levels: Vec<i16>,
    /// Whether the values are text by the schema.
    is_text: bool,
    /// Whether integers are without a sign.
    is_unsigned: bool,
    id: IdKind,
    unit: EpochUnit,
    /// The digits behind the point, if the values are decimals.
    scale: Option<i32>,
    /// Whether they are floats of 16 bits.
    is_half: bool,
}

/// The reader of a column, with the value of the row; none if it is null.
enum ColumnValues {
    Bytes(ValueReader<ByteArrayType>),
    FixedBytes(ValueReader<FixedLenByteArrayType>),
    Int32(ValueReader<Int32Type>),
    Int64(ValueReader<Int64Type>),
    Int96(ValueReader<Int96Type>),
    Float(ValueReader<FloatType>),
    Double(ValueReader<DoubleType>),
    /// A type that no field of a page has, but values that are kept.
    Bool(ValueReader<BoolType>),
}

struct ValueReader<T: DataType> {
    reader: ColumnReaderImpl<T>,
    value: Vec<T::T>,
}

/// How the values of a column are ids.
#[derive(Clone, Copy)]
enum IdKind {
    /// As they are: text, integers.
    Plain,
    /// Whole numbers, also as bytes.
    Decimal,
    Uuid,
    /// They have fractions.
    Unusable,
}

/// The unit of the integers of a column, if they are times.
#[derive(Clone, Copy)]
enum EpochUnit {
    /// The schema says nothing: the number itself must show its unit.
    Unknown,
    Days,
    Milliseconds,
    Microseconds,
    Nanoseconds,
}

impl Column {
    /// Makes the column of a row group of `rows` rows, before its first row. A page that becomes
    /// more than `longest` bytes is an error.
    ///
    /// # Errors
    /// If its pages cannot be read. It panics on some damaged files.
    pub fn new(file: &Arc<ChunkedFile>, metadata: &ColumnChunkMetaData, rows: u64, longest: u64) -> Result<Self> {
        let descriptor = metadata.column_descr_ptr();
        let (logical, converted) = (descriptor.logical_type_ref().cloned(), descriptor.converted_type());
        let is_text = matches!(logical, Some(LogicalType::String | LogicalType::Json))
            || matches!(converted, ConvertedType::UTF8 | ConvertedType::JSON);
        let is_unsigned = matches!(&logical, Some(LogicalType::Integer(integer)) if !integer.is_signed)
            || matches!(
                converted,
                ConvertedType::UINT_8 | ConvertedType::UINT_16 | ConvertedType::UINT_32 | ConvertedType::UINT_64
            );
        let is_decimal = matches!(logical, Some(LogicalType::Decimal(_))) || converted == ConvertedType::DECIMAL;
        let id = match &logical {
            _ if is_decimal && descriptor.type_scale() != 0 => IdKind::Unusable,
            _ if is_decimal => IdKind::Decimal,
            Some(LogicalType::Uuid) => IdKind::Uuid,
            _ => IdKind::Plain,
        };
        let (scale, is_half) =
            (is_decimal.then(|| descriptor.type_scale()), matches!(logical, Some(LogicalType::Float16)));
        let unit = match (logical, converted) {
            (Some(LogicalType::Date), _) | (None, ConvertedType::DATE) => EpochUnit::Days,
            (Some(LogicalType::Timestamp(timestamp)), _) => match timestamp.unit {
                TimeUnit::MILLIS => EpochUnit::Milliseconds,
                TimeUnit::MICROS => EpochUnit::Microseconds,
                TimeUnit::NANOS => EpochUnit::Nanoseconds,
            },
            (None, ConvertedType::TIMESTAMP_MILLIS) => EpochUnit::Milliseconds,
            (None, ConvertedType::TIMESTAMP_MICROS) => EpochUnit::Microseconds,
            _ => EpochUnit::Unknown,
        };
        let pages = Box::new(ColumnPages::new(file, metadata, rows, longest)?);
        let values = match get_column_reader(descriptor, pages) {
            ColumnReader::ByteArrayColumnReader(reader) => ColumnValues::Bytes(ValueReader::new(reader)),
            ColumnReader::FixedLenByteArrayColumnReader(reader) => ColumnValues::FixedBytes(ValueReader::new(reader)),
            ColumnReader::Int32ColumnReader(reader) => ColumnValues::Int32(ValueReader::new(reader)),
            ColumnReader::Int64ColumnReader(reader) => ColumnValues::Int64(ValueReader::new(reader)),
            ColumnReader::Int96ColumnReader(reader) => ColumnValues::Int96(ValueReader::new(reader)),
            ColumnReader::FloatColumnReader(reader) => ColumnValues::Float(ValueReader::new(reader)),
            ColumnReader::DoubleColumnReader(reader) => ColumnValues::Double(ValueReader::new(reader)),
            ColumnReader::BoolColumnReader(reader) => ColumnValues::Bool(ValueReader::new(reader)),
        };
        Ok(Column { values, levels: Vec::new(), is_text, is_unsigned, id, unit, scale, is_half })
    }

    /// Advances to the next row.
    ///
    /// # Errors
    /// If the column is damaged or has no more rows. It panics on some damaged files.
    pub fn advance(&mut self) -> Result<()> {
        match &mut self.values {
            ColumnValues::Bytes(values) => values.advance(&mut self.levels),
            ColumnValues::FixedBytes(values) => values.advance(&mut self.levels),
            ColumnValues::Int32(values) => values.advance(&mut self.levels),
            ColumnValues::Int64(values) => values.advance(&mut self.levels),
            ColumnValues::Int96(values) => values.advance(&mut self.levels),
            ColumnValues::Float(values) => values.advance(&mut self.levels),
            ColumnValues::Double(values) => values.advance(&mut self.levels),
            ColumnValues::Bool(values) => values.advance(&mut self.levels),
        }
    }

    /// Passes over rows without decoding their pages: those of pages that have other rows are
    /// decoded.
    ///
    /// # Errors
    /// If the column is damaged or has fewer rows. It panics on some damaged files.
    pub fn skip(&mut self, rows: usize) -> Result<()> {
        match &mut self.values {
            ColumnValues::Bytes(values) => values.skip(rows),
            ColumnValues::FixedBytes(values) => values.skip(rows),
            ColumnValues::Int32(values) => values.skip(rows),
            ColumnValues::Int64(values) => values.skip(rows),
            ColumnValues::Int96(values) => values.skip(rows),
            ColumnValues::Float(values) => values.skip(rows),
            ColumnValues::Double(values) => values.skip(rows),
            ColumnValues::Bool(values) => values.skip(rows),
        }
    }

    /// Whether the schema says that the values are text in UTF-8.
    pub fn is_text(&self) -> bool {
        self.is_text
    }

    /// Returns the value of the row, if it is bytes or text.
    pub fn bytes(&self) -> Option<&[u8]> {
        match &self.values {
            ColumnValues::Bytes(values) => values.value.first().map(|value| value.data()),
            ColumnValues::FixedBytes(values) => values.value.first().map(|value| value.data()),
            _ => None,
        }
    }

    /// Returns the value of the row as text, with invalid bytes as U+FFFD.
    pub fn text(&self) -> Option<Cow<'_, str>> {
        self.bytes().map(fields::utf8)
    }

    /// Returns the value of the row as an id.
    pub fn id(&self) -> RowId<'_> {
        let whole = |value: i64| match self.id {
            IdKind::Unusable => RowId::Unusable,
            _ => value.into(),
        };
        let id = match &self.values {
            ColumnValues::Int32(values) if self.is_unsigned => {
                values.value.first().map(|value| value.cast_unsigned().into())
            }
            ColumnValues::Int64(values) if self.is_unsigned => {
                values.value.first().map(|value| value.cast_unsigned().into())
            }
            ColumnValues::Int32(values) => values.value.first().map(|value| whole((*value).into())),
            ColumnValues::Int64(values) => values.value.first().map(|value| whole(*value)),
            ColumnValues::Bytes(_) | ColumnValues::FixedBytes(_) => self.bytes().map(|bytes| match self.id {
                IdKind::Plain => RowId::of_bytes(bytes),
                IdKind::Decimal => decimal(bytes),
                IdKind::Uuid => uuid(bytes),
                IdKind::Unusable => RowId::Unusable,
            }),
            ColumnValues::Int96(values) => values.value.first().map(|_| RowId::Unusable),
            ColumnValues::Float(values) => values.value.first().map(|_| RowId::Unusable),
            ColumnValues::Double(values) => values.value.first().map(|_| RowId::Unusable),
            ColumnValues::Bool(_) => Some(RowId::Unusable),
        };
        id.unwrap_or_default()
    }

    /// Returns the value of the row as text.
    pub fn value(&self) -> Option<String> {
        let whole = |whole: i128| match (self.unit, self.scale) {
            (_, Some(scale)) => Some(value::of_decimal(whole, scale)),
            (EpochUnit::Unknown, None) => Some(whole.to_string()),
            _ => self.date().microseconds().and_then(value::of_time),
        };
        match &self.values {
            ColumnValues::Bool(values) => Some(values.value.first()?.to_string()),
            ColumnValues::Int32(values) if self.is_unsigned => whole(values.value.first()?.cast_unsigned().into()),
            ColumnValues::Int64(values) if self.is_unsigned => whole(values.value.first()?.cast_unsigned().into()),
            ColumnValues::Int32(values) => whole((*values.value.first()?).into()),
            ColumnValues::Int64(values) => whole((*values.value.first()?).into()),
            ColumnValues::Int96(_) => self.date().microseconds().and_then(value::of_time),
            ColumnValues::Float(values) => value::of_float(*values.value.first()?),
            ColumnValues::Double(values) => value::of_double(*values.value.first()?),
            ColumnValues::Bytes(_) | ColumnValues::FixedBytes(_) => {
                let bytes = self.bytes()?;
                match (self.id, self.scale) {
                    (_, Some(scale)) => Some(value::of_decimal(whole_number(bytes)?, scale)),
                    (IdKind::Uuid, _) => match uuid(bytes) {
                        RowId::Text(text) => Some(text.into_owned()),
                        _ => None,
                    },
                    _ if self.is_half => value::of_half(u16::from_le_bytes(bytes.try_into().ok()?)),
                    _ => value::of_bytes(bytes),
                }
            }
        }
    }

    /// Returns the value of the row as a time.
    pub fn date(&self) -> Date {
        match &self.values {
            ColumnValues::Bytes(_) | ColumnValues::FixedBytes(_) => match self.bytes() {
                Some(bytes) => std::str::from_utf8(bytes).map_or(Date::Unreadable, fields::date),
                None => Date::None,
            },
            ColumnValues::Int32(values) => self.integer(values.value.first().map(|value| i64::from(*value))),
            ColumnValues::Int64(values) => self.integer(values.value.first().copied()),
            ColumnValues::Int96(values) => values.value.first().map_or(Date::None, |value| Date::At(value.to_micros())),
            ColumnValues::Float(values) => {
                values.value.first().map_or(Date::None, |value| fields::epoch(f64::from(*value)))
            }
            ColumnValues::Double(values) => values.value.first().map_or(Date::None, |value| fields::epoch(*value)),
            ColumnValues::Bool(_) => Date::Unreadable,
        }
    }

    fn integer(&self, value: Option<i64>) -> Date {
        let Some(value) = value else {
            return Date::None;
        };
        let microseconds = match self.unit {
            EpochUnit::Days => value.checked_mul(DAY),
            EpochUnit::Milliseconds => value.checked_mul(1000),
            EpochUnit::Microseconds => Some(value),
            EpochUnit::Nanoseconds => Some(value.div_euclid(1000)),
            EpochUnit::Unknown => return fields::epoch(value as f64),
        };
        microseconds.map_or(Date::Unreadable, Date::At)
    }
}

/// The whole number that some bytes are, the highest first, in the complement of two.
fn decimal(bytes: &[u8]) -> RowId<'_> {
    whole_number(bytes).map_or(RowId::Unusable, RowId::from)
}

/// As [`decimal`]; `None` if it has more than 128 bits.
fn whole_number(bytes: &[u8]) -> Option<i128> {
    let sign = if bytes.first().is_some_and(|first| first & 0x80 != 0) { 0xff } else { 0 };
    let (above, low) = bytes.split_at(bytes.len().saturating_sub(16));
    let mut all = [sign; 16];
    all[16 - low.len()..].copy_from_slice(low);
    let number = i128::from_be_bytes(all);
    let is_all_of_it = above.iter().all(|byte| *byte == sign) && (above.is_empty() || (number < 0) == (sign != 0));
    (is_all_of_it && !bytes.is_empty()).then_some(number)
}

/// The text of a UUID.
fn uuid(bytes: &[u8]) -> RowId<'_> {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    match bytes.len() {
        16 => RowId::Text(Cow::Owned(
            [&bytes[..4], &bytes[4..6], &bytes[6..8], &bytes[8..10], &bytes[10..]].map(hex).join("-"),
        )),
        _ => RowId::Unusable,
    }
}

impl<T: DataType> ValueReader<T> {
    fn new(reader: ColumnReaderImpl<T>) -> Self {
        ValueReader { reader, value: Vec::new() }
    }

    fn skip(&mut self, rows: usize) -> Result<()> {
        self.value.clear();
        match self.reader.skip_records(rows)? == rows {
            true => Ok(()),
            false => Err(ParquetError::EOF("the column ends before the row group".to_owned())),
        }
    }

    fn advance(&mut self, levels: &mut Vec<i16>) -> Result<()> {
        // The last value holds its page: it is dropped before another page is read.
        self.value.clear();
        levels.clear();
        match self.reader.read_records(1, Some(levels), None, &mut self.value)? {
            (1, ..) => Ok(()),
            _ => Err(ParquetError::EOF("the column ends before the row group".to_owned())),
        }
    }
}
