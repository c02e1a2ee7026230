//! The keys of an engine, which several processes share by hash, as those of a run do; and the
//! features of documents.
//!
//! ```text
//! first process    documents, names, vectors, fragments, labels, clusters; part 0 of the keys and features
//! process 1 …      a part of the keys and features each, with the vectors
//! ```
//!
//! The first process sends each request to all others, does its own part meanwhile, and takes the
//! replies. Each key is in one part, and what becomes of it depends on the order of its own nodes
//! only: so edges, and all that follows from them, are the same for any number of processes.
//!
//! In reading order: `messages` (what is asked), `processes` (starts and asks the others),
//! `shared_keys`, `features` (of documents), `serve` (what the others do).

mod features;
mod messages;
mod processes;
mod serve;
mod shared_keys;

pub(super) use self::features::{ComparedDocs, DocumentFeatures};
pub use self::processes::KeyProcesses;
pub(in crate::live) use self::processes::SharedProcesses;
pub use self::serve::serve_keys;
pub(super) use self::shared_keys::SharedKeys;
