//! The pairs that hold a cluster together: a maximum spanning forest of its documents.
//!
//! ```text
//! sets            ─▶ the first of equal sets, with their elements by rank: the rarest first
//! for each of some similarities, the largest first:
//!     pairs that are as similar, of documents that more similar pairs do not join
//!     the most similar pair first: each that joins two parts is one of the forest
//! ```
//!
//! At any threshold, the clusters are the components of the pairs of the forest from there on,
//! because a pair of two documents that more similar pairs join changes no component. So pairs of
//! one part are not compared. Others are compared if they have an element in their prefixes: in
//! those of their rarest elements that they cannot both lack (Chaudhuri, Ganti, Kaushik 2006). The
//! sets with an element in their prefixes are kept by part, so that a set passes over those of its
//! own part at once. When all sets are one part, no further pairs are looked for.
//!
//! Memory: some 60 bytes for each element of the cluster, and a bounded number of pairs. Known
//! limit: parts are joined between two similarities. So all pairs are compared of documents that
//! have much in common, and that no pair joins before the similarity that they have: n pages of one
//! template, each with a few words of its own, are n²/2 comparisons.

use std::cmp::Reverse;

use serde::{Deserialize, Serialize};

use crate::operators::set_join::{ExactShare, Requirement};
use crate::structures::OwnUnionFind;

/// Similarities, in millionths, at which the pairs of a large cluster are looked for one after the
/// other.
const STEPS: [u32; 12] =
    [999_000, 998_000, 995_000, 990_000, 970_000, 940_000, 900_000, 850_000, 800_000, 700_000, 600_000, 500_000];
/// Documents of a small cluster, at most: its pairs are looked for at once.
const SMALL: usize = 32;
/// Pairs that wait to be sorted, besides those of a forest.
const MOST_PAIRS: usize = 1 << 20;

/// A pair that joins two parts of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Join {
    /// The numbers of the two documents, the smaller one first.
    pub places: [u32; 2],
    /// The shingles that both have, divided by those that either has.
    pub similarity: f64,
}

/// The pairs of the forest of sets that are at least so similar, in descending order of their
/// similarity. The elements of each set are distinct.
pub(super) fn joins(sets: &[&[u64]], least: ExactShare) -> Vec<Join> {
    joins_with(sets, least, MOST_PAIRS)
}

/// As [`joins`], with so many pairs that wait to be sorted.
fn joins_with(sets: &[&[u64]], least: ExactShare, most_pairs: usize) -> Vec<Join> {
    let (mut parts, ranked) = (OwnUnionFind::new(sets.len()), Ranked::new(sets));
    let mut joins: Vec<Join> = Vec::new();
    for equal in &ranked.equal {
        parts.join(*equal);
        joins.push(Join { places: *equal, similarity: 1.0 });
    }
    let steps = STEPS.into_iter().filter_map(ExactShare::of_millionths);
    let steps = steps.filter(|step| ranked.firsts.len() > SMALL && *step > least);
    // Empty sets are joined to none.
    let mut parts_left = ranked.firsts.iter().filter(|place| !ranked.sets[**place as usize].is_empty()).count();
    for step in steps.chain([least]) {
        if parts_left < 2 {
            break;
        }
        for pair in ranked.pairs(Requirement::Resemblance(step), &mut parts, most_pairs) {
            if parts.join(pair.places).is_some() {
                parts_left -= 1;
                joins.push(pair);
            }
        }
    }
    joins
}

/// Sorts pairs, the most similar first.
fn sort(pairs: &mut [Join]) {
    // Similarities are not negative: their bits have their order.
    pairs.sort_unstable_by_key(|pair| (Reverse(pair.similarity.to_bits()), pair.places));
}

/// Leaves the pairs of a forest.
fn leave_forest(pairs: &mut Vec<Join>, parts: &OwnUnionFind) {
    let mut parts = parts.clone();
    sort(pairs);
    pairs.retain(|pair| parts.join(pair.places).is_some());
}

/// Sets of ranks: elements that are numbered, those first that the fewest sets have.
struct Ranked {
    sets: Vec<Vec<u32>>,
    /// Ranks below are those of elements that one set has alone.
    alone: u32,
    /// The number of ranks.
    ranks: u32,
    /// The first of equal sets, by the number of elements.
    firsts: Vec<u32>,
    /// Each other set, behind the first one that is equal.
    equal: Vec<[u32; 2]>,
}

