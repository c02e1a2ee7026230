//! `nigh bench paragraphs`: duplicates, near-duplicates and repeated paragraphs of a made-up web,
//! and what links lead to (Pereira 2006).

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Result, ensure};
use clap::Args;
use nigh_bench::synthetic::{ChunkSets, LinkedHosts};
use nigh_bench::{
    AnyBench, Bench, BenchOutcome, Measure, Measured, Placement, Seconds, Temporary, WorkerCounts, WorkerResult, run,
};
use nigh_exchange::Context;
use serde::{Deserialize, Serialize};

use super::Paragraphs;
use super::genealogy::{LifetimeReader, Lifetimes, TwoWeeks, births, held_paragraphs, sets_of_pages};
use super::reach::{OpenLinks, connected};
use super::steps::{PageParts, ParagraphStage, ParagraphsInMemory, boilerplate, duplicates, near_duplicates};
use crate::config::{Bytes, Config, Count};
use crate::operators::scan::{LinkSource, OwnLink};
use crate::operators::set_join::ExactShare;
use crate::records::{DocId, fold, mix};
use crate::sheet::grouped;
use crate::structures::Ownership;
use crate::studies::Study;
use crate::watch::Stage;

/// `nigh bench paragraphs`.
pub(super) const BENCH: AnyBench = AnyBench::of::<ParagraphsArgs>(Paragraphs::NAME);

/// The fewest pages of a made-up web.
const LEAST: u32 = 10_000;
/// One document in so many is new in the second week.
const BORN: u64 = 100;
/// Thresholds of near-duplicates, as in the study.
const NEAR: [f64; 3] = [0.9, 0.7, 0.5];

/// Duplicates, near-duplicates and repeated paragraphs of a made-up web; or what its links lead
/// to.
#[derive(Args)]
struct ParagraphsArgs {
    /// Number of documents.
    #[arg(long, value_name = "N")]
    documents: u32,
    /// Let each page of the large template family lack a tenth of the template.
    #[arg(long)]
    ragged: bool,
    /// Follow links instead: so many of each document.
    #[arg(long, value_name = "N")]
    links: Option<u64>,
    /// Worker threads of each process.
    #[arg(long, default_value = "2", value_name = "N")]
    workers: Count,
    /// Processes on this machine.
    #[arg(long, default_value = "1", value_name = "N")]
    processes: Count,
    /// Memory of all processes together for records in flight; half of the machine's by default.
    #[arg(long, value_name = "BYTES")]
    memory: Option<Bytes>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// The benchmark as each process receives it.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct ParagraphsTask {
    documents: u32,
    ragged: bool,
    links: Option<u64>,
    /// Worker threads of each process.
    threads: usize,
    worker_memory: u64,
    scratch: PathBuf,
}

/// What the benchmark counts; sums over workers.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct ParagraphsCounts {
    /// Paragraphs or links of all documents.
    read: u64,
    /// Documents that are not the first of their cluster: of duplicates, then by threshold of
    /// near-duplicates.
    duplicates: [u64; 4],
    /// Paragraphs that ten documents have.
    repeated: u64,
    /// Documents that are new in the second week, and their parents.
    born: u64,
    parents: u64,
    /// Documents that links lead to from the core, and those of the core.
    connected: u64,
    core: u64,
}

impl WorkerCounts for ParagraphsCounts {
    fn merge(&mut self, other: &ParagraphsCounts) {
        self.read += other.read;
        self.duplicates.iter_mut().zip(&other.duplicates).for_each(|(sum, count)| *sum += count);
        self.repeated += other.repeated;
        self.born += other.born;
        self.parents += other.parents;
        self.connected += other.connected;
        self.core = self.core.max(other.core);
    }
}

/// The figures of the benchmark.
#[derive(Serialize)]
struct ParagraphsReport {
    documents: u32,
    workers: usize,
    processes: usize,
    /// By step: its name and its seconds.
    steps: Vec<(&'static str, Seconds)>,
    peak_anonymous_bytes: Option<u64>,
    exchanged_bytes_per_document: f64,
    #[serde(flatten)]
    counts: ParagraphsCounts,
    checksum: String,
}

impl Bench for ParagraphsArgs {
    type Task = ParagraphsTask;

    fn bench(&self, as_text: impl Fn(ParagraphsTask) -> Result<String>) -> Result<BenchOutcome> {
        ensure!(self.documents >= LEAST, "--documents {}: a made-up web has {LEAST} pages at least", self.documents);
        let temporary = Temporary::of_process();
        let memory = self.memory.map_or_else(|| Config::default().memory(), |bytes| bytes.0);
        let task = ParagraphsTask {
            documents: self.documents,
            ragged: self.ragged,
            links: self.links,
            threads: self.workers.0,
            worker_memory: memory / (self.workers.0 * self.processes.0) as u64,
            scratch: temporary.folder.join("scratch"),
        };
        let measured = run(&task, Placement::of(self.processes.0), as_text)?;
        BenchOutcome::new(true, &ParagraphsReport::new(self, measured), self.json)
    }
}

impl Measure for ParagraphsTask {
    type Counts = ParagraphsCounts;

