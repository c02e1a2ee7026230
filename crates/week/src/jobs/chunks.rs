//! Makes the table `chunks` of a committed week from its crawl files: for weeks that were made
//! without it.
//!
//! ```text
//! each page of the files ─▶ its chunks, under its URL, and under those of documents with this `record_url`, sorted by the hash
//! URL ─▶ document id, by the index of URLs; the pages of a shard are sorted by id
//! each document of the week with words: the first page of its id with its checksum; else it is missing
//! ```
//!
//! The pages are read as the job of the week read them, so the table has the rows that it would
//! have if it had been made with the week, in the same order. Everything else of the week stays as
//! it is. The new table, and the `week.json` that lists it, are one commit.
//!
//! Cost: the crawl is read and fingerprinted once more. Chunks are sorted twice, in half and in a
//! quarter of the memory; besides, about 50 bytes for each document of a shard are in memory, and
//! as many for each page that a revisit of another URL made. One process works, with one thread for
//! each worker.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, ensure};
use arrow_array::{Array as _, FixedSizeBinaryArray, Int64Array, StringArray};
use serde::{Deserialize, Serialize};

use crate::config::Reading;
use crate::features::{Fingerprinter, PageChunks};
use crate::kernels;
use crate::kernels::polynomials;
use crate::operators::ingest::{PageKey, page_facts};
use crate::readers::{Input, Item};
use crate::records::{DocId, DocumentKey, KeyHash, Week, checksum};
use crate::state::{CommittedWeek, Earlier, Segment, Store, TablePart, UrlIndex, WeekTables, WholeWeek};
use crate::structures::{CompactSort, ExternalSort, Sortable, Sorted};
use crate::tables::{ChunkRow, DocumentRow, Names, RowRange, Scan, Table, Writer, field, parts};
use crate::watch::{Stage, Watch};

/// The number of missing pages that are named.
const NAMED: usize = 5;

/// The line of a week's job that says that its chunks were made later.
pub const CHUNKS_SINCE: &str = "# Chunks made since.";

/// What the job computes, and with what.
pub struct ChunksPlan {
    /// The store of the week.
    pub store: Store,
    /// The week, which has been committed.
    pub week: CommittedWeek,
    /// The weeks before it.
    pub earlier: Earlier,
    /// How the job of the week read pages.
    pub reading: Reading,
    /// The crawl files.
    pub inputs: Vec<Input>,
    /// The number of the commit.
    pub commit: u64,
    /// The number of threads.
    pub workers: usize,
    /// Memory for buffers, in bytes.
    pub memory: u64,
}

/// What the job made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChunksSummary {
    /// The week.
    pub week: Option<Week>,
    /// Pages of the week with words.
    pub pages: u64,
    /// Those that have chunks now.
    pub chunks: u64,
    /// Those of whose URL the files have no page.
    pub not_found: u64,
    /// Those whose URL has only other content in the files.
    pub other_content: u64,
    /// The URLs of some pages without chunks.
    pub missing: Vec<String>,
}

/// A page of the files, under the URL of a document.
#[derive(Serialize, Deserialize)]
struct FoundPage {
    /// The hash of the URL of the document.
    hash: KeyHash,
    file: u32,
    ordinal: u64,
    checksum: u128,
    chunks: PageChunks,
}

impl Sortable for FoundPage {
    type Key = (KeyHash, u32, u64);

    fn key(&self) -> Self::Key {
        (self.hash, self.file, self.ordinal)
    }

    fn weight(&self) -> usize {
        size_of::<FoundPage>() + self.chunks.lines.len() + self.chunks.paragraphs.len()
    }
}

/// A page of the files with its document id.
#[derive(Serialize, Deserialize)]
struct NumberedChunks {
    doc: DocId,
    page: FoundPage,
}

impl Sortable for NumberedChunks {
    type Key = (DocId, u32, u64);

    fn key(&self) -> Self::Key {
        (self.doc, self.page.file, self.page.ordinal)
    }

    fn weight(&self) -> usize {
        size_of::<DocId>() + self.page.weight()
    }
}

/// A document of the week.
struct WeekDocument {
    doc: DocId,
    checksum: u128,
    /// The number of its segment among those of the shard.
    segment: usize,
}

