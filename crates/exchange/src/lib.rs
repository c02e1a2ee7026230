//! The exchange: how records reach the worker that owns them, and how a dataflow runs to its end.
//!
//! In reading order:
//!
//! - `context`: a worker and its surroundings, which every step is given; `run`: runs a dataflow to
//!   its end;
//! - `blocks`: what crosses workers, and how records are dealt into it;
//! - `dataflow`: sources, operators and sinks of blocks;
//! - `gather`: small results of all workers, reductions, and the barrier; `all_to_all`: one
//!   exchange of records that fit into memory;
//! - `questions`: asked of other workers, and answered by them;
//! - `keyed`: keyed records, one range of keys at a time;
//! - `shared`: values for all workers of a process;
//! - [`watch`]: the counters of a process, to which workers add.
//!
//! Records travel in blocks: one by one they take two to three times the CPU (see
//! `blocks/block.rs`). Every worker of every process must call the functions that take a
//! `&mut Context`, in the same order.
//!
//! What crosses workers is one concrete type, [`Block`], and the logic of an operator is behind a
//! pointer: a container or a closure that timely is given as a type parameter is compiled again
//! with all of timely, its channels and its queues around it. Only captures of pages
//! (`operators/ingest`) and what differential dataflow arranges have containers of their own.
//! `scripts/weight.sh` counts what the program has of both, and fails in CI if there is more than
//! that.

mod all_to_all;
mod blocks;
mod context;
mod dataflow;
mod gather;
mod keyed;
mod questions;
mod run;
mod shared;
pub mod watch;

pub use self::all_to_all::{all_to_all, blocks};
pub use self::blocks::block::{Block, BlockBuilder, BlockOf};
pub use self::blocks::buffers::{BLOCK_BYTES, release_spare, sort_spare};
pub use self::blocks::dealer::Dealer;
pub use self::blocks::row_blocks::{RowDealer, bytes_of_rows, rows_of, send_rows};
pub use self::context::Context;
pub use self::dataflow::{
    BlockOutput, BlockStream, emit, hold, install, run_dataflow, sink, source, time_of, unary, unary_frontier,
};
pub use self::keyed::by_group::{Keyed, RecordBlocks, by_group};
pub use self::keyed::by_key::by_key;
pub use self::keyed::kept::KeptRecords;
pub use self::keyed::key_ranges::KeyRanges;
pub use self::keyed::partitions::{each_partition, received};
pub use self::keyed::ranges::{RangeDealer, SLICE, ranges};
pub use self::keyed::spill::{Partition, SpillBuffer};
pub use self::questions::ask::{Answerer, Asked, Asker, ask};
pub use self::questions::lookup::{LocalAnswers, NodeAnswers, SharedAnswers, lookup};
pub use self::run::run_to_end;
pub use self::shared::SharedValues;
