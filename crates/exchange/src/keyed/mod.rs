//! Keyed records, one range of keys at a time, with bounded memory.
//!
//! `key_ranges` cuts the keys, `ranges` deals the records of each range, `partitions` hands them
//! out by partition; `by_key` is all of it with answers to the senders, and `by_group` is that for
//! records that are sorted by key. `spill` holds blocks that wait, in memory or on disk; `kept` has
//! records that their maker deals later.

pub(crate) mod by_group;
pub(crate) mod by_key;
pub(crate) mod kept;
pub(crate) mod key_ranges;
pub(crate) mod partitions;
pub(crate) mod ranges;
pub(crate) mod spill;
