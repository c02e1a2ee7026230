//! Writes segments: the captures of a wave become rows of tables, at the owner of each shard.
//!
//! The captures of a wave are sorted by URL hash with an external sort. For each shard it morally
//! does this:
//!
//! ```text
//! for the captures of one URL, in the order of URL hashes
//!     if a capture of the URL came in an earlier wave of this week
//!         count them all as duplicates
//!     else
//!         doc = the document id of the URL, from an earlier week; else the next row of the shard
//!         write the first capture by (file, ordinal) as document doc; of GET, if one is
//!         count the others as duplicates
//!     what is counted as a duplicate is a row of `captures`, if a revisit can refer to it
//! ```
//!
//! The same for ids, where documents are known by these. What is counted as a duplicate can be a
//! bad record instead.
//!
//! New ids follow the order of URL hashes, so they depend only on the waves. Rows ascend by
//! document id in every file. In a store's first week this is the order of the hashes; in later
//! weeks the documents of a wave are sorted a second time.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context, Result};
use arrow_array::{FixedSizeBinaryArray, Int64Array};
use bytemuck::{Pod, Zeroable};
use nigh_exchange::{BlockStream, RowDealer, bytes_of_rows, emit, time_of, unary_frontier};

use super::capture::{Capture, CaptureKey, CapturedChunks, PackedCapture};
use super::duplicates::{Duplicates, Same};
use super::notes::{WaveNote, WaveSegments};
use super::unread::UnreadPieces;
use crate::kernels::memory::return_freed;
use crate::plan::Plan;
use crate::records::{DocId, DocumentKey};
use crate::state::{
    BundleName, BundleWriter, DocumentTotals, ReadingCounts, Segment, Unfinished, UrlIndex, sync_folder,
};
use crate::structures::{RowSort, SortedRows};
use crate::tables::{
    CaptureRow, ChunkRow, DocumentRow, FeatureRow, FoundLinkRow, FoundLinks, RowRange, Scan, UrlRow, UtcMicros,
    ValueRow, field,
};
use crate::text::urls;
use crate::watch::Watch;

/// Writes the segments of every wave from `first_wave` to the end of `unread`. Each worker emits
/// one `WaveSegments` for every wave, once its segments are durable.
///
/// `done` are the segments of the waves before `first_wave`, which an earlier run committed.
pub fn segments<'scope>(
    captures: BlockStream<'scope>,
    plan: &Arc<Plan>,
    (first_wave, unread): (usize, &Arc<UnreadPieces>),
    done: &[Segment],
    watch: &Arc<Watch>,
) -> BlockStream<'scope> {
    let shards = plan.method.shards;
    let url_files = watch.check(plan.open_store().url_indexes(&plan.earlier)).unwrap_or_default();
    let earlier = plan.earlier.urls(shards);
    let (plan, unread, watch) = (plan.clone(), unread.clone(), watch.clone());
    let (index, peers) = (captures.scope().index(), captures.scope().peers());
    let done = done.iter().filter(|segment| segment.shard as usize % peers == index);
    let own_shards = (index..shards as usize).step_by(peers).count();
    let mut writer = ShardWriter::new(&plan, url_files, earlier, done, own_shards, index, &watch);
    watch.expect_steps(2 * own_shards * (plan.waves.len() - first_wave));
    let mut notes = RowDealer::new(index, 1, &watch);
    unary_frontier(captures, "Segments", |capability, _| {
        let mut waves: BTreeMap<u64, RowSort<CaptureKey>> = BTreeMap::new();
        // At most two waves are in progress; half of the memory is left for other buffers.
        let budget = plan.worker_memory / 4;
        // Every worker reports every wave, even without segments: the commit counts the reports.
        // After a failure the operator keeps its capability, so that no other process takes the
        // wave for complete.
        let mut capability = Some(capability);
        let mut wave = first_wave as u64;
        move |input, frontier, output| {
            input.for_each_stamp(|capability, blocks| {
                let wave = time_of(&capability);
                let prefix = || writer.unfinished.spill().join(format!("worker{index}-wave{wave}"));
                let sort = waves.entry(wave).or_insert_with(|| RowSort::new(&prefix(), budget));
                let mut push = |bytes: Result<&[u8]>| {
                    let (key, row) = PackedCapture::split(bytes?)?;
                    sort.push(key, &[row])
                };
                for block in blocks {
                    if watch.failed() || watch.check(bytes_of_rows(block).try_for_each(&mut push)).is_none() {
                        return;
                    }
                }
            });
            while let Some(at_wave) = &mut capability
                && !watch.failed()
            {
                if wave as usize == unread.end() {
                    capability = None;
                } else if frontier.less_equal(&wave) {
                    break;
                } else {
                    at_wave.downgrade(&wave);
                    let sort = waves.remove(&wave).unwrap_or_else(|| RowSort::new(&writer.unfinished.spill(), budget));
                    let Some(segments) = watch.check(writer.write(sort, wave as usize)) else { return };
                    notes.deal(0, &WaveNote::Made(Box::new(segments)));
                    emit(notes.finish(), output, &*at_wave);
                    wave += 1;
                }
            }
        }
    })
}

