//! `nigh bench collections`: link statistics and collections of a made-up web (Cho, Shivakumar and
//! Garcia-Molina 2000).

use std::fmt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use anyhow::{Result, ensure};
use clap::Args;
use nigh_bench::synthetic::LinkedHosts;
use nigh_bench::{
    AnyBench, Bench, BenchOutcome, Measure, Measured, Placement, Seconds, Temporary, WorkerCounts, WorkerResult, run,
};
use nigh_exchange::Context;
use serde::{Deserialize, Serialize};

use super::Collections;
use super::Merge;
use super::steps::{ClusteredPages, CollectionStage, MergeCondition, collection_links, members, merged_clusters};
use crate::config::{Bytes, Config, Count};
use crate::host_order::HostLeads;
use crate::operators::scan::{LinkSource, OwnLink};
use crate::records::{DocId, fold, mix};
use crate::sheet::grouped;
use crate::structures::Ownership;
use crate::studies::Study;
use crate::tables::{Table, Writer};
use crate::watch::Stage;

/// `nigh bench collections`.
pub(super) const BENCH: AnyBench = AnyBench::of::<CollectionsArgs>(Collections::NAME);

/// The fewest pages of a made-up web.
const LEAST_DOCUMENTS: u64 = 10_000;

/// Link statistics and collections of a made-up web.
#[derive(Args)]
struct CollectionsArgs {
    /// Number of pages.
    #[arg(long, value_name = "N")]
    documents: u64,
    /// Links of a page.
    #[arg(long, default_value = "10", value_name = "N")]
    links: u64,
    /// Worker threads of each process.
    #[arg(long, default_value = "2", value_name = "N")]
    workers: Count,
    /// Processes on this machine.
    #[arg(long, default_value = "1", value_name = "N")]
    processes: Count,
    /// Memory of all processes together for records in flight; half of the machine's by default.
    #[arg(long, value_name = "BYTES")]
    memory: Option<Bytes>,
    /// Write the links (`links.parquet`: `page`, `target`) and the pages (`pages.parquet`: `page`,
    /// `host`, `root`, `size`) into this folder, for comparison with other programs, and stop.
    #[arg(long, value_name = "DIR")]
    write: Option<PathBuf>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// The benchmark as each process receives it.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct CollectionsTask {
    documents: u64,
    links: u64,
    /// Worker threads of each process.
    threads: usize,
    worker_memory: u64,
    scratch: PathBuf,
}

/// What the benchmark counts; sums over workers.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct CollectionCounts {
    /// Links.
    links: u64,
    /// Pages with replicas.
    clustered: u64,
    /// Ordered pairs of trivial clusters with links.
    pairs: u64,
    /// Those that are merged.
    merged: u64,
    /// Pages of collections.
    pages: u64,
}

impl WorkerCounts for CollectionCounts {
    fn merge(&mut self, other: &CollectionCounts) {
        self.links += other.links;
        self.clustered += other.clustered;
        self.pairs += other.pairs;
        self.merged += other.merged;
        self.pages += other.pages;
    }
}

/// The figures of the benchmark.
#[derive(Serialize)]
struct CollectionsReport {
    documents: u64,
    workers: usize,
    processes: usize,
    /// Of the link statistics.
    statistics: Seconds,
    statistics_ns_per_link: f64,
    /// Of putting collections together.
    members: Seconds,
    peak_anonymous_bytes: Option<u64>,
    exchanged_bytes_per_link: f64,
    #[serde(flatten)]
    counts: CollectionCounts,
    checksum: String,
}

impl Bench for CollectionsArgs {
    type Task = CollectionsTask;

    fn bench(&self, as_text: impl Fn(CollectionsTask) -> Result<String>) -> Result<BenchOutcome> {
        ensure!(
            self.documents >= LEAST_DOCUMENTS,
            "--documents {}: a made-up web has {LEAST_DOCUMENTS} pages at least",
            self.documents
        );
        if let Some(folder) = &self.write {
            let rows = write(&LinkedHosts::new(self.documents, self.links), folder)?;
            return BenchOutcome::new(true, &WrittenLinks { folder: folder.clone(), rows }, self.json);
        }
        let temporary = Temporary::of_process();
        let memory = self.memory.map_or_else(|| Config::default().memory(), |bytes| bytes.0);
        let task = CollectionsTask {
            documents: self.documents,
            links: self.links,
            threads: self.workers.0,
            worker_memory: memory / (self.workers.0 * self.processes.0) as u64,
            scratch: temporary.folder.join("scratch"),
        };
        let measured = run(&task, Placement::of(self.processes.0), as_text)?;
        BenchOutcome::new(true, &CollectionsReport::new(self, measured), self.json)
    }
}

/// A link, for other programs.
#[derive(Table)]
#[table(name = "made-links")]
struct MadeLinkRow {
    page: i64,
    target: i64,
}

/// A page with replicas, for other programs.
#[derive(Table)]
#[table(name = "made-pages")]
struct MadePageRow {
    page: i64,
    host: i64,
    root: i64,
    size: i64,
}

fn write(web: &LinkedHosts, folder: &Path) -> Result<u64> {
    let mut links: Writer<MadeLinkRow> = Writer::create(&folder.join("links.parquet"))?;
    let mut pages: Writer<MadePageRow> = Writer::create(&folder.join("pages.parquet"))?;
    let mut targets = Vec::new();
    for page in 0..web.pages {
        web.links(page, &mut targets);
        targets.iter().try_for_each(|target| links.push(MadeLinkRow { page: page as i64, target: *target as i64 }))?;
        let (root, size) = web.cluster(page);
        if size > 0 {
            let (host, root) = (LinkedHosts::host(page) as i64, LinkedHosts::page(root) as i64);
            pages.push(MadePageRow { page: page as i64, host, root, size: size.into() })?;
        }
    }
    pages.finish()?;
    links.finish()
}

