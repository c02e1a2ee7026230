//! Live: clusters that a process keeps right while documents come, change and go.
//!
//! In reading order: `engine` (documents, batches, answers), `batch` (records as lines of JSON, and their features), `keys` (the documents
//! of each key, and the edges between them), `id_table` (its hash table), `fragments` (what is known to be connected, and the graph of
//! that), `labels` (its labels, by differential dataflow), `clusters` (ids and changes), `start` (the last week of a store), `journal`
//! (batches on the disk), `commit` (the journal becomes a batch of the store), `service` (an engine with its journal), `refusal` (why a
//! request is not carried out), `server` (HTTP).

mod batch;
mod clusters;
mod commit;
mod engine;
mod fragments;
mod id_table;
mod journal;
mod keys;
mod labels;
mod refusal;
#[cfg(feature = "live")]
mod server;
mod service;
mod start;

pub use self::batch::{Limits, Record, read_batch};
pub use self::clusters::ClusterChange;
pub use self::commit::Commitment;
pub use self::engine::{Answer, ClusterAnswer, Counts, Engine, Loaded, Near, NumberedChange};
pub use self::refusal::Refusal;
#[cfg(feature = "live")]
pub use self::server::{Access, Committer, Server};
pub use self::service::{Lines, Service, Started};
