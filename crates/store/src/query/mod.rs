//! The rows of a table of a store, chosen and written as other programs read them: `nigh table`.
//!
//! In reading order: `named` (tables by their names), `condition` (rows by the value of a column),
//! `wanted_rows` (the rows of some weeks, batch by batch), `cells` (values as text), `write` (rows
//! as CSV, TSV, JSON Lines, Parquet or Arrow).
//!
//! Memory is that of one batch of rows, whatever the table.

mod cells;
mod condition;
mod named;
mod wanted_rows;
mod write;

pub use self::cells::csv_line;
pub use self::condition::Condition;
pub use self::named::NamedTable;
pub use self::wanted_rows::{RowChoice, WantedRows, json_rows, ranges_of_results, ranges_of_week};
pub use self::write::{RowSink, TableFormat, TableWriter};
