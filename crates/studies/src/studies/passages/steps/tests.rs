//! The passages of small corpora, against all of their substrings.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use nigh_exchange::Context;
use nigh_text::features::WordReader;
use nigh_text::method::Method;

use super::fingerprints::Hashing;
use super::found::{DocumentPassage, FoundCounts, PassageBytes};
use super::repeated::repeated;
use super::stretches::united;
use super::text_source::{CorpusPlace, OpenText, ReadTexts, TextSource};
use crate::readers::Body;
use crate::records::{DocId, mix};

/// Texts in memory, as one of some workers reads them: each is a file.
struct MemoryTexts {
    documents: Vec<(CorpusPlace, DocId)>,
    texts: Vec<Body>,
    readers: Vec<usize>,
    reader: WordReader,
}

/// The document at a place of the corpus. Their order is not that of the corpus.
fn doc(number: usize) -> DocId {
    DocId::new((number as u32 * 7 + 3) % 5, number as u64)
}

impl MemoryTexts {
    fn new(texts: &[String], worker: usize, workers: usize) -> MemoryTexts {
        let own = || (0..texts.len()).filter(|number| number % workers == worker);
        MemoryTexts {
            documents: own().map(|number| (CorpusPlace::new(number as u64, 0), doc(number))).collect(),
            texts: own().map(|number| Body::Text(texts[number].clone())).collect(),
            readers: (0..texts.len()).map(|number| number % workers).collect(),
            reader: WordReader::of_method(&Method::default()).unwrap(),
        }
    }
}

impl TextSource for MemoryTexts {
    fn readers(&self) -> &[usize] {
        &self.readers
    }

    fn read(&mut self, reader: &mut dyn ReadTexts) -> Result<()> {
        while let Some(number) = reader.next(&self.documents)? {
            let body = &self.texts[number];
            reader.take(self.documents[number], &mut OpenText { reader: &mut self.reader, body, label: None })?;
        }
        Ok(())
    }
}

/// What some workers find: the passages, and the sums of the counts.
fn found(
    texts: &[String],
    least: usize,
    workers: usize,
    memory: u64,
    weak: u64,
) -> (Vec<DocumentPassage>, FoundCounts) {
    let folder = tempfile::tempdir().unwrap();
    let (texts, path) = (texts.to_vec(), folder.path().to_owned());
    let guards = timely::execute(timely::Config::process(workers), move |worker| {
        let cx = &mut Context::alone(worker).with(memory, &path);
        let mut texts = MemoryTexts::new(&texts, cx.index(), workers);
        let hashing = |round: u64| {
            let hashing = Hashing::new(least, round);
            if round < weak { hashing.weak(3) } else { hashing }
        };
        let mut repeated = repeated(cx, &mut texts, &hashing).unwrap();
        let mut own = Vec::new();
        while let Some(passage) = repeated.passages.record().unwrap() {
            assert_eq!(passage.doc.owner(workers), cx.index());
            own.push(passage);
        }
        (own, repeated.found)
    });
    let (mut passages, mut counts) = (Vec::new(), FoundCounts::default());
    for end in guards.unwrap().join() {
        let (own, of_worker) = end.unwrap();
        assert!(own.is_sorted_by_key(|passage| (passage.doc, passage.word)));
        passages.extend(own);
        counts.merge(&of_worker);
    }
    passages.sort_by_key(|passage| (passage.doc, passage.word));
    (passages, counts)
}

/// A window of the corpus: the number of the document, and the first word.
type At = (usize, usize);

/// The corpus as lists of words, with all of its windows.
struct Twin {
    texts: Vec<Vec<String>>,
    least: usize,
    /// Where each window stands, in the order of the corpus.
    windows: BTreeMap<Vec<String>, Vec<At>>,
}