/// Writes the segments of the shards that a worker owns, wave by wave.
struct ShardWriter {
    plan: Arc<Plan>,
    unfinished: Unfinished,
    /// The url files of earlier weeks, by shard.
    url_files: BTreeMap<u32, Vec<RowRange>>,
    /// The number of rows of each shard's url table before this week.
    earlier: Vec<u64>,
    /// All segments of this week so far, by shard.
    segments: BTreeMap<u32, Vec<Segment>>,
    /// The URLs of earlier weeks that have a document this week so far, by shard.
    captured: BTreeMap<u32, RowSet>,
    /// The number of own shards.
    own_shards: usize,
    /// The number of the worker.
    worker: usize,
    watch: Arc<Watch>,
}

impl ShardWriter {
    fn new<'a>(
        plan: &Arc<Plan>,
        url_files: BTreeMap<u32, Vec<RowRange>>,
        earlier: Vec<u64>,
        done: impl Iterator<Item = &'a Segment>,
        own_shards: usize,
        worker: usize,
        watch: &Arc<Watch>,
    ) -> ShardWriter {
        let mut segments: BTreeMap<u32, Vec<Segment>> = BTreeMap::new();
        for segment in done {
            segments.entry(segment.shard).or_default().push(*segment);
        }
        let unfinished = plan.open_store().unfinished(plan.week);
        ShardWriter {
            unfinished,
            plan: plan.clone(),
            url_files,
            earlier,
            segments,
            captured: BTreeMap::new(),
            own_shards,
            worker,
            watch: watch.clone(),
        }
    }

    /// Writes the segments of a wave for all shards of this worker, and merges their url indexes.
    fn write(&mut self, sort: RowSort<CaptureKey>, wave: usize) -> Result<WaveSegments> {
        let mut sorted = sort.sorted()?;
        let mut written = WaveSegments::default();
        // Two steps for each shard, also for those without captures.
        let mut left = 2 * self.own_shards;
        let mut writer = SegmentWriter::new(&self.plan, &self.unfinished, wave, self.worker);
        while let Some(first) = sorted.key() {
            self.write_shard(first.hash().shard(self.plan.method.shards), &mut sorted, &mut writer, &mut written)?;
            self.watch.add_steps(1);
            left -= 1;
        }
        writer.finish()?;
        drop(sorted);
        return_freed();
        for (shard, segments) in &self.segments {
            let earlier = self.url_files.get(shard).map_or(&[][..], |files| files);
            UrlIndex { unfinished: &self.unfinished, shard: *shard, segments, earlier }.merge(wave)?;
            self.watch.add_steps(1);
            left -= 1;
        }
        self.watch.add_steps(left);
        sync_folder(self.unfinished.folder())?;
        Ok(written)
    }

    /// Writes the segment of a shard, whose captures are next in `sorted`.
    fn write_shard(
        &mut self,
        shard: u32,
        sorted: &mut SortedRows<CaptureKey>,
        writer: &mut SegmentWriter,
        written: &mut WaveSegments,
    ) -> Result<()> {
        let (shards, wave) = (self.plan.method.shards, writer.wave);
        let mut captured = self.take_captured(shard)?;
        let (segments, earlier) = (self.segments.entry(shard).or_default(), self.earlier[shard as usize]);
        let url_files = self.url_files.get(&shard).map_or(&[][..], |files| files);
        let index = UrlIndex { unfinished: &self.unfinished, shard, segments, earlier: url_files };
        let mut urls = index.lookup(wave)?;
        let mut row = earlier + segments.iter().map(|segment| segment.urls).sum::<u64>();
        writer.begin(shard, row);
        let prefix = self.unfinished.spill().join(format!("shard{shard}-wave{wave}"));
        let mut by_doc = RowSort::<NumberedPage>::new(&prefix, self.plan.worker_memory / 8);
        let mut duplicates = Duplicates::new(&self.plan);
        let (unfinished, before) = (&self.unfinished, segments.clone());
        let checksums = |each: &mut dyn FnMut(DocId, u128)| -> Result<()> {
            for segment in before.iter().filter(|segment| segment.documents > 0) {
                let rows = unfinished.rows::<DocumentRow>(&segment.file())?;
                Scan::open(rows, &["doc", "checksum"])?.for_each(|batch| {
                    let docs: &Int64Array = field(batch, "doc")?;
                    let sums: &FixedSizeBinaryArray = field(batch, "checksum")?;
                    for (row, doc) in docs.values().iter().enumerate() {
                        let bytes = sums.value(row).try_into().context("a checksum has 16 bytes")?;
                        each(DocId::from_table(*doc), u128::from_be_bytes(bytes));
                    }
                    Ok(())
                })?;
            }
            Ok(())
        };
        while let Some(key) = sorted.key().filter(|key| key.hash().shard(shards) == shard) {
            // The captures of one URL follow each other, those of GET first, in the order of (file,
            // ordinal).
            let hash = key.hash();
            let (doc, is_first) = match urls.find(hash)? {
                Some(doc) => (doc, doc.row() < earlier && captured.add(doc.row())),
                None => {
                    row += 1;
                    (DocId::new(shard, row - 1), true)
                }
            };
            let page = Capture::read(sorted.row())?;
            let of_document = is_first.then_some(page.checksum);
            let same = || of_document.map_or(Same::Earlier(doc), Same::Here);
            match is_first {
                false => {
                    writer.push_later(doc, key, &page, None)?;
                    duplicates.add(key, &page, same(), &checksums)?;
                }
                true if earlier == 0 => writer.push(doc, key, &page, &mut written.counts)?,
                true => by_doc.push(NumberedPage { doc: doc.to_table(), key }, &[sorted.row()])?,
            }
            sorted.advance()?;
            while let Some(key) = sorted.key().filter(|key| key.hash() == hash) {
                let again = Capture::read(sorted.row())?;
                writer.push_later(doc, key, &again, of_document)?;
                duplicates.add(key, &again, same(), &checksums)?;
                sorted.advance()?;
            }
        }
        let mut by_doc = by_doc.sorted()?;
        while let Some(NumberedPage { doc, key }) = by_doc.key() {
            writer.push(DocId::from_table(doc), key, &Capture::read(by_doc.row())?, &mut written.counts)?;
            by_doc.advance()?;
        }
        let segment = writer.end_segment()?;
        duplicates.count(written, &checksums)?;
        self.captured.insert(shard, captured);
        if segment.documents > 0 {
            segments.push(segment);
            written.segments.push(segment);
        }
        Ok(())
    }

    /// Takes the set of rows of earlier weeks that have a document in this week's waves so far.
    /// After a restart it is read from the segments of the committed waves.
    fn take_captured(&mut self, shard: u32) -> Result<RowSet> {
        if let Some(rows) = self.captured.remove(&shard) {
            return Ok(rows);
        }
        let earlier = self.earlier[shard as usize];
        let mut rows = RowSet::new(earlier);
        for segment in self.segments.get(&shard).into_iter().flatten() {
            let documents = self.unfinished.rows::<DocumentRow>(&segment.file())?;
            Scan::open(documents, &["doc"])?.for_each(|batch| {
                let docs: &Int64Array = field(batch, "doc")?;
                let all = docs.values().iter().map(|doc| DocId::from_table(*doc).row());
                all.filter(|row| *row < earlier).for_each(|row| _ = rows.add(row));
                Ok(())
            })?;
        }
        Ok(rows)
    }
}

