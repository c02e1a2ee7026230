//! Plots as SVG, whose colours are those of the page: light or dark.

use anyhow::{Result, anyhow};
use plotters::coord::Shift;
use plotters::coord::combinators::IntoLogRange as _;
use plotters::prelude::*;

use super::escape::escaped;

/// The size of a plot, in pixels of its own coordinates; a page fits it to its width.
const SIZE: (u32, u32) = (760, 380);
/// Points of a series, at most: a page stays small whatever the store.
const MOST_POINTS: usize = 400;

/// A colour of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ink {
    Text,
    Line,
    One,
    Two,
    Three,
    Four,
    Five,
    Six,
    Seven,
}

impl Ink {
    const ALL: [(Ink, &'static str); 9] = [
        (Ink::Text, "ink"),
        (Ink::Line, "line"),
        (Ink::One, "one"),
        (Ink::Two, "two"),
        (Ink::Three, "three"),
        (Ink::Four, "four"),
        (Ink::Five, "five"),
        (Ink::Six, "six"),
        (Ink::Seven, "seven"),
    ];

    /// Its name in the style of the page.
    fn name(self) -> &'static str {
        Ink::ALL[self as usize].1
    }

    /// A colour that stands for this one until the plot is drawn.
    fn stand_in(self) -> RGBColor {
        RGBColor(1, 2, self as u8)
    }
}

/// Points, or a line, of a plot.
pub(super) struct Series {
    /// What it is called below the plot; nothing if it belongs to another one.
    pub(super) name: String,
    pub(super) ink: Ink,
    pub(super) is_line: bool,
    pub(super) points: Vec<(f64, f64)>,
}

/// An axis of a plot.
#[derive(Clone, Copy)]
pub(super) struct Axis<'a> {
    /// What it measures.
    pub(super) name: &'a str,
    /// Its ends.
    pub(super) bounds: (f64, f64),
    pub(super) is_logarithmic: bool,
    /// Whether only whole numbers are on it.
    pub(super) is_whole: bool,
}

/// Draws the axes of a chart and its series: the types of a chart differ by its axes.
macro_rules! draw {
    ($chart:ident, $x:ident, $y:ident, $series:ident) => {{
        let [text, line] = [Ink::Text, Ink::Line].map(Ink::stand_in);
        $chart
            .configure_mesh()
            .x_desc($x.name)
            .y_desc($y.name)
            .axis_style(line)
            .bold_line_style(line)
            .light_line_style(TRANSPARENT)
            .label_style(("sans-serif", 16, &text))
            .axis_desc_style(("sans-serif", 16, &text))
            .x_label_formatter(&|x| if $x.is_whole && x.fract() != 0.0 { String::new() } else { tick(*x) })
            .y_label_formatter(&|y| tick(*y))
            .draw()
            .map_err(failed)?;
        for Series { ink, is_line, points, .. } in $series {
            let (ink, points) = (ink.stand_in(), thinned(points));
            if *is_line {
                $chart.draw_series(LineSeries::new(points, ink.stroke_width(2))).map_err(failed)?;
            } else {
                let circles = points.into_iter().map(|point| Circle::new(point, 3, ink.filled()));
                $chart.draw_series(circles).map_err(failed)?;
            }
        }
        Ok(())
    }};
}

