//! The `[samplers]` job: how well samples of shingles estimate resemblance (Broder 1997; Fetterly
//! 2004, section 2).

use std::num::NonZeroU32;
use std::path::PathBuf;

use nigh_text::method::MAX_FEATURES;
use serde::{Deserialize, Serialize};

use crate::records::Week;

/// The `[samplers]` table: compares samplers with the exact resemblance of pairs of pages, which
/// are read again from the crawl files.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Samplers {
    /// The store with the week. Required, here or as `--store`.
    pub store: Option<PathBuf>,
    /// The week. Default: the store's last.
    pub week: Option<Week>,
    /// The crawl files of the week, here or as `--input`. Default: those that its job names.
    pub input: Vec<String>,
    /// The min-wise functions, and the smallest images of `MIN s`, 1 to 1024. Default: 84, as in
    /// the study.
    pub functions: usize,
    /// The moduli of `MOD m`, 2 or more each. Default: 8 and 25.
    pub moduli: Vec<u64>,
    /// How many bits of each minimum are compared, besides all 64; 1 to 32 each. Default: 32, 16,
    /// 8, 4, 2, 1.
    pub bits: Vec<u32>,
    /// How often each sampler is made again, with other random functions, 1 to 1000. Default: 12.
    pub seeds: NonZeroU32,
    /// The most pairs of pages of each band of resemblance. Default: 400.
    pub pairs: NonZeroU32,
}

impl Default for Samplers {
    fn default() -> Samplers {
        Samplers {
            store: None,
            week: None,
            input: Vec::new(),
            functions: 84,
            moduli: vec![8, 25],
            bits: vec![32, 16, 8, 4, 2, 1],
            seeds: const { NonZeroU32::new(12).expect("above 0") },
            pairs: const { NonZeroU32::new(400).expect("above 0") },
        }
    }
}

/// The most `seeds`.
const MOST_SEEDS: u32 = 1000;
/// The most `moduli`, and the most `bits`.
const MOST_SAMPLERS: usize = 32;

impl Samplers {
    /// Checks the rules that the types do not say.
    pub(super) fn check_values(&self) -> Result<(), String> {
        if !(1..=MAX_FEATURES).contains(&self.functions) {
            return Err(format!("functions = {}: allowed is 1 to {MAX_FEATURES}", self.functions));
        }
        if self.seeds.get() > MOST_SEEDS {
            return Err(format!("seeds = {}: allowed is 1 to {MOST_SEEDS}", self.seeds));
        }
        if let Some(modulus) = self.moduli.iter().find(|modulus| !(2..=1 << 62).contains(*modulus)) {
            return Err(format!("moduli has {modulus}: allowed is 2 or more, up to 2^62"));
        }
        if let Some(bits) = self.bits.iter().find(|bits| !(1..=32).contains(*bits)) {
            return Err(format!("bits has {bits}: allowed is 1 to 32; all 64 are always compared"));
        }
        for (name, count, distinct) in [
            ("moduli", self.moduli.len(), self.moduli.iter().collect::<std::collections::BTreeSet<_>>().len()),
            ("bits", self.bits.len(), self.bits.iter().collect::<std::collections::BTreeSet<_>>().len()),
        ] {
            if count > MOST_SAMPLERS || distinct < count {
                return Err(format!("{name}: allowed are up to {MOST_SAMPLERS} different numbers"));
            }
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
            |text: &str| toml::from_str::<AnyJob>(&format!("[samplers]\n{text}")).map_err(|error| error.to_string());
        assert!(job("moduli = []\nbits = [1]\nseeds = 1\nfunctions = 200\n").is_ok());
        for (text, wanted) in [
            ("functions = 0\n", "1 to 1024"),
            ("functions = 2000\n", "1 to 1024"),
            ("moduli = [8, 1]\n", "moduli has 1"),
            ("moduli = [8, 8]\n", "moduli: allowed are up to 32 different"),
            ("bits = [33]\n", "bits has 33"),
            ("bits = [1, 1]\n", "different numbers"),
            ("seeds = 1001\n", "1 to 1000"),
            ("pairs = 0\n", "nonzero"),
            ("seed = 5\n", "`seeds`"),
        ] {
            let error = job(text).unwrap_err();
            assert!(error.contains(wanted) && error.contains("line "), "{text}: {error}");
        }
    }
}
