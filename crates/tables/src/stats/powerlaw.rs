//! Fits a power law to a distribution of sizes: p(x) = x^-a / zeta(a, x_min) for the integers x >=
//! x_min.
//!
//! Cluster sizes follow such a law with an exponent a of about 2.5 (Fetterly, Manasse, Najork 2004,
//! section 2 and Fig. 1). The method is that of Clauset, Shalizi, Newman 2009 (*Power-law
//! distributions in empirical data*, sections 3.1 to 3.3), for discrete data:
//!
//! 1. For each candidate x_min, take the exponent of maximum likelihood. At that exponent the mean
//!    of ln x expected by the law equals the observed mean. The expected mean falls as a grows, so
//!    bisection finds it.
//! 2. The distance of a candidate is the Kolmogorov-Smirnov distance: the largest difference
//!    between the two cumulative distributions, over all integers >= x_min.
//! 3. Take the candidate with the smallest distance.
//!
//! The candidates are the 50 smallest sizes, and at most 50 of the larger ones, geometrically
//! spaced. With d distinct sizes a candidate costs O(d), and all of them O(100 d): 10,000 distinct
//! sizes take well under a second.
//!
//! Limitations. A best fit is not a good fit: nothing here tests whether another law fits better.
//! x_min is one of at most 100 sizes. Machines round `ln` and `powf` differently, so the last
//! digits may differ: round the exponent to three decimals. Of two distances closer than `TIE`,
//! every machine takes the smaller x_min.

/// The minimum number of observations in a tail: below about 50 the estimate is biased (Clauset
/// 2009, section 3.3).
pub const MIN_TAIL: u64 = 50;

/// The number of smallest sizes that are all candidates, and the maximum number of candidates among
/// the larger sizes.
const DENSE: usize = 50;
/// Distances closer than this are equal.
const TIE: f64 = 1e-9;
/// The range of exponents. Above 30 nearly all of a tail is x_min itself, and exponents cannot be
/// told apart.
const EXPONENTS: (f64, f64) = (1.000_001, 30.0);
/// The terms of the zeta function below this are added one by one; the others are summed by
/// Euler-Maclaurin.
const DIRECT: f64 = 24.0;
/// B(2j) / (2j)! for j = 1, 2, ..., of the Bernoulli numbers B: the coefficients of
/// Euler-Maclaurin.
const BERNOULLI: [f64; 8] = [
    1.0 / 12.0,
    -1.0 / 720.0,
    1.0 / 30_240.0,
    -1.0 / 1_209_600.0,
    1.0 / 47_900_160.0,
    -691.0 / 1_307_674_368_000.0,
    1.0 / 74_724_249_600.0,
    -3617.0 / 10_670_622_842_880_000.0,
];

/// A power law, and the distance of the observations from it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fit {
    /// a of p(x) ~ x^-a. Its standard error is about (a - 1) / sqrt(tail).
    pub exponent: f64,
    /// The smallest size that follows the law.
    pub x_min: u64,
    /// The number of observations of size `x_min` or more.
    pub tail: u64,
    /// The Kolmogorov-Smirnov distance between observations and law, 0 (equal) to 1.
    pub distance: f64,
}

/// Fits a power law to rows (size, number of clusters of that size). Rows may come in any order,
/// and several may have the same size.
///
/// Returns `None` if no tail has [`MIN_TAIL`] observations of at least two different sizes, or if
/// the sizes fall more steeply than any power law with an exponent up to 30. Sizes and numbers of 0
/// are ignored.
///
/// # Example
///
/// ```
/// // 100,000 clusters with an exponent of 2.5.
/// let sizes: Vec<(u64, u64)> = (1..=1_000).map(|x| (x, (74_544.0 * (x as f64).powf(-2.5)).round() as u64)).collect();
/// let fit = nigh_tables::stats::fit(&sizes).expect("enough clusters");
/// assert!((fit.exponent - 2.5).abs() < 0.02);
/// ```
pub fn fit(sizes: &[(u64, u64)]) -> Option<Fit> {
    let tails = tails(sizes);
    let mut best: Option<Fit> = None;
    for first in candidates(&tails) {
        let Some(exponent) = exponent(&tails[first]) else {
            continue;
        };
        let distance = distance(&tails[first..], exponent);
        if best.is_none_or(|best| distance < best.distance - TIE) {
            best = Some(Fit { exponent, x_min: tails[first].size, tail: tails[first].count, distance });
        }
    }
    best
}

