//! The list of an export: what its files have in common, and those that are whole.

use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::output::Written;
use super::workplace::Workplace;
use crate::config::Canonical;
use crate::export::dataset::{AddedField, Exported, What};
use crate::export::matched::MatchRules;
use crate::export::renamed::NewNames;
use crate::export::rows::ExportFormat;
use crate::export::shards::ShardRule;
use crate::export::texts::{ParagraphRules, PassageRules};
use crate::export::thresholds::ThresholdRule;
use crate::records::{Level, Week};

/// The list, in the folder of an export.
pub(super) const LIST: &str = ".nigh-export/list.jsonl";

/// What the files of an export have in common: a folder has the files of one export.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExportKey {
    /// The week.
    pub week: Week,
    /// The hash of the week's identity.
    pub identity: String,
    /// Which records of a cluster stay.
    pub keep: Canonical,
    /// The level of the clusters.
    pub level: Level,
    /// At which threshold clusters are taken, if not as the week has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold: Option<ThresholdRule>,
    /// Which records are written.
    pub what: What,
    /// Whether WARC records that go are replaced by revisit records.
    pub revisits: bool,
    /// Whether records of WARC say which pages are near-duplicates.
    #[serde(default)]
    pub near_duplicates: bool,
    /// Whether records of WARC and ARC that are no pages are written, whatever they are.
    #[serde(default)]
    pub others: bool,
    /// The hash of the weeks before and of their input files, if records of these are referred to.
    #[serde(default)]
    pub earlier: Option<String>,
    /// Whether nothing is referred to that the export does not write.
    #[serde(default)]
    pub alone: bool,
    /// Which paragraphs go from documents that stay, if any.
    #[serde(default)]
    pub paragraphs: Option<ParagraphRules>,
    /// Which passages go from documents that stay, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passages: Option<PassageRules>,
    /// What becomes of records that match a reference, if that is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matched: Option<MatchRules>,
    /// The first week whose documents are written, if not all are.
    #[serde(default)]
    pub since: Option<Week>,
    /// Whether documents that duplicate only each other all stay.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub only_older: bool,
    /// The format of the files.
    #[serde(default)]
    pub format: ExportFormat,
    /// The fields that the records get, if they are not those of annotated ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub added: Vec<AddedField>,
    /// The column of the scores, if the records get one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<String>,
    /// The columns that are written under other names.
    #[serde(default, skip_serializing_if = "NewNames::is_empty")]
    pub renamed: NewNames,
    /// How records are cut into shards, if they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shards: Option<ShardRule>,
}

/// A file that an export has written, or is about to put in its place.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct WrittenFile {
    pub(super) file: String,
    /// None, if nothing of the input is written.
    pub(super) written: Option<Written>,
    pub(crate) counts: Exported,
}

/// The list of an export: its key, and what it has written.
pub(crate) struct WrittenFiles {
    pub(crate) key: ExportKey,
    pub(crate) files: Vec<WrittenFile>,
}

impl WrittenFiles {
    /// Reads a list; `None` if there is none.
    ///
    /// # Errors
    /// If it is no list of nigh, or cannot be read.
    pub(crate) fn read(path: &Path) -> Result<Option<WrittenFiles>> {
        let text = match std::fs::read_to_string(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            text => text.with_context(|| format!("cannot read {}", path.display()))?,
        };
        WrittenFiles::parse(&text, &path.display().to_string()).map(Some)
    }

    /// The list with this text, whose name is for messages.
    ///
    /// # Errors
    /// If it is no list of nigh.
    pub(super) fn parse(text: &str, name: &str) -> Result<WrittenFiles> {
        let mut lines = text.lines();
        let key = lines.next().and_then(|line| serde_json::from_str(line).ok());
        let key = key.with_context(|| format!("{name} is not a list that nigh wrote: write elsewhere"))?;
        // A last line that is cut is of a file that is not in its place yet.
        let files = lines.filter_map(|line| serde_json::from_str(line).ok()).collect();
        Ok(WrittenFiles { key, files })
    }

    /// The text of the list.
    pub(super) fn text(&self) -> Result<String> {
        let mut text = serde_json::to_string(&self.key)? + "\n";
        for file in &self.files {
            text += &serde_json::to_string(file)?;
            text += "\n";
        }
        Ok(text)
    }

    /// Whether one of the files is the one at `path`.
    ///
    /// # Errors
    /// If that cannot be read.
    pub(crate) fn has(&self, path: &Path) -> Result<bool> {
        for WrittenFile { written, .. } in &self.files {
            if let Some(written) = written
                && written.is_at(path).with_context(|| format!("cannot read {}", path.display()))?
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Puts the list at `path`.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(crate) fn write(&self, work: &Workplace, path: &Path) -> Result<()> {
        work.replace(path, self.text()?.as_bytes())
    }
}

impl WrittenFile {
    pub(crate) fn new(file: String, written: Option<Written>, counts: Exported) -> WrittenFile {
        WrittenFile { file, written, counts }
    }

    /// Whether there is a file: of an input of which nothing stays there may be none.
    pub(crate) fn is_there(&self) -> bool {
        self.written.is_some()
    }
}
