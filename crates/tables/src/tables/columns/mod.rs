//! Tables and their columns, as row types declare them.
//!
//! A row type is a struct with `#[derive(Table)]`: its fields are the columns, and their doc
//! comments the descriptions ([`nigh_derive`] has the attributes). The derive makes [`Row`], which
//! is a constant, [`TableSpec`], and a method that appends a row to the builders of its columns.
//! Schemas, key-values and settings of the Parquet writer are made of the constant by functions
//! that all tables share.
//!
//! `values` are the values of columns, `describe` what each file says of its table.

pub(super) mod describe;
pub(super) mod values;

use values::{ColumnBuilder, Elements, Value, ValueType};

/// A row of a table. It may borrow: then the table is the row type with the lifetime `'static`.
///
/// ```
/// use nigh_tables::tables::{Table, ValueType};
///
/// /// One row for each visitor.
/// #[derive(Table)]
/// #[table(name = "visitors")]
/// struct VisitorRow<'a> {
///     /// Number of the visitor, from 1.
///     #[column(sorted)]
///     number: i64,
///     /// Name as in the guest book.
///     name: Option<&'a str>,
/// }
///
/// assert_eq!(VisitorRow::NAME, "visitors");
/// assert_eq!(VisitorRow::DESCRIPTION, "One row for each visitor.");
/// let [number, name] = VisitorRow::COLUMNS else { panic!("two columns") };
/// assert_eq!((number.name, number.values, number.nullable, number.sorted), ("number", ValueType::Long, false, true));
/// assert_eq!((name.description, name.values, name.nullable), ("name as in the guest book", ValueType::Text, true));
/// ```
///
/// What the derive does not know is an error:
///
/// ```compile_fail
/// # use nigh_tables::tables::Table;
/// #[derive(Table)]
/// #[table(name = "visitors")]
/// struct VisitorRow {
///     #[column(indexed)]
///     number: i64,
/// }
/// ```
///
/// Rows ascend by one column:
///
/// ```compile_fail
/// # use nigh_tables::tables::Table;
/// #[derive(Table)]
/// #[table(name = "visitors")]
/// struct VisitorRow {
///     #[column(sorted)]
///     number: i64,
///     #[column(sorted)]
///     visits: i64,
/// }
/// ```
pub trait Row {
    /// The table.
    type Table: Table;

    /// What the struct declares.
    const SPEC: &'static TableSpec;

    /// Appends the row to the builders of all columns.
    fn append(&self, columns: &mut [ColumnBuilder]);
}

/// A row type as the name of its table in a store.
///
/// ```
/// use nigh_tables::tables::{EvidenceRow, Table};
/// let names: Vec<&str> = EvidenceRow::COLUMNS.iter().map(|column| column.name).collect();
/// assert_eq!(names, ["doc", "neighbour", "agreements", "similarity", "found"]);
/// assert_eq!(EvidenceRow::NAME, "evidence");
/// ```
pub trait Table: Row<Table = Self> + Sized {
    /// The name of the table, which is the name of its folder.
    const NAME: &'static str = Self::SPEC.name;
    /// What the rows are: a sentence for the file and for docs/tables.md.
    const DESCRIPTION: &'static str = Self::SPEC.description;
    /// Its columns, in order.
    const COLUMNS: &'static [ColumnSpec] = Self::SPEC.columns;
    /// Whether its files are read once and removed: they are written in less time, and are larger.
    const IS_SCRATCH: bool = Self::SPEC.is_scratch;
}

impl<T: Row<Table = T>> Table for T {}

/// A table: its name, what it means, and its columns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TableSpec {
    /// The name of the table, which is the name of its folder.
    pub name: &'static str,
    /// What its rows are; empty if there is nothing to say.
    pub description: &'static str,
    /// Whether its files are read once and removed: they are written in less time, and are larger.
    pub is_scratch: bool,
    /// Its columns, in order.
    pub columns: &'static [ColumnSpec],
}

/// A column: its name, what it means, the type of its values, and how it is written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ColumnSpec {
    /// The name in the schema.
    pub name: &'static str,
    /// What the values mean, for the file and for docs/tables.md; empty if there is nothing to say.
    pub description: &'static str,
    /// The type of the values.
    pub values: ValueType,
    /// Whether the schema allows nulls.
    pub nullable: bool,
    /// Whether the rows of a file ascend by it: the file declares it.
    pub sorted: bool,
    /// Whether it is searched for single values: written with a Bloom filter for each row group.
    pub searched: bool,
    /// Whether its values are nearly unique: written without a dictionary, which would only cost
    /// time and space.
    pub unique: bool,
    /// Whether it has numbers that mostly ascend from row to row: written as differences (delta
    /// encoding).
    pub ascending: bool,
    /// Whether it has hashes: written without compression, which would only cost time.
    pub random: bool,
    /// Whether no query searches it by order: written without its least and greatest values.
    pub unordered: bool,
}

impl ColumnSpec {
    /// A column of values of a type.
    pub const fn of<V: Value + ?Sized>(name: &'static str, description: &'static str) -> ColumnSpec {
        ColumnSpec::typed(name, description, V::VALUES, V::NULLABLE)
    }

    /// A column of one element each of arrays with `count` elements.
    pub const fn of_element<E: Elements>(name: &'static str, description: &'static str, count: usize) -> ColumnSpec {
        assert!(count == E::COUNT, "an array has a column for each element");
        ColumnSpec::typed(name, description, E::VALUES, E::NULLABLE)
    }

    const fn typed(name: &'static str, description: &'static str, values: ValueType, nullable: bool) -> ColumnSpec {
        let (sorted, searched, unique, ascending, random, unordered) = (false, false, false, false, false, false);
        ColumnSpec { name, description, values, nullable, sorted, searched, unique, ascending, random, unordered }
    }
}
