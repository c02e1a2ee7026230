//! The S-curve: how likely two documents are linked, by their similarity.

use crate::sheet::Sheet;
use crate::summary::CurvePoint;

/// Chances below this and above one minus this are all alike to a reader.
const ALIKE: f64 = 0.0005;

/// Two lines: the similarities, and the share of pairs that are linked directly. Of the
/// similarities at which hardly any or nearly all pairs are linked, only those next to the others
/// are shown. None without points, as in summaries of a version that did not store them.
pub(super) fn curve(points: &[CurvePoint], sheet: &mut Sheet) {
    if points.is_empty() {
        return;
    }
    let percent =
        |share: f64| if share > 0.999 && share < 1.0 { ">99.9".to_owned() } else { format!("{:.1}", 100.0 * share) };
    // Chances ascend with similarities.
    let from = points.partition_point(|point| point.chance < ALIKE).saturating_sub(1);
    let to = points.partition_point(|point| point.chance < 1.0 - ALIKE) + 1;
    let shown = &points[from..to.min(points.len())];
    let line =
        |of: &dyn Fn(&CurvePoint) -> String| shown.iter().map(|point| format!("{:>6}", of(point))).collect::<String>();
    sheet.fact("Similar", line(&|point| format!("{:.2}", point.similarity)));
    sheet.fact("Linked %", line(&|point| percent(point.chance)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Method;

    #[test]
    fn a_curve_is_two_lines_of_the_same_width() {
        let lines = |points: &[CurvePoint]| {
            let mut sheet = Sheet::default();
            curve(points, &mut sheet);
            sheet.lines(Some(60))
        };
        assert_eq!(
            lines(&CurvePoint::of_method(&Method::default())),
            [
                "Similar    0.60  0.70  0.75  0.80  0.85  0.90  0.95  0.99",
                "Linked %    0.0   0.1   0.5   2.6  12.0  41.5  87.9 >99.9"
            ]
        );
        assert!(lines(&[]).is_empty());
    }
}
