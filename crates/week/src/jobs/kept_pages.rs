//! Pages of the week before that stay although the crawl does not have them: those of which it says
//! that they are what they were, and all others in a partial crawl, or a batch that is added to
//! others.
//!
//! ```text
//! segments of the week before ─▶ without the documents that the crawl has, or says are gone ─▶ further segments of the week
//! documents, values       ─▶ the rows that stay are written again
//! features, links, chunks ─▶ they stay in the files of the week that crawled the page, beside those of pages that do not stay
//! ```
//!
//! Features, links and chunks are most of what is known of a page. Where half of a segment or more
//! has gone, they are written again, too: so files of earlier weeks have at most twice the rows
//! that count, and no week leaves files behind for a few pages alone. Everything after the segments
//! is as for a week whose crawl had these pages.
//!
//! Cost: the rows of `documents`, and column `doc` of the links of segments from which something
//! goes.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use anyhow::{Context as _, Result};
use arrow_array::{Array as _, BooleanArray, Date32Array, Int64Array, RecordBatch, StringArray};
use arrow_select::filter::filter_record_batch;
use nigh_exchange::Context;

use super::page_bundles::PageBundles;
use super::revisited::{CapturePlace, PlacedPage, RevisitInputs, SearchedWeek};
use crate::config::Absent;
use crate::operators::ingest::{PayloadDigest, Revisited, gone_documents, revisits};
use crate::operators::scan::{docs_with_urls, own_segments};
use crate::plan::Plan;
use crate::records::{DocId, DocumentKey, Week};
use crate::state::{
    BundleName, BundleWriter, DocumentTotals, RevisitCounts, Segment, SegmentOrigin, Unfinished, UrlIndex, WeekJournal,
    WeekTables, sync_folder,
};
use crate::structures::Ownership;
use crate::tables::{
    CopiedPiece, DocumentRow, FoundLinkRow, LinkRow, PieceCopy, PieceScan, RowRange, Scan, Table, ValueRow, copy_rows,
    field,
};
use crate::watch::Stage;

