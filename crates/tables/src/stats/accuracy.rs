//! Shares that are estimated from samples, with their confidence intervals.
//!
//! ```text
//! of_counts   few draws of one stratum: Clopper and Pearson, which holds at least as often as it says
//! of_draws    Wilson: shorter, and holds as often as it says on average
//! of_groups   draws that come in groups: Wilson, of as many draws as Kish counts
//! of_strata   several strata: from the ends of their intervals
//! Expectation what probabilities of links say of the share of pairs in one cluster
//! ```
//!
//! Only sums, products, quotients and square roots are used, which are the same on every machine.

/// The lower ends of the bands of similarity in which pairs are counted; the last band has only
/// pairs of similarity 1.
pub const BANDS: [f64; 10] = [0.0, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98, 1.0];

/// The number of the band of a similarity, 0 to 1.
///
/// ```
/// use nigh_tables::stats::{BANDS, band};
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

/// The quantile of the normal distribution for intervals of 95%.
const NORMAL_QUANTILE: f64 = 1.959_964;
/// The probability of each side outside of an interval.
const SIDE: f64 = 0.025;
/// Smaller variances of a share are taken for rounding.
const LEAST_VARIANCE: f64 = 1e-12;

impl SampledShare {
    /// The share of `good` ones among `of` that were drawn independently: `None` if none was drawn.
    /// The interval is that of Clopper and Pearson (1934): its ends are the shares of which so many
    /// good ones, or more, and so many or fewer, have the probability 2.5%. It holds at least as
    /// often as it says, for any number of draws.
    ///
    /// ```
    /// use nigh_tables::stats::SampledShare;
    /// let all = SampledShare::of_counts(20, 20).unwrap();
    /// assert!(all.share == 1.0 && (all.low - 0.832).abs() < 0.001 && all.high == 1.0);
    /// assert_eq!(SampledShare::of_counts(0, 0), None);
    /// ```
    pub fn of_counts(good: u64, of: u64) -> Option<SampledShare> {
        let good = good.min(of);
        let interval = || SampledShare {
            share: good as f64 / of as f64,
            low: least_share(good, of),
            high: 1.0 - least_share(of - good, of),
        };
        (of > 0).then(interval)
    }

    /// A share, 0 to 1, that was found as if of so many independent draws, which are above 0 and
    /// need not be a whole number. The interval is Wilson's (1927), which holds for few draws and
    /// for shares near 0 and 1.
    ///
    /// ```
    /// use nigh_tables::stats::SampledShare;
    /// let all = SampledShare::of_draws(1.0, 20.0);
    /// assert!((all.low - 0.839).abs() < 0.001 && all.high == 1.0);
    /// ```
    pub fn of_draws(share: f64, draws: f64) -> SampledShare {
        let share = share.clamp(0.0, 1.0);
        let z2 = NORMAL_QUANTILE.powi(2);
        let middle = (share + z2 / (2.0 * draws)) / (1.0 + z2 / draws);
        let half = (z2 * (share * (1.0 - share) / draws + z2 / (4.0 * draws * draws))).sqrt() / (1.0 + z2 / draws);
        SampledShare { share, low: (middle - half).clamp(0.0, share), high: (middle + half).clamp(share, 1.0) }
    }

    /// The share over groups of draws, each with its weight, its number of good ones and its
    /// number: pairs of one page are not independent, so a group counts as one draw; and as less
    /// than one if others weigh more (Kish 1965). `None` without groups.
    pub fn of_groups(groups: &[(f64, f64, f64)]) -> Option<SampledShare> {
        let sum = |of: fn(&(f64, f64, f64)) -> f64| groups.iter().map(of).sum::<f64>();
        let (good, of) = (sum(|(weight, good, _)| weight * good), sum(|(weight, _, of)| weight * of));
        let squares = sum(|(weight, _, of)| (weight * of).powi(2));
        (of > 0.0).then(|| SampledShare::of_draws(good / of, of * of / squares))
    }

