//! Tables for a person, that fit the width of the screen.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use super::colors::Colors;
use crate::text::printable_lines;

/// Columns between two columns of a grid.
const GAP: usize = 2;
/// The least width to which a column of text is shortened.
pub(crate) const LEAST_TEXT: usize = 16;

/// The least width to which the path of a URL is shortened, so that its host stays whole.
const LEAST_PATH: usize = 5;

/// What the cells of a column are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GridColumn {
    /// Numbers, at the right. They are never shortened.
    Number,
    /// Text, at the left. Where a line is too long, it is shortened in the middle.
    Text,
}

/// A table with a head, for a person.
///
/// ```
/// use nigh_display::sheet::{Grid, GridColumn};
///
/// let mut grid = Grid::new([("pages", GridColumn::Number), ("page", GridColumn::Text)]);
/// grid.row(["1,200", "http://one.example/a/very/long/path/index.html"]);
/// grid.row(["7", "http://two.example/"]);
/// assert_eq!(grid.lines(Some(32)), ["pages  page", "1,200  one.example/a/very…x.html", "    7  http://two.example/"]);
/// ```
#[derive(Clone, Debug)]
pub struct Grid {
    columns: Vec<GridColumn>,
    /// The first are the heads.
    rows: Vec<Vec<String>>,
    has_head: bool,
}

