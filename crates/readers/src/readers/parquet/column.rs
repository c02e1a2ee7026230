//! The values of one column of a row group, one row at a time.

use std::borrow::Cow;
use std::sync::Arc;

use ::parquet::basic::{ConvertedType, LogicalType, TimeUnit};
use ::parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_column_reader};
use ::parquet::data_type::{
    ByteArrayType, DataType, DoubleType, FixedLenByteArrayType, FloatType, Int32Type, Int64Type, Int96Type,
};
use ::parquet::errors::{ParquetError, Result};
use ::parquet::file::metadata::ColumnChunkMetaData;

use super::file::{ChunkedFile, ColumnPages};
use crate::readers::fields::{self, Date};

/// Microseconds of a day.
const DAY: i64 = 86_400_000_000;

/// A column of a row group, at one of its rows.
pub struct Column {
    values: Values,
    levels: Vec<i16>,
    /// Whether the values are text by the schema.
    is_text: bool,
    /// Whether integers are without a sign.
    is_unsigned: bool,
    unit: Unit,
}

/// The reader of a column, with the value of the row; none if it is null.
enum Values {
    Bytes(ValueReader<ByteArrayType>),
    FixedBytes(ValueReader<FixedLenByteArrayType>),
    Int32(ValueReader<Int32Type>),
    Int64(ValueReader<Int64Type>),
    Int96(ValueReader<Int96Type>),
    Float(ValueReader<FloatType>),
    Double(ValueReader<DoubleType>),
    /// A type that no field of a page has: every value counts as null.
    Other,
}

struct ValueReader<T: DataType> {
    reader: ColumnReaderImpl<T>,
    value: Vec<T::T>,
}

/// The unit of the integers of a column, if they are times.
#[derive(Clone, Copy)]
enum Unit {
    /// The schema says nothing: the number itself must show its unit.
    Unknown,
    Days,
    Milliseconds,
    Microseconds,
    Nanoseconds,
}

impl Column {
    /// Makes the column of a row group of `rows` rows, before its first row.
    ///
    /// # Errors
    /// If its pages cannot be read. It panics on some damaged files.
    pub fn new(file: &Arc<ChunkedFile>, metadata: &ColumnChunkMetaData, rows: u64) -> Result<Self> {
        let descriptor = metadata.column_descr_ptr();
        let (logical, converted) = (descriptor.logical_type_ref().cloned(), descriptor.converted_type());
        let is_text = matches!(logical, Some(LogicalType::String | LogicalType::Json))
            || matches!(converted, ConvertedType::UTF8 | ConvertedType::JSON);
        let is_unsigned = matches!(&logical, Some(LogicalType::Integer(integer)) if !integer.is_signed)
            || matches!(
                converted,
                ConvertedType::UINT_8 | ConvertedType::UINT_16 | ConvertedType::UINT_32 | ConvertedType::UINT_64
            );
        let unit = match (logical, converted) {
            (Some(LogicalType::Date), _) | (None, ConvertedType::DATE) => Unit::Days,
            (Some(LogicalType::Timestamp(timestamp)), _) => match timestamp.unit {
                TimeUnit::MILLIS => Unit::Milliseconds,
                TimeUnit::MICROS => Unit::Microseconds,
                TimeUnit::NANOS => Unit::Nanoseconds,
            },
            (None, ConvertedType::TIMESTAMP_MILLIS) => Unit::Milliseconds,
            (None, ConvertedType::TIMESTAMP_MICROS) => Unit::Microseconds,
            _ => Unit::Unknown,
        };
        let pages = Box::new(ColumnPages::new(file, metadata, rows)?);
        let values = match get_column_reader(descriptor, pages) {
            ColumnReader::ByteArrayColumnReader(reader) => Values::Bytes(ValueReader::new(reader)),
            ColumnReader::FixedLenByteArrayColumnReader(reader) => Values::FixedBytes(ValueReader::new(reader)),
            ColumnReader::Int32ColumnReader(reader) => Values::Int32(ValueReader::new(reader)),
            ColumnReader::Int64ColumnReader(reader) => Values::Int64(ValueReader::new(reader)),
            ColumnReader::Int96ColumnReader(reader) => Values::Int96(ValueReader::new(reader)),
            ColumnReader::FloatColumnReader(reader) => Values::Float(ValueReader::new(reader)),
            ColumnReader::DoubleColumnReader(reader) => Values::Double(ValueReader::new(reader)),
            ColumnReader::BoolColumnReader(_) => Values::Other,
        };
        Ok(Column { values, levels: Vec::new(), is_text, is_unsigned, unit })
    }

