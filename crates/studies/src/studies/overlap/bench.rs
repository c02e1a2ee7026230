//! `nigh bench overlap`: all pairs of pages of a made-up web that share enough chunks (Shivakumar
//! 1998).

use std::cell::RefCell;
use std::fmt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use anyhow::{Result, ensure};
use clap::Args;
use nigh_bench::synthetic::ChunkSets;
use nigh_bench::{
    AnyBench, Bench, BenchOutcome, Measure, Measured, Placement, Seconds, Temporary, WorkerCounts, WorkerResult, run,
};
use nigh_exchange::Context;
use serde::{Deserialize, Serialize};

use super::Overlap;
use crate::config::{Bytes, Config, Count};
use crate::operators::set_join::{DistinctSet, Element, Requirement, SetJoin, SetJoinStage, WeightedSets, set_join};
use crate::records::{fold, mix};
use crate::sheet::grouped;
use crate::studies::Study;
use crate::tables::{Table, Writer};
use crate::watch::Stage;

/// `nigh bench overlap`.
pub(super) const BENCH: AnyBench = AnyBench::of::<OverlapArgs>(Overlap::NAME);

/// The fewest pages of a made-up web.
const LEAST: u32 = 200;

/// Pairs of pages of a made-up web that share enough chunks.
#[derive(Args)]
struct OverlapArgs {
    /// Number of documents.
    #[arg(long, value_name = "N")]
    documents: u32,
    /// Chunks that two documents share at least.
    #[arg(long, default_value = "15", value_name = "N")]
    least: u32,
    /// Let each page of the large template family lack a tenth of the template.
    #[arg(long)]
    ragged: bool,
    /// Rows that a family has at least.
    #[arg(long, default_value = "200", value_name = "N")]
    family: u64,
    /// Pairs to look at, at most.
    #[arg(long, default_value = "1000000000", value_name = "N")]
    max_pairs: u64,
    /// Worker threads of each process.
    #[arg(long, default_value = "2", value_name = "N")]
    workers: Count,
    /// Processes on this machine.
    #[arg(long, default_value = "1", value_name = "N")]
    processes: Count,
    /// Memory of all processes together for records in flight; half of the machine's by default.
    #[arg(long, value_name = "BYTES")]
    memory: Option<Bytes>,
    /// Write the chunks to this Parquet file (`doc`, `chunk`), for comparison with other programs,
    /// and stop.
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// The benchmark as each process receives it.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct OverlapTask {
    documents: u32,
    least: u32,
    ragged: bool,
    family: u64,
    max_pairs: u64,
    /// Worker threads of each process.
    threads: usize,
    worker_memory: u64,
    scratch: PathBuf,
}

/// What the benchmark counts; sums over workers.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct OverlapCounts {
    /// Chunks of all documents.
    chunks: u64,
    /// Documents that may be in pairs.
    kept: u64,
    /// Distinct sets.
    #[serde(rename = "rows")]
    distinct: u64,
    /// Distinct sets of families.
    #[serde(rename = "family_rows")]
    family_sets: u64,
    families: u64,
    /// Elements in prefixes.
    #[serde(rename = "prefix_columns")]
    postings: u64,
    /// Pairs of distinct sets that were compared.
    candidates: u64,
    /// Pairs of distinct sets that are listed.
    listed: u64,
    /// Pairs of documents: of two distinct sets that are listed, of one, of one family.
    pairs: [u64; 3],
}

impl WorkerCounts for OverlapCounts {
    fn merge(&mut self, other: &OverlapCounts) {
        self.chunks += other.chunks;
        self.kept += other.kept;
        self.distinct += other.distinct;
        self.family_sets += other.family_sets;
        self.families = self.families.max(other.families);
        self.postings += other.postings;
        self.candidates += other.candidates;
        self.listed += other.listed;
        self.pairs.iter_mut().zip(&other.pairs).for_each(|(sum, pairs)| *sum += pairs);
    }
}

/// The figures of the benchmark.
#[derive(Serialize)]
struct OverlapReport {
    documents: u32,
    least: u32,
    ragged: bool,
    workers: usize,
    processes: usize,
    wall_s: f64,
    cpu_s: f64,
    cpu_ns_per_document: f64,
    peak_anonymous_bytes: Option<u64>,
    exchanged_bytes_per_document: f64,
    pairs: u64,
    #[serde(flatten)]
    counts: OverlapCounts,
    checksum: String,
}

