//! A dataset written again without its duplicates, or only these, or with what is known of each
//! record.
//!
//! ```text
//! a week's documents and clusters ─▶ verdicts, by file and place                       `verdicts`
//! verdicts ─▶ a list of what goes                                                    `place/list`
//! each input file, read once more ─▶ beside its verdicts ─▶ a file of the same name     `dataset`
//! ```
//!
//! Records keep their order and their files. A record is written only if its content has the
//! checksum that the week has of it: an input that changed since is an error. A file gets its name
//! when it is whole, and a list of whole files is kept beside them: the same command goes on where
//! it was stopped.
//!
//! In reading order: `verdicts` (what becomes of each record), `thresholds` (clusters at another
//! similarity), `dataset` (all inputs, and the file that is written for each); what is written for
//! a record: `copied` (records that are spans of bytes), `rows` (records that are rows), `renamed`
//! (their columns under other names), `revisits` (records that refer to those that stay),
//! `near_duplicates` (records that say so of pages), `matched` (records that match a reference),
//! `texts` (paragraphs and passages that go); `shards` (all records in files of one size),
//! `archives` (indexes, WACZ), `place` (folders and lists), `exact` (numbers that are read as they
//! were written).

mod archives;
mod copied;
mod dataset;
mod exact;
mod matched;
mod near_duplicates;
mod place;
mod renamed;
mod revisits;
mod rows;
mod shards;
mod texts;
mod thresholds;
mod verdicts;

pub use self::archives::IndexFiles;
pub use self::dataset::{AddedField, Card, Exported, LeftOutRecords, What, Writing, WrittenDataset, write_dataset};
pub use self::matched::{MatchRules, MatchedDocuments, MatchedRecords};
pub use self::near_duplicates::{NearDuplicate, near_duplicates};
pub use self::place::{ExportFolder, ExportKey, ListFile};
pub use self::renamed::{NewName, NewNames};
pub use self::revisits::{EarlierWeeks, Originals};
pub use self::rows::{ExportFormat, JsonColumns, column_names};
pub use self::shards::{MOST_SHARDS, ShardRule, check_shards};
pub use self::texts::{
    CutAt, DroppedPassages, OverlapRule, ParagraphRules, ParagraphSearch, PassageRules, WhichPassages,
};
pub use self::thresholds::{ChosenRows, RowsAt, ThresholdClusters, ThresholdRule, Thresholds, least_threshold};
pub use self::verdicts::{Deciding, InputValues, Verdict, Verdicts};
