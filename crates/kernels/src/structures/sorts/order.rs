//! Sorts with little code, for what is not sorted often enough to need a sort of its own.
//!
//! `sort_unstable` is compiled again for each type, 12 kB each time. These are compiled once for
//! each width of a row; the comparison is called through a pointer, which takes 1.4 times as long
//! for a million rows of two words, and 2.2 times for rows of one. So rows of which there is one
//! for each document, link or chunk are sorted by the standard library.

use std::cmp::Ordering;

use crate::kernels::width;

/// Sorts of slices that need little code.
///
/// ```
/// use nigh_kernels::structures::CompactSort;
///
/// let mut rows = [(3, 'c'), (1, 'z'), (2, 'a')];
/// rows.sort_rows();
/// assert_eq!(rows, [(1, 'z'), (2, 'a'), (3, 'c')]);
/// rows.sort_rows_by_key(|row| row.1);
/// assert_eq!(rows, [(2, 'a'), (3, 'c'), (1, 'z')]);
/// let mut items = ["b".to_owned(), "a".to_owned()];
/// items.sort_items();
/// assert_eq!(items, ["a", "b"]);
/// ```
pub trait CompactSort<T> {
    /// Sorts; equal rows come in no particular order.
    fn sort_rows(&mut self)
    where
        T: Copy + Ord;

    /// Sorts by a key; rows with equal keys come in no particular order.
    fn sort_rows_by_key<K: Ord>(&mut self, key: impl Fn(&T) -> K)
    where
        T: Copy;

    /// Sorts; equal items keep their order.
    fn sort_items(&mut self)
    where
        T: Ord;

    /// Sorts by a key; items with equal keys keep their order.
    fn sort_items_by_key<K: Ord>(&mut self, key: impl Fn(&T) -> K);

    /// Sorts by a comparison; items that are equal by it keep their order.
    fn sort_items_by(&mut self, compare: impl Fn(&T, &T) -> Ordering);
}

impl<T> CompactSort<T> for [T] {
    fn sort_rows(&mut self)
    where
        T: Copy + Ord,
    {
        if !width::sort(self, T::cmp) {
            self.sort_items();
        }
    }

    fn sort_rows_by_key<K: Ord>(&mut self, key: impl Fn(&T) -> K)
    where
        T: Copy,
    {
        let compare = |a: &T, b: &T| key(a).cmp(&key(b));
        if !width::sort(self, compare) {
            self.sort_items_by(compare);
        }
    }

    fn sort_items(&mut self)
    where
        T: Ord,
    {
        self.sort_items_by(T::cmp);
    }

    fn sort_items_by_key<K: Ord>(&mut self, key: impl Fn(&T) -> K) {
        self.sort_items_by(|a, b| key(a).cmp(&key(b)));
    }

    fn sort_items_by(&mut self, compare: impl Fn(&T, &T) -> Ordering) {
        let from = sorted_places(self.len(), &|a, b| compare(&self[a], &self[b]));
        move_to_places(from, &mut |a, b| self.swap(a, b));
    }
}

/// The places of items in the order of a comparison of places; equal ones in the order of their
/// places.
fn sorted_places(length: usize, compare: &dyn Fn(usize, usize) -> Ordering) -> Vec<usize> {
    let mut from: Vec<usize> = (0..length).collect();
    from.sort_unstable_by(|a, b| compare(*a, *b).then(a.cmp(b)));
    from
}

/// Moves the item at `from[place]` to each place, by swaps.
fn move_to_places(mut from: Vec<usize>, swap: &mut dyn FnMut(usize, usize)) {
    for first in 0..from.len() {
        // Along the cycle of `first`; places that are done have themselves.
        let mut place = first;
        loop {
            let next = std::mem::replace(&mut from[place], place);
            if next == first {
                break;
            }
            swap(place, next);
            place = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::records::mix;

    /// Rows of `N` words of few values, so that many are equal.
    fn rows<const N: usize>(count: u64) -> Vec<[u64; N]> {
        (0..count).map(|row| std::array::from_fn(|word| mix(row * 8 + word as u64) % 5)).collect()
    }

    /// `by_width` says whether a sort is compiled for the width and the alignment.
    fn sorts_as_the_standard_library<T: Copy + Ord + std::fmt::Debug>(by_width: bool, rows: Vec<T>) {
        assert_eq!(width::sort(&mut rows.clone(), T::cmp), by_width);
        let (mut sorted, mut expected) = (rows.clone(), rows);
        sorted.sort_rows();
        expected.sort();
        assert_eq!(sorted, expected);
        sorted.sort_rows_by_key(|row| std::cmp::Reverse(*row));
        expected.reverse();
        assert_eq!(sorted, expected);
    }

    #[test]
    fn rows_of_every_width_are_sorted() {
        for count in [0, 1, 2, 3, 19, 20, 21, 100, 5000] {
            sorts_as_the_standard_library(true, rows::<1>(count));
            sorts_as_the_standard_library(true, rows::<2>(count));
            sorts_as_the_standard_library(true, rows::<3>(count));
            sorts_as_the_standard_library(true, rows::<4>(count));
            sorts_as_the_standard_library(true, rows::<5>(count));
            sorts_as_the_standard_library(true, rows::<6>(count));
            sorts_as_the_standard_library(true, rows::<7>(count));
            sorts_as_the_standard_library(true, rows::<8>(count));
            sorts_as_the_standard_library(false, rows::<10>(count));
            sorts_as_the_standard_library(false, vec![(); count as usize]);
            let few = rows::<2>(count);
            sorts_as_the_standard_library(false, few.iter().map(|[a, _]| *a as u16).collect());
            sorts_as_the_standard_library(true, few.iter().map(|[a, _]| *a as u32).collect());
            // With bytes that are no part of a field.
            sorts_as_the_standard_library(true, few.iter().map(|[a, b]| (*a as u8, *b)).collect());
            sorts_as_the_standard_library(true, few.iter().map(|[a, b]| (*a as u32, *b as u32, *a as u8)).collect());
            sorts_as_the_standard_library(true, few.iter().map(|[a, b]| (u128::from(*a) << 70, *b)).collect());
        }
    }

    /// What panics while rows are compared leaves each of them once.
    #[test]
    fn a_panic_loses_no_row() {
        let mut rows: Vec<[u64; 2]> = (0..500).map(|row| [mix(row), row]).collect();
        let calls = std::cell::Cell::new(0);
        let sort = std::panic::AssertUnwindSafe(|| {
            rows.sort_rows_by_key(|row| {
                calls.set(calls.get() + 1);
                assert!(calls.get() < 2000, "as planned");
                *row
            });
        });
        std::panic::catch_unwind(sort).unwrap_err();
        let mut numbers: Vec<u64> = rows.iter().map(|row| row[1]).collect();
        numbers.sort_unstable();
        assert!(numbers.into_iter().eq(0..500));
    }

    proptest! {
        #[test]
        fn items_are_sorted_stably(items in prop::collection::vec(("[ab]{0,2}", any::<u8>()), 0..60)) {
            let (mut sorted, mut expected) = (items.clone(), items);
            sorted.sort_items_by(|a, b| a.0.cmp(&b.0));
            expected.sort_by(|a, b| a.0.cmp(&b.0));
            prop_assert_eq!(&sorted, &expected);
            sorted.sort_items();
            expected.sort();
            prop_assert_eq!(sorted, expected);
        }
    }
}
