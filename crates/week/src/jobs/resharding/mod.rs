//! Gives a store more shards: makes each of its weeks again with the ids that it would have had
//! with so many shards from the first, week by week into another store, which takes the place of
//! the first one at the end ([`Store::finish_resharding`]).
//!
//! ```text
//! before the workers start:  how many ids each week gave in each new shard  (`OldStore::new_urls`)
//! segments:                  those of the week, each cut by new shards      (`reshard`)
//! pages that stayed:         from the week before, as a run does            (`keep_again`)
//! missing, redirects, …      the rows of the week, cut in the same way
//! roots, tables:             as of any week (`cluster`), from these segments
//! ```
//!
//! In reading order: `split` (which new shard a document goes to, and its id there), `mod` (the
//! segments), `failed` (what the week has of URLs without a page). The crawl is not read again.
//! Neighbours, roots and ids of clusters are found again, since the order of ids is another one.
//!
//! Cost: as a week without its reading; each table of a week is read once for each of the new
//! shards that a shard becomes.
//! Limit: a week from which pages were deleted gets the ids of clusters, and the `changes`, of a
//! week that never had these pages.

mod failed;
mod split;

use std::collections::BTreeMap;

use anyhow::Result;
use arrow_array::{Int64Array, RecordBatch};
use arrow_select::filter::filter_record_batch;
use nigh_exchange::Context;

pub(crate) use self::failed::{MissingAgain, failed_urls_again};
pub use self::split::OldStore;
use self::split::{NewShard, OldWeek, ShardSplit};
use super::kept_pages::keep_again;
use super::page_bundles::PageBundles;
use crate::plan::{Plan, Resharding};
use crate::records::{DocId, Week};
use crate::state::{BundleName, BundleWriter, Segment, SegmentOrigin, Store, Unfinished, WeekJournal, sync_folder};
use crate::structures::Ownership;
use crate::tables::{
    CaptureRow, ChunkRow, DocumentRow, FeatureRow, FoundLinkRow, LinkRow, RejectRow, RowRange, Scan, Table, UrlRow,
    ValueRow, Writer, copy_rows_edited, field,
};
use crate::watch::Stage;

/// Makes the segments of the week from those of the week with fewer shards; worker 0 writes the
/// journal. A journal that has them stays as it is.
///
/// # Errors
/// If a file cannot be read or written (names it), or a worker of this process failed.
pub(crate) fn reshard(
    cx: &mut Context,
    plan: &Plan,
    resharding: &Resharding,
    unfinished: &Unfinished,
    journal: &WeekJournal,
) -> Result<()> {
    if journal.is_begun() {
        return Ok(());
    }
    cx.enter(Stage::Reshard);
    let source = Source::open(plan, resharding)?;
    let (owned, old) = (Ownership::new(cx.index(), cx.peers(), &plan.urls(journal)), source.week());
    let mut week = WeekWriter::new(cx.index(), plan, old, unfinished)?;
    let mut stays = vec![false; owned.len()];
    let (mut splits, mut segments) = (Splits::default(), Vec::new());
    cx.watch().expect_steps(owned.shards().count());
    for shard in owned.shards() {
        let new = splits.new_shard(&source.store, shard)?;
        let rows = source.store.rows_of_segments(source.number, new.old);
        for (number, segment) in old.segments(new.old).enumerate() {
            // The segments of pages that stayed come after those of the crawl and of revisits.
            if segment.wave > old.journal.waves && !resharding.is_remade {
                source.add_docs(segment, &new, |doc| stays[owned.index(doc)] = true)?;
                continue;
            }
            let urls = rows.as_ref().map(|rows| new.count(&rows[number].1));
            let part = week.segment(segment, &new, urls)?;
            segments.extend((part.documents + part.urls > 0).then_some(part));
        }
        week.captures(&new)?;
        cx.watch().add_steps(1);
    }
    week.bundles.finish()?;
    week.captures.finish()?;
    segments.extend(keep_again(plan, (unfinished, cx.index()), &owned, stays, old.journal.waves)?);
    let segments = cx.sorted(segments)?;
    if cx.index() == 0 {
        source.copy_rejects(unfinished)?;
        let OldWeek { journal: old, .. } = old;
        let mut journal = WeekJournal::new(plan.key());
        (journal.waves, journal.segments, journal.counts) = (old.waves, segments, old.counts.clone());
        journal.earlier_inputs = old.earlier_inputs.clone();
        sync_folder(unfinished.folder())?;
        unfinished.write_journal(&journal)?;
    }
    // All workers wait until the journal is written, because they read it next.
    cx.barrier()
}

/// The week that is made again, in its store.
struct Source {
    store: OldStore,
    /// The number of the week.
    number: usize,
}