    /// The share over strata, each with its number of members and the share that was sampled there.
    pub fn of_strata(strata: &[(f64, SampledShare)]) -> Option<SampledShare> {
        let members: f64 = strata.iter().map(|(members, _)| members).sum();
        if members <= 0.0 {
            return None;
        }
        let share = strata.iter().map(|(of, sampled)| of * sampled.share).sum::<f64>() / members;
        // Each end from the same ends of the strata (Zou and Donner 2008): a single stratum has its
        // own interval.
        let half = |end: fn(&SampledShare) -> f64| {
            let part = |(of, sampled): &(f64, SampledShare)| (of / members * (end(sampled) - sampled.share)).powi(2);
            strata.iter().map(part).sum::<f64>().sqrt()
        };
        let (low, high) = (share - half(|sampled| sampled.low), share + half(|sampled| sampled.high));
        Some(SampledShare { share, low: low.max(0.0), high: high.min(1.0) })
    }
}

/// The share of which `good` of `of` draws, or more, have the probability [`SIDE`]; 0 for no good
/// ones.
fn least_share(good: u64, of: u64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    // Halved until the ends are neighbours.
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if binomial_tail(good, of, middle) < SIDE {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

/// The probability that at least `least` of `draws` independent draws are good, if each is with the
/// probability `chance`.
///
/// ```
/// use nigh_tables::stats::binomial_tail;
/// assert!((binomial_tail(2, 3, 0.5) - 0.5).abs() < 1e-12);
/// assert_eq!([binomial_tail(0, 3, 0.2), binomial_tail(4, 3, 0.2), binomial_tail(3, 3, 1.0)], [1.0, 0.0, 1.0]);
/// ```
pub fn binomial_tail(least: u64, draws: u64, chance: f64) -> f64 {
    if least == 0 || least <= draws && chance >= 1.0 {
        return 1.0;
    }
    if least > draws || chance <= 0.0 {
        return 0.0;
    }
    let odds = chance / (1.0 - chance);
    // Each number's probability, over that of the most likely one: nothing overflows, and what
    // underflows does not count.
    let likeliest = (((draws + 1) as f64 * chance) as u64).min(draws);
    let (mut all, mut tail) = (0.0, 0.0);
    let mut add = |number: u64, probability: f64| {
        all += probability;
        if number >= least {
            tail += probability;
        }
    };
    let mut probability = 1.0;
    for number in likeliest..=draws {
        add(number, probability);
        probability *= (draws - number) as f64 / (number + 1) as f64 * odds;
    }
    probability = 1.0;
    for number in (0..likeliest).rev() {
        probability *= (number + 1) as f64 / (draws - number) as f64 / odds;
        add(number, probability);
    }
    tail / all
}

/// The 97.5% quantile of Student's distribution with so many degrees of freedom, 1 or more: the
/// expansion of Cornish and Fisher around that of the normal distribution (Abramowitz and Stegun
/// 1964, 26.7.5). It is 11% too small for one degree, 0.8% for two, and within 0.2% from three on.
fn students_quantile(degrees: f64) -> f64 {
    let z = NORMAL_QUANTILE;
    let z2 = z * z;
    let (z3, z5) = (z2 * z, z2 * z2 * z);
    let (z7, z9) = (z5 * z2, z5 * z2 * z2);
    let terms = [
        (z3 + z) / 4.0,
        (5.0 * z5 + 16.0 * z3 + 3.0 * z) / 96.0,
        (3.0 * z7 + 19.0 * z5 + 17.0 * z3 - 15.0 * z) / 384.0,
        (79.0 * z9 + 776.0 * z7 + 1482.0 * z5 - 1920.0 * z3 - 945.0 * z) / 92160.0,
    ];
    z + terms.iter().rev().fold(0.0f64, |sum, term| (sum + term) / degrees)
}

/// What is expected of the similar pairs of a sampled page.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExpectedPairs {
    /// How many sampled pages it stands for.
    pub stands_for: f64,
    /// The pages that are similar to it enough, as far as the sample says; above 0.
    pub similar: f64,
    /// The mean probability that it is linked with one of these directly.
    pub direct: f64,
    /// The probability that it is in one cluster with any other page, at most; `direct` or more.
    pub most: f64,
}

/// The share of similar pairs that are expected in one cluster, by probabilities of direct links.
///
/// Pages are in one cluster also through third pages, so the expectation has two ends: the share of
/// pairs that are linked directly, and the share of pairs whose sampled page is linked at all.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Expectation {
    /// The expected share of pairs that are linked directly, 0 to 1.
    pub share: f64,
    /// The expected share of pairs in one cluster, at most.
    pub most: f64,
    /// The lower end of the 95% interval of the share of all pairs in one cluster: that of `share`.
    pub low: f64,
    /// Its upper end: that of `most`.
    pub high: f64,
}

