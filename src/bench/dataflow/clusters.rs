//! `nigh bench cluster`: the cluster stage on made-up vectors with the study's distribution,
//! compared with a single thread.
//!
//! The labels are compared, with those of the single thread or with those by construction, by a
//! checksum that does not depend on the order of documents.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Result, bail};
use clap::Args;
use nigh_bench::synthetic::{Dataset, DatasetPlan, MadeVectors, Noise, SHARDS, WIDTH, files, label_checksum};
use nigh_bench::{
    AnyBench, Bench, BenchOutcome, Measure, Measured, Placement, Seconds, Temporary, WorkerCounts, WorkerResult, run,
    single_thread,
};
use nigh_exchange::Context;
use serde::{Deserialize, Serialize};

use super::setup::{OwnedVectors, VectorArgs, WorkerResources};
use crate::config::{Bytes, Method};
use crate::operators::clustering::{OwnClusters, clusters};
use crate::sheet::grouped;
use crate::state::sync_folder;
use crate::structures::Numbering;
use crate::watch::{Span, Stage};

/// `nigh bench cluster`.
pub(super) const BENCH: AnyBench = AnyBench::of::<ClusterArgs>("cluster");

/// Clusters of made-up vectors with the study's distribution, compared with a single thread.
#[derive(Args)]
struct ClusterArgs {
    #[command(flatten)]
    vectors: VectorArgs,
    /// Shares of the documents outside clusters that borrow one supershingle of another document,
    /// and two of two others.
    #[arg(long, default_value_t, value_name = "ONE,TWO")]
    noise: Noise,
    /// Drop the vectors from the page cache first.
    #[arg(long)]
    cold: bool,
    /// Skip the single-threaded baseline and the check against it.
    #[arg(long)]
    no_check: bool,
    /// Instead of the single thread, check by the labels that follow from how the vectors were
    /// made. It needs little memory.
    #[arg(long, conflicts_with = "no_check")]
    by_construction: bool,
}

/// The benchmark as each process receives it.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct ClustersTask {
    /// The folder of the vectors.
    folder: PathBuf,
    documents: u64,
    resources: WorkerResources,
}

impl ClustersTask {
    fn dataset(&self) -> Dataset {
        Dataset { folder: self.folder.clone(), documents: self.documents, shards: SHARDS }
    }
}

/// What the cluster stage counts; sums over workers, except for `rounds`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct ClusterCounts {
    /// Vectors equal to a smaller one.
    duplicates: u64,
    /// Vectors that were grouped by their keys.
    survivors: u64,
    /// Records of survivors under their keys.
    pair_records: u64,
    /// Edges from keys.
    edges: u64,
    /// Edges of the processes' union-finds.
    forest_edges: u64,
    /// Rounds of label propagation, the same at all workers.
    rounds: u64,
}

impl WorkerCounts for ClusterCounts {
    fn merge(&mut self, other: &ClusterCounts) {
        self.duplicates += other.duplicates;
        self.survivors += other.survivors;
        self.pair_records += other.pair_records;
        self.edges += other.edges;
        self.forest_edges += other.forest_edges;
        self.rounds = self.rounds.max(other.rounds);
    }
}

/// The figures of the benchmark.
#[derive(Serialize)]
struct ClusterReport {
    documents: u64,
    workers: usize,
    processes: usize,
    memory_bytes: u64,
    noise: Noise,
    cold: bool,
    wall_s: f64,
    cpu_s: f64,
    cpu_ns_per_document: f64,
    peak_anonymous_bytes: Option<u64>,
    exchanged_bytes_per_document: f64,
    exchanged_records_per_document: f64,
    duplicates_per_document: f64,
    survivors_per_document: f64,
    pair_records_per_document: f64,
    edges_per_document: f64,
    forest_edges_per_document: f64,
    rounds: u64,
    phases: Vec<Span>,
    checksum: String,
    labels_match: Option<bool>,
    single_thread_s: Option<f64>,
    /// Seconds of the single thread over those of the stage.
    times_single_thread: Option<f64>,
}

/// Labels that were found in another way.
struct Baseline {
    /// The seconds of the single thread, if it found them.
    seconds: Option<f64>,
    /// Their checksum.
    checksum: u64,
}

impl Bench for ClusterArgs {
    type Task = ClustersTask;