/// What was written for other programs.
#[derive(Serialize)]
struct WrittenLinks {
    folder: PathBuf,
    rows: u64,
}

impl fmt::Display for WrittenLinks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {} links", self.folder.display(), grouped(self.rows))
    }
}

/// The links of own pages, in memory.
struct MadeLinks {
    links: Vec<OwnLink>,
    read: usize,
}

impl LinkSource for MadeLinks {
    fn count(&self) -> u64 {
        self.links.len() as u64
    }

    fn read(&mut self, count: usize) -> Result<Vec<OwnLink>> {
        let end = (self.read + count).min(self.links.len());
        let links = self.links[self.read..end].to_vec();
        self.read = end;
        Ok(links)
    }
}

impl Measure for CollectionsTask {
    type Counts = CollectionCounts;

    fn threads(&self) -> usize {
        self.threads
    }

    fn measure(&self, cx: &mut Context) -> Result<WorkerResult<CollectionCounts>> {
        let web = LinkedHosts::new(self.documents, self.links);
        let owned = Ownership::new(cx.index(), cx.peers(), &web.rows());
        let (mut pages, mut links, mut targets) = (ClusteredPages::default(), Vec::new(), Vec::new());
        for (number, doc) in (0..).zip(owned.docs()) {
            let page = LinkedHosts::page(doc);
            let (root, size) = web.cluster(page);
            pages.roots.push(root);
            pages.sizes.push(size);
            pages.hosts.push(LinkedHosts::host(page));
            web.links(page, &mut targets);
            let link = |target: &u64| OwnLink { page: number, doc, target: LinkedHosts::doc(*target) };
            links.extend(targets.iter().map(link));
        }
        let mut counts = CollectionCounts {
            links: links.len() as u64,
            clustered: pages.roots.iter().filter(|root| **root != DocId::NONE).count() as u64,
            ..CollectionCounts::default()
        };
        let cx = &mut cx.with(self.worker_memory / 4, &self.scratch);
        let stage = CollectionStage {
            condition: MergeCondition { merge: Merge::Share, share: 0.6 },
            same_host: true,
            least_size: 10,
            purity: 0.9,
        };
        let pages = Arc::new(pages);
        cx.barrier()?;
        cx.enter(Stage::Join);
        let found = collection_links(cx, &stage, &owned, &pages, &mut MadeLinks { links, read: 0 })?;
        let merged = merged_clusters(cx, &stage, found.links)?;
        (counts.pairs, counts.merged) = (merged.pairs, merged.edges.len() as u64);
        cx.barrier()?;
        cx.enter(Stage::Components);
        let members = members(cx, &owned, &pages, found.in_links, merged, Rc::new(|_| 0), &HostLeads::default())?;
        cx.barrier()?;
        cx.enter(Stage::Tables);
        counts.pages = members.pages.len() as u64;
        let checksum = members.pages.iter().fold(0u64, |sum, page| {
            let ids = [page.doc, page.cluster, page.collection, page.principal].map(|id| id.to_table() as u64);
            sum.wrapping_add(mix(fold(&ids)))
        });
        Ok(WorkerResult { counts, checksum })
    }
}

impl CollectionsReport {
    fn new(args: &CollectionsArgs, measured: Measured<CollectionCounts>) -> CollectionsReport {
        let statistics = measured.seconds(|span| span.stage == Stage::Join);
        CollectionsReport {
            documents: args.documents,
            workers: args.workers.0,
            processes: args.processes.0,
            statistics,
            statistics_ns_per_link: statistics.cpu * 1e9 / measured.counts.links as f64,
            members: measured.seconds(|span| span.stage == Stage::Components),
            peak_anonymous_bytes: measured.peak_anonymous_bytes,
            exchanged_bytes_per_link: measured.exchanged_bytes as f64 / measured.counts.links as f64,
            counts: measured.counts,
            checksum: format!("{:016x}", measured.checksum),
        }
    }
}

impl fmt::Display for CollectionsReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CollectionsReport { documents, workers, processes, statistics, members, counts, .. } = self;
        writeln!(
            f,
            "{} pages, {} of them with replicas, {} links; {processes} process(es) of {workers} worker(s)",
            grouped(*documents),
            grouped(counts.clustered),
            grouped(counts.links)
        )?;
        writeln!(
            f,
            "{} pairs of clusters, {} merged, {} pages in collections",
            grouped(counts.pairs),
            grouped(counts.merged),
            grouped(counts.pages)
        )?;
        writeln!(
            f,
            "link statistics: {:.3} seconds, {:.3} CPU s, {:.1} CPU ns a link; exchanged {:.1} bytes a link in all",
            statistics.wall, statistics.cpu, self.statistics_ns_per_link, self.exchanged_bytes_per_link
        )?;
        writeln!(f, "collections: {:.3} seconds, {:.3} CPU s", members.wall, members.cpu)?;
        if let Some(peak) = self.peak_anonymous_bytes {
            writeln!(f, "peak anonymous memory: {:.1} MiB", peak as f64 / (1 << 20) as f64)?;
        }
        writeln!(f, "checksum of collections {}", self.checksum)
    }
}
