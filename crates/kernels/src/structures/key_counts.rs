//! Counts by key, in a vector that is sorted and merged whenever its length has doubled.
//!
//! Callers want the sorted list of all keys; a hash table beside it would only take more memory.
//! Morally it does this:
//!
//! ```text
//! add(key, count):  counts[key] += count         a map
//! finish():         counts, sorted by key
//! ```
//!
//! The vector has at most twice as many records as there are keys, or 2^14. To add a record costs
//! log n comparisons of sorting, part of them in cache.

/// Counts by key.
///
/// ```
/// use nigh_kernels::structures::Sums;
///
/// let mut pages = Sums::default();
/// for (host, count) in [("b.example", 1), ("a.example", 1), ("b.example", 2)] {
///     pages.add(host, count);
/// }
/// assert_eq!(pages.finish(), [("a.example", 1), ("b.example", 3)]);
/// ```
#[derive(Clone, Debug)]
pub struct Sums<K> {
    counts: Vec<(K, u64)>,
    /// The number of records at which they are merged.
    merge_at: usize,
}

/// Fewer records than this are not merged.
const SMALLEST_MERGE: usize = 1 << 14;

impl<K> Default for Sums<K> {
    fn default() -> Sums<K> {
        Sums { counts: Vec::new(), merge_at: SMALLEST_MERGE }
    }
}

impl<K: Ord> Sums<K> {
    /// Adds a count to a key.
    #[inline]
    pub fn add(&mut self, key: K, count: u64) {
        if self.counts.len() == self.merge_at {
            self.merge();
            self.merge_at = (2 * self.counts.len()).max(SMALLEST_MERGE);
        }
        self.counts.push((key, count));
    }

    /// Returns every key once, in order, with its count.
    pub fn finish(mut self) -> Vec<(K, u64)> {
        self.merge();
        self.counts
    }

    fn merge(&mut self) {
        self.counts.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        self.counts.dedup_by(|(next, count), (key, sum)| {
            let same = next == key;
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
        for (records, keys) in
            [(0, 1), (1, 1), (5, 3), (3 * SMALLEST_MERGE as u64, 10), (5 * SMALLEST_MERGE as u64, 1 << 40)]
        {
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
