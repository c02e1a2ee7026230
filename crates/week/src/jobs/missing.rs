//! The table `missing`: the URLs of earlier weeks that have no document this week, each with the
//! reason; and those of revisits that are not known.
//!
//! ```text
//! for each URL of earlier weeks, in order of its id:
//!     if it has no document this week:  write it, with the reason of a failed download, or "not seen"
//! for each new URL of which the crawl has only revisits that are not known:
//!     write it, with that reason
//! ```
//!
//! The failed downloads of the week's waves are sorted by id first, so that both are read side by
//! side. A URL with a document is not in the table, even if another download of it failed.
//!
//! Cost: one pass over all URLs of earlier weeks; memory for one batch of them, and an eighth of
//! the worker's memory for the sort. Limit: a URL that answered with another media type, or with a
//! bad record, counts as not seen.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use arrow_array::{Int64Array, StringArray};

use super::deletion::missing_without;
use super::resharding::MissingAgain;
use super::week::IngestedWeek;
use crate::operators::ingest::{FailureReasons, NOT_KNOWN};
use crate::records::DocId;
use crate::state::{BundleWriter, Segment, shard_file};
use crate::structures::DocMap;
use crate::summary::OTHER_REASONS;
use crate::tables::{MissingRow, RowRange, Scan, Table, UrlRow, field, maybe_text};

/// The reason for a URL of which the week has no record.
const NOT_SEEN: &str = "not seen";
/// The largest number of reasons of one shard that are counted separately: side files may have any
/// text as reason.
const COUNTED: usize = 1000;

/// Writes `missing` for own shards, and counts its rows of URLs of earlier weeks by reason. `roots`
/// has a root for every own document of this week.
pub(crate) fn missing_urls(week: &IngestedWeek<'_>, roots: &DocMap) -> Result<BTreeMap<String, u64>> {
    let store = week.plan.open_store();
    let url_files = store.url_files(&week.plan.earlier)?;
    let of_base = week.plan.deletion.as_ref().map(|deletion| store.tables(&deletion.of)).transpose()?;
    let again = week.plan.resharding.as_ref().map(|resharding| MissingAgain::open(week.plan, resharding));
    let mut again = again.transpose()?;
    let earlier = week.plan.earlier.urls(week.plan.method.shards);
    let mut sums = BTreeMap::new();
    let mut writer: BundleWriter<MissingRow> = week.bundle();
    for shard in week.owned.shards() {
        let mut counts = RowsByReason { earlier: earlier[shard as usize], counts: BTreeMap::new() };
        if let Some(deletion) = &week.plan.deletion {
            if let Some(from) = of_base.as_ref().and_then(|tables| tables.of_shard(MissingRow::NAME, shard)) {
                missing_without(from, writer.writer()?, deletion, |doc, reason| counts.add(doc, reason))?;
            }
        } else if let Some(again) = &mut again {
            again.shard(shard, writer.writer()?, |doc, reason| counts.add(doc, reason))?;
        } else {
            let files = url_files.get(&shard).map_or(&[][..], |files| files);
            missing_of_shard(week, shard, files, roots, &mut writer, &mut counts)?;
            not_known_of_shard(week, shard, roots, &mut writer)?;
        }
        writer.end_piece(&shard_file(shard))?;
        for (reason, count) in counts.counts {
            *sums.entry(reason).or_default() += count;
        }
    }
    writer.finish()?;
    Ok(sums)
}

/// Writes `missing` for one shard, from its URL files in order of ids.
fn missing_of_shard(
    week: &IngestedWeek<'_>,
    shard: u32,
    url_files: &[RowRange],
    roots: &DocMap,
    writer: &mut BundleWriter<MissingRow>,
    counts: &mut RowsByReason,
) -> Result<()> {
    let waves = week.journal.waves;
    let mut reasons = FailureReasons::read(week.unfinished, shard, waves, week.plan.worker_memory / 8)?;
    let mut last = None;
    for rows in url_files {
        let path = rows.path();
        Scan::open(rows, &["doc", "url", "id"])?.for_each(|batch| {
            let docs: &Int64Array = field(batch, "doc")?;
            let (urls, ids): (&StringArray, &StringArray) = (field(batch, "url")?, field(batch, "id")?);
            for row in 0..batch.num_rows() {
                let doc = DocId::from_table(docs.value(row));
                ensure!(last < Some(doc), "{} has {doc} out of order: the table is damaged", path.display());
                week.owned.check(doc, shard, path)?;
                last = Some(doc);
                if roots.of(doc) != DocId::NONE {
                    continue;
                }
                let reason = reasons.of(doc)?.unwrap_or_else(|| NOT_SEEN.to_owned());
                counts.add(doc, &reason);
                writer.push(MissingRow {
                    doc: doc.to_table(),
                    url: maybe_text(urls, row),
                    id: maybe_text(ids, row),
                    reason,
                })?;
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// Writes the new URLs of a shard whose revisits are not known: those without a document, in the
/// segment after the waves.
fn not_known_of_shard(
    week: &IngestedWeek<'_>,
    shard: u32,
    roots: &DocMap,
    writer: &mut BundleWriter<MissingRow>,
) -> Result<()> {
    let is_of_revisits =
        |segment: &&Segment| segment.shard == shard && segment.wave >= week.journal.waves && segment.urls > 0;
    for segment in week.journal.segments.iter().filter(is_of_revisits) {
        Scan::open(week.unfinished.rows::<UrlRow>(&segment.file())?, &["doc", "url"])?.for_each(|batch| {
            let (docs, urls): (&Int64Array, &StringArray) = (field(batch, "doc")?, field(batch, "url")?);
            for row in (0..batch.num_rows()).filter(|row| roots.of(DocId::from_table(docs.value(*row))) == DocId::NONE)
            {
                let (doc, url) = (docs.value(row), maybe_text(urls, row));
                writer.push(MissingRow { doc, url, id: None, reason: NOT_KNOWN.to_owned() })?;
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// Numbers of rows of URLs of earlier weeks in a shard, by reason.
struct RowsByReason {
    /// How many URLs earlier weeks have in the shard: those after them are new in the week.
    earlier: u64,
    counts: BTreeMap<String, u64>,
}

impl RowsByReason {
    /// Counts a row, if it is of an earlier week. Beyond [`COUNTED`] different reasons, a new one
    /// counts as [`OTHER_REASONS`].
    fn add(&mut self, doc: DocId, reason: &str) {
        if doc.row() >= self.earlier {
            return;
        }
        if let Some(count) = self.counts.get_mut(reason) {
            *count += 1;
        } else {
            let reason = if self.counts.len() < COUNTED { reason } else { OTHER_REASONS };
            *self.counts.entry(reason.to_owned()).or_default() += 1;
        }
    }
}