/// Adds the segments of pages that stay, and of those that a revisit names, to the journal of the
/// week, which has all of its waves. A journal that has them stays as it is.
///
/// # Errors
/// If a file cannot be read or written (names it), or a worker of this process failed.
pub(crate) fn keep_pages(
    cx: &mut Context,
    plan: &Plan,
    unfinished: &Unfinished,
    mut journal: WeekJournal,
) -> Result<()> {
    if journal.segments.iter().any(|segment| segment.wave >= journal.waves) {
        return Ok(());
    }
    cx.enter(Stage::KeepPages);
    let owned = Ownership::new(cx.index(), cx.peers(), &plan.urls(&journal));
    let store = plan.open_store();
    let before = plan.earlier.last().map(|before| Ok::<_, anyhow::Error>((before.week, store.whole_base(before)?)));
    let before = before.transpose()?;
    let before = before.as_ref().map(|(week, whole)| {
        (*week, whole.journal.waves, own_segments(&whole.journal, &owned), whole.tables(store.root()))
    });
    let UncrawledPages { mut stays, revisits } = UncrawledPages::read(plan, unfinished, &journal, &owned)?;
    let has_revisits = cx.any(!revisits.is_empty())?;
    let weeks = if has_revisits { SearchedWeek::all(plan, unfinished, &journal, &owned)? } else { Vec::new() };
    let finding =
        RevisitInputs { worker: cx.index(), plan, unfinished, journal: &journal, owned: &owned, weeks: &weeks };
    let mut of_revisits = RevisitCounts::default();
    let mut to_write = Vec::new();
    if has_revisits {
        let of_before = before.as_ref().map(|(_, _, old, tables)| (old, tables));
        let revisits = stays_by_digest(&finding, of_before, revisits, &mut stays, &mut of_revisits)?;
        let found = finding.find(cx, &revisits.concat())?;
        to_write = resolved(&finding, revisits, found, &mut stays, &mut of_revisits)?;
    }
    let (mut segments, mut kept_pages) = (Vec::new(), KeptTotals::new(plan.method.words));
    if let Some((week, waves, old, tables)) = &before {
        let (new, first_wave) = (plan.week, journal.waves + 1);
        let kept = KeptPages { tables, week: *week, waves: *waves, new, owned: &owned, stays, first_wave };
        segments = kept.segments(old, (unfinished, cx.index()), &mut kept_pages)?;
    }
    if has_revisits {
        let written = finding.write(cx, &to_write)?;
        for segment in &written {
            kept_pages.add(vec![unfinished.rows::<DocumentRow>(&segment.file())?], |_| true)?;
        }
        segments.extend(written);
    }
    let segments = cx.sorted(segments)?;
    let KeptTotals { counts, inputs, .. } = kept_pages;
    let counts = cx.concat(vec![counts])?;
    let of_revisits = cx.concat(vec![of_revisits])?;
    let mut inputs = cx.sorted(inputs.into_iter().collect())?;
    inputs.dedup();
    let are_resolved = journal.counts.revisits > 0 && plan.method.documents == DocumentKey::Url;
    if cx.index() == 0 && (!segments.is_empty() || are_resolved) {
        journal.segments.extend(segments);
        for kept in counts {
            journal.counts.add_documents(&kept);
        }
        journal.counts.revisited = are_resolved.then(RevisitCounts::default);
        for of_worker in of_revisits {
            journal.counts.revisited.iter_mut().for_each(|sums| sums.add(of_worker.clone()));
        }
        for week in &plan.earlier.weeks {
            for (of, names) in store.whole(week)?.journal.inputs(week.week) {
                let has_pages = |name: &String| inputs.binary_search(&(of.days(), name.clone())).is_ok();
                let with_pages = names.iter().filter(|(name, _)| has_pages(name));
                let with_pages = with_pages.map(|(name, stamp)| (name.clone(), stamp.clone()));
                journal.earlier_inputs.entry(of).or_default().extend(with_pages);
            }
        }
        journal.earlier_inputs.retain(|_, names| !names.is_empty());
        sync_folder(unfinished.folder())?;
        unfinished.write_journal(&journal)?;
    }
    // All workers wait until the journal is written, because they read it next.
    cx.barrier()
}

/// Makes the segments of pages that stay again, given which own documents these are, by number;
/// `waves` are those of the crawl.
///
/// # Errors
/// If a file cannot be read or written (names it).
pub(super) fn keep_again(
    plan: &Plan,
    (unfinished, worker): (&Unfinished, usize),
    owned: &Ownership,
    stays: Vec<bool>,
    waves: usize,
) -> Result<Vec<Segment>> {
    let Some(before) = plan.earlier.last() else { return Ok(Vec::new()) };
    let store = plan.open_store();
    let whole = store.whole_base(before)?;
    let (old, tables) = (own_segments(&whole.journal, owned), whole.tables(store.root()));
    let (new, of_before) = (plan.week, whole.journal.waves);
    let kept =
        KeptPages { tables: &tables, week: before.week, waves: of_before, new, owned, stays, first_wave: waves + 1 };
    kept.segments(&old, (unfinished, worker), &mut KeptTotals::new(plan.method.words))
}

/// What becomes of own documents that the crawl has no page of.
struct UncrawledPages {
    /// Whether it stays as it was in the week before, if that has a page of it; by own document.
    stays: Vec<bool>,
    /// The revisits of each URL that the crawl has no page of, in the order of shards and hashes.
    revisits: Vec<Vec<Revisited>>,
}