impl Twin {
    fn new(texts: &[String], least: usize) -> Twin {
        let texts: Vec<Vec<String>> = texts.iter().map(|text| words_of(text)).collect();
        let mut windows: BTreeMap<Vec<String>, Vec<At>> = BTreeMap::new();
        for (number, words) in texts.iter().enumerate() {
            for (word, window) in words.windows(least).enumerate() {
                windows.entry(window.to_vec()).or_default().push((number, word));
            }
        }
        windows.retain(|_, places| places.len() > 1);
        Twin { texts, least, windows }
    }

    /// Where the window at a place stands; nothing if it stands there only.
    fn places(&self, (number, word): At) -> &[At] {
        let window = self.texts[number].get(word..word + self.least);
        window.and_then(|window| self.windows.get(window)).map_or(&[], |places| places)
    }

    /// The first word of a window that goes if copies go.
    fn goes_from(&self, at: At) -> usize {
        let first = self.places(at)[0];
        if first.0 == at.0 { at.1.max(first.1 + self.least) } else { at.1 }
    }

    /// Whether two windows, one behind the other, are in one passage.
    fn is_one_passage(&self, (number, word): At) -> bool {
        let (a, b) = (self.places((number, word)), self.places((number, word + 1)));
        if a.is_empty() || b.is_empty() {
            return false;
        }
        let is_first = [a[0] == (number, word), b[0] == (number, word + 1)];
        let overlaps = (1..self.least).any(|by| by <= word + 1 && b.contains(&(number, word + 1 - by)));
        match is_first {
            [true, true] => true,
            [false, false] => overlaps || (a[0].0, a[0].1 + 1) == b[0],
            _ => false,
        }
    }

    /// The passages: document, first word, words, copied words, occurrences, document and word of
    /// the first occurrence.
    fn passages(&self) -> Vec<(DocId, usize, usize, usize, u64, DocId, usize)> {
        let mut all = Vec::new();
        for (number, words) in self.texts.iter().enumerate() {
            let mut word = 0;
            while word < words.len() {
                let Some(first) = self.places((number, word)).first() else {
                    word += 1;
                    continue;
                };
                let mut last = word;
                while self.is_one_passage((number, last)) {
                    last += 1;
                }
                let windows = || (word..=last).map(|word| (number, word));
                let end = last + self.least;
                let occurrences = windows().map(|at| self.places(at).len()).max().unwrap();
                let copied = if *first == (number, word) {
                    0
                } else {
                    end - windows().map(|at| self.goes_from(at)).min().unwrap()
                };
                all.push((doc(number), word, end - word, copied, occurrences as u64, doc(first.0), first.1));
                word = last + 1;
            }
        }
        all.sort();
        all
    }
}

fn words_of(text: &str) -> Vec<String> {
    let mut reader = WordReader::of_method(&Method::default()).unwrap();
    reader.text(text).iter().map(|word| String::from_utf8(word.to_vec()).unwrap()).collect()
}

/// Words of a text without some ranges, with the number of the range before each.
fn left(words: &[String], gone: &[[u32; 2]]) -> Vec<(String, usize)> {
    let is_gone = |word: usize| gone.iter().any(|[start, end]| (*start as usize..*end as usize).contains(&word));
    let before = |word: usize| gone.iter().filter(|[start, _]| *start as usize <= word).count();
    (0..words.len()).filter(|word| !is_gone(*word)).map(|word| (words[word].clone(), before(word))).collect()
}

