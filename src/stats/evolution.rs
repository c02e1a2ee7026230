//! How clusters evolve: size classes, retention, changes of hosts, change amounts (Fetterly 2004, section 3).
//!
//! With C_n(u) the cluster of URL u in week n, a set of c URLs that share both their cluster of the first week and
//! their cluster of week m gives each of them
//!
//! ```text
//! Phi_1^m = c / |C_1|     Psi_1^m = c / (|C_1| + |C_m| - c)     Phi_m^1 = c / |C_m|
//! ```
//!
//! so that means over URLs are sums of c²/d over such sets. They are summed in fixed point (64 bits behind the point),
//! where addition is exact and has no order: a mean does not depend on how many workers summed. Each set is rounded
//! down once, by less than 2^-64: what holds of each fraction (Psi <= Phi <= 1) holds of the sums, and the mean of
//! fractions that are all 1 is 1.

use serde::{Deserialize, Serialize};

/// The classes of clusters by size (Fetterly 2004, section 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum SizeClass {
    /// No page. A cluster that has only births has no page of an earlier week.
    None,
    /// A singleton.
    One,
    /// 2 to 10 pages.
    Ten,
    /// 11 to 100.
    Hundred,
    /// 101 to 1,000.
    Thousand,
    /// 1,001 to 10,000.
    TenThousand,
    /// 10,001 to 100,000.
    HundredThousand,
    /// More.
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

    /// The study's seven: those of clusters that have pages.
    pub fn study() -> impl Iterator<Item = SizeClass> {
        SizeClass::ALL.into_iter().skip(1)
    }

    /// The class of a cluster of so many pages.
    pub fn of(size: u64) -> SizeClass {
        const TOPS: [u64; 7] = [0, 1, 10, 100, 1_000, 10_000, 100_000];
        SizeClass::ALL[TOPS.partition_point(|top| *top < size)]
    }

    /// The name that tables hold.
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

/// Sums of Phi and Psi over the URLs of a class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Retained {
    /// URLs.
    pub documents: u64,
    containment: u128,
    similarity: u128,
    reverse: u128,
}

/// Bits behind the point.
const POINT: u32 = 64;

impl Retained {
    /// Adds `common` URLs whose clusters in the two weeks are the same two, of `first` and `later` URLs. False where
    /// such clusters cannot be: then nothing is added.
    #[must_use]
    pub fn add(&mut self, common: u64, first: u64, later: u64) -> bool {
        if common > first.min(later) {
            return false;
        }
        self.documents += common;
        self.containment += each(common, first);
        self.similarity += each(common, first + (later - common));
        self.reverse += each(common, later);
        true
    }

    /// Adds what was summed elsewhere.
    pub fn merge(&mut self, other: &Retained) {
        self.documents += other.documents;
        self.containment += other.containment;
        self.similarity += other.similarity;
        self.reverse += other.reverse;
    }

    /// The mean of Phi_1^m (Fig. 4); `None` of no URLs.
    pub fn retention(&self) -> Option<f64> {
        self.mean(self.containment)
    }

    /// The mean of Psi_1^m (Fig. 5).
    pub fn similarity(&self) -> Option<f64> {
        self.mean(self.similarity)
    }

    /// The mean of Phi_m^1 (Fig. 7).
    pub fn reverse(&self) -> Option<f64> {
        self.mean(self.reverse)
    }

    fn mean(&self, sum: u128) -> Option<f64> {
        Some(sum.checked_div(self.documents.into())? as f64 / 2f64.powi(POINT as i32))
    }
}

/// `common` URLs of which each has `common / all`, summed in fixed point; `all` is at least `common`.
fn each(common: u64, all: u64) -> u128 {
    if common == 0 {
        return 0;
    }
    let (square, all) = (u128::from(common) * u128::from(common), u128::from(all));
    // At most `common` before the point, as `all` is no less; behind it the remainder is below `all`, 64 bits.
    ((square / all) << POINT) + ((square % all) << POINT) / all
}

/// What a change amount means (Fetterly 2004, Fig. 10).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// No feature is equal.
    Complete,
    /// At most a third of the features is equal (1 to 28 of 84).
    Large,
    /// At most two thirds (29 to 56).
    Medium,
    /// More, but not all (57 to 83).
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

    /// The class of a change amount, of so many features.
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

    /// The name that tables hold.
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

/// The change amount of a URL between two downloads: the number of equal features, 0 to `features`, or one more where
/// the bytes are equal, whatever the features. Features are four bytes each; a page without words has none, and none
/// of its features is equal to any.
pub fn change_amount(same_bytes: bool, earlier: &[u8], later: &[u8], features: usize) -> usize {
    if same_bytes {
        return features + 1;
    }
    let (earlier, later) = (earlier.as_chunks::<4>().0, later.as_chunks::<4>().0);
    earlier.iter().zip(later).filter(|(a, b)| a == b).count()
}

/// Pairs of successive downloads, by change amount and size class.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Amounts {
    features: usize,
    pairs: Vec<BySize>,
}

/// One change amount in one size class.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AmountShare {
    /// The change amount.
    pub amount: usize,
    /// The class.
    pub class: SizeClass,
    /// Pairs of downloads.
    pub pairs: u64,
    /// These over the pairs of all classes with this amount (Fig. 8); `None` where there are none.
    pub share: Option<f64>,
    /// The share over the class' mean share (Fig. 9): the mean over the amounts that occur, each counted once.
    pub relative: Option<f64>,
}

