//! The distinct paragraphs of one page, without sorting them.

use crate::records::fold;

/// Finds the distinct values of one page after the other. The table is emptied by a new stamp, not
/// by writing it.
#[derive(Clone, Debug)]
pub struct PageSets {
    /// Values, each with the stamp of the page that it was seen in.
    slots: Vec<(u64, u64)>,
    stamp: u64,
}

impl Default for PageSets {
    fn default() -> PageSets {
        PageSets { slots: vec![(0, 0); 64], stamp: 0 }
    }
}

/// A set of paragraphs, as a page has it: equal for pages with the same set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SetOfPage {
    /// The number of distinct paragraphs.
    pub distinct: u32,
    /// Two sums over the distinct paragraphs: of the folded squares of their hashes, and of the
    /// hashes. Two sets have the same ones by a chance of less than 2^-100.
    pub sums: [u64; 2],
    /// Which of 64 kinds of hashes the set has: a part of the set has a part of these bits.
    pub signature: u64,
}

impl SetOfPage {
    /// A hash of the set, which is never 0.
    pub fn hash(&self) -> u64 {
        fold(&[self.sums[0], self.sums[1], self.distinct.into()]).max(1)
    }
}

/// The two halves of the square of a hash, one over the other: one multiplication.
#[inline]
fn folded_square(hash: u64) -> u64 {
    let square = u128::from(hash) * u128::from(hash);
    square as u64 ^ (square >> 64) as u64
}

impl PageSets {
    /// Calls `take` once with each distinct value, in the order in which they are first seen.
    #[inline]
    pub fn each(&mut self, values: &[u64], mut take: impl FnMut(u64)) {
        if 2 * values.len() > self.slots.len() {
            self.slots = vec![(0, 0); (2 * values.len()).next_power_of_two()];
        }
        self.stamp += 1;
        let last = self.slots.len() - 1;
        for value in values {
            // The values are hashes.
            let mut at = *value as usize & last;
            while self.slots[at].1 == self.stamp && self.slots[at].0 != *value {
                at = (at + 1) & last;
            }
            if self.slots[at].1 != self.stamp {
                self.slots[at] = (*value, self.stamp);
                take(*value);
            }
        }
    }

    /// A hash of the set of the paragraphs of a page, which is never 0.
    pub fn hash(&mut self, paragraphs: &[u64]) -> u64 {
        self.set(paragraphs).hash()
    }

    /// The set of the paragraphs of a page.
    pub(super) fn set(&mut self, paragraphs: &[u64]) -> SetOfPage {
        let mut set = SetOfPage::default();
        self.each(paragraphs, |paragraph| {
            set.distinct += 1;
            set.sums[0] = set.sums[0].wrapping_add(folded_square(paragraph));
            set.sums[1] = set.sums[1].wrapping_add(paragraph);
            set.signature |= 1 << (paragraph >> 58);
        });
        set
    }

    /// Replaces `distinct` by the distinct values, ascending.
    pub(super) fn sorted(&mut self, values: &[u64], distinct: &mut Vec<u64>) {
        distinct.clear();
        self.each(values, |value| distinct.push(value));
        distinct.sort_unstable();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::records::mix;

    #[test]
    fn sets_are_those_of_a_search_tree() {
        let (mut distinct, mut sorted) = (PageSets::default(), Vec::new());
        let mut seen = std::collections::HashMap::new();
        for page in 0..2000u64 {
            // Values that meet in few slots, many of them repeated; the zero, too.
            let length = [0, 1, 3, 25, 400][(page % 5) as usize];
            let values: Vec<u64> = (0..length).map(|at| mix(page % 7 * 1000 + at * at % 30) & 0xF00F).collect();
            let twin: BTreeSet<u64> = values.iter().copied().collect();
            distinct.sorted(&values, &mut sorted);
            assert!(sorted.iter().eq(&twin), "{values:?}");
            let set = distinct.set(&values);
            assert_eq!(set.distinct as usize, twin.len());
            assert_eq!(*seen.entry(twin).or_insert(set), set);
        }
        let sums: BTreeSet<[u64; 2]> = seen.values().map(|set| set.sums).collect();
        assert_eq!(sums.len(), seen.len());
    }
}
