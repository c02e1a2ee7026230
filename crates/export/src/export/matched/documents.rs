//! Records that match items of a reference, as the tables of the decontamination job have them.
//!
//! ```text
//! verdicts                  ─▶ documents, by id ┐
//! rows of `matches`, by id ─────────────────────┴─▶ what records match, by file and place ─▶ beside the verdicts
//! ```
//!
//! All documents must be those that were compared, with the same texts: a hash of their ids and
//! checksums says so. Else a record that was not compared would pass as one without a match.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Result, ensure};
use arrow_array::{Array as _, Float64Array, Int64Array};
use serde::{Deserialize, Serialize};

use super::items::{Matched, MatchedPlace, MatchedRecords};
use crate::export::verdicts::{Deciding, Verdicts};
use crate::records::{DocId, Week};
use crate::structures::{ExternalSort, Sortable, Sorted};
use crate::studies::passages::ComparedBatch;
use crate::tables::{Scan, field};

/// What becomes of records that match, and the tables that say which these are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MatchRules {
    /// What becomes of them.
    pub records: MatchedRecords,
    /// The number of the commit of the tables.
    pub commit: u64,
}

/// A document of the export.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Exporting {
    doc: i64,
    file: u32,
    offset: u64,
}

impl Sortable for Exporting {
    type Key = i64;

    fn key(&self) -> i64 {
        self.doc
    }

    fn weight(&self) -> usize {
        size_of::<Exporting>()
    }
}

/// What the matches of documents are found with.
pub struct MatchedDocuments<'a> {
    /// The batch of each input, in the order of inputs.
    pub weeks: &'a [Week],
    /// What becomes of records that match.
    pub records: MatchedRecords,
    /// The files of the table `matches`, in order.
    pub files: Vec<PathBuf>,
    /// The documents that were compared.
    pub compared: &'a [ComparedBatch],
    /// A folder for runs of the sorts.
    pub scratch: PathBuf,
    /// Memory for both sorts, in bytes.
    pub memory: u64,
}

impl MatchedDocuments<'_> {
    /// Adds what records match to the verdicts that `make` returns, of the same documents as those
    /// of `deciding`.
    ///
    /// # Errors
    /// If other documents are exported than were compared, or a table or a run cannot be read or
    /// written; or an error of `make`.
    pub fn verdicts(&self, deciding: &Deciding<'_>, make: impl FnOnce() -> Result<Verdicts>) -> Result<Verdicts> {
        let mut documents = self.documents(deciding.verdicts()?)?;
        let mut places = ExternalSort::new(&self.scratch.join("matched"), self.memory / 2);
        let mut next = documents.record()?;
        let mut open: Option<(i64, MatchedPlace)> = None;
        for path in &self.files {
            Scan::open(path, &["doc", "item", "containment", "similarity"])?.for_each(|batch| {
                let (docs, items): (&Int64Array, &Int64Array) = (field(batch, "doc")?, field(batch, "item")?);
                let doubles = |name| field::<Float64Array>(batch, name);
                let (containments, similarities) = (doubles("containment")?, doubles("similarity")?);
                for (row, doc) in docs.values().iter().enumerate() {
                    while next.is_some_and(|next| next.doc < *doc) {
                        next = documents.record()?;
                    }
                    // Of an earlier batch, if only later ones are written.
                    let Some(Exporting { file, offset, .. }) = next.filter(|next| next.doc == *doc) else { continue };
                    let value = |of: &Float64Array| of.is_valid(row).then(|| of.value(row));
                    let (containment, similarity) = (value(containments), value(similarities));
                    let matched = Matched { items: 1, best: items.value(row), containment, similarity };
                    match &mut open {
                        Some((of, place)) if of == doc => place.matched.add(matched),
                        _ => {
                            let done = open.replace((*doc, MatchedPlace { file, offset, matched }));
                            done.map_or(Ok(()), |(_, place)| places.push(place))?;
                        }
                    }
                }
                Ok(())
            })?;
        }
        open.map_or(Ok(()), |(_, place)| places.push(place))?;
        let places = places.sorted()?;
        make()?.with_matched(places, self.records)
    }

    /// All documents, by id; checks that they are those that were compared.
    fn documents(&self, mut verdicts: Verdicts) -> Result<Sorted<Exporting>> {
        let mut documents = ExternalSort::new(&self.scratch.join("exporting"), self.memory / 2);
        let mut batches: BTreeMap<Week, ComparedBatch> = BTreeMap::new();
        while let Some(verdict) = verdicts.document()? {
            let week = self.weeks[verdict.file as usize];
            let batch = batches.entry(week).or_insert(ComparedBatch::new(week));
            batch.add(DocId::from_table(verdict.doc), verdict.checksum);
            documents.push(Exporting { doc: verdict.doc, file: verdict.file, offset: verdict.offset })?;
        }
        let first = self.weeks.iter().min().copied();
        let compared = self.compared.iter().filter(|batch| first.is_some_and(|first| batch.week >= first));
        let count =
            |batches: &mut dyn Iterator<Item = &ComparedBatch>| batches.map(|batch| batch.documents).sum::<u64>();
        ensure!(
            compared.clone().eq(batches.values()),
            "there are {} documents, and {} others were compared with the reference: run jobs/decontamination.toml again, without \
             `since`, or with one that is not later than --since",
            count(&mut batches.values()),
            count(&mut compared.clone())
        );
        documents.sorted()
    }
}
