//! `nigh bench weeks`: the clusters of a second week of made-up vectors, by the delta and from all
//! documents.
//!
//! First it makes the input: files of vectors for both weeks, the roots of the first week as a run
//! leaves them, and the postings of its vectors. Then it measures three methods, each from these
//! files to the roots of the second week in memory:
//!
//! 1. The delta, including the postings that it adds.
//! 2. The full cluster stage.
//! 3. The method that `auto` chooses, including the choice.
//!
//! Each method runs several times, by turns, and the run with the median time is reported. All runs
//! must have the same labels.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, Result};
use clap::Args;
use nigh_bench::synthetic::{Dataset, DatasetPlan, Noise, SHARDS};
use nigh_bench::{
    AnyBench, Bench, BenchOutcome, Measure, Measured, Placement, Seconds, Temporary, WorkerCounts, WorkerResult, run,
    single_thread,
};
use nigh_exchange::Context;
use serde::{Deserialize, Serialize};

use super::setup::{OwnedVectors, VectorArgs, WorkerResources};
use crate::config::{Bytes, Count, Mode, Share};
use crate::operators::clustering::{OwnClusters, clusters};
use crate::operators::delta::{Delta, NextRun, PostingIndex, choose, delta, post_all};
use crate::operators::scan::{VectorFiles, VectorRoots, read_roots};
use crate::records::DocId;
use crate::sheet::grouped;
use crate::state::{PostingRuns, replace, sync_folder};
use crate::structures::Ownership;
use crate::tables::{Table, Writer};
use crate::watch::{Span, Stage};

/// `nigh bench weeks`.
pub(super) const BENCH: AnyBench = AnyBench::of::<WeeksArgs>("weeks");

/// The methods that are compared, in the order of a turn.
const METHODS: [Mode; 3] = [Mode::Delta, Mode::Full, Mode::Auto];

/// Clusters of a second week of made-up vectors: from the changed documents, and from all
/// documents.
#[derive(Args)]
struct WeeksArgs {
    #[command(flatten)]
    vectors: VectorArgs,
    /// Share of the documents whose vectors change in the second week.
    #[arg(long, value_name = "SHARE", value_parser = share)]
    change: Share,
    /// Runs of each method, interleaved; the median is reported.
    #[arg(long, default_value = "3", value_name = "N")]
    runs: Count,
    /// Scan all vectors instead of using their postings.
    #[arg(long)]
    no_postings: bool,
}

fn share(text: &str) -> Result<Share, String> {
    text.parse::<f64>().map_err(|_| format!("`{text}` is not a number"))?.try_into()
}

/// One step of the benchmark, as each process receives it.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct WeeksTask {
    /// The folder of the input.
    data: PathBuf,
    documents: u64,
    /// The share of documents whose vectors change.
    change: f64,
    resources: WorkerResources,
    /// Whether the delta uses postings.
    postings: bool,
    step: WeeksStep,
}

/// What the processes do.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum WeeksStep {
    /// Compute and write the roots of the first week.
    First,
    /// Write the postings of the first week's vectors.
    Post,
    /// Compute the roots of the second week, by this method.
    Second(Mode),
}

impl WeeksTask {
    fn at(&self, step: WeeksStep) -> WeeksTask {
        WeeksTask { step, ..self.clone() }
    }

    fn first_week(&self) -> Dataset {
        Dataset { folder: self.data.join("before"), documents: self.documents, shards: SHARDS }
    }

    fn second_week(&self) -> Dataset {
        let folder = self.data.join(format!("after-{}", self.change));
        Dataset { folder, documents: self.documents, shards: SHARDS }
    }

    /// The folder of the first week's postings.
    fn postings_folder(&self) -> PathBuf {
        self.data.join("postings")
    }

    /// The file that lists their runs.
    fn postings_list(&self) -> PathBuf {
        self.postings_folder().join("runs.json")
    }

    /// The file with a shard's roots of the first week.
    fn roots(&self, shard: u32) -> PathBuf {
        self.data.join("roots").join(format!("shard{shard:05}.parquet"))
    }
}

