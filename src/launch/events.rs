//! Events of a run: what happened to which process, for the log.

use std::sync::Arc;

/// Says something to the user.
pub type EventSink = Arc<dyn Fn(ProcessEvent<'_>) + Send + Sync>;

/// Something that happens to the processes of a run.
pub struct ProcessEvent<'a> {
    /// Its kind.
    pub kind: &'a str,
    /// What a reader is told.
    pub text: &'a str,
    /// Which start of the processes it is about, from 0.
    pub epoch: u64,
    /// Which process, where it is one.
    pub process: Option<usize>,
}
