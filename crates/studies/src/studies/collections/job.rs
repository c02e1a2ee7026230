//! The `[collections]` job: pages that are copied together, as manuals and archives are (Cho,
//! Shivakumar and Garcia-Molina 2000).

use std::path::PathBuf;

use nigh_readers::units::Share;
use nigh_text::method::Chunking;
use serde::{Deserialize, Serialize};

use crate::records::Week;

/// The `[collections]` table: finds replicated collections, and the prefixes of URLs that a crawler
/// need not fetch.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Collections {
    /// The store with the week. Required, here or as `--store`.
    pub store: Option<PathBuf>,
    /// The week. Default: the store's last.
    pub week: Option<Week>,
    /// Which pages are replicas of each other. Default: `similar`.
    pub level: ReplicaLevel,
    /// For `level = "overlap"`: the chunking whose components are taken. Default: `four-lines`.
    pub chunking: Chunking,
    /// Which links hold a collection together. Default: `same-host`, as in the study.
    pub links: CollectionLinks,
    /// When two trivial clusters are merged. Default: `share`.
    pub merge: Merge,
    /// For `merge = "share"`: the share of the pages of each cluster that the links must cover,
    /// above 0 to 1. Default: 0.6.
    pub share: Share,
    /// Collections of fewer pages are noise: they give no prefix to avoid. Default: 10, as in the
    /// study.
    pub least_size: u32,
    /// The share of the crawled pages below a prefix that are copies, if the prefix is to be
    /// avoided. Default: 0.9.
    pub purity: Share,
    /// Whether the prefixes are judged: those of the run before by this week, and those of this
    /// week by itself and all later ones. Otherwise the list of the run before goes on unjudged.
    /// Default: true.
    pub judge: bool,
}

impl Default for Collections {
    fn default() -> Collections {
        Collections {
            store: None,
            week: None,
            level: ReplicaLevel::default(),
            chunking: Chunking::FourLines,
            links: CollectionLinks::default(),
            merge: Merge::default(),
            share: Share(0.6),
            least_size: 10,
            purity: Share(0.9),
            judge: true,
        }
    }
}

impl Collections {
    /// Whether another job lists the same prefixes for the same week.
    pub fn lists_as(&self, other: &Collections) -> bool {
        let parameters = |job: &Collections| {
            let Collections { level, chunking, links, merge, share, least_size, purity, .. } = job.clone();
            (level, chunking, links, merge, share, least_size, purity)
        };
        parameters(self) == parameters(other)
    }
}

/// Which pages are replicas of each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReplicaLevel {
    /// Pages of one cluster of very similar pages.
    #[default]
    Similar,
    /// Pages of one cluster of virtually identical pages.
    Identical,
    /// Pages of one component of the overlap job, which must have run for the same week.
    Overlap,
}

/// Which links hold a collection together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CollectionLinks {
    /// Links between pages of one host: a collection lies on one host.
    #[default]
    SameHost,
    /// All links.
    All,
}

/// When two trivial clusters are merged: their pages are then neighbours in collections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Merge {
    /// Every page of either cluster has its link: the study's condition.
    Strict,
    /// As `strict`, but some pages of the first cluster may link to one page of the second. It does
    /// not join the study's partial mirrors (Fig. 10 b), in which pages of the second have no copy.
    Extended,
    /// A share of the pages of either cluster has its link.
    #[default]
    Share,
}

impl Collections {
    /// Checks the rules that the types do not say.
    pub(super) fn check_values(&self) -> Result<(), String> {
        for (name, share) in [("share", self.share), ("purity", self.purity)] {
            if share.0 <= 0.0 {
                return Err(format!("{name} = {}: allowed is more than 0, up to 1", share.0));
            }
        }
        if self.least_size < 2 {
            return Err(format!("least-size = {}: allowed is 2 or more", self.least_size));
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
            |text: &str| toml::from_str::<AnyJob>(&format!("[collections]\n{text}")).map_err(|error| error.to_string());
        assert!(job("level = \"overlap\"\nmerge = \"strict\"\nlinks = \"all\"\n").is_ok());
        for (text, wanted) in [
            ("share = 0\n", "share = 0"),
            ("share = 1.5\n", "1.5"),
            ("purity = 0.0\n", "purity"),
            ("least-size = 1\n", "2 or more"),
            ("level = \"exact\"\n", "`identical`"),
            ("leve = \"similar\"\n", "`level`"),
        ] {
            let error = job(text).unwrap_err();
            assert!(error.contains(wanted) && error.contains("line "), "{text}: {error}");
        }
    }
}
