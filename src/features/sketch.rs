//! Pre-images to features, supershingles and megashingles (Fetterly 2004, section 2).
//!
//! - **Feature** i: the pre-image whose image under the i-th one-to-one function is smallest. Equal
//!   images are equal pre-images, so that the choice depends on nothing but the set.
//! - **Supershingle** j: the fingerprint of the j-th run of consecutive features, each as eight
//!   bytes, most significant first.
//! - **Megashingle**: the fingerprint of a choice of `agreements` supershingles in ascending order.
//!   Each choice has a space of its own, so that a match between two choices is never a match.

use serde::{Deserialize, Serialize};

use super::rabin::{Polynomial, Polynomials};
use crate::config::Method;
use crate::records::Key;

/// What is kept of a document with at least one word.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sketch {
    /// The supershingles, as many as the method says.
    pub supershingles: Vec<u64>,
    /// The low 32 bits of each feature: enough to count equal ones (two unequal features look equal once in 2^32).
    pub features: Vec<u32>,
}

/// Computes sketches; holds one function a feature (16 KiB each).
pub struct Sketcher {
    functions: Vec<Polynomial>,
    supershingles: Polynomial,
    run: usize,
    /// The features of the last document, whole.
    minima: Vec<u64>,
}

impl Sketcher {
    /// The sketcher of a method.
    pub fn new(method: &Method, polynomials: &Polynomials) -> Sketcher {
        Sketcher {
            functions: polynomials.features.iter().map(|p| Polynomial::new(*p)).collect(),
            supershingles: Polynomial::new(polynomials.supershingles),
            run: method.features / method.supershingles,
            minima: Vec::new(),
        }
    }

    /// Writes the sketch of a document with these pre-images, at least one.
    pub fn sketch(&mut self, preimages: &[u64], sketch: &mut Sketch) {
        self.minima.clear();
        // Function outermost: its 16 KiB of tables stay in the first-level cache.
        self.minima.extend(self.functions.iter().map(|function| smallest(function, preimages)));
        sketch.features.clear();
        sketch.features.extend(self.minima.iter().map(|feature| *feature as u32));
        sketch.supershingles.clear();
        sketch.supershingles.extend(
            self.minima
                .chunks_exact(self.run)
                .map(|run| run.iter().fold(0, |f, feature| self.supershingles.append_word(f, *feature))),
        );
    }
}

/// The pre-image with the smallest image.
fn smallest(function: &Polynomial, preimages: &[u64]) -> u64 {
    let mut best = (u64::MAX, 0);
    for &x in preimages {
        let image = function.image(x);
        // `<=` admits the one pre-image whose image is all ones; equal images are equal pre-images.
        if image <= best.0 {
            best = (image, x);
        }
    }
    best.1
}

/// Keys by which documents with agreeing supershingles meet.
pub struct VectorKeys {
    megashingles: Polynomial,
    choices: Vec<Vec<usize>>,
}

/// The key space of whole vectors; choices of supershingles are numbered from 0.
const VECTOR_SPACE: u64 = u64::MAX;
/// The key space of whole vectors with a checksum.
const EXACT_SPACE: u64 = u64::MAX - 1;

impl VectorKeys {
    /// The keys of a method.
    pub fn new(method: &Method, polynomials: &Polynomials) -> VectorKeys {
        let mut choices = Vec::new();
        choose(method.supershingles, method.agreements, 0, &mut Vec::new(), &mut choices);
        VectorKeys { megashingles: Polynomial::new(polynomials.megashingles), choices }
    }

    /// How many megashingles a document has.
    pub fn count(&self) -> usize {
        self.choices.len()
    }

    /// The key of all supershingles: equal for virtually identical documents.
    pub fn identical(supershingles: &[u64]) -> Key {
        Key::of(VECTOR_SPACE, supershingles)
    }

    /// The key of all supershingles and the checksum: equal for exact copies. The vector is part of it since
    /// equal bytes may still be read as different text, under two charsets, and levels nest.
    pub fn exact(supershingles: &[u64], checksum: u128) -> Key {
        let vector = Self::identical(supershingles);
        Key::of(EXACT_SPACE, &[vector.partition_bits(), vector.table_bits(), (checksum >> 64) as u64, checksum as u64])
    }

