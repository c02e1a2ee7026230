//! `nigh bench live`: what a process that keeps clusters takes, in process and by HTTP, on made-up
//! documents.
//!
//! In reading order: `texts` (the documents), `client` (HTTP), `chains` (two clusters that merge
//! and split).
//!
//! The server and its clients are threads of this process, so the CPU seconds "by HTTP" have both.
//! Batches are synced to the disk of the temporary folder.

mod chains;
mod client;
mod texts;

use std::fmt;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use clap::Args;
use nigh_bench::{BenchOutcome, Temporary};
use serde::Serialize;

use self::chains::JoinTimes;
use self::client::HttpClient;
use self::texts::MadeDocuments;
use crate::config::{Count, Method};
use crate::launch::program_command;
use crate::live::{Access, CommitEvery, Commitment, Commits, Counts, Limits, Server, Service};
use crate::records::{DocumentKey, FeatureBits};
use crate::sheet::grouped;
use crate::state::Store;
use crate::watch::{anonymous_memory, process_cpu};

/// Connections that send single documents.
const CONNECTIONS: usize = 4;

/// Arguments of `nigh bench live`.
#[derive(Args)]
pub(crate) struct LiveBenchArgs {
    /// Documents.
    #[arg(long, default_value = "100000", value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    documents: u64,
    /// Words of a document.
    #[arg(long, default_value = "500", value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    words: u64,
    /// Documents of a batch.
    #[arg(long, default_value = "1000", value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    batch: u64,
    /// Documents of each of two clusters that merge and split.
    #[arg(long, default_value = "100000", value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    cluster: u64,
    /// Seconds in which single documents are sent: first as fast as they are answered, then at half
    /// that rate.
    #[arg(long, default_value = "10", value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    seconds: u64,
    /// Threads that find features and keep clusters.
    #[arg(long, default_value = "1", value_name = "N")]
    workers: Count,
    /// Print the figures as JSON.
    #[arg(long)]
    json: bool,
}

/// The time of a part.
#[derive(Clone, Copy, Debug, Serialize)]
struct Spent {
    wall_s: f64,
    cpu_s: f64,
}

impl Spent {
    fn on(work: impl FnOnce() -> Result<()>) -> Result<Spent> {
        let (begun, cpu) = (Instant::now(), process_cpu());
        work()?;
        Ok(Spent { wall_s: begun.elapsed().as_secs_f64(), cpu_s: process_cpu() - cpu })
    }
}

/// Answers of single documents.
#[derive(Clone, Copy, Debug, Serialize)]
struct Latencies {
    /// Documents a second, one after the other on each of the connections.
    full_load_per_s: f64,
    /// At half that rate, from the moment at which a document should be sent until its answer.
    p50_ms: f64,
    p99_ms: f64,
    sent: u64,
}

/// The figures of the benchmark.
#[derive(Serialize)]
struct LiveReport {
    documents: u64,
    words: u64,
    batch: u64,
    workers: usize,
    clusters: u64,
    distinct_vectors: u64,
    in_process: Spent,
    in_process_per_cpu_s: f64,
    by_http: Spent,
    by_http_per_s: f64,
    commit: Spent,
    /// From the tables of a store that has all documents.
    start: Spent,
    vector_bytes_per_document: f64,
    /// Anonymous memory besides the vectors; `None` where the system does not report it.
    other_bytes_per_document: Option<f64>,
    single: Latencies,
    joins: JoinTimes,
    /// Whether all ways have the same clusters.
    clusters_match: bool,
}

