//! Matches of small corpora, against all n-grams as strings.

use std::collections::{BTreeMap, BTreeSet};

use nigh_text::features::WordReader;
use nigh_text::method::Method;

use super::grams::GramRule;
use super::matching::{Match, Matching};
use super::slice::{Measures, Slice};
use crate::readers::Body;
use crate::records::{DocId, mix};
use crate::structures::ExternalSort;
use crate::studies::passages::{CorpusPlace, OpenText, ReadTexts as _};

/// The texts of an item.
type ItemTexts = Vec<String>;

fn doc(number: usize) -> DocId {
    DocId::new(0, number as u64)
}

fn words_of(text: &str) -> Vec<String> {
    let mut reader = WordReader::of_method(&Method::default()).unwrap();
    reader.text(text).iter().map(|word| String::from_utf8(word.to_vec()).unwrap()).collect()
}

/// The matches of these documents and items, in slices of `at_once` items, with hashes of so few
/// bits, if given.
fn found(items: &[ItemTexts], texts: &[String], measures: &Measures, at_once: usize, weak: Option<u32>) -> Vec<Match> {
    let folder = tempfile::tempdir().unwrap();
    let mut matches = ExternalSort::new(&folder.path().join("matches"), 1 << 20);
    let mut reader = WordReader::of_method(&Method::default()).unwrap();
    for (number, of_slice) in items.chunks(at_once).enumerate() {
        let mut slice = Slice::new(measures);
        if let Some(bits) = weak {
            slice = slice.weak(bits);
        }
        for (place, item) in of_slice.iter().enumerate() {
            slice.begin();
            item.iter().for_each(|text| slice.add_text(reader.text(text).iter()));
            slice.end((number * at_once + place) as u64);
        }
        slice.finish();
        let mut matching = Matching::new(&slice, &mut matches);
        for (number, text) in texts.iter().enumerate() {
            let body = Body::Text(text.clone());
            let place = CorpusPlace::new(0, number as u64);
            let text = &mut OpenText { reader: &mut reader, body: &body, label: None };
            matching.take((place, doc(number)), text).unwrap();
        }
    }
    let mut sorted = matches.sorted().unwrap();
    std::iter::from_fn(|| sorted.record().unwrap()).collect()
}

/// All runs of `length` words.
fn windows(words: &[String], length: usize) -> Vec<Vec<String>> {
    if length == 0 { Vec::new() } else { words.windows(length).map(<[String]>::to_vec).collect() }
}

/// The grams of texts by a rule.
fn grams(texts: &[Vec<String>], rule: &GramRule) -> BTreeSet<Vec<String>> {
    let of_text = |words: &Vec<String>| match words.len() {
        length if length >= rule.words => windows(words, rule.words),
        length if length >= rule.shortest => windows(words, length),
        _ => Vec::new(),
    };
    texts.iter().flat_map(of_text).collect()
}

/// The shingles of a text that wraps around.
fn shingles(words: &[String], width: usize) -> BTreeSet<Vec<String>> {
    (0..words.len()).map(|first| words.iter().cycle().skip(first).take(width).cloned().collect()).collect()
}

/// How many of `grams` a document has, and the longest run of words that they cover.
fn in_document(grams: &BTreeSet<Vec<String>>, document: &[String]) -> (usize, [u32; 2]) {
    let places_of = |gram: &Vec<String>| -> Vec<[usize; 2]> {
        let windows = document.windows(gram.len()).enumerate();
        windows.filter(|(_, window)| *window == &gram[..]).map(|(at, _)| [at, at + gram.len()]).collect()
    };
    let there = grams.iter().filter(|gram| !places_of(gram).is_empty()).count();
    let places: Vec<[usize; 2]> = grams.iter().flat_map(places_of).collect();
    // A word is covered; two of them are in one run if they are beside each other.
    let is_covered = |word: usize| places.iter().any(|[start, end]| (*start..*end).contains(&word));
    let mut longest = [0, 0];
    let mut word = 0;
    while word < document.len() {
        let end = (word..document.len()).find(|word| !is_covered(*word)).unwrap_or(document.len());
        if end - word > longest[1] - longest[0] {
            longest = [word, end];
        }
        word = end + 1;
    }
    (there, longest.map(|word| word as u32))
}

/// What is expected of a match: document, item, grams, passage, similarity in billionths, words.
type ExpectedMatch = (DocId, u64, Option<[u32; 2]>, Option<u32>, Option<u64>, [u32; 2]);

fn billionths(similarity: f64) -> u64 {
    (similarity * 1e9).round() as u64
}