/// A set of rows of a shard, with a bit for each row.
struct RowSet(Vec<u64>);

impl RowSet {
    fn new(rows: u64) -> RowSet {
        RowSet(vec![0; rows.div_ceil(64) as usize])
    }

    /// Adds a row; returns false if the set had it.
    fn add(&mut self, row: u64) -> bool {
        let (word, bit) = (&mut self.0[row as usize / 64], 1 << (row % 64));
        let new = *word & bit == 0;
        *word |= bit;
        new
    }
}

/// The key of a capture with its document id, by which it is sorted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct NumberedPage {
    /// The document id as tables have it: ascending in a shard.
    doc: i64,
    key: CaptureKey,
}

/// The bundles of one wave and worker, while they are written, segment by segment.
struct SegmentWriter {
    plan: Arc<Plan>,
    wave: usize,
    /// The segment that is written.
    segment: Segment,
    /// The first row of its shard that has no URL yet.
    first_row: u64,
    documents: BundleWriter<DocumentRow<'static>>,
    features: BundleWriter<FeatureRow<'static>>,
    chunks: BundleWriter<ChunkRow<'static>>,
    urls: BundleWriter<UrlRow<'static>>,
    links: BundleWriter<FoundLinkRow<'static>>,
    found: FoundLinks,
    captures: BundleWriter<CaptureRow<'static>>,
    values: BundleWriter<ValueRow<'static>>,
}

