//! The report of a mirrors-by-url summary (Bharat and Broder 1999).

use super::MirrorsByUrlSummary;
use crate::sheet::{Grid, Sheet, grouped, plural};

/// The report, as `run` and `show` print it.
pub fn mirrors_by_url(summary: &MirrorsByUrlSummary) -> Sheet {
    let mut sheet = Sheet::default();
    let of = summary.last.map_or_else(|| "of lists".to_owned(), |week| format!("of week {week}"));
    sheet.line(format!("Mirrors by URL {of}: hosts of at least {} URLs", grouped(summary.least_urls)));
    sheet.blank();
    let published = summary.published;
    let mut grid = Grid::of_numbers("", ["ours", "published"]);
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
        grid.row([name.to_owned(), grouped(count), published.map_or_else(String::new, grouped)]);
    }
    for of in &summary.levels {
        let name = match of.level.as_str() {
            "mismatch" => "mismatch".to_owned(),
            "dns-failure" => "DNS failure".to_owned(),
            "server-failure" => "server failure".to_owned(),
            "few" => "few tests".to_owned(),
            level => format!("level {level}"),
        };
        grid.row([name, grouped(of.pairs), of.published.map_or_else(String::new, grouped)]);
    }
    sheet.grid(grid);
    sheet.blank();
    sheet.line(format!(
        "Mirrors (levels 1 to 4): {}, {} in {}",
        plural(summary.mirrors, "pair"),
        plural(summary.mirror_hosts, "host"),
        plural(summary.groups, "group")
    ));
    match summary.ways {
        Some(ways) => sheet.line(format!(
            "By content and by URL: {} pairs; by content only {}; by URL only {}",
            grouped(ways.both),
            grouped(ways.by_content),
            grouped(ways.by_url)
        )),
        None if summary.last.is_some() => {
            sheet.line(
                "By content: unknown; jobs/mirrors.toml finds these pairs, and a second run of this job compares",
            );
        }
        None => {}
    }
    if let Some(directories) = summary.directories {
        sheet.line(format!("Mirrored directories, by the collections job: {} pairs", grouped(directories)));
    }
    if summary.probes > 0 {
        sheet.line(format!(
            "{} tests are unknown: the table `probes` has {} URLs to fetch; give the answers as `input`",
            grouped(summary.unknown_tests),
            grouped(summary.probes)
        ));
    }
    if summary.listed < summary.candidates {
        sheet.line(format!(
            "{} candidates with lower scores are not listed: raise most-candidates to test them",
            grouped(summary.candidates - summary.listed)
        ));
    }
    if summary.refused > 0 {
        sheet.line(format!("{} lines of lists have no URL", grouped(summary.refused)));
    }
    if summary.files > 0 {
        sheet.line(format!(
            "{} crawl files for tests; for {} of their records no test asked",
            grouped(summary.files),
            grouped(summary.passed_over)
        ));
    }
    sheet.blank();
    sheet
}
