//! The figure and the tables of the study (Shivakumar and Garcia-Molina 1998).

use anyhow::Result;

use super::{Overlap, REPLICAS, StepNeeds, Unit};
use crate::config::{Chunking, Mode};
use crate::plot::{Axis, Ink, Plot, Series, SeriesLook};
use crate::studies::any_study::StudySummary;
use crate::studies::figure::{Cell, Figure, Picture, percent};
use crate::studies::figure_tables::FigureTables;
use crate::tables::studies::overlap::{MostRow, OverlapRow, ReplicaRow, SavingRow};
use crate::tables::{ChunkRow, Table as _};

pub(super) const FIGURES: &[Figure] = &[
    Figure {
        name: "Shivakumar 1998, Fig. 1",
        title: "Pages by the number of other pages that overlap with them",
        draw: replicas,
    },
    Figure { name: "Shivakumar 1998, Table 1", title: "What the steps need", draw: needs },
    Figure { name: "Shivakumar 1998, Table 2", title: "The pages with most replicas", draw: most },
];

/// What the study found of its chunkings, in the order of the table: gigabytes of fingerprints, and
/// minutes of sorting and counting.
const PUBLISHED_NEEDS: [(&str, &str, i64, i64); 3] =
    [("document", "0.8 GB", 52, 45), ("four-lines", "2.4 GB", 163, 85), ("two-lines", "4.6 GB", 434, 162)];

fn replicas(tables: &FigureTables<'_>) -> Result<Picture> {
    let chunkings = [Chunking::Document, Chunking::FourLines, Chunking::TwoLines].map(Chunking::name);
    let mut ours = vec![Vec::new(); chunkings.len()];
    let mut published = vec![Vec::new(); chunkings.len()];
    tables.of_study::<Overlap, ReplicaRow>(&["chunking", "replicas", "share", "published"], |row| {
        let (chunking, replicas) = (row.text("chunking")?, row.text("replicas")?);
        let number = chunkings.iter().position(|name| *name == chunking).unwrap_or(0);
        let place = REPLICAS.iter().position(|name| *name == replicas).unwrap_or(0) as f64;
        ours[number].extend(row.real("share")?.map(|share| (place, 100.0 * share)));
        published[number].extend(row.real("published")?.map(|share| (place, 100.0 * share)));
        Ok(())
    })?;
    let mut series = Vec::new();
    for (number, name) in chunkings.iter().enumerate() {
        let ink = Ink::of(number);
        if !ours[number].is_empty() {
            series.push(Series::ours(*name, ink, SeriesLook::LineAndPoints, std::mem::take(&mut ours[number])));
        }
        if !published[number].is_empty() {
            let points = std::mem::take(&mut published[number]);
            series.push(Series::published(format!("{name}, published"), ink, SeriesLook::Points, points));
        }
    }
    let mut notes = Vec::new();
    tables.of_study::<Overlap, SavingRow>(&["chunking", "share", "published"], |row| {
        let of_study =
            row.real("published")?.map_or_else(String::new, |share| format!("; in the study {}", percent(Some(share))));
        notes.push(format!(
            "{}: a crawl could leave out {} of the pages{of_study}.",
            row.text("chunking")?,
            percent(row.real("share")?)
        ));
        Ok(())
    })?;
    let plot = Plot {
        label: "Pages by the number of other pages that overlap with them".to_owned(),
        x: Axis::names("other pages", "replicas", REPLICAS),
        y: Axis::linear("% of the pages", "percent").within(0.0, None),
        series,
    };
    Ok(Picture::plot(plot, notes))
}

