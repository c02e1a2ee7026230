//! Counts by key, in a vector that is sorted and merged whenever it has doubled.
//!
//! What is asked for is the sorted list of all keys: a hash table beside it would only take more memory. Holds at most
//! twice the keys that there are (and some thousands); adding costs a sort of log n steps, some of them in cache.

/// Counts by key.
#[derive(Clone, Debug)]
pub struct Sums<K> {
    counts: Vec<(K, u64)>,
    /// Records from which on they are merged.
    full: usize,
}

/// Fewer records than this are not worth a merge.
const SOME: usize = 1 << 14;

impl<K> Default for Sums<K> {
    fn default() -> Sums<K> {
        Sums { counts: Vec::new(), full: SOME }
    }
}

impl<K: Ord> Sums<K> {
    /// Adds a count to a key.
    #[inline]
    pub fn add(&mut self, key: K, count: u64) {
        if self.counts.len() == self.full {
            self.merge();
            self.full = (2 * self.counts.len()).max(SOME);
        }
        self.counts.push((key, count));
    }

    /// Every key once, in order, with its count.
    pub fn finish(mut self) -> Vec<(K, u64)> {
        self.merge();
        self.counts
    }

    fn merge(&mut self) {
        self.counts.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        self.counts.dedup_by(|(next, count), (kept, sum)| {
            let same = next == kept;
            *sum += if same { *count } else { 0 };
            same
        });
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::records::mix;

    #[test]
    fn sums_are_those_of_a_map() {
        for (records, keys) in [(0, 1), (1, 1), (5, 3), (3 * SOME as u64, 10), (5 * SOME as u64, 1 << 40)] {
            let (mut sums, mut map) = (Sums::default(), BTreeMap::new());
            for record in 0..records {
                let (key, count) = (mix(record) % keys, mix(!record) % 5);
                sums.add(key, count);
                *map.entry(key).or_default() += count;
            }
            assert!(sums.finish().into_iter().eq(map), "{records} records of {keys} keys");
        }
    }
}
