//! The definition of every kernel, short and plain. All other levels return the same bits.

use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use super::words::joined::{begins, is_blank};
use super::words::spaceless;
use super::{BitSet, FeatureRuns, Functions, JoinedWords, Kernels, ShingleConstants, markup};

pub(super) static KERNELS: Kernels = Kernels {
    name: "scalar",
    put_blanks: spaceless::scalar,
    words,
    join,
    preimages,
    minima,
    supershingles,
    marks: markup::scalar,
    held,
    hash_64: xxh3_64,
    hash_128: xxh3_128,
};

/// Words are maximal runs of alphanumeric characters; bytes that are not UTF-8 are not part of a
/// word.
fn words(text: &[u8], bounds: &mut Vec<u32>) {
    let mut position = 0;
    let mut inside = false;
    let mut step = |is_word: bool, position: usize| {
        if is_word != inside {
            bounds.push(position as u32);
            inside = is_word;
        }
    };
    for chunk in text.utf8_chunks() {
        for c in chunk.valid().chars() {
            step(c.is_alphanumeric(), position);
            position += c.len_utf8();
        }
        step(false, position);
        position += chunk.invalid().len();
    }
}

/// The words with one blank after each, those that follow a line end or a period, and the number of
/// characters.
fn join(text: &[u8], line_end: u8, bounds: &mut Vec<u32>, joined: &mut JoinedWords) {
    words(text, bounds);
    let (bounds, _) = bounds.as_chunks::<2>();
    joined.begin(text.len(), bounds.len());
    let mut before = 0;
    for [from, to] in bounds.iter().map(|word| word.map(|bound| bound as usize)) {
        let gap = &text[before..from];
        if gap.contains(&line_end) {
            joined.lines[joined.line_count] = joined.length as u32;
            joined.line_count += 1;
        }
        if gap.contains(&b'.') {
            joined.sentences[joined.sentence_count] = joined.length as u32;
            joined.sentence_count += 1;
        }
        let end = joined.length + to - from;
        joined.bytes[joined.length..end].copy_from_slice(&text[from..to]);
        joined.bytes[end] = b' ';
        (before, joined.length) = (to, end + 1);
    }
    let pieces = text.split(|byte| is_blank(*byte)).filter(|piece| !piece.is_empty());
    let begun = |piece: &[u8]| piece.iter().filter(|byte| begins(**byte)).count() as u64;
    // A blank before each piece except the first.
    joined.characters = pieces.map(|piece| 1 + begun(piece)).sum::<u64>().saturating_sub(1);
}

/// The fingerprint of each shingle: every word starts one, and the text wraps around.
fn preimages(shingles: &ShingleConstants, text: &[u8], bounds: &[u32], preimages: &mut Vec<u64>) {
    let (words, _) = bounds.as_chunks::<2>();
    preimages.extend((0..words.len()).map(|first| {
        (0..shingles.width).fold(0, |fingerprint, i| {
            let [start, end] = words[(first + i) % words.len()];
            let joined = if i == 0 { fingerprint } else { shingles.polynomial.append(fingerprint, &[0]) };
            shingles.polynomial.append(joined, &text[start as usize..end as usize])
        })
    }));
}

/// The pre-image with the smallest image, for each function.
fn minima(functions: &Functions, preimages: &[u64], minima: &mut [u64]) {
    // Functions in the outer loop: the 16 KiB of tables of one stay in the first-level cache.
    for (function, minimum) in functions.polynomials.iter().zip(minima) {
        let smallest = preimages.iter().min_by_key(|x| function.image(**x));
        *minimum = *smallest.expect("the caller has at least one pre-image");
    }
}

/// The fingerprint of each run of features.
fn supershingles(runs: &FeatureRuns, features: &[u64], supershingles: &mut Vec<u64>) {
    let fingerprint = |run: &[u64]| run.iter().fold(0, |f, feature| runs.polynomial.append_word(f, *feature));
    supershingles.extend(features.chunks_exact(runs.length).map(fingerprint));
}

/// Whether the set may contain each word: a bit for each, 64 to an output word.
pub(super) fn held(set: &BitSet, words: &[u64], out: &mut Vec<u64>) {
    held_from(set, 0, words, out);
}

/// As [`held`], for words of which the first has the position `first` in the rows.
pub(super) fn held_from(set: &BitSet, first: usize, words: &[u64], out: &mut Vec<u64>) {
    let salts = set.salts.as_flattened();
    let mut salts = salts.iter().cycle().skip(first % salts.len());
    out.extend(words.chunks(64).map(|words| {
        let salted = words.iter().zip(&mut salts).enumerate();
        salted.fold(0, |bits, (bit, (word, salt))| bits | u64::from(set.has(word ^ salt)) << bit)
    }));
}
