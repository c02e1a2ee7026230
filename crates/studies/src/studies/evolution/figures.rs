//! The figures of section 3 of the study (Fetterly 2004): Fig. 4 to 10.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;

use super::{Evolution, PUBLISHED_UNCHANGED};
use crate::plot::{Axis, Ink, Plot, Series, SeriesLook};
use crate::stats::{Change, SizeClass, ratio};
use crate::studies::figure::{Figure, Picture, percent};
use crate::studies::figure_tables::FigureTables;
use crate::tables::studies::evolution::{AmountRow, ChangeClassRow, HostChangeRow, RetentionRow};

pub(super) const FIGURES: &[Figure] = &[
    Figure {
        name: "Fetterly 2004, Fig. 4",
        title: "Retention: the share of a page's first cluster that is with it in a later week",
        draw: |tables| {
            retention(
                tables,
                "retention",
                &[
                    "The mean over the pages, by the size of the cluster in the first week.",
                    "In the study the means lie between 78% and 95%, and that of clusters of one page is 100%.",
                ],
            )
        },
    },
    Figure {
        name: "Fetterly 2004, Fig. 5",
        title: "Similarity of the clusters of a page in the first week and in a later one",
        draw: |tables| {
            retention(
                tables,
                "similarity",
                &[
                    "Pages in both clusters over pages in either; the mean over the pages, by the size of the cluster in the first week.",
                ],
            )
        },
    },
    Figure {
        name: "Fetterly 2004, Fig. 6",
        title: "Hosts by the change of their number of clusters, from the first week to the last",
        draw: hosts,
    },
    Figure {
        name: "Fetterly 2004, Fig. 7",
        title: "The share of a page's later cluster that was with it in the first week",
        draw: |tables| {
            retention(tables, "reverse", &["The mean over the pages, by the size of the cluster in the first week."])
        },
    },
    Figure {
        name: "Fetterly 2004, Fig. 8",
        title: "Sizes of clusters, by the amount of change from one download to the next",
        draw: amounts,
    },
    Figure {
        name: "Fetterly 2004, Fig. 9",
        title: "The same shares, over the mean share of each size",
        draw: relative,
    },
    Figure {
        name: "Fetterly 2004, Fig. 10",
        title: "How much pages change, by the size of their clusters",
        draw: |tables| changes("pages of a cluster", &change_rows(tables)?),
    },
];

/// Fewer pairs of downloads than this are few.
const FEW_PAIRS: u64 = 10;

/// The name of a class of sizes beside a plot.
fn title_of(class: &str) -> String {
    match class {
        "1" => "1 page".to_owned(),
        "above 100000" => "above 100,000 pages".to_owned(),
        class => {
            let ends = class.split('-').map(|end| end.parse().map_or_else(|_| end.to_owned(), crate::sheet::grouped));
            format!("{} pages", ends.collect::<Vec<_>>().join(" to "))
        }
    }
}

/// The number of a class among those of the study.
fn number_of(class: &str) -> usize {
    SizeClass::study().position(|of| of.name() == class).unwrap_or(0)
}

/// A mean of each class of sizes, week by week.
fn retention(tables: &FigureTables<'_>, column: &str, notes: &[&str]) -> Result<Picture> {
    let mut days = BTreeSet::new();
    let mut classes: BTreeMap<usize, (String, Vec<(f64, f64)>)> = BTreeMap::new();
    let mut pages: BTreeMap<usize, u64> = BTreeMap::new();
    tables.of_study::<Evolution, RetentionRow>(&["week", "class", "documents", column], |row| {
        let (week, class) = (row.week("week")?, row.text("class")?);
        days.insert(week.days());
        if let Some(mean) = row.real(column)? {
            pages.insert(number_of(&class), row.count("documents")? as u64);
            let of_class = classes.entry(number_of(&class)).or_insert_with(|| (title_of(&class), Vec::new()));
            of_class.1.push((f64::from(week.days()), 100.0 * mean));
        }
        Ok(())
    })?;
    let of_class = |(number, (name, points))| Series::ours(name, Ink::of(number), SeriesLook::LineAndPoints, points);
    let plot = Plot {
        label: format!("{column} of clusters, week by week"),
        x: Axis::weeks(days),
        y: Axis::linear("% of the cluster", "percent").within(0.0, 104.0),
        series: classes.into_iter().map(of_class).collect(),
    };
    // A line of few pages says little, and looks the same as that of many.
    let of_class = |(number, count): (usize, u64)| format!("{}: {}", name_of(number), crate::sheet::grouped(count));
    let pages: Vec<String> = pages.into_iter().map(of_class).collect();
    let mut notes: Vec<String> = notes.iter().map(|note| (*note).to_owned()).collect();
    notes.push("Pages that a week does not have are one cluster of that week.".to_owned());
    if !pages.is_empty() {
        notes.push(format!("Pages of the first week by the size of their cluster: {}.", pages.join("; ")));
    }
    Ok(Picture::plot(plot, notes))
}

fn hosts(tables: &FigureTables<'_>) -> Result<Picture> {
    let mut points = Vec::new();
    let (mut all, mut unchanged) = (0, 0);
    tables.of_study::<Evolution, HostChangeRow>(&["change", "hosts"], |row| {
        let (change, hosts) = (row.count("change")?, row.count("hosts")?);
        all += hosts as u64;
        unchanged += if change == 0 { hosts as u64 } else { 0 };
        points.push((change as f64, hosts as f64));
        Ok(())
    })?;
    let plot = Plot {
        label: "Hosts by the change of their number of clusters".to_owned(),
        x: Axis::linear("clusters of a host, change since the first week", "change"),
        y: Axis::logarithmic("hosts", "hosts").within(0.8, None),
        series: vec![Series::ours("", Ink::One, SeriesLook::Points, points)],
    };
    let note = format!(
        "Of {}, {} have as many clusters as before; in the study {}. A host without a page in a week has no cluster there.",
        crate::sheet::plural(all, "host"),
        percent(ratio(unchanged, all)),
        percent(Some(PUBLISHED_UNCHANGED))
    );
    Ok(Picture::plot(plot, [note]))
}

