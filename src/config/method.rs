//! The numbers of the study: shingles, features, supershingles and megashingles (Fetterly 2004, section 2).

use std::fmt;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use crate::records::{MAX_SHARDS, short_hash};

/// The `[cluster.method]` or `[weekly.method]` table: the numbers of Fetterly 2004, section 2, and the number of shards.
///
/// They are part of the format of a store: it refuses a job with other ones.
///
/// ```
/// use nigh::config::Method;
///
/// // Six supershingles, of which two must agree: 15 pairs.
/// assert_eq!(Method::default().megashingles(), Some(15));
/// let error = toml::from_str::<Method>("features = 83").unwrap_err().to_string();
/// assert!(error.contains("features = 83 cannot be divided into supershingles = 6"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "MethodTable", into = "MethodTable")]
pub struct Method {
    /// Words in a shingle, 1 to 64. Default: 5.
    pub words: usize,
    /// Features (minima) of a document, 1 to 1024, a multiple of `supershingles`. Default: 84.
    pub features: usize,
    /// Supershingles of a document, 1 to 64, each of `features / supershingles` consecutive features. Default: 6.
    pub supershingles: usize,
    /// How many supershingles two very similar documents share at least, 1 to `supershingles`. Default: 2.
    pub agreements: usize,
    /// Whether words are compared without case. Default: false.
    pub fold_case: bool,
    /// The seed of the random polynomials, 0 to 2^63 - 1. Default: 20031107.
    pub seed: u64,
    /// Shards of the documents: a power of two, 1 to 65536. Default: 64.
    pub shards: u32,
}

/// The table as it is written; [`Method`] is the checked form.
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

/// The largest number of megashingles of a document: workers exchange a record for each.
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
        let within = |name: &str, value: usize, low: usize, high: usize| {
            if (low..=high).contains(&value) {
                Ok(())
            } else {
                Err(format!("{name} = {value}: allowed is {low} to {high}"))
            }
        };
        within("words", t.words, 1, 64)?;
        within("features", t.features, 1, 1024)?;
        within("supershingles", t.supershingles, 1, t.features.min(64))?;
        within("agreements", t.agreements, 1, t.supershingles)?;
        if !t.features.is_multiple_of(t.supershingles) {
            return Err(format!(
                "features = {} cannot be divided into supershingles = {}: it must be a multiple",
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
                "agreements = {} of supershingles = {} gives more than {MAX_MEGASHINGLES} megashingles for each document",
                t.agreements, t.supershingles
            )),
        }
    }
}

impl Method {
    /// The number of megashingles of a document: the ways to choose `agreements` of `supershingles`. `None` if it overflows.
    pub fn megashingles(&self) -> Option<usize> {
        (0..self.agreements).try_fold(1usize, |ways, i| Some(ways.checked_mul(self.supershingles - i)? / (i + 1)))
    }

    /// A hash of all numbers, the same for equal methods.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn megashingles_are_the_choices_of_supershingles() {
        let count =
            |supershingles, agreements| Method { supershingles, agreements, ..Method::default() }.megashingles();
        assert_eq!((count(6, 2), count(6, 6), count(6, 1), count(12, 3)), (Some(15), Some(1), Some(6), Some(220)));
    }
}
