//! Where an export is written: whole or not at all, by one export at a time, and nothing of others
//! is replaced.
//!
//! In reading order: `folder` (of files), `bucket` (the same in a bucket), `written_files` (the
//! list of the files that are whole), `list` (an export of one file), `workplace` (what is not
//! whole yet), `output` (a file while it is written).

mod bucket;
mod folder;
mod list;
mod output;
#[cfg(all(test, feature = "cloud"))]
mod tests;
mod workplace;
mod written_files;

pub use self::folder::ExportFolder;
pub(super) use self::folder::{output_paths, whole_wacz};
pub use self::list::ListFile;
pub(super) use self::output::{Output, Written, sync_parent};
pub use self::written_files::ExportKey;
pub(super) use self::written_files::WrittenFile;
