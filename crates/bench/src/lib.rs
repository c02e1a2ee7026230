//! What benchmarks of any layer share. A benchmark lies beside what it measures: that of a study in
//! the study's folder, the others in `src/bench` of the program.
//!
//! In reading order:
//!
//! - `bench`: the face of a benchmark of a dataflow; and such a benchmark, whichever it is, as
//!   `nigh bench` and the processes of a pool know it;
//! - `harness`: runs it on all workers of one or several processes, and adds up their counts;
//!   `meter`: the peak of their memory; `temporary`: the folder of a benchmark; `outcome`: its
//!   report, and whether its results were right;
//! - `synthetic`: made-up input; `single_thread`: the sequential algorithms to compare with.
//!
//! Timings are measured here and never in tests.
#![cfg(feature = "bench")]

use nigh_exchange::watch;
use nigh_kernels::records;
use nigh_launch::launch;
use nigh_store::{config, state};
use nigh_tables::tables;
#[cfg(test)]
use nigh_text::features;
use nigh_week::operators;

mod bench;
mod harness;
mod meter;
mod outcome;
pub mod single_thread;
pub mod synthetic;
mod temporary;

pub use self::bench::{AnyBench, Bench, BenchTask};
pub use self::harness::{Measure, Measured, Placement, Seconds, WorkerCounts, WorkerResult, run};
pub use self::outcome::BenchOutcome;
pub use self::temporary::Temporary;
