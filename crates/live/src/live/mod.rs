//! Live: clusters that a process keeps right while documents come, change and go.
//!
//! In reading order: `batch` (records as lines of JSON, and their features), `refusal` (why a
//! request is not carried out), `engine` (documents and their clusters), `follow` (files that
//! grow), `service` (an engine with its journal, and commits), `stream` (lines of standard input),
//! `server` (HTTP).

mod batch;
mod engine;
mod follow;
mod refusal;
#[cfg(feature = "live")]
mod server;
mod service;
mod stream;

pub use self::batch::{Limits, Record, read_batch};
pub use self::engine::{
    Answer, ClusterAnswer, ClusterChange, Counts, Engine, KeyProcesses, Load, Near, NumberedChange, serve_keys,
};
pub use self::follow::{Follower, Part, Place, TakePart};
pub use self::refusal::Refusal;
#[cfg(feature = "live")]
pub use self::server::is_loopback;
#[cfg(feature = "live")]
pub use self::server::{Access, Server, Tls};
pub use self::service::{
    CommitEvery, CommitNotice, Commitment, Commits, Committed, Committer, Lines, Pending, Service, Started,
};
pub use self::stream::answer_lines;
