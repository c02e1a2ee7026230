//! The accuracy of clusters.

use super::{Sheet, grouped, plural};
use crate::summary::{AccuracySummary, SharePair};

/// Of fewer pairs nothing is said.
const FEW: u64 = 10;

/// Links, recall, the loosest cluster, and alarms.
pub(super) fn accuracy(accuracy: &AccuracySummary, sheet: &mut Sheet) {
    let percent = |share: f64| format!("{:.1}%", 100.0 * share);
    let of = |SharePair { share, low, high, .. }: SharePair| {
        format!("{} ({} to {})", percent(share), percent(low), percent(high))
    };
    let enough = format!("{:.2}", accuracy.similarity);
    let from = |SharePair { sampled, estimated, .. }: SharePair| match estimated {
        0 => format!("{} sampled ones", grouped(sampled)),
        estimated if estimated == sampled => {
            format!("{} sampled ones, by estimates of their features", grouped(sampled))
        }
        _ => {
            format!("{} sampled ones, {} of them by estimates of their features", grouped(sampled), grouped(estimated))
        }
    };
    let mut name = "Accuracy";
    let mut say = |said: String| sheet.fact(std::mem::take(&mut name), said);
    if let Some(links) = accuracy.links {
        say(match links.sampled {
            0..FEW if links.low < links.high => {
                format!("too few links to say how many are at least {enough} similar: {}", grouped(links.sampled))
            }
            _ => format!("{} of the links are at least {enough} similar, from {}", of(links), from(links)),
        });
    }
    if let Some(recall) = accuracy.recall {
        let expected = accuracy
            .expected
            .map_or_else(String::new, |share| format!("; {} are linked directly, by the curve", percent(share)));
        say(match recall.sampled {
            0..FEW => format!(
                "too few pairs to say how many of those at least {enough} similar are in one cluster: {}",
                grouped(recall.sampled)
            ),
            _ => format!(
                "{} of the pairs at least {enough} similar are in one cluster, from {}{}{expected}",
                of(recall),
                from(recall),
                if recall.estimated > 0 {
                    format!(" of at least {:.2}", accuracy.estimates_from)
                } else {
                    String::new()
                }
            ),
        });
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