/// The passages of texts are those of the twin, and what they say of the texts is true.
fn assert_right(texts: &[String], least: usize, workers: usize, memory: u64, weak: u64) {
    let (passages, counts) = found(texts, least, workers, memory, weak);
    let what = format!("{least} words, {workers} workers, {texts:?}");
    let twin = Twin::new(texts, least);
    let numbers = |passage: &DocumentPassage| {
        let DocumentPassage { doc, word, words, copied, occurrences, first_doc, first_word, .. } = *passage;
        (doc, word as usize, words as usize, copied as usize, occurrences, first_doc, first_word as usize)
    };
    assert_eq!(passages.iter().map(numbers).collect::<Vec<_>>(), twin.passages(), "{what}");
    let (mut all_words, mut copied_words, mut copied_bytes) = (0, 0, 0);
    let mut without_copies: BTreeSet<Vec<String>> = BTreeSet::new();
    let mut seen_once = BTreeSet::new();
    for (number, text) in texts.iter().enumerate() {
        let own: Vec<&DocumentPassage> = passages.iter().filter(|passage| passage.doc == doc(number)).collect();
        for passage in &own {
            let PassageBytes { offset, bytes, copied } = passage.bytes.unwrap();
            let [from, to] = [offset as usize, (offset + bytes) as usize];
            let words = &twin.texts[number][passage.word as usize..][..passage.words as usize];
            assert_eq!(words_of(&text[from..to]), words, "{what}");
            assert_eq!(words_of(&text[to - copied as usize..to]).len(), passage.copied as usize, "{what}");
        }
        let ranges = |copies: bool| {
            let of_passage = move |passage: &&DocumentPassage| {
                let end = passage.word + passage.words;
                [if copies { end - passage.copied } else { passage.word }, end]
            };
            united(own.iter().map(of_passage))
        };
        let (repeated, copies) = (ranges(false), ranges(true));
        // All words of windows that stand twice, and no others.
        let of_windows = (0..twin.texts[number].len()).filter(|word| !twin.places((number, *word)).is_empty());
        let of_windows = united(of_windows.map(|word| [word as u32, (word + least) as u32]));
        assert_eq!(repeated, of_windows, "{what}");
        let length = |ranges: &[[u32; 2]]| ranges.iter().map(|[start, end]| u64::from(end - start)).sum::<u64>();
        (all_words, copied_words) = (all_words + length(&repeated), copied_words + length(&copies));
        let places = WordReader::of_method(&Method::default()).unwrap().places(text);
        copied_bytes += copies
            .iter()
            .map(|[start, end]| u64::from(places[*end as usize - 1][1] - places[*start as usize][0]))
            .sum::<u64>();
        // What is left has no window twice, except where it was joined.
        let words = &twin.texts[number];
        for (gone, is_first) in [(&copies, true), (&repeated, false)] {
            for window in left(words, gone).windows(least) {
                let content: Vec<String> = window.iter().map(|(word, _)| word.clone()).collect();
                if window[0].1 != window[least - 1].1 {
                    continue;
                }
                if is_first {
                    assert!(without_copies.insert(content), "{what}");
                } else {
                    assert!(seen_once.insert(content), "{what}");
                }
            }
        }
    }
    assert_eq!(
        (counts.words, counts.copied_words, counts.copied_bytes),
        (all_words, copied_words, copied_bytes),
        "{what}"
    );
    assert_eq!(counts.passages, passages.len() as u64);
}

fn random(state: &mut u64, below: u64) -> u64 {
    *state = mix(*state);
    *state % below
}

/// Words of an alphabet of this size, in several scripts.
fn made(state: &mut u64, words: u64, alphabet: u64) -> String {
    const WORDS: [&str; 12] = ["a", "b", "é", "字", "Straße", "ก", "x1", "한국", "न", "Ω", "12", "ﬁ"];
    const BETWEEN: [&str; 5] = [" ", ", ", "\n", " -- ", "\u{a0}"];
    let mut text = String::new();
    for _ in 0..words {
        text.push_str(WORDS[random(state, alphabet.min(12)) as usize]);
        text.push_str(BETWEEN[random(state, 5) as usize]);
    }
    text
}

