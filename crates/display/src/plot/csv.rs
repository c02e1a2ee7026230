//! What a plot shows, as the rows of a table: one for each point.

use super::{Axis, Plot, Scale};
use crate::records::Week;

impl Plot {
    /// The heads of the columns: the series, where its numbers are from (`ours`, `fit` or
    /// `published`), and the two axes.
    pub fn columns(&self) -> [&'static str; 4] {
        ["series", "from", self.x.column, self.y.column]
    }

    /// The rows: all points of all series, also where a drawing leaves some out. Numbers have the
    /// shortest digits that are read as the same numbers.
    pub fn rows(&self) -> impl Iterator<Item = [String; 4]> {
        self.series.iter().flat_map(move |series| {
            let name = if series.name.is_empty() { self.label.as_str() } else { &series.name };
            series
                .points
                .iter()
                .map(move |(x, y)| [name.to_owned(), series.origin.name().to_owned(), self.x.text(*x), self.y.text(*y)])
        })
    }
}

impl Axis {
    /// A value as a text.
    fn text(&self, value: f64) -> String {
        match &self.scale {
            Scale::Weeks(_) => Week::from_days(value as i32).to_string(),
            Scale::Names(names) => names.get(value as usize).cloned().unwrap_or_else(|| value.to_string()),
            Scale::Linear | Scale::Logarithmic => value.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Ink, Series, SeriesLook};
    use super::*;

    #[test]
    fn a_row_is_a_point() {
        let plot = |x: Axis, points: Vec<(f64, f64)>| Plot {
            label: "plot".to_owned(),
            x,
            y: Axis::linear("share", "share"),
            series: vec![Series::published("", Ink::One, SeriesLook::Points, points)],
        };
        let weeks = plot(Axis::weeks([19_730]), vec![(19_730.0, 0.1)]);
        assert_eq!(weeks.columns(), ["series", "from", "week", "share"]);
        assert_eq!(weeks.rows().collect::<Vec<_>>(), [["plot", "published", "2024-01-08", "0.1"]]);
        let names = plot(Axis::names("class", "class", ["1", "2-10"]), vec![(1.0, 3.0)]);
        assert_eq!(names.rows().collect::<Vec<_>>(), [["plot", "published", "2-10", "3"]]);
    }
}
