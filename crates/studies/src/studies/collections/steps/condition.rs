//! When two trivial clusters are merged, by how many of their pages link to each other (Cho 2000,
//! section 3).

use crate::studies::collections::Merge;

/// Room for the error of a product of a share and a whole number.
const ROUNDING: f64 = 1e-9;

/// The condition under which the links from one cluster to another merge them.
///
/// `s` pages of a cluster of `sizes[0]` pages have a link to a page of a cluster of `sizes[1]`
/// pages, of which `d` have a link from one of the first. Then they are merged if
///
/// ```text
/// strict      sizes[0] = s = d = sizes[1]
/// extended    sizes[0] = s ≥ d = sizes[1]
/// share       s ≥ share · sizes[0],  d ≥ share · sizes[1],  and the smaller size is at least that share of the larger
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MergeCondition {
    /// Which of the three.
    pub merge: Merge,
    /// The share, for the third.
    pub share: f64,
}

impl MergeCondition {
    /// Whether clusters of these sizes can be merged at all.
    #[inline]
    pub fn can_hold(&self, [from, to]: [u32; 2]) -> bool {
        match self.merge {
            Merge::Strict => from == to,
            Merge::Extended => from >= to,
            Merge::Share => f64::from(from.min(to)) + ROUNDING >= self.share * f64::from(from.max(to)),
        }
    }

    /// Whether the links of `s` pages to `d` pages merge two clusters.
    pub fn holds(&self, sizes: [u32; 2], s: u32, d: u32) -> bool {
        let covers = |part: u32, size: u32| match self.merge {
            Merge::Strict | Merge::Extended => part == size,
            Merge::Share => f64::from(part) + ROUNDING >= self.share * f64::from(size),
        };
        self.can_hold(sizes) && covers(s, sizes[0]) && covers(d, sizes[1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clusters_are_merged_as_the_study_says() {
        let of = |merge, share| MergeCondition { merge, share };
        let (strict, extended) = (of(Merge::Strict, 1.0), of(Merge::Extended, 1.0));
        // Three copies of two pages that link to each other.
        assert!(strict.holds([3, 3], 3, 3) && extended.holds([3, 3], 3, 3));
        // A page of one copy lacks its link, or is missing.
        assert!(!strict.holds([3, 3], 2, 2) && !extended.holds([3, 3], 2, 2));
        assert!(!strict.holds([3, 2], 3, 2) && extended.holds([3, 2], 3, 2));
        assert!(!extended.holds([2, 3], 2, 2) && !extended.holds([3, 2], 2, 2));
        let share = of(Merge::Share, 0.6);
        assert!(share.holds([5, 5], 3, 3) && !share.holds([5, 5], 3, 2) && !share.holds([5, 5], 2, 3));
        assert!(share.holds([5, 3], 5, 3) && !share.holds([6, 3], 6, 3), "3 of 5 is enough, 3 of 6 is not");
    }

    #[test]
    fn a_share_of_one_is_the_strict_condition() {
        let [strict, share] = [Merge::Strict, Merge::Share].map(|merge| MergeCondition { merge, share: 1.0 });
        for sizes in (2..5).flat_map(|a| (2..5).map(move |b| [a, b])) {
            for (s, d) in (0..=sizes[0]).flat_map(|s| (0..=sizes[1]).map(move |d| (s, d))) {
                assert_eq!(strict.holds(sizes, s, d), share.holds(sizes, s, d), "{sizes:?} {s} {d}");
            }
        }
    }
}
