//! Fingerprints of words that follow each other, and which of them are selected (winnowing;
//! Schleimer, Wilkerson, Aiken 2003).
//!
//! ```text
//! word      XXH3 of its bytes
//! gram      `gram` words: a polynomial of their hashes modulo 2^61 - 1, mixed
//! window    `words` words, the length of the shortest passage: two such polynomials
//! ```
//!
//! Of the grams of each window the smallest is selected, and of equal ones the last. It depends on
//! the words of the window alone: where the window stands a second time, the gram at the same place
//! in it is selected. So two equal windows have an equal selected gram. With grams of half a
//! window, about one word of 13 begins a selected one if windows have 50 words. In a text that
//! repeats itself more words do; the work is linear in any case.

use nigh_text::features::Words;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::records::mix;

/// The modulus of the polynomials, a prime number.
const PRIME: u64 = (1 << 61) - 1;

/// How words, grams and windows are hashed.
#[derive(Clone, Copy, Debug)]
pub struct Hashing {
    /// Words of a window.
    pub words: usize,
    /// Words of a gram.
    pub gram: usize,
    /// The seed of all hashes.
    seed: u64,
    /// The bits of fingerprints that are used.
    mask: u64,
}

impl Hashing {
    /// The hashing for passages of at least `words` words, 1 or more.
    pub fn new(words: usize, seed: u64) -> Hashing {
        Hashing { words, gram: words.div_ceil(2), seed, mask: u64::MAX }
    }

    /// The same with fingerprints of so few bits that different words have equal ones: for tests.
    #[cfg(test)]
    pub fn weak(self, bits: u32) -> Hashing {
        Hashing { mask: (1 << bits) - 1, ..self }
    }

    /// The base of a polynomial: from 2^60 on, and below the prime number.
    fn base(&self, number: u64) -> u64 {
        1 << 60 | mix(self.seed ^ mix(number)) >> 5
    }
}

/// The fingerprints of a text; its buffers are reused from text to text.
#[derive(Default)]
pub struct Fingerprints {
    hashes: Vec<u64>,
    grams: Vec<u64>,
    windows: [Vec<u64>; 2],
    selected: Vec<u32>,
}

impl Fingerprints {
    /// Hashes the words of a text. Returns whether it has a window.
    pub fn read(&mut self, words: &Words<'_>, hashing: &Hashing) -> bool {
        self.hashes.clear();
        self.hashes.extend(words.iter().map(|word| residue(xxh3_64_with_seed(word, hashing.seed))));
        self.hashes.len() >= hashing.words
    }

    /// The fingerprints of all grams, and for each window the number of its selected gram: they
    /// ascend.
    pub fn grams(&mut self, hashing: &Hashing) -> (&[u64], &[u32]) {
        polynomials(&self.hashes, hashing.gram, hashing.base(0), &mut self.grams);
        self.grams.iter_mut().for_each(|gram| *gram = mix(*gram ^ hashing.seed) & hashing.mask);
        select(&self.grams, hashing.words - hashing.gram + 1, &mut self.selected);
        (&self.grams, &self.selected)
    }

    /// The fingerprints of all windows.
    pub fn windows(&mut self, hashing: &Hashing) -> WindowPrints<'_> {
        for (number, windows) in (1..).zip(&mut self.windows) {
            polynomials(&self.hashes, hashing.words, hashing.base(number), windows);
            windows.iter_mut().for_each(|window| *window = mix(*window) & hashing.mask);
        }
        let [first, second] = &self.windows;
        WindowPrints { first, second }
    }
}

/// The fingerprints of the windows of a text.
#[derive(Clone, Copy)]
pub struct WindowPrints<'a> {
    first: &'a [u64],
    second: &'a [u64],
}

impl WindowPrints<'_> {
    /// The number of windows.
    pub fn len(&self) -> usize {
        self.first.len()
    }

    /// The fingerprint of a window, by its first word.
    pub fn get(&self, window: usize) -> (u64, u64) {
        (self.first[window], self.second[window])
    }
}

/// A number modulo the prime number.
fn residue(number: u64) -> u64 {
    let sum = (number & PRIME) + (number >> 61);
    if sum >= PRIME { sum - PRIME } else { sum }
}

fn product(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    let sum = (product as u64 & PRIME) + (product >> 61) as u64;
    if sum >= PRIME { sum - PRIME } else { sum }
}