impl Source {
    fn open(plan: &Plan, resharding: &Resharding) -> Result<Source> {
        let Resharding { store, weeks, of, factor, .. } = resharding;
        let shards = (plan.method.shards / factor, *factor);
        let store = OldStore::open(&Store::at(store), weeks, shards, plan.method.documents)?;
        let number = weeks.iter().position(|week| week.week == of.week).unwrap_or(0);
        Ok(Source { store, number })
    }

    fn week(&self) -> &OldWeek {
        &self.store.weeks[self.number]
    }

    /// Calls `each` with the new ids of the documents of a segment that are of a new shard.
    fn add_docs(&self, segment: Segment, new: &NewShard, mut each: impl FnMut(DocId)) -> Result<()> {
        let rows = self.week().tables.rows(DocumentRow::NAME, &segment.file())?;
        Scan::open(rows, &["doc"])?.for_each(|batch| {
            let docs: &Int64Array = field(batch, "doc")?;
            for doc in docs.values() {
                if let Some(doc) = new.new_doc(DocId::from_table(*doc))? {
                    each(doc);
                }
            }
            Ok(())
        })
    }

    /// Copies `rejects` of all waves, which are of no shard.
    fn copy_rejects(&self, unfinished: &Unfinished) -> Result<()> {
        let OldWeek { journal, tables, .. } = self.week();
        let mut writer: BundleWriter<RejectRow> = unfinished.bundle(BundleName::Remaining(0));
        for wave in 0..journal.waves {
            let file = RejectRow::file(wave);
            writer.writer()?.append(&[tables.rows(RejectRow::NAME, &file)?])?;
            // Every wave has its piece, with rejects or without.
            writer.end_any_piece(&file)?;
        }
        writer.finish()
    }
}

/// The split of the old shard that was asked for last: new shards of one old shard may follow each
/// other.
#[derive(Default)]
struct Splits {
    last: Option<(u32, ShardSplit)>,
}

impl Splits {
    fn new_shard(&mut self, store: &OldStore, shard: u32) -> Result<NewShard> {
        let (old, part) = (shard / store.factor, shard % store.factor);
        let split = match self.last.take().filter(|(of, _)| *of == old) {
            Some((_, split)) => split,
            None => store.split(old)?,
        };
        let new = split.part(part);
        self.last = Some((old, split));
        Ok(new)
    }
}

/// Writes the week's segments of new shards.
struct WeekWriter<'a> {
    week: &'a OldWeek,
    /// The segments in which the pages of the week before have their links, by week, wave and
    /// shard, and how many documents these segments have. The week can refer to them alone.
    origins: BTreeMap<(Week, usize, u32), u64>,
    bundles: PageBundles,
    captures: BundleWriter<CaptureRow<'static>>,
}

