//! The files of figures: a picture and a table for each, and one page with all.

use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::MadeFigure;
use crate::query::csv_line;
use crate::state::replace;
use crate::studies::{Drawn, Picture};

/// The page with all figures.
const INDEX: &str = "index.html";

/// What is written of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum FigureFormat {
    /// A plot as SVG.
    Svg,
    /// What is drawn, as CSV.
    Csv,
}

impl FigureFormat {
    const ALL: [FigureFormat; 2] = [FigureFormat::Svg, FigureFormat::Csv];

    fn extension(self) -> &'static str {
        match self {
            FigureFormat::Svg => "svg",
            FigureFormat::Csv => "csv",
        }
    }

    /// The file of a picture; `None` if it has none: a table has no plot.
    fn file(self, picture: &Picture) -> Option<String> {
        match (self, &picture.drawn) {
            (FigureFormat::Svg, Drawn::Plot(plot)) => Some(plot.file()),
            (FigureFormat::Svg, Drawn::Listing(_)) => None,
            (FigureFormat::Csv, _) => Some(csv(picture)),
        }
    }
}

/// What is drawn, as CSV.
fn csv(picture: &Picture) -> String {
    let mut text = csv_line(picture.columns().into_iter().map(Some));
    for row in picture.rows() {
        text += &csv_line(row.iter().map(Option::as_deref));
    }
    text
}

/// The names of the files of a figure that is drawn.
pub fn file_names(made: &MadeFigure, formats: &[FigureFormat]) -> Vec<String> {
    let Some(picture) = made.picture() else { return Vec::new() };
    let has_file = |format: &&FigureFormat| match (format, &picture.drawn) {
        (FigureFormat::Svg, Drawn::Listing(_)) => false,
        (FigureFormat::Svg | FigureFormat::Csv, _) => true,
    };
    let name = |format: &FigureFormat| format!("{}.{}", made.figure.file_name(), format.extension());
    formats.iter().filter(has_file).map(name).collect()
}

/// Writes the files of all figures, and the page `index`. A file of a figure that is not drawn now,
/// left by another call, is removed.
///
/// # Errors
/// If the folder cannot be made, or a file cannot be written or removed.
pub fn write_files(folder: &Path, made: &[MadeFigure], formats: &[FigureFormat], index: &str) -> Result<()> {
    ensure!(!folder.is_file(), "cannot write into {}: it is a file, not a folder", folder.display());
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
    for of in made {
        for format in FigureFormat::ALL {
            let path = folder.join(format!("{}.{}", of.figure.file_name(), format.extension()));
            let text = of.picture().filter(|_| formats.contains(&format)).and_then(|picture| format.file(picture));
            match text {
                Some(text) => replace(&path, text.as_bytes())?,
                None if path.is_file() => {
                    std::fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
                }
                None => {}
            }
        }
    }
    replace(&folder.join(INDEX), index.as_bytes())
}
