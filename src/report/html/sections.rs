//! The sections of the page.

use anyhow::Result;

use super::clusters::{card, largest};
use super::escape::escaped;
use super::parts::{Cell, sheet, table};
use super::plots::{Axis, Ink, Series, figure, greatest};
use super::weeks::{evolution, weeks};
use crate::look::{Overview, SizesOfLevel};
use crate::report;
use crate::sheet::{Sheet, plural};
use crate::studies::StudySummary;
use crate::summary::Summary;

/// The exponent of the sizes of clusters in the study's crawl (Fetterly 2004, section 2).
const PUBLISHED_EXPONENT: f64 = 2.5;
/// The share of pages that were duplicates in the study's crawl: very similar, virtually identical (Fetterly 2004, section 2).
const PUBLISHED_DUPLICATES: [f64; 2] = [0.292, 0.222];
/// The inks of the levels.
const INKS: [Ink; 3] = [Ink::One, Ink::Two, Ink::Three];

/// A section of the page.
pub(super) struct Section {
    pub(super) id: &'static str,
    pub(super) title: String,
    /// HTML.
    pub(super) body: String,
}

/// All sections that have something to show.
pub(super) fn all(overview: &Overview) -> Result<Vec<Section>> {
    let section = |id, title: &str, body: String| Section { id, title: title.to_owned(), body };
    let mut sections = vec![
        section("totals", "Totals", totals(&overview.summary)),
        section("sizes", "Cluster sizes", sizes(overview)?),
        section("accuracy", "How right the clusters are", accuracy(overview)?),
    ];
    for (level, clusters) in &overview.largest {
        if !clusters.is_empty() {
            let id = level.name();
            sections.push(section(id, &format!("Largest {} clusters", level.title()), largest(*level, clusters, id)));
        }
    }
    if !overview.shown.is_empty() {
        let cards: String = overview.shown.iter().map(card).collect();
        sections.push(section("clusters", "Clusters with their words", cards));
    }
    if overview.weeks.len() > 1 {
        sections.push(section("weeks", "Weeks", weeks(&overview.weeks)?));
    }
    for study in &overview.studies {
        let (id, title) = study.titled();
        let mut body = sheet(&study.report(&overview.summary.store.join(id)));
        if let (StudySummary::Evolution(_), Some(curves)) = (study, &overview.evolution) {
            body.push_str(&evolution(curves)?);
        }
        let of = study.week().filter(|week| *week != overview.summary.week);
        let title = of.map_or_else(|| title.to_owned(), |week| format!("{title}, until week {week}"));
        sections.push(section(id, &title, body));
    }
    sections.push(section("records", "Records and rejects", records(&overview.summary)));
    Ok(sections)
}

fn totals(summary: &Summary) -> String {
    let mut out = format!(
        "<p>{} from {} ({}), {}.</p>\n",
        plural(summary.counts.documents, "document"),
        plural(summary.files, "file"),
        crate::config::Bytes(summary.input_bytes),
        plural(summary.counts.words, "word")
    );
    let heads = [
        ("level", false),
        ("clusters", true),
        ("pages in them", true),
        ("duplicates", true),
        ("share", true),
        ("published", true),
    ];
    let row = |(level, number): (&crate::summary::LevelSummary, usize)| {
        let published = PUBLISHED_DUPLICATES.get(number);
        vec![
            Cell::Text(level.level.title().to_owned()),
            Cell::count(level.clusters),
            Cell::count(level.clustered),
            Cell::count(level.duplicates),
            Cell::share(level.share),
            published.map_or_else(|| Cell::Number(String::new(), None), |share| Cell::share(*share)),
        ]
    };
    let rows: Vec<Vec<Cell>> = summary.levels.iter().zip(0..).map(row).collect();
    out.push_str(&table(None, "Totals by level", &heads, &rows));
    out.push_str("<p class=\"soft\">Duplicates are the pages that go if one of each cluster stays. Published: 150 million pages of 2002 and 2003 (Fetterly, Manasse and Najork 2004).</p>\n");
    out.push_str(&format!("<p class=\"soft\">Method: {}</p>\n", escaped(&summary.method)));
    out
}

