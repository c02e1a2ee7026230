//! Plots: points, lines and bars on two axes, written as SVG.
//!
//! A plot is plain data. It is drawn for a wide place or a narrow one: the narrow drawing has fewer
//! ticks and larger letters for its width, so that it is read on a phone without scrolling. No two
//! labels overlap. Series differ by their marks and dashes, and not by colours only.
//!
//! In reading order: this file, `scale` (values to places, ticks), `labels` (which ticks are
//! named), `marks` (how points, lines and bars look), `svg` (the drawing), `ink` (colours), `csv`
//! (what is drawn, as a table).

mod csv;
mod ink;
mod labels;
mod marks;
mod scale;
mod svg;

pub use self::ink::Ink;
pub use self::svg::Viewport;

/// A plot.
#[derive(Clone, Debug, PartialEq)]
pub struct Plot {
    /// What it shows, for a reader who cannot see it.
    pub label: String,
    /// The axis across.
    pub x: Axis,
    /// The axis up.
    pub y: Axis,
    /// What is drawn; later series are over earlier ones, and bars of later series upon those of
    /// earlier ones.
    pub series: Vec<Series>,
}

/// An axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// What its values are.
    pub name: String,
    /// The name of its column in a table of what is drawn.
    pub column: &'static str,
    /// Where values are.
    pub scale: Scale,
    /// The least value and the greatest one, where those of the series do not give them.
    pub bounds: (Option<f64>, Option<f64>),
}

/// Where values are on an axis.
#[derive(Clone, Debug, PartialEq)]
pub enum Scale {
    /// Equal steps are equally long.
    Linear,
    /// Equal ratios are equally long.
    Logarithmic,
    /// As linear, with ticks at the weeks of these days since 1970.
    Weeks(Vec<f64>),
    /// One place for each name: value 0 is the first name.
    Names(Vec<String>),
}

/// How a series looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeriesLook {
    /// A mark at each point.
    Points,
    /// A line from point to point.
    Line,
    /// A line, and a mark at each point.
    LineAndPoints,
    /// A bar at each point, upon the bars of the series before.
    Bars,
}

/// Where the numbers of a series are from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Tables of the store.
    Ours,
    /// Fitted to some of the others.
    Fit,
    /// The study.
    Published,
}

/// Points, a line, or bars.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// What it is called beside the plot; empty if that is said of another one.
    pub name: String,
    /// Its colour and its mark.
    pub ink: Ink,
    /// How it looks.
    pub marks: SeriesLook,
    /// Where its numbers are from.
    pub origin: Origin,
    /// Its points.
    pub points: Vec<(f64, f64)>,
}

impl Axis {
    /// An axis with equal steps.
    pub fn linear(name: impl Into<String>, column: &'static str) -> Axis {
        Axis { name: name.into(), column, scale: Scale::Linear, bounds: (None, None) }
    }

    /// An axis with equal ratios.
    pub fn logarithmic(name: impl Into<String>, column: &'static str) -> Axis {
        Axis { scale: Scale::Logarithmic, ..Axis::linear(name, column) }
    }

    /// An axis of weeks: points are at the days of the weeks since 1970.
    pub fn weeks(days: impl IntoIterator<Item = i32>) -> Axis {
        Axis { scale: Scale::Weeks(days.into_iter().map(f64::from).collect()), ..Axis::linear("week", "week") }
    }

    /// An axis of names: points are at 0, 1, and so on.
    pub fn names<T: Into<String>>(
        name: impl Into<String>,
        column: &'static str,
        names: impl IntoIterator<Item = T>,
    ) -> Axis {
        Axis { scale: Scale::Names(names.into_iter().map(Into::into).collect()), ..Axis::linear(name, column) }
    }

    /// The same axis, from one value to another.
    #[must_use]
    pub fn within(self, from: impl Into<Option<f64>>, to: impl Into<Option<f64>>) -> Axis {
        Axis { bounds: (from.into(), to.into()), ..self }
    }
}

impl Series {
    /// Numbers of the tables.
    pub fn ours(name: impl Into<String>, ink: Ink, marks: SeriesLook, points: Vec<(f64, f64)>) -> Series {
        Series { name: name.into(), ink, marks, origin: Origin::Ours, points }
    }

    /// A line that was fitted to others.
    pub fn fit(name: impl Into<String>, ink: Ink, points: Vec<(f64, f64)>) -> Series {
        Series { name: name.into(), ink, marks: SeriesLook::Line, origin: Origin::Fit, points }
    }

    /// Numbers of a study.
    pub fn published(name: impl Into<String>, ink: Ink, marks: SeriesLook, points: Vec<(f64, f64)>) -> Series {
        Series { name: name.into(), ink, marks, origin: Origin::Published, points }
    }
}

impl Origin {
    /// Its name in a table of what is drawn.
    pub fn name(self) -> &'static str {
        match self {
            Origin::Ours => "ours",
            Origin::Fit => "fit",
            Origin::Published => "published",
        }
    }
}
