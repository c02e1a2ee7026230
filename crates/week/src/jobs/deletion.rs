//! Deletes documents: makes the last week again, as if they had not been in its crawl.
//!
//! ```text
//! before the workers start:  the ids of the URLs to delete          (`matching_docs`, `write_deleted`)
//! files of earlier weeks:    those with rows of deleted documents, or links to their URLs, also of versions that do not count   (`touched`)
//! segments:                  those of the week, without the deleted documents and the links to their URLs   (`leave_out`)
//!                            what stays in a touched file is written again: the week needs none of these; its links are looked up
//! roots, tables:             as of any later week (`cluster`), from the week as it was and what is deleted
//! ```
//!
//! The new week takes the place of the old one in one commit ([`Store::commit`]), which also
//! replaces the `urls` of all weeks. If a later crawl brings such a URL again, it is a new one.
//!
//! Cost: one pass over all URLs, over column `doc` of the week's tables and of the files of earlier
//! weeks that it needs, and over the targets of links; the week's rows are copied, large row groups
//! with nothing to leave out as they are stored. Limit: tables of earlier weeks keep the deleted
//! documents until those weeks are removed ([`Store::vacuum`]).

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use arrow_array::{Array as _, BooleanArray, Int64Array, RecordBatch, StringArray};
use arrow_select::filter::filter_record_batch;
use nigh_exchange::Context;

use super::page_bundles::PageBundles;
use crate::plan::{Deletion, Plan};
use crate::records::{DocId, KeyHash};
use crate::state::{
    BundleName, BundleWriter, CommittedWeek, DocumentTotals, Earlier, KEPT_TABLES, Segment, SegmentOrigin, Store,
    Unfinished, WeekJournal, WeekTables, sync_folder,
};
use crate::structures::{CompactSort, Ownership};
use crate::tables::{
    CaptureRow, ChunkRow, DeletedRow, DocumentRow, FeatureRow, FoundLinkRow, HostFailureRow, LinkRow, MissingRow,
    RedirectRow, RejectRow, RowRange, Scan, Table, ValueRow, Writer, copy_rows, copy_rows_edited, field,
};
use crate::text::{UrlPatterns, canonical};
use crate::watch::Stage;

/// What patterns match.
pub struct MatchingDocs {
    /// The ids of the documents, ascending.
    pub docs: Vec<DocId>,
    /// The patterns that match none, each kind sorted.
    pub not_found: Vec<String>,
}

/// The ids of all URLs of `weeks` that match the patterns. `threads` threads search.
///
/// # Errors
/// Names the file that cannot be read.
pub fn matching_docs(
    store: &Store,
    weeks: &Earlier,
    patterns: &UrlPatterns,
    shards: u32,
    threads: usize,
) -> Result<MatchingDocs> {
    let mut files = store.url_files(weeks)?;
    if let Some(keys) = patterns.only_keys() {
        let shards_of_keys: BTreeSet<u32> = keys.map(|key| KeyHash::of(key).shard(shards)).collect();
        files.retain(|shard, _| shards_of_keys.contains(shard));
    }
    let files: Vec<_> = files.into_values().flatten().collect();
    let (next_file, matching) = (AtomicUsize::new(0), Mutex::new((Vec::new(), BTreeSet::new())));
    let search = || -> Result<()> {
        while let Some(rows) = files.get(next_file.fetch_add(1, Ordering::Relaxed)) {
            let (mut in_file, mut matched) = (Vec::new(), BTreeSet::new());
            Scan::open(rows, &["doc", "url", "id"])?.for_each(|batch| {
                let docs: &Int64Array = field(batch, "doc")?;
                let (urls, ids): (&StringArray, &StringArray) = (field(batch, "url")?, field(batch, "id")?);
                for row in 0..batch.num_rows() {
                    let url = urls.is_valid(row).then(|| urls.value(row));
                    let id = ids.is_valid(row).then(|| ids.value(row));
                    let mut of_row = patterns.matched_by(url, id).peekable();
                    if of_row.peek().is_some() {
                        in_file.push(DocId::from_table(docs.value(row)));
                        matched.extend(of_row);
                    }
                }
                Ok(())
            })?;
            let mut all = matching.lock().unwrap_or_else(PoisonError::into_inner);
            all.0.append(&mut in_file);
            all.1.append(&mut matched);
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(search)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("the search does not panic"))
    })?;
    let (mut docs, matched): (Vec<DocId>, BTreeSet<&str>) =
        matching.into_inner().unwrap_or_else(PoisonError::into_inner);
    docs.sort_rows();
    let not_found = patterns.all().filter(|pattern| !matched.contains(pattern)).map(str::to_owned).collect();
    Ok(MatchingDocs { docs, not_found })
}

