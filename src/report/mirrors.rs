//! The text of a mirrors summary (Fetterly 2004, section 4).

use std::fmt::Write as _;

use super::grouped;
use crate::summary::{MirrorCounts, MirrorsSummary};

/// The text of the summary; `tables` is the folder of the job's tables.
pub(super) fn mirrors(summary: &MirrorsSummary, tables: &std::path::Path) -> String {
    let mut out = String::new();
    let mut line = |text: String| {
        let _ = writeln!(out, "{}", text.trim_end());
    };
    let percent = |share: Option<f64>| share.map_or("-".into(), |share| format!("{:.1}%", 100.0 * share));
    let [first, last] = [summary.mirrors.first(), summary.mirrors.last()];
    let (Some(first), Some(last)) = (first, last) else { return out };
    line(format!(
        "Mirrors by content from {} to {}: {} pairs of mirrors in {} groups of {} hosts in the last week",
        summary.first,
        summary.last,
        grouped(last.counts.last_four_arcs),
        grouped(last.groups),
        grouped(last.hosts)
    ));
    if !summary.addresses {
        line("No page has an IP address and no list was given: other names of a host are not told from mirrors".into());
    }
    line(String::new());
    line(format!("{:32} {:>12} {:>12}", format!("pairs of hosts, week {}", first.week), "ours", "published"));
    let published = &summary.published;
    let mut row = |name: &str, of: fn(&MirrorCounts) -> u64| {
        line(format!("{name:32} {:>12} {:>12}", grouped(of(&first.counts)), grouped(of(published))));
    };
    row("raw", |counts| counts.raw);
    row("  one host with itself", |counts| counts.auto);
    row("  other names of a host", |counts| counts.alias);
    row("  without an address", |counts| counts.unresolved);
    row("  one cluster on many hosts", |counts| counts.farm);
    row("  kept", |counts| counts.kept);
    row("    differ in www. only", |counts| counts.www);
    row("    last arc of paths matches", |counts| counts.last_arc);
    row("    last four match: mirrors", |counts| counts.last_four_arcs);
    line(format!(
        "{:32} {:>12} {:>12}",
        "mirrored pages",
        percent(first.share),
        percent(Some(summary.published_share))
    ));
    if first.redirect > 0 {
        line(format!("{:32} {:>12}", "hosts that only redirect", grouped(first.redirect)));
    }
    line(String::new());
    line(format!(
        "{:12} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}",
        "week", "mirrors", "begun", "ended", "groups", "coverage", "mirrored"
    ));
    for week in &summary.mirrors {
        line(format!(
            "{:12} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}",
            week.week.to_string(),
            grouped(week.counts.last_four_arcs),
            grouped(week.begun),
            grouped(week.ended),
            grouped(week.groups),
            percent(week.coverage),
            percent(week.share)
        ));
    }
    if !summary.lags.is_empty() {
        line(String::new());
        let lag = |(weeks, changes): &(Option<u64>, u64)| match weeks {
            Some(weeks) => format!("{} after {weeks}", grouped(*changes)),
            None => format!("{} not yet", grouped(*changes)),
        };
        let all: Vec<String> = summary.lags.iter().map(lag).collect();
        line(format!("Changes that reach the mirror, by weeks: {}", all.join(", ")));
    }
    line(String::new());
    line(format!("Tables: {}", tables.display()));
    out
}
