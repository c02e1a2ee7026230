//! Reads files whose rows or lines are pages.
//!
//! In reading order: `page_row` (a row or line as a page), `value` (values that have an order); the
//! readers of `jsonl`, `csv`, `parquet` and `arrow`.

pub(super) mod arrow;
mod csv;
pub(super) mod jsonl;
mod page_row;
pub(super) mod parquet;
pub(super) mod value;

pub use self::arrow::{SIGNATURE, ordered_arrow};
pub(super) use self::csv::CsvReader;
pub use self::jsonl::Searched;
pub use self::page_row::check_once;
pub use self::value::{ColumnValue, LONGEST};