    fn bench(&self, as_text: impl Fn(ClustersTask) -> Result<String>) -> Result<BenchOutcome> {
        if self.by_construction && u32::try_from(self.vectors.documents).is_err() {
            bail!("--by-construction is for fewer than 4,294,967,296 documents");
        }
        let temporary = Temporary::of_process();
        let task = ClustersTask {
            folder: self.vectors.folder(&temporary, "vectors"),
            documents: self.vectors.documents,
            resources: self.vectors.resources(&temporary),
        };
        let plan =
            DatasetPlan { documents: task.documents, shards: SHARDS, noise: self.noise, change: 0.0, unlike: None };
        self.vectors.write(&[(&task.folder, plan)])?;
        // Writes to the disk that are still under way would disturb the measurement.
        sync_folder(&task.folder)?;
        if self.cold {
            task.dataset().forget()?;
        }
        let measured = run(&task, Placement::of(self.vectors.processes.0), as_text)?;
        let baseline = match (self.no_check, self.by_construction) {
            (true, _) => None,
            (false, true) => {
                let threads = std::thread::available_parallelism().map_or(1, usize::from);
                let checksum = label_checksum(&MadeVectors::new(task.documents, self.noise), threads)?;
                Some(Baseline { seconds: None, checksum })
            }
            (false, false) => Some(baseline(&task.dataset())?),
        };
        let report = ClusterReport::new(self, measured, baseline);
        BenchOutcome::new(report.labels_match != Some(false), &report, self.vectors.json)
    }
}

/// Clusters the vectors on a single thread, with all of them in memory.
fn baseline(dataset: &Dataset) -> Result<Baseline> {
    let vectors = read_all(dataset)?;
    let begun = Instant::now();
    let roots = single_thread::clusters(&vectors, Method::default().agreements);
    let seconds = begun.elapsed().as_secs_f64();
    let labels = roots.iter().enumerate().map(|(document, root)| (document as u64, u64::from(*root)));
    Ok(Baseline { seconds: Some(seconds), checksum: single_thread::checksum(labels) })
}

fn read_all(dataset: &Dataset) -> Result<Vec<[u64; WIDTH]>> {
    let mut vectors = Vec::with_capacity(dataset.documents as usize);
    let mut chunks = files(dataset, 0..dataset.shards).chunks();
    while let Some(chunk) = chunks.next_chunk()? {
        vectors.extend_from_slice(chunk.words().as_chunks().0);
    }
    Ok(vectors)
}

impl ClusterReport {
    fn new(args: &ClusterArgs, measured: Measured<ClusterCounts>, baseline: Option<Baseline>) -> ClusterReport {
        let Seconds { wall: wall_s, cpu: cpu_s } = measured.seconds(|span| span.stage != Stage::Tables);
        let documents = args.vectors.documents;
        let per_document = |count: u64| count as f64 / documents.max(1) as f64;
        let counts = measured.counts;
        ClusterReport {
            documents,
            workers: args.vectors.workers.0,
            processes: args.vectors.processes.0,
            memory_bytes: args.vectors.memory(),
            noise: args.noise,
            cold: args.cold,
            wall_s,
            cpu_s,
            cpu_ns_per_document: cpu_s * 1e9 / documents.max(1) as f64,
            peak_anonymous_bytes: measured.peak_anonymous_bytes,
            exchanged_bytes_per_document: per_document(measured.exchanged_bytes),
            exchanged_records_per_document: per_document(measured.exchanged_records),
            duplicates_per_document: per_document(counts.duplicates),
            survivors_per_document: per_document(counts.survivors),
            pair_records_per_document: per_document(counts.pair_records),
            edges_per_document: per_document(counts.edges),
            forest_edges_per_document: per_document(counts.forest_edges),
            rounds: counts.rounds,
            phases: measured.phases,
            checksum: format!("{:016x}", measured.checksum),
            labels_match: baseline.as_ref().map(|baseline| baseline.checksum == measured.checksum),
            single_thread_s: baseline.as_ref().and_then(|baseline| baseline.seconds),
            times_single_thread: baseline.and_then(|baseline| Some(baseline.seconds? / wall_s.max(1e-9))),
        }
    }
}

impl Measure for ClustersTask {
    type Counts = ClusterCounts;

    fn threads(&self) -> usize {
        self.resources.threads
    }

    fn measure(&self, cx: &mut Context) -> Result<WorkerResult<ClusterCounts>> {
        measure_clusters(cx, self)
    }
}

