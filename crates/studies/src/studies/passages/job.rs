//! The `[passages]` job: passages of texts that stand more than once in a corpus.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::records::Week;

/// The `[passages]` table: finds each passage of some words that stands more than once in the texts
/// of a week.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Passages {
    /// The store with the week. Required, here or as `--store`.
    pub store: Option<PathBuf>,
    /// The week, or batch. Default: the store's last.
    pub week: Option<Week>,
    /// The input files of the week, here or as `--input`. Default: those that its job names.
    pub input: Vec<String>,
    /// The words of a passage at least, 2 to 100,000. Default: 50.
    pub words: u32,
    /// Which documents are compared. Default: those that stay if duplicates go.
    pub documents: PassageDocuments,
}

/// Which documents are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PassageDocuments {
    /// Those that stay if duplicates go: `canonical` in the table `clusters`.
    #[default]
    Kept,
    /// All of the week.
    All,
}

impl Default for Passages {
    fn default() -> Passages {
        Passages { store: None, week: None, input: Vec::new(), words: 50, documents: PassageDocuments::Kept }
    }
}

/// The most `words`.
const MOST_WORDS: u32 = 100_000;

impl Passages {
    /// Checks the rules that the types do not say.
    pub(super) fn check_values(&self) -> Result<(), String> {
        if !(2..=MOST_WORDS).contains(&self.words) {
            return Err(format!("words = {}: allowed is 2 to {MOST_WORDS}", self.words));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::job_file::AnyJob;

    #[test]
    fn wrong_values_are_named() {
        let job =
            |text: &str| toml::from_str::<AnyJob>(&format!("[passages]\n{text}")).map_err(|error| error.to_string());
        assert!(job("words = 2\ndocuments = \"all\"\n").is_ok());
        for (text, wanted) in [
            ("words = 1\n", "allowed is 2 to 100000"),
            ("words = 100001\n", "allowed is 2 to 100000"),
            ("documents = \"some\"\n", "`kept`"),
            ("word = 5\n", "`words`"),
        ] {
            let error = job(text).unwrap_err();
            assert!(error.contains(wanted) && error.contains("line "), "{text}: {error}");
        }
    }
}
