//! The shortest chain of links between two pages of a cluster.
//!
//! ```text
//! pages with the same values are one node
//! breadth first from the first page: a page's neighbours are counted through an inverted index of the values at their places
//! ```
//!
//! Cost: for each page that is passed, the lists of its values. Most clusters are dense, and few
//! pages are passed.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use crate::structures::CompactSort;

/// Pages by number, each with `width` values: supershingles or features.
pub(super) struct Values<'a> {
    pub(super) values: &'a [u64],
    pub(super) width: usize,
}

impl Values<'_> {
    fn of(&self, page: usize) -> &[u64] {
        &self.values[page * self.width..][..self.width]
    }

    /// The shortest chain of pages from one to the other in which neighbours have at least `least`
    /// values in common, both ends included. Of equally short ones, that with the smallest numbers.
    /// `None` if there is none.
    pub(super) fn chain(&self, from: usize, to: usize, least: usize) -> Option<Vec<usize>> {
        let pages = self.values.len() / self.width;
        // The first page with the same values stands for the others; the ends stand for themselves.
        let mut firsts: HashMap<&[u64], usize> = HashMap::new();
        for page in [from, to].into_iter().chain(0..pages) {
            firsts.entry(self.of(page)).or_insert(page);
        }
        if firsts[self.of(to)] != to {
            return Some(vec![from, to]);
        }
        let mut nodes: Vec<usize> = firsts.into_values().collect();
        nodes.sort_rows();
        let mut holders: HashMap<(usize, u64), Vec<usize>> = HashMap::new();
        for node in &nodes {
            self.of(*node)
                .iter()
                .enumerate()
                .for_each(|value| holders.entry((value.0, *value.1)).or_default().push(*node));
        }
        let mut before: Vec<Option<usize>> = vec![None; pages];
        let mut queue = VecDeque::from([from]);
        before[from] = Some(from);
        let mut common: HashMap<usize, usize> = HashMap::new();
        while let Some(page) = queue.pop_front() {
            common.clear();
            for (place, value) in self.of(page).iter().enumerate() {
                let reached = holders[&(place, *value)].iter().filter(|node| before[**node].is_none());
                reached.for_each(|node| *common.entry(*node).or_default() += 1);
            }
            let mut next: Vec<usize> =
                common.iter().filter(|(_, count)| **count >= least).map(|(node, _)| *node).collect();
            next.sort_rows();
            for node in next {
                before[node] = Some(page);
                if node == to {
                    return Some(walk_back(|page| before[page], from, to));
                }
                queue.push_back(node);
            }
        }
        None
    }
}

/// The shortest chain of pages from one to the other over these links, both ends included. Of
/// equally short ones, that with the smallest numbers. `None` if there is none.
pub(super) fn chain_over(links: &BTreeSet<[usize; 2]>, from: usize, to: usize) -> Option<Vec<usize>> {
    let mut neighbours: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    for [a, b] in links {
        neighbours.entry(*a).or_default().insert(*b);
        neighbours.entry(*b).or_default().insert(*a);
    }
    let mut before = BTreeMap::from([(from, from)]);
    let mut queue = VecDeque::from([from]);
    while let Some(page) = queue.pop_front().filter(|page| *page != to) {
        for next in neighbours.get(&page).into_iter().flatten() {
            before.entry(*next).or_insert_with(|| {
                queue.push_back(*next);
                page
            });
        }
    }
    before.contains_key(&to).then(|| walk_back(|page| before.get(&page).copied(), from, to))
}

/// The way from one page to another, given the page before each.
fn walk_back(before: impl Fn(usize) -> Option<usize>, from: usize, to: usize) -> Vec<usize> {
    let mut chain = vec![to];
    let mut page = to;
    while page != from {
        page = before(page).unwrap_or(from);
        chain.push(page);
    }
    chain.reverse();
    chain
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::mix;

    /// The values that two pages have in common, each at the same place.
    fn common(values: &Values<'_>, a: usize, b: usize) -> usize {
        values.of(a).iter().zip(values.of(b)).filter(|(a, b)| a == b).count()
    }

    #[test]
    fn chains_are_shortest_ways() {
        for seed in 0..60 {
            let (pages, width) = (2 + mix(seed) as usize % 25, 3);
            let values: Vec<u64> = (0..(pages * width) as u64).map(|place| mix(seed << 32 | place) % 4).collect();
            let values = Values { values: &values, width };
            for least in 1..=width {
                // All ways, by Floyd and Warshall.
                let mut steps = vec![vec![usize::MAX / 2; pages]; pages];
                for (a, b) in (0..pages).flat_map(|a| (0..pages).map(move |b| (a, b))) {
                    if a != b && common(&values, a, b) >= least {
                        steps[a][b] = 1;
                    }
                }
                for (over, a, b) in
                    (0..pages).flat_map(|over| (0..pages).flat_map(move |a| (0..pages).map(move |b| (over, a, b))))
                {
                    steps[a][b] = steps[a][b].min(steps[a][over] + steps[over][b]);
                }
                for (a, b) in (0..pages).flat_map(|a| (0..pages).map(move |b| (a, b))).filter(|(a, b)| a != b) {
                    let chain = values.chain(a, b, least);
                    let Some(chain) = chain else {
                        assert!(steps[a][b] > pages, "seed {seed}: {a} to {b}");
                        continue;
                    };
                    assert_eq!((chain[0], chain[chain.len() - 1]), (a, b));
                    assert!(chain.windows(2).all(|pair| common(&values, pair[0], pair[1]) >= least));
                    assert_eq!(chain.len() - 1, steps[a][b], "seed {seed}: {chain:?}");
                }
            }
        }
    }
}
