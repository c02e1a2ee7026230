//! The table of what could not be downloaded: URLs of earlier weeks that have no page this week, each with the reason.
//!
//! The url files of earlier weeks are walked in the order of documents, side by side with the failures of the week's
//! waves, which are put in that order first. A URL that has a page is left out, whatever failed besides.
//!
//! Cost: one pass over all URLs of earlier weeks; memory for a batch of them, and a share of the worker's memory for
//! the order.
//! Limitation: a URL that answered with another media type, or with a bad record, counts as not seen.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Result, ensure};
use arrow_array::{Int64Array, StringArray};

use super::deletion::missing_without;
use super::week::ReadWeek;
use crate::operators::ingest::FailureReasons;
use crate::records::DocId;
use crate::summary::OTHER_REASONS;
use crate::tables::{MissingRow, Scan, Table, Writer, field};

/// The reason of a URL that no record of the week tells of.
const NOT_SEEN: &str = "not seen";
/// Reasons of a shard that are counted apart: side files may have any text for theirs.
const COUNTED: usize = 1000;

impl ReadWeek<'_> {
    /// Writes `missing`, given a root of every own document that has a page; counts its rows in own shards by reason.
    pub(crate) fn missing(&self, roots: &[DocId]) -> Result<BTreeMap<String, u64>> {
        let store = self.plan.open_store();
        let url_files = store.url_files(&self.plan.earlier)?;
        let mut sums = BTreeMap::new();
        for shard in self.owned.shards() {
            let mut counts = RowsByReason::default();
            if let Some(deletion) = &self.plan.deletion {
                let to = self.table(MissingRow::NAME, shard);
                let from = store.week(self.plan.week).join(to.strip_prefix(self.unfinished.folder())?);
                missing_without(&from, &to, deletion, |reason| counts.add(reason))?;
            } else {
                let files = url_files.get(&shard).map_or(&[][..], |files| files);
                self.missing_of_shard(shard, files, roots, &mut counts)?;
            }
            for (reason, count) in counts.0 {
                *sums.entry(reason).or_default() += count;
            }
        }
        Ok(sums)
    }

    fn missing_of_shard(
        &self,
        shard: u32,
        files: &[PathBuf],
        roots: &[DocId],
        counts: &mut RowsByReason,
    ) -> Result<()> {
        let mut writer: Writer<MissingRow> = Writer::create(&self.table(MissingRow::NAME, shard))?;
        let waves = self.journal.waves;
        let mut reasons = FailureReasons::read(self.unfinished, shard, waves, self.plan.worker_memory / 8)?;
        let mut last = None;
        for path in files {
            Scan::open(path, &["doc", "url"])?.for_each(|batch| {
                let (docs, urls): (&Int64Array, &StringArray) = (field(batch, "doc")?, field(batch, "url")?);
                for row in 0..batch.num_rows() {
                    let doc = DocId::from_table(docs.value(row));
                    ensure!(last < Some(doc), "{} holds {doc} out of its order", path.display());
                    self.owned.check(doc, shard, path)?;
                    last = Some(doc);
                    if roots[self.owned.index(doc)] != DocId::NONE {
                        continue;
                    }
                    let reason = reasons.of(doc)?.unwrap_or_else(|| NOT_SEEN.to_owned());
                    counts.add(&reason);
                    writer.push(MissingRow { doc: doc.to_table(), url: urls.value(row).to_owned(), reason })?;
                }
                Ok(())
            })?;
        }
        writer.finish_if_any().map(|_| ())
    }
}

/// Rows by reason.
#[derive(Default)]
struct RowsByReason(BTreeMap<String, u64>);

impl RowsByReason {
    fn add(&mut self, reason: &str) {
        if let Some(count) = self.0.get_mut(reason) {
            *count += 1;
        } else {
            let reason = if self.0.len() < COUNTED { reason } else { OTHER_REASONS };
            *self.0.entry(reason.to_owned()).or_default() += 1;
        }
    }
}
