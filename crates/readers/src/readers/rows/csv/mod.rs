//! Reads CSV and TSV files: each record is a page, in the columns that the job names.
//!
//! The first record has the names of the columns.
//!
//! In reading order: `records` (the records of a file), `reader` (records to pages).

mod reader;
mod records;
#[cfg(test)]
mod tests;

pub use self::reader::CsvReader;