impl Grid {
    /// A table with these columns, and no rows yet.
    pub fn new<'a>(columns: impl IntoIterator<Item = (&'a str, GridColumn)>) -> Grid {
        let (heads, columns) = columns.into_iter().map(|(head, column)| (head.to_owned(), column)).unzip();
        Grid { columns, rows: vec![heads], has_head: true }
    }

    /// A table whose first column is text and whose others are numbers, with these heads and no
    /// rows yet.
    ///
    /// ```
    /// use nigh_display::sheet::Grid;
    ///
    /// let mut grid = Grid::of_numbers("", ["ours", "published"]);
    /// grid.row(["hosts", "1,200", "238,679"]);
    /// assert_eq!(grid.lines(None), ["        ours  published", "hosts  1,200    238,679"]);
    /// ```
    pub fn of_numbers<'a>(text: &'a str, numbers: impl IntoIterator<Item = &'a str>) -> Grid {
        let numbers = numbers.into_iter().map(|head| (head, GridColumn::Number));
        Grid::new(std::iter::once((text, GridColumn::Text)).chain(numbers))
    }

    /// The same table, whose head is not shown.
    #[must_use]
    pub fn without_head(self) -> Grid {
        Grid { has_head: false, ..self }
    }

    /// Adds a row: as many cells as columns.
    pub fn row<T: Into<String>>(&mut self, cells: impl IntoIterator<Item = T>) {
        let cells: Vec<String> = cells.into_iter().map(Into::into).collect();
        debug_assert_eq!(cells.len(), self.columns.len());
        self.rows.push(cells);
    }

    /// The columns, the heads if they are shown, and the rows.
    pub fn parts(&self) -> (&[GridColumn], Option<&[String]>, &[Vec<String>]) {
        let (head, rows) = self.rows.split_at(1);
        (&self.columns, self.has_head.then(|| &head[0][..]), rows)
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.len() == 1
    }

    /// The head and the rows, as lines that fit `width` if that is given. Where there are too many
    /// columns of numbers for it, the others follow below, beside the first column again if that is
    /// text.
    pub fn lines(&self, width: Option<usize>) -> Vec<String> {
        self.painted(width, Colors::None)
    }

    /// The same lines, the heads in colours.
    pub(super) fn painted(&self, width: Option<usize>, colors: Colors) -> Vec<String> {
        let screen = width.unwrap_or(usize::MAX);
        let mut lines = Vec::new();
        let printable = self.printable();
        for columns in printable.groups(screen) {
            let widths = printable.widths(&columns, screen);
            let rows = printable.rows.iter().skip(usize::from(!self.has_head));
            lines.extend((!lines.is_empty()).then(String::new));
            let mut of_group: Vec<String> = rows.map(|row| self.line(row, &columns, &widths)).collect();
            if let Some(head) = of_group.first_mut().filter(|_| self.has_head) {
                *head = colors.head(std::mem::take(head));
            }
            lines.append(&mut of_group);
        }
        lines
    }

    /// The same table, in whose cells nothing acts on a terminal.
    fn printable(&self) -> Grid {
        let printable = |row: &Vec<String>| row.iter().map(|cell| printable_lines(cell).into_owned()).collect();
        Grid { rows: self.rows.iter().map(printable).collect(), ..self.clone() }
    }

    /// The width of a column's longest cell.
    fn longest(&self, column: usize) -> usize {
        self.rows.iter().map(|row| row[column].width()).max().unwrap_or(0)
    }

    fn is_text(&self, column: usize) -> bool {
        self.columns[column] == GridColumn::Text
    }

    /// The columns that stand side by side: all, if their least widths fit the screen.
    fn groups(&self, screen: usize) -> Vec<Vec<usize>> {
        let least = |column: usize| {
            let longest = self.longest(column);
            if self.is_text(column) { longest.min(LEAST_TEXT) } else { longest }
        };
        let first = if self.columns.first() == Some(&GridColumn::Text) { vec![0] } else { Vec::new() };
        let mut groups = vec![first.clone()];
        for column in first.len()..self.columns.len() {
            let taken: usize = groups.last().into_iter().flatten().map(|column| least(*column) + GAP).sum();
            let is_begun = groups.last().is_some_and(|group| group.len() > first.len());
            if is_begun && taken.saturating_add(least(column)) > screen {
                groups.push(first.clone());
            }
            groups.last_mut().into_iter().for_each(|group| group.push(column));
        }
        groups
    }

    /// The widths of columns side by side: those of their longest cells, unless columns of text
    /// must be narrower.
    fn widths(&self, columns: &[usize], screen: usize) -> Vec<usize> {
        let mut widths: Vec<usize> = columns.iter().map(|column| self.longest(*column)).collect();
        let all = |widths: &[usize]| widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1);
        while all(&widths) > screen {
            // The widest column of text becomes as narrow as the next one, or as narrow as it must.
            let texts: Vec<usize> = (0..widths.len()).filter(|place| self.is_text(columns[*place])).collect();
            let Some(widest) = texts.iter().map(|place| widths[*place]).max() else { break };
            let others = texts.iter().map(|place| widths[*place]).filter(|width| *width < widest);
            let next = others.max().unwrap_or(0);
            let equals = texts.iter().filter(|place| widths[**place] == widest).count();
            let share = (all(&widths) - screen).div_ceil(equals);
            let narrower = widest.saturating_sub(share).max(next).max(LEAST_TEXT);
            if narrower >= widest {
                break;
            }
            for place in texts {
                widths[place] = if widths[place] == widest { narrower } else { widths[place] };
            }
        }
        widths
    }

    fn line(&self, row: &[String], columns: &[usize], widths: &[usize]) -> String {
        let mut line = String::new();
        for (column, width) in columns.iter().zip(widths) {
            let cell = &row[*column];
            let cell = if self.is_text(*column) { shortened(cell, *width) } else { cell.clone() };
            let pad = " ".repeat(width.saturating_sub(cell.width()));
            let (left, right) = if self.is_text(*column) { ("", pad.as_str()) } else { (pad.as_str(), "") };
            line.extend([left, &cell, right, &" ".repeat(GAP)]);
        }
        line.truncate(line.trim_end().len());
        line
    }
}

