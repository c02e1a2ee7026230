//! The numbers of the study: shingles, features, supershingles and megashingles (Fetterly 2004,
//! section 2).

mod chunking;
mod content;
mod form;
mod given;
mod preset;
mod s_curve;
mod word_rule;

use std::fmt;

use nigh_kernels::records::{DocumentKey, MAX_SHARDS, short_hash};
use serde::{Deserialize, Serialize};

pub use self::chunking::{Chunking, Cut};
pub use self::content::Content;
pub use self::form::{Spaceless, TextForm, Unicode};
pub use self::given::GivenMethod;
use self::preset::{GivenShape, MAX_MEGASHINGLES, MAX_SUPERSHINGLES, cheapest, name_of, preset};
pub use self::preset::{MAX_FEATURES, RECALL, STUDY};
pub use self::s_curve::{CURVE, Shape};
use self::word_rule::WordsValue;
pub use self::word_rule::{WordPattern, WordRule};

/// The `[cluster.method]` or `[weekly.method]` table: the numbers of Fetterly 2004, section 2, what
/// a link means, and the number of shards.
///
/// They are part of the format of a store: it refuses a job with other ones.
///
/// The numbers `features`, `supershingles` and `agreements` are given one by one; or by name, as
/// `preset`; or nigh chooses them for a `similarity`. They are kept as numbers.
///
/// ```
/// use nigh_text::method::Method;
///
/// // Six supershingles, of which two must agree: 15 pairs.
/// assert_eq!(Method::default().shape().megashingles(), Some(15));
/// let bands: Method = toml::from_str("preset = \"minhash-14x8\"")?;
/// assert_eq!((bands.features, bands.supershingles, bands.agreements), (112, 14, 1));
/// let chosen: Method = toml::from_str("similarity = 0.8")?;
/// assert!(chosen.shape().chance(0.8) >= 0.99);
/// let error = toml::from_str::<Method>("features = 83").unwrap_err().to_string();
/// assert!(error.contains("features = 83 cannot be divided into supershingles = 6"));
/// # Ok::<(), toml::de::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "MethodTable", into = "MethodTable")]
pub struct Method {
    /// What a word is. Default: a run of letters and digits. See [`WordRule`] for the key `words`.
    pub rule: WordRule,
    /// Words in a shingle, 1 to 64. Default: 5, of characters 24.
    pub words: usize,
    /// Features of a document, 1 to 1024, a multiple of `supershingles`. Default: 84.
    pub features: usize,
    /// Supershingles of a document, 1 to 64, each of `features / supershingles` consecutive
    /// features. Default: 6.
    pub supershingles: usize,
    /// How many supershingles two very similar documents share at least, 1 to `supershingles`.
    /// Default: 2.
    pub agreements: usize,
    /// The least similarity of two documents that are linked, 0.5 to 0.99. Default: none, so that
    /// agreements alone decide.
    pub similarity: Option<Similarity>,
    /// How it is checked that two documents are that similar. Default: `none`.
    pub verify: Verify,
    /// How features are computed: `min-wise`, or `fast`. Default: `min-wise`, as in the study.
    pub sketch: SketchKind,
    /// The form in which words are compared: the keys `fold-case`, `strip-diacritics`, `unicode`
    /// and `spaceless`.
    pub form: TextForm,
    /// What of a web page is its text. The options for reading of the first week decide it.
    pub content: Content,
    /// The seed of the random polynomials, 0 to 2^63 - 1. Default: 20031107.
    pub seed: u64,
    /// Shards of the documents: a power of two, 1 to 65536. Default: 64.
    pub shards: u32,
    /// What a document is. The options for reading and the inputs of the first week decide it.
    pub documents: DocumentKey,
}

/// The table as it is written; [`Method`] is the checked form.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
struct MethodTable {
    words: Option<WordsValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    shingle: Option<usize>,
    #[serde(skip_serializing)]
    preset: Option<String>,
    features: Option<usize>,
    supershingles: Option<usize>,
    agreements: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    similarity: Option<Similarity>,
    #[serde(skip_serializing_if = "Option::is_none")]
    verify: Option<Verify>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sketch: Option<SketchKind>,
    fold_case: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    strip_diacritics: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unicode: Option<Unicode>,
    #[serde(skip_serializing_if = "Option::is_none")]
    spaceless: Option<Spaceless>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<Content>,
    seed: Option<u64>,
    shards: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    documents: Option<DocumentKey>,
}

