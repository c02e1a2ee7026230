//! The numbers of a week that a person asks for first.

mod evolution;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::config::Method;
use crate::records::{Level, Week};
use crate::state::{Counts, Journal};
use crate::stats::Fit;
use crate::tables::{LargestRow, SummaryRow};

pub use evolution::{ChangeCount, ClassRetention, EvolutionSummary, HostChanges, PUBLISHED_UNCHANGED, Turnover};

/// The summary of a week: kept with it as `summary.json`, printed by `run` and `show`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The week.
    pub week: Week,
    /// The store, as the run that made the week named it.
    pub store: PathBuf,
    /// The parameters, as one line.
    pub method: String,
    /// Input files.
    pub files: u64,
    /// Their bytes, as stored.
    pub input_bytes: u64,
    /// What was counted while reading.
    pub counts: Counts,
    /// Of a later week: how its clusters were found, and what became of last week's.
    pub since: Option<Since>,
    /// From very similar to exact copy.
    pub levels: Vec<LevelSummary>,
}

/// What a week's summary says of the week before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Since {
    /// The week before.
    pub week: Week,
    /// How the clusters were found, and why so.
    pub found: String,
    /// URLs that no earlier week had.
    pub new_urls: u64,
    /// URLs of earlier weeks that have no page this week.
    pub not_downloaded: u64,
    /// These by reason; of more than a hundred the rest as [`OTHER_REASONS`].
    #[serde(default)]
    pub missing: BTreeMap<String, u64>,
    /// Events of clusters: how many, and the documents that make them.
    pub changes: BTreeMap<String, (u64, u64)>,
}

/// What reasons are summed under that are too many to be counted apart.
pub const OTHER_REASONS: &str = "other reasons";
/// Reasons that a summary keeps apart.
const REASONS: usize = 100;

impl Since {
    /// The sums of counts by reason: the most frequent reasons, and the rest as one.
    pub fn most(counts: Vec<(String, u64)>) -> BTreeMap<String, u64> {
        let mut sums: BTreeMap<String, u64> = BTreeMap::new();
        for (reason, count) in counts {
            *sums.entry(reason).or_default() += count;
        }
        let mut rest = sums.remove(OTHER_REASONS).unwrap_or(0);
        let mut sums: Vec<(String, u64)> = sums.into_iter().collect();
        sums.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        rest += sums.drain(REASONS.min(sums.len())..).map(|(_, count)| count).sum::<u64>();
        sums.extend((rest > 0).then(|| (OTHER_REASONS.to_owned(), rest)));
        sums.into_iter().collect()
    }
}

/// One level's part of a [`Summary`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LevelSummary {
    /// The level.
    pub level: Level,
    /// Pages of the week.
    pub documents: u64,
    /// Pages in clusters of at least two.
    pub clustered: u64,
    /// Clusters of at least two pages.
    pub clusters: u64,
    /// Clustered pages but one a cluster.
    pub duplicates: u64,
    /// Duplicates over documents.
    pub share: f64,
    /// The exponent of the power law of cluster sizes (3 decimals), where there are enough clusters to fit one.
    pub exponent: Option<f64>,
    /// The smallest size that it is fitted to.
    pub x_min: Option<u64>,
    /// The largest clusters.
    pub largest: Vec<LargestCluster>,
}

/// A large cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LargestCluster {
    /// Its pages.
    pub urls: u64,
    /// Their hosts.
    pub hosts: u64,
    /// Their machines.
    pub machines: u64,
    /// Hosts without a known address.
    pub unresolved: u64,
    /// The canonical page's title.
    pub title: String,
    /// The canonical page's URL.
    pub url: String,
}

impl From<&LargestRow> for LargestCluster {
    fn from(row: &LargestRow) -> LargestCluster {
        LargestCluster {
            urls: row.urls as u64,
            hosts: row.hosts as u64,
            machines: row.machines as u64,
            unresolved: row.unresolved as u64,
            title: row.title.clone(),
            url: row.url.clone(),
        }
    }
}

impl LevelSummary {
    /// A level's numbers, from (size, clusters) of its clusters of at least two pages.
    pub fn new(
        level: Level,
        documents: u64,
        sizes: &[(u64, u64)],
        fit: Option<Fit>,
        largest: Vec<LargestCluster>,
    ) -> LevelSummary {
        let clustered = sizes.iter().map(|(size, clusters)| size * clusters).sum();
        let clusters = sizes.iter().map(|(_, clusters)| clusters).sum();
        let duplicates = clustered - clusters;
        LevelSummary {
            level,
            documents,
            clustered,
            clusters,
            duplicates,
            share: if documents == 0 { 0.0 } else { duplicates as f64 / documents as f64 },
            exponent: fit.map(|fit| (fit.exponent * 1000.0).round() / 1000.0),
            x_min: fit.map(|fit| fit.x_min),
            largest,
        }
    }

    /// The level's row of the `summary` table.
    pub fn row(&self) -> SummaryRow {
        SummaryRow {
            level: self.level.name(),
            documents: self.documents as i64,
            clustered: self.clustered as i64,
            clusters: self.clusters as i64,
            duplicates: self.duplicates as i64,
            share: self.share,
            exponent: self.exponent,
            x_min: self.x_min.map(|x_min| x_min as i64),
        }
    }
}

impl Summary {
    /// The summary of a week whose waves are all committed.
    pub fn new(
        week: Week,
        store: &Path,
        method: &Method,
        journal: &Journal,
        since: Option<Since>,
        levels: Vec<LevelSummary>,
    ) -> Summary {
        Summary {
            week,
            store: store.to_owned(),
            method: method.to_string(),
            files: journal.key.files as u64,
            input_bytes: journal.key.bytes,
            counts: journal.counts.clone(),
            since,
            levels,
        }
    }

    /// Reads the summary of a committed week's folder.
    ///
    /// # Errors
    /// Names the file that is missing or damaged.
    pub fn read(week: &Path) -> Result<Summary> {
        let path = week.join("summary.json");
        let text = std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        serde_json::from_slice(&text).with_context(|| format!("{} is damaged", path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_frequent_reasons_are_kept_and_the_rest_is_summed() {
        let mut counts: Vec<(String, u64)> = (0..300).map(|i| (format!("reason {i:03}"), 1 + i / 100)).collect();
        counts.extend([("timeout".into(), 2), (OTHER_REASONS.into(), 7), ("timeout".into(), 3)]);
        let most = Since::most(counts.clone());
        assert_eq!(most.len(), REASONS + 1);
        assert_eq!((most["timeout"], most.get("reason 298"), most.get("reason 299")), (5, Some(&3), None));
        assert_eq!(most[OTHER_REASONS], 7 + 100 + 200 + 3);
        assert_eq!(most.values().sum::<u64>(), counts.iter().map(|(_, count)| count).sum::<u64>());
        assert!(Since::most(Vec::new()).is_empty());
    }
}
