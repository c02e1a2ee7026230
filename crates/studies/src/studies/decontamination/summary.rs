//! The summary of the decontamination job.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::reference::ItemCounts;
use crate::config::{Spaceless, TextForm, Unicode};
use crate::records::Week;
use crate::studies::passages::ComparedBatch;

/// The summary of a decontamination job: kept as `summary.json` beside its tables, printed by `run`
/// and `show`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DecontaminationSummary {
    /// The store, as the run named it.
    pub store: PathBuf,
    /// The parameters of the store, on one line.
    pub method: String,
    /// The week.
    pub first: Week,
    /// The week, again: a study has a first and a last one.
    pub last: Week,
    /// The first batch whose documents were compared, if not all were.
    pub since: Option<Week>,
    /// In which form words were compared.
    pub form: ComparedForm,
    /// The words of an n-gram.
    pub grams: u32,
    /// The words of the shortest text that is one n-gram.
    pub shortest: u32,
    /// The least share of the n-grams of an item, if items were compared so.
    pub containment: Option<f64>,
    /// The least words of a passage, if items were compared so.
    pub passage: Option<u32>,
    /// The least similarity, if items were compared so.
    pub similarity: Option<f64>,
    /// The words of a shingle, of which similarity is made.
    pub shingle: u32,
    /// How many documents of each batch were compared.
    pub batches: Vec<ComparedBatch>,
    /// All of them.
    pub documents: u64,
    /// Their words.
    pub words: u64,
    /// The files of the reference.
    pub reference: Vec<ReferenceFileSummary>,
    /// The items of the reference.
    pub items: ItemCounts,
    /// Items that match a document, of those that were compared.
    pub matched_items: u64,
    /// Documents that match an item.
    pub with_matches: u64,
    /// Matches of a document and an item.
    pub matches: u64,
    /// Those by containment.
    pub by_containment: u64,
    /// Those by a passage.
    pub by_passage: u64,
    /// Those by similarity.
    pub by_similarity: u64,
}

/// A file of a reference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReferenceFileSummary {
    /// Its name.
    pub name: String,
    /// Its items.
    pub items: u64,
    /// Those that were compared, or have the words of one that was.
    pub compared: u64,
    /// Those of them that match a document.
    pub matched: u64,
}

impl ReferenceFileSummary {
    /// A file without items.
    pub fn new(name: &str) -> ReferenceFileSummary {
        ReferenceFileSummary { name: name.to_owned(), items: 0, compared: 0, matched: 0 }
    }
}

/// In which form words were compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComparedForm {
    /// Whether without case.
    pub fold_case: bool,
    /// Whether without diacritics.
    pub strip_diacritics: bool,
    /// In which normal form.
    pub unicode: Unicode,
    /// What a word is in scripts without blanks.
    pub spaceless: Spaceless,
}

impl From<TextForm> for ComparedForm {
    fn from(form: TextForm) -> ComparedForm {
        let TextForm { fold_case, strip_diacritics, unicode, spaceless } = form;
        ComparedForm { fold_case, strip_diacritics, unicode, spaceless }
    }
}
