//! The dataset that is written: all inputs, each by its file, and what came of them.
//!
//! In reading order: `inputs` (all of them, in several threads), `each_file` (work on inputs in
//! threads), `file` (an input and the file that is written for it), `exported` (which records are
//! written, and counts), `written_dataset` (what was written), `card` (what a reader of the dataset
//! wants to know), `dataset_split` (which split a file is in).

mod card;
mod dataset_split;
mod each_file;
mod exported;
mod file;
mod inputs;
mod written_dataset;

pub(super) use self::card::CARD;
pub use self::card::Card;
pub(super) use self::each_file::{each_file, has_documents, locked};
pub use self::exported::{AddedField, Exported, LeftOutRecords, What};
pub(super) use self::exported::{AddedValue, annotated_before, changed, check_plain, check_unannotated};
pub use self::file::Writing;
pub use self::inputs::write_dataset;
pub use self::written_dataset::WrittenDataset;
pub(super) use self::written_dataset::write_card;
