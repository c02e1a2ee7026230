//! Features, supershingles and megashingles, from the pre-images of a document (Fetterly 2004,
//! section 2).
//!
//! - **Feature** i: the pre-image whose image under the i-th one-to-one function is smallest. Equal
//!   images are equal pre-images, so a feature depends on the set of pre-images alone. Fast
//!   sketches have features of another kind (`fast`).
//! - **Supershingle** j: the fingerprint of the j-th run of consecutive features, each as eight
//!   bytes, most significant first.
//! - **Megashingle**: the fingerprint of a choice of `agreements` supershingles in ascending order.
//!   Each choice has its own key space: megashingles of two different choices are never equal keys.

use std::borrow::Cow;

use nigh_kernels::kernels::{FeatureRuns, Functions, Kernels, Polynomial, Polynomials};
use nigh_kernels::records::{FeatureBits, Key, mix};
use serde::{Deserialize, Serialize};

use super::fast::FastFeatures;
use crate::method::{Method, SketchKind};

/// The features and supershingles of a document with at least one word.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sketch {
    /// The supershingles; the method sets their number.
    pub supershingles: Vec<u64>,
    /// What is kept of each feature: enough to count equal ones.
    pub features: Vec<FeatureBits>,
}

impl Sketch {
    /// Estimates the resemblance of two documents, 0 to 1: the share of equal features (Broder
    /// 1997; Fetterly 2004, section 2). Both sketches are of the same method. A document without
    /// words resembles none, not even itself: 0.
    ///
    /// ```
    /// use nigh_text::features::Sketch;
    /// let [a, b] = [[1, 2, 3, 4], [1, 2, 3, 9]].map(|features| Sketch { features: features.into(), ..Sketch::default() });
    /// assert_eq!(a.similarity(&b), 0.75);
    /// assert_eq!(Sketch::default().similarity(&Sketch::default()), 0.0);
    /// ```
    pub fn similarity(&self, other: &Sketch) -> f64 {
        let compared = self.features.len().min(other.features.len());
        if compared == 0 { 0.0 } else { equal_features(&self.features, &other.features) as f64 / compared as f64 }
    }
}

/// Computes sketches from pre-images; its buffer is reused from document to document.
pub struct Sketcher {
    kernels: &'static Kernels,
    way: FeatureWay,
    runs: FeatureRuns,
    /// The features of the last document, all 64 bits of each.
    features: Vec<u64>,
}

/// How features are computed.
enum FeatureWay {
    /// Each is the minimum by a function of its own.
    MinWise(Functions),
    /// All together.
    Fast(FastFeatures),
}

impl Sketcher {
    /// Makes the sketcher of a method.
    pub fn new(method: &Method, polynomials: &Polynomials, kernels: &'static Kernels) -> Sketcher {
        Sketcher {
            kernels,
            way: match method.sketch {
                SketchKind::MinWise => FeatureWay::MinWise(Functions::new(&polynomials.features)),
                SketchKind::Fast => FeatureWay::Fast(FastFeatures::new(method.features, method.seed)),
            },
            runs: FeatureRuns::new(polynomials.supershingles, method.features / method.supershingles),
            features: Vec::new(),
        }
    }

    /// Writes the sketch of the document with these pre-images over `sketch`.
    ///
    /// # Panics
    /// If there are no pre-images.
    pub fn sketch(&mut self, preimages: &[u64], sketch: &mut Sketch) {
        assert!(!preimages.is_empty(), "a document without shingles has no sketch");
        match &mut self.way {
            FeatureWay::MinWise(functions) => self.kernels.minima(functions, preimages, &mut self.features),
            FeatureWay::Fast(fast) => fast.write(preimages, &mut self.features),
        }
        sketch.features.clear();
        sketch.features.extend(self.features.iter().map(|feature| *feature as FeatureBits));
        self.kernels.supershingles(&self.runs, &self.features, &mut sketch.supershingles);
    }
}

