//! Tables and facts for a person, that fit the width of the screen.

use std::io::IsTerminal as _;

use terminal_size::{Width, terminal_size_of};
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Columns between two columns of a grid.
const GAP: usize = 2;
/// The least width of a column of text, and of the screen that lines are made for.
const LEAST_TEXT: usize = 16;
const LEAST_SCREEN: usize = 60;

/// The number of columns that lines on stdout may take; `None` if it is no terminal: then nothing is shortened.
pub fn screen_width() -> Option<usize> {
    let stdout = std::io::stdout();
    let size = if stdout.is_terminal() { terminal_size_of(&stdout) } else { None };
    size.map(|(Width(columns), _)| usize::from(columns).max(LEAST_SCREEN))
}

/// What the cells of a column are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// Numbers, at the right. They are never shortened.
    Number,
    /// Text, at the left. Where a line is too long, it is shortened in the middle.
    Text,
}

/// A table with a head, for a person.
///
/// ```
/// use nigh::report::{Column, Grid};
///
/// let mut grid = Grid::new([("pages", Column::Number), ("page", Column::Text)]);
/// grid.row(["1,200", "http://one.example/a/very/long/path/index.html"]);
/// grid.row(["7", "http://two.example/"]);
/// assert_eq!(grid.lines(Some(32)), ["pages  page", "1,200  http://one.e…h/index.html", "    7  http://two.example/"]);
/// ```
#[derive(Clone, Debug)]
pub struct Grid {
    columns: Vec<Column>,
    /// The first are the heads.
    rows: Vec<Vec<String>>,
}

impl Grid {
    /// A table with these columns, and no rows yet.
    pub fn new<'a>(columns: impl IntoIterator<Item = (&'a str, Column)>) -> Grid {
        let (heads, columns) = columns.into_iter().map(|(head, column)| (head.to_owned(), column)).unzip();
        Grid { columns, rows: vec![heads] }
    }

    /// Adds a row: as many cells as columns.
    pub fn row<T: Into<String>>(&mut self, cells: impl IntoIterator<Item = T>) {
        let cells: Vec<String> = cells.into_iter().map(Into::into).collect();
        debug_assert_eq!(cells.len(), self.columns.len());
        self.rows.push(cells);
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.len() == 1
    }

    /// The head and the rows, as lines that fit `width` if that is given.
    pub fn lines(&self, width: Option<usize>) -> Vec<String> {
        let widths = self.widths(width.unwrap_or(usize::MAX));
        self.rows.iter().map(|row| self.line(row, &widths)).collect()
    }

    /// The widths of the columns: those of their longest cells, unless columns of text must be narrower.
    fn widths(&self, screen: usize) -> Vec<usize> {
        let longest = |place: usize| self.rows.iter().map(|row| row[place].width()).max().unwrap_or(0);
        let mut widths: Vec<usize> = (0..self.columns.len()).map(longest).collect();
        let all = |widths: &[usize]| widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1);
        let is_text = |place: &usize| self.columns[*place] == Column::Text;
        while all(&widths) > screen {
            // The widest column of text becomes as narrow as the next one, or as narrow as it must.
            let texts: Vec<usize> = (0..widths.len()).filter(is_text).collect();
            let Some(widest) = texts.iter().copied().max_by_key(|place| widths[*place]) else { break };
            let others = texts.iter().filter(|place| widths[**place] < widths[widest]);
            let next = others.map(|place| widths[*place]).max().unwrap_or(0);
            let equals = texts.iter().filter(|place| widths[**place] == widths[widest]).count();
            let share = (all(&widths) - screen).div_ceil(equals);
            let narrower = widths[widest].saturating_sub(share).max(next).max(LEAST_TEXT);
            if narrower >= widths[widest] {
                break;
            }
            let widest = widths[widest];
            for place in texts {
                widths[place] = if widths[place] == widest { narrower } else { widths[place] };
            }
        }
        widths
    }

    fn line(&self, row: &[String], widths: &[usize]) -> String {
        let mut line = String::new();
        for ((cell, column), width) in row.iter().zip(&self.columns).zip(widths) {
            let cell = if *column == Column::Text { shortened(cell, *width) } else { cell.clone() };
            let pad = " ".repeat(width.saturating_sub(cell.width()));
            let (left, right) = if *column == Column::Number { (pad.as_str(), "") } else { ("", pad.as_str()) };
            line.extend([left, &cell, right, &" ".repeat(GAP)]);
        }
        line.truncate(line.trim_end().len());
        line
    }
}

