//! The tables of a store, as Parquet files: their columns, and how rows are written and read back.
//!
//! In reading order: `columns` (what a row type declares), `values` (the values of columns), `rows`
//! (the columns of a week's tables), `studies` (the tables of jobs that read committed weeks),
//! `describe` (what each file says of its table), `write` (rows to files), `groups` (the row groups
//! of a file), `found_links` (links of pages to files), `row_range` (a file or some rows of it, as
//! all readers take it), `shared_file` (a file that is open), `guard` (damaged files are errors),
//! `read` (files to record batches, only the columns asked for), `page_choice` (which pages can
//! have a value), `piece_scan` (pieces one after the other), `pack` (the rows of several files to
//! one), `sift` (a copy of rows without some of them), `plain` (an uncompressed column read
//! straight from the file), `names` (what a document is called), `ascending` (a column of document
//! ids, searched by id), `store_table` and `week` (the tables by name), `delta_log` (a table as
//! Delta Lake knows it).
//!
//! Files lie in hive folders (`TABLE/week=YYYY-MM-DD/*.parquet`) and are compressed with zstd,
//! except columns of hashes. No column is an unsigned 64-bit number, because Spark reads those
//! poorly. The same rows always give the same bytes.
//!
//! ```
//! use arrow_array::Int64Array;
//! use nigh_tables::tables::{Scan, SizeRow, Writer, field};
//!
//! # fn main() -> anyhow::Result<()> {
//! let store = tempfile::tempdir()?;
//! let path = store.path().join("sizes/week=2024-01-08/all.parquet");
//! let mut writer: Writer<SizeRow> = Writer::create(&path)?;
//! writer.push(SizeRow { level: "similar", size: 1, clusters: 40 })?;
//! writer.push(SizeRow { level: "similar", size: 2, clusters: 3 })?;
//! assert_eq!(writer.finish()?, 2, "rows of the file");
//!
//! let mut pages = 0;
//! Scan::open(&path, &["size", "clusters"])?.for_each(|batch| {
//!     let sizes: &Int64Array = field(batch, "size")?;
//!     let clusters: &Int64Array = field(batch, "clusters")?;
//!     pages += sizes.values().iter().zip(clusters.values()).map(|(size, clusters)| size * clusters).sum::<i64>();
//!     Ok(())
//! })?;
//! assert_eq!(pages, 40 + 2 * 3);
//! # Ok(())
//! # }
//! ```

mod ascending;
mod columns;
mod delta_log;
mod describe;
mod found_links;
mod groups;
mod guard;
mod names;
mod pack;
mod page_choice;
mod piece_scan;
mod plain;
mod read;
mod row_range;
mod rows;
mod shared_file;
mod sift;
mod store_table;
pub mod studies;
mod value_rows;
mod values;
mod week;
mod write;

pub use ascending::AscendingColumn;
pub use columns::{ColumnSpec, Row, Table, TableSpec};
pub use delta_log::{DataFile, DeltaLog, LOG_FOLDER};
pub use found_links::FoundLinks;
pub use names::Names;
pub use nigh_derive::Table;
pub use pack::{PART_BYTES, pack, parts};
pub use piece_scan::PieceScan;
pub use plain::{PlainColumn, WordSlice};
pub use read::{Scan, field, maybe_text};
pub use row_range::RowRange;
pub use rows::{
    AccuracyKind, AccuracyRow, CaptureRow, ChangeRow, ChunkRow, ClusterRow, DeletedRow, DocumentRow, Event,
    EvidenceRow, FailedUrlRow, FailureRow, FeatureRow, Found, FoundLinkRow, HostFailureRow, LargestRow, LinkRow,
    MissingRow, RedirectRow, RejectRow, RevisitRow, SizeRow, SplitOffRow, SummaryRow, UrlRow, ValueRow,
};
pub use sift::{CopiedPiece, PieceCopy, RowCounts, copy_rows, copy_rows_edited};
pub use store_table::{Pack, ResultTables, StoreTable};
pub use value_rows::ValueRows;
pub use values::{ColumnBuilder, Elements, UtcMicros, Value, ValueType};
pub use week::{CHOSEN_TABLES, WEEK_TABLES, name_pages, result_tables, tables_of_weeks};
pub use write::Writer;
