//! The figure and the tables of the study (Bharat and Broder 1999).

use anyhow::Result;

use super::{MirrorsByUrl, PUBLISHED_URLS};
use crate::plot::{Axis, Ink, Plot, Series, SeriesLook};
use crate::studies::any_study::StudySummary;
use crate::studies::figure::{Cell, Figure, Picture};
use crate::studies::figure_tables::FigureTables;
use crate::tables::studies::mirrors_by_url::{RankingRow, UrlDomainRow, UrlLevelRow};

pub(super) const FIGURES: &[Figure] = &[
    Figure {
        name: "Bharat 1999, Fig. 1",
        title: "The share of mirrors among the first pairs of the list",
        draw: ranking,
    },
    Figure { name: "Bharat 1999, Table 1", title: "The levels of pairs", draw: rules },
    Figure { name: "Bharat 1999, Table 2", title: "Pairs by level", draw: levels },
    Figure { name: "Bharat 1999, Table 3", title: "Mirrors in two top-level domains", draw: domains },
];

/// The levels, and the rules by which a pair has one.
const RULES: [(&str, &str, &str); 6] = [
    ("1", "same structure, identical content", "all tests SF or FM, not all SF"),
    ("2", "same structure, equivalent content", "all tests SF, FM or FS, not all SF"),
    ("3", "same structure, similar content", "all tests SF, FM, FS or HS, not all SF"),
    ("4", "partly the same structure, similar content", "some tests HS, FS or FM"),
    ("5", "same structure, related content", "no test TF, and at least one TS"),
    ("mismatch", "no mirror", "all tests TF or NS"),
];

fn ranking(tables: &FigureTables<'_>) -> Result<Picture> {
    let [mut whole, mut all] = [Vec::new(), Vec::new()];
    tables.of_study::<MirrorsByUrl, RankingRow>(&["prefix", "levels13", "levels14"], |row| {
        let prefix = 100.0 * row.real("prefix")?.unwrap_or_default();
        whole.extend(row.real("levels13")?.map(|share| (prefix, 100.0 * share)));
        all.extend(row.real("levels14")?.map(|share| (prefix, 100.0 * share)));
        Ok(())
    })?;
    let empty = all.is_empty();
    let plot = Plot {
        label: "The share of mirrors among the first pairs of the list".to_owned(),
        x: Axis::linear("% of the list, from its beginning", "prefix").within(0.0, 100.0),
        y: Axis::linear("% of the pairs", "percent").within(0.0, 102.0),
        series: vec![
            Series::ours("levels 1 to 3", Ink::One, SeriesLook::LineAndPoints, whole),
            Series::published("levels 1 to 3, published", Ink::One, SeriesLook::Points, vec![(49.0, 68.0)]),
            Series::ours("levels 1 to 4", Ink::Two, SeriesLook::LineAndPoints, all),
            Series::published("levels 1 to 4, published", Ink::Two, SeriesLook::Points, vec![(49.0, 88.0)]),
        ],
    };
    let rows = level_rows(tables)?;
    let listed: i64 = rows.iter().map(|(_, pairs, _)| pairs).sum();
    let few: i64 = rows.iter().filter(|(level, ..)| level == "few").map(|(_, pairs, _)| pairs).sum();
    let mut notes = Vec::new();
    if empty {
        notes.push("No pair of hosts could be tested: see the tables `candidates` and `levels`.".to_owned());
    } else {
        // Shares of few pairs say little, and look the same as those of many.
        let tested: i64 = rows.iter().filter(|(level, ..)| is_answered(level)).map(|(_, pairs, _)| pairs).sum();
        notes.push(format!(
            "The shares are of the {} that were tested, of {} in the list.",
            crate::sheet::plural(tested as u64, "pair"),
            crate::sheet::grouped(listed as u64)
        ));
    }
    if few > 0 {
        notes.push(format!(
            "{} had fewer than three tests: a crawler that fetches the URLs of the table `probes` makes them possible.",
            crate::sheet::plural(few as u64, "pair")
        ));
    }
    notes.push("The study's first 49% are about 10,000 pairs of those of which both hosts answered.".to_owned());
    Ok(Picture::plot(plot, notes))
}

/// Whether both hosts of a pair of this level answered, so that it counts for the shares.
fn is_answered(level: &str) -> bool {
    RULES.iter().any(|(of, ..)| *of == level)
}

