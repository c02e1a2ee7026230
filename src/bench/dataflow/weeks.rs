//! `nigh bench weeks`: the clusters of a second week, from what changed and from all documents.
//!
//! Two weeks of made-up vectors, as files; the roots of the first, as the table that a run leaves, and the postings of its
//! vectors. Then each way from these files to the roots of the second week in memory: by the delta, with what it adds to the
//! postings; by the full stage; and as `auto` chooses. Each way is run several times, by turns.

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
use crate::bench::synthetic::{Dataset, Noise, SHARDS, Synthetic, files};
use crate::config::{Bytes, Config, Count, Method, Mode, Share};
use crate::features::{VectorKeys, polynomials};
use crate::operators::InProcess;
use crate::operators::clustering::{Clustering, Clusters, clusters};
use crate::operators::delta::{Delta, NextRun, PostingIndex, choose, delta, post_all};
use crate::operators::exchange::barrier;
use crate::operators::scan::{VectorRoots, read_roots};
use crate::records::DocId;
use crate::report::grouped;
use crate::state::{PostingRuns, replace, sync_folder};
use crate::structures::{Numbering, Ownership};
use crate::tables::{Column, Table, Writer};
use crate::watch::{Span, Stage, Watch};

/// Arguments of `nigh bench weeks`.
#[derive(Args)]
pub(crate) struct WeeksArgs {
    /// Documents of either week.
    #[arg(long, value_name = "N")]
    documents: u64,
    /// The share of them whose vectors change.
    #[arg(long, value_name = "SHARE", value_parser = share)]
    change: Share,
    /// Worker threads of each process.
    #[arg(long, default_value = "2", value_name = "N")]
    workers: Count,
    /// Processes on this machine.
    #[arg(long, default_value = "1", value_name = "N")]
    processes: Count,
    /// Memory of all processes; half of the machine's where it is not given.
    #[arg(long, value_name = "BYTES")]
    memory: Option<Bytes>,
    /// Where the vectors are kept, to be used again; made in a temporary folder and removed where it is not given.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Runs of each way, by turns, of which the median is told.
    #[arg(long, default_value = "3", value_name = "N")]
    runs: Count,
    /// Go over all vectors instead of their postings.
    #[arg(long)]
    no_postings: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

fn share(text: &str) -> Result<Share, String> {
    text.parse::<f64>().map_err(|_| format!("`{text}` is no share"))?.try_into()
}

/// What the processes of the benchmark are told.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WeeksTask {
    data: PathBuf,
    documents: u64,
    change: f64,
    pub(crate) workers: usize,
    worker_memory: u64,
    scratch: PathBuf,
    /// Whether there are postings to use.
    postings: bool,
    work: WeeksStep,
}

/// The postings of the first week's vectors.
#[derive(Serialize, Deserialize)]
struct Posted {
    /// What it took to make them.
    seconds: f64,
    runs: PostingRuns,
}

impl Posted {
    fn read(list: &Path) -> Result<Posted> {
        let text = std::fs::read(list).with_context(|| format!("cannot read {}", list.display()))?;
        serde_json::from_slice(&text).with_context(|| format!("{} is damaged: remove its folder", list.display()))
    }
}

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum WeeksStep {
    /// The roots of the first week.
    First,
    /// The postings of its vectors.
    Post,
    /// The roots of the second week.
    Second(Mode),
}

impl WeeksTask {
    fn week(&self, later: bool) -> Dataset {
        let folder = self.data.join(if later { format!("after-{}", self.change) } else { "before".into() });
        Dataset { folder, documents: self.documents, shards: SHARDS }
    }

    /// The folder of the postings of the first week's vectors, and their list.
    fn postings(&self) -> (PathBuf, PathBuf) {
        let folder = self.data.join("postings");
        let list = folder.join("runs.json");
        (folder, list)
    }

    fn roots(&self, shard: u32) -> PathBuf {
        self.data.join("roots").join(format!("shard{shard:05}.parquet"))
    }
}

/// What the next run needs of the `clusters` table.
struct RootRow([i64; 3]);

impl Table for RootRow {
    const NAME: &'static str = "roots";
    const ASCENDING: &'static [&'static str] = &["doc", "similar_root", "identical_root"];

    fn columns(rows: &[Self]) -> Vec<Column> {
        let column = |name, at: usize| Column::longs(name, rows.iter().map(move |row| row.0[at]));
        vec![column("doc", 0), column("similar_root", 1), column("identical_root", 2)]
    }
}