/// How the similarity of linked documents is checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verify {
    /// It is not: documents that share enough supershingles are linked.
    #[default]
    None,
    /// By their features: the standard error of a similarity s is sqrt(s (1 - s) / features), or
    /// less for fast sketches.
    Estimate,
    /// By their shingles, exactly: their pages are read again.
    Exact,
}

/// How the features of a document are computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SketchKind {
    /// Each is the minimum by a function of its own (Broder 1997; Fetterly 2004, section 2).
    #[default]
    MinWise,
    /// All together, more accurately and for long texts in less time (Dahlgaard, Knudsen and Thorup
    /// 2017).
    Fast,
}

/// A similarity of two documents, 0.5 to 0.99, in millionths.
///
/// ```
/// use nigh_text::method::Similarity;
/// assert_eq!(Similarity::try_from(0.8).map(f64::from), Ok(0.8));
/// assert!(Similarity::try_from(80.0).unwrap_err().contains("allowed is 0.5 to 0.99"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Similarity(u32);

impl Similarity {
    const WHOLE: f64 = 1e6;

    /// The number of millionths.
    pub fn millionths(self) -> u32 {
        self.0
    }
}

impl TryFrom<f64> for Similarity {
    type Error = String;

    fn try_from(value: f64) -> Result<Similarity, String> {
        if (0.5..=0.99).contains(&value) {
            Ok(Similarity((value * Similarity::WHOLE).round() as u32))
        } else {
            Err(format!("similarity = {value}: allowed is 0.5 to 0.99"))
        }
    }
}

impl From<Similarity> for f64 {
    fn from(similarity: Similarity) -> f64 {
        f64::from(similarity.0) / Similarity::WHOLE
    }
}

impl Default for Method {
    fn default() -> Method {
        let Shape { features, supershingles, agreements } = STUDY;
        Method {
            rule: WordRule::Letters,
            words: WordRule::Letters.usual_shingle(),
            features,
            supershingles,
            agreements,
            similarity: None,
            verify: Verify::None,
            sketch: SketchKind::MinWise,
            form: TextForm::default(),
            content: Content::Page,
            seed: 20_031_107,
            shards: 64,
            documents: DocumentKey::Url,
        }
    }
}

impl From<Method> for MethodTable {
    fn from(m: Method) -> MethodTable {
        let (words, shingle) = WordsValue::of(m.rule, m.words);
        MethodTable {
            words: Some(words),
            shingle,
            preset: None,
            features: Some(m.features),
            supershingles: Some(m.supershingles),
            agreements: Some(m.agreements),
            similarity: m.similarity,
            verify: (m.verify != Verify::None).then_some(m.verify),
            sketch: (m.sketch != SketchKind::default()).then_some(m.sketch),
            fold_case: Some(m.form.fold_case),
            strip_diacritics: m.form.strip_diacritics.then_some(true),
            unicode: (m.form.unicode != Unicode::default()).then_some(m.form.unicode),
            spaceless: (m.form.spaceless != Spaceless::default()).then_some(m.form.spaceless),
            content: (m.content != Content::Page).then_some(m.content),
            seed: Some(m.seed),
            shards: Some(m.shards),
            documents: (m.documents != DocumentKey::Url).then_some(m.documents),
        }
    }
}

impl TryFrom<MethodTable> for Method {
    type Error = String;

