//! The evolution of clusters: size classes, retention, changes of hosts, change amounts (Fetterly
//! 2004, section 3).
//!
//! Let C_n(u) be the cluster of URL u in week n. Take the c URLs that have the cluster C_1 in the
//! first week and the cluster C_m in week m. Each of them has the containment Phi and the
//! similarity Psi
//!
//! ```text
//! Phi_1^m = c / |C_1|     Psi_1^m = c / (|C_1| + |C_m| - c)     Phi_m^1 = c / |C_m|
//! ```
//!
//! A mean over URLs is therefore a sum of c²/d over such sets of URLs, divided by the number of
//! URLs; d is the denominator above. The sums are in fixed point (64 bits after the point), where
//! addition is exact and the order does not matter: a mean does not depend on the number of
//! workers. Each set is rounded down once, by less than 2^-64. So what holds for each fraction (Psi
//! <= Phi <= 1) holds for the sums, and the mean of fractions that are all 1 is 1.

use serde::{Deserialize, Serialize};

use crate::records::FeatureBits;

/// The classes of clusters by size (Fetterly 2004, section 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum SizeClass {
    /// No page: a cluster of births only has no page of an earlier week.
    None,
    /// 1 page: a singleton.
    One,
    /// 2 to 10 pages.
    Ten,
    /// 11 to 100 pages.
    Hundred,
    /// 101 to 1,000 pages.
    Thousand,
    /// 1,001 to 10,000 pages.
    TenThousand,
    /// 10,001 to 100,000 pages.
    HundredThousand,
    /// More than 100,000 pages.
    Above,
}

impl SizeClass {
    /// All classes, from the smallest.
    pub const ALL: [SizeClass; 8] = [
        SizeClass::None,
        SizeClass::One,
        SizeClass::Ten,
        SizeClass::Hundred,
        SizeClass::Thousand,
        SizeClass::TenThousand,
        SizeClass::HundredThousand,
        SizeClass::Above,
    ];

    /// The study's seven classes, from the smallest: those of clusters that have pages.
    pub fn study() -> impl Iterator<Item = SizeClass> {
        SizeClass::ALL.into_iter().skip(1)
    }

    /// The class of a cluster of `size` pages.
    ///
    /// ```
    /// use nigh_tables::stats::SizeClass;
    /// assert_eq!([1, 10, 11, 921_374].map(|size| SizeClass::of(size).name()), ["1", "2-10", "11-100", "above 100000"]);
    /// ```
    pub fn of(size: u64) -> SizeClass {
        const TOPS: [u64; 7] = [0, 1, 10, 100, 1_000, 10_000, 100_000];
        SizeClass::ALL[TOPS.partition_point(|top| *top < size)]
    }

    /// The name of the class in tables.
    pub fn name(self) -> &'static str {
        match self {
            SizeClass::None => "0",
            SizeClass::One => "1",
            SizeClass::Ten => "2-10",
            SizeClass::Hundred => "11-100",
            SizeClass::Thousand => "101-1000",
            SizeClass::TenThousand => "1001-10000",
            SizeClass::HundredThousand => "10001-100000",
            SizeClass::Above => "above 100000",
        }
    }
}

/// Counts by size class, in the order of [`SizeClass::ALL`].
pub type BySize = [u64; SizeClass::ALL.len()];

/// Sums of containment (Phi) and similarity (Psi) over the URLs of a class.
///
/// ```
/// use nigh_tables::stats::RetentionSums;
/// let mut class = RetentionSums::default();
/// // A cluster of 4 URLs: 3 of them are later in a cluster of 6, 1 is alone.
/// assert!(class.add(3, 4, 6) && class.add(1, 4, 1));
/// assert_eq!(class.documents, 4);
/// assert_eq!(class.retention(), Some((3.0 * 3.0 / 4.0 + 1.0 / 4.0) / 4.0));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RetentionSums {
    /// The number of URLs.
    pub documents: u64,
    containment: u128,
    similarity: u128,
    reverse: u128,
}

/// Bits after the point.
const POINT: u32 = 64;