/// The values of the polynomials of all runs of `width` hashes, the first of a run with the highest
/// power. None if there are fewer. Hashes and `base` are below 2^61 - 1.
pub fn polynomials(hashes: &[u64], width: usize, base: u64, values: &mut Vec<u64>) {
    values.clear();
    let Some(first) = hashes.get(..width) else { return };
    let highest = (1..width).fold(1, |power, _| product(power, base));
    let mut value = first.iter().fold(0, |value, hash| residue(product(value, base) + hash));
    values.push(value);
    for (gone, new) in hashes.iter().zip(&hashes[width..]) {
        let rest = residue(value + PRIME - product(*gone, highest));
        value = residue(product(rest, base) + new);
        values.push(value);
    }
}

/// For each run of `width` keys the place of its smallest key, and of equal ones the last.
fn select(keys: &[u64], width: usize, selected: &mut Vec<u32>) {
    selected.clear();
    // Places whose keys ascend: each is the smallest from the one before it on.
    let mut smallest: Vec<u32> = Vec::new();
    let mut first = 0;
    for (place, key) in keys.iter().enumerate() {
        while smallest.len() > first && keys[smallest[smallest.len() - 1] as usize] >= *key {
            smallest.pop();
        }
        smallest.push(place as u32);
        if place + 1 >= width {
            let begin = (place + 1 - width) as u32;
            while smallest[first] < begin {
                first += 1;
            }
            selected.push(smallest[first]);
        }
    }
}

#[cfg(test)]
mod tests {
    use nigh_text::features::WordReader;
    use nigh_text::method::Method;

    use super::*;

    #[test]
    fn the_last_smallest_of_each_run_is_selected() {
        let mut random = 1;
        for (keys, width, range) in [(0, 3, 2), (2, 3, 2), (200, 1, 5), (200, 7, 3), (300, 26, 1), (500, 26, 1 << 40)] {
            let keys: Vec<u64> = (0..keys)
                .map(|_| {
                    random = mix(random);
                    random % range
                })
                .collect();
            let mut selected = Vec::new();
            select(&keys, width, &mut selected);
            let expected: Vec<u32> = keys
                .windows(width)
                .enumerate()
                .map(|(first, of_run)| {
                    let least = of_run.iter().min().unwrap();
                    (first + of_run.iter().rposition(|key| key == least).unwrap()) as u32
                })
                .collect();
            assert_eq!(selected, expected);
            assert!(selected.is_sorted());
        }
    }

    #[test]
    fn equal_words_have_equal_fingerprints_wherever_they_stand() {
        let mut reader = WordReader::of_method(&Method::default()).unwrap();
        let (hashing, mut prints) = (Hashing::new(4, 7), Fingerprints::default());
        let passage = "one two three four five";
        let mut read = |text: &str| {
            assert!(prints.read(&reader.text(text), &hashing));
            let windows = prints.windows(&hashing);
            let windows: Vec<(u64, u64)> = (0..windows.len()).map(|window| windows.get(window)).collect();
            let (grams, selected) = prints.grams(&hashing);
            (windows, grams.to_vec(), selected.to_vec())
        };
        let (a, b) = (read(passage), read(&format!("x y {passage} z")));
        assert_eq!((a.0.len(), a.1.len(), a.2.len()), (2, 4, 2));
        assert_eq!((&a.0[..], &a.1[..]), (&b.0[2..4], &b.1[2..6]));
        assert!(a.2.iter().zip(&b.2[2..4]).all(|(a, b)| a + 2 == *b));
        assert!(!b.0[..2].iter().any(|window| a.0.contains(window)));
        // Other words, the same words in another order, words cut elsewhere.
        for other in ["one two three five", "two one three four", "on etwo three four"] {
            assert_ne!(read(other).0[0], a.0[0], "{other}");
        }
        assert!(!prints.read(&reader.text("one two three"), &hashing));
    }

    #[test]
    fn products_are_those_of_large_numbers() {
        let numbers = [0, 1, 2, PRIME - 1, PRIME / 2, 0x1234_5678_9ABC_DEF0 % PRIME];
        for a in numbers {
            for b in numbers {
                assert_eq!(u128::from(product(a, b)), u128::from(a) * u128::from(b) % u128::from(PRIME));
            }
        }
        assert_eq!([PRIME, PRIME + 1, u64::MAX].map(residue), [0, 1, 7]);
    }
}