/// Computes the keys (megashingles) of documents: documents with agreeing supershingles share a
/// key.
///
/// A *mask* is a set of supershingles: bit `j` is supershingle `j`.
pub struct VectorKeys {
    megashingles: Polynomial,
    choices: Vec<SupershingleChoice>,
    /// For each mask its choices, if there are few masks.
    within: Vec<Vec<ChoiceInMask>>,
    /// The mask of all supershingles.
    all: u64,
}

/// One way to choose `agreements` supershingles.
struct SupershingleChoice {
    /// Their numbers, ascending.
    chosen: Vec<usize>,
    /// The same numbers as a mask.
    mask: u64,
    /// Separates its keys from those of other choices.
    salt: u64,
}

/// A choice of which all supershingles are in a mask.
#[derive(Clone, Copy)]
struct ChoiceInMask {
    /// Its number.
    choice: usize,
    /// How many supershingles, from the first, it has in common with the previous choice in the
    /// mask.
    shared: usize,
}

/// The fingerprints of up to this many first supershingles of a choice are reused for the next
/// choice.
const REUSED: usize = 4;
/// Up to this many supershingles, the choices of every mask are listed in advance.
const LISTED: usize = 8;

impl VectorKeys {
    /// Makes the keys of a method.
    ///
    /// ```
    /// use nigh_text::method::Method;
    /// use nigh_kernels::kernels::polynomials;
    /// use nigh_text::features::VectorKeys;
    /// let method = Method::default();
    /// let keys = VectorKeys::new(&method, &polynomials(method.seed, method.features));
    /// assert_eq!(keys.count(), 15); // pairs of six supershingles
    /// // These two documents agree in supershingles 0 and 1, and hence in one key.
    /// let [a, b] = [[1, 2, 3, 4, 5, 6], [1, 2, 9, 9, 9, 9]];
    /// let of = |supershingles: &[u64]| keys.megashingles(supershingles, u64::MAX).collect::<Vec<_>>();
    /// assert_eq!(of(&a).iter().filter(|key| of(&b).contains(key)).count(), 1);
    /// ```
    pub fn new(method: &Method, polynomials: &Polynomials) -> VectorKeys {
        let mut choices = Vec::new();
        choose(method.supershingles, method.agreements, 0, &mut Vec::new(), &mut choices);
        let choice = |(number, chosen): (usize, Vec<usize>)| {
            let mask = chosen.iter().fold(0, |mask, supershingle| mask | 1 << supershingle);
            SupershingleChoice { chosen, mask, salt: mix(number as u64) }
        };
        let mut keys = VectorKeys {
            megashingles: Polynomial::new(polynomials.megashingles),
            choices: choices.into_iter().enumerate().map(choice).collect(),
            within: Vec::new(),
            all: u64::MAX >> (64 - method.supershingles),
        };
        if method.supershingles <= LISTED {
            keys.within = (0..=keys.all).map(|mask| keys.list(mask)).collect();
        }
        keys
    }

    /// The number of megashingles of a document.
    pub fn count(&self) -> usize {
        self.choices.len()
    }

    /// Lists the choices of which all supershingles are in a mask.
    fn list(&self, mask: u64) -> Vec<ChoiceInMask> {
        let mut previous: &[usize] = &[];
        let mut list = Vec::new();
        for (choice, SupershingleChoice { chosen, .. }) in
            self.choices.iter().enumerate().filter(|(_, choice)| choice.mask & !mask == 0)
        {
            let shared = previous.iter().zip(chosen).take_while(|(a, b)| a == b).count();
            previous = chosen;
            list.push(ChoiceInMask { choice, shared });
        }
        list
    }

