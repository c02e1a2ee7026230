//! Plots in a page: drawn for a wide one and for a phone, in the colours of the page.

use crate::markup::Html;
use crate::plot::{Plot, Viewport};

/// A figure: a plot and notes below it. The style of the page shows the drawing that fits its
/// width.
pub(super) fn figure(plot: &Plot, notes: &[String]) -> String {
    let [wide, narrow] = [Viewport::Wide, Viewport::Narrow].map(|shape| plot.svg(shape));
    format!(
        "<figure>\n<div class=\"plot on-wide\">{wide}</div>\n<div class=\"plot on-narrow\">{narrow}</div>\n{}</figure>\n",
        caption(notes)
    )
}

/// Notes below a figure.
fn caption(notes: &[String]) -> String {
    let mut html = Html::default();
    for (number, note) in notes.iter().filter(|note| !note.is_empty()).enumerate() {
        html.own(if number == 0 { "<figcaption>" } else { "<br>\n" }).note(note);
    }
    let text = html.into_text();
    if text.is_empty() { text } else { text + "</figcaption>\n" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::{Axis, Ink, Series, SeriesLook};

    #[test]
    fn a_figure_is_drawn_twice_and_its_notes_are_text() {
        let plot = Plot {
            label: "how many".to_owned(),
            x: Axis::linear("<x>", "x"),
            y: Axis::linear("y", "y"),
            series: vec![Series::ours("a", Ink::One, SeriesLook::Line, vec![(0.0, 1.0), (1.0, 2.0)])],
        };
        let html = figure(&plot, &["of <us>".to_owned(), String::new()]);
        assert_eq!(html.matches("<svg").count(), 2);
        assert!(html.contains("<figcaption>of &lt;us&gt;</figcaption>") && html.contains("&lt;x&gt;"), "{html}");
        assert!(!figure(&plot, &[]).contains("figcaption"));
    }
}
