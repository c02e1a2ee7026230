//! The files of figures: a picture and a table for each, and one page with all.

use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::MadeFigure;
use super::png::Drawer;
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
    /// A plot as PNG, with the fonts of this machine. Needs a program built with the feature `png`.
    Png,
    /// What is drawn, as CSV.
    Csv,
}

impl FigureFormat {
    const ALL: [FigureFormat; 3] = [FigureFormat::Svg, FigureFormat::Png, FigureFormat::Csv];

    fn extension(self) -> &'static str {
        match self {
            FigureFormat::Svg => "svg",
            FigureFormat::Png => "png",
            FigureFormat::Csv => "csv",
        }
    }

    /// Whether a picture has a file of this format: a table has no plot.
    fn has(self, picture: &Picture) -> bool {
        match self {
            FigureFormat::Svg | FigureFormat::Png => matches!(picture.drawn, Drawn::Plot(_)),
            FigureFormat::Csv => true,
        }
    }
}

/// What makes the files of pictures.
struct PictureFiles {
    /// Only if there are PNGs to make: it reads the fonts of the machine.
    drawer: Option<Drawer>,
}

impl PictureFiles {
    fn new(formats: &[FigureFormat]) -> Result<PictureFiles> {
        Ok(PictureFiles { drawer: formats.contains(&FigureFormat::Png).then(Drawer::new).transpose()? })
    }

    /// The file of a picture; `None` if it has none.
    fn file(&self, format: FigureFormat, picture: &Picture) -> Result<Option<Vec<u8>>> {
        match (format, &picture.drawn) {
            (FigureFormat::Svg, Drawn::Plot(plot)) => Ok(Some(plot.file().into_bytes())),
            (FigureFormat::Png, Drawn::Plot(plot)) => {
                self.drawer.as_ref().map(|drawer| drawer.draw(&plot.light_file())).transpose()
            }
            (FigureFormat::Svg | FigureFormat::Png, Drawn::Listing(_)) => Ok(None),
            (FigureFormat::Csv, _) => Ok(Some(csv(picture).into_bytes())),
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
    let name = |format: &FigureFormat| format!("{}.{}", made.figure.file_name(), format.extension());
    formats.iter().filter(|format| format.has(picture)).map(name).collect()
}

/// Writes the files of all figures, and the page `index`. A file of a figure that is not drawn now,
/// left by another call, is removed.
///
/// # Errors
/// If the folder cannot be made, or a file cannot be written or removed; or if there are to be
/// PNGs, and the program is built without the feature `png`, or the machine has no fonts.
pub fn write_files(folder: &Path, made: &[MadeFigure], formats: &[FigureFormat], index: &str) -> Result<()> {
    let files = PictureFiles::new(formats)?;
    ensure!(!folder.is_file(), "cannot write into {}: it is a file, not a folder", folder.display());
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
    for of in made {
        for format in FigureFormat::ALL {
            let path = folder.join(format!("{}.{}", of.figure.file_name(), format.extension()));
            let picture = of.picture().filter(|_| formats.contains(&format));
            match picture.map(|picture| files.file(format, picture)).transpose()?.flatten() {
                Some(bytes) => replace(&path, &bytes)?,
                None if path.is_file() => {
                    std::fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
                }
                None => {}
            }
        }
    }
    replace(&folder.join(INDEX), index.as_bytes())
}
