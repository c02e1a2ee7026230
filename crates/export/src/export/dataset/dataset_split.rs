//! The split that a file of a dataset is in, by its name, as the Hugging Face hub takes it from
//! names: a word of a folder or of the file, between separators.

/// A split of a dataset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum DatasetSplit {
    Train,
    Validation,
    Test,
}

impl DatasetSplit {
    /// The split of the file at a path: that of a folder, else that of the name, else the one for
    /// training. If several are named, it is one that is not for training.
    pub(super) fn of(path: &str) -> DatasetSplit {
        let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
        let named = |text: &str| text.split(is_separator).filter_map(DatasetSplit::of_word).max();
        named(folders).or_else(|| named(name)).unwrap_or(DatasetSplit::Train)
    }

    fn of_word(word: &str) -> Option<DatasetSplit> {
        Some(match word {
            "train" | "training" => DatasetSplit::Train,
            "validation" | "valid" | "val" | "dev" => DatasetSplit::Validation,
            "test" | "testing" | "eval" | "evaluation" => DatasetSplit::Test,
            _ => return None,
        })
    }

    /// The name that the hub has for it.
    pub(super) fn name(self) -> &'static str {
        match self {
            DatasetSplit::Train => "train",
            DatasetSplit::Validation => "validation",
            DatasetSplit::Test => "test",
        }
    }
}

fn is_separator(sign: char) -> bool {
    matches!(sign, '/' | '-' | '.' | '_' | ' ' | '0'..='9')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_split_is_a_word_of_a_folder_or_of_the_name() {
        for (path, split) in [
            ("data.jsonl", "train"),
            ("data/training.jsonl", "train"),
            ("data/test-00000-of-00001.parquet", "test"),
            ("my_eval.csv", "test"),
            ("validation1.jsonl.gz", "validation"),
            ("x/dev/part.jsonl", "validation"),
            // The folder comes before the name.
            ("train/test.jsonl", "train"),
            ("eval set/train.jsonl", "test"),
            ("train-test.jsonl", "test"),
            // These are other words.
            ("latest.jsonl", "train"),
            ("devices/contest.jsonl", "train"),
        ] {
            assert_eq!(DatasetSplit::of(path).name(), split, "{path}");
        }
    }
}
