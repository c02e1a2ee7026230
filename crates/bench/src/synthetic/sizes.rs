//! Cluster sizes by a power law, the same on every machine.
//!
//! The share of clusters with s members is proportional to s^-exponent, within a range of sizes.
//! Sizes are quantiles, not random: of n clusters, the i-th gets the size below which a share (i +
//! 1/2) / n of the law lies. So their sum differs from n times the mean of the law by at most half
//! the range (the midpoint rule for a monotone function).
//!
//! Powers are computed by products and square roots, which IEEE 754 rounds to the same bits
//! everywhere; it does not define `powf`.

use std::ops::RangeInclusive;

/// Fractional bits of an exponent: steps of about one millionth.
const FRACTION: u32 = 20;
/// The exponents to try, in steps: from all sizes alike to nearly all clusters of the smallest
/// size.
const EXPONENTS: RangeInclusive<u32> = 0..=16 << FRACTION;

/// The clusters of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeCount {
    /// The number of members of each.
    pub size: u64,
    /// The number of these clusters.
    pub clusters: u64,
}

/// `clusters` clusters with sizes by the power law, the largest first.
pub fn sizes(exponent: f64, range: &RangeInclusive<u64>, clusters: u64) -> Vec<SizeCount> {
    quantiles(steps(exponent), range, clusters)
}

/// The mean number of members of a cluster.
pub fn mean(exponent: f64, range: &RangeInclusive<u64>) -> f64 {
    let (mut shares, mut members) = (0.0, 0.0);
    for size in range.clone() {
        let share = share(size, steps(exponent));
        shares += share;
        members += share * size as f64;
    }
    members / shares
}

/// The exponent at which `clusters` clusters together have `members` members, or slightly fewer.
///
/// `members` must be at least 1.5 times what clusters of the smallest size would have, so that some
/// exponent in the range fits.
pub fn fit(range: &RangeInclusive<u64>, clusters: u64, members: u64) -> f64 {
    let fits =
        |exponent| quantiles(exponent, range, clusters).iter().map(|e| e.size * e.clusters).sum::<u64>() <= members;
    // Binary search: with a larger exponent no cluster is larger.
    let (mut low, mut high) = EXPONENTS.into_inner();
    while low < high {
        let middle = low.midpoint(high);
        if fits(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    f64::from(high) / f64::from(1 << FRACTION)
}

fn steps(exponent: f64) -> u32 {
    (exponent * f64::from(1 << FRACTION)) as u32
}

fn quantiles(exponent: u32, range: &RangeInclusive<u64>, clusters: u64) -> Vec<SizeCount> {
    let shares: Vec<f64> = range.clone().map(|size| share(size, exponent)).collect();
    let whole: f64 = shares.iter().sum();
    let (mut sum, mut taken) = (0.0, 0);
    let mut all = Vec::new();
    for (size, share) in range.clone().zip(shares) {
        sum += share;
        let until = if size == *range.end() { clusters } else { (sum / whole * clusters as f64 + 0.5) as u64 };
        if until.min(clusters) > taken {
            all.push(SizeCount { size, clusters: until.min(clusters) - taken });
            taken = until.min(clusters);
        }
    }
    all.reverse();
    all
}

/// The size to the power of minus the exponent, given in steps.
fn share(size: u64, exponent: u32) -> f64 {
    let (mut power, mut root) = (1.0, size as f64);
    for _ in 0..exponent >> FRACTION {
        power *= root;
    }
    for bit in (0..FRACTION).rev() {
        root = root.sqrt();
        if exponent >> bit & 1 == 1 {
            power *= root;
        }
    }
    1.0 / power
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(sizes: &[SizeCount]) -> u64 {
        sizes.iter().map(|equals| equals.size * equals.clusters).sum()
    }

    #[test]
    fn powers_agree_with_the_standard_library() {
        for size in [1, 2, 3, 60_000, 1 << 40] {
            for exponent in [0.0, 0.5, 1.0, 2.5, 2.608, 7.25] {
                let (power, expected) = (share(size, steps(exponent)), (size as f64).powf(-exponent));
                assert!((power / expected - 1.0).abs() < 1e-4, "{size} to the -{exponent}: {power}, {expected}");
            }
        }
    }

    #[test]
    fn sizes_follow_the_law() {
        let sizes = sizes(2.0, &(1..=1000), 1_000_000);
        assert!(sizes.is_sorted_by(|a, b| a.size > b.size));
        assert_eq!(sizes.iter().map(|equals| equals.clusters).sum::<u64>(), 1_000_000);
        // A quarter as many clusters of twice the size.
        let of = |size| sizes.iter().find(|equals| equals.size == size).unwrap().clusters as f64;
        assert!((of(1) / of(2) - 4.0).abs() < 0.01 && (of(10) / of(20) - 4.0).abs() < 0.02);
        assert!((members(&sizes) as f64 - 1e6 * mean(2.0, &(1..=1000))).abs() <= 500.0);
    }

    #[test]
    fn a_fitted_exponent_gives_the_members() {
        for clusters in [1, 2, 9, 100, 12_345] {
            for mean in [3, 4, 20] {
                let exponent = fit(&(2..=50), clusters, clusters * mean);
                let members = members(&sizes(exponent, &(2..=50), clusters));
                let missing = (clusters * mean).checked_sub(members).unwrap();
                assert!(missing <= 1 + clusters / 1000, "{clusters} of {mean}: {missing} missing");
            }
        }
    }

    #[test]
    fn zero_clusters_and_a_range_of_one_size_work() {
        assert_eq!(sizes(2.5, &(2..=50), 0), []);
        assert_eq!(sizes(2.5, &(1..=1), 3), [SizeCount { size: 1, clusters: 3 }]);
    }
}
