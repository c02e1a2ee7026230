//! Paragraphs that go because most of their n-grams stand before, and documents that do.
//!
//! An n-gram is some words of one paragraph that follow each other. It stands before if a paragraph
//! before that stays has it; the order is that of the inputs. A paragraph goes if more than a share
//! of its n-grams stand before. A document goes if more than that share of all its n-grams stand in
//! documents before; then none of it stays. These are the rules of DCLM (Li and others 2024)
//! without its Bloom filter. In their program, what stands before in the same document counts for
//! the document, too, and so does what stands in documents that went.
//!
//! Whether a paragraph goes depends on those before it. But most paragraphs stay for certain: those
//! with few n-grams that stand before at all, in paragraphs that stay or go. Only the others, which
//! are *open*, are decided one after the other:
//!
//! ```text
//! n-grams, by hash and place ─▶ those that stand in two paragraphs, by place ─▶ open paragraphs
//! the same by hash and place ─▶ of open paragraphs: n-grams that stand before in one that stays for
//!                               certain; and those that only open ones have before
//! open paragraphs, by place  ─▶ decided, with the n-grams of those that stay in memory
//! ```
//!
//! Two n-grams are equal if their 128-bit hashes are. All sorts are external. Memory: 16 bytes for
//! each n-gram that only open paragraphs have, and one of them that stays.

use std::collections::HashSet;
use std::path::PathBuf;

use anyhow::Result;
use nigh_text::features::WordReader;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_128;

use super::paragraph_place::ParagraphPlace;
use crate::config::Share;
use crate::structures::{ExternalSort, Sortable, Sorted};

/// When a paragraph, or a document, has too much that stands before.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct OverlapRule {
    /// The words of an n-gram.
    pub words: u32,
    /// It goes if more than this share of its n-grams stand before.
    #[serde(with = "crate::export::exact")]
    pub share: Share,
}

impl OverlapRule {
    /// Whether so many n-grams of all are more than the share.
    fn is_too_much(self, before: u64, all: u64) -> bool {
        all > 0 && before as f64 / all as f64 > self.share.0
    }
}

/// What is found in the texts.
pub(super) enum OfText {
    /// A paragraph, with the number of its n-grams.
    Paragraph(CountedParagraph),
    Gram(ParagraphGram),
}

/// A paragraph, with the number of its n-grams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct CountedParagraph {
    place: ParagraphPlace,
    grams: u32,
}

/// An n-gram of a paragraph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct ParagraphGram {
    hash: u128,
    place: ParagraphPlace,
}

/// An n-gram that several paragraphs have, in one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct RepeatedGram {
    place: ParagraphPlace,
    hash: u128,
    /// How often the paragraph has it.
    times: u32,
    /// Whether a paragraph before has it, and one of a document before.
    is_before: bool,
    is_elsewhere: bool,
}

/// The same, once it is known whether the paragraph is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct OpenOccurrence {
    hash: u128,
    place: ParagraphPlace,
    times: u32,
    is_open: bool,
}

/// What is known of an n-gram of an open paragraph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
enum GramState {
    /// A paragraph of a document before, which stays for certain, has it.
    Elsewhere,
    /// One before in the same document does.
    Here,
    /// Only open ones before do, if any.
    Open,
}

/// An n-gram of an open paragraph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct OfOpen {
    place: ParagraphPlace,
    hash: u128,
    times: u32,
    known: GramState,
}

/// An open paragraph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct OpenParagraph {
    place: ParagraphPlace,
    grams: u32,
    /// Whether its document may go.
    of_document: bool,
}

macro_rules! sorted_as_they_are {
    ($($record:ty),*) => {$(
        impl Sortable for $record {
            type Key = $record;

            fn key(&self) -> $record {
                *self
            }

            fn weight(&self) -> usize {
                size_of::<$record>()
            }
        }
    )*};
}

sorted_as_they_are!(CountedParagraph, ParagraphGram, RepeatedGram, OpenOccurrence, OfOpen, OpenParagraph);

/// The n-grams of a paragraph, and how many there are.
pub(super) fn grams_of(
    rule: OverlapRule,
    reader: &mut WordReader,
    place: ParagraphPlace,
    paragraph: &str,
    found: &mut Vec<OfText>,
) {
    /// No byte of a text in UTF-8.
    const BETWEEN_WORDS: u8 = 0xff;
    let (mut text, mut starts) = (Vec::with_capacity(paragraph.len()), Vec::new());
    for word in reader.text(paragraph).iter() {
        starts.push(text.len());
        text.extend_from_slice(word);
        text.push(BETWEEN_WORDS);
    }
    let ends = starts.iter().copied().chain([text.len()]).skip(rule.words as usize);
    let mut grams = 0;
    for (start, end) in starts.iter().zip(ends) {
        found.push(OfText::Gram(ParagraphGram { hash: xxh3_128(&text[*start..end]), place }));
        grams += 1;
    }
    found.push(OfText::Paragraph(CountedParagraph { place, grams }));
}