impl Bench for OverlapArgs {
    type Task = OverlapTask;

    fn bench(&self, as_text: impl Fn(OverlapTask) -> Result<String>) -> Result<BenchOutcome> {
        ensure!(self.documents >= LEAST, "--documents {}: a made-up web has {LEAST} pages at least", self.documents);
        if let Some(file) = &self.write {
            let rows = write(&ChunkSets::new(self.documents, self.ragged), self.documents, file)?;
            return BenchOutcome::new(true, &WrittenChunks { file: file.clone(), rows }, self.json);
        }
        let temporary = Temporary::of_process();
        let memory = self.memory.map_or_else(|| Config::default().memory(), |bytes| bytes.0);
        let task = OverlapTask {
            documents: self.documents,
            least: self.least,
            ragged: self.ragged,
            family: self.family,
            max_pairs: self.max_pairs,
            threads: self.workers.0,
            worker_memory: memory / (self.workers.0 * self.processes.0) as u64,
            scratch: temporary.folder.join("scratch"),
        };
        let measured = run(&task, Placement::of(self.processes.0), as_text)?;
        BenchOutcome::new(true, &OverlapReport::new(self, measured), self.json)
    }
}

/// A chunk of a document, for other programs.
#[derive(Table)]
#[table(name = "chunk-sets")]
struct MadeChunkRow {
    doc: i64,
    chunk: i64,
}

fn write(web: &ChunkSets, documents: u32, file: &Path) -> Result<u64> {
    let mut writer: Writer<MadeChunkRow> = Writer::create(file)?;
    let mut chunks = Vec::new();
    for document in 0..documents {
        web.page(document, &mut chunks);
        for chunk in &chunks {
            writer.push(MadeChunkRow { doc: document.into(), chunk: *chunk as i64 })?;
        }
    }
    writer.finish()
}

/// What was written for other programs.
#[derive(Serialize)]
struct WrittenChunks {
    file: PathBuf,
    rows: u64,
}

impl fmt::Display for WrittenChunks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {} chunks", self.file.display(), grouped(self.rows))
    }
}

impl Measure for OverlapTask {
    type Counts = OverlapCounts;

    fn threads(&self) -> usize {
        self.threads
    }

    fn measure(&self, cx: &mut Context) -> Result<WorkerResult<OverlapCounts>> {
        let web = ChunkSets::new(self.documents, self.ragged);
        let (mut sets, mut chunks, mut set) = (WeightedSets::default(), Vec::new(), Vec::new());
        let mut counts = OverlapCounts::default();
        for document in (cx.index() as u32..self.documents).step_by(cx.peers()) {
            web.page(document, &mut chunks);
            set.clear();
            set.extend(chunks.iter().map(|chunk| Element { hash: *chunk, weight: 1 }));
            counts.chunks += set.len() as u64;
            sets.push(document.into(), &set)?;
        }
        drop(web);
        let sets = Arc::new(sets);
        let cx = &mut cx.with(self.worker_memory, &self.scratch);
        let stage = SetJoinStage {
            requirement: Requirement::Shared(self.least),
            family: self.family,
            with_collections: false,
            has_known: false,
            thorough: false,
            max_pairs: self.max_pairs,
        };
        cx.barrier()?;
        cx.enter(Stage::Join);
        let listed = Rc::new(RefCell::new((0u64, 0u64)));
        let each = {
            let listed = listed.clone();
            move |pair: crate::operators::set_join::SetPair| {
                let (pairs, checksum) = &mut *listed.borrow_mut();
                *pairs += u64::from(pair.members[0]) * u64::from(pair.members[1]);
                let [first, second] = [pair.names[0].min(pair.names[1]), pair.names[0].max(pair.names[1])];
                *checksum = checksum.wrapping_add(mix(fold(&[first, second, pair.shared[0]])));
                Ok(())
            }
        };
        let joined = set_join(cx, &stage, &sets, each)?;
        cx.barrier()?;
        cx.enter(Stage::Tables);
        let (pairs, checksum) = listed.take();
        let of_families = pairs_of_families(cx, &joined)?;
        let of_set = |set: &DistinctSet| u64::from(set.members) * u64::from(set.members.saturating_sub(1)) / 2;
        let of_sets = joined.distinct.iter().filter(|set| set.is_clique).map(of_set).sum();
        let stats = joined.stats;
        counts.kept = stats.kept;
        counts.distinct = stats.distinct;
        counts.family_sets = stats.family_sets;
        counts.families = joined.families.len() as u64;
        counts.postings = stats.postings;
        counts.candidates = stats.candidates;
        counts.listed = stats.pairs;
        counts.pairs = [pairs, of_sets, of_families];
        Ok(WorkerResult { counts, checksum })
    }
}

