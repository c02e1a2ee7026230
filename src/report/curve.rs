//! The text of the S-curve: how likely two documents are linked, by their similarity.

use crate::summary::CurvePoint;

/// Two lines: the similarities, and the share of pairs that are linked directly. None without points, as in summaries of a version that did
/// not store them.
pub fn curve(points: &[CurvePoint]) -> Vec<String> {
    if points.is_empty() {
        return Vec::new();
    }
    let line = |name: &str, cells: Vec<String>| {
        let cells: Vec<String> = cells.into_iter().map(|cell| format!("{cell:>6}")).collect();
        format!("{name:10}{}", cells.join(""))
    };
    let percent =
        |share: f64| if share > 0.999 && share < 1.0 { ">99.9".to_owned() } else { format!("{:.1}", 100.0 * share) };
    vec![
        line("Similar", points.iter().map(|point| format!("{:.2}", point.similarity)).collect()),
        line("Linked %", points.iter().map(|point| percent(point.chance)).collect()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Method;

    #[test]
    fn a_curve_is_two_lines_of_the_same_width() {
        let lines = curve(&CurvePoint::of_method(&Method::default()));
        assert_eq!(lines[0], "Similar     0.30  0.40  0.50  0.60  0.70  0.75  0.80  0.85  0.90  0.95  0.99");
        assert_eq!(lines[1], "Linked %     0.0   0.0   0.0   0.0   0.1   0.5   2.6  12.0  41.5  87.9 >99.9");
        assert!(curve(&[]).is_empty());
    }
}
