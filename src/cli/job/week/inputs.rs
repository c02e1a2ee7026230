//! The inputs of a week: what is checked of them before the run, beside those of earlier weeks.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use anyhow::{Result, bail};

use super::request::WeekRequest;
use crate::cli::columns::check_columns;
use crate::cli::errors::WrongUse;
use crate::config::{Absent, Reading, SameId};
use crate::plan::{folder_of, job_of_week, stamp_of};
use crate::readers::{Input, KeysOfInput, Location, RecordKind};
use crate::records::DocumentKey;
use crate::state::{Earlier, Store, WholeWeek};

/// What documents are known by, given what is known of inputs; `None` if nothing is.
///
/// # Errors
/// If some inputs have what documents are known by and others have not: a sentence that names one
/// of each.
fn document_key(inputs: &[(&str, KeysOfInput)], reading: &Reading) -> Result<Option<DocumentKey>, String> {
    let first = |wanted: &[KeysOfInput]| inputs.iter().find(|(_, keys)| wanted.contains(keys)).map(|(name, _)| *name);
    let without_ids = first(&[KeysOfInput::Pages, KeysOfInput::Files]);
    let with_urls = first(&[KeysOfInput::Pages, KeysOfInput::RowsWithUrls]);
    let url = reading.columns.url();
    match (reading.same_id, &reading.columns.id, first(&[KeysOfInput::Rows, KeysOfInput::Files])) {
        (SameId::Row, ..) => Ok(Some(DocumentKey::Row)),
        (_, Some(_), _) => match without_ids {
            Some(name) => Err(format!(
                "{name} has no ids: leave `id` out of [cluster.read.columns], or this file out of the input"
            )),
            None => Ok(Some(DocumentKey::Id)),
        },
        (_, None, Some(without)) => match with_urls {
            Some(with) => Err(format!(
                "{with} has URLs, and {without} has none in a field `{url}`: set `url` or `id` in [cluster.read.columns], or same-id = \"row\" in \
                 [cluster.read], which makes each record a document of its own"
            )),
            None => Ok(Some(DocumentKey::Row)),
        },
        (_, None, None) => Ok(with_urls.map(|_| DocumentKey::Url)),
    }
}

impl WeekRequest {
    /// Opens every input file, so that one that cannot be read fails the run now and not hours
    /// later. Objects in a bucket were requested when they were listed; a dry run opens them too.
    pub(super) fn check_inputs(&self, dry_run: bool) -> Result<Option<DocumentKey>> {
        let is_file = |input: &&Input| !matches!(input.place, Location::Object { .. });
        let inputs = self.inputs.iter().filter(|input| dry_run || is_file(input));
        let mut keys = Vec::new();
        for input in inputs {
            keys.push((input.name.as_str(), crate::readers::check(input, self.reading())?));
        }
        if keys.iter().all(|(_, keys)| *keys == KeysOfInput::Unknown)
            && let Some(first) = self.inputs.first()
        {
            keys.push((&first.name, crate::readers::keys(first, self.reading())?));
        }
        document_key(&keys, self.reading()).map_err(|text| WrongUse(text).into())
    }

    /// Checks that some input has each of several columns with texts.
    ///
    /// # Errors
    /// As [`check_columns`].
    pub(super) fn check_texts(&self) -> Result<()> {
        let text = &self.reading().columns.text;
        if text.names().len() < 2 {
            return Ok(());
        }
        let mut reading = self.reading().clone();
        reading.columns.values = text.names().to_vec();
        check_columns(&self.inputs, &reading, "`text` of [cluster.read.columns], or --text, names")
    }

    /// The inputs that are damaged from their beginning, with the reason.
    pub(super) fn damaged_inputs(&self) -> Result<Vec<(&str, String)>> {
        let mut damaged = Vec::new();
        for input in &self.inputs {
            damaged.extend(crate::readers::damage(input, self.reading())?.map(|reason| (input.name.as_str(), reason)));
        }
        Ok(damaged)
    }

