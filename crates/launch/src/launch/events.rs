//! Events of a run: what happened to its processes, for the log.

use std::sync::Arc;

/// Receives the events of a run and shows them to the user.
pub type EventSink = Arc<dyn Fn(ProcessEvent<'_>) + Send + Sync>;

/// Something that happened to the processes of a run.
pub struct ProcessEvent<'a> {
    /// The kind of event, as the JSON log has it: `restart`, `lost`, `refused` ...
    pub kind: &'a str,
    /// The message for a person.
    pub text: &'a str,
    /// The restart number of the processes that the event is about, from 0.
    pub epoch: u64,
    /// The process that the event is about; `None` for an event of all processes.
    pub process: Option<usize>,
}
