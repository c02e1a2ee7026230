//! `nigh figures`: every figure and table of the studies' papers, from the tables of a store.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use serde::Serialize;

use super::{LookArgs, committed_week};
use crate::cli::session::read_manifest;
use crate::figures::{FigureFormat, FigureState, MadeFigure, draw_all, file_names, write_files};
use crate::report::figures_page;
use crate::sheet::{Grid, GridColumn, Sheet};
use crate::studies::FigureTables;

/// Examples at the end of `nigh help figures`.
const EXAMPLES: &str = "\
Example:
    nigh studies crawls
    nigh figures crawls --out figures
The page figures/index.html shows all, and says which job to run for those that are missing.";

#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(in crate::cli) struct FiguresArgs {
    #[command(flatten)]
    look: LookArgs,
    /// Folder for the files; it is made if it is not there. Files of the same names are replaced.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// What is written of each figure, besides index.html.
    #[arg(long, value_enum, value_name = "FORMAT", value_delimiter = ',', default_value = "svg,csv")]
    format: Vec<FigureFormat>,
}

/// What was written.
#[derive(Serialize)]
struct WrittenFigures {
    folder: PathBuf,
    figures: Vec<WrittenFigure>,
}

#[derive(Serialize)]
struct WrittenFigure {
    name: &'static str,
    title: &'static str,
    files: Vec<String>,
    /// Why it is not drawn.
    missing: Option<String>,
    /// What makes its tables.
    command: String,
}

/// Draws the figures, and writes their files.
pub(in crate::cli) fn figures(args: &FiguresArgs) -> Result<ExitCode> {
    let look = &args.look;
    let (made, week) = look.of_store(|store| {
        let manifest = read_manifest(store.store(), &look.store)?;
        let week = committed_week(&manifest, &look.store, look.week)?.week;
        Ok((draw_all(&FigureTables::new(store, &manifest, week), &look.store)?, week))
    })?;
    write_files(&args.out, &made, &args.format, &figures_page(&look.store, week, &made, &args.format))?;
    let written = |made: MadeFigure| WrittenFigure {
        name: made.figure.name,
        title: made.figure.title,
        files: file_names(&made, &args.format),
        missing: match made.state {
            FigureState::Drawn(_) => None,
            FigureState::Missing(why) => Some(why),
        },
        command: made.command,
    };
    let written = WrittenFigures { folder: args.out.clone(), figures: made.into_iter().map(written).collect() };
    look.print(&written, WrittenFigures::sheet)
}

impl WrittenFigures {
    fn sheet(&self) -> Sheet {
        let mut sheet = Sheet::default();
        let drawn = self.figures.iter().filter(|figure| figure.missing.is_none());
        let mut grid = Grid::new([("figure", GridColumn::Text), ("files", GridColumn::Text)]);
        drawn.clone().for_each(|figure| grid.row([figure.name.to_owned(), figure.files.join(" ")]));
        sheet.line(format!(
            "{} of {} figures and tables are drawn: {}",
            drawn.count(),
            self.figures.len(),
            self.folder.join("index.html").display()
        ));
        sheet.blank();
        sheet.grid(grid);
        let missing = self.figures.iter().filter(|figure| figure.missing.is_some());
        let missing: Vec<&WrittenFigure> = missing.collect();
        for of_command in missing.chunk_by(|a, b| a.command == b.command) {
            let names: Vec<&str> = of_command.iter().map(|figure| figure.name).collect();
            let why = of_command[0].missing.as_deref().unwrap_or_default();
            sheet.blank();
            sheet.line(format!("Not drawn: {}. {why} This makes them: {}", names.join("; "), of_command[0].command));
        }
        sheet
    }
}
