//! The report of a collections summary: pages that are copied together (Cho, Shivakumar and
//! Garcia-Molina 2000).

use super::{CollectionsSummary, Merge, ReplicaLevel};
use crate::config::Bytes;
use crate::sheet::{Grid, GridColumn, Sheet, grouped, plural};
use crate::studies::overlap::REPLICAS;
use crate::text::printable;

/// How many of the largest similar clusters are listed.
const LISTED: usize = 10;

/// The report, as `run` and `show` print it.
pub fn collections(summary: &CollectionsSummary) -> Sheet {
    let mut sheet = Sheet::default();
    let merge = match (summary.merge, summary.share) {
        (Merge::Share, Some(share)) => format!("merged where links cover {share} of both"),
        (Merge::Extended, _) => "merged where more pages of one may link to one page of the other".into(),
        _ => "merged as the study says".into(),
    };
    let level = match summary.level {
        ReplicaLevel::Similar => "very similar pages",
        ReplicaLevel::Identical => "virtually identical pages",
        ReplicaLevel::Overlap => "pages that overlap",
    };
    let pages = plural(summary.documents, "page");
    sheet.line(format!("Collections of week {}: {pages}, {level}, {merge}", summary.last));
    sheet.blank();
    let rows = [
        ("pages with replicas", summary.clustered),
        ("trivial clusters", summary.trivial),
        ("links", summary.links),
        ("pairs of clusters", summary.pairs),
        ("merged", summary.merged),
        ("similar clusters", summary.clusters),
        ("of them noise", summary.noise),
        ("collections", summary.collections),
        ("pages in them", summary.pages),
        ("ambiguous links", summary.ambiguous),
    ];
    let mut grid = Grid::new([("", GridColumn::Text), ("", GridColumn::Number)]).without_head();
    rows.into_iter().for_each(|(name, count)| grid.row([name.to_owned(), grouped(count)]));
    sheet.grid(grid);
    sheet.blank();
    let columns = ["replicas", "pages", "share"].map(|name| (name, GridColumn::Number));
    let mut grid = Grid::new(columns);
    for (row, replicas) in summary.replicas.iter().zip(REPLICAS) {
        grid.row([replicas.to_owned(), grouped(row.documents), row.share.map_or("-".into(), percent)]);
    }
    sheet.grid(grid);
    sheet.blank();
    let numbers = ["cardinality", "size"].map(|name| (name, GridColumn::Number));
    let mut grid = Grid::new(numbers.into_iter().chain([("page", GridColumn::Text), ("title", GridColumn::Text)]));
    for of in summary.largest.iter().take(LISTED) {
        let [url, title] = [&of.url, &of.title].map(|text| printable(text).into_owned());
        grid.row([grouped(of.cardinality), grouped(of.size), url, title]);
    }
    sheet.grid(grid);
    let published = summary.published_largest.iter().map(|(cardinality, size)| format!("{cardinality} x {size}"));
    sheet.line(format!("published: {}", published.collect::<Vec<_>>().join(", ")));
    sheet.blank();
    let dropped = match summary.dropped {
        0 => String::new(),
        dropped => format!("; {} came off", grouped(dropped)),
    };
    sheet.line(format!("Avoid list: {} prefixes{dropped}", grouped(summary.avoided)));
    for of in &summary.savings {
        let lost = if of.skipped == 0 { 0.0 } else { of.lost as f64 / of.skipped as f64 };
        sheet.line(format!(
            "list of {} on week {}: {} of {} skipped ({}), similar {} -> {}, lost {} ({} of the skipped)",
            of.listed,
            of.week,
            grouped(of.skipped),
            plural(of.pages, "page"),
            Bytes(of.bytes),
            percent(of.similar_before),
            percent(of.similar_after),
            grouped(of.lost),
            percent(lost)
        ));
    }
    let published = summary.published_savings;
    sheet.line(format!(
        "published: similar {} -> {}, identical -> {}",
        percent(published.similar_before),
        percent(published.similar_after),
        percent(published.identical_after)
    ));
    sheet.blank();
    sheet
}

fn percent(share: f64) -> String {
    format!("{:.1}%", 100.0 * share)
}
