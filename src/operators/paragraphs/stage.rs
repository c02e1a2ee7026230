//! The parameters of the steps, for one worker.

use std::path::PathBuf;
use std::sync::Arc;

use crate::operators::InProcess;
use crate::operators::exchange::GroupLimits;
use crate::operators::set_join::{Requirement, SetJoinStage};
use crate::watch::Watch;

/// The parameters of the steps, for one worker.
#[derive(Clone)]
pub struct ParagraphStage {
    /// The most pairs of rows that a set join looks at.
    pub max_pairs: u64,
    /// Bytes for the records in flight.
    pub memory: u64,
    /// The folder to which they spill.
    pub scratch: PathBuf,
    /// What the workers of this process share.
    pub shared: Arc<InProcess>,
    /// Counts what is exchanged, and keeps the first failure of the process.
    pub watch: Arc<Watch>,
}

impl ParagraphStage {
    /// What the exchanges of grouped records may use.
    pub fn grouping(&self) -> GroupLimits {
        GroupLimits { memory: self.memory, scratch: self.scratch.clone(), watch: self.watch.clone() }
    }

    /// A set join with this requirement.
    pub(super) fn join(&self, requirement: Requirement) -> SetJoinStage {
        let (scratch, shared, watch) = (self.scratch.clone(), self.shared.clone(), self.watch.clone());
        SetJoinStage {
            max_pairs: self.max_pairs,
            ..SetJoinStage::of_components(requirement, self.memory, scratch, shared, watch)
        }
    }
}