/// Makes and publishes the table. The caller has locked the store.
///
/// # Errors
/// If a file cannot be read or written, a later week uses chunks of this one, or no page of the
/// files is one of the week: then the store stays as it was.
pub fn make_chunks(plan: &ChunksPlan, watch: &Watch) -> Result<ChunksSummary> {
    let store = &plan.store;
    refuse_used_chunks(plan)?;
    let mut whole = store.whole(&plan.week)?;
    let mut summary = ChunksSummary { week: Some(plan.week.week), ..ChunksSummary::default() };
    watch.enter(Stage::Read);
    let tables = whole.tables(store.root());
    let mut pages = read_pages(plan, &whole, &urls_of_records(&tables, whole.method.documents)?, watch)?;
    watch.enter(Stage::Tables);
    let url_files = store.url_indexes(&plan.earlier)?;
    let mut of_week = store.url_indexes(&Earlier { removed: None, weeks: vec![plan.week.clone()] })?;
    let mut next = pages.record()?;
    let mut unnamed: Vec<DocId> = Vec::new();
    let by_shard = whole.journal.by_shard();
    for (shard, segments) in by_shard {
        let mut files: Vec<RowRange> = url_files.get(&shard).cloned().unwrap_or_default();
        files.extend(of_week.remove(&shard).unwrap_or_default());
        let shard = WeekShard { plan, shards: whole.method.shards, shard, segments: &segments, url_files: &files };
        let numbered = shard.number(&mut pages, &mut next)?;
        let rows = shard.write(&tables, numbered, &mut summary, &mut unnamed)?;
        for (segment, rows) in segments.iter().zip(rows) {
            let same = |other: &&mut Segment| (other.wave, other.shard) == (segment.wave, segment.shard);
            if let Some(segment) = whole.journal.segments.iter_mut().find(same) {
                segment.chunks = rows;
            }
        }
    }
    summary.missing = names_of(&tables, &unnamed)?;
    ensure!(
        summary.chunks > 0 || summary.pages == 0,
        "no page of these files is one of week {} (of its {} pages, {} have other content there): name the files that the week was made \
         from. The store is unchanged",
        plan.week.week,
        summary.pages,
        summary.other_content
    );
    let files = pack(plan, &whole)?;
    whole.files.insert(ChunkRow::NAME.to_owned(), files);
    whole.kept.values_mut().for_each(|files| drop(files.remove(ChunkRow::NAME)));
    whole.committed.amend(plan.commit);
    store.amend(&whole, CHUNKS_SINCE)?;
    Ok(summary)
}

/// Checks that no later week refers to the chunks of pages that stayed in it: it would go on with
/// the former table, beside the new one.
fn refuse_used_chunks(plan: &ChunksPlan) -> Result<()> {
    let week = plan.week.week;
    let weeks = plan.store.manifest()?.map_or_else(Vec::new, |manifest| manifest.weeks);
    for later in weeks.iter().filter(|later| later.week > week) {
        let kept = plan.store.whole(later)?.kept;
        let of_week = kept.get(&week).and_then(|files| files.get(ChunkRow::NAME));
        ensure!(
            of_week.is_none_or(Vec::is_empty),
            "week {} uses chunks of week {week}, of pages that stayed: make those of week {} first, from the files of all of its pages",
            later.week,
            later.week
        );
    }
    Ok(())
}

/// The hashes of the URLs of documents that a revisit made, by the hash of the URL of the record
/// that has their page.
fn urls_of_records(tables: &WeekTables, documents: DocumentKey) -> Result<BTreeMap<KeyHash, Vec<KeyHash>>> {
    let mut of_records: BTreeMap<KeyHash, Vec<KeyHash>> = BTreeMap::new();
    // Other documents than URLs have no revisits.
    for rows in tables.all(DocumentRow::NAME).iter().filter(|_| documents == DocumentKey::Url) {
        Scan::open(rows, &["url", "record_url"])?.for_each(|batch| {
            let (urls, records): (&StringArray, &StringArray) = (field(batch, "url")?, field(batch, "record_url")?);
            for row in (0..batch.num_rows()).filter(|row| records.is_valid(*row)) {
                let urls_of_record = of_records.entry(KeyHash::of(records.value(row))).or_default();
                urls_of_record.push(KeyHash::of(urls.value(row)));
            }
            Ok(())
        })?;
    }
    Ok(of_records)
}

