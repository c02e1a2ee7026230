//! Finds the unchanged documents that share a key with a changed one, and brings them together by
//! key.
//!
//! In reading order: `vector_changes` (the documents whose vectors differ), `filter` (their
//! supershingles and keys as bitmaps), `postings` (the inverted index of supershingles),
//! `candidates` (unchanged documents found by the index, or by a scan of all vectors), `send_limit`
//! (caps the candidates sent for each key), `key_groups` (all documents of a key, at the key's
//! owner).

mod candidates;
mod filter;
mod key_groups;
mod postings;
mod send_limit;
mod vector_changes;

pub(crate) use self::candidates::{DealtHolders, Remainder};
pub use self::filter::ChangedKeys;
pub(crate) use self::key_groups::{
    CLUSTER, DocSet, HolderReply, KeyGroups, KeyHolder, KeyRole, RootOf, doc_of, word_of,
};
pub use self::postings::{NextRun, PostingIndex, post_all};
pub use self::vector_changes::{VectorChanges, changes, differences};
