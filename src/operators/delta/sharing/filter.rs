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

use crate::kernels::memory::advise_huge_pages;
use crate::kernels::{BitSet, Kernels, places};
use crate::records::{Key, mix};

/// Bits for each supershingle, and for each key, that is noted.
const BITS: (u64, u64) = (8, 8);
/// Bits for all supershingles, at least: what the nearest large cache holds is looked up as quickly as less would be, and
/// lets fewer through by chance.
const LEAST_BITS: u64 = 1 << 22;
/// Places that are set side by side: at most the bits of a word.
const SIDE_BY_SIDE: usize = 64;

/// The supershingles that were noted, and their keys.
pub struct ChangedKeys {
    /// What tells the same supershingle at one place of the vector from that at another.
    salts: Vec<u64>,
    supershingles: Bitmap,
    /// A copy of these to look up, made when all are noted.
    noted: OnceLock<BitSet>,
    kernels: &'static Kernels,
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

impl ChangedKeys {
    /// A filter for about so many supershingles of vectors that have `width` of them.
    pub fn new(supershingles: u64, width: usize, kernels: &'static Kernels) -> ChangedKeys {
        let bitmap = || Bitmap::new((supershingles * BITS.0).max(LEAST_BITS));
        let (salts, noted, keys) = ((0..width as u64).map(mix).collect(), OnceLock::new(), OnceLock::new());
        ChangedKeys { salts, supershingles: bitmap(), noted, kernels, matter: bitmap(), met: bitmap(), keys }
    }

    /// The filter of keys, for about so many: whoever asks first makes it.
    pub fn keys(&self, keys: u64) -> &KeyFilter {
        let bitmap = || Bitmap::new(keys * BITS.1);
        self.keys.get_or_init(|| KeyFilter { noted: bitmap(), shared: bitmap() })
    }

    /// The place of a supershingle, given which of the vector it is.
    #[inline]
    pub fn place(&self, column: usize, supershingle: u64) -> u64 {
        self.supershingles.place(supershingle ^ self.salts[column])
    }

    /// Calls `each` for those of some vectors of which at least `least` supershingles may be noted, one of these such that
    /// matters: with their number among the vectors, and which supershingles these are, a bit for each. From the first
    /// call on nothing more is noted. `held` is memory to work in.
    pub fn sharing(&self, words: &[u64], least: u32, held: &mut Vec<u64>, mut each: impl FnMut(usize, u64)) {
        let width = self.salts.len();
        let noted = self.noted.get_or_init(|| BitSet::new(self.supershingles.words(), &self.salts));
        self.kernels.held(noted, words, held);
        // The bits of the last vectors may end with a word.
        held.push(0);
        let of_vector = u64::MAX >> (64 - width);
        for (number, vector) in words.chunks_exact(width).enumerate() {
            let (word, bit) = (number * width / 64, number * width % 64);
            let mask = (held[word] >> bit | held[word + 1] << 1 << (63 - bit)) & of_vector;
            // Few have any: of most no more need be counted.
            if mask != 0 && mask.count_ones() >= least && self.matters(mask, vector) {
                each(number, mask);
            }
        }
    }

    /// Whether one of the supershingles of a vector within a mask matters.
    fn matters(&self, mask: u64, vector: &[u64]) -> bool {
        let mut noted = vector.iter().enumerate().filter(|(column, _)| mask >> column & 1 == 1);
        noted.any(|(column, word)| self.matter.has(self.place(column, *word)))
    }

    /// Notes the supershingles at some places; those that were noted before are met.
    pub fn note(&self, places: &[u64]) {
        debug_assert!(self.noted.get().is_none(), "all are noted before the first is looked up");
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
        advise_huge_pages(&mut words);
        Bitmap { shift: places::shift(words.len()), words }
    }

    #[inline]
    fn place(&self, word: u64) -> u64 {
        places::place(word, self.shift)
    }

    /// The bits as they are.
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
    use crate::kernels::chosen;

    fn filter(supershingles: u64, width: usize) -> ChangedKeys {
        ChangedKeys::new(supershingles, width, chosen().unwrap())
    }

    /// What is found of each of some vectors.
    fn masks(filter: &ChangedKeys, words: &[u64], least: u32) -> Vec<u64> {
        let mut masks = vec![0; words.len() / filter.salts.len()];
        filter.sharing(words, least, &mut vec![7], |number, mask| masks[number] = mask);
        masks
    }

    #[test]
    fn what_was_noted_is_found_and_little_else() {
        let filter = filter(10_000, 6);
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
        // Each in the place where it was noted: 0 in that of the first, 1 in that of the second, and so on.
        let noted: Vec<u64> = (0..9_996).map(mix).collect();
        assert!(masks(&filter, &noted, 1).iter().all(|mask| *mask == 63), "all of 1,666 vectors are found");
        assert!((0..10_000).all(|number| keys.has(keys.place(key(number)))));
        let found = |words: Vec<u64>| masks(&filter, &words, 1).iter().map(|mask| mask.count_ones()).sum::<u32>();
        let others = found((10_000..109_996).map(mix).collect());
        assert!(others < 7_000, "{others} of 99,996 supershingles");
        let others = (10_000..110_000).filter(|number| keys.has(keys.place(key(*number)))).count();
        assert!(others < 13_000, "{others} of 100,000 keys");
        let elsewhere = found((0..9_996).map(|number| mix(number + 1)).collect());
        assert!(elsewhere < 700, "{elsewhere} supershingles are found in another place of the vector");
    }

    #[test]
    fn vectors_of_every_width_are_told_apart() {
        for width in [1, 2, 3, 5, 6, 7, 8, 12, 31, 33, 63, 64] {
            let filter = filter(10, width);
            let random = |number: u64| mix(number ^ (width as u64) << 32);
            let words: Vec<u64> = (0..100 * width as u64).map(random).collect();
            let wanted: Vec<u64> = (0..100).map(|vector| random(1 << 40 | vector) >> (64 - width)).collect();
            for (vector, mask) in words.chunks(width).zip(&wanted) {
                for (column, word) in vector.iter().enumerate().filter(|(column, _)| mask >> column & 1 == 1) {
                    filter.note(&[filter.place(column, *word)]);
                    filter.note_matter(&[filter.place(column, *word)]);
                }
            }
            // Hardly any bit is set: few are found by chance.
            let found = masks(&filter, &words, 1);
            let missed = found.iter().zip(&wanted).map(|(found, wanted)| (wanted & !found).count_ones()).sum::<u32>();
            let others = found.iter().zip(&wanted).map(|(found, wanted)| (found & !wanted).count_ones()).sum::<u32>();
            assert!(missed == 0 && others < 8, "{missed} are missed and {others} found by chance, {width} wide");
        }
    }

    #[test]
    fn vectors_without_a_supershingle_that_matters_do_not_pass() {
        let filter = filter(10, 3);
        let place = |column, number| filter.place(column, mix(number));
        filter.note(&[place(0, 1), place(1, 2), place(1, 3)]);
        filter.note_matter(&[place(1, 3)]);
        let words = [1, 2, 9, 1, 3, 9, 8, 3, 9, 8, 2, 9].map(mix);
        assert_eq!(masks(&filter, &words, 1), [0, 0b11, 0b10, 0]);
        assert_eq!(masks(&filter, &words, 2), [0, 0b11, 0, 0]);
    }

    #[test]
    fn a_key_that_two_have_is_shared() {
        let filter = filter(10, 1);
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
        let filter = filter(10, 3);
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
