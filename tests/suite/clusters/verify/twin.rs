//! The slow twin: clusters of candidates by brute force over supershingles, split by brute force
//! over the sets of shingles.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use arrow_array::{Float32Array, Int32Array};

use crate::program::{PlainUnionFind, bytes, each, features, longs, roots, texts, vectors};

/// How a twin measures the similarity of two pages.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SimilarityMeasure {
    /// By the distinct shingles of their texts.
    Exact,
    /// By their features.
    Estimate,
}

/// The pages of a crawl, by URL.
pub type TextsByUrl = BTreeMap<String, String>;

/// The distinct shingles of a text of words with blanks between them.
fn shingles(text: &str, width: usize) -> BTreeSet<Vec<&str>> {
    let words: Vec<&str> = text.split_whitespace().collect();
    (0..words.len()).map(|first| words.iter().cycle().skip(first).take(width).copied().collect()).collect()
}

/// What is shared, and what there is in all.
fn resemblance<T: Ord>(a: &BTreeSet<T>, b: &BTreeSet<T>) -> (usize, usize) {
    let shared = a.intersection(b).count();
    (shared, a.len() + b.len() - shared)
}

/// Compares the tables of a week with what brute force gives: `similarity` in thousandths, shingles
/// of five words.
pub fn assert_verified(
    week: &Path,
    pages: &TextsByUrl,
    agreements: usize,
    similarity: u64,
    measure: SimilarityMeasure,
) {
    let docs = longs(week, "documents", "doc");
    let urls: BTreeMap<i64, String> = docs.iter().copied().zip(texts(week, "documents", "url")).collect();
    let checksums: BTreeMap<i64, Vec<u8>> = docs.iter().copied().zip(bytes(week, "documents", "checksum")).collect();
    let (vectors, features) = (vectors(week), features(week));
    let sets: BTreeMap<i64, BTreeSet<Vec<&str>>> =
        docs.iter().map(|doc| (*doc, shingles(&pages[&urls[doc]], 5))).collect();
    let all: Vec<i64> = vectors.keys().copied().collect();
    let agree = |a: i64, b: i64| vectors[&a].iter().zip(&vectors[&b]).filter(|(a, b)| a == b).count();
    let in_common = |a: i64, b: i64| match measure {
        SimilarityMeasure::Exact => resemblance(&sets[&a], &sets[&b]),
        SimilarityMeasure::Estimate => {
            let equal = features[&a].iter().zip(&features[&b]).filter(|(a, b)| a == b).count();
            (equal, features[&a].len())
        }
    };
    let is_similar = |a, b| {
        let (shared, of) = in_common(a, b);
        shared as u64 * 1000 >= similarity * of as u64
    };
    let pairs = || all.iter().enumerate().flat_map(|(i, a)| all[..i].iter().map(move |b| (*a, *b)));

    let mut candidates = PlainUnionFind::default();
    pairs().filter(|(a, b)| agree(*a, *b) >= agreements).for_each(|(a, b)| candidates.union(a, b));
    let mut similar = PlainUnionFind::default();
    for (a, b) in pairs() {
        if candidates.find(a) == candidates.find(b) && is_similar(a, b) {
            similar.union(a, b);
        }
    }
    let mut identical = PlainUnionFind::default();
    let mut exact = PlainUnionFind::default();
    for (a, b) in pairs() {
        if agree(a, b) == vectors[&a].len() {
            if similar.find(a) == similar.find(b) {
                identical.union(a, b);
            }
            if checksums[&a] == checksums[&b] {
                exact.union(a, b);
            }
        }
    }
    let mut same_vector = PlainUnionFind::default();
    pairs().filter(|(a, b)| agree(*a, *b) == vectors[a].len()).for_each(|(a, b)| same_vector.union(a, b));
    // Documents without words: equal bytes join them at all levels.
    let wordless: Vec<i64> = docs.iter().copied().filter(|doc| !vectors.contains_key(doc)).collect();
    for (i, a) in wordless.iter().enumerate() {
        for b in wordless[..i].iter().filter(|b| checksums[b] == checksums[a]) {
            let all = [&mut candidates, &mut similar, &mut identical, &mut exact, &mut same_vector];
            all.into_iter().for_each(|level| level.union(*a, *b));
        }
    }
    let found = ["similar", "identical", "exact"].map(|level| roots(week, level));
    for doc in &docs {
        assert_eq!(found[0][doc], similar.find(*doc), "the similar root of {}", urls[doc]);
        assert_eq!(found[1][doc], identical.find(*doc), "the identical root of {}", urls[doc]);
        assert_eq!(found[2][doc], exact.find(*doc), "the exact root of {}", urls[doc]);
    }

    // What was split off.
    let column = |name: &str| longs(week, "split-off", name);
    let rows: Vec<[i64; 3]> = column("doc")
        .into_iter()
        .zip(column("similar_root").into_iter().zip(column("identical_root")))
        .map(|(doc, (similar, identical))| [doc, similar, identical])
        .collect();
    let wanted = docs.iter().map(|doc| [*doc, candidates.find(*doc), same_vector.find(*doc)]);
    let wanted: Vec<[i64; 3]> = wanted.filter(|[doc, a, b]| [*a, *b] != [found[0][doc], found[1][doc]]).collect();
    assert_eq!(rows, wanted, "split-off");

    // Evidence.
    let explained = longs(week, "evidence", "doc");
    assert!(explained.iter().eq(docs.iter().filter(|doc| found[0][doc] != **doc)), "a row for each page but roots");
    let (mut agreements, mut similarities) = (Vec::new(), Vec::new());
    each(week, "evidence", "agreements", |array: &Int32Array| agreements.extend(array.values().to_vec()));
    each(week, "evidence", "similarity", |array: &Float32Array| similarities.extend(array.values().to_vec()));
    let how = texts(week, "evidence", "found");
    for (at, (doc, neighbour)) in explained.iter().zip(longs(week, "evidence", "neighbour")).enumerate() {
        let (doc, url) = (*doc, &urls[doc]);
        assert!(doc != neighbour && found[0][&doc] == found[0][&neighbour], "{url}");
        if !vectors.contains_key(&doc) {
            assert_eq!((neighbour, agreements[at], similarities[at]), (found[0][&doc], 0, 1.0), "{url}");
            assert_eq!(how[at], "bytes", "{url}");
            continue;
        }
        assert_eq!(agreements[at] as usize, agree(doc, neighbour), "{url}");
        let (shared, of) = in_common(doc, neighbour);
        assert_eq!(similarities[at], shared as f32 / of as f32, "{url}");
        assert!(is_similar(doc, neighbour), "{url}: {shared} of {of}");
        let is_copy = found[2][&doc] == found[2][&neighbour];
        let wanted = match measure {
            SimilarityMeasure::Exact if is_copy => "bytes",
            SimilarityMeasure::Exact => "shingles",
            SimilarityMeasure::Estimate => "features",
        };
        assert_eq!(how[at], wanted, "{url}");
    }
}
