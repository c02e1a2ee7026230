//! Reports for the user: the text of a week's summary, of a plan and of changes, and the estimate of disk space.

mod accuracy;
mod changes;
mod collections;
mod curve;
mod evolution;
mod grid;
mod mirrors;
mod mirrors_by_url;
mod overlap;
mod paragraphs;
mod samplers;

use std::fmt::Write as _;
use std::io::Write as _;

use anyhow::{Context, Result};

use crate::config::Bytes;
use crate::plan::Plan;
use crate::records::DocumentKey;
use crate::state::Counts;
use crate::summary::{CurvePoint, LevelSummary, Summary};
use crate::text::{printable, printable_lines};

pub use changes::{Change, Changes, changes};
pub use grid::{Column, Grid, fact, screen_width, shortened};

use crate::summary::StudySummary;

/// The text of the summary of a study, as `run` and `show` print it; `tables` is the folder of its tables.
pub fn study(summary: &StudySummary, tables: &std::path::Path) -> String {
    match summary {
        StudySummary::Evolution(summary) => evolution::evolution(summary, tables),
        StudySummary::Mirrors(summary) => mirrors::mirrors(summary, tables),
        StudySummary::Overlap(summary) => overlap::overlap(summary, tables),
        StudySummary::Collections(summary) => collections::collections(summary, tables),
        StudySummary::MirrorsByUrl(summary) => mirrors_by_url::mirrors_by_url(summary, tables),
        StudySummary::Paragraphs(summary) => paragraphs::paragraphs(summary, tables),
        StudySummary::Samplers(summary) => samplers::samplers(summary, tables),
    }
}

/// Formats a number with commas between groups of three digits.
///
/// ```
/// assert_eq!(nigh::report::grouped(150_836_209), "150,836,209");
/// ```
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A number of things, with the plural's `s` unless it is one.
///
/// ```
/// use nigh::report::plural;
/// assert_eq!([0, 1, 1200].map(|count| plural(count, "page")), ["0 pages", "1 page", "1,200 pages"]);
/// ```
pub fn plural(count: u64, thing: &str) -> String {
    format!("{} {thing}{}", grouped(count), if count == 1 { "" } else { "s" })
}

/// How many of the largest clusters a summary lists.
const LISTED: usize = 10;

/// The text of a week's summary, as `run` and `show` print it.
pub fn summary(summary: &Summary) -> String {
    let mut lines = vec![format!(
        "Week {}: {} documents from {} files ({}), {} words",
        summary.week,
        grouped(summary.counts.documents),
        grouped(summary.files),
        Bytes(summary.input_bytes),
        grouped(summary.counts.words)
    )];
    lines.push(String::new());
    lines.extend(level_lines(&summary.levels));
    if let Some(level) = summary.levels.iter().find(|level| !level.largest.is_empty()) {
        lines.push(String::new());
        lines.extend(largest_lines(level));
    }
    lines.push(String::new());
    lines.extend(curve::curve(&summary.curve));
    lines.extend(summary.accuracy.iter().flat_map(accuracy::accuracy));
    lines.extend(count_lines(&summary.counts));
    if let Some(since) = &summary.since {
        lines.push(changes::since(since).trim_end().to_owned());
    }
    lines.push(format!("Tables   {}", summary.store.join("TABLE").join(summary.week.folder()).display()));
    lines.join("\n") + "\n"
}

/// One line for each level: clusters, documents in them, duplicates and the power law of cluster sizes.
fn level_lines(levels: &[LevelSummary]) -> Vec<String> {
    let head =
        format!("{:20} {:>12} {:>14} {:>14} {:>7}   cluster sizes", "", "clusters", "documents", "duplicates", "share");
    let line = |level: &LevelSummary| {
        format!(
            "{:20} {:>12} {:>14} {:>14} {:>6.1}%   {}",
            level.level.title(),
            grouped(level.clusters),
            grouped(level.clustered),
            grouped(level.duplicates),
            100.0 * level.share,
            power_law(level)
        )
    };
    std::iter::once(head).chain(levels.iter().map(line)).collect()
}

/// One line for each of the largest clusters of a level. Machines are `m (+n)`: m addresses, n hosts without a known one.
fn largest_lines(level: &LevelSummary) -> Vec<String> {
    let mut lines = vec![format!("Largest {} clusters", level.level.title())];
    lines.push(format!("{:>12} {:>7} {:>10}  page", "documents", "hosts", "machines"));
    for cluster in level.largest.iter().take(LISTED) {
        let machines = match cluster.unresolved {
            0 => grouped(cluster.machines),
            unresolved => format!("{} (+{unresolved})", grouped(cluster.machines)),
        };
        let title: String = cluster.title.chars().take(60).collect();
        let title = if title.is_empty() { String::new() } else { format!("  {}", printable(&title)) };
        let urls = grouped(cluster.urls);
        lines.push(format!(
            "{urls:>12} {:>7} {machines:>10}  {}{title}",
            grouped(cluster.hosts),
            printable(&cluster.name)
        ));
    }
    lines
}