impl Expectation {
    /// The expectation for all similar pairs of `population` pages, of which `sampled` were; `None`
    /// without pairs.
    ///
    /// A page p stands for f pages, and has d similar ones, each with the probability c. The
    /// variance of the mean of c over all pairs is
    ///
    /// ```text
    /// part (sum of f d² (d + 1) c (1 - c)) / (sum of f d)²                                a cluster of d + 1 pages is one draw
    /// + (1 - part) sampled / (sampled - 1) (sum of f (d (c - mean))²) / (sum of f d)²     other pages might have been sampled
    /// ```
    ///
    /// where part = sampled / population. Each end is that of a prediction for as many draws as
    /// have this variance, and wider by Student's quantile: the variance itself is known from as
    /// many pages as Kish (1965) counts. A variance of 0 says nothing of pairs that were not
    /// sampled: then these pages are the draws.
    ///
    /// ```
    /// use nigh_tables::stats::{Expectation, ExpectedPairs};
    /// let page = |direct, most| ExpectedPairs { stands_for: 1.0, similar: 2.0, direct, most };
    /// let pages = [page(0.5, 0.6), page(0.7, 0.8), page(0.6, 0.7)];
    /// let Expectation { share, most, low, high } = Expectation::of(&pages, 100, 1000).unwrap();
    /// assert!((share - 0.6).abs() < 1e-12 && (most - 0.7).abs() < 1e-12 && low < share && most < high);
    /// ```
    pub fn of(pages: &[ExpectedPairs], sampled: u64, population: u64) -> Option<Expectation> {
        let pairs = sum(pages, |page| page.stands_for * page.similar);
        let squares = sum(pages, |page| page.stands_for * page.similar.powi(2));
        let draws = (pairs * pairs / squares).max(2.0);
        let narrower = (NORMAL_QUANTILE / students_quantile(draws - 1.0)).powi(2);
        let part = (sampled as f64 / population.max(1) as f64).min(1.0);
        let corrected = sampled as f64 / sampled.saturating_sub(1).max(1) as f64;
        let of_chances = |chance: fn(&ExpectedPairs) -> f64| {
            let mean = sum(pages, |page| page.stands_for * page.similar * chance(page)) / pairs;
            let of_clusters = sum(pages, |page| {
                let ExpectedPairs { stands_for, similar, .. } = *page;
                stands_for * similar.powi(2) * (similar + 1.0) * chance(page) * (1.0 - chance(page))
            });
            let of_pages = sum(pages, |page| page.stands_for * (page.similar * (chance(page) - mean)).powi(2));
            let variance = (part * of_clusters + (1.0 - part) * corrected * of_pages) / (pairs * pairs);
            let spread = mean * (1.0 - mean);
            let is_known = spread.min(variance) > LEAST_VARIANCE;
            predicted(mean, narrower * if is_known { spread / variance } else { draws })
        };
        (pairs > 0.0).then(|| {
            let (direct, most) = (of_chances(|page| page.direct), of_chances(|page| page.most));
            Expectation { share: direct.share, most: most.share, low: direct.low, high: most.high }
        })
    }
}

/// The most draws of a prediction.
const MOST_DRAWS: f64 = 1e5;

