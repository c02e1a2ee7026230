//! The text of the accuracy of clusters.

use super::grouped;
use crate::summary::{AccuracySummary, SharePair};

/// Some lines: links, recall, the loosest cluster, and alarms.
pub fn accuracy(accuracy: &AccuracySummary) -> Vec<String> {
    let percent = |share: f64| format!("{:.1}%", 100.0 * share);
    let of = |SharePair { share, low, high, .. }: SharePair| {
        format!("{} ({} to {})", percent(share), percent(low), percent(high))
    };
    let enough = format!("{:.2}", accuracy.similarity);
    let mut lines = Vec::new();
    if let Some(links) = accuracy.links {
        let sampled = grouped(links.sampled);
        lines.push(format!(
            "Accuracy {} of the links are at least {enough} similar, from {sampled} sampled ones",
            of(links)
        ));
    }
    if let Some(recall) = accuracy.recall {
        let expected = accuracy
            .expected
            .map_or_else(String::new, |share| format!("; {} are linked directly, by the curve", percent(share)));
        let sampled = grouped(recall.sampled);
        lines.push(format!(
            "         {} of the pairs at least {enough} similar are in one cluster, from {sampled} sampled ones{expected}",
            of(recall)
        ));
    }
    if let Some(loosest) = &accuracy.loosest {
        lines.push(format!(
            "         loosest of the largest clusters: {} pages of mean similarity {:.2}, {}",
            grouped(loosest.pages),
            loosest.similarity,
            loosest.name
        ));
    }
    lines.extend(accuracy.alarms().into_iter().map(|alarm| format!("ALARM    {alarm}")));
    lines
}