    fn try_from(t: MethodTable) -> Result<Method, String> {
        let Shape { features, supershingles, agreements } = t.shape()?;
        let defaults = Method::default();
        let key = if t.shingle.is_some() { "shingle" } else { "words" };
        let (rule, words) = WordsValue::rule(t.words, t.shingle)?;
        let folds_case = rule.folds_case();
        let method = Method {
            rule,
            words,
            features,
            supershingles,
            agreements,
            similarity: t.similarity,
            verify: t.verify.unwrap_or_default(),
            sketch: t.sketch.unwrap_or_default(),
            form: TextForm {
                fold_case: t.fold_case.unwrap_or(folds_case),
                strip_diacritics: t.strip_diacritics.unwrap_or_default(),
                unicode: t.unicode.unwrap_or_default(),
                spaceless: t.spaceless.unwrap_or_default(),
            },
            content: t.content.unwrap_or_default(),
            seed: t.seed.unwrap_or(defaults.seed),
            shards: t.shards.unwrap_or(defaults.shards),
            documents: t.documents.unwrap_or_default(),
        };
        let within = |name: &str, value: usize, low: usize, high: usize| {
            if (low..=high).contains(&value) {
                Ok(())
            } else {
                Err(format!("{name} = {value}: allowed is {low} to {high}"))
            }
        };
        within(key, method.words, 1, 64)?;
        within("features", features, 1, MAX_FEATURES)?;
        within("supershingles", supershingles, 1, features.min(MAX_SUPERSHINGLES))?;
        within("agreements", agreements, 1, supershingles)?;
        if !features.is_multiple_of(supershingles) {
            return Err(format!(
                "features = {features} cannot be divided into supershingles = {supershingles}: it must be a multiple"
            ));
        }
        if i64::try_from(method.seed).is_err() {
            return Err(format!("seed = {}: allowed is 0 to {}", method.seed, i64::MAX));
        }
        if !method.shards.is_power_of_two() || method.shards > MAX_SHARDS {
            return Err(format!("shards = {}: allowed are the powers of two from 1 to {MAX_SHARDS}", method.shards));
        }
        if method.verify != Verify::None && method.similarity.is_none() {
            return Err("verify needs a similarity: set `similarity = 0.8`, or another one from 0.5 to 0.99".to_owned());
        }
        match method.shape().megashingles() {
            Some(count) if count <= MAX_MEGASHINGLES => Ok(method),
            _ => Err(format!(
                "agreements = {agreements} of supershingles = {supershingles} gives more than {MAX_MEGASHINGLES} megashingles for each \
                 document"
            )),
        }
    }
}

impl MethodTable {
    /// The shape that the table names, gives, or asks for.
    fn shape(&self) -> Result<Shape, String> {
        // An estimate is as good as there are features: no worse than that of the study.
        let least_features = if self.verify == Some(Verify::Estimate) { STUDY.features } else { 1 };
        let Self { features, supershingles, agreements, .. } = *self;
        let given = GivenShape { features, supershingles, agreements, least_features };
        match (&self.preset, given, self.similarity) {
            (Some(name), given, _) if given.is_any() => Err(format!(
                "preset = \"{name}\" sets features, supershingles and agreements: leave these out, or leave the preset out"
            )),
            (Some(name), ..) => preset(name),
            (
                None,
                GivenShape {
                    features: Some(features),
                    supershingles: Some(supershingles),
                    agreements: Some(agreements),
                    ..
                },
                _,
            ) => Ok(Shape { features, supershingles, agreements }),
            (None, given, Some(similarity)) => cheapest(similarity.into(), given),
            (None, given, None) => Ok(Shape {
                features: given.features.unwrap_or(STUDY.features),
                supershingles: given.supershingles.unwrap_or(STUDY.supershingles),
                agreements: given.agreements.unwrap_or(STUDY.agreements),
            }),
        }
    }
}

impl Method {
    /// How features are cut into supershingles, and how many must agree.
    pub fn shape(&self) -> Shape {
        Shape { features: self.features, supershingles: self.supershingles, agreements: self.agreements }
    }

    /// The name of the numbers, if they have one: a value of `preset`.
    pub fn preset(&self) -> Option<String> {
        name_of(self.shape())
    }

