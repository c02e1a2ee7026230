//! Filters of changed supershingles and changed keys: bitmaps at every process, to find unchanged
//! documents that have them.
//!
//! As a Bloom filter with one hash function they may let too much through, and never too little;
//! what passes is compared by whole keys. They work in two stages. A document is first looked up by
//! its supershingles, one load for each; a few in a hundred documents that share none pass by
//! chance. Keys are inserted only if another document was seen to have their supershingles: most
//! changed documents have few such keys, so the bitmap of keys stays small. The documents that
//! passed are then looked up by the keys of the supershingles that matched.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::kernels::memory::advise_huge_pages;
use crate::kernels::{BitSet, Kernels, places};
use crate::records::{Key, mix};

/// Bits of the filter for each supershingle, and for each key, that is inserted.
const BITS: (u64, u64) = (8, 8);
/// Bits for all supershingles, at least. A bitmap in the nearest large cache is looked up as
/// quickly as a smaller one, and lets fewer documents through by chance.
const LEAST_BITS: u64 = 1 << 22;
/// Places whose bits are set side by side: at most the bits of a word.
const SIDE_BY_SIDE: usize = 64;

/// The supershingles of changed documents, and their keys. A *place* is the number of a bit in a
/// bitmap.
pub struct ChangedKeys {
    /// By column: makes equal supershingles of different columns differ.
    salts: Vec<u64>,
    supershingles: Bitmap,
    /// A copy of `supershingles` for the kernels, made when all are inserted.
    lookup: OnceLock<BitSet>,
    kernels: &'static Kernels,
    /// Those of the supershingles of which a vector must have one to be a candidate.
    required: Bitmap,
    /// Those of the supershingles that two documents have.
    shared: Bitmap,
    keys: OnceLock<KeyFilter>,
}

/// The keys of changed documents.
pub struct KeyFilter {
    keys: Bitmap,
    /// Those of the keys that two documents have.
    shared: Bitmap,
}

impl ChangedKeys {
    /// An empty filter for about `supershingles` of them, of vectors with `width` columns, 1 to 64.
    pub fn new(supershingles: u64, width: usize, kernels: &'static Kernels) -> ChangedKeys {
        let bitmap = || Bitmap::new((supershingles * BITS.0).max(LEAST_BITS));
        ChangedKeys {
            salts: (0..width as u64).map(mix).collect(),
            supershingles: bitmap(),
            lookup: OnceLock::new(),
            kernels,
            required: bitmap(),
            shared: bitmap(),
            keys: OnceLock::new(),
        }
    }

    /// The filter of keys; the first call makes it, for about `keys` of them.
    pub fn keys(&self, keys: u64) -> &KeyFilter {
        let bitmap = || Bitmap::new(keys * BITS.1);
        self.keys.get_or_init(|| KeyFilter { keys: bitmap(), shared: bitmap() })
    }

    /// The place of a supershingle of a column.
    #[inline]
    pub fn place(&self, column: usize, supershingle: u64) -> u64 {
        self.supershingles.place(supershingle ^ self.salts[column])
    }

    /// Inserts the supershingles at some places; those that are there already become shared.
    pub fn insert(&self, places: &[u64]) {
        debug_assert!(self.lookup.get().is_none(), "all are inserted before the first is looked up");
        self.supershingles.set_all(places, |place| _ = self.shared.set(place));
    }

    /// Marks the supershingles at some places, which are inserted, as required.
    pub fn require(&self, places: &[u64]) {
        self.required.set_all(places, |_| {});
    }

    /// Marks the supershingle at a place as shared; false if it was.
    pub fn mark_shared(&self, place: u64) -> bool {
        !self.shared.has(place) && self.shared.set(place)
    }

    /// The supershingles of a vector that two documents may have: a bit for each column.
    pub fn shared_columns(&self, vector: &[u64]) -> u64 {
        let columns = vector.iter().enumerate();
        let bits = columns.map(|(column, word)| self.shared.bit(self.place(column, *word)) << column);
        bits.fold(0, |mask, bit| mask | bit)
    }

    /// Calls `each` for the vectors of which at least `least` supershingles may be in the filter,
    /// one of them a required one: with the vector's index, and a bit for each column that may be
    /// in the filter.
    ///
    /// Nothing may be inserted after the first call. `bits` is memory to work in.
    pub fn each_candidate(&self, words: &[u64], least: u32, bits: &mut Vec<u64>, mut each: impl FnMut(usize, u64)) {
        let width = self.salts.len();
        let lookup = self.lookup.get_or_init(|| BitSet::new(self.supershingles.words(), &self.salts));
        self.kernels.held(lookup, words, bits);
        // The bits of a vector are read from two words; the last vector's may end with a word.
        bits.push(0);
        let all_columns = u64::MAX >> (64 - width);
        for (index, vector) in words.chunks_exact(width).enumerate() {
            let (word, bit) = (index * width / 64, index * width % 64);
            let mask = (bits[word] >> bit | bits[word + 1] << 1 << (63 - bit)) & all_columns;
            // Most vectors have none: the cheap test comes first.
            if mask != 0 && mask.count_ones() >= least && self.has_required(mask, vector) {
                each(index, mask);
            }
        }
    }

