//! The figures and tables of a study: what each is called, the tables that it is drawn from, and
//! how.

use anyhow::Result;

use super::figure_tables::FigureTables;
use crate::plot::Plot;

/// A figure or a table of a study.
#[derive(Clone, Copy)]
pub struct Figure {
    /// Its name: the study, its year, and the name there, as `Fetterly 2004, Fig. 4`.
    pub name: &'static str,
    /// What it shows.
    pub title: &'static str,
    /// Draws it.
    pub draw: fn(&FigureTables<'_>) -> Result<Picture>,
}

/// A figure that is drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Picture {
    /// The plot, or the table.
    pub drawn: Drawn,
    /// What a reader must know of it: weeks, fits, what the study found, and what differs from it.
    pub notes: Vec<String>,
}

/// What a figure is.
#[derive(Clone, Debug, PartialEq)]
pub enum Drawn {
    /// A plot.
    Plot(Box<Plot>),
    /// A table.
    Listing(Listing),
}

/// A table of a figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Listing {
    /// The heads.
    pub columns: Vec<&'static str>,
    /// The rows: a cell for each column.
    pub rows: Vec<Vec<Cell>>,
}

/// A cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// No value.
    Nothing,
    /// A text, of this program or of others.
    Text(String),
    /// How a page is known.
    Name(String),
    /// A whole number.
    Count(i64),
    /// A share, from 0 to 1.
    Share(f64),
}

impl Figure {
    /// Its name as that of a file: `fetterly-2004-fig-4`.
    ///
    /// ```
    /// use nigh_studies::studies::{Evolution, Study};
    /// assert_eq!(Evolution::FIGURES[0].file_name(), "fetterly-2004-fig-4");
    /// ```
    pub fn file_name(&self) -> String {
        let words = self.name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
        words.map(str::to_lowercase).collect::<Vec<_>>().join("-")
    }
}

impl Picture {
    /// A plot with notes.
    pub fn plot<T: Into<String>>(plot: Plot, notes: impl IntoIterator<Item = T>) -> Picture {
        Picture { drawn: Drawn::Plot(Box::new(plot)), notes: notes.into_iter().map(Into::into).collect() }
    }

    /// A table with notes.
    pub fn listing<T: Into<String>>(
        columns: impl IntoIterator<Item = &'static str>,
        rows: Vec<Vec<Cell>>,
        notes: impl IntoIterator<Item = T>,
    ) -> Picture {
        let listing = Listing { columns: columns.into_iter().collect(), rows };
        Picture { drawn: Drawn::Listing(listing), notes: notes.into_iter().map(Into::into).collect() }
    }

    /// The columns of what is drawn.
    pub fn columns(&self) -> Vec<&'static str> {
        match &self.drawn {
            Drawn::Plot(plot) => plot.columns().to_vec(),
            Drawn::Listing(listing) => listing.columns.clone(),
        }
    }

    /// The rows of what is drawn, as texts; none for a cell without a value.
    pub fn rows(&self) -> Vec<Vec<Option<String>>> {
        match &self.drawn {
            Drawn::Plot(plot) => plot.rows().map(|row| row.map(Some).to_vec()).collect(),
            Drawn::Listing(listing) => listing.rows.iter().map(|row| row.iter().map(Cell::text).collect()).collect(),
        }
    }
}

impl Cell {
    /// A whole number, or no value.
    pub fn count(count: impl Into<Option<i64>>) -> Cell {
        count.into().map_or(Cell::Nothing, Cell::Count)
    }

    /// A share, or no value.
    pub fn share(share: impl Into<Option<f64>>) -> Cell {
        share.into().map_or(Cell::Nothing, Cell::Share)
    }

    /// The value, with all of its digits; `None` if there is none.
    pub fn text(&self) -> Option<String> {
        match self {
            Cell::Nothing => None,
            Cell::Text(text) | Cell::Name(text) => Some(text.clone()),
            Cell::Count(count) => Some(count.to_string()),
            Cell::Share(share) => Some(share.to_string()),
        }
    }
}

/// A share as people write it.
pub fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "-".to_owned(), |share| format!("{:.1}%", 100.0 * share))
}
