//! The parameters of the study: shingles, features, supershingles, megashingles (Fetterly 2004, section 2).

use std::fmt;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use crate::records::{MAX_SHARDS, short_hash};

/// The `[cluster.method]` table: the numbers of Fetterly 2004, section 2, and how the id space is cut.
///
/// They are part of the format: a store refuses a job with others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "MethodTable", into = "MethodTable")]
pub struct Method {
    /// Words of a shingle.
    pub words: usize,
    /// Min-wise features of a document.
    pub features: usize,
    /// Supershingles, each of `features / supershingles` consecutive features.
    pub supershingles: usize,
    /// Supershingles that two very similar pages share at least.
    pub agreements: usize,
    /// Whether words are compared without case.
    pub fold_case: bool,
    /// The seed of the polynomials.
    pub seed: u64,
    /// Shards of the URL space, a power of two.
    pub shards: u32,
}

/// The method as it is written; [`Method`] is the checked form.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
struct MethodTable {
    words: usize,
    features: usize,
    supershingles: usize,
    agreements: usize,
    fold_case: bool,
    seed: u64,
    shards: u32,
}

/// More megashingles than this for one document are refused: they multiply what workers exchange.
const MAX_MEGASHINGLES: usize = 1000;

impl Default for Method {
    fn default() -> Method {
        Method {
            words: 5,
            features: 84,
            supershingles: 6,
            agreements: 2,
            fold_case: false,
            seed: 20_031_107,
            shards: 64,
        }
    }
}

impl Default for MethodTable {
    fn default() -> MethodTable {
        Method::default().into()
    }
}

impl From<Method> for MethodTable {
    fn from(m: Method) -> MethodTable {
        MethodTable {
            words: m.words,
            features: m.features,
            supershingles: m.supershingles,
            agreements: m.agreements,
            fold_case: m.fold_case,
            seed: m.seed,
            shards: m.shards,
        }
    }
}

impl TryFrom<MethodTable> for Method {
    type Error = String;

    fn try_from(t: MethodTable) -> Result<Method, String> {
        let within = |name: &str, value: usize, low: usize, high: usize| match (low..=high).contains(&value) {
            true => Ok(()),
            false => Err(format!("{name} = {value}: allowed is {low} to {high}")),
        };
        within("words", t.words, 1, 64)?;
        within("features", t.features, 1, 1024)?;
        within("supershingles", t.supershingles, 1, t.features.min(64))?;
        within("agreements", t.agreements, 1, t.supershingles)?;
        if !t.features.is_multiple_of(t.supershingles) {
            return Err(format!(
                "features = {} cannot be cut in supershingles = {}: one must be a multiple of the other",
                t.features, t.supershingles
            ));
        }
        if i64::try_from(t.seed).is_err() {
            return Err(format!("seed = {}: allowed is 0 to {}", t.seed, i64::MAX));
        }
        if !t.shards.is_power_of_two() || t.shards > MAX_SHARDS {
            return Err(format!("shards = {}: allowed are the powers of two from 1 to {MAX_SHARDS}", t.shards));
        }
        let method = Method {
            words: t.words,
            features: t.features,
            supershingles: t.supershingles,
            agreements: t.agreements,
            fold_case: t.fold_case,
            seed: t.seed,
            shards: t.shards,
        };
        match method.megashingles() {
            Some(count) if count <= MAX_MEGASHINGLES => Ok(method),
            _ => Err(format!(
                "agreements = {} of supershingles = {} gives more than {MAX_MEGASHINGLES} megashingles a document",
                t.agreements, t.supershingles
            )),
        }
    }
}

impl Method {
    /// How many megashingles a document has: the ways to choose `agreements` of `supershingles`.
    /// `None` where that is beyond counting.
    pub fn megashingles(&self) -> Option<usize> {
        (0..self.agreements).try_fold(1usize, |ways, i| Some(ways.checked_mul(self.supershingles - i)? / (i + 1)))
    }

    /// A hash of all parameters, to tell two methods apart.
    pub fn hash(&self) -> String {
        short_hash(self.to_string().as_bytes())
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "words = {}, features = {}, supershingles = {}, agreements = {}, fold-case = {}, seed = {}, shards = {}",
            self.words, self.features, self.supershingles, self.agreements, self.fold_case, self.seed, self.shards
        )
    }
}