/// The observations of a size or more.
struct TailSums {
    size: u64,
    /// Their number.
    count: u64,
    /// The mean of ln(x / size) over the observations x.
    mean_log: f64,
}

/// Computes one tail for each distinct size, in ascending order.
fn tails(sizes: &[(u64, u64)]) -> Vec<TailSums> {
    let mut sizes: Vec<(u64, u64)> = sizes.iter().copied().filter(|&(size, count)| size > 0 && count > 0).collect();
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    let mut tails: Vec<TailSums> = Vec::new();
    for (size, count) in sizes {
        let (above, mean_log) = match tails.last() {
            Some(tail) => (tail.count, tail.mean_log + (tail.size as f64 / size as f64).ln()),
            None => (0, 0.0),
        };
        let count = above.saturating_add(count);
        let tail = TailSums { size, count, mean_log: mean_log * (above as f64 / count as f64) };
        match tails.last_mut() {
            Some(last) if last.size == size => *last = tail,
            _ => tails.push(tail),
        }
    }
    tails.reverse();
    tails
}

/// The indexes of the tails whose size is a candidate x_min, in ascending order: at most
/// `2 * DENSE`.
fn candidates(tails: &[TailSums]) -> Vec<usize> {
    // The last tail has only one size, hence no slope.
    let several = &tails[..tails.len().saturating_sub(1)];
    let usable = several.partition_point(|tail| tail.count >= MIN_TAIL);
    let mut candidates: Vec<usize> = (0..usable.min(DENSE)).collect();
    if usable <= 2 * DENSE {
        candidates.extend(DENSE..usable);
        return candidates;
    }
    let (low, high) = (tails[DENSE].size as f64, tails[usable - 1].size as f64);
    for step in 0..DENSE {
        let target = low * (high / low).powf(step as f64 / (DENSE - 1) as f64);
        // Rounding must not carry the last target past the last size.
        candidates.push(tails[..usable - 1].partition_point(|tail| (tail.size as f64) < target));
    }
    candidates.dedup();
    candidates
}

/// The exponent of maximum likelihood for a tail; `None` if it is outside of `EXPONENTS`.
fn exponent(tail: &TailSums) -> Option<f64> {
    let expected = |exponent| {
        let zeta = Zeta::of(exponent, tail.size as f64);
        zeta.log_sum / zeta.sum
    };
    let (mut low, mut high) = EXPONENTS;
    if expected(low) < tail.mean_log || expected(high) > tail.mean_log {
        return None;
    }
    // 60 halvings of an interval of 29 leave less than the last bit.
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if expected(middle) > tail.mean_log { low = middle } else { high = middle }
    }
    Some(0.5 * (low + high))
}

/// The largest difference between the observed share of sizes >= x and that of the law, over all
/// integers x above the smallest size.
fn distance(tails: &[TailSums], exponent: f64) -> f64 {
    let (size, count) = (tails[0].size as f64, tails[0].count as f64);
    let all = Zeta::of(exponent, size).sum;
    let law = |x: f64| Zeta::of(exponent, x).sum / all * (x / size).powf(-exponent);
    let mut largest = 0.0f64;
    // Between two sizes that occur, the observed share is constant and that of the law falls: the
    // extremes are at the ends.
    for (i, tail) in tails.iter().enumerate() {
        let above = tails.get(i + 1);
        let observed = above.map_or(0.0, |above| above.count as f64 / count);
        largest = largest.max((observed - law(tail.size as f64 + 1.0)).abs());
        if let Some(above) = above {
            largest = largest.max((observed - law(above.size as f64)).abs());
        }
    }
    largest
}

