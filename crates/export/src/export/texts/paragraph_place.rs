//! Where a paragraph is, in the order in which an export reads the inputs.

use serde::{Deserialize, Serialize};

use crate::structures::Sortable;

/// Where a paragraph is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(in crate::export) struct ParagraphPlace {
    pub(in crate::export) file: u32,
    pub(in crate::export) offset: u64,
    /// The number of the line in the text, from 0.
    pub(in crate::export) line: u32,
}

impl ParagraphPlace {
    /// The document that it is in.
    pub(in crate::export) fn document(self) -> (u32, u64) {
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
