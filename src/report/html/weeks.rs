//! What changed from week to week.

use anyhow::Result;

use super::parts::{Cell, MOST_ROWS, table};
use super::plots::{Axis, Ink, Series, figure};
use crate::look::{ClassCurve, EvolutionCurves};
use crate::summary::{Since, Summary};

/// What the axis of weeks is called.
const WEEK: &str = "week, from the first";
/// The inks of classes of cluster sizes, from the smallest.
const INKS: [Ink; 7] = [Ink::One, Ink::Two, Ink::Three, Ink::Four, Ink::Five, Ink::Six, Ink::Seven];

/// Documents, duplicates and changes of clusters, week by week.
pub(super) fn weeks(weeks: &[Summary]) -> Result<String> {
    let numbered =
        |of: &dyn Fn(&Summary) -> u64| (1..).map(f64::from).zip(weeks.iter().map(|week| of(week) as f64)).collect();
    let duplicates = |week: &Summary| week.levels.first().map_or(0, |level| level.duplicates);
    let series = vec![
        Series {
            name: "documents".to_owned(),
            ink: Ink::One,
            is_line: true,
            points: numbered(&|week| week.counts.documents),
        },
        Series { name: "duplicates".to_owned(), ink: Ink::Two, is_line: true, points: numbered(&duplicates) },
    ];
    let most = weeks.iter().map(|week| week.counts.documents).max().unwrap_or(0).max(1) as f64;
    let axes = [
        Axis { name: WEEK, bounds: (1.0, weeks.len() as f64), is_logarithmic: false, is_whole: true },
        Axis { name: "pages", bounds: (0.0, 1.1 * most), is_logarithmic: false, is_whole: false },
    ];
    let plot = figure("Documents and duplicates, week by week", axes, &series, "")?;
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
            Some(since) => Cell::count(of(since)),
            None => Cell::Number(String::new(), None),
        };
        let event = |name: &str| since(&|since| since.changes.get(name).map_or(0, |counts| counts.0));
        let mut cells = vec![
            Cell::Text(week.week.to_string()),
            Cell::count(week.counts.documents),
            Cell::count(duplicates(week)),
            Cell::share(week.levels.first().map_or(0.0, |level| level.share)),
            since(&|since| since.new_urls),
            since(&|since| since.not_downloaded),
        ];
        cells.extend(["birth", "death", "grow", "shrink", "merge", "split"].map(event));
        cells
    };
    let listed = &weeks[weeks.len().saturating_sub(MOST_ROWS)..];
    let rows: Vec<Vec<Cell>> = listed.iter().map(row).collect();
    Ok(format!(
        "{plot}{}<p class=\"soft\">Births, deaths and what follows are of very similar clusters.</p>\n",
        table(Some("table-weeks"), "Weeks", &heads, &rows)
    ))
}

/// How well clusters keep together, and how much pages change.
pub(super) fn evolution(curves: &EvolutionCurves) -> Result<String> {
    let mut out = String::new();
    let last = curves.classes.iter().map(|class| class.retention.len()).max().unwrap_or(0);
    if last > 1 {
        let of_class = |(class, ink): (&ClassCurve, &Ink)| Series {
            name: format!("clusters of {} page{}", class.class, if class.class == "1" { "" } else { "s" }),
            ink: *ink,
            is_line: true,
            points: (1..).map(f64::from).zip(class.retention.iter().map(|share| 100.0 * share)).collect(),
        };
        let series: Vec<Series> = curves.classes.iter().zip(INKS.iter().cycle()).map(of_class).collect();
        let axes = [
            Axis { name: WEEK, bounds: (1.0, last as f64), is_logarithmic: false, is_whole: true },
            Axis { name: "% of a page's first cluster", bounds: (0.0, 105.0), is_logarithmic: false, is_whole: false },
        ];
        let caption = "Retention: the share of a page's cluster of the first week that is with it in a later one; \
                       the mean over the pages, by the size of the first cluster.";
        out.push_str(&figure("Retention of clusters, week by week", axes, &series, caption)?);
    }
    let pairs: u64 = curves.amounts.iter().sum();
    if pairs > 0 {
        let share = |(amount, pairs_of): (usize, &u64)| (amount as f64, 100.0 * *pairs_of as f64 / pairs as f64);
        let points: Vec<(f64, f64)> =
            curves.amounts.iter().enumerate().map(share).filter(|point| point.1 > 0.0).collect();
        let least = points.iter().map(|point| point.1).fold(100.0, f64::min);
        let name = "page and its next download".to_owned();
        let series = [Series { name, ink: Ink::One, is_line: false, points }];
        let axes = [
            Axis {
                name: "features that stay",
                bounds: (-1.0, curves.amounts.len() as f64),
                is_logarithmic: false,
                is_whole: false,
            },
            Axis { name: "% of the downloads", bounds: (0.7 * least, 130.0), is_logarithmic: true, is_whole: false },
        ];
        let caption = format!(
            "The number of equal features; {} stands for pages that are the same, byte for byte.",
            curves.amounts.len() - 1
        );
        out.push_str(&figure("How much pages change from one download to the next", axes, &series, &caption)?);
    }
    Ok(out)
}