impl RetentionSums {
    /// Adds the `common` URLs of a cluster of the first week, of `first` URLs, and a cluster of the
    /// later week, of `later` URLs. Returns false and adds nothing if no such clusters exist:
    /// `common` is larger than one of them.
    #[must_use]
    pub fn add(&mut self, common: u64, first: u64, later: u64) -> bool {
        if common > first.min(later) {
            return false;
        }
        self.documents += common;
        self.containment += sum_of_shares(common, first);
        self.similarity += sum_of_shares(common, first + (later - common));
        self.reverse += sum_of_shares(common, later);
        true
    }

    /// Adds the sums of another worker.
    pub fn merge(&mut self, other: &RetentionSums) {
        self.documents += other.documents;
        self.containment += other.containment;
        self.similarity += other.similarity;
        self.reverse += other.reverse;
    }

    /// The mean of Phi_1^m (Fig. 4), 0 to 1; `None` if there are no URLs.
    pub fn retention(&self) -> Option<f64> {
        self.mean(self.containment)
    }

    /// The mean of Psi_1^m (Fig. 5), 0 to 1; `None` if there are no URLs.
    pub fn similarity(&self) -> Option<f64> {
        self.mean(self.similarity)
    }

    /// The mean of Phi_m^1 (Fig. 7), 0 to 1; `None` if there are no URLs.
    pub fn reverse(&self) -> Option<f64> {
        self.mean(self.reverse)
    }

    fn mean(&self, sum: u128) -> Option<f64> {
        Some(sum.checked_div(self.documents.into())? as f64 / 2f64.powi(POINT as i32))
    }
}

/// The sum over `common` URLs that each have `common / all`, in fixed point; `all` is at least
/// `common`.
fn sum_of_shares(common: u64, all: u64) -> u128 {
    if common == 0 {
        return 0;
    }
    let (square, all) = (u128::from(common) * u128::from(common), u128::from(all));
    // No overflow: the integer part is at most `common`, since `all` is not less; the remainder is
    // below `all`, 64 bits.
    ((square / all) << POINT) + ((square % all) << POINT) / all
}

/// The classes of change amounts (Fetterly 2004, Fig. 10).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// No feature is equal.
    Complete,
    /// At most a third of the features are equal (1 to 28 of 84).
    Large,
    /// At most two thirds of the features are equal (29 to 56 of 84).
    Medium,
    /// More than two thirds are equal, but not all (57 to 83 of 84).
    Small,
    /// All features are equal, the bytes are not.
    NoText,
    /// The bytes are equal.
    None,
}

impl Change {
    /// All classes, from the largest change.
    pub const ALL: [Change; 6] =
        [Change::Complete, Change::Large, Change::Medium, Change::Small, Change::NoText, Change::None];

    /// The class of a change amount of documents with `features` features.
    ///
    /// ```
    /// use nigh_tables::stats::Change;
    /// assert_eq!(Change::of(28, 84), Change::Large);
    /// assert_eq!([83, 84, 85].map(|amount| Change::of(amount, 84)), [Change::Small, Change::NoText, Change::None]);
    /// ```
    pub fn of(amount: usize, features: usize) -> Change {
        match amount {
            0 => Change::Complete,
            _ if amount > features => Change::None,
            _ if amount == features => Change::NoText,
            _ if 3 * amount <= features => Change::Large,
            _ if 3 * amount <= 2 * features => Change::Medium,
            _ => Change::Small,
        }
    }

    /// The name of the class in tables.
    pub fn name(self) -> &'static str {
        match self {
            Change::Complete => "complete",
            Change::Large => "large",
            Change::Medium => "medium",
            Change::Small => "small",
            Change::NoText => "no-text-change",
            Change::None => "no-change",
        }
    }
}

/// The change amount of a URL between two downloads (Fetterly 2004, section 3): the number of equal
/// features, 0 to `features`; or `features + 1` if the bytes of the page are equal, whatever the
/// features are. `earlier` and `later` hold what is kept of each feature. A page without words has
/// no features, hence none that is equal.
pub fn change_amount(same_bytes: bool, earlier: &[u8], later: &[u8], features: usize) -> usize {
    if same_bytes {
        return features + 1;
    }
    let (earlier, later) = (earlier.as_chunks::<{ size_of::<FeatureBits>() }>().0, later.as_chunks().0);
    earlier.iter().zip(later).filter(|(a, b)| a == b).count()
}

