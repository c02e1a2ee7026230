//! nigh's kernels beside gaoya's MinHasher32, the fastest MinHash crate that research found, on the
//! same text in one run: 84 functions over shingles of five words, on one core, CPU time, median of
//! passes.
//!
//! The two do not compute the same. gaoya hashes each shingle (a `String`, by FNV) to 32 bits and
//! takes the minima of `a h + b`; it keeps 84 minima of 32 bits. nigh keeps the pre-image of each
//! minimum, of 64 bits and one-to-one, and makes supershingles of them. Tokenizing is told apart
//! from hashing, for gaoya is given its shingles as strings.
//!
//! `peers FILE_OF_TEXT [WORDS_OF_A_DOCUMENT]`

use std::hint::black_box;

use anyhow::{Context, Result};
use gaoya::minhash::{MinHasher, MinHasher32};
use nigh::config::Method;
use nigh::features::{Shingler, Sketch, Sketcher, polynomials};
use nigh::kernels;

const PASSES: usize = 7;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().context("usage: peers FILE_OF_TEXT [WORDS_OF_A_DOCUMENT]")?;
    let length = arguments.next().map_or(Ok(500), |words| words.parse()).context("words of a document")?;
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    let words: Vec<&str> = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let documents: Vec<String> = words.chunks_exact(length).map(|words| words.join(" ")).collect();
    let (count, bytes) = (documents.len() * length, documents.iter().map(String::len).sum::<usize>());
    anyhow::ensure!(count > 0, "{path} has fewer than {length} words");

    let method = Method::default();
    let polynomials = polynomials(method.seed, method.features);
    let kernels = kernels::chosen()?;
    let mut shingler = Shingler::new(polynomials.shingles, method.words, kernels);
    let mut sketcher = Sketcher::new(&method, &polynomials, kernels);
    let mut sketch = Sketch::default();
    let preimages: Vec<Vec<u64>> = documents.iter().map(|text| shingler.preimages(text.as_bytes()).to_vec()).collect();
    let ours_shingles =
        cpu_seconds(|| documents.iter().for_each(|text| drop(black_box(shingler.preimages(text.as_bytes())))));
    let ours_hashing = cpu_seconds(|| preimages.iter().for_each(|preimages| sketcher.sketch(preimages, &mut sketch)));
    let ours = cpu_seconds(|| {
        documents.iter().for_each(|text| sketcher.sketch(shingler.preimages(text.as_bytes()), &mut sketch))
    });

    let gaoya = MinHasher32::new(method.features);
    let shingles: Vec<Vec<String>> = documents.iter().map(|text| shingles(text)).collect();
    let theirs_shingles = cpu_seconds(|| documents.iter().for_each(|text| drop(black_box(self::shingles(text)))));
    let theirs_hashing =
        cpu_seconds(|| shingles.iter().for_each(|all| drop(black_box(gaoya.create_signature(all.iter())))));
    let theirs = cpu_seconds(|| {
        documents.iter().for_each(|text| drop(black_box(gaoya.create_signature(self::shingles(text).iter()))));
    });

    println!(
        "{} documents of {length} words, {:.1} MB; kernels {}",
        documents.len(),
        bytes as f64 / 1e6,
        kernels.name()
    );
    println!("{:<34} {:>9} {:>9} {:>8}", "ns a word", "nigh", "gaoya", "ratio");
    for (name, ours, theirs) in [
        ("text to signature", ours, theirs),
        ("  text to shingles", ours_shingles, theirs_shingles),
        ("  shingles to signature", ours_hashing, theirs_hashing),
    ] {
        let per_word = |seconds: f64| seconds * 1e9 / count as f64;
        println!("{name:<34} {:>9.2} {:>9.2} {:>7.1}x", per_word(ours), per_word(theirs), theirs / ours);
    }
    Ok(())
}

/// One shingle for each word, the text wrapping around, as nigh has it. The documents have one
/// space between words, so that the peer is spared the search for word boundaries that nigh does.
fn shingles(text: &str) -> Vec<String> {
    let words: Vec<&str> = text.split(' ').collect();
    let mut shingles = Vec::with_capacity(words.len());
    for first in 0..words.len() {
        let mut shingle = String::with_capacity(64);
        for at in first..first + 5 {
            shingle.push_str(words[at % words.len()]);
            shingle.push(' ');
        }
        shingles.push(shingle);
    }
    shingles
}

/// CPU seconds of this thread for one pass: the median of several, after one that is not counted.
fn cpu_seconds(mut pass: impl FnMut()) -> f64 {
    let now = || {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
    };
    pass();
    let mut all: Vec<f64> = (0..PASSES)
        .map(|_| {
            let start = now();
            pass();
            now() - start
        })
        .collect();
    all.sort_by(f64::total_cmp);
    all[PASSES / 2]
}
