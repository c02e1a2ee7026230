//! The report of a mirrors summary (Fetterly 2004, section 4).

use super::{MirrorCounts, MirrorsSummary};
use crate::sheet::{Grid, Sheet, grouped, plural};
use crate::studies::percent;

/// The report, as `run` and `show` print it.
pub(super) fn mirrors(summary: &MirrorsSummary) -> Sheet {
    let mut sheet = Sheet::default();
    let [first, last] = [summary.mirrors.first(), summary.mirrors.last()];
    let (Some(first), Some(last)) = (first, last) else { return sheet };
    sheet.line(format!(
        "Mirrors by content from {} to {}: {} of mirrors in {} of {} in the last week",
        summary.first,
        summary.last,
        plural(last.counts.last_four_arcs, "pair"),
        plural(last.groups, "group"),
        plural(last.hosts, "host")
    ));
    if !summary.addresses {
        sheet.line("No host has an IP address: other names of a host are not told from mirrors");
    }
    sheet.blank();
    let published = &summary.published;
    let head = format!("pairs of hosts, week {}", first.week);
    let mut grid = Grid::of_numbers(&head, ["ours", "as the study", "published"]);
    let mut row = |name: &str, of: fn(&MirrorCounts) -> u64| {
        let study = first.study.as_ref().map_or_else(String::new, |counts| grouped(of(counts)));
        grid.row([name.to_owned(), grouped(of(&first.counts)), study, grouped(of(published))]);
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
    let shares = [first.share, first.study_share, Some(summary.published_share)].map(percent);
    grid.row(["mirrored pages".to_owned()].into_iter().chain(shares));
    if first.redirect > 0 {
        let redirect = grouped(first.redirect);
        grid.row(["hosts that only redirect".to_owned(), redirect, String::new(), String::new()]);
    }
    sheet.grid(grid);
    sheet.line("As the study: pairs of the host of a cluster's root with each other host; ours: any two hosts, or as `pairs` says");
    sheet.blank();
    let mut grid = Grid::of_numbers("week", ["mirrors", "begun", "ended", "groups", "coverage", "mirrored"]);
    for week in &summary.mirrors {
        let counts = [week.counts.last_four_arcs, week.begun, week.ended, week.groups].map(grouped);
        let shares = [week.coverage, week.share].map(percent);
        grid.row([week.week.to_string()].into_iter().chain(counts).chain(shares));
    }
    sheet.grid(grid);
    if !summary.lags.is_empty() {
        sheet.blank();
        let lag = |(weeks, changes): &(Option<u64>, u64)| match weeks {
            Some(weeks) => format!("{} after {weeks}", grouped(*changes)),
            None => format!("{} not yet", grouped(*changes)),
        };
        let all: Vec<String> = summary.lags.iter().map(lag).collect();
        sheet.line(format!("Changes that reach the mirror, by weeks: {}", all.join(", ")));
    }
    sheet.blank();
    sheet
}
