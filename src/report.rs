//! Summaries and plans as a person reads them.

mod changes;
mod evolution;

use std::fmt::Write as _;
use std::io::Write as _;

use anyhow::{Context, Result};

use crate::config::Bytes;
use crate::plan::Plan;
use crate::summary::{LevelSummary, Summary};

pub use changes::{Change, Changes, changes};
pub use evolution::evolution;

/// A number with its thousands set apart.
///
/// ```
/// assert_eq!(nigh::report::grouped(150_836_209), "150,836,209");
/// ```
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Clusters that a summary lists.
const LISTED: usize = 10;

/// A week's summary, as `run` and `show` print it.
pub fn summary(summary: &Summary) -> String {
    let counts = &summary.counts;
    let mut out = String::new();
    let mut line = |text: String| {
        out.push_str(&text);
        out.push('\n');
    };
    line(format!(
        "Week {}: {} documents from {} files ({}), {} words",
        summary.week,
        grouped(counts.documents),
        grouped(summary.files),
        Bytes(summary.input_bytes),
        grouped(counts.words)
    ));
    line(String::new());
    line(format!(
        "{:20} {:>12} {:>14} {:>14} {:>7}   cluster sizes",
        "", "clusters", "documents", "duplicates", "share"
    ));
    for level in &summary.levels {
        line(format!(
            "{:20} {:>12} {:>14} {:>14} {:>6.1}%   {}",
            level.level.title(),
            grouped(level.clusters),
            grouped(level.clustered),
            grouped(level.duplicates),
            100.0 * level.share,
            power_law(level)
        ));
    }
    if let Some(level) = summary.levels.iter().find(|level| !level.largest.is_empty()) {
        line(String::new());
        line(format!("Largest {} clusters", level.level.title()));
        line(format!("{:>12} {:>7} {:>10}  canonical page", "documents", "hosts", "machines"));
        for cluster in level.largest.iter().take(LISTED) {
            let machines = match cluster.unresolved {
                0 => grouped(cluster.machines),
                unresolved => format!("{} (+{unresolved})", grouped(cluster.machines)),
            };
            let title: String = cluster.title.chars().take(60).collect();
            let title = if title.is_empty() { String::new() } else { format!("  {title}") };
            let urls = grouped(cluster.urls);
            line(format!("{urls:>12} {:>7} {machines:>10}  {}{title}", grouped(cluster.hosts), cluster.url));
        }
    }
    line(String::new());
    line(format!(
        "Records  {} read: {} documents ({} without words, {} cut), {} passed over, {} rejected",
        grouped(counts.records),
        grouped(counts.documents),
        grouped(counts.empty),
        grouped(counts.cut),
        grouped(counts.skipped.values().sum()),
        grouped(counts.rejected())
    ));
    for (title, kinds) in [("passed over", &counts.skipped), ("rejected", &counts.rejects)] {
        for (kind, count) in kinds {
            line(format!("  {:>10}  {title}: {kind}", grouped(*count)));
        }
    }
    for (file, count) in &counts.unlisted {
        line(format!("  {:>10}  rejected in {file} beyond the ones listed in `rejects`", grouped(*count)));
    }
    if let Some(since) = &summary.since {
        line(changes::since(since).trim_end().to_owned());
    }
    line(format!("Tables   {}", summary.store.join(summary.week.folder()).display()));
    out
}

fn power_law(level: &LevelSummary) -> String {
    match (level.exponent, level.x_min) {
        (Some(exponent), Some(x_min)) => format!("power law, exponent {exponent:.2} from size {x_min}"),
        _ => "too few clusters for a power law".into(),
    }
}

/// What a run would do and need: `run --dry-run`.
pub fn plan(plan: &Plan, disk: &Disk) -> String {
    let bytes: u64 = plan.inputs.iter().map(|input| input.bytes).sum();
    let mut out = String::new();
    let mut line = |name: &str, text: String| {
        let _ = writeln!(out, "{name:10}{text}");
    };
    line("Week", plan.week.to_string());
    line("Store", plan.store.display().to_string());
    line("Input", format!("{} files, {}", grouped(plan.inputs.len() as u64), Bytes(bytes)));
    line("Waves", format!("{}, committed one by one", grouped(plan.waves.len() as u64)));
    line("Workers", format!("{} in each of {} processes", plan.workers, plan.processes));
    line(
        "Memory",
        format!(
            "{} for buffers, {} a worker; clustering takes about 150 bytes a page besides",
            Bytes(plan.worker_memory * plan.peers() as u64),
            Bytes(plan.worker_memory)
        ),
    );
    line(
        "Disk",
        format!(
            "about {} needed, {} free",
            Bytes(disk.needed),
            disk.free.map_or("unknown".into(), |free| Bytes(free).to_string())
        ),
    );
    line("Method", plan.method.to_string());
    out
}

/// Disk space of a run.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub struct Disk {
    /// About what the tables will take, in bytes.
    pub needed: u64,
    /// What is free where the store is, in bytes; `None` where the system does not tell.
    pub free: Option<u64>,
}

/// Bytes of tables and scratch for one byte of stored input, with room to spare: the tables of a week of 10.5 MB of
/// gzip-compressed crawl took 0.18 of it in 4 shards, and 0.31 in 64, where files are too small to compress well.
const TABLES_PER_INPUT: f64 = 0.4;

impl Disk {
    /// What a plan needs, and what there is.
    pub fn of(plan: &Plan) -> Disk {
        let bytes: u64 = plan.inputs.iter().map(|input| input.bytes).sum();
        let existing = plan.store.ancestors().find(|path| path.exists()).map(|path| path.to_owned());
        let free = rustix::fs::statvfs(existing.as_deref().unwrap_or(std::path::Path::new(".")));
        Disk {
            needed: (bytes as f64 * TABLES_PER_INPUT) as u64,
            free: free.ok().map(|stat| stat.f_bavail * stat.f_frsize),
        }
    }
}

/// Writes a result to stdout; that nobody reads it any more is no error.
pub fn say(text: &str) -> Result<()> {
    match std::io::stdout().write_all(text.as_bytes()).and_then(|()| std::io::stdout().flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error).context("cannot write to stdout"),
        _ => Ok(()),
    }
}