impl Ranked {
    fn new(sets: &[&[u64]]) -> Ranked {
        let mut all: Vec<u64> = sets.concat();
        all.sort_unstable();
        let mut by_count: Vec<(usize, u64)> = all.chunk_by(|a, b| a == b).map(|of| (of.len(), of[0])).collect();
        by_count.sort_unstable();
        let alone = by_count.partition_point(|(count, _)| *count == 1) as u32;
        let mut ranks: Vec<(u64, u32)> = by_count.iter().map(|(_, element)| *element).zip(0..).collect();
        ranks.sort_unstable();
        let rank = |element: &u64| ranks[ranks.partition_point(|(of, _)| of < element)].1;
        let ranked = |set: &&[u64]| {
            let mut set: Vec<u32> = set.iter().map(rank).collect();
            set.sort_unstable();
            set
        };
        let sets: Vec<Vec<u32>> = sets.iter().map(ranked).collect();
        let mut places: Vec<u32> = (0..sets.len() as u32).collect();
        places.sort_by_key(|place| (sets[*place as usize].len(), &sets[*place as usize], *place));
        let (mut firsts, mut equal) = (Vec::new(), Vec::new());
        for of_set in places.chunk_by(|a, b| sets[*a as usize] == sets[*b as usize]) {
            firsts.push(of_set[0]);
            // Without elements there is nothing to compare.
            let others = of_set[1..].iter().filter(|other| !sets[**other as usize].is_empty());
            equal.extend(others.map(|other| [of_set[0], *other]));
        }
        Ranked { sets, alone, ranks: ranks.len() as u32, firsts, equal }
    }

    /// The pairs of different parts that meet a requirement, as far as a forest has them; the most
    /// similar first.
    fn pairs(&self, requirement: Requirement, parts: &mut OwnUnionFind, most_pairs: usize) -> Vec<Join> {
        let mut pairs: Vec<Join> = Vec::new();
        let mut with: Vec<Vec<OfPart>> = vec![Vec::new(); (self.ranks - self.alone) as usize];
        let mut chained: Vec<Chained> = Vec::new();
        let mut seen_by = vec![u32::MAX; self.sets.len()];
        for place in &self.firsts {
            let set = &self.sets[*place as usize];
            let Some(free) = (set.len() as u64).checked_sub(requirement.least(set.len() as u64)) else { continue };
            let prefix = &set[..=free as usize];
            let prefix = &prefix[prefix.partition_point(|rank| *rank < self.alone)..];
            let root = parts.root(*place);
            for rank in prefix {
                let parts_with = &mut with[(rank - self.alone) as usize];
                for of_part in parts_with.iter().filter(|of_part| of_part.root != root) {
                    let mut next = of_part.last;
                    while let Some(Chained { place: other, before }) = chained.get(next as usize).copied() {
                        next = before;
                        if std::mem::replace(&mut seen_by[other as usize], *place) == *place {
                            continue;
                        }
                        let others = &self.sets[other as usize];
                        let least = requirement.least_of_pair([set.len() as u64, others.len() as u64]);
                        if let Some(shared) = shared(set, others, least as usize) {
                            let similarity = shared as f64 / (set.len() + others.len() - shared) as f64;
                            pairs.push(Join { places: [*place.min(&other), *place.max(&other)], similarity });
                        }
                    }
                }
                let number = chained.len() as u32;
                let before = match parts_with.iter_mut().find(|of_part| of_part.root == root) {
                    Some(of_part) => std::mem::replace(&mut of_part.last, number),
                    None => {
                        parts_with.push(OfPart { root, last: number });
                        NONE
                    }
                };
                chained.push(Chained { place: *place, before });
            }
            if pairs.len() >= most_pairs + 2 * self.sets.len() {
                leave_forest(&mut pairs, parts);
            }
        }
        sort(&mut pairs);
        pairs
    }
}

/// The sets of a part that have an element in their prefixes: a chain, from the last one.
#[derive(Clone, Copy)]
struct OfPart {
    root: u32,
    /// Its number among all links.
    last: u32,
}

/// A link of such a chain.
#[derive(Clone, Copy)]
struct Chained {
    place: u32,
    /// The number of the one before, or [`NONE`].
    before: u32,
}

/// The number of no link.
const NONE: u32 = u32::MAX;

