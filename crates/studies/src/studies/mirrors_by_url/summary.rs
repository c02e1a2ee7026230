//! The summary of mirrors by URL, with the study's published numbers beside it (Bharat and Broder
//! 1999).

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::records::Week;
use crate::tables::studies::mirrors_by_url::UrlLevelRow;

/// The summary of a mirrors-by-url job: kept as `summary.json` beside its tables, printed by `run`
/// and `show`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MirrorsByUrlSummary {
    /// The store, as the run named it.
    pub store: PathBuf,
    /// The parameters of the store, on one line.
    pub method: String,
    /// The week; `None` if the URLs are those of lists only.
    pub first: Option<Week>,
    /// The week, again: a study has a first and a last one.
    pub last: Option<Week>,
    /// The number of the commit that made the week.
    pub week_commit: Option<u64>,
    /// URLs as they were read, repeated ones included.
    pub read: u64,
    /// Distinct URLs of which it is not known that they are gone.
    pub distinct_urls: u64,
    /// Distinct URLs that are gone.
    pub gone: u64,
    /// Lines of lists without a URL.
    pub refused: u64,
    /// Hosts with URLs.
    pub hosts: u64,
    /// The URLs that a sampled host has, at least.
    pub least_urls: u64,
    /// Hosts with so many URLs.
    pub sampled_hosts: u64,
    /// The paths in their samples.
    pub sampled_paths: u64,
    /// Pairs of hosts with enough features in common.
    pub candidates: u64,
    /// Those that are listed and tested.
    pub listed: u64,
    /// Those of them of which enough paths could be compared: levels 1 to 5 and mismatch.
    pub compared: u64,
    /// Listed pairs by level: the table `levels`.
    pub levels: Vec<UrlLevelRow>,
    /// Listed pairs of levels 1 to 4.
    pub mirrors: u64,
    /// The hosts in them.
    pub mirror_hosts: u64,
    /// Pairs of levels 1 to 5, and the hosts in them: what the study counts as mirrors. `None` in
    /// summaries of older versions.
    #[serde(default)]
    pub as_the_study: Option<[u64; 2]>,
    /// Groups of hosts that are mirrors of each other.
    pub groups: u64,
    /// Tests that were not made.
    pub unknown_tests: u64,
    /// URLs that a crawler would fetch for them.
    pub probes: u64,
    /// Crawl files that were read for tests.
    pub files: u64,
    /// Pages and failed downloads in them that no test asks for, and records that cannot be read.
    pub passed_over: u64,
    /// Pairs of hosts by the ways that find them; `None` without tables of the mirrors job for the
    /// week.
    pub ways: Option<MirrorWays>,
    /// Pairs of directories; `None` without tables of the collections job for the week.
    pub directories: Option<u64>,
    /// What the study found.
    pub published: PublishedUrls,
}

/// Mirrors by the ways that find them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MirrorWays {
    /// By content and by URL.
    pub both: u64,
    /// By content only.
    pub by_content: u64,
    /// By URL only.
    pub by_url: u64,
}

/// The study's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublishedUrls {
    /// URLs.
    pub urls: u64,
    /// Hosts.
    pub hosts: u64,
    /// Candidates.
    pub candidates: u64,
    /// Candidates of which both hosts answered.
    pub tested: u64,
    /// Mirrors: levels 1 to 5.
    pub mirrors: u64,
    /// Hosts in them.
    pub mirror_hosts: u64,
}

/// What the study found (section 5).
pub const PUBLISHED_URLS: PublishedUrls = PublishedUrls {
    urls: 179_369_374,
    hosts: 238_679,
    candidates: 29_336,
    tested: 21_820,
    mirrors: 16_925,
    mirror_hosts: 22_363,
};
