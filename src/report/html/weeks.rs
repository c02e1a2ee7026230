//! What changed from week to week.

use super::parts::{HtmlCell, MOST_ROWS, table};
use super::plots::figure;
use crate::markup::Html;
use crate::plot::{Axis, Ink, Plot, Series, SeriesLook};
use crate::summary::{Since, Summary};

/// Documents, duplicates and changes of clusters, week by week.
pub(super) fn weeks(weeks: &[Summary]) -> Html {
    let of_weeks = |of: &dyn Fn(&Summary) -> u64| {
        weeks.iter().map(|week| (f64::from(week.week.days()), of(week) as f64)).collect()
    };
    let duplicates = |week: &Summary| week.levels.first().map_or(0, |level| level.duplicates);
    let plot = Plot {
        label: "Documents and duplicates, week by week".to_owned(),
        x: Axis::weeks(weeks.iter().map(|week| week.week.days())),
        y: Axis::linear("pages", "pages").within(0.0, None),
        series: vec![
            Series::ours("documents", Ink::One, SeriesLook::LineAndPoints, of_weeks(&|week| week.counts.documents)),
            Series::ours("duplicates", Ink::Two, SeriesLook::LineAndPoints, of_weeks(&duplicates)),
        ],
    };
    let mut html = figure(&plot, &[]);
    let heads = [
        ("week", false),
        ("documents", true),
        ("duplicates", true),
        ("share", true),
        ("new URLs", true),
        ("not downloaded", true),
        ("births", true),
        ("deaths", true),
        ("grown", true),
        ("shrunk", true),
        ("merges", true),
        ("splits", true),
    ];
    let row = |week: &Summary| {
        // The first week of a store has none before it.
        let since = |of: &dyn Fn(&Since) -> u64| match &week.since {
            Some(since) => HtmlCell::count(of(since)),
            None => HtmlCell::Number(String::new(), None),
        };
        let event = |name: &str| since(&|since| since.changes.get(name).map_or(0, |counts| counts.0));
        let mut cells = vec![
            HtmlCell::Text(week.week.to_string()),
            HtmlCell::count(week.counts.documents),
            HtmlCell::count(duplicates(week)),
            HtmlCell::share(week.levels.first().map_or(0.0, |level| level.share)),
            since(&|since| since.new_urls),
            since(&|since| since.not_downloaded),
        ];
        cells.extend(["birth", "death", "grow", "shrink", "merge", "split"].map(event));
        cells
    };
    let listed = &weeks[weeks.len().saturating_sub(MOST_ROWS)..];
    let rows: Vec<Vec<HtmlCell>> = listed.iter().map(row).collect();
    html.add(&table(Some("table-weeks"), "Weeks", &heads, &rows));
    html.own("<p class=\"soft\">Births, deaths and what follows are of very similar clusters.</p>\n");
    html
}
