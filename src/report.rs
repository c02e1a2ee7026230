//! Reports for the user: the text of a week's summary, of a plan and of changes, and the estimate
//! of disk space.

mod accuracy;
mod changes;
mod curve;
mod html;

use std::io::Write as _;

use anyhow::{Context, Result};

use crate::config::Bytes;
use crate::plan::Plan;
use crate::records::DocumentKey;
use crate::sheet::{Grid, GridColumn, Printable, Sheet, grouped, plural};
use crate::state::ReadingCounts;
use crate::summary::{CurvePoint, LevelSummary, Summary};
use crate::text::printable;

pub use changes::{ClusterEvent, WeekChanges, changes};
pub use html::{figures_page, page};
#[cfg(feature = "live")]
pub(crate) use html::{is_web_address, without_middle};

/// How many of the largest clusters a summary lists.
const LISTED: usize = 10;

/// The report of a week's summary, as `run` and `show` print it.
pub fn summary(summary: &Summary) -> Sheet {
    let mut sheet = Sheet::default();
    sheet.line(format!(
        "Week {}: {} from {} ({}), {}",
        summary.week,
        plural(summary.counts.documents, "document"),
        plural(summary.files, "file"),
        Bytes(summary.input_bytes),
        plural(summary.counts.words, "word")
    ));
    sheet.blank();
    sheet.grid(levels(&summary.levels));
    if let Some(level) = summary.levels.iter().find(|level| !level.largest.is_empty()) {
        sheet.blank();
        largest(level, &mut sheet);
    }
    sheet.blank();
    curve::curve(&summary.curve, &mut sheet);
    if let Some(of) = &summary.accuracy {
        accuracy::accuracy(of, &mut sheet);
    }
    counts(&summary.counts, &mut sheet);
    if let Some(since) = &summary.since {
        changes::since(since, &mut sheet);
    }
    sheet.fact("Tables", summary.store.join("TABLE").join(summary.week.folder()).display().to_string());
    sheet
}

/// One row for each level: clusters, documents in them, duplicates and the power law of cluster
/// sizes.
fn levels(levels: &[LevelSummary]) -> Grid {
    let numbers = ["clusters", "documents", "duplicates", "share", "power law", "from"];
    let mut grid = Grid::of_numbers("", numbers);
    for level in levels {
        let [exponent, least] = power_law(level);
        grid.row([
            level.level.title().to_owned(),
            grouped(level.clusters),
            grouped(level.clustered),
            grouped(level.duplicates),
            format!("{:.1}%", 100.0 * level.share),
            exponent,
            least,
        ]);
    }
    grid
}

/// The largest clusters of a level. Machines are `m (+n)`: m addresses, n hosts without a known
/// one.
fn largest(level: &LevelSummary, sheet: &mut Sheet) {
    sheet.line(format!("Largest {} clusters", level.level.title()));
    let numbers = ["cluster", "pages", "hosts", "machines"].map(|name| (name, GridColumn::Number));
    let mut grid = Grid::new(numbers.into_iter().chain([("page", GridColumn::Text), ("title", GridColumn::Text)]));
    let listed = || level.largest.iter().take(LISTED);
    for cluster in listed() {
        let machines = match cluster.unresolved {
            0 => grouped(cluster.machines),
            unresolved => format!("{} (+{unresolved})", grouped(cluster.machines)),
        };
        let id = cluster.cluster_id.map_or_else(String::new, |id| id.to_string());
        let [name, title] = [&cluster.name, &cluster.title].map(|text| printable(text).into_owned());
        grid.row([id, grouped(cluster.urls), grouped(cluster.hosts), machines, name, title]);
    }
    sheet.grid(grid);
    if listed().any(|cluster| cluster.unresolved > 0) {
        sheet.line("(+n) machines: n hosts whose address the crawl does not have");
    }
    sheet.line("The pages of one: nigh show STORE --cluster ID");
}

