//! Reads the texts with repeated windows again, and makes passages of them: records of the tables,
//! and claims about other texts.

use std::cmp::Reverse;

use anyhow::Result;
use nigh_exchange::Context;
use nigh_text::features::Words;
use serde::{Deserialize, Serialize};

use super::fingerprints::{Fingerprints, Hashing};
use super::send::sort_of;
use super::stretches::{Claim, Stretches, stretches, united};
use super::text_source::{CorpusPlace, OpenText, ReadTexts, TextSource, number_of};
use super::windows::RepeatedWindow;
use crate::records::DocId;
use crate::structures::{CompactSort, ExternalSort, Sortable, Sorted};

/// A passage of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DocumentPassage {
    /// The document.
    pub doc: DocId,
    /// Its first word.
    pub word: u32,
    /// Its words.
    pub words: u32,
    /// The last of them that go if copies go.
    pub copied: u32,
    /// Where it is in the text, if that can be said.
    pub bytes: Option<PassageBytes>,
    /// The most occurrences of as many words of it as a passage has at least.
    pub occurrences: u64,
    /// The document of its first occurrence.
    pub first_doc: DocId,
    /// The first word there.
    pub first_word: u32,
}

/// Where a passage is in a text, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PassageBytes {
    /// Its first byte.
    pub offset: u64,
    /// Its bytes.
    pub bytes: u64,
    /// The last of them that go if copies go.
    pub copied: u64,
}

impl Sortable for DocumentPassage {
    type Key = (DocId, u32);

    fn key(&self) -> (DocId, u32) {
        (self.doc, self.word)
    }

    fn weight(&self) -> usize {
        size_of::<DocumentPassage>()
    }
}

/// Stands between claimed words: no word has it. A word by a pattern can have blanks.
pub const WORD_END: u8 = 0;

/// Words that must stand at a place of another text.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ClaimedWords {
    /// The place of the document.
    pub place: CorpusPlace,
    /// The first word.
    pub word: u32,
    /// The words, with [`WORD_END`] between them.
    pub text: Vec<u8>,
}

impl Sortable for ClaimedWords {
    type Key = (CorpusPlace, u32);

    fn key(&self) -> (CorpusPlace, u32) {
        (self.place, self.word)
    }

    fn weight(&self) -> usize {
        size_of::<ClaimedWords>() + self.text.len()
    }
}

/// The passages of the documents that a worker reads.
pub struct FoundPassages {
    /// The passages.
    pub passages: ExternalSort<DocumentPassage>,
    /// What other texts must have.
    pub claims: ExternalSort<ClaimedWords>,
    /// Whether two windows with one fingerprint have other words.
    pub has_collision: bool,
    /// What was found.
    pub counts: FoundCounts,
    /// First occurrences with the most occurrences.
    pub most: Vec<MostRepeated>,
}

/// What was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundCounts {
    /// Passages.
    pub passages: u64,
    /// Those of them that are first occurrences.
    pub first: u64,
    /// Documents with passages.
    pub documents: u64,
    /// Words in passages, each once.
    pub words: u64,
    /// Those of them that are copies.
    pub copied_words: u64,
    /// Bytes of texts in passages, where they are known.
    pub bytes: u64,
    /// Those of them that are copies.
    pub copied_bytes: u64,
}

impl FoundCounts {
    /// Adds those of another worker.
    pub fn merge(&mut self, other: &FoundCounts) {
        self.passages += other.passages;
        self.first += other.first;
        self.documents += other.documents;
        self.words += other.words;
        self.copied_words += other.copied_words;
        self.bytes += other.bytes;
        self.copied_bytes += other.copied_bytes;
    }
}

/// A passage that stands often.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MostRepeated {
    /// How often.
    pub occurrences: u64,
    /// The place of the document.
    pub place: CorpusPlace,
    /// The document.
    pub doc: DocId,
    /// Its first word there.
    pub word: u32,
    /// Its words.
    pub words: u32,
    /// How it begins.
    pub text: String,
}

/// How many passages that stand often are named.
const MOST: usize = 10;
/// How many words of each.
const BEGINNING: usize = 10;

impl MostRepeated {
    /// Sorts them, and leaves those with the most occurrences.
    pub fn leave_most(all: &mut Vec<MostRepeated>) {
        all.sort_items_by_key(|passage| (Reverse(passage.occurrences), passage.place, passage.word));
        all.truncate(MOST);
    }
}