/// Finds what goes, from the n-grams of all texts.
pub(super) struct Overlaps {
    rule: OverlapRule,
    scratch: PathBuf,
    memory: u64,
    grams: ExternalSort<ParagraphGram>,
    paragraphs: ExternalSort<CountedParagraph>,
}

impl Overlaps {
    /// Of no text yet. `memory` is that of all sorts.
    pub(super) fn new(rule: OverlapRule, scratch: PathBuf, memory: u64) -> Overlaps {
        let grams = ExternalSort::new(&scratch.join("grams"), memory / 4);
        let paragraphs = ExternalSort::new(&scratch.join("counted"), memory / 8);
        Overlaps { rule, scratch, memory, grams, paragraphs }
    }

    /// Adds something of a text, in any order.
    ///
    /// # Errors
    /// If a run cannot be written.
    pub(super) fn push(&mut self, found: OfText) -> Result<()> {
        match found {
            OfText::Gram(gram) => self.grams.push(gram),
            OfText::Paragraph(paragraph) => self.paragraphs.push(paragraph),
        }
    }

    /// The paragraphs that go, in the order of their places: of a document that goes, all.
    ///
    /// # Errors
    /// If a run cannot be read or written.
    pub(super) fn gone(self) -> Result<Sorted<ParagraphPlace>> {
        let Overlaps { rule, scratch, memory, grams, paragraphs } = self;
        let sort = |name: &str| (scratch.join(name), memory / 8);
        let repeated = repeated(grams.sorted()?, sort("repeated"))?;
        let (occurrences, open) = open(rule, paragraphs.sorted()?, repeated, sort("occurrences"), sort("open"))?;
        let of_open = of_open(occurrences, sort("of-open"))?;
        decided(rule, open, of_open, sort("gone"))
    }
}

/// The path of a sort, and its memory.
type Sort = (PathBuf, u64);

fn external<T: Sortable>((path, memory): Sort) -> ExternalSort<T> {
    ExternalSort::new(&path, memory)
}

/// The n-grams that stand in two paragraphs or more, by place.
fn repeated(mut grams: Sorted<ParagraphGram>, sort: Sort) -> Result<Sorted<RepeatedGram>> {
    let mut repeated = external(sort);
    let mut next = grams.record()?;
    while let Some(first) = next {
        let (mut place, mut is_repeated) = (first.place, false);
        let mut times = 1;
        let of = |place: ParagraphPlace, times| RepeatedGram {
            place,
            hash: first.hash,
            times,
            is_before: place != first.place,
            is_elsewhere: place.document() != first.place.document(),
        };
        loop {
            next = grams.record()?;
            match next.filter(|next| next.hash == first.hash) {
                Some(next) if next.place == place => times += 1,
                Some(next) => {
                    is_repeated = true;
                    repeated.push(of(place, times))?;
                    (place, times) = (next.place, 1);
                }
                None => break,
            }
        }
        if is_repeated {
            repeated.push(of(place, times))?;
        }
    }
    repeated.sorted()
}

/// Which paragraphs are open, by place; and the n-grams that stand in several paragraphs, by hash.
fn open(
    rule: OverlapRule,
    mut paragraphs: Sorted<CountedParagraph>,
    mut repeated: Sorted<RepeatedGram>,
    of_occurrences: Sort,
    of_open: Sort,
) -> Result<(Sorted<OpenOccurrence>, Sorted<OpenParagraph>)> {
    let (mut occurrences, mut open) = (external(of_occurrences), external(of_open));
    let (mut next, mut next_gram) = (paragraphs.record()?, repeated.record()?);
    // Of one document: its paragraphs, with the n-grams that stand before; and all repeated ones.
    let (mut counted, mut grams) = (Vec::new(), Vec::new());
    while let Some(first) = next {
        counted.clear();
        grams.clear();
        let (mut all, mut elsewhere) = (0, 0);
        while let Some(paragraph) = next.take_if(|next| next.place.document() == first.place.document()) {
            let (mut before, start) = (0, grams.len());
            while let Some(gram) = next_gram.take_if(|next| next.place == paragraph.place) {
                before += u64::from(gram.times) * u64::from(gram.is_before);
                elsewhere += u64::from(gram.times) * u64::from(gram.is_elsewhere);
                grams.push(gram);
                next_gram = repeated.record()?;
            }
            all += u64::from(paragraph.grams);
            counted.push((paragraph, before, start..grams.len()));
            next = paragraphs.record()?;
        }
        let of_document = rule.is_too_much(elsewhere, all);
        for (CountedParagraph { place, grams: count }, before, range) in counted.drain(..) {
            let is_open = of_document || rule.is_too_much(before, count.into());
            if is_open {
                open.push(OpenParagraph { place, grams: count, of_document })?;
            }
            for RepeatedGram { place, hash, times, .. } in &grams[range] {
                occurrences.push(OpenOccurrence { hash: *hash, place: *place, times: *times, is_open })?;
            }
        }
    }
    Ok((occurrences.sorted()?, open.sorted()?))
}