    /// A hash of all numbers, the same for equal methods.
    pub fn hash(&self) -> String {
        short_hash(self.to_string().as_bytes())
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Method {
            rule,
            words,
            features,
            supershingles,
            agreements,
            similarity,
            verify,
            sketch,
            form: TextForm { fold_case, strip_diacritics, unicode, spaceless },
            content,
            seed,
            shards,
            documents,
        } = self;
        match rule {
            WordRule::Letters => write!(f, "words = {words}, ")?,
            rule => write!(f, "words = {rule}, shingle = {words}, ")?,
        }
        write!(f, "features = {features}, supershingles = {supershingles}, agreements = {agreements}, ")?;
        if let Some(similarity) = similarity {
            write!(f, "similarity = {}, ", f64::from(*similarity))?;
        }
        match verify {
            Verify::None => {}
            Verify::Estimate => write!(f, "verify = estimate, ")?,
            Verify::Exact => write!(f, "verify = exact, ")?,
        }
        if *sketch == SketchKind::Fast {
            write!(f, "sketch = fast, ")?;
        }
        write!(f, "fold-case = {fold_case}, ")?;
        if *strip_diacritics {
            write!(f, "strip-diacritics = true, ")?;
        }
        if *unicode == Unicode::Nfc {
            write!(f, "unicode = nfc, ")?;
        }
        if *spaceless == Spaceless::Runs {
            write!(f, "spaceless = runs, ")?;
        }
        if *content == Content::Main {
            write!(f, "content = main, ")?;
        }
        write!(f, "seed = {seed}, shards = {shards}")?;
        match documents {
            DocumentKey::Url => Ok(()),
            DocumentKey::Id | DocumentKey::Row => write!(f, ", documents = {documents}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn method(text: &str) -> Result<Method, String> {
        toml::from_str(text).map_err(|error| error.to_string())
    }

    #[test]
    fn megashingles_are_the_choices_of_supershingles() {
        let count = |supershingles, agreements| Shape { features: 0, supershingles, agreements }.megashingles();
        assert_eq!((count(6, 2), count(6, 6), count(6, 1), count(12, 3)), (Some(15), Some(1), Some(6), Some(220)));
    }

    #[test]
    fn what_is_written_is_read_as_it_was() {
        for text in [
            "",
            "similarity = 0.8",
            "preset = \"minhash-14x8\"\nsimilarity = 0.85",
            "features = 60\nshards = 8",
            "similarity = 0.9\nverify = \"exact\"",
            "sketch = \"fast\"\nfold-case = true",
            "content = \"main\"",
        ] {
            let once = method(text).unwrap();
            assert_eq!(method(&toml::to_string(&once).unwrap()).unwrap(), once, "{text}");
        }
    }

    #[test]
    fn a_similarity_chooses_the_numbers_that_are_not_given() {
        let chosen = method("similarity = 0.9").unwrap();
        assert!(chosen.shape().chance(0.9) >= 0.99, "{chosen}");
        let bands = method("similarity = 0.9\nagreements = 1").unwrap();
        assert!(bands.agreements == 1 && bands.shape().chance(0.9) >= 0.99, "{bands}");
        let estimated = method("similarity = 0.9\nverify = \"estimate\"").unwrap();
        assert!(estimated.features >= 84 && estimated.shape().chance(0.9) >= 0.99, "{estimated}");
        let given = method("similarity = 0.9\nfeatures = 84\nsupershingles = 6\nagreements = 2").unwrap();
        assert_eq!((given.shape(), given.preset().as_deref()), (STUDY, Some("fetterly-2004")));
    }

    #[test]
    fn what_contradicts_itself_is_refused() {
        for (text, wanted) in [
            ("preset = \"minhash-14x8\"\nfeatures = 84", "leave these out, or leave the preset out"),
            ("preset = \"broder\"", "allowed are \"fetterly-2004\""),
            ("verify = \"exact\"", "verify needs a similarity"),
            ("similarity = 0.8\nverify = \"yes\"", "expected one of `none`, `estimate`, `exact`"),
            ("similarity = 80", "allowed is 0.5 to 0.99"),
            ("similarity = 0.5\nfeatures = 8\nagreements = 4", "no numbers with those that are given"),
        ] {
            let error = method(text).unwrap_err();
            assert!(error.contains(wanted), "{error}");
        }
    }
}