impl SegmentWriter {
    fn new(plan: &Arc<Plan>, unfinished: &Unfinished, wave: usize, worker: usize) -> SegmentWriter {
        let name = BundleName::Wave(wave, worker);
        SegmentWriter {
            plan: plan.clone(),
            wave,
            segment: Segment::default(),
            first_row: 0,
            documents: unfinished.bundle(name),
            features: unfinished.bundle(name),
            chunks: unfinished.bundle(name),
            urls: unfinished.bundle(name),
            links: unfinished.bundle(name),
            found: FoundLinks::default(),
            captures: unfinished.bundle(name),
            values: unfinished.bundle(name),
        }
    }

    /// Begins the segment of a shard.
    fn begin(&mut self, shard: u32, first_row: u64) {
        self.segment = Segment { wave: self.wave, shard, ..Segment::default() };
        self.first_row = first_row;
    }

    /// Writes the rows of a document.
    fn push(&mut self, doc: DocId, key: CaptureKey, page: &Capture, counts: &mut ReadingCounts) -> Result<()> {
        self.found.push(doc, &page.links, self.links.writer()?)?;
        let (is_new_url, doc) = (doc.row() >= self.first_row, doc.to_table());
        let mut totals = DocumentTotals::default();
        totals.add(page.words, page.bytes, self.plan.method.words);
        counts.add_documents(&totals);
        counts.cut += u64::from(page.cut);
        if page.words > 0 {
            self.features.push(FeatureRow::new(doc, page.supershingles, page.features))?;
        }
        if let Some(CapturedChunks { text, characters, lines, paragraphs }) = page.chunks {
            let (text, characters) = (text.to_be_bytes(), characters as i64);
            self.chunks.push(ChunkRow { doc, text, characters, lines, paragraphs })?;
        }
        for (column, value) in self.plan.reading.columns.values.iter().zip(&page.values) {
            if let Some(value) = value {
                self.values.push(ValueRow { doc, column, value })?;
            }
        }
        let (id, url) = (page.id, page.url);
        if is_new_url {
            let known_by = self.plan.method.documents;
            self.urls.push(UrlRow {
                doc,
                hash: key.hash().to_bytes(),
                url: url.filter(|_| known_by == DocumentKey::Url),
                id: id.filter(|_| known_by == DocumentKey::Id),
            })?;
        }
        let file = self.plan.inputs.get(key.file as usize).context("a capture names an input of the plan")?;
        self.documents.push(DocumentRow {
            doc,
            id,
            url,
            given_url: page.given_url,
            host: page.host,
            domain: page.host.map(urls::domain),
            ip: page.ip.as_deref(),
            fetched: page.fetched.map(UtcMicros),
            status: page.status.map(i32::from),
            media_type: page.media_type,
            charset: page.charset,
            digest: page.digest,
            record_id: page.record_id,
            length: page.length.map(|length| length as i64),
            record_url: None,
            bytes: page.bytes as i64,
            checksum: page.checksum.to_be_bytes(),
            words: page.words as i64,
            title: page.title,
            file: &file.name,
            offset: page.offset as i64,
            crawled: self.plan.week,
            stored: self.plan.week,
        })
    }