/// The chunks of all pages of the files, in the order of the hashes of their URLs, and of the URLs
/// in `of_records`.
fn read_pages(
    plan: &ChunksPlan,
    whole: &WholeWeek,
    of_records: &BTreeMap<KeyHash, Vec<KeyHash>>,
    watch: &Watch,
) -> Result<Sorted<FoundPage>> {
    let spill = plan.store.unfinished(plan.week.week).spill();
    let sort = Mutex::new(ExternalSort::new(&spill.join("found-pages"), plan.memory / 2));
    let polynomials = polynomials(whole.method.seed, whole.method.features);
    let kernels = kernels::chosen()?;
    let next_file = AtomicUsize::new(0);
    let read = || -> Result<()> {
        let mut fingerprinter = Fingerprinter::new(&whole.method, &polynomials, 0, kernels)?.keeping_chunks(true);
        loop {
            let file = next_file.fetch_add(1, Ordering::Relaxed);
            let Some(input) = plan.inputs.get(file) else { return Ok(()) };
            let mut reader = crate::readers::open(input, &plan.reading)?;
            let (mut position, mut ordinal) = (0, 0);
            while let Some(item) = reader.next().with_context(|| format!("cannot read {}", input.name))? {
                watch.add_bytes(reader.position().saturating_sub(position));
                (position, ordinal) = (reader.position().max(position), ordinal + 1);
                let Item::Page(page) = item else { continue };
                watch.add_record(true, false);
                let Ok(PageKey { hash, url }) = PageKey::of(whole.method.documents, &page, &input.name) else {
                    continue;
                };
                let (bytes, facts) = page_facts(&mut fingerprinter, &page.body, page.charset.as_deref(), url.as_ref());
                let Some(chunks) = facts.chunks else { continue };
                let checksum = checksum(bytes);
                let mut sort = sort.lock().unwrap_or_else(PoisonError::into_inner);
                for hash in of_records.get(&hash).into_iter().flatten() {
                    let chunks = chunks.clone();
                    sort.push(FoundPage { hash: *hash, file: file as u32, ordinal, checksum, chunks })?;
                }
                sort.push(FoundPage { hash, file: file as u32, ordinal, checksum, chunks })?;
            }
        }
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..plan.workers).map(|_| scope.spawn(read)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("reading does not panic"))
    })?;
    sort.into_inner().unwrap_or_else(PoisonError::into_inner).sorted()
}

/// A shard of the week.
struct WeekShard<'a> {
    plan: &'a ChunksPlan,
    shards: u32,
    shard: u32,
    segments: &'a [Segment],
    /// The URLs of the shard of this week and of earlier ones, by hash.
    url_files: &'a [RowRange],
}

impl WeekShard<'_> {
    /// Takes the pages of the shard, and sorts those that have a document id by it. `next` is the
    /// next of `pages`: shards come in order.
    fn number(&self, pages: &mut Sorted<FoundPage>, next: &mut Option<FoundPage>) -> Result<Sorted<NumberedChunks>> {
        let unfinished = self.plan.store.unfinished(self.plan.week.week);
        let index = UrlIndex { unfinished: &unfinished, shard: self.shard, segments: &[], earlier: self.url_files };
        let mut urls = index.lookup(0)?;
        let prefix = unfinished.spill().join(format!("numbered-shard{}", self.shard));
        let mut by_doc = ExternalSort::new(&prefix, self.plan.memory / 4);
        // Pages of shards before this one are not of the week.
        while let Some(page) = next.take_if(|page| page.hash.shard(self.shards) <= self.shard) {
            if page.hash.shard(self.shards) == self.shard
                && let Some(doc) = urls.find(page.hash)?
            {
                by_doc.push(NumberedChunks { doc, page })?;
            }
            *next = pages.record()?;
        }
        by_doc.sorted()
    }

    /// Writes the rows of each segment, and returns how many. Counts the pages in `summary`, and
    /// adds some without chunks to `unnamed`.
    fn write(
        &self,
        tables: &WeekTables,
        mut pages: Sorted<NumberedChunks>,
        summary: &mut ChunksSummary,
        unnamed: &mut Vec<DocId>,
    ) -> Result<Vec<u64>> {
        let unfinished = self.plan.store.unfinished(self.plan.week.week);
        let writer = |segment: &Segment| Writer::create(&unfinished.table(ChunkRow::NAME, &segment.file()));
        let mut writers: Vec<Writer<ChunkRow>> = self.segments.iter().map(writer).collect::<Result<_>>()?;
        let mut next = pages.record()?;
        for known in self.known(tables)? {
            let (mut chunks, mut is_found) = (None, false);
            while let Some(found) = next.take_if(|found| found.doc <= known.doc) {
                if found.doc == known.doc {
                    is_found = true;
                    if found.page.checksum == known.checksum && chunks.is_none() {
                        chunks = Some(found.page.chunks);
                    }
                }
                next = pages.record()?;
            }
            summary.pages += 1;
            match chunks {
                Some(PageChunks { text, characters, lines, paragraphs }) => {
                    let (doc, text, characters) = (known.doc.to_table(), text.to_be_bytes(), characters as i64);
                    let (lines, paragraphs) = (&lines[..], &paragraphs[..]);
                    writers[known.segment].push(ChunkRow { doc, text, characters, lines, paragraphs })?;
                    summary.chunks += 1;
                    continue;
                }
                None if is_found => summary.other_content += 1,
                None => summary.not_found += 1,
            }
            if unnamed.len() < NAMED {
                unnamed.push(known.doc);
            }
        }
        writers.into_iter().map(Writer::finish_if_any).collect()
    }

    /// The documents of the shard with words, in the order of ids.
    fn known(&self, tables: &WeekTables) -> Result<Vec<WeekDocument>> {
        let mut known = Vec::new();
        for (number, segment) in self.segments.iter().enumerate() {
            let rows = tables.rows(DocumentRow::NAME, &segment.file())?;
            Scan::open(rows, &["doc", "checksum", "words"])?.for_each(|batch| {
                let (docs, words): (&Int64Array, &Int64Array) = (field(batch, "doc")?, field(batch, "words")?);
                let checksums: &FixedSizeBinaryArray = field(batch, "checksum")?;
                for row in (0..batch.num_rows()).filter(|row| words.value(*row) > 0) {
                    let checksum = u128::from_be_bytes(checksums.value(row).try_into().unwrap_or_default());
                    known.push(WeekDocument { doc: DocId::from_table(docs.value(row)), checksum, segment: number });
                }
                Ok(())
            })?;
        }
        known.sort_items_by_key(|page| page.doc);
        Ok(known)
    }
}

