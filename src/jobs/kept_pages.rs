//! Pages of the week before that stay although they were not crawled: a partial crawl, or a batch that is added to others.
//!
//! ```text
//! segments of the week before ─▶ without the documents that the crawl has, or says are gone ─▶ further segments of the week
//! documents, features ─▶ the rows that stay are written again
//! links, chunks       ─▶ they stay in the files of the week that crawled the page, beside those of pages that do not stay
//! ```
//!
//! Links and chunks are most of what is known of a page. Where half of a segment or more has gone, they are written again, too: so files of
//! earlier weeks have at most twice the rows that count, and no week leaves files behind for a few pages alone. Everything after the segments is as for a
//! week whose crawl had these pages.
//!
//! Cost: the rows of `documents` and `features` of segments from which something goes, and a column of the links of all.

use anyhow::Result;
use arrow_array::{BooleanArray, Int64Array, RecordBatch, StringArray};
use timely::worker::Worker;

use crate::operators::exchange::{all_gather, barrier};
use crate::operators::ingest::gone_documents;
use crate::operators::scan::own_segments;
use crate::plan::Plan;
use crate::records::{DocId, Week};
use crate::state::{Journal, Origin, Segment, Unfinished, WeekTables, sync_folder};
use crate::structures::Ownership;
use crate::tables::{
    ChunkRow, DocumentRow, FeatureRow, FoundLinkRow, LinkRow, Scan, Table, Writer, copy_rows, copy_rows_edited, field,
};
use crate::watch::{Stage, Watch};

/// Adds the segments of pages that stay to the journal of the week, which has all of its waves. A journal that has them stays as it is.
///
/// # Errors
/// If a file cannot be read or written (names it), or a worker of this process failed.
pub(crate) fn keep_pages(
    worker: &mut Worker,
    plan: &Plan,
    unfinished: &Unfinished,
    mut journal: Journal,
    watch: &Watch,
) -> Result<()> {
    let Some(before) = plan.earlier.last() else { return Ok(()) };
    if journal.earlier_inputs.contains_key(&before.week) {
        return Ok(());
    }
    watch.enter(Stage::KeepPages);
    let store = plan.open_store();
    let (old, tables) = (store.whole(before)?.journal, store.tables(before)?);
    let owned = Ownership::new(worker.index(), worker.peers(), &plan.urls(&journal));
    let mut is_crawled = vec![false; owned.len()];
    for segment in own_segments(&journal, &owned) {
        Scan::open(unfinished.table(DocumentRow::NAME, &segment.file()), &["doc"])?.for_each(|batch| {
            let docs: &Int64Array = field(batch, "doc")?;
            docs.values().iter().for_each(|doc| is_crawled[owned.index(DocId::from_table(*doc))] = true);
            Ok(())
        })?;
    }
    // What a server says is gone does not stay.
    for shard in owned.shards() {
        let gone = gone_documents(unfinished, shard, journal.waves)?;
        gone.into_iter().for_each(|doc| is_crawled[owned.index(doc)] = true);
    }
    let kept = KeptPages {
        tables: &tables,
        week: before.week,
        unfinished,
        new: plan.week,
        owned: &owned,
        is_crawled,
        first_wave: journal.waves,
    };
    let (mut segments, mut counts) = (Vec::new(), KeptCounts::default());
    for segment in own_segments(&old, &owned) {
        let remaining = kept.segment(segment, &mut counts)?;
        segments.extend((remaining.documents > 0).then_some(remaining));
    }
    let segments = all_gather(worker, segments, watch)?;
    let counts = all_gather(worker, vec![(worker.index(), counts)], watch)?;
    if worker.index() == 0 {
        journal.segments.extend(segments);
        for (_, kept) in counts {
            journal.counts.documents += kept.documents;
            journal.counts.empty += kept.empty;
            journal.counts.words += kept.words;
            journal.counts.bytes += kept.bytes;
        }
        journal.earlier_inputs = old.earlier_inputs;
        journal.earlier_inputs.insert(before.week, old.key.stamps);
        sync_folder(unfinished.folder())?;
        unfinished.write_journal(&journal)?;
    }
    // All workers wait until the journal is written, because they read it next.
    barrier(worker, watch)
}

/// Totals of documents that stay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
struct KeptCounts {
    documents: u64,
    empty: u64,
    words: u64,
    bytes: u64,
}

/// The week before, whose pages stay unless they were crawled.
struct KeptPages<'a> {
    tables: &'a WeekTables,
    /// Its date.
    week: Week,
    unfinished: &'a Unfinished,
    /// The date of the week that is made.
    new: Week,
    owned: &'a Ownership,
    /// Whether the crawl has a page of it, or says that it is gone; by own document.
    is_crawled: Vec<bool>,
    /// The wave of the first segment that is added.
    first_wave: usize,
}