    /// Whether one of the supershingles of a vector within a mask of columns is required.
    fn has_required(&self, mask: u64, vector: &[u64]) -> bool {
        let mut masked = vector.iter().enumerate().filter(|(column, _)| mask >> column & 1 == 1);
        masked.any(|(column, word)| self.required.has(self.place(column, *word)))
    }
}

impl KeyFilter {
    /// The place of a key.
    #[inline]
    pub fn place(&self, key: Key) -> u64 {
        self.keys.place(key.table_bits())
    }

    /// Inserts the keys at some places; those that are there already become shared.
    pub fn insert(&self, places: &[u64]) {
        self.keys.set_all(places, |place| _ = self.shared.set(place));
    }

    /// Whether the key at a place may be in the filter.
    #[inline]
    pub fn may_have(&self, place: u64) -> bool {
        self.keys.has(place)
    }

    /// Marks the key at a place as shared; false if it was.
    pub fn mark_shared(&self, place: u64) -> bool {
        !self.shared.has(place) && self.shared.set(place)
    }

    /// Whether two documents may have the key at a place.
    pub fn may_be_shared(&self, place: u64) -> bool {
        self.shared.has(place)
    }
}

/// Bits that all threads of a process may set.
struct Bitmap {
    words: Vec<AtomicU64>,
    shift: u32,
}

impl Bitmap {
    fn new(bits: u64) -> Bitmap {
        let bits = bits.next_power_of_two().max(1 << 12);
        let mut words = bytemuck::allocation::zeroed_vec(bits as usize / 64);
        // Places are random: with small pages most of the time is spent on TLB misses.
        advise_huge_pages(&mut words);
        Bitmap { shift: places::shift(words.len()), words }
    }

    #[inline]
    fn place(&self, word: u64) -> u64 {
        places::place(word, self.shift)
    }

    /// A copy of the bits.
    fn words(&self) -> Vec<u64> {
        let mut words = Vec::with_capacity(self.words.len());
        advise_huge_pages(words.spare_capacity_mut());
        words.extend(self.words.iter().map(|word| word.load(Ordering::Relaxed)));
        words
    }

    #[inline]
    fn bit(&self, place: u64) -> u64 {
        self.words[place as usize / 64].load(Ordering::Relaxed) >> (place % 64) & 1
    }

    #[inline]
    fn has(&self, place: u64) -> bool {
        self.bit(place) == 1
    }

    /// Sets some bits; calls `was_set` for the places whose bits were set before.
    fn set_all(&self, places: &[u64], mut was_set: impl FnMut(u64)) {
        for places in places.chunks(SIDE_BY_SIDE) {
            // Loads first, because many of them wait for memory at the same time; atomic writes
            // wait one after the other.
            let set = places.iter().enumerate().fold(0, |set, (at, place)| set | self.bit(*place) << at);
            for (at, place) in places.iter().enumerate() {
                if set >> at & 1 == 1 || !self.set(*place) {
                    was_set(*place);
                }
            }
        }
    }

