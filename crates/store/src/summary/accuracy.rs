//! How right the clusters of a week are, from samples: the totals of the table `accuracy`.

use serde::{Deserialize, Serialize};

/// Clusters with fewer pages give no alarm, however large a part of a small crawl they are.
const SMALL: u64 = 100;
/// A cluster with a larger share of all pages gives an alarm.
const LARGE_SHARE: f64 = 0.01;

/// The accuracy of the clusters of a week.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AccuracySummary {
    /// The similarity that counts as enough.
    pub similarity: f64,
    /// The estimate from which on a pair of which only features were compared counts for `recall`.
    #[serde(default)]
    pub estimates_from: f64,
    /// The share of links that are similar enough.
    pub links: Option<SharePair>,
    /// The share of similar pairs that are in one cluster.
    pub recall: Option<SharePair>,
    /// The share of these pairs that the S-curve predicts to be linked directly.
    pub expected: Option<f64>,
    /// The lower end of the 95% interval of the share in one cluster that the curve predicts: that
    /// of `expected`. `None` in old summaries.
    #[serde(default)]
    pub expected_low: Option<f64>,
    /// The share of these pairs that the curve predicts to be in one cluster at most, also through
    /// third pages.
    #[serde(default)]
    pub expected_most: Option<f64>,
    /// The upper end of the interval: that of `expected_most`.
    #[serde(default)]
    pub expected_high: Option<f64>,
    /// As how many independent pages the sampled ones are expected to count for `recall`, by the
    /// sizes of all clusters. `None` without clusters, and in old summaries.
    #[serde(default)]
    pub draws: Option<f64>,
    /// Whether pages that may be similar were compared by their features only, and `recall` is
    /// `None` for that.
    #[serde(default)]
    pub unread: bool,
    /// Of the largest clusters, that whose members are least similar.
    pub loosest: Option<LoosestCluster>,
    /// Large clusters in which fewer than half of the pairs are similar, with 95% confidence: by
    /// the upper end of the interval.
    pub loose: Vec<LoosestCluster>,
    /// Whether the clusters are verified.
    pub verified: bool,
    /// The share of all pages that is in the largest cluster.
    pub largest: f64,
    /// Its pages.
    pub largest_pages: u64,
}

/// A share from a sample of pairs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SharePair {
    /// The share, 0 to 1.
    pub share: f64,
    /// The lower end of its 95% confidence interval.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
    /// The pairs that were compared.
    pub sampled: u64,
    /// Those of them of which only features were compared.
    #[serde(default)]
    pub estimated: u64,
}

/// A cluster whose members are not very similar.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoosestCluster {
    /// Its root.
    pub root: i64,
    /// The name of its root.
    pub name: String,
    /// Its pages.
    pub pages: u64,
    /// The mean similarity of sampled pairs of its pages.
    pub similarity: f64,
    /// The share of these pairs that are similar enough.
    pub share: f64,
    /// The upper end of the confidence interval of that share.
    pub high: f64,
}

impl AccuracySummary {
    /// Whether a cluster gives an alarm because its pages are not similar.
    pub fn is_loose(cluster: &LoosestCluster) -> bool {
        cluster.pages >= SMALL && cluster.high < 0.5
    }

    /// What a user should look at: a cluster that is too large, or whose pages are not similar.
    pub fn alarms(&self) -> Vec<String> {
        let loose = self.loose.iter().map(|LoosestCluster { name, pages, share, .. }| {
            let advice = if self.verified { "" } else { ". `verify` in the method splits such clusters" };
            format!(
                "the cluster of {name} ({pages} pages) holds pages that are not similar: of its sampled pairs {:.0}% are{advice}",
                100.0 * share
            )
        });
        let is_large = self.largest > LARGE_SHARE && self.largest_pages >= SMALL;
        let large = is_large.then(|| format!("the largest cluster has {:.1}% of all pages", 100.0 * self.largest));
        loose.chain(large).collect()
    }
}
