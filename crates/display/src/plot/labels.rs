//! Which ticks are named, so that no two names overlap.
//!
//! The font of a reader is not known. A character counts as 0.62 of the size of the letters, which
//! is more than those of common fonts without serifs have on average.

use unicode_width::UnicodeWidthStr as _;

use super::scale::Tick;

/// The width of a character, over the size of the letters.
const CHARACTER: f64 = 0.62;
/// The least gap between two names, over the size of the letters.
const GAP: f64 = 0.7;

/// The width that a text takes, at most, in letters of a size.
pub(super) fn width(text: &str, size: f64) -> f64 {
    CHARACTER * size * text.width() as f64
}

/// The characters that fit a width.
pub(super) fn fitting(room: f64, size: f64) -> usize {
    (room / (CHARACTER * size)).floor().max(1.0) as usize
}

/// A name below the axis across.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PlacedLabel {
    pub text: String,
    /// The middle of the text.
    pub middle: f64,
    /// The line below the axis, from 0.
    pub line: usize,
}

/// The names below an axis from `left` to `right`, in letters of a size. Nothing is left of 0 or
/// right of `most`. If all must be named they take two lines, where one is too short; else some are
/// left out.
pub(super) fn across(ticks: &[Tick], [left, right]: [f64; 2], most: f64, size: f64, all: bool) -> Vec<PlacedLabel> {
    let place = |tick: &Tick| {
        let half = 0.5 * width(&tick.label, size);
        let middle = left + tick.at * (right - left);
        (middle.min(most - half).max(half), half)
    };
    let fits =
        |one: &[(f64, f64)]| one.windows(2).all(|pair| pair[0].0 + pair[0].1 + GAP * size <= pair[1].0 - pair[1].1);
    let places: Vec<(f64, f64)> = ticks.iter().map(place).collect();
    let label = |number: usize, line| PlacedLabel { text: ticks[number].label.clone(), middle: places[number].0, line };
    if all && !fits(&places) {
        let every_second = |first: usize| places.iter().skip(first).step_by(2).copied().collect::<Vec<_>>();
        if fits(&every_second(0)) && fits(&every_second(1)) {
            return (0..ticks.len()).map(|number| label(number, number % 2)).collect();
        }
    }
    if ticks.iter().all(|tick| tick.is_main) {
        let of_stride = |stride: usize| (0..ticks.len()).step_by(stride).collect::<Vec<usize>>();
        let stride = (1..=ticks.len())
            .find(|stride| fits(&of_stride(*stride).into_iter().map(|number| places[number]).collect::<Vec<_>>()));
        return of_stride(stride.unwrap_or(1)).into_iter().map(|number| label(number, 0)).collect();
    }
    kept(ticks, place, GAP * size).into_iter().map(|number| label(number, 0)).collect()
}

/// The numbers of the ticks that are named beside an axis of some height, in letters of a size.
pub(super) fn up(ticks: &[Tick], height: f64, size: f64) -> Vec<usize> {
    kept(ticks, |tick| (height * tick.at, 0.6 * size), 0.2 * size)
}

/// The numbers of ticks that have room, those that come first before the others; `place` is the
/// middle of a name and half its length.
fn kept(ticks: &[Tick], place: impl Fn(&Tick) -> (f64, f64), gap: f64) -> Vec<usize> {
    let mut numbers: Vec<usize> = (0..ticks.len()).collect();
    numbers.sort_by_key(|number| !ticks[*number].is_main);
    let mut kept: Vec<usize> = Vec::new();
    for number in numbers {
        let (middle, half) = place(&ticks[number]);
        let is_free = |other: &usize| {
            let (of_other, half_of_other) = place(&ticks[*other]);
            (middle - of_other).abs() >= half + half_of_other + gap
        };
        if kept.iter().all(is_free) {
            kept.push(number);
        }
    }
    kept.sort_unstable();
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticks(labels: &[&str]) -> Vec<Tick> {
        let last = (labels.len() - 1).max(1) as f64;
        let tick = |(number, label): (usize, &&str)| Tick {
            at: number as f64 / last,
            label: (*label).to_owned(),
            is_main: true,
        };
        labels.iter().enumerate().map(tick).collect()
    }

    #[test]
    fn names_do_not_overlap_and_stay_inside() {
        let names = ["2024-01-08", "2024-01-15", "2024-01-22", "2024-01-29", "2024-02-05", "2024-02-12"];
        let ticks = ticks(&names);
        for most in 90..900 {
            for all in [false, true] {
                let placed = across(&ticks, [40.0, f64::from(most) - 10.0], f64::from(most), 13.0, all);
                assert!(!placed.is_empty());
                for (number, one) in placed.iter().enumerate() {
                    let half = 0.5 * width(&one.text, 13.0);
                    assert!(one.middle >= half - 1e-9 && one.middle + half <= f64::from(most) + 1e-9, "{most}");
                    for other in placed[..number].iter().filter(|other| other.line == one.line) {
                        assert!(other.middle + 2.0 * half <= one.middle, "{most}");
                    }
                }
            }
        }
        let wide = across(&ticks, [40.0, 890.0], 900.0, 13.0, false);
        assert_eq!(wide.len(), names.len(), "all are named where there is room");
        let two_lines = across(&ticks, [40.0, 440.0], 450.0, 13.0, true);
        assert!(two_lines.len() == names.len() && two_lines.iter().any(|label| label.line == 1));
    }

    #[test]
    fn main_ticks_are_named_before_others() {
        let mut all = ticks(&["1", "2", "5", "10", "20", "50", "100"]);
        all.iter_mut().for_each(|tick| tick.is_main = tick.label.starts_with('1'));
        let named: Vec<&str> = up(&all, 60.0, 13.0).into_iter().map(|number| all[number].label.as_str()).collect();
        assert_eq!(named, ["1", "10", "100"]);
        assert_eq!(up(&all, 600.0, 13.0).len(), 7);
    }
}
