//! The figures and tables of papers in a page.

use super::parts::{HtmlCell, MOST_ROWS, table};
use super::plots::figure;
use crate::figures::{FigureFormat, FigureState, MadeFigure, file_names};
use crate::markup::Html;
use crate::sheet::grouped;
use crate::studies::{Cell as PictureCell, Drawn, Listing, Picture, percent};

/// A picture with its name and title, below a heading of a level: `h3`.
pub(super) fn picture(name: &str, title: &str, of: &Picture) -> Html {
    let mut html = heading(name, title);
    match &of.drawn {
        Drawn::Plot(plot) => html.add(&figure(plot, &of.notes)),
        Drawn::Listing(listing) => html.add(&rows(title, listing)).add(&notes(&of.notes)),
    };
    html
}

fn heading(name: &str, title: &str) -> Html {
    let mut html = Html::default();
    html.own("<h3>").text(name).own(". ").text(title).own("</h3>\n");
    html
}

fn notes(notes: &[String]) -> Html {
    let mut html = Html::default();
    for note in notes.iter().filter(|note| !note.is_empty()) {
        html.own("<p class=\"soft\">").note(note).own("</p>\n");
    }
    html
}

fn rows(title: &str, listing: &Listing) -> Html {
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
    let mut html = if cells.is_empty() { Html::default() } else { table(None, title, &heads, &cells) };
    if listing.rows.len() > MOST_ROWS {
        let count = grouped((listing.rows.len() - MOST_ROWS) as u64);
        html.own("<p class=\"soft\">").text(count).own(" more rows are in the CSV.</p>\n");
    }
    html
}

/// A figure of the page of all figures: its picture, the command that makes its tables, and its
/// files.
pub(super) fn made(made: &MadeFigure, formats: &[FigureFormat]) -> Html {
    let (name, title) = (made.figure.name, made.figure.title);
    match &made.state {
        FigureState::Drawn(of) => {
            let mut html = picture(name, title, of);
            for (number, file) in file_names(made, formats).iter().enumerate() {
                html.own(if number == 0 { "<p>Files: <a href=\"" } else { ", <a href=\"" });
                html.text(file).own("\">").text(file).own("</a>");
            }
            if !file_names(made, formats).is_empty() {
                html.own("</p>\n");
            }
            html.own("<p>Tables: <code>").text(&made.command).own("</code></p>\n");
            html
        }
        FigureState::Missing(why) => {
            let mut html = heading(name, title);
            html.own("<p>").text(why).own(" This command makes them:</p>\n<p><code>");
            html.text(&made.command).own("</code></p>\n");
            html
        }
    }
}