impl UncrawledPages {
    fn read(plan: &Plan, unfinished: &Unfinished, journal: &WeekJournal, owned: &Ownership) -> Result<UncrawledPages> {
        let mut is_crawled = vec![false; owned.len()];
        let segments = own_segments(journal, owned).into_iter();
        let rows = segments.map(|segment| unfinished.rows::<DocumentRow>(&segment.file()));
        PieceScan::new(rows.collect::<Result<_>>()?, &["doc"]).for_each(|_, batch| {
            let docs: &Int64Array = field(batch, "doc")?;
            docs.values().iter().for_each(|doc| is_crawled[owned.index(DocId::from_table(*doc))] = true);
            Ok(())
        })?;
        let store = plan.open_store();
        let (index, by_shard) = (store.url_indexes(&plan.earlier)?, journal.by_shard());
        let mut stays = vec![false; owned.len()];
        if plan.absent == Absent::Keep {
            let has_url = docs_with_urls(&store.url_files(&plan.earlier)?, owned)?;
            stays = is_crawled.iter().zip(has_url).map(|(is_crawled, has_url)| !is_crawled && has_url).collect();
        }
        let mut all: Vec<Vec<Revisited>> = Vec::new();
        for shard in owned.shards() {
            // What a server says is gone does not stay.
            let gone = gone_documents(unfinished, shard, journal.waves)?;
            gone.into_iter().for_each(|doc| stays[owned.index(doc)] = false);
            let of_shard = revisits(unfinished, shard, journal.waves)?;
            if of_shard.is_empty() {
                continue;
            }
            let earlier = index.get(&shard).map_or(&[][..], |files| files);
            let segments = by_shard.get(&shard).map_or(&[][..], |segments| segments);
            let mut urls = UrlIndex { unfinished, shard, segments, earlier }.lookup(journal.waves)?;
            for of_url in of_shard.chunk_by(|a, b| a.hash == b.hash) {
                // A page of the same URL counts before a revisit.
                let doc = urls.find(of_url[0].hash)?;
                if doc.is_none_or(|doc| !is_crawled[owned.index(doc)]) {
                    // A page of which a revisit says that it is another one does not stay.
                    doc.into_iter().for_each(|doc| stays[owned.index(doc)] = false);
                    all.push(of_url.to_vec());
                }
            }
        }
        Ok(UncrawledPages { stays, revisits: all })
    }
}

/// Sets which documents stay as they were in the week before, because the first revisit of their
/// URL has the digest of that page, and returns the revisits of the other URLs. `before` are the
/// segments and tables of the week before.
///
/// A URL that has later captures is left to the search: `fetched` must say when it was what it is.
fn stays_by_digest(
    finding: &RevisitInputs<'_>,
    before: Option<(&VecDeque<Segment>, &WeekTables)>,
    mut revisits: Vec<Vec<Revisited>>,
    stays: &mut [bool],
    counts: &mut RevisitCounts,
) -> Result<Vec<Vec<Revisited>>> {
    let (Some((old, tables)), owned) = (before, finding.owned) else { return Ok(revisits) };
    let with_captures = with_captures(finding)?;
    let digest_of = |of_url: &Vec<Revisited>| Some((of_url[0].doc?, of_url[0].named.digest?));
    let wanted = revisits.iter().filter_map(digest_of).filter(|(doc, _)| !with_captures.contains(doc));
    let wanted: BTreeMap<DocId, PayloadDigest> = wanted.collect();
    let shards: BTreeSet<u32> = wanted.keys().map(|doc| doc.shard()).collect();
    for segment in old.iter().filter(|segment| segment.documents > 0 && shards.contains(&segment.shard)) {
        let rows = tables.rows(DocumentRow::NAME, &segment.file())?;
        Scan::open(rows, &["doc", "digest"])?.for_each(|batch| {
            let (docs, digests): (&Int64Array, &StringArray) = (field(batch, "doc")?, field(batch, "digest")?);
            for row in (0..batch.num_rows()).filter(|row| digests.is_valid(*row)) {
                let doc = DocId::from_table(docs.value(row));
                if let Some(digest) = wanted.get(&doc) {
                    stays[owned.index(doc)] = PayloadDigest::read(digests.value(row)) == Some(*digest);
                }
            }
            Ok(())
        })?;
    }
    let all = revisits.len();
    revisits.retain(|of_url| {
        let doc = of_url[0].doc.filter(|doc| wanted.contains_key(doc));
        doc.is_none_or(|doc| !stays[owned.index(doc)])
    });
    counts.earlier += (all - revisits.len()) as u64;
    Ok(revisits)
}

/// The own documents that have later captures in some week.
fn with_captures(finding: &RevisitInputs<'_>) -> Result<BTreeSet<DocId>> {
    let mut docs = BTreeSet::new();
    finding.weeks.iter().try_for_each(|week| week.add_with_captures(&mut docs))?;
    Ok(docs)
}

