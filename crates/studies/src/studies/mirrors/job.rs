//! The `[mirrors]` job: hosts that mirror each other, by the content of their pages (Fetterly 2004,
//! sections 2 and 4).

use std::num::NonZeroU32;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::records::Week;

/// The `[mirrors]` table: reads the weeks of a store, and writes tables about hosts that mirror
/// each other.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Mirrors {
    /// The store with the weeks. Required, here or as `--store`.
    pub store: Option<PathBuf>,
    /// The first week. Default: the store's first.
    pub first: Option<Week>,
    /// The last week. Default: the store's last.
    pub last: Option<Week>,
    /// The pages that two hosts have in common, at least. Default: 10, as in the study.
    pub least_pages: NonZeroU32,
    /// Which pairs of a cluster are counted. Default: all. The table `classes` has what the study
    /// counts beside its numbers, whatever is chosen.
    pub pairs: HostPairs,
    /// Which number is the size of a pair. Default: the larger one, as in the study.
    pub size: MirrorSize,
    /// Whether hosts without an address are left out. Default: yes, as in the study, if some page
    /// of the week has an address.
    pub unresolved: Unresolved,
    /// A file with the addresses of hosts, for crawls that do not have them: on each line a host, a
    /// tab, and addresses with commas between them. Default: none.
    pub addresses: Option<PathBuf>,
    /// The hosts that may have enough pages in one cluster and still be paired with each other.
    /// Default: 1000.
    pub farm: NonZeroU32,
    /// The most pairs of hosts to look at; a job of more stops before it looks at any. Default:
    /// 1,000,000,000.
    pub max_pairs: u64,
}

impl Default for Mirrors {
    fn default() -> Mirrors {
        Mirrors {
            store: None,
            first: None,
            last: None,
            least_pages: const { NonZeroU32::new(10).expect("above 0") },
            pairs: HostPairs::default(),
            size: MirrorSize::default(),
            unresolved: Unresolved::default(),
            addresses: None,
            farm: const { NonZeroU32::new(1000).expect("above 0") },
            max_pairs: 1_000_000_000,
        }
    }
}

impl Mirrors {
    /// Checks the rules that concern several keys.
    pub(super) fn check_values(&self) -> Result<(), String> {
        let pairs = match self.pairs {
            HostPairs::All => return Ok(()),
            HostPairs::Root => "root",
            HostPairs::Study => "study",
        };
        match self.size {
            MirrorSize::Larger => Ok(()),
            MirrorSize::Smaller => Err(format!(
                "size = \"smaller\" with pairs = \"{pairs}\": there the pages of one host alone are counted, so no number is smaller: leave \
                 out `size`, or set pairs = \"all\""
            )),
        }
    }
}

/// Which pairs of the hosts of a cluster are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HostPairs {
    /// Any two hosts.
    #[default]
    All,
    /// The first host, that with the most pages that have near-duplicates, with each other one.
    Root,
    /// The host of the cluster's root with each other one: what the study counts.
    Study,
}

/// Which number is the size of a pair, if all pairs are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MirrorSize {
    /// The larger of the numbers of pages that the hosts have in common clusters: 100 pages of one
    /// that are like one page of the other are 100 (section 4 of the study).
    #[default]
    Larger,
    /// The smaller one.
    Smaller,
}

/// What becomes of pairs with a host that has no address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unresolved {
    /// They are no mirrors.
    #[default]
    Drop,
    /// They are like other pairs.
    Keep,
}

#[cfg(test)]
mod tests {
    use crate::job_file::AnyJob;

    #[test]
    fn the_smaller_size_is_of_all_pairs_only() {
        let job =
            |text: &str| toml::from_str::<AnyJob>(&format!("[mirrors]\n{text}")).map_err(|error| error.to_string());
        for pairs in ["root", "study"] {
            let error = job(&format!("pairs = \"{pairs}\"\nsize = \"smaller\"\n")).unwrap_err();
            assert!(error.contains("size = \"smaller\"") && error.contains("one host alone"), "{error}");
            assert!(error.contains(&format!("pairs = \"{pairs}\"")), "{error}");
            assert!(job(&format!("pairs = \"{pairs}\"\n")).is_ok());
        }
        assert!(job("size = \"smaller\"\n").is_ok());
    }
}
