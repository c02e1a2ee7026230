//! The sections of the page.

use super::clusters::{card, largest};
use super::parts::{HtmlCell, sheet, table};
use super::pictures::picture;
use super::plots::figure;
use super::weeks::weeks;
use crate::figures::published_slope;
use crate::look::{Overview, SizesOfLevel};
use crate::markup::Html;
use crate::plot::{Axis, Ink, Plot, Series, SeriesLook};
use crate::report;
use crate::sheet::{Sheet, plural};
use crate::stats::law_line;
use crate::summary::Summary;

/// The share of pages that were duplicates in the study's crawl: very similar, virtually identical
/// (Fetterly 2004, section 2).
const PUBLISHED_DUPLICATES: [f64; 2] = [0.292, 0.222];

/// A section of the page.
pub(super) struct Section {
    pub(super) id: String,
    pub(super) title: String,
    pub(super) body: Html,
}

/// All sections that have something to show.
pub(super) fn all(overview: &Overview) -> Vec<Section> {
    let section = |id: &str, title: &str, body: Html| Section { id: id.to_owned(), title: title.to_owned(), body };
    let mut sections = vec![
        section("totals", "Totals", totals(&overview.summary)),
        section("sizes", "Cluster sizes", sizes(overview)),
        section("accuracy", "How right the clusters are", accuracy(overview)),
    ];
    for (level, clusters) in &overview.largest {
        if !clusters.is_empty() {
            let id = level.name();
            sections.push(section(id, &format!("Largest {} clusters", level.title()), largest(*level, clusters, id)));
        }
    }
    if !overview.shown.is_empty() {
        let mut cards = Html::default();
        overview.shown.iter().for_each(|shown| _ = cards.add(&card(shown)));
        sections.push(section("clusters", "Clusters with their words", cards));
    }
    if overview.weeks.len() > 1 {
        sections.push(section("weeks", "Weeks", weeks(&overview.weeks)));
    }
    for study in &overview.studies {
        let (id, title) = study.titled();
        let mut body = sheet(&study.report(&overview.summary.store.join(id)));
        let pictures = overview.pictures.iter().filter(|of| of.study == id);
        pictures.for_each(|of| _ = body.add(&picture(of.name, of.title, &of.picture)));
        let title = match study.week() {
            Some(week) if overview.outdated.contains(&id) => {
                format!("{title}, as it was before week {week} was changed")
            }
            Some(week) if week != overview.summary.week => format!("{title}, until week {week}"),
            _ => title.to_owned(),
        };
        sections.push(section(id, &title, body));
    }
    sections.push(section("records", "Records and rejects", records(&overview.summary)));
    sections
}

fn totals(summary: &Summary) -> Html {
    let mut html = Html::default();
    html.own("<p>")
        .text(plural(summary.counts.documents, "document"))
        .own(" from ")
        .text(plural(summary.files, "file"));
    html.own(" (").text(crate::config::Bytes(summary.input_bytes)).own("), ");
    html.text(plural(summary.counts.words, "word")).own(".</p>\n");
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
            HtmlCell::Text(level.level.title().to_owned()),
            HtmlCell::count(level.clusters),
            HtmlCell::count(level.clustered),
            HtmlCell::count(level.duplicates),
            HtmlCell::share(level.share),
            published.map_or_else(|| HtmlCell::Number(String::new(), None), |share| HtmlCell::share(*share)),
        ]
    };
    let rows: Vec<Vec<HtmlCell>> = summary.levels.iter().zip(0..).map(row).collect();
    html.add(&table(None, "Totals by level", &heads, &rows));
    html.own("<p class=\"soft\">Duplicates are the pages that go if one of each cluster stays. Published: 150 million pages of 2002 and 2003 (Fetterly, Manasse and Najork 2004).</p>\n");
    html.own("<p class=\"soft\">Method: ").text(&summary.method).own("</p>\n");
    html
}

fn sizes(overview: &Overview) -> Html {
    let mut series = Vec::new();
    let mut notes = Vec::new();
    for (number, SizesOfLevel { level, sizes }) in overview.sizes.iter().enumerate() {
        let sizes: Vec<(u64, u64)> = sizes.iter().filter(|(size, _)| *size > 1).copied().collect();
        let points = sizes.iter().map(|(size, clusters)| (*size as f64, *clusters as f64)).collect();
        let ink = Ink::of(number);
        series.push(Series::ours(level.title(), ink, SeriesLook::Points, points));
        let of_level = overview.summary.levels.iter().find(|summary| summary.level == *level);
        if let Some((exponent, x_min)) = of_level.and_then(|level| level.exponent.zip(level.x_min)) {
            notes.push(format!("{}: exponent {exponent:.2} from size {x_min}", level.title()));
            series.extend(law_line(&sizes, exponent, x_min).map(|line| Series::fit("", ink, line)));
        }
    }
    let fitted = if notes.is_empty() {
        "There are too few clusters to fit a power law.".to_owned()
    } else {
        format!("Lines: fitted power laws ({}).", notes.join("; "))
    };
    series.extend(published_slope(&series));
    let plot = Plot {
        label: "How many clusters have how many pages, on logarithmic axes".to_owned(),
        x: Axis::logarithmic("pages of a cluster", "size"),
        y: Axis::logarithmic("clusters of this size", "clusters").within(0.8, None),
        series,
    };
    figure(&plot, &[fitted, "Of the study's crawl only the slope was published.".to_owned()])
}

fn accuracy(overview: &Overview) -> Html {
    let percent = |(similarity, share): (f64, f64)| (similarity, 100.0 * share);
    let curve = overview.curve.iter().map(|point| percent((point.similarity, point.chance)));
    let mut series = vec![Series::ours("linked directly, by the method", Ink::One, SeriesLook::Line, curve.collect())];
    let bands = &overview.recall;
    let expected = bands.iter().filter_map(|band| Some(percent((band.similarity, band.expected?))));
    let expected: Vec<(f64, f64)> = expected.collect();
    if !expected.is_empty() {
        series.push(Series::ours("expected of the sampled pairs", Ink::Three, SeriesLook::Points, expected));
    }
    if !bands.is_empty() {
        let sampled = bands.iter().map(|band| percent((band.similarity, band.share[0])));
        series.push(Series::ours(
            "in one cluster, of the sampled pairs",
            Ink::Two,
            SeriesLook::Points,
            sampled.collect(),
        ));
    }
    for band in bands {
        let ends = [band.share[1], band.share[2]].map(|share| percent((band.similarity, share)));
        series.push(Series::fit("", Ink::Text, ends.to_vec()));
    }
    let plot = Plot {
        label: "The share of pairs that are linked, by their similarity".to_owned(),
        x: Axis::linear("similarity of two pages", "similarity").within(0.0, 1.0),
        y: Axis::linear("% of the pairs", "percent").within(0.0, 102.0),
        series,
    };
    let notes = [
        "Vertical lines are 95% confidence intervals.".to_owned(),
        "Pages are in one cluster, too, if links through others join them.".to_owned(),
    ];
    let mut html = figure(&plot, &notes);
    match &overview.summary.accuracy {
        None => _ = html.own("<p>The accuracy of this week was not measured.</p>\n"),
        Some(accuracy) => {
            let mut of = Sheet::default();
            report::accuracy::accuracy(accuracy, &mut of);
            html.add(&sheet(&of));
        }
    }
    html
}

fn records(summary: &Summary) -> Html {
    let mut of = Sheet::default();
    report::counts(&summary.counts, &mut of);
    sheet(&of)
}
