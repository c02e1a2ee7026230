//! What becomes of each record.
//!
//! In reading order: `verdict` (of one record), `deciding` (how verdicts are made), `scores` (means
//! of numbers of clusters), `sequence` (verdicts in the order of the inputs, with what goes from
//! texts and what is said of records), `input_values` (columns that verdicts need and the store
//! does not have), `cluster_file` (a file of clusters).

mod cluster_file;
mod deciding;
mod input_values;
mod scores;
mod sequence;
mod verdict;

pub(super) use self::cluster_file::write_cluster;
pub use self::deciding::Deciding;
pub(super) use self::deciding::SegmentPage;
pub use self::input_values::InputValues;
pub use self::sequence::Verdicts;
pub use self::verdict::Verdict;
pub(super) use self::verdict::{RecordKey, RevisitingDocument};
