//! How records reach the worker that owns them.
//!
//! In reading order: `run` (a dataflow, to its end), `block` and `buffers` (records of one partition, and the pool of their
//! memory), `dealer` (records dealt into blocks), `all_gather` and `all_to_all` (one exchange without state, and the
//! barrier), `key_ranges`, `ranges` and `partitions` (keyed records, a range of keys at a time, with bounded memory),
//! `spill` (blocks that wait, in memory or on disk), `lookup` (questions about nodes, answered by their owners), `shared`
//! (one value for all workers of a process).

mod all_gather;
mod all_to_all;
mod block;
mod buffers;
mod dealer;
mod key_ranges;
mod lookup;
mod partitions;
mod ranges;
mod run;
mod shared;
mod spill;

pub use self::all_gather::{all_gather, barrier};
pub use self::all_to_all::all_to_all;
pub(crate) use self::all_to_all::blocks;
pub use self::block::{Block, BlockBuilder, by_part};
pub use self::buffers::{BLOCK_BYTES, release_spare, sort_spare};
pub use self::dealer::Dealer;
pub use self::key_ranges::KeyRanges;
pub use self::lookup::{LocalAnswers, NodeAnswers, SharedAnswers, lookup};
pub use self::partitions::{each_partition, received};
pub use self::ranges::{RangeDealer, SLICE, ranges};
pub use self::run::run_to_end;
pub use self::shared::Shared;
pub use self::spill::{Partition, SpillBuffer};
