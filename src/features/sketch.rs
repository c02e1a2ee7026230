//! Pre-images to features, supershingles and megashingles (Fetterly 2004, section 2).
//!
//! - **Feature** i: the pre-image whose image under the i-th one-to-one function is smallest. Equal
//!   images are equal pre-images, so that the choice depends on nothing but the set.
//! - **Supershingle** j: the fingerprint of the j-th run of consecutive features, each as eight
//!   bytes, most significant first.
//! - **Megashingle**: the fingerprint of a choice of `agreements` supershingles in ascending order.
//!   Each choice has a space of its own, so that a match between two choices is never a match.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::rabin::Polynomials;
use crate::config::Method;
use crate::kernels::{Functions, Kernels, Polynomial, Runs};
use crate::records::{Key, mix};

/// What is kept of a document with at least one word.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sketch {
    /// The supershingles, as many as the method says.
    pub supershingles: Vec<u64>,
    /// The low 32 bits of each feature: enough to count equal ones (two unequal features look equal once in 2^32).
    pub features: Vec<u32>,
}

/// Computes sketches.
pub struct Sketcher {
    kernels: &'static Kernels,
    functions: Functions,
    runs: Runs,
    /// The features of the last document, whole.
    minima: Vec<u64>,
}

impl Sketcher {
    /// The sketcher of a method.
    pub fn new(method: &Method, polynomials: &Polynomials, kernels: &'static Kernels) -> Sketcher {
        Sketcher {
            kernels,
            functions: Functions::new(&polynomials.features),
            runs: Runs::new(polynomials.supershingles, method.features / method.supershingles),
            minima: Vec::new(),
        }
    }

    /// Writes the sketch of a document with these pre-images, at least one.
    pub fn sketch(&mut self, preimages: &[u64], sketch: &mut Sketch) {
        self.kernels.minima(&self.functions, preimages, &mut self.minima);
        sketch.features.clear();
        sketch.features.extend(self.minima.iter().map(|feature| *feature as u32));
        self.kernels.supershingles(&self.runs, &self.minima, &mut sketch.supershingles);
    }
}

/// Keys by which documents with agreeing supershingles meet.
pub struct VectorKeys {
    megashingles: Polynomial,
    choices: Vec<Choice>,
    /// The choices within each mask, where there are few masks.
    within: Vec<Vec<Step>>,
    /// The mask of all supershingles.
    all: u64,
}

/// One way to choose supershingles.
struct Choice {
    /// Their numbers, ascending.
    chosen: Vec<usize>,
    /// The same, by bit.
    mask: u64,
    /// What keeps its keys from those of other choices.
    salt: u64,
}

/// A choice within a mask.
#[derive(Clone, Copy)]
struct Step {
    choice: usize,
    /// How many of its supershingles, from the first, the choice before within the mask has too.
    shared: usize,
}

/// Supershingles of a choice whose fingerprint is remembered for the next choice.
const REMEMBERED: usize = 4;
/// Supershingles of which every mask has its list of choices.
const LISTED: usize = 8;

impl VectorKeys {
    /// The keys of a method.
    pub fn new(method: &Method, polynomials: &Polynomials) -> VectorKeys {
        let mut chosen = Vec::new();
        choose(method.supershingles, method.agreements, 0, &mut Vec::new(), &mut chosen);
        let choice = |(space, chosen): (usize, Vec<usize>)| {
            let mask = chosen.iter().fold(0, |mask, at| mask | 1 << at);
            Choice { chosen, mask, salt: mix(space as u64) }
        };
        let mut keys = VectorKeys {
            megashingles: Polynomial::new(polynomials.megashingles),
            choices: chosen.into_iter().enumerate().map(choice).collect(),
            within: Vec::new(),
            all: u64::MAX >> (64 - method.supershingles),
        };
        if method.supershingles <= LISTED {
            keys.within = (0..=keys.all).map(|mask| keys.steps(mask)).collect();
        }
        keys
    }

    /// How many megashingles a document has.
    pub fn count(&self) -> usize {
        self.choices.len()
    }

    fn steps(&self, mask: u64) -> Vec<Step> {
        let mut before: &[usize] = &[];
        let mut steps = Vec::new();
        for (choice, Choice { chosen, .. }) in
            self.choices.iter().enumerate().filter(|(_, choice)| choice.mask & !mask == 0)
        {
            let shared = before.iter().zip(chosen).take_while(|(a, b)| a == b).count();
            before = chosen;
            steps.push(Step { choice, shared });
        }
        steps
    }