/// Measures all of it.
pub(crate) fn bench_live(args: &LiveBenchArgs) -> Result<BenchOutcome> {
    let temporary = Temporary::of_process();
    let store = |name: &str| Store::at(&temporary.folder.join(name));
    let (documents, workers) = (MadeDocuments::new(args.words), args.workers.0);
    let (count, batch) = (args.documents, args.batch);
    let open = |store: &Store| {
        let opened = Service::open(store, Some(DocumentKey::Id), workers, Limits::default());
        opened.map(|(service, _)| service)
    };
    let ranges = || (0..count).step_by(batch as usize).map(|first| first..(first + batch).min(count));

    let here = store("here");
    let mut service = open(&here)?;
    let before = anonymous_memory();
    let mut in_process = Spent { wall_s: 0.0, cpu_s: 0.0 };
    for range in ranges() {
        // Making the documents does not count.
        let lines = documents.batch(range);
        let spent = Spent::on(|| Ok(service.add(None, lines.as_bytes()).map(drop)?))?;
        in_process = Spent { wall_s: in_process.wall_s + spent.wall_s, cpu_s: in_process.cpu_s + spent.cpu_s };
    }
    let memory = anonymous_memory().zip(before).map(|(after, before)| after.saturating_sub(before));
    let (counts, _) = service.counts();
    let method = Method::default();
    let vectors = count * (method.features * size_of::<FeatureBits>()) as u64
        + counts.nodes * (method.supershingles * size_of::<u64>()) as u64;
    let commit = Spent::on(|| Ok(service.commit(&mut |commitment| run(commitment, &here)).map(drop)?))?;
    drop(service);
    let mut started = None;
    let start = Spent::on(|| {
        started = Some(open(&here)?);
        Ok(())
    })?;
    let service = started.context("a service was opened")?;
    let (of_tables, _) = service.counts();

    let address = serve(service)?;
    let single = latencies(address, &documents, count, Duration::from_secs(args.seconds))?;

    let empty = serve(open(&store("http"))?)?;
    let mut client = HttpClient::connect(empty)?;
    let mut by_http = Spent { wall_s: 0.0, cpu_s: 0.0 };
    for range in ranges() {
        let lines = documents.batch(range);
        let spent = Spent::on(|| client.post("/documents", lines.as_bytes()).map(drop))?;
        by_http = Spent { wall_s: by_http.wall_s + spent.wall_s, cpu_s: by_http.cpu_s + spent.cpu_s };
    }
    let joins = chains::measure(args.cluster, workers)?;

    let same = |counts: Counts| (counts.documents, counts.nodes, counts.clusters);
    let http_clusters = {
        let mut client = HttpClient::connect(empty)?;
        metric(&client.get("/metrics")?, "nigh_live_clusters")
    };
    let report = LiveReport {
        documents: count,
        words: args.words,
        batch,
        workers,
        clusters: counts.clusters,
        distinct_vectors: counts.nodes,
        in_process,
        in_process_per_cpu_s: count as f64 / in_process.cpu_s,
        by_http,
        by_http_per_s: count as f64 / by_http.wall_s,
        commit,
        start,
        vector_bytes_per_document: vectors as f64 / count as f64,
        other_bytes_per_document: memory.map(|memory| (memory as f64 - vectors as f64) / count as f64),
        single,
        joins,
        clusters_match: same(counts) == same(of_tables) && http_clusters == Some(counts.clusters),
    };
    BenchOutcome::new(report.clusters_match && joins.is_correct, &report, args.json)
}

/// Runs the commands of a commit, which have the lock of the store from this process.
fn run(commitment: &Commitment, store: &Store) -> Result<()> {
    let lock = store.lock()?;
    commitment.run(store.root(), || {
        let mut command = program_command()?;
        command.stdin(lock.try_clone()?);
        Ok(command)
    })
}

/// Starts a server of a service, which stays until the process ends.
fn serve(service: Service) -> Result<SocketAddr> {
    let refused = Box::new(|_: &Commitment| Err(anyhow!("the benchmark commits before it serves")));
    let commits = Commits::new(CommitEvery::default(), refused, Box::new(|_| {}));
    let (address, limits) = (([127, 0, 0, 1], 0).into(), Limits::default());
    Ok(Server::start(service, address, Access::new(None)?, limits, commits)?.address)
}

/// A number of the metrics.
fn metric(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok())
}

