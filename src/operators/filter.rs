//! What the documents that changed have: their supershingles and their keys, as bitmaps at every process, to look for
//! others that have them too.
//!
//! It may err on the side of too much, never of too little: what it lets through is compared by whole keys. A document
//! is first asked for its supershingles, one load each: of those that share none a few in a hundred are let through by
//! chance. Keys are noted only of supershingles that another document was seen to have: most that changed have
//! few of these, so that the bitmap of keys is small. Those who were let through are asked for the keys of the
//! supershingles that passed.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::kernels::memory::huge;
use crate::records::{Key, mix, spread};

/// Bits for each supershingle, and for each key, that is noted.
const BITS: (u64, u64) = (8, 8);
/// Bits for all supershingles, at least: what the nearest large cache holds is looked up as quickly as less would be, and
/// lets fewer through by chance.
const LEAST_BITS: u64 = 1 << 22;
/// Places that are set side by side: at most the bits of a word.
const SIDE_BY_SIDE: usize = 64;

/// The supershingles that were noted, and their keys.
pub struct Filter {
    supershingles: Bitmap,
    /// Those of the supershingles that matter.
    matter: Bitmap,
    /// Those of the supershingles that another document has, too.
    met: Bitmap,
    keys: OnceLock<KeyFilter>,
}

/// The keys that were noted.
pub struct KeyFilter {
    noted: Bitmap,
    /// Those of the keys that another document has, too.
    shared: Bitmap,
}

impl Filter {
    /// A filter for about so many supershingles.
    pub fn new(supershingles: u64) -> Filter {
        let bitmap = || Bitmap::new((supershingles * BITS.0).max(LEAST_BITS));
        Filter { supershingles: bitmap(), matter: bitmap(), met: bitmap(), keys: OnceLock::new() }
    }

    /// The filter of keys, for about so many: whoever asks first makes it.
    pub fn keys(&self, keys: u64) -> &KeyFilter {
        let bitmap = || Bitmap::new(keys * BITS.1);
        self.keys.get_or_init(|| KeyFilter { noted: bitmap(), shared: bitmap() })
    }

    /// The place of a supershingle, given which of the vector it is.
    #[inline]
    pub fn place(&self, column: usize, supershingle: u64) -> u64 {
        self.supershingles.place(supershingle ^ mix(column as u64))
    }

    /// Writes for each of some vectors, of `width` supershingles each, which of these may be noted, a bit for each; 0 where
    /// they are fewer than `least`, or none of them matters.
    pub fn masks(&self, words: &[u64], width: usize, least: u32, masks: &mut Vec<u64>) {
        masks.clear();
        let columns: Vec<u64> = (0..width as u64).map(mix).collect();
        // Most places are in no near cache: without a branch between them, many are waited for at once. Where the
        // compiler knows the width, as of the study's vectors, there is no loop either.
        match <&[u64; 6]>::try_from(&columns[..]) {
            Ok(six) => masks.extend(words.as_chunks::<6>().0.iter().map(|vector| self.mask(vector, six))),
            Err(_) => masks.extend(words.chunks_exact(width).map(|vector| self.mask(vector, &columns))),
        }
        // Few have enough, and of these most have some that matter.
        for (mask, vector) in masks.iter_mut().zip(words.chunks_exact(width)) {
            if mask.count_ones() < least || !self.matters(*mask, vector) {
                *mask = 0;
            }
        }
    }

    /// Which supershingles of a vector may be noted, given the hashes of their places in it.
    #[inline(always)]
    fn mask(&self, vector: &[u64], columns: &[u64]) -> u64 {
        let words = vector.iter().zip(columns).enumerate();
        let bit = |word| self.supershingles.bit(self.supershingles.place(word));
        words.fold(0, |mask, (at, (word, column))| mask | bit(word ^ column) << at)
    }

    /// Whether one of the supershingles of a vector within a mask matters.
    fn matters(&self, mask: u64, vector: &[u64]) -> bool {
        let mut noted = vector.iter().enumerate().filter(|(column, _)| mask >> column & 1 == 1);
        noted.any(|(column, word)| self.matter.has(self.place(column, *word)))
    }

    /// Notes the supershingles at some places; those that were noted before are met.
    pub fn note(&self, places: &[u64]) {
        self.supershingles.set_all(places, |place| _ = self.met.set(place));
    }

    /// Notes that the supershingles at some places, which are noted, matter.
    pub fn note_matter(&self, places: &[u64]) {
        self.matter.set_all(places, |_| {});
    }

    /// Notes that another document has the supershingle at a place; false where that was known.
    pub fn meet(&self, place: u64) -> bool {
        !self.met.has(place) && self.met.set(place)
    }

    /// Which supershingles of a vector another document may have, a bit for each.
    pub fn met(&self, vector: &[u64]) -> u64 {
        let bits = vector.iter().enumerate().map(|(column, word)| self.met.bit(self.place(column, *word)) << column);
        bits.fold(0, |mask, bit| mask | bit)
    }
}

impl KeyFilter {
    /// The place of a key.
    #[inline]
    pub fn place(&self, key: Key) -> u64 {
        self.noted.place(key.table_bits())
    }

    /// Notes the keys at some places; those that were noted before are shared.
    pub fn note(&self, places: &[u64]) {
        self.noted.set_all(places, |place| _ = self.shared.set(place));
    }

    /// Whether the key at a place may be one of those noted.
    #[inline]
    pub fn has(&self, place: u64) -> bool {
        self.noted.has(place)
    }

    /// Notes that another document has the key at a place; false where that was known.
    pub fn share(&self, place: u64) -> bool {
        !self.shared.has(place) && self.shared.set(place)
    }

