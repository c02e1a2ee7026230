//! Benchmarks of dataflows, in one process or several.
//!
//! In reading order: `harness` (runs a benchmark and adds up what it took), `task` (the list of them, as processes receive
//! it), `clusters`, `components`, `weeks`, `exchange` (the benchmarks), `meter` (peak memory), `temporary` (a folder).

mod clusters;
mod components;
mod exchange;
mod harness;
mod meter;
mod task;
mod temporary;
mod weeks;

pub(crate) use self::clusters::{ClusterArgs, bench_cluster};
pub(crate) use self::components::{ComponentsArgs, bench_components};
pub(crate) use self::exchange::{ExchangeArgs, bench_exchange};
pub use self::task::{BenchTask, serve_task};
pub(crate) use self::weeks::{WeeksArgs, bench_weeks};
