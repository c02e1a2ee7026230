//! The text of an evolution summary: how a store's clusters changed over its weeks (Fetterly 2004, section 3).

use std::fmt::Write as _;

use super::grouped;
use crate::summary::EvolutionSummary;

/// The text of the summary, as `run` prints it; `tables` is the folder of the job's tables.
pub fn evolution(summary: &EvolutionSummary, tables: &std::path::Path) -> String {
    let mut out = String::new();
    let mut line = |text: String| {
        let _ = writeln!(out, "{}", text.trim_end());
    };
    let percent = |share: Option<f64>| share.map_or("-".into(), |share| format!("{:.1}%", 100.0 * share));
    line(format!(
        "Evolution of clusters from {} to {}, {} weeks: {} URLs, {} with a page in the first week",
        summary.first,
        summary.last,
        summary.weeks,
        grouped(summary.urls),
        grouped(summary.documents)
    ));
    if summary.weeks == 1 {
        line("The store has one week only: it is compared with itself, so nothing has changed".into());
    }
    line(String::new());
    line(format!("{:24} {:>10} {:>14}", "", "ours", "published"));
    let singletons = summary.retention.iter().find(|row| row.class == "1");
    let retained = singletons.map_or("-".into(), |row| format!("{:.4}", row.retention));
    line(format!(
        "{:24} {:>10} {:>14}   of {} hosts",
        "hosts without change",
        percent(summary.hosts.share),
        percent(Some(summary.hosts.published)),
        grouped(summary.hosts.hosts)
    ));
    line(format!("{:24} {retained:>10} {:>14}", "retention of singletons", "1"));
    line(String::new());
    line(format!("{} against {}", summary.last, summary.first));
    line(format!(
        "{:>14} {:>12} {:>10} {:>10} {:>10}",
        "cluster size", "documents", "retention", "similarity", "reverse"
    ));
    for row in &summary.retention {
        let documents = grouped(row.documents);
        line(format!(
            "{:>14} {documents:>12} {:>10.4} {:>10.4} {:>10.4}",
            row.class, row.retention, row.similarity, row.reverse
        ));
    }
    line(String::new());
    line(format!("{:>14} {:>12} {:>10}   between successive downloads", "change", "pairs", "share"));
    for change in &summary.changes {
        line(format!("{:>14} {:>12} {:>10}", change.change, grouped(change.pairs), percent(change.share)));
    }
    if !summary.turnover.is_empty() {
        line(String::new());
        line(format!("{:>14} {:>12} {:>10} {:>10}", "week", "births", "joined", "deaths"));
    }
    for week in &summary.turnover {
        let [births, joined, deaths] = [week.births, week.joined, week.deaths].map(grouped);
        line(format!("{:>14} {births:>12} {joined:>10} {deaths:>10}", week.week.to_string()));
    }
    line(String::new());
    line(format!("Tables   {}", tables.display()));
    out
}