    /// Whether another document may have the key at a place.
    pub fn is_shared(&self, place: u64) -> bool {
        self.shared.has(place)
    }
}

/// Bits that all threads may set.
struct Bitmap {
    words: Vec<AtomicU64>,
    shift: u32,
}

impl Bitmap {
    fn new(bits: u64) -> Bitmap {
        let bits = bits.next_power_of_two().max(1 << 12);
        let mut words = bytemuck::allocation::zeroed_vec(bits as usize / 64);
        // Places are random: without huge pages most of the time goes into finding the pages.
        huge(&mut words);
        Bitmap { words, shift: 64 - bits.trailing_zeros() }
    }

    #[inline]
    fn place(&self, word: u64) -> u64 {
        spread(word) >> self.shift
    }

    #[inline]
    fn bit(&self, place: u64) -> u64 {
        self.words[place as usize / 64].load(Ordering::Relaxed) >> (place % 64) & 1
    }

    #[inline]
    fn has(&self, place: u64) -> bool {
        self.bit(place) == 1
    }

    /// Sets some bits; calls `again` for those that were set.
    fn set_all(&self, places: &[u64], mut again: impl FnMut(u64)) {
        for places in places.chunks(SIDE_BY_SIDE) {
            // Looked at first: of writes only one at a time is waited for.
            let set = places.iter().enumerate().fold(0, |set, (at, place)| set | self.bit(*place) << at);
            for (at, place) in places.iter().enumerate() {
                if set >> at & 1 == 1 || !self.set(*place) {
                    again(*place);
                }
            }
        }
    }

    /// Sets a bit; false where it was set.
    fn set(&self, place: u64) -> bool {
        let bit = 1 << (place % 64);
        self.words[place as usize / 64].fetch_or(bit, Ordering::Relaxed) & bit == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_noted_is_found_and_little_else() {
        let filter = Filter::new(10_000);
        let keys = filter.keys(10_000);
        let key = |number: u64| Key::of(1, &[number]);
        for number in 0..10_000 {
            let place = filter.place(number as usize % 6, mix(number));
            filter.note(&[place]);
            filter.note_matter(&[place]);
        }
        for numbers in (0..10_000).collect::<Vec<u64>>().chunks(777) {
            let places: Vec<u64> = numbers.iter().map(|number| keys.place(key(*number))).collect();
            keys.note(&places);
        }
        let masks = |words: &[u64], width: usize| {
            let mut masks = Vec::new();
            filter.masks(words, width, 1, &mut masks);
            masks
        };
        // Each in the place where it was noted: 0 in that of the first, 1 in that of the second, and so on.
        let noted: Vec<u64> = (0..9_996).map(mix).collect();
        assert!(masks(&noted, 6).iter().all(|mask| *mask == 63), "all of 1,666 vectors are found");
        assert!((0..10_000).all(|number| keys.has(keys.place(key(number)))));
        let others = 10_000..110_000u64;
        let found = masks(&others.clone().map(mix).collect::<Vec<_>>(), 1).iter().sum::<u64>();
        assert!(found < 7_000, "{found} of 100,000 supershingles");
        let found = others.clone().filter(|number| keys.has(keys.place(key(*number)))).count();
        assert!(found < 13_000, "{found} of 100,000 keys");
        let shifted: Vec<u64> = (0..10_000).map(|number| mix(number + 1)).collect();
        let elsewhere = masks(&shifted[..9_996], 6).iter().map(|mask| mask.count_ones()).sum::<u32>();
        assert!(elsewhere < 700, "{elsewhere} supershingles are found in another place of the vector");
    }

    #[test]
    fn vectors_without_a_supershingle_that_matters_do_not_pass() {
        let filter = Filter::new(10);
        let place = |column, number| filter.place(column, mix(number));
        filter.note(&[place(0, 1), place(1, 2), place(1, 3)]);
        filter.note_matter(&[place(1, 3)]);
        let mut masks = Vec::new();
        let words = [1, 2, 9, 1, 3, 9, 8, 3, 9, 8, 2, 9].map(mix);
        filter.masks(&words, 3, 1, &mut masks);
        assert_eq!(masks, [0, 0b11, 0b10, 0]);
        filter.masks(&words, 3, 2, &mut masks);
        assert_eq!(masks, [0, 0b11, 0, 0]);
    }

    #[test]
    fn a_key_that_two_have_is_shared() {
        let filter = Filter::new(10);
        let keys = filter.keys(10);
        let place = keys.place(Key::of(1, &[7]));
        keys.note(&[place]);
        assert!(!keys.is_shared(place));
        keys.note(&[place]);
        assert!(keys.is_shared(place) && !keys.share(place));
        let [other, twice] = [8, 9].map(|number| keys.place(Key::of(1, &[number])));
        keys.note(&[other, twice, twice]);
        assert!(!keys.is_shared(other) && keys.is_shared(twice));
        assert!(keys.share(other) && keys.is_shared(other));
    }
    #[test]
    fn a_supershingle_that_two_have_is_met() {
        let filter = Filter::new(10);
        let [one, two, three] = [1, 2, 3].map(mix);
        let [first, second] = [filter.place(0, one), filter.place(1, two)];
        filter.note(&[first, second]);
        filter.note_matter(&[first, second]);
        assert_eq!(filter.met(&[one, two, three]), 0, "that it matters is not noting it twice");
        filter.note(&[second]);
        assert_eq!(filter.met(&[one, two, three]), 0b10);
        assert!(filter.meet(first) && !filter.meet(first) && !filter.meet(second));
        assert_eq!(filter.met(&[one, two, three]), 0b11);
        assert_eq!(filter.met(&[two, one]), 0, "each in the place of the vector where it was noted");
    }
}
