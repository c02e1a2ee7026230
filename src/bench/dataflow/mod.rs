//! Benchmarks of dataflows, in one process or several.
//!
//! In reading order: `harness` (runs a benchmark on all workers and adds up their counts), `task`
//! (the list of benchmarks, as a new process receives one), `setup` (what `clusters` and `weeks`
//! share), `clusters`, `components`, `weeks`, `exchange`, `overlap`, `mirrors`, `collections`,
//! `mirrors_by_url`, `paragraphs`, `verify` (the benchmarks), `meter` (peak memory), `temporary`
//! (the folder of a benchmark).

mod clusters;
mod collections;
mod components;
mod exchange;
mod harness;
mod meter;
mod mirrors;
mod mirrors_by_url;
mod overlap;
mod paragraphs;
mod setup;
mod task;
mod verify;
mod weeks;

pub(crate) use self::clusters::{ClusterArgs, bench_cluster};
pub(crate) use self::collections::{CollectionsArgs, bench_collections};
pub(crate) use self::components::{ComponentsArgs, bench_components};
pub(crate) use self::exchange::{ExchangeArgs, bench_exchange};
pub(crate) use self::mirrors::{MirrorsArgs, bench_mirrors};
pub(crate) use self::mirrors_by_url::{MirrorsByUrlArgs, bench_mirrors_by_url};
pub(crate) use self::overlap::{OverlapArgs, bench_overlap};
pub(crate) use self::paragraphs::{ParagraphsArgs, bench_paragraphs};
pub use self::task::{BenchTask, serve_task};
pub(crate) use self::verify::{VerifyArgs, bench_verify};
pub(crate) use self::weeks::{WeeksArgs, bench_weeks};
