//! Inputs that are written as rows with columns.
//!
//! In reading order: `format` (what rows are written as), `writer`, `columnar` (Parquet and Arrow), `parquet_copy` (Parquet as Parquet), `pages` (documents of
//! WARC, HTML and text), `converted` (lines and CSV), `columns` (the types of lines), `lines`; `types` and `int96` (values that a format has no
//! type for).

pub(super) mod columnar;
mod columns;
mod converted;
mod format;
mod int96;
mod lines;
pub(super) mod pages;
mod parquet_copy;
mod types;
mod writer;

pub use self::columns::JsonColumns;
pub(super) use self::converted::convert;
pub use self::format::ExportFormat;
pub(super) use self::format::RowFormat;
