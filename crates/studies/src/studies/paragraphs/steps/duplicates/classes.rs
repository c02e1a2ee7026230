//! Classes: pages with the same set of paragraphs and the same number of them; and false matches,
//! which join two classes.

use bytemuck::{Pod, Zeroable};

use crate::records::DocId;

/// The class of a page: its number of pages, and the smallest part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub(in crate::studies::paragraphs::steps) struct DuplicateClass {
    pub size: u32,
    pub part: u32,
}

/// Two classes of pages: the pages of the first repeat some paragraphs, and have a part of the set
/// of the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FalseMatch {
    /// The smallest page of each class.
    pub classes: [DocId; 2],
    pub(in crate::studies::paragraphs::steps) of_classes: [DuplicateClass; 2],
}

impl FalseMatch {
    /// The pairs of pages.
    pub fn pairs(&self) -> u64 {
        self.of_classes.iter().map(|class| u64::from(class.size)).product()
    }

    /// The smallest part of a page of each class.
    pub(in crate::studies::paragraphs::steps) fn parts(&self) -> impl Iterator<Item = u32> {
        self.of_classes.into_iter().map(|class| class.part)
    }
}