fn sizes(overview: &Overview) -> Result<String> {
    let mut series = Vec::new();
    let mut facts = Vec::new();
    for SizesOfLevel { level, sizes } in &overview.sizes {
        let points: Vec<(f64, f64)> = sizes
            .iter()
            .filter(|(size, _)| *size > 1)
            .map(|(size, clusters)| (*size as f64, *clusters as f64))
            .collect();
        let ink = INKS[*level as usize];
        let of_level = overview.summary.levels.iter().find(|summary| summary.level == *level);
        if let Some((exponent, x_min)) = of_level.and_then(|level| level.exponent.zip(level.x_min)) {
            facts.push(format!("{}: exponent {exponent:.2} from size {x_min}", level.title()));
            series.extend(fit(&points, exponent, x_min as f64, ink));
        }
        series.push(Series { name: level.title().to_owned(), ink, is_line: false, points });
    }
    let fitted = if facts.is_empty() {
        "There are too few clusters to fit a power law.".to_owned()
    } else {
        format!("Lines: fitted power laws ({}).", facts.join("; "))
    };
    let [most_pages, most_clusters] = greatest(&series).map(|most| most.max(10.0) * 1.5);
    // Only its slope was published: it begins where the most clusters of this crawl are.
    let first = series.iter().flat_map(|series| &series.points).copied().max_by(|a, b| a.1.total_cmp(&b.1));
    if let Some((size, clusters)) = first.filter(|(_, clusters)| *clusters > 1.0) {
        let end = (size * clusters.powf(1.0 / PUBLISHED_EXPONENT)).min(most_pages);
        let at = |size_of: f64| (size_of, clusters * (size_of / size).powf(-PUBLISHED_EXPONENT));
        let name = format!("published exponent, {PUBLISHED_EXPONENT}");
        series.push(Series { name, ink: Ink::Text, is_line: true, points: vec![at(size), at(end)] });
    }
    let axes = [("pages of a cluster", most_pages), ("clusters of this size", most_clusters)];
    let axes = axes.map(|(name, most)| Axis { name, bounds: (0.8, most), is_logarithmic: true, is_whole: true });
    let caption = format!("{fitted} The study's crawl has an exponent of about {PUBLISHED_EXPONENT}.");
    figure("How many clusters have how many pages, on logarithmic axes", axes, &series, &caption)
}

/// The line of a power law through the clusters from its least size on.
fn fit(points: &[(f64, f64)], exponent: f64, least: f64, ink: Ink) -> Option<Series> {
    let above = || points.iter().filter(|point| point.0 >= least);
    let clusters: f64 = above().map(|point| point.1).sum();
    let most = above().map(|point| point.0).fold(0.0, f64::max);
    if clusters == 0.0 || most <= least {
        return None;
    }
    // The sum of all sizes from the least on, by the integral.
    let scale = clusters * (exponent - 1.0) * (least - 0.5).powf(exponent - 1.0);
    let at = |size: f64| (size, scale * size.powf(-exponent));
    let points = (0..=40).map(|step| at(least * (most / least).powf(f64::from(step) / 40.0)));
    let points = points.filter(|point| point.1 >= 0.8).collect();
    Some(Series { name: String::new(), ink, is_line: true, points })
}

fn accuracy(overview: &Overview) -> Result<String> {
    let percent = |(similarity, share): (f64, f64)| (similarity, 100.0 * share);
    let line = |name: &str, ink, points| Series { name: name.to_owned(), ink, is_line: true, points };
    let curve = overview.curve.iter().map(|point| percent((point.similarity, point.chance)));
    let mut series = vec![line("linked directly, by the method", Ink::One, curve.collect())];
    let bands = &overview.recall;
    let expected = bands.iter().filter_map(|band| Some(percent((band.similarity, band.expected?))));
    let expected: Vec<(f64, f64)> = expected.collect();
    if !expected.is_empty() {
        let name = "expected of the sampled pairs".to_owned();
        series.push(Series { name, ink: Ink::Three, is_line: false, points: expected });
    }
    if !bands.is_empty() {
        let sampled = bands.iter().map(|band| percent((band.similarity, band.share[0])));
        let name = "in one cluster, of the sampled pairs".to_owned();
        series.push(Series { name, ink: Ink::Two, is_line: false, points: sampled.collect() });
    }
    for band in bands {
        let ends = [band.share[1], band.share[2]].map(|share| percent((band.similarity, share)));
        series.push(line("", Ink::Two, ends.to_vec()));
    }
    let axes = [("similarity of two pages", 1.0), ("% of the pairs", 101.0)];
    let axes = axes.map(|(name, most)| Axis { name, bounds: (0.0, most), is_logarithmic: false, is_whole: false });
    let caption = "Vertical lines are 95% confidence intervals. Pages are in one cluster, too, if links through others join them.";
    let mut out = figure("The share of pairs that are linked, by their similarity", axes, &series, caption)?;
    match &overview.summary.accuracy {
        None => out.push_str("<p>The accuracy of this week was not measured.</p>\n"),
        Some(accuracy) => {
            let mut of = Sheet::default();
            report::accuracy::accuracy(accuracy, &mut of);
            out.push_str(&sheet(&of));
        }
    }
    Ok(out)
}

fn records(summary: &Summary) -> String {
    let mut of = Sheet::default();
    report::counts(&summary.counts, &mut of);
    sheet(&of)
}