/// The records read, and one line for each kind of record passed over or rejected.
fn counts(counts: &ReadingCounts, sheet: &mut Sheet) {
    sheet.fact(
        "Records",
        format!(
            "{} read: {} ({} without words, {} cut), {} passed over, {} rejected",
            grouped(counts.records),
            plural(counts.documents, "document"),
            grouped(counts.empty),
            grouped(counts.cut),
            grouped(counts.skipped.values().sum()),
            grouped(counts.rejected())
        ),
    );
    let mut grid = Grid::new([("", GridColumn::Number), ("", GridColumn::Text)]).without_head();
    let mut row = |count: String, what: String| grid.row([format!("  {count:>10}"), what]);
    for (title, kinds) in [("passed over", &counts.skipped), ("rejected", &counts.rejects)] {
        for (kind, count) in kinds {
            row(grouped(*count), format!("{title}: {}", printable(kind)));
        }
    }
    for (count, what) in [
        (counts.no_bytes, "documents without a byte: exact copies of each other"),
        (
            counts.empty.saturating_sub(counts.no_bytes),
            "documents without words: copies of those with the same bytes, like no others",
        ),
        (counts.short, "documents with fewer words than a shingle: their shingles have words more than once"),
    ] {
        if count > 0 {
            row(grouped(count), what.to_owned());
        }
    }
    if counts.revisits > 0 {
        let of = counts.revisited.clone().unwrap_or_default();
        let others = counts.revisits.saturating_sub(of.here + of.earlier + of.unknown());
        let of_others = match counts.revisited {
            Some(_) => "revisits: other records of URLs that have a page already, or of what is not a page",
            None => "revisits",
        };
        for (count, what) in [
            (of.here, "revisits: pages of this crawl"),
            (of.earlier, "revisits: pages of earlier weeks"),
            (of.unknown(), "revisits: pages that are not known: what they refer to is not in the store"),
            (others, of_others),
        ] {
            if count > 0 {
                row(grouped(count), what.to_owned());
            }
        }
    }
    if counts.whole_pages > 0 {
        row(grouped(counts.whole_pages), "pages without a main content: all of their text counts".to_owned());
    }
    if counts.unread_dates > 0 {
        row(grouped(counts.unread_dates), "pages with a date that cannot be read".to_owned());
    }
    let incomplete = counts.incomplete();
    for (file, bytes, ends_early) in incomplete.iter().take(LISTED) {
        let why = if *ends_early { ": the file ends early" } else { "" };
        row(Bytes(*bytes).to_string(), format!("not read of {file}{why}"));
    }
    if incomplete.len() > LISTED {
        row(grouped((incomplete.len() - LISTED) as u64), "more files were not read whole".to_owned());
    }
    for (file, count) in counts.unlisted.iter().take(LISTED) {
        let file = printable(file);
        row(grouped(*count), format!("rejected in {file} in addition to those listed in `rejects`"));
    }
    if counts.unlisted.len() > LISTED {
        let more: u64 = counts.unlisted.values().skip(LISTED).sum();
        row(grouped(more), "rejected in more files in addition to those listed in `rejects`".to_owned());
    }
    sheet.grid(grid);
}

/// The exponent of the power law of cluster sizes, and the size from which it holds.
fn power_law(level: &LevelSummary) -> [String; 2] {
    match (level.exponent, level.x_min) {
        (Some(exponent), Some(x_min)) => [format!("{exponent:.2}"), grouped(x_min)],
        _ => ["too few".to_owned(), String::new()],
    }
}

/// The report of a plan, as `run --dry-run` prints it: what the run would do and need.
pub fn plan(plan: &Plan, disk: &Disk) -> Sheet {
    let bytes: u64 = plan.inputs.iter().map(|input| input.bytes).sum();
    let mut sheet = Sheet::indented(10);
    sheet.fact("Week", plan.week.to_string());
    sheet.fact("Store", plan.store.display().to_string());
    sheet.fact("Input", format!("{}, {}", plural(plan.inputs.len() as u64, "file"), Bytes(bytes)));
    let known_by = match plan.method.documents {
        DocumentKey::Url => "known by their URLs",
        DocumentKey::Id => "known by their ids",
        DocumentKey::Row => "known by file and place",
    };
    sheet.fact("Documents", known_by);
    sheet.fact("Waves", format!("{}, committed one by one", grouped(plan.waves.len() as u64)));
    let of_processes = match plan.processes {
        1 => "one process".to_owned(),
        processes => format!("each of {} processes", grouped(processes as u64)),
    };
    sheet.fact("Workers", format!("{} in {of_processes}", plan.workers));
    sheet.fact(
        "Memory",
        format!(
            "{} for buffers, {} for each worker; clustering and tables need about 55 bytes for each page in addition",
            Bytes(plan.worker_memory * plan.peers() as u64),
            Bytes(plan.worker_memory)
        ),
    );
    let free = disk.free.map_or("unknown".into(), |free| Bytes(free).to_string());
    sheet.fact("Disk", format!("about {} needed, {free} free", Bytes(disk.needed)));
    let has_records = plan.inputs.iter().any(|input| input.format.is_archive());
    if has_records && plan.method.documents == DocumentKey::Url {
        let weeks = match plan.earlier.weeks.len() {
            0 => "and no earlier week".to_owned(),
            weeks => format!("and in {}", plural(weeks as u64, "earlier week")),
        };
        sheet.fact(
            "Revisits",
            format!(
                "their pages are looked for in this input {weeks}; the run fails if more than {:.1}% of the pages are not known",
                100.0 * plan.max_unknown_share
            ),
        );
    }
    let preset = plan.method.preset().map_or_else(String::new, |name| format!(" ({name})"));
    sheet.fact("Method", format!("{}{preset}", plan.method));
    curve::curve(&CurvePoint::of_method(&plan.method), &mut sheet);
    sheet
}

/// The disk space that a run needs and has.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub struct Disk {
    /// An estimate of the most space that the run takes at a time, in bytes.
    pub needed: u64,
    /// Free bytes on the file system of the store; `None` if the system does not report them.
    pub free: Option<u64>,
}

/// Bytes of tables and scratch for one byte of stored input, with a margin. Measured on a week of
/// 10.5 MB of gzip-compressed crawl in 64 shards, whose files are too small to compress well: 0.30
/// when the week is committed, and 0.77 just before, when its tables are packed and lie on the disk
/// twice.
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

/// Writes a result to stdout, for a person. JSON is written as it is, because it has no character
/// that a terminal acts on: see [`printable_json`](crate::text::printable_json). A closed pipe is
/// not an error.
///
/// # Errors
/// If stdout cannot be written.
pub fn print(text: impl Into<Printable>) -> Result<()> {
    let text = text.into();
    match std::io::stdout().write_all(text.as_str().as_bytes()).and_then(|()| std::io::stdout().flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error).context("cannot write to stdout"),
        _ => Ok(()),
    }
}