/// The pairs of each level, and the study's.
fn level_rows(tables: &FigureTables<'_>) -> Result<Vec<(String, i64, Option<i64>)>> {
    let mut rows = Vec::new();
    tables.of_study::<MirrorsByUrl, UrlLevelRow>(&["level", "pairs", "published"], |row| {
        rows.push((row.text("level")?, row.count("pairs")?, row.maybe_count("published")?));
        Ok(())
    })?;
    Ok(rows)
}

fn rules(tables: &FigureTables<'_>) -> Result<Picture> {
    let pairs = level_rows(tables)?;
    let row = |(level, meaning, rule): &(&str, &str, &str)| {
        let of_level = pairs.iter().find(|of| of.0 == *level).map(|of| of.1);
        let [level, meaning, rule] = [level, meaning, rule].map(|text| Cell::Text((*text).to_owned()));
        vec![level, meaning, rule, Cell::count(of_level)]
    };
    let notes = [
        "Tests of paths: SF and TF, the source or the target does not have it; FM, the same bytes; FS, the same text; HS, texts that are similar; TS, \
         a trace of similarity; NS, none.",
        "Pairs with fewer than three tests are of no level: `few`. So are those with a host that does not answer: `dns-failure` and `server-failure`.",
    ];
    Ok(Picture::listing(["level", "meaning", "rule", "pairs"], RULES.iter().map(row).collect(), notes))
}

fn levels(tables: &FigureTables<'_>) -> Result<Picture> {
    let row = |(level, pairs, published): (String, i64, Option<i64>)| {
        vec![Cell::Text(level), Cell::Count(pairs), Cell::count(published)]
    };
    let mut rows: Vec<Vec<Cell>> = level_rows(tables)?.into_iter().map(row).collect();
    if let Some(StudySummary::MirrorsByUrl(summary)) = tables.summary_of("mirrors-by-url")? {
        let counts = [
            ("URLs", summary.distinct_urls, Some(PUBLISHED_URLS.urls)),
            ("hosts with enough URLs", summary.sampled_hosts, Some(PUBLISHED_URLS.hosts)),
            ("candidates", summary.candidates, Some(PUBLISHED_URLS.candidates)),
            ("tested", summary.compared, Some(PUBLISHED_URLS.tested)),
        ];
        let counts = counts.map(|(name, count, published)| (name, Some(count), published));
        let [pairs, hosts] = [0, 1].map(|place| summary.as_the_study.map(|of| of[place]));
        let of_study = [
            ("mirrors: levels 1 to 5", pairs, Some(PUBLISHED_URLS.mirrors)),
            ("hosts in mirrors", hosts, Some(PUBLISHED_URLS.mirror_hosts)),
        ];
        rows.extend(counts.into_iter().chain(of_study).map(|(name, count, published)| {
            let [count, published] = [count, published].map(|count| Cell::count(count.map(|count| count as i64)));
            vec![Cell::Text(name.to_owned()), count, published]
        }));
    }
    Ok(Picture::listing(
        ["level", "pairs", "published"],
        rows,
        [
            "Mirrors and their hosts are of levels 1 to 5 here, as in the study; the tables of this job and `nigh avoid` take levels 1 to 4.",
            "Of the study's 29,336 candidates 7,516 were not tested: DNS failures and server failures, of which it does not say how many are which.",
        ],
    ))
}

fn domains(tables: &FigureTables<'_>) -> Result<Picture> {
    let mut rows = Vec::new();
    tables.of_study::<MirrorsByUrl, UrlDomainRow>(&["group", "domain_a", "domain_b", "pairs", "share"], |row| {
        let [group, domain_a, domain_b] = ["group", "domain_a", "domain_b"].map(|name| row.text(name).map(Cell::Text));
        rows.push(vec![
            group?,
            domain_a?,
            domain_b?,
            Cell::Count(row.count("pairs")?),
            Cell::share(row.real("share")?),
        ]);
        Ok(())
    })?;
    let mut notes = Vec::new();
    if rows.is_empty() {
        notes.push("No two mirrors are in two top-level domains.".to_owned());
    }
    notes.push("The study has 735 such pairs of levels 1 to 3, 1,461 of level 4 and 26 of level 5.".to_owned());
    Ok(Picture::listing(["levels", "domain_a", "domain_b", "pairs", "share"], rows, notes))
}