/// The pairs of documents in two distinct sets of one family; at worker 0, and none at the others.
fn pairs_of_families(cx: &mut Context, joined: &SetJoin) -> Result<u64> {
    let mut own = vec![(0u64, 0u64); joined.families.len()];
    for set in &joined.distinct {
        if let Some(family) = set.family {
            let (members, squares) = &mut own[family as usize];
            *members += u64::from(set.members);
            *squares += u64::from(set.members).pow(2);
        }
    }
    let own: Vec<_> = (0u32..).zip(own).map(|(family, (members, squares))| (family, members, squares)).collect();
    let mut all = vec![(0u64, 0u64); joined.families.len()];
    for (family, members, squares) in cx.sorted(own)? {
        let sum = &mut all[family as usize];
        *sum = (sum.0 + members, sum.1 + squares);
    }
    let pairs = all.iter().map(|(members, squares)| (members * members - squares) / 2).sum();
    Ok(if cx.index() == 0 { pairs } else { 0 })
}

impl OverlapReport {
    fn new(args: &OverlapArgs, measured: Measured<OverlapCounts>) -> OverlapReport {
        let Seconds { wall: wall_s, cpu: cpu_s } = measured.seconds(|span| span.stage == Stage::Join);
        let per_document = |count: f64| count / f64::from(args.documents);
        OverlapReport {
            documents: args.documents,
            least: args.least,
            ragged: args.ragged,
            workers: args.workers.0,
            processes: args.processes.0,
            wall_s,
            cpu_s,
            cpu_ns_per_document: per_document(cpu_s * 1e9),
            peak_anonymous_bytes: measured.peak_anonymous_bytes,
            exchanged_bytes_per_document: per_document(measured.exchanged_bytes as f64),
            pairs: measured.counts.pairs.iter().sum(),
            counts: measured.counts,
            checksum: format!("{:016x}", measured.checksum),
        }
    }
}

impl fmt::Display for OverlapReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OverlapReport { documents, workers, processes, wall_s, cpu_s, counts, .. } = self;
        let per_document = |count: u64| count as f64 / f64::from(*documents);
        writeln!(
            f,
            "{} documents, {:.1} chunks each, {processes} process(es) of {workers} worker(s)",
            grouped((*documents).into()),
            per_document(counts.chunks)
        )?;
        writeln!(
            f,
            "{} pairs share at least {} chunks: {} of listed sets, {} of equal sets, {} of {} families",
            grouped(self.pairs),
            self.least,
            grouped(counts.pairs[0]),
            grouped(counts.pairs[1]),
            grouped(counts.pairs[2]),
            counts.families
        )?;
        writeln!(f, "{wall_s:.3} seconds, {cpu_s:.3} CPU s, {:.1} CPU ns a document", self.cpu_ns_per_document)?;
        writeln!(
            f,
            "per document: {:.3} kept, {:.3} distinct sets, {:.3} of them in families, {:.3} elements in prefixes, {:.3} candidates, {:.3} listed; \
             exchanged {:.1} bytes",
            per_document(counts.kept),
            per_document(counts.distinct),
            per_document(counts.family_sets),
            per_document(counts.postings),
            per_document(counts.candidates),
            per_document(counts.listed),
            self.exchanged_bytes_per_document
        )?;
        if let Some(peak) = self.peak_anonymous_bytes {
            writeln!(
                f,
                "peak anonymous memory: {:.1} MiB, {:.1} bytes per document",
                peak as f64 / (1 << 20) as f64,
                per_document(peak)
            )?;
        }
        writeln!(f, "checksum of listed pairs {}", self.checksum)
    }
}