/// The matches by the definition.
fn twin(items: &[ItemTexts], texts: &[String], measures: &Measures) -> Vec<ExpectedMatch> {
    let mut rows = Vec::new();
    for (number, text) in texts.iter().enumerate() {
        let document = words_of(text);
        for (item, of_item) in items.iter().enumerate() {
            let of_item: Vec<Vec<String>> = of_item.iter().map(|text| words_of(text)).collect();
            let (mut contained, mut passage, mut similar) = (None, None, None);
            if let Some(rule) = &measures.containment {
                let all = grams(&of_item, rule);
                let (count, words) = in_document(&all, &document);
                if count > 0 && count as f64 / all.len() as f64 >= rule.share {
                    contained = Some(([count as u32, all.len() as u32], words));
                }
            }
            if let Some(words) = measures.passage {
                let all = grams(&of_item, &GramRule { words, shortest: words, share: 0.0 });
                let (count, words) = in_document(&all, &document);
                passage = (count > 0).then_some(words);
            }
            if let Some((width, least)) = measures.similarity {
                let (a, b) = (shingles(&of_item.concat(), width), shingles(&document, width));
                let similarity = a.intersection(&b).count() as f64 / a.union(&b).count() as f64;
                similar = Some(similarity).filter(|similarity| *similarity >= least);
            }
            let whole = [0, document.len() as u32];
            let words = contained.map(|(_, words)| words).or(passage).or(similar.map(|_| whole));
            if let Some(words) = words {
                rows.push((
                    doc(number),
                    item as u64,
                    contained.map(|(grams, _)| grams),
                    passage.map(|[start, end]| end - start),
                    similar.map(billionths),
                    words,
                ));
            }
        }
    }
    rows
}

fn assert_right(items: &[ItemTexts], texts: &[String], measures: &Measures, at_once: usize, weak: Option<u32>) {
    let matches = found(items, texts, measures, at_once, weak);
    let row = |found: &Match| {
        let Match { doc, item, grams, passage, similarity, words, .. } = *found;
        (doc, item, grams, passage, similarity.map(billionths), words)
    };
    let what = format!("{measures:?}, slices of {at_once}, {items:?} in {texts:?}");
    assert_eq!(matches.iter().map(row).collect::<Vec<ExpectedMatch>>(), twin(items, texts, measures), "{what}");
    for found in &matches {
        // The bytes are those of the words.
        let text = &texts[(0..texts.len()).find(|number| doc(*number) == found.doc).unwrap()];
        let [start, end] = found.bytes.unwrap().map(|byte| byte as usize);
        let [first, last] = found.words.map(|word| word as usize);
        assert_eq!(words_of(&text[start..end]), words_of(text)[first..last], "{what}");
    }
}

fn random(state: &mut u64, below: u64) -> u64 {
    *state = mix(*state);
    *state % below
}

/// Words of an alphabet of this size.
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

fn measures(words: usize, shortest: usize, share: f64) -> Measures {
    let containment = Some(GramRule { words, shortest, share });
    Measures { containment, passage: Some(words + 2), similarity: Some((3, 0.3)) }
}

#[test]
fn matches_of_random_texts_are_those_of_all_grams() {
    let mut state = 20_260_728;
    for round in 0..300 {
        let alphabet = [1, 2, 3, 12][round % 4];
        let words = 2 + random(&mut state, 6) as usize;
        let shortest = 1 + random(&mut state, words as u64) as usize;
        let share = [0.05, 0.3, 0.5, 0.7, 1.0][random(&mut state, 5) as usize];
        let items: Vec<ItemTexts> = (0..1 + random(&mut state, 6))
            .map(|_| {
                let texts = random(&mut state, 4);
                (0..texts)
                    .map(|_| {
                        let length = random(&mut state, 16);
                        made(&mut state, length, alphabet)
                    })
                    .collect()
            })
            .collect();
        let mut texts: Vec<String> = Vec::new();
        for number in 0..1 + random(&mut state, 5) {
            let length = random(&mut state, 30);
            let mut text = made(&mut state, length, alphabet);
            // An item within a text, whole or in parts.
            let item = items[(number as usize) % items.len()].join(" ");
            let kept = random(&mut state, 20) as usize;
            let part: Vec<&str> = item.split(' ').take(if round % 2 == 0 { usize::MAX } else { kept }).collect();
            text = format!("{text} {} {}", part.join(" "), made(&mut state, 4, 12));
            texts.push(text);
        }
        let weak = (round % 5 == 0).then_some(2);
        assert_right(&items, &texts, &measures(words, shortest, share), 1 + round % 4, weak);
    }
}

/// A text of words that are numbered.
fn numbered(numbers: impl Iterator<Item = u64>) -> String {
    numbers.map(|number| format!("w{number} ")).collect()
}