/// Whether the patterns match the URL or the id of a row.
fn matches_key(patterns: &UrlPatterns, urls: &StringArray, ids: &StringArray, row: usize) -> bool {
    urls.is_valid(row) && patterns.matches(urls.value(row)) || ids.is_valid(row) && patterns.has_id(ids.value(row))
}

/// Whether links, redirects, rejects or failures of a committed week mention a URL or a host that
/// matches the patterns, whether or not the store has a page of it.
///
/// # Errors
/// Names the file that cannot be read.
pub fn is_mentioned(store: &Store, week: &CommittedWeek, patterns: &UrlPatterns) -> Result<bool> {
    let tables = store.tables(week)?;
    let links = tables.all(LinkRow::NAME).iter().chain(tables.all_kept(LinkRow::NAME)).map(|rows| (rows, "target_url"));
    let rejects = tables.all(RejectRow::NAME).iter().map(|rows| (rows, "url"));
    let redirects = tables.all(RedirectRow::NAME).iter().flat_map(|rows| [(rows, "url"), (rows, "target_url")]);
    for (rows, column) in links.chain(rejects).chain(redirects) {
        let mut scan = Scan::open(rows, &[column])?;
        while let Some(batch) = scan.batch()? {
            let urls: &StringArray = field(&batch, column)?;
            if urls.iter().flatten().any(|url| matches_raw(patterns, url)) {
                return Ok(true);
            }
        }
    }
    for rows in tables.all(HostFailureRow::NAME) {
        let mut scan = Scan::open(rows, &["host"])?;
        while let Some(batch) = scan.batch()? {
            let hosts: &StringArray = field(&batch, "host")?;
            if hosts.iter().flatten().any(|host| patterns.has_host(host)) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Whether a URL matches as it is written, or in its canonical form: rejects may have URLs as they
/// were found.
fn matches_raw(patterns: &UrlPatterns, url: &str) -> bool {
    patterns.matches(url) || canonical(url).is_some_and(|url| patterns.matches(url.as_str()))
}

/// Writes the ids to delete into the unfinished week. The run leaves them out, and the commit makes
/// the store forget their URLs.
///
/// # Errors
/// Names the file that cannot be written.
pub fn write_deleted(unfinished: &Unfinished, docs: &[DocId]) -> Result<()> {
    let mut writer: Writer<DeletedRow> = Writer::create(&unfinished.deleted())?;
    docs.iter().try_for_each(|doc| writer.push(DeletedRow { doc: doc.to_table() }))?;
    writer.finish().map(|_| ())
}

/// Makes the segments of the week without the deleted documents; worker 0 writes the journal. A
/// journal that has them stays as it is, and so do the tables: there may have been other workers.
pub(crate) fn leave_out(
    cx: &mut Context,
    plan: &Plan,
    deletion: &Deletion,
    unfinished: &Unfinished,
    journal: &WeekJournal,
) -> Result<()> {
    if journal.is_begun() {
        return Ok(());
    }
    cx.enter(Stage::LeaveOut);
    let store = plan.open_store();
    let (old, tables) = (store.whole(&deletion.of)?.journal, store.tables(&deletion.of)?);
    let owned = Ownership::new(cx.index(), cx.peers(), &plan.urls(&old));
    let name = BundleName::Remaining(cx.index());
    // Without patterns the week is only verified.
    let mut deleted = if deletion.patterns.is_empty() { Vec::new() } else { read_deleted(unfinished)? };
    let touched = touched(cx, &tables, &deleted, &deletion.patterns)?;
    let own_shards: BTreeSet<u32> = owned.shards().collect();
    deleted.retain(|doc| own_shards.contains(&doc.shard()));
    let shingle = plan.method.words;
    let week = FilteredWeek { tables: &tables, unfinished, deleted, deletion, touched, name, shingle };
    let (mut segments, mut deleted) = (Vec::new(), DocumentTotals::default());
    let mut bundles = PageBundles::new(unfinished, name);
    let by_shard = old.by_shard();
    for segment in owned.shards().filter_map(|shard| by_shard.get(&shard)).flatten() {
        let remaining = week.segment(*segment, &mut bundles, &mut deleted)?;
        segments.extend((remaining.documents + remaining.urls > 0).then_some(remaining));
    }
    bundles.finish()?;
    week.captures(&owned)?;
    let mut journal = WeekJournal::new(plan.key());
    let segments = cx.sorted(segments)?;
    let deleted = cx.sorted(vec![deleted])?;
    if cx.index() == 0 {
        journal.counts = old.counts;
        for deleted in deleted {
            journal.counts.take_documents_away(&deleted);
        }
        for (reason, count) in week.rejects(old.waves)? {
            let remaining = journal.counts.rejects.entry(reason).or_default();
            *remaining = remaining.saturating_sub(count);
        }
        journal.counts.rejects.retain(|_, count| *count > 0);
        (journal.waves, journal.segments, journal.earlier_inputs) = (old.waves, segments, old.earlier_inputs);
        sync_folder(unfinished.folder())?;
        unfinished.write_journal(&journal)?;
    }
    // All workers wait until the journal is written, because they read it next.
    cx.barrier()
}

/// Copies a shard's `missing` without the deleted URLs, and calls `count` with the document and the
/// reason of each remaining row.
pub(crate) fn missing_without(
    from: RowRange,
    to: &mut Writer<MissingRow>,
    deletion: &Deletion,
    mut count: impl FnMut(DocId, &str),
) -> Result<()> {
    copy_rows(from, to, &["doc", "url", "id", "reason"], |batch| {
        let docs: &Int64Array = field(batch, "doc")?;
        let texts = |name| field::<StringArray>(batch, name);
        let (urls, ids, reasons) = (texts("url")?, texts("id")?, texts("reason")?);
        let keep = |row| Some(!matches_key(&deletion.patterns, urls, ids, row));
        let kept: BooleanArray = (0..batch.num_rows()).map(keep).collect();
        for row in (0..batch.num_rows()).filter(|row| kept.value(*row)) {
            count(DocId::from_table(docs.value(row)), reasons.value(row));
        }
        Ok(kept)
    })
    .map(|_| ())
}

/// A committed week that is copied without the deleted documents.
struct FilteredWeek<'a> {
    tables: &'a WeekTables,
    unfinished: &'a Unfinished,
    /// The deleted ids in own shards, ascending.
    deleted: Vec<DocId>,
    deletion: &'a Deletion,
    /// The files of earlier weeks of which the week needs nothing from now on.
    touched: BTreeSet<PathBuf>,
    /// The bundles that the worker writes.
    name: BundleName,
    /// The words in a shingle.
    shingle: usize,
}

impl FilteredWeek<'_> {
    fn is_deleted(&self, doc: i64) -> bool {
        self.deleted.binary_search(&DocId::from_table(doc)).is_ok()
    }

    /// Copies a segment's tables without the deleted documents, and adds these to `deleted`.
    /// Returns the segment that remains.
    fn segment(&self, segment: Segment, to: &mut PageBundles, deleted: &mut DocumentTotals) -> Result<Segment> {
        let Segment { wave, shard, origin, .. } = segment;
        // Nothing that is deleted stays in the files of the week that crawled it because of this
        // week.
        let is_written = origin.is_some_and(|origin| self.is_touched(shard, origin));
        let documents = if is_written {
            self.stored_here(segment, &mut to.documents)?
        } else {
            self.by_doc(segment, &mut to.documents)?
        };
        if documents < segment.documents {
            let rows = self.tables.rows(DocumentRow::NAME, &segment.file())?;
            Scan::open(rows, &["doc", "bytes", "words"])?.for_each(|batch| {
                let column = |name| field::<Int64Array>(batch, name);
                let (docs, bytes, words) = (column("doc")?, column("bytes")?, column("words")?);
                for row in (0..batch.num_rows()).filter(|row| self.is_deleted(docs.value(*row))) {
                    deleted.add(words.value(row) as u64, bytes.value(row) as u64, self.shingle);
                }
                Ok(())
            })?;
        }
        let urls = if segment.urls > 0 { self.by_doc(segment, &mut to.urls)? } else { 0 };
        if self.tables.find(ValueRow::NAME, &segment.file()).is_some() {
            self.by_doc(segment, &mut to.values)?;
        }
        if documents == 0 && urls > 0 {
            // Of revisits that are not known a week has the URLs only.
            to.documents.end_any_piece(&segment.file())?;
        }
        let is_own = |table: &str| self.tables.find(table, &segment.file()).is_some();
        let stay = origin.is_some() && !is_written;
        // Of rows that stay nothing is deleted. The week may have some tables of its own.
        let features = match segment.features {
            features if features == 0 || stay && !is_own(FeatureRow::NAME) => features,
            _ => self.by_doc(segment, &mut to.features)?,
        };
        let chunks = match segment.chunks {
            chunks if chunks == 0 || stay && !is_own(ChunkRow::NAME) => chunks,
            _ => self.by_doc(segment, &mut to.chunks)?,
        };
        if stay {
            return Ok(Segment { documents, urls, features, chunks, ..segment });
        }
        let links = match segment.links {
            0 => 0,
            _ if is_written => self.links_again(segment, &mut to.found_links)?,
            _ => self.links(segment, &mut to.links)?,
        };
        Ok(Segment { wave, shard, documents, urls, features, links, chunks, origin: None })
    }

    /// Copies the remaining `documents` of a segment whose features, links and chunks are written
    /// in this week.
    fn stored_here(&self, segment: Segment, to: &mut BundleWriter<DocumentRow<'static>>) -> Result<u64> {
        copy_rows_edited(
            self.tables.of_segment(DocumentRow::NAME, &segment)?,
            to.writer()?,
            &["doc"],
            |batch| self.remains(batch),
            |batch| DocumentRow::stored_in(&batch, self.deletion.of.week),
        )?;
        to.end_piece(&segment.file())
    }

    /// Whether rows of a segment are in a file with something that is deleted.
    fn is_touched(&self, shard: u32, origin: SegmentOrigin) -> bool {
        let rows = KEPT_TABLES.iter().filter_map(|table| self.tables.of_origin(table, shard, origin).ok());
        rows.into_iter().any(|rows| self.touched.contains(rows.path()))
    }

    /// Which rows are of documents that remain.
    fn remains(&self, batch: &RecordBatch) -> Result<BooleanArray> {
        let docs: &Int64Array = field(batch, "doc")?;
        Ok(docs.values().iter().map(|doc| Some(!self.is_deleted(*doc))).collect())
    }

    /// Copies one table of a segment without the rows of deleted documents. Returns how many rows
    /// remain.
    fn by_doc<T: Table>(&self, segment: Segment, to: &mut BundleWriter<T>) -> Result<u64> {
        let from = self.tables.of_segment(T::NAME, &segment)?;
        copy_rows(from, to.writer()?, &["doc"], |batch| self.remains(batch))?;
        to.end_piece(&segment.file())
    }

    /// Copies `links` of a segment without the links from deleted documents and those to their
    /// URLs. Returns how many rows remain.
    fn links(&self, segment: Segment, to: &mut BundleWriter<LinkRow<'static>>) -> Result<u64> {
        let from = self.tables.of_segment(LinkRow::NAME, &segment)?;
        copy_rows(from, to.writer()?, &["doc", "target_url"], |batch| self.links_that_remain(batch))?;
        to.end_piece(&segment.file())
    }

    /// As [`links`](FilteredWeek::links), of pages that stayed: as they were found on them. Of some
    /// targets only a later week than that of the links has the document.
    fn links_again(&self, segment: Segment, to: &mut BundleWriter<FoundLinkRow<'static>>) -> Result<u64> {
        let from = self.tables.of_segment(LinkRow::NAME, &segment)?;
        let writer = to.writer()?;
        Scan::open(from, &["doc", "target_url"])?.for_each(|batch| {
            let remaining = filter_record_batch(batch, &self.links_that_remain(batch)?)?;
            if remaining.num_rows() > 0 { writer.push_rows(&remaining) } else { Ok(()) }
        })?;
        to.end_piece(&segment.file())
    }

    /// Which links are neither of deleted documents nor to their URLs.
    fn links_that_remain(&self, batch: &RecordBatch) -> Result<BooleanArray> {
        let (docs, targets): (&Int64Array, &StringArray) = (field(batch, "doc")?, field(batch, "target_url")?);
        let keep = |row| !self.is_deleted(docs.value(row)) && !self.deletion.patterns.matches(targets.value(row));
        Ok((0..batch.num_rows()).map(|row| Some(keep(row))).collect())
    }

    /// Copies the own rows of `captures` without those of deleted documents. A week of an older
    /// version lacks the table.
    fn captures(&self, owned: &Ownership) -> Result<()> {
        let own_shards: BTreeSet<u32> = owned.shards().collect();
        let mut writer: BundleWriter<CaptureRow<'static>> = self.unfinished.bundle(self.name);
        for (name, rows) in self.tables.pieces(CaptureRow::NAME) {
            if Segment::shard_of(name).is_some_and(|shard| own_shards.contains(&shard)) {
                let links = |batch| self.without_links_to_deleted(&batch);
                copy_rows_edited(rows, writer.writer()?, &["doc"], |batch| self.remains(batch), links)?;
                writer.end_piece(name)?;
            }
        }
        writer.finish()
    }

    /// Rows of `captures` without the links to deleted URLs.
    fn without_links_to_deleted(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let is_kept = |link: &&str| !self.deletion.patterns.matches(link);
        let links: &StringArray = field(batch, "links")?;
        let links = links.iter().map(|links| Some(links?.lines().filter(is_kept).collect::<Vec<_>>().join("\n")));
        let mut columns = batch.columns().to_vec();
        columns[batch.schema().index_of("links")?] = Arc::new(links.collect::<StringArray>());
        Ok(RecordBatch::try_new(batch.schema(), columns)?)
    }

    /// Copies `rejects` of all waves without the rows that mention deleted URLs. Returns how many
    /// rows were left out, by reason.
    fn rejects(&self, waves: usize) -> Result<BTreeMap<String, u64>> {
        let mut left_out: BTreeMap<String, u64> = BTreeMap::new();
        let mut writer: BundleWriter<RejectRow> = self.unfinished.bundle(self.name);
        for wave in 0..waves {
            let file = RejectRow::file(wave);
            let from = self.tables.rows(RejectRow::NAME, &file)?;
            let keep = |batch: &RecordBatch| {
                let (urls, reasons): (&StringArray, &StringArray) = (field(batch, "url")?, field(batch, "reason")?);
                let is_deleted = |url| matches_raw(&self.deletion.patterns, url);
                let kept: BooleanArray = urls.iter().map(|url| Some(!url.is_some_and(is_deleted))).collect();
                for row in (0..batch.num_rows()).filter(|row| !kept.value(*row)) {
                    *left_out.entry(reasons.value(row).to_owned()).or_default() += 1;
                }
                Ok(kept)
            };
            copy_rows(from, writer.writer()?, &["url", "reason"], keep)?;
            // Every wave has its piece, with rejects or without.
            writer.end_any_piece(&file)?;
        }
        writer.finish()?;
        Ok(left_out)
    }
}

/// The deleted ids, ascending.
fn read_deleted(unfinished: &Unfinished) -> Result<Vec<DocId>> {
    let mut deleted = Vec::new();
    Scan::open(unfinished.deleted(), &["doc"])?.for_each(|batch| {
        deleted.extend(field::<Int64Array>(batch, "doc")?.values().iter().map(|doc| DocId::from_table(*doc)));
        Ok(())
    })?;
    Ok(deleted)
}

/// The files of earlier weeks with pages of the week, of those that have something that is deleted:
/// rows of documents, of former versions of them, or links to their URLs. Such a file goes when its
/// week is removed, if the week needs nothing of it. The same at every worker.
fn touched(
    cx: &mut Context,
    tables: &WeekTables,
    deleted: &[DocId],
    patterns: &UrlPatterns,
) -> Result<BTreeSet<PathBuf>> {
    let mut files: Vec<(&str, &RowRange)> =
        KEPT_TABLES.iter().flat_map(|table| tables.all_kept(table).map(|rows| (*table, rows))).collect();
    files.sort_unstable_by_key(|(_, rows)| rows.path());
    let mut own = Vec::new();
    for (number, (table, rows)) in files.iter().enumerate().skip(cx.index()).step_by(cx.peers()) {
        let columns: &[&str] = if *table == LinkRow::NAME { &["doc", "target_url"] } else { &["doc"] };
        let mut scan = Scan::open(*rows, columns)?;
        let mut is_touched = false;
        while !is_touched && let Some(batch) = scan.batch()? {
            let docs: &Int64Array = field(&batch, "doc")?;
            is_touched = docs.values().iter().any(|doc| deleted.binary_search(&DocId::from_table(*doc)).is_ok());
            if !is_touched && *table == LinkRow::NAME {
                let targets: &StringArray = field(&batch, "target_url")?;
                is_touched = targets.iter().flatten().any(|target| patterns.matches(target));
            }
        }
        own.extend(is_touched.then_some(number as u64));
    }
    let touched = cx.sorted(own)?.into_iter();
    Ok(touched.map(|number| files[number as usize].1.path().to_owned()).collect())
}
