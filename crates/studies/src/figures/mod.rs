//! Every figure and table of the studies' papers, drawn from the tables of a store: `nigh figures`.
//!
//! A study says in its own folder what its figures are
//! ([`Study::FIGURES`](crate::studies::Study::FIGURES)); those of clusters, which are of no study
//! here, are in `clusters`. In reading order: this file (all figures, and which can be drawn),
//! `clusters`, `png`, `picture_files`.

mod clusters;
mod picture_files;
#[cfg(feature = "png")]
mod png;
#[cfg(not(feature = "png"))]
#[path = "png_absent.rs"]
mod png;

use std::path::Path;

use anyhow::{Context as _, Result};

use crate::records::Week;
use crate::studies::{AnyStudy, Figure, FigureTables, Picture, Runs, TablesUntil};

pub use self::clusters::published_slope;
pub use self::picture_files::{FigureFormat, file_names, write_files};

/// A figure, and what became of it.
pub struct MadeFigure {
    /// The figure.
    pub figure: Figure,
    /// The name of its study; `None` for clusters.
    pub study: Option<&'static str>,
    /// The command that makes its tables.
    pub command: String,
    /// What became of it.
    pub state: FigureState,
}

/// What became of a figure.
pub enum FigureState {
    /// It is drawn.
    Drawn(Picture),
    /// Its tables are not there: why, in a sentence.
    Missing(String),
}

impl MadeFigure {
    /// The picture, if it is drawn.
    pub fn picture(&self) -> Option<&Picture> {
        match &self.state {
            FigureState::Drawn(picture) => Some(picture),
            FigureState::Missing(_) => None,
        }
    }
}

/// All figures, paper by paper, each with its study: the papers in the order of their clusters,
/// mirrors, overlap, and so on; within a paper sections, then figures and tables by their numbers.
pub fn all_figures() -> Vec<(Option<AnyStudy>, Figure)> {
    let mut figures: Vec<(Option<AnyStudy>, Figure)> = clusters::FIGURES.iter().map(|figure| (None, *figure)).collect();
    for study in AnyStudy::all() {
        figures.extend(study.figures().iter().map(|figure| (Some(study.clone()), *figure)));
    }
    // Years and numbers of figures as numbers: Fig. 9 is before Fig. 10.
    let key = |figure: &Figure| -> (String, (bool, Vec<String>)) {
        let (paper, name) = figure.name.split_once(", ").unwrap_or((figure.name, ""));
        let words = name.split([' ', '.']).filter(|word| !word.is_empty());
        // The totals of a section come before what is drawn of them.
        let order = (!name.starts_with("section"), words.map(|word| format!("{word:0>4}")).collect());
        (paper.to_owned(), order)
    };
    let papers: Vec<String> = figures.iter().map(|(_, figure)| key(figure).0).collect();
    figures.sort_by_key(|(_, figure)| {
        let (paper, name) = key(figure);
        (papers.iter().position(|of| *of == paper), name)
    });
    figures
}

/// Draws all figures whose tables are there. `store` is the name that the user gave.
///
/// # Errors
/// If a table cannot be read.
pub fn draw_all(tables: &FigureTables<'_>, store: &Path) -> Result<Vec<MadeFigure>> {
    let last = tables.last()?.week;
    let make = |(study, figure): (Option<AnyStudy>, Figure)| -> Result<MadeFigure> {
        let command = command_for(study.as_ref(), store, last);
        let missing = match &study {
            None => None,
            Some(study) => missing(study, tables.standing(study.name())?, last),
        };
        let state = match missing {
            Some(why) => FigureState::Missing(why),
            None => FigureState::Drawn(draw(figure, tables)?),
        };
        Ok(MadeFigure { figure, study: study.map(|study| study.name()), command, state })
    };
    all_figures().into_iter().map(make).collect()
}

