//! The card of a dataset: `README.md`, which says what was exported and how, with a head in YAML
//! that the Hugging Face hub reads.
//!
//! It has nothing that differs from one run of the command to the next.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::dataset_split::DatasetSplit;
use super::exported::{AddedField, Exported, What};
use crate::export::renamed::NewNames;
use crate::records::Level;
use crate::summary::{SharePair, Summary};

/// The name of the file.
pub(in crate::export) const CARD: &str = "README.md";

/// The files that are named, at most; of more there are patterns.
const MOST_PATHS: usize = 100;

/// What a card says besides the counts of what was written.
pub struct Card {
    /// The summary of the week.
    pub summary: Summary,
    /// The level of the clusters.
    pub level: Level,
    /// Which records of a cluster stay, as the user writes it.
    pub keep: String,
    /// Which records are written.
    pub what: What,
    /// Whether each record is in a cluster of its own, so that copies stay.
    pub all_alone: bool,
    /// The fields that the records got.
    pub fields: Vec<AddedField>,
    /// The columns and fields that are written under other names.
    pub renamed: NewNames,
    /// What else was asked for, as rows of the table: a name and what it means.
    pub further: Vec<(&'static str, String)>,
}

impl Card {
    /// The text of the card for files at these paths with these counts.
    pub(in crate::export) fn text(&self, paths: &BTreeSet<&str>, counts: &Exported) -> String {
        let Card { summary, level, keep, what, all_alone, fields, renamed, further } = self;
        let mut text = String::from("---\n");
        let splits = patterns(paths);
        if !splits.is_empty() {
            text.push_str("configs:\n- config_name: default\n  data_files:\n");
        }
        for (split, patterns) in splits {
            _ = writeln!(text, "  - split: {}\n    path:", split.name());
            // A string of JSON is one of YAML.
            patterns.iter().for_each(|pattern| _ = writeln!(text, "    - {}", serde_json::json!(pattern)));
        }
        _ = writeln!(text, "size_categories:\n- {}", size_category(counts.written));
        text.push_str("tags:\n- deduplicated\n- nigh\n---\n\n");
        let (of, removed) = match what {
            What::Kept if *all_alone => ("with near-duplicates, as they are", counts.documents - counts.written),
            What::Kept if *level == Level::Exact => {
                ("without exact copies", counts.documents - counts.written - counts.revisits - counts.kept_whole)
            }
            What::Kept => {
                ("without near-duplicates", counts.documents - counts.written - counts.revisits - counts.kept_whole)
            }
            What::Removed => ("of near-duplicates that go", counts.documents - counts.written),
            What::Annotated => ("with their clusters of near-duplicates", 0),
        };
        _ = writeln!(text, "# Records {of}\n");
        _ = writeln!(text, "Written by nigh {}.\n", env!("CARGO_PKG_VERSION"));
        text.push_str("| | |\n|---|---|\n");
        let mut row = |name: &str, value: String| _ = writeln!(text, "| {name} | {} |", value.replace('|', "\\|"));
        row("files", paths.len().to_string());
        row("records of the input", counts.documents.to_string());
        row("records here", counts.written.to_string());
        if *what != What::Annotated {
            row("records left out", removed.to_string());
        }
        if counts.passages > 0 {
            row("passages left out", format!("{} ({} bytes)", counts.passages, counts.passage_bytes));
        }
        if counts.emptied > 0 {
            row("records of which nothing was left", counts.emptied.to_string());
        }
        let name = match level {
            Level::Similar => "very similar",
            Level::Identical => "virtually identical",
            Level::Exact => "exact copies",
        };
        row("clusters", format!("of records that are {name}"));
        if let Some(of_level) = summary.levels.iter().find(|of_level| of_level.level == *level) {
            row("clusters of two and more", format!("{}, of {} records", of_level.clusters, of_level.clustered));
        }
        row("what stays of a cluster", keep.clone());
        further.iter().for_each(|(name, value)| row(name, value.clone()));
        row("method", format!("`{}`", summary.method));
        row("batch", summary.week.to_string());
        for field in fields {
            let meaning = match field {
                AddedField::Cluster => "the cluster",
                AddedField::Size => "the records of its cluster, with those that go",
                AddedField::Rank => "the rank in its cluster, from 1",
                AddedField::Stays => "whether the record stays if duplicates go",
                AddedField::Score => "the mean of the scores of its cluster",
                AddedField::Matches => "the items of the reference that it matches",
                AddedField::Item => "the number of the item that it matches best",
                AddedField::Containment => "the share of the n-grams of that item that it has",
            };
            row(&format!("`{}`", renamed.of(field.name())), meaning.to_owned());
        }
        if let Some(accuracy) = &summary.accuracy {
            let percent = |pair: SharePair| {
                let [share, low, high] = [pair.share, pair.low, pair.high].map(|share| 100.0 * share);
                format!("{share:.1}% (95% interval {low:.1}% to {high:.1}%, from {} pairs)", pair.sampled)
            };
            _ = writeln!(
                text,
                "\n## Accuracy\n\nMeasured on samples of the very similar clusters. Enough is a similarity of {:.2}.\n",
                accuracy.similarity
            );
            text.push_str("| | |\n|---|---|\n");
            if let Some(links) = accuracy.links {
                _ = writeln!(text, "| linked pairs that are similar enough | {} |", percent(links));
            }
            if let Some(recall) = accuracy.recall {
                _ = writeln!(text, "| pairs that are similar enough, in one cluster | {} |", percent(recall));
            }
            _ = writeln!(text, "| largest cluster | {} records |", accuracy.largest_pages);
        }
        text
    }
}

/// The patterns of the files of each split.
fn patterns(paths: &BTreeSet<&str>) -> BTreeMap<DatasetSplit, BTreeSet<String>> {
    let splits: BTreeSet<DatasetSplit> = paths.iter().copied().map(DatasetSplit::of).collect();
    let mut patterns: BTreeMap<DatasetSplit, BTreeSet<String>> = BTreeMap::new();
    for path in paths.iter().copied() {
        let pattern = match (paths.len(), splits.len()) {
            (..=MOST_PATHS, _) => Some(pattern_of(path)),
            (_, 1) => ending(path).map(|ending| format!("**/*.{ending}")),
            // Digits are no part of the words that name a split: paths that differ only in digits
            // are of one.
            _ => Some(pattern_of(path).replace(|sign: char| sign.is_ascii_digit(), "[0-9]")),
        };
        if let Some(pattern) = pattern {
            patterns.entry(DatasetSplit::of(path)).or_default().insert(pattern);
        }
    }
    patterns
}

/// The pattern that only this path matches: `datasets` takes all paths of a card for patterns.
fn pattern_of(path: &str) -> String {
    let mut pattern = String::with_capacity(path.len());
    for sign in path.chars() {
        match sign {
            '*' | '?' | '[' => pattern.extend(['[', sign, ']']),
            _ => pattern.push(sign),
        }
    }
    pattern
}

/// The ending of a file, with that of its compression: `jsonl.gz`.
fn ending(path: &str) -> Option<&str> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let (before, last) = name.rsplit_once('.')?;
    let inner = ["gz", "zst", "bz2", "xz"].contains(&last).then(|| before.rsplit_once('.')).flatten();
    Some(inner.map_or(last, |(_, inner)| &name[name.len() - last.len() - 1 - inner.len()..]))
}

