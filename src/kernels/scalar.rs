//! The definition of every kernel, short and plain. All other levels give the same bits.

use super::{Functions, Kernels, Places, Runs, Shingles, markup};

pub(super) static KERNELS: Kernels =
    Kernels { name: "scalar", words, preimages, minima, supershingles, marks: markup::scalar, held };

/// Words are maximal runs of alphanumeric characters; bytes that are no UTF-8 are none.
fn words(text: &[u8], bounds: &mut Vec<u32>) {
    let mut at = 0;
    let mut inside = false;
    let mut turn = |now: bool, at: usize| {
        if now != inside {
            bounds.push(at as u32);
            inside = now;
        }
    };
    for chunk in text.utf8_chunks() {
        for c in chunk.valid().chars() {
            turn(c.is_alphanumeric(), at);
            at += c.len_utf8();
        }
        turn(false, at);
        at += chunk.invalid().len();
    }
}

/// Every word starts one shingle, and the text wraps around.
fn preimages(shingles: &Shingles, text: &[u8], bounds: &[u32], preimages: &mut Vec<u64>) {
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
    // Function outermost: its 16 KiB of tables stay in the first-level cache.
    for (function, minimum) in functions.polynomials.iter().zip(minima) {
        let smallest = preimages.iter().min_by_key(|x| function.image(**x));
        *minimum = *smallest.expect("the caller has one pre-image at least");
    }
}

/// The fingerprint of each run of features.
fn supershingles(runs: &Runs, features: &[u64], supershingles: &mut Vec<u64>) {
    let fingerprint = |run: &[u64]| run.iter().fold(0, |f, feature| runs.polynomial.append_word(f, *feature));
    supershingles.extend(features.chunks_exact(runs.length).map(fingerprint));
}

/// A bit for each word, 64 in a word.
pub(super) fn held(set: &Places, words: &[u64], held: &mut Vec<u64>) {
    held_from(set, 0, words, held);
}

/// As [`held`], for words of which the first is at this position.
pub(super) fn held_from(set: &Places, first: usize, words: &[u64], held: &mut Vec<u64>) {
    let salts = set.salts.as_flattened();
    let mut salts = salts.iter().cycle().skip(first % salts.len());
    held.extend(words.chunks(64).map(|words| {
        let salted = words.iter().zip(&mut salts).enumerate();
        salted.fold(0, |bits, (at, (word, salt))| bits | u64::from(set.has(word ^ salt)) << at)
    }));
}