/// How many numbers two ascending lists share; `None` if they are fewer than `least`, which is
/// noticed early.
fn shared(a: &[u32], b: &[u32], least: usize) -> Option<usize> {
    let (mut left, mut right, mut shared) = (0, 0, 0);
    while left < a.len() && right < b.len() {
        if shared + (a.len() - left).min(b.len() - right) < least {
            return None;
        }
        let (x, y) = (a[left], b[right]);
        shared += usize::from(x == y);
        left += usize::from(x <= y);
        right += usize::from(y <= x);
    }
    (shared >= least).then_some(shared)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::records::mix;

    /// The smallest document of the part of each, by all pairs from a similarity on.
    fn slow_roots(sets: usize, pairs: &[([usize; 2], f64)], least: f64) -> Vec<u32> {
        let mut roots: Vec<u32> = (0..sets as u32).collect();
        for ([a, b], _) in pairs.iter().filter(|(_, similarity)| *similarity >= least) {
            let [x, y] = [roots[*a].min(roots[*b]), roots[*a].max(roots[*b])];
            roots.iter_mut().filter(|root| **root == y).for_each(|root| *root = x);
        }
        roots
    }

    fn similarity(a: &[u64], b: &[u64]) -> f64 {
        let [a, b] = [a, b].map(|set| set.iter().copied().collect::<BTreeSet<u64>>());
        let union = a.union(&b).count();
        if union == 0 { 0.0 } else { a.intersection(&b).count() as f64 / union as f64 }
    }

    fn compare(sets: &[Vec<u64>], least: u32) {
        let sets: Vec<&[u64]> = sets.iter().map(Vec::as_slice).collect();
        let share = ExactShare::of_millionths(least).unwrap();
        let joins = joins(&sets, share);
        compare_joins(&sets, least, &joins);
        // Pairs are left out on the way.
        assert_eq!(joins_with(&sets, share, 0), joins);
    }

    fn compare_joins(sets: &[&[u64]], least: u32, joins: &[Join]) {
        assert!(joins.is_sorted_by(|a, b| a.similarity >= b.similarity));
        let floor = f64::from(least) / 1e6;
        let mut pairs = Vec::new();
        for (a, of_a) in sets.iter().enumerate() {
            pairs.extend(sets[..a].iter().enumerate().map(|(b, of_b)| ([a, b], similarity(of_a, of_b))));
        }
        let mut thresholds: Vec<f64> = vec![floor, 0.9, 0.95, 0.999, 1.0];
        thresholds.extend(pairs.iter().map(|(_, similarity)| *similarity));
        thresholds.retain(|threshold| *threshold >= floor);
        thresholds.sort_unstable_by(f64::total_cmp);
        thresholds.dedup();
        for threshold in thresholds {
            let mut parts = OwnUnionFind::new(sets.len());
            for join in joins.iter().filter(|join| join.similarity >= threshold) {
                assert!(parts.join(join.places).is_some(), "no pair is one too many");
            }
            let roots: Vec<u32> = (0..sets.len() as u32).map(|place| parts.root(place)).collect();
            assert_eq!(roots, slow_roots(sets.len(), &pairs, threshold), "at {threshold} of {} sets", sets.len());
        }
    }

    #[test]
    fn components_at_each_threshold_are_those_of_all_pairs() {
        let mut random = 1;
        let mut below = |end: u64| {
            random = mix(random);
            random % end
        };
        for (count, length, changes) in [(1, 5, 2), (2, 3, 2), (12, 30, 6), (30, 40, 20), (70, 25, 8), (90, 60, 30)] {
            // Each set is one before it with some elements changed, taken out or added.
            let mut sets: Vec<Vec<u64>> = vec![(0..length).map(|_| below(1 << 40)).collect()];
            while sets.len() < count {
                let mut set = sets[below(sets.len() as u64) as usize].clone();
                for _ in 0..below(changes) {
                    let place = below(set.len() as u64) as usize;
                    match below(3) {
                        0 => set[place] = below(1 << 40),
                        1 if set.len() > 2 => _ = set.swap_remove(place),
                        _ => set.push(below(60)),
                    }
                }
                set.sort_unstable();
                set.dedup();
                sets.push(set);
            }
            compare(&sets, 500_000);
            compare(&sets, 800_000);
        }
    }

    #[test]
    fn equal_and_empty_sets_and_one_element_in_all() {
        compare(&vec![vec![1, 2, 3]; 50], 500_000);
        compare(&[vec![], vec![], vec![1], vec![1], vec![2], vec![1, 2]], 500_000);
        let chain: Vec<Vec<u64>> = (0..60).map(|n| (n..n + 20).collect()).collect();
        compare(&chain, 600_000);
        let alike: Vec<Vec<u64>> = (0..60).map(|n| (0..20).chain([100 + n]).collect()).collect();
        compare(&alike, 900_000);
    }

    #[test]
    fn pairs_are_left_out_on_the_way() {
        // All pairs of these are found at one similarity: many more than are kept.
        let sets: Vec<Vec<u64>> = (0..200).map(|n| (0..50).chain([100 + n, 500 + n % 7]).collect()).collect();
        let sets: Vec<&[u64]> = sets.iter().map(Vec::as_slice).collect();
        let least = ExactShare::of_millionths(900_000).unwrap();
        let (all, few) = (joins(&sets, least), joins_with(&sets, least, 0));
        assert_eq!(all.len(), 199);
        assert_eq!(all, few);
        let ranked = Ranked::new(&sets);
        let pairs = |most| ranked.pairs(Requirement::Resemblance(least), &mut OwnUnionFind::new(200), most).len();
        assert_eq!(pairs(MOST_PAIRS), 200 * 199 / 2);
        assert!(pairs(0) < 1000);
    }

    #[test]
    fn sets_that_are_one_part_after_some_steps() {
        // Each set is near the one before.
        let sets: Vec<Vec<u64>> = (0..300).map(|n| (n..n + 1000).collect()).collect();
        compare(&sets[..40], 500_000);
        let sets: Vec<&[u64]> = sets.iter().map(Vec::as_slice).collect();
        let joins = joins(&sets, ExactShare::of_millionths(500_000).unwrap());
        assert_eq!(joins.len(), 299);
        assert!(joins.iter().all(|join| join.similarity == 999.0 / 1001.0));
    }
}
