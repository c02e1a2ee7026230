//! The `[decontamination]` job: documents of a store against a reference.

use std::path::PathBuf;

use anyhow::{Result, ensure};
use nigh_readers::units::Share;
use nigh_text::method::WordRule;
use serde::{Deserialize, Serialize};

use super::steps::{GramRule, Measures};
use crate::config::{Method, TextForm, Unicode};
use crate::records::Week;

/// The `[decontamination]` table: finds the documents of a week that match items of a reference.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Decontamination {
    /// The store with the week. Required, here or as `--store`.
    pub store: Option<PathBuf>,
    /// The week, or batch. Default: the store's last.
    pub week: Option<Week>,
    /// The input files of the week, here or as `--input`. Default: those that its job names.
    pub input: Vec<String>,
    /// Only documents of batches from this date on are compared. Default: all.
    pub since: Option<Week>,
    /// The reference: files, folders, globs, URLs, or stores. Required, here or as `--against`.
    pub against: Vec<String>,
    /// The columns of its texts. Default: `text`.
    pub columns: Vec<String>,
    /// The column of its ids. Default: none.
    pub id: Option<String>,
    /// What an item is. Default: a record with all of its columns.
    pub item: ItemOf,
    /// Which words are compared, in which form. Default: without case and diacritics.
    pub form: Form,
    /// The words of an n-gram, 2 to 64. Default: 8.
    pub words: u32,
    /// Texts of the reference with fewer words than `words` are one n-gram each if they have at
    /// least this many. Default: `words`, so that they are not compared.
    pub shortest: Option<u32>,
    /// The least share of the n-grams of an item that a document has, up to 1; 0: items are not
    /// compared so. Default: 0.7.
    pub containment: f64,
    /// The least words of a passage that a document and an item have in common. Default: they are
    /// not compared so.
    pub passage: Option<u32>,
    /// The least similarity of a document and an item, up to 1. Default: they are not compared so.
    pub similarity: Option<f64>,
    /// The share of the bytes of a file of the reference that may be unread. Default: 0.
    pub max_unread_share: Share,
}

/// What an item of the reference is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ItemOf {
    /// A record: the texts of its columns together.
    #[default]
    Record,
    /// A column of a record.
    Column,
}

/// In which form words are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// Without case and diacritics, in normal form C; in a store of characters, runs of letters and
    /// digits.
    #[default]
    Folded,
    /// As the store compares them.
    Store,
}

impl Default for Decontamination {
    fn default() -> Decontamination {
        Decontamination {
            store: None,
            week: None,
            input: Vec::new(),
            since: None,
            against: Vec::new(),
            columns: Vec::new(),
            id: None,
            item: ItemOf::Record,
            form: Form::Folded,
            words: 8,
            shortest: None,
            containment: 0.7,
            passage: None,
            similarity: None,
            max_unread_share: Share(0.0),
        }
    }
}

/// The most `words`, and the most of a passage.
const MOST_WORDS: [u32; 2] = [64, 100_000];

/// The smallest shares: below, most documents would match most items.
const LEAST_SHARE: f64 = 0.05;

impl Decontamination {
    /// Checks the rules that the types do not say.
    pub(super) fn check_values(&self) -> Result<(), String> {
        let [most, most_of_passage] = MOST_WORDS;
        let is_share = |share: f64| (LEAST_SHARE..=1.0).contains(&share);
        if !(2..=most).contains(&self.words) {
            return Err(format!("words = {}: allowed is 2 to {most}", self.words));
        }
        if let Some(shortest) = self.shortest.filter(|shortest| !(1..=self.words).contains(shortest)) {
            return Err(format!("shortest = {shortest}: allowed is 1 to `words`, which is {}", self.words));
        }
        if self.containment != 0.0 && !is_share(self.containment) {
            return Err(format!("containment = {}: allowed is 0, or {LEAST_SHARE} to 1", self.containment));
        }
        if let Some(passage) = self.passage.filter(|passage| !(2..=most_of_passage).contains(passage)) {
            return Err(format!("passage = {passage}: allowed is 2 to {most_of_passage}"));
        }
        if let Some(similarity) = self.similarity.filter(|similarity| !is_share(*similarity)) {
            return Err(format!("similarity = {similarity}: allowed is {LEAST_SHARE} to 1"));
        }
        if self.containment == 0.0 && self.passage.is_none() && self.similarity.is_none() {
            return Err("containment = 0: then `passage` or `similarity` says how documents and items match".into());
        }
        let double = self.columns.iter().enumerate().find(|(number, column)| self.columns[..*number].contains(column));
        if let Some((_, column)) = double {
            return Err(format!("columns: `{column}` stands there twice"));
        }
        Ok(())
    }

    /// The columns of the texts.
    pub(super) fn columns(&self) -> Vec<String> {
        if self.columns.is_empty() { vec!["text".to_owned()] } else { self.columns.clone() }
    }

    /// The fewest words of a text that is compared by its n-grams.
    pub(super) fn shortest(&self) -> u32 {
        self.shortest.unwrap_or(self.words)
    }

    /// The ways in which items are compared, in a store with this method.
    pub(super) fn measures(&self, method: &Method) -> Measures {
        let (words, shortest) = (self.words as usize, self.shortest() as usize);
        let containment = GramRule { words, shortest, share: self.containment };
        Measures {
            containment: Some(containment).filter(|rule| rule.share > 0.0),
            passage: self.passage.map(|words| words as usize),
            similarity: self.similarity.map(|least| (method.words, least)),
        }
    }

    /// Says what the words are that are compared, in the method of the store.
    ///
    /// # Errors
    /// If documents are compared by their similarity, and words are not those of the store.
    pub(super) fn set_words(&self, method: &mut Method) -> Result<()> {
        if self.form == Form::Store {
            return Ok(());
        }
        // A few characters that follow each other are in many texts.
        if method.rule == WordRule::Characters {
            ensure!(
                self.similarity.is_none(),
                "`similarity` compares documents by the words of the store, which are characters; with form = \"folded\" words are runs of \
                 letters and digits in it. Set form = \"store\" in [decontamination], or leave `similarity` out"
            );
            method.rule = WordRule::Letters;
        }
        method.form = TextForm { fold_case: true, strip_diacritics: true, unicode: Unicode::Nfc, ..method.form };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::job_file::AnyJob;

    #[test]
    fn wrong_values_are_named() {
        let job = |text: &str| {
            toml::from_str::<AnyJob>(&format!("[decontamination]\n{text}")).map_err(|error| error.to_string())
        };
        assert!(job("words = 13\nshortest = 5\ncontainment = 1\nform = \"store\"\nitem = \"column\"\n").is_ok());
        assert!(job("containment = 0\npassage = 50\n").is_ok());
        for (text, wanted) in [
            ("words = 1\n", "allowed is 2 to 64"),
            ("shortest = 9\n", "allowed is 1 to `words`, which is 8"),
            ("containment = 0.01\n", "allowed is 0, or 0.05 to 1"),
            ("containment = nan\n", "allowed is 0, or 0.05 to 1"),
            ("containment = 0\n", "`passage` or `similarity`"),
            ("similarity = 1.5\n", "allowed is 0.05 to 1"),
            ("passage = 1\n", "allowed is 2 to 100000"),
            ("columns = [\"a\", \"a\"]\n", "twice"),
            ("item = \"row\"\n", "`record`"),
            ("again = []\n", "`against`"),
        ] {
            let error = job(text).unwrap_err();
            assert!(error.contains(wanted) && error.contains("line "), "{text}: {error}");
        }
    }
}