    /// Checks that documents have the values that they are chosen by: those of pages that stay, or
    /// else some input. A batch may be without what those that stay have.
    ///
    /// # Errors
    /// If the week before has not kept them; else as [`check_columns`].
    pub(super) fn check_values(&self, store: &Store, earlier: &Earlier) -> Result<()> {
        let Some(before) = earlier.last().filter(|_| self.job.absent == Absent::Keep) else {
            return check_columns(
                &self.inputs,
                self.reading(),
                "`canonical` or `values` of [cluster.read.columns] names",
            );
        };
        // With those that documents are chosen by.
        let (wanted, known) = (&self.reading().columns.values, job_of_week(store, before)?.read.columns.values);
        match wanted.iter().find(|column| !known.contains(column)) {
            Some(column) => bail!(WrongUse(format!(
                "week {} has no values of `{column}`, and its documents stay: they could not be compared by it. Make the store again with \
                 values = [\"{column}\"] in [cluster.read.columns]",
                before.week
            ))),
            None => Ok(()),
        }
    }

    /// Whether the inputs, of the same names, sizes and times of change as those of a committed
    /// week, are not other files: relative names in another folder, while the former files are
    /// still there.
    ///
    /// # Errors
    /// If the working directory cannot be found.
    pub(super) fn are_files_of(&self, week: &WholeWeek) -> Result<bool> {
        let before = week.folders.get(&week.committed.week);
        let (Some(before), Some(here)) = (before, folder_of(&self.inputs)?) else { return Ok(true) };
        let is_same = |input: &Input| {
            let (Location::File(path) | Location::Entry { archive: path, .. }) = &input.place else { return true };
            let file = |folder: &Path| folder.join(path).metadata().map(|metadata| (metadata.dev(), metadata.ino()));
            match (file(before), file(&here)) {
                (Ok(before), Ok(here)) => before == here,
                // They were moved.
                _ => true,
            }
        };
        Ok(*before == here || self.inputs.iter().all(is_same))
    }

    /// Checks that inputs are not taken for those of an earlier batch that were others: from a
    /// pipe, by a relative name in another folder, or before the file changed. Where documents are
    /// known by file and place, a record would replace the one that was at its place before, and
    /// the others of the old file would stay. A file that is one document may change.
    ///
    /// # Errors
    /// Names the first such input.
    pub(super) fn check_earlier_names(&self, documents: DocumentKey, before: &WholeWeek) -> Result<()> {
        if documents != DocumentKey::Row {
            return Ok(());
        }
        let here = folder_of(&self.inputs)?;
        let inputs: BTreeMap<&str, &Input> = self.inputs.iter().map(|input| (input.name.as_str(), input)).collect();
        let last = before.committed.week;
        let names = before.journal.inputs(last).flat_map(|(week, names)| names.iter().map(move |name| (week, name)));
        for (week, (name, stamp)) in names {
            let Some(input) = inputs.get(name.as_str()) else { continue };
            let elsewhere = before.folders.get(&week).filter(|folder| here.as_ref() != Some(folder));
            let is_document = matches!(input.format.records(), RecordKind::WholeFile(_));
            let (why, advice) = match elsewhere.filter(|_| Path::new(name).is_relative()) {
                _ if input.is_of_this_run() => (String::new(), "Write the records to files".to_owned()),
                Some(folder) => (
                    format!(", which was read in {}", folder.display()),
                    "Give the files by their whole paths".to_owned(),
                ),
                None if !is_document && stamp_of(input).1 != *stamp => {
                    let again = match week == last {
                        true => format!(", or make week {week} again with --week {week} --replace"),
                        false => String::new(),
                    };
                    (
                        ", and the file has another size or time of change since".to_owned(),
                        format!("Write new records to a file of another name{again}"),
                    )
                }
                None => continue,
            };
            bail!(WrongUse(format!(
                "{name} is the name of an input of week {week}, too{why}. Documents of this store are known by file and place, so that \
                 documents of week {week} would be replaced. {advice}"
            )));
        }
        Ok(())
    }
}