fn needs(tables: &FigureTables<'_>) -> Result<Picture> {
    let summary = match tables.summary_of("overlap")? {
        Some(StudySummary::Overlap(summary)) => Some(summary),
        _ => None,
    };
    let steps = summary.as_ref().map_or(&[][..], |summary| &summary.steps);
    // The study compared pages.
    let is_of_pages = summary.as_ref().is_none_or(|summary| summary.unit == Unit::Document);
    let seconds = |step: &StepNeeds| step.seconds.map_or(Cell::Nothing, |seconds| Cell::Text(format!("{seconds:.2}")));
    let mut rows = Vec::new();
    for step in steps {
        let name = step.chunking.map_or("all", |chunking| chunking.name());
        let published = PUBLISHED_NEEDS.iter().find(|(chunking, ..)| *chunking == name);
        let of_study = match (step.step.as_str(), published) {
            _ if !is_of_pages => Cell::Nothing,
            ("fingerprints", Some((_, space, ..))) => Cell::Text((*space).to_owned()),
            ("pairs", Some((.., sort, count))) => Cell::Text(format!("{sort} min to sort, {count} min to count")),
            _ => Cell::Nothing,
        };
        let bytes = step.bytes.map_or(Cell::Nothing, |bytes| Cell::Text(crate::config::Bytes(bytes).to_string()));
        let records = Cell::count(step.records.map(|records| records as i64));
        rows.push(vec![
            Cell::Text(name.to_owned()),
            Cell::Text(step.step.clone()),
            seconds(step),
            records,
            bytes,
            of_study,
        ]);
    }
    // An older version kept no steps: the pairs, and what the study needed.
    for of in summary.iter().filter(|summary| summary.steps.is_empty()).flat_map(|summary| &summary.chunkings) {
        let name = of.chunking.name();
        let published = PUBLISHED_NEEDS.iter().find(|(chunking, ..)| is_of_pages && *chunking == name);
        let row = |step: &str, records, of_study: Option<String>| {
            let records = Cell::count(records);
            let of_study = of_study.map_or(Cell::Nothing, Cell::Text);
            vec![
                Cell::Text(name.to_owned()),
                Cell::Text(step.to_owned()),
                Cell::Nothing,
                records,
                Cell::Nothing,
                of_study,
            ]
        };
        rows.push(row("fingerprints", None, published.map(|(_, space, ..)| (*space).to_owned())));
        let minutes = published.map(|(.., sort, count)| format!("{sort} min to sort, {count} min to count"));
        rows.push(row("pairs", Some(of.pairs as i64), minutes));
    }
    let week = tables.last()?;
    let [chunks, overlap] = tables.bytes::<Overlap>(week, ChunkRow::NAME, &[OverlapRow::NAME])?;
    let mut notes = vec![
        format!(
            "The chunks of all chunkings follow from the table `chunks`, which has {} in week {}; the pairs of pages have {}.",
            crate::config::Bytes(chunks as u64),
            week.week,
            crate::config::Bytes(overlap as u64)
        ),
        "The study took 44 hours to make the fingerprints of 24 million pages. Here they are hashes of lines that the week keeps, and are made \
         again in each pass: that is in the seconds of `pairs`."
            .to_owned(),
    ];
    if let Some(summary) = summary {
        notes.push(match (summary.steps.is_empty(), summary.mode) {
            (true, _) => "An older version made these tables, and kept no times: run the job again.".to_owned(),
            (false, Mode::Delta) => {
                format!("Seconds of {} workers. This run took pairs from the run before it.", summary.workers)
            }
            (false, _) => format!("Seconds by the clock, of {} workers: those of the slowest one.", summary.workers),
        });
    }
    Ok(Picture::listing(["chunking", "step", "seconds", "records", "bytes", "published"], rows, notes))
}

fn most(tables: &FigureTables<'_>) -> Result<Picture> {
    let mut rows = Vec::new();
    let columns = ["chunking", "rank", "documents", "hosts", "machines", "title", "url"];
    tables.of_study::<Overlap, MostRow>(&columns, |row| {
        rows.push(vec![
            Cell::Text(row.text("chunking")?),
            Cell::Count(row.count("rank")?),
            Cell::Count(row.count("documents")?),
            Cell::Count(row.count("hosts")?),
            Cell::Count(row.count("machines")?),
            Cell::Text(row.text("title")?),
            Cell::Name(row.text("url")?),
        ]);
        Ok(())
    })?;
    let empty = rows.is_empty().then(|| "No two pages overlap.".to_owned());
    Ok(Picture::listing(columns, rows, empty))
}
