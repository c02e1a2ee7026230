//! Where a paragraph is, in the order in which an export reads the inputs.

use serde::{Deserialize, Serialize};

use crate::structures::Sortable;

/// Where a paragraph is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct ParagraphPlace {
    pub(super) file: u32,
    pub(super) offset: u64,
    /// The number of the line in the text, from 0.
    pub(super) line: u32,
}

impl ParagraphPlace {
    /// The document that it is in.
    pub(super) fn document(self) -> (u32, u64) {
        (self.file, self.offset)
    }
}

impl Sortable for ParagraphPlace {
    type Key = ParagraphPlace;

    fn key(&self) -> ParagraphPlace {
        *self
    }

    fn weight(&self) -> usize {
        size_of::<ParagraphPlace>()
    }
}
