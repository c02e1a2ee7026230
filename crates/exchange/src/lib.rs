//! The exchange: how records reach the worker that owns them, and how a dataflow runs to its end.
//!
//! In reading order:
//!
//! - `context`: a worker and its surroundings, which every step is given; `run`: runs a dataflow to its end;
//! - `block` and `buffers`: records of one partition, sent whole, and the pool of their memory;
//! - `dealer` and `rows`: deal records into blocks, and rows of any size;
//! - `dataflow`: sources, operators and sinks of blocks;
//! - `gather`: small results of all workers, reductions, and the barrier; `all_to_all`: one exchange of records that fit into memory;
//! - `ask`: questions to other workers and their answers, as a stream or in rounds;
//! - `lookup`: questions about nodes, answered by their owners;
//! - `key_ranges`, `ranges` and `partitions`: keyed records, one range of keys at a time, with bounded memory; `by_key` is all of it with
//!   answers to the senders, and `by_group` is that for records that are sorted by key;
//! - `spill`: blocks that wait, in memory or on disk; `kept`: records that their maker deals later;
//! - `shared`: values for all workers of a process;
//! - [`watch`]: the counters of a process, to which workers add.
//!
//! Records travel in blocks: one by one they take two to three times the CPU (see `block`). Every worker of every process must
//! call the functions that take a `&mut Context`, in the same order.
//!
//! What crosses workers is one concrete type, [`Block`], and the logic of an operator is behind a pointer: a container or a closure that
//! timely is given as a type parameter is compiled again with all of timely, its channels and its queues around it. Only captures of
//! pages (`operators/ingest`) and what differential dataflow arranges have containers of their own. `scripts/weight.sh` counts what
//! the program has of both, and fails in CI if there is more than that.

mod all_to_all;
mod ask;
mod block;
mod buffers;
mod by_group;
mod by_key;
mod context;
mod dataflow;
mod dealer;
mod gather;
mod kept;
mod key_ranges;
mod lookup;
mod partitions;
mod ranges;
mod rows;
mod run;
mod shared;
mod spill;
pub mod watch;

pub use self::all_to_all::{all_to_all, blocks};
pub use self::ask::{Answerer, Asked, Asker, ask};
pub use self::block::{Block, BlockBuilder, BlockOf};
pub use self::buffers::{BLOCK_BYTES, release_spare, sort_spare};
pub use self::by_group::{Keyed, Records, by_group};
pub use self::by_key::by_key;
pub use self::context::Context;
pub use self::dataflow::{BlockOutput, BlockStream, emit, install, run_dataflow, sink, source, unary, unary_frontier};
pub use self::dealer::Dealer;
pub use self::kept::Kept;
pub use self::key_ranges::KeyRanges;
pub use self::lookup::{LocalAnswers, NodeAnswers, SharedAnswers, lookup};
pub use self::partitions::{each_partition, received};
pub use self::ranges::{RangeDealer, SLICE, ranges};
pub use self::rows::{RowDealer, bytes_of_rows, rows_of, send_rows};
pub use self::run::run_to_end;
pub use self::shared::Shared;
pub use self::spill::{Partition, SpillBuffer};