/// The rows of a column of `amounts`: amounts and values, by class.
fn by_amount(tables: &FigureTables<'_>, column: &str) -> Result<BTreeMap<usize, Vec<(f64, f64)>>> {
    let mut classes: BTreeMap<usize, Vec<(f64, f64)>> = BTreeMap::new();
    tables.of_study::<Evolution, AmountRow>(&["amount", "class", column], |row| {
        let Some(value) = row.real(column)? else { return Ok(()) };
        classes.entry(number_of(&row.text("class")?)).or_default().push((row.count("amount")? as f64, value));
        Ok(())
    })?;
    classes.retain(|_, points| points.iter().any(|point| point.1 > 0.0));
    Ok(classes)
}

/// The axis of change amounts, and what its ends mean.
fn amount_axis() -> (Axis, String) {
    let axis = Axis::linear("features that stay", "amount").within(-1.0, None);
    (axis, "The greatest amount stands for downloads that are equal, byte for byte.".to_owned())
}

fn name_of(number: usize) -> String {
    SizeClass::study().nth(number).map_or_else(String::new, |class| title_of(class.name()))
}

fn amounts(tables: &FigureTables<'_>) -> Result<Picture> {
    let classes = by_amount(tables, "share")?;
    let percents =
        |points: Vec<(f64, f64)>| points.into_iter().map(|(amount, share)| (amount, 100.0 * share)).collect();
    let of_class =
        |(number, points)| Series::ours(name_of(number), Ink::of(number), SeriesLook::Bars, percents(points));
    let (x, ends) = amount_axis();
    let plot = Plot {
        label: "Sizes of clusters, by the amount of change".to_owned(),
        x,
        y: Axis::linear("% of the pairs of downloads", "percent").within(0.0, 100.0),
        series: classes.into_iter().map(of_class).collect(),
    };
    let mut pairs: BTreeMap<i64, u64> = BTreeMap::new();
    tables.of_study::<Evolution, AmountRow>(&["amount", "pairs"], |row| {
        *pairs.entry(row.count("amount")?).or_default() += row.count("pairs")? as u64;
        Ok(())
    })?;
    pairs.retain(|_, pairs| *pairs > 0);
    let few = pairs.values().filter(|pairs| **pairs < FEW_PAIRS).count();
    let counts = if pairs.is_empty() {
        "No page was downloaded twice.".to_owned()
    } else {
        format!(
            "{} of {}; {few} of these are of fewer than {FEW_PAIRS} pairs.",
            crate::sheet::plural(pairs.values().sum(), "pair"),
            crate::sheet::plural(pairs.len() as u64, "amount")
        )
    };
    Ok(Picture::plot(plot, [ends, counts]))
}

fn relative(tables: &FigureTables<'_>) -> Result<Picture> {
    let classes = by_amount(tables, "relative")?;
    // Without marks: as many points as there are amounts would hide each other.
    let of_class = |(number, points)| Series::ours(name_of(number), Ink::of(number), SeriesLook::Line, points);
    let (x, ends) = amount_axis();
    let plot = Plot {
        label: "Shares of sizes of clusters over their means, by the amount of change".to_owned(),
        x,
        y: Axis::linear("share, over the mean share", "relative").within(0.0, None),
        series: classes.into_iter().map(of_class).collect(),
    };
    let mean = "The mean is over all amounts, as in the study: one that does not occur has a share of 0.".to_owned();
    Ok(Picture::plot(plot, [ends, mean]))
}

fn change_rows(tables: &FigureTables<'_>) -> Result<Vec<(String, String, f64)>> {
    let mut rows = Vec::new();
    tables.of_study::<Evolution, ChangeClassRow>(&["class", "change", "share"], |row| {
        if let Some(share) = row.real("share")? {
            rows.push((row.text("class")?, row.text("change")?, share));
        }
        Ok(())
    })?;
    Ok(rows)
}

/// A bar for each class of sizes, of the shares of all kinds of change. Rows are (class, change,
/// share), in the order of classes.
pub(in crate::studies) fn changes(what: &str, rows: &[(String, String, f64)]) -> Result<Picture> {
    let mut classes: Vec<&str> = rows.iter().map(|(class, ..)| class.as_str()).collect();
    classes.dedup();
    let place = |class: &str| classes.iter().position(|of| *of == class).unwrap_or(0) as f64;
    let of_change = |(number, change): (usize, Change)| {
        let of = rows.iter().filter(|(_, of, _)| of == change.name());
        let points = of.map(|(class, _, share)| (place(class), 100.0 * share)).collect();
        Series::ours(change.name().replace('-', " "), Ink::of(number), SeriesLook::Bars, points)
    };
    let plot = Plot {
        label: format!("Kinds of change, by the number of {what}"),
        x: Axis::names(what, "class", classes.iter().copied()),
        y: Axis::linear("% of the pairs of downloads", "percent").within(0.0, 100.0),
        series: Change::ALL.into_iter().enumerate().map(of_change).collect(),
    };
    let empty = rows.is_empty().then(|| "No page was downloaded twice.".to_owned());
    Ok(Picture::plot(plot, empty))
}