#[test]
fn matches_of_adversarial_texts_are_those_of_all_grams() {
    let periodic = |period: u64, words: u64| numbered((0..words).map(|word| word % period));
    let one = |text: &str| vec![text.to_owned()];
    let long = numbered(0..40);
    let cases: Vec<(Vec<ItemTexts>, Vec<String>)> = vec![
        // Nothing on either side; texts without words.
        (vec![], vec![long.clone()]),
        (vec![vec![], one(""), one(" .,- ")], vec![String::new(), " .,- ".into(), "one".into()]),
        (vec![one("one")], vec![]),
        // One word: shorter and longer than the item.
        (vec![one(&"a ".repeat(3)), one(&"a ".repeat(9))], vec!["a ".repeat(2), "a ".repeat(5), "a ".repeat(40)]),
        // Periods below, at and above the length of a gram, in each other.
        (
            (1..9).map(|period| one(&periodic(period, 20))).collect(),
            (1..9).map(|period| periodic(period, 30)).collect(),
        ),
        // Items shorter than a gram, within, at the beginning and at the end of documents.
        (
            vec![one("w3 w4"), one("w0"), one("w38 w39"), one("w39 w0"), vec!["w1 w2".into(), "w5".into()]],
            vec![long.clone(), "w3".into(), "w4 w3".into()],
        ),
        // Items that are there twice; an item in all documents; all items in one.
        (
            vec![one(&numbered(5..15)), one(&numbered(5..15)), one(&numbered(6..16))],
            vec![long.clone(), format!("x {long}"), format!("{long} {long}"), numbered(5..15)],
        ),
        // Grams do not go from one text of an item to the next.
        (
            vec![vec![numbered(0..5), numbered(5..10)], vec![numbered(5..10), numbered(0..5)]],
            vec![numbered(0..10), numbered(3..8), numbered((5..10).chain(0..5))],
        ),
        // A beginning that many items have, and few documents have more of.
        (
            (0..20).map(|item| one(&numbered((0..8).chain([100 + item, 101 + item, 102 + item])))).collect(),
            vec![numbered(0..8), numbered((0..8).chain(105..108)), numbered((0..4).chain(105..108))],
        ),
        // Words that the reference does not have, between those that it has.
        (vec![one(&numbered(0..10))], vec![numbered((0..5).chain([77]).chain(5..10)), numbered((0..10).chain([77]))]),
        // Letters of a script without blanks.
        (vec![one("私は東京へ行く。"), one("東京")], vec!["昨日、私は東京へ行く。".into(), "私は京都へ行く".into()]),
    ];
    for (items, texts) in &cases {
        for words in [2, 3, 5, 8] {
            for (shortest, share) in [(1, 0.5), (words, 1.0), (1, 0.05), (2, 0.7)] {
                for at_once in [1, 3, 100] {
                    assert_right(items, texts, &measures(words, shortest, share), at_once, None);
                }
            }
        }
    }
}

#[test]
fn each_share_is_compared_as_a_quotient() {
    // Of every number of grams, each share that some count has, and the next larger number.
    for grams in 1..60_u32 {
        for found in 1..=grams {
            let exact = f64::from(found) / f64::from(grams);
            for share in [exact, exact.next_up(), exact.next_down()] {
                let enough = (1..=grams).find(|count| f64::from(*count) / f64::from(grams) >= share);
                let rule = GramRule { words: 2, shortest: 2, share };
                assert_eq!(rule.needed(grams), enough.unwrap_or(grams), "{share} of {grams}");
            }
        }
    }
}

#[test]
fn a_beginning_that_all_items_and_documents_have_costs_little() {
    // 20,000 items with 12 grams that all have, and 20,000 documents with these: 400 million pairs,
    // of which each document matches one.
    let head = numbered(0..19);
    let item = |number: u64| vec![format!("{head}{}", numbered((0..30).map(|word| 1000 + number * 30 + word)))];
    let items: Vec<ItemTexts> = (0..20_000).map(item).collect();
    let texts: Vec<String> = items.iter().map(|item| format!("before {} after", item[0])).collect();
    let measures =
        Measures { containment: Some(GramRule { words: 8, shortest: 8, share: 0.7 }), ..Measures::default() };
    let matches = found(&items, &texts, &measures, items.len(), None);
    let pairs: BTreeMap<DocId, u64> = matches.iter().map(|found| (found.doc, found.item)).collect();
    assert_eq!((matches.len(), pairs.len()), (20_000, 20_000));
    assert!((0..20_000).all(|number| pairs[&doc(number)] == number as u64));
    // And a text that repeats itself is read once.
    let periodic = vec![numbered((0..300_000).map(|word| word % 7)), "a ".repeat(300_000)];
    let items: Vec<ItemTexts> = periodic.iter().map(|text| vec![text[..60_000].to_owned()]).collect();
    assert_eq!(found(&items, &periodic, &measures, 2, None).len(), 2);
}