    /// Sets a bit; false if it was set.
    fn set(&self, place: u64) -> bool {
        let bit = 1 << (place % 64);
        self.words[place as usize / 64].fetch_or(bit, Ordering::Relaxed) & bit == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::chosen;

    fn filter(supershingles: u64, width: usize) -> ChangedKeys {
        ChangedKeys::new(supershingles, width, chosen().unwrap())
    }

    /// The columns of each vector that are found; 0 for a vector that is not a candidate.
    fn masks(filter: &ChangedKeys, words: &[u64], least: u32) -> Vec<u64> {
        let mut masks = vec![0; words.len() / filter.salts.len()];
        filter.each_candidate(words, least, &mut vec![7], |index, mask| masks[index] = mask);
        masks
    }

    #[test]
    fn what_was_inserted_is_found_and_little_else() {
        let filter = filter(10_000, 6);
        let keys = filter.keys(10_000);
        let key = |number: u64| Key::of(1, &[number]);
        for number in 0..10_000 {
            let place = filter.place(number as usize % 6, mix(number));
            filter.insert(&[place]);
            filter.require(&[place]);
        }
        for numbers in (0..10_000).collect::<Vec<u64>>().chunks(777) {
            let places: Vec<u64> = numbers.iter().map(|number| keys.place(key(*number))).collect();
            keys.insert(&places);
        }
        // Vectors of six consecutive supershingles: each has the column with which it was inserted.
        let inserted: Vec<u64> = (0..9_996).map(mix).collect();
        assert!(masks(&filter, &inserted, 1).iter().all(|mask| *mask == 63), "all of 1,666 vectors are found");
        assert!((0..10_000).all(|number| keys.may_have(keys.place(key(number)))));
        let found = |words: Vec<u64>| masks(&filter, &words, 1).iter().map(|mask| mask.count_ones()).sum::<u32>();
        let others = found((10_000..109_996).map(mix).collect());
        assert!(others < 7_000, "{others} of 99,996 supershingles");
        let others = (10_000..110_000).filter(|number| keys.may_have(keys.place(key(*number)))).count();
        assert!(others < 13_000, "{others} of 100,000 keys");
        let elsewhere = found((0..9_996).map(|number| mix(number + 1)).collect());
        assert!(elsewhere < 700, "{elsewhere} supershingles are found in another column");
    }

    #[test]
    fn vectors_of_every_width_are_found_column_by_column() {
        for width in [1, 2, 3, 5, 6, 7, 8, 12, 31, 33, 63, 64] {
            let filter = filter(10, width);
            let random = |number: u64| mix(number ^ (width as u64) << 32);
            let words: Vec<u64> = (0..100 * width as u64).map(random).collect();
            // The columns of each vector that are inserted.
            let expected: Vec<u64> = (0..100).map(|vector| random(1 << 40 | vector) >> (64 - width)).collect();
            for (vector, mask) in words.chunks(width).zip(&expected) {
                for (column, word) in vector.iter().enumerate().filter(|(column, _)| mask >> column & 1 == 1) {
                    filter.insert(&[filter.place(column, *word)]);
                    filter.require(&[filter.place(column, *word)]);
                }
            }
            // Hardly any bit is set: few are found by chance.
            let found = masks(&filter, &words, 1);
            let pairs = || found.iter().zip(&expected);
            let missed = pairs().map(|(found, expected)| (expected & !found).count_ones()).sum::<u32>();
            let others = pairs().map(|(found, expected)| (found & !expected).count_ones()).sum::<u32>();
            assert!(missed == 0 && others < 8, "{missed} are missed and {others} found by chance, {width} wide");
        }
    }

    #[test]
    fn vectors_without_a_required_supershingle_do_not_pass() {
        let filter = filter(10, 3);
        let place = |column, number| filter.place(column, mix(number));
        filter.insert(&[place(0, 1), place(1, 2), place(1, 3)]);
        filter.require(&[place(1, 3)]);
        let words = [1, 2, 9, 1, 3, 9, 8, 3, 9, 8, 2, 9].map(mix);
        assert_eq!(masks(&filter, &words, 1), [0, 0b11, 0b10, 0]);
        assert_eq!(masks(&filter, &words, 2), [0, 0b11, 0, 0]);
    }

    #[test]
    fn a_key_that_two_have_is_shared() {
        let filter = filter(10, 1);
        let keys = filter.keys(10);
        let place = keys.place(Key::of(1, &[7]));
        keys.insert(&[place]);
        assert!(!keys.may_be_shared(place));
        keys.insert(&[place]);
        assert!(keys.may_be_shared(place) && !keys.mark_shared(place));
        let [other, twice] = [8, 9].map(|number| keys.place(Key::of(1, &[number])));
        keys.insert(&[other, twice, twice]);
        assert!(!keys.may_be_shared(other) && keys.may_be_shared(twice));
        assert!(keys.mark_shared(other) && keys.may_be_shared(other));
    }

    #[test]
    fn a_supershingle_that_two_have_is_shared() {
        let filter = filter(10, 3);
        let [one, two, three] = [1, 2, 3].map(mix);
        let [first, second] = [filter.place(0, one), filter.place(1, two)];
        filter.insert(&[first, second]);
        filter.require(&[first, second]);
        assert_eq!(filter.shared_columns(&[one, two, three]), 0, "to require one does not insert it twice");
        filter.insert(&[second]);
        assert_eq!(filter.shared_columns(&[one, two, three]), 0b10);
        assert!(filter.mark_shared(first) && !filter.mark_shared(first) && !filter.mark_shared(second));
        assert_eq!(filter.shared_columns(&[one, two, three]), 0b11);
        assert_eq!(filter.shared_columns(&[two, one]), 0, "each only in the column with which it was inserted");
    }
}
