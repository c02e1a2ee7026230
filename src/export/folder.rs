//! The folder of an export: its files, and a list of those that are whole.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};

use super::exported::{Exported, What};
use super::format::ExportFormat;
use super::paragraphs::ParagraphRules;
use crate::config::Policy;
use crate::readers::{Format, Input};
use crate::records::{Level, Week};

/// The list of whole files, in the folder of the export.
const LIST: &str = "_nigh-export.jsonl";

/// What the files of an export have in common: a folder has the files of one export.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExportKey {
    /// The week.
    pub week: Week,
    /// The hash of the week's identity.
    pub identity: String,
    /// Which record of a cluster stays.
    pub keep: Policy,
    /// The level of the clusters.
    pub level: Level,
    /// Which records are written.
    pub what: What,
    /// Whether WARC records that go are replaced by revisit records.
    pub revisits: bool,
    /// Which paragraphs go from documents that stay, if any.
    #[serde(default)]
    pub paragraphs: Option<ParagraphRules>,
    /// The first week whose documents are written, if not all are.
    #[serde(default)]
    pub since: Option<Week>,
    /// The format of the files.
    #[serde(default)]
    pub format: ExportFormat,
}

/// A whole file of an export.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct WholeFile {
    file: String,
    counts: Exported,
}

/// The folder of an export.
pub struct ExportFolder {
    path: PathBuf,
    key: ExportKey,
    /// What whole files have.
    whole: BTreeMap<String, Exported>,
    list: File,
}

impl ExportFolder {
    /// Makes the folder, or goes on with what an interrupted export of the same kind left.
    ///
    /// # Errors
    /// If the folder has other files, or the files of another export; or cannot be written.
    pub fn open(path: &Path, key: &ExportKey) -> Result<ExportFolder> {
        let failed = || format!("cannot write {}", path.display());
        std::fs::create_dir_all(path).with_context(failed)?;
        let list = path.join(LIST);
        let text = match std::fs::read_to_string(&list) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let is_empty = std::fs::read_dir(path).with_context(failed)?.next().is_none();
                ensure!(is_empty, "{} is not empty: give another --out", path.display());
                String::new()
            }
            Err(error) => return Err(error).with_context(|| format!("cannot read {}", list.display())),
        };
        let mut lines = text.lines();
        let before: Option<ExportKey> = lines.next().and_then(|line| serde_json::from_str(line).ok());
        ensure!(
            before.as_ref().is_none_or(|before| before == key),
            "{} has files of another export ({LIST} says which): give another --out",
            path.display()
        );
        // The last line may be cut: its file is written again.
        let lines = lines.filter_map(|line| serde_json::from_str::<WholeFile>(line).ok());
        let whole: BTreeMap<String, Exported> = lines.map(|whole| (whole.file, whole.counts)).collect();
        write_list(path, key, &whole)?;
        let list = File::options().append(true).open(&list).with_context(failed)?;
        Ok(ExportFolder { path: path.to_owned(), key: key.clone(), whole, list })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What a file has, if it is whole.
    pub fn whole(&self, file: &str) -> Option<Exported> {
        self.whole.get(file).copied()
    }

    /// Puts the list in the order of the files, once all are whole: it is the same for any number of threads.
    ///
    /// # Errors
    /// If the list cannot be written.
    pub fn finish(self) -> Result<()> {
        let ExportFolder { path, key, whole, .. } = self;
        write_list(&path, &key, &whole)
    }

    /// Adds a whole file to the list.
    ///
    /// # Errors
    /// If the list cannot be written.
    pub fn add(&mut self, file: &str, counts: Exported) -> Result<()> {
        let line = serde_json::to_string(&WholeFile { file: file.to_owned(), counts })? + "\n";
        let written = self.list.write_all(line.as_bytes()).and_then(|()| self.list.sync_data());
        written.with_context(|| format!("cannot write {}", self.path.join(LIST).display()))?;
        self.whole.insert(file.to_owned(), counts);
        Ok(())
    }
}

/// Writes the list of whole files, in one step.
fn write_list(folder: &Path, key: &ExportKey, whole: &BTreeMap<String, Exported>) -> Result<()> {
    let mut text = serde_json::to_string(key)? + "\n";
    for (file, counts) in whole {
        text += &serde_json::to_string(&WholeFile { file: file.clone(), counts: *counts })?;
        text += "\n";
    }
    let (list, new) = (folder.join(LIST), folder.join(format!("{LIST}.unfinished")));
    let written = std::fs::write(&new, text).and_then(|()| std::fs::rename(&new, &list));
    written.with_context(|| format!("cannot write {}", list.display()))
}

/// The path of each file below the folder of the export: that of the input, below the folder that all inputs have in common.
///
/// # Errors
/// If two inputs have the same path there, or one is not written in this format.
pub fn output_paths(inputs: &[Input], format: ExportFormat) -> Result<Vec<String>> {
    // A file must not be written beside the folder.
    let parts: Vec<Vec<&str>> = inputs
        .iter()
        .map(|input| input.name.split('/').filter(|part| !matches!(*part, "" | "." | "..")).collect())
        .collect();
    let mut common = parts.first().map_or(0, |first| first.len().saturating_sub(1));
    for other in &parts {
        let same = parts[0].iter().zip(other).take_while(|(a, b)| a == b).count();
        common = common.min(same).min(other.len().saturating_sub(1));
    }
    let paths = inputs.iter().zip(&parts).map(|(input, parts)| match input.format {
        Format::Failed | Format::Wacz => Ok(parts[common..].join("/")),
        _ => format.path(input, &parts[common..].join("/")),
    });
    let paths: Vec<String> = paths.collect::<Result<_>>()?;
    let mut seen = BTreeSet::new();
    if let Some(twice) = paths.iter().find(|path| !seen.insert(*path)) {
        bail!("two inputs would be written to {twice}: export a store of one of them");
    }
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::readers::Location;

    #[test]
    fn paths_are_below_the_folder_that_inputs_have_in_common() {
        let paths = |names: &[&str]| {
            let input = |name: &&str| Input {
                name: (*name).to_owned(),
                bytes: 0,
                format: Format::Jsonl,
                place: Location::File(name.into()),
                page_url: None,
                stamp: String::new(),
            };
            output_paths(&names.iter().map(input).collect::<Vec<_>>(), ExportFormat::Same)
                .map_err(|error| error.to_string())
        };
        assert_eq!(paths(&["/data/a.jsonl"]), Ok(vec!["a.jsonl".to_owned()]));
        assert_eq!(
            paths(&["data/x/a.jsonl", "data/y/a.jsonl"]),
            Ok(vec!["x/a.jsonl".to_owned(), "y/a.jsonl".to_owned()])
        );
        assert_eq!(paths(&["../a.jsonl", "b.jsonl"]), Ok(vec!["a.jsonl".to_owned(), "b.jsonl".to_owned()]));
        assert!(paths(&["../a.jsonl", "a.jsonl"]).unwrap_err().contains("a.jsonl"));
        assert_eq!(paths(&[]), Ok(Vec::new()));
    }
}