    fn threads(&self) -> usize {
        self.threads
    }

    fn measure(&self, cx: &mut Context) -> Result<WorkerResult<ParagraphsCounts>> {
        let cx = &mut cx.with(self.worker_memory / 2, &self.scratch.join(cx.index().to_string()));
        let stage = ParagraphStage { max_pairs: 1_000_000_000 };
        match self.links {
            None => self.paragraphs(cx, &stage),
            Some(links) => self.links(cx, links),
        }
    }
}

impl ParagraphsTask {
    /// Finds duplicates, near-duplicates and repeated paragraphs.
    fn paragraphs(&self, cx: &mut Context, stage: &ParagraphStage) -> Result<WorkerResult<ParagraphsCounts>> {
        let web = ChunkSets::new(self.documents, self.ragged);
        let rows: Vec<u64> = (0..64u64).map(|shard| (u64::from(self.documents) + 63 - shard) / 64).collect();
        let owned = Ownership::new(cx.index(), cx.peers(), &rows);
        let (mut pages, mut chunks, mut hosts) = (ParagraphsInMemory::default(), Vec::new(), Vec::new());
        // The week before lacks some pages.
        let (mut before, mut hosts_before) = (ParagraphsInMemory::default(), Vec::new());
        let mut counts = ParagraphsCounts::default();
        for doc in owned.docs() {
            let page = LinkedHosts::page(doc);
            web.page(page as u32, &mut chunks);
            counts.read += chunks.len() as u64;
            hosts.push(1 + mix(page / 20) % (u64::from(self.documents) / 20));
            pages.push(doc, &chunks);
            let is_old = !page.is_multiple_of(BORN);
            hosts_before.push(if is_old { hosts[hosts.len() - 1] } else { 0 });
            if is_old {
                before.push(doc, &chunks);
            }
        }
        drop(web);
        let (pages, before) = (Arc::new(pages), Arc::new(before));
        let sets_before = sets_of_pages(&owned, &before)?;
        cx.barrier()?;
        cx.enter(Stage::Collapse);
        let found = duplicates(cx, &owned, &pages, &PageParts::Hash(50))?;
        cx.barrier()?;
        cx.enter(Stage::Join);
        let shares: Vec<ExactShare> = NEAR.into_iter().filter_map(ExactShare::new).collect();
        let near = near_duplicates(cx, stage, &owned, &pages, &found, &shares)?;
        cx.barrier()?;
        cx.enter(Stage::Pairs);
        let repeated = boilerplate(cx, &owned, &pages, &hosts, (counts.read, 10))?;
        cx.barrier()?;
        cx.enter(Stage::Changes);
        let sources = [&before, &pages];
        let two = TwoWeeks { sets: [&sets_before, &found.sets], hosts: Some([&hosts_before, &hosts]) };
        let held = held_paragraphs(cx, &owned, sources, two)?;
        let mut lifetimes = Lifetimes::new(&cx.scratch().join("lifetimes"), 64, cx.memory() / 4);
        lifetimes.add(cx, [0, 7], &held.events)?;
        let (born, parents) = births(cx, &owned, sources, two, held.held)?;
        let mut checksum = 0u64;
        lifetimes.finish(LifetimeReader::default(), |_, lifetime| {
            checksum = checksum.wrapping_add(mix(lifetime.paragraph));
            Ok(())
        })?;
        cx.barrier()?;
        cx.enter(Stage::Tables);
        (counts.born, counts.parents) = (born.len() as u64, parents.len() as u64);
        for of in &parents {
            let ids = [of.doc.to_table() as u64, of.parent.to_table() as u64, of.shared.into()];
            checksum = checksum.wrapping_add(mix(fold(&ids)));
        }
        for (count, roots) in counts.duplicates.iter_mut().zip(std::iter::once(&found.roots).chain(&near)) {
            for (doc, root) in owned.docs().zip(roots) {
                *count += u64::from(*root != doc);
                let ids = [doc, *root].map(|id| id.to_table() as u64);
                checksum = checksum.wrapping_add(mix(fold(&ids)));
            }
        }
        counts.repeated = repeated.paragraphs.len() as u64;
        for of in &repeated.paragraphs {
            checksum = checksum.wrapping_add(mix(fold(&[of.paragraph, of.documents, of.hosts, of.on_host])));
        }
        Ok(WorkerResult { counts, checksum })
    }

