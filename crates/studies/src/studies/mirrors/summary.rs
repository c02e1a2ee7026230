//! The summary of mirrors by content, with the study's published numbers beside it (Fetterly 2004,
//! section 4).

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::records::Week;

/// The summary of the mirrors job: kept as `summary.json` beside its tables, printed by `run` and
/// `show`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MirrorsSummary {
    /// The store, as the run named it.
    pub store: PathBuf,
    /// The study's parameters, on one line.
    pub method: String,
    /// The first week.
    pub first: Week,
    /// The last week.
    pub last: Week,
    /// The pages that the hosts of a pair have in common, at least.
    pub least_pages: u32,
    /// Whether some page has an address, or a list was given. Without, no pair is an alias or
    /// unresolved.
    pub addresses: bool,
    /// What each week has.
    pub mirrors: Vec<WeekOfMirrors>,
    /// The study's numbers of its first week.
    pub published: MirrorCounts,
    /// The study's share of mirrored pages.
    pub published_share: f64,
    /// Changes of pages by the weeks until the mirror has them; `None` if not until the last week.
    pub lags: Vec<(Option<u64>, u64)>,
}

/// The mirrors of a week.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WeekOfMirrors {
    /// The week.
    pub week: Week,
    /// The number of the commit that made the week.
    #[serde(default)]
    pub week_commit: u64,
    /// The number of pairs by class.
    #[serde(flatten)]
    pub counts: MirrorCounts,
    /// The same as the study counts: beside its numbers. `None` in summaries of older versions.
    #[serde(default)]
    pub study: Option<MirrorCounts>,
    /// Hosts of which most URLs redirect to another host, without enough pages in common with it.
    pub redirect: u64,
    /// Groups of hosts that are mirrors of each other.
    pub groups: u64,
    /// The hosts in them.
    pub hosts: u64,
    /// Pairs that were no mirrors the week before; all of the first week.
    pub begun: u64,
    /// Mirrors of the week before that are none now.
    pub ended: u64,
    /// Pages that mirrors have in common.
    pub mirrored: u64,
    /// All pages of the week.
    pub documents: u64,
    /// The first over the second; `None` if there are no pages.
    pub share: Option<f64>,
    /// The share of mirrored pages by the pairs that the study counts; `None` if there are no
    /// pages, and in summaries of older versions.
    #[serde(default)]
    pub study_share: Option<f64>,
    /// The mean share of the paths of a host that its mirror has, of the host of each pair that has
    /// more; `None` without mirrors.
    pub coverage: Option<f64>,
}

/// The number of pairs by class; `raw` is the sum of the five that follow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MirrorCounts {
    /// All pairs that share enough pages.
    pub raw: u64,
    /// Hosts with themselves.
    pub auto: u64,
    /// Two names of one host.
    pub alias: u64,
    /// Pairs with a host that has no address.
    pub unresolved: u64,
    /// Pairs of hosts that share one cluster which is on very many hosts.
    pub farm: u64,
    /// The others.
    pub kept: u64,
    /// Kept pairs of which the names differ only in a leading `www.`.
    pub www: u64,
    /// Kept pairs with enough pages that match in the last arc of their paths.
    pub last_arc: u64,
    /// Kept pairs with enough pages that match in the last four arcs: these are mirrors.
    pub last_four_arcs: u64,
}

/// The study's numbers of its first week (Fetterly 2004, section 4). It has no farms.
pub const PUBLISHED_MIRRORS: MirrorCounts = MirrorCounts {
    raw: 231_709,
    auto: 118_119,
    alias: 71_246,
    unresolved: 4_977,
    farm: 0,
    kept: 37_367,
    www: 4_351,
    last_arc: 31_808,
    last_four_arcs: 27_309,
};

/// The study's share of pages that are mirrored.
pub const PUBLISHED_MIRRORED: f64 = 0.049;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_classes_add_up() {
        let MirrorCounts { raw, auto, alias, unresolved, farm, kept, .. } = PUBLISHED_MIRRORS;
        assert_eq!(raw, auto + alias + unresolved + farm + kept);
    }
}
