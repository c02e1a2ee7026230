//! The drawing of a plot as SVG.
//!
//! ```text
//! marks and names of the series, on as many lines as they need
//! name of the axis up
//!   100 ┤
//!       │        the series
//!     0 ┤
//!       └──┬──────┬──────
//!          0      50           on two lines, if all must be named and one is too short
//!          name of the axis across
//! ```

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::labels::{across, fitting, up, width};
use super::scale::Ruler;
use super::{Axis, Plot, Scale, Series, SeriesLook, ink, marks};
use crate::markup::{Html, escaped};
use crate::sheet::shortened;

/// Points of a series that are drawn, at most: a page stays small whatever the store.
const MOST_POINTS: usize = 400;

/// The place that a drawing is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Viewport {
    /// A page of a usual width.
    Wide,
    /// A page on a phone.
    Narrow,
}

impl Viewport {
    /// Width and height of the drawing without the series' names, and the size of letters.
    fn size(self) -> (f64, f64, f64) {
        match self {
            Viewport::Wide => (840.0, 400.0, 15.0),
            Viewport::Narrow => (400.0, 320.0, 13.0),
        }
    }
}

impl Plot {
    /// The drawing, for a page that has the styles.
    pub fn svg(&self, shape: Viewport) -> Html {
        let (body, width, height) = self.body(shape);
        let size = shape.size().2;
        Html::drawing(format!(
            "<svg viewBox=\"0 0 {width:.0} {height:.0}\" font-size=\"{size:.0}\" role=\"img\" aria-label=\"{}\">{body}</svg>",
            escaped(&self.said())
        ))
    }

    /// The drawing, as a file of its own that is light or dark as the reader has it.
    pub fn file(&self) -> String {
        self.file_of(&ink::style())
    }

    /// The drawing, as a file of its own on a light ground.
    pub fn light_file(&self) -> String {
        self.file_of(&ink::light_style())
    }

    fn file_of(&self, style: &str) -> String {
        let (body, width, height) = self.body(Viewport::Wide);
        let size = Viewport::Wide.size().2;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" viewBox=\"0 0 {width:.0} {height:.0}\" \
             font-family=\"system-ui, sans-serif\" font-size=\"{size:.0}\" role=\"img\">\n<title>{}</title>\n<style>{style}</style>\n\
             <rect class=\"ground\" width=\"100%\" height=\"100%\"/>\n{body}</svg>\n",
            escaped(&self.said())
        )
    }

    /// The series that are named beside the plot: those with a name and points.
    fn named(&self) -> impl Iterator<Item = &Series> {
        self.series.iter().filter(|series| !series.name.is_empty() && !series.points.is_empty())
    }

    /// What the plot shows, in words.
    fn said(&self) -> String {
        let names: Vec<&str> = self.named().map(|series| series.name.as_str()).collect();
        if names.is_empty() { self.label.clone() } else { format!("{}: {}", self.label, names.join("; ")) }
    }

    /// What is in the drawing; its width and height.
    fn body(&self, shape: Viewport) -> (String, f64, f64) {
        let (width, height, size) = shape.size();
        let mut out = String::new();
        let top = self.names(&mut out, width, size);
        let area = Area::of(self, [0.8 * size, top + 2.2 * size], [width, top + height], size);
        area.frame(self, &mut out);
        area.series(&self.series, &mut out);
        (out, width, top + height)
    }

    /// The marks and names of the series. Returns the height that they take.
    fn names(&self, out: &mut String, room: f64, size: f64) -> f64 {
        let (swatch, line) = (2.6 * size, 1.5 * size);
        let (mut x, mut y) = (0.5 * size, 0.0);
        for series in self.named() {
            let text = shortened(&series.name, fitting(room - swatch - size, size));
            let taken = swatch + width(&text, size) + size;
            if x + taken > room && x > size {
                (x, y) = (0.5 * size, y + line);
            }
            let middle = y + 0.75 * size;
            let _ = write!(out, "<g class=\"ink-{}\">", series.ink.name());
            match series.marks {
                SeriesLook::Bars => {
                    bar(out, x + 0.6 * size, middle - 0.4 * size, 0.8 * size, 0.8 * size);
                    marks::on_bar(out, series.ink, x + size, middle);
                }
                SeriesLook::Points => marks::point(out, series.ink, series.origin, x + size, middle),
                SeriesLook::Line | SeriesLook::LineAndPoints => {
                    marks::line(out, series.ink, series.origin, &[(x, middle), (x + 2.0 * size, middle)]);
                    if series.marks == SeriesLook::LineAndPoints {
                        marks::point(out, series.ink, series.origin, x + size, middle);
                    }
                }
            }
            out.push_str("</g>");
            label(out, &text, x + swatch - 0.3 * size, y + 1.1 * size, "start");
            x += taken;
        }
        if self.named().next().is_none() { 0.0 } else { y + line + 0.3 * size }
    }
}

