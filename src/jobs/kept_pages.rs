//! Pages of the week before that stay although they were not crawled: a partial crawl, or a batch that is added to others.
//!
//! ```text
//! segments of the week before ─▶ without the documents that the crawl has ─▶ further segments of the week
//! ```
//!
//! A segment of which nothing goes is linked or copied as it is stored. Everything after the segments is as for a week whose crawl had these
//! pages, too.
//!
//! Cost: column `doc` of all tables with pages of the week before; the rows of segments from which something goes are written again.

use anyhow::Result;
use arrow_array::{BooleanArray, Int64Array, StringArray};
use timely::worker::Worker;

use crate::operators::exchange::{all_gather, barrier};
use crate::operators::scan::own_segments;
use crate::plan::Plan;
use crate::records::DocId;
use crate::state::{Journal, Segment, Unfinished, WeekTables, sync_folder};
use crate::structures::Ownership;
use crate::tables::{ChunkRow, DocumentRow, FeatureRow, FoundLinkRow, LinkRow, Scan, Table, Writer, copy_rows, field};
use crate::watch::{Stage, Watch};

/// Adds the segments of pages that stay to the journal of the week, which has all of its waves. Does so again if it was done before.
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
    watch.enter(Stage::KeepPages);
    let store = plan.open_store();
    let (old, tables) = (store.whole(before)?.journal, store.tables(before)?);
    journal.segments.retain(|segment| segment.wave < journal.waves);
    let owned = Ownership::new(worker.index(), worker.peers(), &plan.urls(&journal));
    let mut is_crawled = vec![false; owned.len()];
    for segment in own_segments(&journal, &owned) {
        Scan::open(unfinished.table(DocumentRow::NAME, &segment.file()), &["doc"])?.for_each(|batch| {
            let docs: &Int64Array = field(batch, "doc")?;
            docs.values().iter().for_each(|doc| is_crawled[owned.index(DocId::from_table(*doc))] = true);
            Ok(())
        })?;
    }
    let kept = KeptPages { tables: &tables, unfinished, owned: &owned, is_crawled, first_wave: journal.waves };
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
    unfinished: &'a Unfinished,
    owned: &'a Ownership,
    /// By own document.
    is_crawled: Vec<bool>,
    /// The wave of the first segment that is added.
    first_wave: usize,
}

impl KeptPages<'_> {
    fn stays(&self, doc: i64) -> bool {
        !self.is_crawled[self.owned.index(DocId::from_table(doc))]
    }

    /// Copies a segment's tables without the documents that were crawled, and counts those that stay. Returns the segment that remains.
    fn segment(&self, segment: Segment, counts: &mut KeptCounts) -> Result<Segment> {
        let kept = Segment { wave: self.first_wave + segment.wave, urls: 0, ..segment };
        let rows = self.tables.rows(DocumentRow::NAME, &segment.file())?;
        Scan::open(rows, &["doc", "bytes", "words"])?.for_each(|batch| {
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
        Ok(Segment {
            documents: self.by_doc::<DocumentRow>(segment, kept)?,
            features: if segment.features > 0 { self.by_doc::<FeatureRow>(segment, kept)? } else { 0 },
            chunks: if segment.chunks > 0 { self.by_doc::<ChunkRow>(segment, kept)? } else { 0 },
            links: if segment.links > 0 { self.links(segment, kept)? } else { 0 },
            ..kept
        })
    }

    /// Copies one table of a segment without the rows of documents that were crawled. Returns how many rows remain.
    fn by_doc<T: Table>(&self, from: Segment, to: Segment) -> Result<u64> {
        let (from, to) = (self.tables.rows(T::NAME, &from.file())?, self.unfinished.table(T::NAME, &to.file()));
        let copied = copy_rows::<T>(from, &to, &["doc"], |batch| {
            let docs: &Int64Array = field(batch, "doc")?;
            Ok(docs.values().iter().map(|doc| Some(self.stays(*doc))).collect::<BooleanArray>())
        })?;
        Ok(copied.kept)
    }

    /// Writes the links of documents that stay as they were found on their pages: which of their targets the week has is found again.
    fn links(&self, from: Segment, to: Segment) -> Result<u64> {
        let from = self.tables.rows(LinkRow::NAME, &from.file())?;
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
