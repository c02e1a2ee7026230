//! The text of a collections summary: pages that are copied together (Cho, Shivakumar and Garcia-Molina 2000).

use std::fmt::Write as _;
use std::path::Path;

use super::grouped;
use crate::config::{Bytes, Merge, ReplicaLevel};
use crate::summary::{CollectionsSummary, REPLICAS};
use crate::text::printable;

/// How many of the largest similar clusters are listed.
const LISTED: usize = 10;

/// The text of the summary, as `run` and `show` print it; `tables` is the folder of the job's tables.
pub fn collections(summary: &CollectionsSummary, tables: &Path) -> String {
    let mut out = String::new();
    let mut line = |text: String| {
        let _ = writeln!(out, "{}", text.trim_end());
    };
    let merge = match (summary.merge, summary.share) {
        (Merge::Share, Some(share)) => format!("merged where links cover {share} of both"),
        (Merge::Extended, _) => "merged as the study extends it".into(),
        _ => "merged as the study says".into(),
    };
    let level = match summary.level {
        ReplicaLevel::Similar => "very similar pages",
        ReplicaLevel::Identical => "virtually identical pages",
        ReplicaLevel::Overlap => "pages that overlap",
    };
    line(format!("Collections of week {}: {} pages, {level}, {merge}", summary.last, grouped(summary.documents)));
    line(String::new());
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
    rows.into_iter().for_each(|(name, count)| line(format!("{name:24} {:>12}", grouped(count))));
    line(String::new());
    line(format!("{:24} {:>12} {:>9}", "replicas", "pages", "share"));
    for (row, replicas) in summary.replicas.iter().zip(REPLICAS) {
        let share = row.share.map_or("-".into(), percent);
        line(format!("{replicas:>24} {:>12} {share:>9}", grouped(row.documents)));
    }
    line(String::new());
    let published = summary.published_largest.iter().map(|(cardinality, size)| format!("{cardinality} x {size}"));
    line(format!("{:>12} {:>9}   published: {}", "cardinality", "size", published.collect::<Vec<_>>().join(", ")));
    for of in summary.largest.iter().take(LISTED) {
        let (title, url) = (printable(&of.title), printable(&of.url));
        line(format!("{:>12} {:>9}   {url}   {title}", grouped(of.cardinality), grouped(of.size)));
    }
    line(String::new());
    let dropped = match summary.dropped {
        0 => String::new(),
        dropped => format!("; {} came off", grouped(dropped)),
    };
    line(format!("Avoid list: {} prefixes{dropped}", grouped(summary.avoided)));
    for of in &summary.savings {
        let lost = if of.skipped == 0 { 0.0 } else { of.lost as f64 / of.skipped as f64 };
        line(format!(
            "list of {} on week {}: {} of {} pages skipped ({}), similar {} -> {}, lost {} ({} of the skipped)",
            of.listed,
            of.week,
            grouped(of.skipped),
            grouped(of.pages),
            Bytes(of.bytes),
            percent(of.similar_before),
            percent(of.similar_after),
            grouped(of.lost),
            percent(lost)
        ));
    }
    let published = summary.published_savings;
    line(format!(
        "published: similar {} -> {}, identical -> {}",
        percent(published.similar_before),
        percent(published.similar_after),
        percent(published.identical_after)
    ));
    line(String::new());
    line(format!("Tables   {}", tables.display()));
    out
}

fn percent(share: f64) -> String {
    format!("{:.1}%", 100.0 * share)
}
