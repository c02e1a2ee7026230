//! The n-grams of the items of a reference, and the items that a document has enough of.
//!
//! A gram is some words that follow each other. Two grams are the same if their words are: hashes
//! only say where to look, and words are compared by their numbers.
//!
//! ```text
//! item      ─▶ its grams, each once; those first that the fewest items have
//! document  ─▶ grams of the reference that it has ─▶ items by one of their first grams ─▶ counted
//! ```
//!
//! An item of k grams, of which a document must have m, is looked for by its first k - m + 1 grams
//! only: if the document has none of these, it has less than m (Chaudhuri, Ganti, Kaushik 2006). So
//! grams that many items have, such as "which of the following is true", lead to few of them, and
//! what a document costs is its words, and the grams of the items that it may have.

use crate::records::mix;
use crate::structures::ByKey;
use crate::studies::passages::polynomials;

use super::numbers::UNKNOWN;

/// No gram.
const NONE: u32 = u32::MAX;

/// Which grams an item has, and how many of them a document must have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GramRule {
    /// The words of a gram.
    pub words: usize,
    /// Runs of fewer words, and of this many at least, are one gram.
    pub shortest: usize,
    /// The share of its grams that a document must have; at least one.
    pub share: f64,
}

impl GramRule {
    /// How many of `grams` grams a document must have.
    pub(super) fn needed(&self, grams: u32) -> u32 {
        let is_enough = |found: u32| f64::from(found) / f64::from(grams) >= self.share;
        let about = (self.share * f64::from(grams)).ceil() as u32;
        // Products are rounded, and quotients are what is compared.
        let first = about.saturating_sub(1).max(1);
        (first..=grams).find(|found| is_enough(*found)).unwrap_or(grams)
    }
}

/// A gram, by its place among the words of all items.
#[derive(Clone, Copy)]
struct ItemGram {
    at: u32,
    words: u32,
}

/// The grams of an item: a range of `elements`.
#[derive(Clone, Copy)]
struct ItemGrams {
    start: usize,
    end: usize,
    needed: u32,
}

/// The grams of items.
pub struct GramIndex {
    rule: GramRule,
    /// Bits of hashes that are used: all, except in tests.
    mask: u64,
    /// The words of runs whose grams are known, by their numbers.
    runs: Vec<u32>,
    grams: Vec<ItemGram>,
    /// The last gram with a hash, and for each gram the one before it that has its hash.
    last: ByKey<u64, u32>,
    before: Vec<u32>,
    /// The lengths of grams, ascending.
    lengths: Vec<usize>,
    elements: Vec<u32>,
    items: Vec<ItemGrams>,
    /// For each gram the end of its items in `found_by`, once all items are there.
    ends: Vec<usize>,
    /// The items that are found by each gram.
    found_by: Vec<u32>,
    /// Two bits of each hash that is known: most others need no look into `last`.
    filter: Vec<u64>,
    hashes: Vec<u64>,
    values: Vec<u64>,
}

impl GramIndex {
    /// An index without items.
    pub fn new(rule: GramRule) -> GramIndex {
        GramIndex {
            rule,
            mask: u64::MAX,
            runs: Vec::new(),
            grams: Vec::new(),
            last: ByKey::default(),
            before: Vec::new(),
            lengths: Vec::new(),
            elements: Vec::new(),
            items: Vec::new(),
            ends: Vec::new(),
            found_by: Vec::new(),
            filter: Vec::new(),
            hashes: Vec::new(),
            values: Vec::new(),
        }
    }

    /// The same with hashes of so few bits that different grams have equal ones: for tests.
    #[cfg(test)]
    pub fn weak(self, bits: u32) -> GramIndex {
        GramIndex { mask: (1 << bits) - 1, ..self }
    }

