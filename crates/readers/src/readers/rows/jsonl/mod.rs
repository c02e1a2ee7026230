//! Reads JSON Lines files: each line is a page, in the columns that the job names.
//!
//! A column name with a dot (`metadata.url`) means a field of an object inside the line, unless a
//! field has exactly that name.
//!
//! In reading order: `reader` (lines to pages), `line` (the fields of a line), `checked` (which
//! columns the lines of a file have).

mod checked;
mod line;
mod reader;
#[cfg(test)]
mod tests;

pub use self::checked::{ARRAY, Searched, check, columns};
pub use self::reader::JsonlReader;
pub(in crate::readers) use self::reader::longest;
