//! The accuracy of clusters.

use crate::sheet::{Sheet, grouped, plural};
use crate::summary::{AccuracySummary, SharePair};

/// Of fewer pairs nothing is said.
const FEW: u64 = 10;
/// Nor is anything said of recall if fewer independent pages are expected in the sample: some
/// clusters decide it, and may be missed.
const FEW_DRAWS: f64 = 3.0;
/// If the two ends of an expectation are nearer, it is one number.
const SAME: f64 = 0.005;

/// Links, recall, the loosest cluster, and alarms.
pub(super) fn accuracy(accuracy: &AccuracySummary, sheet: &mut Sheet) {
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
    let few_pairs = |why: String| {
        format!("too few pairs to say how many of those at least {enough} similar are in one cluster: {why}")
    };
    let few_draws = accuracy.draws.filter(|draws| *draws < FEW_DRAWS);
    match (accuracy.recall, few_draws) {
        (None, _) if accuracy.unread => say(few_pairs("pages were not read again".to_owned())),
        (None, _) => {}
        (Some(recall), _) if recall.sampled < FEW => say(few_pairs(grouped(recall.sampled))),
        (Some(recall), Some(draws)) => {
            say(few_pairs(format!(
                "{}, which by the cluster sizes count as {draws:.1} draws",
                grouped(recall.sampled)
            )));
        }
        (Some(recall), None) => {
            // Pairs with a high estimate are more similar than those that are similar enough.
            let (at_most, least, of_these) = match recall.estimated {
                0 => ("", String::new(), ""),
                _ => ("at most ", format!(" of at least {:.2}", accuracy.estimates_from), "of these, "),
            };
            let expected = expected(accuracy).map_or_else(String::new, |said| format!("; {of_these}{said}"));
            say(format!(
                "{at_most}{} of the pairs at least {enough} similar are in one cluster, from {}{least}{expected}",
                of(recall),
                from(recall)
            ));
        }
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

/// A share as it is printed.
fn percent(share: f64) -> String {
    format!("{:.1}%", 100.0 * share)
}

/// What the curve says of the pairs of `recall`. Pages that are in one cluster through third pages
/// make the share larger than that of pairs that are linked directly; the curve does not say by how
/// much.
fn expected(accuracy: &AccuracySummary) -> Option<String> {
    let AccuracySummary { expected, expected_low, expected_most, expected_high, .. } = *accuracy;
    let share = expected?;
    Some(match (expected_low, expected_most, expected_high) {
        (Some(low), Some(most), Some(high)) if most - share <= SAME => {
            format!("by the curve, expected {} ({} to {})", percent(share), percent(low), percent(high))
        }
        (Some(low), ..) => format!("by the curve, at least {} expected in one cluster", percent(low)),
        // The summary was made before there were intervals.
        (None, ..) => format!("{} are linked directly, by the curve", percent(share)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text for a summary with 400 pairs of which 90% are in one cluster, after a change.
    fn text(change: impl FnOnce(&mut AccuracySummary)) -> String {
        let recall = SharePair { share: 0.9, low: 0.85, high: 0.94, sampled: 400, estimated: 0 };
        let mut accuracy = AccuracySummary {
            similarity: 0.8,
            estimates_from: 0.887,
            links: None,
            recall: Some(recall),
            expected: Some(0.88),
            expected_low: Some(0.84),
            expected_most: Some(0.884),
            expected_high: Some(0.93),
            draws: Some(40.0),
            unread: false,
            loosest: None,
            loose: Vec::new(),
            verified: false,
            largest: 0.0,
            largest_pages: 0,
        };
        change(&mut accuracy);
        let mut sheet = Sheet::default();
        super::accuracy(&accuracy, &mut sheet);
        sheet.lines(None).join("\n")
    }

    #[test]
    fn recall_has_what_is_expected() {
        let whole = text(|_| ());
        let said =
            "90.0% (85.0% to 94.0%) of the pairs at least 0.80 similar are in one cluster, from 400 sampled ones; ";
        assert!(whole.contains(&format!("{said}by the curve, expected 88.0% (84.0% to 93.0%)")), "{whole}");
        let third = text(|accuracy| accuracy.expected_most = Some(0.95));
        assert!(third.contains(&format!("{said}by the curve, at least 84.0% expected in one cluster")), "{third}");
        let old = text(|accuracy| {
            (accuracy.expected_low, accuracy.expected_most, accuracy.expected_high) = (None, None, None);
            accuracy.draws = None;
        });
        assert!(old.contains(&format!("{said}88.0% are linked directly, by the curve")), "{old}");
    }

    #[test]
    fn recall_is_not_said_of_too_few_pairs() {
        let few = "too few pairs to say how many of those at least 0.80 similar are in one cluster: ";
        let pairs = text(|accuracy| accuracy.recall.iter_mut().for_each(|recall| recall.sampled = 9));
        assert!(pairs.contains(&format!("{few}9")) && !pairs.contains('%'), "{pairs}");
        let draws = text(|accuracy| accuracy.draws = Some(2.4));
        assert!(draws.contains(&format!("{few}400, which by the cluster sizes count as 2.4 draws")), "{draws}");
        let unread = text(|accuracy| (accuracy.recall, accuracy.unread) = (None, true));
        assert!(unread.contains(&format!("{few}pages were not read again")), "{unread}");
        assert_eq!(text(|accuracy| accuracy.recall = None), "");
    }

    #[test]
    fn estimates_say_at_most() {
        let said = text(|accuracy| accuracy.recall.iter_mut().for_each(|recall| recall.estimated = 400));
        let wanted = "at most 90.0% (85.0% to 94.0%) of the pairs at least 0.80 similar are in one cluster, from 400 sampled ones, \
                      by estimates of their features of at least 0.89; of these, by the curve";
        assert!(said.contains(wanted), "{said}");
    }
}
