//! The parameters of the steps, for one worker.

use crate::operators::set_join::{Requirement, SetJoinStage};

/// The parameters of the steps, for one worker.
#[derive(Clone)]
pub struct ParagraphStage {
    /// The most pairs of rows that a set join looks at.
    pub max_pairs: u64,
}

impl ParagraphStage {
    /// A set join with this requirement.
    pub(super) fn join(&self, requirement: Requirement) -> SetJoinStage {
        SetJoinStage { max_pairs: self.max_pairs, ..SetJoinStage::of_components(requirement) }
    }
}
