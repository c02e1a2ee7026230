//! Which windows stand more than once in the corpus, how often, and where first.
//!
//! Only windows are hashed whose selected gram stands more than once. A document sends each of its
//! windows once, with the number of its occurrences: a text that repeats itself costs no more than
//! another one.

use anyhow::Result;
use bytemuck::{Pod, Zeroable};
use nigh_exchange::{Context, KeptRecords, Keyed, by_group};
use serde::{Deserialize, Serialize};

use super::fingerprints::{Fingerprints, Hashing};
use super::grams::Gram;
use super::send::Arriving;
use super::text_source::{CorpusPlace, OpenText, ReadTexts, TextSource, number_of};
use crate::records::DocId;
use crate::structures::{Sortable, Sorted};

/// A window of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct Window {
    /// Its fingerprint, in two halves.
    key: u64,
    check: u64,
    place: CorpusPlace,
    doc: DocId,
    /// Its first word where it stands first in the document.
    word: u32,
    /// How often it stands in the document.
    count: u32,
}

impl Keyed for Window {
    fn key(&self) -> u64 {
        self.key
    }
}

/// A window of a document that stands more than once in the corpus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable, Serialize, Deserialize)]
#[repr(C)]
pub struct RepeatedWindow {
    /// The place of the document.
    pub place: CorpusPlace,
    /// The place of the first document that has it.
    pub first_place: CorpusPlace,
    /// That document.
    pub first_doc: DocId,
    /// How often it stands in the corpus.
    pub occurrences: u64,
    /// Its first word where it stands first in the document.
    pub word: u32,
    /// Its first word where it stands first in that document.
    pub first_word: u32,
}

impl Sortable for RepeatedWindow {
    type Key = (CorpusPlace, u32);

    fn key(&self) -> (CorpusPlace, u32) {
        (self.place, self.word)
    }

    fn weight(&self) -> usize {
        size_of::<RepeatedWindow>()
    }
}

/// Reads the texts that have `grams` again, and returns their windows that stand more than once in
/// the corpus, by document, at the workers that read these.
///
/// # Errors
/// If a text cannot be read, a file cannot be written, or a worker of this process failed.
pub fn repeated_windows(
    cx: &mut Context,
    texts: &mut dyn TextSource,
    hashing: &Hashing,
    mut grams: Sorted<Gram>,
) -> Result<Sorted<RepeatedWindow>> {
    let watch = cx.watch().clone();
    let next = grams.record()?;
    let mut hashed = Hashed {
        hashing,
        grams,
        next,
        prints: Fingerprints::default(),
        keys: Vec::new(),
        of_document: Vec::new(),
        all: KeptRecords::new(cx.scratch(), cx.memory() / 4),
    };
    texts.read(&mut hashed)?;
    let all = hashed.all;
    let readers = texts.readers().to_vec();
    let share = move |of_key: &[Window], answers: &mut nigh_exchange::Dealer<RepeatedWindow>| {
        for of_window in of_key.chunk_by(|a, b| a.check == b.check) {
            let occurrences: u64 = of_window.iter().map(|window| u64::from(window.count)).sum();
            let first = of_window[0];
            for Window { place, word, .. } in of_window.iter().filter(|_| occurrences > 1) {
                let window = RepeatedWindow {
                    place: *place,
                    first_place: first.place,
                    first_doc: first.doc,
                    occurrences,
                    word: *word,
                    first_word: first.word,
                };
                answers.deal(readers[place.file()] as u64, window);
            }
        }
    };
    let repeated = Arriving::new(cx, "windows");
    let take = {
        let repeated = repeated.clone();
        move |block: nigh_exchange::BlockOf<RepeatedWindow>| {
            watch.check(block.records().iter().try_for_each(|window| repeated.push(*window)));
        }
    };
    let scratch = cx.scratch().to_owned();
    by_group(&mut cx.with(cx.memory() / 2, &scratch), "Windows", all, share, take)?;
    repeated.sorted()
}

/// Hashes the windows of documents with repeated grams.
struct Hashed<'a> {
    hashing: &'a Hashing,
    grams: Sorted<Gram>,
    next: Option<Gram>,
    prints: Fingerprints,
    keys: Vec<u64>,
    of_document: Vec<((u64, u64), u32)>,
    all: KeptRecords<Window>,
}

impl ReadTexts for Hashed<'_> {
    fn next(&mut self, documents: &[(CorpusPlace, DocId)]) -> Result<Option<usize>> {
        Ok(self.next.map(|gram| number_of(documents, gram.place)))
    }

    fn take(&mut self, (place, doc): (CorpusPlace, DocId), text: &mut OpenText<'_>) -> Result<()> {
        // They ascend.
        self.keys.clear();
        while let Some(gram) = self.next.take_if(|gram| gram.place == place) {
            self.keys.push(gram.key);
            self.next = self.grams.record()?;
        }
        self.prints.read(&text.words(), self.hashing);
        let (grams, selected) = self.prints.grams(self.hashing);
        let mut wanted = Vec::new();
        for of_gram in selected.chunk_by(|a, b| a == b) {
            let is_wanted = self.keys.binary_search(&grams[of_gram[0] as usize]).is_ok();
            wanted.resize(wanted.len() + of_gram.len(), is_wanted);
        }
        let windows = self.prints.windows(self.hashing);
        self.of_document.clear();
        let numbers = (0..windows.len()).filter(|window| wanted[*window]);
        self.of_document.extend(numbers.map(|window| (windows.get(window), window as u32)));
        self.of_document.sort_unstable();
        for of_window in self.of_document.chunk_by(|(a, _), (b, _)| a == b) {
            let ((key, check), word) = of_window[0];
            self.all.push(Window { key, check, place, doc, word, count: of_window.len() as u32 })?;
        }
        Ok(())
    }
}
