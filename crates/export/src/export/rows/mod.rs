//! Inputs that are written as rows with columns.
//!
//! In reading order: `format` (what rows are written as), `writer`, `columnar` (Parquet and Arrow),
//! `parquet_copy` (Parquet as Parquet), `parquet_types` (its columns under other names),
//! `page_rows` (documents of WARC, HTML and text), `converted` (lines and CSV), `column_types` (the
//! types of lines), `input_lines`, `names` (of the columns of an input); `types` and `int96`
//! (values that a format has no type for).

mod column_types;
pub(super) mod columnar;
mod converted;
mod format;
mod input_lines;
mod int96;
mod names;
pub(super) mod page_rows;
mod parquet_copy;
mod parquet_types;
mod types;
mod writer;

pub use self::column_types::JsonColumns;
pub(super) use self::converted::convert;
pub use self::format::ExportFormat;
pub(super) use self::format::{RowFormat, can_be_cut};
pub(super) use self::input_lines::{BYTE_ORDER_MARK, line_number};
pub use self::names::column_names;
pub(super) use self::parquet_copy::{ParquetCopy, PieceOfGroup};
use super::dataset::AddedField;
use super::renamed::NewNames;

/// What becomes of the fields of rows.
#[derive(Clone, Copy)]
pub(super) struct RowFields<'a> {
    /// Those that rows get.
    pub(super) added: &'a [AddedField],
    /// Those that are written under other names.
    pub(super) renamed: &'a NewNames,
}