/// A text, without its middle if it takes more than `width` columns. A URL first loses its scheme,
/// and then the middle of its path: its host is what differs most.
///
/// ```
/// use nigh_display::sheet::shortened;
/// assert_eq!(shortened("http://one.example/index.html", 25), "one.example/index.html");
/// assert_eq!(shortened("http://one.example/index.html", 20), "one.example/ind…html");
/// assert_eq!(shortened("a title of a page", 13), "a titl…a page");
/// assert_eq!(shortened("short", 13), "short");
/// ```
pub fn shortened(text: &str, width: usize) -> String {
    let rest = ["http://", "https://"].into_iter().find_map(|scheme| text.strip_prefix(scheme));
    let Some(rest) = rest.filter(|_| text.width() > width) else { return without_middle(text, width) };
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let room = width.saturating_sub(host.width());
    if rest.width() <= width || room < LEAST_PATH {
        return without_middle(rest, width);
    }
    format!("{host}{}", without_middle(path, room))
}

/// A text, without its middle if it takes more than `width` columns.
fn without_middle(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let room = width.saturating_sub(1);
    let fitting = |chars: &mut dyn Iterator<Item = (usize, char)>, room: usize| {
        let mut taken = 0;
        let fits = |(_, c): &(usize, char)| {
            // The mark of an emoji widens the character before it.
            taken += if *c == '\u{fe0f}' { 1 } else { c.width().unwrap_or(0) };
            taken <= room
        };
        chars.take_while(fits).last()
    };
    let head = fitting(&mut text.char_indices(), room.div_ceil(2)).map_or(0, |(at, c)| at + c.len_utf8());
    let tail = fitting(&mut text.char_indices().rev(), room / 2).map_or(text.len(), |(at, _)| at);
    format!("{}…{}", &text[..head], &text[tail..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_fit_every_width() {
        let mut grid =
            Grid::new([("pages", GridColumn::Number), ("page", GridColumn::Text), ("title", GridColumn::Text)]);
        grid.row(["1,234,567", "http://one.example/a/b/c/d/e/f/g/h/i/j/k/l/m/n", "Ein kurzer Titel"]);
        grid.row(["1", "http://two.example/", "題名題名題名題名題名題名題名題名題名題名題名題名題名題名"]);
        for width in 60..140 {
            for line in grid.lines(Some(width)) {
                assert!(line.width() <= width, "{width}: {line}");
            }
        }
        let names: Vec<String> = (0..9).map(|n| format!("number {n}")).collect();
        let numbers = names.iter().map(|name| (name.as_str(), GridColumn::Number));
        let mut wide = Grid::new([("", GridColumn::Text)].into_iter().chain(numbers));
        wide.row(["row"].into_iter().chain([1234, 1, 2, 3, 4, 5, 6, 7, 8].map(|_| "1,234,567")));
        for width in 60..140 {
            let lines = wide.lines(Some(width));
            assert!(lines.iter().all(|line| line.width() <= width), "{width}: {lines:?}");
            let shown: Vec<&str> = lines.iter().flat_map(|line| line.split("  ")).collect();
            assert_eq!(shown.iter().filter(|cell| cell.ends_with("1,234,567")).count(), 9, "{width}: {lines:?}");
        }
        let whole = grid.lines(None);
        assert!(whole.iter().all(|line| !line.contains('…')) && whole[2].ends_with('名'));
        let most = whole.iter().map(|line| line.width()).max().unwrap();
        assert_eq!(grid.lines(Some(most)), whole, "nothing is shortened that fits");
    }

    #[test]
    fn a_text_without_its_middle_takes_no_more_than_its_width() {
        let hearts = "\u{2764}\u{fe0f}".repeat(8);
        for text in [
            "http://one.example/index.html",
            "題名題名題名題名題名題名",
            "e\u{301}e\u{301}e\u{301}e\u{301}",
            "",
            &hearts,
        ] {
            for width in 1..40 {
                let short = shortened(text, width);
                assert!(short.width() <= width, "{text} {width}: {short}");
                assert_eq!(short == text, text.width() <= width);
                let (head, tail) = short.split_once('…').unwrap_or((&short, ""));
                assert!(head.len() + tail.len() <= text.len(), "{text} {width}: {short}");
            }
        }
    }
}
