//! `nigh bench components`: connected components of made-up graphs, compared with a single thread.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use clap::Args;
use nigh_bench::synthetic::{Graph, GraphShape};
use nigh_bench::{
    AnyBench, Bench, BenchOutcome, Measure, Measured, Placement, Seconds, WorkerCounts, WorkerResult, run,
    single_thread,
};
use nigh_exchange::Context;
use serde::{Deserialize, Serialize};

use crate::config::Count;
use crate::operators::components::{JoinedForests, join_forests};
use crate::sheet::grouped;
use crate::structures::{Numbering, Ownership, UnionFind};
use crate::watch::Stage;

/// `nigh bench components`.
pub(super) const BENCH: AnyBench = AnyBench::of::<ComponentsArgs>("components");

/// Shards of the nodes, as in a job.
const SHARDS: u64 = 64;
/// Edges that are added to the union-find at a time.
const BATCH: usize = 1 << 14;

/// Connected components of made-up graphs, compared with a single thread.
#[derive(Args)]
struct ComponentsArgs {
    /// Number of nodes.
    #[arg(long, value_name = "N")]
    nodes: u32,
    /// The shape of the graph.
    #[arg(long)]
    shape: GraphShape,
    /// Worker threads of each process.
    #[arg(long, default_value = "2", value_name = "N")]
    workers: Count,
    /// Processes on this machine.
    #[arg(long, default_value = "1", value_name = "N")]
    processes: Count,
    /// Give every worker a union-find of its own, as if each were a process: label propagation then
    /// has more to do.
    #[arg(long)]
    apart: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// The benchmark as each process receives it.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct ComponentsTask {
    shape: GraphShape,
    nodes: u32,
    apart: bool,
    /// Worker threads of each process.
    threads: usize,
}

/// What the benchmark counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct ComponentsCounts {
    /// Edges and proposals that were handled, of all workers.
    work: u64,
    /// The same, of the worker that handled the most.
    max_work: u64,
    /// Rounds of label propagation, the same at all workers.
    rounds: u64,
}

impl WorkerCounts for ComponentsCounts {
    fn merge(&mut self, other: &ComponentsCounts) {
        self.work += other.work;
        self.max_work = self.max_work.max(other.max_work);
        self.rounds = self.rounds.max(other.rounds);
    }
}

/// The figures of the benchmark.
#[derive(Serialize)]
struct ComponentsReport {
    shape: GraphShape,
    nodes: u32,
    edges: u64,
    workers: usize,
    processes: usize,
    apart: bool,
    rounds: u64,
    wall_s: f64,
    cpu_s: f64,
    exchanged_bytes: u64,
    peak_anonymous_bytes: Option<u64>,
    labels_match: bool,
    single_thread_s: f64,
    times_single_thread: f64,
    /// The largest share of edges and proposals that one worker handled.
    max_worker_share: f64,
}

impl Bench for ComponentsArgs {
    type Task = ComponentsTask;

    fn bench(&self, as_text: impl Fn(ComponentsTask) -> Result<String>) -> Result<BenchOutcome> {
        let task = ComponentsTask { shape: self.shape, nodes: self.nodes, apart: self.apart, threads: self.workers.0 };
        let measured = run(&task, Placement::of(self.processes.0), as_text)?;
        let graph = Graph::new(self.shape, self.nodes);
        // Neither side's time includes the making of edges.
        let edges: Vec<(u32, u32)> = (0..graph.edges()).map(|edge| graph.edge(edge)).collect();
        let begun = Instant::now();
        let roots = single_thread::components(self.nodes, edges.iter().copied());
        let single_thread_s = begun.elapsed().as_secs_f64();
        let labels = roots.iter().enumerate().map(|(node, root)| (node as u64, u64::from(*root)));
        let labels_match = single_thread::checksum(labels) == measured.checksum;
        let Seconds { wall: wall_s, cpu: cpu_s } = measured.seconds(|span| span.stage == Stage::Components);
        let Measured { counts, exchanged_bytes, peak_anonymous_bytes, .. } = measured;
        let report = ComponentsReport {
            shape: self.shape,
            nodes: self.nodes,
            edges: graph.edges(),
            workers: self.workers.0,
            processes: self.processes.0,
            apart: self.apart,
            rounds: counts.rounds,
            wall_s,
            cpu_s,
            exchanged_bytes,
            peak_anonymous_bytes,
            labels_match,
            single_thread_s,
            times_single_thread: single_thread_s / wall_s.max(1e-9),
            max_worker_share: counts.max_work as f64 / counts.work.max(1) as f64,
        };
        BenchOutcome::new(labels_match, &report, self.json)
    }
}

impl Measure for ComponentsTask {
    type Counts = ComponentsCounts;

    fn threads(&self) -> usize {
        self.threads
    }

    fn measure(&self, cx: &mut Context) -> Result<WorkerResult<ComponentsCounts>> {
        measure_components(cx, self)
    }
}

/// Connected components at one worker: its share of the edges, then the roots of the nodes that it
/// owns.
fn measure_components(cx: &mut Context, task: &ComponentsTask) -> Result<WorkerResult<ComponentsCounts>> {
    let graph = Graph::new(task.shape, task.nodes);
    let (index, peers) = (cx.index() as u64, cx.peers() as u64);
    let nodes = u64::from(task.nodes);
    let rows: Vec<u64> = (0..SHARDS).map(|shard| (shard + 1) * nodes / SHARDS - shard * nodes / SHARDS).collect();
    let (numbering, owned) = (Numbering::new(&rows), Ownership::new(cx.index(), cx.peers(), &rows));
    let edge_numbers = index * graph.edges() / peers..(index + 1) * graph.edges() / peers;
    let edges: Vec<(u32, u32)> = edge_numbers.map(|edge| graph.edge(edge)).collect();
    let threads = if task.apart { 1 } else { task.threads };
    cx.barrier()?;
    cx.enter(Stage::Components);
    let make = || UnionFind::new(task.nodes as usize);
    let union_find = if task.apart { Arc::new(make()) } else { cx.shared().of(make) };
    edges.chunks(BATCH).try_for_each(|batch| union_find.join(batch))?;
    // All workers must have added their edges before any of them looks up a root.
    cx.barrier()?;
    let JoinedForests { roots, rounds, proposals, edges: tree_edges, .. } =
        join_forests(cx, &numbering, &owned, union_find, threads)?;
    cx.barrier()?;
    cx.enter(Stage::Tables);
    let labels = owned.docs().zip(roots).map(|(node, root)| (numbering.number(node), numbering.number(root)));
    let work = edges.len() as u64 + tree_edges + proposals;
    let counts = ComponentsCounts { work, max_work: work, rounds };
    Ok(WorkerResult { counts, checksum: single_thread::checksum(labels) })
}

impl fmt::Display for ComponentsReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (nodes, edges) = (grouped(u64::from(self.nodes)), grouped(self.edges));
        writeln!(f, "{nodes} nodes, {edges} edges, {} process(es) of {} worker(s)", self.processes, self.workers)?;
        writeln!(
            f,
            "{:.3} s, {:.3} CPU s, {} rounds of label propagation, {} bytes exchanged, {:.0}% of the work at the busiest worker",
            self.wall_s,
            self.cpu_s,
            self.rounds,
            grouped(self.exchanged_bytes),
            self.max_worker_share * 100.0
        )?;
        let same = if self.labels_match { "the same labels" } else { "THE LABELS DIFFER: a fault in this program" };
        writeln!(
            f,
            "one thread, sequential union-find: {:.3} s, {:.2} times as long; {same}",
            self.single_thread_s, self.times_single_thread
        )
    }
}
