//! Reads CSV and TSV files: each record is a page, in the columns that the job names.
//!
//! The first record has the names of the columns. Records are UTF-8. One that is not is a reject,
//! in whichever column: an export writes all columns, and has no text for such bytes. Names that
//! are not UTF-8 are an error.
//!
//! In reading order: `records` (the records of a file), `reader` (records to pages).

mod reader;
mod records;
#[cfg(test)]
mod tests;

pub use self::reader::CsvReader;
