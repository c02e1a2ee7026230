//! Equal documents, and what they have by which they are compared.

use std::collections::BTreeSet;

use anyhow::Result;

use crate::features::equal_features;
use crate::records::FeatureBits;

/// Pages that are compared at once.
pub(super) const AT_ONCE: usize = 64;
/// Documents of a page whose texts may be looked for.
const LISTED: usize = 64;

/// Equal documents.
#[derive(Default)]
pub(super) struct EqualPage {
    pub(super) node: u32,
    pub(super) checksum: u128,
    pub(super) docs: BTreeSet<u32>,
    /// Pages that are similar enough.
    pub(super) edges: Vec<u32>,
    pub(super) group: u64,
    /// Whether a bound decided about a pair of its candidates.
    pub(super) is_rough: bool,
    /// Whether features decided about a pair of its candidates, though texts should.
    pub(super) is_estimated: bool,
}

/// What documents have, by which they are compared.
pub(super) trait Documents {
    /// Makes the features of documents ready, in the place of others.
    ///
    /// # Errors
    /// If a process is gone that has some.
    fn fetch(&mut self, docs: &[u32]) -> Result<()>;

    /// The features of a document, which were made ready.
    fn features(&self, doc: u32) -> &[FeatureBits];

    /// The distinct shingles of one of some equal documents whose text is at hand; `None` if none
    /// is.
    ///
    /// # Errors
    /// If the tables cannot be read.
    fn shingles(&mut self, equal: &[Vec<u32>]) -> Result<Vec<Option<Vec<u64>>>>;

    /// Whether the text of one of some equal documents is in memory.
    fn is_in_memory(&self, equal: &[u32]) -> bool;
}

/// The pages that are compared.
pub(super) struct PageSource<'a> {
    pub(super) pages: &'a [EqualPage],
    pub(super) documents: &'a mut dyn Documents,
}

impl PageSource<'_> {
    /// The features of a page.
    pub(super) fn features(&self, page: u32) -> &[FeatureBits] {
        self.pages[page as usize].docs.first().map_or(&[], |doc| self.documents.features(*doc))
    }

    /// The one of the first of some pages that has most features of a page.
    pub(super) fn likeliest(&self, page: u32, others: &[u32]) -> Option<u32> {
        let features = self.features(page);
        let others = others.iter().take(AT_ONCE).copied().filter(|other| *other != page);
        others.max_by_key(|other| equal_features(self.features(*other), features))
    }

    /// The distinct shingles of some pages; `None` of one whose text is not at hand.
    ///
    /// # Errors
    /// If the tables cannot be read.
    pub(super) fn shingles(&mut self, pages: &[u32]) -> Result<Vec<Option<Vec<u64>>>> {
        let some = |page: &u32| self.documents_of(*page);
        self.documents.shingles(&pages.iter().map(some).collect::<Vec<_>>())
    }

    /// Whether the text of a page is in memory.
    pub(super) fn is_in_memory(&self, page: u32) -> bool {
        self.documents.is_in_memory(&self.documents_of(page))
    }

    fn documents_of(&self, page: u32) -> Vec<u32> {
        self.pages[page as usize].docs.iter().copied().take(LISTED).collect()
    }
}