impl<'a> WeekWriter<'a> {
    fn new(worker: usize, plan: &Plan, week: &'a OldWeek, unfinished: &Unfinished) -> Result<WeekWriter<'a>> {
        let mut origins = BTreeMap::new();
        if let Some(before) = plan.earlier.weeks.last() {
            for segment in plan.open_store().whole(before)?.journal.segments {
                let own = SegmentOrigin { week: before.week, wave: segment.wave, documents: segment.documents };
                let SegmentOrigin { week, wave, documents } = segment.origin.unwrap_or(own);
                origins.insert((week, wave, segment.shard), documents);
            }
        }
        let name = BundleName::Remaining(worker);
        let (bundles, captures) = (PageBundles::new(unfinished, name), unfinished.bundle(name));
        Ok(WeekWriter { week, origins, bundles, captures })
    }

    /// Writes what is of a new shard of a segment's tables. `urls` are the ids that it gave there;
    /// `None` for those that are left.
    fn segment(&mut self, segment: Segment, new: &NewShard, urls: Option<u64>) -> Result<Segment> {
        let made = Segment { wave: segment.wave, shard: new.number, ..Segment::default() };
        let (file, of, to) = (made.file(), self.week, &mut self.bundles);
        let origin = segment.origin.and_then(|origin| {
            let documents = *self.origins.get(&(origin.week, origin.wave, new.number))?;
            Some(SegmentOrigin { documents, ..origin })
        });
        // With more shards the week before may have written again what it had in an older one, and
        // the other way round.
        let is_written_again = segment.origin.is_some() && origin.is_none();
        let documents = if is_written_again {
            of.documents_again(segment, new, &mut to.documents, &file)?
        } else {
            of.copy(segment, new, &mut to.documents, &file)?
        };
        if of.tables.find(ValueRow::NAME, &segment.file()).is_some() {
            of.copy(segment, new, &mut to.values, &file)?;
        }
        let mut left = 0;
        if segment.urls > 0 {
            let rows = of.tables.of_segment(UrlRow::NAME, &segment)?;
            new.copy_rows(rows, to.urls.writer()?)?;
            left = to.urls.end_piece(&file)?;
        }
        let urls = urls.unwrap_or(left);
        if left == 0 && urls > 0 {
            // All of them were deleted since.
            to.urls.end_any_piece(&file)?;
        }
        if documents == 0 && urls > 0 {
            // Of revisits that are not known a week has the URLs only.
            to.documents.end_any_piece(&file)?;
        }
        let made = Segment { documents, urls, ..made };
        if documents == 0 {
            return Ok(made);
        }
        // The week may have some tables of its own.
        let stay = |table: &str| origin.is_some() && of.tables.find(table, &segment.file()).is_none();
        let [features_stay, chunks_stay] = [FeatureRow::NAME, ChunkRow::NAME].map(stay);
        let features = match segment.features {
            0 => 0,
            _ if features_stay => of.count::<FeatureRow<'_>>(segment, new)?,
            _ => of.copy(segment, new, &mut to.features, &file)?,
        };
        let chunks = match segment.chunks {
            0 => 0,
            _ if chunks_stay => of.count::<ChunkRow<'_>>(segment, new)?,
            _ => of.copy(segment, new, &mut to.chunks, &file)?,
        };
        let links = match segment.links {
            0 => 0,
            _ if origin.is_some() => of.count::<LinkRow<'_>>(segment, new)?,
            _ => of.found_links(segment, new, &mut to.found_links, &file)?,
        };
        let is_there = links > 0 || features_stay && features > 0 || chunks_stay && chunks > 0;
        Ok(Segment { features, links, chunks, origin: origin.filter(|_| is_there), ..made })
    }

    /// Writes what is of a new shard of `captures`. A week of an older version lacks the table.
    fn captures(&mut self, new: &NewShard) -> Result<()> {
        for (name, rows) in self.week.tables.pieces(CaptureRow::NAME) {
            if let (Some(wave), Some(shard)) = (Segment::wave_of(name), Segment::shard_of(name))
                && shard == new.old
            {
                new.copy_rows(rows.clone(), self.captures.writer()?)?;
                let made = Segment { wave, shard: new.number, ..Segment::default() };
                self.captures.end_piece(&made.file())?;
            }
        }
        Ok(())
    }
}

impl OldWeek {
    /// Copies the rows of a segment in a table that are of a new shard. Returns how many these are.
    fn copy<T: Table>(&self, from: Segment, new: &NewShard, to: &mut BundleWriter<T>, file: &str) -> Result<u64> {
        new.copy_rows(self.tables.of_segment(T::NAME, &from)?, to.writer()?)?;
        to.end_piece(file)
    }

    /// Copies the documents of a segment that are of a new shard, whose features, links and chunks
    /// this week has from now on. Returns how many these are.
    fn documents_again(
        &self,
        from: Segment,
        new: &NewShard,
        to: &mut BundleWriter<DocumentRow<'static>>,
        file: &str,
    ) -> Result<u64> {
        let again = |batch: RecordBatch| DocumentRow::stored_in(&new.renamed(&batch)?, self.committed.week);
        let rows = self.tables.of_segment(DocumentRow::NAME, &from)?;
        copy_rows_edited(rows, to.writer()?, &["doc"], |batch| new.of_batch(batch), again)?;
        to.end_piece(file)
    }

    /// Writes the links of a segment's pages that are of a new shard as they were found: their
    /// targets have new ids, too.
    fn found_links(
        &self,
        from: Segment,
        new: &NewShard,
        to: &mut BundleWriter<FoundLinkRow<'static>>,
        file: &str,
    ) -> Result<u64> {
        let writer = to.writer()?;
        Scan::open(self.tables.of_segment(LinkRow::NAME, &from)?, &["doc", "target_url"])?.for_each(|batch| {
            let of_new = filter_record_batch(batch, &new.of_batch(batch)?)?;
            if of_new.num_rows() > 0 { writer.push_rows(&new.renamed(&of_new)?) } else { Ok(()) }
        })?;
        to.end_piece(file)
    }

    /// How many rows of a segment in a table are of a new shard.
    fn count<T: Table>(&self, from: Segment, new: &NewShard) -> Result<u64> {
        let mut count = 0;
        Scan::open(self.tables.of_segment(T::NAME, &from)?, &["doc"])?.for_each(|batch| {
            count += new.of_batch(batch)?.true_count() as u64;
            Ok(())
        })?;
        Ok(count)
    }
}

impl NewShard {
    /// Adds the rows that are of this shard, with their new ids.
    fn copy_rows<T: Table>(&self, from: RowRange, to: &mut Writer<T>) -> Result<()> {
        let rename = |batch: RecordBatch| self.renamed(&batch);
        copy_rows_edited(from, to, &["doc"], |batch| self.of_batch(batch), rename).map(|_| ())
    }
}
