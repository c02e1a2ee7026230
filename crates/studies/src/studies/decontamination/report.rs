//! The report of a decontamination summary.

use super::DecontaminationSummary;
use super::reference::ItemCounts;
use crate::sheet::{Grid, Sheet, grouped, plural};

/// Files of the reference that are listed.
const FILES: usize = 30;

/// The report, as `run` and `show` print it.
pub fn decontamination(summary: &DecontaminationSummary) -> Sheet {
    let mut sheet = Sheet::default();
    let since = summary.since.map_or_else(String::new, |since| format!(" since {since}"));
    sheet.line(format!(
        "Week {}{since}: {} against {} of a reference",
        summary.last,
        plural(summary.documents, "document"),
        plural(summary.items.items, "item")
    ));
    sheet.blank();
    let mut grid = Grid::of_numbers("reference", ["items", "compared", "in documents", "share"]);
    for file in summary.reference.iter().take(FILES) {
        let share = format!("{:.1}%", 100.0 * file.matched as f64 / file.compared.max(1) as f64);
        let numbers = [file.items, file.compared, file.matched].map(grouped);
        grid.row([file.name.clone()].into_iter().chain(numbers).chain([share]));
    }
    sheet.grid(grid);
    if let Some(more @ 1..) = summary.reference.len().checked_sub(FILES) {
        sheet.line(format!("and {more} more files: the table `items` has them"));
    }
    sheet.blank();
    let ways = [
        summary.containment.map(|least| {
            let what = format!("{least} of the {}-grams of an item", summary.grams);
            (what, summary.by_containment)
        }),
        summary.passage.map(|words| (format!("a passage of {words} words"), summary.by_passage)),
        summary.similarity.map(|least| (format!("similarity {least}"), summary.by_similarity)),
    ];
    let documents = format!("{} of {} match an item", grouped(summary.with_matches), grouped(summary.documents));
    sheet.fact("Documents", documents);
    for (what, count) in ways.into_iter().flatten() {
        sheet.fact("Matches", format!("{} by {what}, or more", grouped(count)));
    }
    let ItemCounts { compared, same, short, empty, bad, .. } = summary.items;
    sheet.fact("Items", format!("{} compared; {} have the words of another one", grouped(compared), grouped(same)));
    if short + empty + bad > 0 {
        sheet.fact(
            "Left out",
            format!(
                "{} with too few words, {} without words, {} records that cannot be read",
                grouped(short),
                grouped(empty),
                grouped(bad)
            ),
        );
    }
    sheet
}
