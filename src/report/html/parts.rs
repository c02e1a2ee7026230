//! Sheets as HTML, and tables that sort and filter.

use super::escape::{line, name, short};
use crate::markup::Html;
use crate::sheet::{Grid, GridColumn, Sheet, SheetPart, grouped};

/// Characters of a cell from which on its column is wide on a phone, so that rows stay low.
const LONG: usize = 40;
/// Rows of a table, at most.
pub(super) const MOST_ROWS: usize = 300;

/// A cell of a table.
pub(super) enum HtmlCell {
    /// What is in a column of numbers, and the number by which it sorts, if it is one.
    Number(String, Option<f64>),
    /// Text of others.
    Text(String),
    /// How a page is known.
    Name(String),
}

impl HtmlCell {
    pub(super) fn count(count: u64) -> HtmlCell {
        HtmlCell::Number(grouped(count), Some(count as f64))
    }

    pub(super) fn share(share: f64) -> HtmlCell {
        HtmlCell::Number(format!("{:.1}%", 100.0 * share), Some(share))
    }

    fn is_long(&self) -> bool {
        match self {
            HtmlCell::Number(..) => false,
            HtmlCell::Text(text) | HtmlCell::Name(text) => text.chars().nth(LONG).is_some(),
        }
    }

    /// Adds a cell, of a column in which one is long or none.
    fn add_to(&self, html: &mut Html, is_long: bool) {
        let begin = if is_long { "<td class=\"long\">" } else { "<td>" };
        match self {
            HtmlCell::Number(text, Some(value)) => {
                html.own("<td class=\"number\" data-value=\"").text(value).own("\">").text(text)
            }
            HtmlCell::Number(text, None) => html.own("<td class=\"number\">").text(short(text)),
            HtmlCell::Text(text) => html.own(begin).text(short(text)),
            HtmlCell::Name(text) => html.own(begin).add(&name(text)),
        };
        html.own("</td>");
    }
}

/// A table that sorts by a click on its heads, and filters by a field if `id` is given. `heads` say
/// whether a column has numbers.
pub(super) fn table(id: Option<&str>, caption: &str, heads: &[(&str, bool)], rows: &[Vec<HtmlCell>]) -> Html {
    let mut html = Html::default();
    if let Some(id) = id {
        html.own("<p><label>Only rows with <input type=\"search\" data-filter=\"")
            .text(id)
            .own("\"></label> <span id=\"");
        html.text(id).own("-count\" class=\"soft\" role=\"status\"></span></p>\n");
    }
    html.own("<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"").text(caption).own("\">\n<table");
    if let Some(id) = id {
        html.own(" id=\"").text(id).own("\"");
    }
    html.own(" class=\"sortable\">\n");
    let is_long = |column: usize| rows.iter().filter_map(|row: &Vec<HtmlCell>| row.get(column)).any(HtmlCell::is_long);
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0).max(heads.len());
    let is_long: Vec<bool> = (0..columns).map(is_long).collect();
    if !heads.is_empty() {
        html.own("<thead><tr>");
        for ((head, is_number), is_long) in heads.iter().zip(&is_long) {
            html.own(match (is_number, is_long) {
                (true, _) => "<th scope=\"col\" class=\"number\">",
                (false, true) => "<th scope=\"col\" class=\"long\">",
                (false, false) => "<th scope=\"col\">",
            });
            html.text(head).own("</th>");
        }
        html.own("</tr></thead>\n");
    }
    html.own("<tbody>\n");
    for row in rows {
        html.own("<tr>");
        row.iter().zip(&is_long).for_each(|(cell, is_long)| cell.add_to(&mut html, *is_long));
        html.own("</tr>\n");
    }
    html.own("</tbody>\n</table>\n</div>\n");
    html
}

/// A sheet: its lines as paragraphs, its facts as a list, its tables as tables.
pub(super) fn sheet(sheet: &Sheet) -> Html {
    let mut html = Html::default();
    let mut is_list = false;
    for part in sheet.parts() {
        let is_fact = matches!(part, SheetPart::Fact(name, _) if !name.is_empty());
        if is_fact != is_list {
            html.own(if is_fact { "<dl>\n" } else { "</dl>\n" });
            is_list = is_fact;
        }
        match part {
            SheetPart::Fact(name, said) if is_fact => {
                html.own("<dt>").text(name.trim()).own("</dt><dd>").text(line(said)).own("</dd>\n");
            }
            SheetPart::Fact(_, said) if said.trim().is_empty() => {}
            SheetPart::Fact(_, said) => _ = html.own("<p>").text(line(said)).own("</p>\n"),
            SheetPart::Grid(of) => _ = html.add(&grid(of)),
        }
    }
    if is_list {
        html.own("</dl>\n");
    }
    html
}

