//! `nigh bench components`: connected components of made-up graphs, beside a single thread.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result};
use clap::Args;
use serde::{Deserialize, Serialize};
use timely::worker::Worker;

use super::harness::{Counted, Measure, Measured, Placement, run};
use crate::bench::synthetic::{Graph, GraphShape};
use crate::config::Count;
use crate::operators::InProcess;
use crate::operators::components::{JoinedForests, join_forests};
use crate::operators::exchange::{Shared, barrier};
use crate::report::grouped;
use crate::structures::{Numbering, Ownership, UnionFind};
use crate::watch::{Span, Stage, Watch};

/// Shards of the nodes, as in a job.
const SHARDS: u64 = 64;
/// Edges that are made and joined at a time.
const SOME: u64 = 1 << 14;

/// Arguments of `nigh bench components`.
#[derive(Args)]
pub(crate) struct ComponentsArgs {
    /// Nodes.
    #[arg(long, value_name = "N")]
    nodes: u32,
    /// The graph.
    #[arg(long)]
    shape: GraphShape,
    /// Worker threads of each process.
    #[arg(long, default_value = "2", value_name = "N")]
    workers: Count,
    /// Processes on this machine.
    #[arg(long, default_value = "1", value_name = "N")]
    processes: Count,
    /// Every worker has a forest of its own, as if each were a process: more is left to label propagation.
    #[arg(long)]
    apart: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// What the processes of the benchmark are told.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ComponentsTask {
    shape: GraphShape,
    nodes: u32,
    apart: bool,
    /// Worker threads of each process.
    pub(crate) workers: usize,
}

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

pub(crate) fn bench_components(
    args: &ComponentsArgs,
    as_text: impl Fn(ComponentsTask) -> Result<String>,
) -> Result<(bool, String)> {
    let (workers, processes) = (args.workers.0, args.processes.0);
    let task = ComponentsTask { shape: args.shape, nodes: args.nodes, apart: args.apart, workers };
    let Measured { phases, shares, rounds, exchanged, checksum, peak_anonymous_bytes, .. } =
        run(&task, Placement::of(processes), as_text)?;
    let graph = Graph::new(args.shape, args.nodes);
    // Edges are made beforehand on both sides.
    let edges: Vec<(u32, u32)> = (0..graph.edges()).map(|edge| graph.edge(edge)).collect();
    let begun = Instant::now();
    let roots = crate::bench::single_thread::components(args.nodes, edges.iter().copied());
    let single_thread_s = begun.elapsed().as_secs_f64();
    let labels = roots.iter().enumerate().map(|(node, root)| (node as u64, u64::from(*root)));
    let of_phase =
        |of: fn(&Span) -> f64| phases.iter().filter(|span| span.stage == Stage::Components).map(of).sum::<f64>();
    let wall_s = of_phase(|span| span.wall_s);
    let report = ComponentsReport {
        shape: args.shape,
        nodes: args.nodes,
        edges: graph.edges(),
        workers,
        processes,
        apart: args.apart,
        rounds,
        wall_s,
        cpu_s: of_phase(|span| span.cpu_s),
        exchanged_bytes: exchanged.0,
        peak_anonymous_bytes,
        labels_match: crate::bench::single_thread::checksum(labels) == checksum,
        single_thread_s,
        times_single_thread: single_thread_s / wall_s.max(1e-9),
        max_worker_share: shares.iter().max().copied().unwrap_or(0) as f64 / shares.iter().sum::<u64>().max(1) as f64,
    };
    let text = match args.json {
        true => format!("{}\n", serde_json::to_string(&report).context("figures are plain data")?),
        false => report.to_string(),
    };
    Ok((report.labels_match, text))
}

impl Measure for ComponentsTask {
    fn workers(&self) -> usize {
        self.workers
    }

    fn measure(&self, worker: &mut Worker, shared: &Arc<InProcess>, watch: &Arc<Watch>) -> Result<Counted> {
        measure_components(worker, self, &shared.union_find, watch)
    }
}

/// Components as one worker finds them.
fn measure_components(
    worker: &mut Worker,
    task: &ComponentsTask,
    shared: &Shared<UnionFind>,
    watch: &Arc<Watch>,
) -> Result<Counted> {
    let graph = Graph::new(task.shape, task.nodes);
    let (index, peers) = (worker.index() as u64, worker.peers() as u64);
    let nodes = u64::from(task.nodes);
    let rows: Vec<u64> = (0..SHARDS).map(|shard| (shard + 1) * nodes / SHARDS - shard * nodes / SHARDS).collect();
    let (numbering, owned) = (Numbering::new(&rows), Ownership::new(worker.index(), worker.peers(), &rows));
    let share = index * graph.edges() / peers..(index + 1) * graph.edges() / peers;
    let count = share.end - share.start;
    let edges: Vec<(u32, u32)> = share.map(|edge| graph.edge(edge)).collect();
    let (alone, threads) = (Shared::<UnionFind>::default(), if task.apart { 1 } else { task.workers });
    barrier(worker, watch)?;
    watch.enter(Stage::Components);
    let forest = if task.apart { &alone } else { shared }.of(|| UnionFind::new(task.nodes as usize));
    edges.chunks(SOME as usize).try_for_each(|some| forest.join(some))?;
    // All have joined before anybody asks for a root.
    barrier(worker, watch)?;
    let JoinedForests { roots, rounds, proposals, edges: links, .. } =
        join_forests(worker, &numbering, &owned, forest, threads, watch)?;
    barrier(worker, watch)?;
    watch.enter(Stage::Tables);
    let labels = owned.docs().zip(roots).map(|(node, root)| (numbering.number(node), numbering.number(root)));
    Ok(Counted {
        sums: Vec::new(),
        share: count + links + proposals,
        rounds,
        checksum: crate::bench::single_thread::checksum(labels),
    })
}

impl fmt::Display for ComponentsReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (nodes, edges) = (grouped(u64::from(self.nodes)), grouped(self.edges));
        writeln!(f, "{nodes} nodes, {edges} edges, {} process(es) of {} worker(s)", self.processes, self.workers)?;
        writeln!(
            f,
            "{:.3} s, {:.3} CPU s, {} rounds of label propagation, {} bytes exchanged, the busiest worker did {:.0}%",
            self.wall_s,
            self.cpu_s,
            self.rounds,
            grouped(self.exchanged_bytes),
            self.max_worker_share * 100.0
        )?;
        let same = if self.labels_match { "the same labels" } else { "OTHER LABELS: a fault in this program" };
        writeln!(
            f,
            "one thread, sequential union-find: {:.3} s, {:.2} times as long; {same}",
            self.single_thread_s, self.times_single_thread
        )
    }
}
