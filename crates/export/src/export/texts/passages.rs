//! Passages that go from records that stay, as the tables of the passages job have them.
//!
//! ```text
//! verdicts                   ─▶ documents that stay, by id ┐
//! rows of `passages`, by id ───────────────────────────────┴─▶ passages, by file and place ─▶ beside the verdicts
//! ```
//!
//! Whether a passage stands twice depends on the documents that were compared. So these must be the
//! ones that stay, with the same texts: a hash of their ids and checksums says so.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Result, bail, ensure};
use arrow_array::{Array as _, Int32Array, Int64Array};
use serde::{Deserialize, Serialize};

use super::gone::{PassagePlace, PassageRules, WhichPassages};
use crate::export::rows::can_be_cut;
use crate::export::verdicts::{Deciding, Verdicts};
use crate::readers::Input;
use crate::records::{DocId, Week};
use crate::structures::{ExternalSort, Sortable, Sorted};
use crate::studies::passages::ComparedBatch;
use crate::tables::{Scan, field};

/// A document that stays.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Staying {
    doc: i64,
    file: u32,
    offset: u64,
}

impl Sortable for Staying {
    type Key = i64;

    fn key(&self) -> i64 {
        self.doc
    }

    fn weight(&self) -> usize {
        size_of::<Staying>()
    }
}

/// What passages are dropped with.
pub struct DroppedPassages<'a> {
    /// The inputs, in order.
    pub inputs: &'a [Input],
    /// The batch of each.
    pub weeks: &'a [Week],
    /// Which passages go.
    pub rules: PassageRules,
    /// The files of the table `passages`, in order.
    pub files: Vec<PathBuf>,
    /// The documents that were compared.
    pub compared: &'a [ComparedBatch],
    /// A folder for runs of the sorts.
    pub scratch: PathBuf,
    /// Memory for both sorts, in bytes.
    pub memory: u64,
}

impl DroppedPassages<'_> {
    /// The verdicts, with the passages that go.
    ///
    /// # Errors
    /// If other documents stay than were compared, a passage is in a text that cannot be cut, or a
    /// table or a run cannot be read or written.
    pub fn verdicts(&self, deciding: &Deciding<'_>) -> Result<Verdicts> {
        let mut staying = self.staying(deciding.verdicts()?)?;
        let mut passages = ExternalSort::new(&self.scratch.join("passages"), self.memory / 2);
        let mut next = staying.record()?;
        for path in &self.files {
            Scan::open(path, &["doc", "offset", "bytes", "copied", "copied_bytes"])?.for_each(|batch| {
                let longs = |name| field::<Int64Array>(batch, name);
                let (docs, offsets) = (longs("doc")?, longs("offset")?);
                let (bytes, copied) = (longs("bytes")?, longs("copied_bytes")?);
                let copied_words: &Int32Array = field(batch, "copied")?;
                for (row, doc) in docs.values().iter().enumerate() {
                    while next.is_some_and(|next| next.doc < *doc) {
                        next = staying.record()?;
                    }
                    // Of an earlier batch, if only later ones are written.
                    let Some(Staying { file, offset, .. }) = next.filter(|next| next.doc == *doc) else { continue };
                    // Nothing is taken out of the first occurrence.
                    if self.rules.which == WhichPassages::Copies && copied_words.value(row) == 0 {
                        continue;
                    }
                    let input = &self.inputs[file as usize];
                    if offsets.is_null(row) || !can_be_cut(input.format) {
                        bail!(
                            "{} has a passage in the record at {offset}, from which it cannot be taken out: it can from texts in \
                             UTF-8 of JSON Lines, Parquet and text files",
                            input.name
                        );
                    }
                    let end = offsets.value(row) + bytes.value(row);
                    let start = match self.rules.which {
                        WhichPassages::All => offsets.value(row),
                        WhichPassages::Copies => end - copied.value(row),
                    };
                    if start < end {
                        passages.push(PassagePlace { file, offset, bytes: [start as u64, end as u64] })?;
                    }
                }
                Ok(())
            })?;
        }
        deciding.verdicts()?.without_passages(passages.sorted()?, self.rules.cut)
    }

    /// The documents that stay, by id; checks that they are those that were compared.
    fn staying(&self, mut verdicts: Verdicts) -> Result<Sorted<Staying>> {
        let mut staying = ExternalSort::new(&self.scratch.join("staying"), self.memory / 2);
        let mut batches: BTreeMap<Week, ComparedBatch> = BTreeMap::new();
        while let Some(verdict) = verdicts.record()? {
            if verdict.stays {
                let week = self.weeks[verdict.file as usize];
                let batch = batches.entry(week).or_insert(ComparedBatch::new(week));
                batch.add(DocId::from_table(verdict.doc), verdict.checksum);
                staying.push(Staying { doc: verdict.doc, file: verdict.file, offset: verdict.offset })?;
            }
        }
        let first = self.weeks.iter().min().copied();
        let compared = self.compared.iter().filter(|batch| first.is_some_and(|first| batch.week >= first));
        let documents =
            |batches: &mut dyn Iterator<Item = &ComparedBatch>| batches.map(|batch| batch.documents).sum::<u64>();
        ensure!(
            compared.clone().eq(batches.values()),
            "{} records stay, and the passages are those of {} other documents: run jobs/passages.toml again, with documents = \"kept\" if \
             the records stay that the job of the week says, or \"all\" if all do (--most {}); other choices of --keep, --most, --each and \
             --level have no passages",
            documents(&mut batches.values()),
            documents(&mut compared.clone()),
            u32::MAX
        );
        staying.sorted()
    }
}
