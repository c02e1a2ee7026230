//! A dataset written again without its duplicates, or only these, or with what is known of each
//! record.
//!
//! ```text
//! a week's documents and clusters ─▶ verdicts, by file and place                                `verdicts`
//! verdicts ─▶ a list of what goes                                                               `list`
//! each input file, read once more ─▶ beside its verdicts ─▶ a file of the same name     `dataset`, `file`
//! ```
//!
//! Records keep their order and their files. A record is written only if its content has the
//! checksum that the week has of it: an input that changed since is an error. A file gets its name
//! when it is whole, and a list of whole files is kept beside them: the same command goes on where
//! it was stopped.
//!
//! In reading order: `verdicts`, `input_values` (columns that these need and the store does not
//! have), `thresholds` (clusters at another similarity), `cluster_file` (a file of these),
//! `dataset` (all inputs), `each_file` (in several threads), `written_dataset` (what came of them),
//! `file` (an input and the file that is written for it), `copied` (records that are spans of
//! bytes), `revisits` (records that refer to those that stay), `near_duplicates` (pages that are
//! like another one), `near_record` (the record that says so), `archives` (indexes, WACZ), `rows`
//! (records that are rows), `renamed` (their columns under other names), `shards` (all records in
//! files of one size), `repeated` (paragraphs that go from documents that stay), `overlap` (those
//! most of whose n-grams stand before), `passages` (passages that do), `matched` (records that
//! match a reference), `matched_items` (what these match), `card` (what a reader of the dataset
//! wants to know), `place` (folders and lists); and what they share: `exported` (which records are
//! written, and counts), `exact` (numbers that are read as they were written), `paragraphs` (lines
//! of texts), `paragraph_place` (where one is), `gone` (texts without these, or without passages).

mod archives;
mod card;
mod cluster_file;
mod copied;
mod csv_names;
mod dataset;
mod each_file;
mod exact;
mod exported;
mod file;
mod gone;
mod input_values;
mod matched;
mod matched_items;
mod near_duplicates;
mod near_record;
mod overlap;
mod paragraph_place;
mod paragraphs;
mod passages;
mod place;
mod renamed;
mod repeated;
mod revisits;
mod rows;
mod shards;
mod thresholds;
mod verdicts;
mod written_dataset;

pub use self::archives::IndexFiles;
pub use self::card::Card;
pub use self::dataset::write_dataset;
pub use self::exported::{AddedField, Exported, LeftOutRecords, What};
pub use self::file::Writing;
pub use self::gone::{CutAt, PassageRules, WhichPassages};
pub use self::input_values::InputValues;
pub use self::matched::{MatchRules, MatchedDocuments};
pub use self::matched_items::MatchedRecords;
pub use self::near_duplicates::near_duplicates;
pub use self::near_record::NearDuplicate;
pub use self::overlap::OverlapRule;
pub use self::paragraphs::ParagraphRules;
pub use self::passages::DroppedPassages;
pub use self::place::{ExportFolder, ExportKey, ListFile};
pub use self::renamed::{NewName, NewNames};
pub use self::repeated::ParagraphSearch;
pub use self::revisits::{EarlierWeeks, Originals};
pub use self::rows::{ExportFormat, JsonColumns, column_names};
pub use self::shards::{MOST_SHARDS, ShardRule, check_shards};
pub use self::thresholds::{ChosenRows, RowsAt, ThresholdClusters, ThresholdRule, Thresholds, least_threshold};
pub use self::verdicts::{Deciding, Verdict, Verdicts};
pub use self::written_dataset::WrittenDataset;