    /// Adds the next item, of these runs of words: a gram is within one of them. Returns how many
    /// grams it has.
    pub fn add<'a>(&mut self, runs: impl Iterator<Item = &'a [u32]>) -> u32 {
        let start = self.elements.len();
        for run in runs {
            let words = match run.len() {
                length if length >= self.rule.words => self.rule.words,
                length if length >= self.rule.shortest.max(1) => length,
                _ => continue,
            };
            if let Err(place) = self.lengths.binary_search(&words) {
                self.lengths.insert(place, words);
            }
            hashes_of(run, words, &mut self.hashes, &mut self.values);
            let at = self.runs.len();
            self.runs.extend_from_slice(run);
            for number in 0..self.values.len() {
                let hash = self.values[number] & self.mask;
                let known = self.gram(hash, &run[number..number + words]);
                let gram = if known == NONE { self.add_gram(hash, at + number, words) } else { known };
                self.elements.push(gram);
            }
        }
        let own = &mut self.elements[start..];
        own.sort_unstable();
        let mut count = 0;
        for place in 0..own.len() {
            if count == 0 || own[count - 1] != own[place] {
                own[count] = own[place];
                count += 1;
            }
        }
        self.elements.truncate(start + count);
        let needed = if count == 0 { 0 } else { self.rule.needed(count as u32) };
        self.items.push(ItemGrams { start, end: start + count, needed });
        count as u32
    }

    fn add_gram(&mut self, hash: u64, at: usize, words: usize) -> u32 {
        let gram = self.grams.len() as u32;
        self.grams.push(ItemGram { at: at as u32, words: words as u32 });
        self.before.push(self.last.insert(hash, gram).unwrap_or(NONE));
        gram
    }

    /// The gram of these words, or [`NONE`].
    fn gram(&self, hash: u64, words: &[u32]) -> u32 {
        let mut gram = self.last.get(&hash).copied().unwrap_or(NONE);
        while gram != NONE && self.words_of(gram) != words {
            gram = self.before[gram as usize];
        }
        gram
    }

    fn words_of(&self, gram: u32) -> &[u32] {
        let ItemGram { at, words } = self.grams[gram as usize];
        &self.runs[at as usize..(at + words) as usize]
    }

    /// All items are there: makes ready for documents.
    pub fn finish(&mut self) {
        let mut items_with = vec![0u32; self.grams.len()];
        self.elements.iter().for_each(|gram| items_with[*gram as usize] += 1);
        let mut found_by = vec![0usize; self.grams.len()];
        for item in &self.items {
            let own = &mut self.elements[item.start..item.end];
            own.sort_unstable_by_key(|gram| (items_with[*gram as usize], *gram));
            own[..first_grams(*item)].iter().for_each(|gram| found_by[*gram as usize] += 1);
        }
        let mut end = 0;
        for count in &mut found_by {
            end += std::mem::replace(count, end);
        }
        // Of each gram the place of its next item.
        let mut ends = found_by;
        self.found_by = vec![0; end];
        for (number, item) in self.items.iter().enumerate() {
            for gram in &self.elements[item.start..item.start + first_grams(*item)] {
                let place = &mut ends[*gram as usize];
                self.found_by[*place] = number as u32;
                *place += 1;
            }
        }
        self.ends = ends;
        let bits = (16 * self.last.len().max(4)).next_power_of_two();
        self.filter = vec![0; bits / 64];
        for hash in self.last.keys() {
            for bit in bits_of(*hash, bits) {
                self.filter[bit / 64] |= 1 << (bit % 64);
            }
        }
    }

    /// The memory that it takes, in bytes; about, and before it is finished.
    pub fn memory(&self) -> u64 {
        (4 * self.runs.len() + 60 * self.grams.len() + 8 * self.elements.len() + 32 * self.items.len()) as u64
    }

    fn may_have(&self, hash: u64) -> bool {
        bits_of(hash, 64 * self.filter.len()).into_iter().all(|bit| self.filter[bit / 64] >> (bit % 64) & 1 == 1)
    }
}

/// The grams by which an item is found.
fn first_grams(item: ItemGrams) -> usize {
    let count = item.end - item.start;
    count.min(count + 1 - (item.needed as usize).min(count))
}

/// The bits of a hash in a filter of so many bits, a power of two.
fn bits_of(hash: u64, bits: usize) -> [usize; 2] {
    let mixed = mix(hash);
    [mixed as usize & (bits - 1), (mixed >> 32) as usize & (bits - 1)]
}

/// The hashes of all runs of `length` of these words.
fn hashes_of(words: &[u32], length: usize, hashes: &mut Vec<u64>, values: &mut Vec<u64>) {
    const BASE: u64 = 0x1B87_3593_CC9E_2D51;
    hashes.clear();
    hashes.extend(words.iter().map(|word| mix(u64::from(*word) + 1) >> 4));
    polynomials(hashes, length, BASE, values);
    values.iter_mut().for_each(|value| *value = mix(*value ^ length as u64));
}

