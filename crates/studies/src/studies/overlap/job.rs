//! The `[overlap]` job: what pages share chunks (Shivakumar and Garcia-Molina 1998).

use std::path::PathBuf;

use nigh_readers::units::Bytes;
use nigh_text::method::{Chunking, Cut};
use serde::{Deserialize, Serialize};

use crate::config::Mode;
use crate::records::Week;

/// The `[overlap]` table: finds all pairs of pages, or of hosts, that share enough chunks of text.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Overlap {
    /// The store with the week. Required, here or as `--store`.
    pub store: Option<PathBuf>,
    /// The week. Default: the store's last.
    pub week: Option<Week>,
    /// How pages are cut into chunks, each apart. Default: the three of the study.
    pub chunkings: Vec<Chunking>,
    /// Where a run of lines ends. Default: `count`, as in the study.
    pub cut: Cut,
    /// The least number of chunks that two units share, for each chunking in its order. Default: 1,
    /// 15, 25, as in the study.
    pub thresholds: Vec<u32>,
    /// What is compared. Default: `document`.
    pub unit: Unit,
    /// How pairs are found. Default: `prefix`.
    pub method: OverlapMethod,
    /// For `method = "coarse"`: the memory of all counters together. Default: 64 MiB.
    pub counters: Bytes,
    /// For `method = "coarse"`: the hash functions by which pairs have counters, at most 8.
    /// Default: 1.
    pub hashes: u32,
    /// For `method = "coarse"`: the share of the chunks in a pilot sample; pairs with enough
    /// chunks there are not counted coarsely. Default: 0, no sample.
    pub pilot: f64,
    /// How a later week is computed, if the tables of a former run are there. Default: `auto`.
    pub mode: Mode,
    /// The least size of a family: so many units that share a template, or are equal. Default: 200.
    pub family: u64,
    /// The most pairs that are looked at or listed; a run with more stops before it lists any.
    /// Default: 1,000,000,000.
    pub max_pairs: u64,
    /// Whether the pairs of families are listed like all others. Default: false.
    pub list_families: bool,
}

impl Default for Overlap {
    fn default() -> Overlap {
        Overlap {
            store: None,
            week: None,
            chunkings: Chunking::ALL.to_vec(),
            cut: Cut::default(),
            thresholds: vec![1, 15, 25],
            unit: Unit::default(),
            method: OverlapMethod::default(),
            counters: Bytes(64 << 20),
            hashes: 1,
            pilot: 0.0,
            mode: Mode::default(),
            family: 200,
            max_pairs: 1_000_000_000,
            list_families: false,
        }
    }
}

/// The most `hashes`: each pair is looked up by each of them.
const MOST_HASHES: u32 = 8;

impl Overlap {
    /// The chunkings with their thresholds.
    pub fn parts(&self) -> impl Iterator<Item = (Chunking, u32)> {
        self.chunkings.iter().copied().zip(self.thresholds.iter().copied())
    }

    /// Checks the rules that concern several keys.
    pub(super) fn check_values(&self) -> Result<(), String> {
        let Overlap { chunkings, thresholds, unit, family, .. } = self;
        let (asked, given) = (chunkings.len(), thresholds.len());
        if asked == 0 || chunkings.iter().enumerate().any(|(at, one)| chunkings[..at].contains(one)) {
            return Err(
                "chunkings: allowed is one or more of \"document\", \"four-lines\", \"two-lines\", each once".into()
            );
        }
        if asked != given {
            return Err(format!("thresholds has {given} numbers: allowed is one for each of the {asked} chunkings"));
        }
        if thresholds.contains(&0) {
            return Err("thresholds has a 0: allowed is 1 or more".into());
        }
        let of_document = self.parts().find(|(chunking, least)| *chunking == Chunking::Document && *least > 1);
        if let (Unit::Document, Some((_, least))) = (unit, of_document) {
            return Err(format!(
                "thresholds asks for {least} chunks of \"document\": a page has one, so only 1 is allowed"
            ));
        }
        if !(1..=MOST_HASHES).contains(&self.hashes) {
            return Err(format!("hashes = {}: allowed is 1 to {MOST_HASHES}", self.hashes));
        }
        if !(0.0..=1.0).contains(&self.pilot) {
            return Err(format!("pilot = {}: allowed is a share from 0 to 1", self.pilot));
        }
        if *family < 2 {
            return Err(format!("family = {family}: allowed is 2 or more"));
        }
        Ok(())
    }

    /// Whether another job finds the same pairs and families in the same week.
    pub fn finds_as(&self, other: &Overlap) -> bool {
        let parameters = |job: &Overlap| {
            let Overlap { chunkings, cut, thresholds, unit, method, family, list_families, .. } = job.clone();
            (chunkings, cut, thresholds, unit, method, family, list_families)
        };
        parameters(self) == parameters(other)
    }

    /// Whether pairs are found in a pilot sample first.
    pub fn has_pilot(&self) -> bool {
        self.method == OverlapMethod::Coarse && self.pilot > 0.0
    }

    /// Whether pairs of families are left out of the list: only `prefix` finds families.
    pub fn has_families(&self) -> bool {
        self.method == OverlapMethod::Prefix && !self.list_families
    }
}

/// What is compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// Pages.
    #[default]
    Document,
    /// Hosts: a host has the chunks of all of its pages.
    Host,
}

/// How pairs are found. The pairs are the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OverlapMethod {
    /// By the rarest chunks of each unit.
    #[default]
    Prefix,
    /// The study's first way: the pairs of each chunk, sorted and counted.
    Sort,
    /// The study's second way: pairs are counted in few counters first, and exactly only if their
    /// counter is high enough.
    Coarse,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job_file::AnyJob;
    use crate::studies::AnyStudy;

    #[test]
    fn thresholds_belong_to_chunkings() {
        let job =
            |text: &str| toml::from_str::<AnyJob>(&format!("[overlap]\n{text}")).map_err(|error| error.to_string());
        let AnyJob::Study(AnyStudy::Overlap(overlap)) = job("chunkings = [\"two-lines\"]\nthresholds = [2]\n").unwrap()
        else {
            panic!("the outer table is the kind")
        };
        assert_eq!(overlap.parts().collect::<Vec<_>>(), [(Chunking::TwoLines, 2)]);
        for (text, wanted) in [
            ("thresholds = [1, 2]\n", "one for each of the 3 chunkings"),
            ("chunkings = []\nthresholds = []\n", "one or more"),
            ("chunkings = [\"two-lines\", \"two-lines\"]\nthresholds = [1, 1]\n", "each once"),
            ("thresholds = [2, 15, 25]\n", "a page has one"),
            ("thresholds = [1, 0, 25]\n", "1 or more"),
            ("family = 1\n", "family = 1"),
            ("hashes = 0\n", "1 to 8"),
            ("hashes = 9\n", "1 to 8"),
            ("pilot = 1.5\n", "from 0 to 1"),
            ("pilot = -0.1\n", "from 0 to 1"),
            ("pilot = nan\n", "from 0 to 1"),
            ("treshold = 1\n", "`thresholds`"),
            ("method = \"fast\"\n", "`coarse`"),
        ] {
            let error = job(text).unwrap_err();
            assert!(error.contains(wanted) && error.contains("line "), "{text}: {error}");
        }
        assert!(job("unit = \"host\"\nthresholds = [2, 15, 25]\n").is_ok());
    }
}
