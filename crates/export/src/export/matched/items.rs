//! The items of a reference that a record matches, and what becomes of records that match some.

use serde::{Deserialize, Serialize};

use crate::structures::Sortable;

/// What becomes of records that match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum MatchedRecords {
    /// They go.
    Drop,
    /// Of those that stay, only they stay.
    Only,
    /// Nothing; all records get the fields `nigh_matches` (items that it matches), `nigh_item` (the
    /// number of the best one) and `nigh_containment`.
    Annotate,
}

/// The items that a document matches.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Matched {
    /// How many.
    pub items: u64,
    /// The number of the best one: that with the largest containment, then with the largest
    /// similarity, then the first.
    pub best: i64,
    /// Its containment.
    pub containment: Option<f64>,
    pub(in crate::export) similarity: Option<f64>,
}

impl Matched {
    /// Adds an item; they ascend.
    pub(in crate::export) fn add(&mut self, other: Matched) {
        let key = |of: &Matched| (of.containment.unwrap_or(-1.0), of.similarity.unwrap_or(-1.0));
        let items = self.items + other.items;
        if key(&other) > key(self) {
            *self = other;
        }
        self.items = items;
    }
}

/// What a record matches.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(in crate::export) struct MatchedPlace {
    /// The number of its input.
    pub file: u32,
    /// Its place there.
    pub offset: u64,
    /// The items.
    pub matched: Matched,
}

impl Sortable for MatchedPlace {
    type Key = (u32, u64);

    fn key(&self) -> (u32, u64) {
        (self.file, self.offset)
    }

    fn weight(&self) -> usize {
        size_of::<MatchedPlace>()
    }
}
