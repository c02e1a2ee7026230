//! What the command prints of what was written.

use serde::Serialize;

use super::flags::{ExportArgs, ExportLevel};
use crate::config::Bytes;
use crate::export::{
    AddedField, ChosenRows, CutAt, Exported, MatchedRecords, RowsAt, ThresholdClusters, What, WhichPassages,
};
use crate::records::Week;
use crate::sheet::{grouped, plural};

/// The result of the command, as `--json` prints it.
#[derive(Debug, Serialize)]
pub(super) struct ExportSummary {
    pub(super) week: Week,
    pub(super) files: u64,
    #[serde(flatten)]
    pub(super) counts: Exported,
    /// If clusters were taken at another threshold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) threshold: Option<ThresholdSummary>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) index: Option<IndexSummary>,
}

/// The threshold of clusters.
#[derive(Debug, Serialize)]
pub(super) struct ThresholdSummary {
    /// The similarity of pairs at least; none if each document is alone.
    similarity: Option<f64>,
    /// Clusters of two and more documents.
    clusters: u64,
    /// How many records stay, if their number was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    keep_rows: Option<ChosenRows>,
}

impl ThresholdSummary {
    pub(super) fn of(clusters: &ThresholdClusters) -> ThresholdSummary {
        let ThresholdClusters { similarity, clusters, chosen, .. } = *clusters;
        ThresholdSummary { similarity, clusters, keep_rows: chosen }
    }

    /// What is said of it.
    fn text(&self) -> String {
        let Some(ChosenRows { wanted, at, above, below }) = self.keep_rows else {
            let similarity = self.similarity.unwrap_or_default();
            return format!(
                "        clusters are of pairs with a similarity of {similarity} or more: {}\n",
                grouped(self.clusters)
            );
        };
        let rows = |of: RowsAt| plural(of.rows, "record");
        let wanted = grouped(wanted);
        let mut text = match at.similarity {
            Some(least) => format!(
                "        {} stay ({wanted} wanted): clusters are of pairs with a similarity of {least} or more\n",
                rows(at)
            ),
            None => format!("        all {} stay ({wanted} wanted)\n", rows(at)),
        };
        let place = |of: RowsAt| of.similarity.map_or("if none goes".to_owned(), |least| format!("at {least}"));
        let next: Vec<String> =
            above.into_iter().chain(below).map(|of| format!("{} {}", rows(of), place(of))).collect();
        if !next.is_empty() {
            text.push_str(&format!("        the next thresholds: {}\n", next.join(", ")));
        }
        text
    }
}

/// The lines of the indexes.
#[derive(Debug, Serialize)]
pub(super) struct IndexSummary {
    pub(super) written: u64,
    pub(super) removed: u64,
}

/// The result as text.
pub(super) fn text(args: &ExportArgs, summary: ExportSummary) -> String {
    let ExportSummary { week, files, counts, threshold, index } = summary;
    let of = match args.what() {
        What::Kept => "those that stay",
        What::Removed => "those that go",
        What::Annotated => "with their clusters",
    };
    let (written, documents) = (grouped(counts.written), grouped(counts.documents));
    let mut text = match (&args.out, &args.list) {
        (Some(out), _) => {
            let (files, s) = (grouped(files), if files == 1 { "" } else { "s" });
            format!(
                "Week {week}: wrote {written} of {documents} records ({of}) to {files} file{s} in {}\n",
                out.display()
            )
        }
        (None, Some(list)) => {
            format!("Week {week}: listed {written} of {documents} records ({of}) in {}\n", list.display())
        }
        (None, None) => String::new(),
    };
    if let Some(threshold) = threshold {
        text.push_str(&threshold.text());
    }
    if let Some(matched) = args.matched.filter(|_| args.out.is_some()) {
        let name = AddedField::Matches.name();
        let name = args.rename.iter().find(|of| of.old == name).map_or(name, |of| of.new.as_str());
        let what = match matched {
            MatchedRecords::Drop => "they go".to_owned(),
            MatchedRecords::Only => "the others go".to_owned(),
            MatchedRecords::Annotate => format!("`{name}` says so"),
        };
        let count = grouped(counts.matched);
        text.push_str(&format!("        {count} of the documents match an item of the reference: {what}\n"));
    }
    if args.revisits {
        text.push_str(&format!(
            "        and {} revisits of records that stay\n",
            grouped(counts.revisits - counts.outside)
        ));
        if counts.outside > 0 {
            text.push_str(&format!(
                "        and {} revisits of records of earlier weeks: keep the archives of these (--alone refers to none of them)\n",
                grouped(counts.outside)
            ));
        }
        text.push_str(&format!(
            "        and {} records that go, kept whole: no record that stays has their payload\n",
            grouped(counts.kept_whole)
        ));
    }
    if args.near_duplicates {
        text.push_str(&format!(
            "        and {} metadata records of near-duplicates\n",
            grouped(counts.near_duplicates)
        ));
    }
    if counts.others > 0 {
        text.push_str(&format!("        and {} records that are no documents\n", grouped(counts.others)));
    }
    if args.level == ExportLevel::Paragraph {
        let which = if args.overlap.is_some() { "" } else { "repeated " };
        text.push_str(&format!(
            "        without {} {which}paragraphs ({}), and without {} records of which nothing was left\n",
            grouped(counts.paragraphs),
            Bytes(counts.paragraph_bytes),
            grouped(counts.emptied)
        ));
    }
    if let Some(which) = args.drop_passages {
        let which = if which == WhichPassages::All { "repeated passages" } else { "copies of passages" };
        let whole = if args.cut == CutAt::Lines { "whole lines of " } else { "" };
        text.push_str(&format!(
            "        without {whole}{} {which} ({}), and without {} records of which nothing was left\n",
            grouped(counts.passages),
            Bytes(counts.passage_bytes),
            grouped(counts.emptied)
        ));
    }
    if let (Some(IndexSummary { written, removed }), Some(path)) = (index, &args.cdxj) {
        text.push_str(&format!(
            "        indexed {} captures that are written in {}, and {} that are not beside it\n",
            grouped(written),
            path.display(),
            grouped(removed)
        ));
    }
    for (count, what) in counts.left_out.reasons().into_iter().filter(|(count, _)| *count > 0) {
        text.push_str(&format!("        left out: {} {what}\n", grouped(count)));
    }
    text
}

#[cfg(test)]
mod tests {
    use clap::{Args as _, FromArgMatches as _};

    use super::*;

    #[test]
    fn a_field_is_named_as_it_is_written() {
        let command = ExportArgs::augment_args(clap::Command::new("export"));
        let said = |flags: &[&str]| {
            let arguments = [&["export", "store", "--out", "out", "--matched", "annotate"], flags].concat();
            let args = ExportArgs::from_arg_matches(&command.clone().get_matches_from(arguments)).unwrap();
            let week = "2024-01-08".parse().unwrap();
            text(&args, ExportSummary { week, files: 1, counts: Exported::default(), threshold: None, index: None })
        };
        assert!(said(&[]).contains("match an item of the reference: `nigh_matches` says so"));
        assert!(said(&["--rename", "nigh_matches=seen"]).contains("match an item of the reference: `seen` says so"));
    }
}
