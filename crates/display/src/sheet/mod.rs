//! What is printed for a person: a sheet of lines, facts and grids, fitted to the width of the
//! screen.
//!
//! In reading order: this file, `grid` (tables), `numbers`, `colors`, `printable` (what stdout
//! gets).

mod colors;
mod grid;
mod numbers;
mod printable;

pub(crate) use self::grid::LEAST_TEXT;
pub use self::grid::{Grid, GridColumn, shortened};
pub use self::numbers::{grouped, plural};
pub use self::printable::Printable;

use std::fmt;
use std::io::IsTerminal as _;

use terminal_size::{Width, terminal_size_of};
use unicode_width::UnicodeWidthStr as _;

use self::colors::Colors;
use crate::text::printable_lines;

/// The least width of a screen that lines are made for.
const LEAST_SCREEN: usize = 60;

/// The number of columns that lines on stdout may take; `None` if it is no terminal: then nothing
/// is shortened.
fn screen_width() -> Option<usize> {
    let stdout = std::io::stdout();
    let size = if stdout.is_terminal() { terminal_size_of(&stdout) } else { None };
    size.map(|(Width(columns), _)| usize::from(columns).max(LEAST_SCREEN))
}

/// A report for a person.
///
/// ```
/// use nigh_display::sheet::{Grid, GridColumn, Sheet};
///
/// let mut sheet = Sheet::indented(8);
/// sheet.line("Week 2024-01-08");
/// sheet.fact("texts", "0.812 similar: 13 of 16 shingles are in both");
/// let mut grid = Grid::new([("pages", GridColumn::Number), ("page", GridColumn::Text)]);
/// grid.row(["12", "http://one.example/"]);
/// sheet.grid(grid);
/// assert_eq!(
///     sheet.lines(Some(32)),
///     [
///         "Week 2024-01-08",
///         "texts   0.812 similar: 13 of 16",
///         "        shingles are in both",
///         "pages  page",
///         "   12  http://one.example/",
///     ]
/// );
/// ```
#[derive(Clone, Debug)]
pub struct Sheet {
    parts: Vec<SheetPart>,
    indent: usize,
}

/// A part of a sheet.
#[derive(Clone, Debug)]
pub enum SheetPart {
    /// A name and what is said of it.
    Fact(String, String),
    /// A table.
    Grid(Grid),
}

impl Default for Sheet {
    fn default() -> Sheet {
        Sheet::indented(9)
    }
}

impl Sheet {
    /// An empty report whose facts begin in the column after `indent` others.
    pub fn indented(indent: usize) -> Sheet {
        Sheet { parts: Vec::new(), indent }
    }

    /// Adds a line.
    pub fn line(&mut self, text: impl Into<String>) {
        self.parts.push(SheetPart::Fact(String::new(), text.into()));
    }

    /// Adds an empty line.
    pub fn blank(&mut self) {
        self.line("");
    }

    /// Adds a name and what is said of it. Further lines of it stand below the first; without a
    /// name, so does the first.
    pub fn fact(&mut self, name: impl Into<String>, said: impl Into<String>) {
        let mut name = name.into();
        name.extend(std::iter::repeat_n(' ', self.indent.saturating_sub(name.width()).max(1)));
        self.parts.push(SheetPart::Fact(name, said.into()));
    }

    /// Adds a table.
    pub fn grid(&mut self, grid: Grid) {
        self.parts.push(SheetPart::Grid(grid));
    }

    /// What was added, in its order.
    pub fn parts(&self) -> &[SheetPart] {
        &self.parts
    }

    /// The text for stdout: its lines fit the screen, if it is one, and have colours where it has
    /// them.
    pub fn fitted(&self) -> Printable {
        Printable::of_lines(self.painted(screen_width(), Colors::of_stdout()))
    }

    /// The lines, none of them wider than `width` if that is given, except for paths and numbers
    /// that are.
    pub fn lines(&self, width: Option<usize>) -> Vec<String> {
        self.painted(width, Colors::None)
    }

    fn painted(&self, width: Option<usize>, colors: Colors) -> Vec<String> {
        let lines = |part: &SheetPart| match part {
            SheetPart::Grid(grid) => grid.painted(width, colors),
            SheetPart::Fact(name, said) => {
                let [name, said] = [name, said].map(|text| printable_lines(text));
                let mut lines = fact(&name, &said, width);
                let named = name.trim_end();
                if let Some(rest) = lines[0].strip_prefix(named).filter(|_| !named.is_empty()) {
                    lines[0] = colors.name(named.to_owned()) + rest;
                }
                lines
            }
        };
        self.parts.iter().flat_map(lines).collect()
    }
}

/// All of it, for a width without bounds.
impl fmt::Display for Sheet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lines(None).iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}

/// A name and what is said of it, broken at blanks. URLs are shortened, if even a line of their own
/// is too short for them.
fn fact(name: &str, said: &str, width: Option<usize>) -> Vec<String> {
    let Some(width) = width.filter(|width| name.width() + said.width() > *width) else {
        return vec![format!("{name}{said}").trim_end().to_owned()];
    };
    let indent = name.width();
    let room = width.saturating_sub(indent).max(LEAST_TEXT);
    let mut lines = vec![name.to_owned()];
    let mut taken = 0;
    for word in said.split(' ') {
        let word = if word.contains("://") { shortened(word, room) } else { word.to_owned() };
        if taken > 0 && taken + 1 + word.width() > room {
            lines.push(" ".repeat(indent));
            taken = 0;
        }
        if let Some(line) = lines.last_mut() {
            let blank = if taken > 0 { " " } else { "" };
            taken += blank.len() + word.width();
            line.extend([blank, &word]);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_fit_every_width_and_lose_no_word() {
        let said = format!("{} and http://one.example/{}", "a few words ".repeat(20), "path/".repeat(30));
        let mut sheet = Sheet::indented(20);
        sheet.fact("texts", &said);
        sheet.line(&said);
        for width in 60..250 {
            for line in sheet.lines(Some(width)) {
                assert!(line.width() <= width, "{width}: {line}");
            }
            let words = sheet.lines(Some(width)).join(" ");
            assert_eq!(words.matches("words").count(), 40, "{width}");
        }
        assert_eq!(sheet.to_string(), format!("texts               {said}\n{said}\n"));
    }

    #[test]
    fn colours_are_all_that_colours_add() {
        let mut sheet = Sheet::indented(12);
        sheet.fact("texts", "a few words ".repeat(20));
        sheet.line("A line of a few words");
        let mut grid =
            Grid::new([("page", GridColumn::Text), ("pages", GridColumn::Number), ("hosts", GridColumn::Number)]);
        grid.row(["http://one.example/a/long/path/index.html", "1,200", "7"]);
        sheet.grid(grid.clone());
        sheet.grid(grid.without_head());
        for width in [None, Some(20), Some(60), Some(80)] {
            let (plain, painted) = (sheet.lines(width), sheet.painted(width, Colors::Ansi));
            let without: Vec<String> =
                painted.iter().map(|line| anstream::adapter::strip_str(line).to_string()).collect();
            assert_eq!(without, plain);
            let heads = painted.iter().filter(|line| line.starts_with("\u{1b}[1mpage "));
            assert_eq!(heads.count(), if width == Some(20) { 2 } else { 1 }, "{painted:?}");
            assert!(painted[0].starts_with("\u{1b}[36mtexts\u{1b}[0m  "), "{painted:?}");
            assert_eq!(
                painted.iter().filter(|line| line.contains('\u{1b}')).count(),
                if width == Some(20) { 3 } else { 2 }
            );
        }
    }
}