/// The cluster stage at one worker, and the checksum of its labels.
fn measure_clusters(cx: &mut Context, task: &ClustersTask) -> Result<WorkerResult<ClusterCounts>> {
    let dataset = task.dataset();
    let vectors = OwnedVectors::new(cx, &dataset);
    let (mut cx, stage) = vectors.stage(cx, vectors.files(&dataset), &task.resources)?;
    let cx = &mut cx;
    let document_of = Arc::new(document_numbers(&vectors, &stage.numbering));
    cx.barrier()?;
    let OwnClusters { duplicates, survivors, stats } = clusters(cx, &stage, {
        let document_of = document_of.clone();
        move |vector| document_of(vector)
    })?;
    cx.barrier()?;
    cx.enter(Stage::Tables);
    let (mut duplicates, mut survivors) = (duplicates.iter().peekable(), survivors.iter().peekable());
    let labels = (0..vectors.owned.len() as u32).map(|vector| {
        let clustered =
            duplicates.next_if(|(own, ..)| *own == vector).or_else(|| survivors.next_if(|(own, ..)| *own == vector));
        let document = document_of(vector as usize);
        (document, clustered.map_or(document, |(_, root, _)| root))
    });
    let checksum = single_thread::checksum(labels);
    let counts = ClusterCounts {
        duplicates: stats.duplicates,
        survivors: stats.survivors,
        pair_records: stats.pair_records,
        edges: stats.edges,
        forest_edges: stats.forest_edges,
        rounds: stats.rounds,
    };
    Ok(WorkerResult { counts, checksum })
}

/// The number of the document of each owned vector: documents are numbered through all shards, in
/// the order of shards.
fn document_numbers(vectors: &OwnedVectors, numbering: &Numbering) -> impl Fn(usize) -> u64 + Send + Sync + use<> {
    let owned_rows: Vec<u64> = vectors.owned.shards().map(|shard| vectors.rows[shard as usize]).collect();
    let firsts: Vec<u64> = vectors.owned.shards().map(|shard| numbering.first(shard)).collect();
    let owned = Numbering::new(&owned_rows);
    move |vector: usize| {
        let place = owned.id(vector as u64);
        firsts[place.shard() as usize] + place.row()
    }
}

impl fmt::Display for ClusterReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} documents, {} process(es) of {} worker(s), memory {}",
            grouped(self.documents),
            self.processes,
            self.workers,
            Bytes(self.memory_bytes)
        )?;
        writeln!(f, "{:<14} {:>9} {:>9} {:>12}", "phase", "seconds", "CPU s", "CPU ns/doc")?;
        let documents = self.documents.max(1) as f64;
        for Span { stage, wall_s, cpu_s } in self.phases.iter().filter(|span| span.stage != Stage::Tables) {
            writeln!(f, "{:<14} {wall_s:>9.3} {cpu_s:>9.3} {:>12.1}", stage.title(), cpu_s * 1e9 / documents)?;
        }
        writeln!(f, "{:<14} {:>9.3} {:>9.3} {:>12.1}", "all", self.wall_s, self.cpu_s, self.cpu_ns_per_document)?;
        writeln!(
            f,
            "per document: {:.3} duplicates, {:.3} survivors, {:.3} pair records, {:.3} edges; exchanged {:.1} bytes in {:.2} records",
            self.duplicates_per_document,
            self.survivors_per_document,
            self.pair_records_per_document,
            self.edges_per_document,
            self.exchanged_bytes_per_document,
            self.exchanged_records_per_document
        )?;
        if let Some(peak) = self.peak_anonymous_bytes {
            let per_document = peak as f64 / documents;
            writeln!(f, "peak anonymous memory: {}, {per_document:.1} bytes per document", Bytes(peak))?;
        }
        writeln!(f, "rounds of label propagation: {}; checksum of labels {}", self.rounds, self.checksum)?;
        if let Some(same) = self.labels_match {
            let same = if same { "the same labels" } else { "THE LABELS DIFFER: a fault in this program" };
            match (self.single_thread_s, self.times_single_thread) {
                (Some(single), Some(times)) => {
                    writeln!(f, "one thread, sequential union-find: {single:.2} s, {times:.2} times as long; {same}")?;
                }
                _ => writeln!(f, "labels by construction: {same}")?,
            }
        }
        Ok(())
    }
}