/// The content of `runs.json`: the postings of the first week's vectors.
#[derive(Serialize, Deserialize)]
struct BenchPostings {
    /// Seconds to make them.
    seconds: f64,
    runs: PostingRuns,
}

impl BenchPostings {
    fn read(list: &Path) -> Result<BenchPostings> {
        let text = std::fs::read(list).with_context(|| format!("cannot read {}", list.display()))?;
        serde_json::from_slice(&text).with_context(|| format!("{} is damaged: remove its folder", list.display()))
    }
}

/// What the benchmark counts; sums over workers, except for `method`. All but `method` are 0 unless
/// the delta ran.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct WeeksCounts {
    /// The method that ran, delta or full, the same at all workers; `None` if no roots were
    /// computed.
    method: Option<Mode>,
    /// Changed documents.
    changed: u64,
    /// Unchanged documents of clusters that were examined for a split.
    examined: u64,
    /// Documents retracted from clusters with remaining members.
    retracted: u64,
    /// Retracted documents without a certificate.
    uncertified: u64,
    /// Unchanged documents that might share a key with a changed one.
    candidates: u64,
    /// Edges that differential dataflow received.
    edges: u64,
    /// Label differences that it returned.
    label_differences: u64,
}

impl WorkerCounts for WeeksCounts {
    fn merge(&mut self, other: &WeeksCounts) {
        self.method = self.method.or(other.method);
        self.changed += other.changed;
        self.examined += other.examined;
        self.retracted += other.retracted;
        self.uncertified += other.uncertified;
        self.candidates += other.candidates;
        self.edges += other.edges;
        self.label_differences += other.label_differences;
    }
}

/// The columns of the table `clusters` that a delta reads.
#[derive(Table)]
#[table(name = "roots")]
struct RootRow {
    #[column(ascending)]
    doc: i64,
    #[column(ascending)]
    similar_root: i64,
    #[column(ascending)]
    identical_root: i64,
}

/// The figures of the benchmark.
#[derive(Serialize)]
struct WeeksReport {
    documents: u64,
    change: f64,
    workers: usize,
    processes: usize,
    memory_bytes: u64,
    /// Runs of each method. Times are of the run with the median time.
    runs: usize,
    changed: u64,
    /// Changed documents, and unchanged documents of clusters that were examined for a split.
    touched: u64,
    /// Documents retracted from clusters with remaining members.
    retracted: u64,
    /// Retracted documents without a certificate.
    uncertified: u64,
    candidates: u64,
    edges: u64,
    label_differences: u64,
    delta_s: f64,
    delta_cpu_s: f64,
    full_s: f64,
    full_cpu_s: f64,
    /// Seconds to make the postings of the first week's vectors, once.
    postings_s: Option<f64>,
    auto_s: f64,
    auto_choice: Mode,
    delta_over_full: f64,
    auto_over_best: f64,
    touched_over_changed: f64,
    labels_match: bool,
    /// The stages of the delta.
    phases: Vec<Span>,
    peak_anonymous_bytes: Option<u64>,
    full_peak_anonymous_bytes: Option<u64>,
}

impl Bench for WeeksArgs {
    type Task = WeeksTask;

    fn bench(&self, as_text: impl Fn(WeeksTask) -> Result<String>) -> Result<BenchOutcome> {
        let temporary = Temporary::of_process();
        let task = WeeksTask {
            data: self.vectors.folder(&temporary, "weeks"),
            documents: self.vectors.documents,
            change: self.change.0,
            resources: self.vectors.resources(&temporary),
            postings: !self.no_postings,
            step: WeeksStep::First,
        };
        let postings_s = make_input(self, &task, &as_text)?;
        let runs = measure_methods(self, &task, &as_text)?;
        let report = WeeksReport::new(self, postings_s, runs)?;
        BenchOutcome::new(report.labels_match, &report, self.vectors.json)
    }
}