/// One class of changes in one size class.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChangeShare {
    /// The size class.
    pub class: SizeClass,
    /// The class of changes.
    pub change: Change,
    /// Pairs of downloads.
    pub pairs: u64,
    /// These over all pairs of the size class (Fig. 10); `None` where there are none.
    pub share: Option<f64>,
}

impl Amounts {
    /// No pairs yet, of pages with so many features.
    pub fn new(features: usize) -> Amounts {
        Amounts { features, pairs: vec![BySize::default(); features + 2] }
    }

    /// Adds a pair.
    pub fn add(&mut self, amount: usize, class: SizeClass) {
        self.pairs[amount][class as usize] += 1;
    }

    /// Adds what was counted elsewhere, of as many features.
    pub fn merge(&mut self, other: &Amounts) {
        for (sums, counts) in self.pairs.iter_mut().zip(&other.pairs) {
            add_by_size(sums, counts);
        }
    }

    /// Every amount in every class, by amount (Fig. 8 and 9).
    pub fn shares(&self) -> Vec<AmountShare> {
        let share = |of: &BySize, class: SizeClass| ratio(of[class as usize], of.iter().sum());
        let mean = |class: SizeClass| {
            let shares: Vec<f64> = self.pairs.iter().filter_map(|of| share(of, class)).collect();
            shares.iter().sum::<f64>() / shares.len() as f64
        };
        let means: Vec<(SizeClass, f64)> = SizeClass::study().map(|class| (class, mean(class))).collect();
        let of_amount = |(amount, of)| {
            means.iter().map(move |&(class, mean)| {
                let share = share(of, class);
                let relative = share.filter(|_| mean > 0.0).map(|share| share / mean);
                AmountShare { amount, class, pairs: of[class as usize], share, relative }
            })
        };
        self.pairs.iter().enumerate().flat_map(of_amount).collect()
    }

    /// Every class of changes in every size class, by size (Fig. 10).
    pub fn changes(&self) -> Vec<ChangeShare> {
        let mut changes = Vec::new();
        for class in SizeClass::study() {
            let all = self.pairs.iter().map(|of| of[class as usize]).sum();
            for change in Change::ALL {
                let amounts = self.pairs.iter().enumerate().filter(|(at, _)| Change::of(*at, self.features) == change);
                let pairs = amounts.map(|(_, of)| of[class as usize]).sum();
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

/// A part of a whole; `None` of nothing.
pub fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// The change of each host's number of clusters from `first` to `last` (Fig. 6): both have (host, clusters), each host
/// once, in order; a host that is missing has no clusters.
pub fn cluster_changes<H: Ord>(first: &[(H, u64)], last: &[(H, u64)]) -> Vec<i64> {
    let (mut first, mut last) = (first.iter().peekable(), last.iter().peekable());
    let mut changes = Vec::new();
    loop {
        let host = match (first.peek(), last.peek()) {
            (None, None) => return changes,
            (Some((host, _)), None) | (None, Some((host, _))) => host,
            (Some((a, _)), Some((b, _))) => a.min(b),
        };
        let had = first.next_if(|(of, _)| of == host).map_or(0, |(_, clusters)| *clusters as i64);
        let has = last.next_if(|(of, _)| of == host).map_or(0, |(_, clusters)| *clusters as i64);
        changes.push(has - had);
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
        assert_eq!(cut(1), [1, 2], "of one feature all or none is equal");
    }

    #[test]
    fn equal_bytes_decide_alone_and_pages_without_words_share_nothing() {
        let (a, b) = ([1u32, 2, 3].map(u32::to_le_bytes).concat(), [1u32, 9, 3].map(u32::to_le_bytes).concat());
        assert_eq!(change_amount(false, &a, &b, 3), 2);
        assert_eq!(change_amount(false, &a, &a, 3), 3);
        assert_eq!(change_amount(true, &a, &b, 3), 4);
        assert_eq!(change_amount(true, &[], &[], 3), 4);
        assert_eq!((change_amount(false, &[], &[], 3), change_amount(false, &a, &[], 3)), (0, 0));
    }

    #[test]
    fn what_is_no_intersection_is_refused() {
        let mut retained = Retained::default();
        assert!(!retained.add(3, 2, 5) && !retained.add(3, 5, 2));
        assert_eq!((retained, retained.retention()), (Retained::default(), None));
    }

    #[test]
    fn the_largest_numbers_do_not_overflow() {
        let most = 1 << 56;
        let mut retained = Retained::default();
        assert!(retained.add(most, most, most) && retained.add(most - 1, most, most));
        assert!(retained.retention().unwrap() <= 1.0 && retained.similarity().unwrap() > 0.99);
    }

    proptest! {
        /// The twin goes over URLs, and takes intersections and unions of sets.
        #[test]
        fn retention_is_the_mean_over_urls(clusters in prop::collection::vec((0u8..9, 0u8..7, any::<bool>()), 1..80)) {
            let set = |of: &dyn Fn(&(u8, u8, bool)) -> bool| -> BTreeSet<usize> {
                (0..clusters.len()).filter(|url| of(&clusters[*url])).collect()
            };
            // A URL that was not there in the first week has no cluster of it.
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
            let mut ours: BTreeMap<SizeClass, Retained> = BTreeMap::new();
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
            let mut halves = [Amounts::new(6), Amounts::new(6)];
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
                let mean = of.iter().sum::<f64>() / of.len() as f64;
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