/// Counts of pairs of successive downloads, by change amount and size class.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ChangeAmounts {
    features: usize,
    pairs: Vec<BySize>,
}

/// One change amount in one size class.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AmountShare {
    /// The change amount.
    pub amount: usize,
    /// The size class.
    pub class: SizeClass,
    /// The number of pairs of downloads.
    pub pairs: u64,
    /// `pairs` over the pairs of all classes with this amount (Fig. 8); `None` if there are none.
    pub share: Option<f64>,
    /// The share over the mean share of the class (Fig. 9): the mean over all amounts, as in the
    /// study; one that does not occur has a share of 0 in it.
    pub relative: Option<f64>,
}

/// One class of changes in one size class.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChangeShare {
    /// The size class.
    pub class: SizeClass,
    /// The class of changes.
    pub change: Change,
    /// The number of pairs of downloads.
    pub pairs: u64,
    /// `pairs` over all pairs of the size class (Fig. 10); `None` if there are none.
    pub share: Option<f64>,
}

impl ChangeAmounts {
    /// Makes counts of 0 for pages with `features` features.
    pub fn new(features: usize) -> ChangeAmounts {
        ChangeAmounts { features, pairs: vec![BySize::default(); features + 2] }
    }

    /// Adds a pair of downloads.
    ///
    /// # Panics
    /// If `amount` is more than the number of features plus one.
    pub fn add(&mut self, amount: usize, class: SizeClass) {
        self.pairs[amount][class as usize] += 1;
    }

    /// Adds the counts of another worker, of the same number of features.
    pub fn merge(&mut self, other: &ChangeAmounts) {
        for (sums, counts) in self.pairs.iter_mut().zip(&other.pairs) {
            add_by_size(sums, counts);
        }
    }

    /// One row for each change amount and size class, ordered by amount (Fig. 8 and 9).
    pub fn shares(&self) -> Vec<AmountShare> {
        let share = |counts: &BySize, class: SizeClass| ratio(counts[class as usize], counts.iter().sum());
        let mean = |class: SizeClass| {
            let sum: f64 = self.pairs.iter().filter_map(|counts| share(counts, class)).sum();
            sum / self.pairs.len() as f64
        };
        let means: Vec<(SizeClass, f64)> = SizeClass::study().map(|class| (class, mean(class))).collect();
        let rows_of_amount = |(amount, counts)| {
            means.iter().map(move |&(class, mean)| {
                let share = share(counts, class);
                let relative = share.filter(|_| mean > 0.0).map(|share| share / mean);
                AmountShare { amount, class, pairs: counts[class as usize], share, relative }
            })
        };
        self.pairs.iter().enumerate().flat_map(rows_of_amount).collect()
    }

    /// One row for each size class and class of changes, ordered by size (Fig. 10).
    pub fn changes(&self) -> Vec<ChangeShare> {
        let mut changes = Vec::new();
        for class in SizeClass::study() {
            let all = self.pairs.iter().map(|counts| counts[class as usize]).sum();
            for change in Change::ALL {
                let amounts = self.pairs.iter().enumerate().filter(|(n, _)| Change::of(*n, self.features) == change);
                let pairs = amounts.map(|(_, counts)| counts[class as usize]).sum();
                changes.push(ChangeShare { class, change, pairs, share: ratio(pairs, all) });
            }
        }
        changes
    }
}

/// Adds counts by size class.
pub fn add_by_size(sums: &mut BySize, counts: &BySize) {
    sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
}

