//! Live: clusters that a process keeps right while documents come, change and go.
//!
//! In reading order: `engine` (documents, batches, answers), `batch` (records as lines of JSON, and their features), `keys` (the documents
//! of each key, and the edges between them), `id_table` (its hash table), `fragments` (what is known to be connected, and the graph of
//! that), `labels` (its labels, by differential dataflow), `clusters` (ids and changes), `start` (the last week of a store), `journal`
//! (batches on the disk), `commit` (the journal becomes a batch of the store), `service` (an engine with its journal), `exact` (similarities by
//! texts), `schedule` (when it
//! commits by itself), `refusal` (why a request is not carried out), `stream` (lines of standard input), `follow` (files that grow), `tls` (certificates), `access` (who may send
//! requests), `server` (HTTP).

#[cfg(feature = "live")]
mod access;
mod batch;
mod clusters;
mod commit;
mod engine;
mod exact;
mod follow;
mod fragments;
mod id_table;
mod journal;
mod keys;
mod labels;
mod refusal;
mod schedule;
#[cfg(feature = "live")]
mod server;
mod service;
mod start;
mod stream;
#[cfg(feature = "live")]
mod tls;

#[cfg(feature = "live")]
pub use self::access::Access;
#[cfg(feature = "live")]
pub(crate) use self::access::is_loopback;
pub use self::batch::{Limits, Record, read_batch};
pub use self::clusters::ClusterChange;
pub use self::commit::{Commitment, Committed};
pub use self::engine::{Answer, ClusterAnswer, Counts, Engine, Loaded, Near, NumberedChange};
pub use self::follow::{Follower, Part, TakePart};
pub use self::refusal::Refusal;
pub use self::schedule::{CommitEvery, CommitNotice, Commits, Committer};
#[cfg(feature = "live")]
pub use self::server::Server;
pub use self::service::{Lines, Pending, Service, Started};
pub use self::stream::answer_lines;
#[cfg(feature = "live")]
pub use self::tls::Tls;
