//! What is counted of documents: of those that are read, that stay, or that are deleted.

use serde::{Deserialize, Serialize};

use super::journal::ReadingCounts;

/// Numbers of some documents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct DocumentTotals {
    /// All.
    pub documents: u64,
    /// Those without words.
    pub empty: u64,
    /// Of these, those without bytes.
    pub no_bytes: u64,
    /// Those with fewer words than a shingle has, and at least one.
    pub short: u64,
    /// Their words.
    pub words: u64,
    /// The bytes of their bodies.
    pub bytes: u64,
}

impl DocumentTotals {
    /// Adds a document; `shingle` are the words in a shingle.
    pub fn add(&mut self, words: u64, bytes: u64, shingle: usize) {
        self.documents += 1;
        self.empty += u64::from(words == 0);
        self.no_bytes += u64::from(words == 0 && bytes == 0);
        self.short += u64::from((1..shingle as u64).contains(&words));
        self.words += words;
        self.bytes += bytes;
    }
}

impl ReadingCounts {
    /// Adds these documents.
    pub fn add_documents(&mut self, totals: &DocumentTotals) {
        let DocumentTotals { documents, empty, no_bytes, short, words, bytes } = totals;
        self.documents += documents;
        self.empty += empty;
        self.no_bytes += no_bytes;
        self.short += short;
        self.words += words;
        self.bytes += bytes;
    }

    /// Takes these documents away, which were counted.
    pub fn take_documents_away(&mut self, totals: &DocumentTotals) {
        let DocumentTotals { documents, empty, no_bytes, short, words, bytes } = totals;
        self.documents -= documents;
        self.empty -= empty;
        // Weeks of older versions did not count these two.
        self.no_bytes = self.no_bytes.saturating_sub(*no_bytes);
        self.short = self.short.saturating_sub(*short);
        self.words -= words;
        self.bytes -= bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_added_can_be_taken_away() {
        let mut totals = DocumentTotals::default();
        [(0, 0), (0, 3), (1, 2), (4, 9), (5, 20), (6, 30)]
            .into_iter()
            .for_each(|(words, bytes)| totals.add(words, bytes, 5));
        assert_eq!(totals, DocumentTotals { documents: 6, empty: 2, no_bytes: 1, short: 2, words: 16, bytes: 64 });
        let mut counts = ReadingCounts::default();
        counts.add_documents(&totals);
        assert_eq!((counts.documents, counts.short, counts.no_bytes), (6, 2, 1));
        counts.take_documents_away(&totals);
        assert_eq!(counts, ReadingCounts::default());
    }
}