/// What is known of a document; its buffers are reused from document to document.
#[derive(Default)]
pub struct DocumentGrams {
    /// The number of the document.
    document: u32,
    /// For each gram the last document that has it, and the number of its last place there.
    seen_in: Vec<u32>,
    last: Vec<u32>,
    /// Where grams stand in the document: the first word, and the number of the place before it of
    /// the same gram, or [`NONE`].
    places: Vec<[u32; 2]>,
    /// For each item the last document with one of its first grams.
    asked_in: Vec<u32>,
    grams: Vec<u32>,
    hashes: Vec<u64>,
    values: Vec<u64>,
    ranges: Vec<[u32; 2]>,
}

/// An item of which a document has enough grams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundItem {
    /// Its number.
    pub item: u32,
    /// Those of its grams that the document has.
    pub found: u32,
    /// All of its grams.
    pub grams: u32,
}

impl DocumentGrams {
    /// Finds the items of which a document has enough grams, in no order; `words` are the numbers
    /// of its words.
    pub fn find(&mut self, index: &GramIndex, words: &[u32], found: &mut Vec<FoundItem>) {
        found.clear();
        self.begin(index);
        for length in &index.lengths {
            self.find_grams(index, words, *length);
        }
        for gram in &self.grams {
            let gram = *gram as usize;
            let start = gram.checked_sub(1).map_or(0, |before| index.ends[before]);
            for item in &index.found_by[start..index.ends[gram]] {
                let asked_in = &mut self.asked_in[*item as usize];
                if std::mem::replace(asked_in, self.document) == self.document {
                    continue;
                }
                let ItemGrams { start, end, needed } = index.items[*item as usize];
                let of_item = &index.elements[start..end];
                let has = |gram: &&u32| self.seen_in[**gram as usize] == self.document;
                let count = of_item.iter().filter(has).count() as u32;
                if count >= needed {
                    found.push(FoundItem { item: *item, found: count, grams: of_item.len() as u32 });
                }
            }
        }
    }

    fn begin(&mut self, index: &GramIndex) {
        self.document = self.document.wrapping_add(1);
        if self.document == 0 {
            // After 2^32 documents.
            self.seen_in.fill(0);
            self.asked_in.fill(0);
            self.document = 1;
        }
        self.seen_in.resize(index.grams.len(), 0);
        self.last.resize(index.grams.len(), 0);
        self.asked_in.resize(index.items.len(), 0);
        self.grams.clear();
        self.places.clear();
    }

    /// Finds the grams of a length.
    fn find_grams(&mut self, index: &GramIndex, words: &[u32], length: usize) {
        hashes_of(words, length, &mut self.hashes, &mut self.values);
        // The words in a row that are known, up to the last one of the gram.
        let mut known = words.iter().take(length - 1).fold(0, |known, word| known_after(known, *word));
        for at in 0..self.values.len() {
            known = known_after(known, words[at + length - 1]);
            let hash = self.values[at] & index.mask;
            if known < length || !index.may_have(hash) {
                continue;
            }
            let gram = index.gram(hash, &words[at..at + length]);
            if gram == NONE {
                continue;
            }
            let mut before = NONE;
            if self.seen_in[gram as usize] == self.document {
                before = self.last[gram as usize];
            } else {
                self.seen_in[gram as usize] = self.document;
                self.grams.push(gram);
            }
            self.last[gram as usize] = self.places.len() as u32;
            self.places.push([at as u32, before]);
        }
    }

    /// The longest run of words of the last document that the grams of an item cover; of equal ones
    /// the first: its first word, and the word after its last one.
    pub fn longest_run(&mut self, index: &GramIndex, item: u32) -> [u32; 2] {
        let ItemGrams { start, end, .. } = index.items[item as usize];
        self.ranges.clear();
        for gram in &index.elements[start..end] {
            let gram = *gram as usize;
            let mut next = if self.seen_in[gram] == self.document { self.last[gram] } else { NONE };
            while next != NONE {
                let [first, before] = self.places[next as usize];
                self.ranges.push([first, first + index.grams[gram].words]);
                next = before;
            }
        }
        self.ranges.sort_unstable();
        let (mut longest, mut open): ([u32; 2], Option<[u32; 2]>) = ([0, 0], None);
        for [start, end] in self.ranges.iter().copied() {
            let run = match open {
                Some([first, last]) if start <= last => [first, last.max(end)],
                _ => [start, end],
            };
            open = Some(run);
            if run[1] - run[0] > longest[1] - longest[0] {
                longest = run;
            }
        }
        longest
    }
}

/// The known words in a row, after one more word.
fn known_after(known: usize, word: u32) -> usize {
    if word == UNKNOWN { 0 } else { known + 1 }
}
