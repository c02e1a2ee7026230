//! Where values are on an axis, and where its ticks are.

use super::{Axis, Scale};
use crate::records::Week;
use crate::sheet::grouped;

/// The part of the axis beyond the values, where no bound is given.
const BEYOND: f64 = 0.04;

/// Values to places, from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Ruler {
    from: f64,
    to: f64,
    is_logarithmic: bool,
}

/// A mark of an axis.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tick {
    /// Where it is, from 0 to 1.
    pub at: f64,
    /// What it is called.
    pub label: String,
    /// Whether it is named before the others.
    pub is_main: bool,
}

impl Ruler {
    /// The ruler of an axis for the values of its series. Bars take half a step beyond their
    /// values.
    pub(super) fn of(axis: &Axis, values: impl Iterator<Item = f64>, beside: f64) -> Ruler {
        let is_logarithmic = axis.scale == Scale::Logarithmic;
        let is_placed = |value: &f64| value.is_finite() && (!is_logarithmic || *value > 0.0);
        let fixed = [axis.bounds.0, axis.bounds.1];
        let (mut least, mut most) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values.chain(fixed.into_iter().flatten()).filter(is_placed) {
            (least, most) = (least.min(value), most.max(value));
        }
        if let Scale::Names(names) = &axis.scale {
            return Ruler { from: -0.5, to: names.len().max(1) as f64 - 0.5, is_logarithmic };
        }
        if least > most {
            (least, most) = (1.0, if is_logarithmic { 10.0 } else { 2.0 });
        }
        let (from, to) = if is_logarithmic {
            (least / 1.25, most * 1.25)
        } else {
            let span = if most > least { most - least } else { most.abs().max(1.0) };
            (least - BEYOND * span - beside, most + BEYOND * span + beside)
        };
        Ruler {
            from: fixed[0].unwrap_or(from),
            to: fixed[1].unwrap_or(to).max(fixed[0].unwrap_or(from) + 1e-9),
            is_logarithmic,
        }
    }

    /// The place of a value.
    pub(super) fn at(&self, value: f64) -> f64 {
        if self.is_logarithmic {
            (value / self.from).ln() / (self.to / self.from).ln()
        } else {
            (value - self.from) / (self.to - self.from)
        }
    }

    /// The place of a value, if it is on the axis.
    pub(super) fn on(&self, value: f64) -> Option<f64> {
        Some(self.at(value)).filter(|at| at.is_finite() && (-1e-6..=1.0 + 1e-6).contains(at))
    }

    /// The ticks of an axis, at most about `most` of them.
    pub(super) fn ticks(&self, axis: &Axis, most: usize) -> Vec<Tick> {
        let values: Vec<(f64, String, bool)> = match &axis.scale {
            Scale::Names(names) => (0..).map(f64::from).zip(names).map(|(at, name)| (at, name.clone(), true)).collect(),
            Scale::Weeks(days) => {
                days.iter().map(|day| (*day, Week::from_days(*day as i32).to_string(), true)).collect()
            }
            Scale::Linear => self.steps(most),
            Scale::Logarithmic => self.powers(most),
        };
        let tick = |(value, label, is_main)| Some(Tick { at: self.on(value)?, label, is_main });
        values.into_iter().filter_map(tick).collect()
    }

    /// Round values at equal steps.
    fn steps(&self, most: usize) -> Vec<(f64, String, bool)> {
        let least = (self.to - self.from) / most.max(1) as f64;
        let power = 10f64.powf(least.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|of| of * power).into_iter().find(|step| *step >= 0.999 * least);
        let step = step.unwrap_or(10.0 * power);
        let decimals = (-step.log10() - 1e-9).ceil().max(0.0) as usize;
        let numbers = (self.from / step - 1e-6).ceil() as i64..=(self.to / step + 1e-6).floor() as i64;
        numbers.map(|number| (number as f64 * step, number_text(number as f64 * step, decimals), true)).collect()
    }