/// What is known of the n-grams of open paragraphs, by place. What only one open paragraph has, and
/// none for certain before it, stands nowhere before.
fn of_open(mut occurrences: Sorted<OpenOccurrence>, sort: Sort) -> Result<Sorted<OfOpen>> {
    let mut of_open = external(sort);
    let mut next = occurrences.record()?;
    while let Some(first) = next {
        // The first paragraph that stays for certain, and the first one that is open, if no other
        // came yet.
        let (mut certain, mut alone, mut has_open): (Option<ParagraphPlace>, _, _) = (None, None, false);
        while let Some(OpenOccurrence { hash, place, times, is_open }) = next.take_if(|next| next.hash == first.hash) {
            next = occurrences.record()?;
            if !is_open {
                certain = certain.or(Some(place));
                continue;
            }
            let known = match certain {
                Some(certain) if certain.document() != place.document() => GramState::Elsewhere,
                Some(_) => GramState::Here,
                None => GramState::Open,
            };
            let gram = OfOpen { place, hash, times, known };
            if known == GramState::Open && !has_open {
                (alone, has_open) = (Some(gram), true);
                continue;
            }
            // What came first may be what this one has before.
            alone.take().map_or(Ok(()), |alone| of_open.push(alone))?;
            of_open.push(gram)?;
        }
    }
    of_open.sorted()
}

