//! Where an export is written: whole or not at all, by one export at a time, and nothing of others
//! is replaced.
//!
//! In reading order: `folder` (of files, with the list of those that are whole), `bucket` (the same
//! in a bucket), `list` (one file), `workplace` (what is not whole yet), `output` (a file while it is
//! written).

mod bucket;
mod folder;
mod list;
mod output;
mod workplace;

pub use self::folder::{ExportFolder, ExportKey};
pub(super) use self::folder::{WrittenFile, output_paths, whole_wacz};
pub use self::list::ListFile;
pub(super) use self::output::{Output, Written, sync_parent};