#[test]
fn passages_of_random_texts_are_those_of_all_substrings() {
    let mut state = 20_031_107;
    for round in 0..150 {
        let alphabet = [1, 2, 3, 12][round % 4];
        let least = 1 + random(&mut state, 8) as usize;
        let count = 1 + random(&mut state, 6);
        let mut texts: Vec<String> = Vec::new();
        let passage = made(&mut state, least as u64 + 3, 12);
        for _ in 0..count {
            let length = random(&mut state, 40);
            let mut text = made(&mut state, length, alphabet);
            // One passage in many texts: at the beginning, in the middle, at the end, twice.
            for _ in 0..random(&mut state, 3) {
                let rest = made(&mut state, length / 2, alphabet);
                text = format!("{text}{passage}{rest}");
            }
            texts.push(text);
        }
        assert_right(&texts, least, [1, 2, 4][round % 3], if round % 2 == 0 { 1 << 20 } else { 300 }, 0);
    }
}

/// A text of words that are numbered.
fn numbered(numbers: impl Iterator<Item = u64>) -> String {
    numbers.map(|number| format!("w{number} ")).collect()
}

#[test]
fn passages_of_adversarial_texts_are_those_of_all_substrings() {
    let periodic = |period: u64, words: u64| numbered((0..words).map(|word| word % period));
    let same = numbered(0..30);
    let corpora: Vec<Vec<String>> = vec![
        vec![],
        vec![String::new(), " .,- ".into(), "one".into()],
        // One letter: alone, after a shorter text of it, before one.
        vec!["a ".repeat(40)],
        vec!["a ".repeat(5), "a ".repeat(40), "a ".repeat(17)],
        vec!["a ".repeat(40), "b ".repeat(4), "a ".repeat(3)],
        // Periods below, at and above the length of a passage; the beginning of one in another
        // text.
        (1..9).map(|period| periodic(period, 40)).collect(),
        vec![periodic(3, 6), periodic(3, 40)],
        vec![numbered([1, 2, 0, 1, 2].into_iter()), periodic(3, 40), periodic(3, 7)],
        vec![format!("{}x {}", periodic(2, 20), periodic(2, 20))],
        // All equal; one passage in all, at the beginning, at the end, alone.
        vec![same.clone(); 5],
        vec![same.clone(), format!("x {same}"), format!("{same} y"), format!("x {same} y {same} z {same}")],
        // Passages that overlap: XYZ has XY of one text before it, and YZ of another one, or of one
        // behind it.
        vec![numbered(0..12), numbered((6..18).chain([90])), numbered(0..18)],
        vec![numbered(0..12), numbered(0..18), numbered(6..18)],
        vec![numbered(6..18), numbered(0..18), numbered(0..12)],
        vec![numbered((0..12).chain(6..18).chain(0..18))],
        // Each window of a text in a text of its own, in the other order.
        (0..20).map(|first| numbered(20 - first..25 - first)).chain([numbered(0..30)]).collect(),
        // Letters of a script without blanks.
        vec!["私は東京へ行く。".repeat(3), "昨日、私は東京へ行く。".into()],
    ];
    for texts in &corpora {
        for least in [1, 2, 3, 5, 8] {
            for workers in [1, 2, 4] {
                assert_right(texts, least, workers, 1 << 20, 0);
            }
        }
    }
}

#[test]
fn equal_fingerprints_of_other_words_make_no_passage() {
    let mut state = 5;
    for round in 0..12 {
        let texts: Vec<String> = (0..4).map(|_| made(&mut state, 40, 12)).collect();
        // Fingerprints of three bits, in the first three rounds.
        assert_right(&texts, 3, 1 + round % 2, 1 << 20, 3);
    }
}

#[test]
fn a_text_that_repeats_itself_takes_linear_time() {
    // 200,000 equal words, and 200,000 words with a period: seconds, if each window were compared
    // with each.
    let texts = vec!["a ".repeat(200_000), numbered((0..200_000).map(|word| word % 7))];
    let (passages, counts) = found(&texts, 50, 2, 1 << 24, 0);
    assert_eq!((passages.len(), counts.words, counts.copied_words), (4, 400_000, 400_000 - 50 - 50));
}
