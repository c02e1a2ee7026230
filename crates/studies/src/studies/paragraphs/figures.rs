//! The figures and tables of the study (Pereira, Baeza-Yates and Ziviani 2006).

use std::collections::BTreeMap;

use anyhow::Result;

use super::{Paragraphs, ParagraphsSummary, REGIONS};
use crate::plot::{Axis, Ink, Plot, Series, SeriesLook};
use crate::stats::{Fitted, fit_words, ratio};
use crate::studies::any_study::StudySummary;
use crate::studies::figure::{Cell, Figure, Picture, percent};
use crate::studies::figure_tables::{FigureTables, RowValues};
use crate::tables::studies::paragraphs::{ClusterSizeRow, CoverageRow, EstimateRow, GrowthRow, RegionRow};

pub(super) const FIGURES: &[Figure] = &[
    Figure { name: "Pereira 2006, Fig. 1", title: "Duplicates, and false matches among them", draw: false_matches },
    Figure {
        name: "Pereira 2006, Fig. 2",
        title: "Clusters of duplicates by size",
        draw: |tables| sizes(tables, REGIONS[0]),
    },
    Figure {
        name: "Pereira 2006, Fig. 3",
        title: "Clusters of duplicates by size, in the connected part",
        draw: |tables| sizes(tables, REGIONS[1]),
    },
    Figure {
        name: "Pereira 2006, Fig. 4",
        title: "Clusters of duplicates by size, in the disconnected part",
        draw: |tables| sizes(tables, REGIONS[2]),
    },
    Figure { name: "Pereira 2006, Fig. 5", title: "Duplicates that are found in a part of the crawl", draw: growth },
    Figure {
        name: "Pereira 2006, Table 2",
        title: "Duplicates",
        draw: |tables| regions(tables, |region, near| region == "all" && near.is_none()),
    },
    Figure {
        name: "Pereira 2006, Table 3",
        title: "Near-duplicates, by the share of paragraphs in common",
        draw: |tables| regions(tables, |region, near| region == "all" && near.is_some()),
    },
    Figure {
        name: "Pereira 2006, Table 4",
        title: "Duplicates in the connected part and in the disconnected one",
        draw: |tables| regions(tables, |region, near| region != "all" && near.is_none()),
    },
    Figure {
        name: "Pereira 2006, Table 5",
        title: "Clusters of duplicates with a page in the part",
        draw: |tables| coverage(tables, "clusters", "clusters_there", false),
    },
    Figure {
        name: "Pereira 2006, Table 6",
        title: "Different pages in the part: clusters, and pages without a duplicate",
        draw: |tables| coverage(tables, "unique", "unique_there", true),
    },
];

/// The columns of the study's shares.
const YEARS: [&str; 3] = ["published_2003", "published_2004", "published_2005"];

/// The study's share of duplicates in 2005, which it estimates from parts.
const PUBLISHED_SHARE: f64 = 0.358;

fn summary(tables: &FigureTables<'_>) -> Result<Option<ParagraphsSummary>> {
    Ok(match tables.summary_of("paragraphs")? {
        Some(StudySummary::Paragraphs(summary)) => Some(summary),
        _ => None,
    })
}

fn years(row: &RowValues<'_>) -> Result<Vec<Cell>> {
    YEARS.iter().map(|year| row.real(year).map(Cell::share)).collect()
}

fn false_matches(tables: &FigureTables<'_>) -> Result<Picture> {
    let Some(summary) = summary(tables)? else { return Ok(Picture::listing(["what"], Vec::new(), [""; 0])) };
    let all = summary.regions.iter().find(|of| of.region == "all" && of.near.is_none());
    let rows = [
        ("pages above the least length", Some(summary.documents)),
        ("clusters of duplicates", all.map(|of| of.clusters)),
        ("duplicates", all.map(|of| of.duplicates)),
        ("false matches: pairs in which one page repeats a paragraph", Some(summary.false_matches)),
    ];
    let row = |(what, count): (&str, Option<u64>)| {
        vec![Cell::Text(what.to_owned()), Cell::count(count.map(|count| count as i64))]
    };
    let notes = [
        "The figure of the study is an example of twenty pages: one of them repeats a paragraph, and has the same number of paragraphs as another \
         page, each of which is found there. Such pairs are counted here; they count as duplicates, too, as in the study.",
    ];
    Ok(Picture::listing(["what", "count"], rows.into_iter().map(row).collect(), notes))
}

fn sizes(tables: &FigureTables<'_>, region: &str) -> Result<Picture> {
    let mut sizes = Vec::new();
    tables.of_study::<Paragraphs, ClusterSizeRow>(&["region", "size", "clusters"], |row| {
        if row.text("region")? == region {
            sizes.push((row.count("size")? as u64, row.count("clusters")? as u64));
        }
        Ok(())
    })?;
    let fitted = Fitted::of(sizes);
    let mut notes = Vec::new();
    if fitted.sizes.is_empty() {
        notes.push("No two pages of this part are duplicates.".to_owned());
    } else {
        notes.push(format!("Power law: {}.", fit_words(fitted.fit)));
    }
    if region != REGIONS[0] {
        notes.push(connected(tables)?);
    }
    if region == "all" {
        for of in summary(tables)?.map(|summary| summary.shapes).unwrap_or_default() {
            notes.push(format!("{}: {}; in the study {}.", of.what, percent(of.share), percent(Some(of.published))));
        }
        for of in summary(tables)?.map(|summary| summary.sites).unwrap_or_default() {
            let share = percent(ratio(of.one_site, of.clusters));
            notes.push(format!("Clusters of {} pages: {share} of {} lie on one site.", of.class, of.clusters));
        }
    }
    let name = if region == REGIONS[0] { "clusters".to_owned() } else { format!("clusters of the {region} part") };
    let mut series = vec![Series::ours(name, Ink::One, SeriesLook::Points, fitted.points())];
    if !fitted.line.is_empty() {
        series.push(Series::fit("power law", Ink::Two, fitted.line));
    }
    let plot = Plot {
        label: "Clusters of duplicates by their number of pages".to_owned(),
        x: Axis::logarithmic("pages of a cluster", "size"),
        y: Axis::logarithmic("clusters", "clusters").within(0.8, None),
        series,
    };
    Ok(Picture::plot(plot, notes))
}