/// The place of the axes and the series within a drawing.
struct Area {
    x: Ruler,
    y: Ruler,
    /// Left and right.
    across: [f64; 2],
    /// Top and bottom.
    down: [f64; 2],
    /// The whole width of the drawing.
    width: f64,
    size: f64,
    lines_below: usize,
}

impl Area {
    /// Finds the place, between the upper left corner and the lower right one.
    fn of(plot: &Plot, [left, top]: [f64; 2], [width, bottom]: [f64; 2], size: f64) -> Area {
        let has_bars = plot.series.iter().any(|series| series.marks == SeriesLook::Bars);
        let points = || plot.series.iter().flat_map(|series| &series.points);
        let sums = stacked(&plot.series);
        let tops = sums.iter().flatten().map(|(_, to)| *to);
        let x = Ruler::of(&plot.x, points().map(|point| point.0), if has_bars { 0.5 } else { 0.0 });
        let y = Ruler::of(&plot.y, points().map(|point| point.1).chain(tops), 0.0);
        // The rows below are known only with the width, and that only with the names beside, whose
        // number depends on the height.
        let mut area = Area { x, y, across: [left, width - size], down: [top, bottom], width, size, lines_below: 1 };
        area.down[1] = bottom - 4.9 * size;
        let beside =
            area.ticks_up(plot).into_iter().map(|tick| super::labels::width(&tick.1, size)).fold(0.0, f64::max);
        area.across[0] = left + beside + 0.5 * size;
        area.lines_below = 1 + area.names_across(plot).iter().map(|label| label.line).max().unwrap_or(0);
        if area.lines_below == 1 {
            area.down[1] += 1.3 * size;
        }
        area
    }

    /// The height of a place.
    fn height(&self, at: f64) -> f64 {
        self.down[1] - at * (self.down[1] - self.down[0])
    }

    fn place(&self, (x, y): (f64, f64)) -> Option<(f64, f64)> {
        let (at_x, at_y) = (self.x.on(x)?, self.y.on(y)?);
        Some((self.across[0] + at_x * (self.across[1] - self.across[0]), self.height(at_y)))
    }

    /// The ticks of the axis up: where they are, from 0 to 1, and their names, if they have room.
    fn ticks_up(&self, plot: &Plot) -> Vec<(f64, String)> {
        let height = self.down[1] - self.down[0];
        let ticks = self.y.ticks(&plot.y, (height / (3.0 * self.size)) as usize);
        let named = up(&ticks, height, self.size);
        named.into_iter().map(|number| (ticks[number].at, ticks[number].label.clone())).collect()
    }

    fn names_across(&self, plot: &Plot) -> Vec<super::labels::PlacedLabel> {
        let room = self.across[1] - self.across[0];
        let ticks = self.x.ticks(&plot.x, (room / (6.0 * self.size)) as usize);
        let all = matches!(plot.x.scale, Scale::Names(_));
        across(&ticks, self.across, self.width, self.size, all)
    }