/// Sends single documents, each a request, after `first` others.
fn latencies(address: SocketAddr, documents: &MadeDocuments, first: u64, time: Duration) -> Result<Latencies> {
    // As fast as they are answered.
    let begun = Instant::now();
    let sent = on_connections(address, |client, connection| {
        let mut sent = 0u64;
        while begun.elapsed() < time {
            let number = first + sent * CONNECTIONS as u64 + connection;
            client.post("/documents", documents.batch(number..number + 1).as_bytes())?;
            sent += 1;
        }
        Ok(sent)
    })?;
    let all: u64 = sent.iter().sum();
    let full_load_per_s = all as f64 / begun.elapsed().as_secs_f64();
    let after = first + CONNECTIONS as u64 * sent.iter().max().copied().unwrap_or_default();
    // At half that rate. A document that is late because the one before it was slow counts from
    // when it should be sent.
    let period = Duration::from_secs_f64(2.0 * CONNECTIONS as f64 / full_load_per_s.max(1e-3));
    let times = Mutex::new(Vec::new());
    let begun = Instant::now();
    on_connections(address, |client, connection| {
        let mut own = Vec::new();
        let offset = period.mul_f64(connection as f64 / CONNECTIONS as f64);
        for turn in 0.. {
            let due = offset + period * turn;
            if due >= time {
                break;
            }
            let number = after + u64::from(turn) * CONNECTIONS as u64 + connection;
            let line = documents.batch(number..number + 1);
            std::thread::sleep(due.saturating_sub(begun.elapsed()));
            client.post("/documents", line.as_bytes())?;
            own.push((begun.elapsed() - due).as_secs_f64() * 1e3);
        }
        times.lock().map_err(|_| anyhow!("a thread panicked"))?.extend(own);
        Ok(())
    })?;
    let mut times = times.into_inner().map_err(|_| anyhow!("a thread panicked"))?;
    times.sort_by(f64::total_cmp);
    let quantile = |share: f64| times.get((times.len() as f64 * share) as usize).or(times.last()).copied();
    let [p50_ms, p99_ms] = [0.5, 0.99].map(|share| quantile(share).unwrap_or_default());
    Ok(Latencies { full_load_per_s, p50_ms, p99_ms, sent: times.len() as u64 })
}

/// Runs the same on each connection, in threads.
fn on_connections<T: Send>(
    address: SocketAddr,
    work: impl Fn(&mut HttpClient, u64) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..CONNECTIONS as u64)
            .map(|connection| {
                let work = &work;
                scope.spawn(move || work(&mut HttpClient::connect(address)?, connection))
            })
            .collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, Result<T>>| thread.join();
        threads.into_iter().map(|thread| join(thread).map_err(|_| anyhow!("a thread panicked"))?).collect()
    })
}

impl fmt::Display for LiveReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} documents of {} words in batches of {}, {} worker(s); {} clusters, {} distinct vectors",
            grouped(self.documents),
            grouped(self.words),
            grouped(self.batch),
            self.workers,
            grouped(self.clusters),
            grouped(self.distinct_vectors)
        )?;
        writeln!(f, "{:<34} {:>9} {:>9} {:>9} {:>9}", "part", "seconds", "CPU s", "a second", "a CPU s")?;
        for (name, spent) in [
            ("taken and answered, in process", self.in_process),
            ("taken and answered, by HTTP", self.by_http),
            ("committed", self.commit),
            ("start from the tables", self.start),
        ] {
            let [by_wall, by_cpu] = [spent.wall_s, spent.cpu_s].map(|s| grouped((self.documents as f64 / s) as u64));
            writeln!(f, "{name:<34} {:>9.3} {:>9.3} {by_wall:>9} {by_cpu:>9}", spent.wall_s, spent.cpu_s)?;
        }
        let Latencies { full_load_per_s, p50_ms, p99_ms, sent } = self.single;
        writeln!(
            f,
            "single documents by HTTP, {CONNECTIONS} connections: {} a second; at half of it ({} sent) p50 {p50_ms:.2} ms, p99 {p99_ms:.2} ms",
            grouped(full_load_per_s as u64),
            grouped(sent)
        )?;
        let other = self.other_bytes_per_document.map_or_else(|| "?".to_owned(), |bytes| format!("{bytes:.0}"));
        writeln!(
            f,
            "memory: {:.0} bytes a document for the vectors, {other} bytes besides",
            self.vector_bytes_per_document
        )?;
        let JoinTimes { documents, merge_s, split_s, split_of_one_s, is_correct } = self.joins;
        writeln!(
            f,
            "two clusters of {}: merged in {:.1} ms, split in {:.1} ms, one of the tables split in {:.1} ms",
            grouped(documents),
            merge_s * 1e3,
            split_s * 1e3,
            split_of_one_s * 1e3
        )?;
        if !self.clusters_match || !is_correct {
            writeln!(f, "THE CLUSTERS DIFFER: a fault in this program")?;
        }
        Ok(())
    }
}