/// What is to be written of the revisits of each URL, given the page of each of them: the first
/// revisit that is found, or the first one if none is. Sets which documents stay where they are in
/// the week before, and counts.
fn resolved(
    finding: &RevisitInputs<'_>,
    revisits: Vec<Vec<Revisited>>,
    found: Vec<Option<PlacedPage>>,
    stays: &mut [bool],
    counts: &mut RevisitCounts,
) -> Result<Vec<(Revisited, Option<PlacedPage>)>> {
    let with_captures = with_captures(finding)?;
    let (mut found, mut to_write) = (found.into_iter(), Vec::new());
    for of_url in revisits {
        let places: Vec<Option<PlacedPage>> = found.by_ref().take(of_url.len()).collect();
        let first = places.iter().position(Option::is_some);
        let Some(revisit) = of_url.into_iter().nth(first.unwrap_or(0)) else { continue };
        let page = first.and_then(|first| places[first]);
        match page {
            Some((place, _)) if place.week == 0 => counts.here += 1,
            Some((place, _)) => {
                counts.earlier += 1;
                let own = revisit.doc.filter(|doc| !with_captures.contains(doc));
                if let Some(doc) = own
                    && place == (CapturePlace { week: 1, row: 0, doc })
                {
                    stays[finding.owned.index(doc)] = true;
                    continue;
                }
            }
            None if revisit.may_be_no_page() => continue,
            None => {
                let file =
                    finding.plan.inputs.get(revisit.file as usize).context("a revisit names an input of the plan")?;
                *counts.not_known.entry(file.name.clone()).or_default() += 1;
            }
        }
        to_write.push((revisit, page));
    }
    Ok(to_write)
}

/// The documents that stay, all together.
struct KeptTotals {
    counts: DocumentTotals,
    /// The words in a shingle.
    shingle: usize,
    /// The week (days since 1970) and the name of each input that has one.
    inputs: BTreeSet<(i32, String)>,
}

impl KeptTotals {
    fn new(shingle: usize) -> KeptTotals {
        KeptTotals { counts: DocumentTotals::default(), shingle, inputs: BTreeSet::new() }
    }

    /// Adds the rows of `documents` of some segments whose documents stay. Returns how many pages
    /// each segment has.
    fn add(&mut self, rows: Vec<RowRange>, stays: impl Fn(i64) -> bool) -> Result<Vec<SegmentPages>> {
        let mut pages = vec![SegmentPages::default(); rows.len()];
        let scan = PieceScan::new(rows, &["doc", "bytes", "words", "crawled", "file"]);
        scan.for_each(|segment, batch| {
            let column = |name| field::<Int64Array>(batch, name);
            let (docs, bytes, words) = (column("doc")?, column("bytes")?, column("words")?);
            let (weeks, files): (&Date32Array, &StringArray) = (field(batch, "crawled")?, field(batch, "file")?);
            let (of_segment, mut of_batch): (_, BTreeSet<(i32, &str)>) = (&mut pages[segment], BTreeSet::new());
            for row in 0..batch.num_rows() {
                let has_words = u64::from(words.value(row) > 0);
                of_segment.with_words += has_words;
                if stays(docs.value(row)) {
                    (of_segment.staying, of_segment.staying_with_words) =
                        (of_segment.staying + 1, of_segment.staying_with_words + has_words);
                    self.counts.add(words.value(row) as u64, bytes.value(row) as u64, self.shingle);
                    of_batch.insert((weeks.value(row), files.value(row)));
                }
            }
            self.inputs.extend(of_batch.into_iter().map(|(week, file)| (week, file.to_owned())));
            Ok(())
        })?;
        Ok(pages)
    }
}

/// How many pages a segment of the week before has.
#[derive(Clone, Copy, Default)]
struct SegmentPages {
    with_words: u64,
    /// Those that stay.
    staying: u64,
    staying_with_words: u64,
}