/// A table of a sheet. Of a long one the first rows and the last are shown.
fn grid(grid: &Grid) -> Html {
    let (columns, head, rows) = grid.parts();
    let left_out = rows.len().saturating_sub(MOST_ROWS);
    let rows: Vec<&Vec<String>> = rows
        .iter()
        .enumerate()
        .filter(|(row, _)| !(MOST_ROWS / 2..MOST_ROWS / 2 + left_out).contains(row))
        .map(|of| of.1)
        .collect();
    // A column sorts by text if one of its cells is not a number.
    let is_missing = |cell: &str| matches!(cell.trim(), "" | "-");
    let of_numbers =
        |column: usize| rows.iter().all(|row| is_missing(&row[column]) || number_in(&row[column]).is_some());
    let of_numbers: Vec<bool> = (0..columns.len()).map(of_numbers).collect();
    let cell = |(column, cell): (usize, &String)| match columns[column] {
        GridColumn::Text => HtmlCell::Name(cell.clone()),
        GridColumn::Number => HtmlCell::Number(cell.clone(), number_in(cell).filter(|_| of_numbers[column])),
    };
    let cells: Vec<Vec<HtmlCell>> = rows.iter().map(|row| row.iter().enumerate().map(cell).collect()).collect();
    let numbers = columns.iter().map(|column| *column == GridColumn::Number);
    let heads: Vec<(&str, bool)> = match head {
        Some(head) => head.iter().map(String::as_str).zip(numbers).collect(),
        None => Vec::new(),
    };
    let mut html = table(None, "Table", &heads, &cells);
    if left_out > 0 {
        let count = grouped(left_out as u64);
        html.own("<p class=\"soft\">").text(count).own(" rows in the middle are left out.</p>\n");
    }
    html
}

/// The number of a cell that is a number, a percentage or a size.
fn number_in(cell: &str) -> Option<f64> {
    let cell = cell.trim();
    let units = [("KiB", 10), ("MiB", 20), ("GiB", 30), ("TiB", 40), ("B", 0), ("%", 0)];
    let (digits, scale) = units
        .into_iter()
        .find_map(|(unit, power)| Some((cell.strip_suffix(unit)?, f64::from(power).exp2())))
        .unwrap_or((cell, 1.0));
    let digits: String = digits.trim().chars().filter(|c| *c != ',').collect();
    digits.parse().ok().filter(|number: &f64| number.is_finite()).map(|number| scale * number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sheet_has_all_that_it_says() {
        let mut sheet_of = Sheet::default();
        sheet_of.line("Week <1>");
        sheet_of.blank();
        sheet_of.fact("Records", "12 & more");
        sheet_of.fact("", "further");
        let mut of_titles = Grid::new([("pages", GridColumn::Number), ("title", GridColumn::Text)]);
        of_titles.row(["3".to_owned(), "long ".repeat(9)]);
        sheet_of.grid(of_titles);
        let mut grid = Grid::new([("pages", GridColumn::Number), ("page", GridColumn::Text)]);
        grid.row(["1,200", "http://one.example/?a=1&b=2"]);
        grid.row(["-", "javascript:alert(1)"]);
        (0..2 * MOST_ROWS).for_each(|row| grid.row([format!("{row}.5 KiB"), format!("row {row}")]));
        sheet_of.grid(grid);
        let html = sheet(&sheet_of).into_text();
        for wanted in [
            "<p>Week &lt;1&gt;</p>",
            "<dl>\n<dt>Records</dt><dd>12 &amp; more</dd>\n<dt></dt><dd>further</dd>\n</dl>",
            "data-value=\"1200\">1,200</td>",
            "data-value=\"1536\">1.5 KiB</td>",
            "<td>row 599</td>",
            "<th scope=\"col\" class=\"long\">title</th>",
            "<td class=\"long\">long ",
            "302 rows in the middle are left out",
            "<a href=\"http://one.example/?a=1&amp;b=2\"",
            "<td>javascript:alert(1)</td>",
        ] {
            assert!(html.contains(wanted), "{wanted}: {html}");
        }
    }
}
