//! `nigh bench cluster`: the cluster stage on synthetic vectors of the study's distribution, beside a single thread.

use std::fmt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result};
use clap::Args;
use indicatif::ProgressBar;
use serde::{Deserialize, Serialize};
use timely::worker::Worker;

use super::harness::{Counted, Measure, Measured, Placement, run};
use super::temporary::Temporary;
use crate::bench::synthetic::{Dataset, Noise, SHARDS, Synthetic, WIDTH, files};
use crate::config::{Bytes, Config, Count, Method};
use crate::features::{VectorKeys, polynomials};
use crate::operators::InProcess;
use crate::operators::clustering::{Clustering, Clusters, clusters};
use crate::operators::exchange::barrier;
use crate::report::grouped;
use crate::state::sync_folder;
use crate::structures::{Numbering, Ownership};
use crate::watch::{Span, Stage, Watch};

/// Arguments of `nigh bench cluster`.
#[derive(Args)]
pub(crate) struct ClusterArgs {
    /// Documents.
    #[arg(long, value_name = "N")]
    documents: u64,
    /// Worker threads of each process.
    #[arg(long, default_value = "2", value_name = "N")]
    workers: Count,
    /// Processes on this machine.
    #[arg(long, default_value = "1", value_name = "N")]
    processes: Count,
    /// Memory of all processes; half of the machine's where it is not given.
    #[arg(long, value_name = "BYTES")]
    memory: Option<Bytes>,
    /// Shares of documents outside of clusters that borrow one supershingle of another document, and two of two others.
    #[arg(long, default_value_t, value_name = "ONE,TWO")]
    noise: Noise,
    /// Where the vectors are kept, to be used again; made in a temporary folder and removed where it is not given.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Drop the vectors from the page cache first.
    #[arg(long)]
    cold: bool,
    /// No single thread beside, and no check of the labels against it.
    #[arg(long)]
    no_check: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// What the processes of the benchmark are told.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ClustersTask {
    folder: PathBuf,
    documents: u64,
    /// Worker threads of each process.
    pub(crate) workers: usize,
    worker_memory: u64,
    scratch: PathBuf,
}

/// What was measured.
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

pub(crate) fn bench_cluster(
    args: &ClusterArgs,
    as_text: impl Fn(ClustersTask) -> Result<String>,
) -> Result<(bool, String)> {
    let (workers, processes) = (args.workers.0, args.processes.0);
    let temporary = Temporary::new();
    let folder = args.data.clone().unwrap_or_else(|| temporary.folder.join("vectors"));
    let dataset = make(&folder, args)?;
    if args.cold {
        dataset.forget()?;
    }
    let memory = args.memory.map_or_else(|| Config::default().memory(), |bytes| bytes.0);
    let task = ClustersTask {
        folder,
        documents: args.documents,
        workers,
        worker_memory: memory / (workers * processes) as u64,
        scratch: temporary.folder.join("scratch"),
    };
    let Measured { phases, sums, rounds, exchanged, checksum, peak_anonymous_bytes, .. } =
        run(&task, Placement::of(processes), as_text)?;
    let (mut labels_match, mut single_thread_s) = (None, None);
    if !args.no_check {
        let vectors = read_all(&dataset)?;
        let begun = Instant::now();
        let roots = crate::bench::single_thread::clusters(&vectors, Method::default().agreements);
        single_thread_s = Some(begun.elapsed().as_secs_f64());
        let numbered = roots.iter().enumerate().map(|(document, root)| (document as u64, u64::from(*root)));
        labels_match = Some(crate::bench::single_thread::checksum(numbered) == checksum);
    }
    let of_phases =
        |of: fn(&Span) -> f64| phases.iter().filter(|span| span.stage != Stage::Tables).map(of).sum::<f64>();
    let (wall_s, cpu_s) = (of_phases(|span| span.wall_s), of_phases(|span| span.cpu_s));
    let each = |count: u64| count as f64 / args.documents.max(1) as f64;
    let report = ClusterReport {
        documents: args.documents,
        workers,
        processes,
        memory_bytes: memory,
        noise: args.noise,
        cold: args.cold,
        wall_s,
        cpu_s,
        cpu_ns_per_document: cpu_s * 1e9 / args.documents.max(1) as f64,
        peak_anonymous_bytes,
        exchanged_bytes_per_document: each(exchanged.0),
        exchanged_records_per_document: each(exchanged.1),
        duplicates_per_document: each(sums[0]),
        survivors_per_document: each(sums[1]),
        pair_records_per_document: each(sums[2]),
        edges_per_document: each(sums[3]),
        forest_edges_per_document: each(sums[4]),
        rounds,
        phases,
        checksum: format!("{checksum:016x}"),
        labels_match,
        single_thread_s,
        times_single_thread: single_thread_s.map(|single| single / wall_s.max(1e-9)),
    };
    let text = match args.json {
        true => format!("{}\n", serde_json::to_string(&report).context("figures are plain data")?),
        false => report.to_string(),
    };
    Ok((labels_match != Some(false), text))
}