/// Reads the texts of `windows` again.
///
/// # Errors
/// If a text cannot be read, or a file cannot be written.
pub fn passages(
    cx: &Context,
    texts: &mut dyn TextSource,
    hashing: &Hashing,
    mut windows: Sorted<RepeatedWindow>,
) -> Result<FoundPassages> {
    let next = windows.record()?;
    let found = FoundPassages {
        passages: sort_of(cx, "passages"),
        claims: sort_of(cx, "claims"),
        has_collision: false,
        counts: FoundCounts::default(),
        most: Vec::new(),
    };
    let mut finding =
        PassageFinder { hashing, windows, next, prints: Fingerprints::default(), of_document: Vec::new(), found };
    texts.read(&mut finding)?;
    MostRepeated::leave_most(&mut finding.found.most);
    Ok(finding.found)
}

struct PassageFinder<'a> {
    hashing: &'a Hashing,
    windows: Sorted<RepeatedWindow>,
    next: Option<RepeatedWindow>,
    prints: Fingerprints,
    of_document: Vec<RepeatedWindow>,
    found: FoundPassages,
}

impl ReadTexts for PassageFinder<'_> {
    fn next(&mut self, documents: &[(CorpusPlace, DocId)]) -> Result<Option<usize>> {
        Ok(self.next.map(|window| number_of(documents, window.place)))
    }

    fn take(&mut self, (place, doc): (CorpusPlace, DocId), text: &mut OpenText<'_>) -> Result<()> {
        self.of_document.clear();
        while let Some(window) = self.next.take_if(|window| window.place == place) {
            self.of_document.push(window);
            self.next = self.windows.record()?;
        }
        let words = text.words();
        self.prints.read(&words, self.hashing);
        let windows = self.prints.windows(self.hashing);
        let least = self.hashing.words;
        let Stretches { passages, claims, has_collision } = stretches(place, &words, least, windows, &self.of_document);
        let found = &mut self.found;
        if has_collision {
            // The search begins again.
            found.has_collision = true;
            return Ok(());
        }
        let FoundPassages { passages: all_passages, claims: all_claims, counts, most, .. } = found;
        for Claim { word, end, first_place, first_word } in claims {
            let text = joined(&words, word, end, WORD_END);
            all_claims.push(ClaimedWords { place: first_place, word: first_word, text })?;
        }
        for passage in passages.iter().filter(|passage| passage.copied_from == passage.end) {
            let occurrences = passage.occurrences;
            if most.len() < MOST || most.iter().any(|other| other.occurrences < occurrences) {
                let end = passage.end.min(passage.word + BEGINNING as u32);
                let text = String::from_utf8_lossy(&joined(&words, passage.word, end, b' ')).into_owned();
                let (word, words) = (passage.word, passage.end - passage.word);
                most.push(MostRepeated { occurrences, place, doc, word, words, text });
                MostRepeated::leave_most(most);
            }
        }
        let places = text.places();
        let length = |[start, end]: [u32; 2]| u64::from(end - start);
        let bytes = |[start, end]: [u32; 2]| match &places {
            Some(places) if start < end => [places[start as usize][0], places[end as usize - 1][1]],
            _ => [0, 0],
        };
        let all = united(passages.iter().map(|passage| [passage.word, passage.end]));
        let copied = united(passages.iter().map(|passage| [passage.copied_from, passage.end]));
        counts.documents += u64::from(!passages.is_empty());
        counts.words += all.iter().copied().map(length).sum::<u64>();
        counts.copied_words += copied.iter().copied().map(length).sum::<u64>();
        counts.bytes += all.iter().map(|range| length(bytes(*range))).sum::<u64>();
        counts.copied_bytes += copied.iter().map(|range| length(bytes(*range))).sum::<u64>();
        for passage in passages {
            counts.passages += 1;
            counts.first += u64::from(passage.copied_from == passage.end);
            let [start, end] = bytes([passage.word, passage.end]);
            let in_text = PassageBytes {
                offset: start.into(),
                bytes: length([start, end]),
                copied: length(bytes([passage.copied_from, passage.end])),
            };
            all_passages.push(DocumentPassage {
                doc,
                word: passage.word,
                words: passage.end - passage.word,
                copied: passage.end - passage.copied_from,
                bytes: places.as_ref().map(|_| in_text),
                occurrences: passage.occurrences,
                first_doc: self.of_document[passage.of].first_doc,
                first_word: passage.first_word,
            })?;
        }
        Ok(())
    }
}

/// Some words, with a byte between them.
fn joined(words: &Words<'_>, from: u32, to: u32, between: u8) -> Vec<u8> {
    let mut text = Vec::new();
    for word in from..to {
        if word > from {
            text.push(between);
        }
        text.extend_from_slice(words.get(word as usize));
    }
    text
}
