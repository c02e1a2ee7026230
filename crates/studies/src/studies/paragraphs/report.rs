//! The report of a paragraphs summary (Pereira, Baeza-Yates and Ziviani 2006).

use super::{ParagraphsSummary, PublishedYears};
use crate::config::Mode;
use crate::sheet::{Grid, Sheet, grouped, plural};
use crate::stats::ratio;
use crate::studies::percent;
use crate::text::printable;

/// The report, as `run` and `show` print it.
pub fn paragraphs(summary: &ParagraphsSummary) -> Sheet {
    let mut sheet = Sheet::default();
    sheet.line(format!(
        "Paragraphs of week {}: {} above {} characters; {} are shorter",
        summary.last,
        plural(summary.documents, "page"),
        grouped(summary.least_characters),
        grouped(summary.short)
    ));
    if summary.without_chunks > 0 {
        let without = grouped(summary.without_chunks);
        sheet.line(format!("{without} pages have no paragraphs in the store: see jobs/chunks.toml"));
    }
    sheet.blank();
    let numbers = ["pages", "clusters", "duplicates", "share", "2003", "2004", "2005"];
    let mut grid = Grid::of_numbers("", numbers);
    for of in &summary.regions {
        let kind = of
            .near
            .map_or_else(|| "duplicates".into(), |near| format!("near-duplicates at {}%", (1e8 * near).round() / 1e6));
        let name = format!("{} {kind}", if of.region == "all" { "" } else { &of.region });
        let counts = [of.documents, of.clusters, of.duplicates].map(grouped);
        let shares = [percent(of.share)].into_iter().chain(years(&of.published));
        grid.row([name.trim().to_owned()].into_iter().chain(counts).chain(shares));
    }
    sheet.grid(grid);
    sheet.line("2003 to 2005: the published shares");
    let false_matches = grouped(summary.false_matches);
    sheet.line(format!("False matches, because a page repeats paragraphs: {false_matches} pairs of pages"));
    sheet.blank();
    let mut grid = Grid::of_numbers("", ["ours", "published"]);
    for of in &summary.shapes {
        grid.row([of.what.to_string(), percent(of.share), percent(Some(of.published))]);
    }
    sheet.grid(grid);
    if !summary.sites.is_empty() {
        sheet.blank();
        let mut grid = Grid::of_numbers("pages of a cluster", ["clusters", "on one host", "on one site"]);
        for of in &summary.sites {
            let share = |count| percent(ratio(count, of.clusters));
            grid.row([of.class.clone(), grouped(of.clusters), share(of.one_host), share(of.one_site)]);
        }
        sheet.grid(grid);
    }
    sheet.blank();
    match (&summary.seed, summary.core) {
        (Some(seed), Some(core)) => {
            sheet.line(format!("Core of {} pages, found at {}", grouped(core), printable(seed)));
        }
        (Some(seed), None) => {
            let others = summary.seeds.saturating_sub(1);
            let others = if others == 0 { String::new() } else { format!(" and {} other seeds", grouped(others)) };
            sheet.line(format!("Connected to {}{others}", printable(seed)));
        }
        (None, _) => sheet.line("No link leads to a page: nothing is connected"),
    }
    for of in &summary.coverage {
        sheet.line(format!(
            "{}: {} of {} clusters, {} of {} pages without duplicate; of different pages {}{}",
            of.region,
            grouped(of.clusters_there),
            grouped(of.clusters),
            grouped(of.unique_there),
            grouped(of.unique),
            percent(of.useful),
            published(&of.published)
        ));
    }
    sheet.blank();
    for of in &summary.estimates {
        let by = of.of_week.map_or_else(|| "by sizes".into(), |week| format!("by the growth of {week}"));
        let error = of.error.map_or_else(String::new, |error| format!(", error {:+.1}%", 100.0 * error));
        let published = of.published.map_or_else(String::new, |share| format!("; published: {}", percent(Some(share))));
        sheet.line(format!(
            "Estimate from {}, {by}: {} ({} found{error}){published}",
            plural(of.steps as u64, "part"),
            percent(Some(of.share)),
            grouped(of.found)
        ));
    }
    if let Some(of) = summary.births {
        sheet.line(format!(
            "New since {}: {} pages; {} original, {} copies, {} assembled; {} of {} paragraphs inherited; {} first from other hosts",
            of.since,
            grouped(of.born),
            grouped(of.original),
            grouped(of.copies),
            grouped(of.assembled),
            grouped(of.inherited),
            grouped(of.paragraphs),
            grouped(of.from_other_hosts)
        ));
    }
    if let Some(of) = summary.turnover.last().filter(|of| of.week == summary.last) {
        sheet.line(format!(
            "Paragraphs since {}, {}: {} first seen, {} returned, {} gone",
            summary.first,
            if summary.mode == Mode::Delta { "by the tables of the run before" } else { "from the first week" },
            grouped(of.first_seen),
            grouped(of.returned),
            grouped(of.gone)
        ));
    }
    sheet.line(format!(
        "Boilerplate: {} paragraphs of at least {} pages",
        grouped(summary.boilerplate),
        grouped(summary.least_boilerplate)
    ));
    sheet.blank();
    sheet
}

/// The study's shares at the end of a line, if it gives some.
fn published(shares: &PublishedYears) -> String {
    let given: Vec<String> = shares.iter().flatten().map(|share| percent(Some(*share))).collect();
    if given.is_empty() { String::new() } else { format!("; published: {}", given.join(", ")) }
}

/// The study's shares, year by year.
fn years(shares: &PublishedYears) -> [String; 3] {
    shares.map(|share| share.map_or_else(String::new, |share| percent(Some(share))))
}