    /// The choices of which all supershingles are in a mask.
    fn listed(&self, mask: u64) -> Cow<'_, [Step]> {
        match self.within.get((mask & self.all) as usize) {
            Some(steps) => Cow::Borrowed(steps),
            None => Cow::Owned(self.steps(mask)),
        }
    }

    /// How many of the choices are within a mask of supershingles.
    pub fn within(&self, mask: u64) -> u64 {
        self.listed(mask).len() as u64
    }

    /// Whether all supershingles of a choice, by its number, are in a mask.
    #[inline]
    pub fn is_within(&self, choice: usize, mask: u64) -> bool {
        self.choices[choice].mask & !mask == 0
    }

    /// The keys of the megashingles of a document, one for each choice of supershingles of which all are in `mask`,
    /// by bit.
    ///
    /// A key holds the megashingle, and beside it independent bits of the same supershingles: 64 bits alone
    /// would join strangers among billions of documents.
    pub fn megashingles(&self, supershingles: &[u64], mask: u64) -> impl Iterator<Item = Key> {
        self.numbered(supershingles, mask).map(|(_, key)| key)
    }

    /// As [`VectorKeys::megashingles`], each with its number among all of the document.
    pub fn numbered(&self, supershingles: &[u64], mask: u64) -> impl Iterator<Item = (usize, Key)> {
        // For each number of chosen supershingles: the image of their fingerprint, and a hash of them. A choice goes on
        // where it leaves the one before.
        let mut prefixes = [(0, 0); REMEMBERED + 1];
        let longer = |(image, hash): (u64, u64), next: u64| (self.megashingles.image(image ^ next), mix(hash ^ next));
        let steps = self.listed(mask);
        (0..steps.len()).map(move |at| {
            let Step { choice, shared } = steps[at];
            let Choice { chosen, salt, .. } = &self.choices[choice];
            let (last, prefix) = chosen.split_last().expect("a choice has one at least");
            let (near, far) = prefix.split_at(prefix.len().min(REMEMBERED));
            for at in shared.min(near.len())..near.len() {
                prefixes[at + 1] = longer(prefixes[at], supershingles[near[at]]);
            }
            let (image, hash) = far.iter().fold(prefixes[near.len()], |sum, at| longer(sum, supershingles[*at]));
            let last = supershingles[*last];
            (choice, Key::of_hashes(mix(image ^ last ^ salt), mix(hash ^ last) ^ salt))
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
        let kernels = crate::kernels::chosen().unwrap();
        let (mut shingler, mut sketcher) =
            (Shingler::new(polynomials.shingles, method.words, kernels), Sketcher::new(&method, &polynomials, kernels));
        texts
            .iter()
            .map(|text| {
                let mut sketch = Sketch::default();
                sketcher.sketch(shingler.preimages(text.as_bytes()), &mut sketch);
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
        let all: std::collections::BTreeSet<Key> = keys.megashingles(&[7; 6], u64::MAX).collect();
        assert_eq!((keys.count(), all.len()), (15, 15));
        let [a, b] = [[1, 2, 3, 4, 5, 6], [1, 2, 9, 9, 9, 9]];
        let shared =
            keys.megashingles(&a, u64::MAX).zip(keys.megashingles(&b, u64::MAX)).filter(|(a, b)| a == b).count();
        assert_eq!(shared, 1);
    }

    #[test]
    fn a_mask_leaves_the_keys_of_the_other_choices_out() {
        for (supershingles, agreements) in [(6, 2), (6, 1), (6, 6), (8, 5), (12, 7)] {
            let method = Method { features: 24 * supershingles, supershingles, agreements, ..Method::default() };
            let keys = VectorKeys::new(&method, &polynomials(1, 84));
            let vector: Vec<u64> = (0..supershingles as u64).map(mix).collect();
            let all: Vec<Key> = keys.megashingles(&vector, u64::MAX).collect();
            for seed in 0..50 {
                let mask = mix(seed) | mix(seed + 100);
                let wanted = all.iter().zip(&keys.choices).filter(|(_, choice)| choice.mask & !mask == 0);
                let wanted: Vec<Key> = wanted.map(|(key, _)| *key).collect();
                assert_eq!(keys.megashingles(&vector, mask).collect::<Vec<Key>>(), wanted);
                assert_eq!(keys.within(mask), wanted.len() as u64);
            }
        }
    }
}
