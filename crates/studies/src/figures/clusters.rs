//! The figures and tables of clusters (Fetterly 2004, section 2): the totals, Fig. 1 to 3, Tables 1
//! and 2.

use anyhow::Result;

use crate::plot::{Axis, Ink, Plot, Series, SeriesLook};
use crate::records::Level;
use crate::state::CommittedWeek;
use crate::stats::{Fitted, fit_words};
use crate::studies::{Cell, Figure, FigureTables, Picture};
use crate::tables::{LargestRow, SizeRow, SummaryRow};

pub(super) const FIGURES: &[Figure] = &[
    Figure { name: "Fetterly 2004, section 2", title: "Clusters and duplicates", draw: totals },
    Figure {
        name: "Fetterly 2004, Fig. 1",
        title: "Clusters of very similar pages by size",
        draw: |tables| sizes(tables, &[(tables.last()?, Level::Similar)], |_, _| "clusters".to_owned()),
    },
    Figure {
        name: "Fetterly 2004, Fig. 2",
        title: "Clusters of very similar pages by size, in the first week and in the last",
        draw: |tables| {
            let mut weeks = vec![(tables.last()?, Level::Similar)];
            weeks.extend(
                tables.weeks().first().filter(|first| **first != *weeks[0].0).map(|first| (first, Level::Similar)),
            );
            weeks.reverse();
            sizes(tables, &weeks, |week, _| week.week.to_string())
        },
    },
    Figure {
        name: "Fetterly 2004, Fig. 3",
        title: "Clusters of very similar pages and of virtually identical ones, by size",
        draw: |tables| {
            let last = tables.last()?;
            sizes(tables, &[(last, Level::Similar), (last, Level::Identical)], |_, level| level.title().to_owned())
        },
    },
    Figure {
        name: "Fetterly 2004, Table 1",
        title: "The largest clusters of very similar pages",
        draw: |tables| largest(tables, Level::Similar),
    },
    Figure {
        name: "Fetterly 2004, Table 2",
        title: "The largest clusters of virtually identical pages",
        draw: |tables| largest(tables, Level::Identical),
    },
];

/// The exponent of the sizes of clusters in the study's crawl.
const PUBLISHED_EXPONENT: f64 = 2.5;

/// The study's totals of its first week: pages, clusters, pages in them, duplicates.
const PUBLISHED_TOTALS: [(Level, [i64; 4]); 2] = [
    (Level::Similar, [150_836_209, 13_283_856, 57_305_947, 44_022_091]),
    (Level::Identical, [150_836_209, 12_019_235, 45_492_400, 33_473_165]),
];

fn totals(tables: &FigureTables<'_>) -> Result<Picture> {
    let counts = ["documents", "clusters", "clustered", "duplicates"];
    let mut rows = Vec::new();
    for week in tables.weeks() {
        let read = ["level", "documents", "clusters", "clustered", "duplicates", "share"];
        tables.of_week::<SummaryRow>(week, &read, |row| {
            let mut cells = vec![Cell::Text(week.week.to_string()), Cell::Text(row.text("level")?)];
            for name in counts {
                cells.push(Cell::Count(row.count(name)?));
            }
            cells.push(Cell::share(row.real("share")?));
            rows.push(cells);
            Ok(())
        })?;
    }
    rows.extend(PUBLISHED_TOTALS.map(|(level, counts)| {
        let mut cells = vec![Cell::Text("published".to_owned()), Cell::Text(level.name().to_owned())];
        cells.extend(counts.map(Cell::Count));
        cells.push(Cell::Share(counts[3] as f64 / counts[0] as f64));
        cells
    }));
    let columns = ["week", "level"].into_iter().chain(counts).chain(["share"]);
    Ok(Picture::listing(columns, rows, ["Duplicates are the pages that go if one of each cluster stays."]))
}

/// Distributions of cluster sizes with their fits, on one plot.
fn sizes(
    tables: &FigureTables<'_>,
    which: &[(&CommittedWeek, Level)],
    name: fn(&CommittedWeek, Level) -> String,
) -> Result<Picture> {
    let (mut series, mut notes) = (Vec::new(), Vec::new());
    for (number, (week, level)) in which.iter().enumerate() {
        let (ink, name) = (Ink::of(number), name(week, *level));
        let mut sizes = Vec::new();
        tables.of_week::<SizeRow>(week, &["level", "size", "clusters"], |row| {
            if row.text("level")? == level.name() {
                sizes.push((row.count("size")? as u64, row.count("clusters")? as u64));
            }
            Ok(())
        })?;
        let fitted = Fitted::of(sizes);
        let week = week.week.to_string();
        let of = if name == week { week } else { format!("{name}, week {week}") };
        notes.push(if fitted.sizes.is_empty() {
            format!("{of}: no two pages are in one cluster.")
        } else {
            format!("{of}: {}.", fit_words(fitted.fit))
        });
        series.push(Series::ours(name.clone(), ink, SeriesLook::Points, fitted.points()));
        if !fitted.line.is_empty() {
            series.push(Series::fit(format!("power law of {name}"), ink, fitted.line));
        }
    }
    series.extend(published_slope(&series));
    notes.push(format!(
        "The study's crawl has an exponent of about {PUBLISHED_EXPONENT}; only the slope of its line counts."
    ));
    let plot = Plot {
        label: "Clusters by their number of pages, on logarithmic axes".to_owned(),
        x: Axis::logarithmic("pages of a cluster", "size"),
        y: Axis::logarithmic("clusters", "clusters").within(0.8, None),
        series,
    };
    Ok(Picture::plot(plot, notes))
}

/// The line of the study's exponent, through the place with most clusters. Only its slope was
/// published.
pub fn published_slope(series: &[Series]) -> Option<Series> {
    let points = || series.iter().filter(|series| series.marks == SeriesLook::Points).flat_map(|series| &series.points);
    let (size, clusters) = points().copied().max_by(|a, b| a.1.total_cmp(&b.1)).filter(|most| most.1 > 1.0)?;
    let most = 1.5 * points().map(|point| point.0).fold(10.0, f64::max);
    let end = (size * clusters.powf(1.0 / PUBLISHED_EXPONENT)).min(most);
    let at = |size_of: f64| (size_of, clusters * (size_of / size).powf(-PUBLISHED_EXPONENT));
    let name = format!("published exponent, {PUBLISHED_EXPONENT}");
    Some(Series::published(name, Ink::Text, SeriesLook::Line, vec![at(size), at(end)]))
}

fn largest(tables: &FigureTables<'_>, level: Level) -> Result<Picture> {
    let mut rows = Vec::new();
    let columns = ["rank", "urls", "hosts", "machines", "unresolved", "title", "name"];
    let week = tables.last()?;
    let read: Vec<&str> = ["level"].into_iter().chain(columns).collect();
    tables.of_week::<LargestRow>(week, &read, |row| {
        if row.text("level")? == level.name() {
            let mut cells = Vec::new();
            for name in &columns[..5] {
                cells.push(Cell::Count(row.count(name)?));
            }
            cells.extend([Cell::Text(row.text("title")?), Cell::Name(row.text("name")?)]);
            rows.push(cells);
        }
        Ok(())
    })?;
    let mut notes = vec![format!("Week {}. The description of a cluster is the title of its root.", week.week)];
    if rows.is_empty() {
        notes.push("No two pages are in one cluster.".to_owned());
    }
    if level == Level::Similar {
        notes.push("The study's largest cluster has 921,374 URLs on 6,286 hosts and 3 machines.".to_owned());
    }
    Ok(Picture::listing(columns, rows, notes))
}
