//! Columns: what a row type is made of, and the values of a column as arrow has them.

use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, FixedSizeBinaryBuilder, StringBuilder};
use arrow_array::{ArrayRef, BooleanArray, Date32Array, Float64Array, Int32Array, Int64Array};

use crate::records::Week;

/// One column of a batch of rows.
pub struct Column {
    /// The name in the schema.
    pub name: &'static str,
    /// What the values mean, for the file and for docs/tables.md; empty if there is nothing to say.
    pub description: &'static str,
    /// The values, one for each row.
    pub values: ArrayRef,
    /// Whether the schema allows nulls.
    pub nullable: bool,
}

impl Column {
    /// A column of signed 64-bit numbers without nulls.
    pub fn longs(name: &'static str, values: impl Iterator<Item = i64>) -> Column {
        required(name, "", longs(values))
    }

    /// A column of byte strings without nulls; each has exactly `width` bytes.
    pub fn bytes<'a>(name: &'static str, width: usize, values: impl Iterator<Item = &'a [u8]>) -> Column {
        required(name, "", bytes(width, values))
    }
}

/// A row type of a table in a store.
///
/// ```
/// use nigh::tables::{EvidenceRow, Table};
/// let names: Vec<&str> = EvidenceRow::columns(&[]).iter().map(|column| column.name).collect();
/// assert_eq!(names, ["doc", "neighbour", "agreements", "similarity", "found"]);
/// assert_eq!(EvidenceRow::NAME, "evidence");
/// ```
pub trait Table: Sized {
    /// The name of the table, which is the name of its folder.
    const NAME: &'static str;
    /// What the rows are: a sentence for the file and for docs/tables.md.
    const DESCRIPTION: &'static str = "";
    /// The column by which the rows of a file ascend, if one does: the file declares it.
    const SORTED_BY: Option<&'static str> = None;
    /// Columns that are searched for single values: written with a Bloom filter for each row group.
    const SEARCHED: &'static [&'static str] = &[];
    /// Columns of nearly unique values: written without a dictionary, which would only cost time and space.
    const UNIQUE: &'static [&'static str] = &[];
    /// Columns of numbers that mostly ascend from row to row: written as differences (delta encoding).
    const ASCENDING: &'static [&'static str] = &[];
    /// Columns of hashes: written without compression, which would only cost time.
    const RANDOM: &'static [&'static str] = &[];
    /// Columns that no query searches by order: written without their least and greatest values.
    const UNORDERED: &'static [&'static str] = &[];
    /// Whether its files are read once and removed: they are written in less time, and are larger.
    const IS_SCRATCH: bool = false;

    /// Turns rows into columns, one value for each row. Without rows the columns are empty and give the schema, with the same
    /// types as columns with rows.
    fn columns(rows: &[Self]) -> Vec<Column>;
}

pub(super) fn required(name: &'static str, description: &'static str, values: ArrayRef) -> Column {
    Column { name, description, values, nullable: false }
}

pub(super) fn nullable(name: &'static str, description: &'static str, values: ArrayRef) -> Column {
    Column { name, description, values, nullable: true }
}

pub(super) fn longs(values: impl Iterator<Item = i64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(values))
}

pub(super) fn maybe_longs(values: impl Iterator<Item = Option<i64>>) -> ArrayRef {
    Arc::new(Int64Array::from_iter(values))
}

pub(super) fn ints(values: impl Iterator<Item = i32>) -> ArrayRef {
    Arc::new(Int32Array::from_iter_values(values))
}

pub(super) fn maybe_ints(values: impl Iterator<Item = Option<i32>>) -> ArrayRef {
    Arc::new(Int32Array::from_iter(values))
}

pub(super) fn texts<'a>(values: impl Iterator<Item = &'a str>) -> ArrayRef {
    let mut builder = StringBuilder::new();
    values.for_each(|value| builder.append_value(value));
    Arc::new(builder.finish())
}

pub(super) fn maybe_texts<'a>(values: impl Iterator<Item = Option<&'a str>>) -> ArrayRef {
    let mut builder = StringBuilder::new();
    values.for_each(|value| builder.append_option(value));
    Arc::new(builder.finish())
}

pub(super) fn bytes<'a>(width: usize, values: impl Iterator<Item = &'a [u8]>) -> ArrayRef {
    let mut builder = FixedSizeBinaryBuilder::new(width as i32);
    values.for_each(|value| builder.append_value(value).expect("every row of a table has the width of the first"));
    Arc::new(builder.finish())
}

pub(super) fn binaries<'a>(values: impl Iterator<Item = &'a [u8]>) -> ArrayRef {
    let mut builder = BinaryBuilder::new();
    values.for_each(|value| builder.append_value(value));
    Arc::new(builder.finish())
}

pub(super) fn doubles(values: impl Iterator<Item = f64>) -> ArrayRef {
    Arc::new(Float64Array::from_iter_values(values))
}

pub(super) fn maybe_doubles(values: impl Iterator<Item = Option<f64>>) -> ArrayRef {
    Arc::new(Float64Array::from_iter(values))
}

pub(super) fn booleans(values: impl Iterator<Item = bool>) -> ArrayRef {
    Arc::new(BooleanArray::from_iter(values.map(Some)))
}

pub(super) fn maybe_booleans(values: impl Iterator<Item = Option<bool>>) -> ArrayRef {
    Arc::new(BooleanArray::from_iter(values))
}

pub(super) fn maybe_dates(weeks: impl Iterator<Item = Option<Week>>) -> ArrayRef {
    maybe_days(weeks.map(|week| week.map(Week::days)))
}

/// Dates as days since 1970.
pub(super) fn maybe_days(days: impl Iterator<Item = Option<i32>>) -> ArrayRef {
    Arc::new(Date32Array::from_iter(days))
}

pub(super) fn dates(weeks: impl Iterator<Item = Week>) -> ArrayRef {
    Arc::new(Date32Array::from_iter_values(weeks.map(Week::days)))
}