/// The Hurwitz zeta function, zeta(s, q) = sum of (q + k)^-s over k = 0, 1, 2, ..., and its
/// derivative by s, for s > 1 and q >= 1. Both are multiplied by q^s, so that they neither
/// underflow nor lose digits for large q.
///
/// Euler-Maclaurin: with a = q + n the terms from a on are
/// a^-s (a / (s - 1) + 1/2 + sum of B(2j)/(2j)! s (s + 1) ... (s + 2j - 2) a^(1 - 2j)).
struct Zeta {
    /// q^s zeta(s, q).
    sum: f64,
    /// The same sum with each term times ln((q + k) / q).
    log_sum: f64,
}

impl Zeta {
    fn of(s: f64, q: f64) -> Zeta {
        let (mut sum, mut log_sum) = (0.0, 0.0);
        let mut a = q;
        while a < DIRECT {
            let log = (a / q).ln();
            let term = (-s * log).exp();
            sum += term;
            log_sum += log * term;
            a += 1.0;
        }
        let log = (a / q).ln();
        let scale = (-s * log).exp();
        let mut rest = a / (s - 1.0) + 0.5;
        let mut slope = a / ((s - 1.0) * (s - 1.0));
        // s (s + 1) ... (s + 2j - 2) a^(1 - 2j), and its logarithmic derivative by s.
        let (mut product, mut inverses) = (s / a, 1.0 / s);
        for (j, coefficient) in BERNOULLI.iter().enumerate() {
            rest += coefficient * product;
            slope -= coefficient * product * inverses;
            let next = s + (2 * j + 1) as f64;
            product *= next * (next + 1.0) / (a * a);
            inverses += 1.0 / next + 1.0 / (next + 1.0);
        }
        sum += scale * rest;
        log_sum += scale * (log * rest + slope);
        Zeta { sum, log_sum }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn zeta(s: f64, q: f64) -> f64 {
        Zeta::of(s, q).sum * q.powf(-s)
    }

    fn close(actual: f64, expected: f64, relative: f64) -> bool {
        (actual - expected).abs() <= relative * expected.abs()
    }

    /// The definition of `Zeta`: terms added one by one, smallest first; the terms beyond them as
    /// an integral.
    fn slow_zeta(s: f64, q: f64) -> (f64, f64) {
        let terms = 20_000;
        let end = (q + terms as f64 - 0.5) / q;
        let (mut sum, mut log_sum) = (q * end.powf(1.0 - s) / (s - 1.0), 0.0);
        log_sum += sum * (end.ln() + 1.0 / (s - 1.0));
        for k in (0..terms).rev() {
            let ratio = (q + k as f64) / q;
            sum += ratio.powf(-s);
            log_sum += ratio.ln() * ratio.powf(-s);
        }
        (sum, log_sum)
    }

    /// The definition of `fit`, on single observations: it tries every x_min, maximizes the
    /// likelihood itself, and compares the distributions at every integer.
    fn slow_fits(observations: &[u64]) -> Vec<Fit> {
        let mut fits = Vec::new();
        let largest = observations.iter().copied().max().unwrap_or(0);
        for x_min in 1..largest {
            let tail: Vec<u64> = observations.iter().copied().filter(|&x| x >= x_min).collect();
            if (tail.len() as u64) < MIN_TAIL || !tail.contains(&x_min) {
                continue;
            }
            let q = x_min as f64;
            let mean_log = tail.iter().map(|&x| (x as f64 / q).ln()).sum::<f64>() / tail.len() as f64;
            let loss = |a: f64| Zeta::of(a, q).sum.ln() + a * mean_log;
            let (mut low, mut high) = EXPONENTS;
            while high - low > 1e-7 {
                let (left, right) = (low + 0.382 * (high - low), low + 0.618 * (high - low));
                if loss(left) < loss(right) { high = right } else { low = left }
            }
            let (exponent, all) = (0.5 * (low + high), Zeta::of(low, q).sum);
            let (mut law, mut distance) = (1.0, 0.0f64);
            for x in x_min..=largest {
                law -= (x as f64 / q).powf(-exponent) / all;
                let observed = tail.iter().filter(|&&y| y > x).count() as f64 / tail.len() as f64;
                distance = distance.max((observed - law).abs());
            }
            fits.push(Fit { exponent, x_min, tail: tail.len() as u64, distance });
        }
        fits
    }

    /// Draws random sizes >= x_min from a power law, by inversion of the exact cumulative
    /// distribution.
    fn sample(exponent: f64, x_min: u64, clusters: usize, seed: u64) -> Vec<u64> {
        println!("seed {seed}");
        let mut state = seed;
        let all = zeta(exponent, x_min as f64);
        let above = |x: u64| zeta(exponent, x as f64 + 1.0) / all;
        let mut draw = || {
            // SplitMix64.
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = state;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            let uniform = ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64;
            let (mut low, mut high) = (x_min, x_min);
            while above(high) > uniform && high < 1 << 40 {
                low = high + 1;
                high *= 2;
            }
            while low < high {
                let middle = low + (high - low) / 2;
                if above(middle) > uniform { low = middle + 1 } else { high = middle }
            }
            low
        };
        (0..clusters).map(|_| draw()).collect()
    }

    fn counted(observations: &[u64]) -> Vec<(u64, u64)> {
        observations.iter().map(|&x| (x, 1)).collect()
    }

    #[test]
    fn zeta_has_its_known_values() {
        let pi = std::f64::consts::PI;
        assert!(close(zeta(2.0, 1.0), pi * pi / 6.0, 1e-15));
        assert!(close(zeta(3.0, 1.0), 1.202_056_903_159_594_2, 1e-15));
        assert!(close(zeta(4.0, 1.0), pi.powi(4) / 90.0, 1e-15));
        assert!(close(zeta(1.5, 1.0), 2.612_375_348_685_488, 1e-15));
        assert!(close(zeta(2.5, 1.0), 1.341_487_257_250_917, 1e-15));
        assert!(close(zeta(30.0, 1.0), 1.000_000_000_931_327_4, 1e-15));
        // The trigamma function at 10, and zeta(3) without its first four terms.
        assert!(close(zeta(2.0, 10.0), 0.105_166_335_681_685_75, 1e-14));
        assert!(close(zeta(3.0, 5.0), 0.024_394_866_122_557_2, 1e-13));
        // -zeta'(2).
        assert!(close(Zeta::of(2.0, 1.0).log_sum, 0.937_548_254_315_843_8, 1e-14));
    }

    #[test]
    fn zeta_of_a_large_size_neither_underflows_nor_loses_digits() {
        let zeta = Zeta::of(30.0, 1e15);
        assert!(close(zeta.sum, 1e15 / 29.0, 1e-12), "{}", zeta.sum);
        assert!(close(zeta.log_sum / zeta.sum, 1.0 / 29.0, 1e-12));
    }

    #[test]
    fn the_exponent_of_a_sample_is_recovered() {
        for (exponent, x_min, seed) in [(2.5, 1, 1), (2.1, 1, 2), (3.5, 1, 3), (2.5, 5, 4), (2.5, 300, 5)] {
            let fit = fit(&counted(&sample(exponent, x_min, 20_000, seed))).expect("enough observations");
            let error = (fit.exponent - 1.0) / (fit.tail as f64).sqrt();
            assert!((fit.exponent - exponent).abs() < 4.0 * error, "{exponent} {x_min}: {fit:?}");
            assert!(fit.x_min >= x_min && fit.tail > 200, "{fit:?}");
            assert!(fit.distance < 0.02, "{fit:?}");
        }
    }

    #[test]
    fn small_sizes_that_do_not_follow_the_law_are_left_out() {
        let mut sizes = counted(&sample(2.5, 8, 20_000, 6));
        sizes.extend((1..8).map(|x| (x, 3_000)));
        let fit = fit(&sizes).expect("enough observations");
        assert!((8..=12).contains(&fit.x_min), "{fit:?}");
        assert!((fit.exponent - 2.5).abs() < 0.06, "{fit:?}");
    }

    #[test]
    fn too_few_or_equal_sizes_have_no_exponent() {
        assert_eq!(fit(&[]), None);
        assert_eq!(fit(&[(1, 1_000_000)]), None);
        assert_eq!(fit(&[(7, 30), (7, 30)]), None);
        assert_eq!(fit(&[(1, 30), (2, 19)]), None);
        assert_eq!(fit(&[(0, 100), (1, 100), (2, 0)]), None);
        // Steeper than any power law.
        assert_eq!(fit(&[(1_000, 500), (1_001, 500)]), None);
    }

    #[test]
    fn the_fewest_observations_and_the_largest_numbers_have_an_exponent() {
        let few = fit(&[(1, 40), (2, 10)]).expect("50 observations");
        assert_eq!((few.x_min, few.tail), (1, 50));
        let many = fit(&[(1, u64::MAX), (2, u64::MAX / 5), (u64::MAX, u64::MAX)]).expect("many observations");
        assert_eq!(many.tail, u64::MAX);
        assert!(many.exponent.is_finite() && many.distance.is_finite());
    }

    #[test]
    fn neither_order_nor_repetition_of_rows_matters() {
        let observations = sample(2.5, 1, 3_000, 7);
        let mut rows: Vec<(u64, u64)> = Vec::new();
        for &x in &observations {
            match rows.iter_mut().find(|row| row.0 == x) {
                Some(row) => row.1 += 1,
                None => rows.push((x, 1)),
            }
        }
        let (merged, single) = (fit(&rows).expect("a fit"), fit(&counted(&observations)).expect("a fit"));
        assert_eq!((merged.x_min, merged.tail), (single.x_min, single.tail));
        assert!(close(merged.exponent, single.exponent, 1e-9) && close(merged.distance, single.distance, 1e-9));
        rows.reverse();
        assert_eq!(fit(&rows), Some(merged));
    }

    #[test]
    fn at_most_100_sizes_are_tried() {
        for (dense, sparse) in [(40, 0), (160, 0), (100_000, 0), (60, 100)] {
            let far = (0..sparse).map(|x| 1_000_000 + x);
            let sizes: Vec<(u64, u64)> = (1..=dense).chain(far).map(|size| (size, 2)).collect();
            let tails = tails(&sizes);
            let tried = candidates(&tails);
            assert!(tried.len() <= 100, "{}", tried.len());
            assert!(tried.is_sorted_by(|a, b| a < b), "{tried:?}");
            assert_eq!(tried[..15], (0..15).collect::<Vec<_>>());
            let last = *tried.last().expect("candidates");
            assert_eq!(tails[last].count, MIN_TAIL);
        }
    }

    proptest! {
        #[test]
        fn zeta_equals_its_terms_added_one_by_one(s in 1.2f64..30.0, q in 1u32..3_000) {
            let (fast, slow) = (Zeta::of(s, q as f64), slow_zeta(s, q as f64));
            prop_assert!(close(fast.sum, slow.0, 1e-9), "{} {}", fast.sum, slow.0);
            prop_assert!(close(fast.log_sum, slow.1, 1e-9), "{} {}", fast.log_sum, slow.1);
        }

        #[test]
        fn a_fit_is_the_best_of_the_slow_ones(
            head in prop::collection::vec(1u64..12, 40..300),
            far in prop::collection::vec(1u64..200, 0..40),
        ) {
            let observations = [head, far].concat();
            let slow: Vec<Fit> = slow_fits(&observations).into_iter().filter(|fit| fit.exponent < 29.9).collect();
            let Some(fast) = fit(&counted(&observations)) else {
                prop_assert!(slow.is_empty());
                return Ok(());
            };
            let least = slow.iter().map(|fit| fit.distance).fold(f64::INFINITY, f64::min);
            prop_assert!((fast.distance - least).abs() < 1e-5, "{fast:?} {least}");
            let same = slow.iter().find(|fit| fit.x_min == fast.x_min).expect("the slow way tries every size");
            prop_assert_eq!(same.tail, fast.tail);
            prop_assert!((same.exponent - fast.exponent).abs() < 1e-5, "{:?} {:?}", same, fast);
        }
    }
}