    /// The choices of which all supershingles are in a mask, from the lists made in advance if
    /// there are any.
    fn choices_within(&self, mask: u64) -> Cow<'_, [ChoiceInMask]> {
        match self.within.get((mask & self.all) as usize) {
            Some(list) => Cow::Borrowed(list),
            None => Cow::Owned(self.list(mask)),
        }
    }

    /// The number of choices of which all supershingles are in a mask.
    pub fn within(&self, mask: u64) -> u64 {
        self.choices_within(mask).len() as u64
    }

    /// Whether all supershingles of the choice with this number are in a mask.
    #[inline]
    pub fn is_within(&self, choice: usize, mask: u64) -> bool {
        self.choices[choice].mask & !mask == 0
    }

    /// The keys of a document: one megashingle for each choice of which all supershingles are in
    /// `mask`.
    ///
    /// A key holds the megashingle and independent bits of the same supershingles. The 64 bits of a
    /// megashingle alone would join unrelated documents among billions.
    pub fn megashingles(&self, supershingles: &[u64], mask: u64) -> impl Iterator<Item = Key> {
        self.numbered(supershingles, mask).map(|(_, key)| key)
    }

    /// As [`VectorKeys::megashingles`], each key with the number of its choice, 0 to
    /// [`VectorKeys::count`] - 1.
    ///
    /// Without the reuse of common beginnings it is
    ///
    /// ```text
    /// for each choice (s_1, ..., s_n) in the mask, in lexicographic order:
    ///     image, hash = 0, 0
    ///     for s in s_1, ..., s_(n-1): image, hash = image_of(image ^ s), mix(hash ^ s)
    ///     key = (mix(image ^ s_n ^ salt), mix(hash ^ s_n) ^ salt)
    /// ```
    pub fn numbered(&self, supershingles: &[u64], mask: u64) -> impl Iterator<Item = (usize, Key)> {
        // prefixes[n]: image and hash of the first n supershingles of a choice. The next choice
        // continues from the part that it has in common with this one.
        let mut prefixes = [(0, 0); REUSED + 1];
        let longer = |(image, hash): (u64, u64), next: u64| (self.megashingles.image(image ^ next), mix(hash ^ next));
        let choices = self.choices_within(mask);
        (0..choices.len()).map(move |i| {
            let ChoiceInMask { choice, shared } = choices[i];
            let SupershingleChoice { chosen, salt, .. } = &self.choices[choice];
            let (last, prefix) = chosen.split_last().expect("a method has one agreement at least");
            let (reused, rest) = prefix.split_at(prefix.len().min(REUSED));
            for n in shared.min(reused.len())..reused.len() {
                prefixes[n + 1] = longer(prefixes[n], supershingles[reused[n]]);
            }
            let (image, hash) = rest.iter().fold(prefixes[reused.len()], |sum, s| longer(sum, supershingles[*s]));
            let last = supershingles[*last];
            (choice, Key::of_hashes(mix(image ^ last ^ salt), mix(hash ^ last) ^ salt))
        })
    }
}

/// Lists all ways to choose `left` more of the numbers `from..n`, in lexicographic order.
fn choose(n: usize, left: usize, from: usize, chosen: &mut Vec<usize>, out: &mut Vec<Vec<usize>>) {
    if left == 0 {
        return out.push(chosen.clone());
    }
    for next in from..=n - left {
        chosen.push(next);
        choose(n, left - 1, next + 1, chosen, out);
        chosen.pop();
    }
}

/// Counts the equal features of two documents.
///
/// ```
/// use nigh_text::features::equal_features;
/// assert_eq!(equal_features(&[7, 8, 9], &[7, 0, 9]), 2);
/// ```
pub fn equal_features(a: &[FeatureBits], b: &[FeatureBits]) -> usize {
    a.iter().zip(b).filter(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features::Shingler;
    use nigh_kernels::kernels::polynomials;

    fn sketches(texts: &[&str]) -> Vec<Sketch> {
        let method = Method::default();
        let polynomials = polynomials(method.seed, method.features);
        let kernels = nigh_kernels::kernels::chosen().unwrap();
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
        // 1000 words, and the same with the last 10% replaced: sets of 1000 shingles, of which
        // about 896 are shared.
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
    fn megashingles_of_two_choices_are_never_equal() {
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