/// A text, without its middle if it takes more than `width` columns.
///
/// ```
/// assert_eq!(nigh::report::shortened("http://one.example/index.html", 13), "http:/…x.html");
/// assert_eq!(nigh::report::shortened("short", 13), "short");
/// ```
pub fn shortened(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let room = width.saturating_sub(1);
    let fitting = |chars: &mut dyn Iterator<Item = (usize, char)>, room: usize| {
        let mut taken = 0;
        let fits = |(_, c): &(usize, char)| {
            taken += c.width().unwrap_or(0);
            taken <= room
        };
        chars.take_while(fits).last()
    };
    let head = fitting(&mut text.char_indices(), room.div_ceil(2)).map_or(0, |(at, c)| at + c.len_utf8());
    let tail = fitting(&mut text.char_indices().rev(), room / 2).map_or(text.len(), |(at, _)| at);
    format!("{}…{}", &text[..head], &text[tail..])
}

/// A name and what is said of it, as lines that fit `width` if that is given: further lines stand below the first.
///
/// ```
/// let lines = nigh::report::fact("texts", "0.812 similar: 13 of 16 shingles are in both", 8, Some(32));
/// assert_eq!(lines, ["texts   0.812 similar: 13 of 16", "        shingles are in both"]);
/// ```
pub fn fact(name: &str, said: &str, indent: usize, width: Option<usize>) -> Vec<String> {
    let room = width.unwrap_or(usize::MAX).saturating_sub(indent).max(LEAST_TEXT);
    let mut lines: Vec<String> = Vec::new();
    for word in said.split(' ') {
        match lines.last_mut() {
            Some(line) if line.width() + 1 + word.width() <= room => line.extend([" ", word]),
            _ => lines.push(word.to_owned()),
        }
    }
    let begin = |number: usize| if number == 0 { name } else { "" };
    let indented = |(number, line): (usize, String)| {
        let name = begin(number);
        format!("{name}{}{line}", " ".repeat(indent.saturating_sub(name.width()).max(usize::from(!name.is_empty()))))
    };
    lines.into_iter().enumerate().map(indented).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_fit_every_width() {
        let mut grid = Grid::new([("pages", Column::Number), ("page", Column::Text), ("title", Column::Text)]);
        grid.row(["1,234,567", "http://one.example/a/b/c/d/e/f/g/h/i/j/k/l/m/n", "Ein kurzer Titel"]);
        grid.row(["1", "http://two.example/", "題名題名題名題名題名題名題名題名題名題名題名題名題名題名"]);
        for width in 60..140 {
            for line in grid.lines(Some(width)) {
                assert!(line.width() <= width, "{width}: {line}");
            }
            for line in fact("texts", &"a few words ".repeat(30), 20, Some(width)) {
                assert!(line.width() <= width, "{width}: {line}");
            }
        }
        let whole = grid.lines(None);
        assert!(whole.iter().all(|line| !line.contains('…')) && whole[2].ends_with('題'));
        let most = whole.iter().map(|line| line.width()).max().unwrap();
        assert_eq!(grid.lines(Some(most)), whole, "nothing is shortened that fits");
    }

    #[test]
    fn a_text_without_its_middle_takes_no_more_than_its_width() {
        for text in
            ["http://one.example/index.html", "題名題名題名題名題名題名", "e\u{301}e\u{301}e\u{301}e\u{301}", ""]
        {
            for width in 1..40 {
                let short = shortened(text, width);
                assert!(short.width() <= width, "{text} {width}: {short}");
                assert_eq!(short == text, text.width() <= width);
            }
        }
    }
}