    /// The axes with their ticks and names.
    fn frame(&self, plot: &Plot, out: &mut String) {
        let Area { across: [left, right], down: [top, bottom], size, .. } = *self;
        // Without a value, numbers on the axes would be made up.
        let is_empty = plot.series.iter().all(|series| series.points.is_empty());
        if is_empty {
            label(out, "nothing to draw", 0.5 * (left + right), 0.5 * (top + bottom), "middle");
        }
        for (at, text) in self.ticks_up(plot).into_iter().filter(|_| !is_empty) {
            let y = self.height(at);
            let _ =
                write!(out, "<line class=\"grid\" x1=\"{left:.1}\" y1=\"{y:.1}\" x2=\"{right:.1}\" y2=\"{y:.1}\"/>");
            label(out, &text, left - 0.5 * size, y + 0.35 * size, "end");
        }
        let _ = write!(
            out,
            "<polyline class=\"grid\" fill=\"none\" points=\"{left:.1},{top:.1} {left:.1},{bottom:.1} {right:.1},{bottom:.1}\"/>"
        );
        for of in self.names_across(plot).into_iter().filter(|_| !is_empty) {
            label(out, &of.text, of.middle, bottom + (1.6 + 1.3 * of.line as f64) * size, "middle");
        }
        let ticks = self.x.ticks(&plot.x, ((right - left) / (6.0 * size)) as usize);
        if !is_empty && !matches!(plot.x.scale, Scale::Names(_)) {
            for tick in ticks {
                let x = left + tick.at * (right - left);
                let below = bottom + 0.3 * size;
                let _ = write!(
                    out,
                    "<line class=\"grid\" x1=\"{x:.1}\" y1=\"{bottom:.1}\" x2=\"{x:.1}\" y2=\"{below:.1}\"/>"
                );
            }
        }
        let fits = |axis: &Axis| shortened(&axis.name, fitting(self.width - size, size));
        label(out, &fits(&plot.y), 0.3 * size, top - 1.1 * size, "start");
        let middle = 0.5 * (left + right);
        let half = 0.5 * width(&fits(&plot.x), size);
        let middle = middle.min(self.width - half).max(half);
        label(out, &fits(&plot.x), middle, bottom + (1.9 + 1.3 * self.lines_below as f64) * size, "middle");
    }

    /// The series, in their order.
    fn series(&self, all: &[Series], out: &mut String) {
        for (series, bars) in all.iter().zip(stacked(all)) {
            if series.points.is_empty() {
                continue;
            }
            let _ = write!(out, "<g class=\"ink-{}\">", series.ink.name());
            if series.marks == SeriesLook::Bars {
                self.bars(series, &bars, out);
            } else {
                self.points(series, out);
            }
            out.push_str("</g>");
        }
    }

    fn points(&self, series: &Series, out: &mut String) {
        let places: Vec<(f64, f64)> =
            thinned(&series.points).into_iter().filter_map(|point| self.place(point)).collect();
        if matches!(series.marks, SeriesLook::Line | SeriesLook::LineAndPoints) && places.len() > 1 {
            marks::line(out, series.ink, series.origin, &places);
        }
        // A line of one point would not be seen.
        if matches!(series.marks, SeriesLook::Points | SeriesLook::LineAndPoints) || places.len() == 1 {
            places.iter().for_each(|(x, y)| marks::point(out, series.ink, series.origin, *x, *y));
        }
    }

    fn bars(&self, series: &Series, bars: &[(f64, f64)], out: &mut String) {
        let step = (self.x.at(1.0) - self.x.at(0.0)) * (self.across[1] - self.across[0]);
        for ((x, _), (from, to)) in series.points.iter().zip(bars) {
            let (Some(low), Some(high)) = (self.place((*x, *from)), self.place((*x, *to))) else { continue };
            let height = low.1 - high.1;
            if height > 0.05 {
                bar(out, low.0 - 0.4 * step, high.1, 0.8 * step, height);
            }
            // A series without a name is the only one.
            if !series.name.is_empty() && height.min(0.8 * step) > self.size {
                marks::on_bar(out, series.ink, low.0, 0.5 * (low.1 + high.1));
            }
        }
    }
}

/// From where to where each bar of each series goes; nothing for series without bars.
fn stacked(all: &[Series]) -> Vec<Vec<(f64, f64)>> {
    // By the bits of the place across, which are the same for bars upon each other.
    let mut tops: BTreeMap<u64, f64> = BTreeMap::new();
    let of_series = |series: &Series| {
        if series.marks != SeriesLook::Bars {
            return Vec::new();
        }
        let bar = |(x, height): &(f64, f64)| {
            let top = tops.entry(x.to_bits()).or_default();
            let from = *top;
            *top += height;
            (from, *top)
        };
        series.points.iter().map(bar).collect()
    };
    all.iter().map(of_series).collect()
}

/// Some of the points, spread over all of them, if there are too many.
fn thinned(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    // The last ones are the largest clusters, which are few and far apart.
    let (many, last) = points.split_at(points.len().saturating_sub(MOST_POINTS / 4));
    let step = points.len().div_ceil(MOST_POINTS).max(1);
    many.iter().step_by(step).chain(last).copied().collect()
}

fn bar(out: &mut String, x: f64, y: f64, width: f64, height: f64) {
    let _ = write!(out, "<rect class=\"bar\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"/>");
}

fn label(out: &mut String, text: &str, x: f64, y: f64, anchor: &str) {
    if text.is_empty() {
        return;
    }
    let anchor = if anchor == "start" { String::new() } else { format!(" text-anchor=\"{anchor}\"") };
    let _ = write!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\"{anchor}>{}</text>", escaped(text));
}