/// The records read, and one line for each kind of record passed over or rejected.
fn count_lines(counts: &Counts) -> Vec<String> {
    let mut lines = vec![format!(
        "Records  {} read: {} documents ({} without words, {} cut), {} passed over, {} rejected",
        grouped(counts.records),
        grouped(counts.documents),
        grouped(counts.empty),
        grouped(counts.cut),
        grouped(counts.skipped.values().sum()),
        grouped(counts.rejected())
    )];
    for (title, kinds) in [("passed over", &counts.skipped), ("rejected", &counts.rejects)] {
        lines.extend(
            kinds.iter().map(|(kind, count)| format!("  {:>10}  {title}: {}", grouped(*count), printable(kind))),
        );
    }
    if counts.revisits > 0 {
        lines.push(format!("  {:>10}  revisits: pages that are what others were", grouped(counts.revisits)));
    }
    if counts.unread_dates > 0 {
        lines.push(format!("  {:>10}  pages with a date that cannot be read", grouped(counts.unread_dates)));
    }
    let incomplete = counts.incomplete();
    for (file, bytes, ends_early) in incomplete.iter().take(LISTED) {
        let why = if *ends_early { ": the file ends early" } else { "" };
        lines.push(format!("  {:>10}  not read of {file}{why}", Bytes(*bytes).to_string()));
    }
    if incomplete.len() > LISTED {
        lines.push(format!("  {:>10}  more files were not read whole", grouped((incomplete.len() - LISTED) as u64)));
    }
    for (file, count) in &counts.unlisted {
        let file = printable(file);
        lines.push(format!("  {:>10}  rejected in {file} in addition to those listed in `rejects`", grouped(*count)));
    }
    lines
}

fn power_law(level: &LevelSummary) -> String {
    match (level.exponent, level.x_min) {
        (Some(exponent), Some(x_min)) => format!("power law, exponent {exponent:.2} from size {x_min}"),
        _ => "too few clusters for a power law".into(),
    }
}

/// The text of a plan, as `run --dry-run` prints it: what the run would do and need.
pub fn plan(plan: &Plan, disk: &Disk) -> String {
    let bytes: u64 = plan.inputs.iter().map(|input| input.bytes).sum();
    let mut out = String::new();
    let mut line = |name: &str, text: String| {
        let _ = writeln!(out, "{name:10}{text}");
    };
    line("Week", plan.week.to_string());
    line("Store", plan.store.display().to_string());
    line("Input", format!("{} files, {}", grouped(plan.inputs.len() as u64), Bytes(bytes)));
    let known_by = match plan.method.documents {
        DocumentKey::Url => "known by their URLs",
        DocumentKey::Id => "known by their ids",
        DocumentKey::Row => "known by file and place",
    };
    line("Documents", known_by.to_owned());
    line("Waves", format!("{}, committed one by one", grouped(plan.waves.len() as u64)));
    line("Workers", format!("{} in each of {} processes", plan.workers, plan.processes));
    line(
        "Memory",
        format!(
            "{} for buffers, {} for each worker; clustering and tables need about 55 bytes for each page in addition",
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
    let preset = plan.method.preset().map_or_else(String::new, |name| format!(" ({name})"));
    line("Method", format!("{}{preset}", plan.method));
    for line in curve::curve(&CurvePoint::of_method(&plan.method)) {
        let _ = writeln!(out, "{line}");
    }
    out
}

/// The disk space that a run needs and has.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub struct Disk {
    /// An estimate of the most space that the run takes at a time, in bytes.
    pub needed: u64,
    /// Free bytes on the file system of the store; `None` if the system does not report them.
    pub free: Option<u64>,
}

/// Bytes of tables and scratch for one byte of stored input, with a margin. Measured on a week of 10.5 MB of gzip-compressed
/// crawl in 64 shards, whose files are too small to compress well: 0.30 when the week is committed, and 0.77 just before, when its
/// tables are packed and lie on the disk twice.
const TABLES_PER_INPUT: f64 = 0.9;

impl Disk {
    /// Estimates the space that a plan needs, and asks the system for the free space.
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

/// Writes a result to stdout, for a person: see [`printable_lines`]. JSON is written as it is, because it has no character that a
/// terminal acts on: see [`printable_json`](crate::text::printable_json). A closed pipe is not an error.
///
/// # Errors
/// If stdout cannot be written.
pub fn print(text: &str) -> Result<()> {
    let text = printable_lines(text);
    match std::io::stdout().write_all(text.as_bytes()).and_then(|()| std::io::stdout().flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error).context("cannot write to stdout"),
        _ => Ok(()),
    }
}
