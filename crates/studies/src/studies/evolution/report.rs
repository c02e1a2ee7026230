//! The report of an evolution summary: how a store's clusters changed over its weeks (Fetterly
//! 2004, section 3).

use super::EvolutionSummary;
use crate::sheet::{Grid, GridColumn, Sheet, grouped, plural};
use crate::studies::percent;

/// The report, as `run` and `show` print it.
pub fn evolution(summary: &EvolutionSummary) -> Sheet {
    let mut sheet = Sheet::default();
    sheet.line(format!(
        "Evolution of clusters from {} to {}, {}: {}, {} with a page in the first week",
        summary.first,
        summary.last,
        plural(summary.weeks as u64, "week"),
        plural(summary.urls, "URL"),
        grouped(summary.documents)
    ));
    if summary.weeks == 1 {
        sheet.line("The store has one week only: it is compared with itself, so nothing has changed");
    }
    sheet.blank();
    let mut grid = Grid::of_numbers("", ["ours", "published"]);
    let singletons = summary.retention.iter().find(|row| row.class == "1");
    let retained = singletons.map_or("-".into(), |row| format!("{:.4}", row.retention));
    let hosts = format!("hosts without change, of {}", grouped(summary.hosts.hosts));
    grid.row([hosts, percent(summary.hosts.share), percent(Some(summary.hosts.published))]);
    grid.row(["retention of singletons".to_owned(), retained, "1".to_owned()]);
    sheet.grid(grid);
    sheet.blank();
    sheet.line(format!("{} against {}", summary.last, summary.first));
    let columns = ["cluster size", "documents", "retention", "similarity", "reverse"];
    let mut grid = Grid::new(columns.map(|name| (name, GridColumn::Number)));
    for row in &summary.retention {
        let shares = [row.retention, row.similarity, row.reverse].map(|share| format!("{share:.4}"));
        grid.row([row.class.to_string(), grouped(row.documents)].into_iter().chain(shares));
    }
    sheet.grid(grid);
    sheet.blank();
    sheet.line("Change between successive downloads");
    let mut grid = Grid::new(["change", "pairs", "share"].map(|name| (name, GridColumn::Number)));
    for change in &summary.changes {
        grid.row([change.change.to_string(), grouped(change.pairs), percent(change.share)]);
    }
    sheet.grid(grid);
    if !summary.turnover.is_empty() {
        sheet.blank();
        let mut grid = Grid::new(["week", "births", "joined", "deaths"].map(|name| (name, GridColumn::Number)));
        for week in &summary.turnover {
            let counts = [week.births, week.joined, week.deaths].map(grouped);
            grid.row([week.week.to_string()].into_iter().chain(counts));
        }
        sheet.grid(grid);
    }
    sheet.blank();
    sheet
}
