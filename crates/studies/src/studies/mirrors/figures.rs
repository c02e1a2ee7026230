//! The figures of section 4 of the study (Fetterly 2004): the classes of pairs, and Fig. 11 to 13.

use std::collections::BTreeMap;

use anyhow::Result;

use super::write::class_counts;
use super::{Mirrors, PUBLISHED_MIRRORED};
use crate::plot::{Axis, Ink, Plot, Series, SeriesLook};
use crate::records::Week;
use crate::stats::{Fitted, fit_words};
use crate::studies::any_study::StudySummary;
use crate::studies::evolution::changes;
use crate::studies::figure::{Cell, Figure, Picture, percent};
use crate::studies::figure_tables::FigureTables;
use crate::tables::studies::mirrors::{MirrorChangeRow, MirrorClassRow, MirrorSizeRow, MirroredRow};

pub(super) const FIGURES: &[Figure] = &[
    Figure {
        name: "Fetterly 2004, section 4",
        title: "Pairs of hosts with many pages in common, by class",
        draw: classes,
    },
    Figure {
        name: "Fetterly 2004, Fig. 11",
        title: "How much mirrored pages change, by the size of the mirror",
        draw: |tables| changes("pages of the mirror", &change_rows(tables)?),
    },
    Figure {
        name: "Fetterly 2004, Fig. 12",
        title: "Mirrors by size, in the first week",
        draw: |tables| sizes(tables, false),
    },
    Figure {
        name: "Fetterly 2004, Fig. 13",
        title: "Mirrors by size, in the first week and in the last",
        draw: |tables| sizes(tables, true),
    },
];

fn classes(tables: &FigureTables<'_>) -> Result<Picture> {
    let weeks = match tables.summary_of("mirrors")? {
        Some(StudySummary::Mirrors(summary)) => summary.mirrors,
        _ => Vec::new(),
    };
    // Tables of an older version have no column `study`.
    let mut study: BTreeMap<(Week, &str), u64> = BTreeMap::new();
    for week in &weeks {
        let counts = week.study.as_ref().map(class_counts).into_iter().flatten();
        study.extend(counts.filter(|(class, _)| *class != "farm").map(|(class, pairs)| ((week.week, class), pairs)));
    }
    let mut rows: Vec<Vec<Cell>> = Vec::new();
    tables.of_study::<Mirrors, MirrorClassRow>(&["week", "class", "pairs", "published"], |row| {
        let (week, class) = (row.week("week")?, row.text("class")?);
        let study = Cell::count(study.get(&(week, class.as_str())).map(|pairs| *pairs as i64));
        let [pairs, published] = [Cell::Count(row.count("pairs")?), Cell::count(row.maybe_count("published")?)];
        rows.push(vec![Cell::Text(week.to_string()), Cell::Text(class), pairs, study, published]);
        Ok(())
    })?;
    let mut shares = Vec::new();
    tables.of_study::<Mirrors, MirroredRow>(&["week", "share"], |row| {
        let week = row.week("week")?;
        let study = weeks.iter().find(|of| of.week == week).and_then(|of| of.study_share);
        let study =
            study.map_or_else(String::new, |share| format!(" ({} counted as in the study)", percent(Some(share))));
        shares.push(format!("{} in {week}{study}", percent(row.real("share")?)));
        Ok(())
    })?;
    // A year of weeks would be a page of numbers.
    let more = if shares.len() > 2 { " The table `mirrors/mirrored` has all weeks." } else { "" };
    if shares.len() > 2 {
        shares.drain(1..shares.len() - 1);
    }
    let mirrored = format!(
        "Pages that are mirrored: {}; in the study {}.{more}",
        shares.join(", "),
        percent(Some(PUBLISHED_MIRRORED))
    );
    let counted = "`study` counts as the study did: pairs of the host of a cluster's root with each other host. `pairs` are the pairs of the other tables, by \
                   default of any two hosts: docs/mirrors.md.";
    Ok(Picture::listing(["week", "class", "pairs", "study", "published"], rows, [mirrored, counted.to_owned()]))
}

fn change_rows(tables: &FigureTables<'_>) -> Result<Vec<(String, String, f64)>> {
    let mut rows = Vec::new();
    tables.of_study::<Mirrors, MirrorChangeRow>(&["class", "change", "share"], |row| {
        if let Some(share) = row.real("share")? {
            rows.push((row.text("class")?, row.text("change")?, share));
        }
        Ok(())
    })?;
    Ok(rows)
}

fn sizes(tables: &FigureTables<'_>, has_last: bool) -> Result<Picture> {
    let mut weeks: BTreeMap<Week, Vec<(u64, u64)>> = BTreeMap::new();
    // Weeks without mirrors have no row there.
    tables.of_study::<Mirrors, MirroredRow>(&["week"], |row| {
        weeks.entry(row.week("week")?).or_default();
        Ok(())
    })?;
    tables.of_study::<Mirrors, MirrorSizeRow>(&["week", "size", "pairs"], |row| {
        weeks.entry(row.week("week")?).or_default().push((row.count("size")? as u64, row.count("pairs")? as u64));
        Ok(())
    })?;
    let (first, last) = (weeks.first_key_value(), weeks.last_key_value().filter(|_| has_last && weeks.len() > 1));
    let (mut series, mut notes) = (Vec::new(), Vec::new());
    for (number, (week, sizes)) in first.into_iter().chain(last).enumerate() {
        let (ink, fitted) = (Ink::of(number), Fitted::of(sizes.clone()));
        let pairs: u64 = sizes.iter().map(|(_, pairs)| pairs).sum();
        notes.push(match pairs {
            0 => {
                format!("{week}: no two hosts are mirrors; the table of section 4 says what became of the candidates.")
            }
            _ => format!("{week}: {}.", fit_words(fitted.fit)),
        });
        series.push(Series::ours(week.to_string(), ink, SeriesLook::Points, fitted.points()));
        if !fitted.line.is_empty() {
            series.push(Series::fit(format!("power law of {week}"), ink, fitted.line));
        }
    }
    if has_last && last.is_none() {
        notes.push("The store has one week.".to_owned());
    }
    notes.push("The study's sizes follow a power law, too, with outliers near 590 pages.".to_owned());
    let plot = Plot {
        label: "Pairs of mirrors by their size".to_owned(),
        x: Axis::logarithmic("pages of a mirror", "size"),
        y: Axis::logarithmic("pairs of mirrors", "pairs").within(0.8, None),
        series,
    };
    Ok(Picture::plot(plot, notes))
}
