//! What is found of pairs besides the listed ones, in whichever way they are found.

use super::unit_pairs::{FamilyChunks, FamilyMember};
use crate::records::Edge;

/// What is found besides listed pairs.
#[derive(Debug, Default)]
pub struct FamiliesAndEdges {
    /// The own units of families.
    pub families: Vec<FamilyMember>,
    /// The collections of families, each at the owner of the family's name, in their order.
    pub collections: Vec<FamilyChunks>,
    /// Edges whose components are those of all pairs.
    pub edges: Vec<Edge>,
    /// What this worker counted, if pairs are found by counting.
    pub work: CountingWork,
}

/// What one worker counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CountingWork {
    /// Chunks in common, of all pairs.
    pub common: u64,
    /// Those of pairs that are counted exactly.
    pub exact: u64,
    /// The pairs that the pilot sample found: all of them are counted exactly.
    pub piloted: u64,
}
