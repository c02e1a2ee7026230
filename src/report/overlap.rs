//! The text of an overlap summary: pages or hosts that share chunks (Shivakumar and Garcia-Molina 1998).

use std::fmt::Write as _;

use super::grouped;
use crate::config::{Bytes, Unit};
use crate::summary::{ChunkingSummary, OverlapSummary};
use crate::text::printable;

/// How many of the largest components are listed.
const LISTED: usize = 5;

/// The text of the summary, as `run` and `show` print it; `tables` is the folder of the job's tables.
pub fn overlap(summary: &OverlapSummary, tables: &std::path::Path) -> String {
    let mut out = String::new();
    let units = match summary.unit {
        Unit::Document => "pages",
        Unit::Host => "hosts",
    };
    let mut line = |text: String| {
        let _ = writeln!(out, "{}", text.trim_end());
    };
    line(format!("Overlap of week {}: {} {units} with chunks", summary.last, grouped(summary.documents)));
    if summary.without_chunks > 0 {
        line(format!("Left out: {} pages without chunks", grouped(summary.without_chunks)));
    }
    if let (Some(former), Some(changed)) = (summary.former, summary.changed) {
        line(format!("From the tables of week {former}, of whose texts {:.2}% changed", 100.0 * changed));
    }
    line(String::new());
    line(format!(
        "{:24} {:>6} {:>14} {:>9} {:>14} {:>9} {:>10}",
        "", "least", "pairs listed", "families", "their pairs", "copies", "published"
    ));
    for of in &summary.chunkings {
        let saving = &of.saving;
        line(format!(
            "{:24} {:>6} {:>14} {:>9} {:>14} {:>9} {:>10}   {}",
            of.chunking.name(),
            of.threshold,
            grouped(of.pairs),
            grouped(of.families),
            grouped(of.family_pairs),
            percent(saving.share),
            percent(saving.published),
            Bytes(saving.bytes)
        ));
    }
    for of in &summary.chunkings {
        chunking(of, units, &mut line);
    }
    line(String::new());
    line(format!("Tables   {}", tables.display()));
    out
}

fn percent(share: Option<f64>) -> String {
    share.map_or("-".into(), |share| format!("{:.1}%", 100.0 * share))
}

/// The lines of one chunking.
fn chunking(of: &ChunkingSummary, units: &str, line: &mut impl FnMut(String)) {
    line(String::new());
    let others = format!("{}: others", of.chunking.name());
    line(format!("{others:24} {units:>12} {:>9} {:>10} {:>14}", "share", "published", "by component"));
    for row in &of.replicas {
        line(format!(
            "{:>24} {:>12} {:>9} {:>10} {:>14}",
            row.replicas,
            grouped(row.documents),
            percent(row.share),
            percent(row.published),
            grouped(row.by_cluster)
        ));
    }
    let reasons = of.reasons.iter().map(|row| format!("{} {}", grouped(row.documents), row.reason));
    line(format!("{:>24} {}", "copies", reasons.collect::<Vec<_>>().join(", ")));
    for group in of.most.iter().take(LISTED) {
        let [pages, hosts, machines] = [group.documents, group.hosts, group.machines].map(grouped);
        line(format!("{pages:>12} pages, {hosts} hosts, {machines} machines: {}", printable(&group.url)));
    }
}
