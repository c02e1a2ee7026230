//! What the documents that changed have: their supershingles and their keys, as bitmaps at every process, to look for
//! others that have them too.
//!
//! It may err on the side of too much, never of too little: what it lets through is compared by whole keys. A document
//! is first asked for its supershingles, one load each; one in twenty is let through by chance. Those are asked for the
//! keys of the supershingles that passed.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::kernels::memory::huge;
use crate::records::{Key, mix, spread};

/// Bits for each supershingle, and for each key, that is noted.
const BITS: (u64, u64) = (16, 8);

/// The supershingles and keys that were noted.
pub struct Filter {
    supershingles: Bitmap,
    keys: Bitmap,
    /// Those of the keys that somebody else has, too.
    shared: Bitmap,
}

impl Filter {
    /// A filter for about so many supershingles and keys.
    pub fn new(supershingles: u64, keys: u64) -> Filter {
        let keys = keys * BITS.1;
        Filter {
            supershingles: Bitmap::new(supershingles * BITS.0),
            keys: Bitmap::new(keys),
            shared: Bitmap::new(keys),
        }
    }

    /// The place of a supershingle, given which of the vector it is.
    #[inline]
    pub fn place(&self, column: usize, supershingle: u64) -> u64 {
        self.supershingles.place(supershingle ^ mix(column as u64))
    }

    /// The place of a key.
    #[inline]
    pub fn key_place(&self, key: Key) -> u64 {
        self.keys.place(key.table_bits())
    }

    /// Notes the supershingle at a place.
    pub fn note(&self, place: u64) {
        self.supershingles.set(place);
    }

    /// Whether the supershingle at a place may be one of those noted.
    #[inline]
    pub fn has(&self, place: u64) -> bool {
        self.supershingles.has(place)
    }

    /// Notes the key at a place; where it was noted before, it is shared.
    pub fn note_key(&self, place: u64) {
        if !self.keys.set(place) {
            self.shared.set(place);
        }
    }

    /// Whether the key at a place may be one of those noted.
    #[inline]
    pub fn has_key(&self, place: u64) -> bool {
        self.keys.has(place)
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
    fn has(&self, place: u64) -> bool {
        self.words[place as usize / 64].load(Ordering::Relaxed) >> (place % 64) & 1 == 1
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
        let filter = Filter::new(10_000, 10_000);
        let key = |number: u64| Key::of(1, &[number]);
        for number in 0..10_000 {
            filter.note(filter.place(number as usize % 6, mix(number)));
            filter.note_key(filter.key_place(key(number)));
        }
        assert!((0..10_000).all(|number| filter.has(filter.place(number as usize % 6, mix(number)))));
        assert!((0..10_000).all(|number| filter.has_key(filter.key_place(key(number)))));
        let others = 10_000..110_000u64;
        let found = others.clone().filter(|number| filter.has(filter.place(0, mix(*number)))).count();
        assert!(found < 7_000, "{found} of 100,000 supershingles");
        let found = others.clone().filter(|number| filter.has_key(filter.key_place(key(*number)))).count();
        assert!(found < 13_000, "{found} of 100,000 keys");
        let column = (0..10_000).filter(|number| filter.has(filter.place(6, mix(*number)))).count();
        assert!(column < 700, "{column} supershingles are found in another place of the vector");
    }

    #[test]
    fn a_key_that_two_have_is_shared() {
        let filter = Filter::new(10, 10);
        let place = filter.key_place(Key::of(1, &[7]));
        filter.note_key(place);
        assert!(!filter.is_shared(place));
        filter.note_key(place);
        assert!(filter.is_shared(place) && !filter.share(place));
        let other = filter.key_place(Key::of(1, &[8]));
        filter.note_key(other);
        assert!(filter.share(other) && filter.is_shared(other));
    }
}
