//! Columns that are written under other names: `columns` (of schemas and lines of JSON), `csv` (of
//! the first record of CSV).

mod columns;
mod csv;

pub(super) use self::columns::{HUGGING_FACE, check_distinct};
pub use self::columns::{NewName, NewNames};
pub(super) use self::csv::{CsvNames, csv_text};
