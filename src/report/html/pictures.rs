//! The figures and tables of papers in a page.

use super::escape::escaped;
use super::parts::{HtmlCell, table};
use super::plots::figure;
use crate::figures::{FigureFormat, FigureState, MadeFigure, file_names};
use crate::markup::Html;
use crate::sheet::grouped;
use crate::studies::{Cell as PictureCell, Drawn, Listing, Picture, percent};

/// Rows of a table of a paper that are shown, at most.
const MOST_ROWS: usize = 300;

/// A picture with its name and title, below a heading of a level: `h3`.
pub(super) fn picture(name: &str, title: &str, of: &Picture) -> String {
    let heading = format!("<h3>{}. {}</h3>\n", escaped(name), escaped(title));
    match &of.drawn {
        Drawn::Plot(plot) => format!("{heading}{}", figure(plot, &of.notes)),
        Drawn::Listing(listing) => format!("{heading}{}{}", rows(title, listing), notes(&of.notes)),
    }
}

fn notes(notes: &[String]) -> String {
    let mut html = Html::default();
    for note in notes.iter().filter(|note| !note.is_empty()) {
        html.own("<p class=\"soft\">").note(note).own("</p>\n");
    }
    html.into_text()
}

fn rows(title: &str, listing: &Listing) -> String {
    let is_number = |column: usize| {
        let cells = || listing.rows.iter().map(|row| &row[column]);
        cells().any(|cell| matches!(cell, PictureCell::Count(_) | PictureCell::Share(_)))
            && !cells().any(|cell| matches!(cell, PictureCell::Text(_) | PictureCell::Name(_)))
    };
    let heads: Vec<(&str, bool)> =
        listing.columns.iter().enumerate().map(|(column, head)| (*head, is_number(column))).collect();
    let cell = |(column, cell): (usize, &PictureCell)| match cell {
        PictureCell::Nothing if heads[column].1 => HtmlCell::Number(String::new(), None),
        PictureCell::Nothing => HtmlCell::Text(String::new()),
        PictureCell::Text(text) => HtmlCell::Text(text.clone()),
        PictureCell::Name(name) => HtmlCell::Name(name.clone()),
        PictureCell::Count(count) => {
            let text = if *count < 0 { count.to_string() } else { grouped(*count as u64) };
            HtmlCell::Number(text, Some(*count as f64))
        }
        PictureCell::Share(share) => HtmlCell::Number(percent(Some(*share)), Some(*share)),
    };
    let shown = listing.rows.iter().take(MOST_ROWS);
    let cells: Vec<Vec<HtmlCell>> = shown.map(|row| row.iter().enumerate().map(cell).collect()).collect();
    let mut out = if cells.is_empty() { String::new() } else { table(None, title, &heads, &cells) };
    if listing.rows.len() > MOST_ROWS {
        out.push_str(&format!(
            "<p class=\"soft\">{} more rows are in the CSV.</p>\n",
            grouped((listing.rows.len() - MOST_ROWS) as u64)
        ));
    }
    out
}

/// A figure of the page of all figures: its picture, the command that makes its tables, and its
/// files.
pub(super) fn made(made: &MadeFigure, formats: &[FigureFormat]) -> String {
    let (name, title) = (made.figure.name, made.figure.title);
    let command = format!("<p>Tables: <code>{}</code></p>\n", escaped(&made.command));
    match &made.state {
        FigureState::Drawn(of) => {
            let links = file_names(made, formats);
            let links: Vec<String> = links.iter().map(|file| format!("<a href=\"{file}\">{file}</a>")).collect();
            let links = if links.is_empty() { String::new() } else { format!("<p>Files: {}</p>\n", links.join(", ")) };
            format!("{}{links}{command}", picture(name, title, of))
        }
        FigureState::Missing(why) => {
            let run = made.command.as_str();
            format!(
                "<h3>{}. {}</h3>\n<p>{} This command makes them:</p>\n<p><code>{}</code></p>\n",
                escaped(name),
                escaped(title),
                escaped(why),
                escaped(run)
            )
        }
    }
}