    /// Finds the core, and what links lead to from it. Links are made as they are read.
    fn links(&self, cx: &mut Context, links: u64) -> Result<WorkerResult<ParagraphsCounts>> {
        let web = LinkedHosts::new(self.documents.into(), links);
        let owned = Ownership::new(cx.index(), cx.peers(), &web.rows());
        let hosts: Vec<u64> = owned.docs().map(|doc| LinkedHosts::host(LinkedHosts::page(doc))).collect();
        let docs: Vec<DocId> = owned.docs().collect();
        let open: &OpenLinks<'_> =
            &|| Ok(Box::new(StreamedLinks { web: &web, docs: &docs, links, next: 0, targets: Vec::new() }));
        cx.barrier()?;
        cx.enter(Stage::Read);
        let (mut source, mut counts) = (open()?, ParagraphsCounts::default());
        loop {
            let read = source.read(1 << 16)?.len() as u64;
            counts.read += read;
            if read == 0 {
                break;
            }
        }
        cx.barrier()?;
        cx.enter(Stage::Links);
        let found = connected(cx, &owned, &hosts, open, &[])?;
        cx.barrier()?;
        cx.enter(Stage::Tables);
        counts.connected = found.pages.iter().filter(|page| **page).count() as u64;
        counts.core = found.seeds.iter().find(|seed| seed.is_chosen).and_then(|seed| seed.core).unwrap_or(0);
        let reached = docs.iter().zip(&found.pages).filter(|(_, reached)| **reached);
        let checksum = reached.fold(0u64, |sum, (doc, _)| sum.wrapping_add(mix(doc.to_table() as u64)));
        Ok(WorkerResult { counts, checksum })
    }
}

/// The links of own pages, as they are made.
struct StreamedLinks<'a> {
    web: &'a LinkedHosts,
    docs: &'a [DocId],
    /// Links of a page, about.
    links: u64,
    /// The number of the next page.
    next: usize,
    targets: Vec<u64>,
}

impl LinkSource for StreamedLinks<'_> {
    fn count(&self) -> u64 {
        self.docs.len() as u64 * self.links
    }

    fn read(&mut self, count: usize) -> Result<Vec<OwnLink>> {
        let mut links = Vec::with_capacity(count);
        while links.len() < count
            && let Some(doc) = self.docs.get(self.next).copied()
        {
            self.web.links(LinkedHosts::page(doc), &mut self.targets);
            let page = self.next as u32;
            links.extend(self.targets.iter().map(|target| OwnLink { page, doc, target: LinkedHosts::doc(*target) }));
            self.next += 1;
        }
        Ok(links)
    }
}

impl ParagraphsReport {
    fn new(args: &ParagraphsArgs, measured: Measured<ParagraphsCounts>) -> ParagraphsReport {
        let steps = match args.links {
            Some(_) => vec![("links made", Stage::Read), ("links made again and followed", Stage::Links)],
            None => vec![
                ("duplicates", Stage::Collapse),
                ("near-duplicates", Stage::Join),
                ("repeated paragraphs", Stage::Pairs),
                ("new pages and their parents", Stage::Changes),
            ],
        };
        let seconds = |(name, stage)| (name, measured.seconds(|span| span.stage == stage));
        ParagraphsReport {
            documents: args.documents,
            workers: args.workers.0,
            processes: args.processes.0,
            steps: steps.into_iter().map(seconds).collect(),
            peak_anonymous_bytes: measured.peak_anonymous_bytes,
            exchanged_bytes_per_document: measured.exchanged_bytes as f64 / f64::from(args.documents),
            checksum: format!("{:016x}", measured.checksum),
            counts: measured.counts,
        }
    }
}

impl fmt::Display for ParagraphsReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ParagraphsReport { documents, workers, processes, counts, .. } = self;
        let per_document = |count: f64| count / f64::from(*documents);
        writeln!(
            f,
            "{} documents, {:.1} paragraphs or links each, {processes} process(es) of {workers} worker(s)",
            grouped((*documents).into()),
            per_document(counts.read as f64)
        )?;
        for (name, Seconds { wall, cpu }) in &self.steps {
            let ns = per_document(cpu * 1e9);
            writeln!(f, "{name:30} {wall:8.3} seconds, {cpu:8.3} CPU s, {ns:8.1} CPU ns a document")?;
        }
        if counts.connected > 0 {
            writeln!(f, "{} connected, core {}", grouped(counts.connected), grouped(counts.core))?;
        } else {
            let [all, near @ ..] = counts.duplicates;
            let near = near.map(grouped).join(", ");
            writeln!(f, "{} duplicates; near at {NEAR:?}: {near}", grouped(all))?;
            writeln!(f, "{} paragraphs of at least ten documents", grouped(counts.repeated))?;
            writeln!(f, "{} new documents with {} parents", grouped(counts.born), grouped(counts.parents))?;
        }
        writeln!(f, "exchanged {:.1} bytes a document", self.exchanged_bytes_per_document)?;
        if let Some(peak) = self.peak_anonymous_bytes {
            let mib = peak as f64 / (1 << 20) as f64;
            writeln!(f, "peak anonymous memory: {mib:.1} MiB, {:.1} bytes a document", per_document(peak as f64))?;
        }
        writeln!(f, "checksum {}", self.checksum)
    }
}
