//! The values of columns: which Rust types they have, and how they become arrow arrays.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::builder::{
    ArrayBuilder, BinaryBuilder, BooleanBuilder, Date32Builder, FixedSizeBinaryBuilder, Float32Builder, Float64Builder,
    Int32Builder, Int64Builder, StringBuilder, TimestampMicrosecondBuilder,
};
use arrow_schema::{DataType, TimeUnit};

use crate::records::Week;

/// The type of the values of a column. No number is unsigned, because Spark reads those poorly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueType {
    /// Yes or no.
    Boolean,
    /// A signed number of 32 bits.
    Int,
    /// A signed number of 64 bits.
    Long,
    /// A floating-point number of 32 bits.
    Float,
    /// A floating-point number of 64 bits.
    Double,
    /// A string.
    Text,
    /// Bytes.
    Bytes,
    /// As many bytes in each row: so many, or as many as the first row has.
    FixedBytes(i32),
    /// A date.
    Date,
    /// A moment in UTC, in microseconds.
    Timestamp,
}

impl ValueType {
    /// The type in arrow.
    pub fn data_type(self) -> DataType {
        match self {
            ValueType::Boolean => DataType::Boolean,
            ValueType::Int => DataType::Int32,
            ValueType::Long => DataType::Int64,
            ValueType::Float => DataType::Float32,
            ValueType::Double => DataType::Float64,
            ValueType::Text => DataType::Utf8,
            ValueType::Bytes => DataType::Binary,
            ValueType::FixedBytes(width) => DataType::FixedSizeBinary(width),
            ValueType::Date => DataType::Date32,
            ValueType::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        }
    }
}

/// Collects the values of a column.
pub struct ColumnBuilder {
    values: ValueBuilder,
    /// The length of byte strings that all have one.
    width: usize,
}

/// The values by type. An enum, and not a type parameter: the code that handles columns exists
/// once, not once for each table.
enum ValueBuilder {
    Boolean(BooleanBuilder),
    Int(Int32Builder),
    Long(Int64Builder),
    Float(Float32Builder),
    Double(Float64Builder),
    Text(StringBuilder),
    Bytes(BinaryBuilder),
    FixedBytes(FixedSizeBinaryBuilder),
    Date(Date32Builder),
    Timestamp(TimestampMicrosecondBuilder),
}

/// Evaluates an expression for the builder, whatever its type.
macro_rules! with_builder {
    ($values:expr, $builder:ident => $result:expr) => {
        match $values {
            ValueBuilder::Boolean($builder) => $result,
            ValueBuilder::Int($builder) => $result,
            ValueBuilder::Long($builder) => $result,
            ValueBuilder::Float($builder) => $result,
            ValueBuilder::Double($builder) => $result,
            ValueBuilder::Text($builder) => $result,
            ValueBuilder::Bytes($builder) => $result,
            ValueBuilder::FixedBytes($builder) => $result,
            ValueBuilder::Date($builder) => $result,
            ValueBuilder::Timestamp($builder) => $result,
        }
    };
}

impl ColumnBuilder {
    /// A builder without values. It takes no memory for them: a job may have thousands of writers.
    pub(crate) fn new(values: ValueType) -> ColumnBuilder {
        let width = if let ValueType::FixedBytes(width) = values { width as usize } else { 0 };
        let values = match values {
            ValueType::Boolean => ValueBuilder::Boolean(BooleanBuilder::with_capacity(0)),
            ValueType::Int => ValueBuilder::Int(Int32Builder::with_capacity(0)),
            ValueType::Long => ValueBuilder::Long(Int64Builder::with_capacity(0)),
            ValueType::Float => ValueBuilder::Float(Float32Builder::with_capacity(0)),
            ValueType::Double => ValueBuilder::Double(Float64Builder::with_capacity(0)),
            ValueType::Text => ValueBuilder::Text(StringBuilder::with_capacity(0, 0)),
            ValueType::Bytes => ValueBuilder::Bytes(BinaryBuilder::with_capacity(0, 0)),
            ValueType::FixedBytes(width) => ValueBuilder::FixedBytes(FixedSizeBinaryBuilder::with_capacity(0, width)),
            ValueType::Date => ValueBuilder::Date(Date32Builder::with_capacity(0)),
            ValueType::Timestamp => {
                ValueBuilder::Timestamp(TimestampMicrosecondBuilder::with_capacity(0).with_timezone("UTC"))
            }
        };
        ColumnBuilder { values, width }
    }

    /// The values so far as an array; the builder has none then. Byte strings keep the length that
    /// they had.
    pub(crate) fn finish(&mut self) -> ArrayRef {
        with_builder!(&mut self.values, builder => Arc::new(builder.finish()))
    }

    /// Appends a null.
    pub(crate) fn append_null(&mut self) {
        with_builder!(&mut self.values, builder => builder.append_null());
    }