/// The names of these documents.
fn names_of(tables: &WeekTables, wanted: &[DocId]) -> Result<Vec<String>> {
    let mut found: BTreeMap<DocId, String> = BTreeMap::new();
    let files = tables.all(DocumentRow::NAME).iter();
    for rows in files.filter(|_| !wanted.is_empty()) {
        Scan::open(rows, &[&["doc"][..], &Names::COLUMNS].concat())?.for_each(|batch| {
            let docs: &Int64Array = field(batch, "doc")?;
            let names = Names::of(batch)?;
            for row in 0..batch.num_rows() {
                let doc = DocId::from_table(docs.value(row));
                if wanted.contains(&doc) {
                    found.insert(doc, names.name(row).into_owned());
                }
            }
            Ok(())
        })?;
    }
    Ok(found.into_values().collect())
}

/// Packs the files of the segments into those of the commit, by wave, then by shard, as a week
/// does.
fn pack(plan: &ChunksPlan, whole: &WholeWeek) -> Result<Vec<TablePart>> {
    let unfinished = plan.store.unfinished(plan.week.week);
    let (mut files, mut segments) = (Vec::new(), whole.journal.segments.clone());
    segments.retain(|segment| segment.chunks > 0);
    segments.sort_items_by_key(|segment| (segment.wave, segment.shard));
    for segment in segments {
        let path = unfinished.table(ChunkRow::NAME, &segment.file());
        let bytes = path.metadata().with_context(|| format!("cannot read {}", path.display()))?.len();
        files.push((segment.file(), bytes));
    }
    let mut ranges = parts(files.iter().map(|(_, bytes)| *bytes));
    if ranges.is_empty() {
        ranges.push(0..0);
    }
    let week = plan.week.week;
    let job = if plan.earlier.is_empty() { "cluster" } else { "weekly" };
    let date = week.to_string();
    let part = |(part, range): (usize, std::ops::Range<usize>)| -> Result<TablePart> {
        let pieces = files[range].iter().map(|(name, _)| (name.clone(), unfinished.table(ChunkRow::NAME, name).into()));
        let path = plan.store.staged_part(&Path::new(ChunkRow::NAME).join(week.folder()), plan.commit, part);
        let labels = [("nigh.week", date.as_str()), ("nigh.job", job)];
        TablePart::pack(crate::tables::pack::<ChunkRow>, pieces, &path, &labels)
    };
    ranges.into_iter().enumerate().map(part).collect()
}