/// `part` over `whole`; `None` if `whole` is 0.
pub fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// The change of each host's number of clusters from the first to the last week (Fig. 6), in the
/// order of hosts. Both inputs are rows (host, clusters), sorted by host, each host once; a host
/// that is missing has no clusters.
///
/// ```
/// use nigh_tables::stats::cluster_changes;
/// let (first, last) = ([("a.org", 5), ("b.org", 2)], [("b.org", 2), ("c.org", 1)]);
/// assert_eq!(cluster_changes(&first, &last), [-5, 0, 1]);
/// ```
pub fn cluster_changes<H: Ord>(first: &[(H, u64)], last: &[(H, u64)]) -> Vec<i64> {
    let (mut first, mut last) = (first.iter().peekable(), last.iter().peekable());
    let mut changes = Vec::new();
    loop {
        let host = match (first.peek(), last.peek()) {
            (None, None) => return changes,
            (Some((host, _)), None) | (None, Some((host, _))) => host,
            (Some((a, _)), Some((b, _))) => a.min(b),
        };
        let before = first.next_if(|(h, _)| h == host).map_or(0, |(_, clusters)| *clusters as i64);
        let after = last.next_if(|(h, _)| h == host).map_or(0, |(_, clusters)| *clusters as i64);
        changes.push(after - before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

    #[test]
    fn classes_are_those_of_the_study() {
        let names: Vec<&str> = [0, 1, 2, 10, 11, 100, 101, 1000, 1001, 10_000, 10_001, 100_000, 100_001, u64::MAX]
            .map(|size| SizeClass::of(size).name())
            .to_vec();
        let wanted = "0 1 2-10 2-10 11-100 11-100 101-1000 101-1000 1001-10000 1001-10000 10001-100000 10001-100000";
        assert_eq!(names[..12].join(" "), wanted);
        assert_eq!(names[12..], ["above 100000"; 2]);
        assert!(SizeClass::ALL.iter().enumerate().all(|(at, class)| *class as usize == at));
    }

    #[test]
    fn changes_are_cut_at_the_studys_amounts() {
        let cut = |features: usize| -> Vec<usize> {
            (1..features + 2).filter(|a| Change::of(*a, features) != Change::of(a - 1, features)).collect()
        };
        assert_eq!(cut(84), [1, 29, 57, 84, 85]);
        assert_eq!(Change::of(85, 84), Change::None);
        assert_eq!(cut(6), [1, 3, 5, 6, 7]);
        assert_eq!(cut(1), [1, 2], "of one feature, all or none are equal");
    }

    #[test]
    fn equal_bytes_decide_alone_and_pages_without_words_share_nothing() {
        let (a, b) = ([1u16, 2, 3].map(u16::to_le_bytes).concat(), [1u16, 9, 3].map(u16::to_le_bytes).concat());
        assert_eq!(change_amount(false, &a, &b, 3), 2);
        assert_eq!(change_amount(false, &a, &a, 3), 3);
        assert_eq!(change_amount(true, &a, &b, 3), 4);
        assert_eq!(change_amount(true, &[], &[], 3), 4);
        assert_eq!((change_amount(false, &[], &[], 3), change_amount(false, &a, &[], 3)), (0, 0));
    }

    #[test]
    fn an_intersection_larger_than_either_cluster_is_refused() {
        let mut retained = RetentionSums::default();
        assert!(!retained.add(3, 2, 5) && !retained.add(3, 5, 2));
        assert_eq!((retained, retained.retention()), (RetentionSums::default(), None));
    }

    #[test]
    fn the_largest_numbers_do_not_overflow() {
        let most = 1 << 56;
        let mut retained = RetentionSums::default();
        assert!(retained.add(most, most, most) && retained.add(most - 1, most, most));
        assert!(retained.retention().unwrap() <= 1.0 && retained.similarity().unwrap() > 0.99);
    }

    proptest! {
        /// The slow twin takes the mean over single URLs, with intersections and unions of sets.
        #[test]
        fn retention_is_the_mean_over_urls(clusters in prop::collection::vec((0u8..9, 0u8..7, any::<bool>()), 1..80)) {
            let set = |of: &dyn Fn(&(u8, u8, bool)) -> bool| -> BTreeSet<usize> {
                (0..clusters.len()).filter(|url| of(&clusters[*url])).collect()
            };
            // The third field: whether the URL was there in the first week; else it has no cluster
            // of that week.
            let mut twin: BTreeMap<SizeClass, Vec<[f64; 3]>> = BTreeMap::new();
            for url in clusters.iter().filter(|url| url.2) {
                let (first, later) = (set(&|x| x.2 && x.0 == url.0), set(&|x| x.1 == url.1));
                let common = first.intersection(&later).count() as f64;
                twin.entry(SizeClass::of(first.len() as u64)).or_default().push([
                    common / first.len() as f64,
                    common / first.union(&later).count() as f64,
                    common / later.len() as f64,
                ]);
            }
            let mut ours: BTreeMap<SizeClass, RetentionSums> = BTreeMap::new();
            let pairs: BTreeSet<(u8, u8)> = clusters.iter().filter(|x| x.2).map(|x| (x.0, x.1)).collect();
            for (a, b) in pairs {
                let size = |of: &dyn Fn(&(u8, u8, bool)) -> bool| set(of).len() as u64;
                let (first, later) = (size(&|x| x.2 && x.0 == a), size(&|x| x.1 == b));
                let common = size(&|x| x.2 && x.0 == a && x.1 == b);
                prop_assert!(ours.entry(SizeClass::of(first)).or_default().add(common, first, later));
            }
            prop_assert_eq!(ours.len(), twin.len());
            for (class, retained) in ours {
                let means = &twin[&class];
                let mean = |at: usize| means.iter().map(|m| m[at]).sum::<f64>() / means.len() as f64;
                let got = [retained.retention(), retained.similarity(), retained.reverse()].map(Option::unwrap);
                prop_assert_eq!(retained.documents, means.len() as u64);
                for (at, got) in got.iter().enumerate() {
                    prop_assert!((got - mean(at)).abs() < 1e-12, "{:?} {} {}", class, got, mean(at));
                }
                prop_assert!(got[1] <= got[0] && got[1] <= got[2] && got[0] <= 1.0);
                prop_assert!(class != SizeClass::One || got[0] == 1.0, "singletons retain themselves");
            }
        }

        #[test]
        fn shares_are_counted_pair_by_pair(pairs in prop::collection::vec((0usize..8, 1u64..2000), 0..60)) {
            let mut halves = [ChangeAmounts::new(6), ChangeAmounts::new(6)];
            for (at, (amount, size)) in pairs.iter().enumerate() {
                halves[at % 2].add(*amount, SizeClass::of(*size));
            }
            let [mut amounts, other] = halves;
            amounts.merge(&other);
            let count = |amount: &dyn Fn(usize) -> bool, class: Option<SizeClass>| {
                let of_class = |size: u64| class.is_none_or(|class| class == SizeClass::of(size));
                pairs.iter().filter(|(a, size)| amount(*a) && of_class(*size)).count() as f64
            };
            let shares = amounts.shares();
            prop_assert_eq!(shares.len(), 8 * 7);
            for row in &shares {
                let (mine, all) = (count(&|a| a == row.amount, Some(row.class)), count(&|a| a == row.amount, None));
                prop_assert_eq!(row.pairs as f64, mine);
                prop_assert_eq!(row.share, (all > 0.0).then_some(mine / all));
            }
            for class in SizeClass::study() {
                let rows = shares.iter().filter(|row| row.class == class);
                let of: Vec<f64> = rows.filter_map(|row| row.relative).collect();
                // Over the eight amounts of six features, also those that do not occur.
                let mean = of.iter().sum::<f64>() / 8.0;
                prop_assert!(of.is_empty() || (mean - 1.0).abs() < 1e-12, "{}", mean);
            }
            for row in amounts.changes() {
                let of = |change: Change| count(&|a| Change::of(a, 6) == change, Some(row.class));
                let all: f64 = Change::ALL.into_iter().map(of).sum();
                prop_assert_eq!(row.pairs as f64, of(row.change));
                prop_assert_eq!(row.share, (all > 0.0).then_some(of(row.change) / all));
            }
        }

        #[test]
        fn hosts_change_by_the_difference(
            first in prop::collection::btree_map(0u8..20, 1u64..5, 0..12),
            last in prop::collection::btree_map(0u8..20, 1u64..5, 0..12),
        ) {
            let hosts: BTreeSet<u8> = first.keys().chain(last.keys()).copied().collect();
            let of = |map: &BTreeMap<u8, u64>, host: u8| map.get(&host).map_or(0, |clusters| *clusters as i64);
            let wanted: Vec<i64> = hosts.into_iter().map(|host| of(&last, host) - of(&first, host)).collect();
            let rows = |map: BTreeMap<u8, u64>| map.into_iter().collect::<Vec<_>>();
            prop_assert_eq!(cluster_changes(&rows(first), &rows(last)), wanted);
        }
    }
}