/// The paragraphs that go.
fn decided(
    rule: OverlapRule,
    mut open: Sorted<OpenParagraph>,
    mut grams: Sorted<OfOpen>,
    sort: Sort,
) -> Result<Sorted<ParagraphPlace>> {
    let mut gone = external(sort);
    // The n-grams of open paragraphs that stay: of documents before, and of this one.
    let (mut staying, mut own) = (HashSet::new(), HashSet::new());
    let (mut next, mut next_gram) = (open.record()?, grams.record()?);
    let (mut lines, mut of_paragraph) = (Vec::new(), Vec::new());
    while let Some(first) = next {
        let (mut all, mut elsewhere) = (0, 0);
        while let Some(paragraph) = next.take_if(|next| next.place.document() == first.place.document()) {
            next = open.record()?;
            let mut before = 0;
            of_paragraph.clear();
            while let Some(OfOpen { hash, times, known, .. }) = next_gram.take_if(|next| next.place == paragraph.place)
            {
                next_gram = grams.record()?;
                let is_elsewhere = known == GramState::Elsewhere || staying.contains(&hash);
                elsewhere += u64::from(times) * u64::from(is_elsewhere);
                before += u64::from(times) * u64::from(is_elsewhere || known == GramState::Here || own.contains(&hash));
                of_paragraph.extend((!is_elsewhere).then_some(hash));
            }
            all += u64::from(paragraph.grams);
            let goes = rule.is_too_much(before, paragraph.grams.into());
            lines.push((paragraph.place, goes));
            if !goes {
                own.extend(of_paragraph.iter().copied());
            }
        }
        let goes = first.of_document && rule.is_too_much(elsewhere, all);
        for (place, _) in lines.drain(..).filter(|(_, alone)| goes || *alone) {
            gone.push(place)?;
        }
        let own = own.drain();
        if !goes {
            staying.extend(own);
        }
    }
    gone.sorted()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::config::Method;

    /// What goes by the rules, one paragraph after the other.
    fn twin(rule: OverlapRule, documents: &[Vec<String>]) -> BTreeSet<ParagraphPlace> {
        let (mut known, mut gone) = (HashSet::new(), BTreeSet::new());
        for (offset, lines) in (0..).zip(documents) {
            let (mut own, mut own_gone) = (HashSet::new(), BTreeSet::new());
            let (mut all, mut elsewhere, mut places) = (0, 0, Vec::new());
            for (line, paragraph) in (0..).zip(lines) {
                let place = ParagraphPlace { file: 0, offset, line };
                let words: Vec<&str> = paragraph.split(' ').filter(|word| !word.is_empty()).collect();
                let grams: Vec<Vec<&str>> = words.windows(rule.words as usize).map(<[&str]>::to_vec).collect();
                let is_before = |gram: &&Vec<&str>| known.contains(*gram) || own.contains(*gram);
                let before = grams.iter().filter(is_before).count();
                elsewhere += grams.iter().filter(|gram| known.contains(*gram)).count();
                all += grams.len();
                places.push(place);
                if !grams.is_empty() && before as f64 / grams.len() as f64 > rule.share.0 {
                    own_gone.insert(place);
                } else {
                    own.extend(grams);
                }
            }
            if all > 0 && elsewhere as f64 / all as f64 > rule.share.0 {
                gone.extend(places);
            } else {
                known.extend(own);
                gone.extend(own_gone);
            }
        }
        gone
    }

    fn found(rule: OverlapRule, documents: &[Vec<String>], memory: u64) -> BTreeSet<ParagraphPlace> {
        let folder = tempfile::tempdir().unwrap();
        let mut overlaps = Overlaps::new(rule, folder.path().to_owned(), memory);
        let mut reader = WordReader::of_method(&Method::default()).unwrap();
        let mut all = Vec::new();
        for (offset, lines) in (0..).zip(documents) {
            for (line, paragraph) in (0..).zip(lines) {
                grams_of(rule, &mut reader, ParagraphPlace { file: 0, offset, line }, paragraph, &mut all);
            }
        }
        // They come in any order.
        all.into_iter().rev().for_each(|found| overlaps.push(found).unwrap());
        let (mut gone, mut places) = (overlaps.gone().unwrap(), Vec::new());
        while let Some(place) = gone.record().unwrap() {
            places.push(place);
        }
        assert!(places.is_sorted());
        places.into_iter().collect()
    }

    #[test]
    fn what_goes_is_what_a_slow_twin_says() {
        let mut state = 7_u64;
        let mut below = |bound: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % bound
        };
        let (mut all, mut all_documents, mut all_gone) = (0, 0, 0);
        for round in 0..300 {
            // Stretches of one long text, with words that differ: chains of copies that copy each
            // other in part.
            let length = 30 + below(60);
            let changed = 2 + below(30);
            let documents: Vec<Vec<String>> = (0..2 + below(12))
                .map(|_| {
                    let count = 1 + below(6);
                    let paragraph = |_| {
                        let (start, words) = (below(length), below(24));
                        let word = |at: u64| match below(changed) {
                            0 => format!("x{}", below(5)),
                            _ => format!("w{}", at % length),
                        };
                        (start..start + words).map(word).collect::<Vec<_>>().join(" ")
                    };
                    (0..count).map(paragraph).collect()
                })
                .collect();
            let share = Share([0.0, 0.3, 0.5, 0.8, 1.0][round % 5]);
            let rule = OverlapRule { words: 1 + below(4) as u32, share };
            let expected = twin(rule, &documents);
            // With so little memory each sort has several runs.
            assert_eq!(found(rule, &documents, 1 << 12), expected, "round {round}: {rule:?}, {documents:?}");
            let goes = |(offset, lines): (u64, &Vec<String>)| {
                (0..).zip(lines).all(|(line, _)| expected.contains(&ParagraphPlace { file: 0, offset, line }))
            };
            all += documents.iter().map(Vec::len).sum::<usize>();
            all_documents += (0..).zip(&documents).filter(|document| goes(*document)).count();
            all_gone += expected.len();
        }
        assert!(
            all_gone > all / 10 && all_gone < all * 3 / 4 && all_documents > 50,
            "{all_gone} of {all}, {all_documents}"
        );
    }

    #[test]
    fn what_stands_only_in_what_goes_does_not_stand_before() {
        let rule = OverlapRule { words: 2, share: Share(0.5) };
        let gone = |documents: &[&str]| {
            let documents: Vec<Vec<String>> =
                documents.iter().map(|text| text.split('/').map(str::to_owned).collect()).collect();
            let gone = found(rule, &documents, 1 << 20);
            assert_eq!(gone, twin(rule, &documents));
            gone.into_iter().map(|ParagraphPlace { offset, line, .. }| (offset, line)).collect::<Vec<_>>()
        };
        // Half is not more than half. The second stays, and so the third goes, which it has; and
        // the other way round.
        assert_eq!(gone(&["a b c d", "a b c d e f g", "e f g"]), [(2, 0)]);
        assert_eq!(gone(&["a b c d e", "a b c d e f g", "e f g"]), [(1, 0)]);
        assert_eq!(gone(&["a b c d e", "a b c d e f g", "e f g", "e f g"]), [(1, 0), (3, 0)]);
        // A paragraph that is there twice in one document goes once; and a document with more of
        // its own stays.
        assert_eq!(gone(&["a b c/a b c/x/d e f"]), [(0, 1)]);
        assert_eq!(gone(&["a b c d", "a b c d/short/e f g h", "a b c d/short"]), [(1, 0), (2, 0), (2, 1)]);
        // Short paragraphs have no n-grams, and stay.
        assert_eq!(gone(&["a", "a", "a"]), []);
    }
}
