//! Compares documents with a slice of the reference: each text is read once.

use std::collections::BTreeMap;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::grams::{DocumentGrams, FoundItem};
use super::numbers::{UNKNOWN, WordNumbers};
use super::slice::{Slice, wrapped};
use crate::records::DocId;
use crate::structures::{ExternalSort, Sortable};
use crate::studies::passages::{CorpusPlace, OpenText, ReadTexts};

/// A document and an item that match.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Match {
    /// The document.
    pub doc: DocId,
    /// The number of the item.
    pub item: u64,
    /// If it is contained: its grams that the document has, and all of them.
    pub grams: Option<[u32; 2]>,
    /// If the two have a passage in common: its words.
    pub passage: Option<u32>,
    /// If they are similar: how similar.
    pub similarity: Option<f64>,
    /// Where in the document: the first word, and the word after the last one.
    pub words: [u32; 2],
    /// Where in its text, in bytes, if that can be said.
    pub bytes: Option<[u32; 2]>,
}

impl Match {
    /// The share of the grams of the item that the document has.
    pub fn containment(&self) -> Option<f64> {
        self.grams.map(|[found, all]| f64::from(found) / f64::from(all))
    }
}

impl Sortable for Match {
    type Key = (DocId, u64);

    fn key(&self) -> (DocId, u64) {
        (self.doc, self.item)
    }

    fn weight(&self) -> usize {
        size_of::<Match>()
    }
}

/// What was compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MatchCounts {
    /// Documents.
    pub documents: u64,
    /// Their words.
    pub words: u64,
}

/// Compares documents with a slice.
pub struct Matching<'a> {
    slice: &'a Slice,
    /// The number of the next document.
    next: usize,
    numbers: Vec<u32>,
    containment: DocumentGrams,
    passage: DocumentGrams,
    similarity: DocumentGrams,
    found: Vec<FoundItem>,
    /// The matches.
    matches: &'a mut ExternalSort<Match>,
    /// What was compared.
    pub counts: MatchCounts,
}

impl<'a> Matching<'a> {
    /// Finds matches with the items of a slice.
    pub fn new(slice: &'a Slice, matches: &'a mut ExternalSort<Match>) -> Matching<'a> {
        Matching {
            slice,
            next: 0,
            numbers: Vec::new(),
            containment: DocumentGrams::default(),
            passage: DocumentGrams::default(),
            similarity: DocumentGrams::default(),
            found: Vec::new(),
            matches,
            counts: MatchCounts::default(),
        }
    }

    /// The matches of a document without their bytes, by the place of the item in the slice.
    /// `shingles` counts the shingles of a width that the document has.
    fn of_document(&mut self, doc: DocId, shingles: &mut dyn FnMut(usize) -> u32) -> BTreeMap<u32, Match> {
        let Matching { slice, numbers, found, .. } = self;
        let new = |item: u32, words: [u32; 2]| Match {
            doc,
            item: slice.items[item as usize],
            grams: None,
            passage: None,
            similarity: None,
            words,
            bytes: None,
        };
        let mut matches: BTreeMap<u32, Match> = BTreeMap::new();
        if let Some(index) = &slice.containment {
            self.containment.find(index, numbers, found);
            for FoundItem { item, found, grams } in found.iter().copied() {
                let words = self.containment.longest_run(index, item);
                matches.insert(item, Match { grams: Some([found, grams]), ..new(item, words) });
            }
        }
        if let Some(index) = &slice.passage {
            self.passage.find(index, numbers, found);
            for FoundItem { item, .. } in found.iter().copied() {
                let words = self.passage.longest_run(index, item);
                matches.entry(item).or_insert_with(|| new(item, words)).passage = Some(words[1] - words[0]);
            }
        }
        if let Some((index, width, least)) = &slice.similarity {
            let all = [0, numbers.len() as u32];
            self.similarity.find(index, &wrapped(numbers, *width), found);
            let of_document = if found.is_empty() { 0 } else { shingles(*width) };
            for FoundItem { item, found, grams } in found.iter().copied() {
                let in_either = u64::from(grams) + u64::from(of_document) - u64::from(found);
                let similarity = f64::from(found) / in_either as f64;
                if similarity >= *least {
                    matches.entry(item).or_insert_with(|| new(item, all)).similarity = Some(similarity);
                }
            }
        }
        matches
    }
}

impl ReadTexts for Matching<'_> {
    fn next(&mut self, documents: &[(CorpusPlace, DocId)]) -> Result<Option<usize>> {
        self.next += 1;
        Ok((self.next <= documents.len()).then(|| self.next - 1))
    }

    fn take(&mut self, (_, doc): (CorpusPlace, DocId), text: &mut OpenText<'_>) -> Result<()> {
        let words = text.words();
        self.counts.documents += 1;
        self.counts.words += words.len() as u64;
        self.numbers.clear();
        self.numbers.extend(words.iter().map(|word| self.slice.numbers.find(word)));
        if self.numbers.iter().all(|number| *number == UNKNOWN) {
            return Ok(());
        }
        let mut shingles = |width: usize| {
            // Words that the reference does not have differ, too.
            let mut numbers = WordNumbers::default();
            let all: Vec<u32> = words.iter().map(|word| numbers.number(word)).collect();
            count_shingles(&all, width)
        };
        let mut matches = self.of_document(doc, &mut shingles);
        if matches.is_empty() {
            return Ok(());
        }
        let places = text.places();
        for found in matches.values_mut() {
            let [start, end] = found.words;
            found.bytes = places.as_ref().map(|places| [places[start as usize][0], places[end as usize - 1][1]]);
            self.matches.push(*found)?;
        }
        Ok(())
    }
}

/// The shingles of a text that wraps around, each once.
fn count_shingles(words: &[u32], width: usize) -> u32 {
    let all = wrapped(words, width);
    let mut shingles: Vec<&[u32]> = all.windows(width).collect();
    shingles.sort_unstable();
    shingles.dedup();
    shingles.len() as u32
}
