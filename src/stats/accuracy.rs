//! Shares that are estimated from samples, with their confidence intervals.

/// The lower ends of the bands of similarity in which pairs are counted; the last band has only pairs of similarity 1.
pub const BANDS: [f64; 10] = [0.0, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98, 1.0];

/// The number of the band of a similarity, 0 to 1.
///
/// ```
/// use nigh::stats::{BANDS, band};
/// assert_eq!([0.0, 0.49, 0.8, 0.999, 1.0].map(band), [0, 0, 4, 8, 9]);
/// assert_eq!(BANDS[band(0.86)], 0.85);
/// ```
pub fn band(similarity: f64) -> usize {
    BANDS.partition_point(|low| *low <= similarity).saturating_sub(1)
}

/// A share that was estimated from a sample.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SampledShare {
    /// The estimate, 0 to 1.
    pub share: f64,
    /// The lower end of the 95% confidence interval.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

impl SampledShare {
    /// The share of `good` ones among `of` that were drawn independently: `None` if none was drawn. The interval is Wilson's (1927), which
    /// holds for few draws and for shares near 0 and 1.
    ///
    /// ```
    /// use nigh::stats::SampledShare;
    /// let all = SampledShare::of_counts(20.0, 20.0).unwrap();
    /// assert!(all.share == 1.0 && (all.low - 0.839).abs() < 0.001 && all.high == 1.0);
    /// assert_eq!(SampledShare::of_counts(0.0, 0.0), None);
    /// ```
    pub fn of_counts(good: f64, of: f64) -> Option<SampledShare> {
        (of > 0.0).then(|| SampledShare::new(good / of, of))
    }

    /// A share that was found as if of so many independent draws.
    fn new(share: f64, draws: f64) -> SampledShare {
        // The quantile of the normal distribution for 95%.
        let z2 = 1.959_964f64.powi(2);
        let middle = (share + z2 / (2.0 * draws)) / (1.0 + z2 / draws);
        let half = (z2 * (share * (1.0 - share) / draws + z2 / (4.0 * draws * draws))).sqrt() / (1.0 + z2 / draws);
        SampledShare { share, low: (middle - half).clamp(0.0, share), high: (middle + half).clamp(share, 1.0) }
    }

    /// The share over groups of draws, each with its weight, its number of good ones and its number: pairs of one page are not independent, so a
    /// group counts as one draw; and as less than one if others weigh more (Kish 1965). `None` without groups.
    pub fn of_groups(groups: &[(f64, f64, f64)]) -> Option<SampledShare> {
        let sum = |of: fn(&(f64, f64, f64)) -> f64| groups.iter().map(of).sum::<f64>();
        let (good, of) = (sum(|(weight, good, _)| weight * good), sum(|(weight, _, of)| weight * of));
        let squares = sum(|(weight, _, of)| (weight * of).powi(2));
        (of > 0.0).then(|| SampledShare::new(good / of, of * of / squares))
    }

    /// The share over strata, each with its number of members and the share that was sampled there.
    pub fn of_strata(strata: &[(f64, SampledShare)]) -> Option<SampledShare> {
        let members: f64 = strata.iter().map(|(members, _)| members).sum();
        if members <= 0.0 {
            return None;
        }
        let share = strata.iter().map(|(of, sampled)| of * sampled.share).sum::<f64>() / members;
        // Each end from the same ends of the strata (Zou and Donner 2008): a single stratum has its own interval.
        let half = |end: fn(&SampledShare) -> f64| {
            let part = |(of, sampled): &(f64, SampledShare)| (of / members * (end(sampled) - sampled.share)).powi(2);
            strata.iter().map(part).sum::<f64>().sqrt()
        };
        let (low, high) = (share - half(|sampled| sampled.low), share + half(|sampled| sampled.high));
        Some(SampledShare { share, low: low.max(0.0), high: high.min(1.0) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::mix;

    #[test]
    fn intervals_hold_the_share_as_often_as_they_say() {
        for (share, draws) in [(0.5, 20), (0.9, 50), (0.97, 100), (0.02, 200)] {
            let holds = (0..2000u64).filter(|round| {
                let good = (0..draws).filter(|draw| (mix(round << 20 | draw) as f64) < share * u64::MAX as f64).count();
                let SampledShare { low, high, .. } = SampledShare::of_counts(good as f64, draws as f64).unwrap();
                low <= share && share <= high
            });
            let covered = holds.count() as f64 / 2000.0;
            assert!((0.92..0.99).contains(&covered), "{share} of {draws}: {covered}");
        }
    }

    #[test]
    fn strata_count_by_their_members() {
        let certain = |share| SampledShare { share, low: share, high: share };
        let all = SampledShare::of_strata(&[(900.0, certain(1.0)), (100.0, certain(0.5))]).unwrap();
        assert!((all.share - 0.95).abs() < 1e-12 && all.low == all.high);
        let wide = SampledShare::of_counts(5.0, 10.0).unwrap();
        let all = SampledShare::of_strata(&[(900.0, certain(1.0)), (100.0, wide)]).unwrap();
        assert!(all.high - all.low < 0.11 && all.low < 0.95 && all.high > 0.95, "{all:?}");
        let one = SampledShare::of_strata(&[(7.0, wide)]).unwrap();
        assert!((one.low - wide.low).abs() < 1e-12 && (one.high - wide.high).abs() < 1e-12);
        assert_eq!(SampledShare::of_strata(&[]), None);
    }

    #[test]
    fn intervals_of_strata_and_groups_hold_the_share_too() {
        let draw = |round: u64, number: u64| mix(round << 20 | number) as f64 / u64::MAX as f64;
        let holds = |interval: SampledShare, share: f64| interval.low <= share && share <= interval.high;
        let (mut strata_hold, mut groups_hold) = (0, 0);
        for round in 0..2000 {
            let good =
                |from: u64, draws: u64, share: f64| (from..from + draws).filter(|n| draw(round, *n) < share).count();
            let of = |good: usize, draws: f64| SampledShare::of_counts(good as f64, draws).unwrap();
            let strata = [(700.0, of(good(0, 20, 0.95), 20.0)), (300.0, of(good(100, 20, 0.4), 20.0))];
            strata_hold += u32::from(holds(SampledShare::of_strata(&strata).unwrap(), 0.785));
            // One page in five has a large cluster; pages with and without are right as often.
            let group = |n: u64| {
                let weight = if draw(round, 1000 + n) < 0.2 { 10.0 } else { 1.0 };
                (weight, f64::from(u8::from(draw(round, 2000 + n) < 0.8)), 1.0)
            };
            let groups: Vec<_> = (0..60).map(group).collect();
            groups_hold += u32::from(holds(SampledShare::of_groups(&groups).unwrap(), 0.8));
        }
        assert!(strata_hold > 1840 && groups_hold > 1800, "{strata_hold} {groups_hold}");
    }

    #[test]
    fn groups_count_by_their_weights() {
        let share = SampledShare::of_groups(&[(10.0, 1.0, 2.0), (1.0, 2.0, 2.0)]).unwrap();
        assert!((share.share - 12.0 / 22.0).abs() < 1e-12 && share.low < 0.2, "{share:?}");
    }
}
