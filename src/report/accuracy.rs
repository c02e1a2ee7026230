//! The accuracy of clusters.

use super::{Sheet, grouped, plural};
use crate::summary::{AccuracySummary, SharePair};

/// Links, recall, the loosest cluster, and alarms.
pub(super) fn accuracy(accuracy: &AccuracySummary, sheet: &mut Sheet) {
    let percent = |share: f64| format!("{:.1}%", 100.0 * share);
    let of = |SharePair { share, low, high, .. }: SharePair| {
        format!("{} ({} to {})", percent(share), percent(low), percent(high))
    };
    let enough = format!("{:.2}", accuracy.similarity);
    let mut name = "Accuracy";
    let mut say = |said: String| sheet.fact(std::mem::take(&mut name), said);
    if let Some(links) = accuracy.links {
        let sampled = grouped(links.sampled);
        say(format!("{} of the links are at least {enough} similar, from {sampled} sampled ones", of(links)));
    }
    if let Some(recall) = accuracy.recall {
        let expected = accuracy
            .expected
            .map_or_else(String::new, |share| format!("; {} are linked directly, by the curve", percent(share)));
        let sampled = grouped(recall.sampled);
        say(format!(
            "{} of the pairs at least {enough} similar are in one cluster, from {sampled} sampled ones{expected}",
            of(recall)
        ));
    }
    if let Some(loosest) = &accuracy.loosest {
        say(format!(
            "loosest of the largest clusters: {} of mean similarity {:.2}, {}",
            plural(loosest.pages, "page"),
            loosest.similarity,
            loosest.name
        ));
    }
    accuracy.alarms().into_iter().for_each(|alarm| sheet.fact("ALARM", alarm));
}
