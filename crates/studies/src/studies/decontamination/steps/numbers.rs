//! Numbers of words: texts of the reference as numbers, which are compared exactly.

use xxhash_rust::xxh3::xxh3_64;

use crate::structures::ByKey;

/// No number: a word that is not in the reference.
pub const UNKNOWN: u32 = u32::MAX;

/// Words with their numbers, from 0 in the order in which they came.
#[derive(Default)]
pub struct WordNumbers {
    /// The last word with a hash.
    last: ByKey<u64, u32>,
    /// For each word the one before it that has its hash.
    before: Vec<u32>,
    /// The bytes of all words, and where each ends.
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl WordNumbers {
    /// The number of a word, which it gets if it has none.
    pub fn number(&mut self, word: &[u8]) -> u32 {
        match self.find(word) {
            UNKNOWN => {
                let number = self.ends.len() as u32;
                self.bytes.extend_from_slice(word);
                self.ends.push(self.bytes.len());
                self.before.push(self.last.insert(xxh3_64(word), number).unwrap_or(UNKNOWN));
                number
            }
            number => number,
        }
    }

    /// The number of a word, or [`UNKNOWN`].
    pub fn find(&self, word: &[u8]) -> u32 {
        let mut number = self.last.get(&xxh3_64(word)).copied().unwrap_or(UNKNOWN);
        while number != UNKNOWN && self.word(number) != word {
            number = self.before[number as usize];
        }
        number
    }

    fn word(&self, number: u32) -> &[u8] {
        let number = number as usize;
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[number]]
    }

    /// The memory that they take, in bytes; about.
    pub fn memory(&self) -> u64 {
        (self.bytes.len() + 40 * self.ends.len()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_has_one_number() {
        let mut numbers = WordNumbers::default();
        assert_eq!(["a", "bc", "a", "", "b", "bc"].map(|word| numbers.number(word.as_bytes())), [0, 1, 0, 2, 3, 1]);
        assert_eq!(["", "b", "ab", "c"].map(|word| numbers.find(word.as_bytes())), [2, 3, UNKNOWN, UNKNOWN]);
    }
}