/// What was measured.
#[derive(Serialize)]
struct WeeksReport {
    documents: u64,
    change: f64,
    workers: usize,
    processes: usize,
    memory_bytes: u64,
    /// Of each way; times are those of the run in the middle.
    runs: usize,
    changed: u64,
    /// Documents that changed, and those that were put together again for them.
    touched: u64,
    /// Documents retracted from among others, and those of them that had no certificate.
    retracted: u64,
    uncertified: u64,
    candidates: u64,
    edges: u64,
    label_differences: u64,
    delta_s: f64,
    delta_cpu_s: f64,
    full_s: f64,
    full_cpu_s: f64,
    /// What it took to make the postings of the first week's vectors, once.
    postings_s: Option<f64>,
    auto_s: f64,
    auto_choice: Mode,
    delta_over_full: f64,
    auto_over_best: f64,
    touched_over_changed: f64,
    labels_match: bool,
    /// The phases of the delta way.
    phases: Vec<Span>,
    peak_anonymous_bytes: Option<u64>,
    full_peak_anonymous_bytes: Option<u64>,
}

pub(crate) fn bench_weeks(args: &WeeksArgs, as_text: impl Fn(WeeksTask) -> Result<String>) -> Result<(bool, String)> {
    let (workers, processes) = (args.workers.0, args.processes.0);
    let temporary = Temporary::new();
    let data = args.data.clone().unwrap_or_else(|| temporary.folder.join("weeks"));
    let memory = args.memory.map_or_else(|| Config::default().memory(), |bytes| bytes.0);
    let task = |work| WeeksTask {
        data: data.clone(),
        documents: args.documents,
        change: args.change.0,
        workers,
        worker_memory: memory / (workers * processes) as u64,
        scratch: temporary.folder.join("scratch"),
        postings: !args.no_postings,
        work,
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let bar = if args.json { ProgressBar::hidden() } else { ProgressBar::new(2 * args.documents) };
    for (later, change) in [(false, 0.0), (true, args.change.0)] {
        let synthetic = Synthetic::new(args.documents, Noise::default()).later(change);
        let folder = task(WeeksStep::First).week(later).folder;
        let described = (Noise::default(), change);
        Dataset::make(&folder, &synthetic, args.documents, described, SHARDS, threads, |some| bar.inc(some))?;
    }
    bar.finish_and_clear();
    if (0..SHARDS).any(|shard| !task(WeeksStep::First).roots(shard).exists()) {
        run(&task(WeeksStep::First), Placement::of(processes), &as_text)?;
    }
    let measure = |work| run(&task(work), Placement { processes, keys: None, apart: true }, &as_text);
    let seconds = |measured: &Measured| {
        let spans = measured.phases.iter().filter(|span| span.stage != Stage::Tables);
        spans.fold((0.0, 0.0), |(wall, cpu), Span { wall_s, cpu_s, .. }| (wall + wall_s, cpu + cpu_s))
    };
    let (_, list) = task(WeeksStep::First).postings();
    if !args.no_postings && !list.exists() {
        run(&task(WeeksStep::Post), Placement::of(processes), &as_text)?;
    }
    let posted = if args.no_postings { None } else { Some(Posted::read(&list)?) };
    // What is still on its way to the disk would be in the way of what is measured.
    sync_folder(&data)?;
    let mut runs: [Vec<Measured>; 3] = Default::default();
    for run in 0..args.runs.0 {
        let mut turns: Vec<_> = runs.iter_mut().zip([Mode::Delta, Mode::Full, Mode::Auto]).collect();
        // There and back: what ran right before decides what memory costs.
        if run % 2 == 1 {
            turns.reverse();
        }
        for (runs, way) in turns {
            runs.push(measure(WeeksStep::Second(way))?);
        }
    }
    let same = |runs: &[Measured], other: &Measured| runs.iter().all(|run| run.checksum == other.checksum);
    let labels_match = runs.iter().all(|of_way| same(of_way, &runs[0][0]));
    // What runs differ says more of the machine than of the ways.
    let [by_delta, in_full, auto] = runs.map(|mut runs| {
        runs.sort_by(|a, b| seconds(a).0.total_cmp(&seconds(b).0));
        runs.swap_remove(runs.len() / 2)
    });
    let ((delta_s, delta_cpu_s), (full_s, full_cpu_s), (auto_s, _)) =
        (seconds(&by_delta), seconds(&in_full), seconds(&auto));
    let [changed, examined, retracted, uncertified, candidates, edges, label_differences] =
        std::array::from_fn(|at| by_delta.sums.get(at).copied().unwrap_or_default());
    let report = WeeksReport {
        documents: args.documents,
        change: args.change.0,
        workers,
        processes,
        memory_bytes: memory,
        runs: args.runs.0,
        changed,
        touched: changed + examined,
        retracted,
        uncertified,
        candidates,
        edges,
        label_differences,
        delta_s,
        delta_cpu_s,
        full_s,
        full_cpu_s,
        postings_s: posted.map(|posted| posted.seconds),
        auto_s,
        auto_choice: if auto.rounds == 0 { Mode::Delta } else { Mode::Full },
        delta_over_full: delta_s / full_s.max(1e-9),
        auto_over_best: auto_s / delta_s.min(full_s).max(1e-9),
        touched_over_changed: (changed + examined) as f64 / changed.max(1) as f64,
        labels_match,
        phases: by_delta.phases,
        peak_anonymous_bytes: by_delta.peak_anonymous_bytes,
        full_peak_anonymous_bytes: in_full.peak_anonymous_bytes,
    };
    let text = match args.json {
        true => format!("{}\n", serde_json::to_string(&report).context("figures are plain data")?),
        false => report.to_string(),
    };
    Ok((labels_match, text))
}

impl Measure for WeeksTask {
    fn workers(&self) -> usize {
        self.workers
    }

    fn measure(&self, worker: &mut Worker, shared: &Arc<InProcess>, watch: &Arc<Watch>) -> Result<Counted> {
        measure_weeks(worker, self, shared, watch)
    }
}

/// One way, as one worker goes it.
fn measure_weeks(
    worker: &mut Worker,
    task: &WeeksTask,
    shared: &Arc<InProcess>,
    watch: &Arc<Watch>,
) -> Result<Counted> {
    let method = Method::default();
    let rows = task.week(true).rows();
    let owned = Ownership::new(worker.index(), worker.peers(), &rows);
    let keys = Rc::new(VectorKeys::new(&method, &polynomials(method.seed, method.features)));
    let [before, after] = [false, true].map(|later| files(&task.week(later), owned.shards()));
    let (postings, list) = task.postings();
    let next_run = |made: &Path| NextRun { made: made.to_owned(), name: "run".into() };
    barrier(worker, watch)?;
    if task.work == WeeksStep::Post {
        let begun = Instant::now();
        watch.enter(Stage::Postings);
        let (next, memory) = (next_run(&postings.join("run")), (task.worker_memory, &*task.scratch));
        let runs = post_all(worker, &before, &rows, &next, memory, watch)?;
        if worker.index() == 0 {
            let posted = Posted { seconds: begun.elapsed().as_secs_f64(), runs };
            replace(&list, &serde_json::to_vec(&posted).context("a list is plain data")?)?;
        }
        return Ok(Counted { sums: vec![0; 7], ..Counted::default() });
    }
    watch.enter(Stage::Changes);
    let index = if task.postings && task.work != WeeksStep::First {
        PostingIndex::open(worker, &postings, Some(Posted::read(&list)?.runs), watch)?
    } else {
        None
    };
    let way = match task.work {
        WeeksStep::Second(asked) => {
            let has_postings = index.is_some();
            choose(worker, asked, (&before, &after), has_postings, &owned, task.worker_memory, watch)?.way
        }
        _ => Mode::Full,
    };
    let (mut said, roots) = if way == Mode::Delta {
        let files = owned.shards().map(|shard| (task.roots(shard), shard));
        let mut roots = read_roots(files, &owned)?;
        let next_run = next_run(&task.scratch.join("run"));
        let stage = Delta {
            before: &before,
            after: &after,
            owned: &owned,
            keys: &keys,
            agreements: method.agreements,
            slices: 1,
            index: index.as_ref(),
            next_run: index.is_some().then_some(&next_run),
            threads: task.workers,
            filter: &shared.changed_keys,
            forest: &shared.union_find,
            watch,
        };
        let did = delta(worker, &stage, &mut roots)?;
        let sums =
            vec![did.changed, did.examined, did.retracted, did.failed, did.candidates, did.edges, did.differences];
        (Counted { sums, ..Counted::default() }, roots)
    } else {
        let clustering = Clustering {
            files: if task.work == WeeksStep::First { before } else { after },
            numbering: Rc::new(Numbering::new(&rows)),
            keys,
            agreements: method.agreements,
            memory: Clustering::in_flight(task.worker_memory, &rows, worker.peers())?,
            scratch: task.scratch.clone(),
            shared: shared.clone(),
            threads: task.workers,
            watch: watch.clone(),
        };
        let own: Arc<Vec<DocId>> = Arc::new(owned.docs().collect());
        let named = own.clone();
        let found = clusters(worker, &clustering, move |vector| named[vector].to_table() as u64)?;
        let Clusters { duplicates, survivors, .. } = found;
        let mut roots = VectorRoots { similar: own.to_vec(), identical: own.to_vec() };
        let doc = |name: u64| DocId::from_table(name as i64);
        survivors.iter().for_each(|(vector, root, _)| roots.similar[vector as usize] = doc(root));
        for (vector, root, same) in duplicates.iter() {
            (roots.similar[vector as usize], roots.identical[vector as usize]) = (doc(root), doc(same));
        }
        (Counted { rounds: 1, sums: vec![0; 7], ..Counted::default() }, roots)
    };
    barrier(worker, watch)?;
    watch.enter(Stage::Tables);
    let labels = owned.docs().zip(roots.similar.iter().zip(&roots.identical));
    said.checksum = crate::bench::single_thread::checksum(labels.flat_map(|(doc, (similar, identical))| {
        let word = |doc: DocId| doc.to_table() as u64;
        [(2 * word(doc), word(*similar)), (2 * word(doc) + 1, word(*identical))]
    }));
    if task.work == WeeksStep::First {
        write_roots(task, &owned, &roots)?;
    }
    Ok(said)
}

fn write_roots(task: &WeeksTask, owned: &Ownership, roots: &VectorRoots) -> Result<()> {
    let mut rows = owned.docs().zip(roots.similar.iter().zip(&roots.identical)).peekable();
    for shard in owned.shards() {
        let mut writer: Writer<RootRow> = Writer::create(&task.roots(shard))?;
        while let Some((doc, (similar, identical))) = rows.next_if(|(doc, _)| doc.shard() == shard) {
            writer.push(RootRow([doc, *similar, *identical].map(DocId::to_table)))?;
        }
        writer.finish()?;
    }
    Ok(())
}

impl fmt::Display for WeeksReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} documents, {} changed, {} process(es) of {} worker(s), memory {}, {} run(s) of each way",
            grouped(self.documents),
            grouped(self.changed),
            self.processes,
            self.workers,
            Bytes(self.memory_bytes),
            self.runs
        )?;
        writeln!(
            f,
            "delta {:.3} s ({:.2} of full), full {:.3} s, auto {:.3} s ({:?}, {:.2} of the quicker way)",
            self.delta_s, self.delta_over_full, self.full_s, self.auto_s, self.auto_choice, self.auto_over_best
        )?;
        if let Some(postings_s) = self.postings_s {
            writeln!(
                f,
                "postings made in {postings_s:.3} s, once ({:.2} of full)",
                postings_s / self.full_s.max(1e-9)
            )?;
        }
        for Span { stage, wall_s, cpu_s } in self.phases.iter().filter(|span| span.stage != Stage::Tables) {
            writeln!(f, "  {:<16} {wall_s:>7.3} s, {cpu_s:>7.3} CPU s", stage.title())?;
        }
        writeln!(
            f,
            "touched {} documents, {:.2} for one that changed; {} retracted from among others, {} without certificate",
            grouped(self.touched),
            self.touched_over_changed,
            grouped(self.retracted),
            grouped(self.uncertified)
        )?;
        writeln!(
            f,
            "candidates {}; to differential {} edges, from it {} label differences",
            grouped(self.candidates),
            grouped(self.edges),
            grouped(self.label_differences)
        )?;
        if let (Some(delta), Some(full)) = (self.peak_anonymous_bytes, self.full_peak_anonymous_bytes) {
            writeln!(f, "anonymous memory at the peak: {} (full {})", Bytes(delta), Bytes(full))?;
        }
        writeln!(f, "{}", if self.labels_match { "the same labels" } else { "OTHER LABELS: a fault in this program" })
    }
}