    /// Appends bytes.
    fn append_bytes(&mut self, value: &[u8]) {
        match &mut self.values {
            ValueBuilder::Bytes(builder) => builder.append_value(value),
            ValueBuilder::FixedBytes(builder) => {
                // The first row gives the length: it may depend on the method.
                if builder.is_empty() && value.len() != self.width {
                    self.width = value.len();
                    *builder = FixedSizeBinaryBuilder::with_capacity(0, value.len() as i32);
                }
                builder.append_value(value).expect("every row of a table has the width of the first");
            }
            _ => other_type(),
        }
    }
}

/// Panics: the columns of a table are declared with the types of the fields that are appended.
#[cold]
fn other_type() -> ! {
    unreachable!("a column has the type of its field")
}

/// A type of fields of rows.
pub trait Value {
    /// The type of the column.
    const VALUES: ValueType;
    /// Whether the column can be null.
    const NULLABLE: bool = false;

    /// Appends the value to its column.
    fn append(&self, column: &mut ColumnBuilder);
}

/// The types that arrow has by themselves.
macro_rules! values {
    ($($value:ty, $kind:ident;)*) => {$(
        impl Value for $value {
            const VALUES: ValueType = ValueType::$kind;

            fn append(&self, column: &mut ColumnBuilder) {
                let ValueBuilder::$kind(builder) = &mut column.values else { other_type() };
                builder.append_value(*self);
            }
        }
    )*};
}

values! {
    bool, Boolean;
    i32, Int;
    i64, Long;
    f32, Float;
    f64, Double;
}

/// A count, which a table has as a signed number. Hashes and ids are no counts: their row types
/// have signed numbers.
impl Value for u64 {
    const VALUES: ValueType = ValueType::Long;

    fn append(&self, column: &mut ColumnBuilder) {
        i64::try_from(*self).expect("a count is below 2^63").append(column);
    }
}

impl Value for str {
    const VALUES: ValueType = ValueType::Text;

    fn append(&self, column: &mut ColumnBuilder) {
        let ValueBuilder::Text(builder) = &mut column.values else { other_type() };
        builder.append_value(self);
    }
}

impl Value for String {
    const VALUES: ValueType = str::VALUES;

    fn append(&self, column: &mut ColumnBuilder) {
        self.as_str().append(column);
    }
}

impl Value for [u8] {
    const VALUES: ValueType = ValueType::Bytes;

    fn append(&self, column: &mut ColumnBuilder) {
        column.append_bytes(self);
    }
}

impl<const N: usize> Value for [u8; N] {
    const VALUES: ValueType = ValueType::FixedBytes(N as i32);

    fn append(&self, column: &mut ColumnBuilder) {
        column.append_bytes(self);
    }
}

impl Value for Week {
    const VALUES: ValueType = ValueType::Date;

    fn append(&self, column: &mut ColumnBuilder) {
        let ValueBuilder::Date(builder) = &mut column.values else { other_type() };
        builder.append_value(self.days());
    }
}

/// A moment in UTC, in microseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UtcMicros(pub i64);

impl Value for UtcMicros {
    const VALUES: ValueType = ValueType::Timestamp;

    fn append(&self, column: &mut ColumnBuilder) {
        let ValueBuilder::Timestamp(builder) = &mut column.values else { other_type() };
        builder.append_value(self.0);
    }
}

impl<V: Value + ?Sized> Value for &V {
    const VALUES: ValueType = V::VALUES;
    const NULLABLE: bool = V::NULLABLE;

    fn append(&self, column: &mut ColumnBuilder) {
        V::append(self, column);
    }
}

impl<V: Value> Value for Option<V> {
    const VALUES: ValueType = V::VALUES;
    const NULLABLE: bool = true;

    fn append(&self, column: &mut ColumnBuilder) {
        match self {
            Some(value) => value.append(column),
            None => column.append_null(),
        }
    }
}

/// A type of fields that are several columns: an array, or one that may be missing.
pub trait Elements {
    /// The number of columns.
    const COUNT: usize;
    /// The type of each column.
    const VALUES: ValueType;
    /// Whether each column can be null.
    const NULLABLE: bool;

    /// Appends the element at `place` to its column.
    fn append(&self, place: usize, column: &mut ColumnBuilder);
}

impl<V: Value, const N: usize> Elements for [V; N] {
    const COUNT: usize = N;
    const VALUES: ValueType = V::VALUES;
    const NULLABLE: bool = V::NULLABLE;

    fn append(&self, place: usize, column: &mut ColumnBuilder) {
        self[place].append(column);
    }
}

impl<E: Elements> Elements for Option<E> {
    const COUNT: usize = E::COUNT;
    const VALUES: ValueType = E::VALUES;
    const NULLABLE: bool = true;

    fn append(&self, place: usize, column: &mut ColumnBuilder) {
        match self {
            Some(elements) => elements.append(place, column),
            None => column.append_null(),
        }
    }
}
