//! The card of what is written.

use anyhow::Result;

use super::flags::{ExportArgs, ExportLevel};
use crate::config::Canonical;
use crate::export::{Card, CutAt, MatchedRecords, NewName, ThresholdClusters, WhichPassages};
use crate::state::{CommittedWeek, Store};
use crate::summary::Summary;

/// The card of the dataset.
///
/// # Errors
/// If the summary of the week cannot be read.
pub(super) fn card(
    args: &ExportArgs,
    store: &Store,
    week: &CommittedWeek,
    keep: &Canonical,
    (least, clusters): (Option<u32>, Option<&ThresholdClusters>),
) -> Result<Card> {
    let mut summary = Summary::read(&store.records(week))?;
    if let Some(ThresholdClusters { clusters, clustered, .. }) = clusters {
        for of_level in summary.levels.iter_mut().filter(|of_level| of_level.level == args.level.of_documents()) {
            (of_level.clusters, of_level.clustered) = (*clusters, *clustered);
        }
        // It is that of the clusters of the run.
        summary.accuracy = None;
    }
    Ok(Card {
        summary,
        level: args.level.of_documents(),
        keep: keep.to_string(),
        what: args.what(),
        all_alone: clusters.is_some_and(|clusters| clusters.similarity.is_none()),
        fields: args.fields(),
        renamed: args.new_names()?,
        further: further(args, least, clusters),
    })
}

/// What a card says of flags that change which records there are. `least` are the words of a
/// passage at least, `clusters` those at another threshold.
fn further(args: &ExportArgs, least: Option<u32>, clusters: Option<&ThresholdClusters>) -> Vec<(&'static str, String)> {
    let mut rows = Vec::new();
    if let Some(ThresholdClusters { similarity, .. }) = clusters {
        let pairs = similarity.map_or("none".to_owned(), |least| format!("those with a similarity of {least} or more"));
        rows.push(("pairs that make clusters", pairs));
    }
    if let Some(since) = args.since {
        let which = if args.only_older { "that duplicate no older one; copies among them stay" } else { "" };
        rows.push(("only records since", format!("{since} {which}").trim_end().to_owned()));
    }
    match args.overlap {
        Some(share) => {
            // Without the noise of binary fractions.
            let (words, percent) = (args.ngram, (share.0 * 1e8).round() / 1e6);
            let which = format!(
                "those are left out of which more than {percent}% of the runs of {words} words stand before, and such records"
            );
            rows.push(("paragraphs", which));
        }
        None if args.level == ExportLevel::Paragraph => {
            rows.push(("paragraphs", "those that a record before has are left out of records that stay".to_owned()));
        }
        None => {}
    }
    if let (Some(which), Some(least)) = (args.drop_passages, least) {
        let which = match which {
            WhichPassages::Copies => "are left out, except for the first",
            WhichPassages::All => "are left out",
        };
        let lines = if args.cut == CutAt::Lines { ", as whole lines" } else { "" };
        rows.push(("passages", format!("those of {least} words and more that stand more than once {which}{lines}")));
    }
    match args.matched {
        Some(MatchedRecords::Drop) => {
            rows.push(("matches", "records that match an item of the reference are left out".to_owned()));
        }
        Some(MatchedRecords::Only) => {
            rows.push(("matches", "only records that match an item of the reference".to_owned()));
        }
        Some(MatchedRecords::Annotate) | None => {}
    }
    // Fields that records get have rows of their own.
    let fields = args.fields();
    let is_of_input = |of: &&NewName| fields.iter().all(|field| field.name() != of.old);
    for NewName { old, new } in args.rename.iter().filter(is_of_input) {
        rows.push(("renamed column", format!("`{new}` is `{old}` of the input")));
    }
    if args.revisits {
        rows.push((
            "revisits",
            "records that go are revisit records, or stay whole where none can refer to another".to_owned(),
        ));
    }
    rows
}
