//! The tables of a store, as Parquet files: their columns, and how rows are written and read back.
//!
//! In reading order: `columns` (what a row type declares, and what each file says of it), `rows`
//! (the columns of a week's tables), `studies` (the tables of jobs that read committed weeks),
//! `write` (rows to files, and files to one), `read` (files to record batches, only the columns
//! asked for, and to values), `names` (what a document is called), `store_table` and `week` (the
//! tables by name), `delta_log` (a table as Delta Lake knows it).
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

mod columns;
mod delta_log;
mod names;
mod read;
mod rows;
mod store_table;
pub mod studies;
mod week;
mod write;

pub use columns::values::{ColumnBuilder, Elements, UtcMicros, Value, ValueType};
pub use columns::{ColumnSpec, Row, Table, TableSpec};
pub use delta_log::{DataFile, DeltaLog, LOG_FOLDER};
pub use names::Names;
pub use nigh_derive::Table;
pub use read::ascending::AscendingColumn;
pub use read::piece_scan::PieceScan;
pub use read::plain::{PlainColumn, WordSlice};
pub use read::row_range::RowRange;
pub use read::value_rows::ValueRows;
pub use read::{Scan, field, maybe_text};
pub use rows::{
    AccuracyKind, AccuracyRow, CaptureRow, ChangeRow, ChunkRow, ClusterRow, DeletedRow, DocumentRow, Event,
    EvidenceRow, FailedUrlRow, FailureRow, FeatureRow, Found, FoundLinkRow, HostFailureRow, LargestRow, LinkRow,
    MissingRow, RedirectRow, RejectRow, RevisitRow, SizeRow, SplitOffRow, SummaryRow, UrlRow, ValueRow,
};
pub use store_table::{Pack, ResultTables, StoreTable};
pub use week::{CHOSEN_TABLES, WEEK_TABLES, name_pages, read_chunks, result_tables, tables_of_weeks};
pub use write::Writer;
pub use write::found_links::FoundLinks;
pub use write::pack::{PART_BYTES, PackedFile, pack, parts};
pub use write::sift::{CopiedPiece, PieceCopy, RowCounts, copy_rows, copy_rows_edited};