    /// Powers of ten, every so many if there are too many; with their doubles and fives if there
    /// are few.
    fn powers(&self, most: usize) -> Vec<(f64, String, bool)> {
        let (from, to) = ((self.from.log10() - 1e-9).ceil() as i32, (self.to.log10() + 1e-9).floor() as i32);
        let stride = ((to - from).max(0) as usize / most.max(1) + 1) as i32;
        let mut values = Vec::new();
        for power in from - 1..=to {
            let ten = 10f64.powi(power);
            let decimals = (-power).max(0) as usize;
            if power >= from && power.rem_euclid(stride) == 0 {
                values.push((ten, number_text(ten, decimals), true));
            }
            if to - from <= 1 {
                values.extend([2.0, 5.0].map(|of| (of * ten, number_text(of * ten, decimals), false)));
            }
        }
        values
    }
}

/// A number as people write it.
fn number_text(value: f64, decimals: usize) -> String {
    if value.abs() < 0.5 * 10f64.powi(-(decimals as i32)) {
        return "0".to_owned();
    }
    let sign = if value < 0.0 { "-" } else { "" };
    let size = value.abs();
    if decimals > 0 {
        return format!("{sign}{size:.decimals$}");
    }
    let size = size.round();
    if size < 1e6 || size % 1e5 != 0.0 {
        return format!("{sign}{}", grouped(size as u64));
    }
    let tenths = (size / 1e5).round() as u64;
    let rest = if tenths.is_multiple_of(10) { String::new() } else { format!(".{}", tenths % 10) };
    format!("{sign}{}{rest}M", grouped(tenths / 10))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis, values: &[f64], most: usize) -> Vec<String> {
        let ruler = Ruler::of(axis, values.iter().copied(), 0.0);
        ruler.ticks(axis, most).into_iter().map(|tick| tick.label).collect()
    }

    #[test]
    fn ticks_are_round() {
        let linear = Axis::linear("", "");
        assert_eq!(labels(&linear.clone().within(0.0, 100.0), &[], 5), ["0", "20", "40", "60", "80", "100"]);
        assert_eq!(labels(&linear.clone().within(0.0, 1.0), &[], 4), ["0", "0.5", "1.0"]);
        assert_eq!(labels(&linear.clone().within(0.0, 0.4), &[], 4), ["0", "0.1", "0.2", "0.3", "0.4"]);
        assert_eq!(labels(&linear.clone().within(-1.0, 86.0), &[], 5), ["0", "20", "40", "60", "80"]);
        assert_eq!(labels(&linear.within(0.0, 3e6), &[], 3), ["0", "1M", "2M", "3M"]);
        let log = Axis::logarithmic("", "");
        assert_eq!(labels(&log, &[1.0, 1e6], 7), ["1", "10", "100", "1,000", "10,000", "100,000", "1M"]);
        assert_eq!(labels(&log, &[1.0, 1e6], 3), ["1", "1,000", "1M"]);
        assert_eq!(labels(&log, &[2.0, 7.0], 5), ["2", "5"]);
        assert_eq!(labels(&log, &[0.05, 3.0], 9), ["0.05", "0.1", "0.2", "0.5", "1", "2"]);
    }

    #[test]
    fn no_values_are_an_axis_too() {
        for axis in [Axis::linear("", ""), Axis::logarithmic("", ""), Axis::weeks([]), Axis::names("", "", ["a"; 0])] {
            let ruler = Ruler::of(&axis, [f64::NAN, f64::INFINITY].into_iter(), 0.0);
            assert!(ruler.at(1.5).is_finite());
            ruler.ticks(&axis, 5).iter().for_each(|tick| assert!((0.0..=1.0).contains(&tick.at)));
        }
        let one = Ruler::of(&Axis::linear("", ""), [5.0].into_iter(), 0.0);
        assert!((0.0..1.0).contains(&one.at(5.0)));
    }
}
