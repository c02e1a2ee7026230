//! The summary of the passages job.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::documents::ComparedBatch;
use super::job::PassageDocuments;
use crate::records::{DocId, Week};

/// The summary of a passages job: kept as `summary.json` beside its tables, printed by `run` and
/// `show`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PassagesSummary {
    /// The store, as the run named it.
    pub store: PathBuf,
    /// The parameters of the store, on one line.
    pub method: String,
    /// The week.
    pub first: Week,
    /// The week, again: a study has a first and a last one.
    pub last: Week,
    /// The words of a passage at least.
    pub least: u32,
    /// Which documents were read.
    pub documents: PassageDocuments,
    /// How many of each batch.
    pub batches: Vec<ComparedBatch>,
    /// Those of them with as many words as a passage has at least.
    pub compared: u64,
    /// Words of all documents that were read.
    pub words: u64,
    /// Passages.
    pub passages: u64,
    /// Those of them that are first occurrences.
    pub first_occurrences: u64,
    /// Documents with passages.
    pub with_passages: u64,
    /// Words in passages, each once.
    pub repeated_words: u64,
    /// Those of them that go if copies go.
    pub copied_words: u64,
    /// Bytes of texts in passages, where they are known.
    pub repeated_bytes: u64,
    /// Those of them that go if copies go.
    pub copied_bytes: u64,
    /// The passages with the most occurrences.
    pub most: Vec<FrequentPassage>,
}

/// A passage with many occurrences.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrequentPassage {
    /// The most occurrences of as many words of it as a passage has at least.
    pub occurrences: u64,
    /// The document of its first occurrence.
    pub doc: DocId,
    /// Its first word there.
    pub word: u32,
    /// Its words.
    pub words: u32,
    /// How it begins.
    pub text: String,
}

impl PassagesSummary {
    /// All documents that were read.
    pub fn read(&self) -> u64 {
        self.batches.iter().map(|batch| batch.documents).sum()
    }
}
