//! Parquet out and in.
//!
//! In reading order: `rows` (every table's columns, once: the authority), `evolution`
//! (the columns of that job's tables), `write` (rows to files),
//! `read` (files to rows, only the columns asked for), `sift` (a file without some rows), `plain` (a column as it lies, and
//! single values of it), `ascending` (a column of ids).
//!
//! Tables are zstd-compressed, hold no unsigned 64-bit columns (Spark reads those poorly), and lie
//! in hive folders (`week=YYYY-MM-DD/TABLE/*.parquet`). The same rows give the same bytes.

mod ascending;
mod evolution;
mod plain;
mod read;
mod rows;
mod sift;
mod write;

pub use ascending::AscendingColumn;
pub use evolution::{AmountRow, BirthRow, ChangeClassRow, DeathRow, HostChangeRow, RetentionRow};
pub use plain::{PlainColumn, Words};
pub use read::{Scan, field};
pub use rows::{
    ChangeRow, ClusterRow, Column, DeletedRow, DocumentRow, Event, EvidenceRow, FailureRow, FeatureRow, FoundLinkRow,
    LargestRow, LinkRow, MissingRow, RejectRow, SizeRow, SummaryRow, Table, UrlRow,
};
pub use sift::{Sifted, share, sift};
pub use write::Writer;
