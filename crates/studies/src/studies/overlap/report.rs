//! The report of an overlap summary: pages or hosts that share chunks (Shivakumar and Garcia-Molina
//! 1998).

use super::{ChunkingSummary, OverlapSummary, Unit};
use crate::config::Bytes;
use crate::sheet::{Grid, GridColumn, Sheet, grouped, plural};
use crate::studies::percent;
use crate::text::printable;

/// How many of the largest components are listed.
const LISTED: usize = 5;

/// The report, as `run` and `show` print it.
pub fn overlap(summary: &OverlapSummary) -> Sheet {
    let mut sheet = Sheet::default();
    let units = match summary.unit {
        Unit::Document => "pages",
        Unit::Host => "hosts",
    };
    sheet.line(format!("Overlap of week {}: {} {units} with chunks", summary.last, grouped(summary.documents)));
    if summary.without_chunks > 0 {
        sheet.line(format!("Left out: {} pages without chunks", grouped(summary.without_chunks)));
    }
    if let (Some(former), Some(changed)) = (summary.former, summary.changed) {
        sheet.line(format!("From the tables of week {former}, of whose texts {:.2}% changed", 100.0 * changed));
    }
    sheet.blank();
    let numbers = ["least", "pairs listed", "families", "their pairs", "copies", "published", "bytes"];
    let mut grid = Grid::of_numbers("", numbers);
    for of in &summary.chunkings {
        let saving = &of.saving;
        grid.row([
            of.chunking.name().to_owned(),
            of.threshold.to_string(),
            grouped(of.pairs),
            grouped(of.families),
            grouped(of.family_pairs),
            percent(saving.share),
            percent(saving.published),
            Bytes(saving.bytes).to_string(),
        ]);
    }
    sheet.grid(grid);
    summary.chunkings.iter().for_each(|of| chunking(of, units, &mut sheet));
    if !summary.steps.is_empty() {
        sheet.blank();
        sheet.grid(needs(summary));
    }
    sheet.blank();
    sheet
}

/// What the steps needed (Table 1).
fn needs(summary: &OverlapSummary) -> Grid {
    let head = format!("steps of {}", plural(summary.workers, "worker"));
    let mut grid = Grid::of_numbers(&head, ["seconds", "records", "bytes"]);
    for of in &summary.steps {
        let chunking = of.chunking.map_or_else(String::new, |chunking| format!("{}: ", chunking.name()));
        let seconds = of.seconds.map_or_else(String::new, |seconds| format!("{seconds:.2}"));
        let records = of.records.map_or_else(String::new, grouped);
        let bytes = of.bytes.map_or_else(String::new, |bytes| Bytes(bytes).to_string());
        grid.row([format!("{chunking}{}", of.step), seconds, records, bytes]);
    }
    grid
}

/// What is said of one chunking.
fn chunking(of: &ChunkingSummary, units: &str, sheet: &mut Sheet) {
    sheet.blank();
    let others = format!("{}: others", of.chunking.name());
    let columns = [others.as_str(), units, "share", "published", "by component"];
    let mut grid = Grid::new(columns.map(|name| (name, GridColumn::Number)));
    for row in &of.replicas {
        grid.row([
            row.replicas.to_string(),
            grouped(row.documents),
            percent(row.share),
            percent(row.published),
            grouped(row.by_cluster),
        ]);
    }
    sheet.grid(grid);
    // Documents that are not known by URL have no hosts.
    if of.reasons.iter().any(|row| row.documents > 0) {
        let reasons = of.reasons.iter().map(|row| format!("{} {}", grouped(row.documents), row.reason));
        sheet.line(format!("copies: {}", reasons.collect::<Vec<_>>().join(", ")));
    }
    for group in of.most.iter().take(LISTED) {
        let pages = plural(group.documents, "page");
        let hosts = match group.hosts {
            0 => String::new(),
            hosts => format!(", {}, {}", plural(hosts, "host"), plural(group.machines, "machine")),
        };
        sheet.line(format!("{pages}{hosts}: {}", printable(&group.url)));
    }
}
