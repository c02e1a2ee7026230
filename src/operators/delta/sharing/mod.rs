//! Finds the unchanged documents that share a key with a changed one.
//!
//! In reading order: `changes` (which vectors differ), `filter` (their supershingles and keys as bitmaps), `postings` (the
//! inverted index of supershingles) and `candidates` (documents found by the index, or by a scan of all vectors),
//! `key_groups` (documents of one key, at the key's owner), `send_limit` (caps the candidates sent for each key).

mod candidates;
mod changes;
mod filter;
mod key_groups;
mod postings;
mod send_limit;

pub(crate) use self::candidates::Remainder;
pub use self::changes::{Changes, changes, differences};
pub use self::filter::ChangedKeys;
pub(crate) use self::key_groups::{CLUSTER, DocSet, HolderReply, KeyGroups, KeyHolder, NEW, RootOf, STAYS, doc, word};
pub use self::postings::{NextRun, PostingIndex, post_all};
