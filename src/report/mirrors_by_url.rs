//! The text of a mirrors-by-url summary (Bharat and Broder 1999).

use std::fmt::Write as _;
use std::path::Path;

use super::grouped;
use crate::summary::MirrorsByUrlSummary;

/// The text of the summary, as `run` and `show` print it; `tables` is the folder of the job's tables.
pub fn mirrors_by_url(summary: &MirrorsByUrlSummary, tables: &Path) -> String {
    let mut out = String::new();
    let mut line = |text: String| {
        let _ = writeln!(out, "{}", text.trim_end());
    };
    let of = summary.last.map_or_else(|| "of lists".to_owned(), |week| format!("of week {week}"));
    line(format!("Mirrors by URL {of}: hosts of at least {} URLs", grouped(summary.least_urls)));
    line(String::new());
    let published = summary.published;
    line(format!("{:28} {:>14} {:>14}", "", "", "published"));
    let rows = [
        ("URLs", summary.distinct_urls, Some(published.urls)),
        ("URLs that are gone", summary.gone, None),
        ("hosts", summary.hosts, None),
        ("hosts with enough URLs", summary.sampled_hosts, Some(published.hosts)),
        ("sampled paths", summary.sampled_paths, None),
        ("candidates", summary.candidates, Some(published.candidates)),
        ("listed", summary.listed, None),
        ("with a level or a mismatch", summary.compared, Some(published.tested)),
    ];
    for (name, count, published) in rows {
        line(format!("{name:28} {:>14} {:>14}", grouped(count), published.map_or_else(String::new, grouped)));
    }
    line(String::new());
    for of in &summary.levels {
        let name = match of.level.as_str() {
            "mismatch" => "mismatch".to_owned(),
            "few" => "few tests".to_owned(),
            level => format!("level {level}"),
        };
        line(format!("{name:28} {:>14} {:>14}", grouped(of.pairs), of.published.map_or_else(String::new, grouped)));
    }
    line(String::new());
    line(format!(
        "Mirrors (levels 1 to 4): {} pairs, {} hosts in {} groups",
        grouped(summary.mirrors),
        grouped(summary.mirror_hosts),
        grouped(summary.groups)
    ));
    match summary.ways {
        Some(ways) => line(format!(
            "By content and by URL: {} pairs; by content only {}; by URL only {}",
            grouped(ways.both),
            grouped(ways.by_content),
            grouped(ways.by_url)
        )),
        None if summary.last.is_some() => {
            line(
                "By content: unknown; jobs/mirrors.toml finds these pairs, and a second run of this job compares"
                    .into(),
            );
        }
        None => {}
    }
    if let Some(directories) = summary.directories {
        line(format!("Mirrored directories, by the collections job: {} pairs", grouped(directories)));
    }
    if summary.probes > 0 {
        line(format!(
            "{} tests are unknown: the table `probes` has {} URLs to fetch; give the answers as `input`",
            grouped(summary.unknown_tests),
            grouped(summary.probes)
        ));
    }
    if summary.listed < summary.candidates {
        line(format!(
            "{} candidates with lower scores are not listed: raise most-candidates to test them",
            grouped(summary.candidates - summary.listed)
        ));
    }
    if summary.refused > 0 {
        line(format!("{} lines of lists have no URL", grouped(summary.refused)));
    }
    if summary.files > 0 {
        line(format!(
            "{} crawl files for tests; for {} of their records no test asked",
            grouped(summary.files),
            grouped(summary.passed_over)
        ));
    }
    line(String::new());
    line(format!("Tables   {}", tables.display()));
    out
}