/// A figure: a plot on two axes, what its series are called, and a caption. `label` says what it shows to those who cannot see it.
pub(super) fn figure(label: &str, [x, y]: [Axis<'_>; 2], series: &[Series], caption: &str) -> Result<String> {
    let (across, up) = (x.bounds.0..x.bounds.1, y.bounds.0..y.bounds.1);
    let svg = drawn(label, |area| {
        let mut builder = ChartBuilder::on(area);
        builder.margin(10).x_label_area_size(52).y_label_area_size(84);
        match (x.is_logarithmic, y.is_logarithmic) {
            (false, false) => {
                let mut chart = builder.build_cartesian_2d(across, up).map_err(failed)?;
                draw!(chart, x, y, series)
            }
            (false, true) => {
                let mut chart = builder.build_cartesian_2d(across, up.log_scale()).map_err(failed)?;
                draw!(chart, x, y, series)
            }
            (true, false) => {
                let mut chart = builder.build_cartesian_2d(across.log_scale(), up).map_err(failed)?;
                draw!(chart, x, y, series)
            }
            (true, true) => {
                let mut chart = builder.build_cartesian_2d(across.log_scale(), up.log_scale()).map_err(failed)?;
                draw!(chart, x, y, series)
            }
        }
    })?;
    Ok(with_names(&svg, series, caption))
}

/// A plot with what its series are called, and a caption: text, not markup.
fn with_names(svg: &str, series: &[Series], caption: &str) -> String {
    let named = series.iter().filter(|series| !series.name.is_empty());
    let names: String = named
        .map(|series| {
            let of = if series.is_line { "of-line" } else { "of-points" };
            format!("<li class=\"{of} ink-{}\">{}</li>", series.ink.name(), escaped(&series.name))
        })
        .collect();
    format!(
        "<figure>\n<div class=\"plot\" tabindex=\"0\" role=\"region\" aria-label=\"Plot\">{svg}</div>\n<ul class=\"legend\">{names}</ul>\n<figcaption>{}</figcaption>\n</figure>\n",
        escaped(caption)
    )
}

/// The greatest coordinates of all points.
pub(super) fn greatest(series: &[Series]) -> [f64; 2] {
    let points = || series.iter().flat_map(|series| &series.points);
    [points().map(|point| point.0).fold(0.0, f64::max), points().map(|point| point.1).fold(0.0, f64::max)]
}

/// Draws a plot, and gives it the colours of the page.
fn drawn(label: &str, draw: impl FnOnce(&DrawingArea<SVGBackend<'_>, Shift>) -> Result<()>) -> Result<String> {
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        draw(&area)?;
        area.present().map_err(failed)?;
    }
    for (ink, name) in Ink::ALL {
        let RGBColor(red, green, blue) = ink.stand_in();
        svg = svg.replace(&format!("#{red:02X}{green:02X}{blue:02X}"), &format!("var(--{name})"));
    }
    Ok(svg.replacen("<svg ", &format!("<svg role=\"img\" aria-label=\"{}\" ", escaped(label)), 1))
}

/// Some of the points, spread over all of them, if there are too many.
fn thinned(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let step = points.len().div_ceil(MOST_POINTS).max(1);
    // The last ones are the largest clusters, which are few and far apart.
    let (many, last) = points.split_at(points.len().saturating_sub(MOST_POINTS / 4));
    many.iter().step_by(step).chain(last).copied().collect()
}

/// The text of a tick: a number as people write it.
fn tick(value: f64) -> String {
    if value >= 1000.0 && value.fract() == 0.0 {
        crate::sheet::grouped(value as u64)
    } else {
        let text = format!("{value:.3}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    }
}

fn failed<E: std::error::Error + Send + Sync>(error: DrawingAreaErrorKind<E>) -> anyhow::Error {
    anyhow!("cannot draw a plot: {error}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plots_have_all_series_in_the_colours_of_the_page_and_stay_small() {
        let series = |name: &str, ink, is_line, count: usize| Series {
            name: name.to_owned(),
            ink,
            is_line,
            points: (1..=count).map(|n| (n as f64, 1.0 + (count - n) as f64)).collect(),
        };
        let all = [series("sizes <b>", Ink::One, false, 100_000), series("fit", Ink::Two, true, 2)];
        let x = Axis { name: "pages", bounds: (1.0, 1e5), is_logarithmic: false, is_whole: true };
        let y = Axis { name: "clusters", ..x };
        let [log_x, log_y] = [x, y].map(|axis| Axis { is_logarithmic: true, ..axis });
        let of = |axes| figure("how many <clusters>", axes, &all, "of <us>").unwrap();
        let figures = [[x, y], [x, log_y], [log_x, y], [log_x, log_y]].map(of);
        for svg in figures {
            assert!(svg.len() < 100_000, "{}", svg.len());
            let circles = svg.matches("<circle").count();
            assert!((100..=2 * MOST_POINTS).contains(&circles), "{circles}");
            for wanted in [
                "var(--one)",
                "var(--two)",
                "var(--ink)",
                "<li class=\"of-line ink-two\">fit</li>",
                "<li class=\"of-points ink-one\">sizes &lt;b&gt;</li>",
                "clusters",
                "how many &lt;clusters&gt;",
                "of &lt;us&gt;",
            ] {
                assert!(svg.contains(wanted), "{wanted}");
            }
            assert!(!svg.contains("<b>") && !svg.contains("#0102"), "markup or a colour of its own");
        }
        let none = figure("", [x, y], &[], "").unwrap();
        assert!(none.contains("<svg"));
    }
}
