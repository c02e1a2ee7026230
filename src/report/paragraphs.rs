//! The text of a paragraphs summary (Pereira, Baeza-Yates and Ziviani 2006).

use std::fmt::Write as _;
use std::path::Path;

use super::grouped;
use crate::config::Mode;
use crate::summary::{ParagraphsSummary, PublishedYears};
use crate::text::printable;

/// The text of the summary, as `run` and `show` print it; `tables` is the folder of the job's tables.
pub fn paragraphs(summary: &ParagraphsSummary, tables: &Path) -> String {
    let mut out = String::new();
    let mut line = |text: String| {
        let _ = writeln!(out, "{}", text.trim_end());
    };
    line(format!(
        "Paragraphs of week {}: {} pages above {} characters; {} are shorter",
        summary.last,
        grouped(summary.documents),
        grouped(summary.least_characters),
        grouped(summary.short)
    ));
    if summary.without_chunks > 0 {
        let without = grouped(summary.without_chunks);
        line(format!("{without} pages have no paragraphs in the store: see jobs/chunks.toml"));
    }
    line(String::new());
    let columns = ["pages", "clusters", "duplicates"].map(|name| format!("{name:>12}")).concat();
    line(format!("{:32}{columns} {:>8}   published: 2003, 2004, 2005", "", "share"));
    for of in &summary.regions {
        let kind = of
            .near
            .map_or_else(|| "duplicates".into(), |near| format!("near-duplicates at {}%", (1e8 * near).round() / 1e6));
        let counts = [of.documents, of.clusters, of.duplicates].map(|count| format!("{:>12}", grouped(count))).concat();
        let name = format!("{} {kind}", if of.region == "all" { "" } else { &of.region });
        line(format!("{:32}{counts} {:>8}   {}", name.trim(), percent(of.share), years(&of.published)));
    }
    let false_matches = grouped(summary.false_matches);
    line(format!("False matches, because a page repeats paragraphs: {false_matches} pairs of pages"));
    line(String::new());
    for of in &summary.shapes {
        line(format!("{:44} {:>8}   published: {}", of.what, percent(of.share), percent(Some(of.published))));
    }
    line(String::new());
    match (&summary.seed, summary.core) {
        (Some(seed), Some(core)) => {
            line(format!("Core of {} pages, found at {}", grouped(core), printable(seed)));
        }
        (Some(seed), None) => {
            let others = summary.seeds.saturating_sub(1);
            let others = if others == 0 { String::new() } else { format!(" and {} other seeds", grouped(others)) };
            line(format!("Connected to {}{others}", printable(seed)));
        }
        (None, _) => line("No link leads to a page: nothing is connected".into()),
    }
    for of in &summary.coverage {
        line(format!(
            "{:13} {} of {} clusters, {} of {} pages without duplicate; of different pages {}   {}",
            of.region,
            grouped(of.clusters_there),
            grouped(of.clusters),
            grouped(of.unique_there),
            grouped(of.unique),
            percent(of.useful),
            years(&of.published)
        ));
    }
    line(String::new());
    for of in &summary.estimates {
        let by = of.of_week.map_or_else(|| "by sizes".into(), |week| format!("by the growth of {week}"));
        let error = of.error.map_or_else(String::new, |error| format!(", error {:+.1}%", 100.0 * error));
        let published =
            of.published.map_or_else(String::new, |share| format!("   published: {}", percent(Some(share))));
        line(format!(
            "Estimate from {:>3} parts, {by:27} {} ({} found{error}){published}",
            of.steps,
            percent(Some(of.share)),
            grouped(of.found)
        ));
    }
    if let Some(of) = summary.births {
        line(format!(
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
        line(format!(
            "Paragraphs since {}, {}: {} first seen, {} returned, {} gone",
            summary.first,
            if summary.mode == Mode::Delta { "by the tables of the run before" } else { "from the first week" },
            grouped(of.first_seen),
            grouped(of.returned),
            grouped(of.gone)
        ));
    }
    line(format!(
        "Boilerplate: {} paragraphs of at least {} pages",
        grouped(summary.boilerplate),
        grouped(summary.least_boilerplate)
    ));
    line(String::new());
    line(format!("Tables   {}", tables.display()));
    out
}

fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "-".into(), |share| format!("{:.1}%", 100.0 * share))
}

/// The study's shares, if it gives some.
fn years(shares: &PublishedYears) -> String {
    if shares.iter().all(Option::is_none) {
        return String::new();
    }
    shares.map(|share| format!("{:>6}", percent(share))).join(" ")
}
