//! The `[paragraphs]` job: where duplicates are, and how they grow (Pereira, Baeza-Yates and
//! Ziviani 2006).

use std::num::NonZeroU32;
use std::path::PathBuf;

use nigh_readers::units::Share;
use serde::{Deserialize, Serialize};

use crate::config::Mode;
use crate::records::Week;

/// The `[paragraphs]` table: finds pages that have the same paragraphs, or most of them, and where
/// in the web they are.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Paragraphs {
    /// The store with the week. Required, here or as `--store`.
    pub store: Option<PathBuf>,
    /// The week. Default: the store's last.
    pub week: Option<Week>,
    /// A page has more characters than this. Default: 450, as in the study.
    pub least_characters: u64,
    /// The shares of paragraphs that near-duplicates have in common, at least; the highest first.
    /// Default: 0.9, 0.7, 0.5, as in the study.
    pub near: Vec<Share>,
    /// The parts over which the growth of duplicates is measured. Default: 50, as in the study.
    pub parts: NonZeroU32,
    /// What is in which part. Default: `hash`.
    pub order: PartOrder,
    /// URLs of pages from which the connected part is reached. Default: none, so that the core is
    /// found.
    pub seeds: Vec<String>,
    /// A paragraph of so many pages is a row of `boilerplate`. Default: 10.
    pub boilerplate: NonZeroU32,
    /// Whether the week is compared with the week before, and paragraphs are followed since the
    /// first week. Default: true.
    pub genealogy: bool,
    /// How paragraphs are followed, if the tables of a former run are there. Default: `auto`.
    pub mode: Mode,
    /// The most pairs that are looked at for one share of `near`; a run with more stops before it
    /// looks at them. Default: 1,000,000,000.
    pub max_pairs: u64,
}

impl Default for Paragraphs {
    fn default() -> Paragraphs {
        let number = |number| NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN);
        Paragraphs {
            store: None,
            week: None,
            least_characters: 450,
            near: [0.9, 0.7, 0.5].map(Share).to_vec(),
            parts: number(50),
            order: PartOrder::default(),
            seeds: Vec::new(),
            boilerplate: number(10),
            genealogy: true,
            mode: Mode::default(),
            max_pairs: 1_000_000_000,
        }
    }
}

/// What is in which part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PartOrder {
    /// Pages by the hash of their id.
    #[default]
    Hash,
    /// Pages by the time at which they were fetched.
    Crawl,
}

/// The largest `parts`.
const PARTS: u32 = 10_000;
/// The most thresholds of near-duplicates.
const THRESHOLDS: usize = 10;
/// The lowest threshold: below it nearly all pairs of a host would be looked at.
const LOWEST: f64 = 0.1;

impl Paragraphs {
    /// Checks the rules that the types do not say.
    pub(super) fn check_values(&self) -> Result<(), String> {
        if self.near.len() > THRESHOLDS {
            return Err(format!("near has {} shares: allowed are at most {THRESHOLDS}", self.near.len()));
        }
        if let Some(share) = self.near.iter().find(|share| share.0 < LOWEST) {
            return Err(format!("near has {}: allowed is {LOWEST} to 1.0", share.0));
        }
        if !self.near.is_sorted_by(|a, b| a.0 > b.0) {
            return Err("near: allowed are different shares, the highest first".into());
        }
        if self.parts.get() > PARTS {
            return Err(format!("parts = {}: allowed is 1 to {PARTS}", self.parts));
        }
        if self.boilerplate.get() < 2 {
            return Err("boilerplate = 1: allowed is 2 or more".into());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::job_file::AnyJob;

    #[test]
    fn wrong_values_are_named() {
        let job =
            |text: &str| toml::from_str::<AnyJob>(&format!("[paragraphs]\n{text}")).map_err(|error| error.to_string());
        assert!(job("near = []\norder = \"crawl\"\nseeds = [\"http://a.example/\"]\n").is_ok());
        for (text, wanted) in [
            ("near = [0.5, 0.9]\n", "the highest first"),
            ("near = [0.9, 0.9]\n", "different shares"),
            ("near = [0.01]\n", "0.1 to 1.0"),
            ("near = [1.5]\n", "0.0 to 1.0"),
            ("parts = 0\n", "nonzero"),
            ("parts = 10001\n", "1 to 10000"),
            ("boilerplate = 1\n", "2 or more"),
            ("order = \"url\"\n", "`crawl`"),
            ("seed = []\n", "`seeds`"),
        ] {
            let error = job(text).unwrap_err();
            assert!(error.contains(wanted) && error.contains("line "), "{text}: {error}");
        }
    }
}
