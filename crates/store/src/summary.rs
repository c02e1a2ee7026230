//! The summary of a week: its totals at each level, its largest clusters, and the changes since the
//! week before.

mod accuracy;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::config::{CURVE, Method};
use crate::records::{Level, Week};
use crate::state::{ReadingCounts, WeekJournal};
use crate::stats::Fit;
use crate::structures::CompactSort;
use crate::tables::{LargestRow, SummaryRow};

pub use accuracy::{AccuracySummary, LoosestCluster, SharePair};

/// The summary of a week: kept as `summary.json` in the week's folder, printed by `run` and `show`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The week.
    pub week: Week,
    /// The store, as the run that made the week named it.
    pub store: PathBuf,
    /// The study's parameters, on one line.
    pub method: String,
    /// How likely two documents are linked, by their similarity.
    #[serde(default)]
    pub curve: Vec<CurvePoint>,
    /// The number of input files.
    pub files: u64,
    /// The size of the input files as stored, in bytes.
    pub input_bytes: u64,
    /// How right the clusters are, from samples; none if it was not measured.
    #[serde(default)]
    pub accuracy: Option<AccuracySummary>,
    /// The counts of records read, passed over and rejected.
    pub counts: ReadingCounts,
    /// The changes since the week before; none in a store's first week.
    pub since: Option<Since>,
    /// The totals of each level, from very similar pages to exact copies.
    pub levels: Vec<LevelSummary>,
}

/// A point of the S-curve: how likely two documents of some similarity are linked directly
/// (Fetterly 2004, section 2).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CurvePoint {
    /// The similarity of the two documents, 0 to 1.
    pub similarity: f64,
    /// The probability that they share enough supershingles, 0 to 1.
    pub chance: f64,
}

impl CurvePoint {
    /// The points of the curve of a method at the similarities of [`CURVE`].
    pub fn of_method(method: &Method) -> Vec<CurvePoint> {
        CURVE.map(|similarity| CurvePoint { similarity, chance: method.shape().chance(similarity) }).to_vec()
    }
}

/// The changes of a week since the week before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Since {
    /// The week before.
    pub week: Week,
    /// How the clusters were computed (full or delta), and the reason for that.
    pub found: String,
    /// URLs that no earlier week had.
    pub new_urls: u64,
    /// URLs of earlier weeks that have no page in this week.
    pub not_downloaded: u64,
    /// The number of these URLs for each reason. Beyond the 100 most frequent reasons, the rest is
    /// [`OTHER_REASONS`].
    #[serde(default)]
    pub missing: BTreeMap<String, u64>,
    /// For each kind of event of clusters: the number of events, and of their documents.
    pub changes: BTreeMap<String, (u64, u64)>,
}

/// The name of the sum of all reasons that are not counted separately.
pub const OTHER_REASONS: &str = "other reasons";
/// How many reasons a summary counts separately.
const REASONS: usize = 100;

impl Since {
    /// Sums counts by reason: the most frequent reasons separately, the rest as [`OTHER_REASONS`].
    ///
    /// ```
    /// use nigh_store::summary::Since;
    /// let counts = [("timeout", 2), ("status 404", 5), ("timeout", 1)];
    /// let sums = Since::most(counts.map(|(reason, count)| (reason.to_owned(), count)).to_vec());
    /// assert_eq!(sums.into_iter().collect::<Vec<_>>(), [("status 404".to_owned(), 5), ("timeout".to_owned(), 3)]);
    /// ```
    pub fn most(counts: Vec<(String, u64)>) -> BTreeMap<String, u64> {
        let mut sums: BTreeMap<String, u64> = BTreeMap::new();
        for (reason, count) in counts {
            *sums.entry(reason).or_default() += count;
        }
        let mut rest = sums.remove(OTHER_REASONS).unwrap_or(0);
        let mut sums: Vec<(String, u64)> = sums.into_iter().collect();
        sums.sort_items_by_key(|(_, count)| std::cmp::Reverse(*count));
        rest += sums.drain(REASONS.min(sums.len())..).map(|(_, count)| count).sum::<u64>();
        sums.extend((rest > 0).then(|| (OTHER_REASONS.to_owned(), rest)));
        sums.into_iter().collect()
    }
}

/// The totals of one level in a [`Summary`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LevelSummary {
    /// The level.
    pub level: Level,
    /// Pages of the week.
    pub documents: u64,
    /// Pages in clusters of at least two pages.
    pub clustered: u64,
    /// Clusters of at least two pages.
    pub clusters: u64,
    /// `clustered` less `clusters`: pages that go if one of each cluster stays.
    pub duplicates: u64,
    /// `duplicates / documents`; 0 for a week without pages.
    pub share: f64,
    /// The exponent of the power law of cluster sizes, to three decimals, if there are enough
    /// clusters to fit one.
    pub exponent: Option<f64>,
    /// The smallest cluster size that the power law is fitted to.
    pub x_min: Option<u64>,
    /// The largest clusters, the largest first.
    pub largest: Vec<LargestCluster>,
}

/// One of the largest clusters: a row of the table `largest`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LargestCluster {
    /// Pages of the cluster.
    pub urls: u64,
    /// Distinct hosts of these pages.
    pub hosts: u64,
    /// Distinct IP addresses of these pages.
    pub machines: u64,
    /// Hosts of these pages without a known IP address.
    pub unresolved: u64,
    /// The title of the root.
    pub title: String,
    /// The name of the root: its URL, its id, or its file and place.
    pub name: String,
    /// The id of a very similar cluster; none in summaries of a version that did not store it.
    #[serde(default)]
    pub cluster_id: Option<i64>,
}

impl From<&LargestRow> for LargestCluster {
    fn from(row: &LargestRow) -> LargestCluster {
        LargestCluster {
            urls: row.urls as u64,
            hosts: row.hosts as u64,
            machines: row.machines as u64,
            unresolved: row.unresolved as u64,
            title: row.title.clone(),
            name: row.name.clone(),
            cluster_id: row.cluster_id,
        }
    }
}

impl LevelSummary {
    /// Computes the totals of a level. `sizes` has pairs (size, number of clusters) for all sizes
    /// of at least two pages.
    ///
    /// ```
    /// use nigh_kernels::records::Level;
    /// use nigh_store::summary::LevelSummary;
    /// // Of 20 pages, 4 are in two pairs and 5 in one cluster of five.
    /// let level = LevelSummary::new(Level::Similar, 20, &[(2, 2), (5, 1)], None, Vec::new());
    /// assert_eq!((level.clustered, level.clusters, level.duplicates), (9, 3, 6));
    /// assert_eq!(level.share, 0.3);
    /// ```
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

    /// The level's row in the table `summary`.
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
    /// The summary of a week; all its waves must be committed in `journal`.
    pub fn new(
        week: Week,
        store: &Path,
        method: &Method,
        journal: &WeekJournal,
        since: Option<Since>,
        levels: Vec<LevelSummary>,
    ) -> Summary {
        Summary {
            week,
            store: store.to_owned(),
            method: method.to_string(),
            curve: CurvePoint::of_method(method),
            accuracy: None,
            files: journal.key.files as u64,
            input_bytes: journal.key.bytes,
            counts: journal.counts.clone(),
            since,
            levels,
        }
    }

    /// Reads `summary.json` from the folder of a committed week.
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
    fn the_most_frequent_reasons_are_counted_and_the_rest_is_summed() {
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
