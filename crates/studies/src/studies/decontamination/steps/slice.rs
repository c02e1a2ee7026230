//! A part of the reference that fits into memory: the grams of its items, in each way in which
//! items are compared.

use super::grams::{GramIndex, GramRule};
use super::numbers::WordNumbers;

/// The ways in which items are compared with documents.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Measures {
    /// By the share of the grams of the item that the document has.
    pub containment: Option<GramRule>,
    /// By some words that follow each other in both.
    pub passage: Option<usize>,
    /// By the similarity of both: the words of a shingle, and the least similarity.
    pub similarity: Option<(usize, f64)>,
}

impl Measures {
    fn of_passages(words: usize) -> GramRule {
        // One gram is enough.
        GramRule { words, shortest: words, share: 0.0 }
    }

    fn of_similarity((words, share): (usize, f64)) -> GramRule {
        // What is in both is a part of what is in either, so it is this share of the item at least.
        GramRule { words, shortest: words, share }
    }
}

/// Some items of a reference.
pub struct Slice {
    /// The numbers of the words of these items.
    pub numbers: WordNumbers,
    /// The numbers of the items in the reference, ascending.
    pub items: Vec<u64>,
    /// Their grams for containment.
    pub containment: Option<GramIndex>,
    /// Their grams for passages.
    pub passage: Option<GramIndex>,
    /// Their shingles, and the least similarity.
    pub similarity: Option<(GramIndex, usize, f64)>,
    words: Vec<u32>,
    ends: Vec<usize>,
}

impl Slice {
    /// A slice without items.
    pub fn new(measures: &Measures) -> Slice {
        Slice {
            numbers: WordNumbers::default(),
            items: Vec::new(),
            containment: measures.containment.map(GramIndex::new),
            passage: measures.passage.map(|words| GramIndex::new(Measures::of_passages(words))),
            similarity: measures
                .similarity
                .map(|similarity| (GramIndex::new(Measures::of_similarity(similarity)), similarity.0, similarity.1)),
            words: Vec::new(),
            ends: Vec::new(),
        }
    }

    /// The same with hashes of few bits: for tests.
    #[cfg(test)]
    pub fn weak(self, bits: u32) -> Slice {
        Slice {
            containment: self.containment.map(|index| index.weak(bits)),
            passage: self.passage.map(|index| index.weak(bits)),
            similarity: self.similarity.map(|(index, width, least)| (index.weak(bits), width, least)),
            ..self
        }
    }

    /// Begins the next item.
    pub fn begin(&mut self) {
        self.words.clear();
        self.ends.clear();
    }

    /// Adds a text of the item: no gram goes from one text to the next.
    pub fn add_text<'a>(&mut self, words: impl Iterator<Item = &'a [u8]>) {
        self.words.extend(words.map(|word| self.numbers.number(word)));
        self.ends.push(self.words.len());
    }

    /// Ends the item, whose number in the reference this is. Returns its grams for containment, and
    /// whether it is compared at all: it has a gram of one kind.
    pub fn end(&mut self, number: u64) -> (u32, bool) {
        let (words, ends) = (&self.words[..], &self.ends[..]);
        let text = move |number: usize| {
            let start = number.checked_sub(1).map_or(0, |before| ends[before]);
            &words[start..ends[number]]
        };
        let runs = || (0..ends.len()).map(text);
        let grams = self.containment.as_mut().map_or(0, |index| index.add(runs()));
        let passages = self.passage.as_mut().map_or(0, |index| index.add(runs()));
        let shingles = match &mut self.similarity {
            Some((index, width, _)) => index.add(std::iter::once(&wrapped(words, *width)[..])),
            None => 0,
        };
        self.items.push(number);
        (grams, grams > 0 || passages > 0 || shingles > 0)
    }

    /// All items are there: makes ready for documents.
    pub fn finish(&mut self) {
        let indexes = [self.containment.as_mut(), self.passage.as_mut(), self.similarity.as_mut().map(|of| &mut of.0)];
        indexes.into_iter().flatten().for_each(GramIndex::finish);
    }

    /// The memory that it takes, in bytes; about.
    pub fn memory(&self) -> u64 {
        let indexes = [self.containment.as_ref(), self.passage.as_ref(), self.similarity.as_ref().map(|of| &of.0)];
        self.numbers.memory() + indexes.into_iter().flatten().map(GramIndex::memory).sum::<u64>()
    }
}

/// The words of a text that wraps around at its end, so that each begins a shingle of `width`
/// words.
pub fn wrapped(words: &[u32], width: usize) -> Vec<u32> {
    let count = if words.is_empty() { 0 } else { words.len() + width - 1 };
    words.iter().copied().cycle().take(count).collect()
}
