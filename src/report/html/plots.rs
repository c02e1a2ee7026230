//! Plots in a page: drawn for a wide one and for a phone, in the colours of the page.

use crate::markup::Html;
use crate::plot::{Plot, Viewport};

/// A figure: a plot and notes below it. The style of the page shows the drawing that fits its
/// width.
pub(super) fn figure(plot: &Plot, notes: &[String]) -> Html {
    let mut html = Html::default();
    html.own("<figure>\n<div class=\"plot on-wide\">").add(&plot.svg(Viewport::Wide)).own("</div>\n");
    html.own("<div class=\"plot on-narrow\">").add(&plot.svg(Viewport::Narrow)).own("</div>\n");
    html.add(&caption(notes)).own("</figure>\n");
    html
}

/// Notes below a figure.
fn caption(notes: &[String]) -> Html {
    let mut html = Html::default();
    for (number, note) in notes.iter().filter(|note| !note.is_empty()).enumerate() {
        html.own(if number == 0 { "<figcaption>" } else { "<br>\n" }).note(note);
    }
    if !html.is_empty() {
        html.own("</figcaption>\n");
    }
    html
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
        let html = figure(&plot, &["of <us>".to_owned(), String::new()]).into_text();
        assert_eq!(html.matches("<svg").count(), 2);
        assert!(html.contains("<figcaption>of &lt;us&gt;</figcaption>") && html.contains("&lt;x&gt;"), "{html}");
        assert!(!figure(&plot, &[]).into_text().contains("figcaption"));
    }
}