/// Draws the figures of the studies that have tables of the last week or of one before, each with
/// the name of its study.
///
/// # Errors
/// If a table cannot be read.
pub fn draw_studies(tables: &FigureTables<'_>) -> Result<Vec<(&'static str, Figure, Picture)>> {
    let mut drawn = Vec::new();
    for (study, figure) in all_figures() {
        let Some(study) = study else { continue };
        if matches!(
            tables.standing(study.name())?,
            TablesUntil::Here | TablesUntil::Earlier(_) | TablesUntil::Replaced(_)
        ) {
            drawn.push((study.name(), figure, draw(figure, tables)?));
        }
    }
    Ok(drawn)
}

fn draw(figure: Figure, tables: &FigureTables<'_>) -> Result<Picture> {
    (figure.draw)(tables).with_context(|| format!("cannot draw {}", figure.name))
}

/// Why a figure of a study cannot be drawn; `None` if it can.
fn missing(study: &AnyStudy, standing: TablesUntil, last: Week) -> Option<String> {
    let name = study.name();
    match standing {
        TablesUntil::Here => None,
        TablesUntil::Absent => Some(format!("The store has no tables of {name} yet.")),
        TablesUntil::Earlier(week) => Some(format!("The tables of {name} are of week {week}, not of {last}.")),
        TablesUntil::Later(week) => Some(format!("The tables of {name} know later weeks, until {week}.")),
        TablesUntil::Replaced(week) => Some(format!("The tables of {name} were made before week {week} was changed.")),
    }
}

/// The command that makes the tables of a figure.
fn command_for(study: Option<&AnyStudy>, store: &Path, last: Week) -> String {
    let store = store.display();
    let Some(study) = study else { return format!("nigh run --store {store} --week {last} --input FILES") };
    let job = study.name();
    let week = if study.runs() == Runs::AllWeeks { String::new() } else { format!(" --week {last}") };
    format!("nigh run jobs/{job}.toml --store {store}{week}")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_papers_are_whole_and_in_order() {
        let names: Vec<&str> = all_figures().iter().map(|(_, figure)| figure.name).collect();
        let expected: Vec<String> = [
            ("Fetterly 2004", [vec!["section 2", "section 4"], vec![]].concat(), 13, vec![1, 2]),
            ("Shivakumar 1998", vec![], 1, vec![1, 2]),
            ("Bharat 1999", vec![], 1, vec![1, 2, 3]),
            ("Pereira 2006", vec![], 5, vec![2, 3, 4, 5, 6]),
        ]
        .into_iter()
        .flat_map(|(paper, sections, figures, tables)| {
            let figures = (1..=figures).map(|number| format!("Fig. {number}"));
            let tables = tables.into_iter().map(|number| format!("Table {number}"));
            let of_paper = sections.into_iter().map(str::to_owned).chain(figures).chain(tables);
            of_paper.map(move |name| format!("{paper}, {name}")).collect::<Vec<_>>()
        })
        .chain(["Cho 2000, Fig. 11", "Cho 2000, Fig. 12", "Cho 2000, Table 2"].map(str::to_owned))
        .collect();
        let found: BTreeSet<&str> = names.iter().copied().collect();
        assert_eq!(found, expected.iter().map(String::as_str).collect::<BTreeSet<_>>());
        assert_eq!(names.len(), found.len(), "each once");
        let place = |name: &str| names.iter().position(|of| *of == name).unwrap();
        assert!(place("Fetterly 2004, section 2") < place("Fetterly 2004, Fig. 1"));
        assert!(place("Fetterly 2004, Fig. 9") < place("Fetterly 2004, Fig. 10"));
        assert!(place("Fetterly 2004, Fig. 13") < place("Fetterly 2004, Table 1"));
        assert!(place("Fetterly 2004, Table 2") < place("Cho 2000, Fig. 11"));
        let files: BTreeSet<String> = all_figures().iter().map(|(_, figure)| figure.file_name()).collect();
        assert_eq!(files.len(), names.len());
    }
}