fn make(folder: &Path, args: &ClusterArgs) -> Result<Dataset> {
    let synthetic = Synthetic::new(args.documents, args.noise);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let bar = if args.json { ProgressBar::hidden() } else { ProgressBar::new(args.documents) };
    let dataset = Dataset::make(folder, &synthetic, args.documents, (args.noise, 0.0), SHARDS, threads, |documents| {
        bar.inc(documents)
    })?;
    bar.finish_and_clear();
    // What is still on its way to the disk would be in the way of what is measured.
    sync_folder(folder)?;
    Ok(dataset)
}

fn read_all(dataset: &Dataset) -> Result<Vec<[u64; WIDTH]>> {
    let mut vectors = Vec::with_capacity(dataset.documents as usize);
    let mut chunks = files(dataset, 0..dataset.shards).chunks();
    while let Some(chunk) = chunks.next()? {
        vectors.extend_from_slice(chunk.words().as_chunks().0);
    }
    Ok(vectors)
}

impl Measure for ClustersTask {
    fn workers(&self) -> usize {
        self.workers
    }

    fn measure(&self, worker: &mut Worker, shared: &Arc<InProcess>, watch: &Arc<Watch>) -> Result<Counted> {
        measure_clusters(worker, self, shared, watch)
    }
}

/// The stage as one worker does it.
fn measure_clusters(
    worker: &mut Worker,
    task: &ClustersTask,
    shared: &Arc<InProcess>,
    watch: &Arc<Watch>,
) -> Result<Counted> {
    let method = Method::default();
    let dataset = Dataset { folder: task.folder.clone(), documents: task.documents, shards: SHARDS };
    let rows = dataset.rows();
    let owned = Ownership::new(worker.index(), worker.peers(), &rows);
    let numbering = Rc::new(Numbering::new(&rows));
    let clustering = Clustering {
        files: files(&dataset, owned.shards()),
        numbering: numbering.clone(),
        keys: Rc::new(VectorKeys::new(&method, &polynomials(method.seed, method.features))),
        agreements: method.agreements,
        memory: Clustering::in_flight(task.worker_memory, &rows, worker.peers())?,
        scratch: task.scratch.clone(),
        shared: shared.clone(),
        threads: task.workers,
        watch: watch.clone(),
    };
    // The names of vectors are their numbers: documents are numbered through all shards.
    let own_rows: Vec<u64> = owned.shards().map(|shard| rows[shard as usize]).collect();
    let firsts: Vec<u64> = owned.shards().map(|shard| numbering.first(shard)).collect();
    let own = Numbering::new(&own_rows);
    let name = Arc::new(move |vector: usize| {
        let place = own.id(vector as u64);
        firsts[place.shard() as usize] + place.row()
    });
    let named = name.clone();
    barrier(worker, watch)?;
    let Clusters { duplicates, survivors, stats } = clusters(worker, &clustering, move |vector| named(vector))?;
    barrier(worker, watch)?;
    watch.enter(Stage::Tables);
    let (mut duplicates, mut survivors) = (duplicates.iter().peekable(), survivors.iter().peekable());
    let labels = (0..owned.len() as u32).map(|own| {
        let found = duplicates.next_if(|(one, ..)| *one == own).or_else(|| survivors.next_if(|(one, ..)| *one == own));
        let name = name(own as usize);
        (name, found.map_or(name, |(_, root, _)| root))
    });
    let checksum = crate::bench::single_thread::checksum(labels);
    let sums = vec![stats.duplicates, stats.survivors, stats.pair_records, stats.edges, stats.forest_edges];
    Ok(Counted { sums, share: 0, rounds: stats.rounds, checksum })
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
            "a document: {:.3} duplicates, {:.3} survivors, {:.3} pair records, {:.3} edges; exchanged {:.1} bytes in {:.2} records",
            self.duplicates_per_document,
            self.survivors_per_document,
            self.pair_records_per_document,
            self.edges_per_document,
            self.exchanged_bytes_per_document,
            self.exchanged_records_per_document
        )?;
        if let Some(peak) = self.peak_anonymous_bytes {
            let each = peak as f64 / documents;
            writeln!(f, "anonymous memory at the peak: {}, {each:.1} bytes a document", Bytes(peak))?;
        }
        writeln!(f, "rounds of label propagation: {}; checksum of labels {}", self.rounds, self.checksum)?;
        if let (Some(single), Some(times), Some(same)) =
            (self.single_thread_s, self.times_single_thread, self.labels_match)
        {
            let same = if same { "the same labels" } else { "OTHER LABELS: a fault in this program" };
            writeln!(f, "one thread, sequential union-find: {single:.2} s, {times:.2} times as long; {same}")?;
        }
        Ok(())
    }
}
