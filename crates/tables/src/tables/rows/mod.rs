//! The columns of every table, defined once: by what the rows are of.
//!
//! A table is a row type ([`Row`](crate::tables::Row)). The first paragraphs of the documentation
//! of rows and fields are the descriptions of tables and columns: they are written into every file
//! and into docs/tables.md (`describe`). Rows of large tables borrow what they are made of.
//!
//! A `doc` is a [`DocId`](crate::records::DocId) as a signed 64-bit number. A URL keeps its id from
//! week to week, so `doc` joins all tables of a week with each other and with those of other weeks.
//! A *level* is one of the three relations of [`Level`](crate::records::Level), by name: `similar`
//! (very similar), `identical` (virtually identical) or `exact` (exact copies).

mod clusters;
mod failures;
mod pages;
mod totals;
mod urls;

pub use clusters::{AccuracyKind, AccuracyRow, ChangeRow, ClusterRow, Event, EvidenceRow, Found, SplitOffRow};
pub use failures::{FailedUrlRow, FailureRow, HostFailureRow, MissingRow, RejectRow};
pub use pages::{CaptureRow, ChunkRow, DocumentRow, FeatureRow, ValueRow};
pub use totals::{LargestRow, SizeRow, SummaryRow};
pub use urls::{DeletedRow, FoundLinkRow, LinkRow, RedirectRow, RevisitRow, UrlRow};
