//! The parameters of the job, for one worker.

use super::condition::MergeCondition;

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
}
