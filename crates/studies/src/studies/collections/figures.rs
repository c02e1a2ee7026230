//! The figures and the table of the study (Cho, Shivakumar and Garcia-Molina 2000).

use std::collections::BTreeMap;

use anyhow::Result;

use super::{Collections, PUBLISHED_LARGEST, PUBLISHED_SAVINGS};
use crate::plot::{Axis, Ink, Plot, Series, SeriesLook};
use crate::studies::figure::{Cell, Figure, Picture, percent};
use crate::studies::figure_tables::FigureTables;
use crate::studies::overlap::REPLICAS;
use crate::tables::studies::collections::{
    CollectionClusterRow, CollectionReplicaRow, CollectionSavingRow, CollectionSizeRow,
};

pub(super) const FIGURES: &[Figure] = &[
    Figure { name: "Cho 2000, Fig. 11", title: "Pages by the number of their replicas", draw: replicas },
    Figure { name: "Cho 2000, Fig. 12", title: "Similar clusters by their cardinality and size", draw: sizes },
    Figure { name: "Cho 2000, Table 2", title: "The similar clusters of most collections", draw: largest },
];

/// Clusters that are listed.
const LISTED: usize = 20;

fn replicas(tables: &FigureTables<'_>) -> Result<Picture> {
    let mut points = Vec::new();
    tables.of_study::<Collections, CollectionReplicaRow>(&["similar", "share"], |row| {
        let similar = row.text("similar")?;
        let place = REPLICAS.iter().position(|name| *name == similar).unwrap_or(0) as f64;
        points.extend(row.real("share")?.map(|share| (place, 100.0 * share)));
        Ok(())
    })?;
    let mut notes = Vec::new();
    tables.of_study::<Collections, CollectionSavingRow>(
        &["listed", "week", "similar_before", "similar_after"],
        |row| {
            notes.push(format!(
                "Without the pages of the avoid list of {}, the similar pages of week {} fall from {} to {}.",
                row.week("listed")?,
                row.week("week")?,
                percent(row.real("similar_before")?),
                percent(row.real("similar_after")?)
            ));
            Ok(())
        },
    )?;
    notes.push(format!(
        "In the study a second crawl fell from {} to {}.",
        percent(Some(PUBLISHED_SAVINGS.similar_before)),
        percent(Some(PUBLISHED_SAVINGS.similar_after))
    ));
    let plot = Plot {
        label: "Pages by the number of their replicas".to_owned(),
        x: Axis::names("replicas of a page", "similar", REPLICAS),
        y: Axis::linear("% of the pages", "percent").within(0.0, None),
        series: vec![Series::ours("", Ink::One, SeriesLook::Bars, points)],
    };
    Ok(Picture::plot(plot, notes))
}

fn sizes(tables: &FigureTables<'_>) -> Result<Picture> {
    // By how many clusters are at one place: colours stand for powers of ten.
    let mut places: BTreeMap<u32, Vec<(f64, f64)>> = BTreeMap::new();
    tables.of_study::<Collections, CollectionSizeRow>(&["cardinality", "size", "clusters"], |row| {
        let clusters = row.count("clusters")?.max(1) as u64;
        let place = (row.count("size")? as f64, row.count("cardinality")? as f64);
        places.entry(clusters.ilog10()).or_default().push(place);
        Ok(())
    })?;
    let mut notes = Vec::new();
    if places.is_empty() {
        notes.push(
            "No two trivial clusters are linked so that they are merged: there are no similar clusters.".to_owned(),
        );
    }
    let name = |power: u32| match power {
        0 => "1 to 9 clusters there".to_owned(),
        power => {
            let least = 10u64.saturating_pow(power);
            let [least, most] = [least, least.saturating_mul(10) - 1].map(crate::sheet::grouped);
            format!("{least} to {most} clusters there")
        }
    };
    let of_power = |(power, points)| Series::ours(name(power), Ink::of(power as usize), SeriesLook::Points, points);
    let mut series: Vec<Series> = places.into_iter().map(of_power).collect();
    let published = PUBLISHED_LARGEST.map(|(cardinality, size)| (size as f64, cardinality as f64));
    series.push(Series::published("the study's largest", Ink::Text, SeriesLook::Points, published.to_vec()));
    let plot = Plot {
        label: "Similar clusters by their cardinality and size".to_owned(),
        x: Axis::logarithmic("pages of a collection (size)", "size"),
        y: Axis::logarithmic("collections of a cluster (cardinality)", "cardinality"),
        series,
    };
    Ok(Picture::plot(plot, notes))
}

fn largest(tables: &FigureTables<'_>) -> Result<Picture> {
    let columns = ["cardinality", "size", "pages", "collections", "noise", "title", "url"];
    // The largest of those that are not noise: by cardinality, then by size.
    let mut found: Vec<([i64; 4], String, String)> = Vec::new();
    tables.of_study::<Collections, CollectionClusterRow>(&columns, |row| {
        if row.truth("noise")? {
            return Ok(());
        }
        let [cardinality, size, pages, collections] =
            ["cardinality", "size", "pages", "collections"].map(|name| row.count(name));
        found.push(([cardinality?, size?, pages?, collections?], row.text("url")?, row.text("title")?));
        if found.len() >= 64 * LISTED {
            keep_largest(&mut found);
        }
        Ok(())
    })?;
    keep_largest(&mut found);
    let row = |(counts, url, title): ([i64; 4], String, String)| {
        let counts = counts.into_iter().map(Cell::Count);
        counts.chain([Cell::Nothing, Cell::Text(title), Cell::Name(url)]).collect()
    };
    let mut rows: Vec<Vec<Cell>> = found.into_iter().map(row).collect();
    let mut notes = Vec::new();
    if rows.is_empty() {
        notes.push("No similar cluster has `least-size` pages.".to_owned());
    }
    rows.iter_mut().for_each(|row| row[4] = Cell::Text("ours".to_owned()));
    rows.extend(PUBLISHED_LARGEST.map(|(cardinality, size)| {
        let counts = [cardinality, size].map(|count| Cell::Count(count as i64));
        let others = [Cell::Nothing, Cell::Nothing, Cell::Text("published".to_owned()), Cell::Nothing, Cell::Nothing];
        counts.into_iter().chain(others).collect()
    }));
    Ok(Picture::listing(["cardinality", "size", "pages", "collections", "from", "title", "url"], rows, notes))
}

fn keep_largest(found: &mut Vec<([i64; 4], String, String)>) {
    found.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    found.truncate(LISTED);
}