    /// The keys of all megashingles of a document, one for each choice of supershingles.
    ///
    /// A key holds the megashingle, and beside it independent bits of the same supershingles: 64 bits alone
    /// would join strangers among billions of documents.
    pub fn megashingles(&self, supershingles: &[u64]) -> impl Iterator<Item = Key> {
        self.choices.iter().enumerate().map(|(space, choice)| {
            let chosen = || choice.iter().map(|&at| supershingles[at]);
            let megashingle = chosen().fold(0, |f, s| self.megashingles.append_word(f, s));
            let check = chosen().fold(0, |hash, s| crate::records::mix(hash ^ s));
            Key::of(space as u64, &[megashingle, check])
        })
    }
}

/// All ways to choose `left` more of the numbers from `from` below `n`, in lexicographic order.
fn choose(n: usize, left: usize, from: usize, chosen: &mut Vec<usize>, out: &mut Vec<Vec<usize>>) {
    if left == 0 {
        return out.push(chosen.clone());
    }
    for at in from..=n - left {
        chosen.push(at);
        choose(n, left - 1, at + 1, chosen, out);
        chosen.pop();
    }
}

/// How many features of two documents are equal.
pub fn equal_features(a: &[u32], b: &[u32]) -> usize {
    a.iter().zip(b).filter(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features::{Shingler, polynomials};

    fn sketches(texts: &[&str]) -> Vec<Sketch> {
        let method = Method::default();
        let polynomials = polynomials(method.seed, method.features);
        let (mut shingler, mut sketcher) =
            (Shingler::new(polynomials.shingles, method.words), Sketcher::new(&method, &polynomials));
        texts
            .iter()
            .map(|text| {
                let mut sketch = Sketch::default();
                sketcher.sketch(shingler.preimages(text), &mut sketch);
                sketch
            })
            .collect()
    }

    #[test]
    fn a_page_resembles_itself_and_its_rotation() {
        let [a, same, rotated, other] =
            &sketches(&["a b c d e f g h", "a, b. c d e f g h", "e f g h a b c d", "z y x w v u t"])[..]
        else {
            unreachable!("four texts")
        };
        assert_eq!(a, same);
        assert_eq!(a, rotated);
        assert_eq!(equal_features(&a.features, &other.features), 0);
        assert_eq!((a.features.len(), a.supershingles.len()), (84, 6));
    }

    #[test]
    fn the_sketch_is_that_of_the_set_of_shingles() {
        let [once, twice] = &sketches(&["x", "x x x x x x x"])[..] else { unreachable!("two texts") };
        assert_eq!(once, twice);
    }

    #[test]
    fn equal_features_estimate_similarity_within_the_binomial() {
        // 1000 words against the same with 10% replaced at the end: sets of 1000 shingles, about 896 shared.
        let word = |i: usize| format!("w{i}");
        let a: Vec<String> = (0..1000).map(word).collect();
        let b: Vec<String> = (0..900).map(word).chain((5000..5100).map(word)).collect();
        let [a, b] = &sketches(&[&a.join(" "), &b.join(" ")])[..] else { unreachable!("two texts") };
        let similarity: f64 = 896.0 / 1104.0;
        let spread = (similarity * (1.0 - similarity) / 84.0).sqrt();
        let estimate = equal_features(&a.features, &b.features) as f64 / 84.0;
        assert!((estimate - similarity).abs() < 4.0 * spread, "{estimate} {similarity}");
    }

    #[test]
    fn choices_have_spaces_of_their_own() {
        let method = Method::default();
        let keys = VectorKeys::new(&method, &polynomials(1, 84));
        let all: std::collections::BTreeSet<Key> = keys.megashingles(&[7; 6]).collect();
        assert_eq!((keys.count(), all.len()), (15, 15));
        let [a, b] = [[1, 2, 3, 4, 5, 6], [1, 2, 9, 9, 9, 9]];
        let shared = keys.megashingles(&a).zip(keys.megashingles(&b)).filter(|(a, b)| a == b).count();
        assert_eq!(shared, 1);
    }

    #[test]
    fn exact_copies_read_alike() {
        assert_eq!(VectorKeys::exact(&[1, 2], 3), VectorKeys::exact(&[1, 2], 3));
        assert_ne!(VectorKeys::exact(&[1, 2], 3), VectorKeys::exact(&[1, 4], 3));
        assert_ne!(VectorKeys::exact(&[1, 2], 3), VectorKeys::exact(&[1, 2], 5));
    }
}
