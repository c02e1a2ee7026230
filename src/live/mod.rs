//! Live: clusters that a process keeps right while documents come, change and go.
//!
//! In reading order: `engine` (documents, batches, answers), `batch` (records as lines of JSON, and their features), `keys` (the documents
//! of each key, and the edges between them), `id_table` (its hash table), `fragments` (what is known to be connected, and the graph of
//! that), `labels` (its labels, by differential dataflow), `clusters` (ids and changes), `start` (the last week of a store), `journal`
//! (batches on the disk), `commit` (the journal becomes a batch of the store), `service` (an engine with its journal), `refusal` (why a request is not carried out).

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
mod service;
mod start;

pub use self::batch::{Limits, Record, read_batch};
pub use self::clusters::ClusterChange;
pub use self::commit::Commitment;
pub use self::engine::{Answer, ClusterAnswer, Counts, Engine, Loaded, Near, NumberedChange};
pub use self::refusal::Refusal;
pub use self::service::{Lines, Service, Started};
