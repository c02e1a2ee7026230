//! What a store records of its weeks, and the files that hold it.
//!
//! In reading order: `manifest` (`manifest.json`: the committed weeks; `week.json`: one of them),
//! `earlier` (the weeks before a given one), `journal` (`journal.json`: the complete waves of an
//! unfinished week), `unfinished` (the folders of an unfinished week), `bundles` (the files in
//! them), `tables` (the files of committed tables).

mod bundles;
mod earlier;
mod journal;
mod manifest;
mod tables;
mod totals;
mod unfinished;

pub use self::bundles::{BundleName, BundleWriter, PlacedPiece};
pub use self::earlier::Earlier;
pub use self::journal::{AnotherText, InputKey, ReadingCounts, RevisitCounts, Segment, SegmentOrigin, WeekJournal};
pub(crate) use self::manifest::OLDEST_FORMAT;
pub use self::manifest::{CatalogFormat, CommittedWeek, FORMAT, Manifest, RemovedWeeks, WholeWeek};
pub(crate) use self::tables::pieces_of;
pub use self::tables::shard_file;
pub use self::tables::{KEPT_TABLES, KeptFiles, Piece, TablePart, WeekFiles, WeekTables};
pub use self::totals::DocumentTotals;
pub use self::unfinished::Unfinished;
pub(crate) use self::unfinished::week_of;