/// Makes the input, except the files that are there already: vectors of both weeks, roots and
/// postings of the first. Returns the seconds that the postings took when they were made; `None`
/// without postings.
fn make_input(
    args: &WeeksArgs,
    task: &WeeksTask,
    as_text: &impl Fn(WeeksTask) -> Result<String>,
) -> Result<Option<f64>> {
    let placement = Placement::of(args.vectors.processes.0);
    let (noise, unlike) = (Noise::default(), None);
    let plan = |change| DatasetPlan { documents: task.documents, shards: SHARDS, noise, change, unlike };
    let (first, second) = (task.first_week(), task.second_week());
    args.vectors.write(&[(&first.folder, plan(0.0)), (&second.folder, plan(task.change))])?;
    if (0..SHARDS).any(|shard| !task.roots(shard).exists()) {
        run(&task.at(WeeksStep::First), placement, as_text)?;
    }
    let list = task.postings_list();
    if task.postings && !list.exists() {
        run(&task.at(WeeksStep::Post), placement, as_text)?;
    }
    let postings = if task.postings { Some(BenchPostings::read(&list)?) } else { None };
    // Writes to the disk that are still under way would disturb the measurement.
    sync_folder(&task.data)?;
    Ok(postings.map(|postings| postings.seconds))
}

/// The measured runs of each of [`METHODS`].
type RunsByMethod = [Vec<Measured<WeeksCounts>>; METHODS.len()];

/// Runs each method `--runs` times, by turns, in new processes.
fn measure_methods(
    args: &WeeksArgs,
    task: &WeeksTask,
    as_text: &impl Fn(WeeksTask) -> Result<String>,
) -> Result<RunsByMethod> {
    let placement = Placement { processes: args.vectors.processes.0, keys: None, apart: true };
    let mut runs = RunsByMethod::default();
    for turn in 0..args.runs.0 {
        let mut methods: Vec<_> = runs.iter_mut().zip(METHODS).collect();
        // Every second turn is in reverse order, because the run before influences what memory
        // costs.
        if turn % 2 == 1 {
            methods.reverse();
        }
        for (runs, method) in methods {
            runs.push(run(&task.at(WeeksStep::Second(method)), placement, as_text)?);
        }
    }
    Ok(runs)
}

/// The time of a run without the stage that only computes the checksum.
fn seconds(measured: &Measured<WeeksCounts>) -> Seconds {
    measured.seconds(|span| span.stage != Stage::Tables)
}

impl WeeksReport {
    fn new(args: &WeeksArgs, postings_s: Option<f64>, runs: RunsByMethod) -> Result<WeeksReport> {
        let checksum = runs[0][0].checksum;
        let labels_match = runs.iter().flatten().all(|run| run.checksum == checksum);
        // The median: differences between runs of one method are due to the machine.
        let [by_delta, in_full, auto] = runs.map(|mut runs| {
            runs.sort_by(|a, b| seconds(a).wall.total_cmp(&seconds(b).wall));
            runs.swap_remove(runs.len() / 2)
        });
        let (delta, full, auto_s) = (seconds(&by_delta), seconds(&in_full), seconds(&auto).wall);
        let counts = by_delta.counts;
        let touched = counts.changed + counts.examined;
        Ok(WeeksReport {
            documents: args.vectors.documents,
            change: args.change.0,
            workers: args.vectors.workers.0,
            processes: args.vectors.processes.0,
            memory_bytes: args.vectors.memory(),
            runs: args.runs.0,
            changed: counts.changed,
            touched,
            retracted: counts.retracted,
            uncertified: counts.uncertified,
            candidates: counts.candidates,
            edges: counts.edges,
            label_differences: counts.label_differences,
            delta_s: delta.wall,
            delta_cpu_s: delta.cpu,
            full_s: full.wall,
            full_cpu_s: full.cpu,
            postings_s,
            auto_s,
            auto_choice: auto.counts.method.context("every run of the second week has a method")?,
            delta_over_full: delta.wall / full.wall.max(1e-9),
            auto_over_best: auto_s / delta.wall.min(full.wall).max(1e-9),
            touched_over_changed: touched as f64 / counts.changed.max(1) as f64,
            labels_match,
            phases: by_delta.phases,
            peak_anonymous_bytes: by_delta.peak_anonymous_bytes,
            full_peak_anonymous_bytes: in_full.peak_anonymous_bytes,
        })
    }
}

impl Measure for WeeksTask {
    type Counts = WeeksCounts;

    fn threads(&self) -> usize {
        self.resources.threads
    }