impl KeptPages<'_> {
    fn stays(&self, doc: i64) -> bool {
        !self.is_crawled[self.owned.index(DocId::from_table(doc))]
    }

    /// Which rows are of documents that stay.
    fn stays_in(&self, batch: &RecordBatch) -> Result<BooleanArray> {
        let docs: &Int64Array = field(batch, "doc")?;
        Ok(docs.values().iter().map(|doc| Some(self.stays(*doc))).collect())
    }

    /// Copies a segment's tables without the documents that were crawled, and counts those that stay. Returns the segment that remains.
    fn segment(&self, segment: Segment, counts: &mut KeptCounts) -> Result<Segment> {
        let kept = Segment { wave: self.first_wave + segment.wave, urls: 0, ..segment };
        let rows = self.tables.rows(DocumentRow::NAME, &segment.file())?;
        let before = counts.documents;
        Scan::open(&rows, &["doc", "bytes", "words"])?.for_each(|batch| {
            let column = |name| field::<Int64Array>(batch, name);
            let (docs, bytes, words) = (column("doc")?, column("bytes")?, column("words")?);
            for row in (0..batch.num_rows()).filter(|row| self.stays(docs.value(*row))) {
                counts.documents += 1;
                counts.empty += u64::from(words.value(row) == 0);
                counts.words += words.value(row) as u64;
                counts.bytes += bytes.value(row) as u64;
            }
            Ok(())
        })?;
        let documents = counts.documents - before;
        let features = if segment.features > 0 { self.by_doc::<FeatureRow>(segment, kept)? } else { 0 };
        let kept = Segment { documents, features, ..kept };
        let own = Origin { week: self.week, wave: segment.wave, documents: segment.documents };
        let origin = segment.origin.unwrap_or(own);
        if 2 * documents > origin.documents {
            self.by_doc::<DocumentRow>(segment, kept)?;
            let links = if segment.links > 0 { self.count(LinkRow::NAME, segment)? } else { 0 };
            let chunks = match segment.chunks {
                0 => 0,
                // Each page with words has some.
                chunks if chunks == segment.features => features,
                _ => self.count(ChunkRow::NAME, segment)?,
            };
            let origin = (links + chunks > 0).then_some(origin);
            return Ok(Segment { links, chunks, origin, ..kept });
        }
        let to = self.unfinished.table(DocumentRow::NAME, &kept.file());
        let stays = |batch: &RecordBatch| self.stays_in(batch);
        copy_rows_edited::<DocumentRow>(rows, &to, &["doc"], stays, |batch| DocumentRow::stored_in(&batch, self.new))?;
        let chunks = if segment.chunks > 0 { self.by_doc::<ChunkRow>(segment, kept)? } else { 0 };
        let links = if segment.links > 0 { self.links(segment, kept)? } else { 0 };
        Ok(Segment { links, chunks, origin: None, ..kept })
    }

    /// The rows of a table that belong to documents that stay.
    fn count(&self, table: &str, segment: Segment) -> Result<u64> {
        let mut count = 0;
        Scan::open(self.tables.of_segment(table, &segment)?, &["doc"])?.for_each(|batch| {
            let docs: &Int64Array = field(batch, "doc")?;
            // The links of a page follow each other.
            for of_doc in docs.values().chunk_by(|a, b| a == b) {
                count += if self.stays(of_doc[0]) { of_doc.len() as u64 } else { 0 };
            }
            Ok(())
        })?;
        Ok(count)
    }

    /// Copies one table of a segment without the rows of documents that were crawled. Returns how many rows remain.
    fn by_doc<T: Table>(&self, from: Segment, to: Segment) -> Result<u64> {
        let (from, to) = (self.tables.of_segment(T::NAME, &from)?, self.unfinished.table(T::NAME, &to.file()));
        Ok(copy_rows::<T>(from, &to, &["doc"], |batch| self.stays_in(batch))?.kept)
    }

    /// Writes the links of documents that stay as they were found on their pages: which of their targets the week has is found again.
    fn links(&self, from: Segment, to: Segment) -> Result<u64> {
        let from = self.tables.of_segment(LinkRow::NAME, &from)?;
        let to = self.unfinished.scratch_table(FoundLinkRow::NAME, &to.file());
        let mut writer: Writer<FoundLinkRow> = Writer::create(&to)?;
        Scan::open(from, &["doc", "target_url"])?.for_each(|batch| {
            let (docs, targets): (&Int64Array, &StringArray) = (field(batch, "doc")?, field(batch, "target_url")?);
            for row in (0..batch.num_rows()).filter(|row| self.stays(docs.value(*row))) {
                writer.push(FoundLinkRow { doc: docs.value(row), target_url: targets.value(row).to_owned() })?;
            }
            Ok(())
        })?;
        writer.finish_if_any()
    }
}
