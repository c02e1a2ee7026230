//! The benchmarks of dataflows, as a process that is started for one receives it.

use std::sync::Arc;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::clusters::ClustersTask;
use super::components::ComponentsTask;
use super::exchange::ExchangeTask;
use super::harness::measure;
use super::weeks::WeeksTask;
use crate::launch::Peers;
use crate::watch::Watch;

/// A benchmark of a dataflow.
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
}

/// Runs one process of a benchmark; the process of worker 0 returns the figures as JSON.
///
/// # Errors
/// Where the benchmark fails.
pub fn serve_task(task: &BenchTask, peers: Peers, watch: &Arc<Watch>) -> Result<Option<String>> {
    let measured = match task {
        BenchTask::Cluster(task) => measure(task, peers, watch),
        BenchTask::Components(task) => measure(task, peers, watch),
        BenchTask::Weeks(task) => measure(task, peers, watch),
        BenchTask::Exchange(task) => measure(task, peers, watch),
    }?;
    measured.map(|measured| serde_json::to_string(&measured).context("figures are plain data")).transpose()
}