fn growth(tables: &FigureTables<'_>) -> Result<Picture> {
    let mut steps: Vec<[i64; 3]> = Vec::new();
    tables.of_study::<Paragraphs, GrowthRow>(&["step", "clusters", "duplicates"], |row| {
        steps.push([row.count("step")?, row.count("clusters")?, row.count("duplicates")?]);
        Ok(())
    })?;
    let points = |of: usize| steps.iter().map(|step| (step[0] as f64, step[of] as f64)).collect();
    let series = vec![
        Series::ours("duplicates", Ink::One, SeriesLook::LineAndPoints, points(2)),
        Series::ours("clusters", Ink::Two, SeriesLook::LineAndPoints, points(1)),
    ];
    let mut notes = Vec::new();
    let columns = ["steps", "of_week", "estimated", "duplicates", "share", "published"];
    tables.of_study::<Paragraphs, EstimateRow>(&columns, |row| {
        let by = match row.maybe_week("of_week")? {
            Some(week) => format!("the growth of week {week}"),
            None => "the sizes of the clusters found".to_owned(),
        };
        let estimated = row.real("estimated")?.unwrap_or_default().round() as u64;
        let of_study = row.real("published")?.map_or_else(String::new, |share| {
            format!(
                " The study estimated {} so, where {} were duplicates.",
                percent(Some(share)),
                percent(Some(PUBLISHED_SHARE))
            )
        });
        notes.push(format!(
            "Estimate from {}, by {by}: {} duplicates, {} of the pages; there are {}.{of_study}",
            crate::sheet::plural(row.count("steps")? as u64, "part"),
            crate::sheet::grouped(estimated),
            percent(row.real("share")?),
            crate::sheet::grouped(row.count("duplicates")? as u64)
        ));
        Ok(())
    })?;
    let plot = Plot {
        label: "Duplicates that are found, by the parts that are searched".to_owned(),
        x: Axis::linear("parts of the crawl", "step").within(0.0, None),
        y: Axis::linear("found", "found").within(0.0, None),
        series,
    };
    Ok(Picture::plot(plot, notes))
}

fn regions(tables: &FigureTables<'_>, is_wanted: fn(&str, Option<f64>) -> bool) -> Result<Picture> {
    let mut rows = Vec::new();
    let columns = ["region", "near", "documents", "clusters", "duplicates", "share"];
    let read: Vec<&str> = columns.into_iter().chain(YEARS).collect();
    tables.of_study::<Paragraphs, RegionRow>(&read, |row| {
        let (region, near) = (row.text("region")?, row.real("near")?);
        if is_wanted(&region, near) {
            let mut cells = vec![Cell::Text(region), Cell::share(near)];
            for name in ["documents", "clusters", "duplicates"] {
                cells.push(Cell::Count(row.count(name)?));
            }
            cells.push(Cell::share(row.real("share")?));
            cells.extend(years(row)?);
            rows.push(cells);
        }
        Ok(())
    })?;
    let has_parts = rows.iter().any(|row: &Vec<Cell>| row[0] != Cell::Text("all".to_owned()));
    let note = if has_parts { Some(connected(tables)?) } else { None };
    Ok(Picture::listing(columns.into_iter().chain(YEARS), rows, note))
}

fn coverage(tables: &FigureTables<'_>, all: &'static str, there: &'static str, has_useful: bool) -> Result<Picture> {
    let mut rows = Vec::new();
    let read: Vec<&str> = ["region", all, there, "useful"].into_iter().chain(YEARS).collect();
    tables.of_study::<Paragraphs, CoverageRow>(&read, |row| {
        let (count, of_region) = (row.count(all)?, row.count(there)?);
        let mut cells = vec![Cell::Text(row.text("region")?), Cell::Count(count), Cell::Count(of_region)];
        if has_useful {
            cells.push(Cell::share(row.real("useful")?));
            cells.extend(years(row)?);
        } else {
            cells.push(Cell::share((count > 0).then(|| of_region as f64 / count as f64)));
        }
        rows.push(cells);
        Ok(())
    })?;
    let last: &[&str] = if has_useful { &["useful", YEARS[0], YEARS[1], YEARS[2]] } else { &["share"] };
    let columns = ["region", all, there].into_iter().chain(last.iter().copied());
    Ok(Picture::listing(columns, rows, [connected(tables)?]))
}

/// What the connected part is.
fn connected(tables: &FigureTables<'_>) -> Result<String> {
    let Some(summary) = summary(tables)? else { return Ok(String::new()) };
    let connected: BTreeMap<&str, u64> =
        summary.regions.iter().filter(|of| of.near.is_none()).map(|of| (of.region.as_str(), of.documents)).collect();
    let pages = crate::sheet::plural(connected.get("connected").copied().unwrap_or(0), "page");
    Ok(match (&summary.seed, summary.core) {
        (Some(_), Some(core)) => {
            format!("Connected: {pages}, to which links lead from a core of {}.", crate::sheet::plural(core, "page"))
        }
        (Some(_), None) => format!("Connected: {pages}, to which links lead from the given seeds."),
        (None, _) => "No link leads to a page: nothing is connected.".to_owned(),
    })
}
