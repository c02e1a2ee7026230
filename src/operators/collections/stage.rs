//! The parameters of the job, for one worker.

use std::path::PathBuf;
use std::sync::Arc;

use bytemuck::Pod;

use super::condition::MergeCondition;
use crate::operators::InProcess;
use crate::operators::exchange::{Kept, SpillBuffer};
use crate::watch::Watch;

/// The parameters of the job, for one worker.
#[derive(Clone)]
pub struct CollectionStage {
    /// When two clusters are merged.
    pub condition: MergeCondition,
    /// Whether only links within a host count.
    pub same_host: bool,
    /// Pages that a collection has at least, if its pages are to be avoided.
    pub least_size: u32,
    /// The share of copies among the crawled pages below a prefix, if that is to be avoided.
    pub purity: f64,
    /// Bytes for the records in flight.
    pub memory: u64,
    /// The folder to which records spill.
    pub scratch: PathBuf,
    /// What the workers of this process share.
    pub shared: Arc<InProcess>,
    /// Counts what is exchanged, and keeps the first failure of the process.
    pub watch: Arc<Watch>,
}

impl CollectionStage {
    /// An empty buffer for records in flight.
    pub(super) fn spill_buffer<R: Pod>(&self) -> SpillBuffer<R> {
        SpillBuffer::new(&self.scratch, self.memory)
    }

    /// No records yet, of those that wait for a later step.
    pub(super) fn kept<R: Pod>(&self) -> Kept<R> {
        Kept::new(&self.scratch, self.memory)
    }
}