/// The rows of a table of a segment that stay.
#[derive(Clone, Copy, Default)]
struct StayingRows {
    count: u64,
    /// Whether there are some, in the files of the week that crawled the pages.
    are_there: bool,
}

/// The week before, whose pages stay unless they were crawled.
struct KeptPages<'a> {
    tables: &'a WeekTables,
    /// Its date.
    week: Week,
    /// The waves of its crawl: its segments after these are of pages that stayed in it.
    waves: usize,
    /// The date of the week that is made.
    new: Week,
    owned: &'a Ownership,
    /// Whether each own document stays, if the week before has a page of it; by number.
    stays: Vec<bool>,
    /// The wave of the first segment that is added.
    first_wave: usize,
}

impl KeptPages<'_> {
    fn stays(&self, doc: i64) -> bool {
        self.stays[self.owned.index(DocId::from_table(doc))]
    }

    /// Which rows are of documents that stay.
    fn stays_in(&self, batch: &RecordBatch) -> Result<BooleanArray> {
        let docs: &Int64Array = field(batch, "doc")?;
        Ok(docs.values().iter().map(|doc| Some(self.stays(*doc))).collect())
    }

    /// Copies these segments without the documents that were crawled, and counts those that stay.
    /// Returns the segments that remain.
    fn segments(
        &self,
        old: &VecDeque<Segment>,
        (unfinished, worker): (&Unfinished, usize),
        totals: &mut KeptTotals,
    ) -> Result<Vec<Segment>> {
        if !self.stays.contains(&true) {
            return Ok(Vec::new());
        }
        let rows = old.iter().map(|segment| self.tables.rows(DocumentRow::NAME, &segment.file()));
        let rows = rows.collect::<Result<Vec<RowRange>>>()?;
        let pages = totals.add(rows.clone(), |doc| self.stays(doc))?;
        let staying = old.iter().zip(rows).zip(pages).filter(|(_, pages)| pages.staying > 0);
        let staying: Vec<_> = staying.map(|((segment, rows), pages)| (*segment, rows, pages)).collect();
        let documents = staying.iter().map(|(segment, rows, pages)| {
            let is_unchanged = pages.staying == segment.documents && self.stored_in(segment, pages).is_none();
            CopiedPiece { rows: rows.clone(), unchanged: is_unchanged.then_some(pages.staying) }
        });
        let mut documents = PieceCopy::new::<DocumentRow>(documents.collect());
        let mut bundles = PageBundles::new(unfinished, BundleName::Kept(worker));
        let mut segments = Vec::new();
        for (segment, _, pages) in staying {
            let kept = Segment { wave: self.first_wave + segment.wave, urls: 0, documents: pages.staying, ..segment };
            documents.next(bundles.documents.writer()?, |batch| {
                let staying = filter_record_batch(batch, &self.stays_in(batch)?)?;
                match self.stored_in(&segment, &pages) {
                    Some(week) => DocumentRow::stored_in(&staying, week),
                    None => Ok(staying),
                }
            })?;
            bundles.documents.end_piece(&kept.file())?;
            segments.push(self.segment(segment, &pages, kept, &mut bundles)?);
        }
        bundles.finish()?;
        Ok(segments)
    }

    /// Whether half of a segment or more has gone, of the files that have its features, links and
    /// chunks.
    fn is_rewritten(segment: &Segment, pages: &SegmentPages) -> bool {
        let stored = segment.origin.map_or(segment.documents, |origin| origin.documents);
        2 * pages.staying <= stored
    }

    /// The week in whose files the rows of a segment's pages are from now on, if the week before
    /// does not name it: this one, if they are written again. Older versions named the week of the
    /// crawl where a segment has neither links nor chunks, although its rows are in the files of
    /// the week before.
    fn stored_in(&self, segment: &Segment, pages: &SegmentPages) -> Option<Week> {
        if Self::is_rewritten(segment, pages) {
            Some(self.new)
        } else {
            // A segment of pages without words and links has such rows nowhere, and so no origin.
            let has_rows = segment.features + segment.links + segment.chunks > 0;
            (has_rows && segment.origin.is_none() && segment.wave > self.waves).then_some(self.week)
        }
    }

    /// Copies a segment's tables, except its documents, without the documents that were crawled.
    /// Returns `kept`, the segment that remains, with its counts.
    fn segment(&self, segment: Segment, pages: &SegmentPages, kept: Segment, to: &mut PageBundles) -> Result<Segment> {
        if self.tables.find(ValueRow::NAME, &segment.file()).is_some() {
            self.by_doc(segment, kept, &mut to.values)?;
        }
        if Self::is_rewritten(&segment, pages) {
            let features = if segment.features > 0 { self.by_doc(segment, kept, &mut to.features)? } else { 0 };
            let chunks = if segment.chunks > 0 { self.by_doc(segment, kept, &mut to.chunks)? } else { 0 };
            let links = if segment.links > 0 { self.links(segment, kept, &mut to.found_links)? } else { 0 };
            return Ok(Segment { features, links, chunks, origin: None, ..kept });
        }
        let own = SegmentOrigin { week: self.week, wave: segment.wave, documents: segment.documents };
        let origin = segment.origin.unwrap_or(own);
        let all_stay = pages.staying == segment.documents;
        // Each page with words has features, and mostly chunks.
        let known = |rows: u64| match all_stay {
            true => Some(rows),
            false => (rows == pages.with_words).then_some(pages.staying_with_words),
        };
        let features = self.stay(segment, kept, segment.features, known(segment.features), &mut to.features)?;
        let chunks = self.stay(segment, kept, segment.chunks, known(segment.chunks), &mut to.chunks)?;
        let links = match segment.links {
            links if links == 0 || all_stay => links,
            _ => self.count(LinkRow::NAME, segment)?,
        };
        let is_there = links > 0 || features.are_there || chunks.are_there;
        let (features, chunks, origin) = (features.count, chunks.count, is_there.then_some(origin));
        Ok(Segment { features, links, chunks, origin, ..kept })
    }

    /// Leaves the rows of a table of a segment where they are; `known` is how many of its `rows`
    /// stay, if that is known. Rows that are in files of the week before only, although the links
    /// are in those of an earlier one, are copied: chunks that
    /// [`make_chunks`](super::chunks::make_chunks) made later, and features of a week of an older
    /// version if the weeks that crawled the pages were removed.
    fn stay<T: Table>(
        &self,
        from: Segment,
        kept: Segment,
        rows: u64,
        known: Option<u64>,
        to: &mut BundleWriter<T>,
    ) -> Result<StayingRows> {
        if rows == 0 {
            return Ok(StayingRows::default());
        }
        let is_own = self.tables.find(T::NAME, &from.file()).is_some();
        let is_only_own = |origin| is_own && self.tables.of_origin(T::NAME, from.shard, origin).is_err();
        if from.origin.is_some_and(is_only_own) {
            return Ok(StayingRows { count: self.by_doc(from, kept, to)?, are_there: false });
        }
        let count = known.map_or_else(|| self.count(T::NAME, from), Ok)?;
        Ok(StayingRows { count, are_there: count > 0 })
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

    /// Copies one table of a segment without the rows of documents that were crawled. Returns how
    /// many rows remain.
    fn by_doc<T: Table>(&self, from: Segment, kept: Segment, to: &mut BundleWriter<T>) -> Result<u64> {
        let from = self.tables.of_segment(T::NAME, &from)?;
        copy_rows(from, to.writer()?, &["doc"], |batch| self.stays_in(batch))?;
        to.end_piece(&kept.file())
    }

    /// Writes the links of documents that stay as they were found on their pages: which of their
    /// targets the week has is found again.
    fn links(&self, from: Segment, kept: Segment, to: &mut BundleWriter<FoundLinkRow<'static>>) -> Result<u64> {
        let from = self.tables.of_segment(LinkRow::NAME, &from)?;
        let writer = to.writer()?;
        Scan::open(from, &["doc", "target_url"])?.for_each(|batch| {
            let kept = filter_record_batch(batch, &self.stays_in(batch)?)?;
            if kept.num_rows() > 0 { writer.push_rows(&kept) } else { Ok(()) }
        })?;
        to.end_piece(&kept.file())
    }
}