    fn measure(&self, cx: &mut Context) -> Result<WorkerResult<WeeksCounts>> {
        let weeks = WeeksWorker::new(cx, self);
        cx.barrier()?;
        match self.step {
            WeeksStep::First => weeks.first_week(cx),
            WeeksStep::Post => weeks.post(cx),
            WeeksStep::Second(mode) => weeks.second_week(cx, mode),
        }
    }
}

/// One worker of the benchmark.
struct WeeksWorker<'a> {
    task: &'a WeeksTask,
    vectors: OwnedVectors,
    /// The owned files of the first week.
    before: VectorFiles,
    /// The owned files of the second week.
    after: VectorFiles,
}

impl<'a> WeeksWorker<'a> {
    fn new(cx: &Context, task: &'a WeeksTask) -> WeeksWorker<'a> {
        let vectors = OwnedVectors::new(cx, &task.second_week());
        let (before, after) = (vectors.files(&task.first_week()), vectors.files(&task.second_week()));
        WeeksWorker { task, vectors, before, after }
    }

    /// Computes and writes the roots of the first week.
    fn first_week(&self, cx: &mut Context) -> Result<WorkerResult<WeeksCounts>> {
        cx.enter(Stage::Changes);
        let roots = self.full(cx, &self.before)?;
        let checksum = self.checksum(cx, &roots)?;
        write_roots(self.task, &self.vectors.owned, &roots)?;
        Ok(WorkerResult { counts: WeeksCounts { method: Some(Mode::Full), ..WeeksCounts::default() }, checksum })
    }

    /// Writes the postings of the first week's vectors, and their list.
    fn post(&self, cx: &mut Context) -> Result<WorkerResult<WeeksCounts>> {
        let begun = Instant::now();
        cx.enter(Stage::Postings);
        let resources = &self.task.resources;
        let next_run = NextRun { made: self.task.postings_folder().join("run"), name: "run".into() };
        let runs =
            post_all(cx, &self.before, &self.vectors.rows, &next_run, resources.worker_memory, &resources.scratch)?;
        if cx.index() == 0 {
            let postings = BenchPostings { seconds: begun.elapsed().as_secs_f64(), runs };
            let text = serde_json::to_vec(&postings).context("a list is plain data")?;
            replace(&self.task.postings_list(), &text)?;
        }
        Ok(WorkerResult::default())
    }

    /// Computes the roots of the second week by the delta or the full stage, as `mode` says or
    /// `auto` chooses.
    fn second_week(&self, cx: &mut Context, mode: Mode) -> Result<WorkerResult<WeeksCounts>> {
        let task = self.task;
        cx.enter(Stage::Changes);
        let index = if task.postings {
            let runs = BenchPostings::read(&task.postings_list())?.runs;
            PostingIndex::open(cx, &task.postings_folder(), Some(runs))?
        } else {
            None
        };
        let (weeks, owned) = ((&self.before, &self.after), &self.vectors.owned);
        let choice = choose(cx, mode, weeks, index.is_some(), owned, task.resources.worker_memory)?;
        let (counts, roots) = if choice.way == Mode::Delta {
            self.delta(cx, index.as_ref())?
        } else {
            let counts = WeeksCounts { method: Some(Mode::Full), ..WeeksCounts::default() };
            (counts, self.full(cx, &self.after)?)
        };
        Ok(WorkerResult { counts, checksum: self.checksum(cx, &roots)? })
    }

    /// Updates the roots of the first week to those of the second.
    fn delta(&self, cx: &mut Context, index: Option<&PostingIndex>) -> Result<(WeeksCounts, VectorRoots)> {
        let (task, owned) = (self.task, &self.vectors.owned);
        let files = owned.shards().map(|shard| (task.roots(shard).into(), shard));
        let mut roots = read_roots(files, owned)?;
        let next_run = NextRun { made: task.resources.scratch.join("run"), name: "run".into() };
        let stage = Delta {
            before: &self.before,
            after: &self.after,
            owned,
            keys: &self.vectors.keys,
            agreements: self.vectors.method.agreements,
            slices: 1,
            index,
            next_run: index.is_some().then_some(&next_run),
            threads: task.resources.threads,
        };
        let stats = delta(cx, &stage, &mut roots)?;
        let counts = WeeksCounts {
            method: Some(Mode::Delta),
            changed: stats.changed,
            examined: stats.examined,
            retracted: stats.retracted,
            uncertified: stats.uncertified,
            candidates: stats.candidates,
            edges: stats.edges,
            label_differences: stats.differences,
        };
        Ok((counts, roots))
    }

    /// Computes roots from all vectors of a week.
    fn full(&self, cx: &mut Context, files: &VectorFiles) -> Result<VectorRoots> {
        let (mut cx, stage) = self.vectors.stage(cx, files.clone(), &self.task.resources)?;
        let cx = &mut cx;
        let docs: Arc<Vec<DocId>> = Arc::new(self.vectors.owned.docs().collect());
        let OwnClusters { duplicates, survivors, .. } = clusters(cx, &stage, {
            let docs = docs.clone();
            move |vector| docs[vector].to_table() as u64
        })?;
        let mut roots = VectorRoots { similar: docs.to_vec(), identical: docs.to_vec() };
        let doc = |name: u64| DocId::from_table(name as i64);
        for (vector, root, _) in survivors.iter() {
            roots.similar[vector as usize] = doc(root);
        }
        for (vector, root, identical) in duplicates.iter() {
            roots.similar[vector as usize] = doc(root);
            roots.identical[vector as usize] = doc(identical);
        }
        Ok(roots)
    }

    /// The checksum of all roots of this worker: a document counts twice, once for each of its
    /// roots.
    fn checksum(&self, cx: &mut Context, roots: &VectorRoots) -> Result<u64> {
        cx.barrier()?;
        cx.enter(Stage::Tables);
        let labels = self.vectors.owned.docs().zip(roots.similar.iter().zip(&roots.identical));
        Ok(single_thread::checksum(labels.flat_map(|(doc, (similar, identical))| {
            let word = |doc: DocId| doc.to_table() as u64;
            [(2 * word(doc), word(*similar)), (2 * word(doc) + 1, word(*identical))]
        })))
    }
}

/// Writes the roots of the first week, one file per shard, for the later runs.
fn write_roots(task: &WeeksTask, owned: &Ownership, roots: &VectorRoots) -> Result<()> {
    let mut rows = owned.docs().zip(roots.similar.iter().zip(&roots.identical)).peekable();
    for shard in owned.shards() {
        let mut writer: Writer<RootRow> = Writer::create(&task.roots(shard))?;
        while let Some((doc, (similar, identical))) = rows.next_if(|(doc, _)| doc.shard() == shard) {
            let [doc, similar_root, identical_root] = [doc, *similar, *identical].map(DocId::to_table);
            writer.push(RootRow { doc, similar_root, identical_root })?;
        }
        writer.finish()?;
    }
    Ok(())
}

impl fmt::Display for WeeksReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} documents, {} changed, {} process(es) of {} worker(s), memory {}, {} run(s) of each method",
            grouped(self.documents),
            grouped(self.changed),
            self.processes,
            self.workers,
            Bytes(self.memory_bytes),
            self.runs
        )?;
        writeln!(
            f,
            "delta {:.3} s ({:.2} of full), full {:.3} s, auto {:.3} s ({:?}, {:.2} of the faster method)",
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
            "touched {} documents, {:.2} per changed document; {} retracted from others, {} of them without certificate",
            grouped(self.touched),
            self.touched_over_changed,
            grouped(self.retracted),
            grouped(self.uncertified)
        )?;
        writeln!(
            f,
            "candidates {}; differential dataflow received {} edges and returned {} label differences",
            grouped(self.candidates),
            grouped(self.edges),
            grouped(self.label_differences)
        )?;
        if let (Some(delta), Some(full)) = (self.peak_anonymous_bytes, self.full_peak_anonymous_bytes) {
            writeln!(f, "peak anonymous memory: {} (full {})", Bytes(delta), Bytes(full))?;
        }
        writeln!(
            f,
            "{}",
            if self.labels_match { "the same labels" } else { "THE LABELS DIFFER: a fault in this program" }
        )
    }
}