/// A size as the hub has it.
fn size_category(records: u64) -> &'static str {
    const CATEGORIES: [(u64, &str); 10] = [
        (1_000, "n<1K"),
        (10_000, "1K<n<10K"),
        (100_000, "10K<n<100K"),
        (1_000_000, "100K<n<1M"),
        (10_000_000, "1M<n<10M"),
        (100_000_000, "10M<n<100M"),
        (1_000_000_000, "100M<n<1B"),
        (10_000_000_000, "1B<n<10B"),
        (100_000_000_000, "10B<n<100B"),
        (1_000_000_000_000, "100B<n<1T"),
    ];
    CATEGORIES.into_iter().find(|(end, _)| records < *end).map_or("n>1T", |(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_of_patterns_in_a_path_stand_for_themselves() {
        let of = ["deep/a.jsonl", "a[1]*.jsonl", "b?.jsonl"].map(pattern_of);
        assert_eq!(of, ["deep/a.jsonl", "a[[]1][*].jsonl", "b[?].jsonl"]);
    }

    #[test]
    fn files_are_listed_under_the_split_that_their_names_say() {
        let of = |names: &[String]| -> Vec<(&'static str, Vec<String>)> {
            let splits = patterns(&names.iter().map(String::as_str).collect());
            splits.into_iter().map(|(split, patterns)| (split.name(), patterns.into_iter().collect())).collect()
        };
        let name = |split: &str, number: usize| format!("{split}-{number:05}-of-00060.parquet");
        let few = of(&["test", "train", "validation"].map(|split| name(split, 0)));
        let [test, train, validation] = ["test", "train", "validation"].map(|split| vec![name(split, 0)]);
        assert_eq!(few, [("train", train), ("validation", validation), ("test", test)]);
        let many = |splits: [&str; 2]| {
            let names: Vec<String> = (0..120).map(|number| name(splits[number % 2], number)).collect();
            of(&names)
        };
        let digits = |split: &str| vec![format!("{split}-{0}-of-{0}.parquet", "[0-9]".repeat(5))];
        assert_eq!(many(["dev", "train"]), [("train", digits("train")), ("validation", digits("dev"))]);
        assert_eq!(many(["part", "train"]), [("train", vec!["**/*.parquet".to_owned()])]);
        assert!(of(&[]).is_empty());
    }

    #[test]
    fn endings_have_the_compression() {
        let of = ["a.parquet", "x.y/b.jsonl.gz", "c.gz", "d", "e.csv.zst"].map(ending);
        assert_eq!(of, [Some("parquet"), Some("jsonl.gz"), Some("gz"), None, Some("csv.zst")]);
        assert_eq!([0, 1_000, 99_999, u64::MAX].map(size_category), ["n<1K", "1K<n<10K", "10K<n<100K", "n>1T"]);
    }
}
