//! The list of dataflow benchmarks, as a new process receives one of them.

use std::sync::Arc;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::clusters::ClustersTask;
use super::collections::CollectionsTask;
use super::components::ComponentsTask;
use super::exchange::ExchangeTask;
use super::harness::{Measure, measure};
use super::mirrors::MirrorsTask;
use super::mirrors_by_url::MirrorsByUrlTask;
use super::overlap::OverlapTask;
use super::paragraphs::ParagraphsTask;
use super::verify::VerifyTask;
use super::weeks::WeeksTask;
use crate::launch::Peers;
use crate::watch::Watch;

/// A dataflow benchmark with its parameters.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BenchTask {
    /// `nigh bench cluster`.
    Cluster(ClustersTask),
    /// `nigh bench components`.
    Components(ComponentsTask),
    /// `nigh bench weeks`.
    Weeks(WeeksTask),
    /// `nigh bench exchange`.
    Exchange(ExchangeTask),
    /// `nigh bench overlap`.
    Overlap(OverlapTask),
    /// `nigh bench mirrors`.
    Mirrors(MirrorsTask),
    /// `nigh bench collections`.
    Collections(CollectionsTask),
    /// `nigh bench mirrors-by-url`.
    MirrorsByUrl(MirrorsByUrlTask),
    /// `nigh bench paragraphs`.
    Paragraphs(ParagraphsTask),
    /// `nigh bench verify`.
    Verify(VerifyTask),
}

/// Runs one process of a benchmark. The process of worker 0 returns the figures of all processes as
/// JSON, the others `None`.
///
/// # Errors
/// If the benchmark fails.
pub fn serve_task(task: &BenchTask, peers: Peers, watch: &Arc<Watch>) -> Result<Option<String>> {
    match task {
        BenchTask::Cluster(task) => measure_as_json(task, peers, watch),
        BenchTask::Components(task) => measure_as_json(task, peers, watch),
        BenchTask::Weeks(task) => measure_as_json(task, peers, watch),
        BenchTask::Exchange(task) => measure_as_json(task, peers, watch),
        BenchTask::Overlap(task) => measure_as_json(task, peers, watch),
        BenchTask::Mirrors(task) => measure_as_json(task, peers, watch),
        BenchTask::Collections(task) => measure_as_json(task, peers, watch),
        BenchTask::MirrorsByUrl(task) => measure_as_json(task, peers, watch),
        BenchTask::Paragraphs(task) => measure_as_json(task, peers, watch),
        BenchTask::Verify(task) => measure_as_json(task, peers, watch),
    }
}

fn measure_as_json<T: Measure>(task: &T, peers: Peers, watch: &Arc<Watch>) -> Result<Option<String>> {
    let measured = measure(task, peers, watch)?;
    measured.map(|measured| serde_json::to_string(&measured).context("figures are plain data")).transpose()
}