#[cfg(test)]
mod tests {
    use super::super::Ink;
    use super::*;

    fn sizes(count: usize) -> Plot {
        let points = (1..=count).map(|n| (n as f64, 1.0 + (count - n) as f64)).collect();
        Plot {
            label: "how many <clusters>".to_owned(),
            x: Axis::logarithmic("pages", "size"),
            y: Axis::logarithmic("clusters", "clusters"),
            series: vec![
                Series::ours("sizes <b>", Ink::One, SeriesLook::Points, points),
                Series::fit("fit", Ink::Two, vec![(1.0, count as f64), (count as f64, 1.0)]),
            ],
        }
    }

    #[test]
    fn drawings_have_all_series_as_text_and_stay_small() {
        let plot = sizes(100_000);
        for svg in [plot.svg(Viewport::Wide).into_text(), plot.svg(Viewport::Narrow).into_text(), plot.file()] {
            assert!(svg.len() < 60_000, "{}", svg.len());
            let circles = svg.matches("<circle").count();
            assert!((100..=2 * MOST_POINTS).contains(&circles), "{circles}");
            for wanted in [
                "class=\"ink-one\"",
                "class=\"ink-two\"",
                "how many &lt;clusters&gt;: sizes &lt;b&gt;; fit",
                ">fit</text>",
            ] {
                assert!(svg.contains(wanted), "{wanted}");
            }
            assert!(!svg.contains("<b>"), "markup of others");
        }
        let file = plot.file();
        assert!(file.starts_with("<svg xmlns") && file.contains("prefers-color-scheme:dark") && !file.contains("var("));
    }

    #[test]
    fn bars_stand_upon_each_other_and_reach_the_top() {
        let series = |ink, points: &[(f64, f64)]| Series::ours("s", ink, SeriesLook::Bars, points.to_vec());
        let all = [series(Ink::One, &[(0.0, 30.0), (1.0, 100.0)]), series(Ink::Two, &[(0.0, 70.0)])];
        assert_eq!(stacked(&all), [vec![(0.0, 30.0), (0.0, 100.0)], vec![(30.0, 100.0)]]);
        let plot = Plot {
            label: String::new(),
            x: Axis::names("class", "class", ["a", "b"]),
            y: Axis::linear("%", "share").within(0.0, 100.0),
            series: all.to_vec(),
        };
        let svg = plot.svg(Viewport::Wide).into_text();
        // Two in the names, and three in the plot, each with the mark of its series.
        assert_eq!(svg.matches("<rect").count(), 5, "{svg}");
        assert_eq!(svg.matches("class=\"on-bar\"").count(), 5, "{svg}");
    }

    #[test]
    fn a_plot_without_points_has_axes() {
        for axis in
            [Axis::linear("n", "n"), Axis::logarithmic("n", "n"), Axis::weeks([]), Axis::names("n", "n", ["a"; 0])]
        {
            let plot =
                Plot { label: "none".to_owned(), x: axis, y: Axis::linear("pages", "pages"), series: Vec::new() };
            let svg = plot.svg(Viewport::Narrow).into_text();
            assert!(svg.contains(">pages</text>") && !svg.contains("NaN") && !svg.contains("inf"), "{svg}");
            // The names of the axes, and that there is nothing: no numbers.
            assert!(svg.contains(">nothing to draw</text>"), "{svg}");
            assert_eq!(svg.matches("<text").count(), 3, "{svg}");
        }
    }

    #[test]
    fn a_series_without_points_is_not_named() {
        let mut plot = sizes(10);
        plot.series.push(Series::ours("absent", Ink::Three, SeriesLook::Points, Vec::new()));
        let svg = plot.svg(Viewport::Wide).into_text();
        assert!(svg.contains(">fit</text>") && !svg.contains("absent"), "{svg}");
    }

    #[test]
    fn a_long_name_is_shortened_and_names_take_lines() {
        let mut plot = sizes(10);
        plot.series[0].name = "n".repeat(400);
        let svg = plot.svg(Viewport::Narrow).into_text();
        assert!(svg.contains('…'));
        let height = |plot: &Plot| plot.body(Viewport::Narrow).2;
        assert!(height(&plot) > height(&sizes(10)));
    }
}