    /// Advances to the next row.
    ///
    /// # Errors
    /// If the column is damaged or has no more rows. It panics on some damaged files.
    pub fn advance(&mut self) -> Result<()> {
        match &mut self.values {
            Values::Bytes(values) => values.advance(&mut self.levels),
            Values::FixedBytes(values) => values.advance(&mut self.levels),
            Values::Int32(values) => values.advance(&mut self.levels),
            Values::Int64(values) => values.advance(&mut self.levels),
            Values::Int96(values) => values.advance(&mut self.levels),
            Values::Float(values) => values.advance(&mut self.levels),
            Values::Double(values) => values.advance(&mut self.levels),
            Values::Other => Ok(()),
        }
    }

    /// Whether the schema says that the values are text in UTF-8.
    pub fn is_text(&self) -> bool {
        self.is_text
    }

    /// Returns the value of the row, if it is bytes or text.
    pub fn bytes(&self) -> Option<&[u8]> {
        match &self.values {
            Values::Bytes(values) => values.value.first().map(|value| value.data()),
            Values::FixedBytes(values) => values.value.first().map(|value| value.data()),
            _ => None,
        }
    }

    /// Returns the value of the row as text, with invalid bytes as U+FFFD.
    pub fn text(&self) -> Option<Cow<'_, str>> {
        self.bytes().map(fields::utf8)
    }

    /// Returns the value of the row as an id: text, or an integer.
    pub fn id(&self) -> Option<Cow<'_, str>> {
        match &self.values {
            Values::Int32(values) => values.value.first().map(|value| match self.is_unsigned {
                true => value.cast_unsigned().to_string().into(),
                false => value.to_string().into(),
            }),
            Values::Int64(values) => values.value.first().map(|value| match self.is_unsigned {
                true => value.cast_unsigned().to_string().into(),
                false => value.to_string().into(),
            }),
            _ => self.text(),
        }
    }

    /// Returns the value of the row as a time.
    pub fn date(&self) -> Date {
        match &self.values {
            Values::Bytes(_) | Values::FixedBytes(_) => match self.bytes() {
                Some(bytes) => std::str::from_utf8(bytes).map_or(Date::Unreadable, fields::date),
                None => Date::None,
            },
            Values::Int32(values) => self.integer(values.value.first().map(|value| i64::from(*value))),
            Values::Int64(values) => self.integer(values.value.first().copied()),
            Values::Int96(values) => values.value.first().map_or(Date::None, |value| Date::At(value.to_micros())),
            Values::Float(values) => values.value.first().map_or(Date::None, |value| fields::epoch(f64::from(*value))),
            Values::Double(values) => values.value.first().map_or(Date::None, |value| fields::epoch(*value)),
            Values::Other => Date::Unreadable,
        }
    }

    fn integer(&self, value: Option<i64>) -> Date {
        let Some(value) = value else {
            return Date::None;
        };
        let microseconds = match self.unit {
            Unit::Days => value.checked_mul(DAY),
            Unit::Milliseconds => value.checked_mul(1000),
            Unit::Microseconds => Some(value),
            Unit::Nanoseconds => Some(value.div_euclid(1000)),
            Unit::Unknown => return fields::epoch(value as f64),
        };
        microseconds.map_or(Date::Unreadable, Date::At)
    }
}

impl<T: DataType> ValueReader<T> {
    fn new(reader: ColumnReaderImpl<T>) -> Self {
        ValueReader { reader, value: Vec::new() }
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
