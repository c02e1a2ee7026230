//! How points, lines and bars look: series differ by shapes and dashes, so that they are told apart
//! without colours. A bar has the shape of its series in it, where it has room.

use std::fmt::Write as _;

use super::{Ink, Origin};

/// Half the size of a mark.
const HALF: f64 = 3.5;

/// Adds the mark of a point: filled for numbers of the store, hollow for others.
pub(super) fn point(out: &mut String, ink: Ink, origin: Origin, x: f64, y: f64) {
    let class = if origin == Origin::Ours { "dot" } else { "ring" };
    // Hollow ones are larger, so that they show around a filled one.
    let r = if origin == Origin::Ours { HALF } else { HALF + 2.0 };
    shape(out, class, ink, r, (x, y));
}

/// Adds the mark of a series to one of its bars, in the colour of the ground.
pub(super) fn on_bar(out: &mut String, ink: Ink, x: f64, y: f64) {
    shape(out, "on-bar", ink, 0.75 * HALF, (x, y));
}

/// The shape of a colour, of about half a size `r`, around a place.
fn shape(out: &mut String, class: &str, ink: Ink, r: f64, (x, y): (f64, f64)) {
    let path = match ink {
        Ink::Text | Ink::One => None,
        Ink::Two => Some([(-r, -r), (r, -r), (r, r), (-r, r)].to_vec()),
        Ink::Three => Some([(0.0, -1.3 * r), (1.2 * r, 0.9 * r), (-1.2 * r, 0.9 * r)].to_vec()),
        Ink::Four => Some([(0.0, -1.4 * r), (1.4 * r, 0.0), (0.0, 1.4 * r), (-1.4 * r, 0.0)].to_vec()),
        Ink::Five => Some([(0.0, 1.3 * r), (1.2 * r, -0.9 * r), (-1.2 * r, -0.9 * r)].to_vec()),
        Ink::Six => Some([(-1.6 * r, -0.5 * r), (1.6 * r, -0.5 * r), (1.6 * r, 0.5 * r), (-1.6 * r, 0.5 * r)].to_vec()),
        Ink::Seven => {
            Some([(-0.5 * r, -1.6 * r), (0.5 * r, -1.6 * r), (0.5 * r, 1.6 * r), (-0.5 * r, 1.6 * r)].to_vec())
        }
    };
    // Writing to a text cannot fail.
    let _ = match path {
        None => write!(out, "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{r:.1}\"/>"),
        Some(corners) => {
            let corners = corners.iter().map(|(across, up)| format!("{:.1},{:.1}", x + across, y + up));
            write!(out, "<polygon class=\"{class}\" points=\"{}\"/>", corners.collect::<Vec<_>>().join(" "))
        }
    };
}

/// Adds a line through some places.
pub(super) fn line(out: &mut String, ink: Ink, origin: Origin, places: &[(f64, f64)]) {
    let points: Vec<String> = places.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    let dashes = dashes(ink, origin);
    let dashes = if dashes.is_empty() { String::new() } else { format!(" stroke-dasharray=\"{dashes}\"") };
    let _ = write!(out, "<polyline class=\"stroke\"{dashes} points=\"{}\"/>", points.join(" "));
}

/// The dashes of a line: none for the first colour.
fn dashes(ink: Ink, origin: Origin) -> &'static str {
    match (origin, ink) {
        (Origin::Published, _) => "2 5",
        (_, Ink::Text | Ink::One) => "",
        (_, Ink::Two) => "9 4",
        (_, Ink::Three) => "3 3",
        (_, Ink::Four) => "12 4 3 4",
        (_, Ink::Five) => "6 6",
        (_, Ink::Six) => "14 3",
        (_, Ink::Seven) => "3 6",
    }
}