/// The interval that the share of good ones among so many draws is in, given the expected one:
/// Wilson's, and as much of that of the binomial distribution as is outside of it. Near 1 all may
/// be good though Wilson's ends below 1.
fn predicted(share: f64, draws: f64) -> SampledShare {
    let of = draws.round().clamp(1.0, MOST_DRAWS) as u64;
    // How many are exceeded with no more than this probability.
    let most = |probability: f64| {
        let (mut low, mut high) = (0, of);
        while low < high {
            let middle = low.midpoint(high);
            if binomial_tail(middle + 1, of, share) <= probability {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        low as f64 / of as f64
    };
    let wilson = SampledShare::of_draws(share, draws);
    SampledShare { share, low: wilson.low.min(most(1.0 - SIDE)), high: wilson.high.max(most(SIDE)) }
}

/// The sum of a number over pages, in their order.
fn sum(pages: &[ExpectedPairs], of: impl Fn(&ExpectedPairs) -> f64) -> f64 {
    pages.iter().map(of).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::mix;

    /// A number from 0 to 1, by the number of a round and of a draw.
    fn draw(round: u64, number: u64) -> f64 {
        mix(round << 20 | number) as f64 / u64::MAX as f64
    }

    #[test]
    fn intervals_hold_the_share_as_often_as_they_say() {
        for (share, draws) in [(0.5, 20), (0.9, 50), (0.97, 100), (0.02, 200)] {
            let (mut exact_hold, mut wilson_hold) = (0, 0);
            for round in 0..2000 {
                let good = (0..draws).filter(|number| draw(round, *number) < share).count() as u64;
                let holds = |interval: SampledShare| u32::from(interval.low <= share && share <= interval.high);
                exact_hold += holds(SampledShare::of_counts(good, draws).unwrap());
                wilson_hold += holds(SampledShare::of_draws(good as f64 / draws as f64, draws as f64));
            }
            assert!(exact_hold > 1880, "{share} of {draws}: {exact_hold}");
            assert!((1840..1980).contains(&wilson_hold), "{share} of {draws}: {wilson_hold}");
        }
    }

    #[test]
    fn predictions_hold_the_share_of_draws() {
        for (share, draws) in [(0.9991, 1400_u64), (0.997, 1400), (0.6, 50), (0.02, 60)] {
            let SampledShare { low, high, .. } = predicted(share, draws as f64);
            let of_draws =
                |round: u64| (0..draws).filter(|number| draw(round, *number) < share).count() as f64 / draws as f64;
            let held = (0..1000).filter(|round| (low..=high).contains(&of_draws(*round))).count();
            assert!(held > 940, "{share} of {draws}: {held}, {low} to {high}");
        }
    }

    #[test]
    fn exact_intervals_are_those_of_tables() {
        let tables = [
            ((5, 5), (0.4782, 1.0)),
            ((4, 5), (0.2836, 0.9949)),
            ((0, 10), (0.0, 0.3085)),
            ((50, 100), (0.3983, 0.6017)),
            ((999, 1000), (0.9944, 1.0)),
        ];
        for ((good, of), (low, high)) in tables {
            let found = SampledShare::of_counts(good, of).unwrap();
            assert!((found.low - low).abs() < 5e-5 && (found.high - high).abs() < 5e-5, "{good} of {of}: {found:?}");
        }
    }

    #[test]
    fn tails_are_those_of_a_plain_sum() {
        let ways = |draws: u64, good: u64| (0..good).fold(1.0, |ways, at| ways * (draws - at) as f64 / (at + 1) as f64);
        let plain = |least: u64, draws: u64, chance: f64| {
            let probability =
                |good: u64| ways(draws, good) * chance.powi(good as i32) * (1.0 - chance).powi((draws - good) as i32);
            (least..=draws).map(probability).sum::<f64>()
        };
        for draws in [1, 2, 7, 40] {
            for least in 0..=draws + 1 {
                for chance in [0.0, 1e-9, 0.025, 0.3, 0.5, 0.8, 0.999, 1.0] {
                    let (found, wanted) = (binomial_tail(least, draws, chance), plain(least, draws, chance));
                    assert!((found - wanted).abs() < 1e-12, "{least} of {draws}, {chance}: {found} {wanted}");
                }
                // So many, or more, are as seldom as the interval says at its lower end; so many,
                // or fewer, at its upper one.
                if let Some(of) = SampledShare::of_counts(least, draws).filter(|_| least <= draws) {
                    let ends = [plain(least, draws, of.low), 1.0 - plain(least + 1, draws, of.high)];
                    assert!(least == 0 || (ends[0] - 0.025).abs() < 1e-9, "{least} of {draws}: {ends:?}");
                    assert!(least == draws || (ends[1] - 0.025).abs() < 1e-9, "{least} of {draws}: {ends:?}");
                }
            }
        }
        // Many draws: none overflows.
        assert!((binomial_tail(500, 1000, 0.5) - 0.5126).abs() < 1e-4);
        assert!(binomial_tail(1000, 1000, 1e-5) == 0.0 && binomial_tail(1, 1000, 1e-12) > 0.0);
    }

    #[test]
    fn quantiles_are_those_of_tables() {
        for (degrees, wanted, error) in
            [(1.0, 12.706, 0.12), (2.0, 4.303, 0.01), (3.0, 3.182, 0.01), (5.0, 2.571, 0.01), (10.0, 2.228, 0.01)]
        {
            let found = students_quantile(degrees);
            assert!((found / wanted - 1.0f64).abs() < error, "{degrees}: {found}");
        }
        assert!((students_quantile(100.0) - 1.984).abs() < 0.001);
        assert!((students_quantile(1e9) - NORMAL_QUANTILE).abs() < 1e-6);
    }

    #[test]
    fn expectations_hold_the_share_of_pairs_in_one_cluster() {
        // Clusters of two to nine pages, each linked or not; one page in five is sampled.
        let sizes: Vec<u64> = (0..400).map(|number| 2 + mix(number) % 8).collect();
        let chance = |cluster: usize| 0.3 + 0.7 * draw(1 << 30, cluster as u64);
        let pairs: u64 = sizes.iter().map(|size| size * (size - 1)).sum();
        let holds = (0..1000u64).filter(|round| {
            let (mut linked, mut pages, mut sampled) = (0, Vec::new(), 0);
            for (cluster, size) in sizes.iter().enumerate() {
                let number = cluster as u64 * 16;
                linked += size * (size - 1) * u64::from(draw(*round, number) < chance(cluster));
                let of_cluster = (1..=*size).filter(|page| draw(*round, number + page) < 0.2).count();
                sampled += of_cluster as u64;
                let (similar, direct) = ((size - 1) as f64, chance(cluster));
                let page = ExpectedPairs { stands_for: 1.0, similar, direct, most: direct };
                pages.extend(std::iter::repeat_n(page, of_cluster));
            }
            let Expectation { low, high, .. } = Expectation::of(&pages, sampled, sizes.iter().sum()).unwrap();
            let share = linked as f64 / pairs as f64;
            low <= share && share <= high
        });
        let holds = holds.count();
        assert!((920..=1000).contains(&holds), "{holds}");
    }

    #[test]
    fn expectations_of_equal_chances_are_not_certain() {
        let page = |direct, most| ExpectedPairs { stands_for: 2.0, similar: 3.0, direct, most };
        // All pages but one are sampled, or one in a thousand million.
        for (share, population) in [(0.0, 21), (0.0, 20_000_000_000), (0.9, 21), (1.0, 21), (1.0, 20_000_000_000)] {
            let found = Expectation::of(&[page(share, share); 10], 20, population).unwrap();
            assert!((found.share - share).abs() < 1e-12 && found.most == found.share, "{found:?}");
            assert!(found.high - found.low > 0.05 && found.low <= share && share <= found.high, "{found:?}");
        }
        let wider = Expectation::of(&[page(0.5, 0.9); 10], 20, 400).unwrap();
        let direct = Expectation::of(&[page(0.5, 0.5); 10], 20, 400).unwrap();
        assert!(wider.low == direct.low && wider.high > 0.9, "{wider:?} {direct:?}");
        assert_eq!(Expectation::of(&[], 20, 400), None);
    }

    #[test]
    fn strata_count_by_their_members() {
        let certain = |share| SampledShare { share, low: share, high: share };
        let all = SampledShare::of_strata(&[(900.0, certain(1.0)), (100.0, certain(0.5))]).unwrap();
        assert!((all.share - 0.95).abs() < 1e-12 && all.low == all.high);
        let wide = SampledShare::of_counts(5, 10).unwrap();
        let all = SampledShare::of_strata(&[(900.0, certain(1.0)), (100.0, wide)]).unwrap();
        assert!(all.high - all.low < 0.11 && all.low < 0.95 && all.high > 0.95, "{all:?}");
        let one = SampledShare::of_strata(&[(7.0, wide)]).unwrap();
        assert!((one.low - wide.low).abs() < 1e-12 && (one.high - wide.high).abs() < 1e-12);
        assert_eq!(SampledShare::of_strata(&[]), None);
    }

    #[test]
    fn intervals_of_strata_and_groups_hold_the_share_too() {
        let holds = |interval: SampledShare, share: f64| interval.low <= share && share <= interval.high;
        let (mut strata_hold, mut groups_hold) = (0, 0);
        for round in 0..2000 {
            let good =
                |from: u64, draws: u64, share: f64| (from..from + draws).filter(|n| draw(round, *n) < share).count();
            let of = |good: usize| SampledShare::of_counts(good as u64, 20).unwrap();
            let strata = [(700.0, of(good(0, 20, 0.95))), (300.0, of(good(100, 20, 0.4)))];
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