    /// Writes a capture of a document's URL after the first, if a revisit can refer to it.
    /// `of_document` is the checksum of the first, if that is at hand.
    fn push_later(&mut self, doc: DocId, key: CaptureKey, page: &Capture, of_document: Option<u128>) -> Result<()> {
        let file = self.plan.inputs.get(key.file as usize).context("a capture names an input of the plan")?;
        let has_records = file.format.is_archive();
        let is_by_url = self.plan.method.documents == DocumentKey::Url;
        let Some(url) = page.url.filter(|_| has_records && is_by_url) else { return Ok(()) };
        let same = of_document == Some(page.checksum);
        let has_words = !same && page.words > 0;
        let chunks = page.chunks.as_ref().filter(|_| has_words);
        self.captures.push(CaptureRow {
            doc: doc.to_table(),
            url,
            fetched: page.fetched.map(UtcMicros),
            digest: page.digest,
            record_id: page.record_id,
            file: &file.name,
            offset: page.offset as i64,
            length: page.length.map(|length| length as i64),
            status: page.status.map(i32::from),
            media_type: page.media_type,
            charset: page.charset,
            bytes: page.bytes as i64,
            checksum: page.checksum.to_be_bytes(),
            words: page.words as i64,
            title: page.title,
            same,
            supershingles: has_words.then_some(page.supershingles),
            features: has_words.then_some(page.features),
            text: chunks.map(|chunks| chunks.text.to_be_bytes()),
            characters: chunks.map(|chunks| chunks.characters as i64),
            lines: chunks.map(|chunks| chunks.lines),
            paragraphs: chunks.map(|chunks| chunks.paragraphs),
            links: (!same).then_some(&*page.links),
        })
    }

    /// Ends the segment. It has no piece in a table without rows.
    fn end_segment(&mut self) -> Result<Segment> {
        let name = self.segment.file();
        self.captures.end_piece(&name)?;
        self.values.end_piece(&name)?;
        self.found.flush(self.links.writer()?)?;
        Ok(Segment {
            documents: self.documents.end_piece(&name)?,
            features: self.features.end_piece(&name)?,
            chunks: self.chunks.end_piece(&name)?,
            urls: self.urls.end_piece(&name)?,
            links: self.links.end_piece(&name)?,
            ..self.segment
        })
    }

    /// Ends the bundles.
    fn finish(self) -> Result<()> {
        self.documents.finish()?;
        self.features.finish()?;
        self.chunks.finish()?;
        self.urls.finish()?;
        self.captures.finish()?;
        self.values.finish()?;
        self.links.finish()
    }
}
